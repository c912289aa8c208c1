"""What stands beside the stage: where the cursor is, the last step with its source and its causes, what may come next.

Each function returns HTML in which an element with `data-do` is a command (see `Session.do`).
"""

from __future__ import annotations

import re
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any

from mqlab.errors import LearnerError
from mqlab.protocol.codes import code_name
from mqlab.views import command_in

if TYPE_CHECKING:
    from mqlab.sim import Drawn, Pending
    from mqlab.trace.record import Record
    from mqlab_widgets.session import Session

MOST_CAUSES = 8
MOST_CHANGES = 6
MOST_VALUES = 6
"""A choice among more is offered its two ends."""
MEANINGS = (
    (r"^link:", "us more than the fastest way"),
    (r"^ties$", "place among what is due at the same time"),
    (r"/preempt/", "0: the thread goes on; else it pauses: 1 for others that are ready, 2 for 0.3 ms, 3 for 10 ms"),
    (r"/first-queue/", "queue to begin with"),
    (r"/(random|retry)-queue$", "queue"),
    (r"/broker-of/", "broker that is asked"),
    (r"/name-server", "name server to begin with"),
    (r"/disk/", "1: the page had reached the disk, 0: it is lost"),
)
"""Pattern of a choice point -> what its number counts."""
MOST_PENDING = 24
HOLD_MS = 100


def command(do: str, words: str, tip: str = "", *, about: str = "", **arguments: Any) -> str:
    """A button that carries out a command; `about` tells those who do not see the row what it is about."""
    data = "".join(f' data-{name}="{escape(str(value), quote=True)}"' for name, value in arguments.items())
    title = f' title="{escape(tip, quote=True)}"' if tip else ""
    label = f' aria-label="{escape(f"{words}: {about}", quote=True)}"' if about else ""
    return f'<button type="button" data-do="{do}"{data}{title}{label}>{escape(words)}</button>'


def where(session: Session) -> str:
    """One line: time, place in the history, and what is shown."""
    history, event = session.lab.history, session.event()
    ms = session.lab.now_ms if session.at_end or event is None else event.ts_ms
    parts = [f"<b>{ms:,.3f} ms</b>", f"event {history.cursor:,} of {len(history):,}"]
    if event is not None:
        parts.append(f"slice {event.slice:,}")
    if not session.at_end:
        parts.append("in the past")
    if session.playing:
        parts.append("playing")
    if len(session.branches) > 1:
        parts.append(f"world {session.now}: {escape(session.branches[session.now].what)}")
    return " &middot; ".join(parts)


def said(session: Session) -> str:
    """What the last command had to say, and the text to share if it was asked for."""
    words = escape(session.said).replace("\n", "<br>")
    if session.shared:
        words += (
            '<label>Send this line to somebody; <code>Stepper.reopen("...")</code> opens it: '
            f'<input readonly size="60" value="{escape(session.shared, quote=True)}"></label>'
        )
    return words


def side(session: Session) -> str:
    """The last step, what may happen next, and the tree of worlds."""
    parts = (
        ("step", _step(session)),
        ("next", _next(session)),
        ("drawn", _drawn(session)),
        ("tree", _tree(session)),
    )
    return "".join(f'<section data-key="{name}">{html}</section>' for name, html in parts if html)


def _step(session: Session) -> str:
    event = session.event()
    if event is None:
        return "<h4>The last step</h4><div>Nothing has happened yet. Step with the button, or the key n.</div>"
    told = _changes(session) + _source(session, event) + _causes(session, event)
    return f"<h4>The last step</h4>{event._repr_html_()}{told}"


def _changes(session: Session) -> str:
    if session.moving:
        return ""
    lines = session.changes()
    rows = "".join(f'<div class="mq-changed">{escape(line)}</div>' for line in lines[:MOST_CHANGES])
    return f'<div class="mq-faint">it changed:</div>{rows}' if rows else ""


def _source(session: Session, event: Record) -> str:
    try:
        line = session.lab.source_of(event)
    except LearnerError:
        return '<div class="mq-faint">Its source line is noted when it is played by steps.</div>'
    place = f"{escape(line.file)}:{line.line}"
    return f'<details data-key="source"><summary>{place}</summary>{line._repr_html_()}</details>'


def _causes(session: Session, event: Record) -> str:
    # Not the whole chain: after an hour of play it has thousands of events.
    chain: list[Record] = []
    cause = session.lab.history.cause_of(event)
    while cause is not None and len(chain) < MOST_CAUSES:
        chain.append(cause)
        cause = session.lab.history.cause_of(cause)
    if not chain:
        return ""
    rows = "".join(f'<div class="mq-row">{_jump(session, cause)}</div>' for cause in chain)
    count = "1 event" if len(chain) == 1 else f"{len(chain)} events"
    more = ", and more before those" if cause is not None else ""
    return f'<details data-key="causes"><summary>caused by {count} before it{more}</summary>{rows}</details>'


