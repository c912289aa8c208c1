"""Tapes: a world of an exploration with all choices that were made in it, so that it can be told whether it still fits.

The seed says what comes of a choice, so a tape has the points at which one was made, in order. A world that is
played again after a change of mqlab may come to another choice somewhere: from there on it is another world, and no
longer shows what the tape was kept for. `difference` names that choice.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from mqlab.errors import LearnerError
from mqlab.explore.fault_plan import plan_from_text, plan_text
from mqlab.explore.seen import seen_in
from mqlab.explore.trial import Outcome, Trial

FORMAT = 1

Choice = tuple[str, int]
"""The point at which something was chosen, and among how many."""


class Tape(NamedTuple):
    """A scenario with its parameters, from a seed, under a fault schedule; what it shows, and its choices in order."""

    scenario: str
    seed: int
    parameters: dict[str, Any]
    faults: str
    shows: tuple[str, ...]
    choices: tuple[Choice, ...]


class Playing(NamedTuple):
    """What came of a tape: the outcome, what it no longer shows, and in words where it no longer fits, or ""."""

    outcome: Outcome
    lacks: tuple[str, ...]
    difference: str

    @property
    def fits(self) -> bool:
        """Was it the same world, with all that it was kept for, and did all rules hold?"""
        return not self.difference and not self.lacks and self.outcome.passed


def record(scenario: str, seed: int, parameters: dict[str, Any], faults: str, shows: tuple[str, ...]) -> Tape:
    """The tape of a world, kept for what it shows. LearnerError if it does not."""
    tape = Tape(scenario, seed, parameters, faults, shows, ())
    trial, choices = _played(tape)
    lacks = [name for name in shows if name not in seen_in(trial, parameters)]
    if lacks:
        raise LearnerError(f"seed {seed} of {scenario} does not show {', '.join(lacks)}", "leave it out")
    return tape._replace(choices=tuple(choices))


def play(tape: Tape) -> Playing:
    """Play a tape again, and judge it."""
    trial, choices = _played(tape)
    seen = seen_in(trial, tape.parameters)
    lacks = tuple(name for name in tape.shows if name not in seen)
    return Playing(trial.outcome, lacks, difference(tape.choices, choices))


def difference(before: tuple[Choice, ...], now: list[Choice]) -> str:
    """The first choice that differs, in words; "" if all are the same."""
    for place in range(max(len(before), len(now))):
        there = before[place] if place < len(before) else None
        here = now[place] if place < len(now) else None
        if there != here:
            return f"choice {place + 1:,} of {len(before):,} differs: on the tape {_said(there)}, now {_said(here)}"
    return ""


def _said(choice: Choice | None) -> str:
    return f"one of {choice[1]:,} at {choice[0]}" if choice is not None else "the world has ended"


def _played(tape: Tape) -> tuple[Trial, list[Choice]]:
    choices: list[Choice] = []

    def note(point: str, k: int, n: int, drawn: int) -> int:
        choices.append((point, n))
        return drawn

    return Trial(tape.scenario, tape.seed, tape.parameters, plan_from_text(tape.faults), policy=note), choices


# -- files --


def write_tape(tape: Tape, path: Path) -> None:
    """Write a tape to a file: what it is as text, the different choices once, and their order as numbers."""
    different = sorted(set(tape.choices))
    places = {choice: place for place, choice in enumerate(different)}
    written = {
        "tape": FORMAT,
        **tape._asdict(),
        "faults": plan_text(plan_from_text(tape.faults)),
        "choices": [f"{n} at {point}" for point, n in different],
        "order": " ".join(str(places[choice]) for choice in tape.choices),
    }
    path.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def is_tape(path: Path) -> bool:
    """Is this the file of a tape, of whatever format?"""
    try:
        return "tape" in json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, RecursionError):
        return False


def read_tape(path: Path) -> Tape:
    """The tape in a file. LearnerError if it is none, or one of another format."""
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        if read["tape"] != FORMAT:
            hint = "record it again with the mqlab that shall play it"
            raise LearnerError(f"{path} is a tape of format {read['tape']}, and this mqlab reads {FORMAT}", hint)
        different = [(point, int(n)) for n, _, point in (line.partition(" at ") for line in read["choices"])]
        choices = tuple(different[int(place)] for place in read["order"].split())
        return Tape(
            read["scenario"], read["seed"], read["parameters"], read["faults"], tuple(read["shows"]), choices
        )
    except OSError as error:
        raise LearnerError(f"{path} cannot be read: {error.strerror}", "give the path of a tape") from None
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        raise LearnerError(f"{path} is no tape of mqlab", "give the path of a tape") from None
