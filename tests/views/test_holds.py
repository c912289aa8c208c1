"""The picture of holds: how long pulls are kept, and the passes between which nobody looks."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from mqlab import Lab, scenarios
from mqlab.views import Holds
from tests.worlds import shop, started_consumer


def waiting() -> Lab:
    """A consumer that gets nothing for a minute, beside a broker that takes part in nothing else."""
    lab = scenarios.get("rivals").build(7, parameters={"rate_per_minute": 1})
    return lab.run_for(seconds=60)


def test_every_hold_is_told_with_its_age_at_the_passes() -> None:
    lab = shop(topic="Orders")
    started_consumer(lab, lambda messages, context: None, topic="Orders")
    lab.run_for(seconds=50)
    first, second, third = Holds.of(lab.history, "Orders", 0, lab.now_ms).holds
    assert (first.reason, second.reason, third.reason) == ("timed out", "timed out", "still held")
    assert first.end_us is not None
    assert 15_000_000 <= first.end_us - first.begin_us <= 20_100_000
    assert first.end_us > first.due_us, "the pass comes later than its time"
    told = str(Holds.of(lab.history, "Orders", 0, lab.now_ms, "An empty queue"))
    assert told.startswith(
        "An empty queue\n  held from 1.528 s on: 18.5 s, timed out; its age at the passes: 3.472, 8.472,"
    )


def test_the_picture_has_a_title_a_bar_for_each_hold_and_an_axis_of_time() -> None:
    lab = waiting()
    holds = Holds.of(lab.history, "Orders", 0, lab.now_ms, "A quiet minute")
    root = ET.fromstring(holds.svg())
    words = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert words[0] == "A quiet minute"
    assert "time, s" in words
    assert "overdue, not yet noticed" in words
    assert sum(str(word).startswith("pull ") for word in words) == len(holds.holds) >= 3


def test_a_message_ends_a_hold() -> None:
    lab = scenarios.get("rivals").play(7, seconds=10)
    holds = Holds.of(lab.history, "Orders", 0, lab.now_ms).holds
    assert {hold.reason for hold in holds[:-1]} == {"arrived"}
    assert len(holds) <= 12, "a picture shows no more"


def test_a_stretch_without_holds_is_no_error() -> None:
    empty = Holds.of(waiting().history, "Other", 0, 1_000)
    assert "(nothing was held)" in str(empty)
    ET.fromstring(empty.svg())
