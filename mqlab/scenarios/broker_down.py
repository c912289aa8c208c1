"""The scenarios of a broker that dies or hangs while producers with different settings send to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqlab.errors import MQBrokerException, MQClientException, RemotingException
from mqlab.protocol import Message
from mqlab.scenarios.registry import scenario, story

if TYPE_CHECKING:
    from mqlab.client import DefaultMQProducer
    from mqlab.lab import Lab

CALM_MS = 26_000
"""How long all is well before the fault."""

REQUEST_LIMIT_MS = 1_000
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "latency": {"send_latency_enable": True},
    "limit": {"send_msg_max_timeout_per_request": REQUEST_LIMIT_MS},
    "both": {
        "send_latency_enable": True,
        "start_detector_enable": True,
        "send_msg_max_timeout_per_request": REQUEST_LIMIT_MS,
    },
}
"""The four producers that were watched on a real RocketMQ, by the names that their machines have here."""


def send_steadily(producer: DefaultMQProducer, topic: str, *, every_ms: float = 1_000) -> None:
    """Let a producer send one message each `every_ms` from a task of its own, whatever becomes of them.

    A call that takes longer delays the next one, as in a loop of an application that waits for its answers.
    """

    async def load() -> None:
        number = 0
        while True:
            next_us = producer.node.now_us() + every_ms * 1_000
            try:
                message = Message(topic, b"order %d" % number, keys=f"{producer.producer_group}-{number}")
                await type(producer).send.inside(producer, message)  # type: ignore[attr-defined]  # see public_call
            except (MQClientException, MQBrokerException, RemotingException):
                # The application has seen an error and goes on; the trace keeps it as SendFailed.
                pass
            number += 1
            await producer.node.sleep(max(0, next_us - producer.node.now_us()) / 1_000)

    producer.node.spawn(load(), "load")


async def start_two_brokers(lab: Lab) -> None:
    """A name server and two brokers with four queues of the topic Orders each."""
    lab.name_server()
    lab.broker("broker-a")
    lab.broker("broker-b")
    lab.create_topic("Orders", 4)


@scenario("broker-killed", seconds=60)
async def broker_killed(lab: Lab, *, every_ms: int = 250, down_s: int = 38) -> None:
    """One of two brokers is killed while four producers with different settings send, and comes back."""
    await start_four_shops(lab, every_ms)
    lab.faults(f"at {lab.now_ms:g}ms: crash broker-b for {down_s}s")


BROKER_HANGS = story("""
    SendAttempted 4 plain: Four producers with different settings send to two brokers.
    NodeFrozen 1 broker-b: Broker-b hangs. Its connections stay open, so nobody notices.
    SendFailed 1 latency: A call takes three seconds and fails: the first attempt has used up all of its time.
    SendAttemptFailed 12 limit: Who limits the time of an attempt has some left for the other broker.
    FaultItemUpdated 120 latency: Who remembers how long broker-b took leaves it out for a while.
    BrokerUnregistered 1 namesrv-1: After 120 seconds without a word the name server forgets broker-b.
    RouteUpdated 8 plain: The producers learn it with the next route, up to 30 seconds later.
    NodeThawed 1 broker-b: Broker-b goes on as if nothing had happened. It will be found again.
""")


@scenario("broker-hangs", seconds=180, captions=BROKER_HANGS)
async def broker_hangs(lab: Lab, *, every_ms: int = 1_000, hangs_s: int = 143) -> None:
    """One of two brokers hangs while four producers with different settings send, and goes on after a long time."""
    await start_four_shops(lab, every_ms)
    lab.faults(f"at {lab.now_ms:g}ms: freeze broker-b for {hangs_s}s")


async def start_four_shops(lab: Lab, every_ms: float) -> None:
    """Two brokers and four producers that have been sending for a while, each on a machine that has its name."""
    await start_two_brokers(lab)
    for name, settings in SETTINGS.items():
        producer = lab.producer(name, node=name, **settings)
        await producer.start()
        send_steadily(producer, "Orders", every_ms=every_ms)
        lab.run_for(ms=every_ms / len(SETTINGS))
    lab.run_for(ms=CALM_MS)
