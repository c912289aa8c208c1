"""How a timer wheel is drawn: a strip of its next slots, a box for each second, with where it is read and written."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from mqlab.views.svg import head

SHOWN = 40
"""Seconds that the strip shows; what waits for longer is said in a line."""
CELL, HEIGHT, TOP, LEFT, TICK_MS = 18, 26, 44, 8, 1_000
STYLE = (
    ".mq-wheel text{fill:var(--mq-ink,#1a1a1a);font:12px system-ui,sans-serif}"
    ".mq-wheel .faint{fill:var(--mq-faint,#5f5f5f)}.mq-wheel .free{fill:var(--mq-cell,#d9d9d9);opacity:.45}"
    ".mq-wheel .taken{fill:#0072B2}.mq-wheel .count{fill:#fff;font-weight:600}"
    ".mq-wheel .read{fill:#009E73}.mq-wheel .write{fill:#D55E00}"
)


def wheel_svg(broker: str, read_ms: int, write_ms: int, counts: Mapping[int, int], epoch_ms: int) -> str:
    """The strip of one broker; `counts` has how many messages each slot holds, by its moment."""
    first = min(read_ms, write_ms) // TICK_MS
    of_second: dict[int, int] = {}
    for slot_ms, messages in counts.items():
        of_second[slot_ms // TICK_MS] = of_second.get(slot_ms // TICK_MS, 0) + messages
    body = [f'<text x="{LEFT}" y="14">{escape(broker)}</text>']
    for column in range(SHOWN):
        second = first + column
        x, held = LEFT + CELL * column, of_second.get(second, 0)
        at_s = second - epoch_ms // TICK_MS
        tip = f"slot of {at_s} s: {held} message{'' if held == 1 else 's'}"
        kind = "taken" if held else "free"
        box = f'x="{x}" y="{TOP}" width="{CELL - 3}" height="{HEIGHT}" rx="3"'
        body.append(f'<rect class="{kind}" {box}><title>{tip}</title></rect>')
        if held:
            middle = x + (CELL - 3) / 2
            body.append(f'<text class="count" x="{middle:g}" y="{TOP + 17}" text-anchor="middle">{_short(held)}</text>')
        if at_s % 5 == 0:
            body.append(f'<text class="faint" x="{x}" y="{TOP + HEIGHT + 15}">{at_s:,}</text>')
    body += [_mark("read", read_ms // TICK_MS - first, TOP - 14), _mark("write", write_ms // TICK_MS - first, TOP - 2)]
    later = sorted(second for second in of_second if second >= first + SHOWN)
    if later:
        messages = sum(of_second[second] for second in later)
        at_s = later[0] - epoch_ms // TICK_MS
        body.append(
            f'<text class="faint" x="{LEFT}" y="{TOP + HEIGHT + 33}">{messages:,} later, the first in the slot of '
            f"{at_s:,} s</text>"
        )
    width, height = LEFT * 2 + CELL * SHOWN, TOP + HEIGHT + (42 if later else 22)
    begin = head("the next slots of the timer wheel", width, height, css="mq-wheel")
    return f"{begin}<style>{STYLE}</style>{''.join(body)}</svg>"


def _mark(name: str, column: int, y: int) -> str:
    """An arrow over the slot at which the wheel is read, or written, with its name."""
    if not 0 <= column < SHOWN:
        return ""
    x = LEFT + CELL * column + (CELL - 3) / 2
    point = f"{x:g},{y} {x - 4:g},{y - 7} {x + 4:g},{y - 7}"
    side, anchor = (8, "start") if column < SHOWN // 2 else (-8, "end")
    return (
        f'<polygon class="{name}" points="{point}"/>'
        f'<text class="faint" x="{x + side:g}" y="{y}" text-anchor="{anchor}">{name}</text>'
    )


def _short(count: int) -> str:
    return str(count) if count < 100 else "99+"
