"""The rhythm of MQPullConsumerScheduleService, beside that of a real RocketMQ 5.3.3."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from mqlab.client import PullTaskContext

SENT_AT_MS = (3_000, 4_500, 6_000)
Played = dict[str, Any]


def play(stage: Any, phase_ms: int, next_delay_ms: int | None) -> Played:
    """What was done to the real one: a task that pulls 32, three messages, and a shutdown after 10 s."""
    scene = stage(queues=2, phase_ms=phase_ms)
    service = scene.lab.pull_schedule_service("G", node="S")
    tasks: list[tuple[float, int, int]] = []
    results: list[tuple[float, int, str, int, int]] = []

    async def task(queue: Any, context: PullTaskContext) -> None:
        consumer = context.pull_consumer
        offset = max(0, await consumer.fetch_consume_offset(queue, False))
        tasks.append((scene.now_ms, queue.queue_id, offset))
        result = await consumer.pull(queue, "*", offset, 32)
        found = len(result.msg_found_list)
        results.append((scene.now_ms, queue.queue_id, str(result.pull_status), found, result.next_begin_offset))
        await consumer.update_consume_offset(queue, result.next_begin_offset)
        if next_delay_ms is not None:
            context.set_pull_next_delay_time_millis(next_delay_ms)

    service.register_pull_task_callback("T", task)
    scene.lab.run(service.start())
    returned_ms = scene.now_ms
    producer = scene.producer()
    for number, at_ms in enumerate(SENT_AT_MS):
        scene.at(at_ms)
        scene.send(producer, f"m{number}", queue_id=number % 2)
    scene.at(10_000 - 200)
    requests = len(scene.sequence("S"))
    scene.lab.run(service.shutdown())
    last = scene.sequence("S")[requests:]
    return {"scene": scene, "returned_ms": returned_ms, "tasks": tasks, "results": results, "last": last}


def tasks_of(run: list[Any], queue_id: int) -> list[int]:
    """The offsets with which the recorded tasks of a queue began, each once."""
    offsets = [event["offset"] for event in run if event["event"] == "pull_task" and event["queueId"] == queue_id]
    return sorted(set(offsets))


def distances(played: Played) -> list[float]:
    """From the end of each task to the beginning of the next one of the same queue, ms."""
    scene = played["scene"]
    found = []
    for queue_id in (0, 1):
        ends = [event["t_ms"] for event in scene.events("PullTaskFinished", queue_id=queue_id)]
        starts = [event["t_ms"] for event in scene.events("PullTaskStarted", queue_id=queue_id)][1:]
        found += [round(start - end, 3) for end, start in zip(ends, starts, strict=False)]
    return found


def test_the_first_task_comes_with_the_first_rebalance_a_second_after_the_start(
    stage: Any, recorded: Any, smallest: Any, phase_ms: int
) -> None:
    real = smallest(recorded("pull-schedule.default"), "start returned -> first task")
    played = play(stage, phase_ms, None)
    first_ms = played["tasks"][0][0] - played["returned_ms"]
    assert 1_000 <= first_ms <= real + 60
    assert {queue_id for _, queue_id, _ in played["tasks"][:2]} == {0, 1}, "both queues begin at once"


def test_a_task_comes_again_200_ms_after_its_end(stage: Any, recorded: Any, smallest: Any, phase_ms: int) -> None:
    real = smallest(recorded("pull-schedule.default"), "end of a task")
    gaps = distances(play(stage, phase_ms, None))
    assert len(gaps) > 60
    assert set(gaps) == {200.0}
    assert real == pytest.approx(200, abs=5)


def test_a_task_that_asks_for_1000_ms_comes_again_after_these(
    stage: Any, recorded: Any, smallest: Any, phase_ms: int
) -> None:
    real = smallest(recorded("pull-schedule.next-1000"), "end of a task")
    gaps = distances(play(stage, phase_ms, 1_000))
    assert set(gaps) == {1_000.0}
    assert real == pytest.approx(1_000, abs=5)


@pytest.mark.parametrize(
    ("name", "next_delay_ms"), [("pull-schedule.default", None), ("pull-schedule.next-1000", 1_000)]
)
def test_the_pulls_are_those_of_the_real_one(stage: Any, recorded: Any, name: str, next_delay_ms: int | None) -> None:
    """Each message is found once, in its queue, and the offsets follow; no pull commits or waits at the broker."""
    played = play(stage, 0, next_delay_ms)
    found = [(queue_id, number, next_offset) for _, queue_id, _, number, next_offset in played["results"] if number]
    assert found == [(0, 1, 1), (1, 1, 1), (0, 1, 2)]
    statuses = {status for _, _, status, _, _ in played["results"]}
    for run in recorded(name)["runs"]:
        real = [(e["queueId"], e["found"], e["next"]) for e in run if e["event"] == "pull_result" and e["found"]]
        assert real == found[: len(real)]
        assert {e["status"] for e in run if e["event"] == "pull_result"} == statuses
        assert {e["sysFlag"] for e in run if e.get("name") == "PULL_MESSAGE" and "sysFlag" in e} == {4}
        assert {e["commitOffset"] for e in run if e.get("name") == "PULL_MESSAGE" and "sysFlag" in e} == {0}
    assert {(e["sys_flag"], e["commit_offset"]) for e in played["scene"].events("PullRequested")} == {(4, 0)}


def test_a_message_waits_for_the_next_turn_of_its_queue(stage: Any, phase_ms: int) -> None:
    """The price of pulling in a rhythm: up to 200 ms, or up to a second, where a held pull brings it at once."""
    for next_delay_ms in (200, 1_000):
        played = play(stage, phase_ms, next_delay_ms)
        arrived = [at_ms for at_ms, _, _, number, _ in played["results"] if number]
        waits = [came - sent for sent, came in zip(SENT_AT_MS, arrived, strict=True)]
        assert all(0 < wait <= next_delay_ms + 10 for wait in waits)


def test_the_requests_come_in_the_recorded_order(stage: Any, recorded: Any) -> None:
    """Route, members, one question for the offset of each queue, and then pulls alone: the offset is in memory."""
    played = play(stage, 0, 1_000)
    quiet = ("HEART_BEAT", "UNREGISTER_CLIENT")
    ours = [name for name in played["scene"].sequence("S") if name not in quiet]
    for run in recorded("pull-schedule.next-1000")["runs"]:
        real = [event["name"] for event in run if event["event"] == "request"]
        assert ours[:4] == real[:4]
        assert set(ours) == set(real)
        assert ours.count("QUERY_CONSUMER_OFFSET") == real.count("QUERY_CONSUMER_OFFSET") == 2


def test_the_broker_knows_no_offset_of_a_new_group(stage: Any, recorded: Any) -> None:
    played = play(stage, 0, None)
    answers = played["scene"].lab.history.find("ResponseReceived", node="S", response_name="QUERY_NOT_FOUND")
    assert len(list(answers)) == 2
    for run in recorded("pull-schedule.default")["runs"]:
        codes = [e["code"] for e in run if e["event"] == "response" and e["name"] == "QUERY_CONSUMER_OFFSET"]
        assert codes == [22, 22]


def test_the_shutdown_tells_the_offset_of_each_queue(stage: Any, recorded: Any) -> None:
    played = play(stage, 0, 1_000)
    assert played["last"] == ["UPDATE_CONSUMER_OFFSET"] * 2 + ["UNREGISTER_CLIENT"] * 2
    told = {(e["queue_id"], e["queue_offset"]) for e in played["scene"].events("OffsetPersisted", node="S")}
    for run in recorded("pull-schedule.next-1000")["runs"]:
        real = {
            (e["queueId"], e["commitOffset"])
            for e in run
            if e["event"] == "request" and e["name"] == "UPDATE_CONSUMER_OFFSET"
        }
        assert real == {(0, 2), (1, 1)}
        assert real <= told


def test_the_client_id_says_stream(stage: Any, recorded: Any) -> None:
    played = play(stage, 0, None)
    ids = {e["client_id"] for e in played["scene"].events("ClientStarted", role="consumer")}
    assert all(client_id.endswith("@STREAM") for client_id in ids)
    for run in recorded("pull-schedule.default")["runs"]:
        members = [e["members"] for e in run if e.get("name") == "GET_CONSUMER_LIST_BY_GROUP" and "members" in e]
        assert members[0] == ["S@STREAM"]


def test_the_recorded_tasks_never_go_back(recorded: Any) -> None:
    """What the comparison rests on: in the recording the offsets of a queue only grow."""
    for name in ("pull-schedule.default", "pull-schedule.next-1000"):
        for run in recorded(name)["runs"]:
            for queue_id in (0, 1):
                assert all(b - a == 1 for a, b in pairwise(tasks_of(run, queue_id)))
