"""What a pop answer says beside its messages: the receipt handles, and the texts from which clients make them.

Java: org.apache.rocketmq.remoting.protocol.header.ExtraInfoUtil. A handle is what RocketMQ keeps in the property POP_CK
of a popped message; whoever acknowledges it, or wants longer for it, gives the handle back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple, TypeVar

from mqlab.protocol.errors import ExtraInfoError
from mqlab.protocol.pop_check_point import POP_ORDER_REVIVE_QUEUE
from mqlab.protocol.topics import RETRY_GROUP_TOPIC_PREFIX, is_pop_retry_topic_v2, pop_retry_topic

NORMAL_TOPIC = "0"
RETRY_TOPIC = "1"
RETRY_TOPIC_V2 = "2"

_PLAIN_HANDLE = re.compile(
    r"([0-9]{1,18}) ([0-9]{1,18}) ([0-9]{1,18}) ([0-9]{1,18}) ([^ ]+) ([^ ]+) ([0-9]{1,18}) ([0-9]{1,18})", re.ASCII
)
_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_GETTERS = (
    "CkQueueOffset", "PopTime", "InvisibleTime", "ReviveQid", "Retry", "BrokerName", "QueueId", "QueueOffset",
)  # fmt: skip
_NUMBERS = (0, 1, 2, 3, 6, 7)
_LONG = 1 << 63

V = TypeVar("V")


class ReceiptHandle(NamedTuple):
    """One delivery of one message by Pop: eight fields joined by a space, nine from a proxy.

    `start_offset` is the first offset of the batch (its check point's), `pop_time` and `invisible_time` are in ms,
    `retry` says from which kind of topic it came ("0" normal, "1" retry, "2" retry of the second form), `queue_offset`
    is the message's own place in its queue. A proxy adds the message's place in the commit log.
    """

    start_offset: int
    pop_time: int
    invisible_time: int
    revive_qid: int
    retry: str
    broker_name: str
    queue_id: int
    queue_offset: int
    commit_log_offset: int | None = None

    def encode(self) -> str:
        """The text of the handle."""
        text = (
            f"{self.start_offset} {self.pop_time} {self.invisible_time} {self.revive_qid} {self.retry} "
            f"{self.broker_name} {self.queue_id} {self.queue_offset}"
        )
        return text if self.commit_log_offset is None else f"{text} {self.commit_log_offset}"

    @property
    def is_order(self) -> bool:
        """Was it popped in order? Such messages have no check point."""
        return self.revive_qid == POP_ORDER_REVIVE_QUEUE

    @property
    def expires_ms(self) -> int:
        """When the message can be seen again by others, ms since 1970."""
        return self.pop_time + self.invisible_time

    def real_topic(self, topic: str, group: str) -> str:
        """The topic that the message was popped from: `topic`, or the group's retry topic for it."""
        return real_topic(topic, group, self.retry if self.retry in (RETRY_TOPIC, RETRY_TOPIC_V2) else NORMAL_TOPIC)

    def changed(self, topic: str, pop_time: int, invisible_time: int, revive_qid: int) -> ReceiptHandle:
        """The handle after a change of the invisible time, which the broker has answered with these three. It is of
        this message alone; `topic` is the one that it was popped from.

        Java: org.apache.rocketmq.client.impl.MQClientAPIImpl.changeInvisibleTimeAsync.
        """
        return self._replace(
            start_offset=self.queue_offset, pop_time=pop_time, invisible_time=invisible_time, revive_qid=revive_qid,
            retry=retry_flag(topic),
        )  # fmt: skip


@lru_cache(maxsize=4096)
def parse_handle(text: str) -> ReceiptHandle:
    """The handle that a text is; ExtraInfoError, worded as a broker answers it, when it is cut or no handle.

    Client and broker read each handle several times within milliseconds.
    """
    plain = _PLAIN_HANDLE.fullmatch(text)
    if plain is None:
        return _parse_any_handle(text)
    start_offset, pop_time, invisible_time, revive_qid, retry, broker_name, queue_id, queue_offset = plain.groups()
    return ReceiptHandle(
        int(start_offset), int(pop_time), int(invisible_time), int(revive_qid), retry, broker_name, int(queue_id),
        int(queue_offset),
    )  # fmt: skip


def _parse_any_handle(text: str) -> ReceiptHandle:
    """The same for a text with a ninth field, signs or empty fields, or one that is no handle at all."""
    fields = _split(text, " ")
    for place, getter in enumerate(_GETTERS):
        if place >= len(fields):
            raise ExtraInfoError(f"get{getter} fail, extraInfoStrs length {len(fields)}")
        if place in _NUMBERS:
            _number(fields[place])
    numbers = {place: _number(fields[place]) for place in _NUMBERS}
    commit_log_offset = _number(fields[8]) if len(fields) > 8 else None
    return ReceiptHandle(
        numbers[0], numbers[1], numbers[2], numbers[3], fields[4], fields[5], numbers[6], numbers[7], commit_log_offset
    )


def retry_flag(topic: str) -> str:
    """What a handle says of a topic: "0" normal, "1" retry, "2" retry of the second form."""
    if is_pop_retry_topic_v2(topic):
        return RETRY_TOPIC_V2
    return RETRY_TOPIC if topic.startswith(RETRY_GROUP_TOPIC_PREFIX) else NORMAL_TOPIC


def real_topic(topic: str, group: str, retry: str) -> str:
    """The topic behind a retry flag; ExtraInfoError when there is no such flag."""
    if retry == NORMAL_TOPIC:
        return topic
    if retry not in (RETRY_TOPIC, RETRY_TOPIC_V2):
        raise ExtraInfoError("getRetry fail, format is wrong")
    return pop_retry_topic(topic, group, version_2=retry == RETRY_TOPIC_V2)


# -- the three texts of an answer -------------------------------------------------------------------------------------


def start_offset_info(topic: str, queue_id: int, start_offset: int) -> str:
    """One entry of startOffsetInfo: where the batch of a queue begins. Entries are joined by `;`."""
    return f"{retry_flag(topic)} {queue_id} {start_offset}"


def msg_offset_info(topic: str, queue_id: int, offsets: Iterable[int]) -> str:
    """One entry of msgOffsetInfo: the offsets of the messages of a queue. Entries are joined by `;`."""
    return f"{retry_flag(topic)} {queue_id} {','.join(map(str, offsets))}"


def queue_id_order_count_info(topic: str, queue_id: int, order_count: int) -> str:
    """One entry of orderCountInfo: how often the batch of a queue was consumed before, at least."""
    return f"{retry_flag(topic)} {queue_id} {order_count}"


def queue_offset_order_count_info(topic: str, queue_id: int, queue_offset: int, order_count: int) -> str:
    """One entry of orderCountInfo: how often one message was consumed before."""
    return f"{retry_flag(topic)} {queue_offset_key(queue_id, queue_offset)} {order_count}"


def queue_offset_key(queue_id: int, queue_offset: int) -> str:
    """The name of one message in orderCountInfo."""
    return f"qo{queue_id}%{queue_offset}"


def queue_key(topic: str, queue_id: int) -> str:
    """Where a queue stands in what the parsers below give: `flag@queueId`."""
    return f"{retry_flag(topic)}@{queue_id}"


def message_key(topic: str, queue_id: int, queue_offset: int) -> str:
    """Where a message stands in a parsed orderCountInfo: `flag@qo<queueId>%<offset>`."""
    return f"{retry_flag(topic)}@{queue_offset_key(queue_id, queue_offset)}"


def parse_start_offset_info(text: str | None) -> dict[str, int]:
    """Queue key -> first offset; ExtraInfoError for a text that is none."""
    return _parse(text, "startOffsetInfo", _number)


def parse_msg_offset_info(text: str | None) -> dict[str, list[int]]:
    """Queue key -> offsets of the messages; ExtraInfoError for a text that is none."""
    return _parse(text, "msgOffsetMap", lambda field: [_number(part) for part in _split(field, ",")])


def parse_order_count_info(text: str | None) -> dict[str, int]:
    """Queue key or message key -> how often consumed before; ExtraInfoError for a text that is none."""
    return _parse(text, "orderCountInfo", _number)


def _parse(text: str | None, name: str, read: Callable[[str], V]) -> dict[str, V]:
    found: dict[str, V] = {}
    for entry in _split(text, ";") if text else ():
        fields = _split(entry, " ")
        if len(fields) != 3:
            raise ExtraInfoError(f"parse {name} error, {text}")
        key = f"{fields[0]}@{fields[1]}"
        if key in found:
            raise ExtraInfoError(f"parse {name} error, duplicate, {text}")
        found[key] = read(fields[2])
    return found


def _split(text: str, separator: str) -> list[str]:
    """The parts of a text as Java's split gives them: without empty ones at the end."""
    parts = text.split(separator)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts


def _number(text: str) -> int:
    if _NUMBER.fullmatch(text) and -_LONG <= (number := int(text)) < _LONG:
        return number
    raise ExtraInfoError(f'For input string: "{text}"')
