"""The attributes of a topic: which there are, what they may be, and how a request changes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mqlab.errors import LearnerError


class _Attribute(NamedTuple):
    changeable: bool
    allowed: str
    is_valid: Callable[[str], bool]


def _one_of(*values: str) -> tuple[str, Callable[[str], bool]]:
    return ", ".join(values), lambda value: value in values


TOPIC_ATTRIBUTES: dict[str, _Attribute] = {
    "queue.type": _Attribute(False, *_one_of("SimpleCQ", "BatchCQ")),
    "cleanup.policy": _Attribute(False, *_one_of("DELETE", "COMPACTION")),
    "message.type": _Attribute(True, *_one_of("UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED")),
    "reserve.time": _Attribute(True, "a number from -1 on", lambda value: value == "-1" or value.isdecimal()),
}
"""The attributes of a topic (org.apache.rocketmq.common.TopicAttributes)."""

BATCH_CQ = "BatchCQ"


def is_batch_cq(attributes: dict[str, str]) -> bool:
    """Does the topic keep batches together, in a batch consume queue?"""
    return attributes.get("queue.type") == BATCH_CQ


def parse_attributes(text: str | None) -> dict[str, str]:
    """The changes in a text such as "+queue.type=BatchCQ,-reserve.time", signs kept; LearnerError for other texts.

    Java: org.apache.rocketmq.common.attribute.AttributeParser.
    """
    changes: dict[str, str] = {}
    for part in (text or "").split(","):
        if not part:
            continue
        key, separator, value = part.partition("=")
        if key[:1] not in ("+", "-") or len(key) < 2:
            raise LearnerError(f"add/alter/delete attribute format is wrong: {part}", "write +name=value or -name")
        if key[0] == "+" and not separator:
            raise LearnerError(f"add/alter attribute format is wrong: {part}", "write +name=value")
        if key in changes:
            raise LearnerError(f"key duplication: {key}", "name each attribute once")
        changes[key] = value
    return changes


def alter_attributes(creating: bool, current: dict[str, str], changes: dict[str, str]) -> dict[str, str]:
    """The attributes after these changes; LearnerError when a name, a value or the change itself is not allowed.

    Java: org.apache.rocketmq.common.attribute.AttributeUtil.alterCurrentAttributes.
    """
    final = dict(current)
    for key, value in changes.items():
        sign, name = key[0], key[1:]
        if creating and sign == "-":
            message = f"only add attribute is supported while creating topic. key: {name}"
            raise LearnerError(message, f"write +{name}=...")
        attribute = TOPIC_ATTRIBUTES.get(name)
        if attribute is None:
            raise LearnerError(f"unsupported key: {name}", f"there are {', '.join(TOPIC_ATTRIBUTES)}")
        if not creating and not attribute.changeable:
            raise LearnerError(f"attempt to update an unchangeable attribute. key: {name}", "create another topic")
        if sign == "-":
            if name not in final:
                raise LearnerError(f"attempt to delete a nonexistent key: {name}", "leave it out")
            del final[name]
        elif not attribute.is_valid(value):
            raise LearnerError(f"value is not in set: {name}={value}", f"it may be {attribute.allowed}")
        else:
            final[name] = value
    return final
