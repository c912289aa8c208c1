"""A day of payments: a till sends some of them twice, two keepers book them into a ledger, and processes are killed.

`PaymentDay(make_keeper, seed).play()` is one world; `make_keeper(ledger)` makes the object whose `consume_message`
books them. Lab 09 judges keepers with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any, NamedTuple, Protocol

from mqlab.client import ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQPushConsumer
from mqlab.errors import LearnerError, MQClientException, RemotingException
from mqlab.exercises.exercise_world import ExerciseWorld
from mqlab.exercises.handed_over import handed_over
from mqlab.protocol.message import Message, MessageExt
from mqlab.protocol.topics import dlq_topic
from mqlab.sim import Node
from mqlab.trace.record import Record

GROUP, TOPIC, BROKER = "books", "Payments", "broker-a"
KEEPERS = ("keeper-1", "keeper-2")
PAYMENTS, EVERY_MS = 12, 700
QUICK_MS, SLOW_MS = 10, 300
SILENT = 0.12
"""The share of the ledger's writes whose answer gets lost."""
MOST_SILENT = 2
"""How many answers about one payment may get lost."""
UNKNOWN = "?"
AFTER_MS, LIMIT_MS = 15_000, 200_000


class AlreadyNotedError(Exception):
    """The ledger has this note already, so nothing of this write was done."""


class LedgerTimeoutError(Exception):
    """The ledger did not answer: this write may have been done, or not."""


class Ledger(Protocol):
    """What the student's listener is given: a database that outlives the process."""

    def has(self, note: str) -> Awaitable[bool]:
        """Is this note there?"""

    def write(self, *, note: str | None = None, add: tuple[str, int] | None = None) -> Awaitable[None]:
        """Write a note, or add cents to an account, or both or neither."""


class Payment(NamedTuple):
    """One payment; two of a day are alike but for their keys, as when somebody buys the same thing again."""

    number: int
    account: str
    cents: int
    readable: bool
    twice_after_ms: float | None
    """After how many ms the till sends it again, if it does."""

    @property
    def key(self) -> str:
        """The key of its messages."""
        return f"payment-{self.number}"

    @property
    def body(self) -> bytes:
        """What the till writes."""
        return f"{self.account} {self.cents if self.readable else '??'}".encode()


class Books:
    """The ledger itself: what is written stays, whatever happens to the processes that wrote it."""

    def __init__(self, day: PaymentDay) -> None:
        self.notes: set[str] = set()
        self.entries: list[tuple[str, int]] = []
        self.writes = 0
        self.calls = 0
        """How often somebody asked or wrote, whatever came of it."""
        self.last_writer = ""
        self._day = day
        self._silent: dict[str, int] = {}

    async def has(self, node: Node, note: str) -> bool:
        """Look for a note; takes a while."""
        self.calls += 1
        key = self._day.key_of(note, None)
        await node.sleep(self._half_ms())
        found = note in self.notes
        await node.sleep(self._half_ms())
        self._day.tell(f"{node.name}: has({note!r}) is {found}", key)
        return found

    async def write(self, node: Node, note: str | None, add: tuple[str, int] | None) -> None:
        """Write all or nothing half-way through, and answer at the end; the answer may get lost."""
        self.calls += 1
        key = self._day.key_of(note, add)
        words = self._words(note, add)
        await node.sleep(self._half_ms())
        if note is not None and note in self.notes:
            await node.sleep(self._half_ms())
            self._day.tell(f"{node.name}: {words}: AlreadyNotedError", key)
            raise AlreadyNotedError(f"{note!r} is noted already")
        lost, done = self._answer_is_lost(key)
        if done:
            if note is not None:
                self.notes.add(note)
            if add is not None:
                self.entries.append(add)
            self.writes += 1
            self.last_writer = node.name
            self._day.tell(f"{node.name}: {words} is done", key)
        await node.sleep(self._half_ms())
        if lost:
            self._day.tell(f"{node.name}: {words}: LedgerTimeoutError{'' if done else ', and nothing was done'}", key)
            raise LedgerTimeoutError("no answer from the ledger")

    def _answer_is_lost(self, key: str) -> tuple[bool, bool]:
        """Whether the answer to a write is lost, and whether the write is done."""
        random = self._day.random
        if random.random() >= SILENT or self._silent.get(key, 0) >= MOST_SILENT:
            return False, True
        self._silent[key] = self._silent.get(key, 0) + 1
        return True, random.random() < 0.5

    def _half_ms(self) -> float:
        random = self._day.random
        return random.randint(QUICK_MS, SLOW_MS) / 2 if random.random() < 0.5 else QUICK_MS / 2

    @staticmethod
    def _words(note: str | None, add: tuple[str, int] | None) -> str:
        given = [f"note={note!r}"] if note is not None else []
        return f"write({', '.join([*given, f'add={add!r}'] if add is not None else given)})"


