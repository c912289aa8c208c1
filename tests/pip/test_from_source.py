"""The source distribution: it builds what the clone builds, and what lacks a package says which extra has it."""

from __future__ import annotations

import zipfile

import pytest

from .prefix import PURE, Prefix, made


def test_it_installs_the_same_files_as_the_wheel(from_source: Prefix) -> None:
    differing = []
    with zipfile.ZipFile(made(PURE)) as wheel:
        names = [name for name in wheel.namelist() if ".dist-info/" not in name and ".data/" not in name]
        for name in names:
            installed = from_source.packages / name
            if not installed.is_file() or installed.read_bytes() != wheel.read(name):
                differing.append(name)
    assert len(names) > 400
    assert differing == []


@pytest.mark.parametrize("command", ["lab", "demo", "run", "my-labs"])
def test_without_the_extra_a_command_says_what_to_install(from_source: Prefix, command: str) -> None:
    said = from_source.run("mqlab", command, status=2)
    assert "pip install 'mqlab[labs]'" in said
    assert "clone" not in said


def test_what_needs_no_extra_works(from_source: Prefix) -> None:
    assert "push-clustering" in from_source.run("mqlab", "scenarios")
    played = from_source.run("mqlab", "explore", "first-message", "--seeds", "2", "--faults", "none")
    assert "2 passed, 0 failed" in played
    assert "Out of order" in from_source.run("mqlab", "dataset")
    assert "7914" in from_source.run("mqlab", "museum", "--page", "7914")
