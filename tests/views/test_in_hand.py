"""The pictures of Pop's cousins: who has which order, and the window of a share partition."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from mqlab import Lab, scenarios
from mqlab.views import InHand, ShareWindow


def played(system: str, trouble: str, seconds: float, *, others: bool = True) -> Lab:
    lab = scenarios.get("cousins").build(7, parameters={"system": system, "trouble": trouble, "others": others})
    return lab.run_for(ms=seconds * 1_000 - lab.now_ms)


def words(svg: str) -> list[str | None]:
    return [element.text for element in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_who_has_which_order_is_told_and_drawn_for_each_world() -> None:
    worlds = {"Share group": played("share-group", "killed", 30), "SQS": played("sqs", "killed", 30)}
    view = InHand(worlds, lock_s=20)
    told = str(view).splitlines()
    assert told[:3] == [
        "Who has which order", "  Share group", "        0.0 s  worker-1 has order 0 until 1.0 s, count 1",
    ]  # fmt: skip
    assert "       20.0 s  worker-2 has order 0 until 24.0 s, count 2" in told
    shown = words(view.svg())
    assert {"Share group", "SQS", "order 2", "count 2", "worker-1 is killed at 1.0 s"} <= set(shown)


def test_a_leader_that_starts_anew_has_given_nothing_to_anybody() -> None:
    lab = played("share-group", "broker-killed", 30)
    told = str(InHand({"Share group": lab}, lock_s=20))
    assert "worker-1 has order 1 until 4.0 s, count 1" in told
    assert "worker-1: order 1 is done; answer: INVALID_RECORD_STATE" in told


def test_the_window_has_each_record_with_its_state_and_count() -> None:
    lab = played("share-group", "broker-killed", 9)
    window = ShareWindow.of(lab.history, "A share partition")
    assert str(window).splitlines() == [
        "A share partition: SPSO 2, SPEO 3",
        "  record 0: ACKNOWLEDGED, deliveries: 1",
        "  record 1: ACKNOWLEDGED, deliveries: 1",
        "  record 2: ACQUIRED, deliveries: 1, held by worker-2",
        "  record 3: AVAILABLE, deliveries: 0",
    ]
    assert {"SPSO", "SPEO", "acquired", "worker-2"} <= set(words(window.svg()))


def test_a_window_that_was_read_anew_has_no_acquired_records() -> None:
    lab = played("share-group", "broker-killed", 7, others=False)
    assert str(ShareWindow.of(lab.history)).splitlines() == [
        "The share partition: SPSO 1, SPEO 1",
        "  record 0: ACKNOWLEDGED, deliveries: 1",
        "  record 1: AVAILABLE, deliveries: 0",
    ]


def test_a_window_of_which_nothing_is_known_is_empty() -> None:
    assert str(ShareWindow.of(Lab(7).history)) == (
        "The share partition: SPSO 0, SPEO 0\n  record 0: AVAILABLE, deliveries: 0"
    )
