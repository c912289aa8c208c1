"""What `make wheelhouse` has made installs into a clean environment without a network, and a lab runs there."""

from __future__ import annotations

import os
import shutil
import subprocess
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WHEELHOUSE = ROOT / "out" / "wheelhouse"


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean environment with what the README's first command installs."""
    if not (WHEELHOUSE / "requirements.txt").is_file():
        pytest.fail(f"there is no {WHEELHOUSE}: run `make wheelhouse-test`, which makes it", pytrace=False)
    prefix = tmp_path_factory.mktemp("room") / "mqlab"
    venv.create(prefix, with_pip=True)
    told = run(prefix, "pip", *(first_command().partition("/pip ")[2].split()))
    assert told.returncode == 0, told.stderr
    return prefix


def first_command() -> str:
    """The command of the README that installs."""
    lines = (WHEELHOUSE / "README.md").read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if "/pip install" in line)


def run(prefix: Path, command: str, *arguments: str, cwd: Path = WHEELHOUSE) -> subprocess.CompletedProcess[str]:
    """Run a command of the environment, with nothing around it and no way to any other machine."""
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    home = {"HOME": str(prefix.parent), "PATH": f"{prefix / 'bin'}:/usr/bin:/bin", "PIP_NO_INDEX": "1"}
    return subprocess.run(
        [str(prefix / "bin" / command), *arguments],
        cwd=cwd,
        env={**home, **nowhere, "PIP_CONFIG_FILE": os.devnull},
        capture_output=True,
        text=True,
        check=False,
    )


def test_all_packages_fit_each_other(prefix: Path) -> None:
    told = run(prefix, "pip", "check")
    assert told.stdout == "No broken requirements found.\n"


def test_a_lab_runs_there_to_its_end(prefix: Path, tmp_path: Path) -> None:
    told = run(prefix, "mqlab", "run", "--only", "00", "--out", str(tmp_path))
    assert told.returncode == 0, told.stdout + told.stderr
    assert (tmp_path / "00_tour.ipynb").is_file()


def test_the_labs_are_copied_to_work_in(prefix: Path, tmp_path: Path) -> None:
    told = run(prefix, "mqlab", "my-labs", "--to", str(tmp_path / "my-labs"))
    assert told.returncode == 0, told.stderr
    copied = {path.name for path in (tmp_path / "my-labs").glob("*.ipynb")}
    assert copied == {path.name for path in (ROOT / "labs").glob("*.ipynb")} > {"00_tour.ipynb"}


def test_a_wheel_that_was_changed_is_refused(prefix: Path, tmp_path: Path) -> None:
    (wheel,) = (WHEELHOUSE / "wheels").glob("six-*.whl")
    shutil.copyfile(wheel, tmp_path / wheel.name)
    pins = (WHEELHOUSE / "requirements.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "requirements.txt").write_text("".join(line for line in pins if line.startswith("six==")))
    install = ("install", "--no-index", "-f", ".", "--require-hashes", "-r", "requirements.txt", "--target", "there")
    assert run(prefix, "pip", *install, cwd=tmp_path).returncode == 0
    (tmp_path / wheel.name).write_bytes(wheel.read_bytes() + b"\0")
    refused = run(prefix, "pip", *install, cwd=tmp_path)
    assert refused.returncode == 1
    assert "DO NOT MATCH THE HASHES" in refused.stderr
