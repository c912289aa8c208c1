"""How far each consumer group has come in each queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqlab.broker.config_manager import ConfigManager
from mqlab.protocol.hashing import java_map_order
from mqlab.protocol.topic_config import ConsumerOffsetSerializeWrapper, DataVersion
from mqlab.trace.events.broker import OffsetCommitted, OffsetReset

if TYPE_CHECKING:
    from mqlab.sim import Node

TOPIC_GROUP_SEPARATOR = "@"
COMMITS_PER_VERSION = 500
MAP_CAPACITY = 1024
GROUP_MAP_CAPACITY = 128

NOT_FOUND = -1


class ConsumerOffsetManager(ConfigManager):
    """Progress by group, topic and queue, kept in config/consumerOffset.json.

    Java: org.apache.rocketmq.broker.offset.ConsumerOffsetManager. A commit changes the memory only; the file follows
    every 5 s and at a clean stop, so a crash sets groups back by up to that much, and they consume again. A commit
    overwrites what was there, also with something smaller.
    """

    def __init__(self, node: Node, path: str) -> None:
        super().__init__(node, path)
        self._unsaved = False
        self._commits = 0
        self.offset_table: dict[str, dict[int, int]] = {}
        self.pull_offset_table: dict[str, dict[int, int]] = {}
        self.reset_offset_table: dict[str, dict[int, int]] = {}
        self.data_version = DataVersion(node.now_ms())

    # -- progress ---------------------------------------------------------------------------------------------------

    def commit_offset(self, group: str, topic: str, queue_id: int, offset: int, origin: str = "asked") -> None:
        """The group has consumed the queue up to this offset; `origin` says in a trace how the broker heard of it.

        Java: org.apache.rocketmq.broker.offset.ConsumerOffsetManager.commitOffset.
        """
        self.offset_table.setdefault(f"{topic}@{group}", {})[queue_id] = offset
        self._unsaved = True
        self._commits += 1
        if self._commits % COMMITS_PER_VERSION == 0:
            self.data_version.next_version(self._node.now_ms())
        hooks = self._node.hooks
        if hooks.on:
            hooks.emit(OffsetCommitted(group, topic, queue_id, offset, origin))

    def commit_pull_offset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """The group was given the queue's messages up to this offset; kept in memory only."""
        self.pull_offset_table.setdefault(f"{topic}@{group}", {})[queue_id] = offset

    def query_offset(self, group: str, topic: str, queue_id: int) -> int:
        """The group's progress; a reset that waits to be picked up comes first; -1 if there is none."""
        key = f"{topic}@{group}"
        reset = self.reset_offset_table.get(key)
        if reset is not None and queue_id in reset:
            return reset[queue_id]
        return self.offset_table.get(key, {}).get(queue_id, NOT_FOUND)

    def query_pull_offset(self, group: str, topic: str, queue_id: int) -> int:
        """Up to where the group was given messages; its progress if that is not known since the broker's start."""
        offset = self.pull_offset_table.get(f"{topic}@{group}", {}).get(queue_id)
        return self.query_offset(group, topic, queue_id) if offset is None else offset

    def clear_pull_offset(self, group: str, topic: str) -> None:
        """Forget up to where the group was given messages of a topic: it goes on from its progress."""
        self.pull_offset_table.pop(f"{topic}@{group}", None)

    def put_all(self, wrapper: ConsumerOffsetSerializeWrapper) -> None:
        """Take over a master's progress, as a slave does: that of groups that the master does not know stays."""
        self.offset_table.update(wrapper.offset_table)
        self.data_version.assign(wrapper.data_version)
        self._unsaved = True
        self.persist()

    # -- resets by the broker ---------------------------------------------------------------------------------------

    def assign_reset_offset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Move the group to this offset; its next pull is told, and commits until then are ignored."""
        self.reset_offset_table.setdefault(f"{topic}@{group}", {})[queue_id] = offset
        self.commit_offset(group, topic, queue_id, offset, "reset")
        if self._node.hooks.on:
            self._node.hooks.emit(OffsetReset(group, topic, queue_id, offset))

    def has_offset_reset(self, group: str, topic: str, queue_id: int) -> bool:
        """Does a reset wait for the group's next pull?"""
        return queue_id in self.reset_offset_table.get(f"{topic}@{group}", {})

    def query_then_erase_reset_offset(self, group: str, topic: str, queue_id: int) -> int | None:
        """The waiting reset, which is thereby picked up; None if there is none."""
        if not self.reset_offset_table:
            return None
        return self.reset_offset_table.get(f"{topic}@{group}", {}).pop(queue_id, None)

    # -- tables -----------------------------------------------------------------------------------------------------

    def which_topic_by_consumer(self, group: str) -> list[str]:
        """The topics in which the group has progress."""
        return [topic for topic, owner in self._topics_and_groups() if owner == group]

    def which_group_by_topic(self, topic: str) -> list[str]:
        """The groups that have progress in a topic."""
        return [group for owned, group in self._topics_and_groups() if owned == topic]

    def query_offsets(self, group: str, topic: str) -> dict[int, int]:
        """The group's progress in all queues of a topic."""
        return dict(self.offset_table.get(f"{topic}@{group}", {}))

    def clone_offset(self, source: str, target: str, topic: str) -> None:
        """Give a group the progress that another one has in a topic, in place of its own; nothing without any.

        Java: org.apache.rocketmq.broker.offset.ConsumerOffsetManager.cloneOffset.
        """
        offsets = self.offset_table.get(f"{topic}@{source}")
        if offsets is None:
            return
        self.offset_table[f"{topic}@{target}"] = dict(offsets)
        self._unsaved = True
        if self._node.hooks.on:
            for queue_id, offset in sorted(offsets.items()):
                self._node.hooks.emit(OffsetCommitted(target, topic, queue_id, offset, "cloned"))

    def remove_offset(self, group: str) -> None:
        """Forget the progress of a group."""
        self._remove([f"{topic}@{owner}" for topic, owner in self._topics_and_groups() if owner == group])

    def clean_offset_by_topic(self, topic: str) -> None:
        """Forget the progress of all groups in a topic."""
        self._remove([f"{owned}@{group}" for owned, group in self._topics_and_groups() if owned == topic])

    def _remove(self, keys: list[str]) -> None:
        for key in keys:
            for table in (self.offset_table, self.pull_offset_table, self.reset_offset_table):
                table.pop(key, None)
            self._unsaved = True

    def _topics_and_groups(self) -> list[tuple[str, str]]:
        """Topic and group of each key; the progress of broadcasting groups has a third part and is left out."""
        parts = (key.split(TOPIC_GROUP_SEPARATOR) for key in self.offset_table)
        return [(pair[0], pair[1]) for pair in parts if len(pair) == 2]

    # -- the file ---------------------------------------------------------------------------------------------------

    def persist(self) -> bool:
        """Write the file if anything changed since it was written; whether nothing is left to write."""
        if self._unsaved and super().persist():
            self._unsaved = False
        return not self._unsaved

    def wrapper(self) -> ConsumerOffsetSerializeWrapper:
        """The whole table, with the by-product that RocketMQ writes beside it: the topics of each group."""
        table = self.offset_table
        ordered = {key: dict(sorted(table[key].items())) for key in java_map_order(table, MAP_CAPACITY)}
        topics: dict[str, list[str]] = {}
        for key in ordered:
            parts = key.split(TOPIC_GROUP_SEPARATOR)
            if len(parts) == 2:
                topics.setdefault(parts[1], []).append(parts[0])
        by_group = {group: tuple(topics[group]) for group in java_map_order(topics, GROUP_MAP_CAPACITY)}
        return ConsumerOffsetSerializeWrapper(ordered, self.data_version, by_group)

    def encode(self) -> dict[str, Any]:
        """The content of consumerOffset.json."""
        return self.wrapper().to_json()

    def decode(self, value: dict[str, Any]) -> None:
        """Take over the progress in a file."""
        wrapper = ConsumerOffsetSerializeWrapper.from_json(value)
        self.offset_table = wrapper.offset_table
        self.data_version.assign(wrapper.data_version)
