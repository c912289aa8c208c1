"""The door to Pop: what answers its requests, before its parts are made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.protocol.codes import RequestCode
from mqlab.protocol.topics import REVIVE_TOPIC_PREFIX
from mqlab.remoting import RequestProcessor

if TYPE_CHECKING:
    from mqlab.broker.broker_config import BrokerConfig
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.protocol.command import RemotingCommand
    from mqlab.remoting import Channel
    from mqlab.remoting.processor import Processed
    from mqlab.store.dispatch_request import DispatchRequest

POP_PROCESSORS: dict[RequestCode, tuple[str, str, str]] = {
    RequestCode.POP_MESSAGE: ("pop_message_processor", "pull", "pop"),
    RequestCode.PEEK_MESSAGE: ("peek_message_processor", "pull", "pop"),
    RequestCode.NOTIFICATION: ("notification_processor", "pull", "pop"),
    RequestCode.POLLING_INFO: ("polling_info_processor", "pull", "pop"),
    RequestCode.ACK_MESSAGE: ("ack_message_processor", "ack", "ack"),
    RequestCode.BATCH_ACK_MESSAGE: ("ack_message_processor", "ack", "ack"),
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME: ("change_invisible_time_processor", "ack", "ack"),
    RequestCode.POP_ROLLBACK: ("pop_rollback_processor", "admin", "admin"),
}
"""Code -> the part of PopServices that answers it, the pool whose threads it takes, and whose service time counts."""


class PopProcessor(RequestProcessor):
    """Answers for a part of Pop until that is made, which the first request of any of them brings about."""

    def __init__(self, broker: BrokerParts, part: str) -> None:
        self._broker = broker
        self._part = part

    def process_request(self, channel: Channel, request: RemotingCommand) -> Processed:
        """The part's own answer."""
        processor: RequestProcessor = getattr(self._broker.pop, self._part)
        return processor.process_request(channel, request)


def register_pop_processors(broker: BrokerParts) -> None:
    """Let the requests of Pop be answered: by the parts of Pop if they are made, else by what makes them."""
    pools, times = broker.executors, broker.broker_config.service_us
    for code, (part, pool, time) in POP_PROCESSORS.items():
        made = getattr(broker.made_pop, part) if broker.made_pop is not None else PopProcessor(broker, part)
        broker.remoting_server.register_processor(code, made, getattr(pools, pool), getattr(times, time))


def has_records(config: BrokerConfig) -> bool:
    """Is there the key-value engine, in use or only made? In 5.3.3 one in use must be asked for by both settings."""
    return config.pop_consumer_kv_service_init or config.pop_consumer_kv_service_enable


def disk_holds_pop(broker: BrokerParts) -> bool:
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


def make_pop_with_the_first_check_point(broker: BrokerParts) -> None:
    """Let Pop be made when something comes into the revive topic, though nobody has popped in this life of the broker.

    A timer that waits on the disk may hold check points of an earlier life, and nothing else there tells of them.
    """
    revive_topic = REVIVE_TOPIC_PREFIX + broker.broker_config.broker_cluster_name

    def look(request: DispatchRequest) -> None:
        if request.topic == revive_topic and broker.made_pop is None:
            _ = broker.pop

    broker.message_store.dispatcher_list.append(look)
