"""The way out of the merge buffer: check points and acks that memory shall not keep any longer become messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mqlab.broker.pop.pop_check_point_wrapper import NOT_STORED, STORING, PopCheckPointWrapper
from mqlab.broker.pop.revive_log import ack_message, ck_message
from mqlab.broker.put_message_answers import STORED_CODES
from mqlab.protocol.pop_check_point import AckMsg, BatchAckMsg, PopCheckPoint
from mqlab.store import PutMessageResult
from mqlab.trace.events.pop import AckStored, CheckPointStored

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.sim import Future
    from mqlab.store import MessageExtBrokerInner


class PopBufferToStore:
    """Writes what a wrapper holds (PopBufferMergeService.putCkToStore, putAckToStore and putBatchAckToStore).

    `changed` is called with a wrapper each time when the store has answered. A store that flushes, or waits for
    replicas, answers later: the future of that answer is returned, for whoever has to wait for it.
    """

    def __init__(self, broker: BrokerParts, changed: Callable[[PopCheckPointWrapper], None]) -> None:
        self._broker = broker
        self._changed = changed

    def put_ck(self, wrapper: PopCheckPointWrapper, reason: str) -> Future[PutMessageResult] | None:
        """Write the check point, unless that was done or is being done; a refused one stays as it was."""
        if wrapper.revive_queue_offset >= 0:
            return None
        wrapper.revive_queue_offset = STORING

        def was_put(result: PutMessageResult) -> None:
            stored = result.status in STORED_CODES
            wrapper.ck_stored = stored
            wrapper.revive_queue_offset = result.logics_offset if stored else NOT_STORED
            if stored and self._broker.node.hooks.on:
                self._broker.node.hooks.emit(CheckPointStored(*wrapper.batch, wrapper.revive_queue_id, reason))
            self._changed(wrapper)

        return self._put(ck_message(self._broker, wrapper.ck, wrapper.revive_queue_id), was_put)

    async def put_acks(self, wrapper: PopCheckPointWrapper) -> None:
        """Write the acknowledgements that the store lacks, one message for each, or one for all of them.

        Each waits for the store's answer, unless appendAckAsync is on.
        """
        config = self._broker.broker_config
        places = wrapper.unstored_acks()
        batches = [[place] for place in places] if not config.enable_pop_batch_ack else [places] if places else []
        for batch in batches:
            pending = self.put_ack(wrapper, batch)
            if pending is not None and not config.append_ack_async:
                await pending

    def put_ack(self, wrapper: PopCheckPointWrapper, places: list[int]) -> Future[PutMessageResult] | None:
        """Write that the messages at these places are acknowledged, in one message."""
        ck = wrapper.ck
        offsets = [ck.ack_offset_by_index(place) for place in places]
        ack = self._ack_of(ck, offsets)

        def was_put(result: PutMessageResult) -> None:
            if result.status in STORED_CODES:
                for place in places:
                    wrapper.to_store_bits |= 1 << place
                if self._broker.node.hooks.on:
                    group, topic, queue_id, start_offset, pop_time = wrapper.batch
                    acked = ",".join(map(str, offsets))
                    self._broker.node.hooks.emit(
                        AckStored(group, topic, queue_id, acked, start_offset, pop_time, wrapper.revive_queue_id)
                    )
            self._changed(wrapper)

        return self._put(ack_message(self._broker, ack, wrapper.revive_queue_id, ck.revive_time), was_put)

    def _ack_of(self, ck: PopCheckPoint, offsets: list[int]) -> AckMsg:
        """The ack of these offsets; one of several names no broker and no offset of its own, as RocketMQ writes it."""
        if self._broker.broker_config.enable_pop_batch_ack:
            return BatchAckMsg(
                0, ck.start_offset, ck.group, ck.topic, ck.queue_id, ck.pop_time, ack_offset_list=offsets
            )
        return AckMsg(offsets[0], ck.start_offset, ck.group, ck.topic, ck.queue_id, ck.pop_time, ck.broker_name)

    def _put(
        self, message: MessageExtBrokerInner, was_put: Callable[[PutMessageResult], None]
    ) -> Future[PutMessageResult] | None:
        outcome = self._broker.message_store.put_message(message)
        if isinstance(outcome, PutMessageResult):
            was_put(outcome)
            return None
        outcome.add_done_callback(lambda done: was_put(done.result()))
        return outcome
