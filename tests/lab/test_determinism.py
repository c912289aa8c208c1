"""The same scenario and seed give the same trace: in every process, on every Python, with commands as objects or as
bytes.
"""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from mqlab import scenarios
from mqlab.trace.record import format_trace

ROOT = Path(__file__).parents[2]
TRACES = ROOT / "tests" / "golden" / "traces"
UPDATE = "python -m tests.golden.traces.update"

GOLDEN_TEXTS = ("first-message", "new-topic")
"""The scenarios whose whole trace is kept as text, to be read in a change."""


def golden_hashes() -> dict[str, str]:
    lines = (TRACES / "hashes.txt").read_text(encoding="ascii").splitlines()
    return dict(line.split() for line in lines if not line.startswith("#"))


def test_every_registered_scenario_has_a_committed_hash() -> None:
    shipped = [name for name in scenarios.names() if "mqlab.scenarios." in str(scenarios.get(name).function.__module__)]
    assert sorted(golden_hashes()) == shipped, f"run: {UPDATE}"


@pytest.mark.parametrize("name", sorted(golden_hashes()))
def test_a_scenario_gives_its_committed_hash_with_objects_and_with_bytes(name: str) -> None:
    scenario = scenarios.get(name)
    assert scenario.play(7).trace_hash() == golden_hashes()[name], f"if the change is meant, run: {UPDATE}"
    assert scenario.play(7, wire="bytes").trace_hash() == golden_hashes()[name]


@pytest.mark.parametrize("name", ["push-clustering", "push-orderly", "pop-plain", "through-a-proxy"])
def test_a_world_that_nobody_needs_is_freed(name: str) -> None:
    lab = weakref.ref(scenarios.get(name).play(7))
    gc.collect()
    assert lab() is None


@pytest.mark.parametrize("name", GOLDEN_TEXTS)
def test_a_trace_is_the_committed_text(name: str) -> None:
    expected = (TRACES / f"{name}.txt").read_text(encoding="utf-8")
    assert format_trace(scenarios.get(name).play(7).history.rows()) == expected, (
        f"if the change is meant, run: {UPDATE}"
    )


def pythons() -> list[str]:
    """The interpreter of this run, and those of the other supported versions that the machine has and that start."""
    found = [sys.executable]
    for version in ("3.11", "3.12", "3.13"):
        path = shutil.which(f"python{version}")
        if path and not version.endswith(f".{sys.version_info.minor}"):
            answer = subprocess.run([path, "-c", "print(1)"], capture_output=True, check=False)
            if answer.returncode == 0:
                found.append(path)
    return found


def test_the_hash_is_the_same_in_every_process_and_on_every_python() -> None:
    command = ["-S", "-m", "mqlab", "trace", "first-message", "--seed", "7", "--hash"]
    for python in pythons():
        for hash_seed in ("0", "1", "4711"):
            environment = {
                "PYTHONPATH": str(ROOT),
                "PYTHONHASHSEED": hash_seed,
                "TZ": "Asia/Tokyo",
                "PATH": os.environ["PATH"],
            }
            answer = subprocess.run([python, *command], capture_output=True, text=True, env=environment, check=False)
            assert answer.stdout.strip() == golden_hashes()["first-message"], f"{python}: {answer.stderr}"


IN_A_BROWSER = """
import sys
for name in ("signal", "threading", "subprocess", "multiprocessing", "concurrent", "select", "socket", "asyncio"):
    sys.modules[name] = None
from mqlab import scenarios
print(scenarios.get("first-message").play(7).trace_hash())
"""


def test_a_python_without_threads_signals_and_processes_plays_the_same_world() -> None:
    answer = subprocess.run([sys.executable, "-c", IN_A_BROWSER], capture_output=True, text=True, check=False)
    assert answer.stdout.strip() == golden_hashes()["first-message"], answer.stderr
