"""Sharing: a text or a small file that brings back the exact world at the exact event.

It holds what a report holds (scenario, parameters, seed, actions, overrides, version, trace hash; see `mqlab.replay`)
and the place of the cursor. A text is "mqlab:", the letters A-Z a-z 0-9 - _ = of the packed report, a full stop and the
CRC-32 of these letters in eight hexadecimal digits, so that one letter too much or too few is told. Older texts have no
full stop and nothing after it.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import string
import zlib
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab import __version__
from mqlab.errors import LearnerError, ProtocolError
from mqlab.replay import check_report, read_report, replay, report_of
from mqlab_widgets.links import link_of

if TYPE_CHECKING:
    from mqlab import Lab

PREFIX = "mqlab:"
CURSOR = "cursor"
QUOTES = "\"'`\u201c\u201d\u2018\u2019\u00ab\u00bb"
LETTERS = frozenset(string.ascii_letters + string.digits + "-_=.")
LONGEST_NAME = 255
"""No name of a file or directory is longer."""
COPY = f"copy all of it, from {PREFIX} to its end, and nothing else"
MOST_BYTES = 10_000_000
"""A shared text that unpacks to more than this is refused."""


class Shared(NamedTuple):
    """A text to send to somebody ("" where a link alone can hold the world), behind how many events it opens, and the
    link to the same moment ("" where none can hold it, with the reason).
    """

    text: str
    place: int
    link: str
    no_link: str = ""


def shared_at(lab: Lab, place: int) -> Shared:
    """All that there is to send to somebody who shall see this world behind `place` events."""
    if lab.failure is not None:
        return Shared("", place, link_of(lab, place))
    text = shared_text(lab, place)
    try:
        return Shared(text, place, link_of(lab, place))
    except LearnerError as error:
        return Shared(text, place, "", error.message)


def shared_text(lab: Lab, place: int | None = None) -> str:
    """One line of text to be sent to somebody, which opens where the cursor stands or behind `place` events.

    LearnerError for a world that no scenario made.
    """
    packed = zlib.compress(json.dumps(_shared(lab, place), sort_keys=True).encode(), 9)
    letters = base64.urlsafe_b64encode(packed).decode()
    return f"{PREFIX}{letters}.{_sum_of(letters)}"


def save_shared(lab: Lab, path: str | PurePath) -> None:
    """The same as a file, which `mqlab replay` also reads."""
    Path(path).write_text(json.dumps(_shared(lab), indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _shared(lab: Lab, place: int | None = None) -> dict[str, Any]:
    return {**report_of(lab), CURSOR: lab.history.cursor if place is None else place}


def _sum_of(letters: str) -> str:
    return f"{zlib.crc32(letters.encode()):08x}"


def reopened(shared: str | PurePath, *, allow_source: bool = False) -> Lab:
    """The world of a shared text or file, its cursor where it stood.

    LearnerError when another version of mqlab made it or its events come out differently: then nothing is shown rather
    than something else. ProtocolError when it is damaged. The source of a `%%scenario` cell that comes along is run
    only with `allow_source=True`.
    """
    report = _report_of(shared)
    cursor = report.get(CURSOR, 0)
    if type(cursor) is not int:
        raise ProtocolError(f"this is not a world that was shared: {CURSOR} must be a whole number, not {cursor!r}")
    made_by = report["mqlab"]
    if made_by != __version__:
        raise LearnerError(
            f"this was shared from mqlab {made_by}, and this is {__version__}: the same events may not happen here",
            f"install mqlab {made_by} to open it",
        )
    result = replay(report, allow_source=allow_source)
    if not result.agrees:
        raise LearnerError(
            f"this world does not come out as it was shared: {result}",
            "the code of mqlab or of the scenario has changed since; share it again from there",
        )
    lab = result.lab
    lab.history.move_to(cursor if CURSOR in report else len(lab.history))
    return lab


def _report_of(shared: object) -> dict[str, Any]:
    if isinstance(shared, PurePath):
        return read_report(str(shared))
    if not isinstance(shared, str):
        raise LearnerError(
            f"a world is shared as a text or as a file, and this is {type(shared).__name__}",
            'give "mqlab:..." or a path',
        )
    text = shared.strip()
    if text.startswith(PREFIX):
        return _unpacked(text)
    if text[:1] in QUOTES and text[1:].lstrip().startswith(PREFIX):
        raise ProtocolError(
            f"this line begins with a quotation mark ({text[0]}) that belongs to it no more: "
            f"give it without, from {PREFIX} on"
        )
    if "\n" in text or max(map(len, re.split(r"[/\\]", text))) > LONGEST_NAME:
        raise ProtocolError(
            f"this is neither a line that was shared, which begins with {PREFIX}, nor the name of a file; "
            f"it begins with {text[:12]!r}: copy all of it, from {PREFIX} on"
        )
    return read_report(shared)


def _unpacked(text: str) -> dict[str, Any]:
    letters, stop, given = text.removeprefix(PREFIX).partition(".")
    if strange := sorted(set(text.removeprefix(PREFIX)) - LETTERS):
        told = ", ".join(map(repr, strange[:5]))
        raise ProtocolError(f"this is not a line as it was shared: {told} can't be in it: {COPY}")
    if stop and given != _sum_of(letters):
        raise ProtocolError(f"this line was damaged on its way: a letter is missing, added or changed: {COPY}")
    try:
        packed = base64.urlsafe_b64decode(letters)
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(packed, MOST_BYTES)
        whole = unpacking.eof and not unpacking.unused_data and base64.urlsafe_b64encode(packed).decode() == letters
        report = json.loads(data) if whole else None
    except (ValueError, RecursionError, binascii.Error, zlib.error) as error:
        raise ProtocolError(f"this line was damaged on its way, or is not all there ({error}): {COPY}") from None
    if report is None:
        raise ProtocolError(f"this line was damaged on its way, or is not all there: {COPY}")
    if not isinstance(report, dict):
        raise ProtocolError("this is not a world that was shared: it lacks what a report of mqlab has")
    check_report(report, "what was shared")
    return report
