"""When a broker needs the parts of Pop before anybody has popped in this life of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.protocol.topics import REVIVE_TOPIC_PREFIX

if TYPE_CHECKING:
    from mqlab.broker.broker_config import BrokerConfig
    from mqlab.broker.whole_broker import WholeBroker
    from mqlab.store.dispatch_request import DispatchRequest


def has_records(config: BrokerConfig) -> bool:
    """Is there the key-value engine, in use or only made? In 5.3.3 one in use must be asked for by both settings."""
    return config.pop_consumer_kv_service_init or config.pop_consumer_kv_service_enable


def disk_holds_pop(broker: WholeBroker) -> bool:
    """Has an earlier life of the broker left something that Pop has to go on with?

    That is: check points or acknowledgements in the revive topic, or the state of pops in order.
    """
    if has_records(broker.broker_config):
        return True
    revive_topic = REVIVE_TOPIC_PREFIX + broker.broker_config.broker_cluster_name
    queues = broker.message_store.consume_queue_store.consume_queue_table
    if any(topic == revive_topic for topic, _ in queues):
        return True
    return broker.node.disk.exists(broker.message_store_config.path("config", "consumerOrderInfo.json"))


def make_pop_with_the_first_check_point(broker: WholeBroker) -> None:
    """Let Pop be made when something comes into the revive topic, though nobody has popped in this life of the broker.

    A timer that waits on the disk may hold check points of an earlier life, and nothing else there tells of them.
    """
    revive_topic = REVIVE_TOPIC_PREFIX + broker.broker_config.broker_cluster_name

    def look(request: DispatchRequest) -> None:
        if request.topic == revive_topic and broker.made_pop is None:
            _ = broker.pop

    broker.message_store.dispatcher_list.append(look)
