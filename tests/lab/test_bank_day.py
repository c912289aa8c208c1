"""The day of two banks: one seed is one day, each trouble comes, and what a listener does to the sum is seen."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.client import LocalTransactionState, TransactionListener
from mqlab.errors import LearnerError, SimulationError
from mqlab.exercises.bank_books import EMPTY
from mqlab.exercises.bank_day import AlreadyNotedError, BankDay, NotEnoughMoneyError

COMMIT, ROLLBACK, UNKNOW = LocalTransactionState

pytestmark = pytest.mark.filterwarnings("ignore:.*transaction listener:UserWarning")


class Careful(TransactionListener):
    """Writes under the key of the transfer: the debit, or that there will be none."""

    def __init__(self, accounts: Any) -> None:
        self.accounts = accounts

    async def execute_local_transaction(self, message: Any, argument: Any) -> LocalTransactionState:
        try:
            await self.accounts.write(message.keys, "paid", take=argument)
        except (NotEnoughMoneyError, AlreadyNotedError):
            return ROLLBACK
        return COMMIT

    async def check_local_transaction(self, message: Any) -> LocalTransactionState:
        try:
            await self.accounts.write(message.keys, "refused")
        except AlreadyNotedError:
            return COMMIT if await self.accounts.read(message.keys) == "paid" else ROLLBACK
        return ROLLBACK


class Hopeful(Careful):
    """Says commit, whatever the data base says."""

    async def execute_local_transaction(self, message: Any, argument: Any) -> LocalTransactionState:
        await super().execute_local_transaction(message, argument)
        return COMMIT


def test_one_seed_is_one_day() -> None:
    first, second = BankDay(Careful, 7).play(), BankDay(Careful, 7).play()
    assert first.lines == second.lines
    assert first.transfers == second.transfers


@pytest.mark.parametrize(
    ("seed", "told"),
    [
        (6, "is killed"),
        (7, "is killed"),
        (8, "the data base is overloaded"),
        (9, "the data base is overloaded"),
        (10, "hangs"),
        (11, "broker-a is killed"),
    ],
)
def test_each_day_has_its_trouble_and_a_careful_listener_loses_nothing(seed: int, told: str) -> None:
    day = BankDay(Careful, seed).play()
    assert any(told in line.text for line in day.lines)
    assert day.sum_cents == day.opening_cents
    assert all(each.taken == bool(each.credited) for each in day.transfers)
    assert all(each.ended_ms is not None for each in day.transfers if each.begun)
    assert any(each.credited for each in day.transfers)


def test_who_has_no_money_pays_nothing_and_a_hopeful_listener_makes_some() -> None:
    day = BankDay(Hopeful, 7).play()
    empty = [each for each in day.transfers if each.account == EMPTY]
    assert empty
    assert all(each.taken == 0 and each.credited for each in empty if each.begun)
    assert day.sum_cents > day.opening_cents


def test_the_broker_that_was_killed_brings_some_messages_twice() -> None:
    days = [BankDay(Careful, seed).play() for seed in (5, 11, 17)]
    assert any(each.credited > 1 for day in days for each in day.transfers)
    assert all(day.sum_cents == day.opening_cents for day in days)


def test_a_story_has_what_concerns_a_transfer_and_the_faults() -> None:
    day = BankDay(Careful, 7).play()
    story = day.story(day.transfers[0])
    assert "bank-1 begins transfer-0" in story
    assert "is killed" in story
    assert "transfer-1 " not in story


@pytest.mark.parametrize(
    ("take", "said"),
    [(("ann", 1.5), "cannot be taken"), ("ann", "cannot be taken"), (("ann", -3), "takes nothing")],
)
def test_what_cannot_be_taken_stops_the_day_with_a_sentence(take: Any, said: str) -> None:
    class Wrong(Careful):
        async def execute_local_transaction(self, message: Any, argument: Any) -> LocalTransactionState:
            await self.accounts.write(message.keys, "paid", take=take)
            return COMMIT

    with pytest.raises(SimulationError, match=said) as raised:
        BankDay(Wrong, 7).play()
    seen: BaseException | None = raised.value
    while seen is not None and not isinstance(seen, LearnerError):
        seen = seen.__cause__
    assert isinstance(seen, LearnerError)
