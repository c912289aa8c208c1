"""What a page is sent in step: the whole picture whenever it is shown, and what changes of exactly that picture."""

from __future__ import annotations

import asyncio
import random
from threading import Thread
from typing import Any

import pytest

from mqlab import Lab
from mqlab_widgets.stepper import Stepper
from tests.widgets.screen import Time
from tests.worlds import played


class Pages:
    """A stepper whose screen clock the test moves, and what each page shows of it: the parts of the picture by name."""

    def __init__(self, lab: Lab) -> None:
        self.stepper = Stepper(lab)
        self.session = self.stepper.session
        self.sent: list[dict[str, Any]] = []
        self.stepper.send = self.sent.append  # type: ignore[method-assign,assignment]
        self.time = Time()
        self.session.player.clock, self.session.player.sleep = self.time, self.time.sleep

    def say(self, do: str, view: str = "page", **more: Any) -> None:
        self.stepper._handle_custom_msg({"do": do, "view": view, **more}, [])

    async def watch(self, seconds: float) -> None:
        end = self.time.now + seconds
        while self.session.playing and self.time.now < end:
            await asyncio.sleep(0)

    def shown(self, **more: Any) -> dict[str, Any]:
        """The whole picture that a page gets when it says that it is shown."""
        before = len(self.sent)
        self.say("shown", **more)
        (whole,) = [message for message in self.sent[before:] if message.get("whole")]
        return whole


@pytest.fixture
def pages() -> Pages:
    """A world that is played by steps of the test."""
    return Pages(played("steady-load", 2))


def test_each_message_has_the_next_number(pages: Pages) -> None:
    async def cell() -> None:
        pages.say("shown")
        pages.say("play")
        await pages.watch(3)
        pages.say("choose", node="broker-a")
        await pages.watch(1)
        pages.say("play")
        pages.say("step_event")

    asyncio.run(cell())
    numbers = [message["n"] for message in pages.sent]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert len(numbers) > 10


@pytest.mark.parametrize("seed", range(6))
def test_a_page_that_comes_while_it_plays_gets_all_of_it_and_then_what_has_changed_since(
    pages: Pages, seed: int
) -> None:
    chance = random.Random(seed)

    async def cell() -> None:
        pages.say("play")
        for _ in range(8):
            await pages.watch(chance.uniform(0.1, 2))
            width = chance.choice((700, 700, 960, 1280))
            whole = pages.shown(view=f"page-{chance.randrange(3)}", width=width, height=600, big=chance.random() < 0.3)
            scene = pages.session.scene()
            assert whole["frame"]["stage"] == scene.svg()
            assert (scene.look.width, scene.look.big) == (width, pages.session.page.big)
            assert whole["frame"]["_place"] == str(pages.session.cursor.place())
            parts, began = dict(scene.parts), len(pages.sent)
            await pages.watch(chance.uniform(0.1, 2))
            for message in pages.sent[began:]:
                assert "stage" not in message.get("frame", {})
                for beat in message.get("story", ()):
                    parts.update(beat["parts"])
            assert {name: svg for name, svg in parts.items() if svg} == pages.session.scene().parts
        pages.say("play")

    pages.say("shown")
    asyncio.run(cell())


def test_what_a_cell_did_while_it_played_comes_to_the_page(pages: Pages) -> None:
    async def cell() -> None:
        pages.say("play")
        await pages.watch(1)
        parts, began = dict(pages.session.story.parts), len(pages.sent)
        pages.session.lab.run_for(seconds=30)
        pages.session.lab.crash("broker-a")
        await pages.watch(3)
        for message in pages.sent[began:]:
            for beat in message.get("story", ()):
                parts.update(beat["parts"])
        assert {name: svg for name, svg in parts.items() if svg} == pages.session.scene().parts
        pages.say("play")

    pages.say("shown")
    asyncio.run(cell())


def test_it_is_drawn_for_the_page_that_does_something(pages: Pages) -> None:
    pages.say("shown", "first", width=1200)
    pages.say("shown", "second", width=1600, height=900, big=1)
    assert pages.session.scene().look[:3] == (1600, True, 900)
    pages.say("choose", "first", node="broker-a")
    assert pages.session.scene().look[:3] == (1200, False, 0)
    assert any(message.get("whole") for message in pages.sent[-2:])
    pages.say("shown", "second", width=1600, height=900, big=1)
    pages.say("hidden", "second")
    assert pages.session.scene().look[:3] == (1200, False, 0)
    assert pages.session.watched
    pages.say("hidden", "first")
    assert not pages.session.watched


def test_a_page_that_is_loaded_again_and_again_is_counted_once_it_has_said_that_it_goes(pages: Pages) -> None:
    for number in range(20):
        pages.say("shown", f"load-{number}")
        pages.say("hidden", f"load-{number}")
    assert not pages.session.watched


@pytest.mark.parametrize("wrong", ["wide", float("nan"), None, [], -1e300])
def test_a_size_that_cannot_be_changes_nothing_or_is_bounded(pages: Pages, wrong: Any) -> None:
    pages.shown(width=900)
    whole = pages.shown(width=wrong)
    assert pages.session.page.width in (900, 320)
    assert "<svg" in whole["frame"]["stage"]


def test_when_the_record_has_come_to_the_present_the_page_is_told_so(pages: Pages) -> None:
    async def cell() -> None:
        pages.say("play")
        await pages.watch(60)
        pages.say("play")

    pages.say("shown")
    pages.say("goto", place=len(pages.session.lab.history) - 20)
    assert pages.stepper.frame["_past"] == "true"
    asyncio.run(cell())
    told = [beat["past"] for message in pages.sent for beat in message.get("story", ()) if "past" in beat]
    assert told == ["false"]


def test_what_a_page_begins_with_is_the_picture_of_now(pages: Pages) -> None:
    pages.session.lab.run_for(seconds=3)
    frame = pages.stepper.get_state()["frame"]
    assert frame["_place"] == str(len(pages.session.lab.history))
    assert frame["stage"] == pages.session.scene().svg()
    assert frame["_length"] == frame["_place"]


def test_a_page_of_another_thread_is_heard_between_two_pieces_of_the_play(pages: Pages) -> None:
    async def cell() -> None:
        pages.say("play")
        await pages.watch(1)
        from_another = Thread(target=pages.say, args=("shown", "another"), kwargs={"width": 777})
        from_another.start()
        from_another.join()
        # It has been left for this loop, which has not come to it yet.
        assert "another" not in pages.stepper._pages
        await asyncio.sleep(0)
        await pages.watch(0.5)
        assert pages.session.page.width == 777
        state = Thread(target=pages.stepper.get_state)
        state.start()
        while state.is_alive():
            await asyncio.sleep(0)
        pages.say("play")

    pages.say("shown")
    asyncio.run(cell())


def test_a_play_whose_loop_has_ended_stands_still_and_can_begin_anew(pages: Pages) -> None:
    pages.say("shown")
    loop = asyncio.new_event_loop()

    async def begin() -> None:
        pages.say("play")

    loop.run_until_complete(begin())
    assert pages.session.playing
    task = pages.session.player._task
    loop.close()
    assert not pages.session.playing

    async def again() -> None:
        pages.say("play")
        assert pages.session.playing
        pages.say("play")

    asyncio.run(again())
    assert not pages.session.playing
    task._log_destroy_pending = False  # type: ignore[union-attr]  # of a loop that was closed with it on purpose
