"""What must not grow: an idle broker's slices, a message's cost in a long backlog, a queue's cost among many."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from functools import cache
from statistics import median
from typing import Any

import psutil

from benchmarks.harness import Figure, figure, seconds_of
from mqlab import Lab, Message
from mqlab.client import DefaultMQProducer, MessageQueue
from mqlab.protocol.headers import PullMessageRequestHeader
from mqlab.protocol.sysflag import PullSysFlag

TOPIC = "TopicScale"
BODY = b"x" * 100
FEW, MANY = 10_000, 1_000_000
QUEUES, TOPICS = 10_000, 10
SAMPLE = 5_000
PULLS = 200

_inside_send = DefaultMQProducer.send.inside  # type: ignore[attr-defined]  # see public_call


def idle_broker() -> Figure:
    """The slices of a virtual minute in which nobody uses a broker and its name server."""
    lab = Lab(seed=1, history=False)
    lab.name_server()
    lab.broker("broker-a")
    lab.create_topic(TOPIC)
    lab.run_for(seconds=60)
    before = lab.world.slice_no
    lab.run_for(seconds=60)
    return figure("idle broker", lab.world.slice_no - before, "slices/minute", aim=400, better="lower")


# -- in a process of its own, so that its memory is its own ------------------------------------------------------------


class Backlog:
    """A broker, a producer, and nobody who consumes."""

    def __init__(self, topics: int, queues: int) -> None:
        self.lab = Lab(seed=1, history=False)
        self.lab.name_server()
        self.lab.broker("broker-a")
        self.topics = [f"{TOPIC}{number}" for number in range(topics)]
        for topic in self.topics:
            self.lab.create_topic(topic, queues)
        self.producer: DefaultMQProducer = self.lab.producer("orders")
        self.lab.run(self.producer.start())

    def _wait(self, work: Any) -> Any:
        return self.lab.world.wait_for(self.producer.node.spawn(work, "work").join(), limit_ms=10**9)

    def send(self, count: int) -> float:
        """Send messages one after the other; the CPU seconds it took."""

        async def load() -> None:
            for number in range(count):
                await _inside_send(self.producer, Message(self.topics[number % len(self.topics)], BODY))

        return seconds_of(lambda: self._wait(load()))

    def fill_queues(self, queues: int) -> None:
        """Send one message to each queue of each topic."""

        async def load() -> None:
            for topic in self.topics:
                for queue_id in range(queues):
                    queue = MessageQueue(topic, "broker-a", queue_id)
                    await _inside_send(self.producer, Message(topic, BODY), queue=queue)

        self._wait(load())

    def pull_us(self, offset: int) -> float:
        """The median CPU time of a pull of 32 messages at an offset of a queue, over the wire and back."""
        api = self.producer.impl.instance.api
        address = f"{self.lab.brokers[0].node.spec.ip}:10911"
        flags = PullSysFlag.build(False, False, True, False)
        header = PullMessageRequestHeader("readers", self.topics[0], 0, offset, 32, flags, 0, 0, "*", 0)

        async def pull() -> int:
            result = await api.pull_message_sync(address, header, 3_000)
            assert result.body is not None
            return len(result.body)

        taken = []
        for _ in range(PULLS):
            began = time.process_time()
            size = self._wait(pull())
            taken.append(time.process_time() - began)
            assert size > 32 * len(BODY)
        return median(taken) * 1e6


def resident_bytes() -> int:
    """The memory of this process, after a collection."""
    gc.collect()
    rss: int = psutil.Process().memory_info().rss
    return rss


def measure_backlog(count: int) -> dict[str, float]:
    """Fill a backlog of `count` messages in four queues and look at what a message costs."""
    world = Backlog(1, 4)
    world.send(SAMPLE)
    before = resident_bytes()
    empty = world.send(SAMPLE)
    rest = world.send(count - 2 * SAMPLE) if count > 2 * SAMPLE else 0.0
    memory = resident_bytes() - before
    full = world.send(SAMPLE)
    return {
        "us": (empty + rest) / (count - SAMPLE) * 1e6,
        "bytes": memory / (count - SAMPLE),
        "send_rate_empty": SAMPLE / empty,
        "send_rate_full": SAMPLE / full,
        "pull_first_us": world.pull_us(0),
        "pull_last_us": world.pull_us(count // 4 - 40),
    }


def measure_queues() -> dict[str, float]:
    """One message in each of ten thousand queues."""
    before = resident_bytes()
    world = Backlog(TOPICS, QUEUES // TOPICS)
    world.fill_queues(QUEUES // TOPICS)
    return {"bytes": resident_bytes() - before}


@cache
def _in_new_process(*arguments: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale", *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"the measurement failed:\n{done.stderr}")
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def backlog() -> list[Figure]:
    """A backlog of a million messages of 100 bytes beside one of ten thousand."""
    few, many = _in_new_process("backlog", str(FEW)), _in_new_process("backlog", str(MANY))
    return [
        figure("send, 10^6 messages / 10^4", many["us"], "us/message", versus=few["us"], aim=1.2, better="lower"),
        figure(
            "memory, 10^6 messages / 10^4", many["bytes"], "B/message", versus=few["bytes"], aim=1.2, better="lower"
        ),
        figure(
            "send rate at a backlog of 10^6 / at 0",
            many["send_rate_full"],
            "messages/s",
            versus=many["send_rate_empty"],
            aim=0.8,
            better="higher",
        ),
        figure(
            "pull of 32 at the start, 10^6 / 10^4",
            many["pull_first_us"],
            "us",
            versus=few["pull_first_us"],
            aim=1.5,
            better="lower",
        ),
        figure(
            "pull of 32 at the end, 10^6 / 10^4",
            many["pull_last_us"],
            "us",
            versus=few["pull_last_us"],
            aim=1.5,
            better="lower",
        ),
    ]


def queues() -> Figure:
    """The memory of ten thousand queues with a message in each, client and name server included."""
    mebibytes = _in_new_process("queues")["bytes"] / 2**20
    return figure("10,000 queues", mebibytes, "MiB", aim=64, better="lower")


if __name__ == "__main__":
    print(json.dumps(measure_queues() if sys.argv[1] == "queues" else measure_backlog(int(sys.argv[2]))))
