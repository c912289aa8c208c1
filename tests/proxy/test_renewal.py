"""Receipt handles that a proxy renews, and what ends it."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.client.v5 import ConsumeResult
from mqlab.protocol.extra_info import parse_handle
from mqlab.proxy.client_manager import ClientKey
from mqlab.proxy.receipt_handle_manager import MessageReceiptHandle
from mqlab.proxy.retry_policy import CustomizedRetryPolicy, ExponentialRetryPolicy, renew_delay_ms

from .conftest import Shop

MINUTE_MS = 60_000


def slow_consumer(shop: Shop, for_ms: int, **settings: Any) -> Any:
    """A consumer whose first delivery takes so long; later ones are quick."""

    async def listener(message: Any) -> ConsumeResult:
        if message.delivery_attempt == 1:
            await consumer.node.sleep(for_ms)
        return ConsumeResult.SUCCESS

    consumer = shop.push_consumer(listener, **settings)
    return consumer


def test_a_long_listener_keeps_its_message(shop: Shop) -> None:
    slow_consumer(shop, 5 * MINUTE_MS)
    shop.send("long")
    shop.run_ms(8 * MINUTE_MS)
    assert shop.bodies() == ["long"]
    renewals = shop.events("HandleRenewed")
    assert [(record.renew_times, record.invisible_ms // MINUTE_MS) for record in renewals] == [(1, 1), (2, 3), (3, 5)]
    # Each when less than 10 s were left, at the next scan (every 5 s).
    popped = shop.events("MessagePopped")[0].ts_ms
    assert 50_000 <= renewals[0].ts_ms - popped <= 55_100
    assert 100_000 <= renewals[1].ts_ms - popped <= 110_100
    # The client acknowledges by its first handle, the proxy by its newest.
    assert [record.settled_as for record in shop.events("MessageSettled")] == ["ack"]
    assert not shop.events("MessageRevived")


def test_who_asks_for_a_time_of_its_own_is_not_renewed(shop: Shop) -> None:
    consumer = shop.simple_consumer()
    shop.send("a")
    shop.run(consumer.receive(1, 10_000))
    shop.run_ms(MINUTE_MS)
    assert not shop.events("HandleRenewed")
    assert len(shop.events("MessageRevived")) == 1


def test_a_proxy_need_not_renew() -> None:
    shop = Shop(proxies=0)
    shop.lab.proxy(enable_proxy_auto_renew=False)
    consumer = shop.push_consumer()
    # Without renewal a push consumer would have to say an invisible time, which it never does.
    shop.run_ms(2_000)
    assert {record.status for record in shop.events("ReceiveFinished", node=consumer.node.name)} == {
        "ILLEGAL_INVISIBLE_TIME"
    }


def test_a_client_that_leaves_gives_its_messages_back_in_a_second(shop: Shop) -> None:
    consumer = slow_consumer(shop, 10 * MINUTE_MS)
    shop.send("a")
    shop.run_ms(1_000)
    # Without waiting for its listener, as Python's client does.
    shop.lab.world.wait_for(consumer.node.spawn(super(type(consumer.impl), consumer.impl).shutdown(), "leave").join())
    (given,) = shop.events("HandleGivenUp")
    assert (given.reason, given.invisible_ms) == ("client left", 1_000)
    shop.push_consumer()
    shop.run_ms(60_000)
    assert [delivery.node for delivery in shop.delivered][:2] == ["consumer-1", "consumer-2"]


def test_a_client_that_dies_is_missed_after_two_minutes(shop: Shop) -> None:
    consumer = slow_consumer(shop, 10 * MINUTE_MS)
    shop.send("a")
    shop.run_ms(1_000)
    last_beat = [r.ts_ms for r in shop.events("RequestReceived", node="proxy-1", request_name="Heartbeat")][-1]
    shop.lab.crash(consumer.node.name)
    shop.push_consumer()
    shop.run_ms(4 * MINUTE_MS)
    # The proxy renews for a client that is long dead, and finds out by its silence: 120 s, seen every 10 s.
    assert [record.renew_times for record in shop.events("HandleRenewed")] == [1, 2]
    (left,) = shop.events("ProxyClientLeft")
    assert left.reason == "no heartbeat"
    assert 120_000 < left.ts_ms - last_beat <= 130_100
    assert [delivery.node for delivery in shop.delivered] == ["consumer-1", "consumer-2"]
    assert 2_000 <= shop.delivered[1].at_ms - left.ts_ms <= 30_000


def failed_renewals(shop: Shop, fault: str) -> tuple[int, list[str]]:
    """How many renewals failed, and why the handle was given up, when a broker fails before the first renewal."""
    slow_consumer(shop, 20 * MINUTE_MS)
    shop.send("a")
    shop.run_ms(45_000)
    shop.lab.act(fault, node="broker-a")
    shop.run_ms(30_000)
    assert not any(shop.proxy.receipt_handle_manager.groups.values())
    return len(shop.events("HandleRenewFailed")), [record.reason for record in shop.events("HandleGivenUp")]


def test_a_handle_of_a_broker_that_is_gone_is_given_up_at_once(shop: Shop) -> None:
    assert failed_renewals(shop, "crash") == (1, ["cannot be renewed"])


def test_a_renewal_that_times_out_is_tried_again_until_the_time_is_over(shop: Shop) -> None:
    failures, reasons = failed_renewals(shop, "freeze")
    # At a scan of every 5 s, two tries find a handle that is still valid; the last one finds it expired.
    assert failures in (2, 3)
    assert reasons == ["cannot be renewed"]


def test_three_failures_in_a_row_are_enough() -> None:
    shop = Shop(proxies=0)
    shop.lab.proxy(renew_schedule_period_millis=2_500)
    assert failed_renewals(shop, "freeze") == (3, ["too many failures"])


def under_way(shop: Shop) -> tuple[ClientKey, MessageReceiptHandle]:
    """A handle whose renewal is under way, since its broker does not answer, and who has it."""
    slow_consumer(shop, 20 * MINUTE_MS)
    shop.send("a")
    shop.run_ms(40_000)
    shop.lab.act("freeze", node="broker-a")
    (key, kept) = next((key, group) for key, group in shop.proxy.receipt_handle_manager.groups.items() if group)
    (handle,) = kept.values()
    shop.lab.world.run_until(lambda: handle.busy)
    return key, handle


def test_a_handle_has_one_renewal_at_a_time() -> None:
    shop = Shop(proxies=0)
    shop.lab.proxy(renew_schedule_period_millis=500)
    under_way(shop)
    began_ms = shop.lab.now_ms
    shop.run_ms(1_900)
    renewals = shop.events("RequestSent", node="proxy-1", request_name="CHANGE_MESSAGE_INVISIBLETIME")
    assert len([record for record in renewals if record.ts_ms > began_ms - 1]) == 1
    assert not shop.events("HandleRenewFailed")


def test_a_delivery_that_comes_again_during_a_renewal_is_kept_though_the_renewal_fails(shop: Shop) -> None:
    key, old = under_way(shop)
    again = MessageReceiptHandle(old.key.message_id, old.topic, old.handle, 1)
    shop.proxy.receipt_handle_manager.add(key, again)
    shop.lab.crash("broker-a")
    shop.lab.world.run_until(lambda: not old.busy)
    assert shop.events("HandleGivenUp")[-1].reason == "cannot be renewed"
    assert shop.proxy.receipt_handle_manager.groups[key] == {old.key: again}


def test_the_scan_gives_back_what_came_for_a_client_that_had_left(shop: Shop) -> None:
    shop.push_consumer()
    shop.send("a")
    shop.run_ms(1_000)
    message = shop.delivered[0].message
    handle = MessageReceiptHandle(message.message_id, "T", parse_handle(message.receipt_handle), 0)
    shop.proxy.receipt_handle_manager.add(ClientKey("g", "long gone"), handle)
    shop.run_ms(5_100)
    (given,) = shop.events("HandleGivenUp")
    assert (given.reason, given.invisible_ms) == ("client left", 1_000)
    assert not any(shop.proxy.receipt_handle_manager.groups.values())


def test_a_handle_that_the_broker_refuses_is_given_up_at_once(shop: Shop) -> None:
    slow_consumer(shop, 20 * MINUTE_MS)
    shop.send("a", "b")
    shop.run_ms(1_000)
    # The topic shrinks to its queue 0; the broker knows nothing of the message in queue 1 any more.
    shop.lab.create_topic("T", 1)
    shop.run_ms(2 * MINUTE_MS)
    assert [record.reason for record in shop.events("HandleRenewFailed")] == ["the broker refuses"]
    assert [record.reason for record in shop.events("HandleGivenUp")] == ["cannot be renewed"]
    kept = [handle for group in shop.proxy.receipt_handle_manager.groups.values() for handle in group.values()]
    assert [handle.key.queue_id for handle in kept] == [0]


def wall_clock_ms(shop: Shop) -> int:
    """The proxy's wall clock."""
    return int(shop.proxy.node.now_ms())


