"""Records of the message trace as text: character 1 between fields, character 2 behind each record."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mqlab.client.trace.trace_context import MESSAGE_TYPES, TraceBean, TraceContext, TraceType
from mqlab.errors import ProtocolError
from mqlab.protocol.hashing import java_map_order

CONTENT_SPLITTER = "\x01"
FIELD_SPLITTER = "\x02"


class TraceTransferBean(NamedTuple):
    """What travels of one context: its text, and the words by which it can be found.

    Java: org.apache.rocketmq.client.trace.TraceTransferBean.
    """

    trans_data: str
    trans_key: list[str]


def _text(value: object) -> str:
    """As Java appends it to a text."""
    if value is None:
        return "null"
    return ("false", "true")[value] if isinstance(value, bool) else str(value)


def _record(*fields: object) -> str:
    return CONTENT_SPLITTER.join(map(_text, fields)) + FIELD_SPLITTER


def _message_type(bean: TraceBean) -> int:
    return MESSAGE_TYPES.index(bean.msg_type)


def _pub(c: TraceContext, bean: TraceBean) -> str:
    return _record(
        c.trace_type.value, c.time_stamp, c.region_id, c.group_name, bean.topic, bean.msg_id, bean.tags, bean.keys,
        bean.store_host, bean.body_length, c.cost_time, _message_type(bean), bean.offset_msg_id, c.is_success,
    )  # fmt: skip


def _sub_before(c: TraceContext, bean: TraceBean) -> str:
    return _record(
        c.trace_type.value, c.time_stamp, c.region_id, c.group_name, c.request_id, bean.msg_id, bean.retry_times,
        bean.keys,
    )  # fmt: skip


def _sub_after(c: TraceContext, bean: TraceBean) -> str:
    return _record(
        c.trace_type.value, c.request_id, bean.msg_id, c.cost_time, c.is_success, bean.keys, c.context_code,
        c.time_stamp, c.group_name,
    )  # fmt: skip


def _end_transaction(c: TraceContext, bean: TraceBean) -> str:
    return _record(
        c.trace_type.value, c.time_stamp, c.region_id, c.group_name, bean.topic, bean.msg_id, bean.tags, bean.keys,
        bean.store_host, _message_type(bean), bean.transaction_id, bean.transaction_state, bean.from_transaction_check,
    )  # fmt: skip


def _recall(c: TraceContext, bean: TraceBean) -> str:
    return _record(
        c.trace_type.value, c.time_stamp, c.region_id, c.group_name, bean.topic, bean.msg_id, c.is_success
    )


_ENCODERS: dict[TraceType, Callable[[TraceContext, TraceBean], str]] = {
    TraceType.PUB: _pub,
    TraceType.SUB_BEFORE: _sub_before,
    TraceType.SUB_AFTER: _sub_after,
    TraceType.END_TRANSACTION: _end_transaction,
    TraceType.RECALL: _recall,
}
_FOR_EACH_MESSAGE = (TraceType.SUB_BEFORE, TraceType.SUB_AFTER)
"""These have a record for each message of a call of the listener, all others only one."""


def encode_context(context: TraceContext) -> TraceTransferBean:
    """The text of a context, and its words in the order of Java's set: the id of each message, and its keys.

    Java: org.apache.rocketmq.client.trace.TraceDataEncoder.encoderFromContextBean.
    """
    beans = context.trace_beans
    encode = _ENCODERS[context.trace_type]
    recorded = beans if context.trace_type in _FOR_EACH_MESSAGE else beans[:1]
    words: dict[str, None] = {}
    for bean in beans:
        words[bean.msg_id] = None
        words.update(dict.fromkeys(_split(bean.keys, " ") if bean.keys else ()))
    return TraceTransferBean("".join(encode(context, bean) for bean in recorded), java_map_order(words))


def decode_contexts(text: str) -> list[TraceContext]:
    """The records in a text, each as a context with one message; ProtocolError when one cannot be read.

    Java: org.apache.rocketmq.client.trace.TraceDataEncoder.decoderFromTraceDataString.
    """
    contexts = []
    for record in _split(text, FIELD_SPLITTER) if text else ():
        line = _split(record, CONTENT_SPLITTER)
        decode = _DECODERS.get(line[0])
        if decode is not None:
            try:
                contexts.append(decode(line))
            except (IndexError, ValueError) as error:
                raise ProtocolError(f"the record of a message trace {record!r} cannot be read: {error}") from error
    return contexts


def _split(text: str, separator: str) -> list[str]:
    """As in Java: empty pieces at the end do not count."""
    pieces = text.split(separator)
    while len(pieces) > 1 and not pieces[-1]:
        pieces.pop()
    return pieces


def _true(text: str) -> bool:
    return text.lower() == "true"


def _read_pub(line: list[str]) -> TraceContext:
    bean = TraceBean(
        line[4], line[5], tags=line[6], keys=line[7], store_host=line[8], body_length=int(line[9]),
        msg_type=MESSAGE_TYPES[int(line[11])],
    )  # fmt: skip
    context = TraceContext(TraceType.PUB, int(line[1]), line[2], line[3], int(line[10]), trace_beans=[bean])
    if len(line) == 13:
        # Clients of before 4.5 did not name the place in the log.
        context.is_success = _true(line[12])
    elif len(line) > 13:
        bean.offset_msg_id = line[12]
        context.is_success = _true(line[13])
        bean.client_host = line[14] if len(line) > 14 else ""
    return context


def _read_sub_before(line: list[str]) -> TraceContext:
    bean = TraceBean(msg_id=line[5], retry_times=int(line[6]), keys=line[7])
    return TraceContext(
        TraceType.SUB_BEFORE, int(line[1]), line[2], line[3], request_id=line[4], trace_beans=[bean]
    )


def _read_sub_after(line: list[str]) -> TraceContext:
    context = TraceContext(
        TraceType.SUB_AFTER, cost_time=int(line[3]), is_success=_true(line[4]), request_id=line[1],
        trace_beans=[TraceBean(msg_id=line[2], keys=line[5])],
    )  # fmt: skip
    if len(line) >= 7:
        context.context_code = int(line[6])
    if len(line) >= 9:
        context.time_stamp, context.group_name = int(line[7]), line[8]
    return context


def _read_end_transaction(line: list[str]) -> TraceContext:
    bean = TraceBean(
        line[4], line[5], tags=line[6], keys=line[7], store_host=line[8], msg_type=MESSAGE_TYPES[int(line[9])],
        transaction_id=line[10], transaction_state=line[11], from_transaction_check=_true(line[12]),
    )  # fmt: skip
    return TraceContext(TraceType.END_TRANSACTION, int(line[1]), line[2], line[3], trace_beans=[bean])


def _read_recall(line: list[str]) -> TraceContext:
    bean = TraceBean(line[4], line[5])
    return TraceContext(
        TraceType.RECALL, int(line[1]), line[2], line[3], is_success=_true(line[6]), trace_beans=[bean]
    )


_DECODERS: dict[str, Callable[[list[str]], TraceContext]] = {
    "Pub": _read_pub,
    "SubBefore": _read_sub_before,
    "SubAfter": _read_sub_after,
    "EndTransaction": _read_end_transaction,
    "Recall": _read_recall,
}
