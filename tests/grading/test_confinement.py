"""Where students' code can't be confined, marking asks for a word; the walls are kept."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from mqlab.commands.cli import main
from mqlab.errors import LearnerError
from mqlab.grading import confine, sight
from mqlab.grading.confine import Limits
from mqlab.grading.students_process import StudentsProcess
from mqlab.grading.system_calls import filter_program
from mqlab.grading.watchdog import Watchdog
from tests.grading.conftest import HONEST, MarkIt

ROOT = Path(__file__).parents[2]


@pytest.fixture
def no_bubblewrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    confine.why_not_confined.cache_clear()


@pytest.fixture(autouse=True)
def asked_anew() -> None:
    confine.why_not_confined.cache_clear()


def test_here_it_can_be_had() -> None:
    assert confine.why_not_confined() == ""


@pytest.mark.usefixtures("no_bubblewrap")
def test_without_bubblewrap_nothing_is_marked_and_it_is_said_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in" / "ada").mkdir(parents=True)
    (tmp_path / "in" / "ada" / "00_tour.ipynb").write_text("{}")
    assert main(["course", "key", str(tmp_path / "key")]) == 0
    command = ["grade", str(tmp_path / "in"), "--key", str(tmp_path / "key"), "--out", str(tmp_path / "out")]
    assert main(command) == 2
    told = capsys.readouterr().err
    assert "students' code can't be confined here: bubblewrap (the program bwrap) is not installed" in told
    assert "--unconfined" in told
    assert not (tmp_path / "out").exists()
    assert main([*command, "--unconfined", "--no-run"]) == 0
    assert "not confined, as you have said" in capsys.readouterr().out


@pytest.mark.usefixtures("no_bubblewrap")
def test_a_notebook_gets_no_mark_where_it_should_be_confined_and_can_not_be(mark_it: MarkIt) -> None:
    with pytest.raises(LearnerError, match="can't be confined here"):
        mark_it(HONEST)


@pytest.mark.usefixtures("no_bubblewrap")
def test_without_confinement_the_mark_is_the_same_and_says_so(mark_it: MarkIt) -> None:
    result = mark_it(HONEST, run=True, limits=Limits(60, memory_bytes=400 * 2**20, processes=60, confined=False))
    assert result["points"] == 2
    assert result["confined"] is False
    assert result["run"]["verdict"] != ""


def test_the_wall_bounds_all_checks_of_a_notebook_each_call_included(mark_it: MarkIt) -> None:
    began = time.monotonic()
    cell = "import time\ndef pull(q, n):\n    time.sleep(1.2)\n    return q[:n], q[n:]"
    result = mark_it(cell, limits=Limits(wall_s=3))
    assert result["points"] == 0
    assert "the time for all checks was over" in result["marks"][0]["reason"]
    assert time.monotonic() - began < 3 + 12


def test_the_filter_is_a_program_for_both_processors_and_for_no_other() -> None:
    for machine in ("x86_64", "aarch64"):
        program = filter_program(machine)
        assert program is not None
        assert len(program) % 8 == 0
        assert len(program) // 8 < 4096
    assert filter_program("x86_64") != filter_program("aarch64")
    assert filter_program("riscv64") is None


@pytest.mark.parametrize("member", [0, 3])
def test_the_process_has_nobodys_rights(member: int) -> None:
    cell = "def rights(): return open('/proc/self/status').read()"
    with StudentsProcess([cell], member=member) as theirs:
        told = theirs.answers(["rights"])[0]().split()
    assert {told[at + 1] for at, word in enumerate(told) if word.startswith("Cap") and word.endswith(":")} == {"0" * 16}
    assert told[told.index("Seccomp:") + 1] == "2"
    assert told[told.index("NoNewPrivs:") + 1] == "1"


def test_what_a_system_python_has_is_seen_and_of_a_clone_its_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", ["/usr/local/lib/python3.11/dist-packages", "/usr/lib", str(ROOT)])
    sight.sight.cache_clear()
    try:
        shown = list(sight.sight(False))
    finally:
        sight.sight.cache_clear()
    hidden = [shown[at + 1] for at, word in enumerate(shown) if word == "--tmpfs"]
    assert hidden == [str(ROOT / "mqlab" / "labs")]
    assert str(ROOT) not in shown
    assert str(ROOT / "mqlab") in shown


def test_a_process_that_is_not_confined_yet_answers_for_nothing_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its start and its confinement a process sees all files and sockets of the machine."""
    # It ends when `with` closes what it reads.
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE):
        watchdog = Watchdog(os.getpid(), Limits(memory_bytes=2**40, processes=2**20, files=0))
        monkeypatch.setattr("mqlab.grading.watchdog._UNIX_BUFFER", 2**60)
        assert watchdog.excess() == ""
