"""The topics of a broker: where they come from, and how they are kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mqlab.broker.config_manager import ConfigManager
from mqlab.broker.topic_attributes import alter_attributes
from mqlab.protocol.hashing import java_map_order
from mqlab.protocol.sysflag import PermName
from mqlab.protocol.topic_config import DataVersion, TopicConfig, TopicConfigSerializeWrapper
from mqlab.protocol.topics import (
    AUTO_CREATE_TOPIC_KEY_TOPIC,
    REVIVE_TOPIC_PREFIX,
    RMQ_SYS_BENCHMARK_TOPIC,
    RMQ_SYS_OFFSET_MOVED_EVENT,
    RMQ_SYS_SCHEDULE_TOPIC,
    RMQ_SYS_SELF_TEST_TOPIC,
    RMQ_SYS_TRANS_HALF_TOPIC,
    RMQ_SYS_TRANS_OP_HALF_TOPIC,
    SYNC_BROKER_MEMBER_GROUP_PREFIX,
    TIMER_TOPIC,
    is_dlq_topic,
    reply_topic,
)
from mqlab.trace.events.broker import TopicCreated, TopicDeleted, TopicUpdated

if TYPE_CHECKING:
    from mqlab.broker.broker_config import BrokerConfig
    from mqlab.sim import Node

SCHEDULE_TOPIC_QUEUE_NUM = 18
MAP_CAPACITY = 2048
"""The size of RocketMQ's table, which decides in which order it writes the topics."""


