"""Sharing: a text or a small file that brings back the exact world at the exact event.

It holds what a report holds (scenario, parameters, seed, actions, overrides, version, trace hash; see `mqlab.replay`)
and the place of the cursor.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from mqlab import __version__
from mqlab.errors import LearnerError, ProtocolError
from mqlab.replay import check_report, read_report, replay, report_of

if TYPE_CHECKING:
    from mqlab import Lab

PREFIX = "mqlab:"
CURSOR = "cursor"
MOST_BYTES = 10_000_000
"""A shared text that unpacks to more than this is refused."""


def shared_text(lab: Lab) -> str:
    """One line of text to be sent to somebody; LearnerError for a world that no scenario made."""
    packed = zlib.compress(json.dumps(_shared(lab), sort_keys=True).encode(), 9)
    return PREFIX + base64.urlsafe_b64encode(packed).decode()


def save_shared(lab: Lab, path: str | PurePath) -> None:
    """The same as a file, which `mqlab replay` also reads."""
    Path(path).write_text(json.dumps(_shared(lab), indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _shared(lab: Lab) -> dict[str, Any]:
    return {**report_of(lab), CURSOR: lab.history.cursor}


def reopened(shared: str | PurePath, *, allow_source: bool = False) -> Lab:
    """The world of a shared text or file, its cursor where it stood.

    LearnerError when another version of mqlab made it or its events come out differently: then nothing is shown rather
    than something else. ProtocolError when it is damaged. The source of a `%%scenario` cell that comes along is run
    only with `allow_source=True`.
    """
    text = str(shared)
    report = _unpacked(text.strip()) if text.strip().startswith(PREFIX) else read_report(text)
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


def _unpacked(text: str) -> dict[str, Any]:
    try:
        packed = base64.urlsafe_b64decode(text.removeprefix(PREFIX).encode("ascii"))
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(packed, MOST_BYTES)
        report = json.loads(data)
    except (ValueError, binascii.Error, zlib.error) as error:
        raise ProtocolError(
            f"this is not a world that was shared, or some of its text is missing ({error}): copy all of it"
        ) from None
    if not isinstance(report, dict):
        raise ProtocolError("this is not a world that was shared: it lacks what a report of mqlab has")
    check_report(report, "what was shared")
    return report
