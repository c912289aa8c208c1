"""The header of a remoting command in JSON, member by member: which bytes say what."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from mqlab.protocol import codes
from mqlab.protocol.header_codec import camel_case
from mqlab.protocol.headers import SendMessageRequestHeaderV2

_KEY = re.compile(r'[{},\s]*"((?:[^"\\]|\\.)*)"\s*:\s*')
_WITH_LETTERS = (codes.RequestCode.SEND_MESSAGE_V2, codes.RequestCode.SEND_BATCH_MESSAGE)
_LETTERS = {chr(ord("a") + n): name for n, name in enumerate(SendMessageRequestHeaderV2._fields)}


class Member(NamedTuple):
    """One member of the header: its name, where it begins in the header, its length in bytes, and what it says."""

    name: str
    start: int
    length: int
    value: str


def json_header_members(header: bytes) -> list[Member]:
    """The members of a header in order, those of `extFields` among them; each begins with the punctuation before it.

    Together they cover the header. A header that is no JSON object of plain members gives an empty list.
    """
    try:
        text = header.decode("utf-8")
        fields = json.loads(text)
    except ValueError:
        return []
    if not isinstance(fields, dict):
        return []
    flag = fields.get("flag")
    is_request = not (isinstance(flag, int) and flag & 1)
    names = _LETTERS if is_request and fields.get("code") in _WITH_LETTERS else {}
    found = list(_walk(text))
    members = []
    for n, (key, value, start, end) in enumerate(found):
        last = n == len(found) - 1
        at = len(text[:start].encode())
        length = len(header) - at if last else len(text[start:end].encode())
        members.append(Member(_long_name(key, names), at, length, _said(key, value, is_request)))
    return members


def _walk(text: str) -> Iterator[tuple[str, object, int, int]]:
    """Key, value, and from where to where, for each member that is not the object `extFields` itself."""
    decoder = json.JSONDecoder()
    start = 0
    while (key := _KEY.match(text, start)) is not None:
        if key[1] == "extFields" and text.startswith("{", key.end()):
            inner = _KEY.match(text, key.end())
            if inner is None:
                return
            key = inner
        value, end = decoder.raw_decode(text, key.end())
        yield key[1], value, start, end
        start = end


def _long_name(key: str, names: dict[str, str]) -> str:
    """The key, and for the one-letter keys of a send what the letter stands for."""
    if key not in names:
        return key
    return f"{key} = {camel_case(names[key])}"


def _said(key: str, value: object, is_request: bool) -> str:
    if key == "code" and isinstance(value, int):
        return f"{value}  {codes.code_name(value, not is_request)}"
    said = str(value).lower() if isinstance(value, bool) else str(value)
    return said.replace("\x01", "=").replace("\x02", "; ")
