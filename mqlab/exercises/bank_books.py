"""The data base of a bank: accounts and notes that outlive its machines, answers that get lost, writes that take long.

`Books` is the data base itself, `Access` what one machine's listener is given of it. The day around it is bank_day.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable
from typing import TYPE_CHECKING, NamedTuple, NoReturn, Protocol

from mqlab.errors import LearnerError
from mqlab.exercises.handed_over import handed_over
from mqlab.exercises.payment_day import AlreadyNotedError, LedgerTimeoutError
from mqlab.sim import Node

if TYPE_CHECKING:
    from mqlab.exercises.bank_day import BankDay

OPENING_CENTS = 100_000
EMPTY = "eve"
"""Her account is empty: nothing can be taken from it."""
QUICK_MS, SLOW_MS = 20, 400
SILENT, MOST_SILENT = 0.12, 2
"""The share of answers of the data base that get lost, and how many of them may be about one transfer."""
LONG_MS = (34_000, 58_000)
"""How long a write takes in a data base that is overloaded: the broker asks meanwhile."""


class NotEnoughMoneyError(Exception):
    """The account has less than is to be taken, so nothing of this write was done."""


class Bookkeeping(Protocol):
    """What the student's listener is given: the first bank's data base, which outlives its machines."""

    def read(self, note: str) -> Awaitable[str | None]:
        """What the note says; None if there is no such note."""

    def write(self, note: str, says: str, *, take: tuple[str, int] | None = None) -> Awaitable[None]:
        """Write a note and take cents from an account, or write the note alone: all of it is done, or nothing."""


class Step(NamedTuple):
    """Where the data base is with a transfer: before its write is done, or behind it."""

    number: int
    done: bool


class Books:
    """The first bank's data base itself: what is written stays, whatever happens to the machines that wrote it."""

    def __init__(self, day: BankDay) -> None:
        self.notes: dict[str, str] = {}
        self.balances = {"ann": OPENING_CENTS, "bob": OPENING_CENTS, EMPTY: 0}
        self.slow: set[int] = set()
        """Numbers of transfers whose next write takes long."""
        self.steps: set[Step] = set()
        """What machines have come to, of any transfer."""
        self._day = day
        self._silent: Counter[int] = Counter()

    async def read(self, node: Node, note: str) -> str | None:
        """Look a note up; takes a moment, and the answer may get lost."""
        number = self._day.transfer_of(note)
        await node.sleep(QUICK_MS / 2)
        says = self.notes.get(note)
        await node.sleep(QUICK_MS / 2)
        if self._answer_is_lost(number):
            self._silence(node, f"read({note!r})", number)
        self._day.tell(f"{node.name}: read({note!r}) is {says!r}", number)
        return says

    async def write(self, node: Node, note: str, says: str, take: tuple[str, int] | None) -> None:
        """Write all or nothing in the middle, and answer at the end; the answer may get lost."""
        number = self._day.transfer_of(note, take)
        asked = f"write({note!r}, {says!r}{'' if take is None else f', take={take!r}'})"
        before_ms, behind_ms = self._lengths(number, take)
        if take is not None:
            self.steps.add(Step(number, done=False))
        await node.sleep(before_ms)
        problem, lost = self._problem(note, take), self._answer_is_lost(number)
        # A write whose answer gets lost is done in half of all cases.
        done = problem is None and (not lost or self._day.random.random() < 0.5)
        if done:
            self._do(number, note, says, take)
            self._day.tell(f"{node.name}: {asked} is done", number)
        if take is not None:
            self.steps.add(Step(number, done=True))
        await node.sleep(behind_ms)
        if lost:
            self._silence(node, asked, number, "" if done else ", and nothing was done")
        if problem is not None:
            self._day.tell(f"{node.name}: {asked}: {type(problem).__name__}", number)
            raise problem

    def _silence(self, node: Node, asked: str, number: int, also: str = "") -> NoReturn:
        self._day.trouble(number)
        self._day.tell(f"{node.name}: {asked}: LedgerTimeoutError{also}", number)
        raise LedgerTimeoutError("no answer from the data base")

    def _problem(self, note: str, take: tuple[str, int] | None) -> Exception | None:
        if note in self.notes:
            return AlreadyNotedError(f"{note!r} says {self.notes[note]!r} already")
        if take is not None and self.balances.get(take[0], 0) < take[1]:
            return NotEnoughMoneyError(f"{take[0]} has not {take[1]} cents")
        return None

    def _do(self, number: int, note: str, says: str, take: tuple[str, int] | None) -> None:
        self.notes[note] = says
        if take is not None:
            account, cents = take
            self.balances[account] -= cents
            self._day.taken(number)

    def _lengths(self, number: int, take: tuple[str, int] | None) -> tuple[float, float]:
        """How long a write takes until it is done, and how long until it is answered."""
        random = self._day.random
        half_ms = random.randint(QUICK_MS, SLOW_MS) / 2
        if take is None or number not in self.slow:
            return half_ms, half_ms
        self.slow.discard(number)
        self._day.trouble(number)
        long_ms = random.randint(*LONG_MS)
        self._day.tell(f"the data base is overloaded: this write will take {long_ms / 1_000:.1f} s", number)
        return long_ms, half_ms

    def _answer_is_lost(self, number: int) -> bool:
        """Whether an answer is lost: of a transfer, two at most."""
        if self._silent[number] >= MOST_SILENT or self._day.random.random() >= SILENT:
            return False
        self._silent[number] += 1
        return True


@handed_over
class Access:
    """The data base as one machine of the bank sees it."""

    def __init__(self, books: Books, node: Node) -> None:
        self._books = books
        self._node = node

    async def read(self, note: str) -> str | None:
        """What the note says; None if there is no such note."""
        return await self._books.read(self._node, _text(note, "a note is"))

    async def write(self, note: str, says: str, *, take: tuple[str, int] | None = None) -> None:
        """Write a note and take cents from an account, in one step: all of it is done, or nothing.

        AlreadyNotedError if the note is there, NotEnoughMoneyError if the account has less than that;
        LedgerTimeoutError if no answer comes, and then nobody knows.
        """
        if take is not None and not (
            isinstance(take, tuple) and len(take) == 2 and isinstance(take[0], str) and type(take[1]) is int
        ):
            raise LearnerError(f"take={take!r} cannot be taken", "write take=(account, cents), as in ('ann', 4990)")
        if take is not None and take[1] <= 0:
            raise LearnerError(f"take={take!r} takes nothing", "give a number of cents from 1 on")
        await self._books.write(self._node, _text(note, "a note is"), _text(says, "what a note says is"), take)


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise LearnerError(f"{value!r} is not a text", f"{what} a text, like the key of a message")
    return value
