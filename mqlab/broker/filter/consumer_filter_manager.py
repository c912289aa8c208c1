"""The filters that consumers have told in their heartbeats, by topic and group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mqlab.broker.config_manager import ConfigManager
from mqlab.broker.filter.consumer_filter_data import ConsumerFilterData, build_filter_data
from mqlab.filter import BloomFilter
from mqlab.protocol.errors import BodyError
from mqlab.protocol.hashing import java_map_order
from mqlab.protocol.heartbeat import ExpressionType
from mqlab.trace.events.filter import ConsumerFilterChanged

if TYPE_CHECKING:
    from mqlab.broker.broker_config import BrokerConfig
    from mqlab.protocol.heartbeat import SubscriptionData
    from mqlab.sim import Node

_TOPIC_CAPACITY = 512
_GROUP_CAPACITY = 16
_DEAD_SINCE_LOADED_MS = 30_000

REGISTERED = "registered"
REPLACED = "replaced"
REFUSED = "refused"
DEAD = "dead"
ALIVE_AGAIN = "alive again"
DROPPED = "dropped"


class ConsumerFilterManager(ConfigManager):
    """The table of filters, kept in config/consumerFilter.json.

    Java: org.apache.rocketmq.broker.filter.ConsumerFilterManager. A group that leaves has its filters marked as dead;
    what was dead for a day is dropped when the file is written. After a start all are dead until their consumers come
    back. Filters of a file that was made with another Bloom filter (other settings) are forgotten, all of them.
    """

    def __init__(self, node: Node, path: str, config: BrokerConfig) -> None:
        super().__init__(node, path)
        self._config = config
        self.bloom_filter = BloomFilter(config.max_error_rate_of_bloom_filter, config.expect_consumer_num_use_filter)
        self.filter_data_by_topic: dict[str, dict[str, ConsumerFilterData]] = {}

    # -- asking -----------------------------------------------------------------------------------------------------

    def get(self, topic: str, group: str) -> ConsumerFilterData | None:
        """The filter of a group for a topic."""
        return self.filter_data_by_topic.get(topic, {}).get(group)

    def get_by_topic(self, topic: str) -> Mapping[str, ConsumerFilterData]:
        """The filters for a topic, by group, dead ones among them."""
        return self.filter_data_by_topic.get(topic, {})

    # -- what heartbeats say ----------------------------------------------------------------------------------------

    def register(self, group: str, subscriptions: Iterable[SubscriptionData]) -> None:
        """A group subscribes to just this; its filters for other topics are dead."""
        topics = set()
        for subscription in subscriptions:
            topics.add(subscription.topic)
            self._register(group, subscription)
        for topic, groups in self.filter_data_by_topic.items():
            data = groups.get(group)
            if data is not None and topic not in topics:
                self._die(data)

    def un_register(self, group: str) -> None:
        """The last member of a group has gone."""
        for groups in self.filter_data_by_topic.values():
            data = groups.get(group)
            if data is not None:
                self._die(data)

    def _register(self, group: str, subscription: SubscriptionData) -> None:
        if ExpressionType.is_tag_type(subscription.expression_type) or not subscription.sub_string:
            return
        topic, version = subscription.topic, subscription.sub_version
        groups = self.filter_data_by_topic.setdefault(topic, {})
        known = groups.get(group)
        if known is not None and version <= known.client_version:
            if version == known.client_version and known.is_dead:
                self._revive(known)
            return
        bloom = self.bloom_filter.generate(f"{group}#{topic}")
        same = (
            known is not None
            and (known.expression, known.expression_type) == (subscription.sub_string, subscription.expression_type)
            and known.bloom_filter_data == bloom
        )
        if known is not None and same:
            known.client_version = version
            if known.is_dead:
                self._revive(known)
            return
        data = build_filter_data(
            topic, group, subscription.sub_string, subscription.expression_type, version, self._node.now_ms()
        )
        if data is None:
            # Its consumer shall be told of it when it pulls.
            groups.pop(group, None)
            self._changed(group, topic, subscription.sub_string, REFUSED)
            return
        data.bloom_filter_data = bloom
        groups[group] = data
        self._changed(group, topic, data.expression, REGISTERED if known is None else REPLACED)

    def _die(self, data: ConsumerFilterData) -> None:
        if not data.is_dead:
            data.dead_time = self._node.now_ms()
            self._changed(data.consumer_group, data.topic, data.expression, DEAD)

    def _revive(self, data: ConsumerFilterData) -> None:
        data.dead_time = 0
        self._changed(data.consumer_group, data.topic, data.expression, ALIVE_AGAIN)

    def _changed(self, group: str, topic: str, expression: str, change: str) -> None:
        hooks = self._node.hooks
        if hooks.on:
            hooks.emit(ConsumerFilterChanged(group, topic, expression, change))

    # -- the file ---------------------------------------------------------------------------------------------------

    def clean(self) -> None:
        """Drop the filters that were dead for too long, and topics without any."""
        now_ms, longest = self._node.now_ms(), self._config.filter_data_clean_time_span
        for topic, groups in list(self.filter_data_by_topic.items()):
            for group, data in list(groups.items()):
                if data.is_dead and now_ms - data.dead_time >= longest:
                    del groups[group]
                    self._changed(group, topic, data.expression, DROPPED)
            if not groups:
                del self.filter_data_by_topic[topic]

    def encode(self) -> dict[str, Any]:
        """The content of consumerFilter.json."""
        self.clean()
        table = self.filter_data_by_topic
        return {
            "filterDataByTopic": {
                topic: {
                    "groupFilterData": {
                        group: table[topic][group].to_json() for group in java_map_order(table[topic], _GROUP_CAPACITY)
                    },
                    "topic": topic,
                }
                for topic in java_map_order(table, _TOPIC_CAPACITY)
            }
        }

    def decode(self, value: dict[str, Any]) -> None:
        """Take over the filters of a file; all of them are dead for now."""
        table: dict[str, dict[str, ConsumerFilterData]] = {}
        now_ms = self._node.now_ms()
        for topic, of_topic in _object(value.get("filterDataByTopic")).items():
            for group, one in _object(_object(of_topic).get("groupFilterData")).items():
                data = ConsumerFilterData.from_json(one)
                if not self.bloom_filter.is_valid(data.bloom_filter_data):
                    return
                if data.dead_time == 0:
                    data.dead_time = max(data.born_time, now_ms - _DEAD_SINCE_LOADED_MS)
                table.setdefault(topic, {})[group] = data
        self.filter_data_by_topic = table


def _object(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BodyError("consumerFilter.json", f"{value!r} is no table of filters")
    return value
