"""The charts of a world: numbers that are those of the world's own tables, and pictures that follow it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from mqlab import Lab
from mqlab.errors import LearnerError
from mqlab.scenarios import get
from mqlab_widgets.world_charts import MOST, OTHERS, WorldCharts
from mqlab_widgets.world_numbers import FIRST_WIDTH_US, MOST_INTERVALS, WorldNumbers
from tests.worlds import played, send, shop, started_consumer, started_producer


@pytest.fixture(scope="module")
def slow() -> Lab:
    """One consumer that needs 100 ms for a message, in a queue of which it may hold 20."""
    return played("held-back-by-count", 4)


def numbers_of(lab: Lab) -> WorldNumbers:
    numbers = WorldNumbers(lab)
    numbers.follow()
    return numbers


def to_the_end_of_an_interval(lab: Lab) -> WorldNumbers:
    """Numbers whose last interval ends now."""
    numbers = numbers_of(lab)
    lab.run_for(ms=((len(numbers.intervals) + 1) * numbers.width_us - lab.world.now_us) / 1_000)
    numbers.follow()
    return numbers


# -- numbers --------------------------------------------------------------------------------------------------------


def consumed_by(lab: Lab) -> int:
    """Up to which offset of the only queue the only consumer has come, as it knows itself."""
    offsets = lab.processes["consumer-1"].clients[0][0].impl.offset_store.clone_offset_table("Orders")
    return next(iter(offsets.values()))


def test_backlog_and_what_is_in_flight_are_those_of_the_worlds_tables(slow: Lab) -> None:
    numbers = to_the_end_of_an_interval(slow)
    last = numbers.intervals[-1]
    broker = slow.brokers[0].running()
    committed = broker.consumer_offset_manager.query_offset("readers", "Orders", 0)
    end = broker.message_store.find_consume_queue("Orders", 0).max_offset_in_queue
    consumer = slow.processes["consumer-1"].clients[0][0]
    assert last.backlog == {"readers": end - consumed_by(slow)}
    assert last.unnoted == {"readers": consumed_by(slow) - committed}
    assert last.unnoted["readers"] > 0
    assert last.in_flight == {"readers": sum(queue.msg_count for queue in consumer.process_queues.values())}
    assert last.in_flight["readers"] > 20


def test_lag_is_the_age_of_the_oldest_message_that_is_not_consumed(slow: Lab) -> None:
    numbers = to_the_end_of_an_interval(slow)
    came = slow.history.last("MessageDispatched", topic="Orders", queue_offset=consumed_by(slow))
    assert came is not None
    now_ms = numbers.end_s(len(numbers.intervals) - 1) * 1_000
    assert numbers.intervals[-1].lag_ms["readers"] == pytest.approx(now_ms - came.ts_ms)


def test_when_all_is_consumed_there_is_no_lag_although_the_broker_does_not_know_yet() -> None:
    lab = played("held-back-by-count", 17)
    last = to_the_end_of_an_interval(lab).intervals[-1]
    assert consumed_by(lab) == 150
    assert (last.backlog, last.lag_ms, last.unnoted) == ({"readers": 0}, {"readers": 0}, {"readers": 16})


def test_what_a_killed_consumer_had_not_committed_waits_again() -> None:
    lab = played("held-back-by-count", 17)
    lab.crash("consumer-1")
    last = to_the_end_of_an_interval(lab).intervals[-1]
    assert (last.backlog, last.unnoted) == ({"readers": 16}, {"readers": 0})


def test_the_lag_of_many_queues_is_that_of_the_oldest_of_their_messages() -> None:
    lab = get("rebalance").build(7)
    numbers = WorldNumbers(lab)
    for _ in range(20):
        lab.run_for(ms=500)
        numbers.follow()
        now_us = lab.world.now_us
        came = {(r.topic, r.queue_id, r.queue_offset): r.ts_us for r in lab.history.find("MessageDispatched")}
        for progress in numbers._groups.values():
            ends = {queue: log.end for queue, log in numbers._logs.items()}
            at = {queue: progress.consumed(queue) for queue in progress.waiting}
            waits = [now_us - came[(*queue[1:], at[queue])] for queue in at if ends.get(queue, 0) > at[queue]]
            assert progress.lag_us(now_us) == max(waits, default=0)
            assert progress.backlog == sum(max(0, ends.get(queue, 0) - at[queue]) for queue in at)


def test_nothing_is_counted_twice_or_left_out_when_intervals_become_one() -> None:
    lab = played("rebalance", 20)
    numbers = to_the_end_of_an_interval(lab)
    assert numbers.width_us > FIRST_WIDTH_US
    assert MOST_INTERVALS / 2 <= len(numbers.intervals) < MOST_INTERVALS
    assert sum(at.stored for at in numbers.intervals) == sum(1 for _ in lab.history.find("MessageStored"))
    assert sum(at.consumed for at in numbers.intervals) == sum(
        record.messages for record in lab.history.find("ConsumeStarted")
    )
    held = [record.held_us / 1_000 for record in lab.history.find("PullWoken", reason="arrived")]
    assert max(at.held_ms.get("arrived", 0) for at in numbers.intervals) == max(held)


def test_following_in_steps_and_reading_at_once_give_the_same() -> None:
    lab = get("rebalance").build(7)
    followed = WorldNumbers(lab)
    for _ in range(40):
        lab.run_for(ms=333)
        followed.follow()
    at_once = numbers_of(lab)
    assert followed.width_us == at_once.width_us
    assert followed.intervals == at_once.intervals


def test_a_long_silence_takes_few_intervals() -> None:
    lab = Lab(seed=1)
    lab.name_server()
    lab.run_for(seconds=86_400)
    assert len(numbers_of(lab).intervals) < MOST_INTERVALS


# -- pictures -------------------------------------------------------------------------------------------------------


def test_the_static_charts_have_titles_units_and_the_groups_name(slow: Lab) -> None:
    shown = WorldCharts(slow)._repr_mimebundle_()
    said = {node.text for node in ET.fromstring(shown["image/svg+xml"]).iter("{http://www.w3.org/2000/svg}text")}
    assert {"Throughput", "messages a second", "lag, s", "time of the world, s", "readers", "stored"} <= said
    assert "<script" not in shown["image/svg+xml"]
    assert shown["text/plain"].startswith("up to 4")
    assert "  readers: now " in shown["text/plain"]


def test_a_world_in_which_nothing_happened_has_charts_too() -> None:
    charts = WorldCharts(Lab())
    assert "nothing yet" in str(charts)
    assert ET.fromstring(charts.svg()).tag.endswith("svg")


def test_more_groups_than_colours_share_the_last_line() -> None:
    lab = shop(seed=2, topic="Orders")
    for number in range(MOST + 2):
        started_consumer(lab, lambda messages, context: None, group=f"group-{number}", topic="Orders")
    send(started_producer(lab), b"x", topic="Orders")
    lab.run_for(seconds=12)
    backlog = WorldCharts(lab).charts()[1]
    assert list(backlog.series) == [*(f"group-{number}" for number in range(MOST - 1)), OTHERS]


def test_something_else_than_a_lab_is_told() -> None:
    with pytest.raises(LearnerError, match=r"WorldCharts\(lab\)"):
        WorldCharts("lab")  # type: ignore[arg-type]


# -- live -----------------------------------------------------------------------------------------------------------


class FrontEnd:
    """A front end's side of live charts."""

    def __init__(self, lab: Lab) -> None:
        self.widget = WorldCharts(lab).live()
        self.sent: list[Any] = []
        self.widget.send = lambda content, buffers=None: self.sent.append(content)

    def tell(self, **content: str) -> Any:
        self.widget._handle_custom_msg(content, [])
        return self.sent.pop() if self.sent else None


