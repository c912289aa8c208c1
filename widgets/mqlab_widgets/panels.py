"""The tabs below the stage: the last step with its source and its causes, what may come next, and the tree of worlds.

Each function returns HTML in which an element with `data-do` is a command (see `Session.do`), and offers only what can
be done. Rows have keys and an order of their own, so that none moves under the mouse when another one is held back.
"""

from __future__ import annotations

import re
from collections import Counter
from html import escape
from typing import TYPE_CHECKING, Any

from mqlab.errors import LearnerError
from mqlab.protocol.extra_info import ReceiptHandle, retry_flag
from mqlab.views import Table
from mqlab_widgets.commands import offered
from mqlab_widgets.next_up import pending_groups
from mqlab_widgets.words import clock, flight_words, say, span_words, with_names

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
HANDLE = (
    "where its batch begins: the check point's own offset",
    "when it was handed out, ms since 1970",
    "for how many ms others do not see it",
    "the revive queue of its check point; 999: popped in order, without one",
    "0 from the topic itself, 1 from its retry topic, 2 from a retry topic of the second form",
    "the broker that knows it",
    "its queue",
    "its own offset in that queue",
)
"""What the eight fields of a receipt handle mean (ExtraInfoUtil)."""
MOST_PENDING = 24
HOLD_MS = 100


def command(do: str, words: str, tip: str = "", *, about: str = "", **arguments: Any) -> str:
    """A button that carries out a command; `about` tells those who do not see the row what it is about."""
    data = "".join(f' data-{name}="{escape(str(value), quote=True)}"' for name, value in arguments.items())
    title = f' title="{escape(tip, quote=True)}"' if tip else ""
    label = f' aria-label="{escape(f"{words}: {about}", quote=True)}"' if about else ""
    return f'<button type="button" data-do="{do}"{data}{title}{label}>{escape(words)}</button>'


def said(session: Session) -> str:
    """The live line: what the last command had to say, or else what happened last."""
    return escape(session.said or session.cursor.line()).replace("\n", "<br>")


# -- the last step --------------------------------------------------------------------------------------------------


def step_html(session: Session) -> str:
    """The newest event behind the cursor: in words, in full, what it changed, its source line and its causes."""
    event = session.cursor.event()
    if event is None:
        return "<div>Nothing has happened yet. Step with the button, or the key n.</div>"
    words = say(event, session.lab)
    told = f'<p class="mq-told">{escape(words)}</p>' if words else ""
    handle = _handle(session, event) if event.kind == "MessagePopped" else ""
    return f"{told}{event._repr_html_()}{handle}{_changes(session)}{_source(session, event)}{_causes(session, event)}"


def _handle(session: Session, event: Record) -> str:
    """The receipt handle of a popped message, field by field: what its consumer gives back to acknowledge it."""
    brokers = {machine: name for name, machine in session.cursor.stage().masters.items()}
    handle = ReceiptHandle(
        event.start_offset, event.pop_time, event.invisible_ms, event.revive_qid, retry_flag(event.topic),
        brokers.get(event.node, event.node), event.queue_id, event.queue_offset,
    )  # fmt: skip
    rows = zip(handle._fields, handle, HANDLE, strict=False)
    table = Table("", ("field", "value", "meaning"), list(rows))._repr_html_()
    words = f"its handle: <code>{escape(handle.encode())}</code>"
    return f'<details data-key="handle" open><summary>{words}</summary>{table}</details>'


def _changes(session: Session) -> str:
    if session.moving:
        return ""
    lines = session.cursor.changes()
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
    about = f"{event.node}, {clock(event.ts_us)}"
    words = say(event, session.lab) or event.node
    return command("goto", event.kind, "go there", about=about, place=place) + (
        f'<span>{escape(words)}</span><span class="mq-faint">{clock(event.ts_us)}</span>'
    )


# -- what may happen next -------------------------------------------------------------------------------------------


def next_html(session: Session) -> str:
    """What may happen next: frames that may arrive, and folded away the threads and timers of the machines."""
    offers = offered(session)
    if session.cursor.past:
        back = command("now", "go to the present") + _take_back(offers)
        return f'<div>In the past all has happened.</div><div class="mq-row">{back}</div>'
    if session.moving:
        return '<div class="mq-faint">Pause to choose.</div>'
    deliveries, housekeeping = pending_groups(session.lab)
    if not deliveries and not housekeeping:
        return "<div>Nothing: this world is at its end.</div>"
    first = min({**deliveries, **housekeeping}.values(), key=lambda entry: entry.due_us)
    rows = _rows(session, deliveries, first) or '<div class="mq-faint">No frame is on its way.</div>'
    many = "1 thread or timer" if len(housekeeping) == 1 else f"{len(housekeeping):,} threads and timers"
    comes = "" if first.source else f"; next comes {_about(session, first)}"
    folded = (
        f'<details data-key="housekeeping"><summary>{many} of the machines{escape(comes)}</summary>'
        f"{_rows(session, housekeeping, first)}</details>"
        if housekeeping
        else ""
    )
    return f'<div class="mq-next">{rows}{folded}</div>'


def _take_back(offers: set[str]) -> str:
    if "take_back" not in offers:
        return ""
    return command("take_back", "play a new world up to here", "from which it can go on in another way")


