"""How a verdict or a bet looks: plain text, and the same text as a small box of HTML."""

from __future__ import annotations

from html import escape

GREY = "#8a8f98"
GREEN = "#2e9e5b"
AMBER = "#c98a00"
BLUE = "#3b7dd8"


def box(colour: str, headline: str, *parts: str) -> str:
    """A box with a coloured edge: a bold line of text, then parts that are HTML already. Empty parts are left out."""
    body = "".join(part for part in parts if part)
    return (
        f'<div style="border-left:4px solid {colour};padding:4px 12px;margin:4px 0">'
        f"<div><b>{escape(headline)}</b></div>{body}</div>"
    )


def line(label: str, text: str) -> str:
    """One labelled line of a box; nothing when there is no text."""
    if not text:
        return ""
    return f'<div><span style="color:{GREY}">{escape(label)}</span> {escape(text)}</div>'


def block(text: str) -> str:
    """Text in fixed width, line breaks kept; nothing when there is no text."""
    return f'<pre style="margin:4px 0">{escape(text)}</pre>' if text else ""


def indent(text: str, by: int) -> str:
    """The text with every line moved to the right."""
    return "\n".join(" " * by + row if row else row for row in text.splitlines())
