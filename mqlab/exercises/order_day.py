"""A day of orders whose steps are done in turn: tills send them, clerks do them, queues are added, and clerks fail.

`OrderDay(make_shards, make_clerk, seed).play()` is one world. Each process has an object of its own, made when it
starts, and is numbered: `make_shards(process)` makes the sharding rule of a till, `make_clerk(process, book)` the
listener of a clerk. Lab 15 judges both with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from mqlab.client import (
    ConsumeFromWhere,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    DefaultMQProducer,
    DefaultMQPushConsumer,
    MessageListenerOrderly,
)
from mqlab.errors import LearnerError
from mqlab.exercises.exercise_world import ExerciseWorld
from mqlab.exercises.handed_over import handed_over
from mqlab.protocol.message import Message, MessageExt, MessageQueue
from mqlab.sim import Node

TOPIC, BROKER, GROUP = "Orders", "broker-a", "desk"
STEP, STEPS = "step", 4
CLERKS, LATE = ("A", "B"), "C"
TILLS = 2
ORDERS, EVERY_MS, PAUSE_MS = 18, 2_200, 9_000
WORK_MS, ASK_MS = 300, 6
ADDED_MS, ACCIDENT_MS = 9_000, 7_000
JUST_AWAKE_MS = 400
"""What a clerk that hung had asked before, it may act upon for so long after it woke: it cannot know better."""
AFTER_MS, LIMIT_MS = 5_000, 260_000

HANGS, KILLED, JOINS = "hangs", "is killed", "joins and leaves"
KINDS = (HANGS, KILLED, JOINS, HANGS, KILLED)


class Book:
    """How many steps of each order are done: a table on a machine of its own, which believes whoever writes."""

    def __init__(self, day: OrderDay) -> None:
        self.done: dict[str, int] = {}
        self.works = 0
        """How often somebody worked."""
        self.refused = 0
        self.at_work: str = ""
        """Who has begun to work last."""
        self._day = day

    async def ask(self, node: Node, order: str) -> int:
        """How many steps are done; takes a moment."""
        await node.sleep(ASK_MS / 2)
        done = self.done.get(order, 0)
        await node.sleep(ASK_MS / 2)
        self._day.tell(f"{node.name}: done({order!r}) is {done}", order)
        return done

    async def work(self, node: Node, order: str, step: int) -> None:
        """Work, for a while; it must be this step's turn."""
        self.works += 1
        self.at_work = node.name
        self._day.tell(f"{node.name}: work({order!r}, {step}) begins", order)
        done = self.done.get(order, 0)
        if step != done + 1 and not self._day.just_awake(node.name):
            why = f"{done} of its steps are done"
            self._day.object(f"{node.name} begins to work on step {step} of {order}, and {why}", order)
        await node.sleep(WORK_MS / 2 + self._day.random.randrange(WORK_MS))
        self._day.tell(f"{node.name}: work({order!r}, {step}) ends", order)

    async def write(self, node: Node, order: str, expected: int | None, step: int) -> bool:
        """Write, if the book says what is expected (or whatever it says); whether it was written."""
        await node.sleep(ASK_MS / 2)
        done = self.done.get(order, 0)
        written = expected is None or expected == done
        call = f"write({order!r}, {step})" if expected is None else f"write_if({order!r}, {expected}, {step})"
        self._day.tell(f"{node.name}: {call}: {'done' if written else f'refused, it says {done}'}", order)
        if written:
            self.done[order] = step
            if step < done:
                self._day.object(f"{node.name} sets the book back: {order} from {done} to {step} steps done", order)
            elif step > done + 1:
                self._day.object(f"{node.name} leaves a step out: {order} goes from {done} to {step}", order)
        else:
            self.refused += 1
        await node.sleep(ASK_MS / 2)
        return written


