"""The stepper as a widget: its frames, its controls, and what it leaves on a page without a front end."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from threading import Thread
from typing import Any

import pytest

from mqlab import Lab
from mqlab.errors import LearnerError, ObserverError
from mqlab.scenarios import get
from mqlab_widgets.boards.held_pulls import HeldPullsBoard
from mqlab_widgets.boards.lights import LightsBoard
from mqlab_widgets.stepper import Stepper
from mqlab_widgets.viewer import FramePump
from mqlab_widgets.weak_sink import WeakSink
from mqlab_widgets.world_charts import WorldCharts
from tests.worlds import played


@pytest.fixture
def lab() -> Lab:
    """Two brokers after four seconds."""
    return played("two-brokers", 4)


@pytest.fixture
def stepper(lab: Lab) -> Stepper:
    return Stepper(lab)


def said(stepper: Stepper, content: dict[str, Any]) -> None:
    """What the page sends."""
    stepper._handle_custom_msg(content, [])


# -- frames ---------------------------------------------------------------------------------------------------------


def sent(stepper: Stepper) -> list[dict[str, Any]]:
    """Gathers the messages that the page gets from here on."""
    messages: list[dict[str, Any]] = []
    stepper.send = messages.append
    return messages


def test_a_frame_is_whole_and_can_be_sent_as_json(lab: Lab) -> None:
    stepper = Stepper(lab, [LightsBoard, HeldPullsBoard])
    frame = stepper.frame
    assert json.loads(json.dumps(frame)) == frame
    assert set(frame) == {
        *("_place", "_us", "_clock", "_length", "_world", "_taken", "_playing", "_past", "_tab"),
        *("stage", "caption", "stations", "bar", "more", "said", "timeline", "tabs", "boards", "menu", "handles"),
    }  # fmt: skip
    assert frame["_place"] == frame["_length"] == str(len(lab.history))
    assert frame["_tab"] == "boards"
    assert "What must always hold" in frame["boards"]


def test_only_what_has_changed_goes_to_the_page(stepper: Stepper) -> None:
    messages = sent(stepper)
    said(stepper, {"do": "shown"})
    (whole,) = messages
    assert set(whole["frame"]) == set(stepper.frame)
    said(stepper, {"do": "choose", "node": "broker-a"})
    assert set(messages[-1]["frame"]) == {"_taken", "stage", "menu"}
    said(stepper, {"do": "choose", "node": "broker-a"})
    assert messages[-1] == {"frame": {"_taken": "2"}, "n": whole["n"] + 2}
    assert stepper.get_state()["frame"] == stepper.frame


def test_another_page_gets_all_of_it(stepper: Stepper) -> None:
    messages = sent(stepper)
    for page in "ab":
        said(stepper, {"do": "shown", "view": page})
    first, second = messages
    assert first == {"whole": True, "frame": stepper.frame, "n": first["n"]}
    assert second == first | {"n": first["n"] + 1}


def test_only_the_tab_that_is_open_is_drawn(lab: Lab) -> None:
    stepper = Stepper(lab, [HeldPullsBoard])
    said(stepper, {"do": "shown"})
    said(stepper, {"do": "tab", "name": "step"})
    boards = stepper.frame["boards"]
    assert stepper.frame["_tab"] == "step"
    said(stepper, {"do": "goto", "place": 100})
    assert stepper.frame["boards"] == boards
    said(stepper, {"do": "tab", "name": "text"})
    assert "broker-b (broker) is running" in stepper.frame["text"]


def test_what_the_page_says_is_done_and_shown(stepper: Stepper) -> None:
    said(stepper, {"do": "shown"})
    said(stepper, {"do": "goto", "place": "100"})
    assert stepper.frame["_place"] == "100"
    assert stepper.frame["_past"] == "true"
    said(stepper, {"do": "choose", "node": "broker-a"})
    assert 'class="mq-card broker running chosen' in stepper.frame["stage"]
    before = stepper.frame
    for nonsense in ({"do": 3}, {"dont": "goto"}, ["goto"], "goto"):
        said(stepper, nonsense)  # type: ignore[arg-type]
    assert stepper.frame == before


def test_the_menu_offers_what_can_be_done_to_whom_was_clicked(stepper: Stepper) -> None:
    said(stepper, {"do": "shown"})
    assert "Break what?" in stepper.frame["menu"]
    said(stepper, {"do": "choose", "node": "broker-a"})
    assert "Crash broker-a" in stepper.frame["menu"]
    assert "Let broker-a go on" not in stepper.frame["menu"]
    said(stepper, {"do": "freeze", "node": "broker-a"})
    assert "Freeze broker-a" not in stepper.frame["menu"]
    assert "Let broker-a go on" in stepper.frame["menu"]
    said(stepper, {"do": "choose_link", "source": "producer-1", "target": "broker-a"})
    assert "Cut the link producer-1 - broker-a" in stepper.frame["menu"]
    assert "Crash" not in stepper.frame["menu"]
    stage = stepper.frame["stage"]
    assert 'class="mq-card producer running other"' in stage
    assert 'aria-label="producer-1, producer, running, other end of the link"' in stage


def test_the_bar_offers_what_can_be_done_now(stepper: Stepper) -> None:
    said(stepper, {"do": "shown"})
    assert 'data-do="share"' in stepper.frame["bar"]
    assert "Now</button>" not in stepper.frame["bar"]
    said(stepper, {"do": "start"})
    assert "Now</button>" in stepper.frame["bar"]
    assert stepper.frame["_clock"] == "0.000 s"
    cell_by_cell = Lab(seed=1)
    cell_by_cell.name_server()
    assert 'data-do="share"' not in Stepper(cell_by_cell).frame["bar"]


def test_each_frame_in_the_air_has_handles(lab: Lab) -> None:
    lab.run_until_event("RequestSent", request_name="SEND_MESSAGE_V2")
    stepper = Stepper(lab)
    sent_now = lab.history.at_cursor
    assert sent_now is not None
    flight = f"{sent_now.connection}:{sent_now.local}:{sent_now.frame}"
    assert f'data-flight="{flight}"' in stepper.frame["handles"]
    assert f'data-key="{flight}"' in stepper.frame["stage"]
    said(stepper, {"do": "shown"})
    said(stepper, {"do": "back"})
    assert stepper.frame["handles"] == ""


def test_a_story_goes_to_the_page_while_it_plays_and_the_whole_picture_at_its_end(lab: Lab) -> None:
    async def cell() -> None:
        said(stepper, {"do": "play"})
        while not any("story" in message for message in messages):
            await asyncio.sleep(0.01)
        said(stepper, {"do": "play"})

    stepper = Stepper(lab)
    said(stepper, {"do": "shown"})
    messages = sent(stepper)
    asyncio.run(cell())
    first, last = messages[0]["frame"], messages[-1]["frame"]
    assert first["_playing"] == "true"
    assert "stage" not in first
    assert last["_playing"] == "false"
    assert last["stage"] == stepper.session.scene().svg()
    told = [beat for message in messages for beat in message.get("story", ())]
    assert told[-1]["place"] == lab.history.cursor == int(last["_place"])


def test_a_step_is_one_message_and_the_panels_below_follow_it(lab: Lab) -> None:
    async def cell() -> None:
        said(stepper, {"do": "step_event"})
        assert len(messages) == 1
        while len(messages) < 2:
            await asyncio.sleep(0.01)

    stepper = Stepper(lab)
    said(stepper, {"do": "shown"})
    messages = sent(stepper)
    asyncio.run(cell())
    step, rest = messages
    assert step["story"][-1]["place"] == int(step["frame"]["_place"]) == stepper.session.cursor.place()
    assert step["frame"]["_taken"] == "1"
    assert step["frame"]["said"]
    assert {"step", "timeline"} <= rest["frame"].keys()
    assert not {"stage", "said", "bar", "_place"} & rest["frame"].keys()
    assert stepper.frame["stage"] == stepper.session.scene().svg()


def test_a_view_that_shall_play_begins_when_a_page_shows_it(lab: Lab) -> None:
    async def cell() -> None:
        stepper = Stepper(lab, play=True)
        assert not stepper.session.playing
        said(stepper, {"do": "shown"})
        assert stepper.session.playing
        said(stepper, {"do": "play"})
        said(stepper, {"do": "shown"})
        assert not stepper.session.playing

    asyncio.run(cell())


def test_nobody_draws_for_a_view_that_nobody_looks_at(lab: Lab, stepper: Stepper) -> None:
    drawn = stepper._pump.sent
    lab.run_for(seconds=5)
    said(stepper, {"do": "step_event"})
    assert stepper._pump.sent == drawn
    said(stepper, {"do": "shown"})
    assert stepper._pump.sent == drawn + 1
    said(stepper, {"do": "hidden"})
    drawn = stepper._pump.sent
    said(stepper, {"do": "step_event"})
    assert stepper._pump.sent == drawn


def test_while_a_cell_plays_frames_are_few_and_the_last_one_arrives(lab: Lab) -> None:
    async def cell() -> Stepper:
        stepper = Stepper(lab)
        said(stepper, {"do": "shown"})
        lab.run_for(seconds=50)
        while stepper.frame["_length"] != str(len(lab.history)):
            await asyncio.sleep(0)
        return stepper

    stepper = asyncio.run(cell())
    looks = len(lab.history) / 256
    assert stepper._pump.sent < looks


def test_a_cell_that_plays_a_world_gathers_no_source_lines_and_a_search_only_the_newest() -> None:
    lab = get("steady-load").build(7, parameters={"messages": 4_000, "every_ms": 5})
    stepper = Stepper(lab)
    said(stepper, {"do": "shown"})
    lab.run_for(seconds=1)
    assert lab._sources == {}
    said(stepper, {"do": "to_time", "ms": 26_000})
    assert len(lab.history) > 60_000
    assert len(lab._sources) < 60_000
    newest = lab.history.record(len(lab.history) - 1)
    assert lab.source_of(newest).line > 0


def test_a_thread_without_a_loop_does_not_keep_the_last_frame_from_coming(lab: Lab, stepper: Stepper) -> None:
    said(stepper, {"do": "shown"})
    thread = Thread(target=lab.step)
    thread.start()
    thread.join()

    async def cell() -> None:
        lab.run_for(ms=300)
        while stepper.frame["_length"] != str(len(lab.history)):
            await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(cell(), 20))


def test_a_pump_sends_what_is_newest() -> None:
    state, shown = [0], []
    pump = FramePump(lambda: shown.append(state[0]))

    async def cell() -> None:
        for number in range(100):
            state[0] = number
            pump.ask()
        while shown[-1] != 99:
            await asyncio.sleep(0)

    asyncio.run(cell())
    assert pump.sent == len(shown) == 2
    assert pump.dropped == 99


# -- when it is no longer wanted ------------------------------------------------------------------------------------


def test_closed_views_are_freed_and_leave_nothing_in_the_world(lab: Lab) -> None:
    before = (list(lab.world.hooks.sinks), list(lab.watchers), lab.world.hooks.sources)
    seen = []
    for _ in range(5):
        stepper = Stepper(lab, [LightsBoard])
        said(stepper, {"do": "shown"})
        charts = WorldCharts(lab).live()
        seen += [weakref.ref(thing) for thing in (stepper, stepper.session, charts)]
        for view in (stepper, charts):
            view.close()
            view.close()
        del stepper, charts, view
    gc.collect()
    assert [thing() for thing in seen] == [None] * len(seen)
    lab.run_for(seconds=1)
    assert (list(lab.world.hooks.sinks), list(lab.watchers), lab.world.hooks.sources) == before


def test_a_world_that_was_shown_is_freed_when_its_views_are_closed() -> None:
    """Every part of a view has looked at it before: the time line, labels, lights, charts, a step and its causes."""

    def show() -> weakref.ref[Lab]:
        lab = played("demo", 2)
        stepper, charts = Stepper(lab, [LightsBoard]), WorldCharts(lab).live()
        said(stepper, {"do": "shown"})
        said(stepper, {"do": "step_event"})
        said(stepper, {"do": "goto", "place": 40})
        said(stepper, {"do": "tab", "name": "step"})
        stepper.close()
        charts.close()
        return weakref.ref(lab)

    gone = show()
    gc.collect()
    assert gone() is None


def test_a_view_that_is_only_forgotten_is_not_kept_by_the_world(lab: Lab) -> None:
    class View:
        seen = 0

        def see(self, row: Any) -> None:
            View.seen += 1

    before = list(lab.world.hooks.sinks)
    view = View()
    sink = WeakSink(lab.world.hooks, view.see)
    lab.run_for(ms=300)
    assert View.seen > 0
    assert sink.view is view
    seen, gone = View.seen, weakref.ref(view)
    del view
    gc.collect()
    assert gone() is None
    assert sink.view is None
    lab.run_for(ms=300)
    assert View.seen == seen
    assert list(lab.world.hooks.sinks) == before


def test_a_closed_view_leaves_the_others_of_its_world_alone(lab: Lab) -> None:
    closed, other = Stepper(lab, [LightsBoard]), Stepper(lab, [LightsBoard])
    said(other, {"do": "shown"})
    closed.close()
    del closed
    gc.collect()
    said(other, {"do": "tab", "name": "step"})
    said(other, {"do": "step_event"})
    assert other.frame["_length"] == str(len(lab.history))
    assert 'data-key="source"' in other.frame["step"]
    judge = other.session.cursor.boards()[1]._live
    assert [getattr(sink, "view", None) for sink in lab.world.hooks.sinks].count(judge) == 1


def test_a_view_that_plays_is_closed_at_rest(lab: Lab) -> None:
    async def cell() -> None:
        stepper = Stepper(lab)
        said(stepper, {"do": "shown"})
        said(stepper, {"do": "play"})
        stepper.close()
        length = len(lab.history)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(lab.history) == length

    asyncio.run(cell())


# -- what the step changed ------------------------------------------------------------------------------------------


def test_what_a_step_changed_is_marked(stepper: Stepper) -> None:
    said(stepper, {"do": "shown"})
    said(stepper, {"do": "set_kind", "kind": "MessageDispatched"})
    said(stepper, {"do": "next_kind"})
    assert "it changed:" in stepper.frame["step"]
    queue, message = stepper.session.cursor.changes()
    assert queue.startswith("broker-")
    assert "1 not consumed" in queue
    assert "dispatched after" in message


def test_the_source_of_what_was_played_is_shown(stepper: Stepper) -> None:
    said(stepper, {"do": "shown"})
    said(stepper, {"do": "step_slice"})
    said(stepper, {"do": "step_event"})
    assert 'data-key="source"' in stepper.frame["step"]
    assert "mqlab/" in stepper.frame["step"]


# -- without a front end --------------------------------------------------------------------------------------------


def test_a_page_keeps_the_picture_and_the_text_of_the_moment(lab: Lab) -> None:
    stepper = Stepper(lab, [LightsBoard])
    data, _ = stepper._repr_mimebundle_()
    assert "<svg" in data["text/html"]
    assert data["text/plain"].splitlines()[0] == f"<Stepper: event {len(lab.history)} of {len(lab.history)}>"
    assert "namesrv-1 (namesrv) is running" in data["text/plain"]
    again, _ = Stepper(played("two-brokers", 4), [LightsBoard])._repr_mimebundle_()
    assert (again["text/html"], again["text/plain"]) == (data["text/html"], data["text/plain"])


def test_a_view_of_a_world_without_machines_says_how_to_begin_and_follows() -> None:
    lab = Lab(seed=1)
    stepper = Stepper(lab)
    assert "No machine has started yet" in stepper.frame["stage"]
    said(stepper, {"do": "step_slice"})
    assert "Nothing is left to happen" in stepper.session.said
    lab.name_server()
    data, _ = stepper._repr_mimebundle_()
    assert "namesrv-1" in data["text/html"]


def test_what_is_no_lab_is_told() -> None:
    for boards in ("boards", LightsBoard, [LightsBoard, "held pulls"]):
        with pytest.raises(LearnerError, match="is no list of boards"):
            Stepper(Lab(), boards)  # type: ignore[arg-type]
    with pytest.raises(LearnerError, match="is not a lab"):
        Stepper("lab")  # type: ignore[arg-type]


def test_a_lab_without_history_is_told() -> None:
    with pytest.raises(LearnerError, match="keeps no history"):
        Stepper(Lab(history=False))


def test_a_board_that_cannot_draw_is_named_to_whoever_plays(lab: Lab) -> None:
    """What it raised came out of lab.run_for as it was, as if the world had failed."""

    class Sketch(HeldPullsBoard):
        broken = False

        def html(self) -> str:
            return str({False: ""}[self.broken])

    stepper = Stepper(lab, [Sketch])
    said(stepper, {"do": "shown"})
    Sketch.broken = True
    lab.node("pen").call_later(1, lambda: lab.world.door.post(stepper._pump.send))
    told = r"^FramePump\.send of a Stepper, which .* between two slices: KeyError: True"
    with pytest.raises(ObserverError, match=told):
        lab.run_for(seconds=5)
    Sketch.broken = False
    assert lab.run_for(seconds=1).world.broken is None


def test_a_view_that_fails_is_named_to_whoever_plays(lab: Lab) -> None:
    class Painter:
        def see(self, row: Any) -> None:
            raise ValueError("no picture")

    painter = Painter()
    WeakSink(lab.world.hooks, painter.see)
    with pytest.raises(ObserverError, match=r"WeakSink of a Painter, which watches.*ValueError: no picture"):
        lab.run_for(seconds=5)
