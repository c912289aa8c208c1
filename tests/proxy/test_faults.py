"""What becomes of clients and messages when a part fails."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.client.v5 import ClientException, ConsumeResult, Message

from .conftest import Shop


def test_a_proxy_that_was_killed_and_started_again_goes_on_without_loss(shop: Shop) -> None:
    consumer = shop.push_consumer()
    shop.send("a")
    shop.run_ms(1_000)
    shop.lab.crash("proxy-1")
    with pytest.raises(ClientException, match="UNAVAILABLE"):
        shop.send("lost")
    shop.run_ms(3_000)
    shop.lab.restart("proxy-1")
    shop.run_ms(3_000)
    # Within a second the client has told the new process what it is, and receives again.
    taken = [record for record in shop.events("ClientSettingsTaken", group="g") if record.ts_ms > 4_000]
    assert taken
    shop.send("b")
    shop.run_ms(3_000)
    assert shop.bodies() == ["a", "b"]
    assert consumer.impl.is_running


def test_what_a_killed_proxys_clients_had_is_acknowledged_through_the_new_one(shop: Shop) -> None:
    shop.push_consumer(takes_ms=8_000)
    shop.send("a")
    shop.run_ms(1_000)
    shop.lab.crash("proxy-1")
    shop.lab.restart("proxy-1")
    shop.run_ms(90_000)
    assert shop.bodies() == ["a"]
    assert [record.settled_as for record in shop.events("MessageSettled")] == ["ack"]


def test_nobody_renews_what_a_killed_proxy_knew(shop: Shop) -> None:
    async def slow(message: Any) -> ConsumeResult:
        await consumer.node.sleep(90_000 if message.delivery_attempt == 1 else 10)
        return ConsumeResult.SUCCESS

    consumer = shop.push_consumer(slow)
    shop.send("a")
    shop.run_ms(1_000)
    shop.lab.crash("proxy-1")
    shop.lab.restart("proxy-1")
    shop.run_ms(150_000)
    # It came again, and the first listener's acknowledgement was too late.
    assert [delivery.attempt for delivery in shop.delivered] == [1, 2]
    assert [record.is_final for record in shop.events("SettlingFailed", settled_as="ack")] == [True]


def test_another_proxy_takes_over() -> None:
    shop = Shop(proxies=2)
    shop.push_consumer()
    shop.send("a")
    shop.lab.crash("proxy-1")
    shop.run_ms(3_000)
    shop.send("b")
    shop.run_ms(3_000)
    assert shop.bodies() == ["a", "b"]


def test_a_broker_that_was_killed_is_waited_for(shop: Shop) -> None:
    shop.push_consumer()
    shop.send("a")
    shop.run_ms(6_000)
    shop.lab.crash("broker-a")
    with pytest.raises(ClientException):
        shop.send("lost")
    shop.run_ms(3_000)
    put_off = [record.delay_ms for record in shop.events("ReceivePutOff")]
    assert set(put_off) == {1_000}
    shop.lab.restart("broker-a")
    shop.run_ms(5_000)
    shop.send("b")
    shop.run_ms(3_000)
    assert shop.bodies()[0] == "a"
    assert "b" in shop.bodies()


def test_with_two_brokers_sending_goes_on_when_one_is_killed() -> None:
    shop = Shop(brokers=2)
    shop.send("a", "b", "c", "d")
    shop.lab.crash("broker-a")
    shop.send(*"efgh")
    assert shop.stored("T") == 8
    failed = shop.events("SendAttemptFailed")
    assert failed
    assert all(record.attempt < 3 for record in failed)


def test_routes_outlive_the_name_server(shop: Shop) -> None:
    shop.push_consumer()
    shop.send("a")
    shop.lab.crash("namesrv-1")
    shop.run_ms(60_000)
    shop.send("b")
    shop.run_ms(2_000)
    assert shop.bodies() == ["a", "b"]


def test_a_frozen_broker_times_out(shop: Shop) -> None:
    shop.send("a")
    shop.lab.freeze("broker-a")
    with pytest.raises(ClientException, match="PROXY_TIMEOUT"):
        shop.send("b")


def test_a_frozen_proxy_is_given_up_at_the_deadline(shop: Shop) -> None:
    shop.send("a")
    shop.lab.freeze("proxy-1")
    begin = shop.lab.now_ms
    with pytest.raises(ClientException, match="DEADLINE_EXCEEDED"):
        shop.send("b")
    assert shop.lab.now_ms - begin == pytest.approx(9_000, abs=10)
    shop.lab.thaw("proxy-1")
    shop.run_ms(1_000)
    shop.send("c")


def test_what_was_popped_for_a_client_that_has_gone_comes_to_another(shop: Shop) -> None:
    gone = shop.push_consumer()
    shop.lab.crash(gone.node.name)
    shop.run_ms(500)
    # The broker still keeps the pop of the dead client, and answers it with the next message.
    shop.send("a")
    shop.run_ms(200)
    (changed,) = shop.events("InvisibleTimeChanged")
    assert changed.invisible_ms == 1_000
    shop.push_consumer()
    shop.run_ms(30_000)
    assert [(delivery.node, delivery.attempt) for delivery in shop.delivered] == [("consumer-2", 2)]


def test_a_client_that_was_started_again_goes_on(shop: Shop) -> None:
    consumer = shop.push_consumer()
    shop.lab.crash(consumer.node.name)
    shop.lab.restart(consumer.node.name)
    shop.run_ms(3_000)
    assert consumer.impl.is_running
    shop.send("a")
    shop.run_ms(30_000)
    assert "a" in shop.bodies()


def test_a_client_that_cannot_start_again_yet_is_started_every_second(shop: Shop) -> None:
    consumer = shop.push_consumer()
    shop.lab.crash(consumer.node.name)
    shop.lab.crash("proxy-1")
    shop.lab.restart(consumer.node.name)
    shop.run_ms(3_500)
    assert not consumer.impl.is_running
    shop.lab.restart("proxy-1")
    shop.run_ms(3_000)
    assert consumer.impl.is_running
    shop.send("a")
    shop.run_ms(30_000)
    assert "a" in shop.bodies()


def test_a_producer_without_any_proxy_fails_to_start() -> None:
    shop = Shop()
    shop.lab.crash("proxy-1")
    producer = shop.lab.producer_v5(topics="T")
    with pytest.raises(ClientException, match="UNAVAILABLE"):
        shop.run(producer.start())
    with pytest.raises(ClientException, match="START_FAILED"):
        shop.run(producer.send(Message("T", "x")))


def test_a_proxy_without_a_name_server_says_so(shop: Shop) -> None:
    shop.lab.crash("namesrv-1")
    with pytest.raises(ClientException, match="INTERNAL_SERVER_ERROR"):
        shop.send("x")


def test_an_idle_proxy_with_clients_costs_little(shop: Shop) -> None:
    shop.push_consumer()
    shop.producer()
    shop.run_ms(10_000)
    begin = shop.lab.world.slice_no
    shop.run_ms(60_000)
    assert shop.lab.world.slice_no - begin < 1_000
