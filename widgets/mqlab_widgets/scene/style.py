"""How the stage looks: sizes, and the style sheet that every picture carries.

Colours come from CSS variables with fallbacks, so that one picture follows the light or dark theme of JupyterLab and
still shows on a page of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

TOKEN_COLOURS = (
    ("#264A96", "#fff"),
    ("#E68500", "#000"),
    ("#0F473E", "#fff"),
    ("#CD7392", "#000"),
    ("#97DDF9", "#000"),
    ("#A04A13", "#fff"),
    ("#FCFA6B", "#000"),
)
"""Fill and ink of messages; a message's number says which it has.

The hues of Okabe and Ito, each as dark or light as it must be so that any two of them are at least 19 apart (CIEDE2000)
for normal eyes and for those without red or green cones (Machado, Oliveira and Fernandes, 2009), and that a number has
a contrast of 5.4 for all of them.
"""

OWNER_COLOURS = ("#117733", "#882255", "#332288", "#999933", "#44AA99", "#AA4499", "#DDCC77", "#88CCEE", "#CC6677")
"""Of consumers, and of the queues that they pull from."""
LIGHT_OWNERS = (3, 4, 6, 7, 8)
"""Those of them on which a name is dark."""

CHARACTER = 6.7
"""About how wide a character of 12 px is."""
BOLD = 1.15
"""How much wider it is in bold, as heads, limits and troubles are."""

_RULES = Path(__file__).with_name("stage.css").read_text(encoding="utf-8")

STYLE = "".join(
    [
        *(f".mq-stage .o{place}{{--mq-owner:{fill}}}" for place, fill in enumerate(OWNER_COLOURS)),
        *(
            f".mq-stage .t{place}{{--mq-tile:{fill};--mq-digit:{ink}}}"
            for place, (fill, ink) in enumerate(TOKEN_COLOURS)
        ),
        _RULES.replace("\n", ""),
        *(f".mq-stage .chip.o{place} text{{fill:#000;stroke:#000}}" for place in LIGHT_OWNERS),
    ]
)
"""What each picture carries with it; the rules of stage.css come after a message's colour, so that they win over it."""


def tile_style(label: str) -> str:
    """The colours of a message for an element of HTML."""
    digits = "".join(filter(str.isdigit, label))
    fill, ink = TOKEN_COLOURS[int(digits or 0) % len(TOKEN_COLOURS)]
    return f"background:{fill};color:{ink}"


def first_that_fits(wordings: Sequence[str], width: float) -> str:
    """The first of these wordings, from long to short, that a line of 12 px has room for; or the last one, cut."""
    return next((words for words in wordings if len(words) * CHARACTER <= width), fit(wordings[-1], width))


def wrapped(words: str, width: float, most: int) -> list[str]:
    """The words in at most so many lines of 12 px; the last one is too long if they need more."""
    lines = [""]
    for word in words.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and len(lines) < most and len(longer) * CHARACTER > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def fit(words: str, width: float) -> str:
    """The words, cut to what a line of 12 px has room for."""
    most = max(1, int(width / CHARACTER))
    return words if len(words) <= most else words[: most - 1] + "…"
