"""A trial: one world, played from one seed under one plan of faults, and what the rules say of it."""

from __future__ import annotations

import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab.client.consumer.listener import ListenerRaised, ListenerReturnedNone
from mqlab.errors import LearnerError, MqlabError
from mqlab.explore.fault_plan import Plan, draw_plan, faults_of
from mqlab.explore.rule import Case, Rule
from mqlab.explore.rules_of_begins import BeginsWhereItStood, CorrectedOffsetsFit, ResetsAreFollowed
from mqlab.explore.rules_of_calls import (
    CallsEnd,
    CallsGoThrough,
    FramesArrive,
    ProcessorsAnswer,
    SendsEnd,
    ServersAreReached,
)
from mqlab.explore.rules_of_delivery import (
    CommittedIsConsumed,
    GivenBackComesAgain,
    OnlySubscribedIsDelivered,
    StoredIsDelivered,
)
from mqlab.explore.rules_of_entries import EachHasAnEntry, QueuesBeginRight, TimesAreFound
from mqlab.explore.rules_of_flow_control import ThresholdsHold
from mqlab.explore.rules_of_flushing import (
    EveryKeyIsFound,
    PowerCutsBite,
    RecoveredIsWhole,
    SafeIsFlushed,
    TablesAreWritten,
)
from mqlab.explore.rules_of_handles import (
    DeadLettersAreTried,
    DoneIsSettled,
    HandlesAreTheNewest,
    RenewalsGoOn,
)
from mqlab.explore.rules_of_leftovers import NothingIsLeftOver
from mqlab.explore.rules_of_offsets import (
    CommitsAreAsked,
    GivenUpIsWritten,
    LocalOffsetsAreKept,
    OffsetsKeepUp,
    OffsetsOnlyGrow,
    ProgressIsKept,
)
from mqlab.explore.rules_of_order import InOrder, LockedIsConsumed, OneOwner
from mqlab.explore.rules_of_ordered_pops import (
    AttemptsGoOn,
    ChangedTimesAgree,
    DeliveriesAreCounted,
    FailedWaitsInFront,
    OrderedPopsAreWoken,
    OrderedPopsWait,
)
from mqlab.explore.rules_of_pop import (
    AckedStaysAway,
    NothingUnackedIsLost,
)
from mqlab.explore.rules_of_questions import (
    QuestionsAreCounted,
    QuestionsComeAtTheirTime,
    QuestionsNameTheCopy,
    QuestionsStop,
    RelayedNamesTheHalf,
)
from mqlab.explore.rules_of_queues import (
    DroppedIsLeftAlone,
    EachQueueHasAnOwner,
    QueuesArePulled,
    ReceivesTakeTurns,
    ToldIsShared,
)
from mqlab.explore.rules_of_replication import (
    CopiesAreTheSame,
    ReadersComeHome,
    ReportsAreTrue,
    SafeIsCopied,
    SlavesFollow,
    SlavesOnlyGive,
)
from mqlab.explore.rules_of_replies import RequestsEnd
from mqlab.explore.rules_of_reviving import (
    RevivedInTime,
    RevivedIsNamed,
    RevivedOnce,
    ReviversKeepUp,
)
from mqlab.explore.rules_of_routes import RoutesAreFollowed, RoutesAreKept, RoutesAreTrue
from mqlab.explore.rules_of_settling import EverythingSettles
from mqlab.explore.rules_of_storing import AcknowledgedIsReadable, AcknowledgedSurvives, NothingUnsentIsDelivered
from mqlab.explore.rules_of_time import HoldsEnd, RetriesComeInTime, RoutesForgetTheDead, SignsOfLifeGoOn
from mqlab.explore.rules_of_timers import TimersComeInTime
from mqlab.explore.rules_of_transactions import (
    CommittedGoesWhereItWasSent,
    EndedIsLeftAlone,
    EndsAreKept,
    EndsAreSaid,
    HalfMessagesAreHidden,
    HalfMessagesEnd,
)
from mqlab.explore.sights import SIGHTS, Sights
from mqlab.scenarios import registry
from mqlab.sim.choices import Choices, Policy
from mqlab.trace.bus import Row
from mqlab.trace.record import KIND, Record, record_class

