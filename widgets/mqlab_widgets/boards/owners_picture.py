"""How ownership is drawn: a line for each member, a column for each queue, and a mark where one pulls the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import groupby

from mqlab.views.svg import head

Queue = tuple[str, int]
CELL, ROW, TOP, LETTER = 26, 24, 40, 7.4
MOST_QUEUES = 48
"""More columns would be mush; the text twin says how many each member has."""
NOBODY = "nobody"
STYLE = (
    ".mq-owners text{fill:var(--mq-ink,#1a1a1a);font:12px system-ui,sans-serif}"
    ".mq-owners .faint{fill:var(--mq-faint,#5f5f5f)}.mq-owners .free{fill:var(--mq-cell,#d9d9d9);opacity:.45}"
    ".mq-owners .own{fill:#009E73}.mq-owners .two{fill:#E69F00}"
    ".mq-owners .none{fill:none;stroke:#D55E00;stroke-width:2}"
    ".mq-owners .lock{fill:none;stroke:#fff;stroke-width:2}"
)


def owners_svg(members: Sequence[str], owners: Mapping[Queue, Sequence[str]], locks: Mapping[Queue, str]) -> str:
    """The picture; `owners` says who pulls each queue, `locks` who has the broker's lock of it."""
    queues = list(owners)[:MOST_QUEUES]
    rows = [*members, *([NOBODY] if any(not names for names in owners.values()) else [])]
    left = 20 + LETTER * max([len(name) for name in rows], default=0)
    width = max(left + CELL * len(queues) + 10, 300)
    height = TOP + ROW * len(rows) + (20 if len(owners) > MOST_QUEUES else 4)
    body = [*_heads(queues, left)]
    for row, name in enumerate(rows):
        y = TOP + ROW * row
        body.append(f'<text x="8" y="{y + 15}">{escape(name)}</text>')
        for column, queue in enumerate(queues):
            body.append(_cell(left + CELL * column, y, name, queue, owners[queue], locks.get(queue) == name))
    if len(owners) > MOST_QUEUES:
        body.append(f'<text class="faint" x="8" y="{height - 6}">and {len(owners) - MOST_QUEUES} more queues</text>')
    begin = head("who owns which queue", width, height, css="mq-owners")
    return f"{begin}<style>{STYLE}</style>{''.join(body)}</svg>"


def _heads(queues: Sequence[Queue], left: float) -> Iterator[str]:
    """The numbers of the queues, and above them the names of their brokers."""
    column = 0
    for broker, of_broker in groupby(queues, key=lambda queue: queue[0]):
        ids = [queue_id for _, queue_id in of_broker]
        yield f'<text class="faint" x="{left + CELL * column + 2:g}" y="14">{escape(broker)}</text>'
        for queue_id in ids:
            x = left + CELL * (column + 0.5) - 2
            yield f'<text class="faint" x="{x:g}" y="32" text-anchor="middle">{queue_id}</text>'
            column += 1


def _cell(x: float, y: float, name: str, queue: Queue, owners: Sequence[str], locked: bool) -> str:
    size = f'width="{CELL - 4}" height="{ROW - 5}" rx="3"'
    tip = f"{name}: queue {queue[1]} on {queue[0]}"
    if name == NOBODY:
        css = "free" if owners else "none"
    else:
        css = ("two" if len(owners) > 1 else "own") if name in owners else "free"
    ring = f'<circle class="lock" cx="{x + CELL / 2 - 2:g}" cy="{y + 9.5:g}" r="5"/>' if locked else ""
    return f'<g><title>{escape(tip)}</title><rect class="{css}" x="{x:g}" y="{y:g}" {size}/>{ring}</g>'
