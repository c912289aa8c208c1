"""Clients: producers and consumers, and what they share."""

from typing import TYPE_CHECKING

from mqlab.client.client_config import ClientConfig
from mqlab.client.mq_client_instance import MQClientInstance
from mqlab.client.mq_client_manager import MQClientManager
from mqlab.client.producer.async_send import SendCallback
from mqlab.client.producer.default_mq_producer import DefaultMQProducer
from mqlab.client.producer.hooks import CheckForbiddenHook, SendMessageHook
from mqlab.client.producer.message_queue_selector import select_message_queue_by_hash
from mqlab.client.producer.mq_fault_strategy import MQFaultStrategy
from mqlab.client.producer.send_result import SendResult, SendStatus
from mqlab.client.service_state import ServiceState
from mqlab.lazy import lazy_names
from mqlab.protocol.heartbeat import ConsumeFromWhere, MessageModel
from mqlab.protocol.message import Message, MessageExt, MessageQueue

if TYPE_CHECKING:
    from mqlab.client.consumer.hooks import ConsumeMessageHook
    from mqlab.client.consumer.listener import (
        CONSUME_SUCCESS,
        RECONSUME_LATER,
        ConsumeConcurrentlyContext,
        ConsumeConcurrentlyStatus,
        MessageListenerConcurrently,
    )
    from mqlab.client.consumer.lite.default_lite_pull_consumer import DefaultLitePullConsumer
    from mqlab.client.consumer.message_selector import MessageSelector
    from mqlab.client.consumer.offset_store import LocalFileOffsetStore, OffsetStore, RemoteBrokerOffsetStore
    from mqlab.client.consumer.process_queue import ProcessQueue
    from mqlab.client.consumer.pull.default_mq_pull_consumer import DefaultMQPullConsumer
    from mqlab.client.consumer.pull.mq_pull_consumer_schedule_service import MQPullConsumerScheduleService
    from mqlab.client.consumer.pull.pull_callback import PullCallback
    from mqlab.client.consumer.pull.pull_task import PullTaskCallback, PullTaskContext
    from mqlab.client.consumer.pull_api_wrapper import PullResult, PullStatus
    from mqlab.client.consumer.push.default_mq_push_consumer import DefaultMQPushConsumer
    from mqlab.client.consumer.push.orderly_listener import (
        ConsumeOrderlyContext,
        ConsumeOrderlyStatus,
        MessageListenerOrderly,
    )
    from mqlab.client.message_util import create_reply_message, get_reply_to_client
    from mqlab.client.producer.request_response_future import RequestCallback
    from mqlab.client.producer.transaction_listener import (
        LocalTransactionState,
        TransactionListener,
        TransactionSendResult,
    )
    from mqlab.client.producer.transaction_mq_producer import TransactionMQProducer

_LATER = {
    "CONSUME_SUCCESS": "consumer.listener",
    "ConsumeConcurrentlyContext": "consumer.listener",
    "ConsumeConcurrentlyStatus": "consumer.listener",
    "ConsumeMessageHook": "consumer.hooks",
    "ConsumeOrderlyContext": "consumer.push.orderly_listener",
    "ConsumeOrderlyStatus": "consumer.push.orderly_listener",
    "DefaultMQPushConsumer": "consumer.push.default_mq_push_consumer",
    "LocalFileOffsetStore": "consumer.offset_store",
    "MessageListenerConcurrently": "consumer.listener",
    "MessageListenerOrderly": "consumer.push.orderly_listener",
    "OffsetStore": "consumer.offset_store",
    "ProcessQueue": "consumer.process_queue",
    "PullResult": "consumer.pull_api_wrapper",
    "PullStatus": "consumer.pull_api_wrapper",
    "RECONSUME_LATER": "consumer.listener",
    "RemoteBrokerOffsetStore": "consumer.offset_store",
    "DefaultLitePullConsumer": "consumer.lite.default_lite_pull_consumer",
    "DefaultMQPullConsumer": "consumer.pull.default_mq_pull_consumer",
    "MQPullConsumerScheduleService": "consumer.pull.mq_pull_consumer_schedule_service",
    "MessageSelector": "consumer.message_selector",
    "PullCallback": "consumer.pull.pull_callback",
    "PullTaskCallback": "consumer.pull.pull_task",
    "PullTaskContext": "consumer.pull.pull_task",
    "LocalTransactionState": "producer.transaction_listener",
    "TransactionListener": "producer.transaction_listener",
    "TransactionMQProducer": "producer.transaction_mq_producer",
    "TransactionSendResult": "producer.transaction_listener",
    "RequestCallback": "producer.request_response_future",
    "create_reply_message": "message_util",
    "get_reply_to_client": "message_util",
}
"""Where consumers and rarer names come from: they are imported when first used, which keeps this part light."""

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
    "DefaultLitePullConsumer",
    "DefaultMQProducer",
    "DefaultMQPullConsumer",
    "DefaultMQPushConsumer",
    "LocalFileOffsetStore",
    "LocalTransactionState",
    "MQClientInstance",
    "MQClientManager",
    "MQFaultStrategy",
    "MQPullConsumerScheduleService",
    "Message",
    "MessageExt",
    "MessageListenerConcurrently",
    "MessageListenerOrderly",
    "MessageModel",
    "MessageQueue",
    "MessageSelector",
    "OffsetStore",
    "ProcessQueue",
    "PullCallback",
    "PullResult",
    "PullStatus",
    "PullTaskCallback",
    "PullTaskContext",
    "RemoteBrokerOffsetStore",
    "RequestCallback",
    "SendCallback",
    "SendMessageHook",
    "SendResult",
    "SendStatus",
    "ServiceState",
    "TransactionListener",
    "TransactionMQProducer",
    "TransactionSendResult",
    "create_reply_message",
    "get_reply_to_client",
    "select_message_queue_by_hash",
]

__getattr__ = lazy_names(__name__, _LATER)