if TYPE_CHECKING:
    from mqlab.lab import Lab

RULES: tuple[type[Rule], ...] = (
    AcknowledgedSurvives,
    AcknowledgedIsReadable,
    NothingUnsentIsDelivered,
    CopiesAreTheSame,
    SafeIsCopied,
    ReportsAreTrue,
    SlavesFollow,
    SlavesOnlyGive,
    ReadersComeHome,
    ThresholdsHold,
    DroppedIsLeftAlone,
    EachQueueHasAnOwner,
    ToldIsShared,
    QueuesArePulled,
    ReceivesTakeTurns,
    CommittedIsConsumed,
    StoredIsDelivered,
    OnlySubscribedIsDelivered,
    GivenBackComesAgain,
    InOrder,
    OneOwner,
    LockedIsConsumed,
    FailedWaitsInFront,
    AttemptsGoOn,
    EverythingSettles,
    SafeIsFlushed,
    TablesAreWritten,
    RecoveredIsWhole,
    EachHasAnEntry,
    QueuesBeginRight,
    TimesAreFound,
    EveryKeyIsFound,
    PowerCutsBite,
    OffsetsOnlyGrow,
    OffsetsKeepUp,
    CorrectedOffsetsFit,
    BeginsWhereItStood,
    GivenUpIsWritten,
    LocalOffsetsAreKept,
    ProgressIsKept,
    CommitsAreAsked,
    ResetsAreFollowed,
    HoldsEnd,
    RetriesComeInTime,
    TimersComeInTime,
    HalfMessagesAreHidden,
    CommittedGoesWhereItWasSent,
    EndsAreSaid,
    EndsAreKept,
    HalfMessagesEnd,
    EndedIsLeftAlone,
    QuestionsAreCounted,
    QuestionsStop,
    QuestionsComeAtTheirTime,
    QuestionsNameTheCopy,
    RelayedNamesTheHalf,
    AckedStaysAway,
    NothingUnackedIsLost,
    RevivedInTime,
    RevivedIsNamed,
    RevivedOnce,
    DoneIsSettled,
    RenewalsGoOn,
    DeadLettersAreTried,
    ReviversKeepUp,
    OrderedPopsWait,
    OrderedPopsAreWoken,
    DeliveriesAreCounted,
    ChangedTimesAgree,
    HandlesAreTheNewest,
    SignsOfLifeGoOn,
    RoutesForgetTheDead,
    RoutesAreTrue,
    RoutesAreFollowed,
    RoutesAreKept,
    FramesArrive,
    CallsEnd,
    ProcessorsAnswer,
    SendsEnd,
    ServersAreReached,
    CallsGoThrough,
    RequestsEnd,
    NothingIsLeftOver,
)
"""What is judged in every world, unless there is nothing in it that a rule speaks of."""

FAULTY_PART = 0.75
"""The part of a scenario's time in which faults begin; its load is spread over about as much."""
SETTLE_STEP_S = 5
SETTLE_MOST_S = 600
"""How long a world has to settle once the faults are over: far more than every period in it."""
QUIET_US = 10_000_000
AFTER_S = 45
"""How long a world goes on when it has settled: time-outs, held pulls, heartbeats and renewals are over by then."""


TIES_ONE_IN = 4
"""In so many seeds one also draws what goes first of all that is due at one instant, and who loses the processor."""


def draws_ties(seed: int | str) -> bool:
    """Is this one of the seeds in which ties are choices?"""
    return Choices(seed).choose("faults/ties", TIES_ONE_IN) == 0


class Breach(NamedTuple):
    """One thing that must not be: which rule, why, and the event that showed it, as text."""

    rule: str
    reason: str
    event: str


class PlanError(LearnerError):
    """A fault of a plan cannot be done in this world."""


