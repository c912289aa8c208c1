"""The compiled wheel: the same hashes, without a compiler or mypy; notebooks take sources, and it says what runs."""

from __future__ import annotations

import json
from pathlib import Path

from .prefix import ROOT, Prefix

HASHES = ROOT / "tests" / "golden" / "traces" / "hashes.txt"
PLAY = """
import sys
from mqlab import scenarios
from mqlab.sim import world

print(world.__file__)
for name in sys.argv[1:]:
    print(name, scenarios.get(name).play(7).trace_hash())
"""


def golden() -> dict[str, str]:
    """Scenario -> the hash of its trace."""
    lines = HASHES.read_text(encoding="ascii").splitlines()
    return dict(line.split() for line in lines if not line.startswith("#"))


def test_every_scenario_has_its_committed_hash(compiled: Prefix) -> None:
    place, *lines = compiled.run("python", "-c", PLAY, *golden()).splitlines()
    assert place.endswith(".so")
    assert dict(line.split() for line in lines) == golden()


def test_doctor_says_which_one_runs(compiled: Prefix) -> None:
    assert "mqlab runs compiled, from a compiled wheel" in compiled.run("mqlab", "doctor")
    assert "mqlab runs interpreted, from a" in compiled.run("mqlab", "doctor", MQLAB_COMPILED="0")


def test_commands_run_compiled_and_say_so(compiled: Prefix) -> None:
    for command in (("explore",), ("fast", "explore")):
        said = compiled.run("mqlab", *command, "first-message", "--seeds", "2", "--faults", "none")
        assert "2 passed, 0 failed (mqlab compiled)" in said
    assert "nothing to build" in compiled.run("mqlab", "fast", "build")


def test_a_notebook_takes_the_sources_and_so_does_what_it_starts(compiled: Prefix) -> None:
    cell = (
        "import subprocess, sys\n"
        "from mqlab.sim import world\n"
        "show = 'from mqlab.sim import world; print(world.__file__)'\n"
        "child = subprocess.run([sys.executable, '-c', show], capture_output=True, text=True, check=True)\n"
        "print(world.__file__, child.stdout.strip())"
    )
    write_notebook(compiled.work / "labs" / "00_which.ipynb", cell)
    compiled.run("mqlab", "run", "--root", ".")
    executed = json.loads((compiled.work / "out" / "00_which.ipynb").read_text(encoding="utf-8"))
    shown = "".join(executed["cells"][0]["outputs"][0]["text"]).split()
    assert [Path(place).name for place in shown] == ["world.py", "world.py"]


def test_a_lab_runs_to_its_end(compiled: Prefix) -> None:
    assert "1 of 1 labs ok" in compiled.run("mqlab", "run", "--only", "00")


def write_notebook(path: Path, source: str) -> None:
    """A notebook of one cell."""
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    cell = {"cell_type": "code", "execution_count": None, "id": "cell", "metadata": {}, "outputs": [], "source": source}
    notebook = {"cells": [cell], "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(notebook), encoding="utf-8")
