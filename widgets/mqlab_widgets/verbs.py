"""What can be broken and mended from the stage: each verb with its words, when it would do something, and what it does.

Every verb has another one that takes it back. A new one is an entry here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from mqlab.errors import LearnerError
from mqlab.sim import ROOM_BYTES
from mqlab_widgets.boards.stage_machines import HANGS, IS_FULL, IS_SLOW, SCARCE
from mqlab_widgets.boards.stage_state import DOWN, FROZEN, RUNNING

if TYPE_CHECKING:
    from mqlab import Lab
    from mqlab_widgets.boards.stage import StageBoard

FAST_PPM = 10_000
"""A clock that runs wrong gains so much: 10 ms each second."""
SLOW_MS = 100
"""A slow link takes so much longer, each way."""
SLOW_DISK_MS = 1_200
"""Longer than the second from which a broker takes its page cache for busy."""


class Condition(NamedTuple):
    """How a machine is, as far as a verb asks: "running", "frozen", "down", or "" before it was there."""

    state: str
    powered: bool = True
    stores: bool = False
    """Whether it is a broker: what its disk does is seen."""
    full: bool = False
    hung: bool = False
    wrong: bool = False
    """Whether its clock runs wrong."""
    slow: bool = False
    """Whether its disk is slow."""


class LinkCondition(NamedTuple):
    """How a link is: whether all on it is held back, and whether it is slow."""

    cut: bool
    slow: bool = False


class Act(NamedTuple):
    """An action of the world's own vocabulary (`mqlab.sim.faults`), and what else it is told."""

    verb: str
    arguments: dict[str, Any] = {}  # noqa: RUF012  nobody changes it


class Refusal(NamedTuple):
    """Why a verb would do nothing, with the names in braces, and what to do instead."""

    told: str
    hint: str


class Verb(NamedTuple):
    """Something to do to a machine: words with its name, whether it would do anything, what is done to the world, and
    what is said where it would do nothing.
    """

    words: str
    possible: Callable[[Condition], bool]
    act: Callable[[Lab, str], Act]
    refusal: Refusal
    of_disks: bool = False


class LinkVerb(NamedTuple):
    """Something to do to a link between two machines: the same."""

    words: str
    possible: Callable[[LinkCondition], bool]
    acts: Callable[[str, str], list[Act]]
    refusal: Refusal


def _plain(verb: str, **arguments: Any) -> Callable[[Lab, str], Act]:
    return lambda lab, node: Act(verb, {"node": node, **arguments})


def _set_clock(lab: Lab, node: str) -> Act:
    error_ms = round(lab.world.nodes[node].clock_error_us / 1_000)
    return Act("drift", {"node": node, "ppm": 0, "jump_ms": -error_ms})


def _disk(told: str) -> Refusal:
    return Refusal(f"the disk of {{}} {told}", "its menu has what can be done to it")


def _delay(ms: int) -> Callable[[str, str], list[Act]]:
    return lambda a, b: [
        Act("delay", {"source": one, "target": other, "ms": ms}) for one, other in ((a, b), (b, a))
    ]  # fmt: skip


