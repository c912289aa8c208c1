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
from mqlab_widgets.viewer import FramePump, Viewer
from mqlab_widgets.weak_sink import WeakSink
from mqlab_widgets.world_charts import WorldCharts


@pytest.fixture
def lab() -> Lab:
    """Two brokers after four seconds."""
    return get("two-brokers").build(7).run_for(seconds=4)


def click(stepper: Stepper, words: str) -> None:
    """Press the control with these words."""
    (button,) = [
        control
        for row in stepper.children[1:-1]
        for control in row.children
        if getattr(control, "description", "") == words and hasattr(control, "click")
    ]
    button.click()


def said(stepper: Stepper, content: dict[str, Any]) -> None:
    """What the page sends."""
    stepper.viewer._handle_custom_msg(content, [])


# -- frames ---------------------------------------------------------------------------------------------------------


def test_a_frame_is_whole_and_can_be_sent_as_json(lab: Lab) -> None:
    stepper = Stepper(lab, [LightsBoard, HeldPullsBoard])
    frame = stepper.viewer.frame
    assert json.loads(json.dumps(frame)) == frame
    assert set(frame) == {
        *("_place", "_length", "_world", "_taken"),
        *("where", "said", "stage", "side", "machine", "boards", "text"),
    }  # fmt: skip
    assert frame["_place"] == frame["_length"] == str(len(lab.history))
    assert "What must always hold" in frame["boards"]
    assert "broker-b (broker) is running" in frame["text"]


def test_what_the_page_says_is_done_and_shown(lab: Lab) -> None:
    stepper = Stepper(lab)
    said(stepper, {"do": "shown"})
    said(stepper, {"do": "goto", "place": "100"})
    assert stepper.viewer.frame["_place"] == "100"
    assert stepper._timeline.value == 100
    said(stepper, {"do": "choose", "node": "broker-a"})
    assert 'class="mq-card broker running chosen' in stepper.viewer.frame["stage"]
    before = stepper.viewer.frame
    for nonsense in ({"do": 3}, {"dont": "goto"}, ["goto"], "goto"):
        said(stepper, nonsense)  # type: ignore[arg-type]
    assert stepper.viewer.frame == before


def test_controls_and_the_time_line_do_the_same(lab: Lab) -> None:
    stepper = Stepper(lab)
    said(stepper, {"do": "shown"})
    length = len(lab.history)
    click(stepper, "event")
    assert int(stepper.viewer.frame["_place"]) == length + 1
    click(stepper, "start")
    assert stepper._timeline.value == 0
    stepper._timeline.value = 321
    assert lab.history.cursor == 321
    click(stepper, "crash")
    assert "no machine is chosen" in stepper.viewer.frame["said"]
    stepper._kind.value = "PullHeld"
    click(stepper, "next")
    assert stepper.session.event().kind == "PullHeld"
    click(stepper, "share")
    assert "mqlab:" in stepper.viewer.frame["said"]


def test_both_ends_of_a_link_are_marked_and_named_beside_the_buttons(lab: Lab) -> None:
    stepper = Stepper(lab)
    said(stepper, {"do": "shown"})
    assert "click a machine" in stepper._whom.value
    assert stepper._link.value == ""
    for node in ("producer-1", "broker-a"):
        said(stepper, {"do": "choose", "node": node})
    assert stepper._whom.value == "<b>break broker-a:</b>"
    assert stepper._link.value == "<b>producer-1 and broker-a:</b>"
    stage = stepper.viewer.frame["stage"]
    assert 'class="mq-card broker running chosen' in stage
    assert 'class="mq-card producer running other"' in stage
    assert 'aria-label="producer-1, producer, running, other end of the link"' in stage


def test_nobody_draws_for_a_view_that_nobody_looks_at(lab: Lab) -> None:
    stepper = Stepper(lab)
    drawn = stepper._pump.sent
    lab.run_for(seconds=5)
    click(stepper, "event")
    assert stepper._pump.sent == drawn
    said(stepper, {"do": "shown"})
    assert stepper._pump.sent == drawn + 1
    said(stepper, {"do": "hidden"})
    drawn = stepper._pump.sent
    click(stepper, "event")
    assert stepper._pump.sent == drawn


def test_while_a_cell_plays_frames_are_few_and_the_last_one_arrives(lab: Lab) -> None:
    async def cell() -> Stepper:
        stepper = Stepper(lab)
        said(stepper, {"do": "shown"})
        lab.run_for(seconds=50)
        while stepper.viewer.frame["_length"] != str(len(lab.history)):
            await asyncio.sleep(0)
        return stepper

    stepper = asyncio.run(cell())
    looks = len(lab.history) / 256
    assert stepper._pump.sent < looks
    assert stepper.viewer.dropped > 0


