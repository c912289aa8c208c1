"""Plausible wrong solutions of lab 16_transactions, each of which its check catches."""

from __future__ import annotations

from typing import Any

from mqlab import LocalTransactionState, TransactionListener
from mqlab.exercises.bank_day import AlreadyNotedError, LedgerTimeoutError, NotEnoughMoneyError

COMMIT, ROLLBACK, UNKNOW = LocalTransactionState


def as_if_one_message_were_one_end(first: int, end: int, ops: list[str]) -> list[int]:
    """Reads only the first number of each op message."""
    done = {int(body.split(",")[0]) for body in ops}
    return [offset for offset in range(first, end) if offset not in done]


def the_first_that_are_missing(first: int, end: int, ops: list[str]) -> list[int]:
    """Counts the ends, as if half messages ended in their order."""
    done = sum(body.count(",") for body in ops)
    return list(range(first + done, end))


def from_the_beginning(first: int, end: int, ops: list[str]) -> list[int]:
    """Begins with offset 0, which an earlier round has passed."""
    done = {int(text) for body in ops for text in body.split(",") if text}
    return [offset for offset in range(end) if offset not in done]


def with_the_end(first: int, end: int, ops: list[str]) -> list[int]:
    """Takes the end of the queue for a message."""
    done = {int(text) for body in ops for text in body.split(",") if text}
    return [offset for offset in range(first, end + 1) if offset not in done]


def as_soon_as_it_is_old(sent_ms: int, round_ms: int, interval_ms: int, immune_ms: int) -> int:
    """Takes the time-out for an alarm clock."""
    return sent_ms + immune_ms


def in_the_next_round(sent_ms: int, round_ms: int, interval_ms: int, immune_ms: int) -> int:
    """Forgets that one that is too young has to wait for the round after that."""
    while round_ms <= sent_ms:
        round_ms += interval_ms
    return round_ms


def an_interval_later(sent_ms: int, round_ms: int, interval_ms: int, immune_ms: int) -> int:
    """Counts the interval from the message, as if each had a clock of its own."""
    return sent_ms + interval_ms


def the_first_end_counts(ends: list[tuple[str, bool, int]], immune_ms: int | None) -> int:
    """As if a transaction could end only once."""
    return int(next((state for state, _, _ in ends if state != "UNKNOW"), "") == "COMMIT_MESSAGE")


def all_commits(ends: list[tuple[str, bool, int]], immune_ms: int | None) -> int:
    """Forgets that an end that comes too late by itself is refused."""
    return sum(state == "COMMIT_MESSAGE" for state, _, _ in ends)


def answers_are_late_too(ends: list[tuple[str, bool, int]], immune_ms: int | None) -> int:
    """Refuses answers to the broker's own question, too."""
    in_time = [state for state, _, age_ms in ends if immune_ms is None or age_ms <= immune_ms]
    return in_time.count("COMMIT_MESSAGE")


class _Bank(TransactionListener):
    """What all of them begin with: right."""

    def __init__(self, accounts: Any) -> None:
        self.accounts = accounts

    async def execute_local_transaction(self, message: Any, argument: Any) -> LocalTransactionState:
        try:
            await self.accounts.write(message.keys, "paid", take=argument)
        except (AlreadyNotedError, NotEnoughMoneyError):
            return ROLLBACK
        return COMMIT

    async def check_local_transaction(self, message: Any) -> LocalTransactionState:
        try:
            await self.accounts.write(message.keys, "refused")
        except AlreadyNotedError:
            return COMMIT if await self.accounts.read(message.keys) == "paid" else ROLLBACK
        return ROLLBACK


class RemembersInMemory(_Bank):
    """Keeps what became of a transfer in the process: it dies with it, and another machine is asked."""

    def __init__(self, accounts: Any) -> None:
        super().__init__(accounts)
        self.states: dict[str, LocalTransactionState] = {}

    async def execute_local_transaction(self, message: Any, argument: Any) -> LocalTransactionState:
        self.states[message.keys] = await super().execute_local_transaction(message, argument)
        return self.states[message.keys]

    async def check_local_transaction(self, message: Any) -> LocalTransactionState:
        return self.states.get(message.keys, ROLLBACK)


class LooksAndDoesNotClose(_Bank):
    """Looks, finds nothing, and says rollback: the write that is under way takes the money all the same."""

    async def check_local_transaction(self, message: Any) -> LocalTransactionState:
        return COMMIT if await self.accounts.read(message.keys) == "paid" else ROLLBACK


