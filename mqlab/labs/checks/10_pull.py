"""The checks of lab 10: a backlog, a pause, and a pull task in bursts, quiet hours, with a full warehouse and kills."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab import Lab, Message
from mqlab.check import Right, Wrong, draws_for, is_number, lab_check
from mqlab.errors import MQBrokerException, MQClientException, RemotingException
from mqlab.exercises.exercise_world import ExerciseWorld
from mqlab.protocol.message import MessageQueue
from mqlab.trace.record import Record

if TYPE_CHECKING:
    from mqlab.protocol.message import MessageExt

Backlog = Callable[[Any, list[MessageQueue]], Awaitable[int]]
Pause = Callable[[float, bool, int], float]
Deliver = Callable[["MessageExt"], Awaitable[bool]]
MakeTask = Callable[[Deliver], Callable[..., Any]]

TOPIC = "Orders"
BURST, SMALL_BURST = 140, 20
LAG_MS = 3_500
AFTER_FULL_MS, AFTER_BROKER_MS, AFTER_PROCESS_MS = 2_500, 5_000, 7_000
"""So long after each trouble an order may still be on its way: it is not the task's fault."""
QUIET_MS, MOST_EMPTY, SETTLE_MS = 10_000, 15, 2_000
EMPTY_FREE = 5
"""So many pulls more than if each pause were the longest: a short pause has to grow first."""
KNOCKS_FREE, KNOCKS_A_SECOND = 4, 1.5
PLAY_MS = 63_000
LINES = 12


ANSWER_MS = 1_000
SOON_MS, USUAL_PAUSE_MS = 100, 200


@lab_check("10/backlog", points=1)
def backlog(answer: Backlog, *, seed: int) -> Wrong | None:
    """Groups that have read some queues in part, and others never."""
    draw = draws_for(seed)
    lab = Lab(seed, history=False)
    lab.name_server()
    lab.broker("broker-a")
    queues = [MessageQueue(TOPIC, "broker-a", queue_id) for queue_id in range(draw.between("queues", 2, 4))]
    lab.create_topic(TOPIC, len(queues))
    producer, consumer = lab.producer("till"), lab.pull_consumer("readers")
    lab.run(producer.start())
    lab.run(consumer.start())
    left, told = 0, []
    for number, queue in enumerate(queues):
        stored = draw.between(f"stored {number}", 1, 6)
        for _ in range(stored):
            lab.run(producer.send(Message(TOPIC, b"order"), queue=queue))
        read_to = draw.between(f"read {number}", 0, stored)
        if number:
            # Of queue 0 only the consumer's own memory knows something, and the broker is asked.
            lab.brokers[0].running().consumer_offset_manager.commit_offset("readers", TOPIC, queue.queue_id, read_to)
        left += stored - (read_to if number else 0)
        told.append(f"queue {number}: {stored} messages, " + (f"read up to {read_to}" if number else "no record"))
    lab.run(consumer.update_consume_offset(queues[0], 1))
    said: list[Any] = []

    async def ask() -> None:
        said.append(await answer(consumer, queues))

    consumer.node.spawn(ask(), "backlog")
    lab.run_for(ms=ANSWER_MS)
    if said != [left]:
        yours = f"yours says {said[0]}" if said else "yours says nothing within a second"
        return Wrong(f"{left} messages are not read yet, and {yours}", trace="\n".join(told))
    return None


