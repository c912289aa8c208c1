"""Faults: what can be done to a running world, each under a name, so that it can be recorded and done again.

`FAULTS` is the registered vocabulary. What is said of a fault here is all that there is to say: fault schedules, drawn
plans, replays and the words of the live views read it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab.errors import LearnerError
from mqlab.sim.disk import MemoryDisk
from mqlab.sim.life import Life
from mqlab.trace.events.world import (
    ClockDrifted,
    DiskHung,
    DiskQuick,
    DiskSlowed,
    DiskUnhung,
    LinkCut,
    LinkDelayed,
    LinkHealed,
    NodeCrashed,
    NodeFrozen,
    NodeStarted,
    NodeThawed,
    PowerLost,
)

if TYPE_CHECKING:
    from mqlab.sim.node import Node
    from mqlab.sim.world import World


ROOM_BYTES = 1_000_000_000_000
"""What is free again on a disk that was full for a time."""


class FaultKind(NamedTuple):
    """One verb of the vocabulary; calling it does it to a world.

    `said`: the sentence about it, with its arguments in braces. `targets`: how a schedule writes what it is done to,
    one of NODE, DIRECTION, PAIR and GROUPS, or "" for what is no part of schedules. `amount`: the argument that stands
    behind "by". `undo`: the verb that ends it after "for", with the arguments `undone`. `drawn_for`: which processes a
    plan draws it for, "all" or "brokers", or "" for what is not drawn. `holds`: what of a machine it holds meanwhile,
    so that no other fault is drawn for that. `only_named`: plans draw it only for scenarios that name it.
    """

    do: Callable[..., None]
    said: str
    targets: str = ""
    amount: str = ""
    undo: str = ""
    undone: Mapping[str, Any] = MappingProxyType({})
    drawn_for: str = ""
    holds: str = "process"
    only_named: bool = False

    def __call__(self, world: World, *arguments: Any, **named: Any) -> None:
        """Do it to the world."""
        self.do(world, *arguments, **named)


NODE, DIRECTION, PAIR, GROUPS = "node", "source > target", "a | b", "left | right"

FAULTS: dict[str, FaultKind] = {}
"""The vocabulary: verb -> what it does, and all that is said of it. Plans draw in this order."""


def _fault(said: str, targets: str = "", **more: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register the function below as the fault of its name."""

    def register(do: Callable[..., None]) -> Callable[..., None]:
        FAULTS[do.__name__] = FaultKind(do, said, targets, **more)
        return do

    return register


def find_node(world: World, name: str) -> Node:
    """The node of that name; LearnerError with the names there are."""
    try:
        return world.nodes[name]
    except KeyError:
        raise LearnerError(
            f"there is no node {name!r}", f"choose one of {', '.join(world.nodes) or '(none yet)'}"
        ) from None


def _disk_of(world: World, name: str) -> MemoryDisk:
    """The disk of a node; LearnerError where it is a directory of this machine: that bears no faults."""
    disk = find_node(world, name).disk
    if not isinstance(disk, MemoryDisk):
        raise LearnerError(f"the disk of {name} is a real directory, so this cannot be done to it", "crash the process")
    return disk


def _emit(world: World, event: tuple[Any, ...]) -> None:
    if world.hooks.on:
        world.hooks.emit(event)


def _end_process(world: World, node: Node, verb: str) -> None:
    """End a process; an error in one of its `finally` blocks is raised when all of it has ended."""
    node.life.move(verb)
    errors = node.life.end()
    world.network.process_died(node.life, silent=not node.powered)
    if errors:
        raise errors[0]


def _must_not_play(world: World, node: Node) -> None:
    if world.current.life is node.life:
        raise LearnerError(
            f"{node.name} is playing a slice, so its process cannot be ended in the middle of it",
            "do it between two slices: from a cell, or in a fault schedule",
        )


@_fault("crash {node}", NODE, undo="restart", drawn_for="all")
def crash(world: World, node: str) -> None:
    """Kill the process (kill -9): memory and tasks are gone, written data is kept by the machine, the others see it
    close.
    """
    target = find_node(world, node)
    if target.life.over:
        raise LearnerError(f"{node} is down already", f"restart it first: restart({node!r})")
    _must_not_play(world, target)
    _emit(world, NodeCrashed(node, target.life.number + 1))
    _end_process(world, target, "crash")


@_fault("power off {node}", NODE, undo="restart", drawn_for="brokers")
def power_off(world: World, node: str) -> None:
    """Pull the plug: as a crash, but nobody is told, and of what was not flushed each page's survival is a choice."""
    target = find_node(world, node)
    if not target.powered:
        raise LearnerError(f"{node} has no power already", f"restart it first: restart({node!r})")
    _must_not_play(world, target)
    disk = _disk_of(world, node)
    try:
        _end_process(world, target, "power_off")
    finally:
        kept, lost = disk.power_loss(lambda point, n: world.choose(f"{node}/{point}", n))
        _emit(world, PowerLost(node, target.life.number + 1, kept, lost))


