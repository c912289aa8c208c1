"""How the stage looks: sizes, and the style sheet that every picture carries.

Colours come from CSS variables with fallbacks, so that one picture follows the light or dark theme of JupyterLab and
still shows on a page of its own. The palette is that of Okabe and Ito, which colour-blind people can tell apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

TOKEN_COLOURS = (
    ("#0072B2", "#fff"),
    ("#E69F00", "#1a1a1a"),
    ("#009E73", "#fff"),
    ("#CC79A7", "#1a1a1a"),
    ("#56B4E9", "#1a1a1a"),
    ("#D55E00", "#fff"),
    ("#F0E442", "#1a1a1a"),
)
"""Fill and ink of messages; a message's number says which it has."""

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
            f".mq-stage .t{place} rect{{fill:{fill}}}.mq-stage .t{place} text{{fill:{ink}}}"
            for place, (fill, ink) in enumerate(TOKEN_COLOURS)
        ),
        _RULES.replace("\n", ""),
        *(f".mq-stage .chip.o{place} text{{fill:#1a1a1a}}" for place in LIGHT_OWNERS),
    ]
)
"""What each picture carries with it; the rules of stage.css come after a message's colour, so that they win over it."""


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
