"""The checks of lab 06: pulls, gauges, memory and progress, and limits judged by peak memory and by lost time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple

from mqlab import ConsumeConcurrentlyStatus, Lab, Message
from mqlab.check import Cases, Right, Wrong, is_number, lab_check
from mqlab.client import ConsumeConcurrentlyContext, ConsumeFromWhere
from mqlab.errors import MQClientException
from mqlab.exercises.exercise_world import ExerciseWorld
from mqlab.scenarios.flow_control import slow_consumer, taking
from mqlab.trace.record import Record

KIB, MIB = 1024, 1024 * 1024
REFUSAL_MS, OLD_MS, PULL = 50, 200, 32
MOST_LOST = 0.05
"""The share of the threads' time that may pass without a message."""
MEASURED = 0.7
"""The share of the backlog over which is judged: at its end threads are idle for other reasons."""
LIMIT_MS = 120_000
MAY_SET = (
    "pull_threshold_for_queue",
    "pull_threshold_size_for_queue",
    "consume_concurrently_max_span",
    "pull_batch_size",
)

Settings = Mapping[str, int]


class Case(NamedTuple):
    """What is known of a consumer before its limits are set; sizes are bytes, times ms.

    `memory` is for the bodies that it holds of all its queues together; `body` is the size of one when it is unpacked,
    `wire` when it travels.
    """

    memory: int
    queues: int
    body: int
    wire: int
    threads: int
    listener_ms: int
    round_trip_ms: int

    @property
    def needed(self) -> int:
        """What the threads have in hand, and what they use up between two looks and while a pull is on its way."""
        return self.threads + -(-self.threads * (REFUSAL_MS + self.round_trip_ms) // self.listener_ms)

    def __str__(self) -> str:
        return (
            f"memory {self.memory / MIB:.2f} MiB, {_counted(self.queues, 'queue')}, bodies of {self.body // KIB} KiB "
            f"({self.wire} bytes on the wire), {self.threads} threads, listener {self.listener_ms} ms, "
            f"round trip {self.round_trip_ms} ms"
        )


def case_of(seed: int) -> Case:
    """A consumer by chance of the seed; its memory is just enough, or ample in one of four."""
    random = Random(seed)
    queues, threads = random.choice((1, 1, 2, 4)), random.choice((2, 4, 8))
    listener_ms, round_trip_ms = random.choice((10, 20, 40)), random.choice((2, 10, 30))
    body = random.choice((8, 16, 48, 100)) * KIB
    case = Case(0, queues, body, body // 40, threads, listener_ms, round_trip_ms)
    in_a_pull = -(-threads * round_trip_ms // (listener_ms * queues))
    room = -(-case.needed // queues) + in_a_pull + random.choice((1, 2, 3, 60))
    return case._replace(memory=room * queues * body + random.randrange(body))


class Shift(ExerciseWorld):
    """One seed's world: a backlog, and a consumer with the limits that the rule has given."""

    LINES = 12

    def __init__(self, case: Case, seed: int) -> None:
        super().__init__(seed)
        self.case = case
        self.lab.name_server()
        self.lab.broker("broker-a")
        self.lab.create_topic("Orders", case.queues)
        self.peak = 0
        self.consumed = 0
        self.began_ms = 0.0
        self.lines_at_peak = 0
        self._refused: dict[int, int] = {}

    def play(self, settings: Settings) -> float:
        """Let the consumer eat most of a backlog; the share of its threads' time in which they had no message."""
        case = self.case
        backlog = min(300, max(2 * case.memory // case.body, 30 * case.threads))
        self._fill(backlog)
        self._start(settings)
        target = int(backlog * MEASURED)
        self.lab.run_until(lambda: self.consumed >= target, limit_ms=LIMIT_MS)
        needed_ms = target * case.listener_ms / case.threads
        return 1 - needed_ms / (self.lab.now_ms - self.began_ms)

    def _fill(self, messages: int) -> None:
        producer = self.lab.producer("shop")
        self.lab.run(producer.start())
        body = bytes(range(256)) * (self.case.body // 256)
        for _ in range(messages):
            self.lab.run(producer.send(Message("Orders", body)))

    def _start(self, settings: Settings) -> None:
        case, lab = self.case, self.lab
        own: dict[str, Any] = {"consume_thread_min": case.threads, "consume_thread_max": case.threads}
        own["consume_from_where"] = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
        self._consumer = lab.consumer("readers", **own | dict(settings))
        for source, target in (("consumer-1", "broker-a"), ("broker-a", "consumer-1")):
            lab.act("delay", source=source, target=target, ms=case.round_trip_ms / 2)
        self._consumer.subscribe("Orders", "*")
        self._consumer.register_message_listener(self._listen)
        self.watch({"FlowControlled": self._controlled, "PullRequested": self._pulled, "MessagesCached": self._came})
        lab.run(self._consumer.start())

    async def _listen(self, messages: Any, context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
        self.began_ms = self.began_ms or self.lab.now_ms
        await context.sleep(self.case.listener_ms)
        self.consumed += len(messages)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    # -- watching ---------------------------------------------------------------------------------------------------

    def _controlled(self, record: Record) -> None:
        times = self._refused[record.queue_id] = self._refused.get(record.queue_id, 0) + 1
        if times == 1:
            over = f"{record.reason}: {record.cached} > {record.limit}"
            self.tell(f"queue {record.queue_id}: a pull is refused ({over}), again in {REFUSAL_MS} ms")

    def _pulled(self, record: Record) -> None:
        if record.topic == "Orders":
            times = self._refused.pop(record.queue_id, 0)
            after = f" after {_counted(times, 'refusal')}" if times else ""
            self.tell(f"queue {record.queue_id}: a pull goes out{after}")

    def _came(self, record: Record) -> None:
        held = self._consumer.process_queues.values()
        before = sum(queue.msg_count for queue in held) - record.messages
        size = sum(queue.msg_size for queue in held)
        idle = max(0, self.case.threads - before) if self.began_ms else 0
        told = f"; {idle} of {self.case.threads} threads had nothing to do" if idle else ""
        came = f"{_counted(record.messages, 'message')} came, {record.cached} held"
        self.tell(f"queue {record.queue_id}: {came}, {size / MIB:.2f} MiB in all queues{told}")
        if size > self.peak:
            self.peak, self.lines_at_peak = size, len(self.lines)

    def story(self, settings: Settings, until: int) -> str:
        """The case, the settings, and the last lines up to a place."""
        given = ", ".join(f"{name}={value}" for name, value in settings.items())
        told = self.written(*self.lines[max(0, until - self.LINES) : until])
        return "\n".join([str(self.case), given, *told.splitlines()])


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


@lab_check("06/next-pull", points=1)
def next_pull(answer: Callable[[int, int, int], float], *, seed: int) -> Wrong | None:
    """Slow consumers with other limits pull again when it was foretold."""
    random = Random(f"06/next-pull/{seed}")
    limit, ms_each = random.randint(12, 24), random.randint(31, 99)
    if (PULL - limit) * ms_each % REFUSAL_MS == 0:
        ms_each += 1  # else a message would be done just when the consumer looks, and microseconds decide
    lab = Lab(seed)
    lab.name_server()
    lab.broker()
    lab.create_topic("Orders", 1)
    shop = lab.producer("shop")
    lab.run(shop.start())
    for _ in range(PULL + 1):
        lab.run(shop.send(Message("Orders", b"an order")))
    consumer = slow_consumer(lab, taking(ms=ms_each), pull_threshold_for_queue=limit)
    lab.run(consumer.start())
    refused_ms = lab.run_until_event("FlowControlled").ts_ms
    was_ms = lab.run_until_event("PullRequested", topic="Orders").ts_ms - refused_ms
    foretold = answer(PULL, limit, ms_each)
    if is_number(foretold) and abs(foretold - was_ms) <= 1:
        return None
    told = f"next_pull_ms(held={PULL}, limit={limit}, ms_each={ms_each})"
    return Wrong(f"{told} is {foretold!r}, and the pull went out after {was_ms:.0f} ms")


@lab_check("06/refuse-old", points=1)
def refuse_old(answer: Callable[[list[int], int], int], *, seed: int) -> Wrong | None:
    """Queues with old requests, with young ones, and with none."""
    random = Random(f"06/refuse-old/{seed}")
    now_ms = random.randint(1_000, 5_000)
    for waited_ms in (random.choices(range(400), k=random.randint(1, 9)), [OLD_MS, OLD_MS - 1], [OLD_MS + 9] * 3, []):
        before = sorted(now_ms - ms for ms in waited_ms)
        left = [at for at in before if now_ms - at < OLD_MS]
        queue = list(before)
        got = answer(queue, now_ms)
        if (got, queue) != (len(before) - len(left), left):
            told = f"at {now_ms} ms, with {before}, {len(before) - len(left)} are refused and {left} stay"
            return Wrong(f"{told}; yours returns {got!r} and leaves {queue}")
    return None


@lab_check("06/most-bytes", points=1)
def most_bytes(answer: Callable[[int, int, int, int], int], *, seed: int) -> Right | Wrong:
    """The most that consumers with 1 to 64 queues can hold, from their limits, batches and bodies."""
    draw = Random(f"06/most-bytes/{seed}")
    queues, limit = draw.choice((1, 4, 16, 64)), draw.choice((20, 100, 1_000))
    batch, body = draw.choice((1, 8, 32)), draw.randint(1, 200) * KIB
    by_the_limit = queues * limit * body
    want = by_the_limit + queues * batch * body
    got = answer(queues, limit, batch, body)
    if got != want:
        return Wrong(
            f"{_counted(queues, 'queue')}, limit {limit}, batch {batch}, bodies of {body:,} bytes: {want:,} at most, "
            f"and yours says {got!r}"
        )
    return Right({"MiB": {"by the limits alone": by_the_limit // MIB, "that may be held": want // MIB}})


@lab_check("06/held-back-by", points=1)
def held_back_by(answer: Callable[..., str | None], *, seed: int) -> Wrong | None:
    """Which of three gauges holds a pull back, with values around their limits."""
    draw, cases = Random(f"06/held-back-by/{seed}"), Cases()
    most, most_mib, widest = draw.randint(1, 1_000), draw.randint(1, 100), draw.randint(1, 2_000)
    for _ in range(8):
        count = most + draw.choice((-1, 0, 0, 1))
        size = most_mib * MIB + draw.choice((-1, 0, 1, MIB - 1, MIB))
        span = widest + draw.choice((-1, 0, 1))
        over = (("count", count - most), ("size", size // MIB - most_mib), ("span", span - widest))
        want = next((name for name, above in over if above > 0), None)
        got = answer(count, size, span, most, most_mib, widest)
        told = f"{count} messages of {most}, {size:,} bytes of {most_mib} MiB, a span of {span} of {widest}"
        cases.note(want, got == want or Wrong(f"{told}: {want!r}, and yours says {got!r}"))
    return cases.result


@lab_check("06/progress", points=1)
def progress(answer: Callable[[list[int], set[int]], int], *, seed: int) -> Right | Wrong:
    """The one number of a queue, whatever is done and in whatever order."""
    draw, cases = Random(f"06/progress/{seed}"), Cases()
    all_done, known = 0, 0
    for share in draw.sample((0.0, 0.5, 0.95, 1.0), 4):
        pulled = list(range(draw.randint(1, 60)))
        done = {offset for offset in pulled if draw.random() < share}
        want = 0
        while want in done:
            want += 1
        got = answer(list(pulled), set(done))
        left = [offset for offset in pulled if offset not in done]
        told = f"{len(pulled)} were pulled, not done are {left}"
        cases.note(want, got == want or Wrong(f"{told}: the offset is {want}, and yours says {got!r}"))
        all_done, known = all_done + len(done), known + want
    return cases.result or Right({"messages": {"done": all_done, "done, and the broker knows": known}})


@lab_check("06/limits", points=3)
def limits(answer: Callable[[Case], Settings], *, seed: int) -> Right | Wrong:
    """Consumers with 1 to 4 queues hold no more than their memory, and their threads wait at most 5 % of the time."""
    case = case_of(seed)
    settings = answer(case)
    wrong = _not_settings(settings)
    if wrong:
        return Wrong(wrong, str(case))
    shift = Shift(case, seed)
    try:
        lost = shift.play(settings)
    except MQClientException as error:
        return Wrong(f"the consumer refuses to start: {error}", shift.story(settings, 0))
    if shift.peak > case.memory:
        told = (
            f"the consumer held {shift.peak / MIB:.2f} MiB of bodies at a time, {case.memory / MIB:.2f} MiB are allowed"
        )
        return Wrong(told, shift.story(settings, shift.lines_at_peak))
    if lost > MOST_LOST:
        told = f"the threads had nothing to do in {lost:.0%} of their time, {MOST_LOST:.0%} are allowed"
        return Wrong(told, shift.story(settings, len(shift.lines)))
    held = {"yours": shift.peak // KIB, "allowed": case.memory // KIB}
    idle_ms = max(0, round(lost * (shift.lab.now_ms - shift.began_ms) * case.threads))
    return Right({"KiB held at the most": held, "ms in which a thread had no message": {"yours": idle_ms}})


def _not_settings(settings: object) -> str:
    """What is wrong with an answer before it is played, or nothing."""
    if not isinstance(settings, Mapping):
        return f"a dictionary of settings is wanted, and yours gives {type(settings).__name__}"
    for name, value in settings.items():
        if name not in MAY_SET:
            return f"you may set {', '.join(MAY_SET)}, and yours sets {name!r}"
        if not isinstance(value, int) or isinstance(value, bool):
            return f"{name} must be a whole number, and yours is {value!r}"
    return ""
