"""Long polling: held pulls, what wakes them, and what does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode, ResponseCode
from tests.broker.conftest import messages_of


def next_pass_ms(cluster: Any, period_ms: int = 5_000) -> float:
    """When the hold service passes next: its grid begins with the broker."""
    began = cluster.seen("BrokerStarted")[0]["ts_ms"]
    return began + ((cluster.now_ms - began) // period_ms + 1) * period_ms


def hold(client: Any, offset: int = 0, **more: Any) -> Any:
    return client.begin_pull("T", offset, suspend=True, **more)


def test_a_pull_that_finds_nothing_is_held_and_nothing_is_written(cluster: Any, client: Any) -> None:
    answer = hold(client)
    cluster.run(4_000)
    assert not answer.done
    (held,) = cluster.seen("PullHeld")
    assert (held["topic"], held["queue_id"], held["queue_offset"], held["hold_ms"]) == ("T", 0, 0, 15_000)
    assert len(cluster.broker.pull_request_hold_service.held()) == 1


def test_without_the_suspend_flag_it_is_answered_at_once(cluster: Any, client: Any) -> None:
    assert client.pull("T").code == ResponseCode.PULL_NOT_FOUND
    assert cluster.seen("PullHeld") == []


def test_a_message_wakes_it_within_milliseconds(cluster: Any, client: Any) -> None:
    answer = hold(client)
    cluster.run(1_000)
    sent_ms = cluster.now_ms
    client.send("T", b"wake")
    response = cluster.world.wait_for(answer)
    assert cluster.now_ms - sent_ms < 5
    assert [m.body for m in messages_of(response)] == [b"wake"]
    (woken,) = cluster.seen("PullWoken")
    assert woken["reason"] == "arrived"


def test_a_message_on_another_queue_wakes_nobody(cluster: Any, client: Any) -> None:
    cluster.topic("T", 2)
    answer = hold(client)
    client.send("T", queue_id=1)
    cluster.run(1_000)
    assert not answer.done


def test_a_held_request_keeps_its_filter(cluster: Any, client: Any) -> None:
    answer = hold(client, subscription="TagB")
    client.send("T", b"1", properties={"TAGS": "TagA"})
    cluster.run(100)
    assert not answer.done
    client.send("T", b"2", properties={"TAGS": "TagB"})
    cluster.run(100)
    assert [m.body for m in messages_of(answer.result())] == [b"2"]


def test_a_tag_with_the_same_hash_wakes_it_for_the_client_to_decide(cluster: Any, client: Any) -> None:
    answer = hold(client, subscription="Aa")
    client.send("T", b"1", properties={"TAGS": "BB"})
    cluster.run(100)
    assert [m.body for m in messages_of(answer.result())] == [b"1"]


def test_a_pass_wakes_it_for_messages_that_its_filter_will_drop(cluster: Any, client: Any) -> None:
    answer = hold(client, subscription="TagB")
    client.send("T", properties={"TAGS": "TagA"})
    due_ms = next_pass_ms(cluster)
    cluster.run(due_ms - 10 - cluster.now_ms)
    assert not answer.done
    cluster.run(20)
    assert answer.result().code == ResponseCode.PULL_RETRY_IMMEDIATELY
    assert answer.result().header_as(h.PullMessageResponseHeader).next_begin_offset == 1


@pytest.mark.parametrize("wait_ms", [100, 1_700, 3_400])
def test_the_time_of_15_s_is_noticed_by_the_next_pass_only(cluster: Any, client: Any, wait_ms: int) -> None:
    cluster.run(next_pass_ms(cluster) + wait_ms - cluster.now_ms)
    began_ms = cluster.now_ms
    response = cluster.world.wait_for(hold(client))
    held_ms = cluster.now_ms - began_ms
    assert (response.code, response.remark) == (ResponseCode.PULL_NOT_FOUND, "NO_MATCHED_LOGIC_QUEUE")
    assert held_ms == pytest.approx(20_000 - wait_ms, abs=2)
    assert cluster.seen("PullWoken")[-1]["reason"] == "timed out"


def test_a_pull_right_after_a_pass_is_held_for_20_s(cluster: Any, client: Any) -> None:
    cluster.world.wait_for(hold(client))
    began_ms = cluster.now_ms
    cluster.world.wait_for(hold(client))
    assert cluster.now_ms - began_ms == pytest.approx(20_000, abs=2)


def test_a_woken_request_is_never_held_again(cluster: Any, client: Any) -> None:
    cluster.world.wait_for(hold(client))
    assert len(cluster.seen("PullHeld")) == 1
    assert [event["first_pass"] for event in cluster.seen("PullReceived")] == [True, False]


def test_the_progress_is_committed_on_the_first_pass_only(cluster: Any, client: Any) -> None:
    answer = hold(client, commit=True, commit_offset=3)
    cluster.run(100)
    assert cluster.broker.consumer_offset_manager.query_offset("G", "T", 0) == 3
    client.heartbeat()
    client.call(RequestCode.UPDATE_CONSUMER_OFFSET, h.UpdateConsumerOffsetRequestHeader("G", "T", 0, 9))
    client.send("T")
    cluster.run(100)
    assert answer.done
    assert cluster.broker.consumer_offset_manager.query_offset("G", "T", 0) == 9


def test_many_requests_for_one_queue_are_all_woken(cluster: Any) -> None:
    clients = [cluster.client() for _ in range(5)]
    answers = [hold(client) for client in clients]
    cluster.run(10)
    clients[0].send("T")
    cluster.run(10)
    assert [answer.result().code for answer in answers] == [0] * 5


def test_the_answer_for_a_client_that_is_gone_is_dropped(cluster: Any, client: Any) -> None:
    other = cluster.client()
    hold(client)
    cluster.run(10)
    cluster.do("crash", node=client.node.name)
    cluster.run(10)
    assert other.send("T").code == 0
    cluster.run(10)
    assert cluster.broker.pull_request_hold_service.held() == []


def test_the_passes_keep_their_rhythm_and_cost_nothing_without_held_requests(cluster: Any, client: Any) -> None:
    cluster.run(60_000)
    assert cluster.seen("HeldPullsChecked") == []
    cluster.world.wait_for(hold(client))
    began = cluster.seen("BrokerStarted")[0]["ts_ms"]
    for event in cluster.seen("HeldPullsChecked"):
        assert (event["ts_ms"] - began) % 5_000 == pytest.approx(0, abs=0.001)
    count = len(cluster.seen("HeldPullsChecked"))
    cluster.run(60_000)
    assert len(cluster.seen("HeldPullsChecked")) == count


# -- short polling --------------------------------------------------------------------------------------------------


def test_with_long_polling_off_a_pull_is_held_for_one_to_two_seconds(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(long_polling_enable=False)
    cluster.topic("T")
    client = cluster.client()
    cluster.run(next_pass_ms(cluster, 1_000) + 400 - cluster.now_ms)
    began_ms = cluster.now_ms
    cluster.world.wait_for(hold(client))
    assert cluster.now_ms - began_ms == pytest.approx(1_600, abs=2)
    again_ms = cluster.now_ms
    cluster.world.wait_for(hold(client))
    assert cluster.now_ms - again_ms == pytest.approx(2_000, abs=2)


def test_with_long_polling_off_a_message_waits_for_the_next_pass(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(long_polling_enable=False)
    cluster.topic("T")
    client = cluster.client()
    cluster.run(next_pass_ms(cluster, 1_000) + 300 - cluster.now_ms)
    answer = hold(client)
    client.send("T")
    cluster.run(600)
    assert not answer.done
    cluster.run(120)
    assert answer.result().code == 0


def test_a_crash_forgets_what_is_held(cluster: Any, client: Any) -> None:
    hold(client)
    cluster.run(100)
    cluster.restart(100)
    assert cluster.broker.pull_request_hold_service.held() == []
