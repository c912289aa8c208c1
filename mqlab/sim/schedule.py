"""Fault schedules: faults as data, a line each, part of a scenario and shown in the trace.

at 12.5s: partition broker-a | broker-b for 3s
at 20s: freeze consumer-1 for 130s
at 25s: hang_disk broker-a for 2s
at 27s: fill_disk broker-a by 4096 for 1s
at 28s: slow_disk broker-a by 1200ms for 5s
at 30s: power_off broker-a
at 31s: restart broker-a
at 40s: delay producer-1 > broker-a by 250ms for 5s
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from mqlab.errors import LearnerError
from mqlab.sim.faults import DIRECTION, FAULTS, GROUPS, NODE, PAIR

_LINE = re.compile(r"at\s+(?P<at>\S+?)\s*:\s*(?P<verb>\w+)(?:\s+(?P<rest>.*))?$")
_FOR = re.compile(r"\s+for\s+(\S+)$")
_BY = re.compile(r"\s+by\s+(\S+)$")
_TIME = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)$")
_UNIT_US = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}

class Fault(NamedTuple):
    """One line of a schedule: at `at_us`, do `verb(**arguments)`."""

    at_us: int
    verb: str
    arguments: dict[str, Any]


def parse_time_us(text: str) -> int:
    """Microseconds of "250ms", "12.5s", "3m" or "1h"."""
    match = _TIME.match(text.strip())
    if not match:
        raise LearnerError(f"{text!r} is not a time", "write it like 250ms, 12.5s, 3m or 1h")
    return round(float(match[1]) * _UNIT_US[match[2]])


def parse_schedule(text: str) -> list[Fault]:
    """The faults of a schedule in order of time; "for" adds the fault that undoes it. LearnerError names a bad line."""
    if not isinstance(text, str):
        raise LearnerError(f"a fault schedule is a text, not {type(text).__name__}", _EXAMPLE)
    faults: list[Fault] = []
    for number, line in enumerate(text.strip().splitlines(), 1):
        stripped = line.split("#")[0].strip()
        if stripped:
            try:
                faults.extend(_parse_line(stripped))
            except LearnerError as error:
                raise LearnerError(f"line {number}: {error.message}", error.hint) from None
    return sorted(faults, key=lambda fault: fault.at_us)


def _parse_line(line: str) -> list[Fault]:
    match = _LINE.match(line)
    if not match:
        raise LearnerError(f"{line!r} of the fault schedule cannot be read", _EXAMPLE)
    verb = match["verb"]
    kind = _KINDS.get(verb)
    if kind is None:
        raise LearnerError(f"there is no fault {verb!r} for a schedule", f"use one of {', '.join(_KINDS)}")
    at_us = parse_time_us(match["at"])
    rest, lasting = _cut_off(_FOR, f" {match['rest'] or ''}")
    rest, amount = _cut_off(_BY, rest)
    if (amount is not None) != bool(kind.amount):
        raise LearnerError(f"{verb} {'takes no' if amount else 'needs an'} amount after 'by'", _BY_EXAMPLE)
    arguments = _READERS[kind.targets](verb, rest.strip(), amount or "")
    faults = [Fault(at_us, verb, arguments)]
    if lasting is not None:
        if not kind.undo:
            raise LearnerError(f"{verb} cannot last 'for' a time", "leave 'for' away")
        faults.append(Fault(at_us + parse_time_us(lasting), kind.undo, {**arguments, **kind.undone}))
    return faults


def _cut_off(ending: re.Pattern[str], text: str) -> tuple[str, str | None]:
    match = ending.search(text)
    return (text[: match.start()], match[1]) if match else (text, None)


def _one_node(verb: str, rest: str, amount: str) -> dict[str, Any]:
    if len(rest.split()) != 1:
        raise LearnerError(f"{verb} needs the name of one node, not {rest!r}", f"at 3s: {verb} broker-a")
    arguments: dict[str, Any] = {"node": rest}
    if amount:
        unit = FAULTS[verb].amount
        arguments[unit] = parse_time_us(amount) / 1_000 if unit == "ms" else _whole_number(amount)
    return arguments


def _two_nodes(verb: str, rest: str, amount: str) -> dict[str, Any]:
    a, b = _halves(rest, "|", f"{verb} needs two sides", f"at 3s: {verb} producer-1 | broker-a")
    return {"a": a, "b": b}


def _two_groups(verb: str, rest: str, amount: str) -> dict[str, Any]:
    left, right = _halves(rest, "|", f"{verb} needs two sides", f"at 3s: {verb} broker-a | broker-b consumer-1")
    return {"left": left.split(), "right": right.split()}


def _direction(verb: str, rest: str, amount: str) -> dict[str, Any]:
    source, target = _halves(rest, ">", f"{verb} needs a direction", f"at 3s: {verb} producer-1 > broker-a")
    arguments: dict[str, Any] = {"source": source, "target": target}
    if amount:
        arguments["ms"] = parse_time_us(amount) / 1_000
    return arguments


def _halves(text: str, separator: str, complaint: str, example: str) -> tuple[str, str]:
    first, _, second = (part.strip() for part in text.partition(separator))
    if not first or not second:
        raise LearnerError(complaint, f"write it like: {example}")
    return first, second


def _whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise LearnerError(f"{text!r} is not a number", _BY_EXAMPLE) from None


_READERS: dict[str, Callable[[str, str, str], dict[str, Any]]] = {
    NODE: _one_node,
    DIRECTION: _direction,
    PAIR: _two_nodes,
    GROUPS: _two_groups,
}
_KINDS = {verb: kind for verb, kind in FAULTS.items() if kind.targets}
_EXAMPLE = "write it like: at 12.5s: partition broker-a | broker-b for 3s"
_BY_EXAMPLE = "write it like: delay a > b by 250ms, drift a by 200 (ppm), fill_disk a by 4096 (bytes left)"
