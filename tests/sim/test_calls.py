"""Calls: how code outside of the world waits for something inside it."""

from __future__ import annotations

import asyncio
import gc
import warnings
from typing import Any

import pytest

from mqlab.errors import LearnerError
from mqlab.sim import FAULTS, Node, World, public_call
from mqlab.sim.life import ProcessEndedError


class Greeter:
    """A part of the world with a public method that waits."""

    call_name = "greeter"

    def __init__(self, node: Node) -> None:
        self.node = node

    @public_call
    async def greet(self, name: str, ms: int = 5) -> str:
        """Answer after a while."""
        await self.node.sleep(ms)
        return f"hello {name}"

    @public_call
    async def fail(self) -> None:
        """Fail after a while."""
        await self.node.sleep(1)
        raise OSError("no disk")


def test_awaited_outside_a_call_plays_the_world_until_the_answer_is_there(world: World, node: Node) -> None:
    async def cell() -> str:
        return await Greeter(node).greet("ann")

    assert asyncio.run(cell()) == "hello ann"
    assert world.now_us == 5_000


def test_several_calls_of_one_cell_happen_one_after_the_other(world: World, node: Node) -> None:
    greeter = Greeter(node)

    async def cell() -> list[str]:
        return [await greeter.greet("ann"), await greeter.greet("bob", ms=7)]

    assert asyncio.run(cell()) == ["hello ann", "hello bob"]
    assert world.now_us == 12_000


def test_a_call_can_be_played_without_any_loop(world: World, node: Node) -> None:
    assert Greeter(node).greet("ann").play() == "hello ann"


def test_awaited_inside_a_call_is_the_coroutine_itself(world: World, node: Node) -> None:
    greeter = Greeter(node)

    async def inside() -> str:
        plain = Greeter.greet.inside(greeter, "bob")  # type: ignore[attr-defined]  # see public_call
        return f"{await greeter.greet('ann')} and {await plain}"

    task = node.spawn(inside(), "inside")
    assert world.wait_for(task.join()) == "hello ann and hello bob"
    assert world.slice_no == 3


def test_a_call_can_be_started_as_a_task_of_its_own(world: World, node: Node) -> None:
    greeter = Greeter(node)
    tasks = [node.spawn(greeter.greet(name), f"greet {name}") for name in ("ann", "bob")]
    world.run_for(5_000)
    assert [task.join().result() for task in tasks] == ["hello ann", "hello bob"]


def test_the_error_of_a_call_is_raised_where_it_is_awaited(world: World, node: Node) -> None:
    async def cell() -> None:
        await Greeter(node).fail()

    with pytest.raises(OSError, match="no disk"):
        asyncio.run(cell())


def test_a_forgotten_await_shows_what_to_write(node: Node) -> None:
    call = Greeter(node).greet("ann")
    assert repr(call).splitlines() == [
        "not awaited: greeter.greet(...)",
        "  What to do: write 'await greeter.greet(...)' to let it happen.",
    ]
    call.play()
    assert repr(call) == "<call of greeter.greet(...), awaited>"


def test_a_call_that_is_thrown_away_warns_that_it_never_happened(world: World, node: Node) -> None:
    with pytest.warns(UserWarning, match=r"greeter\.greet\(\.\.\.\) was never awaited, so it never happened"):
        Greeter(node).greet("ann")
    assert not world.step()


def test_a_call_answers_once(world: World, node: Node) -> None:
    call = Greeter(node).greet("ann")
    call.play()
    with pytest.raises(LearnerError, match=r"(?s)greeter\.greet\(\.\.\.\) was awaited already.*call it again"):
        call.play()


def test_a_started_call_is_under_way_while_the_world_is_stepped(world: World, node: Node) -> None:
    call = Greeter(node).greet("ann").start()
    assert world.now_us == 0
    world.run_for(4_999)
    assert (call.done, repr(call)) == (False, "<call of greeter.greet(...), under way>")
    world.run_for(1)
    assert (call.done, repr(call)) == (True, "<call of greeter.greet(...), done>")
    assert call.play() == "hello ann"
    assert world.now_us == 5_000


