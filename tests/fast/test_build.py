"""The compiled copy: which modules it is made of, and what is said without it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mqlab.commands.fast import main
from mqlab.errors import LearnerError
from mqlab.fast import running
from mqlab.fast.build import FINGERPRINT, SOURCES, build, code_of, environment, fingerprint, modules, state
from mqlab.fast.marks import mark_tree
from mqlab.sim import world


def test_every_module_of_the_list_is_there_and_the_list_names_it_once() -> None:
    names = modules()
    assert len(names) == len(set(names))
    for name in names:
        assert (SOURCES.parent / f"{name.replace('.', '/')}.py").exists(), name


def test_the_sources_can_be_marked(tmp_path: Path) -> None:
    copy = tmp_path / "mqlab"
    shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("__pycache__"))
    assert mark_tree(copy, frozenset(modules())) > 0


def test_a_copy_counts_as_long_as_sources_and_python_are_the_same(tmp_path: Path) -> None:
    assert state(tmp_path) == "none"
    (tmp_path / FINGERPRINT).write_text("of something else")
    assert state(tmp_path) == "outdated"
    with pytest.raises(LearnerError, match=r"of other sources(.|\n)*make fast"):
        environment(tmp_path)
    (tmp_path / FINGERPRINT).write_text(fingerprint())
    assert environment(tmp_path)["PYTHONPATH"].split(":")[0] == str(tmp_path)


def test_a_copy_is_of_the_same_code_as_what_it_was_made_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert code_of() == fingerprint()
    (tmp_path / FINGERPRINT).write_text(fingerprint())
    monkeypatch.setattr("mqlab.fast.build.SOURCES", tmp_path / "mqlab")
    assert code_of() == (tmp_path / FINGERPRINT).read_text() != fingerprint()


def test_without_a_compiler_the_line_that_installs_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LearnerError, match=r"no C compiler(.|\n)*apt-get install gcc"):
        build(tmp_path / "fast")
    assert not (tmp_path / "fast").exists()


def test_without_a_copy_a_command_says_how_to_build_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LearnerError, match=r"no compiled mqlab(.|\n)*make fast"):
        main(["scenarios"])


def test_the_usage_says_which_mqlab_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert f"This mqlab is {running()}" in capsys.readouterr().out


def test_which_mqlab_runs_is_told_by_the_file_of_the_world() -> None:
    assert running() == ("interpreted" if str(world.__file__).endswith(".py") else "compiled")