def test_a_renewal_that_works_lets_the_failures_be_counted_anew() -> None:
    shop = Shop(proxies=0)
    shop.lab.proxy(renew_schedule_period_millis=2_500, renew_ahead_time_millis=30_000)
    slow_consumer(shop, 20 * MINUTE_MS)
    shop.send("a")
    shop.run_ms(1_000)
    told = 0
    for failures in (1, 2):
        ((kept,),) = (group.values() for group in shop.proxy.receipt_handle_manager.groups.values())
        shop.run_ms(kept.handle.expires_ms - 31_000 - wall_clock_ms(shop))
        shop.lab.act("freeze", node="broker-a")
        told += failures
        shop.lab.world.run_until(lambda told=told: len(shop.events("HandleRenewFailed")) >= told)
        shop.lab.act("thaw", node="broker-a")
        renewed = len(shop.events("HandleRenewed"))
        shop.lab.world.run_until(lambda renewed=renewed: len(shop.events("HandleRenewed")) > renewed)
    assert (len(shop.events("HandleRenewFailed")), len(shop.events("HandleRenewed"))) == (3, 2)
    assert not shop.events("HandleGivenUp")


def test_after_three_hours_the_groups_retry_policy_decides() -> None:
    shop = Shop(proxies=0)
    shop.lab.proxy(renew_max_time_millis=80_000)
    slow_consumer(shop, 10 * MINUTE_MS)
    shop.send("a")
    shop.run_ms(3 * MINUTE_MS)
    (given,) = shop.events("HandleGivenUp")
    assert (given.reason, given.invisible_ms) == ("too long", 10_000)
    assert len(shop.delivered) == 2


