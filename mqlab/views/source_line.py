"""The line of code that emitted an event, with the code around it."""

from __future__ import annotations

import linecache
from html import escape
from pathlib import Path

AROUND = 4
PACKAGE = Path(__file__).parents[1]


class SourceLine:
    """A place in the source: `file` (relative to the package), `line` (from 1), and the lines around it."""

    def __init__(self, path: str, line: int) -> None:
        self.path = path
        self.line = line
        inside = Path(path).is_relative_to(PACKAGE)
        self.file = str(Path(path).relative_to(PACKAGE.parent)) if inside else Path(path).name

    @property
    def _lines(self) -> list[tuple[int, str]]:
        numbers = range(max(1, self.line - AROUND), self.line + AROUND + 1)
        return [(n, linecache.getline(self.path, n).rstrip()) for n in numbers]

    def __str__(self) -> str:
        shown = (f"{'->' if n == self.line else '  '} {n:>4}  {text}".rstrip() for n, text in self._lines)
        return "\n".join([f"{self.file}:{self.line}", *shown])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<div style="{"font-weight:600;border-left:3px solid #D55E00" if n == self.line else "opacity:.75"};'
            f'padding-left:6px"><span style="opacity:.6">{n:>4}</span>  {escape(text) or "&nbsp;"}</div>'
            for n, text in self._lines
        )
        head = f'<div style="font-weight:600">{escape(self.file)}:{self.line}</div>'
        return f'<pre style="line-height:1.4;margin:0;background:transparent;color:inherit">{head}{rows}</pre>'
