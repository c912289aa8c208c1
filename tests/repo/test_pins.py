"""Every package is pinned once: the requirement files, pyproject.toml and the conda and Binder environments agree."""

from __future__ import annotations

import json
import re
import tomllib
from importlib import metadata

import pytest
import yaml
from packaging.requirements import Requirement

from .tree import ROOT, pins, read

PROJECT = tomllib.loads(read("pyproject.toml"))["project"]
SETS = ("build", "java", "slides", "labs", "spark", "storage", "dev", "clients", "site")
HOLDS = {
    "labs": "labs", "widgets": "labs", "trace": "labs", "codecs": "labs", "spark": "spark", "serve": "spark",
    "storage": "storage", "dev": "dev", "clients": "clients",
}  # fmt: skip
"""The requirement file that holds each extra."""


def environment(name: str) -> list[str]:
    """The packages that an environment file has pip install."""
    dependencies = yaml.safe_load(read(name))["dependencies"]
    (pip,) = [entry["pip"] for entry in dependencies if isinstance(entry, dict)]
    return list(pip)


def test_the_extras_are_those_that_the_documentation_names() -> None:
    assert set(PROJECT["optional-dependencies"]) == {*HOLDS, "all"}
    assert set(metadata.metadata("mqlab").get_all("Provides-Extra") or []) == {*HOLDS, "all"}


def test_mqlab_itself_needs_no_package() -> None:
    assert PROJECT["dependencies"] == []


@pytest.mark.parametrize("extra", HOLDS)
def test_what_an_extra_asks_for_is_pinned_in_its_file(extra: str) -> None:
    pinned: dict[str, list[str]] = {}
    for pin in map(Requirement, pins(HOLDS[extra])):
        pinned.setdefault(pin.name, []).append(str(pin.specifier).removeprefix("=="))
    for wanted in map(Requirement, PROJECT["optional-dependencies"][extra]):
        if wanted.name == "mqlab":
            assert {HOLDS[other] for other in wanted.extras} == {HOLDS[extra]}
            continue
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


@pytest.mark.parametrize(
    ("name", "sets"),
    [
        ("environment.yml", ("build", "labs", "spark", "java")),
        ("binder-full/environment.yml", ("build", "labs", "spark", "java")),
        ("binder/environment.yml", ("build", "labs")),
    ],
)
def test_an_environment_file_has_the_pins_of_the_requirement_files(name: str, sets: tuple[str, ...]) -> None:
    wanted = {pin for requirements in sets for pin in pins(requirements)}
    brought_otherwise = {"pip", "uv"}
    assert set(environment(name)) == {pin for pin in wanted if pin.split("==")[0] not in brought_otherwise}


def test_the_browsers_wheels_have_hashes_and_its_widgets_are_those_of_the_labs() -> None:
    pinned = dict(pin.split("==") for pin in pins("lite"))
    assert read("requirements/lite.txt").count("--hash=sha256:") >= len(pinned) > 0
    labs = {Requirement(pin).name: str(Requirement(pin).specifier).removeprefix("==") for pin in pins("labs")}
    assert {name: pinned[name] for name in ("anywidget", "ipywidgets", "comm", "psygnal")} == {
        name: labs[name] for name in ("anywidget", "ipywidgets", "comm", "psygnal")
    }


def test_the_browsers_python_is_pinned_with_a_hash_and_without_an_address() -> None:
    lock = json.loads(read("requirements/pyodide/package-lock.json"))["packages"]
    wanted = json.loads(read("requirements/pyodide/package.json"))["dependencies"]["pyodide"]
    assert lock["node_modules/pyodide"]["version"] == wanted
    fetched = [entry for place, entry in lock.items() if place]
    assert all(entry["integrity"].startswith("sha512-") and "resolved" not in entry for entry in fetched)


def test_the_pythons_named_are_those_that_are_supported() -> None:
    assert PROJECT["requires-python"] == ">=3.11"
    named = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if line.startswith("Programming Language")]
    assert named == ["3.11", "3.12", "3.13"]
    script = (ROOT / "requirements" / "new-venv.sh").read_text(encoding="utf-8")
    assert all(f"python{version}" in script for version in named)
