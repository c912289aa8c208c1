"""The bar of long jobs: drawn where somebody looks, and nothing where nobody does."""

from __future__ import annotations

import io
import shutil
import sys
from itertools import chain, repeat
from pathlib import Path

import pytest
from jupyter_client.manager import start_new_kernel

from mqlab import progress
from mqlab.commands import museum
from mqlab.commands.cli import main
from mqlab.progress import bar


class Terminal(io.StringIO):
    """What a terminal got."""

    def isatty(self) -> bool:
        return True


def a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal as the place where errors go, on which bars are drawn at once."""
    monkeypatch.setattr(progress, "DELAY_S", 0)
    monkeypatch.setattr(progress, "DRAW_EVERY_S", 0)
    # Not in a fixture: pytest puts its own in place when the test itself begins.
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    return terminal


def test_a_bar_on_a_terminal_says_what_is_done_and_goes_when_all_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    with bar("worlds", 0) as shown:
        shown.to(1, "50 events", total=3)
        shown.to(2_000, "none", total=4_000)
    drawn = terminal.getvalue().split("\r")
    assert any(line.startswith("1 of 3 worlds  33%|") and line.rstrip().endswith(", 50 events") for line in drawn)
    assert any(line.startswith("2,000 of 4,000 worlds  50%|") for line in drawn)
    assert "\n" not in terminal.getvalue()
    assert drawn[-1] == ""
    assert drawn[-2].isspace()


def test_a_growing_total_moves_the_bar_back(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    with bar("tasks", 4) as shown:
        shown.to(4)
        shown.to(5, total=20)
    assert "5 of 20 tasks  25%|" in terminal.getvalue()


def test_a_job_inside_a_job_has_no_bar_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    with bar("tables", 2), bar("tasks", 5) as inner:
        inner.to(1)
    assert "tables" in terminal.getvalue()
    assert "tasks" not in terminal.getvalue()


def test_without_a_terminal_nothing_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    with bar("worlds", 3) as shown:
        shown.to(2)
        with shown.aside():
            print("a line")
    assert capsys.readouterr() == ("a line\n", "")


def test_commands_draw_one_beside_what_they_print(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    terminal = a_terminal(monkeypatch)
    failing = ["explore", "steady-load", "--seeds", "2", "-p", "messages=20", "--faults", "at 2s: crash broker-a"]
    assert main(failing) == 1
    assert "1 of 2 seeds  50%|" in terminal.getvalue()
    assert "1 failed" in terminal.getvalue()
    assert "seed 0: " in capsys.readouterr().out
    assert main(["dataset", "twice", "small", "--out", str(tmp_path), "-j", "1"]) == 0
    assert " worlds  50%|" in terminal.getvalue()


def test_a_job_into_a_pipe_writes_a_line_now_and_then_with_the_time_that_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = chain([0.0, 10.0, 40.0, 50.0], repeat(3_000.0))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with bar("worlds", 100) as shown:
        shown.to(1)
        shown.to(10, "room 3787")
        shown.to(20)
        shown.to(50)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "10 of 100 worlds, room 3787; 00:40 gone, 06:00 to go",
        "50 of 100 worlds; 50:00 gone, 50:00 to go",
    ]


def test_a_line_goes_out_in_one_write_so_that_ctrl_c_cannot_cut_off_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pieces(io.StringIO):
        def write(self, text: str) -> int:
            pieces.append(text)
            return super().write(text)

    pieces: list[str] = []
    monkeypatch.setattr(sys, "stderr", Pieces())
    progress.say("events  1 rows")
    assert pieces == ["events  1 rows\n"]


def test_a_terminal_without_tqdm_has_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = a_terminal(monkeypatch)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(progress, "LINE_ON_TERMINAL_S", 0)
    with bar("seeds", 4) as shown:
        shown.to(1)
    assert terminal.getvalue().startswith("1 of 4 seeds; 00:00 gone, ")


LABS = len(list((Path(__file__).parents[2] / "labs" / "sources").glob("[0-9][0-9]_*.py")))
LONG = {
    "museum --table --seeds 2 -j 1": "of 4 worlds",
    "museum 7914": "of 1,000 seeds",
    "museum 3507 --shortest": "of 42 loads",
    "trace demo --seconds 60 --hash": "seconds of the world",
    "my-labs": f"of {LABS} labs",
    "course release handed-out --students class.csv --lab 00": "of 2 students",
}


@pytest.mark.parametrize("command", LONG)
def test_a_long_command_says_how_far_it_is_and_prints_the_same(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    # The rest of the table takes a minute.
    monkeypatch.setattr(museum, "EXHIBITS", [one for one in museum.EXHIBITS if one.number == "3507"])
    (tmp_path / "class.csv").write_text("id\nada\nbob\n")
    status = main(command.split())
    unwatched = capsys.readouterr()
    for name in ("my-labs", "handed-out"):
        shutil.rmtree(tmp_path / name, ignore_errors=True)
    terminal = a_terminal(monkeypatch)
    assert main(command.split()) == status
    assert capsys.readouterr().out == unwatched.out
    assert LONG[command] in terminal.getvalue()


IN_A_CELL = """
from mqlab import progress
progress.DELAY_S = 0
with progress.bar("worlds", 3) as shown:
    shown.to(1)
print(progress.place())
"""


def test_a_notebook_shows_a_bar_to_a_person_and_none_to_a_program() -> None:
    manager, client = start_new_kernel()
    try:
        told: dict[bool, list[str]] = {}
        for somebody_looks in (True, False):
            seen = told[somebody_looks] = []

            def note(message: dict[str, object], seen: list[str] = seen) -> None:
                content = message["content"]
                assert isinstance(content, dict)
                if message["msg_type"] == "display_data":
                    seen.append(" ".join(sorted(content["data"])))
                elif message["msg_type"] == "stream":
                    seen.append(content["text"].strip())

            reply = client.execute_interactive(IN_A_CELL, allow_stdin=somebody_looks, output_hook=note, timeout=60)
            assert reply["content"]["status"] == "ok"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert told == {True: ["application/vnd.jupyter.widget-view+json text/plain", "notebook"], False: ["None"]}
