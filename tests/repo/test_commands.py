"""The commands that the documentation gives are there, and .ci/run leaves no tests out."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from .tree import ROOT, make_targets, read

PAGES = ("README.md", "CONTRIBUTING.md", "docs/dependencies.md")
PROMISED = {
    "attacks", "bubblewrap", "help", "lab", "run", "test", "bench", "bench-grade", "bench-serve",
    "bench-spark",
    "explore-seeds", "explore-test", "solutions-test", "lint", "type", "format", "labs", "clean", "spark", "lock",
    "clients", "clients-test", "python-client-test", "demo", "doctor", "browser-test", "truths", "fast", "fast-test",
    "grading-test", "labs-all-ways", "mutants", "nbgrader-test", "pip-test", "wheels",
    "real", "real-jars", "real-test",
    "spark-archive", "spark-cluster-test", "spark-slow-test", "spark-test",
    "site", "site-test", "slides", "storage", "storage-test", "storm-test",
    "unreached", "wheelhouse", "wheelhouse-test",
}  # fmt: skip

STEPS = (
    "fast-test", "browser-test", "site-test", "spark-test", "spark-cluster-test", "spark-slow-test", "explore-test",
    "solutions-test", "grading-test", "attacks", "pip-test", "test", "python-client-test",
)  # fmt: skip
"""What .ci/run runs, in this order."""

NOT_IN_CI = {"clients", "nbgrader", "real", "storage", "storm", "ways", "wheelhouse"}
"""Directories of tests that take too long for it (of `clients` it runs a part), or an environment of their own."""


def in_code(page: str) -> str:
    """The code of a page: its fenced blocks and what stands in backticks."""
    text = read(page)
    fenced = re.findall(r"(?ms)^```\w*\n(.*?)^```", text)
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"(?ms)^```.*?^```", "", text))
    return "\n".join([*fenced, *inline])


@pytest.mark.parametrize("page", PAGES)
def test_every_make_target_that_a_page_names_exists(page: str) -> None:
    named = set(re.findall(r"(?m)^(?:\$ )?make ([a-z-]+)", in_code(page)))
    assert named <= set(make_targets())


@pytest.mark.parametrize("page", PAGES)
def test_every_mqlab_command_that_a_page_names_exists(page: str) -> None:
    named = set(re.findall(r"(?m)^(?:\$ )?mqlab ([a-z]+)", in_code(page)))
    listing = subprocess.run([sys.executable, "-m", "mqlab", "--help"], capture_output=True, text=True, check=True)
    assert named <= set(re.findall(r"(?m)^    ([a-z]+)", listing.stdout))


def make(*arguments: str) -> str:
    """What make prints; run as a person would run it, also when these tests run inside of make."""
    outside = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    answer = subprocess.run(["make", *arguments], cwd=ROOT, env=outside, capture_output=True, text=True, check=True)
    return answer.stdout


def test_make_help_explains_every_target_that_people_type() -> None:
    explained = dict(re.findall(r"(?m)^  ([a-z-]+) +(\S.*)$", make("help")))
    assert set(explained) == PROMISED
    assert explained == make_targets()


def test_make_alone_shows_the_help() -> None:
    assert make() == make("help")


def test_every_target_that_people_type_is_phony() -> None:
    phony = set(re.findall(r"(?m)^\.PHONY: ([a-z-]+)$", read("Makefile")))
    assert set(make_targets()) <= phony


def test_ci_runs_each_step_and_stops_at_the_first_error() -> None:
    script = read(".ci/run").splitlines()
    assert script[0] == "#!/usr/bin/env bash"
    assert "set -euo pipefail" in script
    assert [line for line in script if "make " in line and line[0] != "#"] == [f"make {step}" for step in STEPS]
    assert script[-1] == f"make {STEPS[-1]}"
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_what_make_test_leaves_out_is_in_another_step() -> None:
    makefile = read("Makefile")
    recipes = dict(re.findall(r"(?m)^([a-z-]+):.*\n((?:\t.*\n)+)", makefile))
    apart, solved = (re.findall(rf"(?m)^{name} := (.+)$", makefile)[0] for name in ("APART", "SOLVED"))
    assert apart.split()[-1] == "$(SOLVED)"
    assert all((ROOT / "tests" / name).is_file() for name in solved.split())
    elsewhere = " ".join(recipes[step] for step in STEPS if step != "test")
    assert {name for name in apart.split()[:-1] if f"tests/{name}\n" not in elsewhere} == NOT_IN_CI
    assert "$(addprefix tests/,$(SOLVED))\n" in elsewhere
    assert "-m 'not slow'" in recipes["test"]
    assert "-m slow " in elsewhere
