"""Solutions that are the same but for names and layout: every pair of a class, exercise by exercise.

Compared are normal forms (`normal_form`) without what was handed out: as written, with their statements in a fixed
order, and by how much of the shorter one's statements stands in the longer one. What is alike says that two people
should be asked, and nothing about who had it from whom.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from mqlab.errors import LearnerError
from mqlab.grading.normal_form import NormalForm, normal_form
from mqlab.grading.submission import Submission
from mqlab.labs.notebook import given_name
from mqlab.labs.solution import remove_solutions
from mqlab.labs.source import LabSource

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEAST = 0.95
"""From so much likeness on a pair is told."""
SHORTEST = 40
"""Solutions with fewer tokens are left out: so short, they are written alike by people who never met."""
LONGEST = 5_000
"""Solutions with more tokens are left out, and told; the longest reference solution has fewer than 400."""
MOST_ALIKE, COMMON_SHARE = 4, 0.05
"""When more others than that, and more than that share of a class, have written the same, it is a common way."""
_CHARACTERS = range(0x10000, 0x110000)
"""One for each kind of token. Two kinds share one only if somebody has written a million of them."""


class Alike(NamedTuple):
    """One exercise of a pair."""

    exercise: str
    likeness: float
    tokens: int
    """The length of the shorter solution, without what was handed out."""


@dataclass(slots=True)
class Pair:
    """Two students, and the exercises in which they are alike."""

    one: str
    other: str
    exercises: list[Alike] = field(default_factory=list)

    @property
    def weight(self) -> float:
        """How much is alike, in tokens: what to look at first."""
        return sum(alike.likeness * alike.tokens for alike in self.exercises)


@dataclass(slots=True)
class Common:
    """A way in which many have solved an exercise."""

    exercise: str
    students: list[str]
    like_the_reference: bool
    """Whether the lab's own solution, to which the hints lead, is one of them."""


@dataclass(slots=True)
class Comparison:
    """What came of comparing a class."""

    compared: int = 0
    """How many solutions were compared."""
    short: int = 0
    """How many were too short to say anything."""
    pairs: list[Pair] = field(default_factory=list)
    common: list[Common] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    """Notebooks of several students that are the same, byte for byte: a line for each."""
    left: list[str] = field(default_factory=list)
    """What could not be compared, and why: a line for each student."""
    texts: dict[tuple[str, str], str] = field(default_factory=dict)
    """(student, exercise) -> the text of a solution that is named in a pair."""


@dataclass(slots=True)
class _Solution:
    student: str
    form: NormalForm
    tokens: int


REFERENCE = ""
"""The "student" whose solution is the lab's own."""


def compare(
    labs: Iterable[tuple[LabSource, Sequence[Submission]]], *, least: float = LEAST, shortest: int = SHORTEST
) -> Comparison:
    """Compare the solutions of each exercise of each lab, pair by pair. Nothing is run."""
    found = Comparison()
    pairs: dict[tuple[str, str], Pair] = {}
    left: dict[str, list[str]] = defaultdict(list)
    for lab, handed_in in labs:
        found.same += _same_files(lab, handed_in)
        for cell in lab.tagged("exercise"):
            exercise = given_name(lab, cell) or ""
            skeleton = remove_solutions(cell.source)
            texts = {each.student: each.cells.get(exercise, "") for each in handed_in}
            solutions = _solutions({REFERENCE: cell.source, **texts}, exercise, skeleton, shortest, found, left)
            for one, other, likeness in _ways(solutions, exercise, least, found):
                key = min(one.student, other.student), max(one.student, other.student)
                pair = pairs.setdefault(key, Pair(*key))
                pair.exercises.append(Alike(exercise, likeness, min(one.tokens, other.tokens)))
                found.texts |= {(student, exercise): texts[student] for student in key}
    found.left = [f"{student}: not compared: {', '.join(named)}" for student, named in sorted(left.items())]
    found.pairs = sorted(pairs.values(), key=lambda pair: (-pair.weight, pair.one, pair.other))
    return found


def _same_files(lab: LabSource, handed_in: Sequence[Submission]) -> list[str]:
    """Whoever hands in the lab as it was handed out has copied nothing from anybody."""
    owners: dict[str, list[str]] = defaultdict(list)
    for each in handed_in:
        if each.digest and any("raise NotSolvedYet" not in text for text in each.cells.values()):
            owners[each.digest].append(each.student)
    return [
        f"{lab.name}: {', '.join(sorted(who))} handed in the same file, byte for byte"
        for who in sorted(map(sorted, owners.values()))
        if len(who) > 1
    ]


