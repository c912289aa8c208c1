"""`mqlab explore SCENARIO --corpus DIRECTORY`: worlds are played into a corpus, and those that it has are left out."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import Any

from mqlab import __version__
from mqlab.commands.explore import (
    FAILED,
    PASSED,
    command_of,
    compiled,
    print_failure,
    say_that_none_are_drawn,
)
from mqlab.errors import LearnerError
from mqlab.explore import RULES, Plan, Result, plan_text, play_seeds
from mqlab.explore.corpus import Corpus, Failure, Header
from mqlab.fast.build import code_of
from mqlab.progress import bar
from mqlab.scenarios import Scenario


def play_into_corpus(
    options: argparse.Namespace, scenario: Scenario, parameters: dict[str, Any], plan: Plan | None
) -> int:
    """Play the seeds that are missing, and say how it ended; the exit status of `mqlab explore` for these seeds."""
    for name in ("seed", "report", "tape", "json", "master"):
        if getattr(options, name) not in (None, False):
            hint = "mqlab corpus DIRECTORY tells of a corpus" if name == "json" else f"leave out --{name}"
            raise LearnerError(f"--corpus and --{name} do not go together", hint)
    say_that_none_are_drawn(scenario, plan)
    faults = None if plan is None else plan_text(plan)
    rules = tuple(rule.__name__ for rule in RULES)
    header = Header(__version__, code_of(), scenario.name, parameters, faults, rules)
    wanted = range(options.first_seed, options.first_seed + options.seeds)
    with Corpus(options.corpus, header) as corpus:
        if corpus.torn:
            print("mqlab: the last line of the corpus was torn; its seed is played again", file=sys.stderr)
        missing = [seed for seed in wanted if seed not in corpus.seeds]
        if len(missing) < len(wanted):
            print(f"{len(wanted) - len(missing):,} of {len(wanted):,} worlds are in the corpus already")
        failed = _play(options, corpus, missing, parameters, plan)
    print(f"{len(missing) - failed} passed, {failed} failed{compiled()}")
    print(f"how thorough that was: mqlab corpus {shlex.quote(str(options.corpus))}")
    return FAILED if failed else PASSED


def _play(
    options: argparse.Namespace, corpus: Corpus, seeds: list[int], parameters: dict[str, Any], plan: Plan | None
) -> int:
    """Play these seeds, each of which is written down when it has ended; how many failed."""
    failed = 0
    with bar("seeds", len(seeds)) as shown:
        results = play_seeds(options.scenario, seeds, parameters, plan, jobs=options.jobs, look=True)
        for played, result in enumerate(results, 1):
            world = corpus.add(result, _failure(options, result))
            if world.failure is not None:
                failed += 1
                with shown.aside():
                    print_failure(result, options)
            shown.to(played, f"{failed:,} failed")
    return failed


def _failure(options: argparse.Namespace, result: Result) -> Failure | None:
    if result.outcome.passed:
        return None
    first = (result.shortest or result.outcome).breaches[0]
    return Failure(first.rule, first.reason, shlex.join(command_of(options, result)))
