"""Binder builds what is meant, in two sizes: traps of repo2docker, each of which passes in silence, are kept out."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest

from .tree import ROOT, committed_files, read

LIGHT, FULL = "binder", "binder-full"
SIZES = (LIGHT, FULL)


@pytest.mark.parametrize("place", ["", *SIZES])
def test_there_is_no_dockerfile_since_it_would_silence_every_other_file(place: str) -> None:
    assert not (ROOT / place / "Dockerfile").exists()


@pytest.mark.parametrize("place", ["", *SIZES])
def test_there_is_no_runtime_txt_since_environment_yml_would_silence_it(place: str) -> None:
    assert not (ROOT / place / "runtime.txt").exists()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["postBuild", "start"])
def test_a_script_can_be_executed_says_with_what_and_ends_at_an_error(size: str, name: str) -> None:
    assert os.access(ROOT / size / name, os.X_OK)
    lines = [line for line in read(f"{size}/{name}").splitlines() if line]
    assert lines[0] == "#!/bin/bash"
    assert next(line for line in lines if not line.startswith("#")) == "set -e"


@pytest.mark.parametrize("size", SIZES)
def test_start_hands_over_to_the_server(size: str) -> None:
    assert read(f"{size}/start").rstrip().splitlines()[-1] == 'exec "$@"'


def test_spark_finds_a_java_in_the_full_size_and_the_light_one_has_neither() -> None:
    assert read(f"{FULL}/apt.txt").split() == ["openjdk-17-jdk-headless"]
    assert not (ROOT / LIGHT / "apt.txt").exists()
    assert "pyspark" in read(f"{FULL}/environment.yml")
    assert "pyspark" not in read(f"{LIGHT}/environment.yml")


@pytest.mark.parametrize("size", SIZES)
def test_its_scripts_run_in_a_clean_prefix_and_the_server_starts_in_the_working_copy(size: str, tmp_path: Path) -> None:
    clone, prefix = tmp_path / "clone", tmp_path / "prefix"
    for path in committed_files():
        (clone / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, clone / path.relative_to(ROOT))
    venv.create(prefix, with_pip=True, symlinks=True)
    borrow_packages(prefix)
    environment = {"PATH": f"{prefix / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path), "CONDA_PREFIX": str(prefix)}
    run = {"cwd": clone, "env": environment, "capture_output": True, "text": True}
    built = subprocess.run([clone / size / "postBuild"], **run, check=False)
    assert built.returncode == 0, built.stderr
    ask = "import os, mqlab; print(os.getcwd()); print(mqlab.__file__); print(os.environ.get('PYSPARK_PYTHON'))"
    told = subprocess.run([clone / size / "start", "python", "-c", ask], **run, check=True)
    python = str(prefix / "bin" / "python") if size == FULL else "None"
    assert told.stdout.split() == [str(clone / "my-labs"), str(clone / "mqlab" / "__init__.py"), python]
    assert (clone / "my-labs" / "00_tour.ipynb").is_file()


def borrow_packages(prefix: Path) -> None:
    """Let an environment find this one's packages, but not the mqlab that is installed here."""
    (place,) = (prefix / "lib").glob("python*/site-packages")
    ours = sysconfig.get_paths()["purelib"]
    (place / "borrowed.pth").write_text(f"import sys; sys.path.append({ours!r})\n", encoding="utf-8")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with both sizes and one more file, committed."""
    for size in SIZES:
        (tmp_path / size).mkdir()
        (tmp_path / size / "start").write_text(size, encoding="utf-8")
    (tmp_path / LIGHT / "only-light").write_text("", encoding="utf-8")
    (tmp_path / "lab").write_text("a lab", encoding="utf-8")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "all")
    return tmp_path


def git(repository: Path, *arguments: str) -> str:
    """What git prints."""
    who = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    answer = subprocess.run(["git", *who, *arguments], cwd=repository, capture_output=True, text=True, check=True)
    return answer.stdout


def make_branch(repository: Path) -> subprocess.CompletedProcess[str]:
    """Run the script that makes the branch of the full size."""
    who = {f"GIT_{role}_{what}": "test@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    script = ["sh", str(ROOT / FULL / "make-branch.sh")]
    return subprocess.run(
        script, cwd=repository, env={**os.environ, **who}, capture_output=True, text=True, check=False
    )


def test_the_branch_has_the_full_size_in_the_place_of_the_light_one_and_changes_nothing_here(repository: Path) -> None:
    (repository / "lab").write_text("not committed", encoding="utf-8")
    for _ in range(2):
        assert make_branch(repository).returncode == 0
    listed = git(repository, "ls-tree", "-r", "--name-only", "binder-full").split()
    assert listed == ["binder-full/start", "binder/start", "lab"]
    assert git(repository, "show", "binder-full:binder/start") == FULL
    assert git(repository, "show", "binder-full:lab") == "a lab"
    assert git(repository, "status", "--short").split() == ["M", "lab"]


def test_where_there_is_no_full_size_no_branch_is_made(repository: Path) -> None:
    git(repository, "rm", "--quiet", "-r", FULL)
    git(repository, "commit", "--quiet", "--message", "less")
    told = make_branch(repository)
    assert told.returncode == 1
    assert "binder-full/" in told.stderr
    assert git(repository, "branch", "--list", "binder-full") == ""