@handed_over
class Access:
    """The ledger as the process of one listener sees it."""

    def __init__(self, books: Books, node: Node) -> None:
        self._books = books
        self._node = node

    async def has(self, note: str) -> bool:
        """Is this note there?"""
        if not isinstance(note, str):
            raise LearnerError(f"{note!r} is not a note", "a note is a text, like the key of a message")
        return await self._books.has(self._node, note)

    async def write(self, *, note: str | None = None, add: tuple[str, int] | None = None) -> None:
        """Write a note, or add cents to an account, or both in one step: all of it is done, or nothing.

        AlreadyNotedError if the note is there; LedgerTimeoutError if no answer comes, and then nobody knows.
        """
        if note is not None and not isinstance(note, str):
            raise LearnerError(f"{note!r} is not a note", "a note is a text, like the key of a message")
        if add is not None and not (isinstance(add, tuple) and len(add) == 2 and isinstance(add[1], int)):
            raise LearnerError(f"add={add!r} cannot be added", "write add=(account, cents), as in add=('ann', 4990)")
        await self._books.write(self._node, note, add)


class PaymentDay(ExerciseWorld):
    """One seed's world: a till that sends payments, two keepers of the books, and faults."""

    LINES = 16
    SECONDS = "8.3f"

    def __init__(self, make_keeper: Callable[[Ledger], Any], seed: int) -> None:
        super().__init__(seed)
        self.books = Books(self)
        self.payments = self._draw()
        self.dead: dict[str, float] = {}
        self.deliveries: dict[str, int] = {}
        self._make_keeper = make_keeper
        self._ids: dict[str, str] = {}
        self.lab.name_server()
        self.lab.broker(BROKER, mapped_file_size_consume_queue=20_000)
        self.lab.create_topic(TOPIC, 2)
        self.till = self.lab.producer("till", node="till")
        self.lab.run(self.till.start())
        for name in KEEPERS:
            self._add_keeper(name)
        self.lab.run_for(seconds=25)
        self.begin_ms = self.lab.now_ms
        self.watch({"SendAttempted": self._attempted, "MessageStored": self._stored})

    def _draw(self) -> list[Payment]:
        """The payments of this seed: some sent twice, one or two of them unreadable."""
        random = self.random
        unreadable = set(random.sample(range(1, PAYMENTS), random.choice((1, 1, 2))))
        twice = set(random.sample(range(PAYMENTS), 3)) - unreadable
        payments = [
            Payment(
                number,
                random.choice(("ann", "bob", "eve")),
                100 + number,
                number not in unreadable,
                random.choice((20, 150, 4_000)) if number in twice else None,
            )
            for number in range(PAYMENTS)
        ]
        readable = [payment for payment in payments if payment.readable]
        first, second = sorted(Random(f"alike {self.seed}").sample(readable, 2))
        payments[second.number] = second._replace(account=first.account, cents=first.cents)
        return payments

    def _add_keeper(self, name: str) -> None:
        consumer = self.lab.consumer(
            GROUP, node=name, consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, consume_thread_min=4
        )
        consumer.subscribe(TOPIC, "*")
        consumer.register_message_listener(self._listener_of(consumer))
        self.lab.run(consumer.start())

    def _listener_of(self, consumer: DefaultMQPushConsumer) -> Callable[..., Any]:
        """A listener that asks the student's object, which is made anew when its process starts again."""

        async def listener(
            messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext
        ) -> ConsumeConcurrentlyStatus | None:
            keeper = self.of_life(consumer.node, lambda: self._make_keeper(Access(self.books, consumer.node)))
            key = messages[0].keys or ""
            self.deliveries[key] = self.deliveries.get(key, 0) + 1
            tries = messages[0].reconsume_times
            again = f", reconsumeTimes {tries}" if tries else ""
            self.tell(f"{consumer.node.name}: the listener gets message ...{messages[0].msg_id[-4:]}{again}", key)
            status: ConsumeConcurrentlyStatus | None = await self.told(
                f"{consumer.node.name}: the listener", lambda: keeper.consume_message(messages, context), key
            )
            return status

        return listener

    # -- playing ----------------------------------------------------------------------------------------------------

    def play(self) -> PaymentDay:
        """Let the till send, break something, and wait until all is settled or it takes too long."""
        self.till.node.spawn(self._send(), "till")
        self._break()
        self.lab.run_until(lambda: self._settled() or self.now_ms > LIMIT_MS, limit_ms=2 * LIMIT_MS)
        self.lab.run_for(ms=AFTER_MS)
        return self

    async def _send(self) -> None:
        for payment in self.payments:
            self.till.node.spawn(self._send_one(payment), payment.key)
            await self.till.node.sleep(EVERY_MS)

    async def _send_one(self, payment: Payment) -> None:
        await self._hand_in(payment, "sends")
        if payment.twice_after_ms is not None:
            await self.till.node.sleep(payment.twice_after_ms)
            await self._hand_in(payment, "is not sure and sends again")

    async def _hand_in(self, payment: Payment, words: str) -> None:
        """Send a payment until the broker has it; each time it is a message of its own."""
        while True:
            self.tell(f"till {words} {payment.key}: {payment.body.decode()}", payment.key)
            try:
                message = Message(TOPIC, payment.body, keys=payment.key)
                await self.till.send(message)
            except (MQClientException, RemotingException):
                await self.till.node.sleep(1_000)
                continue
            return

    def _break(self) -> None:
        """The faults of this seed: a keeper is killed or hangs in the middle of its work, or the broker is killed."""
        random, lab = self.random, self.lab
        writes = random.randrange(1, 9)
        lab.run_until(lambda: self.books.writes >= writes or self.now_ms > 12_000)
        victim = self.books.last_writer or KEEPERS[0]
        kind = self.seed % 10 % 6
        if kind == 0:
            self.tell(f"{victim} hangs")
            lab.freeze(victim)
            lab.run_for(ms=random.randint(125_000, 150_000))
            self.tell(f"{victim} goes on")
            lab.thaw(victim)
        elif kind == 1:
            self.kill(BROKER, random.randint(1_000, 9_000))
        else:
            self.kill(victim, random.randint(500, 15_000))
            if kind == 2:
                lab.run_for(ms=random.randint(500, 4_000))
                self.kill(BROKER, random.randint(1_000, 9_000))

    def _settled(self) -> bool:
        missing = Counter(p.cents for p in self.payments if p.readable)
        missing.subtract(cents for _, cents in self.books.entries)
        sent = self.now_ms > PAYMENTS * EVERY_MS + 4_500
        booked = all(count <= 0 for count in missing.values())
        return sent and booked and all(p.readable or p.key in self.dead for p in self.payments)

    def alike(self, payment: Payment) -> list[Payment]:
        """This payment, and the one that is like it, if there is one."""
        return [other for other in self.payments if other.readable and other.body == payment.body]

    def _attempted(self, record: Record) -> None:
        if record.topic == TOPIC:
            self._ids[record.msg_id] = record.task

    def _stored(self, record: Record) -> None:
        if record.topic == dlq_topic(GROUP):
            key = self._ids.get(record.unique_key, "")
            self.dead.setdefault(key, self.now_ms)
            self.tell("the message is in the dead-letter queue", key or None)

    def key_of(self, note: str | None, add: tuple[str, int] | None) -> str:
        """The payment that a note or an entry is about, as far as one can tell."""
        for payment in self.payments:
            if note == payment.key:
                return payment.key
        for payment in self.payments:
            if add is not None and add[1] == payment.cents:
                return payment.key
        return self._ids.get(note or "", UNKNOWN)

    def story(self, *keys: str) -> str:
        """What happened to these payments, with the faults around them; seconds from the first payment."""
        return self.both_ends(*keys)
