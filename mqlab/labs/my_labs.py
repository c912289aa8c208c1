"""A working copy of the labs, so that what a student writes stays, and nothing of the clone changes.

The copies lie in `my-labs/`, with the pages of docs/ that the labs point to. A copy in which nothing was written is
brought up to date when its lab changes (one that was run, only when the cells do); one in which a cell was written or
changed is never touched: the lab's new version is put beside it. Outputs do not count, since running a lab makes them
again. Those that come of a bet are left out of the copy.
"""

from __future__ import annotations

import json
import re
from hashlib import sha256
from pathlib import Path
from shutil import copy2
from typing import Any

from mqlab.errors import LearnerError
from mqlab.labs.extra import extra
from mqlab.material import INSTALL
from mqlab.progress import counted

DIRECTORY = "my-labs"
_NOTES = ".copied.json"
"""What the cells and the file of each copy were when it was made: name -> digest."""
_DOCS = re.compile(r"\]\(\.\./docs/")


def copy_labs(root: Path, target: Path) -> list[str]:
    """Make or update the copies in `target` of the labs below `root`; returns what is to be told of each kept one."""
    labs = sorted((root / "labs").glob("*.ipynb"))
    if not labs:
        raise LearnerError(f"there is no notebook in {root / 'labs'}", INSTALL)
    target.mkdir(parents=True, exist_ok=True)
    _copy_docs(root, target)
    notes = target / _NOTES
    known = _noted(notes)
    told = [line for lab in counted("labs", labs, len(labs)) if (line := _copy_lab(lab, target, known))]
    notes.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    return told


def _noted(notes: Path) -> dict[str, str]:
    """What was noted of the copies; nothing when the notes are not there, or were torn by an interruption."""
    try:
        known = json.loads(notes.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _copy_lab(lab: Path, target: Path, known: dict[str, str]) -> str:
    """Copy one lab if nobody has written into its copy; otherwise put its new version beside it, and say so."""
    notebook = _prepared(json.loads(lab.read_text(encoding="utf-8")))
    new = _digest(notebook)
    mine = target / lab.name
    if _digest_of(mine) == new:
        # Also where it was not noted, because the copying was interrupted.
        known[mine.name] = new
    if _is_as_copied(mine, known):
        if known.get(mine.name) != new or not mine.exists() or _is_untouched(mine, known):
            _write(mine, notebook, known)
        return ""
    if known.get(mine.name) == new:
        return ""
    beside = target / f"{lab.stem}.new.ipynb"
    if not _is_as_copied(beside, known):
        both = f"{mine.name} and {beside.name}"
        return f"{both} have cells of yours and stay; take one away to get the lab's newer version"
    _write(beside, notebook, known)
    return f"{mine.name} has cells of yours and stays; the lab's new version lies beside it: {beside.name}"


def _is_as_copied(path: Path, known: dict[str, str]) -> bool:
    """Whether nothing was written into the copy (or it is not there); a file that is no notebook is somebody's own."""
    return not path.exists() or _digest_of(path) == known.get(path.name, "unknown")


def _is_untouched(path: Path, known: dict[str, str]) -> bool:
    """Whether the copy is as it was written, to the byte: nobody has even run it."""
    return known.get(_file_note(path)) == _file_digest(path)


def _file_note(path: Path) -> str:
    return f"{path.name}, the file"


def _file_digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def _digest_of(path: Path) -> str:
    """The digest of a file; "" when it is not there, or no notebook."""
    try:
        return _digest(json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return ""


def _digest(notebook: dict[str, Any]) -> str:
    """What is written in the cells, without outputs: JupyterLab saves those of a lab that was only run."""
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]
    return sha256(json.dumps(cells).encode()).hexdigest()


def _prepared(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with its links into docs/ pointing to the copies there, and without answers to bets."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = _DOCS.sub("](docs/", "".join(cell["source"]))
    return without_answers(notebook)


def without_answers(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook without the outputs that are hidden, which come of a bet.

    In the place of a hidden output JupyterLab shows the beginning of its text, which may be the answer.
    """
    for cell in notebook["cells"]:
        if cell["metadata"].get("jupyter", {}).get("outputs_hidden"):
            cell |= {"outputs": [], "execution_count": None}
    return notebook


def _copy_docs(root: Path, target: Path) -> None:
    """The pages of docs/, which are always those below `root`."""
    (target / "docs").mkdir(exist_ok=True)
    for page in sorted((root / "docs").glob("*.md")):
        copy2(page, target / "docs" / page.name)


def _write(path: Path, notebook: dict[str, Any], known: dict[str, str]) -> None:
    """Write a copy, note it, and sign it: what Jupyter trusts it draws before any cell has run.

    It trusts what was signed in its own data directory, which another Jupyter may not share; so a copy that is written
    already is signed once more.
    """
    nbformat, signing = extra("nbformat"), extra("nbformat.sign")
    node = nbformat.reads(json.dumps(notebook), as_version=4)
    # Under its name only when it is whole: a torn copy would pass for somebody's own.
    unfinished = path.with_name(f".{path.name}.unfinished")
    nbformat.write(node, unfinished)
    if path.exists() and path.read_bytes() == unfinished.read_bytes():
        unfinished.unlink()
    else:
        unfinished.replace(path)
    known |= {path.name: _digest(notebook), _file_note(path): _file_digest(path)}
    signing.NotebookNotary().sign(node)
