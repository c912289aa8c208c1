"""What every picture of the store has: a white ground, a title that screen readers find, one font, and plain shapes."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

INK, FAINT, PAPER = "#1a1a1a", "#6b6b6b", "#ffffff"


_FONT = 'font-family="system-ui,sans-serif" font-size="12" '


class Drawing:
    """What a cell shows as a picture, and tells as text: `str(picture)` says the same as `picture.svg()` draws."""

    __slots__ = ()

    def svg(self) -> str:
        """The picture as SVG text; the same numbers give the same text."""
        raise NotImplementedError(f"{type(self).__name__} must define svg()")

    def __repr__(self) -> str:
        return str(self)

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/plain": str(self), "image/svg+xml": self.svg()}


def head(words: str, width: float, height: float, *, css: str = "", look: str = "") -> str:
    """How an SVG begins that has a size, in px, and words for screen readers.

    One with a class (`css`) is a part of a page, one without stands alone. `look` are attributes for all that is in it.
    """
    own = f'class="{css}"' if css else 'xmlns="http://www.w3.org/2000/svg"'
    return (
        f'<svg {own} viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        f'style="max-width:100%;height:auto" {look}role="img" aria-label="{escape(words, quote=True)}">'
    )


def sheet(title: str, width: float, height: float, body: Iterable[str], *, look: str = "") -> str:
    """A whole SVG on white paper that says its title to screen readers alone."""
    paper = f'<title>{escape(title)}</title><rect width="100%" height="100%" fill="{PAPER}"/>'
    return f"{head(title, width, height, look=look)}{paper}{''.join(body)}</svg>"


def picture(
    title: str, width: float, height: float, body: Iterable[str], *, line_y: float = 22, letter: int = 14
) -> str:
    """A whole SVG with its title in the first line."""
    words = f'<text x="12" y="{line_y:g}" font-size="{letter}" font-weight="600" fill="{INK}">{escape(title)}</text>'
    return sheet(title, width, height, [words, *body], look=_FONT)


def text(
    x: float, y: float, words: str, *, colour: str = INK, anchor: str = "start", bold: bool = False, halo: str = ""
) -> str:
    """A line of text; `anchor` is start, middle or end. `halo` is a colour around the letters, if lines cross them."""
    weight = ' font-weight="600"' if bold else ""
    around = f' stroke="{halo}" stroke-width="4" paint-order="stroke"' if halo else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{colour}"{around}{weight}>{escape(words)}</text>'


def box(
    x: float, y: float, width: float, height: float, fill: str, *, tip: str = "", stroke: str = PAPER, edge: float = 1
) -> str:
    """A rectangle, with an edge so wide; `tip` is shown under the mouse."""
    inside = f"<title>{escape(tip)}</title>" if tip else ""
    wide = f' stroke-width="{edge:g}"' if edge != 1 else ""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{max(width, 0.5):g}" height="{height:g}" '
        f'fill="{fill}"{wide} stroke="{stroke}">{inside}</rect>'
    )


def circle(x: float, y: float, radius: float, fill: str, *, stroke: str = "", tip: str = "") -> str:
    """A round mark; `tip` is shown under the mouse."""
    inside = f"><title>{escape(tip)}</title></circle>" if tip else "/>"
    edge = f' stroke="{stroke}"' if stroke else ""
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{fill}"{edge}{inside}'


def legend(keys: Iterable[tuple[str, str]], y: float, letter: float, *, stroke: str = PAPER) -> tuple[list[str], float]:
    """A row of samples, each (colour, what it means), from the left end on; with the place behind it."""
    body: list[str] = []
    x = 12.0
    for colour, words in keys:
        body += [box(x, y, 14, 14, colour, stroke=stroke), text(x + 20, y + 12, words)]
        x += 40 + len(words) * letter
    return body, x


def ink_on(fill: str) -> str:
    """White or black, whichever is easier to read on a colour "#rrggbb"."""
    red, green, blue = (int(fill[at : at + 2], 16) for at in (1, 3, 5))
    return PAPER if 0.299 * red + 0.587 * green + 0.114 * blue < 128 else INK


def line(x1: float, y1: float, x2: float, y2: float, colour: str, *, width: float = 1.5, dash: str = "") -> str:
    """A straight line from (x1, y1) to (x2, y2); `dash` is an SVG dash pattern, as in "4 3"."""
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{colour}" stroke-width="{width:g}"{dashes}/>'


def byte_axis(left: float, y: float, width: float, first: int, last: int, name: str) -> list[str]:
    """An axis in bytes from `first` to `last`, with round numbers and its name at the right end."""
    span = max(1, last - first)
    step = 1
    while span / step > 8:
        step *= 2
    body = [line(left, y, left + width, y, FAINT, width=1)]
    at = -(-first // step) * step
    while at <= last:
        x = left + (at - first) / span * width
        body += [line(x, y - 4, x, y, FAINT, width=1), text(x, y - 8, f"{at:,}", colour=FAINT, anchor="middle")]
        at += step
    body.append(text(left + width, y - 24, name, colour=FAINT, anchor="end"))
    return body