@handed_over
class Access:
    """The book as the process of one clerk sees it."""

    def __init__(self, book: Book, node: Node) -> None:
        self._book = book
        self._node = node

    async def done(self, order: str) -> int:
        """How many steps of this order are done."""
        return await self._book.ask(self._node, _order(order))

    async def work(self, order: str, step: int) -> None:
        """Do the work of a step; leaves no trace in the book."""
        await self._book.work(self._node, _order(order), _number(step, "a step"))

    async def write(self, order: str, step: int) -> None:
        """So many steps of this order are done now."""
        await self._book.write(self._node, _order(order), None, _number(step, "a step"))

    async def write_if(self, order: str, done: int, step: int) -> bool:
        """The same, if the book still says `done`; True if it was written."""
        expected, wanted = _number(done, "a number of steps"), _number(step, "a step")
        return await self._book.write(self._node, _order(order), expected, wanted)


def _order(order: object) -> str:
    if not isinstance(order, str):
        raise LearnerError(f"{order!r} is not the name of an order", "give message.keys")
    return order


def _number(value: object, what: str) -> int:
    if type(value) is not int:
        raise LearnerError(f"{value!r} is not {what}", 'make a number of it: int(message.properties["step"])')
    return value


class _Desk(MessageListenerOrderly):
    """The listener of a clerk, which asks the student's object; that is made anew when the process starts again."""

    def __init__(self, day: OrderDay, consumer: DefaultMQPushConsumer) -> None:
        self._day = day
        self._consumer = consumer

    async def consume_message(
        self, messages: Sequence[MessageExt], context: ConsumeOrderlyContext
    ) -> ConsumeOrderlyStatus | None:
        """Hand the messages on, and tell what comes of it."""
        node, order = self._consumer.node, messages[0].keys or ""
        what = f"step {messages[0].properties[STEP]} from queue {context.message_queue.queue_id}"
        self._day.tell(f"{node.name}: the listener gets {what}", order)
        clerk = self._day.clerks[node.name]
        status: ConsumeOrderlyStatus | None = await self._day.told(
            f"{node.name}: the listener", lambda: clerk.consume_message(messages, context), order
        )
        if status is not ConsumeOrderlyStatus.SUCCESS:
            self._day.waits += 1
        return status


