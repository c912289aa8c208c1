"""Moments and spans of time as teachers, rosters and learning platforms write them; a moment is always kept in UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NoReturn
from zoneinfo import ZoneInfo

from mqlab.errors import LearnerError

SECOND = "%Y-%m-%d %H:%M:%S UTC"
"""How a moment is written where it is kept and shown; `moment` reads it."""
_MOODLE = ("%A, %d %B %Y, %I:%M %p", "%A, %d %B %Y, %H:%M", "%d %B %Y, %I:%M %p", "%d %B %Y, %H:%M")
"""The date-times of Moodle's exports in English: strftimedaydatetime, strftimedatetime in lang/en/langconfig.php."""
_AT_A_PLACE = re.compile(r"(?P<time>.+:\d\d(?:\.\d+)?) +(?P<zone>[A-Za-z][\w/+-]*)")
_FIRST_YEAR, _LAST_YEAR = 2000, 2100
_UNITS = {"m": "minutes", "min": "minutes", "minute": "minutes", "minutes": "minutes",
          "h": "hours", "hour": "hours", "hours": "hours",
          "d": "days", "day": "days", "days": "days", "w": "weeks", "week": "weeks", "weeks": "weeks"}  # fmt: skip
_SPAN = re.compile(r"(?P<count>\d{1,4}(?:\.\d{1,3})?) ?(?P<unit>[a-z]+)")


def now() -> datetime:
    """This machine's clock, to the second."""
    return datetime.now(UTC).replace(microsecond=0)


def zone_of(name: str) -> tzinfo:
    """The zone of that name: UTC, Europe/Berlin. LearnerError when this machine knows none."""
    if name.upper() in ("UTC", "GMT", "Z"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):  # ZoneInfoNotFoundError is a KeyError
        raise LearnerError(f"there is no time zone {name!r}", "give a name such as Europe/Berlin, or UTC") from None


def moment(text: str, zone: str = "") -> datetime:
    """A moment in UTC: 2026-06-01T23:59+02:00, 2026-06-01 23:59 Europe/Berlin, 2026-06-01 21:59:30 UTC, or as Moodle
    exports it (Monday, 1 June 2026, 11:59 PM).

    `zone` is the zone of a time that names none. LearnerError for what is no such time, for a day without a time of
    day, and for a time whose zone nobody has said.
    """
    found = _AT_A_PLACE.fullmatch(" ".join(text.split()))
    written, named = (found["time"], found["zone"]) if found and found["zone"] not in ("AM", "PM") else (text, "")
    read = _read(" ".join(written.split()))
    if read is None:
        _refuse(text, "is no time")
    if read.tzinfo is None:
        if not (named or zone):
            _refuse(text, "does not say in which zone it is", "; --zone Europe/Berlin says it for all times without")
        read = read.replace(tzinfo=zone_of(named or zone))
    elif named:
        _refuse(text, "names two zones")
    if not _FIRST_YEAR <= read.year <= _LAST_YEAR:
        _refuse(text, f"is not in the years {_FIRST_YEAR} to {_LAST_YEAR}")
    return read.astimezone(UTC)


def _refuse(text: str, why: str, besides: str = "") -> NoReturn:
    raise LearnerError(f"{text!r} {why}", f"write 2026-06-01T23:59+02:00 or 2026-06-01 23:59 Europe/Berlin{besides}")


def _read(text: str) -> datetime | None:
    if ":" not in text:  # a day alone would be its midnight, which nobody means
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    for form in _MOODLE:
        try:
            return datetime.strptime(text, form)  # noqa: DTZ007  the zone comes from elsewhere
        except ValueError:
            continue
    return None


def span(text: str) -> timedelta | None:
    """A length of time with its unit: 48 h, 2 days, 90 min, 1 week; None for what is none."""
    found = _SPAN.fullmatch(text.strip().lower())
    if found is None or found["unit"] not in _UNITS:
        return None
    return timedelta(**{_UNITS[found["unit"]]: float(found["count"])})


def shown(when: datetime) -> str:
    """A moment as it is kept and shown: 2026-06-01 21:59:00 UTC."""
    return when.astimezone(UTC).strftime(SECOND)


def shown_span(seconds: float) -> str:
    """A length of time in words, in its two largest units: 1 day 3 h, 2 h 10 min, 40 s."""
    left = int(seconds)
    parts: list[tuple[int, str]] = []
    for name, size in (("day", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or (parts and len(parts) < 2):
            parts.append((count, f"{count} {name}{'s' if name == 'day' and count != 1 else ''}"))
        if len(parts) == 2:
            break
    return " ".join(words for count, words in parts if count) or "0 s"
