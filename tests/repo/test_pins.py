"""Every package is pinned once: the requirement files, pyproject.toml and the conda and Binder environments agree."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata

import pytest
import yaml
from packaging.requirements import Requirement

from .tree import ROOT, pins, read

PROJECT = tomllib.loads(read("pyproject.toml"))["project"]
SETS = ("build", "java", "labs", "spark", "dev")
HOLDS = {"labs": "labs", "widgets": "labs", "trace": "labs", "codecs": "labs", "spark": "spark", "dev": "dev"}
"""The requirement file that holds each extra."""


def environment(name: str) -> list[str]:
    """The packages that an environment file has pip install."""
    dependencies = yaml.safe_load(read(name))["dependencies"]
    (pip,) = [entry["pip"] for entry in dependencies if isinstance(entry, dict)]
    return list(pip)


def test_the_extras_are_the_six_that_the_documentation_names() -> None:
    assert set(PROJECT["optional-dependencies"]) == set(HOLDS)
    assert set(metadata.metadata("mqlab").get_all("Provides-Extra") or []) == set(HOLDS)


def test_mqlab_itself_needs_no_package() -> None:
    assert PROJECT["dependencies"] == []


@pytest.mark.parametrize("extra", HOLDS)
def test_what_an_extra_asks_for_is_pinned_in_its_file(extra: str) -> None:
    pinned: dict[str, list[str]] = {}
    for pin in map(Requirement, pins(HOLDS[extra])):
        pinned.setdefault(pin.name, []).append(str(pin.specifier).removeprefix("=="))
    for wanted in map(Requirement, PROJECT["optional-dependencies"][extra]):
        versions = pinned.get(wanted.name.replace("_", "-"), [])
        assert versions, f"{wanted} is not in requirements/{HOLDS[extra]}.txt: run make lock"
        assert all(wanted.specifier.contains(version) for version in versions), f"{wanted}: run make lock"


@pytest.mark.parametrize("name", SETS)
def test_every_pin_has_a_hash(name: str) -> None:
    text = read(f"requirements/{name}.txt")
    entries = re.split(r"\n(?=\S)", text.strip())
    assert len(entries) == len(pins(name))
    assert all("--hash=sha256:" in entry for entry in entries)


def test_the_sets_agree_on_every_package_that_they_share() -> None:
    versions: dict[tuple[str, str], set[str]] = {}
    for pin in (Requirement(pin) for name in SETS for pin in pins(name)):
        versions.setdefault((pin.name, str(pin.marker)), set()).add(str(pin.specifier))
    assert {package: found for package, found in versions.items() if len(found) > 1} == {}


def test_the_conda_environment_has_the_pins_of_the_requirement_files() -> None:
    wanted = {pin for name in ("build", "labs", "spark", "java") for pin in pins(name)}
    brought_otherwise = {"pip", "uv"}
    assert set(environment("environment.yml")) == {pin for pin in wanted if pin.split("==")[0] not in brought_otherwise}


def test_binder_has_the_environment_that_conda_has() -> None:
    assert read("binder/environment.yml") == read("environment.yml")


def test_the_pythons_named_are_those_that_are_supported() -> None:
    assert PROJECT["requires-python"] == ">=3.11"
    named = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if line.startswith("Programming Language")]
    assert named == ["3.11", "3.12", "3.13"]
    script = (ROOT / "requirements" / "new-venv.sh").read_text(encoding="utf-8")
    assert all(f"python{version}" in script for version in named)
