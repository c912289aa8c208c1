"""Invariant lights: one lamp for each rule that must hold, with the event that broke it.

The rules are those of `mqlab explore` that can be judged at any event, from the events before it (`LEFT_OUT` names the
others). Where RocketMQ itself does not promise what a rule says, the lamp is amber and
names the exception.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import ClassVar, NamedTuple

from mqlab.explore.rule import Rule
from mqlab.explore.rules_of_begins import CorrectedOffsetsFit
from mqlab.explore.rules_of_delivery import CommittedIsConsumed
from mqlab.explore.rules_of_flow_control import ThresholdsHold
from mqlab.explore.rules_of_flushing import RecoveredIsWhole
from mqlab.explore.rules_of_offsets import OffsetsKeepUp, OffsetsOnlyGrow
from mqlab.explore.rules_of_order import InOrder, OneOwner
from mqlab.explore.rules_of_storing import AcknowledgedSurvives, NothingUnsentIsDelivered
from mqlab.explore.rules_of_time import RetriesComeInTime
from mqlab.trace.record import Record
from mqlab_widgets.boards.board import Board
from mqlab_widgets.boards.lights_judges import Excuse, FromEvents, WhilePlaying

ORDERED = (InOrder, OneOwner)

LEFT_OUT = {
    "they judge a world that has settled, and one that somebody plays has not": (
        "AcknowledgedIsReadable", "StoredIsDelivered", "OnlySubscribedIsDelivered", "GivenBackComesAgain",
        "EverythingSettles", "EveryKeyIsFound", "SignsOfLifeGoOn", "FramesArrive", "CallsEnd", "SendsEnd",
        "NothingIsLeftOver", "TimersComeInTime", "NothingUnackedIsLost", "ReviversKeepUp", "CopiesAreTheSame",
        "RequestsEnd", "EndsAreKept", "HalfMessagesEnd", "ReadersComeHome", "SlavesFollow",
        "EachQueueHasAnOwner", "EachHasAnEntry", "QueuesBeginRight", "TimesAreFound", "RoutesAreTrue",
        "RoutesAreFollowed", "ResetsAreFollowed", "TablesAreWritten", "RevivedOnce",
    ),
    "they remember what was before, some beside the world as it is now, and a view is mostly opened later": (
        "DroppedIsLeftAlone", "LockedIsConsumed", "GivenUpIsWritten", "ProgressIsKept", "HoldsEnd",
        "RoutesForgetTheDead", "AckedStaysAway", "RevivedInTime", "RevivedIsNamed", "OrderedPopsWait",
        "HalfMessagesAreHidden", "EndedIsLeftAlone", "QuestionsAreCounted", "QuestionsComeAtTheirTime",
        "QuestionsNameTheCopy", "EndsAreSaid", "SafeIsCopied", "ReportsAreTrue", "SlavesOnlyGive", "ProcessorsAnswer",
        "CommitsAreAsked", "QuestionsStop", "HandlesAreTheNewest", "QueuesArePulled",
        "BeginsWhereItStood", "RoutesAreKept", "FailedWaitsInFront", "DoneIsSettled",
        "ServersAreReached", "CallsGoThrough", "DeliveriesAreCounted", "LocalOffsetsAreKept",
        "AttemptsGoOn", "RenewalsGoOn", "DeadLettersAreTried", "OrderedPopsAreWoken",
        "ToldIsShared", "CommittedGoesWhereItWasSent", "ChangedTimesAgree", "RelayedNamesTheHalf",
        "ReceivesTakeTurns",
    ),
    "it is asked three times for each message, which would slow down the world that is watched": ("SafeIsFlushed",),
    "it is a rule of the simulated disk, not of RocketMQ": ("PowerCutsBite",),
}  # fmt: skip
"""The rules of `mqlab explore` that have no lamp, by the reason."""


class Lamp(NamedTuple):
    """What is known of one rule at the cursor."""

    rule: Rule
    broken: list[tuple[Record, str]]
    excused: list[Excuse]
    note: str
    """Why there is nothing to judge, or from where on it was judged."""

    @property
    def state(self) -> str:
        """ "broken", "excused", "idle" or "holds"."""
        if self.broken or self.excused:
            return "broken" if self.broken else "excused"
        return "idle" if self.note.startswith("no ") else "holds"


class LightsBoard(Board):
    """What must always hold: a lamp is red from the event on that broke its rule.

    Rules remember every message, so they are not copied as a fold's state is: each event is judged once, and a breach
    shows when the cursor has come to it. Rules that look at the world beside its events judge while it plays.
    """

    title: ClassVar[str] = "What must always hold"
    rules: ClassVar[tuple[type[Rule], ...]] = (
        AcknowledgedSurvives, NothingUnsentIsDelivered, CommittedIsConsumed, OffsetsOnlyGrow, *ORDERED
    )  # fmt: skip
    live_rules: ClassVar[tuple[type[Rule], ...]] = (
        OffsetsKeepUp, CorrectedOffsetsFit, RetriesComeInTime, RecoveredIsWhole, ThresholdsHold
    )  # fmt: skip

    def begin(self) -> None:
        """Every rule holds."""
        self._judge = FromEvents(self.lab, self.rules)
        self._live = WhilePlaying.of(self.lab, self.live_rules)

    def handlers(self) -> dict[str, Callable[[Record], None]]:
        """The kinds that some rule wants."""
        return dict.fromkeys(self._judge.kinds, self._judge)

    def lamps(self) -> list[Lamp]:
        """All lamps at the cursor."""
        lamps = []
        for judge in (self._judge, self._live):
            for rule in judge.rules:
                broken = [(v.record, v.reason) for v in rule.violations if v.record.at <= self.here]
                excused = [excuse for excuse in judge.excused[type(rule)] if excuse.record.at <= self.here]
                lamps.append(Lamp(rule, broken, excused, self._note(rule)))
        return lamps

    def _note(self, rule: Rule) -> str:
        if isinstance(rule, ORDERED) and not any(reader.in_order for reader in rule.case.readers.values()):
            return "no group consumes in order"
        if rule in self._live.rules and self._live.since:
            return f"judged from event {self._live.since:,} on, when this view was opened"
        return ""

    def html(self) -> str:
        """One line with a lamp for each rule."""
        return "".join(self._html(lamp) for lamp in self.lamps())

    def _html(self, lamp: Lamp) -> str:
        told = []
        if lamp.broken:
            record, reason = lamp.broken[0]
            told.append(f"{self._go(record, f'broken {len(lamp.broken)} times')} first: {escape(reason)}")
        for name in dict.fromkeys(excuse.name for excuse in lamp.excused):
            same = [excuse for excuse in lamp.excused if excuse.name == name]
            go = self._go(same[0].record, f"broken {len(same)} times")
            told.append(f"{go} as RocketMQ may: <b>{name}</b>. {escape(lamp.rule.EXCEPTIONS[name])}")
        if lamp.note:
            told.append(escape(lamp.note))
        more = "".join(f'<div class="mq-faint">{words}</div>' for words in told)
        return (
            f'<div data-key="{type(lamp.rule).__name__}" style="display:flex;gap:8px;padding:2px 0">'
            f"{_SIGNS[lamp.state]}<div>{escape(lamp.rule.rule)}{more}</div></div>"
        )

    def _go(self, record: Record, words: str) -> str:
        place = self.lab.history.index_of(record.at) + 1
        return f'<button type="button" data-do="goto" data-place="{place}">{escape(words)}</button>'

    def text(self) -> list[str]:
        """The same in words."""
        return [_line(lamp) for lamp in self.lamps()]


def _line(lamp: Lamp) -> str:
    said = lamp.rule.rule + (f" ({lamp.note})" if lamp.note else "")
    if lamp.broken:
        return f"broken {len(lamp.broken)} times: {said} First: {lamp.broken[0][1]}"
    if lamp.excused:
        names = ", ".join(dict.fromkeys(excuse.name for excuse in lamp.excused))
        return f"broken {len(lamp.excused)} times, as RocketMQ may ({names}): {said}"
    return f"{'nothing to judge' if lamp.state == 'idle' else 'holds'}: {said}"


def _sign(words: str, shape: str) -> str:
    return (
        f'<svg width="14" height="19" viewBox="0 -2 14 19" role="img" aria-label="{words}" style="flex:none">'
        f"<title>{words}</title>{shape}</svg>"
    )


_SIGNS = {
    "holds": _sign("holds", '<circle cx="7" cy="7" r="6" fill="#009E73"/>'),
    "broken": _sign("broken", '<path d="M2 2L12 12M12 2L2 12" stroke="#D55E00" stroke-width="3.5"/>'),
    "excused": _sign("not promised", '<path d="M7 1L13.5 13H.5z" fill="#E69F00"/>'),
    "idle": _sign("nothing to judge", '<circle cx="7" cy="7" r="5" fill="none" stroke="#8c8c8c" stroke-width="2"/>'),
}
"""The shapes tell them apart where colours cannot."""
