"""What all pages have in common: the frame, the stylesheet, and links that lead from page to page."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path, PurePosixPath

from jinja2 import Environment, FileSystemLoader, Template
from pygments.formatters import HtmlFormatter

SECTIONS = {
    "labs/index.html": "Labs",
    "docs/answers/README.html": "Answers",
    "play/index.html": "Worlds",
    "docs/gallery.html": "Gallery",
    "docs/index.html": "Documentation",
    "lite/notebooks/index.html?path=00_tour.ipynb": "Play",
}
"""What stands at the top of each page: where it leads, and its name."""
_LINK = re.compile(r'(?<![\w-])(href|src)="(?!#|[a-z]+:|//)([^"]*)"')
_PAGES = {".md", ".ipynb"}


class BrokenLinkError(Exception):
    """A page points to something that is not there."""


def stylesheet() -> str:
    """The text of style.css: ours, and the colours of code."""
    ours = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    return f"{ours}{HtmlFormatter(style='default').get_style_defs('.highlight')}\n"


def framed(title: str, body: str, place: str, head: str = "") -> str:
    """A whole page, which stands at `place` in the site; `head` is what it needs in its head besides.

    Its section is marked as the one that is open; the answers and the gallery are of their own, though they lie among
    the docs.
    """
    belongs = place if place in SECTIONS else f"{place.partition('/')[0]}/index.html"
    if place.startswith("docs/answers/"):
        belongs = "docs/answers/README.html"
    return _frame().render(
        title=title, body=body, head=head, up="../" * place.count("/"), sections=SECTIONS, here=belongs
    )


@cache
def _frame() -> Template:
    loader = FileSystemLoader(Path(__file__).parent)
    return Environment(loader=loader, autoescape=True, keep_trailing_newline=True).get_template("page.html.j2")


class Linker:
    """Turns links between files of the repository into links between pages; `copied` collects what is not a page."""

    def __init__(self, root: Path, pages: set[str]) -> None:
        self._root = root
        self._pages = pages
        self.copied: set[str] = set()

    def linked(self, body: str, source: str) -> str:
        """The page made of `source` (its path in the repository), with its links leading to pages and copied files."""
        return _LINK.sub(lambda found: f'{found[1]}="{self._target(found[2], source)}"', body)

    def _target(self, link: str, source: str) -> str:
        path, mark, anchor = link.partition("#")
        target = os.path.normpath(PurePosixPath(source).parent / path)
        if target in self._pages:
            return f"{PurePosixPath(path).with_suffix('.html')}{mark}{anchor}"
        if PurePosixPath(target).suffix in _PAGES or not (self._root / target).is_file():
            raise BrokenLinkError(f"{source} points to {link}, which is no page and no file")
        self.copied.add(target)
        return link
