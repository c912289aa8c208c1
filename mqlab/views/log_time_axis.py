"""An axis of time on which seconds and hours both have room: the logarithm of the time after a zero."""

from __future__ import annotations

from math import log10

from mqlab.views.svg import FAINT, line, text

_LINEAR_US = 1_000_000
"""Up to about a second the axis is nearly even; beyond, each factor of ten has the same width."""
_TICKS = (
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


class LogTimeAxis:
    """Maps times from `zero_us` to `end_us` to places in a picture, `left` to `left + width` px."""

    def __init__(self, zero_us: int, end_us: int, left: float, width: float) -> None:
        self.begin_us = self.zero_us = zero_us
        self.end_us = max(end_us, zero_us + 1)
        self.left = left
        self.width = width

    def x(self, at_us: int) -> float:
        """Where a time stands; times outside stand at the edge."""
        inside = min(max(at_us, self.zero_us), self.end_us)
        return self.left + _size(inside - self.zero_us) / _size(self.end_us - self.zero_us) * self.width

    def told(self, at_us: int) -> str:
        """A time in words: "40.201 s"."""
        return f"{(at_us - self.zero_us) / 1_000_000:.3f} s"

    def drawn(self, top: float, bottom: float) -> list[str]:
        """The axis at `bottom` with labelled ticks and with faint lines up to `top`."""
        right = self.left + self.width
        body = [line(self.left, bottom, right, bottom, FAINT, width=1)]
        last_x = self.left - _LEAST_PX
        for seconds, words in _TICKS:
            at_us = self.zero_us + seconds * 1_000_000
            x = self.x(at_us)
            if at_us > self.end_us or x - last_x < _LEAST_PX:
                continue
            last_x = x
            body.append(line(x, top, x, bottom, "#e6e6e6", width=1))
            body.append(line(x, bottom, x, bottom + 4, FAINT, width=1))
            body.append(text(x, bottom + 18, words, colour=FAINT, anchor="middle"))
        body.append(text(right, bottom + 36, "time, each factor of ten equally wide", colour=FAINT, anchor="end"))
        return body


def _size(us: int) -> float:
    return log10(1 + us / _LINEAR_US)