class Outcome(NamedTuple):
    """What became of one seed. It is plain data, so it travels between processes.

    `excused` counts what RocketMQ does not promise either by its name, `judged` by the name of each rule what that had
    to judge: one with nothing did not hold, it was silent. What is left in the end was judged only if the `load_ended`.
    `goals` counts by name what was reached of all that a pass needs to mean anything.
    """

    seed: int | str
    plan: Plan
    breaches: tuple[Breach, ...]
    excused: dict[str, int]
    judged: dict[str, int]
    goals: dict[str, int]
    load_ended: bool
    now_ms: float
    world: str = ""
    """The text of a drawn world of which something was left out."""

    @property
    def passed(self) -> bool:
        """Did every rule hold?"""
        return not self.breaches


class Trial:
    """Plays one seed of a scenario; `lab` is its world, `outcome` what the rules say in the end.

    Without a plan one is drawn from the seed, out of the faults that the scenario bears. `overrides` and `policy`
    decide choices of the world in place of the seed, which says whether ties are choices unless `tie_is_choice` does.
    Raises LearnerError for a mistake in the parameters, and PlanError for one in the plan; an error of the world itself
    is a breach.
    """

    def __init__(
        self,
        scenario: str,
        seed: int | str,
        parameters: dict[str, Any] | None = None,
        plan: Plan | None = None,
        *,
        overrides: Mapping[tuple[str, int], int] | None = None,
        policy: Policy | None = None,
        tie_is_choice: bool | None = None,
    ) -> None:
        self.scenario = registry.get(scenario)
        self.seed = seed
        self._breaches: list[Breach] = []
        self.plan: Plan = plan or ()
        self.lab: Lab | None = None
        self.load_ended = True
        self.rules: list[Rule] = []
        self.sights: list[Sights] = []
        self._unfit: list[Rule] = []
        """Rules that have failed themselves, and judge no more."""
        ties = draws_ties(seed) if tie_is_choice is None else tie_is_choice
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ListenerRaised)
            warnings.simplefilter("ignore", ListenerReturnedNone)
            try:
                self._play(parameters or {}, plan, overrides=overrides, policy=policy, tie_is_choice=ties)
            except MqlabError as error:
                if isinstance(error, PlanError) or (isinstance(error, LearnerError) and self.lab is None):
                    raise
                self._breaches.append(Breach("the world goes on", f"{type(error).__name__}: {error}", ""))

    def _play(self, parameters: dict[str, Any], plan: Plan | None, **choices: Any) -> None:
        parameters = {**self.scenario.explored_with, **parameters}
        lab = self.lab = self.scenario.build(self.seed, parameters=parameters, **choices)
        case = Case(lab)
        self.rules = [rule(case) for rule in RULES]
        self.sights = [sights(case) for sights in SIGHTS]
        watch = _watching(case, [*self.rules, *self.sights], self._rule_failed)
        for row in lab.history.rows():
            watch(row)
        case.is_live = True
        lab.world.hooks.attach(watch)
        window_ms = round(self.scenario.seconds * 1_000)
        end_ms = lab.now_ms + window_ms
        if plan is None:
            plan = self.plan = draw_plan(lab, self.scenario.faults, round(window_ms * FAULTY_PART))
        self._do_faults(lab, plan)
        lab.world.run_to(round(end_ms * 1_000))
        self.load_ended = self._settle(lab) or lab.world.now_us - case.ledger.sends.newest_us >= QUIET_US
        if self.load_ended:
            lab.run_for(seconds=AFTER_S)
            self._settle(lab)
        lab.world.hooks.detach(watch)
        if self.load_ended:
            self._judge_the_end(case)

    def _judge_the_end(self, case: Case) -> None:
        """Ask the rules what is left. What they ask of the world for that is no part of its trace."""
        hooks = case.lab.world.hooks
        sinks = tuple(hooks.sinks)
        for sink in sinks:
            hooks.detach(sink)
        for rule in (*self.rules, *self.sights):
            if (case.brokers_are_up or isinstance(rule, EverythingSettles)) and rule not in self._unfit:
                try:
                    rule.at_end()
                except Exception as error:  # noqa: BLE001  # a defect of one rule must not take away what others say
                    self._rule_failed(rule, error)
        for sink in sinks:
            hooks.attach(sink)

    def _rule_failed(self, rule: Rule, error: Exception) -> None:
        """Note that a rule cannot judge, since it has a defect itself."""
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{PurePath(where.filename).name}:{where.lineno}"
        reason = f"{type(rule).__name__} itself failed, at {place}: {type(error).__name__}: {error}"
        self._breaches.append(Breach(rule.rule, reason, ""))
        self._unfit.append(rule)

    @staticmethod
    def _do_faults(lab: Lab, plan: Plan) -> None:
        for fault in faults_of(plan):
            lab.world.run_to(fault.at_us)
            try:
                lab.act(fault.verb, **fault.arguments)
            except LearnerError as error:
                raise PlanError(f"{fault.verb} at {fault.at_us / 1_000:g} ms: {error.message}", error.hint) from error

    def _settle(self, lab: Lab) -> bool:
        """Play until the world has settled, or for ten minutes; has it?"""
        settling = next(rule for rule in self.rules if isinstance(rule, EverythingSettles))
        for _ in range(0, SETTLE_MOST_S, SETTLE_STEP_S):
            if settling.has_settled(QUIET_US):
                return True
            lab.run_for(seconds=SETTLE_STEP_S)
        return False

    @property
    def outcome(self) -> Outcome:
        """What the rules say."""
        breaches = [*self._breaches]
        excused: Counter[str] = Counter()
        for rule in self.rules:
            breaches += [Breach(rule.rule, v.reason, str(v.record)) for v in rule.violations]
            excused.update(rule.excused)
        judged = {type(rule).__name__: rule.judged for rule in self.rules}
        goals = {goal: times for rule in (*self.rules, *self.sights) for goal, times in rule.reached.items()}
        now_ms = self.lab.now_ms if self.lab is not None else 0.0
        return Outcome(
            self.seed, self.plan, tuple(breaches), dict(excused), judged, dict(sorted(goals.items())), self.load_ended,
            now_ms,
        )  # fmt: skip

    @property
    def first_reached(self) -> dict[str, Record]:
        """The event at which each goal was reached first, by the name of the goal."""
        return {goal: at for rule in (*self.rules, *self.sights) for goal, at in rule.first_reached.items()}


