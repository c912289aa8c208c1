"""Which groups pull a topic, and which pop it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqlab.broker.config_manager import ConfigManager
from mqlab.protocol.assignment import MessageRequestModeSerializeWrapper, SetMessageRequestModeRequestBody
from mqlab.trace.events.broker import MessageRequestModeSet

if TYPE_CHECKING:
    from mqlab.sim import Node


class MessageRequestModeManager(ConfigManager):
    """The mode of each topic and group for which an administrator has set one, kept in config/messageRequestMode.json.

    Java: org.apache.rocketmq.broker.loadbalance.MessageRequestModeManager. As there, a file that cannot be read counts
    as an empty table, and the broker starts all the same.
    """

    def __init__(self, node: Node, path: str) -> None:
        super().__init__(node, path)
        self.message_request_mode_map: dict[str, dict[str, SetMessageRequestModeRequestBody]] = {}

    def get_message_request_mode(self, topic: str, group: str) -> SetMessageRequestModeRequestBody | None:
        """What was set for this topic and group, or None."""
        return self.message_request_mode_map.get(topic, {}).get(group)

    def set_message_request_mode(self, body: SetMessageRequestModeRequestBody) -> None:
        """Set the mode of a topic and a group, and write the file."""
        self.message_request_mode_map.setdefault(body.topic, {})[body.consumer_group] = body
        self.persist()
        if self._node.hooks.on:
            self._node.hooks.emit(
                MessageRequestModeSet(body.consumer_group, body.topic, body.mode, body.pop_share_queue_num)
            )

    def wrapper(self) -> MessageRequestModeSerializeWrapper:
        """The whole table, as the file on the disk has it."""
        return MessageRequestModeSerializeWrapper(self.message_request_mode_map)

    def encode(self) -> dict[str, Any]:
        """The content of messageRequestMode.json."""
        return self.wrapper().to_json()

    def decode(self, value: dict[str, Any]) -> None:
        """Take over the table of a file."""
        self.message_request_mode_map = MessageRequestModeSerializeWrapper.from_json(value).message_request_mode_map
