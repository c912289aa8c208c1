"""The demo worlds never end, and whatever is broken in them, messages flow again once it is mended."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import pytest

from mqlab import Lab
from mqlab.errors import LearnerError
from mqlab.lab.processes import ClientProcess
from mqlab.scenarios.numbered import TOPIC
from mqlab.sim import FAULTS, ROOM_BYTES
from tests.worlds import played

WORLDS = ("demo", "demo-two-brokers", "demo-slow-consumer", "demo-retry")
QUEUES = 2
SOME_FLOW_WITHIN_S, ALL_FLOW_WITHIN_S = 90, 160
"""After everything is mended. A ghost of a member, which a hung broker may make (docs/checks.md), keeps its share of
the queues until the scan for silent clients finds it, up to 130 s later. As many ghosts as queues may keep them all.
"""
SEQUENCES = {"demo": 50, "demo-two-brokers": 20, "demo-slow-consumer": 15, "demo-retry": 15}
LENGTH = 12


def draw(random: Random, lab: Lab, verb: str) -> dict[str, Any]:
    """Arguments for a fault that hit somebody in this world."""
    names = list(lab.processes)
    one, other = random.sample(names, 2)
    alone = {"left": [one], "right": [name for name in names if name != one]}
    return {
        "cut": {"source": one, "target": other},
        "heal": {"source": one, "target": other},
        "partition": alone,
        "unpartition": alone,
        "delay": {"source": one, "target": other, "ms": random.choice([50, 400, 3_500])},
        "disconnect": {"a": one, "b": other},
        "drift": {"node": one, "ppm": random.choice([-50_000, 20_000]), "jump_ms": random.choice([0, -5_000, 60_000])},
        "slow_disk": {"node": one, "ms": random.choice([20, 400, 1_500])},
        "fill_disk": {"node": one, "free_bytes": random.choice([0, 5_000])},
        "override": {"point": "producer-1/pause", "k": 1_000_000, "value": 0},
        "pick": {"index": 0},
        "hold": {"index": 0, "ms": random.choice([5, 200])},
    }.get(verb, {"node": one})


def mend(lab: Lab) -> None:
    """Undo every fault that can last, wherever it is."""
    for name, process in lab.processes.items():
        lab.act("fill_disk", node=name, free_bytes=ROOM_BYTES)
        lab.act("unhang_disk", node=name)
        lab.act("slow_disk", node=name, ms=0)
        lab.act("drift", node=name, ppm=0)
        lab.act("thaw", node=name)
        for other in lab.processes:
            if other != name:
                lab.act("heal", source=name, target=other)
                lab.act("delay", source=name, target=other, ms=0)
        if process.state == "down":
            lab.act("restart", node=name)


def queues_that_flow(lab: Lab, since_us: int) -> set[tuple[str, int]]:
    """The queues of which a message was stored and given to a listener since then."""
    stored: set[str] = set()
    flowing = set()
    for record in lab.history.between(since_us / 1_000, lab.now_ms):
        if record.kind == "MessageStored" and record.topic == TOPIC:
            stored.add(record.unique_key)
        elif record.kind == "ConsumeStarted" and record.msg_id in stored:
            flowing.add((record.broker_name, record.queue_id))
    return flowing


def ghosts(lab: Lab) -> int:
    """The most members of a group, at one broker, that are clients of lives that have ended."""
    processes = [process for process in lab.processes.values() if isinstance(process, ClientProcess)]
    instances = [client.impl.instance for process in processes for client, *_ in process.clients]
    living = {instance.client_id for instance in instances if instance is not None}
    tables = [broker.running().consumer_manager.consumer_table for broker in lab.brokers if broker.is_up()]
    members = [group.channel_info_table.values() for table in tables for group in table.values()]
    return max((sum(one.client_id not in living for one in each) for each in members), default=0)


def expect_flow(lab: Lab) -> None:
    """From now on messages are consumed again: soon those of some queue, and in the end those of every queue."""
    since_us = lab.world.now_us
    wanted = {(broker.name, queue) for broker in lab.brokers for queue in range(QUEUES)}
    for seconds in range(5, ALL_FLOW_WITHIN_S + 1, 5):
        lab.run_for(seconds=5)
        flowing = queues_that_flow(lab, since_us)
        assert flowing or seconds < SOME_FLOW_WITHIN_S or ghosts(lab) >= QUEUES
        if flowing == wanted:
            return
    pytest.fail(f"after {ALL_FLOW_WITHIN_S} s only these flow: {flowing}")


@pytest.mark.parametrize("verb", sorted(FAULTS))
@pytest.mark.parametrize("world", WORLDS)
def test_messages_flow_again_after_a_fault(world: str, verb: str) -> None:
    lab = played(world, 2, seed=3)
    for seed in range(3):
        if verb == "hold":
            lab.run_until(lambda: lab.world.pending()[0].holdable)
        lab.act(verb, **draw(Random(seed), lab, verb))
        lab.run_for(seconds=3)
        mend(lab)
        expect_flow(lab)


@pytest.mark.parametrize("world", WORLDS)
def test_messages_flow_again_after_any_sequence_of_faults(world: str) -> None:
    for seed in range(SEQUENCES[world]):
        random = Random(f"{world} {seed}")
        lab = played(world, 2, seed=seed)
        for _ in range(LENGTH):
            verb = random.choice(sorted(FAULTS))
            try:
                lab.act(verb, **draw(random, lab, verb))
            except LearnerError:
                # What is down cannot be crashed, and so on: then somebody tries something else.
                continue
            lab.run_for(ms=random.choice([20, 500, 3_000, 12_000]))
        mend(lab)
        expect_flow(lab)


def test_every_send_that_fails_is_seen_to_fail() -> None:
    lab = played("demo", 2, seed=3)
    lab.crash("broker-a")
    lab.run_for(seconds=1)
    with_a_route = sum(1 for _ in lab.history.find("SendFailed"))
    assert with_a_route >= 2
    lab.restart("producer-1")
    lab.run_for(seconds=1)
    without = list(lab.history.find("SendFailed"))[with_a_route:]
    assert without
    assert all(failed.attempts == 0 for failed in without)


def test_a_producer_that_is_started_again_goes_on_with_the_next_order() -> None:
    lab = played("demo", 2, seed=3)
    lab.crash("producer-1")
    lab.restart("producer-1")
    lab.run_for(seconds=2)
    queues = [lab.queue(TOPIC, queue) for queue in range(2)]
    records = [queue.record_bytes(offset) for queue in queues for offset in range(queue.max_offset)]
    numbers = sorted(int(number) for record in records for number in re.findall(rb"this is order-(\d+) ", record))
    assert numbers == list(range(len(numbers)))


@pytest.mark.parametrize("world", WORLDS)
def test_a_demo_has_no_end(world: str) -> None:
    lab = played(world, 600, seed=3)
    assert lab.history.last("ConsumeFinished").ts_ms > lab.now_ms - 10_000
