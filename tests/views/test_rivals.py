"""The rivals of long polling: measured on one load, they stand to each other as theory says."""

from __future__ import annotations

from functools import cache
from xml.etree import ElementTree as ET

import pytest

from mqlab import scenarios
from mqlab.errors import LearnerError
from mqlab.scenarios.rivals import WAYS, arrival, measure
from mqlab.views import Rival, RivalsChart

SECONDS = {"busy": 3}
SEEDS = (1, 2, 3)


@cache
def measured(way: str, seed: int = 1, interval_ms: int = 1_000, rate: int = 60, queues: int = 1) -> Rival:
    seconds = SECONDS.get(way, 60)
    return measure(way, seed, seconds=seconds, interval_ms=interval_ms, rate_per_minute=rate, queues=queues)


# -- the order of the rivals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_long_polling_is_as_prompt_as_busy_pull_and_asks_a_thousand_times_less(seed: int) -> None:
    long, busy = measured("long", seed), measured("busy", seed)
    assert long.p95_ms <= 3
    assert busy.p95_ms <= 3
    assert busy.requests_per_minute > 1_000 * long.requests_per_minute


@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_of_the_rivals(seed: int) -> None:
    by_delay = sorted(("interval", "short", "long"), key=lambda way: measured(way, seed).median_ms)
    assert by_delay[0] == "long"
    by_requests = sorted(WAYS, key=lambda way: measured(way, seed, rate=20).requests_per_minute)
    assert by_requests == ["long", "short", "interval", "busy"]
    assert measured("short", seed).p95_ms <= 1_010, "the pass that wakes comes every second"


@pytest.mark.parametrize("interval_ms", [100, 1_000, 5_000])
def test_an_interval_costs_half_of_itself_in_delay(interval_ms: int) -> None:
    rival = measured("interval", 1, interval_ms)
    assert 0.3 * interval_ms <= rival.median_ms <= 0.7 * interval_ms
    assert rival.p95_ms <= interval_ms + 10
    assert rival.requests_per_minute == pytest.approx(60_000 / interval_ms, rel=0.05)


@pytest.mark.parametrize("seed", SEEDS)
def test_long_polling_asks_once_for_each_message_and_hardly_ever_in_vain(seed: int) -> None:
    rival = measured("long", seed)
    assert rival.requests - rival.empty_answers == len(rival.delays_ms)
    assert rival.empty_per_minute <= 4


def test_when_nothing_comes_long_polling_asks_three_or_four_times_a_minute() -> None:
    assert 3 <= measured("long", rate=1).requests <= 5


def test_when_much_comes_an_interval_asks_less_and_is_no_later_than_before() -> None:
    long, interval = measured("long", rate=6_000), measured("interval", rate=6_000)
    assert interval.requests_per_minute < 62
    assert long.requests_per_minute > 3_000
    assert interval.median_ms > 300
    assert long.median_ms < 3


def test_each_queue_is_asked_for_itself() -> None:
    one, four = measured("interval"), measured("interval", queues=4)
    assert four.requests_per_minute == pytest.approx(4 * one.requests_per_minute, rel=0.05)


# -- measuring ------------------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_numbers() -> None:
    assert measure("short", 4, seconds=20) == measure("short", 4, seconds=20)
    assert measure("short", 4, seconds=20) != measure("short", 5, seconds=20)


@pytest.mark.parametrize("way", WAYS)
def test_the_scenario_is_the_same_world_with_either_wire(way: str) -> None:
    scenario = scenarios.get("rivals")
    objects, frames = (
        scenario.play(5, seconds=1.5, wire=wire, parameters={"way": way}) for wire in ("objects", "bytes")
    )
    assert objects.trace_hash() == frames.trace_hash()


def test_a_recorded_world_gives_what_a_watched_one_gives() -> None:
    lab = scenarios.get("rivals").build(6)
    begin_ms = lab.now_ms
    lab.run_for(seconds=20)
    read = Rival.of("long polling", lab.history, "Orders", begin_ms, lab.now_ms)
    assert read._replace(family="long polling") == measure("long", 6, seconds=20)


