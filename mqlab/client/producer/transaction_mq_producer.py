"""The producer of messages that are delivered only if something else, done by the application, has come about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqlab.arguments import check_whole
from mqlab.client.producer.default_mq_producer import DefaultMQProducer
from mqlab.client.producer.transactions import Transactions
from mqlab.errors import LearnerError, MQClientException
from mqlab.protocol.message import Message
from mqlab.sim import public_call

if TYPE_CHECKING:
    from mqlab.client.producer.transaction_listener import TransactionListener, TransactionSendResult
    from mqlab.sim import Node


class TransactionMQProducer(DefaultMQProducer):
    """Sends messages within transactions (org.apache.rocketmq.client.producer.TransactionMQProducer).

        producer = TransactionMQProducer(node, "accounts", namesrv_addr="10.0.0.1:9876")
        producer.transaction_listener = MyListener()
        await producer.start()
        result = await producer.send_message_in_transaction(Message("Transfers", "100 from A to B"))

    It is a DefaultMQProducer, too. `check_thread_pool_max_size` threads answer the broker's questions;
    `check_request_hold_max` of these may wait, and the rest is dropped: the broker asks again. A broker can ask only a
    producer that it knows: one that has sent to it in this life, or was given `topics` that it serves.
    """

    def __init__(
        self,
        node: Node,
        producer_group: str,
        *,
        check_thread_pool_max_size: int = 1,
        check_request_hold_max: int = 2_000,
        **settings: Any,
    ) -> None:
        check_whole("check_thread_pool_max_size", check_thread_pool_max_size, "give a number of threads from 1 on")
        check_whole("check_request_hold_max", check_request_hold_max, "give a number of questions from 1 on")
        self.check_thread_pool_max_size = check_thread_pool_max_size
        self.check_request_hold_max = check_request_hold_max
        self.transaction_listener: TransactionListener | None = None
        super().__init__(node, producer_group, **settings)

    @public_call
    async def start(self) -> None:
        """Start the producer; MQClientException when its settings are wrong or it was started before."""
        # A question may come as soon as a broker knows of the producer.
        self.impl.transactions = Transactions(self)
        await super().start()

    @public_call
    async def send_message_in_transaction(self, message: Message, argument: Any = None) -> TransactionSendResult:
        """Send a half message, let the listener do the local part (it gets `argument`), and tell the broker the end.

        Nobody gets the message before the broker has heard COMMIT_MESSAGE. A delay level is left out. Raises
        MQClientException when there is no listener, and when the half message is not stored.

        Java: org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl.sendMessageInTransaction.
        """
        if not isinstance(message, Message):
            raise LearnerError(
                f"a transaction is about one message, not {type(message).__name__}",
                'write Message("TopicTest", "hello")',
            )
        if self.transaction_listener is None:
            raise MQClientException(
                "TransactionListener is null. What to do: set producer.transaction_listener to an object with "
                "execute_local_transaction(message, argument) and check_local_transaction(message)."
            )
        self.impl.make_sure_state_ok()
        assert self.impl.transactions is not None
        return await self.impl.transactions.send(message, argument)
