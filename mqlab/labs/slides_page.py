"""One HTML file for the slides of a lab: reveal.js through nbconvert, with all that it needs inside the file."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mqlab.errors import LearnerError
from mqlab.labs.execute import execute
from mqlab.labs.extra import extra
from mqlab.labs.notebook import read_notebook, without_outputs
from mqlab.labs.project import Project
from mqlab.labs.slides import Slide, deck
from mqlab.labs.source import read_source
from mqlab.scenarios.storyboards import STORYBOARDS, story_of

HERE = Path(__file__).parent
STYLES = ("dist/reset.css", "dist/reveal.css")
SCRIPTS = ("dist/reveal.js", "plugin/notes/notes.js")
CARRIER = "sphinx_revealjs"
"""The package that brings reveal.js; nothing of it is imported."""


def needs_spark(source: Path) -> bool:
    """Whether a lab is one of those that need Spark: their numbers begin with a 2."""
    return source.name.startswith("2")


def write_slides(project: Project, source: Path, directory: Path) -> Path:
    """Run a lab's notebook, make slides of it, and write them to the directory; the file's path."""
    lab = read_source(source)
    carried = reveal_files()
    committed = read_notebook(project.student(lab.name).read_text(encoding="utf-8"))
    directory.mkdir(parents=True, exist_ok=True)
    executed = execute(lab.name, without_outputs(committed), directory)
    text = slides_page(f"{lab.number} · {lab.head.title}", deck(lab, executed, captions_of(lab.number)), carried)
    path = directory / f"{lab.name}.slides.html"
    path.write_text(text, encoding="utf-8")
    return path


def captions_of(number: str) -> tuple[str, ...]:
    """The captions of a lab's storyboard; none for a lab without one."""
    return tuple(caption.words for caption in story_of(number).captions) if number in STORYBOARDS else ()


def reveal_files() -> Path:
    """Where reveal.js lies; LearnerError when it is not installed."""
    found = find_spec(CARRIER)
    if found is None or not found.submodule_search_locations:
        hint = "in a clone: make slides; elsewhere: pip install --no-deps 'sphinx-revealjs>=3.2,<4'"
        raise LearnerError("reveal.js is not installed", hint)
    return Path(found.submodule_search_locations[0]) / "_static" / "revealjs"


def slides_page(title: str, slides: Sequence[Slide], carried: Path) -> str:
    """The page, which needs no other file and no network."""
    from jinja2 import DictLoader

    def read(names: Sequence[str]) -> list[str]:
        return [(carried / name).read_text(encoding="utf-8") for name in names]

    exporter = extra("nbconvert").SlidesExporter(
        extra_loaders=[DictLoader({"slides.html.j2": (HERE / "slides.html.j2").read_text(encoding="utf-8")})],
        template_file="slides.html.j2",
    )
    own = {
        "title": title,
        "styles": read(STYLES),
        "own_style": (HERE / "slides.css").read_text(encoding="utf-8"),
        "scripts": [*read(SCRIPTS), (HERE / "slides.js").read_text(encoding="utf-8")],
    }
    page, _ = exporter.from_notebook_node(_notebook(title, slides), resources={"slides": own})
    return str(page)


def _notebook(title: str, slides: Sequence[Slide]) -> Any:
    """The slides as a notebook whose cells say which slide they are on, as nbconvert wants it."""
    v4 = extra("nbformat").v4
    cells = []
    for at, slide in enumerate(slides):
        level = "#" if slide.kind in ("title", "part") else "##"
        head = v4.new_markdown_cell(f"{level} {slide.title}\n\n{slide.body}", id=f"slide-{at}")
        head.metadata["slideshow"] = {"slide_type": "slide", "data": {"kind": slide.kind}}
        cells.append(head)
        if slide.code or slide.outputs:
            outputs = [extra("nbformat").from_dict(output) for output in slide.outputs]
            cells.append(v4.new_code_cell(slide.code, outputs=outputs, id=f"code-{at}"))
        if slide.notes:
            notes = v4.new_markdown_cell("\n\n".join(slide.notes), id=f"notes-{at}")
            notes.metadata["slideshow"] = {"slide_type": "notes"}
            cells.append(notes)
    language = {"language_info": {"name": "python"}, "title": title}
    return v4.new_notebook(cells=cells, metadata=language)