def test_awaiting_a_started_call_plays_the_rest_of_it(world: World, node: Node) -> None:
    call = Greeter(node).greet("ann").start()
    world.run_for(2_000)

    async def cell() -> str:
        return await call

    assert asyncio.run(cell()) == "hello ann"
    assert world.now_us == 5_000


def test_a_call_started_outside_can_be_awaited_inside(world: World, node: Node) -> None:
    call = Greeter(node).greet("ann").start()

    async def inside() -> str:
        return await call

    assert world.wait_for(node.spawn(inside(), "inside").join()) == "hello ann"


def test_a_call_is_started_once(node: Node) -> None:
    call = Greeter(node).greet("ann").start()
    with pytest.raises(LearnerError, match=r"greeter\.greet\(\.\.\.\) was started already"):
        call.start()
    assert call.play() == "hello ann"


def test_the_error_of_a_started_call_comes_when_it_is_awaited_or_as_a_warning(world: World, node: Node) -> None:
    call = Greeter(node).fail().start()
    world.run_for(1_000)
    with pytest.raises(OSError, match="no disk"):
        call.play()
    call = Greeter(node).fail().start()
    world.run_for(1_000)
    with pytest.warns(UserWarning, match=r"greeter\.fail\(\.\.\.\) failed, and nobody awaited it: no disk"):
        del call


def test_a_call_on_a_machine_that_is_down_says_how_to_start_it_and_warns_of_nothing_else(
    world: World, node: Node
) -> None:
    FAULTS["crash"](world, "alpha")
    gc.collect()  # files that an earlier test has left open
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(LearnerError, match=r"(?s)alpha is down, so greeter\.greet.*lab\.restart\('alpha'\)"):
            Greeter(node).greet("ann").play()
        gc.collect()


@pytest.mark.parametrize("end", ["crash", "power_off", "restart"])
def test_a_call_whose_process_has_ended_says_so_at_once_and_warns_of_nothing(
    world: World, node: Node, end: str
) -> None:
    """It played ten minutes of the world and then told who else waits."""
    node.boot = lambda booted: None
    said = r"(?s)the process on alpha has ended, and greeter\.greet\(\.\.\.\) with it.*lab\.restart\('alpha'\)"
    dead, forgotten = Greeter(node).greet("ann").start(), Greeter(node).greet("cid").start()
    world.run_for(1_000)
    FAULTS[end](world, "alpha")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert forgotten.done
        del forgotten
        gc.collect()
    with pytest.raises(ProcessEndedError, match=said):
        dead.play()
    if end != "restart":
        FAULTS["restart"](world, "alpha")
    under_way = Greeter(node).greet("bob", ms=1_000)
    world.node("chance").call_later(10, FAULTS["crash"], world, "alpha")
    with pytest.raises(ProcessEndedError, match=said):
        under_way.play()
    assert world.now_us == 11_000


def test_who_waits_on_another_machine_for_a_process_that_ended_is_told(world: World, node: Node) -> None:
    call = Greeter(node).greet("ann").start()

    async def inside() -> str:
        return await call

    waiting = world.node("beta").spawn(inside(), "inside").join()
    world.run_for(1_000)
    FAULTS["crash"](world, "alpha")
    with pytest.raises(ProcessEndedError, match="the process on alpha has ended"):
        world.wait_for(waiting)
    assert world.now_us == 1_000


def test_a_call_that_gets_no_answer_is_named_with_its_limit(world: World, node: Node) -> None:
    with pytest.raises(Exception, match=r"(?s)greeter\.greet\(\.\.\.\) did not come within 100 ms.*sleeps for 1000 ms"):
        Greeter(node).greet("ann", ms=1_000).play(limit_ms=100)


def test_the_world_remembers_what_was_awaited_from_outside(world: World, node: Node) -> None:
    greeter = Greeter(node)
    greeter.greet("ann").play()

    async def inside() -> Any:
        return await greeter.greet("bob")

    world.wait_for(node.spawn(inside(), "inside").join())
    assert world.outside_calls == ["greeter.greet(...)"]
