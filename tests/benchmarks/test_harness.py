"""The benchmark harness: verdicts, contenders in turns, and programs that do the same on both sides."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from functools import partial

import pytest

from benchmarks import counts, kernel, messages, peers, pop
from benchmarks.__main__ import main, row
from benchmarks.harness import beside, figure, operations_per_second, python_build


def test_with_a_peer_the_aim_holds_for_the_ratio() -> None:
    good = figure("hops", 500.0, "1/s", versus=100.0, aim=4, better="higher")
    assert (good.ratio, good.met) == (5.0, True)
    assert not figure("hops", 300.0, "1/s", versus=100.0, aim=4, better="higher").met


def test_without_a_peer_the_aim_holds_for_the_value() -> None:
    assert figure("import", 60.0, "ms", aim=100, better="lower").met
    slow = figure("import", 160.0, "ms", aim=100, better="lower")
    assert (slow.versus, slow.ratio, slow.met) == (None, None, False)


def test_contenders_run_in_turns_with_the_garbage_collector_off() -> None:
    turns: list[tuple[str, bool]] = []

    def contender(name: str) -> Callable[[], Callable[[], int]]:
        def prepare() -> Callable[[], int]:
            def run() -> int:
                turns.append((name, gc.isenabled()))
                return sum(1 for _ in range(10_000))

            return run

        return prepare

    rates = operations_per_second({"a": contender("a"), "b": contender("b")}, rounds=3)
    assert turns == [("a", False), ("b", False)] * 3
    assert gc.isenabled()
    assert all(rate > 0 for rate in rates.values())


def test_no_two_sleepers_ever_wake_at_the_same_time() -> None:
    wakes = set()
    for sleeper in range(kernel.SLEEPERS):
        at = 0
        for turn in range(200):
            at += kernel.pause_us(sleeper, turn)
            wakes.add(at)
    assert len(wakes) == kernel.SLEEPERS * 200


@pytest.mark.parametrize(
    "prepare", [kernel.hops_of_mqlab, kernel.hops_of_simpy, kernel.timers_of_mqlab, kernel.timers_of_simpy]
)
def test_each_kernel_program_does_all_its_work(
    prepare: Callable[[], Callable[[], int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "HOPS", 500)
    monkeypatch.setattr(kernel, "SLEEPS", 20)
    run = prepare()
    assert run() in (500, 2_000)


def test_a_row_shows_the_aim_and_whether_it_is_met() -> None:
    text = row(figure("hops", 300.0, "1/s", versus=100.0, aim=4, better="higher"))
    assert text.split() == ["hops", "300", "1/s", "100", "3", "≥", "4", "NO"]


def test_a_figure_that_only_stands_beside_another_has_no_aim_to_miss() -> None:
    other = beside("queue", 300.0, "1/s", 100.0)
    assert other.met
    assert row(other).split() == ["queue", "300", "1/s", "100", "3"]


def test_the_python_that_measures_is_named_with_its_build() -> None:
    build = r"cpython 3\.\d+\.\S+, (built|which does not say).* PGO"
    assert re.fullmatch(rf"{build}; mqlab (compiled|interpreted)", python_build())


def test_bytecodes_and_calls_are_counted_alike_each_time() -> None:
    def squares(count: int) -> Callable[[], list[int]]:
        return lambda: [pow_2(number) for number in range(count)]

    def pow_2(number: int) -> int:
        return number * number

    first = counts.per_message(squares, 10, 20)
    assert first == counts.per_message(squares, 10, 20)
    assert first.calls == 1
    assert 5 < first.bytecodes < 25


@pytest.mark.parametrize(
    "prepare",
    [
        partial(messages.backlog_of_mqlab, 64),
        partial(pop.backlog_by_batches, 64),
        partial(pop.backlog_of_consumer, 64),
        peers.backlog_of_fakeredis,
        peers.pipelined_backlog_of_fakeredis,
        peers.fakeredis_one_by_one,
        partial(peers.backlog_of_kombu, True),
        partial(peers.backlog_of_kombu, False),
        peers.persist_queue_in_memory,
        peers.persist_queue_on_file,
        peers.dramatiq_stub,
    ],
)
def test_each_queue_delivers_every_message(
    prepare: Callable[[], Callable[[], int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "MESSAGES", 64)
    monkeypatch.setattr(peers, "ON_FILE", 64)
    assert prepare()() == 64


@pytest.mark.parametrize(("merge", "stored"), [(False, 1 + 2 + 2 / 32), (True, 1)])
def test_without_the_merge_buffer_an_ack_and_its_share_of_a_check_point_are_stored_twice(
    merge: bool, stored: float
) -> None:
    assert pop.stored_per_message(merge, 128) == stored


def test_an_unknown_area_is_refused_with_the_names_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["kernels"])
    assert "there is no area 'kernels': choose from kernel, imports" in capsys.readouterr().err
