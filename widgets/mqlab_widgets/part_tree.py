"""The generic inspector: the fields of any part of a process, opened one level at a time: nothing is without a view.

A path names a part: "broker-a/message_store/commit_log". What begins with an underscore is private to its class and is
not shown; what a part knows of its surroundings (its node, its owner, the world) is named and not opened.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from html import escape
from typing import TYPE_CHECKING, Any

from mqlab.errors import LearnerError

if TYPE_CHECKING:
    from mqlab import Lab

MOST_FIELDS = 60
MOST_LETTERS = 100
SURROUNDINGS = ("Node", "World", "Lab", "Life", "Bus", "MQClientInstance", "BrokerController", "Task")
ATOMS = (int, float, str, bytes, bool, Enum, type(None))


def roots_of(lab: Lab, node: str) -> dict[str, Any]:
    """Name -> part, of what runs in a machine's process: its controller, or its clients. LearnerError if it is down."""
    process = lab.processes.get(node)
    if process is None or process.state == "down":
        raise LearnerError(f"{node} is down, so there is nothing in its memory", f"start it: lab.restart({node!r})")
    running = {broker.name: broker.running for broker in lab.brokers}
    serving = {server.name: server.running for server in lab.name_servers}
    if node in running or node in serving:
        return fields_of(running[node]() if node in running else serving[node]())
    return {client.call_name: getattr(client, "impl", client) for client, *_ in getattr(process, "clients", ())}


def fields_of(part: Any) -> dict[str, Any]:
    """Name -> value of a part's public fields, or of what a collection holds."""
    if isinstance(part, Mapping):
        return {_short(key): value for key, value in part.items()}
    if isinstance(part, list | tuple | deque) and not hasattr(part, "_fields"):
        return {f"[{index}]": value for index, value in enumerate(part)}
    if isinstance(part, set | frozenset):
        return {_short(value): value for value in sorted(part, key=repr)}
    return {name: getattr(part, name) for name in _names(part) if not name.startswith("_")}


def _names(part: Any) -> Iterator[str]:
    names = dict.fromkeys(getattr(part, "_fields", ()))
    for kind in reversed(type(part).__mro__):
        slots = kind.__dict__.get("__slots__", ())
        names.update(dict.fromkeys([slots] if isinstance(slots, str) else slots))
    names.update(dict.fromkeys(getattr(part, "__dict__", ())))
    return (name for name in names if not name.startswith("_") and hasattr(part, name) and not _is_code(part, name))


def _is_code(part: Any, name: str) -> bool:
    value = getattr(part, name)
    return callable(value) and not hasattr(value, "__dict__")


def is_leaf(value: Any) -> bool:
    """Whether a value is shown and not opened."""
    return isinstance(value, ATOMS) or type(value).__name__ in SURROUNDINGS or callable(value) or not fields_of(value)


def told(value: Any) -> str:
    """A value in a few words: atoms as they are, everything else by its kind and size."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, ATOMS):
        return _short(value)
    kind = type(value).__name__
    if isinstance(value, Collection) and not hasattr(value, "_fields"):
        return f"{kind} of {len(value):,}"
    if kind == "Node":
        return f"the machine {value.name}"
    return kind


def _short(value: Any) -> str:
    words = str(value) if isinstance(value, str) else repr(value)
    words = value.name if isinstance(value, Enum) else words
    if " at 0x" in words:
        words = type(value).__name__
    return words if len(words) <= MOST_LETTERS else f"{words[:MOST_LETTERS]}... ({len(words):,} letters)"


def lines(
    parts: Mapping[str, Any], opened: Collection[str], path: str, depth: int = 0
) -> Iterator[tuple[int, str, Any]]:
    """(depth, path, value) of each line that is shown: opened parts with their fields below them."""
    for number, (name, value) in enumerate(parts.items()):
        if number == MOST_FIELDS:
            yield depth, "", f"... and {len(parts) - MOST_FIELDS:,} more"
            return
        here = f"{path}/{name}"
        yield depth, here, value
        if here in opened and not is_leaf(value):
            yield from lines(fields_of(value), opened, here, depth + 1)


def tree_html(lab: Lab, node: str, opened: Collection[str]) -> str:
    """The tree of a machine's process as rows; a part that can be opened is a button."""
    rows = []
    for depth, path, value in lines(roots_of(lab, node), opened, node):
        indent = f'style="padding-left:{depth * 16}px"'
        if not path:
            rows.append(f'<div class="mq-row mq-faint" {indent}>{escape(value)}</div>')
            continue
        name = escape(path.rsplit("/", 1)[-1])
        if is_leaf(value):
            label = f"<span>{name}</span>"
        else:
            sign, state = ("▾", "true") if path in opened else ("▸", "false")
            data = f'data-do="open_part" data-path="{escape(path, quote=True)}" aria-expanded="{state}"'
            label = f'<button type="button" {data}>{sign} {name}</button>'
        rows.append(f'<div class="mq-row" {indent}>{label}<span class="mq-mono">{escape(told(value))}</span></div>')
    return "".join(rows)
