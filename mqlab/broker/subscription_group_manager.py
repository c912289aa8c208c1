"""The consumer groups that a broker knows, and their settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqlab.broker.config_manager import ConfigManager
from mqlab.protocol.hashing import java_map_order
from mqlab.protocol.topic_config import DataVersion, SubscriptionGroupConfig, SubscriptionGroupWrapper
from mqlab.protocol.topics import (
    CID_SYS_RMQ_TRANS,
    GROUP_MAX_LENGTH,
    SELF_TEST_CONSUMER_GROUP,
    TOOLS_CONSUMER_GROUP,
    is_sys_consumer_group,
    is_topic_or_group_illegal,
)
from mqlab.trace.events.broker import SubscriptionGroupCreated, SubscriptionGroupDeleted, SubscriptionGroupUpdated

if TYPE_CHECKING:
    from mqlab.broker.broker_config import BrokerConfig
    from mqlab.sim import Node

SYSTEM_GROUPS = (
    TOOLS_CONSUMER_GROUP,
    "FILTERSRV_CONSUMER",
    SELF_TEST_CONSUMER_GROUP,
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
    CID_SYS_RMQ_TRANS,
)
MAP_CAPACITY = 2048


class SubscriptionGroupManager(ConfigManager):
    """The table of groups, kept in config/subscriptionGroup.json.

    Java: org.apache.rocketmq.broker.subscription.SubscriptionGroupManager. An unknown group is created on its first
    request unless that is switched off or its name is not allowed.
    """

    def __init__(self, node: Node, path: str, config: BrokerConfig) -> None:
        super().__init__(node, path)
        self._config = config
        self.subscription_group_table = {group: SubscriptionGroupConfig(group) for group in SYSTEM_GROUPS}
        self.forbidden_table: dict[str, dict[str, int]] = {}
        self.data_version = DataVersion(node.now_ms())

    def find_subscription_group_config(self, group: str) -> SubscriptionGroupConfig | None:
        """The settings of a group, created with the defaults if that is allowed; else None."""
        config = self.subscription_group_table.get(group)
        if config is not None:
            return config
        if not (self._config.auto_create_subscription_group or is_sys_consumer_group(group)) or not _is_legal(group):
            return None
        config = self.subscription_group_table[group] = SubscriptionGroupConfig(group)
        self._changed()
        self._emit_created(config, "auto")
        return config

    def contains_subscription_group(self, group: str) -> bool:
        """Is the group known? Asking creates nothing."""
        return group in self.subscription_group_table

    def update_subscription_group_config(self, config: SubscriptionGroupConfig) -> None:
        """Create or change a group; nothing about its name is checked, as in RocketMQ."""
        known = config.group_name in self.subscription_group_table
        self.subscription_group_table[config.group_name] = config
        self._changed()
        if not known:
            self._emit_created(config, "admin")
        elif self._node.hooks.on:
            self._node.hooks.emit(
                SubscriptionGroupUpdated(config.group_name, config.retry_queue_nums, config.retry_max_times)
            )

    def replace_all(self, wrapper: SubscriptionGroupWrapper) -> None:
        """Take over a master's table, as a slave does. As in RocketMQ each group that goes and each that comes makes a
        new version beyond the master's, so the tables never count as equal.
        """
        changes = len(self.subscription_group_table) + len(wrapper.subscription_group_table)
        self.subscription_group_table = dict(wrapper.subscription_group_table)
        self.forbidden_table = wrapper.forbidden_table
        self.data_version.assign(wrapper.data_version)
        for _ in range(changes):
            self.data_version.next_version(self._node.now_ms())
        self.persist()

    def delete_subscription_group_config(self, group: str) -> None:
        """Forget the settings of a group, and write the table."""
        known = self.subscription_group_table.pop(group, None)
        self.forbidden_table.pop(group, None)
        if known is None:
            return
        self._changed()
        if self._node.hooks.on:
            self._node.hooks.emit(SubscriptionGroupDeleted(group))

    def is_forbidden(self, group: str, topic: str, bit_index: int) -> bool:
        """May the group not do with the topic what this bit stands for? Bit 2 is reading."""
        return bool(self.forbidden_table.get(group, {}).get(topic, 0) >> bit_index & 1)

    def _emit_created(self, config: SubscriptionGroupConfig, origin: str) -> None:
        if self._node.hooks.on:
            self._node.hooks.emit(
                SubscriptionGroupCreated(config.group_name, config.retry_queue_nums, config.retry_max_times, origin)
            )

    def _changed(self) -> None:
        self.data_version.next_version(self._node.now_ms())
        self.persist()

    def wrapper(self) -> SubscriptionGroupWrapper:
        """All groups with the version of the table."""
        return SubscriptionGroupWrapper(self._in_order(), self.forbidden_table, self.data_version)

    def _in_order(self) -> dict[str, SubscriptionGroupConfig]:
        table = self.subscription_group_table
        return {group: table[group] for group in java_map_order(table, MAP_CAPACITY)}

    def encode(self) -> dict[str, Any]:
        """The content of subscriptionGroup.json."""
        # In the place where the table without groups stands.
        without_groups = SubscriptionGroupWrapper({}, self.forbidden_table, self.data_version).to_json()
        return {**without_groups, "subscriptionGroupTable": self.texts_of(self._in_order())}

    def decode(self, value: dict[str, Any]) -> None:
        """Take over the groups of a file."""
        wrapper = SubscriptionGroupWrapper.from_json(value)
        self.subscription_group_table.update(wrapper.subscription_group_table)
        self.forbidden_table = wrapper.forbidden_table
        self.data_version.assign(wrapper.data_version)


def _is_legal(group: str) -> bool:
    """A name without a character is legal for a broker, though no client of RocketMQ takes it."""
    return len(group) <= GROUP_MAX_LENGTH and not is_topic_or_group_illegal(group)
