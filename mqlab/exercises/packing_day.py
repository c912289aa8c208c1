"""A day of an application of 5.x: it receives orders, sends an invoice for each, and faults come in its way.

`PackingDay(work, seed).play()` is one world; `work(consumer, producer, book, invoice_for, pause)` is the application.
What it is given has the calls of Python's official client, awaited, so that a world can stand still in them. Lab 30
judges applications with it, and `mqlab.exercises.for_real` plays them with the official client.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from mqlab.client.v5 import ClientException, Message, MessageView
from mqlab.errors import LearnerError, SimulationError
from mqlab.exercises.exercise_world import ExerciseWorld
from mqlab.exercises.handed_over import handed_over
from mqlab.sim import Call, Node
from mqlab.trace.record import Record

ORDERS, INVOICES, GROUP = "Orders", "Invoices", "packers"
SHOP, PACKER, BROKER, PROXY = "shop", "packer", "broker-a", "proxy-1"
COUNT, EVERY_MS = 10, 1_500
AWAIT_MS = 5_000
STEP_MS = 2
"""So long an application needs from one call to the next."""
QUIET_MS, LIMIT_MS = 75_000, 300_000
"""What has not come again for so long comes no more; and the end of the day."""

Application = Callable[..., Any]
BEGUN, DONE, FAILED = "begins", "is done with", "fails in"
"""Where an application is with a call."""


@dataclass(slots=True)
class Order:
    """An order of the day, and what became of it."""

    number: int
    invoices: int = 0
    """How many invoices brokers have stored for it."""
    surely_sent: bool = False
    """The application was told that an invoice is stored, and has lived on."""
    needless: bool = False
    """It was sent once more all the same."""
    received: int = 0
    received_ms: float = 0.0
    """How often the application got it, and when last."""
    acknowledged: bool = False
    """A broker has heard so, and has told the application."""
    answered_ms: float = -1.0
    """When the application has last tried to acknowledge it."""

    @property
    def name(self) -> str:
        """What its message says."""
        return f"order {self.number}"


@handed_over
class Consumer:
    """What an application receives with; seconds, as in Python's client."""

    def __init__(self, day: PackingDay, life: Life) -> None:
        self._day = day
        self._life = life

    async def receive(self, max_message_num: int, invisible_duration: int) -> list[MessageView]:
        """Up to so many orders, which nobody else gets for so many seconds; none if none comes for 5 s."""
        seconds = _whole(invisible_duration, "invisible_duration", "30")
        return await self._day.receive(self._life, _whole(max_message_num, "max_message_num", "16"), seconds)

    async def ack(self, message: MessageView) -> None:
        """Say that an order is done: it does not come again."""
        if not isinstance(message, MessageView):
            raise LearnerError(f"{message!r} was not received", "give one of the orders of receive(...)")
        await self._day.ack(self._life, message)


@handed_over
class Producer:
    """What an application sends with."""

    def __init__(self, day: PackingDay, life: Life) -> None:
        self._day = day
        self._life = life

    async def send(self, message: Message) -> None:
        """Send a message, and wait until a broker has it."""
        if not isinstance(message, Message):
            raise LearnerError(f"{message!r} cannot be sent", "write producer.send(invoice_for(order))")
        await self._day.send(self._life, message)


@handed_over
class Book:
    """Names that outlive the application, as in a data base."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def note(self, name: str) -> None:
        """Write a name down."""
        self._names.add(_text(name))

    def has(self, name: str) -> bool:
        """Was it written down?"""
        return _text(name) in self._names


class Life:
    """The application from a start to its end."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.sending: Order | None = None
        self.told: Order | None = None
        """Of this one it was told last that its invoice is stored; with its next call it has lived on."""