class WaitsForEver(_Bank):
    """Finds nothing and says that it does not know: nobody ever will."""

    async def check_local_transaction(self, message: Any) -> LocalTransactionState:
        return COMMIT if await self.accounts.read(message.keys) == "paid" else UNKNOW


class HopesForTheBest(_Bank):
    """Says commit when it is asked: the half message is there, so the money must have been taken."""

    async def check_local_transaction(self, message: Any) -> LocalTransactionState:
        return COMMIT


class TakesSilenceForNo(_Bank):
    """Says rollback when the data base does not answer; the money may have been taken."""

    async def execute_local_transaction(self, message: Any, argument: Any) -> LocalTransactionState:
        try:
            return await super().execute_local_transaction(message, argument)
        except LedgerTimeoutError:
            return ROLLBACK


class TakesSilenceForYes(_Bank):
    """Says commit when the data base does not answer; the money may be where it was."""

    async def execute_local_transaction(self, message: Any, argument: Any) -> LocalTransactionState:
        try:
            return await super().execute_local_transaction(message, argument)
        except LedgerTimeoutError:
            return COMMIT


class SilenceIsNoWhenAsked(_Bank):
    """Says rollback when the data base does not answer the broker's question."""

    async def check_local_transaction(self, message: Any) -> LocalTransactionState:
        try:
            return await super().check_local_transaction(message)
        except LedgerTimeoutError:
            return ROLLBACK


class TakesThenNotes(_Bank):
    """Takes the money, then writes down for which transfer: a machine can die in between."""

    async def execute_local_transaction(self, message: Any, argument: Any) -> LocalTransactionState:
        try:
            await self.accounts.write(f"debit of {message.keys}", "done", take=argument)
            await self.accounts.write(message.keys, "paid")
        except (AlreadyNotedError, NotEnoughMoneyError):
            return ROLLBACK
        return COMMIT


class NotesThenTakes(_Bank):
    """Writes "paid" first, and takes the money then."""

    async def execute_local_transaction(self, message: Any, argument: Any) -> LocalTransactionState:
        try:
            await self.accounts.write(message.keys, "paid")
            await self.accounts.write(f"debit of {message.keys}", "done", take=argument)
        except (AlreadyNotedError, NotEnoughMoneyError):
            return ROLLBACK
        return COMMIT


class ForgetsTheEmptyAccount(_Bank):
    """Commits whatever the data base says."""

    async def execute_local_transaction(self, message: Any, argument: Any) -> LocalTransactionState:
        await super().execute_local_transaction(message, argument)
        return COMMIT


class KnowsTheTransferByItsText(_Bank):
    """Notes what is paid, not which transfer it is: of two that are alike only one is."""

    async def execute_local_transaction(self, message: Any, argument: Any) -> LocalTransactionState:
        try:
            await self.accounts.write(message.body.decode(), "paid", take=argument)
        except (AlreadyNotedError, NotEnoughMoneyError):
            return ROLLBACK
        return COMMIT

    async def check_local_transaction(self, message: Any) -> LocalTransactionState:
        try:
            await self.accounts.write(message.body.decode(), "refused")
        except AlreadyNotedError:
            return COMMIT if await self.accounts.read(message.body.decode()) == "paid" else ROLLBACK
        return ROLLBACK


class RefusesAll(_Bank):
    """Never takes any money: the sum is right, and nobody is paid."""

    async def execute_local_transaction(self, message: Any, argument: Any) -> LocalTransactionState:
        return ROLLBACK


class AlreadyNotedIsPaid(_Bank):
    """Takes "already noted" for "paid", in both places."""

    async def execute_local_transaction(self, message: Any, argument: Any) -> LocalTransactionState:
        try:
            await self.accounts.write(message.keys, "paid", take=argument)
        except NotEnoughMoneyError:
            return ROLLBACK
        except AlreadyNotedError:
            return COMMIT
        return COMMIT


WRONG = {
    "16/left": [
        as_if_one_message_were_one_end, the_first_that_are_missing, from_the_beginning, with_the_end,
    ],
    "16/first-asked": [as_soon_as_it_is_old, in_the_next_round, an_interval_later],
    "16/let-go": [the_first_end_counts, all_commits, answers_are_late_too],
    "16/bank": [
        RemembersInMemory,
        LooksAndDoesNotClose,
        WaitsForEver,
        HopesForTheBest,
        TakesSilenceForNo,
        TakesSilenceForYes,
        SilenceIsNoWhenAsked,
        TakesThenNotes,
        NotesThenTakes,
        ForgetsTheEmptyAccount,
        KnowsTheTransferByItsText,
        RefusesAll,
        AlreadyNotedIsPaid,
    ],
}  # fmt: skip
