"""Plays what was done to a real RocketMQ 5.3.3, and tells it in the words of the recorded time-lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlab import ConsumeConcurrentlyStatus, Lab, Message, MessageQueue
from mqlab.protocol import RequestCode

TIMELINES = Path(__file__).parents[1] / "golden" / "timelines"
Event = dict[str, Any]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes `phase_ms` is played at several phases against the periodic passes of the servers."""
    if "phase_ms" in metafunc.fixturenames:
        metafunc.parametrize("phase_ms", [0, 1_700, 3_400, 4_999])


@pytest.fixture
def recorded() -> Callable[[str], Event]:
    """The recorded time-line of this name."""
    return lambda name: json.loads((TIMELINES / f"{name}.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


class Stage:
    """One name server, one broker and clients; `start` (t = 0) is when the scenario of the time-line begins."""

    def __init__(self, seed: int = 7, queues: int = 1, phase_ms: int = 0, **broker: Any) -> None:
        self.lab = Lab(seed=seed)
        self.lab.name_server()
        self.lab.broker("broker-a", **broker)
        if queues:
            self.lab.create_topic("T", queues)
        self.lab.run_for(ms=phase_ms)
        self.start_us = self.lab.world.now_us
        self.delivered: list[tuple[float, str, str, int]] = []

    def at(self, ms: float) -> None:
        """Play up to `ms` of the scenario's time."""
        self.lab.world.run_to(self.start_us + round(ms * 1_000))

    @property
    def now_ms(self) -> float:
        """The scenario's time."""
        return (self.lab.world.now_us - self.start_us) / 1_000

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
        producer = self.lab.producer("PG", node=name)
        self.lab.run(producer.start())
        return producer

    def send(self, producer: Any, key: str, queue_id: int = 0) -> Any:
        """Send one message to a queue of T; returns the SendResult."""
        return self.lab.run(producer.send(Message("T", b"x", keys=key), queue=MessageQueue("T", "broker-a", queue_id)))

    # -- in the words of the recording ------------------------------------------------------------------------------

    def requests(self, who: str, code: RequestCode) -> list[Event]:
        """The requests of a client with this code: time and header fields."""
        found = []
        for record in self.lab.history.find("RequestSent", node=who, request_code=int(code)):
            found.append({"t_ms": self._time(record), "opaque": record.opaque, "connection": record.connection})
        return found

    def sequence(self, who: str) -> list[str]:
        """All requests of a client, in the order in which they went out, by name."""
        return [record.request_name for record in self.lab.history.find("RequestSent", node=who)]

    def events(self, kind: str, **fields: Any) -> list[Event]:
        """The events of a kind as dicts, with their time in the scenario as `t_ms`."""
        return [{"t_ms": self._time(r), "node": r.node, **r.fields} for r in self.lab.history.find(kind, **fields)]

    def _time(self, record: Any) -> float:
        return float((record.ts_us - self.start_us) / 1_000)


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
