"""What administrators ask about topics: create, change, delete, look."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mqlab.broker.broker_stats import TOPIC_PUT_NUMS
from mqlab.broker.errors import RequestError
from mqlab.broker.topic_attributes import parse_attributes
from mqlab.errors import LearnerError
from mqlab.protocol import headers as h
from mqlab.protocol.bodies import TopicOffset, TopicStatsTable
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.json_body import JsonBody
from mqlab.protocol.message import MessageQueue
from mqlab.protocol.topic_config import DataVersion, TopicConfig, TopicConfigAndMappingSerializeWrapper
from mqlab.protocol.topics import is_system_topic, pop_retry_topic, validate_topic

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import Handler
    from mqlab.broker.whole_broker import WholeBroker
    from mqlab.remoting import Channel

NO_REMARK_SET = "not set any response code"
"""The remark of some successful answers: RocketMQ's placeholder, which nobody took away."""


@dataclass(slots=True)
class CreateTopicListRequestBody(JsonBody):
    """Several topics to create."""

    topic_config_list: list[TopicConfig] = field(default_factory=list)


class AdminTopics:
    """The topic requests of org.apache.rocketmq.broker.processor.AdminBrokerProcessor.

    Differs from RocketMQ: a topic with more than 10,000 queues on a broker is refused.
    """

    def __init__(self, broker: WholeBroker) -> None:
        self._broker = broker
        self._topics = broker.topic_config_manager
        self._store = broker.message_store

    def handlers(self) -> dict[int, Handler]:
        """What this part answers, by request code."""
        return {
            RequestCode.UPDATE_AND_CREATE_TOPIC: self._update_and_create_topic,
            RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: self._update_and_create_topic_list,
            RequestCode.DELETE_TOPIC_IN_BROKER: self._delete_topic,
            RequestCode.GET_TOPIC_CONFIG: self._get_topic_config,
            RequestCode.GET_ALL_TOPIC_CONFIG: self._get_all_topic_config,
            RequestCode.GET_TOPIC_STATS_INFO: self._get_topic_stats_info,
        }

    def _update_and_create_topic(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        header = request.header_as(h.CreateTopicRequestHeader)
        _check_name(header.topic)
        try:
            config = TopicConfig(
                header.topic,
                header.read_queue_nums,
                header.write_queue_nums,
                header.perm,
                header.topic_filter_type,
                header.topic_sys_flag or 0,
                bool(header.order),
                parse_attributes(header.attributes),
            )
            return self._update([config])
        except LearnerError as error:
            raise RequestError(ResponseCode.SYSTEM_ERROR, error.message) from None

    def _update_and_create_topic_list(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        configs = CreateTopicListRequestBody.decode(request.body).topic_config_list
        for config in configs:
            _check_name(config.topic_name)
        try:
            return self._update(configs)
        except LearnerError as error:
            raise RequestError(ResponseCode.SYSTEM_ERROR, error.message) from None

    def _update(self, configs: list[TopicConfig]) -> RemotingCommand:
        known = self._topics.topic_config_table
        changed = [config for config in configs if known.get(config.topic_name) != config]
        if changed:
            self._topics.update_topic_configs(changed)
        return RemotingCommand.response(ResponseCode.SUCCESS, NO_REMARK_SET)

    def _delete_topic(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        topic = request.header_as(h.DeleteTopicRequestHeader).topic
        if not topic.strip():
            raise RequestError(ResponseCode.INVALID_PARAMETER, "The specified topic is blank.")
        _check_not_system(topic)
        offsets = self._broker.consumer_offset_manager
        doomed = [topic]
        for group in offsets.which_group_by_topic(topic):
            for version_2 in (False, True):
                retry = pop_retry_topic(topic, group, version_2)
                if retry in self._topics.topic_config_table:
                    doomed.append(retry)
        pop = self._broker.made_pop
        for name in doomed:
            self._topics.delete_topic_config(name)
            offsets.clean_offset_by_topic(name)
            self._broker.stats.topic_deleted(name)
            if pop is not None:
                pop.pop_inflight_message_counter.clear_topic(name)
            if self._broker.timer is not None:
                self._broker.timer.timer_metrics.remove(name)
        self._store.delete_topics(doomed)
        return RemotingCommand.response(ResponseCode.SUCCESS)

    def _get_topic_config(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        topic = request.header_as(h.GetTopicConfigRequestHeader).topic
        config = self._topics.select_topic_config(topic)
        if config is None:
            raise RequestError(ResponseCode.TOPIC_NOT_EXIST, f"No topic in this broker. topic: {topic}")
        return RemotingCommand.response(ResponseCode.SUCCESS, body=config.encode())

    def _get_all_topic_config(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        """All topics, or those from `topic_seq` on when pages are asked for."""
        header = request.header_as(h.GetAllTopicConfigRequestHeader)
        names = list(self._topics.topic_config_table)
        total = None
        if header.max_topic_num is not None:
            total = len(names)
            first = header.topic_seq or 0
            names = names[first : first + header.max_topic_num]
        wrapper = TopicConfigAndMappingSerializeWrapper(
            {name: self._topics.topic_config_table[name] for name in names},
            self._topics.data_version,
            DataVersion(self._broker.stats.boot_ms),
        )
        answer = h.GetAllTopicConfigResponseHeader(total)
        return RemotingCommand.response(ResponseCode.SUCCESS, None, answer, wrapper.encode())

    def _get_topic_stats_info(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        topic = request.header_as(h.GetTopicStatsInfoRequestHeader).topic
        config = self._topics.select_topic_config(topic)
        if config is None:
            raise RequestError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist")
        table = {}
        for queue_id in range(max(config.read_queue_nums, config.write_queue_nums)):
            queue = MessageQueue(topic, self._broker.broker_config.broker_name, queue_id)
            max_offset = self._store.get_max_offset_in_queue(topic, queue_id)
            table[queue] = TopicOffset(
                max(0, self._store.get_min_offset_in_queue(topic, queue_id)),
                max_offset,
                self._store.get_message_store_timestamp(topic, queue_id, max_offset - 1) if max_offset else 0,
            )
        stats = TopicStatsTable(table, self._broker.stats.tps(TOPIC_PUT_NUMS, topic))
        return RemotingCommand.response(ResponseCode.SUCCESS, body=stats.encode())


def _check_name(topic: str) -> None:
    validation = validate_topic(topic)
    if not validation.valid:
        raise RequestError(ResponseCode.INVALID_PARAMETER, validation.remark)
    _check_not_system(topic)


def _check_not_system(topic: str) -> None:
    if is_system_topic(topic):
        raise RequestError(ResponseCode.INVALID_PARAMETER, f"The topic[{topic}] is conflict with system topic.")
