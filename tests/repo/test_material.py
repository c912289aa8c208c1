"""One place says where labs, pages and recipes lie: here in a clone, in the clone of this mqlab, or in a wheel."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from mqlab import material
from mqlab.commands.cli import main
from mqlab.material import PACKED, root, work_place

from .tree import ROOT


def a_clone(place: Path) -> Path:
    (place / "labs" / "sources").mkdir(parents=True)
    (place / "pyproject.toml").write_text("")
    return place


def test_a_clone_in_which_one_is_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(a_clone(tmp_path))
    assert root() == Path()


def test_elsewhere_it_is_the_clone_of_this_mqlab_and_one_works_where_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert root() == ROOT
    assert work_place(root()) == Path()
    assert work_place(tmp_path / "another") == tmp_path / "another"


def test_a_directory_with_the_name_labs_is_no_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "labs").mkdir()
    monkeypatch.chdir(tmp_path)
    assert root() == ROOT


def test_an_installed_mqlab_has_them_below_its_labs(tmp_path: Path) -> None:
    """What is being marked may read nothing below mqlab/labs, and the labs' solutions are among them."""
    installed = tmp_path / "mqlab"
    installed.mkdir()
    shutil.copyfile(material.__file__, installed / "material.py")
    (installed / "labs" / "material").mkdir(parents=True)
    found = subprocess.run(
        [sys.executable, "-c", "import material; print(material.root())"],
        cwd=installed, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert Path(found.stdout.strip()) == installed / "labs" / "material"
    assert PACKED.relative_to(ROOT) == Path("mqlab/labs/material")


def test_every_command_finds_the_labs_from_any_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["my-labs"]) == 0
    assert (tmp_path / "my-labs" / "00_tour.ipynb").is_file()
    assert main(["course", "release", "out", "--lab", "00"]) == 0
    assert main(["dataset"]) == 0
    assert main(["museum", "--page", "7914"]) == 0
    said = capsys.readouterr().out
    assert "slow-listener: A slow listener" in said
    assert "issues/7914" in said
    assert "issues/3787" not in said


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """A wheel, as it is built from this clone."""
    return build(tmp_path_factory.mktemp("wheel"))


def build(place: Path, **variables: str) -> zipfile.ZipFile:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(place)]
    environment = {name: value for name, value in os.environ.items() if name != "MQLAB_BUILD"}
    subprocess.run(command, cwd=ROOT, env={**environment, **variables}, capture_output=True, check=True)
    (made,) = place.glob("*.whl")
    return zipfile.ZipFile(made)


LEFT_OUT = {"docs/architecture.md", "docs/costs.md", "docs/dependencies.md", "docs/fidelity.md"}


def test_a_wheel_has_every_lab_recipe_and_page_but_those_that_nothing_points_to(wheel: zipfile.ZipFile) -> None:
    packed = "mqlab/labs/material/"
    names = {name.removeprefix(packed) for name in wheel.namelist() if name.startswith(packed)}
    patterns = ("labs/*.ipynb", "labs/sources/*.py", "docs/*.md", "docs/answers/*.*", "datasets/*.*")
    wanted = {path.relative_to(ROOT).as_posix() for pattern in patterns for path in ROOT.glob(pattern)}
    assert names == wanted - LEFT_OUT
    for name in names:
        text = wheel.read(packed + name).decode()
        assert not [left for left in LEFT_OUT if f"({Path(left).name}" in text or f"/{left}" in text], name
    assert {"labs/05_push_is_pull.ipynb", "docs/museum.md", "datasets/twice.toml"} <= names


def test_the_notebooks_in_a_wheel_answer_no_bet(wheel: zipfile.ZipFile) -> None:
    hidden = 0
    for name in wheel.namelist():
        if name.endswith(".ipynb"):
            for cell in json.loads(wheel.read(name))["cells"]:
                if cell["metadata"].get("jupyter", {}).get("outputs_hidden"):
                    hidden += 1
                    assert cell["outputs"] == [], f"{name}: {cell['source']}"
    assert hidden > 50


def test_a_bare_wheel_has_the_code_alone(tmp_path: Path) -> None:
    names = build(tmp_path, MQLAB_BUILD="bare").namelist()
    assert "mqlab/sim/world.py" in names
    assert [name for name in names if "material/" in name] == []


def test_another_word_for_what_to_build_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        build(tmp_path, MQLAB_BUILD="fast")
    assert b"set it to compiled or bare, or unset it" in refused.value.stderr
