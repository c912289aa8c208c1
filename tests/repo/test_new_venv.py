"""The first thing that `make` does on a new machine: make an environment with a Python, or say what is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .tree import ROOT


def fake_python(directory: Path, name: str, version: str, *, venv: bool) -> None:
    """A command that answers the three questions of the script as a Python of that version would."""
    new_enough = 0 if tuple(map(int, version.split("."))) >= (3, 11) else 1
    command = directory / name
    command.write_text(
        f"""#!/bin/sh
case "$2" in
    *ensurepip*) exit {0 if venv else 1} ;;
    *exit*) exit {new_enough} ;;
    *) echo {version} ;;
esac
"""
    )
    command.chmod(0o755)


def new_venv(
    directory: Path | str, path: Path, place: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the script in `place`, with nothing on PATH but what is in `path`."""
    script = str(ROOT / "requirements" / "new-venv.sh")
    command = ["/bin/sh", script, str(directory)]
    path_only = {"PATH": str(path), **environment}
    return subprocess.run(command, cwd=place, env=path_only, capture_output=True, text=True, check=False)


def test_without_any_python_it_says_how_to_get_one(tmp_path: Path) -> None:
    answer = new_venv(tmp_path / "venv", tmp_path)
    assert answer.returncode == 1
    assert "mqlab needs Python 3.11 or newer" in answer.stderr
    assert "no Python that runs" in answer.stderr
    assert "brew install python@3.13" in answer.stderr


def test_with_an_old_python_it_names_what_it_found(tmp_path: Path) -> None:
    fake_python(tmp_path, "python3", "3.9", venv=True)
    answer = new_venv(tmp_path / "venv", tmp_path)
    assert answer.returncode == 1
    assert "Found only:          python3=3.9" in answer.stderr


def test_without_the_venv_module_it_names_the_package_to_install(tmp_path: Path) -> None:
    fake_python(tmp_path, "python3", "3.12", venv=False)
    answer = new_venv(tmp_path / "venv", tmp_path)
    assert answer.returncode == 1
    assert "sudo apt-get install python3.12-venv" in answer.stderr


def test_it_names_the_command_that_was_typed(tmp_path: Path) -> None:
    answer = new_venv(tmp_path / "venv", tmp_path, GOAL="run")
    assert "make run PYTHON=/path/to/python3" in answer.stderr


def test_a_python_that_does_not_run_is_passed_over_and_the_environment_works(tmp_path: Path) -> None:
    broken = tmp_path / "python3.13"
    broken.write_text("#!/bin/sh\nexit 127\n")
    broken.chmod(0o755)
    (tmp_path / "python3").symlink_to(sys.executable)
    answer = new_venv(tmp_path / "with space", tmp_path)
    assert answer.returncode == 0, answer.stderr
    made = tmp_path / "with space" / "bin" / "python"
    subprocess.run([str(made), "-m", "pip", "--version"], check=True, capture_output=True)


def test_a_link_is_refused_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    others = tmp_path / "other" / ".venv"
    others.mkdir(parents=True)
    (others / "theirs").write_text("kept")
    (tmp_path / ".venv").symlink_to(others)
    (tmp_path / "python3").symlink_to(sys.executable)
    for given in (".venv", ".venv/"):
        answer = new_venv(given, tmp_path, place=tmp_path)
        assert answer.returncode == 1
        (line,) = answer.stderr.splitlines()
        assert "is a link" in line
        assert "rm .venv, and give the same command again" in line
        assert (others / "theirs").read_text() == "kept"
