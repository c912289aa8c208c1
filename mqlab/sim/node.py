"""A node is one machine with one process: all that a component knows of the world."""

from __future__ import annotations

import inspect
import types
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from mqlab.errors import LearnerError, MqlabError
from mqlab.sim.disk import Disk, MemoryDisk
from mqlab.sim.future import Future
from mqlab.sim.life import DARK, STATE_NAMES, Life
from mqlab.sim.pool import Pool
from mqlab.sim.task import Task
from mqlab.sim.timer import Timer, time_out, whole_us
from mqlab.sim.traps import sleep_us, wait_at_most

if TYPE_CHECKING:
    from mqlab.sim.network import AcceptHandler
    from mqlab.sim.transport import Transport
    from mqlab.sim.world import World
    from mqlab.trace.bus import Bus

T = TypeVar("T")

PREEMPTED_US: tuple[int | None, ...] = (None, 0, 300, 10_000)
"""For how long a thread may lose the processor: not at all, while those go that are ready now, for as long as a frame
travels, for a time slice of the operating system.
"""


class WaitTimeout(MqlabError):
    """What was waited for did not come in time."""

    def __init__(self, label: str, ms: float) -> None:
        super().__init__(f"{label or 'the awaited thing'} did not come within {ms} ms")
        self.label = label
        self.ms = ms


class NodeSpec(NamedTuple):
    """What RocketMQ would ask its host for: all of it a parameter here, so that no run depends on a machine.

    `memory_bytes` decides what counts as "in memory" when messages are read, `cores` the size of some pools, `salt`
    stands for the class loader's hash in message ids. `first_connect_us` is what a process pays for its first
    connection (in Java, loading the network's classes; 20 to 500 ms were seen): it makes a client's tasks meet in the
    order in which they meet on a real machine.
    """

    ip: str
    pid: int = 1
    cores: int = 4
    memory_bytes: int = 16 * 1024**3
    salt: int = 0x14_AE_5A_5A
    first_connect_us: int = 0


