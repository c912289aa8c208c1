"""The checks of lab 04: the next queue, attempts, the rest of a broker, and a rule that avoids those that are down."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, NamedTuple, Protocol

from mqlab import Lab, Message
from mqlab.check import Cases, Right, Wrong, lab_check
from mqlab.client import MQFaultStrategy
from mqlab.errors import MQBrokerException, MQClientException, RemotingException
from mqlab.protocol.message import MessageQueue
from mqlab.sim import Node
from mqlab.trace.record import Record

Probe = Callable[[str], Awaitable[bool]]
"""Does the broker of this name answer within 200 ms?"""


@lab_check("04/next-queue", points=1)
def next_queue(answer: Callable[[list[str], int, str], int], *, seed: int) -> Wrong | None:
    """Queues of one to three brokers are asked in turn, and the broker of the failed attempt is passed over."""
    random, cases = Random(seed), Cases()
    for count in (1, 2, 3):
        names = BROKERS[:count]
        brokers = [name for name in names for _ in range(random.randrange(1, 7))]
        first = random.randrange(1_000)
        for turn in (*range(len(brokers)), *range(first, first + len(brokers))):
            avoid = random.choice(names)
            in_turn = [(turn + step) % len(brokers) for step in range(len(brokers))]
            right = next((number for number in in_turn if brokers[number] != avoid), in_turn[0])
            said = answer(list(brokers), turn, avoid)
            told = f"next_queue({brokers}, {turn}, {avoid!r}) is {said!r}, and should be {right}"
            cases.note(right, said == right or Wrong(told))
    return cases.result


@lab_check("04/attempts", points=1)
def attempts(answer: Callable[[list[str], int], int], *, seed: int) -> Wrong | None:
    """Brokers are killed, hang or are well, and one synchronous send makes as many attempts as was foretold."""
    random, cases = Random(f"04/attempts/{seed}"), Cases()
    states = random.choices(("killed", "hangs", "well"), (4, 1, 1), k=random.randint(4, 6))
    lab = Lab(seed)
    lab.name_server()
    names = [lab.broker().name for _ in states]
    lab.create_topic("Orders", 1)
    calls = []
    for first in range(len(states)):
        most = random.randint(1, len(states))
        producer = lab.producer(f"shop-{first}", retry_times_when_send_failed=most - 1)
        lab.run(producer.start())
        while lab.run(producer.send(Message("Orders", b"x"))).message_queue.broker_name != names[first - 1]:
            pass  # the next one goes to the broker behind it
        calls.append((producer, [*states[first:], *states[:first]], most))
    for name, state in zip(names, states, strict=True):
        if state != "well":
            lab.act({"killed": "crash", "hangs": "freeze"}[state], node=name)
    lab.run_for(ms=5)
    began_ms = lab.now_ms
    for producer, _, _ in calls:
        producer.send(Message("Orders", b"x")).start()
    lab.run_for(seconds=4)
    for producer, in_turn, most in calls:
        attempted = lab.history.find("SendAttempted", node=producer.node.name)
        was = sum(event.ts_ms >= began_ms for event in attempted)
        foretold = answer(list(in_turn), most)
        told = f"attempts({in_turn}, {most}) is {foretold!r}, and the call made {was}"
        cases.note(was, foretold == was or Wrong(told))
    return cases.result


@lab_check("04/rest", points=1)
def rest_after(answer: Callable[[list[tuple[int, int]], int, bool], int], *, seed: int) -> Wrong | None:
    """Attempts that were quick, slow or failed are looked up in RocketMQ's table and in others."""
    random, cases = Random(seed), Cases()
    table = RESTS if seed % 2 else list(zip(_rising(random), _rising(random), strict=True))
    borders = [at_least for at_least, _ in table]
    took = [random.randrange(1, 20_000), *(random.choice(borders) + more for more in (-1, 0, 1)), 0, 3_000]
    for took_ms in took:
        for failed in (False, True):
            counts_ms = 10_000 if failed else took_ms
            right = max((rest for at_least, rest in table if counts_ms >= at_least), default=0)
            said = answer(list(table), took_ms, failed)
            told = f"rest_after(table, {took_ms}, failed={failed}) is {said!r}, and should be {right}"
            rows = [f"took at least {at_least} ms: rests {rest} ms" for at_least, rest in table]
            cases.note(right, said == right or Wrong(told, "\n".join(["the table:", *rows])))
    return cases.result


def _rising(random: Random) -> list[int]:
    return sorted(random.sample(range(50, 20_000, 50), 5))


