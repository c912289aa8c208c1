"""`mqlab run` tells labs that went well from labs that did not, however they ended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mqlab.commands.run import main
from mqlab.errors import LearnerError
from mqlab.labs.run_labs import run_lab, select_labs


def write_notebook(path: Path, *cells: str, tags: tuple[str, ...] = ()) -> Path:
    """A notebook of code cells; the tags are the first cell's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    code = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": f"cell-{at}",
            "metadata": {"tags": list(tags)} if at == 0 else {},
            "outputs": [],
            "source": cell,
        }
        for at, cell in enumerate(cells)
    ]
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    notebook = {"cells": code, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


def test_the_table_has_a_line_for_each_lab_and_one_failure_fails_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_notebook(tmp_path / "labs" / "00_fine.ipynb", "print(6 * 7)")
    write_notebook(tmp_path / "labs" / "01_raises.ipynb", "a = 1", "undefined_name", "print('never')")
    assert main(["--root", str(tmp_path)]) == 1
    head, fine, raises, closing = capsys.readouterr().out.splitlines()
    assert head.split() == ["lab", "seconds", "peak", "MiB", "verdict"]
    assert fine.split()[0] == "00_fine"
    assert fine.split()[-1] == "ok"
    assert raises.endswith("failed: cell 2 (In [2]): NameError: name 'undefined_name' is not defined")
    assert closing.startswith("1 of 2 labs ok in ")
    executed = json.loads((tmp_path / "out" / "00_fine.ipynb").read_text(encoding="utf-8"))
    assert executed["cells"][0]["outputs"][0]["text"] == ["42\n"]


def test_a_syntax_error_is_at_a_line_of_its_cell_and_in_no_file(tmp_path: Path) -> None:
    lab = write_notebook(tmp_path / "00_wrong.ipynb", "a = 1\nb = = 2")
    assert run_lab(lab, tmp_path / "out").verdict == "failed: cell 1 (In [1]): SyntaxError: invalid syntax (line 2)"


def test_a_cell_that_runs_too_long_is_timed_out(tmp_path: Path) -> None:
    lab = write_notebook(tmp_path / "00_slow.ipynb", "while True: pass")
    assert run_lab(lab, tmp_path / "out", cell_timeout_s=1).verdict == "timed out: a cell ran longer than 1 s"


def test_a_kernel_that_dies_is_a_failure(tmp_path: Path) -> None:
    lab = write_notebook(tmp_path / "00_dies.ipynb", "import os; os._exit(0)", "print('never')")
    assert run_lab(lab, tmp_path / "out").verdict == "failed: the kernel died"


def test_an_error_that_a_lab_shows_on_purpose_is_no_failure(tmp_path: Path) -> None:
    lab = write_notebook(tmp_path / "00_shows.ipynb", "1 / 0", "print('on')", tags=("raises-exception",))
    assert run_lab(lab, tmp_path / "out").verdict == "ok"
    executed = json.loads((tmp_path / "out" / "00_shows.ipynb").read_text(encoding="utf-8"))
    assert len(executed["cells"]) == 2


def test_a_failure_behind_an_intended_error_is_seen(tmp_path: Path) -> None:
    lab = write_notebook(tmp_path / "00_both.ipynb", "1 / 0", "{}['key']", tags=("raises-exception",))
    assert run_lab(lab, tmp_path / "out").verdict == "failed: cell 2 (In [2]): KeyError: 'key'"


def test_a_file_that_is_no_notebook_is_a_failure_with_its_reason(tmp_path: Path) -> None:
    lab = tmp_path / "00_torn.ipynb"
    lab.write_text("{", encoding="utf-8")
    assert run_lab(lab, tmp_path / "out").verdict.startswith("failed: the run ended with status 1: ")


def test_the_memory_of_the_kernel_is_counted(tmp_path: Path) -> None:
    lab = write_notebook(tmp_path / "00_large.ipynb", "block = bytes(b'x') * 200_000_000", "sum(block)")
    assert run_lab(lab, tmp_path / "out").peak_mib > 200_000_000 / 2**20


def test_memory_that_two_processes_share_is_counted_once_where_the_system_tells(tmp_path: Path) -> None:
    forks = """
import os
ours, theirs = os.pipe()
if (child := os.fork()) == 0:
    os.read(ours, 1)
    os._exit(0)
"""
    again = "total = sum(block), sum(block)\nos.write(theirs, b'.'), os.waitpid(child, 0)"
    lab = write_notebook(tmp_path / "00_forks.ipynb", "block = bytes(b'x') * 200_000_000", forks.strip(), again)
    tells = Path("/proc/self/smaps_rollup").exists()
    assert (run_lab(lab, tmp_path / "out").peak_mib < 1.7 * 200_000_000 / 2**20) is tells


def test_an_unknown_lab_and_an_empty_directory_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(LearnerError, match="root of a clone"):
        select_labs(tmp_path)
    fine = write_notebook(tmp_path / "00_fine.ipynb", "1")
    assert select_labs(tmp_path, ["00"]) == select_labs(tmp_path, ["00_fine"]) == [fine]
    with pytest.raises(LearnerError, match="labs that there are: 00_fine"):
        select_labs(tmp_path, ["07"])
