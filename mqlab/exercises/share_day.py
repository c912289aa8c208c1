"""A share group whose partition is led by somebody's own state machine: members take, finish, fail, dawdle and die.

`ShareDay(make, seed).play()` is one world; lab 31 judges share partitions with it.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

from mqlab.cousins import AcknowledgeType, CallRefused, InvalidRecordState, RecordState, ShareBroker, ShareConsumer
from mqlab.cousins.share_broker import PORT
from mqlab.cousins.share_partition import Acquired, SharePartition, StateBatch
from mqlab.errors import LearnerError
from mqlab.exercises.exercise_world import ExerciseWorld
from mqlab.scenarios.cousins import add_process

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mqlab.cousins.share_broker import Fetched
    from mqlab.sim import Node

TOPIC, GROUP, BROKER = "Orders", "kitchen", "kafka-1"
MEMBERS = 3
LOOK_MS = 700
SEND_TO_MS, PLAY_MS = 25_000, 60_000
HARD = 5
"""One record in so many is never finished by anybody."""

MakeShare = Callable[[int, int, int], Any]
"""`make(limit, lock_ms, most_locks)` gives an object with acquire, acknowledge, time_out and window."""


class TaughtPartition(SharePartition):
    """A share partition that asks somebody's own one, and looks whether what it says is right.

    What is true it knows itself. Behind the first thing that is wrong it asks no more.
    """

    def __init__(self, day: ShareDay, taught: Any, **settings: int) -> None:
        super().__init__(**settings)
        self._day = day
        self._taught = taught

    def restore(self, start_offset: int, batches: Iterable[StateBatch]) -> None:
        """Nothing was written before: a day has one leader."""

    def acquire(self, member: str, most: int, log_end: int, now_ms: int) -> list[Acquired]:
        """Judge what a member gets."""
        if self._day.wrong:
            return super().acquire(member, most, log_end, now_ms)
        said = self._taught.acquire(member, most, log_end, now_ms)
        given = _pairs(said)
        told = ", ".join(f"{offset} (x{count})" for offset, count in given) or "nothing"
        self._day.tell(f"{member} asks for {most}, and gets {told}; the log ends at {log_end}")
        wrong = self._wrong_gift(member, most, log_end, given)
        right = super().acquire(member, most, log_end, now_ms)
        if wrong:
            self._day.blame(wrong)
        elif [tuple(one) for one in right] != given:
            passed = next(offset for offset, _ in right if offset not in dict(given))
            self._day.blame(f"record {passed} can be had, and {member} asked for {most} records and did not get it")
        else:
            self._look_at_window()
        return right

    def _wrong_gift(self, member: str, most: int, log_end: int, given: list[tuple[int, int]]) -> str:
        """Why somebody must not get this; "" if it is only too little, or right."""
        window_end = self.start_offset + self.max_record_locks
        if len(given) > most:
            return f"{member} asked for {most} records and gets {len(given)}"
        offsets = [offset for offset, _ in given]
        if offsets != sorted(set(offsets)):
            return f"{member} gets {offsets}: each once and in their order is wanted"
        records = dict(self.in_flight())
        for offset, count in given:
            record = records.get(offset)
            deliveries = record.delivery_count if record is not None else 0
            if not 0 <= offset < log_end:
                return f"there is no record {offset}, and {member} gets it"
            if record is not None and record.state is RecordState.ACQUIRED:
                return f"record {offset} is held by {record.member}, and {member} gets it"
            if offset < self.start_offset or (record is not None and record.state is not RecordState.AVAILABLE):
                return f"record {offset} has come to an end, and {member} gets it"
            if offset >= window_end:
                return f"record {offset} lies {self.max_record_locks} and more behind the SPSO, and {member} gets it"
            if count != deliveries + 1:
                return f"record {offset} is delivered for the {deliveries + 1}. time, and the count says {count}"
        return ""

    def acknowledge(self, member: str, offset: int, kind: AcknowledgeType, now_ms: int) -> RecordState:
        """Judge what a member is told; InvalidRecordState as a share partition has it, and before the window, too."""
        before = offset < self.start_offset
        try:
            state = RecordState.ARCHIVED if before else super().acknowledge(member, offset, kind, now_ms)
        except InvalidRecordState:
            holds, state = False, RecordState.ARCHIVED
        else:
            holds = not before
        if not self._day.wrong:
            said = self._taught.acknowledge(member, offset, kind.name, now_ms)
            self._day.tell(f"{member} says {kind.name} of {offset}, and is told {said!r}")
            if said is not holds:
                whose = f"holds record {offset}" if holds else f"does not hold record {offset} (any more)"
                self._day.blame(f"{member} {whose}, says {kind.name} and is told {said!r}")
        if not holds:
            raise InvalidRecordState(f"{member} does not hold {offset}")
        return state

    def time_out(self, now_ms: int) -> list[int]:
        """Let locks end."""
        ended = super().time_out(now_ms)
        if not self._day.wrong:
            self._taught.time_out(now_ms)
            if ended:
                self._day.tell(f"the locks of {', '.join(map(str, ended))} end")
        return ended

    def advance(self) -> int:
        """Move the window, and judge where somebody's own one is then."""
        start = super().advance()
        self._look_at_window()
        return start

    def release_all(self, member: str) -> list[int]:
        """Nobody is told that a member has gone: what it held comes back when the locks end."""
        return []

    def _look_at_window(self) -> None:
        if self._day.wrong:
            return
        said, right = self._taught.window(), (self.start_offset, max(self.start_offset, self.end_offset))
        if not isinstance(said, tuple | list) or tuple(said) != right:
            self._day.blame(f"the window goes from {right[0]} to {right[1]}, and yours says {said!r}")


