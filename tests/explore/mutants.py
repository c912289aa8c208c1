"""Look for the mutants: `python -m tests.explore.mutants [--seeds 300] [--write] [NUMBER ...]`.

Plays the scenarios of each mutant until a rule finds it. With `--write` the table in docs/checks.md is written anew.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from mqlab.explore import Trial

from .broken.mutants import MUTANTS, UNSEEN, Mutant

PAGE = Path(__file__).parents[2] / "docs" / "checks.md"
BEGIN, END = "<!-- mutants -->\n", "<!-- end of mutants -->\n"


class Finding(NamedTuple):
    """What found a mutant: the scenario, the seed, and the rule that broke first."""

    scenario: str
    seed: int
    rule: str
    reason: str


def look_for(mutant: Mutant, seeds: int) -> Finding | None:
    """The first finding, in a seed in which the right code passes: a few seeds of each scenario, then more."""
    for first, last in ((0, min(seeds, 20)), (20, seeds)):
        for scenario in mutant.scenarios:
            for seed in range(first, last):
                with pytest.MonkeyPatch.context() as patch:
                    mutant.apply(patch)
                    outcome = Trial(scenario, seed).outcome
                if outcome.breaches and Trial(scenario, seed).outcome.passed:
                    return Finding(scenario, seed, outcome.breaches[0].rule, outcome.breaches[0].reason)
    return None


def row(mutant: Mutant, finding: Finding | None) -> str:
    """One line of the table."""
    if finding is None:
        return f"| {mutant.number} | {mutant.what} | not found: {UNSEEN.get(mutant.number, '?')} | | |"
    rule = finding.rule.rstrip(".")
    command = f"`mqlab explore {finding.scenario} --seed {finding.seed}`"
    return f"| {mutant.number} | {mutant.what} | {rule} | {finding.seed} | {command} |"


def main(arguments: list[str]) -> int:
    """Look for all mutants, or those with the given numbers; 1 if one was not found."""
    parser = argparse.ArgumentParser(prog="python -m tests.explore.mutants", description=__doc__)
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--write", action="store_true", help="write the table of docs/checks.md anew")
    parser.add_argument("numbers", type=int, nargs="*", metavar="NUMBER")
    options = parser.parse_args(arguments)
    lines, missed = [], 0
    for mutant in MUTANTS:
        if not options.numbers or mutant.number in options.numbers:
            finding = look_for(mutant, options.seeds)
            missed += finding is None and mutant.number not in UNSEEN
            lines.append(row(mutant, finding))
            print(lines[-1], flush=True)
    print(f"{sum(line.endswith('` |') for line in lines)} of {len(lines)} found")
    if options.write:
        text = PAGE.read_text(encoding="utf-8")
        head, tail = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
        table = "| | what is broken | rule | seed | command, with the change |\n|---|---|---|---|---|\n"
        PAGE.write_text(head + table + "\n".join(lines) + "\n" + tail, encoding="utf-8")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