MACHINES = {
    "crash": Verb(
        "Crash {}", lambda is_: is_.state in (RUNNING, FROZEN), _plain("crash"),
        Refusal("{} is down already, so there is nothing to crash", "restart it first"),
    ),
    "power_off": Verb(
        "Pull the plug of {}", lambda is_: is_.state != "" and is_.powered, _plain("power_off"),
        Refusal("{} has no power already", "restart it first"),
    ),
    "freeze": Verb(
        "Freeze {}", lambda is_: is_.state == RUNNING, _plain("freeze"),
        Refusal("{} is frozen already", "thaw it, or crash it"),
    ),
    "thaw": Verb(
        "Let {} go on", lambda is_: is_.state == FROZEN, _plain("thaw"),
        Refusal("{} is not frozen", "freeze it first, or crash it"),
    ),
    "restart": Verb("Restart {}", lambda is_: is_.state != "", _plain("restart"), Refusal("", "")),
    "fill_disk": Verb(
        "Fill the disk of {}", lambda is_: is_.stores and not is_.full, _plain("fill_disk"),
        _disk("is full already"), of_disks=True,
    ),
    "free_disk": Verb(
        "Make room on the disk of {}", lambda is_: is_.stores and is_.full,
        _plain("fill_disk", free_bytes=ROOM_BYTES), _disk("is not full"), of_disks=True,
    ),
    "hang_disk": Verb(
        "Let the disk of {} hang", lambda is_: is_.stores and not is_.hung, _plain("hang_disk"),
        _disk("hangs already"), of_disks=True,
    ),
    "unhang_disk": Verb(
        "Let the disk of {} answer again", lambda is_: is_.stores and is_.hung, _plain("unhang_disk"),
        _disk("does not hang"), of_disks=True,
    ),
    "slow_disk": Verb(
        f"Let each write of the disk of {{}} take {SLOW_DISK_MS} ms", lambda is_: is_.stores and not is_.slow,
        _plain("slow_disk", ms=SLOW_DISK_MS), _disk("is slow already"), of_disks=True,
    ),
    "quick_disk": Verb(
        "Make the disk of {} quick again", lambda is_: is_.stores and is_.slow, _plain("slow_disk", ms=0),
        _disk("is as quick as ever"), of_disks=True,
    ),
    "drift": Verb(
        "Let the clock of {} run 1 % fast", lambda is_: is_.state != "" and not is_.wrong,
        _plain("drift", ppm=FAST_PPM), Refusal("the clock of {} is wrong already", "set it right first"),
    ),
    "set_clock": Verb(
        "Set the clock of {} right", lambda is_: is_.state != "" and is_.wrong, _set_clock,
        Refusal("the clock of {} is right", "let it run wrong first"),
    ),
}  # fmt: skip
LINKS = {
    "cut": LinkVerb(
        "Cut the link {}", lambda is_: not is_.cut, lambda a, b: [Act("partition", {"left": a, "right": b})],
        Refusal("the link between {} and {} is cut already", "heal it"),
    ),
    "heal": LinkVerb(
        "Heal the link {}", lambda is_: is_.cut, lambda a, b: [Act("unpartition", {"left": a, "right": b})],
        Refusal("the link between {} and {} is not cut", "cut it first"),
    ),
    "slow": LinkVerb(
        f"Slow the link {{}} down by {SLOW_MS} ms", lambda is_: not is_.slow, _delay(SLOW_MS),
        Refusal("the link between {} and {} is slow already", "make it quick again"),
    ),
    "quick": LinkVerb(
        "Make the link {} quick again", lambda is_: is_.slow, _delay(0),
        Refusal("the link between {} and {} is as quick as ever", "slow it down first"),
    ),
    "disconnect": LinkVerb(
        "Break the connections {}", lambda is_: True, lambda a, b: [Act("disconnect", {"a": a, "b": b})],
        Refusal("", ""),
    ),
}  # fmt: skip


def refuse(name: str, node: str, is_: Condition) -> NoReturn:
    """LearnerError: nothing would happen, and nobody would see why."""
    verb = MACHINES[name]
    if is_.state == "":
        raise LearnerError(f"{node} was not there yet", "go on to where it has started")
    if is_.state == DOWN and name in ("crash", "freeze", "thaw"):
        raise LearnerError(f"{node} is down already, so there is nothing to {name}", "restart it first")
    if verb.of_disks and not is_.stores:
        raise LearnerError(f"{node} is no broker, and what its disk does is seen nowhere", "choose a broker")
    raise LearnerError(verb.refusal.told.format(node), verb.refusal.hint)


def condition_now(lab: Lab, node: str) -> Condition:
    """How a machine is in the world's present."""
    machine = lab.world.nodes[node]
    process = lab.processes.get(node)
    state = process.state if process is not None else DOWN if machine.life.over else RUNNING
    disk = machine.disk
    full = disk.capacity_bytes is not None and disk.capacity_bytes - disk.used_bytes < SCARCE
    is_broker, is_slow = process in lab.brokers, disk.slow_us > 0
    return Condition(state, machine.powered, is_broker, full, disk.is_hung, machine.clock_is_wrong, is_slow)


def condition_then(stage: StageBoard, node: str) -> Condition:
    """How a machine was at the cursor, as the stage shows it. Of its clock and its plug nothing is shown there."""
    stores = stage.kind_of(node) in ("broker", "slave")
    trouble = stage.trouble.get(node, ())
    state, slow = stage.states.get(node, ""), IS_SLOW in trouble
    return Condition(state, True, stores, IS_FULL in trouble, HANGS in trouble, slow=slow)


def link_now(lab: Lab, a: str, b: str) -> LinkCondition:
    """How a link is in the world's present."""
    there, back = lab.world.network.link(a, b), lab.world.network.link(b, a)
    return LinkCondition(there.cut or back.cut, bool(there.extra_us or back.extra_us))


def link_then(stage: StageBoard, a: str, b: str) -> LinkCondition:
    """How a link was at the cursor. Of its delay nothing is shown there."""
    return LinkCondition((a, b) in stage.cut or (b, a) in stage.cut)
