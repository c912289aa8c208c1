"""Axes of time under a picture: from a first to a last microsecond, counted from a zero.

`TimeAxis` is even, in ms or in s; `SecondsAxis` has whole seconds and no lines behind the picture; on a `LogTimeAxis`
seconds and hours both have room.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log10
from typing import ClassVar

from mqlab.views.round_numbers import round_seconds, round_us
from mqlab.views.svg import FAINT, line, text

_SECONDS_FROM_US = 3_000_000
"""From this length on times are told in seconds."""
_LINEAR_US = 1_000_000
"""Up to about a second a logarithmic axis is nearly even; beyond, each factor of ten has the same width."""
_LOG_TICKS = (
    (0, "0"),
    (1, "1 s"),
    (3, "3 s"),
    (10, "10 s"),
    (30, "30 s"),
    (60, "1 min"),
    (180, "3 min"),
    (600, "10 min"),
    (1_800, "30 min"),
    (3_600, "1 h"),
    (10_800, "3 h"),
    (36_000, "10 h"),
    (86_400, "24 h"),
)
_LEAST_PX = 34


class TimeAxis:
    """Maps times of the world to places in a picture, `left` to `left + width` px."""

    grid: ClassVar[bool] = True
    """Whether there are faint lines behind the picture."""

    def __init__(self, begin_us: int, end_us: int, zero_us: int, left: float, width: float) -> None:
        self.begin_us = begin_us
        self.end_us = max(end_us, begin_us + 1)
        self.zero_us = zero_us
        self.left = left
        self.width = width
        self.in_seconds = self.end_us - begin_us >= _SECONDS_FROM_US

    @classmethod
    def between(
        cls, start_ms: float, end_ms: float, left: float, width: float, *, zero_ms: float | None = None
    ) -> TimeAxis:
        """The axis of a stretch of the world's time, told from `zero_ms` on (else from `start_ms`)."""
        begin_us, end_us = round(start_ms * 1_000), round(end_ms * 1_000)
        return cls(begin_us, end_us, begin_us if zero_ms is None else round(zero_ms * 1_000), left, width)

    def x(self, at_us: int) -> float:
        """Where a time stands; times outside stand at the edge."""
        inside = min(max(at_us, self.begin_us), self.end_us)
        return self.left + self._share(inside - self.begin_us) * self.width

    def told(self, at_us: int) -> str:
        """A time in words: "4.278 s" or "40.5 ms"."""
        us = at_us - self.zero_us
        return f"{us / 1_000_000:.3f} s" if self.in_seconds else f"{us / 1_000:.1f} ms"

    def drawn(self, top: float, bottom: float) -> list[str]:
        """The axis at `bottom` with its name and with faint lines up to `top`."""
        right = self.left + self.width
        body = [line(self.left, bottom, right, bottom, FAINT, width=1)]
        for at_us, words in self._marks():
            x = self.x(at_us)
            body += [line(x, top, x, bottom, "#e6e6e6", width=1)] * self.grid
            body.append(line(x, bottom, x, bottom + 4, FAINT, width=1))
            body.append(text(x, bottom + 18, words, colour=FAINT, anchor="middle"))
        body.append(text(right, bottom + 36, self._name(), colour=FAINT, anchor="end"))
        return body

    def _share(self, us: int) -> float:
        """How much of the width lies between the beginning and so much later."""
        return us / (self.end_us - self.begin_us)

    def _name(self) -> str:
        return "time, s" if self.in_seconds else "time, ms"

    def _step_us(self) -> int:
        return round_us((self.end_us - self.begin_us) / 12, finest=100)

    def _marks(self) -> Iterator[tuple[int, str]]:
        """The round times along the axis, with their words."""
        step, unit_us = self._step_us(), 1_000_000 if self.in_seconds else 1_000
        for at_us in range(self.zero_us - (self.zero_us - self.begin_us) // step * step, self.end_us + 1, step):
            yield at_us, f"{(at_us - self.zero_us) / unit_us:g}"


class SecondsAxis(TimeAxis):
    """An even axis with whole seconds along it."""

    grid: ClassVar[bool] = False

    def __init__(self, begin_us: int, end_us: int, zero_us: int, left: float, width: float, name: str) -> None:
        super().__init__(begin_us, end_us, zero_us, left, width)
        self.in_seconds = True
        self._called = name

    def _name(self) -> str:
        return self._called

    def _step_us(self) -> int:
        return round_seconds(self.end_us - self.begin_us) * 1_000_000


class LogTimeAxis(TimeAxis):
    """An axis of the logarithm of the time after its zero, where it begins."""

    def __init__(self, zero_us: int, end_us: int, left: float, width: float) -> None:
        super().__init__(zero_us, end_us, zero_us, left, width)
        self.in_seconds = True

    def _share(self, us: int) -> float:
        return log10(1 + us / _LINEAR_US) / log10(1 + (self.end_us - self.begin_us) / _LINEAR_US)

    def _name(self) -> str:
        return "time, each factor of ten equally wide"

    def _marks(self) -> Iterator[tuple[int, str]]:
        last_x = self.left - _LEAST_PX
        for seconds, words in _LOG_TICKS:
            at_us = self.zero_us + seconds * 1_000_000
            if at_us <= self.end_us and self.x(at_us) - last_x >= _LEAST_PX:
                last_x = self.x(at_us)
                yield at_us, words
