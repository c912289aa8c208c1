"""Hostile notebooks: each ends in bounded time, with a mark that says why, and none gets a point it did not earn."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

import mqlab
from mqlab.check import find_check
from mqlab.check.verdict import VERDICT_MIME
from mqlab.grading.confine import Limits
from mqlab.grading.judging import points_of
from tests.grading.conftest import HONEST, MarkIt, Notebook, exercise_of

WRONG = "def pull(queue, limit):\n    return queue, []\n"


def reason(result: dict[str, Any]) -> str:
    """Why the only check gave what it gave."""
    (mark,) = result["marks"]
    return f"{mark['reason']} {mark['story']}"


def test_an_honest_solution_gets_its_points(mark_it: MarkIt) -> None:
    result = mark_it(HONEST)
    assert (result["points"], result["most"]) == (2, 2)
    assert result["marks"][0]["public"] == (50, 50)
    assert result["marks"][0]["hidden"] == (3, 3)


def test_a_stub_gets_none(mark_it: MarkIt) -> None:
    result = mark_it()
    assert result["points"] == 0
    assert reason(result) == "not solved: the stub is still there "


# -- files that are no honest notebook -----------------------------------------------------------------------------


def zip_bomb(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("90_batches.ipynb", b"0" * 50_000_000)


def link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def huge(path: Path) -> None:
    with path.open("wb") as sink:
        sink.truncate(60 * 2**20)


def deep(path: Path) -> None:
    path.write_text("[" * 200_000)


FILES: list[tuple[Callable[[Path], object], str]] = [
    (lambda path: path.write_text("no json"), "it is no JSON"),
    (lambda path: path.write_text('{"cells": 7}'), "it has no cells"),
    (lambda path: path.write_bytes(b"\x80\x04\x95pickle"), "it is no JSON"),
    (zip_bomb, "it is no JSON"),
    (link, "a link or a device"),
    (pipe, "a link or a device"),
    (huge, "60 MiB"),
    (deep, "it is no JSON"),
    (lambda path: None, "can't be read"),
]


@pytest.mark.parametrize(("make", "said"), FILES, ids=[f"{number}-{said}" for number, (_, said) in enumerate(FILES)])
def test_what_is_no_notebook_is_not_marked(
    make: Callable[[Path], object], said: str, mark_it: MarkIt, tmp_path: Path
) -> None:
    path = tmp_path / "90_handed_in.ipynb"
    make(path)
    result = mark_it(path=path)
    assert result["points"] == 0
    assert said in result["unreadable"]
    assert said in reason(result)


# -- notebooks that claim what is not so ---------------------------------------------------------------------------


def test_forged_outputs_and_metadata_count_for_nothing(mark_it: MarkIt, handed_out: Notebook) -> None:
    facts = {"check": "90/pull", "state": "passed", "points": 2, "tried": 50, "failed": 0}
    for cell in handed_out["cells"]:
        if cell["cell_type"] == "code":
            data = {"text/plain": "90/pull: passed (2 points)", VERDICT_MIME: facts}
            cell["outputs"] = [{"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": 1}]
        if "nbgrader" in cell["metadata"]:
            cell["metadata"]["nbgrader"]["points"] = 100
    result = mark_it(WRONG)
    assert result["most"] == 2
    assert result["points"] < 2


def test_a_table_of_what_the_public_seeds_ask_gets_nothing(mark_it: MarkIt) -> None:
    asked = {}

    def pull(queue: list[int], limit: int) -> tuple[list[int], list[int]]:
        asked[repr((queue, limit))] = queue[:limit], queue[limit:]
        return queue[:limit], queue[limit:]

    find_check("90/pull").play(pull)
    result = mark_it(f"TABLE = {asked!r}\ndef pull(queue, limit): return TABLE[repr((queue, limit))]")
    assert result["marks"][0]["public"] == (50, 50)
    assert result["marks"][0]["hidden"][0] < 2
    assert result["points"] == 0


def test_points_are_for_what_goes_well_with_public_and_with_hidden_seeds() -> None:
    assert points_of(3, 1, 1) == 3
    assert points_of(3, 1, 0.75) == 2.25
    assert points_of(3, 0.6, 1) == 1.8
    assert points_of(3, 1, 0.5) == 1.5
    assert points_of(3, 1, 0.45) == 0
    assert points_of(3, 0.48, 1) == 0
    assert points_of(2, 0.98) == 1.96
    assert points_of(2) == 0


def test_deleted_exercise(mark_it: MarkIt, handed_out: Notebook) -> None:
    handed_out["cells"].remove(exercise_of(handed_out))
    result = mark_it()
    assert result["points"] == 0
    assert result["remarks"] == ["the exercise 90-pull is not in the notebook"]
    assert reason(result) == "no cell of an exercise defines pull "


def test_reordered_cells_are_marked_all_the_same(mark_it: MarkIt, handed_out: Notebook) -> None:
    handed_out["cells"].reverse()
    assert mark_it(HONEST)["points"] == 2


def test_of_two_cells_of_one_name_the_last_counts(mark_it: MarkIt, handed_out: Notebook) -> None:
    cell = exercise_of(handed_out)
    handed_out["cells"].append({**cell, "source": WRONG})
    result = mark_it(HONEST)
    assert result["points"] < 2
    assert "the exercise 90-pull is there more than once; the last one counts" in result["remarks"]


def test_cells_that_were_added_are_not_run_by_the_judge(mark_it: MarkIt, handed_out: Notebook) -> None:
    handed_out["cells"].insert(0, {"cell_type": "code", "metadata": {}, "source": HONEST, "outputs": []})
    handed_out["cells"].append({"cell_type": "code", "metadata": {}, "source": HONEST, "outputs": []})
    assert mark_it()["points"] == 0


def test_a_notebook_of_somebody_else_is_told(mark_it: MarkIt, handed_out: Notebook) -> None:
    for cell in handed_out["cells"]:
        if "student_id" in cell["source"] and cell["cell_type"] == "code":
            cell["source"] = cell["source"].replace('student_id = ""', 'student_id = "bob"')
            break
    result = mark_it(HONEST)
    assert result["remarks"] == ["the notebook says that it is of 'bob', and it was handed in by 'ada'"]


def test_an_exercise_of_ten_million_characters_is_not_read(mark_it: MarkIt) -> None:
    result = mark_it(HONEST + "#" * 10_000_000)
    assert result["points"] == 0
    assert "has 10,000,0" in result["remarks"][0]


# -- solutions that attack the judge -------------------------------------------------------------------------------

ATTACKS = {
    "endless definition": ("while True: pass", "do not come to an end"),
    "endless function": ("def pull(q, n):\n    while True: pass", "does not come to an end"),
    "ignored interrupt": (
        "import signal\nfor s in (2, 15): signal.signal(s, signal.SIG_IGN)\n"
        "def pull(q, n):\n    while True:\n        try: pass\n        except BaseException: pass",
        "does not come to an end",
    ),
    "sleeps for ever": ("import time\ndef pull(q, n): time.sleep(10_000)", "does not come to an end"),
    "os._exit": ("import os\ndef pull(q, n): os._exit(0)", "ended with exit code 0"),
    "exit at definition": ("import os\nos._exit(0)", "ended with exit code 0"),
    "SystemExit": ("def pull(q, n): raise SystemExit(0)", "ended with exit code"),
    "kills its group": ("import os, signal\ndef pull(q, n): os.killpg(0, signal.SIGKILL)", ""),
    "memory balloon": ("def pull(q, n):\n    a = []\n    while True: a.append(bytearray(10**7))", ""),
    "fork bomb": ("import os\ndef pull(q, n):\n    while True: os.fork()", ""),
    "thread bomb": (
        "import threading, time\ndef pull(q, n):\n    while True:\n"
        "        threading.Thread(target=time.sleep, args=(1000,)).start()",
        "",
    ),
    "flood": ("def pull(q, n):\n    while True: print('x' * 100_000)", "does not come to an end"),
    "huge value": ("def pull(q, n): return 'x' * 80_000_000", "32 MiB"),
    "endless value": ("import itertools\ndef pull(q, n): return itertools.count()", ""),
    "deep value": ("def pull(q, n):\n    a = []\n    for _ in range(5000): a = [a]\n    return a", "nested too deeply"),
    "always equal": (
        "class Yes(tuple):\n    def __eq__(self, o): return True\n    __hash__ = None\ndef pull(q, n): return Yes()",
        "the answer to",
    ),
    "pickle": (
        "import os\nclass P:\n    def __reduce__(self): return os.system, ('touch owned',)\ndef pull(q, n): return P()",
        "the answer to",
    ),
    "patched judge": (
        "import mqlab.check.registry as r, mqlab.check as c, sys\nc.Wrong = r.Wrong = lambda *a, **k: None\n"
        "r.LabCheck.play = r.LabCheck._judge_one = lambda *a, **k: None\nsys.modules['mqlab.labs.checks'] = c\n"
        + WRONG,
        "the answer to",
    ),
    "patched builtins": ("import builtins\nbuiltins.len = builtins.sorted = lambda *a: 0\n" + WRONG, ""),
    "forged lines": (
        "import os\ndef pull(q, n):\n    for fd in range(3, 30):\n"
        '        try: os.write(fd, b\'["value", ["tuple", [1, 2]]]\\n{}\\n\')\n        except OSError: pass\n'
        "    return q, []",
        "",
    ),
    "forged result": (
        "import json, glob\nfor name in ('result.json', '../result.json', '../out/result.json'):\n"
        "    try: open(name, 'w').write(json.dumps({'points': 2, 'end': True}))\n    except OSError: pass\n" + WRONG,
        "the answer to",
    ),
    "climbs": (
        "def pull(q, n):\n    for kind in ().__class__.__base__.__subclasses__():\n"
        "        if kind.__name__ in ('Verdict', 'Wrong'):\n            kind.__init__ = lambda *a, **k: None\n"
        "    return q, []",
        "the answer to",
    ),
    "threads left behind": (
        "import threading, time\nfor _ in range(5): threading.Thread(target=time.sleep, args=(9e3,)).start()\n" + WRONG,
        "the answer to",
    ),
    "detached child": (
        "import subprocess\nsubprocess.Popen(['sleep', '31415'], start_new_session=True)\n" + WRONG,
        "the answer to",
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_on_the_judge_earns_nothing(name: str, mark_it: MarkIt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqlab.grading.judging.MARKING_PATIENCE_S", 1.0)
    monkeypatch.setattr("mqlab.grading.judging.ASLEEP_S", 3.0)
    solution, said = ATTACKS[name]
    result = mark_it(solution)
    assert result["points"] < 2
    assert said in reason(result)
    assert result["marks"][0]["hidden"] != (3, 3)
    assert not [process for process in psutil.process_iter(["cmdline"]) if "31415" in (process.info["cmdline"] or ())]


def test_nothing_is_read_or_written_outside(mark_it: MarkIt, tmp_path: Path) -> None:
    own = Path(mqlab.__file__)
    before = own.read_bytes()
    secret = tmp_path / "key"
    result = mark_it(f"""
