"""The pages: labs, documentation, gallery and the page at the front, made of what is committed and of nothing else."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from html import escape
from pathlib import Path

from mqlab.labs.source import LabSource, read_source
from mqlab.progress import counted
from website.layout import Linker, framed, stylesheet
from website.lite import runs_without_spark
from website.live_pages import PLAY_PAGE, play_head, play_page, write_live
from website.markdown import title_of, to_html
from website.notebooks import lab_to_html
from website.stages import FRONT, SCENES, figure, stage_head, write_stages

_FILM = re.compile(r'<img [^>]*src="docs/images/demo\.webp"[^>]*>')
ANSWERS = "docs/answers/"
"""Pages that have a list of their own."""

_MARKDOWN = ("*.md", "docs/**/*.md", "datasets/*.md")


def build_pages(root: Path, target: Path, views: Callable[[Path], dict[int, str]]) -> list[str]:
    """Write all pages into `target`; returns where they stand. Raises BrokenLinkError when a link leads nowhere.

    `views` gives the pictures of a notebook's live views by the number of their code cell.
    """
    texts = sorted({path.relative_to(root).as_posix() for kind in _MARKDOWN for path in root.glob(kind)})
    labs = [read_source(path) for path in sorted((root / "labs" / "sources").glob("*.py"))]
    linker = Linker(root, {*texts, *(f"labs/{lab.name}.ipynb" for lab in labs)})
    front = _front(labs)
    pages = {"index.html": framed("mqlab", front, "index.html", stage_head("", FRONT))}
    pages["labs/index.html"] = framed(
        "Labs · mqlab", f"<h1>Labs</h1>\n{_LABS_NOTE.format(up='../')}\n{_list(labs, '')}", "labs/index.html"
    )
    pages["docs/index.html"] = framed("Documentation · mqlab", _documentation(root, texts), "docs/index.html")
    for name in texts:
        text = (root / name).read_text(encoding="utf-8")
        place = _page(name)
        body = linker.linked(to_html(text), name)
        pages[place] = framed(f"{title_of(text)} · mqlab", _with_links_to_play(name, body), place)
    for at, lab in enumerate(counted("labs", labs, len(labs))):
        source = f"labs/{lab.name}.ipynb"
        body = linker.linked(lab_to_html(root / source, views(root / source)), source)
        title = f"{lab.number} {lab.head.title} · mqlab"
        pages[_page(source)] = framed(title, _around(labs, at) + body + _scenes(lab), _page(source), stage_head("../"))
    pages[PLAY_PAGE] = framed("A world at one moment · mqlab", play_page(), PLAY_PAGE, play_head())
    _write(root, target, pages, linker.copied)
    write_live(target / "play")
    write_stages(target, {FRONT, *(name for names in SCENES.values() for name in names)})
    return sorted(pages)


def _with_links_to_play(name: str, body: str) -> str:
    """A page with a link to what moves: an answer's to its world, and the README's film to the first page's stage."""
    if name == "README.md":
        return _FILM.sub(r'<a href="index.html">\g<0></a>', body)
    if name.startswith(ANSWERS) and not name.endswith("/README.md"):
        link = f'<a href="../../{PLAY_PAGE}#answer={Path(name).stem}">Open its world in this browser</a>'
        return body.replace("</h1>", f'</h1>\n<p class="around">{link}</p>', 1)
    return body


def _write(root: Path, target: Path, pages: dict[str, str], copied: set[str]) -> None:
    for place, text in pages.items():
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        (target / place).write_text(text, encoding="utf-8")
    for name in copied:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, target / name)
    (target / "style.css").write_text(stylesheet(), encoding="utf-8")


def _page(source: str) -> str:
    return str(Path(source).with_suffix(".html").as_posix())


_LABS_NOTE = """<p>Each lab is an essay that runs. Here it stands as it was run once, with pictures of its live views;
what comes of a bet opens with a click. "Play" opens it in your browser, with a Python of its own: nothing is
installed, and what you write stays there. <a href="{up}lite/lab/index.html">JupyterLab</a> has all that can be played
side by side.</p>"""


def _front(labs: list[LabSource]) -> str:
    return f"""<h1>mqlab</h1>
<p class="lead">A laboratory for the inside of a message queue.</p>
{figure(FRONT, "", autoplay=True)}
<p>It holds a complete RocketMQ in one Python process, on one deterministic clock: it can be stopped, stepped, looked
into, broken on purpose and played again, byte for byte.</p>
<p class="first"><a class="button main" href="{_lite(labs[0])}">Play the first lab in this browser</a>
<a class="button" href="README.html">Install it</a> <a class="button" href="docs/gallery.html">See all views</a></p>
<h2>The labs</h2>
{_LABS_NOTE.format(up="")}
{_list(labs, "labs/")}"""


def _list(labs: list[LabSource], labs_at: str) -> str:
    lines = [
        f'<li><span class="number">{lab.number}</span>'
        f'<span><a href="{labs_at}{lab.name}.html">{escape(lab.head.title)}</a> '
        f'<span class="question">{escape(lab.head.question)}</span></span>'
        f'<span class="play">{_play(lab, "" if labs_at else "../")}</span></li>'
        for lab in labs
    ]
    return '<ul class="labs">\n' + "\n".join(lines) + "\n</ul>"


def _play(lab: LabSource, up: str) -> str:
    return f'<a href="{up}{_lite(lab)}">Play</a>' if runs_without_spark(lab.name) else "needs Spark"


def _lite(lab: LabSource) -> str:
    return f"lite/notebooks/index.html?path={lab.name}.ipynb"


def _around(labs: list[LabSource], at: int) -> str:
    """What stands above a lab: the way to play it, and its neighbours."""
    links = [_play(labs[at], "../").replace(">Play<", ">Play this lab in your browser<")]
    for label, neighbour in (("Before", at - 1), ("Next", at + 1)):
        if 0 <= neighbour < len(labs):
            lab = labs[neighbour]
            links.append(f'<a href="{lab.name}.html">{label}: {lab.number} {escape(lab.head.title)}</a>')
    return f'<p class="around">{" ".join(f"<span>{link}</span>" for link in links)}</p>\n'


def _scenes(lab: LabSource) -> str:
    """The main scenes of a lab."""
    scenes = "\n".join(figure(name, "../") for name in SCENES.get(lab.number, ()))
    return f"<h2>Scenes to watch</h2>\n{scenes}" if scenes else ""


def _documentation(root: Path, texts: list[str]) -> str:
    entries = []
    for name in texts:
        if name.startswith(ANSWERS) and not name.endswith("/README.md"):
            continue
        text = (root / name).read_text(encoding="utf-8")
        page = _page(name)
        link = page.removeprefix("docs/") if page.startswith("docs/") else f"../{page}"
        entries.append(f'<dt><a href="{link}">{escape(title_of(text))}</a></dt><dd>{_first_words(text)}</dd>')
    return '<h1>Documentation</h1>\n<dl class="pages">\n' + "\n".join(entries) + "\n</dl>"


def _first_words(text: str) -> str:
    """The first sentence below a page's title, as HTML."""
    paragraphs = [part for part in text.split("\n\n")[1:] if part[:1].isupper() or part.startswith(("`", "*", "mqlab"))]
    sentence = " ".join(paragraphs[0].split()).split(". ")[0] if paragraphs else ""
    sentence = sentence.rstrip(".:") + ("" if sentence.endswith("?") else ".")
    return to_html(sentence).strip().removeprefix("<p>").removesuffix("</p>")