def test_all_messages_are_accounted_for() -> None:
    rival = measured("interval", 1, 5_000)
    assert rival.waiting + len(rival.delays_ms) > 40
    assert list(rival.delays_ms) == sorted(rival.delays_ms)
    assert rival.median_ms == rival.within_ms(0.5) <= rival.p95_ms <= rival.delays_ms[-1]


def test_wrong_parameters_are_told() -> None:
    with pytest.raises(LearnerError, match="way='pigeon' is none of the words"):
        measure("pigeon")
    with pytest.raises(LearnerError, match="interval_ms=0 is too small"):
        measure("interval", interval_ms=0)
    with pytest.raises(LearnerError, match="delivered nothing"):
        _ = Rival("idle", 1_000, 3, 3, ()).median_ms


# -- the picture ----------------------------------------------------------------------------------------------------


def marks(root: ET.Element) -> list[tuple[float, float]]:
    """The middles of the marks, in the order of the rivals."""
    corners = [
        [tuple(map(float, corner.split(","))) for corner in mark.get("points", "").split()]
        for mark in root.iter("{http://www.w3.org/2000/svg}polygon")
    ]
    return [(sum(x for x, _ in at) / len(at), sum(y for _, y in at) / len(at)) for at in corners]


def test_the_picture_names_every_rival_its_axes_and_units() -> None:
    rivals = [measured("interval", 1, ms) for ms in (100, 1_000, 5_000)] + [measured("short"), measured("long")]
    chart = RivalsChart(rivals, "Who is late, and who asks too often")
    root = ET.fromstring(chart.svg())
    words = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert words[0] == "Who is late, and who asks too often"
    assert {"pull every 100 ms", "pull every 1 s", "pull every 5 s", "short polling", "long polling"} <= set(words)
    assert any("requests per minute" in str(word) for word in words)
    assert any("delay, ms" in str(word) for word in words)
    assert len(marks(root)) == 5


def test_a_rival_to_the_right_asks_more_and_a_higher_one_is_later() -> None:
    rivals = [measured("interval", 1, 100), measured("interval", 1, 5_000)]
    root = ET.fromstring(RivalsChart(rivals).svg())
    often, rare = marks(root)
    assert often[0] > rare[0]
    assert often[1] > rare[1], "y grows downwards"


def test_a_mark_that_would_hide_another_is_smaller() -> None:
    one = measured("long")
    root = ET.fromstring(RivalsChart([one, one._replace(name="its twin")]).svg())
    widths = [
        max(float(corner.split(",")[0]) for corner in mark.get("points", "").split()) - middle[0]
        for mark, middle in zip(root.iter("{http://www.w3.org/2000/svg}polygon"), marks(root), strict=True)
    ]
    assert widths[1] < widths[0] / 1.5


def test_the_text_twin_has_the_same_numbers() -> None:
    rival = measured("long")
    assert f"{round(rival.requests_per_minute)}" in str(RivalsChart([rival]))
    assert "long polling" in str(RivalsChart([rival]))
    with pytest.raises(LearnerError, match="no rival"):
        RivalsChart([])


# -- what an arrival costs ------------------------------------------------------------------------------------------


def test_an_arrival_costs_the_same_however_many_other_queues_are_waited_for() -> None:
    alone, spread = arrival(pulls=1, queues=1, seed=3), arrival(pulls=500, queues=500, seed=3)
    assert spread.slices == alone.slices
    assert spread.answers_ms == alone.answers_ms
    assert (alone.still_held, spread.still_held) == (0, 499)


def test_an_arrival_wakes_everybody_who_waits_for_its_queue() -> None:
    alone, crowded = arrival(pulls=1, queues=1, seed=3), arrival(pulls=500, queues=1, seed=3)
    assert len(crowded.answers_ms) == 500
    assert crowded.still_held == 0
    assert crowded.slices > 500 * 2
    assert crowded.answers_ms[-1] > alone.answers_ms[-1]


def test_a_pull_for_each_queue_is_needed() -> None:
    with pytest.raises(LearnerError, match="2 pulls cannot wait for 3 queues"):
        arrival(pulls=2, queues=3)
