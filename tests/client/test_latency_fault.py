"""The fault table: how long a broker rests after which latency."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mqlab.client.producer.latency_fault_tolerance import (
    LATENCY_MAX_MS,
    NOT_AVAILABLE_MS,
    LatencyFaultTolerance,
    not_available_duration_ms,
)
from mqlab.sim import World

ROWS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "golden" / "vectors" / "latency-fault.json").read_text()
)["rows"]


def test_the_table_is_rocketmqs() -> None:
    assert list(LATENCY_MAX_MS) == ROWS[0]["latencyMax"]
    assert list(NOT_AVAILABLE_MS) == ROWS[0]["notAvailableDuration"]


@pytest.mark.parametrize("row", ROWS[1:])
def test_each_latency_makes_the_rest_that_java_computes(row: dict[str, Any]) -> None:
    assert not_available_duration_ms(row["latency"]) == row["duration"]


def test_a_rest_never_becomes_shorter_and_ends_by_itself() -> None:
    world = World(1)
    faults = LatencyFaultTolerance(world.node("producer"))
    assert faults.is_available("broker-a")
    faults.update_fault_item("broker-a", 10_000, 10_000, reachable=False)
    faults.update_fault_item("broker-a", 600, 2_000, reachable=True)
    world.run_for(9_999_000)
    assert not faults.is_available("broker-a")
    assert faults.is_reachable("broker-a")
    world.run_for(1_000)
    assert faults.is_available("broker-a")


def test_the_detector_brings_a_broker_back_that_answers_and_forgets_one_that_is_gone() -> None:
    world = World(1)
    node = world.node("producer")
    faults = LatencyFaultTolerance(node)
    for name in ("broker-a", "broker-b", "broker-c"):
        faults.update_fault_item(name, 10_000, 10_000, reachable=False)
    probed: list[str] = []

    async def probe(name: str, timeout_ms: int) -> bool | None:
        probed.append(name)
        return {"broker-a": True, "broker-b": False}.get(name)

    for _ in range(2):
        world.wait_for(node.spawn(faults.detect_by_one_round(probe, 200, 2_000), "detect").join())
    assert probed == ["broker-a", "broker-b", "broker-c"]
    assert [faults.is_reachable(name) for name in ("broker-a", "broker-b")] == [True, False]
    assert list(faults.fault_item_table) == ["broker-a", "broker-b"]
