"""Finds built notebooks that no longer fit their sources."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path

from mqlab.labs.build import build
from mqlab.labs.errors import LabError
from mqlab.labs.notebook import Notebook, make_notebook, read_notebook, without_outputs, write_notebook
from mqlab.labs.outputs import settle_outputs
from mqlab.labs.project import Project
from mqlab.labs.source import LabSource, place_of

_LINES_SHOWN = 12


def require_fresh(lab: LabSource, project: Project) -> None:
    """Raise LabError when the committed notebook has other cells than its source gives. Runs nothing."""
    committed = _committed(lab, project)
    wanted = make_notebook(lab, "student")
    if write_notebook(without_outputs(committed)) != write_notebook(wanted):
        raise _stale(lab, [f"labs/{lab.name}.ipynb does not fit its source: {_first_difference(committed, wanted)}"])
    settle_outputs(lab.name, committed)
    if write_notebook(committed) != project.student(lab.name).read_text(encoding="utf-8"):
        raise _stale(lab, [f"labs/{lab.name}.ipynb was changed after it was built"])


def require_same_outputs(lab: LabSource, project: Project) -> None:
    """Raise LabError when executing the lab again gives other outputs than the committed ones."""
    text = project.student(lab.name).read_text(encoding="utf-8")
    again = build(lab, project.labs).student
    if again != text:
        diff = list(unified_diff(text.splitlines(), again.splitlines(), "committed", "executed again", "", "", 1, ""))
        shown = [line[:200] for line in diff[:_LINES_SHOWN]]
        raise _stale(lab, [f"labs/{lab.name}.ipynb has other outputs when it is executed again:", *shown])


def orphans(project: Project) -> list[Path]:
    """Built notebooks without a source."""
    return [path for path in sorted(project.labs.glob("*.ipynb")) if not project.source(path.stem).exists()]


def _committed(lab: LabSource, project: Project) -> Notebook:
    path = project.student(lab.name)
    if not path.exists():
        raise _stale(lab, [f"labs/{lab.name}.ipynb was never built"])
    return read_notebook(path.read_text(encoding="utf-8"))


def _first_difference(committed: Notebook, wanted: Notebook) -> str:
    for at, (old, new) in enumerate(zip(without_outputs(committed)["cells"], wanted["cells"], strict=False), 1):
        if old != new:
            parts = [part for part in ("source", "metadata", "id", "cell_type") if old.get(part) != new.get(part)]
            return f"{place_of(at, new['source'])} has another {' and '.join(parts)}"
    if len(committed["cells"]) != len(wanted["cells"]):
        return f"it has {len(committed['cells'])} cells, the source gives {len(wanted['cells'])}"
    return "its metadata differ"


def _stale(lab: LabSource, problems: list[str]) -> LabError:
    return LabError(lab.name, problems, f"python -m mqlab.labs build {lab.number}")