@_fault("restart {node}", NODE)
def restart(world: World, node: str) -> None:
    """Start the process again on the disk that is left; a running process is killed first."""
    target = find_node(world, node)
    if not target.life.over:
        crash(world, node)
    was_dark = not target.powered
    target.life = Life(world, target.name, target.life.number + 1)
    if was_dark:
        world.network.reset_dead_peers(target)
    start(world, node)


def start(world: World, node: str) -> None:
    """Run the process's main function in a slice of its own."""
    target = find_node(world, node)
    if target.boot is None:
        raise LearnerError(f"{node} has no process to start", "it was made without a boot function")
    target.call_soon(_boot, target, name="main")


def _boot(node: Node) -> None:
    world, life = node.world, node.life
    if life.started:
        raise LearnerError(f"{node.name} runs already", f"lab.restart({node.name!r}) kills it and starts it again")
    life.started = True
    _emit(world, NodeStarted(node.name, life.number + 1))
    assert node.boot is not None
    try:
        node.boot(node)
    except Exception:
        # A process that fails in its main function has ended, like a Java process that exits with an error.
        _emit(world, NodeCrashed(node.name, life.number + 1))
        _end_process(world, node, "crash")
        raise


@_fault("freeze {node}", NODE, undo="thaw", drawn_for="all")
def freeze(world: World, node: str) -> None:
    """Let the process hang (kill -STOP): connections stay open, nothing is answered."""
    target = find_node(world, node)
    if target.life.move("freeze"):
        _emit(world, NodeFrozen(node))


@_fault("thaw {node}", NODE)
def thaw(world: World, node: str) -> None:
    """Let a frozen process go on (kill -CONT): all that came due meanwhile happens now, in order."""
    target = find_node(world, node)
    if target.life.move("thaw"):
        _emit(world, NodeThawed(node))
        world.ready.extend(target.life.parked)
        target.life.parked.clear()


@_fault("cut {left} and {right}", GROUPS, undo="unpartition", drawn_for="all")
def partition(world: World, left: list[str] | str, right: list[str] | str) -> None:
    """Cut every link between two groups of nodes, in both directions."""
    _between(world, left, right, cut)


@_fault("heal {left} and {right}", GROUPS)
def unpartition(world: World, left: list[str] | str, right: list[str] | str) -> None:
    """Heal every link between two groups of nodes."""
    _between(world, left, right, heal)


@_fault("cut {source} to {target}", DIRECTION, undo="heal", drawn_for="all")
def cut(world: World, source: str, target: str) -> None:
    """Let nothing through from `source` to `target`; the other direction still works."""
    find_node(world, source), find_node(world, target)
    world.network.cut(source, target)
    _emit(world, LinkCut(source, target))


@_fault("heal {source} to {target}", DIRECTION)
def heal(world: World, source: str, target: str) -> None:
    """Let frames through again from `source` to `target`, those held back first."""
    find_node(world, source), find_node(world, target)
    world.network.heal(source, target)
    _emit(world, LinkHealed(source, target))


def _between(
    world: World, left: list[str] | str, right: list[str] | str, do: Callable[[World, str, str], None]
) -> None:
    for a in [left] if isinstance(left, str) else left:
        for b in [right] if isinstance(right, str) else right:
            do(world, a, b)
            do(world, b, a)


@_fault(
    "delay {source} to {target} by {ms} ms", DIRECTION, amount="ms", undo="delay", undone={"ms": 0}, drawn_for="all"
)
def delay(world: World, source: str, target: str, ms: float) -> None:
    """Make frames from `source` to `target` take `ms` longer from now on; 0 takes it back."""
    find_node(world, source), find_node(world, target)
    link = world.network.link(source, target)
    link.extra_us = round(ms * 1_000)
    _emit(world, LinkDelayed(source, target, link.extra_us))


@_fault("disconnect {a} and {b}", PAIR, drawn_for="all")
def disconnect(world: World, a: str, b: str) -> None:
    """Break every connection between two nodes: frames in flight are lost, both sides notice."""
    find_node(world, a), find_node(world, b)
    world.network.break_connections(a, b)
    world.network.break_connections(b, a)


