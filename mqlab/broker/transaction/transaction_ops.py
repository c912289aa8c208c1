"""Writing down which half messages are done with: gathered for up to 3 s, then one message for all of them."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from mqlab.broker.transaction.half_messages import OFFSET_SEPARATOR
from mqlab.sim.service import ServiceThread
from mqlab.trace.events.transaction import TransactionOpWritten

if TYPE_CHECKING:
    from mqlab.broker.broker_config import BrokerConfig
    from mqlab.broker.transaction.half_messages import HalfMessages
    from mqlab.sim import Node

MOST_WAITING = 20_000


class TransactionalOpBatchService(ServiceThread):
    """Writes op messages (org.apache.rocketmq.broker.transaction.queue.TransactionalOpBatchService).

    It looks every 3 s, and writes what has been waiting since the look before or longer, or makes 4096 characters; from
    there on it looks at once. What it holds is in memory only: after a crash those half messages are asked about.

    Differs from RocketMQ: an offset that finds 20,000 others waiting is written at once, and not after 100 ms.

    Java: org.apache.rocketmq.broker.transaction.queue.MessageQueueOpContext,
    TransactionalMessageServiceImpl.batchSendOpMessage.
    """

    def __init__(self, node: Node, config: BrokerConfig, half_messages: HalfMessages) -> None:
        super().__init__(node, "TransactionalOpBatchService", config.transaction_op_batch_interval)
        self._config = config
        self._half_messages = half_messages
        self._offsets: deque[str] = deque()
        self._size = 0
        self._last_write_us: int | None = None

    def has_work(self) -> bool:
        """Does anything wait to be written?"""
        return bool(self._offsets)

    def delete_prepare_message(self, half_offset: int) -> None:
        """The half message at this place is done with.

        Java: org.apache.rocketmq.broker.transaction.queue.TransactionalMessageServiceImpl.deletePrepareMessage.
        """
        if self._last_write_us is None:
            self._last_write_us = self.node.now_us()
        text = f"{half_offset}{OFFSET_SEPARATOR}"
        if len(self._offsets) >= MOST_WAITING:
            self.node.spawn(self._write(text), self.name)
            self.wakeup()
            return
        self._offsets.append(text)
        self._size += len(text)
        if self._size > self._config.transaction_op_msg_max_size:
            self.wakeup()
        else:
            self.wakeup_for_work()

    async def run(self) -> None:
        """Look, and write, until the broker is shut down."""
        while not self.stopped:
            await self.wait_for_running()
            self.set_origin(self.node.now_us())
            await self._write_what_is_due()

    async def _write_what_is_due(self) -> None:
        most, interval_us = self._config.transaction_op_msg_max_size, self.period_ms * 1_000
        if self._last_write_us is None:
            # The broker is shut down, and was told no end: the thread is woken all the same.
            return
        if self._size < most and self.node.now_us() - self._last_write_us < interval_us:
            return
        await self._write("")
        while self._size >= most:
            await self._write("")

    async def _write(self, offsets: str) -> None:
        """Write one op message: these offsets, and of those that wait as many as fit.

        Java: org.apache.rocketmq.broker.transaction.queue.TransactionalMessageServiceImpl.getOpMessage.
        """
        while self._offsets and len(offsets) < self._config.transaction_op_msg_max_size:
            text = self._offsets.popleft()
            self._size -= len(text)
            offsets += text
        self._last_write_us = self.node.now_us()
        if not offsets:
            return
        result = await self._half_messages.put_and_wait(self._half_messages.op_message(offsets))
        if self.node.hooks.on:
            op_offset = result.logics_offset if result.is_ok else -1
            self.node.hooks.emit(TransactionOpWritten(offsets.count(OFFSET_SEPARATOR), op_offset))
