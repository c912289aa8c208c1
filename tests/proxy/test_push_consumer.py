"""Push consumers: successes, failures, waits, dead letters, limits."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.client.consumer.listener import ListenerRaised, ListenerReturnedNone
from mqlab.client.v5 import ConsumeResult
from mqlab.protocol.topics import dlq_topic, pop_retry_topic

from .conftest import Shop


def fails_until(attempt: int) -> Any:
    return lambda message: ConsumeResult.SUCCESS if message.delivery_attempt >= attempt else ConsumeResult.FAILURE


def test_what_is_consumed_is_acknowledged_and_comes_once(shop: Shop) -> None:
    consumer = shop.push_consumer()
    shop.send("a", "b", "c")
    shop.run_ms(70_000)
    assert sorted(shop.bodies()) == ["a", "b", "c"]
    assert [record.settled_as for record in shop.events("MessageSettled")] == ["ack"] * 3
    assert len(shop.events("AckReceived")) == 3
    assert not shop.events("MessageRevived")
    assert not consumer.process_queues[0].cached_messages
    assert shop.proxy.receipt_handle_manager.groups[("g", consumer.impl.client_id)] == {}


def test_members_share_what_comes() -> None:
    shop = Shop(queues=8)
    for _ in range(3):
        shop.push_consumer()
    for number in range(30):
        shop.send(str(number))
    shop.run_ms(3_000)
    assert sorted(map(int, shop.bodies())) == list(range(30))
    assert len({delivery.node for delivery in shop.delivered}) == 3


def test_a_failure_makes_the_message_invisible_for_as_long_as_the_policy_says(shop: Shop) -> None:
    shop.push_consumer(fails_until(4))
    shop.send("a")
    shop.run_ms(150_000)
    assert [delivery.attempt for delivery in shop.delivered] == [1, 2, 3, 4]
    nacks = [record.invisible_ms for record in shop.events("MessageSettled", settled_as="nack")]
    assert nacks == [1_000, 5_000, 10_000]
    pauses = [
        (later.at_ms - earlier.at_ms) / 1_000
        for earlier, later in zip(shop.delivered, shop.delivered[1:], strict=False)
    ]
    # The reviver needs 2 s and more, and a retry topic wakes nobody: what it holds is found at the end of a poll.
    assert all(nack / 1_000 + 2 <= pause <= nack / 1_000 + 25 for nack, pause in zip(nacks, pauses, strict=True))


def test_a_listener_that_raises_has_failed(shop: Shop) -> None:
    def raising(message: Any) -> Any:
        if message.delivery_attempt == 1:
            raise ValueError("no")
        return ConsumeResult.SUCCESS

    shop.push_consumer(raising)
    shop.send("a")
    with pytest.warns(ListenerRaised, match="ValueError: no"):
        shop.run_ms(1_000)
    shop.run_ms(30_000)
    assert [delivery.attempt for delivery in shop.delivered] == [1, 2]


def test_a_listener_that_returns_none_has_failed_and_is_told_once(shop: Shop) -> None:
    shop.push_consumer(lambda message: None)
    shop.send("a", "b")
    with pytest.warns(ListenerReturnedNone, match=r"as FAILURE, .* return ConsumeResult\.SUCCESS") as told:
        shop.run_ms(30_000)
    assert len(told) == 1
    assert max(delivery.attempt for delivery in shop.delivered) > 1


def test_a_listener_may_take_its_time_and_others_go_on(shop: Shop) -> None:
    async def slow(message: Any) -> ConsumeResult:
        await consumer.node.sleep(3_000 if message.body == b"slow" else 10)
        return ConsumeResult.SUCCESS

    consumer = shop.push_consumer(slow)
    shop.send("slow", "quick")
    shop.run_ms(5_000)
    slow_one, quick_one = [record.unique_key for record in shop.events("MessageStored", topic="T")]
    assert [record.msg_id for record in shop.events("ConsumeFinished")] == [quick_one, slow_one]
    assert shop.delivered[1].at_ms - shop.delivered[0].at_ms < 100


def test_after_the_last_attempt_the_proxy_puts_it_to_the_dead_letters(shop: Shop) -> None:
    shop.lab.create_group("g", retry_max_times=1)
    shop.push_consumer(lambda message: ConsumeResult.FAILURE)
    shop.send("bad")
    shop.run_ms(80_000)
    # The third delivery never reaches a client: two attempts are the most.
    assert [delivery.attempt for delivery in shop.delivered] == [1, 2]
    (filtered,) = shop.events("PopResultFiltered")
    assert (filtered.filter_result, filtered.reconsume_times) == ("TO_DLQ", 2)
    assert shop.stored(dlq_topic("g")) == 1
    (forwarded,) = shop.events("DeadLetterForwarded")
    (acked,) = [record for record in shop.events("AckReceived") if record.ts_us > forwarded.ts_us]
    assert acked.topic == pop_retry_topic("T", "g")
    shop.run_ms(80_000)
    assert shop.stored(dlq_topic("g")) == 1


def test_tags_whose_hash_codes_agree_are_told_apart_by_the_proxy(shop: Shop) -> None:
    shop.push_consumer(tags="Aa")
    shop.send("wanted", tag="Aa")
    shop.send("other", tag="BB")
    shop.send("nothing like it", tag="C")
    shop.run_ms(70_000)
    assert shop.bodies() == ["wanted"]
    (filtered,) = shop.events("PopResultFiltered")
    assert filtered.filter_result == "NO_MATCH"
    # It is acknowledged, so that it never comes back.
    assert not shop.events("MessageRevived")


def test_a_damaged_message_is_given_back_unseen(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    from mqlab.client.v5 import message

    monkeypatch.setattr(message, "_matches", lambda body, digest: False)
    shop.push_consumer()
    shop.send("damaged")
    shop.run_ms(500)
    assert shop.bodies() == []
    assert [record.settled_as for record in shop.events("MessageSettled")] == ["nack"]


def test_a_full_cache_lets_the_consumer_wait(shop: Shop) -> None:
    consumer = shop.push_consumer(takes_ms=500, max_cache_message_count=2, consumption_thread_count=1)
    shop.send(*"abcdef")
    shop.run_ms(200)
    # As much as fits, but at least one: the first receive had asked for 2, the next for 1.
    assert len(consumer.process_queues[0].cached_messages) <= 3
    assert [(record.reason, record.limit) for record in shop.events("FlowControlled")][:1] == [("count", 2)]
    assert {record.delay_ms for record in shop.events("ReceivePutOff")} == {1_000}
    shop.run_ms(20_000)
    assert sorted(shop.bodies()) == list("abcdef")


def test_bytes_have_a_limit_too(shop: Shop) -> None:
    consumer = shop.push_consumer(max_cache_message_size_in_bytes=1024 * 1024, consumption_thread_count=1)
    consumer.impl._pool.busy = 1  # no thread is free
    shop.send("x" * 2 * 1024 * 1024)
    shop.run_ms(200)
    held = [(record.reason, record.cached, record.limit) for record in shop.events("FlowControlled")]
    assert held[:1] == [("size", 2, 1)]


def test_a_receive_keeps_its_attempt_id_until_it_brings_something(shop: Shop) -> None:
    shop.push_consumer()
    shop.run_ms(45_000)
    shop.send("a")
    shop.run_ms(1_000)
    ids = [record.attempt_id for record in shop.events("ReceiveRequested")]
    assert len(ids) == 4
    assert len(set(ids[:3])) == 1
    assert ids[3] != ids[2]


def test_topics_can_be_added_and_given_up(shop: Shop) -> None:
    shop.lab.create_topic("U", 1)
    consumer = shop.push_consumer()
    consumer.subscribe("U")
    shop.run_ms(6_000)
    shop.send("u", topic="U")
    shop.run_ms(1_000)
    assert shop.bodies() == ["u"]
    consumer.unsubscribe("U")
    shop.run_ms(6_000)
    assert len(consumer.process_queues) == 2


def test_a_shutdown_waits_for_receives_and_listeners(shop: Shop) -> None:
    consumer = shop.push_consumer(takes_ms=25_000)
    shop.send("slow")
    shop.run_ms(500)
    begin = shop.lab.now_ms
    shop.run(consumer.shutdown())
    assert 24_000 < shop.lab.now_ms - begin < 28_000
    assert [record.status for record in shop.events("ConsumeFinished")] == ["SUCCESS"]
    assert [record.settled_as for record in shop.events("MessageSettled")] == ["ack"]
    assert [record.reason for record in shop.events("ProxyClientLeft")] == ["it said so"]
    shop.send("nobody is there")
    shop.run_ms(30_000)
    assert len(shop.delivered) == 1


def test_the_same_seed_gives_the_same_world_by_objects_and_by_bytes() -> None:
    def play(**settings: Any) -> str:
        shop = Shop(seed=11, brokers=2, **settings)
        shop.push_consumer(fails_until(2))
        shop.send("a", "b", tag="x")
        shop.run_ms(30_000)
        return shop.lab.trace_hash()

    assert play() == play() == play(wire="bytes")
