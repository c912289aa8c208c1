"""A link: one direction between two machines, and the pipes of the connections that go over it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab.sim.target import Target

if TYPE_CHECKING:
    from mqlab.sim.network import Endpoint
    from mqlab.sim.scheduler import Scheduler
    from mqlab.trace.bus import Cause


class LinkSpec(NamedTuple):
    """How one direction between two hosts behaves: delay drawn from [min_us, max_us], bandwidth in bytes per ms (0: no
    limit).
    """

    min_us: int = 100
    max_us: int = 300
    bytes_per_ms: int = 0


LOOPBACK = LinkSpec(5, 15)
"""A connection of a machine with itself."""


class Pipe(Target):
    """One direction of a connection: frames in order, only the first of them on the agenda."""

    __slots__ = (
        "frames",
        "last_due_us",
        "link",
        "pipe_id",
        "receiver",
        "stalled",
        "world",
    )

    def __init__(self, world: Scheduler, link: Link, receiver: Endpoint, pipe_id: int) -> None:
        self.world = world
        self.link = link
        self.receiver = receiver
        self.life = receiver.life
        self.name = f"from {link.source}"
        self.pipe_id = pipe_id
        self.frames: deque[tuple[int, Any, Cause]] = deque()
        self.last_due_us = 0
        self.stalled = False
        self.token = 0

    def put(self, frame: Any, size: int) -> None:
        """Send a frame: it arrives after the link's delay, and not before the frames sent earlier."""
        world = self.world
        due = world.now_us + self.link.draw_us(size)
        if due < self.last_due_us:
            due = self.last_due_us
        else:
            self.last_due_us = due
        cause = world.cause
        if not self.frames:
            world.push_caused(due, self, self.token, cause)
        self.frames.append((due, frame, cause))

    def _arm(self) -> None:
        due, _, cause = self.frames[0]
        self.world.push_caused(due, self, self.token, cause)

    def fire(self) -> None:
        """Deliver the first frame, or hold it back while the link is cut."""
        if self.link.cut:
            self.stalled = True
            return
        frames = self.frames
        _, frame, _ = frames.popleft()
        if frames:
            due, _, cause = frames[0]
            self.world.push_caused(due, self, self.token, cause)
        self.receiver.deliver(frame)

    def heal(self) -> None:
        """Deliver again what a cut held back, after one more delay."""
        if self.stalled:
            self.stalled = False
            self.last_due_us = max(self.last_due_us, self.world.now_us + self.link.draw_us(0))
            _, frame, cause = self.frames[0]
            self.frames[0] = (self.last_due_us, frame, cause)
            self._arm()

    def hold(self, us: int) -> None:
        """Let everything in flight arrive `us` microseconds later."""
        self.frames = deque((due + us, frame, cause) for due, frame, cause in self.frames)
        self.last_due_us += us
        self.token += 1
        self._arm()

    def drop(self) -> None:
        """Forget everything in flight: the connection is broken."""
        self.token += 1
        self.frames.clear()
        self.stalled = False


class Link:
    """One direction between two nodes: its behaviour, and whether it is cut."""

    __slots__ = ("_choose", "_free_at_us", "_min_us", "_span", "_world", "bytes_per_ms", "cut", "extra_us", "pipes",
                 "source", "spec", "target")  # fmt: skip

    def __init__(self, world: Scheduler, source: str, target: str, spec: LinkSpec) -> None:
        self._world = world
        self._choose = world.choices.point(f"link:{source}>{target}").choose
        self._free_at_us = 0
        self.source = source
        self.target = target
        self.spec = spec
        self.bytes_per_ms = spec.bytes_per_ms
        self._min_us = spec.min_us
        self._span = spec.max_us - spec.min_us + 1
        self.cut = False
        self.extra_us = 0
        self.pipes: dict[Pipe, None] = {}

    def draw_us(self, size: int) -> int:
        """The time a frame of `size` bytes takes now, in microseconds; with a bandwidth it waits for those before."""
        us = self._min_us + self.extra_us + self._choose(self._span)
        if self.bytes_per_ms:
            now = self._world.now_us
            self._free_at_us = max(now, self._free_at_us) + size * 1_000 // self.bytes_per_ms
            us += self._free_at_us - now
        return us
