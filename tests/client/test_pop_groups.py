"""Groups that pop, with a whole broker: nobody owns a queue, so nobody starves one, and nothing is lost."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from mqlab.client import CONSUME_SUCCESS, RECONSUME_LATER, Message
from tests.worlds import slow

pytestmark = pytest.mark.queues(8)

GROUP_OF_NINE = [f"consumer-{number}" for number in range(9)]


def pops(cluster: Any, *names: str, **settings: Any) -> list[Any]:
    """Started consumers of the group G, all asking for messages."""
    consumers = [cluster.consumer(name, client_rebalance=False, **settings) for name in names]
    cluster.run_ms(3_000)
    return consumers


def send(cluster: Any, bodies: list[str], *, each_ms: float = 0) -> None:
    """Send messages one after the other, as one producer does."""
    producer = cluster.__dict__.get("sender") or cluster.__dict__.setdefault("sender", cluster.producer())
    for body in bodies:
        producer.send(Message("T", body.encode())).play()
        cluster.run_ms(each_ms)


def by_consumer(cluster: Any) -> Counter[str]:
    return Counter(delivery.consumer for delivery in cluster.delivered)


@pytest.fixture
def eight(cluster: Any) -> Any:
    """A topic of eight queues that the group G pops."""
    cluster.brokers["broker-a"].set_message_request_mode("T", "G", "POP")
    return cluster


# -- members --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("pop", "idle"), [(False, 1), (True, 0)])
def test_of_nine_consumers_on_eight_queues_one_idles_with_push_and_none_with_pop(
    eight: Any, pop: bool, idle: int
) -> None:
    for name in GROUP_OF_NINE:
        eight.consumer(name, client_rebalance=not pop)
    eight.run_ms(25_000)
    send(eight, [str(number) for number in range(45)], each_ms=5)
    eight.run_ms(1_000)
    assert sorted(eight.bodies, key=int) == [str(number) for number in range(45)]
    worked = by_consumer(eight)
    assert len(GROUP_OF_NINE) - len(worked) == idle
    if pop:
        assert set(worked.values()) == {5}, "each message wakes one who waits, the one that has waited longest"


def test_a_newcomer_pops_at_once_and_the_others_go_on_as_if_nothing_had_happened(eight: Any) -> None:
    pops(eight, "first")
    send(eight, [str(number) for number in range(100)], each_ms=20)
    eight.consumer("newcomer", client_rebalance=False)
    send(eight, [str(number) for number in range(100, 300)], each_ms=20)
    eight.run_ms(500)
    assert len(eight.bodies) == 300
    gaps = [b.at_ms - a.at_ms for a, b in zip(eight.delivered, eight.delivered[1:], strict=False)]
    assert max(gaps) < 60, "nobody stopped"
    assert 0.4 < by_consumer(eight)["newcomer"] / 140 < 0.6, "it gets every second message as soon as it asks"


def test_a_consumer_that_hangs_keeps_the_messages_it_had_and_no_queue(eight: Any) -> None:
    pops(eight, "hangs", "works", listener=slow(300), pop_invisible_time=10_000)
    send(eight, [str(number) for number in range(20)], each_ms=30)
    eight.fault("freeze", "hangs")
    eight.delivered.clear()
    send(eight, [str(number) for number in range(20, 100)], each_ms=30)
    eight.run_ms(2_000)
    missing = {str(number) for number in range(20, 100)} - set(eight.bodies)
    assert len(missing) == 1, "one message had woken the one that hangs"
    eight.run_ms(30_000)
    assert missing <= set(eight.bodies)
    assert set(by_consumer(eight)) == {"works"}
    eight.fault("thaw", "hangs")
    eight.run_ms(5_000)
    reasons = {event[-1] for event in eight.events("PopGivenUp", "hangs")}
    assert reasons <= {
        "the invisible time was over when the listener ended",
        "the invisible time was over before the listener was called",
    }
    assert reasons


def test_what_a_dead_consumer_held_comes_again_two_to_five_seconds_behind_its_time(eight: Any) -> None:
    pops(eight, "dies", listener=slow(1_000), pop_invisible_time=10_000)
    send(eight, ["a", "b"])
    eight.run_ms(200)
    assert sorted(eight.bodies) == ["a", "b"]
    popped_ms = eight.delivered[0].at_ms
    eight.fault("crash", "dies")
    pops(eight, "lives", pop_invisible_time=10_000)
    eight.delivered.clear()
    eight.run_ms(40_000)
    assert sorted(eight.bodies) == ["a", "b"]
    assert {delivery.reconsume_times for delivery in eight.delivered} == {1}
    assert {delivery.topic for delivery in eight.delivered} == {"T"}
    revived_ms = list(eight.times_ms("MessageRevived", "broker-a"))
    assert all(12_000 <= ms - popped_ms <= 15_100 for ms in revived_ms)
    late = max(delivery.at_ms - revived_ms[0] for delivery in eight.delivered)
    assert late <= 15_100, "a copy in the first form of the retry topic wakes nobody: it waits for the next pop"


# -- listeners ------------------------------------------------------------------------------------------------------


def test_a_failed_message_comes_again_after_ten_seconds_with_one_more_try(eight: Any) -> None:
    def listen(messages: Any, context: Any) -> Any:
        return RECONSUME_LATER if messages[0].reconsume_times == 0 else CONSUME_SUCCESS

    (consumer,) = pops(eight, "consumer", listener=listen)
    send(eight, ["a"])
    eight.run_ms(45_000)
    assert [(delivery.body, delivery.reconsume_times) for delivery in eight.delivered] == [("a", 0), ("a", 1)]
    (revived,) = eight.times_ms("MessageRevived", "broker-a")
    assert 12_000 <= revived - eight.delivered[0].at_ms <= 12_500
    eight.run_ms(60_000)
    assert len(eight.delivered) == 2
    assert consumer.pop_process_queues[next(iter(consumer.pop_process_queues))].wait_ack_msg_count == 0


def test_a_listener_slower_than_the_invisible_time_gets_the_message_again(eight: Any) -> None:
    async def listen(messages: Any, context: Any) -> Any:
        await context.sleep(8_000 if messages[0].reconsume_times == 0 else 10)
        return CONSUME_SUCCESS

    pops(eight, "consumer", listener=listen, pop_invisible_time=5_000)
    send(eight, ["a"])
    eight.run_ms(40_000)
    assert [delivery.reconsume_times for delivery in eight.delivered] == [0, 1]
    assert len(eight.events("PopGivenUp")) == 1
    assert len(eight.events("AckReceived")) == 1, "nothing is told for the first try"


def test_what_has_another_tag_is_gone_for_good(eight: Any) -> None:
    pops(eight, "consumer", tags="Aa")
    producer = eight.producer()
    for tag in ("Aa", "BB", "Cc"):
        producer.send(Message("T", tag.encode(), tags=tag)).play()
    eight.run_ms(90_000)
    assert eight.bodies == ["Aa"]
    acked = [event[-1] for event in eight.events("AckRequested")]
    assert sorted(acked) == ["consumed", "filtered"], "Aa and BB have one hash code; the broker left Cc out itself"
    assert eight.events("MessageRevived") == []


# -- brokers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["crash", "clean", "power_off"])
def test_nothing_is_lost_when_the_broker_stops_and_comes_back(eight: Any, fault: str) -> None:
    pops(eight, "one", "two", listener=slow(100), pop_invisible_time=10_000)
    bodies = [str(number) for number in range(60)]
    send(eight, bodies, each_ms=20)
    if fault == "clean":
        eight.brokers["broker-a"].shutdown().play()
        eight.fault("crash", "broker-a")
    else:
        if fault == "power_off":
            eight.run_ms(600)  # until what was sent is flushed
        eight.fault(fault, "broker-a")
    eight.run_ms(2_000)
    eight.fault("restart", "broker-a")
    eight.run_ms(90_000)
    assert set(eight.bodies) == set(bodies)
    send(eight, ["after"])
    eight.run_ms(20_000)
    assert "after" in eight.bodies


# -- from one way to the other ----------------------------------------------------------------------------------------


@pytest.mark.queues(4)
def test_switching_from_pull_to_pop_and_back_under_load_loses_nothing(cluster: Any) -> None:
    broker = cluster.brokers["broker-a"]
    pops(cluster, "one", "two", "three", listener=slow(40), consume_thread_min=2, consume_thread_max=2)
    sent: list[str] = []
    for mode in ("PULL", "POP", "PULL", "POP"):
        broker.set_message_request_mode("T", "G", mode)
        bodies = [f"{len(sent) + number}" for number in range(240)]
        send(cluster, bodies, each_ms=100)
        sent += bodies
    cluster.run_ms(100_000)
    assert set(cluster.bodies) == set(sent)
    modes = {(event[3] > 0, event[4] > 0) for event in cluster.events("AssignmentTaken") if event[2] == "T"}
    assert modes == {(True, False), (False, True)}
    assert len(cluster.bodies) < 1.2 * len(sent), "some come twice, at the switches"
