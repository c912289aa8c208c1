"""An axis of time under a picture: from a first to a last microsecond, counted from a zero, in ms or in s."""

from __future__ import annotations

from mqlab.views.round_numbers import round_us
from mqlab.views.svg import FAINT, line, text

_SECONDS_FROM_US = 3_000_000
"""From this length on times are told in seconds."""


class TimeAxis:
    """Maps times of the world to places in a picture, `left` to `left + width` px."""

    def __init__(self, begin_us: int, end_us: int, zero_us: int, left: float, width: float) -> None:
        self.begin_us = begin_us
        self.end_us = max(end_us, begin_us + 1)
        self.zero_us = zero_us
        self.left = left
        self.width = width
        self.in_seconds = self.end_us - begin_us >= _SECONDS_FROM_US

    def x(self, at_us: int) -> float:
        """Where a time stands; times outside stand at the edge."""
        inside = min(max(at_us, self.begin_us), self.end_us)
        return self.left + (inside - self.begin_us) / (self.end_us - self.begin_us) * self.width

    def told(self, at_us: int) -> str:
        """A time in words: "4.278 s" or "40.5 ms"."""
        us = at_us - self.zero_us
        return f"{us / 1_000_000:.3f} s" if self.in_seconds else f"{us / 1_000:.1f} ms"

    def drawn(self, top: float, bottom: float) -> list[str]:
        """The axis at `bottom` with its unit and with faint lines up to `top`."""
        step = round_us((self.end_us - self.begin_us) / 12, finest=100)
        unit, us = ("s", 1_000_000) if self.in_seconds else ("ms", 1_000)
        right = self.left + self.width
        body = [line(self.left, bottom, right, bottom, FAINT, width=1)]
        at_us = self.zero_us - (self.zero_us - self.begin_us) // step * step
        while at_us <= self.end_us:
            x = self.x(at_us)
            body.append(line(x, top, x, bottom, "#e6e6e6", width=1))
            body.append(line(x, bottom, x, bottom + 4, FAINT, width=1))
            body.append(text(x, bottom + 18, f"{(at_us - self.zero_us) / us:g}", colour=FAINT, anchor="middle"))
            at_us += step
        body.append(text(right, bottom + 36, f"time, {unit}", colour=FAINT, anchor="end"))
        return body
