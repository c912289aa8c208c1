"""What a lab's notebook needs: bet before you look, build a piece, and have it judged over many seeds.

    from mqlab.check import NotSolvedYet, check, predict, reveal, seed_for

A bet is stored and shown again beside the truth; it is never scored for being right. A check plays your function
over public seeds and says what it tried, what went wrong and with which seed. Both print the same text every time.
"""

from mqlab.check.bets import Bet, NotebookBets, Reveal, Revealed, notebook_bets, predict, reveal
from mqlab.check.cases import Cases
from mqlab.check.draws import Draws, Said, draws_for, say
from mqlab.check.exam import begin_exam
from mqlab.check.found import Right, Wrong
from mqlab.check.given import is_number
from mqlab.check.hand_in import HandIn, hand_in
from mqlab.check.progress import Progress, how_far
from mqlab.check.registry import (
    PUBLIC_SEEDS,
    CheckFailed,
    LabCheck,
    NotSolvedYet,
    check,
    checks_of,
    find_check,
    lab_check,
)
from mqlab.check.seeds import DEFAULT_SEED, seed_for
from mqlab.check.verdict import VERDICT_MIME, Verdict

__all__ = [
    "DEFAULT_SEED",
    "PUBLIC_SEEDS",
    "VERDICT_MIME",
    "Bet",
    "Cases",
    "CheckFailed",
    "Draws",
    "HandIn",
    "LabCheck",
    "NotSolvedYet",
    "NotebookBets",
    "Progress",
    "Reveal",
    "Revealed",
    "Right",
    "Said",
    "Verdict",
    "Wrong",
    "begin_exam",
    "check",
    "checks_of",
    "draws_for",
    "find_check",
    "hand_in",
    "how_far",
    "is_number",
    "lab_check",
    "notebook_bets",
    "predict",
    "reveal",
    "say",
    "seed_for",
]
