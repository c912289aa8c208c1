"""Space-time diagrams: what is drawn, where it stands, and that the text says the same."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from mqlab import Lab, scenarios
from mqlab.errors import LearnerError
from mqlab.views.diagram import GAP_US, HOLD, ROW, SpaceTimeDiagram
from tests.worlds import send, shop, started_consumer, started_producer


@pytest.fixture(scope="module")
def lab() -> Lab:
    """A consumer that waits with its pull held, then two messages, 50 ms apart."""
    lab = shop(topic="TopicTest")
    started_consumer(lab, topic="TopicTest")
    producer = started_producer(lab, "orders")
    lab.run_for(seconds=3)
    for body in (b"one", b"two"):
        send(producer, body, topic="TopicTest")
        lab.run_for(ms=50)
    return lab


def picture(lab: Lab, **options: Any) -> SpaceTimeDiagram:
    return lab.space_time(3_000, **options)


def elements(diagram: SpaceTimeDiagram, tag: str) -> list[ET.Element]:
    root = ET.fromstring(diagram.svg())
    return root.findall(f".//{{http://www.w3.org/2000/svg}}{tag}")


def arrows(diagram: SpaceTimeDiagram) -> list[ET.Element]:
    return [line for line in elements(diagram, "line") if line.attrib.get("class") == "arrow"]


def said(diagram: SpaceTimeDiagram) -> list[str]:
    return ["".join(text.itertext()).strip() for text in elements(diagram, "text")]


def test_the_lanes_stand_in_the_order_in_which_a_message_passes_them(lab: Lab) -> None:
    assert picture(lab).lanes == ["namesrv-1", "producer-1", "broker-a", "consumer-1"]


def test_a_client_stands_in_its_lane_by_what_it_does_not_by_its_name() -> None:
    lab = Lab(seed=7)
    lab.name_server()
    lab.broker("archive")
    lab.create_topic("TopicTest", 1)
    send(started_producer(lab, "orders", node="a-shop"), b"hello", topic="TopicTest")
    assert lab.space_time(0).lanes == ["namesrv-1", "a-shop", "archive"]


def test_each_frame_is_one_arrow_that_begins_at_its_sender(lab: Lab) -> None:
    diagram = picture(lab, requests=["SEND_MESSAGE_V2"])
    assert diagram.lanes == ["producer-1", "broker-a", "consumer-1"]
    steps = [float(line.attrib["x2"]) - float(line.attrib["x1"]) for line in arrows(diagram)]
    assert [step > 0 for step in steps] == [True, False, True, False]
    assert all(float(line.attrib["y2"]) > float(line.attrib["y1"]) for line in arrows(diagram))


def test_arrows_have_heads_of_their_own_whatever_else_is_on_the_page(lab: Lab) -> None:
    diagram = picture(lab, requests=["SEND_MESSAGE_V2"])
    heads = elements(diagram, "path")
    assert len(heads) == len(arrows(diagram)) == 4
    for line, head in zip(arrows(diagram), heads, strict=True):
        assert head.attrib["transform"].startswith(f"translate({line.attrib['x2']} {line.attrib['y2']})")
        assert head.attrib["fill"] == line.attrib["stroke"]
    assert " id=" not in diagram.svg()


def test_a_response_says_what_it_answers_even_if_the_request_came_before_the_picture(lab: Lab) -> None:
    diagram = picture(lab, requests=["PULL_MESSAGE"])
    first = next(mark for mark in diagram.marks if mark.frame is not None)
    assert re.fullmatch(r"PULL_MESSAGE: SUCCESS, \d+ B", first.text)


def test_a_held_pull_is_a_bar_that_ends_where_it_is_woken(lab: Lab) -> None:
    diagram = picture(lab, requests=["SEND_MESSAGE_V2"], kinds=["PullHeld", "PullWoken"])
    woken = [n for n, mark in enumerate(diagram.marks) if mark.text == "PullWoken"]
    bars = [bar for bar in elements(diagram, "rect") if bar.attrib.get("fill") == HOLD and bar.attrib["y"] != "37"]
    ends = [float(bar.attrib["y"]) + float(bar.attrib["height"]) for bar in bars]
    rows = diagram._rows()
    assert ends[:2] == [rows[n] for n in woken]
    assert len(bars) == len(woken) + 1


def test_pulls_that_are_held_at_the_same_time_stand_side_by_side() -> None:
    lab = scenarios.get("held-pulls").play(7, seconds=30, parameters={"consumers": 1, "queues": 4})
    bars = [
        (float(bar.attrib["x"]), float(bar.attrib["y"]), float(bar.attrib["height"]))
        for bar in elements(lab.space_time(0, kinds=["PullHeld", "PullWoken"], requests=["NONE"]), "rect")
        if bar.attrib.get("fill") == HOLD
    ][1:]
    assert len(bars) > 5
    for n, (x, y, height) in enumerate(bars):
        for other_x, other_y, other_height in bars[n + 1 :]:
            assert x != other_x or y + height <= other_y or other_y + other_height <= y


def test_a_long_wait_is_a_band_with_its_length(lab: Lab) -> None:
    diagram = picture(lab)
    times = [mark.record.ts_us for mark in diagram.marks]
    waits = [after - before for before, after in pairwise(times) if after - before > GAP_US]
    assert len(waits) > 0
    assert sum(text.startswith("+ ") for text in said(diagram)) == len(waits)


def test_every_row_has_a_height_of_its_own_and_times_go_down(lab: Lab) -> None:
    rows = picture(lab)._rows()
    assert all(after - before >= ROW for before, after in pairwise(rows))


def test_a_frame_under_way_is_an_arrow_without_an_end_that_says_so(lab: Lab) -> None:
    sent = next(lab.history.find("RequestSent", request_name="SEND_MESSAGE_V2"))
    diagram = lab.space_time(3_000, sent.ts_ms, requests=["SEND_MESSAGE_V2"])
    assert arrows(diagram) == []
    assert any(text.endswith("(under way)") for text in said(diagram))


def test_what_is_the_same_everywhere_is_not_repeated(lab: Lab) -> None:
    stored = next(mark for mark in picture(lab).marks if mark.text == "MessageStored")
    assert stored.detail == "queue 0, offset 0"
    flagged = next(mark for mark in lab.space_time(0).marks if mark.record.get("topic") == "TBW102")
    assert flagged.detail == "TBW102"


def test_the_text_twin_has_a_line_per_row_with_the_same_words(lab: Lab) -> None:
    diagram = picture(lab, title="Two messages")
    lines = str(diagram).splitlines()
    assert lines[0] == "Two messages"
    assert len(lines) == len(diagram.marks) + 1
    for line, mark in zip(lines[1:], diagram.marks, strict=True):
        assert mark.text in line
        assert f"{mark.record.ts_us / 1_000:.3f} ms" in line
    assert "Two messages" in said(diagram)


def test_everything_that_is_written_stands_inside_the_picture(lab: Lab) -> None:
    diagram = picture(lab)
    _, _, width, height = map(float, ET.fromstring(diagram.svg()).attrib["viewBox"].split())
    for text in elements(diagram, "text"):
        assert 0 <= float(text.attrib["x"]) < width
        assert 0 < float(text.attrib["y"]) <= height
    for line in arrows(diagram):
        assert max(float(line.attrib[name]) for name in ("x1", "x2")) < width


def test_rows_that_are_left_out_are_counted(lab: Lab) -> None:
    whole = picture(lab)
    short = picture(lab, most=5)
    assert len(short.marks) == 5
    assert str(short).splitlines()[-1] == f"... and {len(whole.marks) - 5} more rows: ask for less"


def test_an_empty_stretch_says_so(lab: Lab) -> None:
    diagram = lab.space_time(2_900, 2_901)
    assert str(diagram) == "(nothing happened in this stretch)"
    assert any("nothing happened" in text for text in said(diagram))


def test_a_stretch_that_ends_before_it_begins_is_refused(lab: Lab) -> None:
    with pytest.raises(LearnerError, match="swap the two times"):
        lab.space_time(10, 5)


def test_the_picture_can_be_saved(lab: Lab, tmp_path: Any) -> None:
    path = tmp_path / "way.svg"
    picture(lab).save(str(path))
    assert path.read_text(encoding="utf-8") == picture(lab).svg()
