"""`mqlab explore SCENARIO`: plays a scenario from many seeds, with faults, and says which seeds break which rule."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from mqlab.arguments import named_values
from mqlab.commands import explore_until
from mqlab.commands.explore_goals import Tally, goal_until
from mqlab.commands.numbers import whole
from mqlab.errors import LearnerError, MissingExtraError
from mqlab.explore import Goal, Outcome, Plan, Result, Trial, plan_from_text, plan_text, play_seeds
from mqlab.explore.tape import record, write_tape
from mqlab.fast import COMPILED, running
from mqlab.progress import bar
from mqlab.scenarios import Scenario, get

PASSED, FAILED = 0, 1
"""Exit codes: every rule held in every seed; some seed broke one. What cannot be carried out raises an MqlabError."""

DRAWN, NONE = "drawn", "none"
LINE_LETTERS = 120


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `mqlab explore` takes to a parser."""
    parser.add_argument("scenario", help="one of `mqlab scenarios`")
    parser.add_argument("--seeds", type=whole(1), default=100, metavar="N", help="how many seeds to play (default 100)")
    parser.add_argument("--first-seed", type=whole(0), default=0, metavar="N", help="the first of them (default 0)")
    parser.add_argument("--seed", type=whole(0), metavar="N", help="play this seed alone, and print all that it breaks")
    parser.add_argument(
        "--param", "-p", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the scenario"
    )
    parser.add_argument(
        "--faults", default=DRAWN, metavar="FAULTS",
        help="drawn: from each seed (the default); none; or a schedule: 'at 3s: crash broker-a for 2s; at 9s: ...'"
    )  # fmt: skip
    parser.add_argument(
        "--jobs", "-j", type=whole(1, 1_000), default=os.cpu_count() or 1, metavar="N", help="processes to play in"
    )
    parser.add_argument(
        "--master", metavar="URL", help="play on Spark instead: local[2], spark://host:7077; or what is set outside: ''"
    )
    parser.add_argument(
        "--until", metavar="goal:NAME", help="play until a seed reaches this goal (docs/checks.md), and say where"
    )
    parser.add_argument(
        "--report", metavar="FILE", help="with --seed or --until: write a report for `mqlab replay` to FILE"
    )
    parser.add_argument("--tape", type=Path, metavar="FILE", help="with --seed: keep the world and its choices in FILE")
    parser.add_argument(
        "--corpus", type=Path, metavar="DIR", help="keep what each world came to in DIR, and go on with what is there"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    """Do what the parsed options say; the exit code."""
    scenario = get(options.scenario)
    parameters = _parameters(scenario, options.param)
    plan = _plan(options.faults)
    if options.until is not None:
        if options.corpus or options.tape:
            raise LearnerError("a search for a goal keeps no corpus and no tape", "leave --until out, or the other")
        return _until(options, scenario, parameters, plan, goal_until(options.until))
    if options.corpus is not None:
        from mqlab.commands.explore_corpus import play_into_corpus

        return play_into_corpus(options, scenario, parameters, plan)
    if options.seed is not None:
        return _one(options, scenario, parameters, plan)
    if options.report:
        raise LearnerError("a report is of one seed", "add --seed N, or --until goal:NAME")
    if options.tape:
        raise LearnerError("a tape is of one seed", "add --seed N")
    return _many(options, scenario, parameters, plan)


def main(argv: Sequence[str] | None = None) -> int:
    """The command as a program; the exit code."""
    parser = argparse.ArgumentParser(prog="mqlab explore", description=__doc__)
    add_arguments(parser)
    return run(parser.parse_args(argv))


def _parameters(scenario: Scenario, given: list[str]) -> dict[str, Any]:
    pairs = named_values(given)
    checked = scenario.check(pairs)
    return {name: checked[name] for name in pairs}


def _plan(text: str) -> Plan | None:
    if text == DRAWN:
        return None
    return () if text == NONE else plan_from_text(text)


# -- one seed -------------------------------------------------------------------------------------------------------


def _one(options: argparse.Namespace, scenario: Scenario, parameters: dict[str, Any], plan: Plan | None) -> int:
    trial = Trial(scenario.name, options.seed, parameters, plan)
    outcome = trial.outcome
    if options.report and trial.lab is not None:
        trial.lab.report(options.report)
    if options.tape:
        write_tape(record(scenario.name, options.seed, parameters, plan_text(outcome.plan), ()), options.tape)
    if options.json:
        print(json.dumps({"scenario": scenario.name, "running": running(), **_as_json(outcome)}, indent=1))
        return PASSED if outcome.passed else FAILED
    for line in outcome.plan or ("no faults",):
        print(line)
    print(f"played for {outcome.now_ms / 1_000:.1f} s of the world's time")
    _print_excused(outcome.excused)
    for rule, times in sorted(outcome.judged.items()):
        if times:
            print(f"judged {_times(times)}: {rule}")
    _print_silent(outcome.judged)
    for name, at in sorted(trial.first_reached.items()):
        print(f"reached {_times(outcome.goals[name])}, first at {at.ts_ms:,.1f} ms: {name}")
    _print_endless(not outcome.load_ended, scenario)
    for breach in outcome.breaches:
        print(f"BROKEN: {breach.rule}\n  {breach.reason}\n  {breach.event}".rstrip())
    if options.report:
        print(f"written to {options.report}; play it again: mqlab replay {shlex.quote(options.report)}")
    if options.tape:
        print(f"kept in {options.tape}; whether it still fits: mqlab replay {shlex.quote(str(options.tape))}")
    print(("1 passed, 0 failed" if outcome.passed else "0 passed, 1 failed") + compiled())
    return PASSED if outcome.passed else FAILED


# -- until a goal ---------------------------------------------------------------------------------------------------


def _until(
    options: argparse.Namespace, scenario: Scenario, parameters: dict[str, Any], plan: Plan | None, goal: Goal
) -> int:
    first, count = (options.first_seed, options.seeds) if options.seed is None else (options.seed, 1)
    seeds = range(first, first + count)
    with bar("seeds", len(seeds)) as shown:
        for played, result in enumerate(_results(options, scenario, seeds, parameters, plan), 1):
            shown.to(played)
            if not result.outcome.passed and not options.json:
                with shown.aside():
                    print_failure(result, options)
            if goal.name in result.outcome.goals:
                break
        else:
            explore_until.tell_not_found(scenario.name, goal, seeds, options.json)
            return explore_until.NOT_FOUND
    trial = Trial(scenario.name, result.outcome.seed, parameters, plan)
    command = command_of(options, Result(result.outcome, None))
    explore_until.tell_found(scenario.name, goal, trial, command, options.report, options.json)
    return explore_until.FOUND


# -- many seeds -----------------------------------------------------------------------------------------------------


def _many(options: argparse.Namespace, scenario: Scenario, parameters: dict[str, Any], plan: Plan | None) -> int:
    say_that_none_are_drawn(scenario, plan)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    failures: list[Result] = []
    excused: Counter[str] = Counter()
    judged: Counter[str] = Counter()
    tally = Tally(scenario.name, scenario.goals)
    played = endless = 0
    with bar("seeds", len(seeds)) as shown:
        for result in _results(options, scenario, seeds, parameters, plan):
            played += 1
            excused.update(result.outcome.excused)
            judged.update(result.outcome.judged)
            tally.add(result.outcome)
            endless += not result.outcome.load_ended
            if not result.outcome.passed:
                failures.append(result)
                if not options.json:
                    with shown.aside():
                        print_failure(result, options)
            shown.to(played, f"{len(failures):,} failed")
    if options.json:
        print(json.dumps(_summary(options, played, failures, excused, judged, tally, endless), indent=1))
    else:
        _print_excused(excused)
        _print_silent(judged)
        print(*tally.lines(), sep="\n")
        _print_endless(endless, scenario)
        print(f"{played - len(failures)} passed, {len(failures)} failed{compiled()}")
    return FAILED if failures else PASSED


def say_that_none_are_drawn(scenario: Scenario, plan: Plan | None) -> None:
    """Say on stderr that a scenario which bears no faults is played without."""
    if plan is None and not scenario.faults:
        print(
            f"mqlab: no faults are drawn for {scenario.name}, whose tasks do not expect any; "
            "give a schedule with --faults",
            file=sys.stderr,
        )


def _results(
    options: argparse.Namespace, scenario: Scenario, seeds: range, parameters: dict[str, Any], plan: Plan | None
) -> Iterator[Result]:
    if options.master is None:
        return play_seeds(scenario.name, seeds, parameters, plan, jobs=options.jobs)
    if importlib.util.find_spec("mqlab_spark") is None:
        raise MissingExtraError("pyspark", "spark")
    from mqlab_spark import session
    from mqlab_spark.exploring import outcomes, results

    spark = session("mqlab-explore", options.master or None)
    return results(outcomes(spark, scenario.name, seeds, parameters, None if plan is None else plan_text(plan)))


def print_failure(result: Result, options: argparse.Namespace) -> None:
    """Say why a seed failed, and how it is played again."""
    outcome = result.shortest or result.outcome
    print(f"seed {outcome.seed}: {outcome.breaches[0].reason}")
    print(f"  {shlex.join(command_of(options, result))}", flush=True)


def command_of(options: argparse.Namespace, result: Result) -> list[str]:
    """The command that plays a failure again, with the shortest plan and world that fail where they are shorter."""
    words = ["mqlab", "explore", options.scenario, "--seed", str(result.outcome.seed)]
    found = result.shortest or result.outcome
    shortest = found.plan
    for text in options.param:
        if not (found.world and text.startswith("world=")):
            words += ["-p", text]
    if found.world:
        words += ["-p", f"world={found.world}"]
    if options.faults != DRAWN or shortest != result.outcome.plan:
        words += ["--faults", plan_text(shortest) or NONE]
    return words


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _print_excused(excused: Mapping[str, int]) -> None:
    for name, times in sorted(excused.items()):
        print(f"excused {_times(times)}: {name}")


def _print_endless(seeds: int, scenario: Scenario) -> None:
    """Say of how many seeds the end was not judged, since producers went on for as long as a world may settle."""
    if seeds:
        limited = any(parameter.name == "messages" for parameter in scenario.parameters)
        hint = "give a load that ends: -p messages=100" if limited else "the load of this scenario has no end"
        plural = "s" if seeds > 1 else ""
        print(f"the end of {seeds} seed{plural} was not judged, since messages were still being sent; {hint}")


def _silent(judged: Mapping[str, int]) -> list[str]:
    """The rules that had nothing to judge, by name."""
    return sorted(rule for rule, times in judged.items() if not times)


def _print_silent(judged: Mapping[str, int]) -> None:
    """Say which rules had nothing to judge: that they were not broken says nothing."""
    silent = _silent(judged)
    if silent:
        text = f"{len(silent)} of {len(judged)} rules had nothing to judge: {', '.join(silent)}"
        print(fill(text, LINE_LETTERS, subsequent_indent="  "))


def compiled() -> str:
    """What is said where it is not the interpreted mqlab that has played."""
    return " (mqlab compiled)" if running() == COMPILED else ""


def _as_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "seed": outcome.seed,
        "passed": outcome.passed,
        "faults": list(outcome.plan),
        "breaches": [breach._asdict() for breach in outcome.breaches],
        "excused": outcome.excused,
        "judged": outcome.judged,
        "silent": _silent(outcome.judged),
        "goals": outcome.goals,
        "load_ended": outcome.load_ended,
        "now_ms": outcome.now_ms,
    }


def _summary(
    options: argparse.Namespace,
    played: int,
    failures: list[Result],
    excused: Counter[str],
    judged: Counter[str],
    tally: Tally,
    endless: int,
) -> dict[str, Any]:
    return {
        "scenario": options.scenario,
        "running": running(),
        "seeds": played,
        "passed": played - len(failures),
        "failed": len(failures),
        "excused": dict(sorted(excused.items())),
        "judged": dict(sorted(judged.items())),
        "silent": _silent(judged),
        "goals": tally.as_json(),
        "ends_not_judged": endless,
        "failures": [
            {**_as_json(result.shortest or result.outcome), "command": shlex.join(command_of(options, result))}
            for result in failures
        ],
    }
