"""The checks of lab 01: small ones on routes and reports, and a cache of routes in worlds where machines fail."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from random import Random
from typing import Any, NamedTuple, Protocol

from mqlab import Lab, Message
from mqlab.check import Right, Wrong, is_number, lab_check
from mqlab.errors import MQClientException, RemotingException
from mqlab.exercises.exercise_world import ExerciseWorld, Line
from mqlab.protocol import BrokerData, PermName, QueueData, RemotingCommand, RequestCode, ResponseCode, TopicRouteData
from mqlab.protocol.headers import GetRouteInfoRequestHeader
from mqlab.remoting import RemotingClient
from mqlab.sim import Node
from mqlab.trace.record import Record

Queues = dict[str, int]
"""What counts of a route: how many queues take messages, by broker name."""

Ask = Callable[[str], Awaitable[TopicRouteData]]


class RouteCache(Protocol):
    """What the student builds."""

    async def route(self, topic: str) -> TopicRouteData | None:
        """The route, or None while none was ever known."""


# -- where a producer may send to ----------------------------------------------------------------------------------


@lab_check("01/queues-to-send-to", points=1)
def queues_to_send_to(answer: Callable[[TopicRouteData], list[tuple[str, int]]], *, seed: int) -> Right | Wrong | None:
    """All queues that take messages: of brokers whose master is there, where the topic may be written."""
    route = _any_route(Random(seed))
    masters = {broker.broker_name for broker in route.broker_datas if broker.master_addr}
    want = sorted(
        (data.broker_name, number)
        for data in route.queue_datas
        if data.broker_name in masters and PermName.is_writeable(data.perm)
        for number in range(data.write_queue_nums)
    )
    got = answer(route)
    if isinstance(got, list) and sorted(got) == want:
        return Right({"queues to send to": {"yours": len(got), "in the routes": _write_queues(route)}})
    return Wrong(_difference(got, want), "\n".join(_route_lines(route)))


def _any_route(random: Random) -> TopicRouteData:
    """One to five brokers, some without a master, some whose queues may not be written."""
    names = [f"broker-{letter}" for letter in "abcde"[: random.randint(1, 5)]]
    random.shuffle(names)
    brokers = [
        BrokerData("DefaultCluster", name, {n: f"10.0.{number}.{n}:10911" for n in random.choice([(0,), (0, 1), (1,)])})
        for number, name in enumerate(names)
    ]
    random.shuffle(names)
    queues = [
        QueueData(name, random.randint(1, 8), random.randint(1, 8), random.choice([6, 6, 4, 2])) for name in names
    ]
    return TopicRouteData(queues, brokers)


def _write_queues(route: TopicRouteData) -> int:
    return sum(data.write_queue_nums for data in route.queue_datas)


def _difference(got: Any, want: list[tuple[str, int]]) -> str:
    if not isinstance(got, list):
        return f"a list of pairs is wanted, and yours gives {type(got).__name__}"
    missing = [pair for pair in want if pair not in got]
    too_many = [pair for pair in got if pair not in want]
    if missing:
        return f"{missing[0]} takes messages, and yours leaves it out"
    return f"{too_many[0]} takes no messages, and yours names it" if too_many else "yours names a queue twice"


def _route_lines(route: TopicRouteData) -> list[str]:
    lines = []
    for data in route.queue_datas:
        ids = next(sorted(b.broker_addrs) for b in route.broker_datas if b.broker_name == data.broker_name)
        nums = f"{data.write_queue_nums} write queues, {data.read_queue_nums} read queues"
        lines.append(f"{data.broker_name}: {nums}, perm {data.perm}, copies with the ids {ids}")
    return lines


# -- the scan for silent brokers -----------------------------------------------------------------------------------


@lab_check("01/drop-silent", points=1)
def drop_silent(answer: Callable[[dict[str, tuple[int, int]], int], list[str]], *, seed: int) -> Right | Wrong | None:
    """Every broker whose last report counts no longer leaves the table, and no other one."""
    random = Random(seed)
    now_ms = random.randint(200_000, 900_000)
    before = {}
    for number in range(random.randint(1, 6)):
        counts_ms = random.choice([120_000, 120_000, 10_000])
        silent_ms = random.choice([0, 9_000, 31_000, counts_ms, counts_ms + 1, counts_ms + 4_000])
        before[f"broker-{number}"] = (now_ms - silent_ms, counts_ms)
    want = {name for name, (last_ms, counts_ms) in before.items() if now_ms - last_ms > counts_ms}
    table = dict(before)
    got = answer(table, now_ms)
    story = "\n".join(
        f"{name}: last report {now_ms - last_ms:,} ms ago, counts for {counts_ms:,} ms"
        for name, (last_ms, counts_ms) in before.items()
    )
    told = f"to be dropped: {', '.join(sorted(want)) or 'none'}"
    if not isinstance(got, list) or sorted(got) != sorted(want):
        return Wrong(f"{told}; yours returns {got!r}", story)
    if table.keys() != before.keys() - want:
        return Wrong(f"{told}; in your table are left: {', '.join(sorted(table)) or 'none'}", story)
    return Right({"brokers dropped": {"yours": len(got), "in the tables": len(before)}})


# -- when a producer is right again --------------------------------------------------------------------------------

SLACK_S = 0.1


@lab_check("01/right-after", points=1)
def right_after(answer: Callable[[float, float], float], *, seed: int) -> Wrong | None:
    """A cable is mended, the broker reports, the producer asks: it has the new route when that was foretold."""
    random = Random(f"01/right-after/{seed}")
    lab = Lab(seed)
    lab.name_server()
    lab.broker("broker-a")
    lab.create_topic("Payments", 4)
    lab.run_for(ms=random.randint(0, 29_000))
    producer = lab.producer("shop")
    lab.run(producer.start())
    lab.run_for(ms=random.randint(1_000, 20_000))
    lab.run(producer.send(Message("Payments", b"the first one asks for the route")))
    lab.partition("broker-a", "namesrv-1")
    lab.run_for(seconds=1)
    lab.create_topic("Payments", 8)
    # The connection must have ended by then: else the reports that are under way would come with the mending.
    lab.run_for(ms=random.randint(150_000, 200_000))
    mended_ms = lab.now_ms
    lab.heal("broker-a", "namesrv-1")
    report_ms = lab.run_until_event("BrokerRegistered", node="namesrv-1").ts_ms - mended_ms
    was_ms = lab.run_until_event("RouteUpdated", node="producer-1", topic="Payments").ts_ms - mended_ms
    asked = lab.history.find("RequestSent", node="producer-1", request_name="GET_ROUTEINFO_BY_TOPIC")
    asked_ms = [event.ts_ms - mended_ms for event in asked if event.ts_ms > mended_ms]
    report_s, refresh_s, was_s = (round(ms / 1_000, 1) for ms in (report_ms, asked_ms[0], was_ms))
    foretold = answer(report_s, refresh_s)
    if is_number(foretold) and abs(foretold - was_s) <= SLACK_S:
        return None
    asked_for = f"right_after(report_s={report_s}, refresh_s={refresh_s})"
    steps = [(report_ms, "the broker reports"), *((ms, "the producer asks") for ms in asked_ms)]
    told = f"{asked_for} is {foretold!r}, and the producer had the new route after {was_s} s"
    return Wrong(told, "\n".join(f"{ms / 1_000:>6.1f} s  {what}" for ms, what in sorted(steps)))


# -- a cache of routes ---------------------------------------------------------------------------------------------

MAX_AGE_MS = 5_000
LATE_MS = 150
"""What a route may be older than MAX_AGE_MS: the time of a call on a quick network."""
MOST_ANSWERED, MOST_FAILED = (15, 60), (12, 10)
"""So many questions in so many seconds for one topic: one every 5 s makes 12 in 60, one every second 10 in 10."""
UNUSED_MS, MOST_UNUSED = 6_000, 2
ASK_TIMEOUT_MS, LONGEST_WAIT_MS = 3_000, 6_500
STUCK_MS = 10_000
PLAY_MS, STEP_MS = 66_000, 1_000
OF_ROUTES = ("TopicRouteChanged", "TopicRouteRemoved", "NodeCrashed", "NodeFrozen", "NodeThawed", "NodeStarted")


class Question(NamedTuple):
    """One question to the name server, and whether it was answered with a route."""

    at_ms: float
    topic: str
    answered: bool


class Call(NamedTuple):
    """One call of `route`: when it began and returned, and with what."""

    begin_ms: float
    end_ms: float
    caller: str
    topic: str
    queues: Queues | None
    error: str

    @property
    def result(self) -> str:
        """What the caller got, in words."""
        return f"{self.caller} {self.error}" if self.error else f"{self.caller} gets {_told(self.queues)}"


class Truth:
    """What the name server would have answered at any time; None while it knew nothing, was down or hung."""

    def __init__(self, name_server: str) -> None:
        self._name_server = name_server
        self._known: dict[str, Queues] = {}
        self._reachable = True
        self.by_topic: dict[str, list[tuple[float, Queues | None]]] = {}

    def note(self, record: Record) -> None:
        """Something has happened to a route, or to a machine."""
        kind, at_ms = record.kind, record.ts_us / 1_000
        if kind in ("TopicRouteChanged", "TopicRouteRemoved"):
            queues = self._known.setdefault(record.topic, {})
            if kind == "TopicRouteChanged":
                queues[record.broker_name] = record.write_queue_nums
            else:
                queues.pop(record.broker_name, None)
            self._note(record.topic, at_ms)
        elif record.target == self._name_server:
            self._reachable = kind in ("NodeThawed", "NodeStarted")
            if kind == "NodeCrashed":
                self._known = {topic: {} for topic in self._known}
            for topic in self._known:
                self._note(topic, at_ms)

    def _note(self, topic: str, at_ms: float) -> None:
        now = dict(self._known[topic]) if self._reachable and self._known[topic] else None
        self.by_topic.setdefault(topic, []).append((at_ms, now))

    def during(self, topic: str, begin_ms: float, end_ms: float) -> list[Queues | None]:
        """Everything that was true at some time of a stretch."""
        changes = [(0.0, None), *self.by_topic.get(topic, [])]
        ends = [at_ms for at_ms, _ in changes[1:]] + [float("inf")]
        spans = zip(changes, ends, strict=True)
        return [queues for (at_ms, queues), end in spans if at_ms <= end_ms and end > begin_ms]

    def last_change_ms(self, topic: str, before_ms: float) -> float:
        """When what is true now became so."""
        return max((at_ms for at_ms, _ in self.by_topic.get(topic, []) if at_ms <= before_ms), default=0.0)


class Town(ExerciseWorld):
    """One seed's world: a name server, brokers, and an application whose tasks all ask one cache for routes."""

    LINES = 12
    SECONDS = "8.3f"

    def __init__(self, make_cache: Callable[[Node, Ask], RouteCache], seed: int) -> None:
        super().__init__(seed)
        self.truth = Truth("namesrv-1")
        self.watch(dict.fromkeys(OF_ROUTES, self.truth.note))
        self.lab.name_server()
        self.lab.broker("broker-a")
        self.lab.broker("broker-b")
        self.lab.create_topic("Orders", 4)
        self.lab.create_topic("Reports", 2)
        self.questions: list[Question] = []
        self.calls: list[Call] = []
        self.waiting: dict[str, tuple[float, str]] = {}
        self.node = self.lab.node("application")
        self._remoting = RemotingClient(self.node)
        self._remoting.update_name_server_address_list([self.lab.name_servers[0].address])
        self._remoting.start()
        self.begin_ms = self.lab.now_ms
        self._cache = make_cache(self.node, self._ask)

    def play(self) -> Iterator[None]:
        """Let the application and the faults of this seed happen; stops every STEP_MS, so that it can be looked at."""
        if self.seed % 2:
            self.lab.act("delay", source="application", target="namesrv-1", ms=300)
        for number in range(self.random.randint(3, 6)):
            self.node.spawn(self._caller(f"caller-{number}", Random(self.seed * 100 + number)), f"caller-{number}")
        self._plan()
        for until_ms in range(STEP_MS, PLAY_MS + 1, STEP_MS):
            self.pass_to(until_ms)
            yield

    def _plan(self) -> None:
        """What happens to the cluster, and when: other times and other faults with every seed."""
        lab, between = self.lab, self.random.uniform
        killed, broken = between(9_000, 16_000), between(32_000, 42_000)
        self.at(between(10_000, 30_000), "topic Later is created", partial(self._create, "Later", 3))
        self.at(between(8_000, 30_000), "Orders grows to 8 queues on broker-a", partial(self._create, "Orders", 8))
        self.at(killed, "broker-b is killed", partial(lab.crash, "broker-b"))
        self.at(killed + between(8_000, 12_000), "broker-b starts again", partial(lab.restart, "broker-b"))
        mended = broken + between(4_000, 12_000)
        if self.seed % 3 == 0:
            self.at(broken, "the name server is killed", partial(lab.crash, "namesrv-1"))
            self.at(mended, "the name server starts again, empty", partial(lab.restart, "namesrv-1"))
        elif self.seed % 3 == 1:
            self.at(broken, "the name server hangs", partial(lab.freeze, "namesrv-1"))
            self.at(mended, "the name server goes on", partial(lab.thaw, "namesrv-1"))
        else:
            self.at(broken, "broker-b is killed", partial(lab.crash, "broker-b"))

    def _create(self, topic: str, queues: int) -> None:
        self.lab.create_topic(topic, queues, brokers=["broker-a"])

    # -- inside the world -------------------------------------------------------------------------------------------

    async def _ask(self, topic: str) -> TopicRouteData:
        begin_ms = self.now_ms
        self.tell(f"the cache asks the name server for {topic}", topic)
        request = RemotingCommand.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequestHeader(topic))
        try:
            response = await self._remoting.invoke_sync(None, request, ASK_TIMEOUT_MS)
        except RemotingException as error:
            self.questions.append(Question(begin_ms, topic, answered=False))
            self.tell(f"  no answer: {type(error).__name__}", topic)
            raise
        answered = response.code == ResponseCode.SUCCESS
        self.questions.append(Question(begin_ms, topic, answered))
        if not answered:
            self.tell("  the name server knows no such topic", topic)
            raise MQClientException(response.remark or "", response.code)
        route: TopicRouteData = TopicRouteData.decode(response.body or b"")
        self.tell(f"  the name server says {_told(_queues(route))}", topic)
        return route

    async def _caller(self, name: str, random: Random) -> None:
        while True:
            topics = ["Orders", "Orders", "Later"] + ["Reports"] * (self.now_ms < 15_000)
            await self._call(name, random.choice(topics))
            wait_ms = random.randint(50, 1_200)
            if random.random() < 0.3:  # all who wait for a full half second come together
                wait_ms = 500 - int(self.now_ms) % 500
            await self.node.sleep(wait_ms)

    async def _call(self, name: str, topic: str) -> None:
        begin_ms = self.now_ms
        self.waiting[name] = (begin_ms, topic)
        queues, problem = None, ""
        try:
            route = await self._cache.route(topic)
            if isinstance(route, TopicRouteData):
                queues = _queues(route)
            elif route is not None:
                problem = f"gets {type(route).__name__}: hand on what `ask` gave you, or None"
        except (MQClientException, RemotingException) as error:
            problem = f"gets {type(error).__name__}: return what was known before, or None"
        del self.waiting[name]
        call = Call(begin_ms, self.now_ms, name, topic, queues, problem)
        last = next((past for past in reversed(self.calls) if past.topic == topic), None)
        if last is None or (last.queues, last.error) != (queues, problem):
            self.tell(call.result, topic)
        self.calls.append(call)

    def story(self, topic: str, until_ms: float, end: str = "") -> str:
        """The last lines of what happened to a topic until then; `end` is the line that it is all about."""
        lines = self.lines_about(topic, until_ms=until_ms)
        if end and not (lines and lines[-1].text == end):
            lines.append(Line(until_ms, end, topic))
        return self.written(*lines[-self.LINES :]) + ("   <- this one" if end else "")