@lab_check("10/pause", points=1)
def pause(answer: Pause, *, seed: int) -> Right | Wrong | None:
    """Pulls of one queue through bursts and quiet stretches: how many find nothing?"""
    draw = draws_for(seed)
    longest_ms = draw.between("longest", 600, 2_400)
    most_empty = QUIET_MS // longest_ms + EMPTY_FREE
    coming = [draw.between(f"busy {n}", 0, 4_000) for n in range(12)]
    coming += [20_000 + draw.between(f"later {n}", 0, 15_000) for n in range(6)]
    coming.sort()
    at_ms, pause_ms, found_ms, lines = 0.0, 0.0, 0.0, list[str]()
    empty: list[float] = []
    while at_ms < PLAY_MS:
        found = bool(coming) and coming[0] <= at_ms
        coming = [moment for moment in coming if moment > at_ms]
        found_ms = at_ms if found else found_ms
        if not found:
            empty.append(at_ms)
        before, pause_ms = pause_ms, answer(pause_ms, found, longest_ms)
        lines.append(f"{at_ms / 1_000:>8.3f} s  pause {before:g} ms, found {found}: yours says {pause_ms!r}")
        wrong = _of_pause(pause_ms, found, longest_ms)
        recent = [moment for moment in empty if moment > max(at_ms - QUIET_MS, found_ms + SETTLE_MS)]
        if not wrong and len(recent) > most_empty:
            wrong = f"{len(recent)} pulls found nothing in less than 10 quiet seconds; allowed are {most_empty}"
        if wrong:
            return Wrong(wrong, trace="\n".join(lines[-LINES:]))
        at_ms += max(pause_ms, 1.0)
    return Right({"pulls for nothing": {"yours": len(empty), "with 200 ms": PLAY_MS // USUAL_PAUSE_MS}})


def _of_pause(pause_ms: Any, found: bool, longest_ms: int) -> str:
    """What is wrong with one pause, or nothing."""
    if not is_number(pause_ms):
        return f"a number of ms is wanted, and yours gives {type(pause_ms).__name__}"
    if not 0 <= pause_ms <= longest_ms:
        return f"a pause of 0 to {longest_ms} ms is wanted, and yours is {pause_ms:g} ms"
    if found and pause_ms > SOON_MS:
        return f"messages came, and yours waits {pause_ms:g} ms: more may be there; at most {SOON_MS} ms are allowed"
    if not found and pause_ms <= 0:
        return "nothing was found, and yours asks again at once, as fast as it can"
    return ""


class Stretch(NamedTuple):
    """From when to when something was out of order, in ms after the begin."""

    begin_ms: float
    end_ms: float


class Shop(ExerciseWorld):
    """One seed's world: orders come, the student's task carries them to the warehouse, and some things go wrong."""

    LINES = LINES
    SECONDS = "8.3f"

    def __init__(self, make_task: MakeTask, seed: int) -> None:
        super().__init__(seed)
        self.watch({"PullFinished": self._pulled})
        self.lab.name_server()
        self.lab.broker("broker-a")
        self.queues = 2 + seed % 2
        self.lab.create_topic(TOPIC, self.queues)
        self.service = self.lab.pull_schedule_service("shop", node="shop")
        self._make_task = make_task
        self._task = make_task(self._deliver)
        self.service.register_pull_task_callback(TOPIC, self._run_task)
        self.producer = self.lab.producer("till", node="till")
        self.sent: dict[str, tuple[float, int]] = {}
        self.delivered: dict[str, list[float]] = {}
        self.empty: list[tuple[float, int]] = []
        self.knocks: list[tuple[float, int]] = []
        self.overtakers: list[tuple[float, int, str, str]] = []
        """(time, queue id, the order that was delivered too early, the one that it overtook)"""
        self._refused: dict[int, dict[int, str]] = {}
        """By queue: offset -> order, for what was offered, refused and not delivered since."""
        self._draw()

    def _draw(self) -> None:
        """What comes and what goes wrong, and when: other times with every seed."""
        between = self.random.uniform
        first, second, last = between(3_000, 5_000), between(11_000, 13_000), between(54_000, 55_000)
        self.bursts = [(first, SMALL_BURST), (second, BURST), (last, BURST)]
        fills = (between(3_100, 5_500), second + between(300, 700), between(24_500, 27_000))
        self.full = [Stretch(begin, begin + between(2_000, 7_000)) for begin in fills]
        self.trickle = Stretch(23_000, 32_000)
        down = between(34_000, 37_000)
        self.broker_down = [Stretch(down, down + between(2_000, 4_000))] if self.seed % 3 == 0 else []
        killed = between(13_500, 22_000)
        self.killed = [Stretch(killed, killed + between(500, 2_000))] if self.seed % 2 else []

    # -- playing ----------------------------------------------------------------------------------------------------

    def play(self) -> None:
        """Let all of it happen."""
        lab = self.lab
        lab.run(self.producer.start())
        self.begin_ms = lab.now_ms
        self.at(0.0, "the shop opens", self._open)
        for at_ms, count in self.bursts:
            queue_id = self.random.randrange(self.queues) if count == BURST else -1
            self.at(at_ms, f"{count} orders come", partial(self._send, count, queue_id))
        at_ms = self.trickle.begin_ms
        while at_ms < self.trickle.end_ms:
            self.at(at_ms, "", partial(self._send, 1, -1))
            at_ms += self.random.uniform(500, 2_500)
        for stretch in self.full:
            self.at(stretch.begin_ms, "the warehouse is full", _nothing)
            self.at(stretch.end_ms, "the warehouse has room again", _nothing)
        for name, stretches in (("broker-a", self.broker_down), ("shop", self.killed)):
            for stretch in stretches:
                self.at(stretch.begin_ms, f"{name} is killed", partial(lab.crash, name))
                self.at(stretch.end_ms, f"{name} starts again", partial(self._restart, name))
        self.pass_to(PLAY_MS)

    def _run_task(self, queue: MessageQueue, context: Any) -> Any:
        return self._task(queue, context)

    def _restart(self, name: str) -> None:
        if name == self.service.node.name:
            # What a task keeps in memory dies with its process.
            self._task = self._make_task(self._deliver)
            self._refused.clear()
        self.lab.restart(name)

    def _open(self) -> None:
        self.service.node.spawn(self.service.start(), "open the shop")

    def _send(self, count: int, queue_id: int) -> None:
        self.producer.node.spawn(self._sending(count, queue_id), "orders")

    async def _sending(self, count: int, queue_id: int) -> None:
        for _ in range(count):
            name = f"order {len(self.sent)}"
            self.sent[name] = (float("inf"), -1)
            queue = MessageQueue(TOPIC, "broker-a", queue_id) if queue_id >= 0 else None
            try:
                result = await self.producer.send(Message(TOPIC, name), queue=queue)
            except (MQClientException, MQBrokerException, RemotingException):
                continue
            self.sent[name] = (self.now_ms, result.message_queue.queue_id)

    async def _deliver(self, message: MessageExt) -> bool:
        node = self.service.node
        await node.sleep(node.choose("warehouse", 9) + 2)
        now_ms = self.now_ms
        name = message.body.decode()
        if any(stretch.begin_ms <= now_ms < stretch.end_ms for stretch in self.full):
            self.knocks.append((now_ms, message.queue_id))
            self.tell(f"{name} is offered; the warehouse is full", message.queue_id)
            self._refused.setdefault(message.queue_id, {})[message.queue_offset] = name
            return False
        waiting = self._refused.setdefault(message.queue_id, {})
        waiting.pop(message.queue_offset, None)
        if waiting and min(waiting) < message.queue_offset:
            self.overtakers.append((now_ms, message.queue_id, name, waiting[min(waiting)]))
        self.delivered.setdefault(name, []).append(now_ms)
        self.tell(f"{name} is delivered", message.queue_id)
        return True

    def _pulled(self, record: Record) -> None:
        if not record.messages:
            self.empty.append((self.now_ms, record.queue_id))
            self.tell("a pull finds nothing", record.queue_id)


def _nothing() -> None:
    """The warehouse looks at its own clock."""


@lab_check("10/while-mine", points=1)
def while_mine(answer: Callable[..., Awaitable[int]], *, seed: int) -> Wrong | None:
    """A queue moves before the first order, between two of them, or never: no order is begun after that."""
    draw = draws_for(seed)
    lab = Lab(seed, history=False)
    node = lab.node("reader")
    messages = [f"order {number}" for number in range(draw.between("orders", 0, 9))]
    ms_each = draw.between("ms each", 50, 200)
    moves_ms = draw.one_of("at once", [0, 1, 1]) * draw.between("moves", 1, 1_500)
    handled: list[str] = []
    returned: list[int] = []

    async def handle(message: str) -> None:
        handled.append(message)
        await node.sleep(ms_each)

    async def task() -> None:
        returned.append(await answer(list(messages), handle, lambda: lab.now_ms < moves_ms))

    node.spawn(task(), "task")
    lab.run_for(seconds=4)
    want = [message for number, message in enumerate(messages) if number * ms_each < moves_ms]
    if handled == want and returned == [len(want)]:
        return None
    told = f"{len(messages)} orders of {ms_each} ms, and the queue moves after {moves_ms} ms"
    return Wrong(f"{told}: {len(want)} are to be handled; yours handles {handled} and returns {returned}")


@lab_check("10/comes-again", points=1)
def comes_again(answer: Callable[[list[tuple[int, int]]], int], *, seed: int) -> Wrong | None:
    """Programs that poll in any rhythm end in good order: what they get again is what was not committed."""
    draw = draws_for(seed)
    lab = Lab(seed)
    lab.name_server()
    broker = lab.broker("broker-a")
    lab.create_topic(TOPIC, 1)
    producer = lab.producer("till")
    lab.run(producer.start())
    for _ in range(40):
        lab.run(producer.send(Message(TOPIC, b"order")))
    batch, where = draw.between("batch", 1, 5), "CONSUME_FROM_FIRST_OFFSET"
    lite = lab.lite_pull_consumer("readers", consume_from_where=where, pull_batch_size=batch)
    lite.subscribe(TOPIC)
    lab.run(lite.start())
    lab.run_for(seconds=2)
    polls, at_s = [], 0
    for number in range(draw.between("polls", 3, 8)):
        polls.append((at_s, len(lab.run(lite.poll(0)))))
        pause_s = draw.between(f"pause {number}", 1, 8)
        at_s += pause_s
        lab.run_for(seconds=pause_s)
    lab.run(lite.shutdown())
    known = broker.running().consumer_offset_manager.query_offset("readers", TOPIC, 0)
    want = sum(got for _, got in polls) - max(0, known)
    foretold = answer(list(polls))
    return None if foretold == want else Wrong(f"after {polls} {want} come again, and yours says {foretold!r}")


@lab_check("10/pull-task", points=3)
def pull_task(answer: MakeTask, *, seed: int) -> Right | Wrong | None:
    """Every order reaches the warehouse soon, once and in its turn, while brokers and the shop's own process die."""
    shop = Shop(answer, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shop.play()
    for judge in (_forgotten, _lost, _overtaken, _twice, _late, _knocks, _waste):
        wrong = judge(shop)
        if wrong is not None:
            return wrong
    waited_ms = sum(times[0] - shop.sent[name][0] for name, times in shop.delivered.items())
    usual = round(PLAY_MS / USUAL_PAUSE_MS) * shop.queues
    return Right(
        {
            "pulls for nothing": {"yours": len(shop.empty), "a pause of 200 ms": usual},
            "seconds that orders waited": {"yours": round(waited_ms / 1_000)},
        }
    )


def _forgotten(shop: Shop) -> Wrong | None:
    """Was progress noted beyond an order that was not delivered?"""
    controller = shop.lab.brokers[0].running()
    for name, (at_ms, queue_id) in shop.sent.items():
        if at_ms == float("inf") or name in shop.delivered:
            continue
        progress = controller.consumer_offset_manager.query_offset("shop", TOPIC, queue_id)
        end = f"{name} is never delivered; at the end progress in queue {queue_id} is {progress}"
        waited = (PLAY_MS - at_ms) / 1_000
        return Wrong(
            f"{name} came at {at_ms / 1_000:.3f} s and was not delivered in {waited:.0f} s: is progress noted only up "
            "to what was delivered, and does the task come again after every trouble? (What a task keeps in memory is "
            "gone when its process is killed.)",
            shop.story_to(_when_it_went_wrong(shop, name, at_ms), end, queue_id),
        )
    return None


def _when_it_went_wrong(shop: Shop, name: str, came_ms: float) -> float:
    """When an order was offered for the last time, or when the process that had pulled it started again."""
    moments = [stretch.end_ms for stretch in shop.killed if came_ms < stretch.end_ms]
    moments += [line.at_ms for line in shop.lines if line.text.startswith(f"{name} is offered")]
    return min(max(moments), PLAY_MS) if moments else PLAY_MS


def _lost(shop: Shop) -> Wrong | None:
    """Did anything come that was never sent?"""
    for name, at_ms in shop.delivered.items():
        if name not in shop.sent:
            return Wrong(f"{name!r} was delivered and never sent", shop.story_to(at_ms[0], name))
    return None


def _overtaken(shop: Shop) -> Wrong | None:
    """Was an order delivered while an older one of its queue, which had been refused, still waited?"""
    if not shop.overtakers:
        return None
    at_ms, queue_id, early, waiting = shop.overtakers[0]
    return Wrong(
        f"{early} was delivered at {at_ms / 1_000:.3f} s, and {waiting}, which came before it in queue {queue_id} and "
        "had been refused, still waited: does the task stop at the first order that the warehouse does not take?",
        shop.story_to(at_ms, f"{early} overtakes {waiting}", queue_id),
    )


def _twice(shop: Shop) -> Wrong | None:
    """Was an order delivered twice although the process was not killed?"""
    if shop.killed:
        return None
    for name, times in shop.delivered.items():
        if len(times) > 1:
            return Wrong(
                f"{name} was delivered {len(times)} times, and nothing was killed: when the warehouse is full, is "
                "progress noted up to the order that it did not take?",
                shop.story_to(times[1], f"{name} is delivered once more", shop.sent[name][1]),
            )
    return None


def _late(shop: Shop) -> Wrong | None:
    """Did an order wait too long while nothing stood in its way?"""
    excused = [
        *(Stretch(s.begin_ms, s.end_ms + AFTER_FULL_MS) for s in shop.full),
        *(Stretch(s.begin_ms, s.end_ms + AFTER_BROKER_MS) for s in shop.broker_down),
        *(Stretch(s.begin_ms, s.end_ms + AFTER_PROCESS_MS) for s in shop.killed),
    ]
    for name, times in shop.delivered.items():
        came_ms, queue_id = shop.sent[name]
        lag_ms = _without(came_ms, times[0], excused)
        if lag_ms > LAG_MS:
            return Wrong(
                f"{name} came at {came_ms / 1_000:.3f} s and was delivered at {times[0] / 1_000:.3f} s: "
                f"{lag_ms / 1_000:.1f} s with an open warehouse, allowed are {LAG_MS / 1_000:g} s",
                shop.story_to(times[0], f"{name} is delivered at last", queue_id),
            )
    return None


def _without(begin_ms: float, end_ms: float, stretches: list[Stretch]) -> float:
    """How long it is from begin to end when the stretches do not count."""
    left, at_ms = 0.0, begin_ms
    for stretch in sorted(stretches):
        left += max(0.0, min(stretch.begin_ms, end_ms) - at_ms)
        at_ms = max(at_ms, min(stretch.end_ms, end_ms))
    return left + max(0.0, end_ms - at_ms)


def _knocks(shop: Shop) -> Wrong | None:
    """Was a full warehouse asked too often?"""
    for stretch in shop.full:
        seconds = (stretch.end_ms - stretch.begin_ms) / 1_000
        for queue_id in range(shop.queues):
            times = [at for at, of in shop.knocks if of == queue_id and stretch.begin_ms <= at < stretch.end_ms]
            most = KNOCKS_FREE + KNOCKS_A_SECOND * seconds
            if len(times) > most:
                return Wrong(
                    f"the warehouse was full for {seconds:.1f} s and was asked {len(times)} times for queue "
                    f"{queue_id}; allowed are {most:.0f}: does the pause grow while it stays full?",
                    shop.story_to(times[int(most)], "once too often", queue_id),
                )
    return None


def _waste(shop: Shop) -> Wrong | None:
    """Were there too many pulls that found nothing while nothing came?"""
    busy = sorted([at for at, _ in shop.sent.values() if at != float("inf")] + [t[-1] for t in shop.delivered.values()])
    for last, coming in zip(busy, [*busy[1:], PLAY_MS], strict=True):
        begin_ms = last + SETTLE_MS
        if coming - begin_ms < QUIET_MS:
            continue
        for queue_id in range(shop.queues):
            times = [at for at, of in shop.empty if of == queue_id and begin_ms <= at < begin_ms + QUIET_MS]
            if len(times) > MOST_EMPTY:
                return Wrong(
                    f"from {begin_ms / 1_000:.3f} s on nothing came for 10 s, and queue {queue_id} was pulled "
                    f"{len(times)} times for nothing; allowed are {MOST_EMPTY}",
                    shop.story_to(times[MOST_EMPTY], "one pull too many", queue_id),
                )
    return None
