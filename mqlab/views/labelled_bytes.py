"""Labelled bytes: a hex view in which every byte says which field it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mqlab.views.colours import BLUE, GREEN, ORANGE, PINK, SKY, VERMILION

PALETTE = (BLUE, ORANGE, GREEN, PINK, SKY, VERMILION, "#8C8C8C")
"""Neighbours never share one."""

BYTES_PER_LINE = 16
TEXT = "padding:1px 8px;text-align:left"


class Field(NamedTuple):
    """A stretch of bytes: its name, where it begins, how long it is, and what it says."""

    name: str
    start: int
    length: int
    value: str


class LabelledBytes:
    """Bytes with named fields: the hex dump, and beside it the table of the fields; long stretches are shortened.

    `base` is the address of the first byte (a position in a file). `str()` gives the same content as text.
    """

    def __init__(self, title: str, data: bytes, fields: Sequence[Field], *, base: int = 0, most: int = 512) -> None:
        self.title = title
        self.data = data
        self.fields = list(fields)
        self.base = base
        self.most = most

    def __getitem__(self, name: str) -> Field:
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(f"there is no field {name!r}; there are: {', '.join(f.name for f in self.fields)}")

    @property
    def _shown(self) -> bytes:
        return self.data[: self.most]

    @property
    def _note(self) -> str:
        return f"... {len(self.data) - self.most} more bytes" if len(self.data) > self.most else ""

    def __str__(self) -> str:
        lines = [f"{self.title} ({len(self.data)} bytes)"]
        for at in range(0, len(self._shown), BYTES_PER_LINE):
            chunk = self._shown[at : at + BYTES_PER_LINE]
            lines.append(f"{self.base + at:08x}  {chunk.hex(' '):<{BYTES_PER_LINE * 3}} {_printable(chunk)}")
        if self._note:
            lines.append(self._note)
        width = max((len(f.name) for f in self.fields), default=0)
        lines.extend(f"  {f.start:>5} +{f.length:<5} {f.name:<{width}}  {f.value}" for f in self.fields)
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from html import escape

        owner: dict[int, int] = {}
        for number, field in enumerate(self.fields):
            for at in range(field.start, field.start + field.length):
                owner[at] = number
        dump = []
        for at in range(0, len(self._shown), BYTES_PER_LINE):
            chunk = self._shown[at : at + BYTES_PER_LINE]
            cells = "".join(self._byte(byte, owner.get(at + k)) for k, byte in enumerate(chunk))
            cells += "   " * (BYTES_PER_LINE - len(chunk))
            dump.append(f'<span style="opacity:.6">{self.base + at:08x}</span>  {cells}  {escape(_printable(chunk))}')
        rows = "".join(
            f'<tr><td style="padding:1px 8px"><span style="display:inline-block;width:10px;height:10px;'
            f'background:{PALETTE[n % len(PALETTE)]}"></span></td>'
            f'<td style="{TEXT};white-space:nowrap">{escape(f.name)}</td>'
            f'<td style="padding:1px 8px;text-align:right">{f.start}</td><td style="padding:1px 8px;text-align:right">'
            f'{f.length}</td><td style="{TEXT};overflow-wrap:anywhere">{escape(f.value)}</td></tr>'
            for n, f in enumerate(self.fields)
        )
        return (
            '<div style="font-family:ui-monospace,monospace;font-size:12px;max-width:1200px">'
            '<div style="font-weight:600;padding:4px 0">'
            f"{escape(self.title)} ({len(self.data)} bytes)</div>"
            '<div style="display:flex;flex-wrap:wrap;gap:8px 32px;align-items:flex-start"><div>'
            f'<pre style="line-height:1.6;margin:0;background:transparent;color:inherit">{chr(10).join(dump)}</pre>'
            f"<div>{escape(self._note)}</div></div>"
            '<table style="border-collapse:collapse;font-size:12px;margin:0;flex:1 1 360px">'
            '<thead><tr><th></th><th style="text-align:left">field</th>'
            '<th>at</th><th>bytes</th><th style="text-align:left">says</th></tr></thead>'
            f"<tbody>{rows}</tbody></table></div></div>"
        )

    def _byte(self, byte: int, number: int | None) -> str:
        if number is None:
            return f"{byte:02x} "
        from html import escape

        colour = PALETTE[number % len(PALETTE)]
        name = escape(self.fields[number].name, quote=True)
        return f'<span title="{name}" style="border-bottom:3px solid {colour}">{byte:02x}</span> '


def _printable(chunk: bytes) -> str:
    return "".join(chr(b) if 32 <= b < 127 else "." for b in chunk)
