"""A mark in one line of text that only the course's key can have made: for whoever is shown it later."""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import quote, unquote

_MARK = re.compile(
    r"(?P<text>mqlab-mark 1 lab=(?P<lab>\w{1,100}) student=(?P<student>\S{1,300}) points=(?P<points>[\d.]{1,12})/"
    r"(?P<most>\d{1,6}) notebook=[0-9a-f]{0,12}(?: exam=(?P<exam>\S{1,300}))?) hmac=(?P<hmac>[0-9a-f]{32})(?![0-9a-f])"
)


def signed_mark(key: bytes, result: Mapping[str, Any]) -> str:
    """The line of a result: lab, student, points, the notebook's digest, the exam, and the keyed hash of all that."""
    text = (
        f"mqlab-mark 1 lab={result['lab']} student={quote(result['student'], safe='@')} "
        f"points={result['points']:g}/{result['most']} notebook={result['made_of']['notebook'][:12]}"
    )
    if result.get("exam", {}).get("fits"):
        text += f" exam={quote(result['exam']['name'], safe='')}"
    return f"{text} hmac={_hmac(key, text)}"


def verified(key: bytes, text: str) -> dict[str, str] | None:
    """What the last signed line in a text says (lab, student, points, most, exam); None when this key has not signed.

    A report ends with its own line. One before it stands in what a student has written.
    """
    lines = list(_MARK.finditer(" ".join(text.split())))
    found = lines[-1] if lines else None
    if found is None or not hmac.compare_digest(_hmac(key, found["text"]), found["hmac"]):
        return None
    said = {name: unquote(value or "") for name, value in found.groupdict().items()}
    return {name: said[name] for name in ("lab", "student", "points", "most", "exam")}


def _hmac(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode(), sha256).hexdigest()[:32]
