"""Orders with steps: what the worlds of lab 15 rest on."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest

from mqlab import Lab, scenarios
from mqlab.client import ConsumeOrderlyStatus
from mqlab.errors import SimulationError
from mqlab.exercises.order_day import HANGS, KILLED, OrderDay
from mqlab.scenarios.order_steps import Shop, open_shop, two_clerks
from mqlab.scenarios.registry import Scenario

SEEDS = (1, 7, 23)


def built(lab: Lab, opening: Awaitable[Shop]) -> Shop:
    """The shop with which the lab is built."""
    found: list[Shop] = []

    async def build() -> None:
        found.append(await opening)

    lab.finish_building(build())
    return found[0]


def opened(lab: Lab, **settings: Any) -> Shop:
    """A shop with one clerk, who has the queues by now."""

    async def with_one_clerk() -> Shop:
        shop = await open_shop(lab, queues=4)
        await shop.clerk("A", more_ms=60, **settings)
        return shop

    shop = built(lab, with_one_clerk())
    lab.run_for(seconds=3)
    return shop


@pytest.mark.parametrize("seed", SEEDS)
def test_an_orderly_listener_alone_does_not_keep_the_steps_of_an_order_in_turn(seed: int) -> None:
    lab = Lab(seed)
    shop = opened(lab)
    shop.take_orders(20, every_ms=60, selector=None)
    lab.run_for(seconds=15)
    assert len(shop.book.entries) == 80
    assert len(shop.book.out_of_step()) > 3


@pytest.mark.parametrize("seed", SEEDS)
def test_a_selector_and_an_orderly_listener_do(seed: int) -> None:
    lab = Lab(seed)
    shop = opened(lab)
    shop.take_orders(20, every_ms=60)
    lab.run_for(seconds=15)
    assert len(shop.book.entries) == 80
    assert shop.book.out_of_step() == []


def test_a_selector_without_order_does_not() -> None:
    lab = Lab(7)
    shop = opened(lab, in_order=False)
    shop.take_orders(20, every_ms=60, pause_ms=20)
    lab.run_for(seconds=15)
    assert len(shop.book.out_of_step()) > 10


@pytest.mark.parametrize("group", ["desk", "clerks"])
def test_whether_an_owner_that_wakes_does_all_again_is_decided_by_which_topic_it_asks_for_first(group: str) -> None:
    """The first question is lost with the old connection; the second one says that it is no member any more."""
    lab = Lab(7)
    shop = built(lab, two_clerks(lab, group=group))
    shop.take_orders(1_000, every_ms=1_000)
    lab.run_for(seconds=25)
    lab.freeze("B")
    lab.run_for(seconds=160)
    lab.thaw("B")
    woken_ms = lab.now_ms
    lab.run_for(seconds=30)
    again = shop.book.again("B", since_ms=woken_ms)
    assert len(again) > 200 if group == "desk" else again == []
    lost = [record.topic for record in lab.history.find("RebalanceSkipped", node="B") if record.ts_ms >= woken_ms]
    assert lost[0] == ("Orders" if group == "desk" else f"%RETRY%{group}")


def told(scenario: Scenario) -> str:
    return " ".join(caption.words for caption in scenario.captions)


def test_the_story_of_the_killed_owner_says_how_old_its_locks_become() -> None:
    """The lock is given away more than 60 s after B asked for it last, and not 2 s later."""
    scenario = scenarios.get("owner-killed")
    assert "60 s" in told(scenario)
    lab = scenario.play(7)
    asked_ms = max(record.ts_ms for record in lab.history.find("RequestSent", node="B", request_name="LOCK_BATCH_MQ"))
    given = [r for r in lab.history.find("QueueLocked", queue_id=2, topic="Orders") if r.ts_ms > asked_ms + 1_000]
    assert len(given) == 1
    assert 60_000 < given[0].ts_ms - asked_ms < 62_000


# -- the day that judges ----------------------------------------------------------------------------------------------


class Anywhere:
    """The first queue for everybody."""

    def queue_of(self, queues: list[Any], order: str) -> Any:
        return queues[0]


class Asks:
    """Asks the book something that makes no sense."""

    def __init__(self, book: Any, what: str) -> None:
        self.book = book
        self.what = what

    async def consume_message(self, messages: Any, context: Any) -> None:
        if self.what == "order":
            await self.book.done(messages[0])
        else:
            await self.book.write("order-1", messages[0].properties["step"])


@pytest.mark.parametrize(("what", "words"), [("order", "is not the name of an order"), ("step", "'1' is not a step")])
def test_what_the_book_cannot_understand_stops_the_day_with_a_sentence(what: str, words: str) -> None:
    with pytest.raises(SimulationError, match=words):
        OrderDay(lambda _: Anywhere(), lambda _, book: Asks(book, what), 2).play()


class InTurn:
    """Looks, works, and writes if nothing has changed."""

    def __init__(self, book: Any) -> None:
        self.book = book

    async def consume_message(self, messages: Any, context: Any) -> ConsumeOrderlyStatus:
        order, step = messages[0].keys, int(messages[0].properties["step"])
        done = await self.book.done(order)
        if step > done:
            await self.book.work(order, step)
            await self.book.write_if(order, done, step)
        return ConsumeOrderlyStatus.SUCCESS


@pytest.mark.parametrize("seed", range(1, 11))
def test_an_accident_befalls_a_clerk_in_the_middle_of_its_work(seed: int) -> None:
    """Else a listener that writes blindly would never be caught."""
    day = OrderDay(lambda _: Anywhere(), lambda _, book: InTurn(book), seed).play()
    assert not day.wrong
    if day.kind in (HANGS, KILLED):
        lines = [line.text for line in day.lines]
        accident = next(n for n, text in enumerate(lines) if text.endswith((HANGS, KILLED)))
        victim = lines[accident].split()[0]
        last = [text for text in lines[:accident] if text.startswith(f"{victim}:")][-1]
        assert "work(" in last
        assert last.endswith("begins")
