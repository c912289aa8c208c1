"""What all pages have in common: the frame, the stylesheet, and links that lead from page to page."""

from __future__ import annotations

import os
import re
from html import escape
from pathlib import Path, PurePosixPath

from pygments.formatters import HtmlFormatter

SECTIONS = {
    "labs/index.html": "Labs",
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


def framed(title: str, body: str, place: str) -> str:
    """A whole page, which stands at `place` in the site."""
    up = "../" * place.count("/")
    links = "".join(f'<a href="{up}{target}"{_here(target, place)}>{name}</a>' for target, name in SECTIONS.items())
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n"
        f'<link rel="stylesheet" href="{up}style.css">\n<link rel="icon" href="data:,">\n</head>\n<body>\n'
        f'<header><nav aria-label="Site"><a class="home" href="{up}index.html">mqlab</a>{links}</nav></header>\n'
        f"<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _here(target: str, place: str) -> str:
    """What marks the section that a page belongs to: the gallery is one of its own, though it lies among the docs."""
    belongs = place if place in SECTIONS else f"{place.partition('/')[0]}/index.html"
    return ' aria-current="page"' if target == belongs else ""


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
