"""The picture of pull tasks: when each ran, what it brought, and when it ended for good."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import pytest

from mqlab import Lab
from mqlab.errors import LearnerError
from mqlab.views import TaskRuns
from tests.worlds import send, shop, started_producer


def two_queues() -> Lab:
    return shop(topic="Orders", queues=2)


def service(lab: Lab, ms_each: int = 100, raises: bool = False) -> Any:
    made = lab.pull_schedule_service("readers")

    async def task(queue: Any, context: Any) -> None:
        consumer = context.pull_consumer
        offset = max(0, await consumer.fetch_consume_offset(queue, False))
        result = await consumer.pull(queue, "*", offset, 32)
        if raises:
            raise ValueError("no")
        await context.sleep(ms_each * len(result.msg_found_list))
        await consumer.update_consume_offset(queue, result.next_begin_offset)

    made.register_pull_task_callback("Orders", task)
    lab.run(made.start())
    return made


def order(lab: Lab, count: int) -> None:
    send(started_producer(lab, "till"), *(f"order {number}" for number in range(count)), topic="Orders")


def test_each_run_is_a_bar_with_what_it_brought() -> None:
    lab = two_queues()
    order(lab, 6)
    began_ms = lab.now_ms
    service(lab)
    lab.run_for(seconds=2)
    seen = TaskRuns.of(lab.history, start_ms=began_ms, end_ms=lab.now_ms)
    assert list(seen.runs) == [("consumer-1", "broker-a", 0), ("consumer-1", "broker-a", 1)]
    first, second, *_ = seen.runs["consumer-1", "broker-a", 0]
    assert (first.outcome, first.messages, second.outcome) == ("brought messages", 3, "found nothing")
    assert 300_000 <= first.end_us - first.begin_us < 302_000
    assert 200_000 <= second.begin_us - first.end_us < 200_100
    assert "brought messages (3)" in str(seen)
    svg = seen.svg()
    assert ET.fromstring(svg).tag.endswith("svg")
    assert ">consumer-1, queue 0<" in svg
    assert "time, ms" in svg
    assert seen._repr_mimebundle_()["text/plain"] == str(seen)


def test_a_failed_run_and_one_under_way_have_colours_of_their_own() -> None:
    lab = two_queues()
    began_ms = lab.now_ms
    service(lab, raises=True)
    with pytest.warns(UserWarning, match="raised ValueError: no"):
        lab.run_for(seconds=2)
    assert "failed" in str(TaskRuns.of(lab.history, start_ms=began_ms, end_ms=lab.now_ms))
    other = two_queues()
    order(other, 2)
    began_ms = other.now_ms
    service(other, ms_each=10_000)
    other.run_for(seconds=3)
    seen = TaskRuns.of(other.history, start_ms=began_ms, end_ms=other.now_ms, title="A slow one")
    assert [run.outcome for run in seen.runs["consumer-1", "broker-a", 0]] == ["still runs"]
    assert str(seen).startswith("A slow one\n")


def test_a_task_whose_queue_moves_ends_with_a_cross() -> None:
    lab = two_queues()
    service(lab)
    lab.run_for(seconds=2)
    joined_ms = lab.now_ms
    service(lab)
    lab.run_for(seconds=3)
    seen = TaskRuns.of(lab.history, zero_ms=joined_ms, start_ms=joined_ms - 500, end_ms=lab.now_ms)
    assert len(seen.ends["consumer-1", "broker-a", 1]) == 1
    assert "ended for good" in str(seen)
    assert "\u00d7 ended for good" in seen.svg()
    assert ("consumer-2", "broker-a", 1) in seen.runs


def test_a_stretch_without_tasks_is_refused() -> None:
    lab = two_queues()
    with pytest.raises(LearnerError, match="no pull task ran then"):
        TaskRuns.of(lab.history, start_ms=0, end_ms=lab.now_ms)
