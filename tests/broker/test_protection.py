"""How a broker protects itself: queues before threads, fast failure, a busy page cache, permissions, rejected requests.

What a producer makes of each of these answers stands in tests/client/test_send_answers.py.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from mqlab.broker import ServiceTimes
from mqlab.protocol.batch import encode_batch
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.message import Message
from mqlab.store import MessageExtBrokerInner, PutMessageStatus

BUSY = "broker busy, start flow control for a while"


def fill(cluster: Any, pool: Any, how_long_ms: float = 600_000) -> None:
    """Keep every thread of a pool busy."""
    while pool.busy < pool.threads:
        pool.submit(lambda: None, service_us=round(how_long_ms * 1_000))


def begin(cluster: Any, client: Any, name: str) -> Any:
    """A request that goes to the pool of that name."""
    if name == "send":
        return client.begin(RequestCode.SEND_MESSAGE_V2, client.send_header("T"), b"x")
    if name == "pull":
        return client.begin(RequestCode.PULL_MESSAGE, client.pull_header("T", 0))
    if name == "lite_pull":
        return client.begin(RequestCode.LITE_PULL_MESSAGE, client.pull_header("T", 0))
    if name == "heartbeat":
        # The limit is longer than the 30 s that the others wait.
        call = client.remoting.invoke_sync(
            cluster.broker_address, RemotingCommand.request(RequestCode.HEART_BEAT, None, b"{}"), 60_000
        )
        return client.node.spawn(call, "heartbeat").join()
    return client.begin(RequestCode.GET_BROKER_RUNTIME_INFO)


LIMITS_MS = {"send": 200, "pull": 5_000, "lite_pull": 5_000, "heartbeat": 31_000, "admin": 5_000}


@pytest.mark.parametrize("name", LIMITS_MS)
def test_each_queue_has_its_own_limit_and_the_first_pass_after_it_answers_busy(
    cluster: Any, client: Any, name: str
) -> None:
    client.send("T")
    cluster.run(2_000)
    pool = getattr(cluster.broker.executors, name)
    fill(cluster, pool)
    answer = begin(cluster, client, name)
    cluster.run(1)
    (job,) = pool.queue
    limit_ms = LIMITS_MS[name]
    due_ms = job.created_us / 1_000 + limit_ms
    cluster.world.run_to(round(due_ms * 1_000) - 1)
    assert not answer.done
    cluster.run(11)
    assert answer.result().code == ResponseCode.SYSTEM_BUSY
    (seen,) = cluster.seen("RequestTimedOutInQueue")
    assert due_ms <= seen["ts_ms"] < due_ms + 10
    waited_ms = int(seen["ts_ms"] - job.created_us / 1_000)
    assert answer.result().remark == (
        f"[TIMEOUT_CLEAN_QUEUE]{BUSY}, period in queue: {waited_ms}ms, size of queue: 0"
    )


def test_the_limits_of_the_pools_that_answer_transactions_and_acknowledgements_are_3_s(cluster: Any) -> None:
    executors = cluster.broker.executors
    limits = executors.wait_limits_ms()
    assert (limits[executors.end_transaction], limits[executors.ack]) == (3_000, 3_000)
    assert executors.query not in limits
    assert executors.consumer_manage not in limits


def test_the_limit_can_be_set_and_fast_failure_switched_off(make_cluster: Callable[..., Any]) -> None:
    for settings, after_ms in (
        ({"wait_time_mills_in_send_queue": 50}, 60),
        ({"broker_fast_failure_enable": False}, None),
    ):
        cluster = make_cluster(**settings)
        cluster.topic("T")
        client = cluster.client()
        client.send("T")
        cluster.run(2_000)
        fill(cluster, cluster.broker.executors.send)
        answer = begin(cluster, client, "send")
        cluster.run(after_ms + 5 if after_ms else 20_000)
        assert answer.done is (after_ms is not None)


def test_the_first_pass_comes_a_second_after_the_start(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster()
    started_ms = cluster.now_ms
    cluster.topic("T")
    client = cluster.client()
    fill(cluster, cluster.broker.executors.send)
    begin(cluster, client, "send")
    cluster.run(3_000)
    (seen,) = cluster.seen("RequestTimedOutInQueue")
    assert seen["ts_ms"] - started_ms > 900
    assert seen["waited_ms"] > 900
    cluster.run(3.3)
    begin(cluster, client, "send")
    cluster.run(300)
    later = cluster.seen("RequestTimedOutInQueue")[-1]
    assert (later["ts_ms"] - seen["ts_ms"]) % 10 == pytest.approx(0, abs=0.001)
    assert 200 <= later["waited_ms"] <= 210


def test_each_of_several_expired_requests_is_told_how_many_still_waited_behind_it(cluster: Any, client: Any) -> None:
    client.send("T")
    cluster.run(2_000)
    fill(cluster, cluster.broker.executors.send)
    answers = [begin(cluster, client, "send") for _ in range(3)]
    cluster.run(250)
    assert [answer.result().remark.rpartition(": ")[2] for answer in answers] == ["2", "1", "0"]


def test_a_one_way_request_that_waited_too_long_gets_an_answer_that_nobody_waits_for(cluster: Any, client: Any) -> None:
    client.send("T")
    cluster.run(2_000)
    fill(cluster, cluster.broker.executors.send)
    request = RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, client.send_header("T"), b"x")
    client.remoting.invoke_oneway(cluster.broker_address, request, 3_000)
    cluster.run(250)
    assert [row[7] for row in cluster.events].count("ResponseDropped") == 1


# -- a busy page cache ----------------------------------------------------------------------------------------------


def hold_put_lock(cluster: Any, ms: float = 600_000) -> Any:
    """On a disk that is slow from now on, a put gets the lock of the commit log and holds it for so long."""
    cluster.do("slow_disk", node="broker-a", ms=ms)
    pending = cluster.broker.message_store.put_message(MessageExtBrokerInner("T", b"slow"))
    cluster.run(0.001)
    return pending


def test_the_page_cache_is_busy_when_a_put_has_held_the_lock_for_more_than_a_second(cluster: Any, client: Any) -> None:
    put = hold_put_lock(cluster)
    cluster.run(999)
    assert not cluster.broker.message_store.is_os_page_cache_busy()
    cluster.run(2)
    assert cluster.broker.message_store.is_os_page_cache_busy()
    answer = client.send("T")
    assert (answer.code, answer.remark) == (
        ResponseCode.SYSTEM_BUSY,
        "[REJECTREQUEST]system busy, start flow control for a while",
    )
    assert client.pull("T").code != ResponseCode.SYSTEM_BUSY
    assert not put.done
    cluster.do("slow_disk", node="broker-a", ms=0)
    assert client.send("T").code == ResponseCode.SUCCESS
    assert put.result().is_ok


def test_after_ten_thousand_seconds_rocketmq_takes_the_lock_for_free(cluster: Any, client: Any) -> None:
    hold_put_lock(cluster, 20_000_000)
    cluster.run(9_999_990)
    assert cluster.broker.message_store.is_os_page_cache_busy()
    cluster.run(20)
    assert not cluster.broker.message_store.is_os_page_cache_busy()


def test_the_second_can_be_set(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster({"os_page_cache_busy_time_out_mills": 100})
    cluster.topic("T")
    hold_put_lock(cluster)
    cluster.run(102)
    assert cluster.client().send("T").code == ResponseCode.SYSTEM_BUSY


def test_while_the_page_cache_is_busy_the_whole_send_queue_is_answered_however_short_it_waited(
    cluster: Any, client: Any
) -> None:
    client.send("T")
    cluster.run(2_000)
    fill(cluster, cluster.broker.executors.send)
    fill(cluster, cluster.broker.executors.pull)
    hold_put_lock(cluster)
    cluster.run(995)
    sends = [begin(cluster, client, "send") for _ in range(2)]
    pull = begin(cluster, client, "pull")
    cluster.run(20)
    remarks = [answer.result().remark for answer in sends]
    assert all(remark.startswith(f"[PCBUSY_CLEAN_QUEUE]{BUSY}, period in queue: ") for remark in remarks)
    assert [remark.rpartition(": ")[2] for remark in remarks] == ["1", "0"]
    assert not pull.done


def test_a_request_that_had_its_thread_already_finds_the_page_cache_busy_in_the_store(
    make_cluster: Callable[..., Any],
) -> None:
    cluster = make_cluster(service_us=ServiceTimes(send=500_000))
    cluster.topic("T")
    client = cluster.client()
    hold_put_lock(cluster)
    cluster.run(800)
    answer = begin(cluster, client, "send")
    cluster.run(600)
    assert (answer.result().code, answer.result().remark) == (
        ResponseCode.SYSTEM_BUSY,
        f"[PC_SYNCHRONIZED]{BUSY}",
    )


def test_on_a_slow_disk_puts_go_one_by_one_and_each_keeps_its_thread(cluster: Any, client: Any) -> None:
    """Four threads put. The fifth request gets a thread after 150 ms; the others have waited too long by then."""
    client.send("T")
    cluster.run(2_000)
    cluster.do("slow_disk", node="broker-a", ms=150)
    answers = [begin(cluster, client, "send") for _ in range(7)]
    cluster.run(5)
    pool = cluster.broker.executors.send
    assert (pool.threads, pool.busy, len(pool.queue)) == (4, 4, 3)
    cluster.run(205)
    assert [answer.done for answer in answers] == [True, *[False] * 4, True, True]
    assert all(answer.result().remark.startswith(f"[TIMEOUT_CLEAN_QUEUE]{BUSY}") for answer in answers[5:])
    cluster.run(600)
    assert [answer.result().code for answer in answers[:5]] == [ResponseCode.SUCCESS] * 5
    held = cluster.seen("PutHeldLock")
    assert [(row["held_us"], row["waiting"]) for row in held] == [
        (150_000, 3), (150_000, 3), (150_000, 2), (150_000, 1), (150_000, 0),
    ]  # fmt: skip


def test_a_message_has_the_time_at_which_its_put_got_the_lock(cluster: Any) -> None:
    first = hold_put_lock(cluster, 700)
    began_ms = cluster.broker_node.now_ms()
    second = cluster.broker.message_store.put_message(MessageExtBrokerInner("T", b"second"))
    cluster.run(1_500)
    assert [put.result().store_timestamp - began_ms for put in (first, second)] == [0, 700]
    assert [put.result().logics_offset for put in (first, second)] == [0, 1]


def test_with_synchronous_flush_a_put_gives_its_thread_back_before_the_flush(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster({"flush_disk_type": "SYNC_FLUSH"})
    cluster.topic("T")
    client = cluster.client()
    client.send("T")
    cluster.do("slow_disk", node="broker-a", ms=900)
    answer = begin(cluster, client, "send")
    cluster.run(5)
    pool = cluster.broker.executors.send
    assert pool.busy == 1
    cluster.run(910)
    assert (pool.busy, answer.done) == (0, False)
    cluster.run(1_000)
    assert answer.result().code == ResponseCode.SUCCESS


def test_a_batch_waits_for_the_lock_as_a_message_does(cluster: Any, client: Any) -> None:
    client.send("T")
    cluster.do("slow_disk", node="broker-a", ms=400)
    header = client.send_header("T", batch=True)
    body = encode_batch([Message("T", b"a"), Message("T", b"b")])
    answer = client.begin(RequestCode.SEND_BATCH_MESSAGE, header, body)
    cluster.run(390)
    assert not answer.done
    cluster.run(20)
    assert answer.result().code == ResponseCode.SUCCESS
    assert cluster.broker.message_store.get_max_offset_in_queue("T", 0) == 3


def test_a_delayed_message_that_is_due_waits_for_the_lock_and_those_behind_it_with_it(
    cluster: Any, client: Any
) -> None:
    for _ in range(3):
        client.send("T", properties={"DELAY": "1"})
    cluster.do("slow_disk", node="broker-a", ms=2_000)
    cluster.run(2_500)
    assert cluster.seen("ParkedMessageDelivered") == []
    cluster.run(6_000)
    times = [round(row["ts_ms"]) for row in cluster.seen("ParkedMessageDelivered")]
    assert len(times) == 3
    assert [later - earlier for earlier, later in pairwise(times)] == [2_000, 2_000]


def test_what_waits_for_the_lock_when_the_store_is_closed_is_refused(cluster: Any) -> None:
    put = hold_put_lock(cluster, 700)
    cluster.broker.message_store.shutdown()
    cluster.run(1_000)
    assert put.result().status is PutMessageStatus.SERVICE_NOT_AVAILABLE


def test_who_pulls_what_no_longer_lies_in_memory_waits_for_a_slow_disk_with_a_thread(
    make_cluster: Callable[..., Any],
) -> None:
    cluster = make_cluster({"access_message_in_memory_max_ratio": 0})
    cluster.topic("T")
    client = cluster.client()
    for _ in range(3):
        client.send("T")
    cluster.run(10)
    cluster.do("slow_disk", node="broker-a", ms=300)
    answer = begin(cluster, client, "pull")
    cluster.run(290)
    assert (answer.done, cluster.broker.executors.pull.busy) == (False, 1)
    cluster.run(20)
    assert answer.result().code == ResponseCode.SUCCESS
    cluster.do("slow_disk", node="broker-a", ms=0)
    answer = begin(cluster, client, "pull")
    cluster.run(5)
    assert answer.result().code == ResponseCode.SUCCESS


# -- full queues ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "capacity"),
    [
        ("send", 10_000),
        ("pull", 100_000),
        ("lite_pull", 100_000),
        ("query", 20_000),
        ("client_manage", 1_000_000),
        ("consumer_manage", 1_000_000),
        ("heartbeat", 50_000),
        ("admin", 10_000),
        ("end_transaction", 100_000),
        ("load_balance", 100_000),
        ("ack", 100_000),
    ],
)
def test_how_many_requests_may_wait_before_each_pool(cluster: Any, name: str, capacity: int) -> None:
    assert getattr(cluster.broker.executors, name).capacity == capacity


def test_a_full_send_queue_is_overload_and_leaves_the_other_kinds_of_request_alone(
    make_cluster: Callable[..., Any],
) -> None:
    cluster = make_cluster(send_thread_pool_queue_capacity=2)
    cluster.topic("T")
    client = cluster.client()
    fill(cluster, cluster.broker.executors.send)
    answers = [begin(cluster, client, "send") for _ in range(4)]
    cluster.run(10)
    assert [answer.done and answer.result().remark for answer in answers] == [
        False,
        False,
        *["[OVERLOAD]system busy, start flow control for a while"] * 2,
    ]
    assert client.pull("T").code != ResponseCode.SYSTEM_BUSY


@pytest.mark.parametrize(("cores", "send", "pull", "heartbeat"), [(1, 1, 18, 1), (4, 4, 24, 4), (16, 4, 48, 16)])
def test_the_number_of_threads_follows_the_cores(cores: int, send: int, pull: int, heartbeat: int) -> None:
    from mqlab.broker import BrokerConfig, BrokerController
    from mqlab.sim import World

    world = World(1)
    node = world.node("broker-a", world.next_spec()._replace(cores=cores))
    executors = BrokerController(node, BrokerConfig()).executors
    assert (executors.send.threads, executors.pull.threads, executors.heartbeat.threads) == (send, pull, heartbeat)


# -- permissions ----------------------------------------------------------------------------------------------------


def test_a_broker_without_write_permission_says_so_to_ordered_topics_and_leaves_the_routes_to_the_others(
    cluster: Any, client: Any
) -> None:
    cluster.broker.broker_config.broker_permission = 4
    assert client.send("T").code == ResponseCode.SUCCESS
    cluster.broker.topic_config_manager.order_topics = {"T"}
    cluster.broker.topic_config_manager.topic_config_table["T"].order = True
    answer = client.send("T")
    assert (answer.code, answer.remark) == (
        ResponseCode.NO_PERMISSION,
        f"the broker[{cluster.broker.broker_ip}] sending message is forbidden",
    )


# -- a graceful stop ------------------------------------------------------------------------------------------------


def test_a_broker_may_answer_go_away_for_a_while_before_it_stops(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(enable_shutdown_gracefully=True, shutdown_wait_time_seconds=5)
    cluster.topic("T")
    client = cluster.client()
    client.send("T")
    stopping = cluster.broker.shutdown()
    stopping.start()
    cluster.run(100)
    answer = begin(cluster, client, "send")
    cluster.run(100)
    assert "GO_AWAY" in [row[14] for row in cluster.events if row[7] == "ResponseSent"]
    assert answer.done
    assert len(cluster.broker.remoting_server.channels) >= 1
    cluster.run(5_000)
    assert not cluster.broker.remoting_server.channels
