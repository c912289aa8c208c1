"""The content of the file of a LocalFileOffsetStore."""

from __future__ import annotations

from dataclasses import dataclass, field

from mqlab.protocol.json_body import JsonBody
from mqlab.protocol.message import MessageQueue


@dataclass(slots=True)
class OffsetSerializeWrapper(JsonBody):
    """Offsets by queue, which fastjson writes as objects.

    Java: org.apache.rocketmq.client.consumer.store.OffsetSerializeWrapper.
    """

    offset_table: dict[MessageQueue, int] = field(default_factory=dict)
