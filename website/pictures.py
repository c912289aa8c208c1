"""The pictures of the labs' live views: a lab is run once, and what its views show then stays in `.cache/site`.

A committed notebook has only the text of a live view, so that a new way of drawing changes no notebook.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from mqlab.labs.execute import execute
from mqlab.labs.notebook import code_cells, read_notebook, without_outputs

WIDGET = "application/vnd.jupyter.widget-view+json"
_CODE = ("mqlab/**/*.py", "widgets/mqlab_widgets/**/*.py", "widgets/mqlab_widgets/*.css")


def views_of(root: Path, notebook: Path, kept: Path) -> dict[int, str]:
    """What the live views of a lab show when it has run: number of a code cell -> HTML.

    They are kept in `kept` for as long as neither the lab nor mqlab's code changes.
    """
    text = notebook.read_text(encoding="utf-8")
    place = kept / f"{notebook.stem}-{_digest(root, text)}.json"
    if not place.exists():
        found = _run(root, notebook, text)
        kept.mkdir(parents=True, exist_ok=True)
        for old in kept.glob(f"{notebook.stem}-*.json"):
            old.unlink()
        place.write_text(json.dumps(found), encoding="utf-8")
    return {int(at): html for at, html in json.loads(place.read_text(encoding="utf-8")).items()}


def _run(root: Path, notebook: Path, text: str) -> dict[int, str]:
    executed = execute(notebook.stem, without_outputs(read_notebook(text)), root / "labs")
    return {at: html for at, cell in enumerate(code_cells(executed)) if (html := _picture(cell))}


def _picture(cell: dict[str, Any]) -> str:
    """What the live view of a cell shows, as HTML; "" where there is none."""
    shown = [output["data"] for output in cell["outputs"] if WIDGET in output.get("data", {})]
    return "".join("".join(data.get("text/html", "")) for data in shown)


def _digest(root: Path, text: str) -> str:
    digest = sha256(text.encode())
    for path in sorted(path for kind in _CODE for path in root.glob(kind)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
