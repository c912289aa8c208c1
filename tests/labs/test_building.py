"""A clone of the repository builds its labs with one command, and notices when they no longer fit their sources."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import mqlab
from mqlab.labs.errors import LabError
from mqlab.labs.execute import execute
from mqlab.labs.notebook import make_notebook, read_notebook
from mqlab.labs.source import Cell, LabSource

EXAMPLES = Path(__file__).parent / "examples"


def labs(clone: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m mqlab.labs` in the clone, with a home directory that cannot be written."""
    environment = dict(os.environ) | {"PYTHONPATH": ".", "HOME": str(clone / "home"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "mqlab.labs", *arguments]
    return subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone with the example lab and a new one, both built once."""
    root = tmp_path_factory.mktemp("clone")
    shutil.copytree(Path(mqlab.__file__).parent, root / "mqlab", ignore=shutil.ignore_patterns("__pycache__", "[0-9]*"))
    (root / "home").mkdir(mode=0o500)
    begun = labs(root, "new", "91_begun")
    assert begun.returncode == 0, begun.stderr
    shutil.copy(EXAMPLES / "source" / "90_batches.py", root / "labs" / "sources")
    shutil.copy(EXAMPLES / "checks" / "90_batches.py", root / "mqlab" / "labs" / "checks")
    built = labs(root, "build")
    assert (built.returncode, built.stderr) == (0, "")
    return root


@pytest.fixture
def changed(clone: Path, tmp_path: Path) -> Path:
    """A copy of the built clone that a test may change."""
    return shutil.copytree(clone, tmp_path / "clone", ignore=shutil.ignore_patterns("home"))


def test_both_notebooks_are_built_and_fit(clone: Path) -> None:
    assert sorted(path.name for path in (clone / "labs").glob("*.ipynb")) == ["90_batches.ipynb", "91_begun.ipynb"]
    checked = labs(clone, "check")
    assert checked.stdout == "labs/90_batches.ipynb fits its source\nlabs/91_begun.ipynb fits its source\n"


def test_the_notebooks_say_what_they_must(clone: Path) -> None:
    student = (clone / "labs" / "90_batches.ipynb").read_text(encoding="utf-8")
    solution = (clone / "out" / "solutions" / "90_batches.ipynb").read_text(encoding="utf-8")
    assert "90/pull: not solved yet (2 points)" in student
    assert "90/pull: passed (2 points)" in solution
    assert "no prediction yet" in student
    assert "BEGIN SOLUTION" not in student


def test_nothing_of_the_run_stays_in_the_notebook_or_at_home(clone: Path) -> None:
    notebook = read_notebook((clone / "labs" / "90_batches.ipynb").read_text(encoding="utf-8"))
    assert notebook["metadata"]["language_info"] == {"name": "python"}
    assert [cell for cell in notebook["cells"] if "execution" in cell["metadata"]] == []
    assert list((clone / "home").iterdir()) == []


def test_a_notebook_of_a_changed_source_is_stale_and_the_message_says_what_mends_it(changed: Path) -> None:
    source = changed / "labs" / "sources" / "90_batches.py"
    source.write_text(source.read_text(encoding="utf-8").replace("Which message", "What message"), encoding="utf-8")
    checked = labs(changed, "check")
    assert checked.returncode == 1
    assert checked.stderr.splitlines() == [
        "lab 90_batches:",
        "  labs/90_batches.ipynb does not fit its source: "
        'cell 6 (\'predict("first-out", "What message leaves first?",\') has another source',
        "  What to do: python -m mqlab.labs build 90",
    ]


def test_a_changed_output_is_found_by_executing(changed: Path) -> None:
    notebook = changed / "labs" / "90_batches.ipynb"
    notebook.write_text(notebook.read_text(encoding="utf-8").replace("taken [0, 1]", "taken [4, 3]"), encoding="utf-8")
    executed = labs(changed, "check", "--execute")
    assert executed.returncode == 1
    assert executed.stdout == "labs/91_begun.ipynb fits its source\n"
    assert '-      "taken [4, 3]\\n"' in executed.stderr
    assert '+      "taken [0, 1]\\n"' in executed.stderr


def test_a_notebook_without_a_source_is_found(changed: Path) -> None:
    (changed / "labs" / "sources" / "90_batches.py").unlink()
    checked = labs(changed, "check")
    assert (checked.returncode, checked.stderr.splitlines()[0]) == (1, "labs/90_batches.ipynb has no source")


def test_a_solution_that_its_check_refuses_is_not_built(changed: Path) -> None:
    source = changed / "labs" / "sources" / "90_batches.py"
    text = source.read_text(encoding="utf-8").replace("return queue[:limit], queue[limit:]", "return queue, []")
    source.write_text(text, encoding="utf-8")
    before = (changed / "labs" / "90_batches.ipynb").read_text(encoding="utf-8")
    built = labs(changed, "build", "90")
    assert built.returncode == 1
    assert 'solution: check("90/pull", pull) should say `passed`, and says:\n90/pull: not right yet' in built.stderr
    assert (changed / "labs" / "90_batches.ipynb").read_text(encoding="utf-8") == before


def test_a_cell_that_fails_is_named(example: LabSource, tmp_path: Path) -> None:
    failing = replace(example, cells=(Cell("fine", "code", "1 + 1", ()), Cell("fails", "code", "nonsense", ())))
    with pytest.raises(LabError, match=r"cell 4 \('nonsense'\) fails: NameError: name 'nonsense' is not defined"):
        execute("90_batches", make_notebook(failing, "student"), tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["new", "91_again"], "there is a lab 91 already: 91_begun"),
        (["new", "store"], "'store' is no name of a lab"),
        (["build", "77"], "there is no lab '77'\n  What to do: labs that there are: 90_batches, 91_begun"),
    ],
)
def test_a_wrong_command_says_what_to_do(clone: Path, arguments: list[str], message: str) -> None:
    refused = labs(clone, *arguments)
    assert refused.returncode == 1
    assert message in refused.stderr


def test_outside_a_clone_the_command_says_so(tmp_path: Path) -> None:
    refused = labs(Path.cwd(), "--root", str(tmp_path), "build")
    assert "run this in the root of a clone" in refused.stderr
