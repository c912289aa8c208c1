"""The 5.x clients: they speak to proxies alone, and know neither queues' offsets nor rebalance.

    from mqlab.client.v5 import ConsumeResult, Message

    producer = lab.producer_v5()
    consumer = lab.push_consumer_v5("orders")
    consumer.subscribe("Orders", "paid || shipped")
    consumer.set_message_listener(lambda message: ConsumeResult.SUCCESS)
"""

from typing import TYPE_CHECKING

from mqlab.lazy import lazy_names

if TYPE_CHECKING:
    from mqlab.client.v5.consume_service import ConsumeResult
    from mqlab.client.v5.errors import ClientException
    from mqlab.client.v5.filter_expression import FilterExpression
    from mqlab.client.v5.message import Message, MessageView
    from mqlab.client.v5.producer import Producer, RecallReceipt, SendReceipt
    from mqlab.client.v5.push_consumer import PushConsumer
    from mqlab.client.v5.simple_consumer import SimpleConsumer
    from mqlab.client.v5.transaction import Transaction, TransactionResolution

_LATER = {
    "ClientException": "errors",
    "ConsumeResult": "consume_service",
    "FilterExpression": "filter_expression",
    "Message": "message",
    "MessageView": "message",
    "Producer": "producer",
    "PushConsumer": "push_consumer",
    "RecallReceipt": "producer",
    "SendReceipt": "producer",
    "SimpleConsumer": "simple_consumer",
    "Transaction": "transaction",
    "TransactionResolution": "transaction",
}

__all__ = [
    "ClientException",
    "ConsumeResult",
    "FilterExpression",
    "Message",
    "MessageView",
    "Producer",
    "PushConsumer",
    "RecallReceipt",
    "SendReceipt",
    "SimpleConsumer",
    "Transaction",
    "TransactionResolution",
]

__getattr__ = lazy_names(__name__, _LATER)
