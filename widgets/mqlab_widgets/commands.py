"""The commands of a page: what each does, when it can be done, and what it does to playing.

A new one is a function and an entry of `COMMANDS`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from mqlab.errors import LearnerError
from mqlab_widgets.breaking import act_on_link, act_on_machine, check_machine, link_verbs, machine_verbs
from mqlab_widgets.next_up import hold, pick
from mqlab_widgets.search import Search
from mqlab_widgets.sharing import shared_at
from mqlab_widgets.telling import NOTHING_LEFT
from mqlab_widgets.verbs import LINKS, MACHINES
from mqlab_widgets.words import clock

if TYPE_CHECKING:
    from mqlab_widgets.session import Session

SEARCH_MS, STORY_MS = 60_000, 300_000
"""So much of the world's time a search plays before it asks whether to go on."""


class Command(NamedTuple):
    """What a page can ask for: `run(session, **arguments)`, where what goes wrong is a LearnerError."""

    run: Callable[..., None]
    pauses: bool = False
    """Whether it ends playing, because it says itself where to go."""
    looks: bool = False
    """Whether it touches no world."""
    breaks: bool = False
    """Whether it does something to machines or links, which a cell that plays lets in between two slices."""
    possible: Callable[[Session], bool] | None = None
    """Whether it can be done now; None: nobody asks."""


# -- playing, stepping and jumping -------------------------------------------------------------------------------------


def play(session: Session) -> None:
    """Play from the cursor on, or pause: in the past the record is played, and then the world."""
    if session.playing:
        session.player.pause()
    elif session.another_plays:
        session.lab.world.door.post(session.lab.world.request_stop)
    else:
        session.end_search()
        session.back_offer = None
        session.player.play()


def pace(session: Session, value: str | float) -> None:
    """At story pace, or at so many seconds of the world per second."""
    session.player.pace = "story" if value == "story" else float(value)


def step_event(session: Session) -> None:
    """One event on; at the end the world is played for it."""
    with session.player.stepping():
        session.lab.step_event()


def step_slice(session: Session) -> None:
    """One slice on; at the end it is played."""
    history = session.lab.history
    if not session.cursor.at_end:
        place = history.cursor
        slice_no = history.row(place)[0]
        while place < len(history) and history.row(place)[0] == slice_no:
            place += 1
        with session.player.stepping():
            history.move_to(place)
    else:
        with session.player.stepping():
            played = session.lab.step() or session.lab.world.pending()
        if not played:
            session.said = NOTHING_LEFT


def back(session: Session) -> None:
    """Go back by one event."""
    if session.lab.history.cursor == 0:
        session.said = "This is the beginning: nothing has happened before it."
    session.move_to(session.lab.history.cursor - 1)


def start(session: Session) -> None:
    """Before the first event."""
    session.move_to(0)


def now(session: Session) -> None:
    """To the newest event."""
    session.move_to(len(session.lab.history))


def goto(session: Session, place: int | str) -> None:
    """Behind so many events."""
    session.move_to(int(place))


def previous_kind(session: Session) -> None:
    """To the event of the chosen kind before this one."""
    if session.lab.history.back(session.page.kind) is None:
        session.said = f"No {session.page.kind} happened before this."


def next_kind(session: Session) -> None:
    """To the next event of the chosen kind, playing the world when none has happened yet."""
    if session.lab.history.forward(session.page.kind) is None:
        kind = session.page.kind
        session.begin_search(Search(session.lab, f"the next {kind}", SEARCH_MS, kind=kind))


def next_caption(session: Session) -> None:
    """To the next sentence of the scenario's story, playing the world when its event has not happened yet."""
    board, here = session.cursor.storyboard, session.cursor.place()
    place = board.after(here)
    if place is not None:
        goto(session, place)
    elif board.told:
        session.said = "The story is told; what comes now is not in it."
    else:
        session.begin_search(Search(session.lab, "the next caption", STORY_MS, place=lambda: board.after(here)))


def previous_caption(session: Session) -> None:
    """To the sentence of the scenario's story before this one."""
    place = session.cursor.storyboard.before(session.cursor.place())
    if place is None:
        session.said = "This is where the story begins."
    else:
        goto(session, place)


def to_breakpoint(session: Session) -> None:
    """Play up to the next breakpoint of the lab."""
    if not session.lab.breakpoints:
        raise LearnerError("this lab has no breakpoint", "set one in a cell: lab.add_breakpoint('PullHeld')")
    session.begin_search(Search(session.lab, "a breakpoint", SEARCH_MS, breakpoints=True))


def to_time(session: Session, ms: float | str) -> None:
    """To a time of the world: back by the cursor, forward by playing."""
    lab, ms = session.lab, float(ms)
    if ms > lab.now_ms:
        session.begin_search(Search(lab, clock(round(ms * 1_000)), ms - lab.now_ms))
    else:
        lab.history.move_to(lab.history.place_after(ms))


def cancel(session: Session) -> None:
    """Stop what is looked for, where it has come to."""
    if session.search is not None:
        session.search.cancel()


def back_to(session: Session, place: int | str) -> None:
    """Back to where a search began."""
    session.back_offer = None
    goto(session, place)


# -- whom and what to look at ------------------------------------------------------------------------------------------