class TopicConfigManager(ConfigManager):
    """The table of topics, kept in config/topics.json (org.apache.rocketmq.broker.topic.TopicConfigManager).

    A topic comes into being in one of four ways: it is one of RocketMQ's own, an administrator creates it, a producer
    sends to it and a template allows it, or a consumer group needs it for retries or dead letters. `on_changed` is
    told of every new or changed topic, so that name servers learn of it.
    """

    def __init__(
        self, node: Node, path: str, config: BrokerConfig, on_changed: Callable[[list[TopicConfig]], None]
    ) -> None:
        super().__init__(node, path)
        self._config = config
        self._on_changed = on_changed
        self.topic_config_table: dict[str, TopicConfig] = {}
        self.data_version = DataVersion(node.now_ms())
        for topic, queues, perm in self._system_topics():
            self.topic_config_table[topic] = TopicConfig(topic, queues, queues, perm)
            self._emit_created(self.topic_config_table[topic], "system")

    def _system_topics(self) -> list[tuple[str, int, int]]:
        config = self._config
        inherited = PermName.READ_WRITE | PermName.INHERIT
        topics = [(RMQ_SYS_SELF_TEST_TOPIC, 1, PermName.READ_WRITE)]
        if config.auto_create_topic_enable:
            topics.append((AUTO_CREATE_TOPIC_KEY_TOPIC, config.default_topic_queue_nums, inherited))
        topics += [
            (RMQ_SYS_BENCHMARK_TOPIC, 1024, PermName.READ_WRITE),
            (config.broker_cluster_name, 16, inherited if config.cluster_topic_enable else PermName.INHERIT),
            (config.broker_name, 1, inherited if config.broker_topic_enable else PermName.INHERIT),
            (RMQ_SYS_OFFSET_MOVED_EVENT, 1, PermName.READ_WRITE),
            (RMQ_SYS_SCHEDULE_TOPIC, SCHEDULE_TOPIC_QUEUE_NUM, PermName.READ_WRITE),
        ]
        if config.trace_topic_enable:
            topics.append((config.msg_trace_topic_name, 1, PermName.READ_WRITE))
        return [
            *topics,
            (reply_topic(config.broker_cluster_name), 1, PermName.READ_WRITE),
            (REVIVE_TOPIC_PREFIX + config.broker_cluster_name, config.revive_queue_num, PermName.READ_WRITE),
            (SYNC_BROKER_MEMBER_GROUP_PREFIX + config.broker_name, 1, PermName.INHERIT),
            (RMQ_SYS_TRANS_HALF_TOPIC, 1, PermName.READ_WRITE),
            (RMQ_SYS_TRANS_OP_HALF_TOPIC, 1, PermName.READ_WRITE),
            (TIMER_TOPIC, 1, PermName.READ_WRITE),
        ]

    # -- asking -----------------------------------------------------------------------------------------------------

    def select_topic_config(self, topic: str) -> TopicConfig | None:
        """The settings of a topic, or None if this broker does not have it."""
        return self.topic_config_table.get(topic)

    def is_order_topic(self, topic: str) -> bool:
        """Was the topic declared an ordered one?"""
        config = self.topic_config_table.get(topic)
        return config is not None and config.order

    # -- coming into being ------------------------------------------------------------------------------------------

    def create_topic_in_send_message_method(
        self, topic: str, default_topic: str, client_default_topic_queue_nums: int, topic_sys_flag: int = 0
    ) -> TopicConfig | None:
        """Create a topic that somebody sends to, after a template; None if the template does not allow it.

        The template must be a topic of this broker with the inherit bit. The new topic gets as many queues as the
        client asks for, at most as many as the template has, and the template's permissions without that bit.
        """
        known = self.topic_config_table.get(topic)
        if known is not None:
            return known
        template = self.topic_config_table.get(default_topic)
        if template is None:
            return None
        if default_topic == AUTO_CREATE_TOPIC_KEY_TOPIC and not self._config.auto_create_topic_enable:
            template.perm = PermName.READ_WRITE
        if not PermName.is_inherited(template.perm):
            return None
        queues = max(0, min(client_default_topic_queue_nums, template.write_queue_nums))
        new = TopicConfig(
            topic, queues, queues, template.perm & ~PermName.INHERIT, template.topic_filter_type, topic_sys_flag
        )
        return self._create(new, "template")

    def create_topic_in_send_message_back_method(
        self, topic: str, queue_nums: int, perm: int, topic_sys_flag: int = 0, *, order: bool = False
    ) -> TopicConfig:
        """The topic, created with these settings if it is new; for retries and dead letters.

        Of a known topic only the order changes: to that of the topics that its group subscribes to at a heartbeat, and
        away from it with each message that is sent back, as in RocketMQ.
        """
        known = self.topic_config_table.get(topic)
        if known is not None:
            if order != known.order:
                known.order = order
                self.update_topic_config(known)
            return known
        new = TopicConfig(topic, queue_nums, queue_nums, perm, topic_sys_flag=topic_sys_flag, order=order)
        return self._create(new, "dead letter" if is_dlq_topic(topic) else "retry")

    def create_pop_retry_topic(self, topic: str, queue_nums: int) -> TopicConfig:
        """Create the topic for what a group popped and never acknowledged; name servers hear of it by the next report.

        Java: org.apache.rocketmq.broker.processor.PopReviveService.addRetryTopicIfNotExist.
        """
        return self._create(TopicConfig(topic, queue_nums, queue_nums, PermName.READ_WRITE), "retry", announce=False)

    def _create(self, new: TopicConfig, origin: str, *, announce: bool = True) -> TopicConfig:
        self.topic_config_table[new.topic_name] = new
        self.data_version.next_version(self._node.now_ms())
        self.persist()
        self._emit_created(new, origin)
        if announce:
            self._on_changed([new])
        return new

    def _emit_created(self, new: TopicConfig, origin: str) -> None:
        hooks = self._node.hooks
        if hooks.on:
            hooks.emit(TopicCreated(new.topic_name, new.read_queue_nums, new.write_queue_nums, new.perm, origin))

    # -- administration ---------------------------------------------------------------------------------------------

    def update_topic_config(self, config: TopicConfig) -> None:
        """Create or change one topic; name servers are told."""
        self.update_topic_configs([config])

    def update_topic_configs(self, configs: list[TopicConfig]) -> None:
        """Create or change topics; their attributes are changes (`+queue.type`); LearnerError refuses bad ones."""
        checked = [self._with_altered_attributes(config) for config in configs]
        for config in checked:
            known = self.topic_config_table.get(config.topic_name)
            self.topic_config_table[config.topic_name] = config
            if known is None:
                self._emit_created(config, "admin")
            elif self._node.hooks.on:
                self._node.hooks.emit(
                    TopicUpdated(config.topic_name, config.read_queue_nums, config.write_queue_nums, config.perm)
                )
        self.data_version.next_version(self._node.now_ms())
        self.persist()
        self._on_changed(checked)

    def _with_altered_attributes(self, config: TopicConfig) -> TopicConfig:
        known = self.topic_config_table.get(config.topic_name)
        if known is config:
            return config
        current = known.attributes if known is not None else {}
        return replace(config, attributes=alter_attributes(known is None, current, config.attributes))

    def replace_all(self, table: dict[str, TopicConfig], version: DataVersion) -> None:
        """Take over a master's table, as a slave does. As in RocketMQ each topic that goes and each that comes makes a
        new version beyond the master's, so the tables never count as equal.
        """
        changes = len(self.topic_config_table) + len(table)
        self.topic_config_table = dict(table)
        self.data_version.assign(version)
        for _ in range(changes):
            self.data_version.next_version(self._node.now_ms())
        self.persist()

    def delete_topic_config(self, topic: str) -> None:
        """Forget a topic; name servers keep its route until somebody deletes it there, too."""
        if self.topic_config_table.pop(topic, None) is None:
            return
        self.data_version.next_version(self._node.now_ms())
        self.persist()
        if self._node.hooks.on:
            self._node.hooks.emit(TopicDeleted(topic))

    def update_order_topic_config(self, ordered: dict[str, str]) -> None:
        """Mark the topics that a name server's KV table lists as ordered; a mark stays when the list gets shorter."""
        known = (self.topic_config_table.get(topic) for topic in ordered)
        changed = [config for config in known if config is not None and not config.order]
        for config in changed:
            config.order = True
        if changed:
            self.data_version.next_version(self._node.now_ms())
            self.persist()

    # -- the file ---------------------------------------------------------------------------------------------------

    def build_serialize_wrapper(self) -> TopicConfigSerializeWrapper:
        """All topics with the version of the table."""
        return TopicConfigSerializeWrapper(dict(self.topic_config_table), self.data_version.copy())

    def encode(self) -> dict[str, Any]:
        """The content of topics.json."""
        table = self.topic_config_table
        ordered = self.texts_of({topic: table[topic] for topic in java_map_order(table, MAP_CAPACITY)})
        # In the place where the table without topics stands.
        return {**TopicConfigSerializeWrapper({}, self.data_version).to_json(), "topicConfigTable": ordered}

    def decode(self, value: dict[str, Any]) -> None:
        """Take over the topics of a file; RocketMQ's own keep their present settings if the file has none."""
        wrapper = TopicConfigSerializeWrapper.from_json(value)
        self.topic_config_table.update(wrapper.topic_config_table)
        self.data_version.assign(wrapper.data_version)
