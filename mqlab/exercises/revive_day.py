"""A broker with a reviver of somebody's own: workers pop, acknowledge or forget, and what comes back is judged.

`ReviveDay(settle, seed).play()` is one world; lab 12 judges revivers with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab.broker.pop.pop_revive_service import PopReviveService
from mqlab.broker.pop.revive_message import ReviveMessage
from mqlab.broker.pop.revive_scan import deliver_time_ms
from mqlab.errors import LearnerError
from mqlab.exercises.exercise_world import ExerciseWorld
from mqlab.protocol import Message
from mqlab.protocol.pop_check_point import BATCH_ACK_TAG, CK_TAG, AckMsg, BatchAckMsg, PopCheckPoint
from mqlab.scenarios.pop_check_points import TOPIC, Worker
from mqlab.trace.record import Record

if TYPE_CHECKING:
    from mqlab.broker.broker_controller import BrokerController
    from mqlab.protocol.message import MessageExt

ORDERS, QUEUES = 24, 2
LOOK_MS = 100
IN_TIME_MS = 1_500
"""An acknowledgement that was answered so long behind the end of the invisible time has to count."""
BACK_MS = 6_000
"""So long behind its time a message that nobody acknowledged has to be back."""
LAST_POP_MS = 9_000
PLAY_MS = 26_000
STOP_MS = 4_000


class Read(NamedTuple):
    """What a reviver reads: one check point ("ck"), or acknowledgements of one batch ("ack"); times in ms since 1970.

    `key` names the batch, and is the same in a check point and its acknowledgements. `due_ms` is when the record was to
    come into the revive queue. Of a check point: `revive_ms` is when its messages can be seen again; message i has the
    offset `start + distances[i]`. Of acknowledgements: `offsets` are those of the messages that are done.
    """

    kind: str
    key: str
    due_ms: int
    revive_ms: int = 0
    start: int = 0
    distances: tuple[int, ...] = ()
    offsets: tuple[int, ...] = ()


Settle = Callable[[list[Read], int, bool], tuple[list[tuple[str, int]], int]]
"""`settle(read, now_ms, timer_behind)`: which messages come back, as (key, offset), and how many of the records that
stand first in `read` are dealt with.
"""


class TaughtReviver(PopReviveService):
    """The reviver of a revive queue that asks `settle` what to do, each time that there is nothing more to read."""

    def __init__(self, broker: BrokerController, settle: Settle) -> None:
        super().__init__(broker, 0)
        self._settle = settle
        self._messages = ReviveMessage(broker)
        self._read: list[tuple[Read, PopCheckPoint | None]] = []
        self._next = 0

    async def round(self, empty_reads: int) -> int:
        """Read on and settle until all is dealt with."""
        while True:
            self._read_on()
            known = {read.key: point for read, point in self._read if point is not None}
            reads = [read for read, _ in self._read]
            answer = self._settle(reads, self.node.now_ms(), self._broker.timer_behind())
            back, dealt_with = _checked(answer, known, len(reads))
            for key, offset in back:
                if key in known:
                    await self._messages.revive(known[key], offset)
            del self._read[:dealt_with]
            if not self._read:
                self._looked_to = self._next
                return self.node.now_us()
            await self.node.sleep(LOOK_MS)

    def _read_on(self) -> None:
        while messages := self._get_revive_message(self._next):
            for message in messages:
                self._read.append(_read_of(message))
            self._next += len(messages)


def _checked(answer: Any, known: dict[str, PopCheckPoint], most: int) -> tuple[list[tuple[str, int]], int]:
    """What a `settle` returned, if it is what is wanted. Raises LearnerError."""
    hint = "return a list of (key, offset), and how many records are dealt with: return [], 0 lets all of them wait"
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise LearnerError(f"two things are wanted, and yours returns {answer!r}", hint)
    back, dealt_with = answer
    pairs = isinstance(back, list | set) and all(isinstance(one, tuple | list) and len(one) == 2 for one in back)
    if not pairs:
        raise LearnerError(f"a list of (key, offset) is wanted first, and yours gives {back!r}", hint)
    if type(dealt_with) is not int or not 0 <= dealt_with <= most:
        raise LearnerError(f"of {most} records yours has dealt with {dealt_with!r}", hint)
    for key, offset in back:
        if key in known and (type(offset) is not int or known[key].index_of_ack(offset) < 0):
            raise LearnerError(f"{offset!r} is no offset of the check point {key!r}", "an offset is start + distance")
    return [(key, offset) for key, offset in back], dealt_with


def _read_of(message: MessageExt) -> tuple[Read, PopCheckPoint | None]:
    due_ms = deliver_time_ms(message)
    if message.tags == CK_TAG:
        point = PopCheckPoint.decode(message.body)
        distances = tuple(point.queue_offset_diff or ())
        return Read(CK_TAG, point.merge_key, due_ms, point.revive_time, point.start_offset, distances), point
    ack = (BatchAckMsg if message.tags == BATCH_ACK_TAG else AckMsg).decode(message.body)
    return Read("ack", ack.merge_key, due_ms, offsets=tuple(ack.offsets())), None


class Delivery(NamedTuple):
    """One message of one pop."""

    group: str
    topic: str
    queue_id: int
    offset: int
    pop_time: int

    def __str__(self) -> str:
        return f"{self.group}: offset {self.offset} of {self.topic}, queue {self.queue_id}"


Batch = tuple[str, str, int, int]
"""Group, topic, queue and pop time: what the messages of one pop from one queue have in common."""


class ReviveDay(ExerciseWorld):
    """One seed's world: two groups, workers that acknowledge early, late, together or not at all, and one reviver.

    In some worlds somebody stops the timer for a while (the setting timerStopDequeue), and what is due comes late.
    """

    def __init__(self, settle: Settle, seed: int) -> None:
        super().__init__(seed, draws="revive-day")
        self._settle = settle
        self.stops_timer = self.random.random() < 0.3
        self._on = {
            "CheckPointMade": self._popped,
            "AckStored": self._acknowledged,
            "MessageRevived": self._came_back,
            "TimerMessageDelivered": self._was_read,
        }
        self._judged: Batch | None = None
        self._ends: dict[Delivery, int] = {}
        self._acked: dict[Delivery, float] = {}
        self._revived: set[Delivery] = set()
        self._next_look_ms = 0.0
        self.wrong = ""

    def play(self) -> ReviveDay:
        """Play the day, up to the first thing that is wrong."""
        lab, random = self.lab, self.random
        self._open()
        self.watch(dict.fromkeys(self._on, self._judge))
        for group in ("kitchen", "billing"):
            worker = Worker(lab, group, group)
            lab.run(worker.open())
            for _ in range(3):
                worker.node.spawn(self._work(worker, random.randrange(200, LAST_POP_MS)), "work")
        if self.stops_timer:
            node, stop_ms = lab.brokers[0].node, random.randrange(6_000, 14_000)
            node.call_later(stop_ms, self._stop_timer, True, name="an operator")
            node.call_later(stop_ms + STOP_MS, self._stop_timer, False, name="an operator")
        while not self.wrong and lab.now_ms < PLAY_MS + STOP_MS * self.stops_timer:
            lab.run_until(lambda: bool(self.wrong) or lab.now_ms >= self._next_look_ms)
            self._next_look_ms = lab.now_ms + 500
            self._find_missing()
        return self

    def _open(self) -> None:
        lab = self.lab
        lab.name_server()
        lab.broker("broker-a", revive_queue_num=1)
        lab.create_topic(TOPIC, QUEUES)
        counter = lab.producer("counter", node="counter")
        lab.run(counter.start())
        for number in range(ORDERS):
            tag = ("hot", "cold", "hot")[number // QUEUES % 3]
            lab.run(counter.send(Message(TOPIC, b"order %d" % number, tags=tag)))
        broker = self.lab.brokers[0].running()
        processor = broker.pop.ack_message_processor
        processor.shutdown_pop_revive_service()
        taught = TaughtReviver(broker, self._settle)
        processor.revive_services[0] = taught
        taught.start()

    def _stop_timer(self, stop: bool) -> None:
        broker = self.lab.brokers[0].running()
        broker.message_store_config.timer_stop_dequeue = stop
        if not stop and broker.timer is not None and broker.timer.services is not None:
            broker.timer.services.dequeue.wakeup_for_work()
        said = "an operator stops the timer" if stop else "the timer runs again"
        self.tell(said)

    async def _work(self, worker: Worker, begin_ms: int) -> None:
        random, node = self.random, worker.node
        invisible_ms, tags = random.randrange(4_000, 8_000), random.choice(("*", "hot"))
        most, style = random.randint(2, 6), random.choice(("early", "late", "together", "mixed"))
        await node.sleep(begin_ms)
        popped = await worker.pop(most, invisible_ms=invisible_ms, tags=tags)
        end_ms = self.lab.now_ms + invisible_ms
        done = [message for message in popped if random.random() < 0.6]
        if style == "together":
            await node.sleep(random.randrange(invisible_ms - 2_000))
            if done:
                await worker.ack_together(done)
            return
        for message in done:
            # Behind a timer that stands still even a real reviver lets late acknowledgements down.
            late = not self.stops_timer and (style == "late" or (style == "mixed" and random.random() < 0.3))
            at_ms = end_ms + random.randrange(200, 1_300) if late else end_ms - random.randrange(2_000, invisible_ms)
            await node.sleep(max(0, at_ms - self.lab.now_ms))
            await worker.ack(message)

    # -- watching ---------------------------------------------------------------------------------------------------

    def _judge(self, record: Record) -> None:
        """Note what was popped, acknowledged and brought back, up to the first thing that is wrong."""
        if not self.wrong:
            self._on[record.kind](record)

    def _popped(self, record: Record) -> None:
        if not record.messages:
            return
        ends_ms = record.pop_time + record.invisible_ms
        for offset in record.offsets.split(","):
            self._ends[_delivery(record, int(offset))] = ends_ms
        until = self._seconds(ends_ms)
        place = f"{record.group}: {_offsets(record)} of {record.topic}, queue {record.queue_id}"
        self.tell(f"popped until {until:.3f} s by {place}", _batch(record))

    def _acknowledged(self, record: Record) -> None:
        for offset in record.offsets.split(","):
            delivery = _delivery(record, int(offset))
            if delivery in self._ends:
                self._acked.setdefault(delivery, self._wall_ms())
                if delivery in self._revived:
                    self._blame(delivery)
        behind_ms = self._wall_ms() - self._ends.get(_delivery(record, int(record.offsets.split(",")[0])), 0)
        when = f" ({behind_ms / 1_000:.1f} s late)" if 0 < behind_ms < LAST_POP_MS else ""
        place = f"{record.group}: {_offsets(record)} of {record.topic}, queue {record.queue_id}"
        self.tell(f"acknowledged{when} by {place}", _batch(record))

    def _came_back(self, record: Record) -> None:
        delivery = _delivery(record, record.queue_offset)
        self.tell(f"comes back: {delivery}", _batch(record))
        if delivery in self._revived:
            self.wrong = f"{delivery} comes back a second time"
        elif delivery in self._acked:
            self._blame(delivery)
        self._judged = _batch(record)
        self._revived.add(delivery)

    def _blame(self, delivery: Delivery) -> None:
        """A message came back, and was acknowledged: before that, or behind it, yet early enough to count."""
        late_ms = self._acked[delivery] - self._ends[delivery]
        if self.wrong or late_ms > IN_TIME_MS:
            return
        when = f"{late_ms / 1_000:.1f} s behind its time" if late_ms > 0 else "in time"
        came = "had come back by then" if delivery in self._revived else "comes back"
        self.wrong = f"{delivery} was acknowledged {when}, and {came}"
        self._judged = _batch_of(delivery)

    def _was_read(self, record: Record) -> None:
        topic, queue_id, offset, group, pop_time, _, kind = record.unique_key.split("@")
        # Of several acknowledgements in one the key says -1.
        of = f"of offset {offset}" if offset != "-1" else "of several"
        what = f"the check point from offset {offset} on" if kind == "ck" else f"an acknowledgement {of}"
        self.tell(f"can be read now: {what}", (group, topic, int(queue_id), int(pop_time)))

    def _find_missing(self) -> None:
        """Is there anything that should be back by now?"""
        patience_ms = BACK_MS + (STOP_MS + 2_000 if self.stops_timer else 0)
        for delivery, end_ms in self._ends.items():
            settled = delivery in self._acked or delivery in self._revived
            if not settled and self._wall_ms() > end_ms + patience_ms:
                self._judged = _batch_of(delivery)
                self.wrong = f"{delivery} was never acknowledged, and is not back {patience_ms // 1_000} s later"
                return

    def _wall_ms(self) -> int:
        return self.lab.brokers[0].node.now_ms()

    def _seconds(self, wall_ms: int) -> float:
        return (wall_ms - self.lab.world.epoch_ms) / 1_000

    def story(self) -> str:
        """What became of the batch that went wrong."""
        return self.written(*self.lines_about(self._judged)[-self.LINES :])


def _delivery(record: Record, offset: int) -> Delivery:
    return Delivery(record.group, record.topic, record.queue_id, offset, record.pop_time)


def _batch(record: Record) -> Batch:
    return record.group, record.topic, record.queue_id, record.pop_time


def _batch_of(delivery: Delivery) -> Batch:
    return delivery.group, delivery.topic, delivery.queue_id, delivery.pop_time


def _offsets(record: Record) -> str:
    return f"offset{'s' if ',' in record.offsets else ''} {record.offsets}"
