"""Plays what was done to a real RocketMQ 5.3.3, and tells it in the words of the recorded time-lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mqlab import ConsumeConcurrentlyStatus, Lab, Message, MessageQueue
from mqlab.errors import MQClientException, RemotingException
from mqlab.protocol import RequestCode
from tests.worlds import shop, started_producer

TIMELINES = Path(__file__).parents[1] / "golden" / "timelines"
Event = dict[str, Any]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes `phase_ms` is played at several phases against the periodic passes of the servers."""
    if "phase_ms" in metafunc.fixturenames:
        metafunc.parametrize("phase_ms", [0, 1_700, 3_400, 4_999])


@pytest.fixture(scope="module")
def once() -> Callable[..., Any]:
    """once(play, stage, phase_ms): what `play` makes of these arguments, made once for all tests of a file."""
    return cache(lambda play, *arguments: play(*arguments))


@pytest.fixture
def recorded() -> Callable[[str], Event]:
    """The recorded time-line of this name."""
    return lambda name: json.loads((TIMELINES / f"{name}.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


class Timed:
    """A lab in which a scenario begins at `start_us` (t = 0); what happened, with its time as `t_ms`."""

    def __init__(self, lab: Lab, phase_ms: int) -> None:
        self.lab = lab.run_for(ms=phase_ms)
        self.start_us = lab.world.now_us

    def at(self, ms: float) -> None:
        """Play up to `ms` of the scenario's time."""
        self.lab.world.run_to(self.start_us + round(ms * 1_000))

    @property
    def now_ms(self) -> float:
        """The scenario's time."""
        return (self.lab.world.now_us - self.start_us) / 1_000

    def events(self, kind: str, **fields: Any) -> list[Event]:
        """The events of a kind as dicts."""
        return [{"t_ms": self.time(r), "node": r.node, **r.fields} for r in self.lab.history.find(kind, **fields)]

    def time(self, record: Any) -> float:
        return float((record.ts_us - self.start_us) / 1_000)


class Stage(Timed):
    """One name server, one broker and clients; t = 0 is when the scenario of the time-line begins."""

    def __init__(self, seed: int = 7, queues: int = 1, phase_ms: int = 0, **broker: Any) -> None:
        super().__init__(shop(seed=seed, queues=queues, **broker), phase_ms)
        self.delivered: list[tuple[float, str, str, int]] = []

    def consumer(self, name: str = "A", listen_ms: float = 0, **settings: Any) -> Any:
        """A push consumer of group G on topic T from the first offset, on the machine `name`; not started."""
        consumer = self.lab.consumer("G", node=name, consume_from_where="CONSUME_FROM_FIRST_OFFSET", **settings)
        consumer.subscribe("T", "*")

        async def listener(messages: list[Any], context: Any) -> ConsumeConcurrentlyStatus:
            for message in messages:
                self.delivered.append((self.now_ms, name, message.keys, message.queue_id))
            if listen_ms:
                await context.sleep(listen_ms)
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

        consumer.register_message_listener(listener)
        return consumer

    def producer(self, name: str = "P") -> Any:
        """A started producer on the machine `name`."""
        return started_producer(self.lab, "PG", node=name)

    def send(self, producer: Any, key: str, queue_id: int = 0) -> Any:
        """Send one message to a queue of T; returns the SendResult."""
        return self.lab.run(producer.send(Message("T", b"x", keys=key), queue=MessageQueue("T", "broker-a", queue_id)))

    # -- in the words of the recording ------------------------------------------------------------------------------

    def requests(self, who: str, code: RequestCode) -> list[Event]:
        """The requests of a client with this code: time and header fields."""
        found = []
        for record in self.lab.history.find("RequestSent", node=who, request_code=int(code)):
            found.append({"t_ms": self.time(record), "opaque": record.opaque, "connection": record.connection})
        return found

    def sequence(self, who: str) -> list[str]:
        """All requests of a client, in the order in which they went out, by name."""
        return [record.request_name for record in self.lab.history.find("RequestSent", node=who)]


@pytest.fixture
def stage() -> type[Stage]:
    """The class that builds a stage: `stage(queues=2)`."""
    return Stage


@pytest.fixture
def smallest() -> Callable[[Event, str], float]:
    """The smallest of the runs, nearest to the constant: `smallest(timeline, "start returned -> first pull")`."""

    def of(timeline: Event, step: str) -> float:
        (found,) = [s["per_run_ms"] for s in timeline["summary"] if s["step"].startswith(step)]
        return float(min(value for value in found if value is not None))

    return of


class Sent(NamedTuple):
    """One call of a producer, from the call to its return or (async) its callback."""

    begin_ms: float
    cost_ms: float
    broker: str
    queue_id: int
    error: str


class Senders(Timed):
    """Two brokers with four queues of T each, and producers that send once in a period; a blocking call delays all
    later ones.

    `settings` has the producers by name; those whose names begin with "async" and "oneway" send so. `start_us` (t = 0)
    is set by whoever breaks something.
    """

    def __init__(self, settings: dict[str, dict[str, Any]], period_ms: int, phase_ms: int, seed: int = 7) -> None:
        super().__init__(shop(seed=seed, brokers=2, queues=4), phase_ms)
        self.start_us = 0
        self.period_ms = period_ms
        self.calls: dict[str, list[Sent]] = {name: [] for name in settings}
        self.producers = {}
        for number, (name, config) in enumerate(settings.items()):
            producer = self.producers[name] = started_producer(self.lab, "PG", node=name, **config)
            producer.node.spawn(self._load(name, producer), "load")
            self.lab.run_for(ms=37 + number)

    async def _load(self, name: str, producer: Any) -> None:
        number = 0
        while True:
            begin_us = self.lab.world.now_us
            message = Message("T", b"x", keys=f"{name}{number}")
            number += 1
            if name.startswith("async"):
                await producer.send_async(message, self._callback(name, begin_us))
            elif name.startswith("oneway"):
                await producer.send_oneway(message)
                self._note(name, begin_us, None, None)
            else:
                try:
                    result = await producer.send(message)
                except (MQClientException, RemotingException) as error:
                    self._note(name, begin_us, None, error)
                else:
                    self._note(name, begin_us, result, None)
            cost_ms = (self.lab.world.now_us - begin_us) / 1_000
            await producer.node.sleep(max(0, self.period_ms - cost_ms))

    def _callback(self, name: str, begin_us: int) -> Callable[[Any, Exception | None], None]:
        return lambda result, error: self._note(name, begin_us, result, error)

    def _note(self, name: str, begin_us: int, result: Any, error: Exception | None) -> None:
        begin_ms = begin_us / 1_000
        cost_ms = self.lab.world.now_us / 1_000 - begin_ms
        broker, queue_id = ("", -1)
        if result is not None:
            broker, queue_id = result.message_queue.broker_name, result.message_queue.queue_id
        text = f"{type(error).__name__}: {error}" if error else ""
        self.calls[name].append(Sent(begin_ms, cost_ms, broker, queue_id, text))

    # -- what came out, in the scenario's time ----------------------------------------------------------------------

    def between(self, name: str, begin_ms: float, end_ms: float) -> list[Sent]:
        """The calls of a producer that began between two times."""
        start_ms = self.start_us / 1_000
        found = [call._replace(begin_ms=call.begin_ms - start_ms) for call in self.calls[name]]
        return sorted(call for call in found if begin_ms <= call.begin_ms < end_ms)

    def requests(self, name: str, broker: str) -> list[float]:
        """When messages of a producer really went out on a channel to a broker."""
        address = f"{self.lab.processes[broker].node.spec.ip}:10911"
        sent = self.lab.history.find("RequestSent", node=name, request_code=int(RequestCode.SEND_MESSAGE_V2))
        return [self.time(record) for record in sent if record.remote == address]


@pytest.fixture(scope="session")
def senders() -> type[Senders]:
    """The class that builds two brokers and their producers."""
    return Senders
