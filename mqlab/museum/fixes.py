"""The fix to write for each bug: the decision that went wrong, as a function of its own that plugs into the room.

`fix_of(number)` gives it: the decision as it was (`start`), hints, and a check that plays the room with a function of
one's own in it, from other seeds than those that are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, NamedTuple

from mqlab.check import LabCheck, Wrong, draws_for
from mqlab.check.draws import Draws
from mqlab.client.consumer.pop.consume_message_pop_concurrently_service import POP_DELAY_LEVEL
from mqlab.errors import LearnerError
from mqlab.lab import Lab
from mqlab.museum import rules
from mqlab.museum.exhibits import exhibit
from mqlab.museum.search import watch
from mqlab.scenarios import museum, registry
from mqlab.scenarios import museum_parts as parts
from mqlab.scenarios.museum_parts import Prepare

OTHER_SEEDS = range(100_001, 100_011)
"""The seeds of a check: far from those that a visitor is shown."""

Answer = Callable[..., Any]
Told = Callable[[Answer, Draws], str]
"""Asks a function about single cases; what is wrong with an answer, "" if nothing is."""


class Fix(NamedTuple):
    """What is to be written for an exhibit: the decision as it was, two hints beside that of the exhibit, how a
    function is put into the room, the room itself, what else must hold there, and cases that a world seldom brings.
    """

    number: str
    start: str
    hints: tuple[str, str]
    plug: Callable[[Answer], Callable[[Any], None]]
    room: Callable[[Lab, Any], Coroutine[Any, Any, None]]
    told: Told
    also: tuple[type[rules.MuseumRule], ...] = ()

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.start.partition("(")[0].removeprefix("def ")

    @property
    def all_hints(self) -> tuple[str, str, str]:
        """From a nudge to nearly the answer."""
        return (exhibit(self.number).hint, *self.hints)

    @property
    def check(self) -> LabCheck:
        """Judges a function over seeds."""

        def judged(answer: Answer, *, seed: int) -> Wrong | None:
            """Your decision plays its part in the room, and is then asked about single cases."""
            return judge(self, answer, seed=seed)

        return LabCheck(f"museum/{self.number}", 1, judged)


def judge(fix: Fix, answer: Answer, *, seed: int, world: bool = True) -> Wrong | None:
    """Play the room with the function, and then ask it about single cases; `world=False` leaves the room out."""
    one = exhibit(fix.number)
    if world:
        found = watch(_room(fix, answer, seed), (one.rule, *fix.also), registry.get(one.scenario).seconds)
        if found is not None:
            return Wrong(f"{found.invariant} {found.reason}", "\n".join(found.story))
    told = fix.told(answer, draws_for(seed))
    return Wrong(told, world=partial(room_of, fix, answer, seed)) if told else None


def _room(fix: Fix, answer: Answer, seed: int) -> Lab:
    lab = Lab(seed)
    lab.finish_building(fix.room(lab, fix.plug(answer)))
    return lab


def room_of(fix: Fix, answer: Answer, seed: int) -> Lab:
    """The room of an exhibit as it stands at its end, or where its rule was broken, with a function in it."""
    lab = _room(fix, answer, seed)
    watch(lab, (exhibit(fix.number).rule, *fix.also), registry.get(exhibit(fix.number).scenario).seconds)
    return lab


def function_of(fix: Fix, source: str, file: str) -> Answer:
    """The function that a file defines; LearnerError if it cannot be read or defines none of that name."""
    names: dict[str, Any] = {"__name__": "my_fix"}
    try:
        exec(compile(source, file, "exec"), names)  # noqa: S102  who gives the file wants it to be run
    except Exception as error:
        raise LearnerError(f"{file} cannot be run: {type(error).__name__}: {error}", "mend it and try again") from error
    answer = names.get(fix.name)
    if not callable(answer):
        raise LearnerError(f"{file} defines no function {fix.name}", f"the decision begins with\n\n{fix.start}")
    return answer  # type: ignore[no-any-return]


# -- 3787 and 4153 --------------------------------------------------------------------------------------------------

DELIVER_AT = '''def deliver_at(kind, until_ms, now_ms, levels_ms):
    """When a note about a popped batch is put into the revive queue, ms since 1970.

    `kind` is "ck" (a check point: these were popped) or "ack" (these are done); `until_ms` is the end of the invisible
    time, ms since 1970; the note is written at `now_ms`; `levels_ms` are the 18 lengths of waiting of a broker that has
    no timer wheel. (This broker has one.)
    """
    due_ms = until_ms - 1_000 if kind == "ck" else until_ms
    for level_ms in levels_ms:
        if due_ms - now_ms < level_ms:
            return now_ms + level_ms
    return now_ms + levels_ms[-1]
'''
DELIVER_HINTS = (
    "A broker with a timer wheel can keep a message until any second. Then nobody needs the levels.",
    "The check point has to be read before its acks, so it comes a second before them, whenever each was written.",
)


def _asked_when(answer: Answer, draw: Draws) -> str:
    now_ms = 1_767_225_600_000 + draw.between("now", 0, 60_000)
    levels_ms = tuple(1_000 * seconds for seconds in (1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600))
    for kind, before_ms in (("ck", 1_000), ("ack", 0)):
        until_ms = now_ms + draw.between(f"left {kind}", 2_000, 60_000)
        got = answer(kind, until_ms, now_ms, levels_ms)
        if got != until_ms - before_ms:
            return (
                f"a note {kind!r}, written {until_ms - now_ms} ms before the end of the invisible time, is to come "
                f"{before_ms} ms before that end; yours comes {_apart(got, until_ms)}"
            )
    return ""


def _apart(got: object, until_ms: int) -> str:
    """Where a time lies."""
    if isinstance(got, bool) or not isinstance(got, int | float):
        return f"at {got!r}, which is no time"
    return f"{abs(got - until_ms):g} ms {'behind' if got > until_ms else 'before'} it"


# -- 3507 -----------------------------------------------------------------------------------------------------------

READ_UP_TO = '''def read_up_to(deliver_ms, waited_ms):
    """Up to which time a reviver has read when it has read this note, ms since 1970.

    The note was to be put into the revive queue at `deliver_ms` (ms since 1970), and had waited for that `waited_ms`.
    """
    return deliver_ms + waited_ms
'''


def _asked_how_far(answer: Answer, draw: Draws) -> str:
    deliver_ms, waited_ms = 1_767_225_600_000 + draw.between("deliver", 0, 60_000), draw.between("waited", 1, 60_000)
    got = answer(deliver_ms, waited_ms)
    if got == deliver_ms:
        return ""
    return f"a note that came at {deliver_ms}: up to then everything has been read, and yours says {got!r}"


# -- 5408 -----------------------------------------------------------------------------------------------------------

PASSES = '''def passes(waited_ms, patience_ms):
    """Whether a reviver passes an ack of which it has read no check point.

    The ack was due `waited_ms` ago; a check point may still come for `patience_ms`. While it is not passed, the reviver
    reads it again in each round, and does not get behind it.
    """
    return False
'''


def _asked_whether_it_passes(answer: Answer, draw: Draws) -> str:
    patience_ms = draw.between("patience", 10_000, 180_000)
    for waited_ms, want in ((0, False), (patience_ms // 2, False), (patience_ms, False), (patience_ms + 1, True)):
        got = answer(waited_ms, patience_ms)
        if bool(got) is not want:
            why = "it has waited long enough" if want else "its check point may still come"
            told = f"an ack that was due {waited_ms} ms ago, with a patience of {patience_ms} ms"
            return f"{told}: {why}, and yours says {got!r}"
    return ""


# -- 7724, 7914 and 8479 --------------------------------------------------------------------------------------------

IS_IT = '''def is_it(asked, found):
    """Whether the message that the store gave is the one that was popped.

    `asked` is the offset that the check point names; `found` that of the first message from there on which the store
    still has, None if it has none.
    """
    return found is not None
'''
COMES_BACK = '''def comes_back(asked, found, pop_time, stored):
    """Whether a message that nobody acknowledged is brought back.

    `asked` and `found` are the offsets that the check point names and that the store gave a message of (None: it gave
    none); the pop began at `pop_time`, and the message was stored at `stored` (both ms since 1970).
    """
    return found is not None and stored <= pop_time
'''
WHAT_NOW = '''def what_now(asked, found, queue_end, reads):
    """What becomes of a message that nobody acknowledged: "back", "gone", or "later" (to try once more).

    `asked` and `found` are the offsets that the check point names and that the store gave a message of (None: it gave
    none); `queue_end` is the offset that the queue's next message will get; `reads` says whether the store reads now.
    """
    if asked >= queue_end or not reads:
        return "later"
    return "back" if found == asked else "gone"
'''


def _asked_is_it(answer: Answer, draw: Draws) -> str:
    asked, later = draw.between("asked", 0, 900), draw.between("later", 1, 40)
    for found, want in ((asked, True), (asked + later, False), (None, False)):
        got = answer(asked, found)
        if bool(got) is not want:
            return f"offset {asked} was popped, and the store gave {found}: yours says {got!r}"
    return ""


def _asked_back(answer: Answer, draw: Draws) -> str:
    asked, later = draw.between("asked", 0, 900), draw.between("later", 1, 40)
    pop_time = 1_767_225_600_000 + draw.between("popped", 0, 60_000)
    cases = (
        (asked, pop_time - later, True),
        (asked, pop_time + later, True),
        (asked + later, pop_time - later, False),
        (None, None, False),
    )
    for found, stored, want in cases:
        got = answer(asked, found, pop_time, stored)
        if bool(got) is not want:
            when = "nothing" if stored is None else f"offset {found}, stored {stored - pop_time} ms behind the pop time"
            return f"offset {asked} was popped, and the store gave {when}: yours says {got!r}"
    return ""


def _asked_what_now(answer: Answer, draw: Draws) -> str:
    asked, later = draw.between("asked", 0, 900), draw.between("later", 1, 40)
    cases = (
        (asked, asked + later, True, "back"),
        (asked + later, asked + later + 1, True, "gone"),
        (None, asked // 2, True, "gone"),
        (None, asked, True, "gone"),
        (None, asked + later, False, "later"),
    )
    for found, end, reads, want in cases:
        got = answer(asked, found, end, reads)
        if got != want:
            told = f"asked {asked}, found {found}, the queue ends at {end}, reads {reads}"
            return f"{told}: it is {want!r}, and yours says {got!r}"
    return ""


# -- 8472 -----------------------------------------------------------------------------------------------------------

WAKES_ANOTHER = '''def wakes_another(found, left):
    """Whether the next request that waits for the queue is woken when a pop is through with it.

    The pop found `found` messages that its group wants, and looked no further than it may: `left` messages lie behind
    that place, wanted or not. A pop that found none waits by now, too, and may be the one that is woken.
    """
    return found > 0 and left > 0
'''


def _asked_whether_it_wakes(answer: Answer, draw: Draws) -> str:
    found, left = draw.between("found", 1, 32), draw.between("left", 1, 900)
    for case, want in (((0, 0), False), ((0, left), True), ((found, 0), False), ((found, left), True)):
        got = answer(*case)
        if bool(got) is not want:
            return f"{case[0]} messages were found, and {case[1]} are left: yours says {got!r}"
    return ""


# -- 8332 -----------------------------------------------------------------------------------------------------------

MAY_TRY = '''def may_try(again, most):
    """Whether a message that was popped goes to the listener; if not, it is acknowledged, and never comes again.

    It was delivered `again` times behind the first time (0: it comes for the first time). The consumer allows `most`
    repetitions.
    """
    return True
'''


def _asked_whether_it_may(answer: Answer, draw: Draws) -> str:
    most = draw.between("most", 1, 16)
    for again, allowed in ((0, 0), (1, 0), (0, most), (most, most), (most + 1, most)):
        got, want = answer(again, allowed), again <= allowed
        if bool(got) is not want:
            return f"delivered again {again} times, with {allowed} allowed: yours says {got!r}"
    return ""


# -- 4815 -----------------------------------------------------------------------------------------------------------

DELAY_S = '''def delay_s(asked, again, delays_s):
    """In how many seconds a message comes again that its listener gave back.

    `asked` is the row of the table that the listener asked for (0: it did not ask); the message was delivered `again`
    times behind the first time (0: it failed for the first time); `delays_s` is the table, 10 s first.
    """
    row = asked or 3 + again
    return delays_s[min(row, len(delays_s) - 1)]
'''


def _asked_for_the_delay(answer: Answer, draw: Draws) -> str:
    again, row = draw.between("again", 1, 8), draw.between("row", 9, 15)
    table = POP_DELAY_LEVEL
    for asked, times, want in ((0, 0, 0), (0, again, again), (row, 0, row), (row, again, row), (0, 40, -1)):
        got = answer(asked, times, table)
        if got != table[want]:
            told = f"delivered again {times} times, the listener asked for {asked or 'nothing'}"
            return f"{told}: it is {table[want]} s, and yours says {got!r}"
    return ""


# -- 11062 ----------------------------------------------------------------------------------------------------------

TIMED_OUT = '''def timed_out(cost_ms, invisible_ms):
    """Whether those who watch a consumer are told that a call of its listener timed out.

    The call took `cost_ms`; its message was popped with the invisible time `invisible_ms`.
    """
    return cost_ms >= invisible_ms * 1_000
'''


def _asked_whether_it_timed_out(answer: Answer, draw: Draws) -> str:
    invisible_ms = 1_000 * draw.between("invisible", 5, 300)
    for cost_ms in (0, invisible_ms // 1_000, invisible_ms - 1, invisible_ms, 2 * invisible_ms):
        got = answer(cost_ms, invisible_ms)
        if bool(got) is not (cost_ms >= invisible_ms):
            return f"the call took {cost_ms} ms, the invisible time is {invisible_ms} ms: yours says {got!r}"
    return ""


# -- where they plug in ---------------------------------------------------------------------------------------------


def _by_offset(is_it: Answer) -> Prepare:
    def decide(
        asked: int, found: int | None, pop_time: int, stored: int | None, queue_end: int, reads: bool
    ) -> object:
        return "later" if not reads else "back" if is_it(asked, found) else "gone"

    return parts.decided_by(decide)


def _by_time(comes_back: Answer) -> Prepare:
    def decide(
        asked: int, found: int | None, pop_time: int, stored: int | None, queue_end: int, reads: bool
    ) -> object:
        return "later" if not reads else "back" if comes_back(asked, found, pop_time, stored) else "gone"

    return parts.decided_by(decide)


def _by_end(what_now: Answer) -> Prepare:
    def decide(
        asked: int, found: int | None, pop_time: int, stored: int | None, queue_end: int, reads: bool
    ) -> object:
        return what_now(asked, found, queue_end, reads)

    return parts.decided_by(decide)


FIXES = (
    Fix(
        "3787", DELIVER_AT, DELIVER_HINTS, parts.delivered_at, museum.acks_while_the_check_point_waits, _asked_when,
        (rules.SettledWithItsAcks,),
    ),
    Fix(
        "3507", READ_UP_TO,
        ("The time that a note has waited is over when it is delivered: `deliver_ms` is its end.",
         "`waited_ms` is not needed at all."),
        parts.read_up_to, museum.quick_consumer, _asked_how_far, (rules.AckedStaysAway,),
    ),
    Fix(
        "4153", DELIVER_AT, DELIVER_HINTS, parts.delivered_at, museum.acks_one_after_the_other, _asked_when,
        (rules.AckedStaysAway,),
    ),
    Fix(
        "5408", PASSES,
        ("An ack that is passed too soon has no effect if its check point comes after all. Which number says how long "
         "that may take?",
         "Compare the two numbers; with exactly `patience_ms` it may still come."),
        lambda answer: parts.passes_acks(answer, museum.ACK_WAIT_MS),
        # The setting lets the reviver look again when the time is over; whether it passes the ack is asked.
        lambda lab, prepare: museum.quick_consumer(
            lab, prepare, messages=8, every_ms=500, work_ms=20,
            enable_skip_long_awaiting_ack=True, revive_ack_wait_ms=museum.ACK_WAIT_MS,
        ),
        _asked_whether_it_passes, (rules.AckedStaysAway,),
    ),
    Fix(
        "7724", IS_IT,
        ("What lies at another offset is another message, and what lies at the same offset is the same.",
         "Compare `found` with `asked`; None is equal to no number."),
        _by_offset,
        lambda lab, prepare: museum.log_that_is_cleaned(lab, prepare, messages=100, too_slow_ms=25_000),
        _asked_is_it, (rules.ReviveTerminates,),
    ),
    Fix(
        "7914", COMES_BACK,
        ("A message may be stored behind the pop time and popped all the same. So what can the two times tell?",
         "Nothing: compare the offsets."),
        _by_time,
        lambda lab, prepare: museum.pops_that_wait_for_flushes(lab, prepare, messages=150, flush_us=58_000),
        _asked_back, (rules.RevivedWasPopped,),
    ),
    Fix(
        "8479", WHAT_NOW,
        ('"Not there" and "not now" are two things; `reads` tells them apart.',
         "The end of the queue is not needed: what is behind it is not there."),
        _by_end,
        lambda lab, prepare: museum.topic_made_again(lab, prepare, messages=20, deleted_after_ms=4_000),
        _asked_what_now, (rules.RevivedWasPopped,),
    ),
    Fix(
        "8472", WAKES_ANOTHER,
        ("What lies behind the place up to which a pop has looked is worth a look, whether that pop found anything or "
         "not.",
         "`found` is not needed; with nothing left nobody is woken."),
        parts.wakes_another,
        lambda lab, prepare: museum.few_are_wanted(lab, prepare, messages=60, one_in=20),
        _asked_whether_it_wakes, (rules.AckedStaysAway,),
    ),
    Fix(
        "8332", MAY_TRY,
        ("A listener that takes too long says nothing, and its message comes again all the same. Who sees the number "
         "before the listener does?",
         "The first delivery is no repetition: with `most` repetitions a message comes `most + 1` times."),
        parts.may_try,
        lambda lab, prepare: museum.messages_that_take_too_long(lab, prepare, messages=9, most=1),
        _asked_whether_it_may, (rules.AckedStaysAway,),
    ),
    Fix(
        "4815", DELAY_S,
        ("The delays of push are another table, which begins with 1 s, and whoever retries there leaves out its first "
         "rows. This table begins where it should.",
         "A message that has failed for the first time was delivered again 0 times, and its row is row 0."),
        parts.delayed_by,
        lambda lab, prepare: museum.messages_that_fail_once(lab, prepare, messages=9, one_in=3),
        _asked_for_the_delay, (rules.AckedStaysAway, rules.NothingComesEarly),
    ),
    Fix(
        "11062", TIMED_OUT,
        ("The client asks elsewhere whether a message is still its own, and compares the time since the pop with the "
         "same number as it is.",
         "60 s are 60,000 ms; times 1,000 they are 16 hours and 40 minutes. At the end of its time a call has timed "
         "out."),
        parts.timed_out,
        lambda lab, prepare: museum.calls_that_are_traced(lab, prepare, messages=12, too_slow_ms=12_500),
        _asked_whether_it_timed_out, (rules.AckedStaysAway,),
    ),
)  # fmt: skip
"""In the order of docs/museum.md."""


def fix_of(number: str) -> Fix:
    """The fix of an exhibit, also by another of its issues; LearnerError when there is none."""
    return next(fix for fix in FIXES if fix.number == exhibit(number).number)
