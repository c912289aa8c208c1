"""Kernels listen where no other program can be: at no port."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from mqlab.labs.execute import execute
from mqlab.labs.run_one_lab import run

LABS = Path(__file__).parents[2] / "labs"
ASKED = "import ipykernel\nprint(ipykernel.get_connection_info(unpack=True)['transport'])"
SOCKETS = {"name": "stdout", "output_type": "stream", "text": "ipc\n"}
CELL = {"cell_type": "code", "id": "asked", "metadata": {}, "source": ASKED, "outputs": [SOCKETS], "execution_count": 1}
NOTEBOOK = {
    "cells": [CELL],
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}


def transport_in(directory: Path) -> str:
    """What the kernel of a lab is spoken with over that is run in this directory."""
    lab, out = directory / "lab.ipynb", directory / "out.ipynb"
    lab.write_text(json.dumps(NOTEBOOK), encoding="utf-8")
    assert run(lab, out, timeout_s=60) == "ok"
    (output,) = json.loads(out.read_text(encoding="utf-8"))["cells"][0]["outputs"]
    return "".join(output["text"]).strip()


def test_of_a_lab_that_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `mqlab run` and marking do; nothing of the kernel is left."""
    with tempfile.TemporaryDirectory(prefix="m") as short:
        monkeypatch.setattr(tempfile, "tempdir", short)
        assert transport_in(tmp_path) == "ipc"
        assert list(Path(short).iterdir()) == []


def test_where_temporary_files_lie_too_deep_for_a_socket_it_has_ports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    assert transport_in(tmp_path) == "tcp"


def test_of_a_lab_that_is_built(tmp_path: Path) -> None:
    assert execute("97", NOTEBOOK, tmp_path)["cells"][0]["outputs"] == [SOCKETS]


def test_of_a_notebook_under_nbval(tmp_path: Path) -> None:
    shutil.copy(LABS / "conftest.py", tmp_path)
    (tmp_path / "lab.ipynb").write_text(json.dumps(NOTEBOOK), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout, done.stdout
