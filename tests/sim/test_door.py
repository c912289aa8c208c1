"""The door: commands from other threads, and the stop button."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mqlab.errors import ObserverError
from mqlab.sim import Node, World, public_call

REPOSITORY = Path(__file__).parents[2]


def in_thread(function: Callable[..., object], *args: object) -> None:
    """Call a function on a thread of its own and wait for its end."""
    thread = threading.Thread(target=function, args=args)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


def in_threads(*functions: Callable[[], object]) -> None:
    """Call functions, each on a thread of its own, at the same time."""
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)


class Poster:
    """A thread that was started outside of the world and posts when a slice tells it to."""

    def __init__(self) -> None:
        self._asked, self._done, self._ended = threading.Event(), threading.Event(), False
        self._work: tuple[World, Callable[[], None]] | None = None
        self._thread = threading.Thread(target=self._loop)

    def __enter__(self) -> Poster:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended = True
        self._asked.set()
        self._thread.join(10)

    def _loop(self) -> None:
        while self._asked.wait(10) and not self._ended:
            self._asked.clear()
            assert self._work is not None
            world, command = self._work
            world.door.post(command)
            self._done.set()

    def post(self, world: World, command: Callable[[], None]) -> None:
        """Let the thread post, and wait until it has."""
        self._work = world, command
        self._done.clear()
        self._asked.set()
        assert self._done.wait(10)


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads take turns all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty")
def test_threads_that_play_at_the_same_time_wait_for_each_other(world: World, node: Node) -> None:
    node.schedule_at_fixed_rate(lambda: None, 1, 1, "tick")
    errors: list[Exception] = []

    def play() -> None:
        try:
            for _ in range(15):
                world.run_for(2_000)
        except Exception as error:  # noqa: BLE001  # any is a failure of this test
            errors.append(error)

    in_threads(play, play, play, play)
    assert errors == []
    assert (world.now_us, world.slice_no) == (120_000, 120)


class Sleeper:
    """Something to call from outside."""

    def __init__(self, node: Node) -> None:
        self.node = node

    @public_call
    async def nap(self) -> int:
        """Sleep for 1 ms; the time of waking."""
        await self.node.sleep(1)
        return self.node.now_us()


@pytest.mark.usefixtures("hasty")
def test_calls_of_several_threads_wait_for_each_other(world: World, node: Node) -> None:
    sleeper = Sleeper(node)
    woke: list[int] = []

    async def cell() -> None:
        for _ in range(10):
            woke.append(await sleeper.nap())
            woke.append(sleeper.nap().play())

    in_threads(*[lambda: asyncio.run(cell())] * 3)
    assert sorted(woke) == list(range(1_000, 61_000, 1_000))


@pytest.mark.parametrize(
    "do",
    [
        lambda world: world.run_for(1_000),
        lambda world: world.pending(),
        lambda world: world.hold(0, 1_000),
        lambda world: world.pick(0),
        lambda world: world.describe_waits(),
    ],
    ids=["run_for", "pending", "hold", "pick", "describe_waits"],
)
def test_a_thread_that_comes_while_a_slice_is_played_waits_until_it_can_play(
    world: World, node: Node, do: Callable[[World], object]
) -> None:
    playing = threading.Event()
    waited = threading.Thread(target=lambda: (playing.wait(10), do(world)))
    waited.start()

    def long_slice() -> None:
        playing.set()
        waited.join(0.02)
        assert waited.is_alive()

    node.call_soon(long_slice)
    node.call_later(1_000, lambda: None)
    world.run_for(0)
    waited.join(10)
    assert not waited.is_alive()


def test_a_command_from_another_thread_runs_at_once_while_nobody_plays(world: World) -> None:
    seen: list[int] = []
    in_thread(world.door.post, lambda: seen.append(threading.get_ident()))
    assert len(seen) == 1
    assert seen[0] != threading.get_ident()


def test_a_command_from_another_thread_runs_between_two_slices_on_the_thread_that_plays(
    world: World, node: Node
) -> None:
    seen: list[tuple[str, bool]] = []

    def command() -> None:
        seen.append(("command", threading.current_thread() is threading.main_thread()))
        assert world.current is world.life

    def busy_slice() -> None:
        poster.post(world, command)
        seen.append(("rest of the slice", True))

    node.call_soon(busy_slice)
    node.call_soon(lambda: seen.append(("next slice", True)))
    with Poster() as poster:
        world.run_for(0)
    assert seen == [("rest of the slice", True), ("command", True), ("next slice", True)]


def test_a_command_posted_in_the_last_slice_is_not_left_behind(world: World, node: Node) -> None:
    seen: list[str] = []
    with Poster() as poster:
        node.call_soon(poster.post, world, lambda: seen.append("done"))
        world.run_for(0)
        assert seen == ["done"]
        node.call_soon(poster.post, world, lambda: seen.append("again"))
        world.step()
        assert seen == ["done", "again"]


def test_a_command_can_change_the_world(world: World, node: Node) -> None:
    seen: list[int] = []

    def command() -> None:
        node.call_later(5, lambda: seen.append(world.now_us))

    world.door.post(command)
    world.run_for(10_000)
    assert seen == [5_000]


def test_a_command_that_fails_takes_no_other_with_it(world: World, node: Node) -> None:
    seen: list[str] = []

    def fail() -> None:
        raise OSError("no disk")

    def slice_with_commands() -> None:
        world.door.post(fail)
        world.door.post(lambda: seen.append("second"))

    node.call_soon(slice_with_commands)
    with pytest.raises(ObserverError, match="which watches the world, failed between two slices: OSError: no disk"):
        world.run_for(0)
    assert seen == ["second"]


# -- the stop button ---------------------------------------------------------------------------------------------------


def press_stop() -> None:
    """What Jupyter's stop button does."""
    signal.raise_signal(signal.SIGINT)


