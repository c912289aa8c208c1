"""A shop's orders, two bytes of notes about each, and readers whom nobody knew when the orders were stored.

`LateReaders(make_notes, make_later, seed).play()` is one world: `make_notes()` makes the object that notes an order
when it is stored, `make_later()` the one, in another process, that says later whether an order may fulfil a condition.
Lab 18 judges notes with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from mqlab.errors import LearnerError
from mqlab.exercises.exercise_world import ExerciseWorld
from mqlab.filter import compile_filter
from mqlab.protocol import Message
from mqlab.protocol.record import decode_record
from mqlab.trace.events.filter import MessagesFilteredByBroker

if TYPE_CHECKING:
    from mqlab.store.dispatch_request import DispatchRequest
    from mqlab.store.readable_store import ReadableStore

TOPIC = "Orders"
ORDERS, CONDITIONS, CITIES = 100, 8, 24
NAMES = ("city", "amount")
MISSING = 0.08
"""The share of orders that lack their city, and of those that lack their amount."""
LARGEST = 9_999
NOTE_BYTES = 2
MOST_NOTE = (1 << 8 * NOTE_BYTES) - 1
ONE_OF = 10
"""So much less than everything is to be read."""
PULL_MAX = 32

CITY_NAMES = (
    "Aarhus", "Accra", "Amman", "Ankara", "Athens", "Baku", "Belfast", "Bergen", "Berlin", "Bogota", "Bonn", "Bremen",
    "Brno", "Cairo", "Cali", "Cork", "Dakar", "Delhi", "Dublin", "Fes", "Gdansk", "Geneva", "Ghent", "Graz", "Hanoi",
    "Kobe", "Kyoto", "Lagos", "Leeds", "Leipzig", "Lima", "Linz", "Lisbon", "London", "Lyon", "Madrid", "Malmo",
    "Milan", "Mumbai", "Munich", "Nairobi", "Nice", "Oslo", "Paris", "Porto", "Prague", "Quito", "Riga", "Rome",
    "Seoul", "Sofia", "Tallinn", "Tokyo", "Tunis", "Turin", "Utrecht", "Vienna", "Vilnius", "Warsaw", "Zurich",
)  # fmt: skip


class Notes(Protocol):
    """What a broker notes of each message for readers who come later."""

    def note(self, properties: dict[str, str]) -> int:
        """What is kept of a message with these properties: a number of 16 bits."""

    def may(self, bits: int, name: str, sign: str, value: str | int) -> bool:
        """May a message with this note fulfil `name sign value`?"""


class Part(NamedTuple):
    """One comparison, for example `amount > 700`: a text stands beside `city`, a number beside `amount`."""

    name: str
    sign: str
    value: str | int

    def __str__(self) -> str:
        return f"{self.name} {self.sign} {self.value!r}"


class ConditionRead(NamedTuple):
    """What became of one condition: how many orders fulfil it, were read for it, and were given to its reader."""

    text: str
    wanted: int
    read: int
    given: int


class NotesFilter:
    """A filter in two stages, as the store asks it (org.apache.rocketmq.store.MessageFilter): notes, then expression.

    The other half of RocketMQ's ExpressionMessageFilter, with notes about the message in place of a Bloom filter of
    groups. An order is passed over when its note says of one part of the condition that it cannot be fulfilled.
    """

    def __init__(self, notes: Notes, parts: tuple[Part, ...]) -> None:
        self.text = " AND ".join(map(str, parts))
        self.read = 0
        self.passed_over = 0
        self._notes = notes
        self._parts = parts
        self._expression = compile_filter("SQL92", self.text)

    def is_matched_by_consume_queue(
        self, tags_code: int | None, msg_store_time: int = 0, filter_bit_map: bytes | None = None
    ) -> bool:
        """First stage, by what the queue keeps: the note of the order."""
        bits = int.from_bytes(filter_bit_map or b"", "big")
        if all(self._may(bits, part) for part in self._parts):
            return True
        self.passed_over += 1
        return False

    def _may(self, bits: int, part: Part) -> bool:
        answer: Any = self._notes.may(bits, *part)
        if not isinstance(answer, bool):
            name, sign, value = part
            raise LearnerError(
                f"may({bits}, {name!r}, {sign!r}, {value!r}) is to be True or False, and yours says {answer!r}",
                "each way through `may` has to end with a return",
            )
        return answer

    def told_of(self, bits: int) -> list[str]:
        """What is said of a note, part by part."""
        return [
            f"may({bits}, {part.name!r}, {part.sign!r}, {part.value!r}) is {self._may(bits, part)}"
            for part in self._parts
        ]

    def is_matched_by_commit_log(self, record: bytes) -> bool:
        """Second stage: the order was read."""
        self.read += 1
        return self.fits(decode_record(record, decompress=False, read_body=False).properties)

    def fits(self, properties: dict[str, str]) -> bool:
        """Does an order with these properties fulfil the condition?"""
        return self._expression.evaluate(properties) is True


class LateReaders(ExerciseWorld):
    """One seed's world: orders with notes are stored, the broker starts anew, and readers with conditions come.

    `wrong` is empty, or says which order was missed, or that too much was read.
    """

    def __init__(self, make_notes: Callable[[], Notes], make_later: Callable[[], Notes], seed: int) -> None:
        """`make_notes` makes what notes the orders, `make_later` what reads the notes after the broker's new start."""
        super().__init__(seed, draws="late-readers")
        self._make_notes = make_notes
        self._make_later = make_later
        self._notes: Notes | None = None
        self.cities = self.random.sample(CITY_NAMES, CITIES)
        self.orders: list[dict[str, str]] = []
        self.noted: list[int] = []
        self.conditions: list[ConditionRead] = []
        self.wrong = ""
        self.trace = ""

    @property
    def read(self) -> int:
        """How many orders were read from the log, for all conditions together."""
        return sum(condition.read for condition in self.conditions)

    @property
    def wanted(self) -> int:
        """How many had to be read, since they fulfil a condition."""
        return sum(condition.wanted for condition in self.conditions)

    def play(self) -> LateReaders:
        """Play the world, up to the first thing that is wrong."""
        self._store_orders()
        lab, broker = self.lab, self.lab.brokers[0]
        lab.run(broker.running().shutdown())
        lab.crash(broker.name)
        lab.restart(broker.name)
        lab.run_for(seconds=1)
        later = self._make_later()
        for number in range(CONDITIONS):
            self._read(NotesFilter(later, self._condition(number)), number)
            if self.wrong:
                return self
        most = ORDERS * CONDITIONS // ONE_OF
        if self.read > most:
            self.wrong = (
                f"for {CONDITIONS} conditions {self.read} orders were read, and {most} are allowed: a tenth of all "
                f"{ORDERS} for each; {self.wanted} had to be read"
            )
            self.trace = "\n".join(
                f"{each.text}: {each.wanted} of {ORDERS} orders fulfil it, {each.read} were read"
                for each in self.conditions
            )
        return self

    # -- orders -----------------------------------------------------------------------------------------------------

    def _store_orders(self) -> None:
        lab, random = self.lab, self.random
        lab.name_server()
        broker = lab.broker("broker-a", enable_consume_queue_ext=True)
        lab.create_topic(TOPIC, 1)
        producer = lab.producer("shop")
        lab.run(producer.start())
        self._notes = self._make_notes()
        broker.running().message_store.dispatcher_list.insert(0, self._note)
        for number in range(ORDERS):
            order = {}
            if random.random() >= MISSING:
                order["city"] = random.choice(self.cities)
            if random.random() >= MISSING:
                order["amount"] = str(random.randint(0, LARGEST))
            self.orders.append(order)
            message = Message(TOPIC, b"an order", keys=f"order-{number}")
            for name, value in order.items():
                message.put_user_property(name, value)
            lab.run(producer.send(message))
        lab.run_until(lambda: len(self.noted) == ORDERS)

    def _note(self, request: DispatchRequest) -> None:
        """Note an order when it is dispatched, before its queue entry is written."""
        if request.topic != TOPIC or self._notes is None:
            return
        order = {name: text for name, text in request.properties.items() if name in NAMES}
        note: Any = self._notes.note(order)
        if type(note) is not int or not 0 <= note <= MOST_NOTE:
            raise LearnerError(
                f"note({order}) is to be a whole number from 0 to {MOST_NOTE:,}, and yours says {note!r}",
                f"{NOTE_BYTES} bytes have {8 * NOTE_BYTES} bits",
            )
        self.noted.append(note)
        request.bit_map = note.to_bytes(NOTE_BYTES, "big")

    # -- conditions -------------------------------------------------------------------------------------------------

    def _condition(self, number: int) -> tuple[Part, ...]:
        """Conditions that few orders fulfil, of four kinds in turn."""
        random = self.random
        city = Part("city", "=", random.choice(self.cities))
        if number % 4 == 0:
            return city, Part("amount", ">", random.randint(1_000, 6_000))
        if number % 4 == 1:
            low = random.randint(0, LARGEST - 400)
            return Part("amount", ">", low), Part("amount", "<", low + random.randint(150, 350))
        if number % 4 == 2:
            return city, Part("amount", "<", random.randint(4_000, 9_000))
        if random.random() < 0.5:
            return (Part("amount", "=", int(random.choice([o["amount"] for o in self.orders if "amount" in o]))),)
        return city._replace(sign="<>"), Part("amount", ">", random.randint(9_600, 9_850))

    def _read(self, wanted: NotesFilter, number: int) -> None:
        """A reader with this condition goes through the whole queue, one pull after the other."""
        store: ReadableStore = self.lab.brokers[0].running().message_store
        hooks = self.lab.brokers[0].node.hooks
        group, offset, offsets = f"reader-{number + 1}", 0, list[int]()
        while offset < ORDERS and (result := store.get_message(group, TOPIC, 0, offset, PULL_MAX, wanted)):
            offsets += result.queue_offsets
            offset = result.next_begin_offset
        fitting = [place for place, order in enumerate(self.orders) if wanted.fits(order)]
        held_back = wanted.read - len(offsets)
        if hooks.on:
            hooks.emit(
                MessagesFilteredByBroker(
                    group, TOPIC, 0, 0, offset, len(offsets), wanted.passed_over, held_back, 0, wanted.text
                )
            )
        self.conditions.append(ConditionRead(wanted.text, len(fitting), wanted.read, len(offsets)))
        missed = sorted(set(fitting) - set(offsets))
        if missed:
            self._blame(wanted, missed[0])

    def _blame(self, wanted: NotesFilter, place: int) -> None:
        order, note = self.orders[place], self.noted[place]
        told = ", ".join(f"{name} {value}" for name, value in order.items())
        self.wrong = f"order-{place} ({told}) fulfils `{wanted.text}`, and was passed over"
        self.trace = "\n".join(
            [
                f"note({order}) was {note}, in bits {note:0{8 * NOTE_BYTES}b}",
                "the broker is started anew: another process reads the notes",
                *wanted.told_of(note),
                "so the order was not read",
            ]
        )