def _jump(session: Session, event: Record) -> str:
    place = session.lab.history.index_of(event.at) + 1
    return command("goto", event.kind, "go there", place=place) + (
        f'<span class="mq-faint">{event.ts_ms:,.3f} ms, {escape(event.node)}</span>'
    )


def _next(session: Session) -> str:
    title = "<h4>What may happen next</h4>"
    if session.moving:
        return f'{title}<div class="mq-faint">Pause to choose.</div>'
    if not session.at_end:
        back = command("take_back", "play a new world up to here", "from which it can go on in another way")
        return f'{title}<div class="mq-row">{command("now", "go to the present")}{back}</div>'
    pending = session.pending()
    now_us = session.lab.world.now_us
    rows = [_pending_row(key, entry, now_us) for key, entry in islice(pending.items(), MOST_PENDING)]
    if len(pending) > MOST_PENDING:
        rows.append(f'<div class="mq-faint">and {len(pending) - MOST_PENDING} more</div>')
    return title + ("".join(rows) or "<div>Nothing: this world is at its end.</div>")


def _pending_row(key: str, entry: Pending, now_us: int) -> str:
    wait_ms = max(0, entry.due_us - now_us) / 1_000
    what = f"{_frame_name(entry.frame)} from {entry.source}" if entry.source else entry.name
    about = f"{entry.node}: {what}"
    buttons = command("pick", "now", "let this happen next", about=about, entry=key)
    if entry.holdable:
        buttons += command("hold", "later", f"hold it back for {HOLD_MS} ms", about=about, entry=key, ms=HOLD_MS)
    if entry.source:
        ends = {"source": entry.source, "target": entry.node}
        buttons += command("disconnect", "break", "break this connection", about=about, **ends)
    return (
        f'<div class="mq-row" data-key="{escape(key, quote=True)}">{buttons}'
        f"<span>{escape(about)}</span>"
        f'<span class="mq-faint">in {wait_ms:,.3f} ms</span></div>'
    )


def _frame_name(frame: Any) -> str:
    found = command_in(frame)
    if found is not None:
        return "an answer" if found.is_response else code_name(found.code)
    return f"{len(frame)} bytes" if isinstance(frame, bytes) else "the end of the connection"


def _drawn(session: Session) -> str:
    """The choices that chance made last; another value plays a new world in which it came out so."""
    log = session.lab.world.choices.log
    if not log or not session.at_end or session.moving:
        return ""
    rows = "".join(_drawn_row(drawn) for drawn in reversed(log))
    hint = '<div class="mq-faint">Another value plays a new world up to here.</div>'
    return f'<details data-key="drawn"><summary>What chance has drawn</summary>{hint}{rows}</details>'


def _drawn_row(drawn: Drawn) -> str:
    others = range(drawn.n) if drawn.n <= MOST_VALUES else (0, drawn.n - 1)
    buttons = "".join(
        command("override", str(value), f"let it be {value}", point=drawn.point, k=drawn.k, value=value)
        for value in others
        if value != drawn.value
    )
    told = f"{drawn.point} #{drawn.k}: {drawn.value} of 0 to {drawn.n - 1}"
    meaning = f'<span class="mq-faint">{escape(_meaning(drawn.point))}</span>'
    return f'<div class="mq-row"><span>{escape(told)}</span>{meaning}{buttons}</div>'


def _meaning(point: str) -> str:
    """What the number of a choice says; "" for the choices of a scenario or of an application."""
    return next((words for pattern, words in MEANINGS if re.search(pattern, point)), "")


def _tree(session: Session) -> str:
    if len(session.branches) == 1:
        return ""
    rows = []
    for branch in session.branches:
        here = "shown" if branch.number == session.now else command("branch", "show", number=branch.number)
        parent = f"from world {branch.parent} at slice {branch.at_slice:,}: " if branch.parent >= 0 else ""
        rows.append(
            f'<div class="mq-row"><b>world {branch.number}</b><span>{parent}{escape(branch.what)}</span>{here}'
            f"{_compared(session, branch.number)}</div>"
        )
    return f"<h4>Worlds</h4>{''.join(rows)}"


def _compared(session: Session, number: int) -> str:
    if number == session.now:
        return ""
    shared, mine, other = session.difference(number)
    if mine is None and other is None:
        return f'<span class="mq-faint">the same {shared:,} events</span>'
    told = [
        f"{record.kind} on {record.node} at {record.ts_ms:,.3f} ms" if record is not None else "its end"
        for record in (mine, other)
    ]
    return f'<span class="mq-faint">{shared:,} events in common, then here {told[0]}, there {told[1]}</span>'
