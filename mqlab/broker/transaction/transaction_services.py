"""Everything of transactions in one broker, and the order in which it begins and ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.transaction.check_listener import DefaultTransactionalMessageCheckListener
from mqlab.broker.transaction.end_transaction_processor import EndTransactionProcessor
from mqlab.broker.transaction.half_messages import HalfMessages, hide, unique_key_of
from mqlab.broker.transaction.resume_check_processor import ResumeCheckProcessor
from mqlab.broker.transaction.transaction_metrics import TransactionMetrics
from mqlab.broker.transaction.transaction_ops import TransactionalOpBatchService
from mqlab.broker.transaction.transactional_message_check_service import TransactionalMessageCheckService
from mqlab.protocol.message import MessageConst
from mqlab.protocol.topics import RMQ_SYS_TRANS_HALF_TOPIC, RMQ_SYS_TRANS_OP_HALF_TOPIC
from mqlab.sim import Future
from mqlab.sim.service import ServiceThread
from mqlab.store import BrokerRole
from mqlab.trace.events.transaction import HalfMessageHidden

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.store import MessageExtBrokerInner, PutMessageResult
    from mqlab.store.dispatch_request import DispatchRequest

CHECK_BEGINS_MS = 100
"""How long behind the other threads the one that asks begins. In RocketMQ it is the last, when the broker is up, and
how long that takes depends on the machine; here it is long enough that an op message is in its queue before the round
of the same second.
"""

_WATCHED = frozenset({RMQ_SYS_TRANS_HALF_TOPIC, RMQ_SYS_TRANS_OP_HALF_TOPIC})


class TransactionServices:
    """The parts of transactions in a broker: what org.apache.rocketmq.broker.BrokerController holds of them.

    Made by `BrokerController.transactions` when something first needs one of them; the threads then turn when those
    would that began with the broker. A slave has half messages and never asks about them.
    """

    def __init__(self, broker: BrokerParts) -> None:
        self.broker = broker
        node, config = broker.node, broker.broker_config
        self.half_messages = HalfMessages(broker)
        metrics_path = broker.message_store_config.path("config", "transactionMetrics")
        self.metrics = TransactionMetrics(node, metrics_path, self._count_changed)
        self.ops = TransactionalOpBatchService(node, config, self.half_messages)
        listener = DefaultTransactionalMessageCheckListener(broker, self.half_messages, self.metrics)
        self.check_service = TransactionalMessageCheckService(broker, self.half_messages, listener)
        self.metrics_flush_service = TransactionMetricsFlushService(broker, self.metrics)
        self.end_transaction_processor = EndTransactionProcessor(self)
        self.resume_check_processor = ResumeCheckProcessor(broker)

    def start(self) -> None:
        """Read the counts, and begin the threads."""
        self.metrics.load_or_fail()
        threads: list[ServiceThread] = [self.ops, self.metrics_flush_service]
        if self.broker.message_store_config.broker_role is not BrokerRole.SLAVE:
            threads.append(self.check_service)
        for thread in threads:
            thread.start()
            behind_ms = CHECK_BEGINS_MS if thread is self.check_service else 0
            thread.set_origin(self.broker.start_us + behind_ms * 1_000)
        self.broker.message_store.dispatcher_list.append(self._look)

    def shutdown(self) -> None:
        """End the threads and write the counts; what waits for an op message is lost, and will be asked about."""
        self.check_service.shutdown()
        self.metrics_flush_service.shutdown()
        self.ops.shutdown()
        self.metrics.persist()

    def _look(self, request: DispatchRequest) -> None:
        if request.topic in _WATCHED:
            self.check_service.arrived()

    def prepare_message(self, message: MessageExtBrokerInner) -> PutMessageResult | Future[PutMessageResult]:
        """Store a message of a transaction as a half message.

        Java: org.apache.rocketmq.broker.transaction.queue.TransactionalMessageServiceImpl.asyncPrepareMessage.
        """
        topic, queue_id = message.topic, message.queue_id
        hide(message)
        outcome = self.broker.message_store.put_message(message)
        if isinstance(outcome, Future):
            outcome.add_done_callback(lambda done: self._prepared(done.result(), topic, queue_id, message))
        else:
            self._prepared(outcome, topic, queue_id, message)
        return outcome

    def _prepared(
        self, result: PutMessageResult, topic: str, queue_id: int, message: MessageExtBrokerInner
    ) -> None:
        if result.is_ok:
            self.metrics.add(topic, 1)
        if self.broker.node.hooks.on:
            group = message.properties.get(MessageConst.PRODUCER_GROUP, "")
            self.broker.node.hooks.emit(
                HalfMessageHidden(
                    topic, queue_id, unique_key_of(message), group, result.logics_offset, result.wrote_offset,
                    result.status.value,
                )
            )  # fmt: skip

    def _count_changed(self) -> None:
        self.metrics_flush_service.wakeup_for_work()


class TransactionMetricsFlushService(ServiceThread):
    """Writes the counts every 3 s (org.apache.rocketmq.broker.transaction.TransactionMetricsFlushService).

    Differs from RocketMQ: its thread turns without a pause between one writing and the time for the next.
    """

    def __init__(self, broker: BrokerParts, metrics: TransactionMetrics) -> None:
        period_ms = broker.broker_config.transaction_metric_flush_interval
        super().__init__(broker.node, "TransactionFlushService", period_ms)
        self._metrics = metrics

    def has_work(self) -> bool:
        """Has a count changed?"""
        return self._metrics.is_unsaved

    def tick(self) -> None:
        """Write the file."""
        self._metrics.persist()
