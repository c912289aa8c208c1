"""The one door to a world: who may play it, how others leave commands, and how the stop button works."""

from __future__ import annotations

from _thread import RLock, get_ident
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

from mqlab.errors import MqlabError, ObserverError, SimulationError
from mqlab.trace.bus import NO_CAUSE

if TYPE_CHECKING:
    from mqlab.sim.scheduler import Scheduler

GRACE_SECONDS = 1.0
"""How long a slice may go on after the stop button before it is broken off."""

_playing: list[Door] = []
"""The doors of the worlds that play right now, innermost last; each belongs to one thread."""


class InterruptedInSlice(KeyboardInterrupt):
    """The stop button broke off a slice that did not end by itself; the world is broken after it."""


class Door:
    """The lock of a world, the commands that other threads left, and the stop button.

    One thread at a time plays. Others call `post`, which never waits: the command runs between two slices, on the
    thread that plays, or at once if nobody does.
    """

    def __init__(self, world: Scheduler) -> None:
        self._world = world
        self._lock = RLock()
        self._commands: deque[Callable[[], None]] = deque()
        self._on_post: Callable[[], object] | None = None
        self._alarm_before: Any = None
        self.interrupted = False
        self.thread: int | None = None

    @property
    def inside(self) -> bool:
        """Whether this thread is in the middle of a slice of the world."""
        return self.thread == get_ident() and self._world.current is not self._world.life

    def __enter__(self) -> None:
        """`with world.door:` lets no other thread play meanwhile, nor do anything of this kind; it waits for them."""
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()
        if self._commands:
            self._serve_if_idle()

    @contextmanager
    def playing(self) -> Iterator[None]:
        """Hold the door while slices are played; the stop button of the main thread is ours meanwhile."""
        if self.inside:
            raise SimulationError(
                "the world is already playing a slice: code inside the world cannot play it. Use 'await' there, "
                "and step or run the world from outside."
            )
        world = self._world
        try:
            with self._lock:
                if world.broken:
                    raise SimulationError(f"this world is broken: {world.broken}. Make a new one.")
                previous_thread, self.thread = self.thread, get_ident()
                first_slice = world.slice_no
                _playing.append(self)
                button_before = self._take_stop_button()
                try:
                    yield
                finally:
                    self._give_back_stop_button(button_before)
                    _playing.remove(self)
                    self.thread = previous_thread
                    if world.slice_no != first_slice:
                        world.cause = NO_CAUSE
        finally:
            self._serve_if_idle()
        if self.interrupted:
            self.interrupted = False
            if world.broken:
                raise InterruptedInSlice(world.broken)
            raise KeyboardInterrupt("stopped between two slices; the world can go on")

    def _take_stop_button(self) -> Any:
        self.interrupted = False
        # There may be no signals (a browser's Python), and they come to the main thread alone.
        with suppress(ImportError, ValueError):
            import signal

            return signal.signal(signal.SIGINT, self._on_interrupt) or signal.SIG_DFL
        return None

    def _give_back_stop_button(self, button_before: Any) -> None:
        if button_before is None:
            return
        import signal

        if self._alarm_before is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._alarm_before)
            self._alarm_before = None
        signal.signal(signal.SIGINT, button_before)

    def _on_interrupt(self, signum: int, frame: FrameType | None) -> None:
        import signal

        if self.interrupted:
            self._break_off()
        self.interrupted = True
        self._world.request_stop()
        if hasattr(signal, "setitimer") and self._alarm_before is None:
            self._alarm_before = signal.signal(signal.SIGALRM, lambda *_: self._break_off()) or signal.SIG_DFL
            # Again and again, because a bare `except:` in a listener would swallow the first.
            signal.setitimer(signal.ITIMER_REAL, GRACE_SECONDS, GRACE_SECONDS)

    def _break_off(self) -> None:
        world = self._world
        if world.current is world.life:
            return
        who = f"task {world.current.name!r} on {world.current.life.node_name}"
        world.broken = f"the stop button broke off {who} in the middle of a slice"
        raise InterruptedInSlice(
            f"{who} did not come to an 'await' within {GRACE_SECONDS:g} s of the stop button. "
            "A loop in a listener must await something, for example ctx.sleep(ms=10)."
        )

    @property
    def is_playing(self) -> bool:
        """Whether slices are being played at this moment, by any thread."""
        return self in _playing

    def post(self, command: Callable[[], None]) -> None:
        """Leave a command for the end of the current slice; from any thread, without waiting."""
        self._commands.append(command)
        self._world.attention = True
        self._serve_if_idle()
        if self._on_post is not None:
            self._on_post()

    @contextmanager
    def posts_told(self, on_post: Callable[[], object]) -> Iterator[None]:
        """Call `on_post` after each `post`, on the thread that posts: so a loop that waits wakes up."""
        before, self._on_post = self._on_post, on_post
        try:
            yield
        finally:
            self._on_post = before

    def _serve_if_idle(self) -> None:
        """Run the commands that were left, unless somebody plays, who will do it."""
        while self._commands and self.thread is None and self._lock.acquire(blocking=False):
            try:
                self.thread = get_ident()
                self.attend()
            finally:
                self.thread = None
                self._lock.release()

    def attend(self) -> None:
        """Run the commands that were left (between two slices); ObserverError if one fails, as a drawing may."""
        while self._commands:
            command = self._commands.popleft()
            try:
                command()
            except MqlabError:
                raise
            except Exception as error:
                name = getattr(command, "__qualname__", type(command).__name__)
                about = getattr(getattr(command, "__self__", None), "about", "")
                raise ObserverError(f"{name} {about}".rstrip(), "", error) from error


def playing_world() -> Scheduler | None:
    """The world that this thread is playing a slice of, or None."""
    for door in reversed(_playing):
        if door.inside:
            return door._world
    return None
