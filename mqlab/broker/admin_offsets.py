"""Moving a consumer group to another place, by the broker itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.broker2client import Broker2Client
from mqlab.broker.errors import RequestError
from mqlab.protocol.bodies import ResetOffsetBody
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import CloneGroupOffsetRequestHeader, ResetOffsetRequestHeader
from mqlab.protocol.message import MessageQueue

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import Handler
    from mqlab.broker.whole_broker import WholeBroker
    from mqlab.remoting import Channel


class AdminOffsets:
    """INVOKE_BROKER_TO_RESET_OFFSET, CLONE_GROUP_OFFSET, GET_ALL_CONSUMER_OFFSET and GET_ALL_DELAY_OFFSET.

    The consumers are not told: the next pull of each queue is answered OFFSET_RESET with the new place, and commits
    until then are ignored. Without use_server_side_reset_offset it is the members of the group that move themselves.

    Java: org.apache.rocketmq.broker.processor.AdminBrokerProcessor.
    """

    def __init__(self, broker: WholeBroker) -> None:
        self._broker = broker
        self._store = broker.message_store
        self._offsets = broker.consumer_offset_manager

    def handlers(self) -> dict[int, Handler]:
        """What this part answers, by request code."""
        return {
            RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: self._reset_offset,
            RequestCode.CLONE_GROUP_OFFSET: self._clone_group_offset,
            RequestCode.GET_ALL_CONSUMER_OFFSET: self._get_all_consumer_offset,
            RequestCode.GET_ALL_DELAY_OFFSET: self._get_all_delay_offset,
        }

    def _reset_offset(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        header = request.header_as(ResetOffsetRequestHeader)
        if not self._broker.broker_config.use_server_side_reset_offset:
            clients = Broker2Client(self._broker)
            return clients.reset_offset(header.topic, header.group, header.timestamp, header.is_force)
        topic = self._broker.topic_config_manager.select_topic_config(header.topic)
        if topic is None:
            raise RequestError(ResponseCode.TOPIC_NOT_EXIST, f"Topic {header.topic} does not exist")
        if not self._broker.subscription_group_manager.contains_subscription_group(header.group):
            raise RequestError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {header.group} does not exist")
        queue_ids = [header.queue_id] if header.queue_id >= 0 else list(range(topic.read_queue_nums))
        targets = {queue_id: self._target(header, queue_id) for queue_id in queue_ids}
        body = ResetOffsetBody()
        for queue_id, offset in targets.items():
            self._offsets.assign_reset_offset(header.group, header.topic, queue_id, offset)
            self._forget_popped(header.group, header.topic, queue_id)
            queue = MessageQueue(header.topic, self._broker.broker_config.broker_name, queue_id)
            body.offset_table[queue] = offset
        return RemotingCommand.response(ResponseCode.SUCCESS, body=body.encode())

    def _clone_group_offset(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        """Give a group the progress of another; SUCCESS whether there was any or not.

        As in RocketMQ a request that names no topic, which is meant for all topics of the source, clones nothing: it
        looks for a topic that has no name in each of them.
        """
        header = request.header_as(CloneGroupOffsetRequestHeader)
        consumers, source = self._broker.consumer_manager, header.src_group
        named = header.topic is not None and bool(header.topic.strip())
        topics = [header.topic or ""] if named else self._offsets.which_topic_by_consumer(source)
        for topic in topics:
            if self._broker.topic_config_manager.select_topic_config(topic) is None:
                continue
            members = consumers.get_consumer_group_info(source)
            subscribes = members is not None and bool(members.subscription_table)
            if not header.offline and subscribes and consumers.find_subscription_data(source, topic) is None:
                continue
            self._offsets.clone_offset(source, header.dest_group, header.topic or "null")
        return RemotingCommand.response(ResponseCode.SUCCESS)

    def _forget_popped(self, group: str, topic: str, queue_id: int) -> None:
        """Let Pop begin anew in a queue: nothing of it counts as handed out."""
        pop = self._broker.made_pop
        if pop is not None:
            pop.pop_inflight_message_counter.clear(topic, group, queue_id)
        if self._broker.broker_config.pop_consumer_kv_service_enable:
            service = self._broker.pop.pop_consumer_service
            assert service is not None
            service.clear_cache(group, topic, queue_id)
            self._offsets.clear_pull_offset(group, topic)

    def _target(self, header: ResetOffsetRequestHeader, queue_id: int) -> int:
        """Where the queue is set to: an offset that was given, else the one of a time (negative: the end)."""
        least = max(0, self._store.get_min_offset_in_queue(header.topic, queue_id))
        most = self._store.get_max_offset_in_queue(header.topic, queue_id)
        if header.queue_id >= 0 and header.offset is not None and header.offset >= 0:
            if not least <= header.offset <= most + 1:
                remark = f"Target offset {header.offset} not in consume queue range [{least}-{most}]"
                raise RequestError(ResponseCode.SYSTEM_ERROR, remark)
            return header.offset
        if header.timestamp < 0:
            return most
        return self._store.get_offset_in_queue_by_time(header.topic, queue_id, header.timestamp)

    def _get_all_consumer_offset(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        return RemotingCommand.response(ResponseCode.SUCCESS, body=self._offsets.wrapper().encode())

    def _get_all_delay_offset(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        body = self._broker.schedule_message_service.wrapper().encode()
        return RemotingCommand.response(ResponseCode.SUCCESS, body=body)
