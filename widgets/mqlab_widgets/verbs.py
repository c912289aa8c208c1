"""What can be broken and mended from the stage: each verb with its words and when it would do something.

Every verb has another one that takes it back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from mqlab_widgets.boards.stage_machines import SCARCE
from mqlab_widgets.boards.stage_state import DOWN, FROZEN, RUNNING

if TYPE_CHECKING:
    from mqlab import Lab
    from mqlab_widgets.boards.stage import StageBoard

FAST_PPM = 10_000
"""A clock that runs wrong gains so much: 10 ms each second."""
SLOW_MS = 100
"""A slow link takes so much longer, each way."""


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


class LinkCondition(NamedTuple):
    """How a link is: whether all on it is held back, and whether it is slow."""

    cut: bool
    slow: bool = False


class Verb(NamedTuple):
    """Something to do to a machine: words with its name, and whether it would do anything."""

    words: str
    possible: Callable[[Condition], bool]


class LinkVerb(NamedTuple):
    """Something to do to a link: words with its ends, and whether it would do anything."""

    words: str
    possible: Callable[[LinkCondition], bool]


MACHINES = {
    "crash": Verb("Crash {}", lambda is_: is_.state in (RUNNING, FROZEN)),
    "power_off": Verb("Pull the plug of {}", lambda is_: is_.state != "" and is_.powered),
    "freeze": Verb("Freeze {}", lambda is_: is_.state == RUNNING),
    "thaw": Verb("Let {} go on", lambda is_: is_.state == FROZEN),
    "restart": Verb("Restart {}", lambda is_: is_.state != ""),
    "fill_disk": Verb("Fill the disk of {}", lambda is_: is_.stores and not is_.full),
    "free_disk": Verb("Make room on the disk of {}", lambda is_: is_.stores and is_.full),
    "hang_disk": Verb("Let the disk of {} hang", lambda is_: is_.stores and not is_.hung),
    "unhang_disk": Verb("Let the disk of {} answer again", lambda is_: is_.stores and is_.hung),
    "drift": Verb("Let the clock of {} run 1 % fast", lambda is_: is_.state != "" and not is_.wrong),
    "set_clock": Verb("Set the clock of {} right", lambda is_: is_.state != "" and is_.wrong),
}
LINKS = {
    "cut": LinkVerb("Cut the link {}", lambda is_: not is_.cut),
    "heal": LinkVerb("Heal the link {}", lambda is_: is_.cut),
    "slow": LinkVerb(f"Slow the link {{}} down by {SLOW_MS} ms", lambda is_: not is_.slow),
    "quick": LinkVerb("Make the link {} quick again", lambda is_: is_.slow),
    "disconnect": LinkVerb("Break the connections {}", lambda is_: True),
}


def condition_now(lab: Lab, node: str) -> Condition:
    """How a machine is in the world's present."""
    machine = lab.world.nodes[node]
    process = lab.processes.get(node)
    state = process.state if process is not None else DOWN if machine.life.over else RUNNING
    disk = machine.disk
    full = disk.capacity_bytes is not None and disk.capacity_bytes - disk.used_bytes < SCARCE
    return Condition(state, machine.powered, process in lab.brokers, full, disk.is_hung, machine.clock_is_wrong)


def condition_then(stage: StageBoard, node: str) -> Condition:
    """How a machine was at the cursor, as the stage shows it. Of its clock and its plug nothing is shown there."""
    stores = stage.kind_of(node) in ("broker", "slave")
    trouble = stage.trouble.get(node, "")
    return Condition(stage.states.get(node, ""), True, stores, "full" in trouble, "hangs" in trouble)


def link_now(lab: Lab, a: str, b: str) -> LinkCondition:
    """How a link is in the world's present."""
    there, back = lab.world.network.link(a, b), lab.world.network.link(b, a)
    return LinkCondition(there.cut or back.cut, bool(there.extra_us or back.extra_us))


def link_then(stage: StageBoard, a: str, b: str) -> LinkCondition:
    """How a link was at the cursor. Of its delay nothing is shown there."""
    return LinkCondition((a, b) in stage.cut or (b, a) in stage.cut)