def _pairs(said: Any) -> list[tuple[int, int]]:
    """What an `acquire` gave, if it is what is wanted. Raises LearnerError."""
    pairs = isinstance(said, list | tuple) and all(
        isinstance(one, tuple | list) and len(one) == 2 and all(type(number) is int for number in one) for one in said
    )
    if not pairs:
        raise LearnerError(
            f"acquire gives {said!r}, and a list of (offset, delivery count) is wanted", "return [] for nothing"
        )
    return [(offset, count) for offset, count in said]


class ShareDay(ExerciseWorld):
    """One seed's world: records come, three members take some, and with each something else happens."""

    LINES = 18

    def __init__(self, make: MakeShare, seed: int) -> None:
        super().__init__(seed, draws="share-day")
        self.limit = self.random.randint(2, 4)
        self.lock_ms = self.random.randrange(3_000, 6_000)
        self.most_locks = self.random.choice((4, 6, 40))
        self._taught = make(self.limit, self.lock_ms, self.most_locks)
        self.wrong = ""

    def blame(self, wrong: str) -> None:
        """Note the first thing that is wrong."""
        self.wrong = self.wrong or wrong

    def play(self) -> ShareDay:
        """Play the day, up to the first thing that is wrong."""
        settings = {"delivery_count_limit": self.limit, "lock_duration_ms": self.lock_ms}
        partition = TaughtPartition(self, self._taught, max_record_locks=self.most_locks, **settings)

        def start(node: Node) -> ShareBroker:
            broker = ShareBroker(node, TOPIC, GROUP, partition)
            broker.start()
            return broker

        broker = add_process(self.lab, BROKER, start)
        address = f"{broker.node.spec.ip}:{PORT}"
        self.begin_ms = self.lab.now_ms
        for number in range(MEMBERS):
            node = add_process(self.lab, f"worker-{number + 1}", lambda _: None).node
            draw = Random(f"share-day/{self.seed}/{number}")
            node.spawn(self._take(ShareConsumer(node, address), draw, (number + 1) / MEMBERS), "take")
        counter = add_process(self.lab, "counter", lambda _: None).node
        counter.spawn(self._send(ShareConsumer(counter, address)), "send")
        self.lab.run_until(lambda: bool(self.wrong) or self.now_ms >= PLAY_MS)
        return self

    async def _send(self, counter: ShareConsumer) -> None:
        while self.now_ms < SEND_TO_MS:
            await counter.produce("an order")
            await counter.node.sleep(self.random.randrange(200, 2_000))

    async def _take(self, member: ShareConsumer, draw: Random, share: float) -> None:
        """Take records without end; a member that takes more of them is slower with each."""
        while True:
            fetched = await member.fetch(draw.randint(1, 4))
            for one in fetched:
                member.node.spawn(self._finish(member, one, draw.random(), draw.random()), "finish")
            await member.node.sleep(draw.randrange(LOOK_MS) + round(LOOK_MS * share))

    async def _finish(self, member: ShareConsumer, one: Fetched, kind: float, slow: float) -> None:
        """Say soon, late or never what has become of a record: accepted, refused, given back; or ask for more time."""
        lock_ms = self.lock_ms

        async def sleep(ms: float) -> None:
            await member.node.sleep(round(ms))

        if one.offset % HARD == 1:
            if kind < 0.6:
                await sleep(slow * lock_ms * 0.6)
                await self._say(member, one.offset, AcknowledgeType.RELEASE)
        elif kind < 0.4:
            await sleep(slow * lock_ms * 0.9)
            await self._say(member, one.offset, AcknowledgeType.ACCEPT)
        elif kind < 0.5:
            await sleep(slow * lock_ms * 0.9)
            await self._say(member, one.offset, AcknowledgeType.REJECT)
            await self._say(member, one.offset, AcknowledgeType.ACCEPT if slow < 0.5 else AcknowledgeType.REJECT)
        elif kind < 0.6:
            await self._say(member, one.offset + round(4 * slow) - 2, AcknowledgeType.RELEASE)
        elif kind < 0.75:
            for _ in range(1 + round(slow)):
                await sleep(lock_ms * 0.8)
                await self._say(member, one.offset, AcknowledgeType.RENEW)
            await sleep(lock_ms * 0.6)
            await self._say(member, one.offset, AcknowledgeType.ACCEPT)
        elif kind < 0.9:
            # Mostly so soon behind the end that nobody else has the record yet.
            await sleep(lock_ms + 20 + lock_ms * slow**4)
            await self._say(member, one.offset, AcknowledgeType.RENEW if slow < 0.4 else AcknowledgeType.ACCEPT)

    async def _say(self, member: ShareConsumer, offset: int, kind: AcknowledgeType) -> None:
        try:
            await member.acknowledge(offset, kind)
        except CallRefused:
            return
