"""Fences: real sleeping and real threads inside a world are errors; outside they work as ever."""

from __future__ import annotations

import _thread
import asyncio
import functools
import multiprocessing
import os
import queue
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from mqlab.errors import SimulationError
from mqlab.sim import Node, World


def test_a_real_sleep_inside_the_world_is_an_error_that_names_the_substitute(world: World, node: Node) -> None:
    async def listener() -> None:
        time.sleep(0.01)

    node.spawn(listener(), "listener")
    with pytest.raises(SimulationError, match=r"'listener' on alpha called time\.sleep.*await ctx\.sleep"):
        world.run_for(0)


def test_a_real_thread_inside_the_world_is_an_error_that_names_the_substitute(world: World, node: Node) -> None:
    async def listener() -> None:
        threading.Thread(target=print).start()

    node.spawn(listener(), "listener")
    with pytest.raises(SimulationError, match=r"'listener' on alpha started a real thread.*node\.spawn"):
        world.run_for(0)


@pytest.mark.parametrize("name", ["start_new_thread", "start_new"])
def test_a_thread_of_the_lower_module_is_fenced_too(world: World, node: Node, name: str) -> None:
    node.call_soon(getattr(_thread, name), print, (), name="listener")
    with pytest.raises(SimulationError, match=r"'listener' on alpha started a real thread.*node\.spawn"):
        world.run_for(0)


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop that was made outside of the world."""
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def test_a_loop_of_asyncio_inside_the_world_is_an_error_that_names_the_substitute(
    world: World, node: Node, loop: asyncio.AbstractEventLoop
) -> None:
    for run in (asyncio.run, loop.run_until_complete):
        work = asyncio.sleep(0.01)
        node.call_soon(run, work, name="listener")
        with pytest.raises(SimulationError, match=r"'listener' on alpha ran a loop of asyncio.*ctx\.sleep"):
            world.run_for(0)
        work.close()


def test_a_real_socket_inside_the_world_is_an_error_that_names_the_substitute(world: World, node: Node) -> None:
    node.call_soon(socket.socket, name="listener")
    with pytest.raises(SimulationError, match=r"'listener' on alpha opened a real socket.*ctx\.sleep"):
        world.run_for(0)


@pytest.mark.parametrize(
    "start",
    [
        lambda: subprocess.run([sys.executable, "--version"], check=True),
        lambda: os.system("true"),
        os.fork,
        multiprocessing.Process(target=print).start,
    ],
    ids=["subprocess", "system", "fork", "multiprocessing"],
)
def test_a_real_process_inside_the_world_is_an_error_that_names_the_substitute(
    world: World, node: Node, start: Callable[[], object]
) -> None:
    node.call_soon(start, name="listener")
    with pytest.raises(SimulationError, match=r"'listener' on alpha started a real process.*ctx\.sleep"):
        world.run_for(0)


TAKEN_BEFORE = """
from time import sleep
from select import select
from _thread import start_new_thread
from threading import Thread
from asyncio import run, sleep as asleep
from mqlab.errors import SimulationError
from mqlab.sim import World

world = World(7)
node = world.node("alpha")
work = asleep(0)
for name, call, arguments in (
    ("sleep", sleep, (0,)), ("select", select, ([], [], [], 0)), ("start_new_thread", start_new_thread, (int, ())),
    ("Thread", Thread(target=int).start, ()), ("run", run, (work,)),
):
    node.call_soon(call, *arguments, name=name)
    try:
        world.run_for(0)
    except SimulationError as error:
        print(error)
sleep(0)
run(work)
"""


def test_what_was_taken_by_name_before_mqlab_was_imported_is_fenced() -> None:
    ran = subprocess.run([sys.executable, "-c", TAKEN_BEFORE], capture_output=True, text=True, check=True)
    told = [line.split(";")[0].split(",")[0] for line in ran.stdout.splitlines()]
    assert told == [
        "'sleep' on alpha called time.sleep",
        "'select' on alpha waited for real files or sockets. In a coroutine listener 'await' things of the world",
        "'start_new_thread' on alpha started a real thread",
        "'Thread' on alpha started a real thread",
        "'run' on alpha ran a loop of asyncio",
    ]


def test_newer_pythons_tell_of_sleeps_and_threads_by_themselves(world: World, node: Node) -> None:
    for event in ("time.sleep", "_thread.start_new_thread", "_thread.start_joinable_thread"):
        node.call_soon(sys.audit, event, name="listener")
        with pytest.raises(SimulationError, match=r"'listener' on alpha (called|started)"):
            world.run_for(0)


@pytest.mark.parametrize(("name", "arguments"), [("select", ([], [], [], 0)), ("poll", ())])
def test_a_real_wait_for_files_inside_the_world_is_an_error(
    world: World, node: Node, name: str, arguments: tuple[object, ...]
) -> None:
    node.call_soon(getattr(select, name), *arguments, name="listener")
    with pytest.raises(SimulationError, match=r"'listener' on alpha waited for real files or sockets.*ctx\.sleep"):
        world.run_for(0)


def test_a_wait_for_a_queue_of_another_thread_is_an_error(world: World, node: Node) -> None:
    empty: queue.Queue[int] = queue.Queue()
    full: queue.LifoQueue[int] = queue.LifoQueue(1)
    full.put(1)
    for wait in (empty.get, functools.partial(empty.get, timeout=0.01), functools.partial(full.put, 2)):
        node.call_soon(wait, name="listener")
        with pytest.raises(SimulationError, match=r"'listener' on alpha waited for a queue.*get_nowait"):
            world.run_for(0)


def test_a_queue_that_need_not_be_waited_for_may_be_used(world: World, node: Node) -> None:
    results: queue.Queue[int] = queue.Queue()
    seen: list[int] = []

    def listener() -> None:
        results.put(7)
        seen.append(results.get())
        with pytest.raises(queue.Empty):
            results.get(block=False)

    node.call_soon(listener, name="listener")
    world.run_for(0)
    assert seen == [7]


def test_a_callback_is_fenced_as_a_task_is(world: World, node: Node) -> None:
    node.call_later(1, time.sleep, 0, name="timer")
    with pytest.raises(SimulationError, match=r"'timer' on alpha called time\.sleep"):
        world.run_for(1_000)


def test_outside_of_the_world_sleeps_and_threads_work(world: World, node: Node) -> None:
    seen: list[str] = []
    time.sleep(0)
    thread = threading.Thread(target=seen.append, args=("ran",))
    thread.start()
    thread.join()
    assert seen == ["ran"]
    asyncio.run(asyncio.sleep(0))


def test_another_thread_may_sleep_while_this_one_plays(world: World, node: Node) -> None:
    playing, slept = threading.Event(), threading.Event()

    def sleeper() -> None:
        playing.wait(10)
        time.sleep(0)
        slept.set()

    thread = threading.Thread(target=sleeper)
    thread.start()

    def slice_that_waits_for_the_other_thread() -> None:
        playing.set()
        assert slept.wait(10)

    node.call_soon(slice_that_waits_for_the_other_thread)
    world.run_for(0)
    thread.join()


def test_the_fence_is_put_up_once(world: World) -> None:
    fenced = time.sleep
    World(8)
    assert time.sleep is fenced


def test_a_library_that_cffi_has_opened_before_is_no_obstacle() -> None:
    made = "import cryptography.x509, mqlab.lab; mqlab.lab.Lab(1)"
    assert subprocess.run([sys.executable, "-c", made], check=False).returncode == 0
