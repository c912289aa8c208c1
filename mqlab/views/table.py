"""Tables: the plain answer to "show me", as text and as HTML with the same content."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

STYLE = (
    "border-collapse:collapse;font-family:ui-monospace,monospace;font-size:12px;color:inherit;background:transparent;"
)
CELL = "padding:2px 8px;border-bottom:1px solid rgba(128,128,128,.35);"


class Table:
    """Rows under a header, with a title; numbers stand right, texts left.

    `str(table)` is the plain-text twin of the HTML: the same cells in the same order. `most` rows are shown, and a last
    line says how many were left out.
    """

    def __init__(self, title: str, header: Sequence[str], rows: Iterable[Sequence[Any]], *, most: int = 50) -> None:
        self.title = title
        self.header = list(header)
        self.rows = [list(row) for row in rows]
        self.most = most

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def _note(self) -> str:
        left_out = len(self.rows) - self.most
        return f"... and {left_out} more" if left_out > 0 else ""

    def _right(self, column: int) -> bool:
        return all(isinstance(row[column], int | float) for row in self.rows[: self.most]) and bool(self.rows)

    def __str__(self) -> str:
        shown = [[_text(value) for value in row] for row in self.rows[: self.most]]
        widths = [max(len(name), *(len(row[c]) for row in shown), 0) for c, name in enumerate(self.header)]
        right = [self._right(c) for c in range(len(self.header))]

        def line(cells: Sequence[str]) -> str:
            padded = (cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(cells, widths, right, strict=True))
            return "  ".join(padded).rstrip()

        lines = [self.title] if self.title else []
        lines += [line(self.header), line(["-" * w for w in widths]), *(line(row) for row in shown)]
        if not shown:
            lines.append("(none)")
        if self._note:
            lines.append(self._note)
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from html import escape

        align = ["right" if self._right(c) else "left" for c in range(len(self.header))]
        head = "".join(
            f'<th scope="col" style="{CELL}text-align:{a}">{escape(name)}</th>'
            for name, a in zip(self.header, align, strict=True)
        )
        body = "".join(
            "<tr>"
            + "".join(
                f'<td style="{CELL}text-align:{a}">{escape(_text(value))}</td>'
                for value, a in zip(row, align, strict=True)
            )
            + "</tr>"
            for row in self.rows[: self.most]
        )
        if not self.rows:
            body = f'<tr><td style="{CELL}" colspan="{len(self.header)}">(none)</td></tr>'
        note = f"<div>{escape(self._note)}</div>" if self._note else ""
        caption = f'<caption style="text-align:left;padding:4px 8px;font-weight:600">{escape(self.title)}</caption>'
        return f'<table style="{STYLE}">{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}'


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return str(value)
