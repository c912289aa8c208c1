"""What a broker notes of messages that it has handed out by Pop, and of those that came back: check points and acks.

Both are JSON texts in messages of the revive topic; who reads the topic finds out what was never acknowledged.
Java: org.apache.rocketmq.store.pop.PopCheckPoint, AckMsg, BatchAckMsg and org.apache.rocketmq.common.PopAckConstants.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from mqlab.protocol.errors import BodyError
from mqlab.protocol.json_body import JsonBody, json_names
from mqlab.protocol.json_text import json_string
from mqlab.protocol.topics import REVIVE_TOPIC_PREFIX

REVIVE_GROUP = "CID_RMQ_SYS_REVIVE_GROUP"
CK_TAG = "ck"
ACK_TAG = "ack"
BATCH_ACK_TAG = "bAck"
POP_ORDER_REVIVE_QUEUE = 999
ACK_TIME_INTERVAL_MS = 1_000
"""A check point is due this long before the acks that belong to it."""

_INT = 1 << 32


def revive_topic(cluster: str) -> str:
    """The topic that keeps the check points and acks of a cluster's brokers (buildClusterReviveTopic)."""
    return REVIVE_TOPIC_PREFIX + cluster


def is_revive_topic(topic: str) -> bool:
    """Whether a topic keeps check points and acks (PopAckConstants.isStartWithRevivePrefix)."""
    return topic.startswith(REVIVE_TOPIC_PREFIX)


@json_names(
    start_offset="so", pop_time="pt", invisible_time="it", bit_map="bm", num="n", queue_id="q", topic="t", group="c",
    revive_offset="ro", queue_offset_diff="d", broker_name="bn", re_put_times="rp",
)  # fmt: skip
@dataclass(slots=True)
class PopCheckPoint(JsonBody):
    """One batch of messages that one pop took from one queue (org.apache.rocketmq.store.pop.PopCheckPoint).

    `num` messages from `start_offset` on; `queue_offset_diff` says how far each is from there, and is left out when a
    message stands alone or was written by an old broker. Bit i of `bit_map` says that message i is acknowledged.
    `topic` is the one popped from, perhaps a retry topic; times are in ms. `revive_offset` is the check point's own
    place in its revive queue, known to who has read it there; `re_put_times` says how often its revival was put off.
    """

    start_offset: int = 0
    pop_time: int = 0
    invisible_time: int = 0
    bit_map: int = 0
    num: int = 0
    queue_id: int = 0
    topic: str | None = None
    group: str | None = None
    revive_offset: int = 0
    queue_offset_diff: list[int] | None = None
    broker_name: str | None = None
    re_put_times: str | None = None

    @property
    def revive_time(self) -> int:
        """When the messages can be seen again, ms since 1970."""
        return self.pop_time + self.invisible_time

    @property
    def merge_key(self) -> str:
        """What a check point has in common with its acks."""
        return merge_key(self)

    @property
    def unique_key(self) -> str:
        """The unique key of the message that holds the check point (PopMessageProcessor.genCkUniqueId)."""
        return "@".join((
            f"{self.topic}", str(self.queue_id), str(self.start_offset), f"{self.group}", str(self.pop_time),
            f"{self.broker_name}", CK_TAG,
        ))  # fmt: skip

    def add_diff(self, diff: int) -> None:
        """Note one more message, this far behind the first."""
        if self.queue_offset_diff is None:
            self.queue_offset_diff = []
        self.queue_offset_diff.append(diff)

    def index_of_ack(self, ack_offset: int) -> int:
        """Which message an ack of this offset means; -1 when none."""
        if ack_offset < self.start_offset:
            return -1
        diff = ack_offset - self.start_offset
        if not self.queue_offset_diff:
            return diff if diff < self.num else -1
        try:
            return self.queue_offset_diff.index(diff)
        except ValueError:
            return -1

    def ack_offset_by_index(self, index: int) -> int:
        """The offset of message `index`."""
        if not self.queue_offset_diff:
            return self.start_offset + index
        return self.start_offset + self.queue_offset_diff[index]

    def offsets(self) -> list[int]:
        """The offsets of all its messages."""
        return [self.ack_offset_by_index(index) for index in range(self.num)]

    def parse_re_put_times(self) -> int:
        """How often its revival was put off; the greatest number when the text is none, as RocketMQ reads it."""
        if self.re_put_times is None:
            return 0
        try:
            return int(self.re_put_times)
        except ValueError:
            return 2**31 - 1

    def to_json(self) -> dict[str, Any]:
        """The object as fastjson writes it; `reviveTime` stands in it because RocketMQ's class has such a getter."""
        # Python needs the class by name, as a dataclass with slots is a new one.
        plain = super(PopCheckPoint, self).to_json()
        if self.bit_map >= _INT >> 1:
            plain["bm"] = self.bit_map - _INT
        plain["reviveTime"] = self.revive_time
        return dict(sorted(plain.items()))

    @classmethod
    def from_json(cls, members: Mapping[Any, Any]) -> Self:
        """The check point that an object describes; BodyError naming the member that is wrong."""
        point = super(PopCheckPoint, cls).from_json(members)
        point.bit_map %= _INT
        return point


