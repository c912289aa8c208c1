"""What stands below the stage: the bar with its menus, the tabs, and the handles of the frames that may arrive.

Each function returns HTML in which an element with `data-do` is a command (see `Session.do`); one with `data-menu`
opens what is named so. Where an element has a `data-key`, the page keeps it, with its focus, from frame to frame.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING

from mqlab.trace.catalogue import CATALOGUE
from mqlab_widgets.breaking import link_verbs, machine_verbs
from mqlab_widgets.commands import offered
from mqlab_widgets.links import SITE
from mqlab_widgets.next_up import pending_of
from mqlab_widgets.words import clock, flight_words

if TYPE_CHECKING:
    from mqlab.sim import Pending
    from mqlab_widgets.session import Session

STORY = "story"
SPEEDS = (0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 60)
FAVOURITES = ("MessageStored", "RequestSent", "PullHeld", "PullWoken", "ConsumeStarted", "RebalanceDone")
"""The event kinds on top of the list."""
HOLD_MS = 100
TABS = {
    "boards": "Boards",
    "step": "Step",
    "next": "Next",
    "machine": "Machine",
    "worlds": "Worlds",
    "text": "Text",
}
"""Name -> what is written on the tab."""
MOST_MACHINES = 12
LEAST_BEHIND_S = 0.5
"""Who sees what has happened so shortly ago sees it live."""
ICONS = {
    "start": "M3 3v10M13 3L6 8l7 5z",
    "back": "M11 3L4 8l7 5z",
    "play": "M4 2.5v11l9.5-5.5z",
    "pause": "M4 3h3v10H4zM9 3h3v10H9z",
    "step_event": "M5 3l7 5-7 5z",
    "now": "M13 3v10M3 3l7 5-7 5z",
    "break": "M9 1L3 9h4l-1 6 6-8H8z",
    "share": "M8 10V2M5 4.5L8 1.5l3 3M4 7H2.5v7h11V7H12",
    "pick": "M3 2l10 6-10 6z",
    "hold": "M4 3h3v10H4zM9 3h3v10H9z",
    "more": "M2.5 8h.01M8 8h.01M13.5 8h.01",
    "projector": "M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4",
}
KEYS = (
    ("space", "play or pause"),
    ("n, arrow right", "one event on"),
    ("p, arrow left", "one event back"),
    ("Home, End", "to the beginning, to the present"),
    ("s", "one slice on"),
    ("[ and ]", "to the previous, the next event of the chosen kind"),
    ("b", "break something: the menu of the chosen machine"),
    ("m", "more: slice, event kind, time, breakpoint"),
    ("f", "only the stage, as large as the window; Escape leaves it"),
    ("Page Down, Page Up", "there: to the next, the previous caption of the story"),
    ("Tab", "stage, bar, time line, tabs; within each the arrow keys"),
    ("Enter", "on a machine or a wire: what can be done to it"),
    ("Escape", "close what is open, then leave the view"),
    ("?", "this list"),
)


def icon(name: str) -> str:
    """A small picture for a button."""
    return f'<svg class="mq-icon" viewBox="0 0 16 16" aria-hidden="true"><path d="{ICONS[name]}"/></svg>'


def _attributes(**values: object) -> str:
    named = {name.rstrip("_").replace("__", "-"): value for name, value in values.items()}
    return "".join(f' {name}="{escape(str(value), quote=True)}"' for name, value in named.items() if value != "")


def _button(key: str, words: str, tip: str, *, offered: bool = True, does: bool = True, **more: object) -> str:
    """A control of the bar: its key is its command, or (`does=False`) the menu that it opens."""
    act = {"data-do": key} if does else {"data-menu": key, "aria-haspopup": "true", "aria-expanded": "false"}
    rest = _attributes(**{"data__key": key, "title": tip, "aria__disabled": "" if offered else "true", **more})
    named = "".join(f' {name}="{value}"' for name, value in act.items())
    return f'<button type="button" tabindex="-1"{named}{rest}>{words}</button>'


# -- the bar --------------------------------------------------------------------------------------------------------


def bar_html(session: Session) -> str:
    """The bar: one tab stop, with arrow keys inside. The page itself says the time in it."""
    offers = offered(session)
    playing = session.player.playing

    def step(name: str, tip: str) -> str:
        label = tip.partition(" (")[0]
        return _button(name, icon(name), tip, offered=name in offers, aria__label=label)

    act = "pause" if playing else "play"
    tip = "Pause (space)" if playing else "Play (space)"
    play = _button("play", icon(act), tip, aria__label=act.capitalize(), class_="mq-play", offered="play" in offers)
    groups = (
        step("start", "To the beginning (Home)")
        + step("back", "One event back (p)")
        + play
        + step("step_event", "One event on (n)")
        + step("now", "To the present (End)"),
        _pace(session),
        f'<output class="mq-clock" data-key="clock" aria-label="time"></output>{_behind(session)}',
        _button("menu", f"{icon('break')}<span>Break</span>", "Break something (b)", does=False, aria__label="Break")
        + (_button("share", f"{icon('share')}<span>Share</span>", "A text that brings back this world at this event",
                   aria__label="Share") if "share" in offers else "")
        + _button("more", icon("more"), "Slice, event kind, time, breakpoint (m)", does=False, aria__label="More"),
        _way_back(session) + _button("projector", icon("projector"), "Only the stage (f)", aria__label="Projector mode")
        + _button("keys", "?", "List of keys (?)", does=False, aria__label="List of keys"),
    )  # fmt: skip
    inner = "".join(f'<div class="mq-group">{group}</div>' for group in groups)
    return f'<div class="mq-bar" role="toolbar" aria-label="Playing and breaking">{inner}</div>'


def _pace(session: Session) -> str:
    chosen = session.player.pace
    options = [(STORY, "story pace"), *((f"{speed:g}", f"{speed:g} x") for speed in SPEEDS)]
    shown = "".join(
        f'<option value="{value}"{" selected" if value == _pace_name(chosen) else ""}>{words}</option>'
        for value, words in options
    )
    tip = "Story pace gives each event the time that an eye needs; else seconds of the world per second"
    return f'<select tabindex="-1" data-do="pace" data-key="pace" aria-label="Pace" title="{tip}">{shown}</select>'


def _behind(session: Session) -> str:
    """How far what is shown is behind a world that passes by itself, and what was left out to be no further."""
    if not session.lab.world.outside.passes:
        return ""
    seconds = session.cursor.behind_us / 1_000_000
    words = f"{seconds:.1f} s behind" if seconds >= LEAST_BEHIND_S else "live"
    left_out = session.player.left_out
    if left_out:
        words = f"{words}, {left_out:,} event{'s' * (left_out != 1)} left out"
    tip = "The world passes by itself, as real time does; at story pace what happens there is told somewhat later"
    return f'<output class="mq-behind" data-key="behind" aria-label="behind the present" title="{tip}">{words}</output>'


def _pace_name(pace: str | float) -> str:
    return pace if isinstance(pace, str) else f"{pace:g}"


def _way_back(session: Session) -> str:
    """From the past to the present, out of a long run, and back to where it began."""
    offers, parts = offered(session), []
    if session.older:
        tip = escape(f"{session.older} is another world since a cell was run again: run the cell of this view again")
        parts.append(f'<span class="mq-older" data-key="older" title="{tip}">older world</span>')
    if "cancel" in offers:
        parts.append(_button("cancel", "Cancel", "Stop looking"))
    if session.back_offer is not None:
        place, words = session.back_offer
        parts.append(_button("back_to", escape(words), "Where you were before", data__place=place))
    if session.cursor.past or (session.player.follows and session.cursor.behind_us / 1_000_000 >= LEAST_BEHIND_S):
        parts.append(_button("now", "Now", "To the present (End)", data__key="to-now", class_="mq-now"))
    return "".join(parts)


def more_html(session: Session) -> str:
    """What opens beside the bar: more commands, the list of keys, and the line to share once it was asked for."""
    return _more(session, offered(session)) + _keys() + _share(session)


def _more(session: Session, offers: Collection[str]) -> str:
    kinds = [*FAVOURITES, *(kind for kind in sorted(CATALOGUE) if kind not in FAVOURITES)]
    options = "".join(f"<option{' selected' if kind == session.page.kind else ''}>{kind}</option>" for kind in kinds)
    rows = (
        _command("step_slice", "One slice on", "s") if "step_slice" in offers else "",
        f'<label>event kind <select name="kind" data-do="set_kind" data-key="kind">{options}</select></label>'
        f"{_command('previous_kind', 'Previous', '[')}{_command('next_kind', 'Next', ']')}",
        '<form data-do="to_time"><label>time <input name="ms" type="number" step="any" size="10" required> ms</label>'
        '<button type="submit">Go</button></form>',
        _command("to_breakpoint", "To the next breakpoint", "") if "to_breakpoint" in offers else "",
    )
    inner = "".join(f'<div class="mq-row">{row}</div>' for row in rows if row)
    return (
        '<div class="mq-pop" data-pop="more" data-key="pop-more" popover="manual" role="dialog" aria-label="More">'
        f"{inner}</div>"
    )


def _command(do: str, words: str, key: str) -> str:
    hint = f" <kbd>{key}</kbd>" if key else ""
    return f'<button type="button" data-do="{do}" data-key="more-{do}">{words}{hint}</button>'


def _keys() -> str:
    rows = "".join(f"<dt>{keys}</dt><dd>{words}</dd>" for keys, words in KEYS)
    return (
        '<div class="mq-pop" data-pop="keys" data-key="pop-keys" popover="manual" role="dialog" aria-label="Keys" '
        f'tabindex="-1"><h4>Keys</h4><dl class="mq-keys">{rows}</dl></div>'
    )


def _share(session: Session) -> str:
    if session.shared is None:
        return ""
    text, place, link, no_link = session.shared
    when = clock(session.lab.history.record(place - 1).ts_us) if place else "the beginning"
    return (
        '<div class="mq-pop" data-pop="share" data-key="pop-share" popover="manual" role="dialog" aria-label="Share">'
        f"<h4>This world at {when}, behind event {place:,}</h4>"
        f"{_line(text) if text else ''}{_link(link, no_link)}</div>"
    )


def _line(text: str) -> str:
    return (
        '<label>Send this line to somebody; <code>Stepper.reopen("...")</code> opens it there, at the same event: '
        f'<textarea readonly rows="6" cols="60" spellcheck="false">{escape(text)}</textarea></label>'
        f"{_copy('Copy the line')}"
    )


def _copy(words: str) -> str:
    return f'<div class="mq-row"><button type="button" data-copy="">{words}</button><span role="status"></span></div>'


def _link(link: str, no_link: str) -> str:
    """The link to a moment, or why there is none."""
    if not link:
        return f'<p class="mq-faint">No link opens this world in a browser: {escape(no_link)}.</p>'
    place = "" if "://" in link else f" (put the address of your site in front, or set <code>{SITE}</code>)"
    return (
        f"<label>Send this link, which opens it in a browser alone{place}: "
        f'<textarea readonly rows="3" cols="60" spellcheck="false">{escape(link)}</textarea></label>'
        f"{_copy('Copy the link')}"
    )


# -- what can be done to a machine or a wire ------------------------------------------------------------------------


def menu_html(session: Session, *, link: bool) -> str:
    """What can be done to the machine that was clicked last, or (`link`) to the wire; only what can be done now."""
    title = (
        f"{session.page.other} - {session.page.chosen}"
        if link and session.page.chosen
        else session.page.chosen or "Break what?"
    )
    groups = _verbs(session, link=link)
    items = "".join(words if not name else _group(name, words) for name, words in groups)
    machines = [node for node in session.lab.world.nodes if link or node != session.page.chosen][:MOST_MACHINES]
    others = "".join(_item("choose", f"{node} ...", node=node) for node in machines)
    quiet = '<div class="mq-faint">Nothing can be done to it now.</div>' if session.page.chosen and not items else ""
    return (
        f'<div role="menu" aria-label="{escape(title, quote=True)}"><h4>{escape(title)}</h4>{quiet}{items}'
        f'<div class="mq-others">{others}</div></div>'
    )


def _verbs(session: Session, *, link: bool) -> list[tuple[str, str]]:
    """What can be done, in groups with their headings: two in the past, for what is over cannot be changed."""
    if not session.cursor.over:
        return [("", _items(session, link=link))]
    here, now = clock(session.cursor.now_us), clock(session.lab.world.now_us)
    new = (
        _items(session, link=link, where="new")
        if "take_back" in offered(session)
        else '<div class="mq-faint">None can be played: this one was built cell by cell, or changed by a cell.</div>'
    )
    groups = [(f"In a new world from here, {here}", new), (f"Now, at {now}", _items(session, link=link, where="now"))]
    return [(name, items) for name, items in groups if items]


def _items(session: Session, *, link: bool, where: str = "") -> str:
    then = where == "new"
    verbs = link_verbs(session, then=then) if link else machine_verbs(session, then=then)
    whom = {"source": session.page.other, "target": session.page.chosen} if link else {"node": session.page.chosen}
    return "".join(_item(do, words, **whom, where=where) for do, words in verbs.items())


def _group(name: str, items: str) -> str:
    head = f'<div role="group" aria-label="{escape(name, quote=True)}" class="mq-when"><h5>{escape(name)}</h5>'
    return f"{head}{items}</div>"


def _item(do: str, words: str, **arguments: str) -> str:
    data = _attributes(**{f"data__{name}": value for name, value in arguments.items()})
    return f'<button type="button" role="menuitem" tabindex="-1" data-do="{do}"{data}>{escape(words)}</button>'


# -- tabs -----------------------------------------------------------------------------------------------------------


def tabs_html(names: Iterable[str], chosen: str) -> str:
    """The tabs below the stage; one of them is open."""
    tabs = "".join(
        f'<button type="button" role="tab" tabindex="-1" data-do="tab" data-key="tab-{name}" data-name="{name}" '
        f'aria-selected="{"true" if name == chosen else "false"}">{TABS[name]}</button>'
        for name in names
    )
    return f'<div class="mq-tabs" role="tablist" aria-label="More of this world">{tabs}</div>'


# -- frames that may arrive -----------------------------------------------------------------------------------------


def handles_html(session: Session) -> str:
    """Two small buttons for each frame that is next on its connection: let it arrive, hold it back."""
    return "".join(_handles(session)) if "pick" in offered(session) else ""


def _handles(session: Session) -> Iterator[str]:
    on_the_way = session.cursor.stage().flights
    for key, entry in pending_of(session.lab).items():
        flight = _flight_of(session, entry)
        if flight not in on_the_way:
            continue
        about = escape(flight_words(on_the_way[flight], session.lab), quote=True)
        entry_key = escape(key, quote=True)
        hold = (
            f'<button type="button" tabindex="-1" data-do="hold" data-entry="{entry_key}" data-ms="{HOLD_MS}" '
            f'title="Hold it back for {HOLD_MS} ms" aria-label="Hold back {about}">{icon("hold")}</button>'
            if entry.holdable
            else ""
        )
        yield (
            f'<span class="mq-handle" data-key="{entry_key}" data-flight="{escape(flight, quote=True)}" hidden>'
            f'<button type="button" tabindex="-1" data-do="pick" data-entry="{entry_key}" '
            f'title="Let it arrive now" aria-label="Let {about} arrive">{icon("pick")}</button>{hold}</span>'
        )


def _flight_of(session: Session, entry: Pending) -> str:
    """The name that a frame on its way has on the stage; "" for what is no frame."""
    if not entry.source:
        return ""
    history = session.lab.history
    slice_no, _, number = entry.key.rpartition("/")[2].partition(".")
    record = history.record(history.index_of((int(slice_no), int(number))))
    is_frame = record.kind in ("RequestSent", "ResponseSent")
    return f"{record.connection}:{record.local}:{record.frame}" if is_frame else ""
