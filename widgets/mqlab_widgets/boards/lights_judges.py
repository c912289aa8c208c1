"""Who judges for the lights: the rules of `mqlab explore`, over events that are past or while a world plays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

from mqlab.explore.readers import Reader
from mqlab.explore.rule import Case, Rule
from mqlab.trace.bus import Bus, Row
from mqlab.trace.record import KIND, NODE, Record
from mqlab_widgets.weak_sink import WeakSink

if TYPE_CHECKING:
    from mqlab import Lab

CHANGE_READERS = ("ClientStarted", "SubscriptionChanged")


class Excuse(NamedTuple):
    """A rule was broken in a way that RocketMQ does not promise to avoid: the exception's name, and the event."""

    name: str
    record: Record


class _Case(Case):
    """A case that works out its readers once, until somebody starts or subscribes."""

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab)
        self._known: dict[str, Reader] | None = None

    @property
    def readers(self) -> dict[str, Reader]:
        """Who is to get messages, by name."""
        if self._known is None:
            self._known = super().readers
        return self._known

    def forget_readers(self) -> None:
        """Ask anew the next time."""
        self._known = None


class _Judge:
    """Some rules over one world, and what each has excused."""

    def __init__(self, lab: Lab, rules: Sequence[type[Rule]]) -> None:
        self.case = _Case(lab)
        self.rules = [rule(self.case) for rule in rules]
        self.excused: dict[type[Rule], list[Excuse]] = {rule: [] for rule in rules}
        self._by_kind: dict[str, list[Rule]] = {}
        for rule in self.rules:
            for kind in rule.kinds if isinstance(rule.kinds, tuple) else ():
                self._by_kind.setdefault(str(kind), []).append(rule)

    def _let_judge(self, record: Record) -> None:
        for rule in self._by_kind.get(record.kind, ()):
            before = dict(rule.excused)
            rule.on_event(record)
            for name, count in rule.excused.items():
                self.excused[type(rule)] += [Excuse(name, record)] * (count - before.get(name, 0))


class FromEvents(_Judge):
    """Rules that need the events alone: each event is judged once, whenever it comes along."""

    def __init__(self, lab: Lab, rules: Sequence[type[Rule]]) -> None:
        super().__init__(lab, rules)
        self._judged = (-1, -1)

    @property
    def kinds(self) -> list[str]:
        """What the rules and the ledger want to see."""
        case = self.case
        ledgers = {*case.ledger.handlers, *case.fault_times.handlers, *case.pops.handlers}
        return sorted({*self._by_kind, *ledgers, *CHANGE_READERS})

    def __call__(self, record: Record) -> None:
        if record.at <= self._judged:
            return
        self._judged = record.at
        if record.kind in CHANGE_READERS:
            self.case.forget_readers()
        self.case.ledger(record.row)
        self.case.fault_times(record.row)
        self.case.pops(record.row)
        self._let_judge(record)


class WhilePlaying(_Judge):
    """Rules that look at the world itself, at the moment of each event; one for each world, from when it was asked for.

    `since` is how many events had happened by then, or 0 if none of them was for these rules.
    """

    def __init__(self, lab: Lab, rules: Sequence[type[Rule]]) -> None:
        super().__init__(lab, rules)
        self.case.is_live = True
        missed = any(row[KIND] in self._by_kind for row in lab.history.rows())
        self.since = len(lab.history) if missed else 0

    @classmethod
    def of(cls, lab: Lab, rules: Sequence[type[Rule]]) -> Self:
        """The judge that watches this world with these rules, as long as a board holds it."""
        for sink in lab.world.hooks.sinks:
            judge = sink.view if isinstance(sink, WeakSink) else None
            if isinstance(judge, cls) and [type(rule) for rule in judge.rules] == list(rules):
                return judge
        judge = cls(lab, rules)
        _SinkOfKinds(lab.world.hooks, judge)
        return judge

    @property
    def kinds(self) -> frozenset[str]:
        """What the rules want to see."""
        return frozenset(self._by_kind)

    def judge(self, row: Row) -> None:
        """Let the rules that want this event judge it, if it comes from a process of the lab: others are no brokers and
        clients to look at.
        """
        if row[NODE] in self.case.lab.processes:
            self._let_judge(Record(row))


class _SinkOfKinds(WeakSink):
    """Asks for its judge only when an event is for it: most are not, and each of them costs time of the world."""

    def __init__(self, hooks: Bus, judge: WhilePlaying) -> None:
        self._kinds = judge.kinds
        super().__init__(hooks, judge.judge)

    def __call__(self, row: Row) -> None:
        if row[KIND] in self._kinds:
            super().__call__(row)
