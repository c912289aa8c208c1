"""Whole worlds and their traces: every scenario emits what the catalogue promises, and keeps the ground rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlab import scenarios
from mqlab.lab import Lab
from mqlab.trace.catalogue import check_row
from mqlab.trace.digest import TraceDigest
from mqlab.trace.monitors import GROUND_RULES, AcknowledgedIsStored, judge
from mqlab.trace.recorded import read_json_lines, read_parquet
from mqlab.trace.recorder import JsonLinesRecorder, ParquetRecorder


def played(name: str, **parameters: object) -> Lab:
    return scenarios.get(name).play(7, parameters=parameters)


@pytest.mark.parametrize("name", scenarios.names())
def test_every_event_of_a_scenario_is_as_the_catalogue_says(name: str) -> None:
    lab = played(name)
    assert len(lab.history) > 50
    for row in lab.history.rows():
        check_row(row)


@pytest.mark.parametrize(
    "name", ["first-message", "steady-load", "held-pulls", "rebalance", "two-brokers", "new-topic"]
)
def test_a_scenario_without_a_power_cut_keeps_the_ground_rules(name: str) -> None:
    lab = played(name)
    assert list(lab.history.find("SendSucceeded"))
    assert [str(j) for j in judge(lab.history.rows(), *(rule() for rule in GROUND_RULES)) if not j.holds] == []


@pytest.mark.parametrize(("flush", "keeps"), [("SYNC_FLUSH", True), ("ASYNC_FLUSH", False)])
def test_a_power_cut_costs_acknowledged_messages_unless_each_is_flushed_first(flush: str, keeps: bool) -> None:
    lab = played("power-cut", flush=flush, cut_ms=1, messages=20)
    (judgement,) = judge(lab.history.rows(), AcknowledgedIsStored())
    assert judgement.holds == keeps


def test_a_recorded_world_has_the_hash_of_the_world(tmp_path: Path) -> None:
    lab = played("first-message")
    for recorder, read in ((JsonLinesRecorder, read_json_lines), (ParquetRecorder, read_parquet)):
        with recorder(tmp_path / "trace", {"scenario": "first-message"}) as sink:
            for row in lab.history.rows():
                sink(row)
        digest = TraceDigest()
        for row in read(tmp_path / "trace"):
            digest(row)
        assert digest.hexdigest() == lab.trace_hash()
