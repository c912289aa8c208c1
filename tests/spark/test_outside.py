"""With the archive alone, far from a clone: data sets are made, built and audited in an empty directory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from mqlab_spark.archive import write_archive

PACKAGES = Path(pyspark.__file__).parents[1]
PASSED_ON = ("JAVA_HOME", "PATH", "LANG", "TMPDIR")


class Elsewhere:
    """An empty directory, and this Python without the clone: mqlab is only in the archive."""

    def __init__(self, place: Path) -> None:
        self.work = place / "work"
        self.work.mkdir()
        archive = place / "mqlab-spark.zip"
        write_archive(archive)
        kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        self._environment = {**kept, "HOME": str(place), "PYTHONPATH": f"{archive}:{PACKAGES}"}

    def run(self, *arguments: str) -> str:
        """Run a module of the archive; what it printed. It must end well."""
        # -S: the environment's own path file, which leads to the clone, is not read.
        told = subprocess.run(
            [sys.executable, "-S", *arguments], cwd=self.work, env=self._environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert told.returncode == 0, told.stderr
        return told.stdout


@pytest.fixture
def elsewhere(tmp_path: Path) -> Elsewhere:
    return Elsewhere(tmp_path)


def test_recipes_are_in_the_archive_and_data_sets_go_below_the_working_directory(elsewhere: Elsewhere) -> None:
    assert "mqlab-spark.zip" in elsewhere.run("-c", "import mqlab; print(mqlab.__file__)")
    assert "twice: Twice" in elsewhere.run("-m", "mqlab", "dataset")
    said = elsewhere.run("-m", "mqlab", "dataset", "twice", "sample", "-j", "2")
    assert "5,616 events of 2 worlds in out/datasets/twice-sample" in said
    assert [path.name for path in elsewhere.work.iterdir()] == ["out"]


@pytest.mark.slow
def test_what_was_made_there_is_built_and_audited_there(elsewhere: Elsewhere) -> None:
    elsewhere.run("-m", "mqlab", "dataset", "twice", "sample")
    traces = "out/datasets/twice-sample"
    elsewhere.run("-m", "mqlab_spark", "build", traces, "out/twice", "--master", "local[1]")
    assert (elsewhere.work / "out" / "twice" / "catalogue.json").is_file()
    said = elsewhere.run("-m", "mqlab_spark", "audit", traces, "--master", "local[1]")
    assert "of what was planted: 1 found, 0 missing; 0 others" in said
    assert [path.name for path in elsewhere.work.iterdir()] == ["out"]