class FaultTolerance(Protocol):
    """What the student builds."""

    def update_fault_item(self, broker: str, latency_ms: int, failed: bool) -> None:
        """Note how an attempt went."""

    def is_available(self, broker: str) -> bool:
        """May the next attempt go to this broker?"""


BROKERS = ("broker-a", "broker-b", "broker-c")
RESTS = [(50, 0), (100, 0), (550, 2_000), (1_800, 5_000), (3_000, 6_000), (5_000, 10_000), (15_000, 30_000)]
"""MQFaultStrategy's table: took at least ms, rests ms."""
EVERY_MS, REQUEST_LIMIT_MS, PROBE_LIMIT_MS = 200, 500, 200
PLAY_MS = 50_000
MOST_LOST = 2
"""Attempts at a broker that is down, for each time that it goes down."""
LONGEST_PAUSE_MS = 6_000
"""A broker that runs and is in the route is used at least so often; taking turns alone leaves it out for 2.4 s."""
MOST_PROBES, PROBE_WINDOW_MS = 12, 10_000
MOST_PROBES_IN_ALL = 300
"""Then no probe is answered any more: a rule that asks without a pause would ask thousands of times."""
HEALTHY_MS = 6_000
LINES = 14


class Attempt(NamedTuple):
    """One attempt at a broker, and whether it failed."""

    begin_ms: float
    broker: str
    failed: bool


class Outage(NamedTuple):
    """From `begin_ms` to `end_ms` a broker was killed or hung, or (not `broken`) was not in the producer's route."""

    begin_ms: float
    end_ms: float
    broker: str
    broken: bool


class JudgedStrategy(MQFaultStrategy):
    """RocketMQ's choice of queues, with the student's opinion of the brokers."""

    def __init__(self, node: Node, rule: FaultTolerance) -> None:
        super().__init__(node, True, False)
        self._rule = rule
        faults: Any = self.latency_fault_tolerance
        faults.is_available = lambda name: bool(rule.is_available(name))

    def update_fault_item(self, broker_name: str, latency_ms: int, isolated: bool, reachable: bool) -> None:
        """Hand an attempt to the student's rule."""
        self._rule.update_fault_item(broker_name, latency_ms, isolated)


