"""`mqlab explore SCENARIO --until goal:NAME`: plays seeds until one reaches the goal, and says where."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqlab.explore import Goal, Trial
from mqlab.replay import replay_to, report_of

if TYPE_CHECKING:
    from mqlab.lab import Lab

CURSOR = "cursor"
"""Behind how many events a view opens a report (`mqlab_widgets.sharing`)."""
FOUND, NOT_FOUND = 0, 1
"""Exit codes: a seed has reached the goal; none of those that were to be played has."""


def tell_found(
    scenario: str, goal: Goal, trial: Trial, command: Sequence[str], report: str | None, as_json: bool
) -> None:
    """Say which seed has reached the goal, where, and how to get there; with `report` write what brings it back."""
    lab, at = trial.lab, trial.first_reached[goal.name]
    assert lab is not None
    place = lab.history.index_of(at.at) + 1
    if as_json:
        print(json.dumps(_found(scenario, goal, trial, command, place, report), indent=1), flush=True)
    else:
        times = trial.outcome.goals[goal.name]
        print(f"seed {trial.seed} reaches {goal.name}{'' if times == 1 else f', {times:,} times'}: {goal.words}")
        for line in trial.plan or ("no faults",):
            print(f"  {line}")
        print(f"  first at event {place:,}:")
        print(f"  {str(at).strip()}")
        print(f"play it again: {shlex.join(command)}", flush=True)
    if report:
        # Last of all: where it cannot be written, what was found has been told.
        _write(lab, at.slice, place, report)
    if not as_json:
        _tell_how_to_get_there(goal, command, report)


def _tell_how_to_get_there(goal: Goal, command: Sequence[str], report: str | None) -> None:
    if report:
        print(f"written to {report}, up to that event: mqlab replay {shlex.quote(report)}")
        print(f"to see it in a notebook: from mqlab_widgets import Stepper; Stepper.reopen({report!r})")
    else:
        there = [*command, "--until", f"goal:{goal.name}", "--report", "goal.mqlab"]
        print(f"to stand at that event: {shlex.join(there)}")


def tell_not_found(scenario: str, goal: Goal, seeds: range, as_json: bool) -> None:
    """Say that no seed has reached the goal."""
    if as_json:
        said = {"scenario": scenario, "goal": goal.name, "reached": False, "seeds": [seeds.start, seeds.stop - 1]}
        print(json.dumps(said, indent=1))
        return
    which = f"seed {seeds.start}" if len(seeds) == 1 else f"of the seeds from {seeds.start} to {seeds.stop - 1} none"
    verb = "does not reach" if len(seeds) == 1 else "reaches"
    print(f"{which} {verb} {goal.name}: {goal.words}")
    print("give it more seeds (--seeds N), or another scenario; docs/checks.md says which one reaches which goal")


def _write(lab: Lab, slice_no: int, place: int, path: str) -> None:
    """Write a report that ends with this slice, for the end of a trial is far behind; views open it at the event."""
    there = {**report_of(replay_to(report_of(lab), slice_no)), CURSOR: place}
    Path(path).write_text(json.dumps(there, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _found(
    scenario: str, goal: Goal, trial: Trial, command: Sequence[str], place: int, report: str | None
) -> dict[str, Any]:
    at = trial.first_reached[goal.name]
    return {
        "scenario": scenario,
        "goal": goal.name,
        "reached": True,
        "seed": trial.seed,
        "times": trial.outcome.goals[goal.name],
        "faults": list(trial.plan),
        "event": place,
        "slice": at.slice,
        "ts_ms": at.ts_ms,
        "what": str(at).strip(),
        "command": shlex.join(command),
        "report": report,
    }
