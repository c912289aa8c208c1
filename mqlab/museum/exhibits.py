"""The list of what there is to be seen."""

from __future__ import annotations

from typing import NamedTuple

from mqlab.errors import LearnerError
from mqlab.museum import rules


class Exhibit(NamedTuple):
    """One bug: the number of its issue at apache/rocketmq (and of `others`), the rule that it breaks, a first hint.

    Where nobody has opened an issue it is the number of the change that mends it.

    Its world is the scenario `museum-<number>`, whose parameter `code` says "broken" or "fixed".
    """

    number: str
    title: str
    rule: type[rules.MuseumRule]
    hint: str
    others: tuple[str, ...] = ()

    @property
    def issues(self) -> tuple[str, ...]:
        """The numbers of all its issues, the oldest first."""
        return (*self.others, self.number)

    @property
    def scenario(self) -> str:
        """The name of its world."""
        return f"museum-{self.number}"

    @property
    def invariant(self) -> str:
        """The rule in one sentence."""
        return (self.rule.__doc__ or "").partition("\n")[0]


EXHIBITS = (
    Exhibit(
        "3787", "Slow consumers get again what they have acknowledged", rules.AckedStaysAway,
        "When is a check point written that waits in memory, and when an ack that came before it? Which of the two is "
        "read first?",
    ),
    Exhibit(
        "3507", "The end of what was read lies in the future", rules.NothingComesEarly,
        "A message in the revive queue says when it was to be delivered. What does the reviver add to that?",
    ),
    Exhibit(
        "4153", "Acks that wait longer than their check point", rules.SettledWithItsAcks,
        "Both wait until one moment. How long does each of them wait if there are only 18 lengths of waiting?",
    ),
    Exhibit(
        "5408", "Acks that are read again for ever", rules.ReviverGetsThrough,
        "How far has a reviver come that has read nothing but acks?", others=("3443",),
    ),
    Exhibit(
        "7724", "The neighbour is brought back", rules.RevivedWasPopped,
        "The store is asked for one message from an offset on. Which one does it give when that one is gone?",
    ),
    Exhibit(
        "7914", "Messages that came while a pop was on its way", rules.UnackedComesAgain,
        "One pop takes from several queues, one after the other, and says one time for all of them.",
    ),
    Exhibit(
        "8479", "A topic of the same name", rules.ReviveTerminates,
        "Is a message that cannot be read one that is not there, or one that cannot be read now?",
    ),
    Exhibit(
        "8472", "Who wants one message in a thousand", rules.NobodyStarves,
        "A pop has looked at as many messages as it may, wanted none of them, and waits. Who tells it that there are "
        "more?",
    ),
    Exhibit(
        "8332", "More tries than allowed", rules.TriesEnd,
        "Somebody counts how often a message was tried, and looks at the number when a listener fails. And when a "
        "listener takes too long?",
    ),
    Exhibit(
        "4815", "Two minutes until the second try", rules.FailedComesSoon,
        "There is a table of delays, which begins with 10 s. Which row is that of a message that has failed for the "
        "first time?",
    ),
    Exhibit(
        "11062", "Hours until a call is slow", rules.TraceTellsSlowCalls,
        "Two times are compared. In which unit is the one, and in which is the other?",
    ),
)  # fmt: skip
"""In the order of docs/museum.md."""


def exhibit(number: str) -> Exhibit:
    """The exhibit of that number, also by another of its issues; LearnerError when there is none."""
    for one in EXHIBITS:
        if number == one.number or number in one.issues:
            return one
    numbers = ", ".join(one.number for one in EXHIBITS)
    raise LearnerError(f"the museum has no exhibit {number!r}", f"choose one of {numbers}")