def names_in(item: Any) -> Iterator[str]:
    """Every `name` of a model in a nested structure."""
    if isinstance(item, dict):
        if isinstance(item.get("name"), str):
            yield item["name"]
        for value in item.values():
            yield from names_in(value)
    elif isinstance(item, list):
        for value in item:
            yield from names_in(value)


def test_new_numbers_go_to_sources_that_the_figure_has() -> None:
    lab = get("rebalance").build(7)
    front_end = FrontEnd(lab)
    figure = front_end.tell(ask="figure")["figure"]
    front_end.tell(do="shown")
    lab.run_for(seconds=2)
    front_end.widget._pump.send()
    frame = front_end.widget.frame
    known = set(names_in(figure))
    assert {*frame, *(f"{source} name" for source in frame)} <= known
    throughput = frame["Throughput 0"]
    assert throughput["name"] == "stored"
    assert throughput["data"]["x"][-1] == pytest.approx(lab.now_ms / 1_000, abs=0.3)


def test_charts_that_no_page_shows_are_not_drawn_while_the_world_plays() -> None:
    lab = get("rebalance").build(7)
    widget = WorldCharts(lab).live()
    lab.run_for(seconds=5)
    assert widget._pump.sent == 0


def test_charts_that_a_page_shows_follow_a_cell_that_plays_but_not_with_every_event() -> None:
    lab = get("rebalance").build(7)
    front_end = FrontEnd(lab)
    front_end.tell(do="shown")
    before = len(lab.history)
    lab.run_for(seconds=5)
    assert 1 <= front_end.widget._pump.sent <= (len(lab.history) - before) / 256


def test_the_live_charts_have_the_static_ones_beside_them(slow: Lab) -> None:
    charts = WorldCharts(slow)
    data, _ = charts.live()._repr_mimebundle_()
    assert data["image/svg+xml"] == charts.svg()
    assert data["text/plain"] == f"live: {charts}"
    assert "application/vnd.jupyter.widget-view+json" in data
