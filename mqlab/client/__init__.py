"""Clients: producers and consumers, and what they share."""

from mqlab.protocol.heartbeat import ConsumeFromWhere, MessageModel
from mqlab.protocol.message import Message, MessageExt, MessageQueue

from .client_config import ClientConfig
from .consumer.default_mq_push_consumer import DefaultMQPushConsumer
from .consumer.hooks import ConsumeMessageHook
from .consumer.listener import (
    CONSUME_SUCCESS,
    RECONSUME_LATER,
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    MessageListenerConcurrently,
)
from .consumer.offset_store import LocalFileOffsetStore, OffsetStore, RemoteBrokerOffsetStore
from .consumer.orderly_listener import ConsumeOrderlyContext, ConsumeOrderlyStatus, MessageListenerOrderly
from .consumer.process_queue import ProcessQueue
from .mq_client_instance import MQClientInstance
from .mq_client_manager import MQClientManager
from .producer.async_send import SendCallback
from .producer.default_mq_producer import DefaultMQProducer
from .producer.hooks import CheckForbiddenHook, SendMessageHook
from .producer.message_queue_selector import select_message_queue_by_hash
from .producer.send_result import SendResult, SendStatus
from .service_state import ServiceState

__all__ = [
    "CONSUME_SUCCESS",
    "RECONSUME_LATER",
    "CheckForbiddenHook",
    "ClientConfig",
    "ConsumeConcurrentlyContext",
    "ConsumeConcurrentlyStatus",
    "ConsumeFromWhere",
    "ConsumeMessageHook",
    "ConsumeOrderlyContext",
    "ConsumeOrderlyStatus",
    "DefaultMQProducer",
    "DefaultMQPushConsumer",
    "LocalFileOffsetStore",
    "MQClientInstance",
    "MQClientManager",
    "Message",
    "MessageExt",
    "MessageListenerConcurrently",
    "MessageListenerOrderly",
    "MessageModel",
    "MessageQueue",
    "OffsetStore",
    "ProcessQueue",
    "RemoteBrokerOffsetStore",
    "SendCallback",
    "SendMessageHook",
    "SendResult",
    "SendStatus",
    "ServiceState",
    "select_message_queue_by_hash",
]