Look = tuple[Callable[[Record], None], Rule]
"""What is called with an event, and the rule that it is of."""


def _watching(
    case: Case, rules: Sequence[Rule], rule_failed: Callable[[Rule, Exception], None]
) -> Callable[[Row], None]:
    """One sink for all books and rules: of each kind the books first that note it, then the rules that look at it.

    A rule that raises an error is told to `rule_failed`, and looks no more.
    """
    books: dict[str, list[Callable[[Row], None]]] = defaultdict(list)
    for kind, notes in case.ledger.handlers.items():
        books[kind] += notes
    for kind, note in (*case.fault_times.handlers.items(), *case.pops.handlers.items()):
        books[kind].append(note)
    looks: dict[str, list[Look]] = defaultdict(list)
    for rule in rules:
        for kind in map(str, rule.kinds if isinstance(rule.kinds, tuple) else ()):
            looks[kind] += [(look, rule) for look in rule.looks_at(kind)]
    by_kind = {kind: (books[kind], record_class(kind), looks[kind]) for kind in (*books, *looks)}
    ledger, names = case.ledger, case.ledger.names

    def leave_out(unfit: Rule) -> None:
        for kind, (noted_by, read, seen_by) in by_kind.items():
            by_kind[kind] = noted_by, read, [(look, rule) for look, rule in seen_by if rule is not unfit]

    def watch(row: Row) -> None:
        ledger.last = row
        interested = by_kind.get(row[KIND])
        if interested is None:
            return
        names.at_event = row
        noted_by, read, seen_by = interested
        for note in noted_by:
            note(row)
        if seen_by:
            record = read(row)
            for look, rule in seen_by:
                try:
                    look(record)
                except Exception as error:  # noqa: BLE001  # as at the end
                    leave_out(rule)
                    rule_failed(rule, error)
        names.at_event = None

    return watch