def _queues(route: TopicRouteData) -> Queues:
    return {data.broker_name: data.write_queue_nums for data in route.queue_datas}


def _told(queues: Queues | None) -> str:
    return ", ".join(f"{name}: {count} queues" for name, count in sorted(queues.items())) if queues else "None"


@lab_check("01/route-cache", points=3)
def route_cache(answer: Callable[[Node, Ask], RouteCache], *, seed: int) -> Right | Wrong:
    """Routes at most 5 s old, for at most 15 questions a minute and topic, while brokers and the name server fail."""
    town = Town(answer, seed)
    judged = 0
    for _ in town.play():
        wrong = _results(town, judged)
        if wrong is not None:
            return wrong
        judged = len(town.calls)
    for judge in (_stuck, _answered, _failed, _unused):
        wrong = judge(town)
        if wrong is not None:
            return wrong
    return Right({"questions": {"yours": len(town.questions), "without a cache": len(town.calls)}})


def _stuck(town: Town) -> Wrong | None:
    """Did every call return?"""
    for name, (begin_ms, topic) in sorted(town.waiting.items()):
        if begin_ms < PLAY_MS - STUCK_MS:
            told = f"{name} called route({topic!r}) at {begin_ms / 1_000:.3f} s and still waits at the end"
            return Wrong(f"{told}: does whoever asks let the others go on, also after an error?",
                         town.story(topic, begin_ms + ASK_TIMEOUT_MS))  # fmt: skip
    return None


