"""A corpus: worlds that are kept, gone on with, and lost by nothing."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import psutil
import pytest

from mqlab.commands.cli import main
from mqlab.errors import LearnerError
from mqlab.explore import RULES, play_seeds
from mqlab.explore.corpus import FILE, Corpus, Header, read_header, together, worlds
from mqlab.explore.seen import PAIR, could_be_seen, kind_of
from mqlab.explore.thoroughness import Curve, Seed, Thoroughness
from mqlab.scenarios import get

from .broken.variants import broker_commits_one_more

NAMES = tuple(rule.__name__ for rule in RULES)
HEADER = Header("1.0", "abc", "one-way", {"messages": 3}, None, NAMES)
FEW = ["explore", "one-way", "-p", "messages=3", "--jobs", "1"]


def filled(place: Path, seeds: range) -> None:
    with Corpus(place, HEADER) as corpus:
        for result in play_seeds("one-way", seeds, {"messages": 3}, look=True):
            corpus.add(result)


def lines(place: Path) -> list[bytes]:
    return (place / FILE).read_bytes().splitlines(keepends=True)


def test_a_corpus_in_parts_is_the_corpus_in_one_go(tmp_path: Path) -> None:
    filled(tmp_path / "whole", range(6))
    filled(tmp_path / "parts", range(2))
    filled(tmp_path / "parts", range(2, 6))
    assert lines(tmp_path / "whole") == lines(tmp_path / "parts")
    assert read_header(tmp_path / "parts") == HEADER


def test_what_was_new_and_what_came_again_is_counted_right(tmp_path: Path) -> None:
    results = list(play_seeds("one-way", range(8), {"messages": 3}, look=True))
    with Corpus(tmp_path, HEADER) as corpus:
        for result in results:
            corpus.add(result)
    found = Thoroughness(worlds(tmp_path), could_be_seen(get("one-way")))
    times = Counter(name for result in results for name in result.seen if kind_of(name) != PAIR)
    assert found.named.first.keys() == times.keys()
    assert found.named.once == {name for name, count in times.items() if count == 1}
    for name, whose in found.named.first.items():
        assert whose.seed == min(result.outcome.seed for result in results if name in result.seen)
    alone = [one for one in results if any(times[name] == 1 for name in one.seen)]
    assert found.named.alone == len(alone) > 0
    assert found.named.chance == len(alone) / 8
    assert found.judged["SendsEnd"].times == sum(result.outcome.judged["SendsEnd"] for result in results)
    assert [point.things for point in found.named.points] == [
        len({n for result in results[: k + 1] for n in result.seen if kind_of(n) != PAIR}) for k in range(8)
    ]


def test_the_chance_is_put_to_the_test_by_the_last_tenth_of_the_worlds() -> None:
    curve = Curve()
    for seed in range(200):
        # Every tenth world shows something that no other one does; each of the others shows what all do.
        curve.add(Seed("drawn", seed), [f"event {seed}"] if seed % 10 == 0 else [], ["event 0"] if seed == 1 else [])
    assert curve.alone == 19
    tested = curve.forecast()
    assert tested is not None
    assert (tested.worlds, tested.later, tested.new) == (180, 20, 2)
    assert tested.chance == pytest.approx(17 / 180)


def test_a_torn_last_line_is_cut_off_and_its_seed_is_missing(tmp_path: Path) -> None:
    filled(tmp_path, range(3))
    whole = lines(tmp_path)
    (tmp_path / FILE).write_bytes(b"".join(whole[:-1]) + whole[-1][:-9])
    assert [world.seed for world in worlds(tmp_path)] == [0, 1]
    with Corpus(tmp_path, HEADER) as corpus:
        assert corpus.torn
        assert corpus.seeds == {0, 1}
    filled(tmp_path, range(2, 3))
    assert lines(tmp_path) == whole


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    filled(tmp_path, range(3))
    header, first, second, third = lines(tmp_path)
    (tmp_path / FILE).write_bytes(header + first + second[:20] + b"\n" + third)
    with pytest.raises(LearnerError, match=r"line 3 of the corpus .* is damaged(?s:.)*head -n 2"):
        Corpus(tmp_path, HEADER)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (HEADER._replace(mqlab="2.0"), "is of mqlab 1.0, and this is mqlab 2.0"),
        (HEADER._replace(code="def"), "is of another state of mqlab's sources"),
        (HEADER._replace(scenario="drawn"), "is of the scenario one-way, not of drawn"),
        (HEADER._replace(parameters={}), "is of the parameters {'messages': 3}, not of {}"),
        (HEADER._replace(faults="at 1s: crash broker-a"), "is of the faults None, not of 'at 1s: crash broker-a'"),
    ],
)
def test_worlds_of_something_else_are_refused_and_nothing_is_touched(
    tmp_path: Path, other: Header, words: str
) -> None:
    filled(tmp_path, range(1))
    before = lines(tmp_path)
    with pytest.raises(LearnerError) as refused:
        Corpus(tmp_path, other)
    assert words in str(refused.value)
    assert lines(tmp_path) == before


def test_what_is_no_corpus_is_said(tmp_path: Path) -> None:
    with pytest.raises(LearnerError, match="there is no corpus in"):
        read_header(tmp_path)
    (tmp_path / FILE).write_text("hello\n", encoding="utf-8")
    with pytest.raises(LearnerError, match="is no corpus that this mqlab can read"):
        read_header(tmp_path)


def test_two_processes_do_not_add_to_one_corpus(tmp_path: Path) -> None:
    with Corpus(tmp_path, HEADER), pytest.raises(LearnerError, match="another process adds to the corpus"):
        Corpus(tmp_path, HEADER)
    Corpus(tmp_path, HEADER).close()


def test_a_full_disk_loses_no_world_that_was_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "corpus"
    arguments = [*FEW, "--corpus", str(place), "--seeds"]
    assert main([*arguments, "2"]) == 0
    before = lines(place)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (sum(map(len, before)) + 50, hard))
    try:
        assert main([*arguments, "4"]) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    error = capsys.readouterr().err
    assert "cannot be written: File too large; the 2 worlds in it are kept" in error
    assert "make room" in error
    assert lines(place) == before
    assert main([*arguments, "4"]) == 0
    assert "2 of 4 worlds are in the corpus already" in capsys.readouterr().out
    assert [world.seed for world in worlds(place)] == [0, 1, 2, 3]


def wait_for_two_worlds(playing: subprocess.Popen[str], place: Path) -> None:
    """Wait until a process that does not end has written two worlds into its corpus."""
    while not (place / FILE).exists() or len(lines(place)) < 3:
        with pytest.raises(subprocess.TimeoutExpired):
            playing.wait(timeout=0.05)


def test_a_process_that_is_killed_loses_only_what_was_under_way(tmp_path: Path) -> None:
    place = tmp_path / "corpus"
    words = ["explore", "async-send", "--seeds", "400", "--jobs", "2", "--corpus", str(place)]
    command = [sys.executable, "-m", "mqlab", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as playing:
        wait_for_two_worlds(playing, place)
        os.kill(_workers(playing.pid)[0], signal.SIGKILL)
        _, error = playing.communicate(timeout=120)
    kept = [world.seed for world in worlds(place)]
    assert playing.returncode == 2
    assert f"seed {len(kept)} and those behind it were not finished" in error
    assert "start the same command again" in error
    assert kept == list(range(len(kept)))
    assert len(kept) >= 2


def _workers(pid: int) -> list[int]:
    """The processes that play for this one."""
    children = psutil.Process(pid).children()
    return [child.pid for child in children if any("spawn_main" in word for word in child.cmdline())]


def test_ctrl_c_ends_with_what_was_finished(tmp_path: Path) -> None:
    place = tmp_path / "corpus"
    words = ["explore", "async-send", "--seeds", "400", "--jobs", "2", "--corpus", str(place)]
    command = [sys.executable, "-m", "mqlab", *words]
    playing = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    wait_for_two_worlds(playing, place)
    os.killpg(playing.pid, signal.SIGINT)
    _, error = playing.communicate(timeout=120)
    assert playing.returncode == 130
    assert error.splitlines()[-1] == "mqlab: interrupted"
    assert "Traceback" not in error
    assert len(list(worlds(place))) >= 2


def test_the_command_tells_of_a_corpus(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = str(tmp_path / "corpus")
    few = ["explore", "push-clustering", "-p", "messages=5", "--jobs", "1", "--corpus", place, "--seeds"]
    assert main([*few, "2"]) == 0
    told = ["2 passed, 0 failed", f"how thorough that was: mqlab corpus {place}"]
    assert capsys.readouterr().out.splitlines() == told
    with monkeypatch.context() as patch:
        broker_commits_one_more(patch)
        assert main([*few, "3"]) == 1
    capsys.readouterr()
    assert main(["corpus", place]) == 0
    said = capsys.readouterr().out
    assert "3 worlds of push-clustering messages=5 (seeds 0 to 2): 2 passed, 1 failed" in said
    assert "  AckedStaysAway                                     0           0  silent" in said
    assert "push-clustering messages=5 seed 2: readers committed an offset behind broker-a Orders queue" in said
    assert "    mqlab explore push-clustering --seed 2 -p messages=5 --faults" in said
    assert main(["corpus", place, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["seeds"] == [["push-clustering messages=5", seed] for seed in range(3)]
    assert answer["first"]["event"]["MessageStored"] == ["push-clustering messages=5", 0]
    assert "PopHeld" in answer["never"]["event"]
    assert answer["failures"][0]["seed"] == 2


def test_several_corpora_are_read_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = {name: list(play_seeds(name, range(3), {"messages": 3}, look=True)) for name in ("one-way", "async-send")}
    for name, of_one in results.items():
        with Corpus(tmp_path / name, HEADER._replace(scenario=name)) as corpus:
            for result in of_one:
                corpus.add(result)
    places = [tmp_path / name for name in results]
    mixed = list(together(places))
    assert [world.seed for world in mixed] == [0, 0, 1, 1, 2, 2]
    assert len({world.label for world in mixed[:2]}) == 2
    found = Thoroughness(mixed, {})
    times = Counter(name for of_one in results.values() for result in of_one for name in result.seen)
    once = {name for name, count in times.items() if count == 1}
    assert found.named.once == {name for name in once if kind_of(name) != PAIR}
    assert found.pairs.once == {name for name in once if kind_of(name) == PAIR}
    assert found.named.first.keys() | found.pairs.first.keys() == times.keys()
    assert main(["corpus", *map(str, places)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("3 worlds of one-way messages=3 (seeds 0 to 2)")
    assert said[1].startswith("3 worlds of async-send messages=3 (seeds 0 to 2)")


@pytest.mark.parametrize("more", [["--seed", "1"], ["--json"], ["--master", "local[1]"]])
def test_a_corpus_goes_with_many_seeds_in_processes_of_this_machine(
    tmp_path: Path, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*FEW, "--corpus", str(tmp_path), *more]) == 2
    assert "do not go together" in capsys.readouterr().err
