"""Going back from the key-value engine of Pop: its records become check points of the revive topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.pop import revive_log
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.pop_check_point import PopCheckPoint
from mqlab.remoting import RequestProcessor
from mqlab.sim import DiskFull
from mqlab.sim.eager import play_at_once

if TYPE_CHECKING:
    from mqlab.broker.pop.kv.pop_consumer_record import PopConsumerRecord
    from mqlab.broker.pop.pop_parts import PopParts
    from mqlab.remoting import Channel
    from mqlab.remoting.processor import Processed


class PopRollbackProcessor(RequestProcessor):
    """POP_ROLLBACK: every record becomes a check point of one message (AdminBrokerProcessor.transferPopToFsStore).

    Java: org.apache.rocketmq.broker.pop.PopConsumerService.transferToFsStore. As in RocketMQ nobody looks whether the
    store takes a check point, and a broker without records answers with success. Differs from RocketMQ: when the
    records cannot be deleted the answer says so, where a real broker begins again without end.
    """

    def __init__(self, services: PopParts) -> None:
        self._services = services
        self._broker = services.broker

    def process_request(self, channel: Channel, request: RemotingCommand) -> Processed:
        """Answer when all records are gone; a coroutine when a flush has to be waited for."""
        return play_at_once(self._transfer())

    async def _transfer(self) -> RemotingCommand:
        service = self._services.pop_consumer_service
        if service is None:
            return RemotingCommand.response(ResponseCode.SUCCESS)
        from mqlab.broker.pop.kv.pop_consumer_record import LATEST_MS

        most = self._broker.broker_config.pop_revive_max_return_size_per_read
        while records := service.records.store.scan_expired_records(0, LATEST_MS, most):
            for record in records:
                await self._put(record)
            try:
                safe = service.records.delete_all(records, "rolled back")
            except DiskFull as error:
                return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, str(error).partition("\n")[0])
            if safe is not None:
                await safe
        return RemotingCommand.response(ResponseCode.SUCCESS)

    async def _put(self, record: PopConsumerRecord) -> None:
        config = self._broker.broker_config
        point = PopCheckPoint(
            start_offset=record.offset,
            pop_time=record.pop_time,
            invisible_time=record.invisible_time,
            num=1,
            queue_id=record.queue_id,
            topic=record.topic,
            group=record.group,
            queue_offset_diff=[0],
            broker_name=config.broker_name,
        )
        revive_qid = record.offset % config.revive_queue_num
        await self._broker.message_store.put_and_wait(revive_log.ck_message(self._broker, point, revive_qid))
