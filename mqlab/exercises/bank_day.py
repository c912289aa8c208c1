"""A day of two banks: one takes money from its accounts, the other puts it where it belongs, and machines die.

`BankDay(make_bank, seed).play()` is one world; `make_bank(accounts)` makes the transaction listener of a machine of the
first bank, whose data base is bank_books.py. Lab 16 judges listeners with it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mqlab.client import ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus
from mqlab.client.producer.transaction_listener import LocalTransactionState, TransactionListener
from mqlab.exercises.bank_books import (
    EMPTY,
    LONG_MS,
    OPENING_CENTS,
    Access,
    Bookkeeping,
    Books,
    NotEnoughMoneyError,
    Step,
)
from mqlab.exercises.exercise_world import ExerciseWorld
from mqlab.exercises.payment_day import AlreadyNotedError, LedgerTimeoutError
from mqlab.protocol.message import Message, MessageExt
from mqlab.scenarios.numbered import FAILURES
from mqlab.sim import Node
from mqlab.trace.events.transaction import STORED
from mqlab.trace.record import Record

__all__ = ["AlreadyNotedError", "BankDay", "LedgerTimeoutError", "NotEnoughMoneyError"]

GROUP, TOPIC, BROKER, OTHER_BANK = "bank", "Transfers", "broker-a", "other-bank"
MACHINES = ("bank-1", "bank-2")
TRANSFERS, EVERY_MS = 12, 2_500
DOWN_MS = (30_000, 75_000)
LIMIT_MS, REST_MS = 200_000, 4_000


@dataclass(slots=True)
class Transfer:
    """One transfer of the day, and what became of it."""

    number: int
    account: str
    cents: int
    begun: bool = False
    """Its half message is stored."""
    taken: int = 0
    """How often its money has left the account."""
    credited: int = 0
    """How often the other bank has got a message about it."""
    troubled: bool = False
    """Something came in its way: its machine or an answer of the data base failed, or the data base was slow."""
    ended_ms: float | None = None
    """When its broker was first told the end."""
    aside: bool = False

    @property
    def key(self) -> str:
        """The key of its message."""
        return f"transfer-{self.number}"

    @property
    def body(self) -> bytes:
        """What its message says."""
        return f"{self.account} {self.cents}".encode()


class BankDay(ExerciseWorld):
    """One seed's world: two machines that begin transfers, a broker, the other bank, and faults.

    Beside what a seed draws (answers of the data base that get lost, an account that is empty, two transfers that are
    alike) each day has one of six troubles.
    """

    LINES = 18
    SECONDS = "8.3f"

    def __init__(self, make_bank: Callable[[Bookkeeping], Any], seed: int) -> None:
        super().__init__(seed, draws="bank")
        self.books = Books(self)
        self.transfers = self._draw()
        self._make_bank = make_bank
        self._keys: dict[str, Transfer] = {}
        self.questions = 0
        """How often the broker has asked."""
        self.lab.name_server()
        self.lab.broker(BROKER, mapped_file_size_consume_queue=20_000)
        self.lab.create_topic(TOPIC, 1)
        consumer = self.lab.consumer("credits", node=OTHER_BANK)
        consumer.subscribe(TOPIC, "*")
        consumer.register_message_listener(self._credit)
        self.lab.run(consumer.start())
        self.machines = []
        for name in MACHINES:
            machine = self.lab.transaction_producer(GROUP, node=name, topics=[TOPIC])
            machine.transaction_listener = _Listener(self, machine.node)
            self.lab.run(machine.start())
            self.machines.append(machine)
        self.lab.run_for(ms=self.random.randint(3_000, 12_000))
        self.begin_ms = self.lab.now_ms
        self.watch({
            "HalfMessageHidden": self._hidden, "TransactionEnded": self._ended, "TransactionChecked": self._checked,
            "HalfMessageGivenUp": self._aside,
        })  # fmt: skip

    def _draw(self) -> list[Transfer]:
        """The transfers of this seed: one or two from an empty account, and two that are alike but for their keys."""
        random = self.random
        empty = set(random.sample(range(TRANSFERS), random.choice((1, 2))))
        transfers = [
            Transfer(number, EMPTY if number in empty else random.choice(("ann", "bob")), 100 + number)
            for number in range(TRANSFERS)
        ]
        first, second = sorted(random.sample([each.number for each in transfers if each.account != EMPTY], 2))
        transfers[second].account, transfers[second].cents = transfers[first].account, transfers[first].cents
        return transfers

    # -- what came of it --------------------------------------------------------------------------------------------

    @property
    def sum_cents(self) -> int:
        """All accounts of both banks together."""
        credited = sum(transfer.cents for transfer in self.transfers if transfer.credited)
        return sum(self.books.balances.values()) + credited

    @property
    def opening_cents(self) -> int:
        """What it was in the morning."""
        return 2 * OPENING_CENTS

    def story(self, *transfers: Transfer) -> str:
        """What happened to these transfers, with the faults around them; seconds from the first transfer."""
        told = self.lines_about(*(transfer.number for transfer in transfers))
        return self.written(*told[-self.LINES :])

    # -- playing ----------------------------------------------------------------------------------------------------

    def play(self) -> BankDay:
        """Let the machines begin their transfers, break something, and wait until all is settled, or too late."""
        for place, machine in enumerate(self.machines):
            machine.node.spawn(self._load(place, 0), "transfers")
        self._break()
        # What a machine that is back has still to begin, it begins now.
        self.lab.run_for(ms=REST_MS)
        self.lab.run_until(lambda: self._settled() or self.now_ms > LIMIT_MS, limit_ms=2 * LIMIT_MS)
        self.lab.run_for(ms=REST_MS)
        return self

    async def _load(self, place: int, first: int) -> None:
        """The transfers of one machine, each begun at its time, whether those before it have ended or not."""
        machine = self.machines[place]
        for transfer in self.transfers[first:]:
            if transfer.number % len(MACHINES) != place:
                continue
            await machine.node.sleep(max(0.0, transfer.number * EVERY_MS - self.now_ms))
            machine.node.spawn(self._begin(machine, transfer), transfer.key)

    async def _begin(self, machine: Any, transfer: Transfer) -> None:
        self.tell(f"{machine.node.name} begins {transfer.key}: {transfer.body.decode()}", transfer.number)
        message = Message(TOPIC, transfer.body, keys=transfer.key)
        machine.impl.kernel.set_unique_key(message)
        self._keys[message.properties["UNIQ_KEY"]] = transfer
        try:
            await machine.send_message_in_transaction(message, (transfer.account, transfer.cents))
        except FAILURES:
            # Its half message may be stored all the same: then the broker will ask.
            self.trouble(transfer.number)
            self.tell(f"{machine.node.name}: {transfer.key} cannot be begun", transfer.number)

    def _break(self) -> None:
        """The trouble of this seed."""
        random = self.random
        victim = random.choice([each for each in self.transfers[2:] if each.account != EMPTY])
        machine = MACHINES[victim.number % len(MACHINES)]
        kind = self.seed % 6
        down_ms = random.randint(*DOWN_MS)
        if random.random() < 0.6:
            # On the other machine nothing fails but the data base's speed.
            others = [each.number for each in self.transfers if (each.number - victim.number) % len(MACHINES)]
            self.books.slow.add(random.choice(others))
        if kind == 0:
            self._until(victim, done=False)
            self._kill(victim, machine, down_ms)
        elif kind == 1:
            self._until(victim, done=True)
            self._kill(victim, machine, down_ms)
        elif kind == 2:
            self.books.slow.add(victim.number)
            self._until(victim, done=True)
            self._kill(victim, machine, down_ms)
        elif kind == 3:
            self.books.slow.add(victim.number)
            self._until(victim, done=False)
            self.lab.run_for(ms=random.randint(500, 4_000))
            self._kill(victim, machine, down_ms)
        elif kind == 4:
            self._until(victim, done=random.random() < 0.5)
            self._hang(victim, machine, down_ms)
        else:
            self.lab.run_until(lambda: victim.ended_ms is not None or self.now_ms > LIMIT_MS, limit_ms=2 * LIMIT_MS)
            self.lab.run_for(ms=random.randint(100, 2_500))
            self._kill(victim, BROKER, random.randint(2_000, 8_000))

    def _until(self, victim: Transfer, *, done: bool) -> None:
        """Until the data base is with this transfer; a listener that takes no money for it never comes so far."""
        step, late_ms = Step(victim.number, done), victim.number * EVERY_MS + LONG_MS[1] + 5_000
        self.lab.run_until(lambda: step in self.books.steps or self.now_ms > late_ms, limit_ms=LIMIT_MS)

    def _kill(self, victim: Transfer, name: str, down_ms: int) -> None:
        if name != BROKER:
            self._trouble_all(name)
        self.trouble(victim.number)
        self.kill(name, down_ms)
        if name != BROKER:
            self._go_on(name)

    def _go_on(self, name: str) -> None:
        """A machine that is back begins what is left for it."""
        first = next((each.number for each in self.transfers if each.number * EVERY_MS > self.now_ms), TRANSFERS)
        place = MACHINES.index(name)
        self.machines[place].node.spawn(self._load(place, first), "transfers")

    def _hang(self, victim: Transfer, name: str, hang_ms: int) -> None:
        self._trouble_all(name)
        self.trouble(victim.number)
        self.tell(f"{name} hangs")
        self.lab.freeze(name)
        self.lab.run_for(ms=hang_ms)
        self.tell(f"{name} goes on")
        self._trouble_all(name)
        self.lab.thaw(name)

    def _trouble_all(self, name: str) -> None:
        """Whatever this machine has begun and not ended is in trouble."""
        place = MACHINES.index(name)
        for transfer in self.transfers:
            if transfer.number % len(MACHINES) == place and transfer.ended_ms is None:
                transfer.troubled = transfer.troubled or transfer.number * EVERY_MS <= self.now_ms

    def _settled(self) -> bool:
        """Is the day over, and each transfer that was begun ended and, if it is paid, with the other bank?"""
        if self.now_ms < TRANSFERS * EVERY_MS + 2_000:
            return False
        return all(
            each.ended_ms is not None and (each.credited > 0 or not each.taken)
            for each in self.transfers
            if each.begun and not each.aside
        )

    # -- what happens inside ----------------------------------------------------------------------------------------

    def bank(self, node: Node) -> Any:
        """The student's object on a machine, made anew when that starts again."""
        return self.of_life(node, lambda: self._make_bank(Access(self.books, node)))

    def _credit(self, messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
        """The other bank books each transfer once, however often its message comes (lab 09 has shown how)."""
        for message in messages:
            transfer = self.transfers[self.transfer_of(message.keys or "")]
            transfer.credited += 1
            again = "" if transfer.credited == 1 else ", which it has already"
            self.tell(f"{OTHER_BANK} gets {transfer.key}{again}", transfer.number)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    def trouble(self, number: int) -> None:
        """Something is in the way of a transfer."""
        if 0 <= number < len(self.transfers):
            self.transfers[number].troubled = True

    def taken(self, number: int) -> None:
        """Money has left an account."""
        if 0 <= number < len(self.transfers):
            self.transfers[number].taken += 1

    def transfer_of(self, note: str, take: tuple[str, int] | None = None) -> int:
        """The number of the transfer that a note or a debit is about, as far as one can tell; else -1."""
        for transfer in self.transfers:
            if note == transfer.key or self._keys.get(note) is transfer:
                return transfer.number
        for transfer in self.transfers:
            if take == (transfer.account, transfer.cents):
                return transfer.number
        return -1

    def _hidden(self, record: Record) -> None:
        transfer = self._keys.get(record.unique_key)
        if transfer is not None and record.status in STORED:
            transfer.begun = True

    def _checked(self, record: Record) -> None:
        self.questions += 1
        transfer = self._keys.get(record.unique_key)
        if transfer is not None:
            whom = record.remote or "nobody: no machine is there"
            names = {f"{machine.node.spec.ip}": machine.node.name for machine in self.machines}
            whom = names.get(whom.partition(":")[0], whom)
            self.tell(f"{BROKER} asks {whom} about {transfer.key}", transfer.number)

    def _ended(self, record: Record) -> None:
        transfer = self._keys.get(record.unique_key)
        if transfer is None or record.local_state == "UNKNOW" or record.code:
            return
        if transfer.ended_ms is None:
            transfer.ended_ms = self.now_ms
        done = "lets it go" if record.local_state == "COMMIT_MESSAGE" else "forgets it"
        self.tell(f"{BROKER} hears {record.local_state} of {transfer.key}, and {done}", transfer.number)

    def _aside(self, record: Record) -> None:
        transfer = self._keys.get(record.unique_key)
        if transfer is not None:
            transfer.aside = True
            self.tell(f"{BROKER} puts {transfer.key} aside", transfer.number)


class _Listener(TransactionListener):
    """Asks the student's object, and writes down what it says."""

    def __init__(self, day: BankDay, node: Node) -> None:
        self._day = day
        self._node = node

    async def execute_local_transaction(self, message: Message, argument: Any) -> LocalTransactionState | None:
        """The local part of a transfer."""
        return await self._ask("execute", message, argument)

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState | None:
        """What became of it."""
        return await self._ask("check", message)

    async def _ask(self, what: str, message: Message, *argument: Any) -> LocalTransactionState | None:
        number = self._day.transfer_of(message.keys or "")

        async def ask() -> LocalTransactionState | None:
            method = getattr(self._day.bank(self._node), f"{what}_local_transaction")
            said: LocalTransactionState | Awaitable[LocalTransactionState | None] | None = method(message, *argument)
            return await said if isinstance(said, Awaitable) else said

        return await self._day.told(f"{self._node.name}: {what}_local_transaction", ask, number, "UNKNOW")