class PackingDay(ExerciseWorld):
    """One seed's world: a shop that sends orders, an application, a kill and a loss, and one of six troubles."""

    LINES = 18
    SECONDS = "8.3f"

    def __init__(self, work: Application, seed: int) -> None:
        super().__init__(seed, draws="packing")
        self.orders = [Order(number) for number in range(COUNT)]
        self.ended = ""
        """How the application has ended by itself."""
        self._work = work
        self._book = Book()
        self._messages: dict[str, Order] = {}
        self._steps: dict[str, int] = {}
        self._slips: set[str] = set()
        lab = self.lab
        lab.name_server()
        lab.broker(BROKER)
        for topic in (ORDERS, INVOICES):
            lab.create_topic(topic, 2)
        lab.proxy(PROXY)
        self._shop = lab.producer_v5(node=SHOP)
        self._consumer = lab.simple_consumer(GROUP, node=PACKER, await_duration=AWAIT_MS)
        self._consumer.subscribe(ORDERS)
        self._producer = lab.producer_v5(node=PACKER)
        for client in (self._shop, self._consumer, self._producer):
            lab.run(client.start())
        lab.run_for(ms=self.random.randint(1_000, 9_000))
        self.begin_ms = lab.now_ms
        self.watch({"SendAttempted": self._attempted, "MessageStored": self._stored})

    # -- what the application does ----------------------------------------------------------------------------------

    async def receive(self, life: Life, most: int, seconds: int) -> list[MessageView]:
        """Receive, and write down what has come."""
        await self._begin(life, "receive")
        got: list[MessageView] = await self._asked(self._consumer.receive, "receive", None, most, seconds * 1_000)
        for view in got:
            order = self._of(view.body)
            order.received += 1
            order.received_ms = self.now_ms
            order.acknowledged = False
            self.tell(f"{PACKER} receives {order.name}, attempt {view.delivery_attempt}", order.number)
        await self._end(life, "receive")
        return got

    async def ack(self, life: Life, view: MessageView) -> None:
        """Acknowledge an order."""
        order = self._of(view.body)
        await self._begin(life, "ack")
        order.answered_ms = self.now_ms
        await self._asked(self._consumer.ack, f"ack({order.name})", order, view)
        order.acknowledged = True
        self.tell(f"{PACKER} acknowledges {order.name}", order.number)
        await self._end(life, "ack")

    async def send(self, life: Life, message: Message) -> None:
        """Send an invoice."""
        order = life.sending = self._of(message.body)
        await self._begin(life, "send")
        order.needless = order.needless or order.surely_sent
        await self._asked(self._producer.send, f"send(invoice for {order.name})", order, message)
        self.tell(f"{PACKER} is told that the invoice for {order.name} is stored", order.number)
        life.told = order
        await self._end(life, "send")

    async def pause(self, life: Life, seconds: float) -> None:
        """Do nothing for a while. An error that it is the answer to is told once, unless it is one of a call: so nobody
        looks long for a slip of their own behind an `except Exception`.
        """
        error = sys.exception()
        if error is not None and not isinstance(error, ClientException):
            text = f"{PACKER}: an error of its own code: {type(error).__name__}: {error}".partition("\n")[0]
            if text not in self._slips:
                self._slips.add(text)
                self.tell(text)
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < 1_000:
            raise LearnerError(f"nobody can wait for {seconds!r} s", "write pause(1), with a number of seconds above 0")
        await life.node.sleep(seconds * 1_000)

    async def _asked(self, call: Callable[..., Call[Any]], what: str, order: Order | None, *arguments: Any) -> Any:
        try:
            return await call(*arguments)
        except ClientException as error:
            text = str(error).partition(". ")[0]
            self._step(f"{what.partition('(')[0]} {FAILED}")
            self.tell(f"{PACKER}: {what} raises ClientException: {text}", None if order is None else order.number)
            raise

    async def _begin(self, life: Life, what: str) -> None:
        if life.told is not None:
            life.told.surely_sent, life.told = True, None
        self._step(f"{what} {BEGUN}")
        await life.node.sleep(STEP_MS)

    async def _end(self, life: Life, what: str) -> None:
        self._step(f"{what} {DONE}")
        await life.node.sleep(STEP_MS)

    def _step(self, step: str) -> None:
        self._steps[step] = self._steps.get(step, 0) + 1

    def _of(self, body: bytes) -> Order:
        number = bytes(body).decode(errors="replace").rpartition(" ")[2]
        if not number.isdigit() or int(number) >= COUNT:
            raise LearnerError(f"{body!r} is about no order", "send what invoice_for(order) gives")
        return self.orders[int(number)]

    def _attempted(self, record: Record) -> None:
        if record.topic == INVOICES:
            life = self._life
            if life.sending is not None:
                self._messages[record.msg_id] = life.sending

    def _stored(self, record: Record) -> None:
        order = self._messages.get(record.unique_key)
        if record.topic == INVOICES and order is not None:
            order.invoices += 1
            self.tell(f"{BROKER} stores an invoice for {order.name}", order.number)

    @property
    def _life(self) -> Life:
        node = self._consumer.node
        life: Life = self.of_life(node, lambda: Life(node))
        return life

    async def _application(self) -> None:
        life = self._life
        given = (Consumer(self, life), Producer(self, life), self._book, invoice_for, partial(self.pause, life))
        try:
            said = self._work(*given)
            if isinstance(said, Awaitable):
                await said
            self.ended = f"it returned after {self.now_ms / 1_000:.1f} s"
        except LearnerError as error:
            raise SimulationError(f"the application cannot go on: {error}") from error
        except ClientException as error:
            self.ended = f"it ended with {type(error).__name__} after {self.now_ms / 1_000:.1f} s"
        self.tell(f"the application is over: {self.ended}")

    def _start(self) -> None:
        self._consumer.node.spawn(self._application(), "application")

    # -- playing ----------------------------------------------------------------------------------------------------

    def play(self) -> PackingDay:
        """Let the shop send and the application work, break something, and wait until all is done, or too late."""
        self._shop.node.spawn(self._sell(), "orders")
        self._start()
        self._break()
        self.lab.run_until(self._is_over, limit_ms=2 * LIMIT_MS)
        return self

    async def _sell(self) -> None:
        """The shop sends each order until it is told that it is stored."""
        for order in self.orders:
            await self._shop.node.sleep(max(0.0, order.number * EVERY_MS - self.now_ms))
            message = Message(ORDERS, order.name, keys=f"order-{order.number}")
            while True:
                try:
                    await self._shop.send(message)
                    break
                except ClientException:
                    await self._shop.node.sleep(1_000)
            self.tell(f"{SHOP} has sent {order.name}", order.number)

    def _is_over(self) -> bool:
        """Is each order invoiced, and does none come again? Or is it too late, or the application over?"""
        if self.ended or self.now_ms > LIMIT_MS:
            return True
        return self.now_ms > COUNT * EVERY_MS and all(map(self.is_settled, self.orders))

    def is_settled(self, order: Order) -> bool:
        """Has it an invoice, and comes no more, since it was acknowledged, or has not come for long?"""
        if not order.invoices or order.answered_ms < order.received_ms:
            return False
        return order.acknowledged or self.now_ms - order.received_ms > QUIET_MS

    def _break(self) -> None:
        """Each seed kills the application before an ack and loses a send; then comes the trouble of its own."""
        self._until(f"ack {BEGUN}", self.random.randint(1, 2))
        self._kill_packer()
        self._until(f"send {BEGUN}", self.random.randint(1, 2))
        self._lose(PROXY, BROKER, lambda: self._until(f"send {FAILED}"))
        self._trouble()

    def _trouble(self) -> None:
        random, kind = self.random, self.seed % 6
        nth = random.randint(1, 3)
        if kind == 0:
            self._until(f"send {random.choice((BEGUN, DONE))}", nth)
            self._kill_packer()
        elif kind == 1:
            self._until(random.choice((f"receive {DONE}", f"ack {DONE}")), nth)
            self._kill_packer()
        elif kind == 2:
            self._until(f"send {BEGUN}", nth)
            self.kill(BROKER, random.choice((random.randint(100, 900), random.randint(6_000, 18_000))))
        elif kind == 3:
            self._until(f"ack {BEGUN}", nth + 1)
            self._lose(PROXY, BROKER, lambda: self.lab.run_for(ms=random.randint(4_000, 9_000)))
        elif kind == 4:
            self._until(f"send {BEGUN}", nth)
            self._lose(BROKER, PROXY, lambda: self.lab.run_for(ms=random.randint(3_000, 16_000)))
        else:
            self._until(f"send {BEGUN}", nth)
            self.kill(BROKER, random.randint(6_000, 12_000))
            self._until(f"ack {BEGUN}")
            self._kill_packer()

    def _until(self, step: str, more: int = 1) -> None:
        """Until the application has taken a step so often more; one that never does is not waited for."""
        late_ms = COUNT * EVERY_MS + 10_000
        wanted = self._steps.get(step, 0) + more
        self.lab.run_until(lambda: self._steps.get(step, 0) >= wanted or self.now_ms > late_ms, limit_ms=LIMIT_MS)

    def _kill_packer(self) -> None:
        self.kill(PACKER, self.random.randint(1_000, 8_000))
        self._start()

    def _lose(self, source: str, target: str, meanwhile: Callable[[], object]) -> None:
        """Meanwhile all that goes from one machine to the other is lost."""
        self.tell(f"from now on all that {source} sends to {target} is lost")
        self.lab.act("cut", source=source, target=target)
        meanwhile()
        self.lab.act("disconnect", a=source, b=target)
        self.lab.act("heal", source=source, target=target)
        self.tell(f"what {source} sends to {target} arrives again")

    def story(self, order: Order) -> str:
        """What happened to an order, with the faults around it; seconds from the first order."""
        return self.both_ends(order.number)


def invoice_for(order: MessageView) -> Message:
    """The invoice for an order, to be sent."""
    if not isinstance(order, MessageView):
        raise LearnerError(f"{order!r} is no order", "write invoice_for(order) with an order that was received")
    return Message(INVOICES, b"invoice for " + order.body, keys=order.keys)


def _whole(value: object, name: str, for_example: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise LearnerError(f"{name}={value!r} is no whole number", f"write {name}={for_example}")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise LearnerError(f"{value!r} is not a text", "note what order.body.decode() gives")
    return value
