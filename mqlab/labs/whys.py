"""The reason that a reveal gives must fit the answer: where the answer follows from a draw, so does the reason."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from mqlab.check.bets import Bet
from mqlab.labs.source import LabSource, text_argument

ONE_ANSWER_FOR_ALL: Mapping[str, tuple[str, ...]] = {
    "00": ("requests-before",),
    "01": ("who-works",),
    "02": ("who-filters", "left-after-cut"),
    "03": ("empty",),
    "05": ("on-the-wire", "dead-holder"),
    "06": ("broker-sees",),
    "07": ("who-deals", "nothing-to-do"),
    "09": ("where", "no-broker", "both-run"),
    "10": ("noted",),
    "14": ("other-attempt", "old-handle"),
    "17": ("sync-alone", "first-reader", "safe-settings"),
    "19": ("late",),
    "20": ("median-wait", "shape", "twenty"),
    "24": ("twice",),
    "30": ("first-calls", "back"),
    "31": ("first-again", "late"),
}
"""Lab -> its bets by choice that may give a fixed reason: the same choice is right for every student (in 07
`nothing-to-do`, where the names are drawn, the reason is the same). `python -m mqlab.labs truths` plays them.
"""


def why_problems(lab: LabSource) -> list[str]:
    """Reveals of a choice that give the same reason whatever the answer; empty when there are none."""
    chosen = {
        text_argument(call)
        for cell in lab.tagged("prediction")
        for call in cell.calls("predict")
        if any(word.arg == "choices" for word in call.keywords)
    }
    problems = []
    for cell in lab.cells:
        for call in cell.calls("reveal"):
            name = text_argument(call) or ""
            if name in chosen and name not in ONE_ANSWER_FOR_ALL.get(lab.number, ()) and _is_fixed(call):
                problems.append(
                    f"{cell.place}: the answer to {name!r} is computed, and its `why` is one text for all answers; "
                    "choose the reason by the answer, or name the bet in mqlab/labs/whys.py if all have the same one"
                )
    return problems


def _is_fixed(reveal: ast.Call) -> bool:
    """Whether the reason is written down and the answer is not."""
    whys = [word.value for word in reveal.keywords if word.arg == "why"]
    computed = len(reveal.args) > 1 and not isinstance(reveal.args[1], ast.Constant)
    return computed and any(isinstance(why, ast.Constant) for why in whys)


def one_reason_for_two(played: Iterable[Bet]) -> bool:
    """Whether a bet by choice, as several students have played it, gives the same reason for different choices."""
    reasons: dict[str, set[int]] = {}
    for bet in played:
        if bet.choices and bet.why and bet.truth in bet.choices:
            reasons.setdefault(bet.why, set()).add(bet.choices.index(str(bet.truth)))
    return any(len(places) > 1 for places in reasons.values())