def test_a_world_that_nobody_looks_at_does_not_gather_source_lines() -> None:
    lab = get("steady-load").build(7, parameters={"messages": 4_000, "every_ms": 5})
    stepper = Stepper(lab)
    lab.run_for(seconds=25)
    assert len(lab.history) > 60_000
    assert len(lab._sources) <= 40_256
    newest = lab.history.record(len(lab.history) - 1)
    assert lab.source_of(newest).line > 0
    assert stepper._pump.sent == 1


def test_a_thread_without_a_loop_does_not_keep_the_last_frame_from_coming(lab: Lab) -> None:
    stepper = Stepper(lab)
    said(stepper, {"do": "shown"})
    thread = Thread(target=lab.step)
    thread.start()
    thread.join()

    async def cell() -> None:
        lab.run_for(ms=300)
        while stepper.viewer.frame["_length"] != str(len(lab.history)):
            await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(cell(), 20))


def test_a_pump_sends_what_is_newest() -> None:
    state = [0]
    viewer = Viewer(lambda command: None)
    pump = FramePump(lambda: {"state": str(state[0])}, viewer)

    async def cell() -> None:
        for number in range(100):
            state[0] = number
            pump.ask()
        while viewer.frame["state"] != "99":
            await asyncio.sleep(0)

    asyncio.run(cell())
    assert pump.sent == 2
    assert viewer.dropped == 99


# -- when it is no longer wanted ------------------------------------------------------------------------------------


def test_closed_views_are_freed_and_leave_nothing_in_the_world(lab: Lab) -> None:
    before = (list(lab.world.hooks.sinks), list(lab.watchers), lab.world.hooks.sources)
    seen = []
    for _ in range(5):
        stepper = Stepper(lab, [LightsBoard])
        said(stepper, {"do": "shown"})
        charts = WorldCharts(lab).live()
        seen += [weakref.ref(thing) for thing in (stepper, stepper.session, stepper.viewer, charts)]
        for view in (stepper, charts):
            view.close()
            view.close()
        del stepper, charts, view
    gc.collect()
    assert [thing() for thing in seen] == [None] * len(seen)
    lab.step_event()
    assert (list(lab.world.hooks.sinks), list(lab.watchers), lab.world.hooks.sources) == before


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
    said(other, {"do": "step_event"})
    assert other.viewer.frame["_length"] == str(len(lab.history))
    assert 'data-key="source"' in other.viewer.frame["side"]
    judge = other.session.boards()[1]._live
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


def test_what_a_step_changed_is_marked(lab: Lab) -> None:
    stepper = Stepper(lab)
    said(stepper, {"do": "shown"})
    said(stepper, {"do": "set_kind", "kind": "MessageDispatched"})
    said(stepper, {"do": "next_kind"})
    assert "it changed:" in stepper.viewer.frame["side"]
    (line,) = stepper.session.changes()
    assert line.startswith("broker-")
    assert "1 not consumed" in line


def test_the_source_of_what_was_played_is_shown(lab: Lab) -> None:
    stepper = Stepper(lab)
    said(stepper, {"do": "shown"})
    click(stepper, "slice")
    click(stepper, "event")
    assert 'data-key="source"' in stepper.viewer.frame["side"]
    assert "mqlab/" in stepper.viewer.frame["side"]


# -- without a front end --------------------------------------------------------------------------------------------


def test_a_page_keeps_the_picture_and_the_text_of_the_moment(lab: Lab) -> None:
    stepper = Stepper(lab, [LightsBoard])
    data, _ = stepper._repr_mimebundle_()
    assert "<svg" in data["text/html"]
    assert data["text/plain"].splitlines()[0] == f"<Stepper: event {len(lab.history)} of {len(lab.history)}>"
    assert "namesrv-1 (namesrv) is running" in data["text/plain"]
    again, _ = Stepper(get("two-brokers").build(7).run_for(seconds=4), [LightsBoard])._repr_mimebundle_()
    assert (again["text/html"], again["text/plain"]) == (data["text/html"], data["text/plain"])


def test_a_view_of_a_world_without_machines_says_how_to_begin_and_follows() -> None:
    lab = Lab(seed=1)
    stepper = Stepper(lab)
    assert "No machine has started yet" in stepper.viewer.frame["stage"]
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