class OrderDay(ExerciseWorld):
    """One seed's world: two tills, two clerks or three, a topic that grows, and one accident."""

    LINES = 18
    SECONDS = "8.3f"

    def __init__(self, make_shards: Callable[[int], Any], make_clerk: Callable[[int, Access], Any], seed: int) -> None:
        super().__init__(seed, draws="15/order-day")
        self.book = Book(self)
        self.kind = KINDS[seed % len(KINDS)]
        self.waits = 0
        """How often a message was to come again in a moment."""
        self.wrong = ""
        self.about = ""
        self.orders = [f"order-{number}" for number in sorted(self.random.sample(range(100, 1_000), ORDERS))]
        self._make_clerk = make_clerk
        self.clerks: dict[str, Any] = {}
        """The student's object of each clerk's process. It is made between two moments of the world: a solution that is
        marked has a real process for each.
        """
        self._processes = TILLS
        self._woken_ms: dict[str, float] = {}
        lab = self.lab
        lab.name_server()
        lab.broker(BROKER)
        self.queues = self.random.choice((2, 3))
        lab.create_topic(TOPIC, self.queues)
        self._tills = [lab.producer("tills", node=f"till-{n}") for n in range(1, TILLS + 1)]
        for till in self._tills:
            lab.run(till.start())
        self._rules = {till.node.name: make_shards(n) for n, till in enumerate(self._tills, 1)}
        for name in CLERKS:
            lab.run(self._add_clerk(name).start())
            lab.run_for(seconds=self.random.randint(2, 6))
        self.begin_ms = lab.now_ms

    def _add_clerk(self, name: str) -> DefaultMQPushConsumer:
        consumer = self.lab.consumer(
            GROUP, node=name, consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, consume_thread_min=4
        )
        consumer.subscribe(TOPIC, "*")
        consumer.register_message_listener(_Desk(self, consumer))
        self._begin_life(consumer.node)
        return consumer

    def _begin_life(self, node: Node) -> None:
        """Make the student's object of a process that is about to start."""
        self._processes += 1
        self.clerks[node.name] = self._make_clerk(self._processes, Access(self.book, node))

    # -- playing ----------------------------------------------------------------------------------------------------

    def play(self) -> OrderDay:
        """Let orders come, add queues, let the accident happen, and wait until all is done or it takes too long."""
        for number, order in enumerate(self.orders):
            till = self._tills[number % TILLS]
            till.node.spawn(self._life(till, order, number * EVERY_MS), order)
        added = self.queues + self.random.choice((1, 2))
        self.at(ADDED_MS, f"Orders gets {added - self.queues} more queues", lambda: self.lab.create_topic(TOPIC, added))
        self.pass_to(self.random.randrange(ACCIDENT_MS, ACCIDENT_MS + 4_000))
        self._accident()
        self._go_on(lambda: self._settled or self.now_ms > LIMIT_MS)
        self._go_on_for(AFTER_MS)
        return self

    @property
    def _settled(self) -> bool:
        return all(self.book.done.get(order, 0) >= STEPS for order in self.orders)

    def _go_on(self, end: Callable[[], bool], step_ms: float = 500) -> None:
        """Go on until then, or until something is wrong; what is planned happens."""
        while not self.wrong and not end():
            self.pass_to(self.now_ms + step_ms)

    def _go_on_for(self, ms: float) -> None:
        until = self.now_ms + ms
        self._go_on(lambda: self.now_ms >= until)

    def _accident(self) -> None:
        """What befalls the clerks of this seed."""
        lab, random = self.lab, self.random
        if self.kind == JOINS:
            late = self._add_clerk(LATE)
            self.tell(f"{LATE} joins")
            lab.run(late.start())
            self._go_on_for(random.randint(15_000, 35_000))
            self.tell(f"{LATE} leaves")
            lab.run(late.shutdown())
            return
        works = self.book.works
        self._go_on(lambda: self.book.works > works or self.now_ms >= LIMIT_MS, step_ms=10)
        lab.run_for(ms=random.randrange(20, 100))
        victim = self.book.at_work or CLERKS[1]
        if self.kind == KILLED:
            self.tell(f"{victim} is killed")
            lab.crash(victim)
            if random.random() < 0.5:
                self._go_on_for(random.randint(2_000, 20_000))
                self.tell(f"{victim} starts again")
                self._begin_life(lab.world.nodes[victim])
                lab.restart(victim)
            return
        self.tell(f"{victim} hangs")
        lab.freeze(victim)
        self._go_on_for(random.randint(152_000, 175_000))
        self.tell(f"{victim} goes on")
        self._woken_ms[victim] = self.now_ms
        lab.thaw(victim)
        self._go_on_for(10_000)

    def just_awake(self, name: str) -> bool:
        """Whether a clerk hung until a moment ago."""
        return self.now_ms - self._woken_ms.get(name, -inf) < JUST_AWAKE_MS

    def object(self, told: str, order: str) -> None:
        """Something is wrong; the first thing counts."""
        if not self.wrong:
            self.wrong, self.about = told, order

    async def _life(self, till: DefaultMQProducer, order: str, begins_ms: int) -> None:
        """One order: its steps, each some time after the one before."""
        node, rule = till.node, self._rules[till.node.name]
        await node.sleep(1 + begins_ms)
        for step in range(1, STEPS + 1):
            message = Message(TOPIC, b"do it", keys=order, properties={STEP: f"{step}"})

            def select(queues: Sequence[MessageQueue], _: Message, order: str) -> MessageQueue:
                chosen: MessageQueue = rule.queue_of(list(queues), order)
                return chosen

            sent = await till.send_by_selector(message, select, order)
            self.tell(f"{node.name}: sends step {step} to queue {sent.message_queue.queue_id}", order)
            await node.sleep(100 + self.random.randrange(PAUSE_MS))

    def story(self, *orders: str) -> str:
        """What happened to these orders, with what happened to the clerks; seconds from the first order."""
        return self.both_ends(*orders)
