"""What administrators have cleaned: queues whose messages are gone, or whose topic is; old files of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts, Handler
    from mqlab.remoting import Channel


class AdminFiles:
    """CLEAN_EXPIRED_CONSUMEQUEUE, CLEAN_UNUSED_TOPIC and DELETE_EXPIRED_COMMITLOG, each answered SUCCESS whatever went.

    Java: org.apache.rocketmq.broker.processor.AdminBrokerProcessor.
    """

    def __init__(self, broker: BrokerParts) -> None:
        self._broker = broker
        self._store = broker.message_store

    def handlers(self) -> dict[int, Handler]:
        """What this part answers, by request code."""
        return {
            RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: self._clean_expired_consume_queue,
            RequestCode.CLEAN_UNUSED_TOPIC: self._clean_unused_topic,
            RequestCode.DELETE_EXPIRED_COMMITLOG: self._delete_expired_commit_log,
        }

    def _clean_expired_consume_queue(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        self._store.clean_expired_consumer_queue()
        return RemotingCommand.response(ResponseCode.SUCCESS)

    def _clean_unused_topic(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        self._store.clean_unused_topic(self._broker.topic_config_manager.topic_config_table.keys())
        return RemotingCommand.response(ResponseCode.SUCCESS)

    def _delete_expired_commit_log(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        self._store.execute_delete_files_manually()
        return RemotingCommand.response(ResponseCode.SUCCESS)