class Shop:
    """One seed's world: three brokers, one producer under the student's rule, and faults at times of the seed."""

    def __init__(self, make_rule: Callable[[Node, Probe], FaultTolerance], seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.lab = Lab(seed, history=False)
        self.lab.name_server()
        for name in BROKERS:
            self.lab.broker(name)
        self.lab.create_topic("Orders", 4)
        self.producer = self.lab.producer("shop", send_msg_max_timeout_per_request=REQUEST_LIMIT_MS)
        self.lab.run(self.producer.start())
        self.lab.run(self.producer.send(Message("Orders", b"first")))
        self.begin_ms = self.lab.now_ms
        self.attempts: list[Attempt] = []
        self.outages: list[Outage] = []
        self.probes: list[tuple[float, str]] = []
        self.errors: list[tuple[float, str]] = []
        self.lines: list[tuple[float, str]] = []
        self._down_since: dict[str, float] = {}
        self._chosen_ms = 0.0
        self.lab.world.hooks.attach(self._see)
        node = self.producer.node
        self.producer.impl.fault_strategy = JudgedStrategy(node, make_rule(node, self._probe))

    def play(self) -> None:
        """Let the application send and the faults of this seed happen."""
        self.producer.node.spawn(self._send_steadily(), "load")
        for at_ms, do in sorted(self._faults(), key=lambda fault: fault[0]):
            self.lab.run_for(ms=self.begin_ms + at_ms - self.lab.now_ms)
            do()
        self.lab.run_for(ms=self.begin_ms + PLAY_MS - self.lab.now_ms)
        for broker in sorted(self._down_since):
            self._back(broker)

    def _faults(self) -> list[tuple[float, Callable[[], None]]]:
        """What happens to the brokers, and when: a hang in every world, and one more thing by the seed."""
        between, lab = self.random.uniform, self.lab
        hung = between(4_000, 8_000)
        woken = hung + between(4_000, 22_000)
        faults: list[tuple[float, Callable[[], None]]] = [
            (hung, lambda: self._down("broker-b", "hangs", lab.freeze)),
            (woken, lambda: self._up("broker-b", "goes on", lab.thaw)),
        ]
        if self.seed % 3 == 0:
            killed = between(hung + 1_000, woken - 1_000)
            faults.append((killed, lambda: self._down("broker-c", "is killed", lab.crash)))
            faults.append((killed + between(2_000, 9_000), lambda: self._up("broker-c", "starts again", lab.restart)))
        elif self.seed % 3 == 1:
            again = woken + between(3_000, 5_000)
            faults.append((again, lambda: self._down("broker-b", "hangs again", lab.freeze)))
            faults.append((again + between(4_000, 9_000), lambda: self._up("broker-b", "goes on", lab.thaw)))
        else:
            for number in range(3):
                slow = 1_500 + number * 14_000 + between(0, 2_000)
                faults.append((slow, lambda: self._slow(300)))
                faults.append((slow + 700, lambda: self._slow(0)))
        return faults

    def _down(self, broker: str, words: str, do: Callable[[str], None]) -> None:
        self._tell(f"{broker} {words}")
        self._down_since[broker] = self._now_ms()
        do(broker)

    def _up(self, broker: str, words: str, do: Callable[[str], None]) -> None:
        self._tell(f"{broker} {words}")
        self._back(broker)
        do(broker)

    def _back(self, broker: str) -> None:
        self.outages.append(Outage(self._down_since.pop(broker), self._now_ms(), broker, broken=True))

    def _slow(self, ms: int) -> None:
        self._tell("the way to broker-a is slow: 300 ms more" if ms else "the way to broker-a is quick again")
        self.lab.act("delay", source=self.producer.node.name, target="broker-a", ms=ms)

    # -- inside the world -------------------------------------------------------------------------------------------

    async def _send_steadily(self) -> None:
        while True:
            begin_ms = self._now_ms()
            try:
                await type(self.producer).send.inside(self.producer, Message("Orders", b"order"))  # type: ignore[attr-defined]  # see public_call
            except (MQClientException, MQBrokerException, RemotingException) as error:
                self.errors.append((self._now_ms(), type(error).__name__))
                self._tell(f"the application sees {type(error).__name__}")
            await self.producer.node.sleep(max(1, EVERY_MS - (self._now_ms() - begin_ms)))

    async def _probe(self, broker: str) -> bool:
        self.probes.append((self._now_ms(), broker))
        if len(self.probes) > MOST_PROBES_IN_ALL:
            await self.producer.node.sleep(PLAY_MS)
        instance = self.producer.impl.instance
        address = instance.routes.find_broker_address_in_publish(broker)
        try:
            if address is None:
                answered = False
            else:
                await instance.api.get_max_offset(address, MessageQueue("Orders", broker, 0), PROBE_LIMIT_MS)
                answered = True
        except (RemotingException, MQBrokerException):
            answered = False
        self._tell(f"  a probe of {broker}: {'it answers' if answered else 'no answer'}")
        return answered

    def _see(self, row: Any) -> None:
        record = Record(row)
        kind, at_ms = record.kind, record.ts_us / 1_000 - self.begin_ms
        if kind == "QueueSelected":
            self._chosen_ms = at_ms
        elif kind == "SendAttemptFailed":
            self.attempts.append(Attempt(self._chosen_ms, record.broker_name, failed=True))
            self._tell(f"  an attempt at {record.broker_name} fails after {at_ms - self._chosen_ms:.0f} ms")
        elif kind == "SendSucceeded":
            self.attempts.append(Attempt(self._chosen_ms, record.broker_name, failed=False))
        elif kind == "RouteUpdated" and record.topic == "Orders":
            self._note_route(record.broker_names.split(","), at_ms)

    def _note_route(self, known: list[str], at_ms: float) -> None:
        """A broker that the refreshed route leaves out cannot be used until the next refresh."""
        for broker in BROKERS:
            if broker not in known:
                self._tell(f"the route has no {broker}")
                self.outages.append(Outage(at_ms, at_ms + 30_100, broker, broken=False))

    def _now_ms(self) -> float:
        return self.lab.now_ms - self.begin_ms

    def _tell(self, words: str) -> None:
        self.lines.append((self._now_ms(), words))

    def story(self, until_ms: float, end: str) -> str:
        """The last lines of what happened until then; `end` is the line that it is all about."""
        lines = [(at_ms, words) for at_ms, words in self.lines if at_ms <= until_ms]
        told = [f"{at_ms / 1_000:>8.3f} s  {words}" for at_ms, words in lines[-LINES:]]
        return "\n".join([*told, f"{until_ms / 1_000:>8.3f} s  {end}   <- this one"])


@lab_check("04/fault-tolerance", points=3)
def fault_tolerance(answer: Callable[[Node, Probe], FaultTolerance], *, seed: int) -> Right | Wrong:
    """No call fails, at most 2 failed attempts for an outage, back in use within 6 s, and one probe a second."""
    shop = Shop(answer, seed)
    shop.play()
    for judge in (_delivered, _tried_too_often, _probed_often, _left_out, _probed_healthy):
        wrong = judge(shop)
        if wrong is not None:
            return wrong
    failed = sum(attempt.failed for attempt in shop.attempts)
    allowed = MOST_LOST * sum(outage.broken for outage in shop.outages)
    return Right({"failed attempts": {"yours": failed, "allowed": allowed}, "probes": {"yours": len(shop.probes)}})


def _delivered(shop: Shop) -> Wrong | None:
    """Was every order stored?"""
    if not shop.errors:
        return None
    at_ms, name = shop.errors[0]
    told = f"a call of send failed at {at_ms / 1_000:.3f} s with {name}, although a broker was there to take the order"
    return Wrong(told, shop.story(at_ms, "the call fails"))


def _tried_too_often(shop: Shop) -> Wrong | None:
    """Was a broker that was down tried again and again?"""
    for outage in shop.outages:
        if not outage.broken:
            continue
        lost = [
            attempt
            for attempt in shop.attempts
            if attempt.failed
            and attempt.broker == outage.broker
            and outage.begin_ms - REQUEST_LIMIT_MS <= attempt.begin_ms < outage.end_ms
        ]
        if len(lost) > MOST_LOST:
            seconds = (outage.end_ms - outage.begin_ms) / 1_000
            told = f"{outage.broker} was down for {seconds:.1f} s, and {len(lost)} attempts went there and failed"
            at_ms = lost[MOST_LOST].begin_ms
            return Wrong(f"{told}; at most {MOST_LOST} are allowed", shop.story(at_ms, f"{outage.broker} is tried"))
    return None


def _left_out(shop: Shop) -> Wrong | None:
    """Was a broker that runs left out for long?"""
    for broker in BROKERS:
        free_since_ms, longest = 0.0, (0.0, 0.0)
        marks = [(attempt.begin_ms, attempt.begin_ms) for attempt in shop.attempts if attempt.broker == broker]
        marks += [(outage.begin_ms, outage.end_ms) for outage in shop.outages if outage.broker == broker]
        for begin_ms, end_ms in [*sorted(marks), (float(PLAY_MS), float(PLAY_MS))]:
            if begin_ms - free_since_ms > longest[1] - longest[0]:
                longest = (free_since_ms, begin_ms)
            free_since_ms = max(free_since_ms, end_ms)
        pause_ms = longest[1] - longest[0]
        if pause_ms > LONGEST_PAUSE_MS:
            told = f"{broker} ran and was in the route from {longest[0] / 1_000:.3f} s on, and got nothing"
            told += f" for {pause_ms / 1_000:.1f} s; {LONGEST_PAUSE_MS // 1_000} s are allowed"
            at_ms = longest[0] + LONGEST_PAUSE_MS
            return Wrong(told, shop.story(at_ms, f"{broker} is still left out"))
    return None


def _probed_often(shop: Shop) -> Wrong | None:
    """Was a broker probed more than about once a second?"""
    for broker in BROKERS:
        times = [at_ms for at_ms, name in shop.probes if name == broker]
        for first, last in zip(times, times[MOST_PROBES:], strict=False):
            if last - first < PROBE_WINDOW_MS:
                count = sum(first <= at_ms < first + PROBE_WINDOW_MS for at_ms in times)
                told = f"{broker} was probed {count} times within {PROBE_WINDOW_MS // 1_000} s, from"
                told += f" {first / 1_000:.3f} s on; at most {MOST_PROBES} are allowed"
                return Wrong(told, shop.story(last, f"{broker} is probed"))
    return None


def _probed_healthy(shop: Shop) -> Wrong | None:
    """Was a broker probed that had done nothing wrong for a while?"""
    for at_ms, broker in shop.probes:
        failed = any(
            a.failed and a.broker == broker and at_ms - HEALTHY_MS < a.begin_ms <= at_ms for a in shop.attempts
        )
        down = any(o.broker == broker and o.begin_ms - 1 <= at_ms < o.end_ms + HEALTHY_MS for o in shop.outages)
        if not failed and not down:
            told = f"{broker} was probed at {at_ms / 1_000:.3f} s, although it had been well for some time"
            return Wrong(f"{told}: probes are for brokers that failed", shop.story(at_ms, f"{broker} is probed"))
    return None
