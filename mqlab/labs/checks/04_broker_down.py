"""The checks of lab 04: the next queue, attempts, the rest of a broker, and a rule that avoids those that are down."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from typing import Any, NamedTuple, Protocol

from mqlab import Lab, Message
from mqlab.check import Cases, Right, Wrong, lab_check
from mqlab.client import MQFaultStrategy
from mqlab.errors import MQBrokerException, MQClientException, RemotingException
from mqlab.exercises.exercise_world import ExerciseWorld
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


class Shop(ExerciseWorld):
    """One seed's world: three brokers, one producer under the student's rule, and faults at times of the seed."""

    SECONDS = "8.3f"

    def __init__(self, make_rule: Callable[[Node, Probe], FaultTolerance], seed: int) -> None:
        super().__init__(seed)
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
        self._down_since: dict[str, float] = {}
        self._chosen_ms = 0.0
        self.watch(
            {
                "QueueSelected": self._selected,
                "SendAttemptFailed": self._attempt_failed,
                "SendSucceeded": self._sent,
                "RouteUpdated": self._route_updated,
            }
        )
        node = self.producer.node
        self.producer.impl.fault_strategy = JudgedStrategy(node, make_rule(node, self._probe))

    def play(self) -> None:
        """Let the application send and the faults of this seed happen."""
        self.producer.node.spawn(self._send_steadily(), "load")
        self._plan()
        self.pass_to(PLAY_MS)
        for broker in sorted(self._down_since):
            self._back(broker)

    def _plan(self) -> None:
        """What happens to the brokers, and when: a hang in every world, and one more thing by the seed."""
        between, lab = self.random.uniform, self.lab
        hung = between(4_000, 8_000)
        woken = hung + between(4_000, 22_000)
        self.at(hung, "broker-b hangs", partial(self._down, "broker-b", lab.freeze))
        self.at(woken, "broker-b goes on", partial(self._up, "broker-b", lab.thaw))
        if self.seed % 3 == 0:
            killed = between(hung + 1_000, woken - 1_000)
            self.at(killed, "broker-c is killed", partial(self._down, "broker-c", lab.crash))
            started = killed + between(2_000, 9_000)
            self.at(started, "broker-c starts again", partial(self._up, "broker-c", lab.restart))
        elif self.seed % 3 == 1:
            again = woken + between(3_000, 5_000)
            self.at(again, "broker-b hangs again", partial(self._down, "broker-b", lab.freeze))
            self.at(again + between(4_000, 9_000), "broker-b goes on", partial(self._up, "broker-b", lab.thaw))
        else:
            for number in range(3):
                slow = 1_500 + number * 14_000 + between(0, 2_000)
                self.at(slow, "the way to broker-a is slow: 300 ms more", partial(self._slow, 300))
                self.at(slow + 700, "the way to broker-a is quick again", partial(self._slow, 0))

    def _down(self, broker: str, do: Callable[[str], None]) -> None:
        self._down_since[broker] = self.now_ms
        do(broker)

    def _up(self, broker: str, do: Callable[[str], None]) -> None:
        self._back(broker)
        do(broker)

    def _back(self, broker: str) -> None:
        self.outages.append(Outage(self._down_since.pop(broker), self.now_ms, broker, broken=True))

    def _slow(self, ms: int) -> None:
        self.lab.act("delay", source=self.producer.node.name, target="broker-a", ms=ms)

    # -- inside the world -------------------------------------------------------------------------------------------

    async def _send_steadily(self) -> None:
        while True:
            begin_ms = self.now_ms
            try:
                await self.producer.send(Message("Orders", b"order"))
            except (MQClientException, MQBrokerException, RemotingException) as error:
                self.errors.append((self.now_ms, type(error).__name__))
                self.tell(f"the application sees {type(error).__name__}")
            await self.producer.node.sleep(max(1, EVERY_MS - (self.now_ms - begin_ms)))

    async def _probe(self, broker: str) -> bool:
        self.probes.append((self.now_ms, broker))
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
        self.tell(f"  a probe of {broker}: {'it answers' if answered else 'no answer'}")
        return answered

    def _selected(self, record: Record) -> None:
        self._chosen_ms = self.now_ms

    def _attempt_failed(self, record: Record) -> None:
        self.attempts.append(Attempt(self._chosen_ms, record.broker_name, failed=True))
        self.tell(f"  an attempt at {record.broker_name} fails after {self.now_ms - self._chosen_ms:.0f} ms")

    def _sent(self, record: Record) -> None:
        self.attempts.append(Attempt(self._chosen_ms, record.broker_name, failed=False))

    def _route_updated(self, record: Record) -> None:
        """A broker that the refreshed route leaves out cannot be used until the next refresh."""
        for broker in BROKERS if record.topic == "Orders" else ():
            if broker not in record.broker_names.split(","):
                self.tell(f"the route has no {broker}")
                self.outages.append(Outage(self.now_ms, self.now_ms + 30_100, broker, broken=False))


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
    return Wrong(told, shop.story_to(at_ms, "the call fails"))


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
            return Wrong(f"{told}; at most {MOST_LOST} are allowed", shop.story_to(at_ms, f"{outage.broker} is tried"))
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
            return Wrong(told, shop.story_to(at_ms, f"{broker} is still left out"))
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
                return Wrong(told, shop.story_to(last, f"{broker} is probed"))
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
            return Wrong(f"{told}: probes are for brokers that failed", shop.story_to(at_ms, f"{broker} is probed"))
    return None
