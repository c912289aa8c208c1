"""The page that plays worlds by itself: a link opens a moment in it, with a Python in the reader's browser.

It has no Jupyter. `play/python.gz` is the memory of a Python that has imported mqlab already (`live/snapshot.mjs`).
"""

from __future__ import annotations

import json
import shutil
import subprocess
from html import escape
from pathlib import Path

from mqlab import scenarios
from mqlab.answers import answers
from mqlab_widgets.viewer import Viewer

PLAY_PAGE = "play/index.html"
SERVED = "served"
"""A world for programs outside, of which a page has none."""
WHEELS = ("mqlab-", "traitlets-", "typing_extensions-")
"""What the Python of a page has."""
_LIVE = Path(__file__).with_name("live")
SCRIPTS = ("play.js", "worker.js")


def play_head() -> str:
    """What the page has in its head."""
    return '<link rel="stylesheet" href="live.css">\n<script type="module" src="play.js"></script>\n'


def play_page() -> str:
    """The page; what its link names is shown in it."""
    worlds = "\n".join(
        f'<li><a href="#scenario={name}&amp;seed=1">{name}</a> '
        f"<span>{escape(scenarios.get(name).summary)}</span></li>"
        for name in scenarios.names()
        if name != SERVED
    )
    asked = "\n".join(
        f'<li><a href="#answer={answer.name}">{escape(answer.question)}</a></li>' for answer in answers()
    )
    return f"""<h1>A world at one moment</h1>
<div id="play" data-state="comes"><p class="play-words" role="status"></p>
<progress class="play-progress" aria-label="How much of the Python has come" hidden></progress>
<button type="button" class="play-stop" hidden>Stop</button>
<div class="play-notes"></div><div class="play-view"></div>
<noscript>A world is played by a Python in your browser, which needs JavaScript.</noscript></div>
<h2>Worlds to open</h2>
<ul class="worlds">
{worlds}
</ul>
<h2>Answers to open</h2>
<ul class="worlds">
{asked}
</ul>"""


def write_live(target: Path) -> None:
    """Write what the page needs besides its Python into `target`."""
    target.mkdir(parents=True, exist_ok=True)
    for name in SCRIPTS:
        shutil.copyfile(_LIVE / name, target / name)
    (target / "viewer.js").write_text(Viewer._esm, encoding="utf-8")
    style = f"{Viewer._css}\n{(_LIVE / 'live.css').read_text(encoding='utf-8')}"
    (target / "live.css").write_text(style, encoding="utf-8")
    cells = {answer.name: [cell.code for cell in answer.cells] for answer in answers()}
    (target / "answers.json").write_text(json.dumps(cells, sort_keys=True), encoding="utf-8")


def keep_page_python(pyodide: Path, wheels: list[Path], file: Path) -> None:
    """Write the memory of the page's Python, which needs some of these wheels."""
    module = file.with_name("mqlab_page.py")
    shutil.copyfile(_LIVE / "page.py", module)
    needed = [wheel for wheel in wheels if wheel.name.startswith(WHEELS)]
    try:
        keep_python(pyodide, file, "keep_page.py", [*needed, module])
    finally:
        module.unlink()


def keep_python(pyodide: Path, file: Path, script: str, sources: list[Path]) -> None:
    """Write the memory of a Python that has these wheels and modules and has run a script of `live`."""
    command = ["node", _LIVE / "snapshot.mjs", pyodide, file, _LIVE / script, *sources]
    told = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if told.returncode:
        raise SystemExit(f"no Python could be kept for {file}:\n{told.stdout}{told.stderr}")
