"""Binder builds what is meant: four traps of repo2docker, each of which passes in silence, are kept out."""

from __future__ import annotations

import os

import pytest

from .tree import ROOT, read


def test_there_is_no_dockerfile_since_it_would_silence_every_other_file() -> None:
    assert not (ROOT / "Dockerfile").exists()
    assert not (ROOT / "binder" / "Dockerfile").exists()


def test_there_is_no_runtime_txt_since_environment_yml_would_silence_it() -> None:
    assert not (ROOT / "runtime.txt").exists()
    assert not (ROOT / "binder" / "runtime.txt").exists()


def test_an_error_in_post_build_ends_the_build() -> None:
    commands = [line for line in read("binder/postBuild").splitlines() if line and not line.startswith("#")]
    assert commands[0] == "set -e"


def test_start_hands_over_to_the_server() -> None:
    assert read("binder/start").rstrip().splitlines()[-1] == 'exec "$@"'


def test_students_begin_in_their_working_copy() -> None:
    assert "python -m mqlab my-labs" in read("binder/postBuild").splitlines()
    assert "cd my-labs" in read("binder/start").splitlines()


@pytest.mark.parametrize("name", ["postBuild", "start"])
def test_a_script_can_be_executed_and_says_with_what(name: str) -> None:
    assert os.access(ROOT / "binder" / name, os.X_OK)
    assert read(f"binder/{name}").startswith("#!/bin/bash\n")


def test_spark_finds_a_java_there() -> None:
    assert read("binder/apt.txt").split() == ["openjdk-17-jdk-headless"]