@_fault(
    "fill the disk of {node}", NODE, amount="free_bytes", undo="fill_disk",
    undone={"free_bytes": ROOM_BYTES}, drawn_for="brokers", holds="disk",
)
def fill_disk(world: World, node: str, free_bytes: int = 0) -> None:
    """Leave only `free_bytes` of space on a machine's disk."""
    disk = _disk_of(world, node)
    disk.capacity_bytes = disk.used_bytes + free_bytes


@_fault("hang the disk of {node}", NODE, undo="unhang_disk", drawn_for="brokers", holds="disk")
def hang_disk(world: World, node: str) -> None:
    """Let a machine's disk stop answering: every flush of a store waits from now on, also after a restart."""
    disk = _disk_of(world, node)
    if not disk.is_hung:
        disk.hang()
        _emit(world, DiskHung(node))


@_fault("free the disk of {node}", NODE)
def unhang_disk(world: World, node: str) -> None:
    """Let a machine's disk answer again: the flushes that wait go on."""
    disk = _disk_of(world, node)
    if disk.is_hung:
        _emit(world, DiskUnhung(node))
        disk.unhang()


@_fault(
    "slow the disk of {node} down by {ms} ms", NODE, amount="ms", undo="slow_disk", undone={"ms": 0},
    drawn_for="brokers", holds="disk", only_named=True,
)
def slow_disk(world: World, node: str, ms: float) -> None:
    """Let a machine's disk be slow, also after a restart: each flush of a store takes `ms` longer, and what the page
    cache cannot do alone takes `ms` - a put holds the lock of the commit log, and who pulls old messages waits; 0 ends
    it, also for what is under way.
    """
    disk, slow_us = _disk_of(world, node), round(ms * 1_000)
    if slow_us != disk.slow_us:
        _emit(world, DiskSlowed(node, slow_us) if slow_us else DiskQuick(node))
        disk.set_slow(slow_us)


@_fault(
    "drift the clock of {node}", NODE, amount="ppm", undo="drift", undone={"ppm": 0}, drawn_for="all", holds="clock"
)
def drift(world: World, node: str, ppm: int = 0, jump_ms: int = 0) -> None:
    """Let a machine's wall clock run wrong: `ppm` microseconds per second fast, and a jump."""
    find_node(world, node).set_drift(ppm, jump_ms)
    _emit(world, ClockDrifted(node, ppm, jump_ms))


@_fault("another draw of {point}")
def override(world: World, point: str, k: int, value: int) -> None:
    """Set the k-th choice at a point that has not been drawn yet."""
    world.choices.override(point, k, value)


@_fault("a choice of what comes next")
def pick(world: World, index: int) -> None:
    """Let the `index`-th of the pending entries go next."""
    world.pick(index)


@_fault("something held back for {ms} ms")
def hold(world: World, index: int, ms: float) -> None:
    """Let the `index`-th of the pending entries happen `ms` later."""
    world.hold(index, round(ms * 1_000))


def check_fault(world: World, verb: str, arguments: Mapping[str, Any]) -> None:
    """LearnerError if a fault's arguments cannot be right, before anything is recorded or done.

    What only the state of the world forbids (a crash of what is down already) is found by the fault itself.
    """
    parameters = {name: p for name, p in inspect.signature(FAULTS[verb].do).parameters.items() if name != "world"}
    missing = [name for name, p in parameters.items() if p.default is p.empty and name not in arguments]
    unknown = [name for name in arguments if name not in parameters]
    if missing or unknown:
        wrong = f"needs {', '.join(missing)}" if missing else f"takes no {', '.join(unknown)}"
        raise LearnerError(f"{verb} {wrong}", f"write lab.act({verb!r}, {', '.join(f'{n}=...' for n in parameters)})")
    for name, value in arguments.items():
        if name in _GROUPS:
            _check_group(world, verb, name, value)
        elif name in _NODES:
            find_node(world, _text(verb, name, value))
        elif name != "point":
            _check_amount(verb, name, value)


_NODES = ("node", "source", "target", "a", "b")
_GROUPS = ("left", "right")
_MAY_BE_NEGATIVE = ("ppm", "jump_ms")
"""A clock may run slow and jump back."""


def _check_amount(verb: str, name: str, value: object) -> None:
    signed = name in _MAY_BE_NEGATIVE
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or (value < 0 and not signed):  # type: ignore[operator]  # it is a number here
        raise LearnerError(f"{verb}: {name}={value!r} cannot be", f"give a number{'' if signed else ' from 0 up'}")


def _check_group(world: World, verb: str, name: str, value: object) -> None:
    for node in value if isinstance(value, list | tuple) else [value]:
        find_node(world, _text(verb, name, node))


def _text(verb: str, name: str, value: object) -> str:
    if not isinstance(value, str):
        raise LearnerError(f"{verb}: {name}={value!r} is not the name of a node", "write it like 'broker-a'")
    return value
