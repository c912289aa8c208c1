"""A master and its slaves on a bad day: orders are stored, accidents happen, and what somebody foretold is compared.

`AccidentDay(who_has, seed).play()` is one world; `who_has(message, copies, accidents)` says of each order who has it
afterwards. Lab 17 judges such rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from mqlab.exercises.exercise_world import ExerciseWorld
from mqlab.lab.processes import BrokerProcess
from mqlab.protocol import Message

TOPIC, MASTER = "Orders", "broker-a"
ORDERS = (35, 70)
"""At least and at most so many orders are sent."""
LOG_FILE_BYTES = 32_768
CONNECTED_MS = 7_000
"""By then a slave that began with its master follows it."""
BACK_MS, UP_MS = 1_000, 3_000
SLAVE_TIMEOUT_MS = 200
"""A synchronous master whose slave comes late does not wait long for it."""
NOTHING, KILLED, POWER_OFF, DISK_LOST = "nothing", "process killed", "power off", "disk lost"
ACCIDENTS = (NOTHING, KILLED, POWER_OFF, DISK_LOST)
THE_MASTER, A_SLAVE, LUCK, NOBODY = "the master", "a slave", "luck", "nobody"
ANSWERS = (THE_MASTER, A_SLAVE, LUCK, NOBODY)


class Copy(NamedTuple):
    """What one broker has of the commit log when the accidents happen: all from `begin` to `end` in its memory, and all
    before `flushed` on its disk, too.
    """

    begin: int
    end: int
    flushed: int


Place = tuple[int, int]
"""Where a message begins in the commit log, and where it ends."""
WhoHas = Callable[[Place, dict[str, Copy], dict[str, str]], str]
"""`who_has(message, copies, accidents)`: "the master", "a slave", "luck" or "nobody"."""


class Order(NamedTuple):
    """One order that was acknowledged: its number, its unique key, and its place in the commit log."""

    number: int
    key: str
    place: Place


class Foretold(NamedTuple):
    """What was said of an order, what is right, and which brokers have it when all is over."""

    order: Order
    said: object
    right: str
    have: tuple[str, ...]


def right_answer(place: Place, copies: dict[str, Copy], accidents: dict[str, str]) -> str:
    """Who has a message after the accidents, as far as it follows from the offsets."""
    begin, end = place
    certain: list[str] = []
    possible: list[str] = []
    for name, copy in copies.items():
        accident = accidents[name]
        if accident == DISK_LOST or not copy.begin <= begin < end <= copy.end:
            continue
        (certain if accident != POWER_OFF or end <= copy.flushed else possible).append(name)
    if MASTER in certain:
        return THE_MASTER
    return A_SLAVE if certain else LUCK if possible else NOBODY


class AccidentDay(ExerciseWorld):
    """One seed's world: a master with one or two slaves, one of which may have come late; then accidents."""

    def __init__(self, who_has: WhoHas, seed: int) -> None:
        super().__init__(seed, draws="accident day")
        self._who_has = who_has
        self.orders: list[Order] = []
        self.copies: dict[str, Copy] = {}
        self.accidents: dict[str, str] = {}
        self.foretold: list[Foretold] = []

    def play(self) -> AccidentDay:
        """Play the day to its end."""
        self._open()
        self._send()
        self.copies = {broker.name: _copy_of(broker) for broker in self.lab.brokers}
        self.accidents = self._drawn_accidents()
        said = [self._who_has(order.place, dict(self.copies), dict(self.accidents)) for order in self.orders]
        for name in self.copies:
            self.tell(f"{name}: {self.accidents[name]}")
        self._break()
        for order, answer in zip(self.orders, said, strict=True):
            have = tuple(broker.name for broker in self.lab.brokers if _has(broker, order))
            right = right_answer(order.place, self.copies, self.accidents)
            self.foretold.append(Foretold(order, answer, right, have))
        return self

    # -- before -----------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        lab, draw = self.lab, self.random
        lab.name_server()
        flush, role = draw.choice(("ASYNC_FLUSH", "ASYNC_FLUSH", "SYNC_FLUSH")), draw.choice(("ASYNC", "SYNC"))
        lab.broker(
            MASTER, flush_disk_type=flush, broker_role=f"{role}_MASTER", in_sync_replicas=2,
            slave_timeout=SLAVE_TIMEOUT_MS, mapped_file_size_commit_log=LOG_FILE_BYTES, max_message_size=8_192,
        )  # fmt: skip
        self._slaves = draw.choice((1, 1, 2))
        self._late = draw.random() < 0.5
        """Whether the last slave comes when the master's log has begun its second file or its third."""
        for _ in range(self._slaves - self._late):
            lab.broker(slave_of=MASTER)
        lab.create_topic(TOPIC, 1)
        lab.run_for(ms=CONNECTED_MS)
        self.producer: Any = lab.producer("shop", send_msg_timeout=10_000, retry_times_when_send_failed=0)
        lab.run(self.producer.start())

    def _send(self) -> None:
        count = self.random.randint(*ORDERS)
        late_at = self.random.randint(count // 3, count * 2 // 3) if self._late else -1
        for number in range(count):
            if number == late_at:
                self.lab.broker(slave_of=MASTER)
                self.lab.run_for(ms=CONNECTED_MS)
            self._send_one(number)
        # A piece of the log that is on its way arrives or is lost, which no offset tells: go on until there is none.
        while self._under_way():
            self.lab.run_for(ms=0.1)

    def _send_one(self, number: int) -> None:
        result = self.lab.run(self.producer.send(Message(TOPIC, b"x" * self.random.randint(300, 1_800))))
        self.lab.run_for(ms=1)  # by then its entry is in the queue
        begin = self.lab.masters[0].store.get_commit_log_offset_in_queue(TOPIC, 0, result.queue_offset)
        size = len(self.lab.queue(TOPIC).record_bytes(result.queue_offset))
        self.orders.append(Order(number, result.msg_id, (begin, begin + size)))
        self.lab.run_for(ms=self.random.randint(0, 25))

    def _under_way(self) -> bool:
        service = self.lab.masters[0].running().ha_service
        connections = [] if service is None else service.connection_list
        return any(one.write_socket_service.next_transfer_from_where > one.slave_ack_offset for one in connections)

    # -- the accidents ----------------------------------------------------------------------------------------------

    def _drawn_accidents(self) -> dict[str, str]:
        drawn = {name: self.random.choices(ACCIDENTS, (3, 2, 4, 3))[0] for name in self.copies}
        # Something shall happen to the master, mostly.
        if self.random.random() < 0.8 and drawn[MASTER] in (NOTHING, KILLED):
            drawn[MASTER] = self.random.choice((POWER_OFF, DISK_LOST))
        return drawn

    def _break(self) -> None:
        """All at once; nothing is copied afterwards, so that each broker shows what it has kept."""
        lab = self.lab
        slaves = [name for name in self.copies if name != MASTER]
        lab.partition(MASTER, slaves)
        for name, accident in self.accidents.items():
            if accident == KILLED:
                lab.crash(name)
            elif accident != NOTHING:
                lab.power_off(name)
        lab.run_for(ms=BACK_MS)
        for name, accident in self.accidents.items():
            if accident in (KILLED, POWER_OFF):
                lab.restart(name)
        lab.run_for(ms=UP_MS)

    # -- the story --------------------------------------------------------------------------------------------------

    def story(self, foretold: Foretold) -> str:
        """The offsets of all, what happened, and what became of one order."""
        begin, end = foretold.order.place
        lines = [f"order {foretold.order.number}: bytes {begin:,} to {end:,}"]
        for name, copy in self.copies.items():
            kept = "has it" if name in foretold.have else "does not have it"
            has = f"has bytes {copy.begin:,} to {copy.end:,}, flushed up to {copy.flushed:,}"
            lines.append(f"{name}: {has}; {self.accidents[name]}; afterwards it {kept}")
        return "\n".join(lines)


def _has(broker: BrokerProcess, order: Order) -> bool:
    """Is its record in the commit log of a broker that is back?

    Its queue is not asked: after a loss of power an entry may be missing there although the record is whole.
    """
    found = broker.store.look_message_by_offset(order.place[0]) if broker.is_up() else None
    return found is not None and found.properties.get("UNIQ_KEY") == order.key


def _copy_of(broker: BrokerProcess) -> Copy:
    log = broker.store.commit_log
    return Copy(max(0, log.min_offset), broker.store.max_phy_offset, log.mapped_file_queue.flushed_where)
