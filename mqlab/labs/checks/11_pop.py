"""The checks of lab 11: what may be taken, who works, when a reviver may judge, and the choice of an invisible time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from mqlab import ConsumeConcurrentlyStatus, Message
from mqlab.check import Cases, Right, Wrong, lab_check
from mqlab.client import ConsumeConcurrentlyContext
from mqlab.errors import MQClientException
from mqlab.exercises.exercise_world import ExerciseWorld
from mqlab.scenarios.membership import TOPIC
from mqlab.scenarios.take_or_own import TAKERS, TAKES
from mqlab.trace.record import Record

DELAYS_S = (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1_200, 1_800, 3_600, 7_200)
SECURITY_MS = 2_000
LEAST_MS, REVIVER_MS = 5_000, 5_000
MOST_IDLE = 0.3
CRASH_AT = 0.8
"""The share of the orders after which one of the two packers dies."""
LIMIT_MS = 400_000
MAY_SET = ("pop_invisible_time", "pop_batch_nums", "pop_threshold_for_queue")

Settings = Mapping[str, int]


# -- the small ones ---------------------------------------------------------------------------------------------------


@lab_check("11/may-take", points=1)
def may_take(answer: Callable[[dict[int, int], set[int], int, int, int], list[int]], *, seed: int) -> Wrong | None:
    """Which orders of a queue may be handed out, with some taken, some done, and some hidden for long enough."""
    draw = Random(f"11/may-take/{seed}")
    end, invisible_ms, now_ms = draw.randint(0, 12), draw.randint(5, 60) * 1_000, draw.randint(100_000, 200_000)
    taken = {offset: now_ms - draw.choice((0, 1, invisible_ms - 1, invisible_ms, invisible_ms + 1, 90_000))
             for offset in range(end) if draw.random() < 0.6}  # fmt: skip
    acked = {offset for offset in taken if draw.random() < 0.4}
    free = [
        offset
        for offset in range(end)
        if offset not in acked and (offset not in taken or now_ms - taken[offset] >= invisible_ms)
    ]
    got = answer(dict(taken), set(acked), end, now_ms, invisible_ms)
    if got == free:
        return None
    story = [f"{end} orders, hidden for {invisible_ms:,} ms, now it is {now_ms:,}"]
    for offset in range(end):
        when = f"taken {now_ms - taken[offset]:,} ms ago" if offset in taken else "never taken"
        story.append(f"order {offset}: {when}{', and acknowledged' if offset in acked else ''}")
    return Wrong(f"{free} may be taken, and yours says {got!r}", "\n".join(story))


@lab_check("11/at-work", points=1)
def at_work(answer: Callable[[int, int, bool], int], *, seed: int) -> Wrong | None:
    """How many members of a group get messages, with push and with Pop."""
    draw, cases = Random(f"11/at-work/{seed}"), Cases()
    queues = draw.randint(1, 16)
    for members in (draw.randint(1, 30), queues, queues + 1, 1):
        for pops, want in ((False, min(members, queues)), (True, members)):
            got = answer(members, queues, pops)
            told = f"{members} members on {queues} queues {'pop' if pops else 'are pushed to'}: {want} work"
            cases.note(want, got == want or Wrong(f"{told}, and yours says {got!r}"))
    return cases.result


@lab_check("11/may-judge", points=1)
def may_judge(answer: Callable[[int, int, int], bool], *, seed: int) -> Wrong | None:
    """Whether a reviver may judge a check point, by the newest time of delivery that it has read."""
    draw, cases = Random(f"11/may-judge/{seed}"), Cases()
    pop_ms, invisible_ms = draw.randint(10_000, 90_000), draw.randint(5, 300) * 1_000
    for behind in (-invisible_ms, -1, 0, 1, SECURITY_MS - 1, SECURITY_MS, SECURITY_MS + 1, draw.randint(0, 4_000)):
        newest_ms = pop_ms + invisible_ms + behind
        got, want = answer(pop_ms, invisible_ms, newest_ms), behind > SECURITY_MS
        told = f"popped at {pop_ms:,} ms for {invisible_ms:,} ms, the newest read is due at {newest_ms:,} ms"
        told += f": the check point {'may be judged' if want else 'has to wait'}, and yours says {got!r}"
        cases.note(want, bool(got) is want or Wrong(told))
    return cases.result


@lab_check("11/again-in", points=1)
def again_in(answer: Callable[[int, Sequence[int]], int], *, seed: int) -> Wrong | None:
    """After how many seconds a message is asked for again, by the number of its tries."""
    draw, cases = Random(f"11/again-in/{seed}"), Cases()
    for delays_s in (DELAYS_S, sorted(draw.sample(range(1, 7_200), draw.randint(2, 20)))):
        last = len(delays_s) - 1
        for tries in (draw.randint(0, last), 0, last, last + 1, draw.randint(last + 2, 40)):
            want = delays_s[min(tries, last)]
            got = answer(tries, list(delays_s))
            told = f"with {tries} tries before, and the delays {list(delays_s)}, it is {want} s"
            cases.note(want, got == want or Wrong(f"{told}, and yours says {got!r}"))
    return cases.result


# -- the large one ----------------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """What is known of two packers before their settings are chosen; times are ms.

    `usual_ms` and `slowest_ms` is what a listener needs for an order; `again_ms` how soon after a packer's death all
    orders have to be packed, those included that it held.
    """

    threads: int
    usual_ms: int
    slowest_ms: int
    again_ms: int

    def __str__(self) -> str:
        return (
            f"two packers of {self.threads} threads, {self.usual_ms} ms for an order, {self.slowest_ms} ms at most; "
            f"when one has died, all has to be packed after {self.again_ms} ms"
        )


def case_of(seed: int) -> Case:
    """Two packers by chance of the seed; there is room for settings that are right, and not for much more."""
    draw = Random(f"11/settings/{seed}")
    # Three kinds of packers, so far apart that no settings suit two of them.
    slowest_ms = round(draw.choice((1_500, 5_000, 16_000)) * draw.uniform(1, 1.4))
    again_ms = max(LEAST_MS, 2 * slowest_ms + 500) + REVIVER_MS + 2 * slowest_ms
    return Case(draw.choice((2, 3, 4)), round(slowest_ms / draw.uniform(3, 5)), slowest_ms, again_ms)


class Shop(ExerciseWorld):
    """One seed's world: two packers that pop with the given settings, many orders at once, and a death."""

    SECONDS = "7.2f"

    def __init__(self, case: Case, seed: int) -> None:
        super().__init__(seed, draws="11/packing")
        self.case = case
        self.orders = 14 * case.threads
        self.twice = ""
        """The first order that was packed twice although nobody had died."""
        self._needs = {f"order {n}": self._needed() for n in range(self.orders)}
        self._calls: dict[str, list[tuple[str, float]]] = {}
        """Of each order who was called with it, and when."""
        self._done: set[str] = set()
        self._packed_ms = 0
        self.died_ms = 0.0

    def _needed(self) -> int:
        if self.random.random() < 0.15:
            return self.case.slowest_ms
        return round(self.case.usual_ms * self.random.uniform(0.8, 1.2))

    def open(self, settings: Settings) -> None:
        """Start everything; MQClientException for settings that a consumer refuses."""
        lab = self.lab
        lab.name_server()
        lab.broker("broker-a")
        lab.create_topic(TOPIC, 4)
        lab.set_message_request_mode(TOPIC, TAKERS, "POP")
        threads = {"consume_thread_min": self.case.threads, "consume_thread_max": self.case.threads}
        for name in ("packer-1", "packer-2"):
            consumer = lab.consumer(TAKERS, node=name, **(TAKES | threads | dict(settings)))
            consumer.subscribe(TOPIC, "*")
            consumer.register_message_listener(self._listener(name))
            lab.run(consumer.start())
        lab.run_for(seconds=5)
        self._shop = lab.producer("shop")
        lab.run(self._shop.start())
        self.watch({"MessagesTaken": self._taken, "PopGivenUp": self._given_up, "MessageRevived": self._revived})

    def _listener(self, name: str) -> Any:
        async def pack(messages: Any, context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
            order = messages[0].body.decode()
            self._begins(name, order)
            await context.sleep(self._needs.get(order, 10))
            if order in self._needs:
                self._done.add(order)
                self._packed_ms += self._needs[order]
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

        return pack

    def _begins(self, name: str, order: str) -> None:
        if order not in self._needs:
            return
        calls = self._calls.setdefault(order, [])
        if calls and not (self.died_ms and calls[-1][0] == "packer-1") and not self.twice:
            first_ms = calls[-1][1]
            begun = f"it was first begun {(self.lab.now_ms - first_ms) / 1_000:.1f} s before"
            needs = f"and needs {self._needs[order] / 1_000:.1f} s"
            self.twice = f"{order} is packed twice, and not because of a death: {begun}, {needs}"
        calls.append((name, self.lab.now_ms))

    def idle(self) -> float:
        """Let the packers work until one of them is to die; the share of their threads' time without an order."""
        lab = self.lab
        began_ms = lab.now_ms
        for order in self._needs:
            lab.run(self._shop.send(Message(TOPIC, order.encode())))
        until = int(self.orders * CRASH_AT)
        lab.run_until(lambda: len(self._done) >= until or bool(self.twice), limit_ms=LIMIT_MS)
        return 1 - self._packed_ms / ((lab.now_ms - began_ms) * 2 * self.case.threads)

    def again(self) -> float:
        """Kill a packer; after how many ms all orders are packed, those included that it held."""
        lab = self.lab
        self.died_ms = lab.now_ms
        self.tell(f"packer-1 dies; {self.orders - len(self._done)} of {self.orders} orders are left")
        lab.crash("packer-1")
        number = 0
        while lab.now_ms < self.died_ms + self.case.again_ms and len(self._done) < self.orders and not self.twice:
            lab.run(self._shop.send(Message(TOPIC, b"one more %d" % number)))
            lab.run_for(ms=250)
            number += 1
        return lab.now_ms - self.died_ms

    @property
    def left(self) -> list[str]:
        """The orders that nobody has packed."""
        return [order for order in self._needs if order not in self._done]

    # -- watching ---------------------------------------------------------------------------------------------------

    def _taken(self, record: Record) -> None:
        if record.messages > 1 or not self.died_ms:
            self.tell(f"{record.node} takes {record.messages}, and holds {record.unacked} now")

    def _given_up(self, record: Record) -> None:
        self.tell(f"{record.node} keeps silent about {record.messages}: {record.reason}")

    def _revived(self, record: Record) -> None:
        self.tell(f"the broker brings one back, {record.invisible_ms + record.late_ms:,} ms after it was taken")

    def story(self, settings: Settings) -> str:
        """The case, the settings, and what happened last."""
        given = ", ".join(f"{name}={value}" for name, value in settings.items())
        return "\n".join([str(self.case), given, *self.written(*self.lines[-self.LINES :]).splitlines()])


@lab_check("11/settings", points=3)
def settings(answer: Callable[[Case], Settings], *, seed: int) -> Right | Wrong:
    """Two packers pack each order once while they live, lose little time, and all is packed soon after one dies."""
    case = case_of(seed)
    chosen = answer(case)
    wrong = _not_settings(chosen)
    if wrong:
        return Wrong(wrong, str(case))
    shop = Shop(case, seed)
    try:
        shop.open(chosen)
    except MQClientException as error:
        return Wrong(f"the consumer refuses to start: {error}", shop.story(chosen))
    idle = shop.idle()
    if shop.twice:
        return Wrong(shop.twice, shop.story(chosen))
    if idle > MOST_IDLE:
        told = f"the threads had no order in {idle:.0%} of their time, {MOST_IDLE:.0%} are allowed"
        return Wrong(told, shop.story(chosen))
    took_ms = shop.again()
    if shop.twice:
        return Wrong(shop.twice, shop.story(chosen))
    if shop.left:
        told = f"{case.again_ms:,} ms after packer-1 died {len(shop.left)} orders were not packed: {shop.left[0]}"
        return Wrong(told, shop.story(chosen))
    return Right({"ms until all was packed after a death": {"yours": round(took_ms), "allowed": case.again_ms}})


def _not_settings(chosen: object) -> str:
    """What is wrong with an answer before it is played, or nothing."""
    if not isinstance(chosen, Mapping):
        return f"a dictionary of settings is wanted, and yours gives {type(chosen).__name__}"
    for name, value in chosen.items():
        if name not in MAY_SET:
            return f"you may set {', '.join(MAY_SET)}, and yours sets {name!r}"
        if not isinstance(value, int) or isinstance(value, bool):
            return f"{name} must be a whole number, and yours is {value!r}"
        if value < 0:
            return f"{name} must not be negative, and yours is {value!r}"
    return ""
