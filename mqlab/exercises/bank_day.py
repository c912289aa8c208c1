"""A day of two banks: one takes money from its accounts, the other puts it where it belongs, and machines die.

`BankDay(make_bank, seed).play()` is one world; `make_bank(accounts)` makes the transaction listener of a machine of the
first bank. Lab 16 judges listeners with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, Protocol

from mqlab.client import ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus
from mqlab.client.producer.transaction_listener import LocalTransactionState, TransactionListener
from mqlab.errors import LearnerError, SimulationError
from mqlab.exercises.exercise_world import ExerciseWorld
from mqlab.exercises.handed_over import handed_over
from mqlab.exercises.payment_day import AlreadyNotedError, LedgerTimeoutError
from mqlab.protocol.message import Message, MessageExt
from mqlab.scenarios.numbered import FAILURES
from mqlab.sim import Node
from mqlab.trace.events.transaction import STORED
from mqlab.trace.record import Record

__all__ = ["AlreadyNotedError", "BankDay", "Bookkeeping", "LedgerTimeoutError", "NotEnoughMoneyError"]

GROUP, TOPIC, BROKER, OTHER_BANK = "bank", "Transfers", "broker-a", "other-bank"
MACHINES = ("bank-1", "bank-2")
TRANSFERS, EVERY_MS = 12, 2_500
OPENING_CENTS = 100_000
EMPTY = "eve"
"""Her account is empty: nothing can be taken from it."""
QUICK_MS, SLOW_MS = 20, 400
SILENT, MOST_SILENT = 0.12, 2
"""The share of answers of the data base that get lost, and how many of them may be about one transfer."""
LONG_MS = (34_000, 58_000)
"""How long a write takes in a data base that is overloaded: the broker asks meanwhile."""
DOWN_MS = (30_000, 75_000)
LIMIT_MS, REST_MS = 200_000, 4_000


class NotEnoughMoneyError(Exception):
    """The account has less than is to be taken, so nothing of this write was done."""


class Bookkeeping(Protocol):
    """What the student's listener is given: the first bank's data base, which outlives its machines."""

    def read(self, note: str) -> Awaitable[str | None]:
        """What the note says; None if there is no such note."""

    def write(self, note: str, says: str, *, take: tuple[str, int] | None = None) -> Awaitable[None]:
        """Write a note and take cents from an account, or write the note alone: all of it is done, or nothing."""


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


class _Step(NamedTuple):
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
        self.steps: set[_Step] = set()
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
            self.steps.add(_Step(number, done=False))
        await node.sleep(before_ms)
        problem, lost = self._problem(note, take), self._answer_is_lost(number)
        # A write whose answer gets lost is done in half of all cases.
        done = problem is None and (not lost or self._day.random.random() < 0.5)
        if done:
            self._do(number, note, says, take)
            self._day.tell(f"{node.name}: {asked} is done", number)
        if take is not None:
            self.steps.add(_Step(number, done=True))
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
        self._banks: dict[tuple[str, int], Any] = {}
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
        step, late_ms = _Step(victim.number, done), victim.number * EVERY_MS + LONG_MS[1] + 5_000
        self.lab.run_until(lambda: step in self.books.steps or self.now_ms > late_ms, limit_ms=LIMIT_MS)

    def _kill(self, victim: Transfer, name: str, down_ms: int) -> None:
        if name != BROKER:
            self._trouble_all(name)
        self.trouble(victim.number)
        self.tell(f"{name} is killed")
        self.lab.crash(name)
        self.lab.run_for(ms=down_ms)
        self.tell(f"{name} starts again")
        self.lab.restart(name)
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
        life = (node.name, node.life.number)
        if life not in self._banks:
            self._banks[life] = self._make_bank(Access(self.books, node))
        return self._banks[life]

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
        name = f"{self._node.name}: {what}_local_transaction"
        try:
            method = getattr(self._day.bank(self._node), f"{what}_local_transaction")
            said: LocalTransactionState | Awaitable[LocalTransactionState | None] | None = method(message, *argument)
            if isinstance(said, Awaitable):
                said = await said
        except LearnerError as error:
            raise SimulationError(f"the listener cannot go on: {error}") from error
        except Exception as error:
            self._day.tell(f"{name} raises {type(error).__name__}: UNKNOW", number)
            raise
        self._day.tell(f"{name} returns {said}", number)
        return said
