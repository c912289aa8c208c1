"""Files in config/ that hold anything: a broker or a name server starts with what it can read, or says why not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from mqlab import Lab, Message, scenarios
from mqlab.errors import LearnerError
from tests.worlds import started_producer

MOST = 40
"""So many damaged contents of each file are tried, drawn of all."""

STRANGE: tuple[Any, ...] = (None, "x", -1, 1 << 70, 1.5, True, [], [[]], {}, {"a": 1}, {"count": "x", "timeStamp": []})


def used(scenario: str) -> Lab:
    """A world in which a broker and a name server have written the files that they keep."""
    lab = scenarios.get(scenario).build(3)
    lab.name_servers[0].running().kv_config_manager.put_kv_config("n", "k", "v")
    lab.run_for(seconds=12)
    producer = started_producer(lab, "later")
    lab.create_topic("Delayed", 1)
    for settings in ({"delay_time_level": 2}, {"delay_time_ms": 60_000}):
        message = Message("Delayed", b"x")
        for name, value in settings.items():
            setattr(message, name, value)
        lab.run(producer.send(message))
    lab.run_for(seconds=6)
    return lab


def variants(value: Any) -> Iterator[Any]:
    """The value with one thing in it replaced by something strange, or taken out."""
    if isinstance(value, dict):
        for name in list(value)[:4]:
            yield {other: each for other, each in value.items() if other != name}
            yield from ({**value, name: strange} for strange in variants(value[name]))
    elif isinstance(value, list):
        yield from ([strange] for each in value[:1] for strange in variants(each))
    yield from STRANGE


def damaged(data: bytes) -> Iterator[bytes]:
    """The bytes of a file, damaged in many ways."""
    yield from (b"", b"\0" * 40, b"{", b"[" * 200_000, b"\xff\xfe{}", data[: len(data) // 2], data + data)
    try:
        value = json.loads(data)
    except ValueError:
        return
    every = [json.dumps(variant).encode() for variant in variants(value)]
    yield from Random(7).sample(every, min(MOST, len(every)))


FILES = {
    "broker-a": ("topics.json", "subscriptionGroup.json", "consumerOffset.json", "delayOffset.json",
                 "timermetrics", "timercheck", "consumerOrderInfo.json"),
    "namesrv-1": ("kvConfig.json",),
}  # fmt: skip


@pytest.mark.parametrize(("machine", "name"), [(machine, name) for machine, names in FILES.items() for name in names])
def test_whatever_a_file_holds_its_owner_starts_or_says_why_not(machine: str, name: str) -> None:
    scenario = "pop-ordered" if name == "consumerOrderInfo.json" else "pop-plain"
    lab = used(scenario)
    node = lab.world.nodes[machine]
    (path,) = [path for path in node.disk.files() if path.rpartition("/")[2] == name]
    data = node.disk.read_bytes(path)
    started, told = 0, []
    for variant in damaged(data):
        lab.crash(machine)
        node.disk.write_bytes(path, variant, flush=True)
        if node.disk.exists(f"{path}.bak"):
            node.disk.write_bytes(f"{path}.bak", variant, flush=True)
        try:
            lab.restart(machine)
            lab.run_for(ms=300)
            started += 1
        except LearnerError as error:
            told.append(str(error))
            lab = used(scenario)
            node = lab.world.nodes[machine]
    assert started
    assert all(name in text for text in told)