def _results(town: Town, first: int) -> Wrong | None:
    """Was what the callers got good enough, and in time? `first`: the first call that was not judged before."""
    for call in town.calls[first:]:
        explanation = _complaint(town, call)
        if explanation:
            return Wrong(explanation, town.story(call.topic, call.end_ms, call.result))
    return None


def _complaint(town: Town, call: Call) -> str:
    what = f"at {call.end_ms / 1_000:.3f} s route({call.topic!r})"
    if call.error:
        return f"at {call.end_ms / 1_000:.3f} s a call of route({call.topic!r}) {call.error}"
    if call.end_ms - call.begin_ms > LONGEST_WAIT_MS:
        waited = (call.end_ms - call.begin_ms) / 1_000
        return f"{what} returned after {waited:.1f} s: after a time-out, those who waited shall not ask one by one"
    end_ms = town.begin_ms + call.end_ms
    true = town.truth.during(call.topic, end_ms - MAX_AGE_MS - LATE_MS, end_ms)
    if call.queues is None and any(q.topic == call.topic and q.answered for q in _before(town, call)):
        return f"{what} returned None, although a route was known before: an old route is better than none"
    if call.queues in true or (call.queues is not None and _was_ignorant(town, call)):
        return ""
    since = (end_ms - town.truth.last_change_ms(call.topic, end_ms - MAX_AGE_MS - LATE_MS)) / 1_000
    return (
        f"{what} returned {_told(call.queues)}, which the name server would not have said for {since:.1f} s; "
        "5 s are allowed"
    )


