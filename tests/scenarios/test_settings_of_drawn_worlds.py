"""The table of settings of drawn worlds: each is a setting of mqlab, and each of mqlab's is in it or left out."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from mqlab.broker.broker_config import BrokerConfig
from mqlab.client.consumer.lite.lite_pull_consumer_config import LitePullConsumerConfig
from mqlab.client.consumer.pull.pull_consumer_config import PullConsumerConfig
from mqlab.client.consumer.push.push_consumer_config import PushConsumerConfig
from mqlab.client.producer.producer_config import ProducerConfig
from mqlab.client.v5.client_configuration import (
    ProducerConfiguration,
    PushConsumerConfiguration,
    SimpleConsumerConfiguration,
)
from mqlab.protocol.topic_config import SubscriptionGroupConfig
from mqlab.proxy.proxy_config import ProxyConfig
from mqlab.scenarios.drawing import settings
from mqlab.scenarios.drawing.kinds import OWN, SETTINGS
from mqlab.scenarios.drawing.left_out import OF_BROKERS, OF_CLIENTS, OF_CLIENTS_5, OF_PROXIES
from mqlab.scenarios.drawing.values import Legal, value_text
from mqlab.store import MessageStoreConfig

Table = dict[str, Legal]
LeftOut = dict[str, tuple[str, ...]]

TABLES: list[tuple[Table, LeftOut, tuple[type[Any], ...]]] = [
    (settings.BROKER, OF_BROKERS, (BrokerConfig, MessageStoreConfig)),
    (settings.PRODUCER | settings.ASKER, OF_CLIENTS, (ProducerConfig,)),
    (settings.PUSH, OF_CLIENTS, (PushConsumerConfig,)),
    (settings.LITE, OF_CLIENTS, (LitePullConsumerConfig,)),
    (settings.PULL, OF_CLIENTS, (PullConsumerConfig,)),
    (settings.PROXY, OF_PROXIES, (ProxyConfig,)),
    (settings.CLIENT_5, OF_CLIENTS_5, (ProducerConfiguration,)),
    (settings.PUSH_5, OF_CLIENTS_5, (PushConsumerConfiguration,)),
    (settings.SIMPLE_5, OF_CLIENTS_5, (SimpleConsumerConfiguration,)),
]


def names(*classes: type[Any]) -> set[str]:
    return {field.name for one in classes for field in dataclasses.fields(one)}


@pytest.mark.parametrize(("table", "left_out", "classes"), TABLES)
def test_every_setting_is_in_the_table_or_left_out_with_a_reason(
    table: Table, left_out: LeftOut, classes: tuple[type[Any], ...]
) -> None:
    assert set(table) <= names(*classes)
    left = [name for each in left_out.values() for name in each]
    assert names(*classes) <= {*table, *left}
    assert len(left) == len(set(left))


def test_what_is_left_out_is_a_setting() -> None:
    assert {name for each in OF_BROKERS.values() for name in each} <= names(BrokerConfig, MessageStoreConfig)
    clients = names(ProducerConfig, PushConsumerConfig, LitePullConsumerConfig, PullConsumerConfig)
    assert {name for each in OF_CLIENTS.values() for name in each} <= clients
    assert set(settings.GROUP) <= names(SubscriptionGroupConfig)


@pytest.mark.parametrize("kind", list(OWN))
def test_everything_that_is_drawn_is_legal(kind: str) -> None:
    for legal in {**OWN[kind], **SETTINGS[kind]}.values():
        for value in legal.drawn:
            assert value_text(legal.value(value_text(value))) == value_text(value)
