"""From Markdown to HTML, as the repository's pages are written: tables, anchors as GitHub names them, coloured code."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from mdit_py_plugins.anchors import anchors_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")


def to_html(text: str) -> str:
    """The HTML of a page in Markdown; tables stand in a box of their own, which scrolls when they are wide."""
    made = str(_parser().render(text))
    return made.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")


def title_of(text: str) -> str:
    """The first heading of a page in Markdown, without its signs."""
    heading = next(line for line in text.splitlines() if line.startswith("# "))
    return heading.removeprefix("# ").replace("`", "")


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"highlight": _coloured}).enable(["table", "strikethrough"])
    return parser.use(anchors_plugin, min_level=1, max_level=4, slug_func=_anchor)


def _anchor(heading: str) -> str:
    return _NOT_IN_ANCHORS.sub("", heading.strip().lower()).replace(" ", "-")


def _coloured(code: str, language: str, _: str) -> str:
    try:
        lexer = get_lexer_by_name(language or "text", stripnl=False)
    except ClassNotFound:
        lexer = get_lexer_by_name("text", stripnl=False)
    made = str(highlight(code, lexer, HtmlFormatter(cssclass="highlight", wrapcode=True)))
    # What begins with <pre is taken as it is.
    return made.replace('<div class="highlight"><pre>', '<pre class="highlight">').replace("</pre></div>", "</pre>")