@json_names(ack_offset="ao", start_offset="so", group="c", topic="t", queue_id="q", pop_time="pt", broker_name="bn")
@dataclass(slots=True)
class AckMsg(JsonBody):
    """One message of a batch is done: the one at `ack_offset` (org.apache.rocketmq.store.pop.AckMsg)."""

    ack_offset: int = 0
    start_offset: int = 0
    group: str | None = None
    topic: str | None = None
    queue_id: int = 0
    pop_time: int = 0
    broker_name: str | None = None

    @property
    def merge_key(self) -> str:
        """What an ack has in common with its check point."""
        return merge_key(self)

    def encode(self) -> bytes:
        """The body of the message that holds it; written out for a plain one, of which every popped message has one."""
        group, topic, broker_name = self.group, self.topic, self.broker_name
        if type(self) is not AckMsg or group is None or topic is None or broker_name is None:
            return JsonBody.encode(self)
        return (
            f'{{"ao":{self.ack_offset},"bn":{json_string(broker_name)},"c":{json_string(group)},"pt":{self.pop_time},'
            f'"q":{self.queue_id},"so":{self.start_offset},"t":{json_string(topic)}}}'
        ).encode("utf-8", "replace")

    def offsets(self) -> list[int]:
        """The offsets that are done."""
        return [self.ack_offset]

    @property
    def tag(self) -> str:
        """The tag of the message that holds it."""
        return ACK_TAG

    @property
    def unique_key(self) -> str:
        """The unique key of the message that holds it (PopMessageProcessor.genAckUniqueId)."""
        return "@".join((
            f"{self.topic}", str(self.queue_id), str(self.ack_offset), f"{self.group}", str(self.pop_time),
            f"{self.broker_name}", ACK_TAG,
        ))  # fmt: skip


@json_names(
    ack_offset="ao", start_offset="so", group="c", topic="t", queue_id="q", pop_time="pt", broker_name="bn",
    ack_offset_list="aol",
)  # fmt: skip
@dataclass(slots=True)
class BatchAckMsg(AckMsg):
    """Several messages of a batch are done (org.apache.rocketmq.store.pop.BatchAckMsg)."""

    ack_offset_list: list[int] = field(default_factory=list)

    def offsets(self) -> list[int]:
        """The offsets that are done."""
        return self.ack_offset_list

    @property
    def tag(self) -> str:
        """The tag of the message that holds it."""
        return BATCH_ACK_TAG

    @property
    def unique_key(self) -> str:
        """The unique key of the message that holds it (PopMessageProcessor.genBatchAckUniqueId): without the broker."""
        listed = f"[{', '.join(map(str, self.ack_offset_list))}]"
        return "@".join((
            f"{self.topic}", str(self.queue_id), listed, f"{self.group}", str(self.pop_time), BATCH_ACK_TAG,
        ))  # fmt: skip


def merge_key(of: PopCheckPoint | AckMsg) -> str:
    """What a check point and its acks have in common: topic, group, queue, start offset, pop time and broker."""
    return f"{of.topic}{of.group}{of.queue_id}{of.start_offset}{of.pop_time}{of.broker_name}"


# -- the body of a batch acknowledgement ------------------------------------------------------------------------------


def bits_of(offsets: Iterable[int]) -> str:
    """Numbers from 0 on as the bits of a java.util.BitSet, in base64."""
    bits = 0
    for offset in offsets:
        bits |= 1 << offset
    return base64.b64encode(bits.to_bytes((bits.bit_length() + 7) // 8, "little")).decode("ascii")


def offsets_of(bits: str) -> list[int]:
    """The numbers whose bits are set; BodyError for a text that is no base64."""
    try:
        value = int.from_bytes(base64.b64decode(bits, validate=True), "little")
    except (binascii.Error, ValueError):
        raise BodyError("BatchAck", f"b: {bits!r} is no base64") from None
    return [place for place, bit in enumerate(reversed(f"{value:b}")) if bit == "1"]


@json_names(
    group="c", topic="t", retry="r", start_offset="so", queue_id="q", revive_queue_id="rq", pop_time="pt",
    invisible_time="it", bit_set="b",
)  # fmt: skip
@dataclass(slots=True)
class BatchAck(JsonBody):
    """Acks of messages of one batch (org.apache.rocketmq.remoting.protocol.body.BatchAck).

    `topic` is the plain topic, `retry` the flag of the handle; bit i of `bit_set` means the offset `start_offset` + i.
    """

    group: str | None = None
    topic: str | None = None
    retry: str | None = None
    start_offset: int = 0
    queue_id: int = 0
    revive_queue_id: int = 0
    pop_time: int = 0
    invisible_time: int = 0
    bit_set: str = ""

    def offsets(self) -> list[int]:
        """The offsets that are acknowledged; BodyError when the bits cannot be read."""
        return [self.start_offset + place for place in offsets_of(self.bit_set)]


@dataclass(slots=True)
class BatchAckMessageRequestBody(JsonBody):
    """What BATCH_ACK_MESSAGE carries (org.apache.rocketmq.remoting.protocol.body.BatchAckMessageRequestBody)."""

    broker_name: str | None = None
    acks: list[BatchAck] = field(default_factory=list)
