"""Tasks and futures: how they wait, end, fail, are cancelled and killed."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any

import pytest

from mqlab.errors import LearnerError, ObserverError, SimulationError
from mqlab.sim import FAULTS, Cancelled, Future, Node, WaitTimeout, World


def test_a_sleep_takes_exactly_its_time(world: World, node: Node) -> None:
    woke: list[int] = []

    async def sleeper() -> None:
        await node.sleep(20)
        woke.append(node.now_us())
        await node.sleep(0.25)
        woke.append(node.now_us())
        await node.sleep_us(7)
        woke.append(node.now_us())

    node.spawn(sleeper(), "sleeper")
    world.run_for(100_000)
    assert woke == [20_000, 20_250, 20_257]


def test_a_time_that_is_no_whole_number_of_microseconds_is_refused(node: Node) -> None:
    with pytest.raises(LearnerError, match="whole number of microseconds"):
        node.sleep(0.0001)
    with pytest.raises(LearnerError, match="whole number of microseconds"):
        node.timeout(0.0001, print)


def test_a_time_in_the_past_is_refused(node: Node) -> None:
    with pytest.raises(LearnerError, match="lie in the past"):
        node.call_later(-1, print)


def test_the_clock_stays_an_integer_when_times_are_given_as_fractions(world: World, node: Node) -> None:
    node.timeout(0.5, lambda: None)
    world.step()
    assert (world.now_us, type(world.now_us)) == (500, int)


def test_a_future_wakes_those_who_wait_in_the_order_in_which_they_began(world: World, node: Node) -> None:
    future: Future[str] = node.future("the news")
    seen: list[str] = []

    async def reader(name: str) -> None:
        seen.append(f"{name} {await future}")

    for name in ("ann", "bob", "cid"):
        node.spawn(reader(name), name)
    node.call_later(3, future.set_result, "good")
    world.run_for(3_000)
    assert seen == ["ann good", "bob good", "cid good"]


@pytest.mark.parametrize("gives_up", [0, 1, 2])
def test_whoever_gives_up_waiting_leaves_the_others_in_their_order(world: World, node: Node, gives_up: int) -> None:
    answer = node.future("the answer")
    seen: list[int] = []

    async def waiter(number: int) -> None:
        await answer
        seen.append(number)

    tasks = [node.spawn(waiter(number), f"waiter {number}") for number in range(3)]
    world.run_for(1)
    tasks[gives_up].cancel()
    node.spawn(waiter(3), "waiter 3")
    world.run_for(1)
    answer.set_result(None)
    world.run_for(1)
    assert seen == [number for number in range(4) if number != gives_up]


def test_awaiting_a_complete_future_is_no_slice(world: World, node: Node) -> None:
    future: Future[int] = node.future()
    future.set_result(5)

    async def reader() -> int:
        return await future + await future

    assert world.wait_for(node.spawn(reader(), "reader").join()) == 10
    assert world.slice_no == 1


def test_an_error_set_on_a_future_is_raised_in_each_who_waits(world: World, node: Node) -> None:
    future: Future[int] = node.future()
    seen: list[str] = []

    async def reader() -> None:
        try:
            await future
        except OSError as error:
            seen.append(str(error))

    node.spawn(reader(), "one")
    node.spawn(reader(), "two")
    node.call_soon(future.set_exception, OSError("no disk"))
    world.run_for(0)
    assert seen == ["no disk", "no disk"]


def test_a_future_completes_once(node: Node) -> None:
    future: Future[int] = node.future("answer")
    assert future.try_set_result(1)
    assert not future.try_set_result(2)
    assert future.result() == 1
    with pytest.raises(SimulationError, match="'answer' is already complete"):
        future.set_result(3)
    with pytest.raises(SimulationError, match="'answer' is already complete"):
        future.set_exception(OSError())


def test_a_future_without_an_answer_has_no_result(node: Node) -> None:
    with pytest.raises(SimulationError, match="'answer' has no result yet"):
        node.future("answer").result()


def test_callbacks_of_a_future_run_inside_the_slice_that_completes_it(world: World, node: Node) -> None:
    future: Future[int] = node.future()
    seen: list[int] = []
    future.add_done_callback(lambda f: seen.append(world.slice_no))
    node.call_later(1, future.set_result, 1)
    world.run_for(1_000)
    future.add_done_callback(lambda f: seen.append(-1))
    assert seen == [1, -1]


def test_the_join_of_a_task_is_its_result(world: World, node: Node) -> None:
    async def work() -> str:
        await node.sleep(4)
        return "done"

    task = node.spawn(work(), "work")
    assert world.wait_for(task.join()) == "done"
    assert task.done


def test_the_join_of_a_task_that_has_ended_is_its_result(world: World, node: Node) -> None:
    async def work() -> str:
        return "done"

    task = node.spawn(work(), "work")
    world.run_for(0)
    assert task.join().result() == "done"


def test_who_joins_a_task_gets_its_error(world: World, node: Node) -> None:
    async def work() -> None:
        raise OSError("no disk")

    async def parent() -> str:
        try:
            await node.spawn(work(), "work").join()
        except OSError as error:
            return str(error)
        return "no error"

    assert world.wait_for(node.spawn(parent(), "parent").join()) == "no disk"


def test_an_error_that_nobody_joins_stops_the_world_and_names_the_task(world: World, node: Node) -> None:
    async def work() -> None:
        await node.sleep(1)
        raise OSError("no disk")

    node.spawn(work(), "ReputMessageService")
    with pytest.raises(SimulationError, match="task 'ReputMessageService' on alpha died: OSError: no disk") as caught:
        world.run_for(10_000)
    assert isinstance(caught.value.__cause__, OSError)
    assert world.now_us == 1_000


def test_an_error_in_a_callback_stops_the_world_and_names_it(world: World, node: Node) -> None:
    def explode() -> None:
        raise OSError("no disk")

    node.call_later(1, explode)
    with pytest.raises(SimulationError, match="'explode' on alpha raised OSError: no disk"):
        world.run_for(10_000)


def test_the_world_can_go_on_after_a_task_has_died(world: World, node: Node) -> None:
    seen: list[str] = []

    async def work() -> None:
        raise OSError("no disk")

    node.spawn(work(), "work")
    node.call_later(1, seen.append, "later")
    with pytest.raises(SimulationError):
        world.run_for(1_000)
    world.run_for(1_000)
    assert seen == ["later"]


def test_a_cancelled_task_ends_at_its_await_and_its_finally_blocks_run(world: World, node: Node) -> None:
    seen: list[str] = []

    async def work() -> None:
        try:
            await node.sleep(1_000)
        except Cancelled:
            seen.append("cancelled")
            raise
        finally:
            seen.append("cleaned up")

    task = node.spawn(work(), "work")
    world.run_for(1_000)
    task.cancel()
    task.cancel()
    world.run_for(0)
    assert (seen, task.done, world.now_us) == (["cancelled", "cleaned up"], True, 1_000)
    assert task.join().result() is None


def test_a_cancelled_task_may_still_wait_while_it_cleans_up(world: World, node: Node) -> None:
    seen: list[int] = []

    async def work() -> None:
        try:
            await node.future("never")
        finally:
            await node.sleep(5)
            seen.append(node.now_us())

    task = node.spawn(work(), "work")
    world.run_for(0)
    task.cancel()
    world.run_for(10_000)
    assert (seen, task.done) == ([5_000], True)


def test_a_task_cancelled_before_its_first_slice_does_nothing(world: World, node: Node) -> None:
    seen: list[str] = []

    async def work() -> None:
        seen.append("ran")

    node.spawn(work(), "work").cancel()
    world.run_for(0)
    assert seen == []


def test_cancelling_a_task_that_has_ended_changes_nothing(world: World, node: Node) -> None:
    async def work() -> int:
        return 1

    task = node.spawn(work(), "work")
    world.run_for(0)
    task.cancel()
    assert task.join().result() == 1


def test_a_task_woken_early_is_not_woken_again_at_its_old_time(world: World, node: Node) -> None:
    woke: list[int] = []

    async def sleeper() -> None:
        await node.sleep(10)
        woke.append(node.now_us())
        await node.sleep(100)
        woke.append(node.now_us())

    task = node.spawn(sleeper(), "sleeper")
    world.run_for(2_000)
    task.resume()
    world.run_for(200_000)
    assert woke == [2_000, 102_000]


def test_a_crash_runs_the_finally_blocks_of_the_process(world: World, node: Node) -> None:
    seen: list[str] = []

    async def work(name: str) -> None:
        try:
            await node.sleep(1_000)
            seen.append("woke")
        finally:
            seen.append(name)

    node.spawn(work("one"), "one")
    node.spawn(work("two"), "two")
    world.run_for(1_000)
    FAULTS["crash"](world, "alpha")
    world.run_for(10_000_000)
    assert seen == ["one", "two"]


def test_a_finally_block_that_waits_or_fails_at_a_crash_is_an_error_after_the_whole_process_has_ended(
    world: World, node: Node
) -> None:
    seen: list[str] = []

    async def stubborn() -> None:
        try:
            await node.sleep(1_000)
        finally:
            await node.sleep(1)

    async def spawning() -> None:
        try:
            await node.sleep(1_000)
        finally:
            node.spawn(stubborn(), "late")

    async def good() -> None:
        try:
            await node.sleep(1_000)
        finally:
            seen.append("good")

    node.spawn(stubborn(), "stubborn")
    node.spawn(spawning(), "spawning")
    node.spawn(good(), "good")
    world.run_for(0)
    with pytest.raises(SimulationError, match="'stubborn' refused to end with its process"):
        FAULTS["crash"](world, "alpha")
    assert seen == ["good"]
    assert not node.life.tasks


def test_a_process_cannot_crash_itself_in_the_middle_of_its_own_slice(world: World, node: Node) -> None:
    async def suicide() -> None:
        FAULTS["crash"](world, "alpha")

    with pytest.raises(LearnerError, match=r"(?s)alpha is playing a slice.*between two slices"):
        world.wait_for(node.spawn(suicide(), "suicide").join())


def test_a_task_that_awaits_something_of_asyncio_is_told_so_by_type(world: World, node: Node) -> None:
    async def listener() -> None:
        await asyncio.sleep(0.1)

    async def cell() -> None:
        node.spawn(listener(), "listener")
        world.run_for(1_000)

    with pytest.raises(SimulationError, match=r"'listener' on alpha awaited _asyncio\.Future, which the world"):
        asyncio.run(cell())


def test_asyncio_sleep_zero_in_a_task_is_an_error_too(world: World, node: Node) -> None:
    async def listener() -> None:
        await asyncio.sleep(0)

    node.spawn(listener(), "listener")
    with pytest.raises(SimulationError, match=r"'listener' on alpha awaited None .as asyncio\.sleep\(0\)"):
        world.run_for(1_000)


def test_waiting_for_a_future_with_a_time_out_gives_the_result_in_time(world: World, node: Node) -> None:
    future: Future[str] = node.future("answer")
    node.call_later(3, future.set_result, "yes")

    async def asker() -> str:
        return await node.wait(future, 5)

    assert world.wait_for(node.spawn(asker(), "asker").join()) == "yes"
    assert world.now_us == 3_000


def test_waiting_for_a_future_with_a_time_out_ends_after_the_time_out(world: World, node: Node) -> None:
    future: Future[str] = node.future("the answer of broker-a")

    async def asker() -> None:
        await node.wait(future, 5)

    with pytest.raises(WaitTimeout, match="the answer of broker-a did not come within 5 ms"):
        world.wait_for(node.spawn(asker(), "asker").join())
    assert world.now_us == 5_000
    assert not future.done


def test_waiting_again_and_again_for_one_future_leaves_nothing_behind_on_it(world: World, node: Node) -> None:
    future: Future[str] = node.future("never")

    async def asker() -> None:
        for _ in range(100):
            try:
                await node.wait(future, 5)
            except WaitTimeout:
                continue

    world.wait_for(node.spawn(asker(), "asker").join())
    assert (future._waiter, future._others) == (None, None)


def test_a_task_can_be_spawned_from_anything_awaitable(world: World, node: Node) -> None:
    future: Future[int] = node.future("answer")
    task = node.spawn(future, "reader")
    node.call_later(1, future.set_result, 4)
    assert world.wait_for(task.join()) == 4


def test_spawning_what_cannot_be_awaited_says_what_to_do(node: Node) -> None:
    async def work() -> None:
        """Do nothing."""

    with pytest.raises(LearnerError, match=r"(?s)worker.*function.*call it: work\(\)"):
        node.spawn(work, "worker")  # type: ignore[arg-type]  # the mistake under test


def test_a_task_tells_what_it_waits_for(world: World, node: Node) -> None:
    async def sleeper() -> None:
        await node.sleep(1.5)
        await node.future("the answer")

    task = node.spawn(sleeper(), "sleeper")
    assert repr(task) == "<Task sleeper on alpha: is ready to run>"
    world.run_for(0)
    assert repr(task) == "<Task sleeper on alpha: sleeps for 1.5 ms>"
    world.run_for(1_500)
    assert repr(task) == "<Task sleeper on alpha: waits for the answer>"
    task.kill()
    assert repr(task) == "<Task sleeper on alpha: ended>"


# -- waiting from outside ----------------------------------------------------------------------------------------------


def test_waiting_from_outside_has_a_limit_that_names_who_waits_for_what(world: World, node: Node) -> None:
    async def client() -> None:
        await node.future("response 17 of broker-a")

    async def idle() -> None:
        await node.sleep(100_000_000)

    node.spawn(idle(), "idle")
    answer = node.spawn(client(), "client").join()
    with pytest.raises(SimulationError, match=r"(?s)end of client did not come within 600000 ms.*") as caught:
        world.wait_for(answer)
    assert "alpha: client waits for response 17 of broker-a" in str(caught.value)
    assert "alpha: idle sleeps for 100000000 ms" in str(caught.value)
    assert world.now_us == 600_000_000


def test_the_limit_of_a_wait_can_be_given(world: World, node: Node) -> None:
    with pytest.raises(SimulationError, match=r"(?s)never did not come within 5 ms.*no task is alive"):
        world.wait_for(node.future("never"), 5)
    assert world.now_us == 5_000


def test_a_wait_that_failed_does_not_stop_a_later_run(world: World, node: Node) -> None:
    future: Future[int] = node.future("late")
    with pytest.raises(SimulationError):
        world.wait_for(future, 5)
    node.call_later(5, future.set_result, 1)
    assert world.run_for(20_000)
    assert world.now_us == 25_000


def test_a_condition_that_does_not_come_true_is_named(world: World) -> None:
    with pytest.raises(SimulationError, match="ten messages did not come within 50 ms"):
        world.run_until(lambda: False, 50, what="ten messages")


def test_running_until_a_condition_stops_in_the_slice_that_makes_it_true(world: World, node: Node) -> None:
    seen: list[int] = []
    for ms in range(1, 6):
        node.call_later(ms, seen.append, ms)
    assert world.run_until(lambda: len(seen) == 3)
    assert (seen, world.now_us) == ([1, 2, 3], 3_000)


def test_a_wait_goes_on_through_breakpoints(world: World, node: Node) -> None:
    future: Future[int] = node.future()
    node.call_later(1, world.request_stop)
    node.call_later(2, future.set_result, 7)
    assert world.wait_for(future) == 7


def test_a_breakpoint_stops_a_run_before_its_end(world: World, node: Node) -> None:
    node.call_later(1, world.request_stop)
    assert not world.run_for(5_000)
    assert world.now_us == 1_000
    assert world.run_for(5_000)


def test_an_error_in_the_slice_of_a_breakpoint_leaves_no_stop_for_later(world: World, node: Node) -> None:
    async def stops_and_dies() -> None:
        world.request_stop()
        raise ValueError("boom")

    def refuse() -> None:
        raise LookupError("nothing to draw")

    node.spawn(stops_and_dies(), "stops and dies")
    with pytest.raises(SimulationError, match="boom"):
        world.run_for(5_000)
    node.call_later(1, lambda: (world.door.post(refuse), world.request_stop()))
    with pytest.raises(ObserverError, match="LookupError: nothing to draw"):
        world.run_for(5_000)
    node.call_later(1, world.door.post, lambda: None)
    assert world.run_for(5_000)


def test_code_inside_the_world_cannot_play_it(world: World, node: Node) -> None:
    node.call_soon(world.step)
    with pytest.raises(SimulationError, match="already playing a slice"):
        world.run_for(0)


def test_a_world_thrown_away_warns_of_no_coroutine_that_it_had_no_time_to_play(
    recwarn: pytest.WarningsRecorder,
) -> None:
    async def inner() -> None:
        """What a listener returns: handed to a task that waits for it."""

    async def outer(handed: Coroutine[Any, Any, None]) -> None:
        await handed

    # What other tests have left behind may warn, too.
    gc.collect()
    recwarn.clear()
    world = World(7)
    world.node("a").spawn(outer(inner()), "waits")
    del world
    gc.collect()
    assert [str(warning.message) for warning in recwarn] == []