def _solutions(
    texts: Mapping[str, str],
    exercise: str,
    skeleton: str,
    shortest: int,
    found: Comparison,
    left: dict[str, list[str]],
) -> list[_Solution]:
    """What each has written, as far as it says something; the lab's own solution comes first.

    What can't be compared is named in `left`, for each student.
    """
    solutions = []
    asked_for = _functions(skeleton)
    given = normal_form(skeleton, asked_for)
    for student, text in texts.items():
        form = normal_form(text, asked_for)
        if form is None:
            left[student].append(f"{exercise} (no Python)")
            continue
        own = form.without(given) if given is not None else form
        tokens = len(own.tokens)
        if tokens > LONGEST:
            left[student].append(f"{exercise} ({tokens:,} tokens)")
        elif tokens < shortest:
            # The cell as it was handed out is no solution, short or not.
            found.short += bool(tokens) and student != REFERENCE
        else:
            solutions.append(_Solution(student, own, tokens))
    found.compared += sum(solution.student != REFERENCE for solution in solutions)
    return solutions


def _functions(text: str) -> set[str]:
    """The names of the functions that are handed out: they were asked for."""
    return {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def _ways(
    solutions: Sequence[_Solution], exercise: str, least: float, found: Comparison
) -> list[tuple[_Solution, _Solution, float]]:
    """The pairs of students that are alike, without those who went a common way, or the lab's own."""
    alike = _alike(solutions, least)
    friends: dict[int, set[int]] = defaultdict(set)
    for one, other, _ in alike:
        friends[one].add(other)
        friends[other].add(one)
    most = max(MOST_ALIKE, COMMON_SHARE * len(solutions))
    common = {
        one
        for one, others in friends.items()
        if len(others) > most or any(not solutions[at].student for at in (one, *others))
    }
    for group in _groups(common, friends):
        students = sorted(solutions[at].student for at in group if solutions[at].student)
        if len(students) > 1:
            found.common.append(Common(exercise, students, any(not solutions[at].student for at in group)))
    return [
        (solutions[one], solutions[other], likeness)
        for one, other, likeness in alike
        if one not in common or other not in common
        if solutions[one].student and solutions[other].student
    ]


def _groups(members: set[int], friends: Mapping[int, set[int]]) -> list[set[int]]:
    """Those who hang together by likeness."""
    left, groups = set(members), []
    while left:
        group, ways = set(), [min(left)]
        while ways:
            one = ways.pop()
            if one in left:
                left.remove(one)
                group.add(one)
                ways += friends[one] & members
        groups.append(group)
    return groups


def _alike(solutions: Sequence[_Solution], least: float) -> list[tuple[int, int, float]]:
    """The places of all pairs from `least` on, with their likeness."""
    if not solutions:
        return []
    best = likenesses([each.form for each in solutions], least)
    return [
        (one, other, round(float(best[one, other]), 3))
        for one, other in combinations(range(len(solutions)), 2)
        if best[one, other] >= least
    ]


def likenesses(forms: Sequence[NormalForm], least: float = 0.0) -> NDArray[np.float64]:
    """How alike each two forms are, 0 to 1: the largest of three looks at them; what is below `least` may be 0.

    As they are written, and with their statements in a fixed order, by the tokens that have to be put in or taken out;
    and by the share of the shorter one's statements that stands in the longer one, in tokens, whatever stands between
    them.
    """
    try:
        import numpy as np
        from rapidfuzz import process
        from rapidfuzz.distance import Indel
    except ImportError as missing:
        raise LearnerError(f"comparing needs {missing.name}", "install mqlab's extra `labs`: make lab") from None
    characters: dict[str, str] = {}
    looks: list[NDArray[np.float64]] = []
    for tokens in ([form.tokens for form in forms], [form.sorted_tokens for form in forms]):
        texts = [_as_text(each, characters) for each in tokens]
        looks.append(process.cdist(texts, texts, scorer=Indel.normalized_similarity, score_cutoff=least, workers=-1))
    kinds = {tokens: place for place, tokens in enumerate({unit.tokens: None for form in forms for unit in form.units})}
    counts = np.zeros((len(forms), len(kinds)))
    for row, form in zip(counts, forms, strict=True):
        for unit in form.units:
            row[kinds[unit.tokens]] += 1
    weights = np.array([len(tokens) for tokens in kinds])
    wholes = counts @ weights
    shares = [
        np.minimum(row, counts) @ weights / np.minimum(whole, wholes) for row, whole in zip(counts, wholes, strict=True)
    ]
    best: NDArray[np.float64] = np.maximum.reduce([*looks, np.array(shares)])
    return best


def _as_text(tokens: Iterable[str], characters: dict[str, str]) -> str:
    return "".join(
        characters.setdefault(token, chr(_CHARACTERS[len(characters) % len(_CHARACTERS)])) for token in tokens
    )