def _rows(session: Session, entries: dict[str, Pending], first: Pending) -> str:
    """A row for each, in an order that holding one back does not change: frames as they were sent, others by name."""
    order = sorted(entries, key=lambda key: (*_sent(key), key) if entries[key].source else (0, 0, key))
    same: Counter[str] = Counter()
    rows = []
    for key in order[:MOST_PENDING]:
        entry = entries[key]
        # What is no frame has another cause when it was held back, and is the same row all the same.
        name = key if entry.source else f"{entry.node}/{entry.name}"
        same[name] += 1
        rows.append(_pending_row(session, f"{name}/{same[name]}", key, entry, comes_first=entry == first))
    if len(entries) > MOST_PENDING:
        rows.append(f'<div class="mq-faint">and {len(entries) - MOST_PENDING:,} more</div>')
    return "".join(rows)


def _sent(key: str) -> tuple[int, int]:
    """The event of a frame's sending, with which the key of its delivery ends (`Pending.key`)."""
    slice_no, number = key.rpartition("/")[2].partition("#")[0].split(".")
    return int(slice_no), int(number)


def _pending_row(session: Session, row: str, key: str, entry: Pending, *, comes_first: bool) -> str:
    wait_us = max(0, entry.due_us - session.lab.world.now_us)
    about = _about(session, entry)
    now = "let it arrive" if entry.source else "let it run"
    buttons = command("pick", now, "as the next thing that happens", about=about, entry=key)
    if entry.holdable:
        buttons += command("hold", "hold it", f"for {HOLD_MS} ms", about=about, entry=key, ms=HOLD_MS)
    if entry.source:
        ends = {"source": entry.source, "target": entry.node}
        buttons += command("disconnect", "break", "the connection that it is on", about=about, **ends)
    when = ("<b>next</b>, " if comes_first else "") + (f"in {span_words(wait_us)}" if wait_us else "now")
    return (
        f'<div class="mq-row" data-key="{escape(row, quote=True)}">{buttons}'
        f'<span>{escape(about)}</span><span class="mq-faint">{when}</span></div>'
    )


def _about(session: Session, entry: Pending) -> str:
    """What would happen: which frame would arrive, by what the stage knows of it, or which thread would run."""
    if not entry.source:
        whose = "the world" if entry.node == "world" else entry.node
        return f"{whose}: {with_names(entry.name, session.lab)}"
    history = session.lab.history
    sent = history.record(history.index_of(_sent(entry.key)))
    flight = None
    if sent.kind in ("RequestSent", "ResponseSent"):
        flight = session.cursor.stage().flights.get(f"{sent.connection}:{sent.local}:{sent.frame}")
    what = flight_words(flight, session.lab) if flight is not None else "the end of the connection"
    return f"{what}, from {entry.source} to {entry.node}"


# -- worlds ---------------------------------------------------------------------------------------------------------


def worlds_html(session: Session) -> str:
    """The tree of worlds, how they differ from the one that is shown, and what chance has drawn in it."""
    offers = offered(session)
    if "take_back" not in offers and len(session.worlds.branches) == 1:
        return (
            "<div>There is one world. It was built cell by cell or changed by a cell, so that no other can be played "
            "from it; a world of a scenario, or of a %%scenario cell, can.</div>"
        )
    take_back = _take_back(offers)
    new = f'<div class="mq-row">{take_back}</div>' if take_back else ""
    return f"{_tree(session)}{new}{_drawn(session, offers)}"


def _drawn(session: Session, offers: set[str]) -> str:
    """The choices that chance made last; another value plays a new world in which it came out so."""
    log = session.lab.world.choices.log
    if not log or session.cursor.past or session.moving or "override" not in offers:
        return ""
    rows = "".join(_drawn_row(drawn) for drawn in reversed(log))
    hint = '<div class="mq-faint">Another value plays a new world up to here.</div>'
    return f'<details data-key="drawn"><summary>What chance has drawn</summary>{hint}{rows}</details>'


def _drawn_row(drawn: Drawn) -> str:
    others = range(drawn.n) if drawn.n <= MOST_VALUES else (0, drawn.n - 1)
    about = f"instead of {drawn.value} for {drawn.point} #{drawn.k}"
    buttons = "".join(
        command("override", str(value), f"let it be {value}", about=about, point=drawn.point, k=drawn.k, value=value)
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
    rows = []
    for branch in session.worlds.branches:
        about = f"world {branch.number}"
        show = command("branch", "show", about=about, number=branch.number)
        here = "shown" if branch.number == session.worlds.now else show
        parent = f"from world {branch.parent} at slice {branch.at_slice:,}: " if branch.parent >= 0 else ""
        rows.append(
            f'<div class="mq-row" data-key="{about}"><b>{about}</b><span>{parent}{escape(branch.what)}</span>{here}'
            f"{_compared(session, branch.number)}</div>"
        )
    return "".join(rows)


def _compared(session: Session, number: int) -> str:
    if number == session.worlds.now:
        return ""
    shared, mine, other = session.worlds.difference(number)
    if mine is None and other is None:
        return f'<span class="mq-faint">the same {shared:,} events</span>'
    told = [_event(session, record) if record is not None else "its end" for record in (mine, other)]
    common = f"{shared:,} events in common; then here {told[0]}; there {told[1]}"
    return f'<span class="mq-faint">{escape(common)}</span>'


def _event(session: Session, event: Record) -> str:
    return f"{clock(event.ts_us)}: {say(event, session.lab) or f'{event.kind} on {event.node}'}"
