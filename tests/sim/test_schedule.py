"""Fault schedules: faults as text, and errors that name the line."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.errors import LearnerError
from mqlab.sim.faults import FAULTS
from mqlab.sim.schedule import Fault, parse_schedule, parse_time_us


def test_a_schedule_is_read_line_by_line_and_ordered_by_time() -> None:
    faults = parse_schedule("""
        # first the network
        at 12.5s: partition broker-a | broker-b consumer-1 for 3s
        at 10s: freeze consumer-1 for 130s   # longer than the heartbeat

        at 14s: crash broker-a
    """)
    assert faults == [
        Fault(10_000_000, "freeze", {"node": "consumer-1"}),
        Fault(12_500_000, "partition", {"left": ["broker-a"], "right": ["broker-b", "consumer-1"]}),
        Fault(14_000_000, "crash", {"node": "broker-a"}),
        Fault(15_500_000, "unpartition", {"left": ["broker-a"], "right": ["broker-b", "consumer-1"]}),
        Fault(140_000_000, "thaw", {"node": "consumer-1"}),
    ]


@pytest.mark.parametrize(
    ("line", "first", "undone"),
    [
        ("power_off broker-a for 1s", Fault(0, "power_off", {"node": "broker-a"}), ("restart", {"node": "broker-a"})),
        ("crash broker-a for 1s", Fault(0, "crash", {"node": "broker-a"}), ("restart", {"node": "broker-a"})),
        ("cut a > b for 1s", Fault(0, "cut", {"source": "a", "target": "b"}), ("heal", {"source": "a", "target": "b"})),
        (
            "delay a > b by 250ms for 1s",
            Fault(0, "delay", {"source": "a", "target": "b", "ms": 250.0}),
            ("delay", {"source": "a", "target": "b", "ms": 0}),
        ),
        ("drift a by 200 for 1s", Fault(0, "drift", {"node": "a", "ppm": 200}), ("drift", {"node": "a", "ppm": 0})),
        (
            "slow_disk a by 1.2s for 1s",
            Fault(0, "slow_disk", {"node": "a", "ms": 1_200.0}),
            ("slow_disk", {"node": "a", "ms": 0}),
        ),
        ("hang_disk a for 1s", Fault(0, "hang_disk", {"node": "a"}), ("unhang_disk", {"node": "a"})),
    ],
)
def test_for_adds_the_fault_that_takes_it_back(line: str, first: Fault, undone: tuple[str, dict[str, Any]]) -> None:
    assert parse_schedule(f"at 0s: {line}") == [first, Fault(1_000_000, *undone)]


def test_faults_without_an_end_stand_alone() -> None:
    assert parse_schedule("at 1m: disconnect producer-1 | broker-a\nat 2h: fill_disk broker-a by 4096") == [
        Fault(60_000_000, "disconnect", {"a": "producer-1", "b": "broker-a"}),
        Fault(7_200_000_000, "fill_disk", {"node": "broker-a", "free_bytes": 4096}),
    ]


@pytest.mark.parametrize(
    ("text", "us"), [("250ms", 250_000), ("12.5s", 12_500_000), ("3m", 180_000_000), (" 1h ", 3_600_000_000)]
)
def test_times_are_read_with_their_unit(text: str, us: int) -> None:
    assert parse_time_us(text) == us


@pytest.mark.parametrize("text", ["12", "12 s", "-1s", "", "soon", "1d"])
def test_what_is_not_a_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(LearnerError, match=r"(?s)is not a time.*250ms, 12\.5s"):
        parse_time_us(text)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("crash broker-a", "line 2: 'crash broker-a' of the fault schedule cannot be read"),
        ("at 3s crash broker-a", "line 2: 'at 3s crash broker-a' of the fault schedule cannot be read"),
        ("at 3s: explode broker-a", "line 2: there is no fault 'explode'"),
        ("at soon: crash broker-a", "line 2: 'soon' is not a time"),
        ("at 3s: freeze broker-a for ever", "line 2: 'ever' is not a time"),
        ("at 3s: partition broker-a broker-b", "line 2: partition needs two sides"),
        ("at 3s: partition broker-a |", "line 2: partition needs two sides"),
        ("at 3s: disconnect broker-a broker-b", "line 2: disconnect needs two sides"),
        ("at 3s: cut broker-a", "line 2: cut needs a direction"),
        ("at 3s: cut > broker-a", "line 2: cut needs a direction"),
        ("at 3s: delay a > b", "line 2: delay needs an amount"),
        ("at 3s: delay a > b by much", "line 2: 'much' is not a time"),
        ("at 3s: drift a by much", "line 2: 'much' is not a number"),
        ("at 3s: drift a", "line 2: drift needs an amount"),
        ("at 3s: fill_disk a by much", "line 2: 'much' is not a number"),
        ("at 3s: disconnect a | b for 3s", "line 2: disconnect cannot last 'for' a time"),
        ("at 3s: crash a b", "line 2: crash needs the name of one node, not 'a b'"),
        ("at 3s: crash", "line 2: crash needs the name of one node, not ''"),
        ("at 3s: hang_disk", "line 2: hang_disk needs the name of one node, not ''"),
        ("at 3s: crash a by 3s", "line 2: crash takes no amount"),
        ("at 3s: pick 3", "line 2: there is no fault 'pick' for a schedule"),
        ("at 3s: override a", "line 2: there is no fault 'override' for a schedule"),
    ],
)
def test_a_line_that_makes_no_sense_is_named(line: str, complaint: str) -> None:
    with pytest.raises(LearnerError) as caught:
        parse_schedule(f"at 1s: crash broker-a\n{line}")
    assert complaint in str(caught.value)


def test_every_fault_that_lasts_is_undone_by_a_fault_with_the_same_targets() -> None:
    lasting = [kind for kind in FAULTS.values() if kind.undo]
    assert len(lasting) > 5
    assert all(FAULTS[kind.undo].targets == kind.targets for kind in lasting)
