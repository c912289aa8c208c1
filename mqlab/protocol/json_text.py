"""JSON strings escaped as fastjson, RocketMQ's JSON library, escapes them."""

from __future__ import annotations

import json
import re

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def json_string(text: str) -> str:
    """The text in quotes; control characters become escapes with upper-case digits, the rest stays as it is."""
    if text.isascii() and text.isprintable():
        return json.encoder.encode_basestring(text)
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + _CONTROLS.sub(lambda match: _escape(match[0]), text) + '"'


def _escape(character: str) -> str:
    return _SHORT.get(character) or f"\\u{ord(character):04X}"