def test_a_clean_stop_of_a_proxy_gives_back_what_its_clients_have(shop: Shop) -> None:
    slow_consumer(shop, 10 * MINUTE_MS)
    shop.send("a")
    shop.run_ms(1_000)
    controller = shop.proxy
    shop.lab.world.wait_for(controller.node.spawn(_shut_down(controller), "stop").join())
    shop.run_ms(1_000)
    (changed,) = shop.events("InvisibleTimeChanged")
    assert changed.invisible_ms == 1_000


async def _shut_down(controller: Any) -> None:
    controller.shutdown()


@pytest.mark.parametrize(("times", "minutes"), [(-1, 1), (0, 1), (1, 3), (2, 5), (3, 10), (4, 30), (5, 60), (99, 60)])
def test_steps_of_renewal(times: int, minutes: int) -> None:
    assert renew_delay_ms(times) == minutes * MINUTE_MS


def test_retry_policies() -> None:
    assert [CustomizedRetryPolicy().next_delay_ms(times) for times in (-1, 0, 1, 99)] == [
        10_000, 10_000, 30_000, 7_200_000,
    ]  # fmt: skip
    assert [ExponentialRetryPolicy().next_delay_ms(times) for times in (0, 1, 2, 99)] == [
        5_000, 10_000, 20_000, 7_200_000,
    ]  # fmt: skip
