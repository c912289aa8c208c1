"""A broker whose merge buffer is scanned by somebody's own rule: what it writes, what comes again, what is left over.

`MemoryShift(rule, seed).play()` is one world; lab 13 judges rules with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab.broker.pop.pop_buffer_merge_service import PopBufferMergeService
from mqlab.errors import LearnerError, RemotingException
from mqlab.exercises.exercise_world import ExerciseWorld
from mqlab.scenarios.merge_buffer import GROUP, TOPIC, open_kitchen
from mqlab.trace.record import Record

if TYPE_CHECKING:
    from mqlab.broker.broker_controller import BrokerController
    from mqlab.broker.pop.pop_check_point_wrapper import PopCheckPointWrapper
    from mqlab.protocol.message import MessageExt

SCAN_MS = 100
STORE, LET_GO = "store", "let go"
STAY_MS, LEFT_MS, RESERVE_MS = 10_000, 3_000, 1_500
CRASH_SLACK_MS = 1_000
"""A scan, and the time until the offset is on the disk."""
REVIVED_MS = 7_000
"""So long behind the end of its invisible time an order that nobody did has come again."""


class Batch(NamedTuple):
    """What the scan knows of a batch; times are ms since 1970, `done` and `done_stored` are places, 0 to orders - 1."""

    popped_ms: int
    visible_ms: int
    orders: int
    done: tuple[int, ...]
    stored: bool
    done_stored: tuple[int, ...]


Rule = Callable[[Batch, int], Iterable[str | int]]


class TaughtBuffer(PopBufferMergeService):
    """The merge buffer with somebody's own scan, every 100 ms; all else is RocketMQ's."""

    def __init__(self, broker: BrokerController, rule: Rule) -> None:
        super().__init__(broker, broker.pop.locks)
        self.period_ms = SCAN_MS
        self._rule = rule
        self.kept: int | None = None
        """Where a batch begins that was kept although all of it was done."""

    def work_us(self) -> int | None:
        """Look at each tick as long as there is a batch."""
        return self.node.now_us() if self.buffer else super().work_us()

    async def scan(self) -> None:
        """Look at every batch."""
        self._to_look_at.update(self.buffer)
        await super().scan()

    async def look_at(self, wrapper: PopCheckPointWrapper) -> None:
        """Take the steps that the rule wants, up to the first at which the store refuses."""
        if wrapper.just_offset:
            await super().look_at(wrapper)
            return
        steps = self._rule(_batch_of(wrapper), self.node.now_ms())
        if isinstance(steps, str) or not isinstance(steps, Iterable):
            raise LearnerError(f"a list of steps is wanted, and yours returns {steps!r}", 'return ["let go"], or []')
        steps = list(steps)
        if wrapper.is_done and LET_GO not in steps and wrapper.ck.topic == TOPIC and self.kept is None:
            self.kept = wrapper.ck.start_offset
        for step in steps:
            if step == LET_GO:
                self.let_go(wrapper)
                # Whatever is true of it: the group goes on behind it.
                wrapper.just_offset = wrapper.ck_stored = True
                return
            if not self._write(step, wrapper):
                return

    def _write(self, step: Any, wrapper: PopCheckPointWrapper) -> bool:
        """Take one step; False when the store refused."""
        if step == STORE:
            self.to_store.put_ck(wrapper, "the rule says so")
            return wrapper.ck_stored
        if type(step) is not int or not 0 <= step < wrapper.ck.num:
            known = f'"store", "let go" and places from 0 to {wrapper.ck.num - 1}'
            raise LearnerError(f"{step!r} is no step", f"the steps are {known}")
        self.to_store.put_ack(wrapper, [step])
        return bool(wrapper.to_store_bits >> step & 1)


def _batch_of(wrapper: PopCheckPointWrapper) -> Batch:
    ck = wrapper.ck
    places = range(ck.num)
    return Batch(
        ck.pop_time,
        ck.revive_time,
        ck.num,
        tuple(place for place in places if wrapper.bits >> place & 1),
        wrapper.ck_stored,
        tuple(place for place in places if wrapper.to_store_bits >> place & 1),
    )


class Order:
    """One order: when it was popped, after how long it is done (ms behind the pop; None: never), what became of it.

    Times are ms of the world.
    """

    def __init__(self, key: str, batch: int, popped_ms: float, invisible_ms: int, work_ms: float | None) -> None:
        self.key = key
        self.batch = batch
        self.popped_ms = popped_ms
        self.invisible_ms = invisible_ms
        self.work_ms = work_ms
        self.done_ms: float | None = None
        self.again_ms: list[float] = []


class MemoryShift(ExerciseWorld):
    """One seed's world: batches invisible for a short or long time, orders done soon, late or never, a kill perhaps."""

    def __init__(self, rule: Rule, seed: int) -> None:
        super().__init__(seed, draws="memory-shift")
        draw = self.random
        self.rule = rule
        self.orders: dict[str, Order] = {}
        self.check_points = 0
        self.killed_ms: float | None = None
        self._is_killed = draw.random() < 0.5
        self._sizes = [draw.randint(1, 4) for _ in range(draw.randint(5 if self._is_killed else 9, 13))]

    # -- the world --------------------------------------------------------------------------------------------------

    def play(self) -> MemoryShift:
        """Play it to its end."""
        lab = self.lab
        self.kitchen = open_kitchen(lab, sum(self._sizes), buffer=True)
        self._install()
        self.watch(dict.fromkeys(("CheckPointStored", "AckStored", "CheckPointMerged"), self._seen))
        for number, size in enumerate(self._sizes):
            self._pop(number, size)
            lab.run_for(ms=self.random.randint(300, 2_500))
        if self._is_killed:
            lab.run_for(ms=self.random.randint(100, 9_000))
            self._kill()
        self._watch_for_returns()
        return self

    def _install(self) -> None:
        broker = self.lab.brokers[0].running()
        buffer = self.buffer = TaughtBuffer(broker, self.rule)
        broker.pop.pop_buffer_merge_service = buffer
        buffer.start()

    def _pop(self, number: int, size: int) -> None:
        draw = self.random
        invisible_ms = draw.choice((6_000, 8_000, 11_000, 20_000, 30_000))
        now_ms = self.lab.now_ms
        popped = [
            message
            for message in self.lab.run(self.kitchen.pop(size, invisible_ms=invisible_ms))
            if not self._came_again(message)
        ]
        self.tell(f"batch {number} is popped: {_keys(popped)}, invisible for {invisible_ms / 1_000:g} s")
        lazy = draw.random()
        for message in popped:
            soon = draw.randint(100, 1_200)
            late = draw.randint(1_500, invisible_ms - 300)
            work_ms = soon if lazy < 0.6 or draw.random() < 0.6 else None if draw.random() < 0.4 else late
            order = Order(message.keys or "", number, now_ms, invisible_ms, work_ms)
            self.orders[order.key] = order
            if work_ms is not None:
                self.kitchen.node.spawn(self._do(order, message, work_ms), "cook")

    async def _do(self, order: Order, message: MessageExt, work_ms: float) -> None:
        await self.kitchen.node.sleep(work_ms)
        try:
            await self.kitchen.ack(message)
        except RemotingException:
            return
        if self.killed_ms is None:
            order.done_ms = self.lab.now_ms
            self.tell(f"{order.key} of batch {order.batch} is done")

    def _kill(self) -> None:
        self.killed_ms = self.lab.now_ms
        self.tell("the broker is killed, and started again at once")
        self.lab.crash("broker-a")
        self.lab.restart("broker-a")
        self.lab.run_for(seconds=1)

    def _watch_for_returns(self) -> None:
        """Pop what comes again, every half second, until every invisible time is long over."""
        end_ms = max(order.popped_ms + order.invisible_ms for order in self.orders.values()) + REVIVED_MS
        while self.lab.now_ms < end_ms:
            for message in self.lab.run(self.kitchen.pop(invisible_ms=300_000)):
                if not self._came_again(message):
                    self.lab.run(self.kitchen.ack(message))
            self.lab.run_for(ms=500)

    def _came_again(self, message: MessageExt) -> bool:
        """Was this order popped before? If so, note it."""
        order = self.orders.get(message.keys or "")
        if order is None:
            return False
        order.again_ms.append(self.lab.now_ms)
        self.tell(f"{order.key} of batch {order.batch} comes again")
        return True

    # -- what is seen -----------------------------------------------------------------------------------------------

    def _seen(self, record: Record) -> None:
        order = self.orders.get(f"order-{record.start_offset}")
        if order is None or record.topic != TOPIC or self.killed_ms is not None:
            return
        if record.kind == "CheckPointStored":
            self.check_points += 1
            self.tell(f"the check point of batch {order.batch} is written")
        elif record.kind == "AckStored":
            self.tell(f"written: order-{record.offsets} is done")
        else:
            self.tell(f"memory lets batch {order.batch} go")

    def story(self, *batches: int) -> str:
        """What happened to these batches."""
        about = ["killed", *(f"batch {number}{end}" for number in batches for end in (" ", ":"))]
        about += [f"{order.key} " for order in self.orders.values() if order.batch in batches]
        return self.written(*(line for line in self.lines if any(words in f"{line.text} " for words in about)))

    def in_memory(self) -> list[int]:
        """The batches that memory still holds."""
        held = (wrapper.ck for wrapper in self.buffer.buffer.values())
        return [self.orders[f"order-{ck.start_offset}"].batch for ck in held if ck.topic == TOPIC]

    def progress(self) -> int:
        """Behind how many orders the group goes on, as the broker knows it."""
        offsets = self.lab.brokers[0].running().consumer_offset_manager
        return offsets.query_offset(GROUP, TOPIC, 0)

    # -- what had to be ---------------------------------------------------------------------------------------------

    def had_to_store(self) -> int:
        """How many batches memory could not keep until all of their orders were done."""
        batches: dict[int, list[Order]] = {}
        for order in self.orders.values():
            batches.setdefault(order.batch, []).append(order)
        return sum(self._outlived(orders) for orders in batches.values())

    def _outlived(self, orders: list[Order]) -> bool:
        first = orders[0]
        taken_ms = first.popped_ms + min(STAY_MS, first.invisible_ms - LEFT_MS) - RESERVE_MS
        if self.killed_ms is not None and self.killed_ms < taken_ms + RESERVE_MS:
            return False
        return any(order.done_ms is None or order.done_ms > taken_ms for order in orders)


def _keys(messages: list[MessageExt]) -> str:
    return ", ".join(message.keys or "" for message in messages)
