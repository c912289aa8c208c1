"""Taking a message back that waits for the time of its delivery, through a proxy."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.client.v5 import ClientException
from mqlab.protocol.recall_message_handle import RecallMessageHandle
from mqlab.protocol.v2.definition import Code

from .conftest import Shop


def delayed_shop(*, recall_message_enable: bool = False) -> Shop:
    shop = Shop()
    shop.lab.brokers[0].running().broker_config.recall_message_enable = recall_message_enable
    shop.lab.create_topic("D", 1, attributes={"+message.type": "DELAY"})
    return shop


def send_later(shop: Shop, body: str, ms: int = 20_000) -> Any:
    producer = shop.producer()
    (receipt,) = shop.send(body, topic="D", delivery_timestamp=producer.node.now_ms() + ms)
    return receipt


def test_what_is_taken_back_is_never_delivered() -> None:
    shop = delayed_shop(recall_message_enable=True)
    shop.run_ms(2_000)
    kept, taken_back = send_later(shop, "kept"), send_later(shop, "taken back")
    recalled = shop.run(shop.producer().recall_message("D", taken_back.recall_handle))
    assert recalled.message_id == taken_back.message_id
    shop.run_ms(40_000)
    assert [e.unique_key for e in shop.events("MessageStored", topic="D")] == [kept.message_id]


def test_any_proxy_takes_a_message_back() -> None:
    shop = delayed_shop(recall_message_enable=True)
    other = shop.lab.proxy()
    shop.run_ms(2_000)
    receipt = send_later(shop, "taken back")
    stranger = shop.lab.producer_v5(endpoints=other.address)
    shop.run(stranger.start())
    shop.run(stranger.recall_message("D", receipt.recall_handle))
    shop.run_ms(40_000)
    assert shop.events("MessageStored", topic="D") == []


def test_the_brokers_refusal_is_the_clients() -> None:
    shop = delayed_shop()
    receipt = send_later(shop, "kept")
    with pytest.raises(ClientException, match="recall failed, operation is forbidden") as refused:
        shop.run(shop.producer().recall_message("D", receipt.recall_handle))
    assert refused.value.code == Code.INTERNAL_SERVER_ERROR


def test_what_is_no_handle_is_refused() -> None:
    shop = delayed_shop(recall_message_enable=True)
    with pytest.raises(ClientException, match="recall handle is invalid") as early:
        shop.run(shop.producer().recall_message("D", ""))
    assert early.value.code == 0
    with pytest.raises(ClientException, match="ProxyException: recall handle is invalid"):
        shop.run(shop.producer().recall_message("D", "zzz"))
    elsewhere = RecallMessageHandle("D", "broker-z", "1", "id").encode()
    with pytest.raises(ClientException, match="cannot find broker broker-z") as unknown:
        shop.run(shop.producer().recall_message("D", elsewhere))
    assert unknown.value.code == Code.BAD_REQUEST
    with pytest.raises(ClientException, match="the expected type is NORMAL, but actual type is DELAY"):
        shop.run(shop.producer().recall_message("T", elsewhere))