def choose(session: Session, node: str) -> None:
    """The machine that the controls act on; the one before it stays as the other end of a link."""
    check_machine(session.lab, node)
    session.page.choose(node)


def choose_link(session: Session, source: str, target: str) -> None:
    """The link between two machines."""
    choose(session, source)
    choose(session, target)


def set_kind(session: Session, kind: str) -> None:
    """The event kind that the next and previous buttons look for."""
    session.page.kind = kind


def follow(session: Session, message: str) -> None:
    """Light the way of a message, by its unique key; "" or the same again: of none."""
    session.page.followed = "" if message == session.page.followed else message


def open_kind(session: Session, kind: str) -> None:
    """Draw all machines of a kind, or sum the most of them up again."""
    session.page.opened_kinds ^= {kind}


def open_part(session: Session, path: str) -> None:
    """Open a part in the generic inspector, or close it."""
    session.page.opened ^= {path}


def show_queue(session: Session, topic: str, queue_id: int | str, offset: int | str = -1) -> None:
    """The queue, and the message in it, whose bytes are shown."""
    session.page.queue = (topic, int(queue_id), int(offset))


def share(session: Session, place: int | str | None = None) -> None:
    """Show the text and the link that bring back this world at this event, or behind so many events: while a world is
    played, what is seen on the page is a little older than what is known here.
    """
    here = session.lab.history.cursor
    at = here if place is None or place == "" else min(max(int(place), 0), len(session.lab.history))
    session.shared = shared_at(session.lab, at)


# -- other worlds ------------------------------------------------------------------------------------------------------


def take_back(session: Session, what: str = "gone back") -> None:
    """Play a new world up to the slice of the cursor, which can go on from there in another way."""
    session.worlds.take_back(session.cursor, what)
    session.show_world()


def override(session: Session, point: str, k: int | str, value: int | str) -> None:
    """Play a new world in which one drawn choice came out differently."""
    session.worlds.override(point, int(k), int(value))
    session.show_world()


def branch(session: Session, number: int | str) -> None:
    """Show another world of the tree."""
    session.worlds.show(number)
    session.show_world()


# -- when --------------------------------------------------------------------------------------------------------------


def _goes_on(session: Session) -> bool:
    world = session.lab.world
    return not session.cursor.at_end or world.next_due_us() is not None or world.outside.passes


def _can_play(session: Session) -> bool:
    return _goes_on(session) or session.playing or session.another_plays


def _can_stop_at_a_breakpoint(session: Session) -> bool:
    return _goes_on(session) and bool(session.lab.breakpoints)


def _has_a_past(session: Session) -> bool:
    return session.lab.history.cursor > 0


def _is_present(session: Session) -> bool:
    return not session.cursor.past and not session.moving


def _can_branch(session: Session) -> bool:
    return session.worlds.can_branch


def _can_share(session: Session) -> bool:
    return session.worlds.can_branch or session.lab.failure is not None


COMMANDS: dict[str, Command] = {
    "play": Command(play, possible=_can_play),
    "pace": Command(pace, looks=True),
    "step_event": Command(step_event, pauses=True, possible=_goes_on),
    "step_slice": Command(step_slice, pauses=True, possible=_goes_on),
    "back": Command(back, pauses=True, possible=_has_a_past),
    "start": Command(start, pauses=True, possible=_has_a_past),
    "now": Command(now, pauses=True, possible=lambda session: not session.cursor.at_end),
    "goto": Command(goto, pauses=True),
    "set_kind": Command(set_kind, looks=True),
    "previous_kind": Command(previous_kind, pauses=True, possible=_has_a_past),
    "next_kind": Command(next_kind, pauses=True, possible=_goes_on),
    "next_caption": Command(next_caption, pauses=True),
    "previous_caption": Command(previous_caption, pauses=True),
    "to_breakpoint": Command(to_breakpoint, pauses=True, possible=_can_stop_at_a_breakpoint),
    "to_time": Command(to_time, pauses=True, possible=lambda _: True),
    "cancel": Command(cancel, looks=True, possible=lambda session: session.search is not None),
    "back_to": Command(back_to, pauses=True, possible=lambda session: session.back_offer is not None),
    "choose": Command(choose, looks=True),
    "choose_link": Command(choose_link, looks=True),
    "follow": Command(follow, looks=True),
    "open_kind": Command(open_kind, looks=True),
    "open_part": Command(open_part),
    "show_queue": Command(show_queue),
    "share": Command(share, possible=_can_share),
    "take_back": Command(take_back, pauses=True, possible=_can_branch),
    "override": Command(override, pauses=True, possible=_can_branch),
    "branch": Command(branch, pauses=True),
    "pick": Command(pick, pauses=True, possible=_is_present),
    "hold": Command(hold, pauses=True, possible=_is_present),
    **{name: Command(partial(act_on_machine, name), breaks=True) for name in MACHINES},
    **{name: Command(partial(act_on_link, name), breaks=True) for name in LINKS},
}
"""Every command of a page, by the name that it is asked for with."""


def offered(session: Session) -> set[str]:
    """The commands that can be done now."""
    possible = {
        name for name, command in COMMANDS.items() if command.possible is not None and command.possible(session)
    }
    return possible.union(machine_verbs(session), link_verbs(session))
