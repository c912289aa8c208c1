"""The properties of a message as one text: name, character 1, value, character 2, and so on.

Java: org.apache.rocketmq.common.message.MessageDecoder.messageProperties2String and string2messageProperties. Nothing
is escaped: a value that holds character 2 ends there, and what follows is lost or taken for another property.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Any

from mqlab.protocol.hashing import java_map_order

NAME_VALUE_SEPARATOR = "\x01"
PROPERTY_SEPARATOR = "\x02"
PROPERTIES_MAX_BYTES = 32767

NEW_MAP_CAPACITY = 16
"""The HashMap of a message that a producer makes."""

DECODED_MAP_CAPACITY = 128
"""The HashMap that a decoder fills, also that of a broker which got a message."""


def encode_properties(properties: Mapping[str, str | None], map_capacity: int | None = None) -> str:
    """The properties as one text, in the order of the mapping; a property that is None is left out.

    With a `map_capacity` they come in the order of a Java HashMap of that capacity, as a real client or broker would
    write them.
    """
    if None not in properties.values():
        template, values_of = _template(tuple(properties), map_capacity)
        return template % values_of(properties)
    names = properties if map_capacity is None else java_map_order(properties, map_capacity)
    return "".join([f"{name}\x01{value}\x02" for name in names if (value := properties[name]) is not None])


@lru_cache(maxsize=4096)
def _template(names: tuple[str, ...], map_capacity: int | None) -> tuple[str, Callable[[Any], object]]:
    """The text of properties with these names, with places for their values, and what takes the values out of a mapping
    in that order: most messages have the same few names.
    """
    ordered = names if map_capacity is None else java_map_order(names, map_capacity)
    template = "".join([f"{name}\x01".replace("%", "%%") + "%s\x02" for name in ordered])
    return template, itemgetter(*ordered) if ordered else tuple


def decode_properties(text: str | None) -> dict[str, str]:
    """The properties in a text; pieces without name, value or separator are passed over, as in RocketMQ."""
    properties: dict[str, str] = {}
    if text:
        for piece in text.removesuffix("\x02").split("\x02"):
            name, _, value = piece.partition("\x01")
            if name and value:
                properties[name] = value
    return properties