class Node:
    """A machine with one process: its clock, tasks, timers, network address, disk, choices and hooks.

    `boot(node)` is the process's main function; a restart calls it again on the same disk.
    """

    def __init__(self, world: World, name: str, spec: NodeSpec) -> None:
        self.world = world
        self.name = name
        self.spec = spec
        self.hooks: Bus = world.hooks
        self.disk: Disk = MemoryDisk(name, self.now_ms)
        self.life: Life = Life(world, name)
        self.boot: Callable[[Node], Any] | None = None
        self._clock_base_us = 0
        self._clock_offset_us = 0
        self._clock_ppm = 0
        self._clock_is_right = True
        self.sleep_us = sleep_us
        """`await node.sleep_us(200)`: let 200 microseconds pass."""

    @property
    def powered(self) -> bool:
        """Whether the machine has power: if not, nothing on it answers, not even to refuse."""
        return self.life.state != DARK

    def outer_address(self, address: str) -> str:
        """Where programs outside of the world find an address of it; the same one while it is open to none."""
        return self.world.outside.located.get(address, address)

    # -- time -------------------------------------------------------------------------------------------------------

    def now_us(self) -> int:
        """Microseconds since the world began (a monotonic clock: it does not drift)."""
        return self.world.now_us

    def now_ms(self) -> int:
        """This machine's wall clock: ms since 1970, with its drift."""
        world = self.world
        if self._clock_is_right:
            return world.epoch_ms + world.now_us // 1_000
        since = world.now_us - self._clock_base_us
        return world.epoch_ms + (world.now_us + self._clock_offset_us + since * self._clock_ppm // 1_000_000) // 1_000

    def set_drift(self, ppm: int, jump_ms: int = 0) -> None:
        """Let the wall clock run `ppm` microseconds per second fast from now on, and jump by `jump_ms`."""
        if ppm <= -1_000_000:
            raise LearnerError(f"a clock {-ppm} ppm slow would stand still or run backwards", "give more than -1000000")
        since = self.world.now_us - self._clock_base_us
        self._clock_offset_us += since * self._clock_ppm // 1_000_000 + jump_ms * 1_000
        self._clock_base_us = self.world.now_us
        self._clock_ppm = ppm
        self._clock_is_right = not ppm and not self._clock_offset_us
        for listener in self.life.clock_listeners:
            listener()

    @property
    def clock_error_us(self) -> int:
        """How far the wall clock is ahead of the world's time, in us; below 0 behind it."""
        return self._clock_offset_us + (self.world.now_us - self._clock_base_us) * self._clock_ppm // 1_000_000

    @property
    def clock_is_wrong(self) -> bool:
        """Whether the wall clock runs wrong, or is wrong by a ms and more."""
        return self._clock_ppm != 0 or abs(self._clock_offset_us) >= 1_000

    def us_until(self, wall_ms: int) -> int:
        """How many microseconds pass until `now_ms()` says `wall_ms`, if the clock goes on as it does; at least 0."""
        now_us, base_us, ppm = self.world.now_us, self._clock_base_us, self._clock_ppm
        distance_us = (wall_ms - self.world.epoch_ms) * 1_000 - self._clock_offset_us - base_us
        since = -(-distance_us * 1_000_000 // (1_000_000 + ppm))
        # The drift is rounded down, so the quotient may be a microsecond off.
        while since + since * ppm // 1_000_000 < distance_us:
            since += 1
        while since - 1 + (since - 1) * ppm // 1_000_000 >= distance_us:
            since -= 1
        return max(0, base_us + since - now_us)

    def sleep(self, ms: float) -> Any:
        """`await node.sleep(20)`: let 20 ms pass; fractions down to 0.001 ms."""
        return sleep_us(whole_us(ms))

    # -- tasks and timers -------------------------------------------------------------------------------------------

    def spawn(self, work: Awaitable[Any], name: str) -> Task:
        """Start a task, as a process starts a thread; `work` is a coroutine, or anything else to wait for."""
        coroutine = work if type(work) is types.CoroutineType else _coroutine_of(work, name)
        if self.life.over:
            coroutine.close()
            raise LearnerError(
                f"{self.name} is down: {name} cannot start there", f"restart it: lab.restart({self.name!r})"
            )
        task = Task(self.life, name, coroutine)
        task.resume()
        return task

    def call_soon(self, callback: Callable[..., Any], *args: Any, name: str = "") -> Timer:
        """Call back in a slice of its own, after what is already due."""
        return self.call_later(0, callback, *args, name=name)

    def call_later(self, ms: float, callback: Callable[..., Any], *args: Any, name: str = "") -> Timer:
        """Call back once, `ms` from now."""
        timer = Timer(self.life, name or getattr(callback, "__name__", "timer"), callback, args)
        self.world.push(self.world.now_us + whole_us(ms), timer, 0)
        return timer

    def timeout(self, ms: float, callback: Callable[..., Any], *args: Any, name: str = "timeout") -> Timer:
        """Like `call_later`, for time-outs: thousands of equal duration that nearly all get cancelled."""
        us = ms * 1_000 if type(ms) is int else whole_us(max(ms, 0))
        return time_out(self.life, us, callback, args, name)

    def schedule_at_fixed_rate(
        self, callback: Callable[[], Any], initial_ms: int, period_ms: int, name: str
    ) -> PeriodicTask:
        """Call back every `period_ms` after `initial_ms`; a coroutine function's next run waits for the last."""
        return PeriodicTask(self, callback, initial_ms, period_ms, name, fixed_rate=True)

    def schedule_with_fixed_delay(
        self, callback: Callable[[], Any], initial_ms: int, delay_ms: int, name: str
    ) -> PeriodicTask:
        """Call back after `initial_ms`, and then again `delay_ms` after the end of each run."""
        return PeriodicTask(self, callback, initial_ms, delay_ms, name, fixed_rate=False)

    def future(self, label: str = "") -> Future[Any]:
        """A new future of this machine, with a name for whoever waits for it."""
        return Future(label)

    async def wait(self, future: Future[T], ms: float) -> T:
        """The future's result, or WaitTimeout after `ms`; the future itself stays as it is."""
        if not await wait_at_most(future, whole_us(ms) if ms > 0 else 0):
            raise WaitTimeout(future.label, ms)
        return future.result()

    # -- decisions, pools, network ----------------------------------------------------------------------------------

    def choose(self, point: str, n: int) -> int:
        """Decide what nothing forces: a number in range(n), drawn for the point "<node>/<point>"."""
        return self.world.choose(f"{self.name}/{point}", n)

    def preempt(self, point: str) -> Any:
        """`await node.preempt("ack.before-mark")`: a place where Java drops a lock, so that its thread may lose the
        processor there; how long for is a choice (see PREEMPTED_US) where ties are choices, and else it goes on.
        """
        return _preempt(self, point)

    def pool(self, name: str, threads: int, capacity: int = 1 << 31) -> Pool:
        """A thread pool of this process: `threads` jobs at a time, `capacity` more in its queue."""
        return Pool(self, name, threads, capacity)

    def listen(self, port: int, on_accept: AcceptHandler) -> None:
        """Accept connections at this port: `on_accept(endpoint)` for each."""
        self.world.network.listen(self, port, on_accept)

    def stop_listening(self, port: int) -> None:
        """Close this port to new connections."""
        self.world.network.stop_listening(self, port)

    async def connect(self, address: str, ms: int) -> Transport:
        """Open a connection to "ip:port"; ConnectionRefused or ConnectTimeout (see network) when that fails."""
        return await self.world.network.connect(self, address, ms)

    def __repr__(self) -> str:
        return f"<Node {self.name} {self.spec.ip}: {STATE_NAMES[self.life.state]}, {len(self.life.tasks)} tasks>"


class PeriodicTask:
    """A callback again and again (java.util.concurrent.ScheduledExecutorService); `cancel()` ends it.

    As in Java, two runs of one schedule never overlap: at a fixed rate, a run that takes longer than the period delays
    the next ones, which then follow at once until the grid is caught up. Differs from Java: an error stops the world by
    name (there it would silently end the schedule).
    """

    __slots__ = ("_callback", "_cancelled", "_due_us", "_fixed_rate", "_life", "_node", "_period_us", "_timer", "name")

    def __init__(
        self,
        node: Node,
        callback: Callable[[], Any],
        initial_ms: float,
        period_ms: float,
        name: str,
        *,
        fixed_rate: bool,
    ) -> None:
        self._node = node
        self._life = node.life
        self._callback = callback
        self._period_us = whole_us(period_ms)
        if not self._period_us:
            raise LearnerError(f"the period of {name} is 0 ms", "give it a period above 0")
        self._fixed_rate = fixed_rate
        self._cancelled = False
        self.name = name
        self._due_us = node.world.now_us + whole_us(initial_ms)
        self._arm()

    def _arm(self) -> None:
        self._timer = Timer(self._life, self.name, self._tick, ())
        self._node.world.push(self._due_us, self._timer, 0)

    def _tick(self) -> None:
        result = self._callback()
        if isinstance(result, Coroutine):
            task = self._node.spawn(result, self.name)
            task.join().add_done_callback(self._run_ended)
        else:
            self._arm_next()

    def _run_ended(self, end: Future[Any]) -> None:
        if end.error is not None:
            raise end.error
        self._arm_next()

    def _arm_next(self) -> None:
        if not self._cancelled:
            self._due_us = (self._due_us if self._fixed_rate else self._node.world.now_us) + self._period_us
            self._arm()

    def cancel(self) -> None:
        """No further calls; one that runs now ends in peace."""
        self._cancelled = True
        self._timer.cancel()


def _coroutine_of(work: Any, name: str) -> Coroutine[Any, Any, Any]:
    if isinstance(work, Coroutine):
        return work
    if inspect.isawaitable(work):
        return _awaiting(work)
    function = inspect.iscoroutinefunction(work)
    hint = f"call it: {work.__name__}()" if function else "give a coroutine, a call or a future"
    raise LearnerError(f"{name} cannot be started from a {type(work).__name__}", hint)


async def _awaiting(work: Awaitable[Any]) -> Any:
    return await work


async def _preempt(node: Node, point: str) -> None:
    if node.world.tie_is_choice:
        pause_us = PREEMPTED_US[node.choose(f"preempt/{point}", len(PREEMPTED_US))]
        if pause_us is not None:
            await sleep_us(pause_us)