found = []
for name in ({str(secret)!r}, {str(tmp_path / "90_batches.ipynb")!r}):
    try: found.append(open(name).read())
    except OSError as error: found.append(type(error).__name__)
try: open({str(own)!r}, "a").write("# owned")
except OSError as error: found.append(type(error).__name__)
import socket
try: socket.create_connection(("192.0.2.1", 80), 1)
except OSError as error: found.append(error.strerror)
def pull(queue, limit): return found
""")
    assert own.read_bytes() == before
    told = reason(result)
    assert told.count("FileNotFoundError") == 2
    assert "OSError" in told
    assert "Network is unreachable" in told


def test_the_labs_sources_with_their_solutions_cannot_be_read(mark_it: MarkIt) -> None:
    sources = Path(mqlab.__file__).parents[1] / "labs" / "sources"
    assert sources.is_dir()
    result = mark_it(f"""
import glob, sys
found = []
for place in [*(f"{{p}}/labs/sources" for p in sys.path), {str(sources)!r}]:
    for name in glob.glob(f"{{place}}/*.py"):
        found.append(name)
def pull(queue, limit): return found, len(found)
""")
    assert "([], 0)" in reason(result)


# -- notebooks that attack the machine while they are run ----------------------------------------------------------

RUNS = {
    "endless cell": ("while True: pass", "ran longer than"),
    "fork bomb": ("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", "stopped: it"),
    "memory balloon": ("a = []\nwhile True: a.append(bytearray(10**7))", ""),
    "kernel ends itself": ("import os\nos._exit(0)", "failed"),
    "ignored interrupt": (
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "while True: pass",
        "ran longer than",
    ),
    "detached child": (
        "import subprocess\nsubprocess.Popen(['sleep', '27182'], start_new_session=True)\nraise KeyError",
        "KeyError",
    ),
    "flood of output": ("for _ in range(2000): print('x' * 100_000)", ""),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_attacks_the_machine_is_stopped_and_told(name: str, mark_it: MarkIt, handed_out: Notebook) -> None:
    source, said = RUNS[name]
    cell: Notebook = {"cell_type": "code", "metadata": {}, "source": source, "outputs": [], "execution_count": None}
    handed_out["cells"] = [cell, exercise_of(handed_out)]
    handed_out["cells"][0]["id"] = "hostile"
    wall_s = 8 if said == "ran longer than" else 30
    limits = Limits(wall_s=wall_s, cpu_s=30, memory_bytes=400 * 2**20, processes=60)
    result = mark_it(HONEST, run=True, limits=limits)
    assert result["run"]["verdict"] != "ok" or name == "flood of output"
    assert said in result["run"]["verdict"]
    assert result["run"]["seconds"] < 40
    assert result["points"] == 2
    assert not [process for process in psutil.process_iter(["cmdline"]) if "27182" in (process.info["cmdline"] or ())]