def test_the_stop_button_stops_between_two_slices_and_the_world_goes_on(world: World, node: Node) -> None:
    seen: list[str] = []

    def slice_with_interrupt() -> None:
        press_stop()
        seen.append("the slice ends")

    node.call_later(1, slice_with_interrupt)
    node.call_later(2, seen.append, "later")
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt, match="the world can go on"):
        world.run_for(10_000)
    assert (seen, world.now_us) == (["the slice ends"], 1_000)
    assert signal.getsignal(signal.SIGINT) is handler
    assert world.run_for(10_000)
    assert seen == ["the slice ends", "later"]


@pytest.mark.parametrize("way", ["step", "run_to_slice", "wait_for", "run_until"])
def test_the_stop_button_works_however_the_world_is_played(world: World, node: Node, way: str) -> None:
    node.call_later(1, press_stop)
    for ms in range(2, 20):
        node.call_later(ms, lambda: None)
    play: Callable[[], object] = {
        "step": world.step,
        "run_to_slice": lambda: world.run_to_slice(10),
        "wait_for": lambda: world.wait_for(node.future("never")),
        "run_until": lambda: world.run_until(lambda: False),
    }[way]
    with pytest.raises(KeyboardInterrupt):
        play()
    assert world.slice_no == 1
    assert not world.broken
    assert world.run_for(5_000)


def test_commands_still_run_at_once_after_the_stop_button(world: World, node: Node) -> None:
    node.call_soon(press_stop)
    with pytest.raises(KeyboardInterrupt):
        world.run_for(0)
    seen: list[str] = []
    world.door.post(lambda: seen.append("done"))
    assert seen == ["done"]


def test_the_alarm_of_the_stop_button_is_taken_down_again(world: World, node: Node) -> None:
    before = signal.getsignal(signal.SIGALRM)
    node.call_soon(press_stop)
    with pytest.raises(KeyboardInterrupt):
        world.run_for(0)
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def run_until_ready_and_press_stop(program: str) -> tuple[str, float]:
    """Run a program in a process of its own, press stop when it says "ready"; its output and how long it still ran."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=30)
        return output, time.monotonic() - began
    finally:
        process.kill()
        process.wait()


ENDLESS = """
from mqlab.errors import SimulationError
from mqlab.sim import World

world = World(7)
node = world.node("consumer-1")

async def listener():
    print("ready", flush=True)
    while True:
        {body}

node.spawn(listener(), "ConsumeMessageThread_1")
try:
    world.run_for(1_000_000)
except KeyboardInterrupt as error:
    print(type(error).__name__, error)
try:
    world.step()
except SimulationError as error:
    print("then:", error)
"""


def test_an_endless_loop_without_await_is_ended_by_the_stop_button_which_names_its_task() -> None:
    output, seconds = run_until_ready_and_press_stop(ENDLESS.format(body="pass"))
    first, second = output.strip().split("\n")
    assert first.startswith("InterruptedInSlice task 'ConsumeMessageThread_1' on consumer-1 did not come to an 'await'")
    assert second.startswith("then: this world is broken: the stop button broke off task 'ConsumeMessageThread_1'")
    assert 0.9 < seconds < 10


def test_a_listener_that_swallows_every_error_is_ended_by_the_stop_button_too() -> None:
    body = "\n        ".join(["try:", "    sum(range(1000))", "except Exception:", "    pass"])
    output, _ = run_until_ready_and_press_stop(ENDLESS.format(body=body))
    assert output.startswith("InterruptedInSlice task 'ConsumeMessageThread_1' on consumer-1")


def test_the_stop_button_ends_a_world_that_would_play_for_ever() -> None:
    output, seconds = run_until_ready_and_press_stop(
        """
        from mqlab.sim import World

        world = World(7)
        node = world.node("broker-a")
        node.schedule_at_fixed_rate(lambda: None, 1, 1, "tick")
        node.call_soon(lambda: print("ready", flush=True))
        try:
            world.run_for(10**15)
        except KeyboardInterrupt as error:
            print(error)
        print("broken:", world.broken, "goes on:", world.run_for(5_000))
        """
    )
    assert output.splitlines() == ["stopped between two slices; the world can go on", "broken: None goes on: True"]
    assert seconds < 10