def _before(town: Town, call: Call) -> list[Question]:
    return [question for question in town.questions if question.at_ms < call.begin_ms - LATE_MS * 4]


def _was_ignorant(town: Town, call: Call) -> bool:
    """Was there no answer to be had a short time ago? Then the last one known may be given out for a while."""
    end_ms = town.begin_ms + call.end_ms
    return None in town.truth.during(call.topic, end_ms - MAX_AGE_MS - ASK_TIMEOUT_MS * 2, end_ms)


def _answered(town: Town) -> Wrong | None:
    """Were too many questions asked that the name server answered?"""
    return _too_many(town, answered=True, limit=MOST_ANSWERED, hint="one every 5 s would make 12")


def _failed(town: Town) -> Wrong | None:
    """Were too many questions asked while there was no answer to be had?"""
    return _too_many(town, answered=False, limit=MOST_FAILED, hint="after a failure one a second would make 10")


def _too_many(town: Town, *, answered: bool, limit: tuple[int, int], hint: str) -> Wrong | None:
    most, seconds = limit
    for topic in ("Orders", "Later", "Reports"):
        asked = sorted(q.at_ms for q in town.questions if q.topic == topic and q.answered == answered)
        for first, last in zip(asked, asked[most:], strict=False):
            if last - first < seconds * 1_000:
                rate = sum(first <= at_ms < first + seconds * 1_000 for at_ms in asked)
                told = f"{rate} questions for {topic} within {seconds} s, from {first / 1_000:.3f} s on, were "
                told += "answered" if answered else "asked without an answer"
                return Wrong(f"{told}; at most {most} are allowed ({hint})", town.story(topic, last + 1))
    return None


def _unused(town: Town) -> Wrong | None:
    """Was the name server asked for topics that nobody wants any more?"""
    for topic in ("Reports", "Orders", "Later"):
        wanted = [call.end_ms for call in town.calls if call.topic == topic]
        wanted += [begin_ms for begin_ms, waits_for in town.waiting.values() if waits_for == topic]
        unused = [
            question
            for question in town.questions
            if question.topic == topic
            and not any(question.at_ms - UNUSED_MS <= at_ms <= question.at_ms + LONGEST_WAIT_MS for at_ms in wanted)
        ]
        if len(unused) > MOST_UNUSED:
            told = f"nobody called route({topic!r}) after {max(wanted, default=0.0) / 1_000:.3f} s"
            return Wrong(f"{told}, and the cache still asked {len(unused)} times: every question costs",
                         town.story(topic, unused[MOST_UNUSED].at_ms + 1))  # fmt: skip
    return None
