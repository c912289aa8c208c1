"""Events of the world itself: processes that start and end, faults, pools, and what the outside did."""

from __future__ import annotations

from typing import NamedTuple


class NodeStarted(NamedTuple):
    """A process began to run; `life` counts its starts from 1."""

    target: str
    life: int


class NodeCrashed(NamedTuple):
    """A process was killed: its memory is gone, what it wrote is still in the machine's page cache."""

    target: str
    life: int


class PowerLost(NamedTuple):
    """A machine lost power: of the pages not yet flushed, `pages_kept` survived and `pages_lost` did not."""

    target: str
    life: int
    pages_kept: int
    pages_lost: int


class NodeFrozen(NamedTuple):
    """A process hangs: it keeps its connections and answers nothing."""

    target: str


class NodeThawed(NamedTuple):
    """A frozen process goes on where it stood."""

    target: str


class LinkCut(NamedTuple):
    """Nothing goes through from `source` to `target` any more."""

    source: str
    target: str


class LinkHealed(NamedTuple):
    """Frames go through again from `source` to `target`."""

    source: str
    target: str


class LinkDelayed(NamedTuple):
    """Frames from `source` to `target` take `extra_us` longer than the link's own delay."""

    source: str
    target: str
    extra_us: int


class DiskHung(NamedTuple):
    """A machine's disk has stopped answering: every flush of a store waits."""

    target: str


class DiskUnhung(NamedTuple):
    """A machine's disk answers again."""

    target: str


class DiskSlowed(NamedTuple):
    """A machine's disk is slow: what its page cache cannot do alone, a write into the commit log too, takes `slow_us`.
    """

    target: str
    slow_us: int


class DiskQuick(NamedTuple):
    """A machine's disk is as quick as ever again."""

    target: str


class ClockDrifted(NamedTuple):
    """A machine's wall clock runs `ppm` microseconds a second fast, after a jump of `jump_ms`."""

    target: str
    ppm: int
    jump_ms: int


class ActionTaken(NamedTuple):
    """Somebody outside of the world did something: a cell, a button, a fault schedule. `arguments` is JSON."""

    verb: str
    arguments: str
