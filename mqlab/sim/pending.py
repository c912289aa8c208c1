"""What may go next in a world, and how a person changes the order: picking one entry, or holding one back.

Offered is what RocketMQ's transport and threads can do: within one connection frames keep their order, so only its
first frame can be picked, and holding it back holds back all behind it.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab.errors import LearnerError
from mqlab.sim.life import RUNNING
from mqlab.sim.link import Pipe
from mqlab.sim.timer import Timer

if TYPE_CHECKING:
    from mqlab.sim.agenda import Ready
    from mqlab.sim.world import World


class Pending(NamedTuple):
    """One thing that may happen next: when it would be due (us), on which machine, and what it is.

    A delivery has the machine that sent the frame as its `source`, and the frame itself. `holdable` is False for what
    is due now, and for time-outs, which cannot come late without the rest of their machine.
    """

    due_us: int
    node: str
    name: str
    source: str
    frame: Any
    holdable: bool
    entry: Ready

    @property
    def key(self) -> str:
        """What it is, whatever else comes or goes meanwhile: its machine, its name, and what it comes of."""
        target, token, cause = self.entry
        turn = token
        if isinstance(target, Pipe) and target.frames:
            # Holding a connection back gives it a new token; the frame is the same.
            turn, cause = target.pipe_id, target.frames[0][2]
        return f"{self.node}/{self.name}/{turn}/{cause[0]}.{cause[1]}"


def pending_of(world: World) -> list[Pending]:
    """What is due now, then the head of each connection and the next timer or task of each machine."""
    now = [_described(world.now_us, e, holdable=False) for e in world.ready if _is_live(e[0], e[1])]
    later = [e for e in world.later() if _is_live(e[2], e[3])]
    heads: dict[tuple[str, int], Pending] = {}
    for due, _, target, token, cause in sorted(later, key=lambda e: e[:2]):
        place = (target.life.node_name, getattr(target, "pipe_id", 0))
        if place not in heads:
            holdable = not (isinstance(target, Timer) and target.lane is not None)
            heads[place] = _described(due, (target, token, cause), holdable=holdable)
    return [*now, *heads.values()]


def _is_live(target: Any, token: int) -> bool:
    return bool(token == target.token and target.life.state == RUNNING)


def _described(due_us: int, entry: Ready, *, holdable: bool) -> Pending:
    target = entry[0]
    if isinstance(target, Pipe):
        frame = target.frames[0][1] if target.frames else None
        return Pending(due_us, target.life.node_name, target.name, target.link.source, frame, holdable, entry)
    return Pending(due_us, target.life.node_name, target.name, "", None, holdable, entry)


def _choose(world: World, index: int) -> Pending:
    pending = pending_of(world)
    if not 0 <= index < len(pending):
        raise LearnerError(f"there is no pending entry {index}", f"choose one of 0..{len(pending) - 1}")
    return pending[index]


def _take_off(world: World, entry: Ready) -> None:
    target, token, _ = entry
    world.heap[:] = [e for e in world.heap if e[2] is not target or e[3] != token]
    heapq.heapify(world.heap)


def pick_pending(world: World, index: int) -> None:
    """Let one of them go next: a delivery happens now, a timer moves the clock to its time."""
    picked = _choose(world, index)
    if picked.entry in world.ready:
        world.ready.remove(picked.entry)
    else:
        _take_off(world, picked.entry)
        if not isinstance(picked.entry[0], Pipe):
            world.advance(picked.due_us)
            world.make_ready()
    world.play_next(picked.entry)


def hold_pending(world: World, index: int, us: int) -> None:
    """Let one of them happen `us` microseconds later; LearnerError for what cannot wait, and for a time below 0."""
    if us < 0:
        raise LearnerError(f"nothing can be held back by {us} us", "give a number of ms above 0")
    held = _choose(world, index)
    if not held.holdable:
        raise LearnerError(
            f"{held.name!r} on {held.node} cannot be held back: it is due now, or a time-out",
            "hold back what is due later: a delivery, a task or a timer of its own",
        )
    target, token, _ = held.entry
    if isinstance(target, Pipe):
        target.hold(us)
        return
    _take_off(world, held.entry)
    if isinstance(target, Timer):
        target.due_us += us
    world.push(max(held.due_us, world.now_us) + us, target, token)
