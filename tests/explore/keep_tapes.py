"""Keep worlds that show something rare: `python -m tests.explore.keep_tapes CORPUS [--most 20]`, or `--update`.

Takes what only one world of a corpus of drawn worlds has shown, looks for the least world that still shows it, and
writes it to tests/explore/tapes. With `--update` the tapes that are there are recorded again, after a change that
lets worlds go another way; one that no longer shows what it was kept for is named, and left as it is.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mqlab.errors import LearnerError
from mqlab.explore import Trial, plan_from_text, plan_text
from mqlab.explore.corpus import read_header, worlds
from mqlab.explore.seen import could_be_seen, kind_of, seen_in
from mqlab.explore.tape import read_tape, record, write_tape
from mqlab.explore.thoroughness import Thoroughness
from mqlab.scenarios import get
from mqlab.scenarios.drawing import draw_world, shorter_worlds, world_from_text, world_text

TAPES = Path(__file__).parent / "tapes"
RARE = ("event", "exception", "value")
MOST_EVENTS = 6_000
"""Larger worlds cost each run of the tests too much."""
MOST_TRIALS = 150


class Candidate(NamedTuple):
    """A drawn world, as text, that shows something."""

    seed: int
    world: str
    faults: str
    shows: tuple[str, ...]


def candidates(corpus: Path) -> Iterator[Candidate]:
    """The worlds of a corpus that have shown what no other one has, those with the most of it first."""
    header = read_header(corpus)
    if header.scenario != "drawn" or header.parameters or header.faults is not None:
        raise LearnerError("tapes are kept of drawn worlds with faults of their own", "give such a corpus")
    found = Thoroughness(worlds(corpus), could_be_seen(get("drawn")))
    alone: dict[int, list[str]] = {}
    for name in sorted(found.named.once):
        if kind_of(name) in RARE:
            alone.setdefault(found.named.first[name].seed, []).append(name)
    for seed, names in sorted(alone.items(), key=lambda item: (-len(item[1]), item[0])):
        plan = Trial("drawn", seed).plan
        yield Candidate(seed, world_text(draw_world(seed)), plan_text(plan), tuple(names))


def least(found: Candidate) -> Candidate:
    """The least world and plan that were found to show the same and hold all rules."""
    for place in reversed(range(len(plan_from_text(found.faults)))):
        plan = plan_from_text(found.faults)
        shorter = found._replace(faults=plan_text(plan[:place] + plan[place + 1 :]))
        found = shorter if _shows(shorter) else found
    place = 0
    for _ in range(MOST_TRIALS):
        steps = list(shorter_worlds(world_from_text(found.world)))
        if place >= len(steps):
            break
        shorter = found._replace(world=world_text(steps[place]))
        if _shows(shorter):
            found = shorter
        else:
            place += 1
    return found


def _shows(candidate: Candidate, most_events: int | None = None) -> bool:
    """Does a world show what it is kept for, with all rules held, within so many events?"""
    parameters = {"world": candidate.world}
    try:
        trial = Trial("drawn", candidate.seed, parameters, plan_from_text(candidate.faults))
    except LearnerError:
        return False
    if trial.lab is None or (most_events is not None and len(trial.lab.history) > most_events):
        return False
    return trial.outcome.passed and set(candidate.shows) <= seen_in(trial, parameters)


def main(arguments: list[str]) -> int:
    """Keep tapes of a corpus, or record all again; 1 if one no longer shows what it was kept for."""
    parser = argparse.ArgumentParser(prog="python -m tests.explore.keep_tapes", description=__doc__)
    parser.add_argument("corpus", type=Path, nargs="?")
    parser.add_argument("--most", type=int, default=20, metavar="N", help="how many tapes there shall be at most")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args(arguments)
    lost = 0
    for path in sorted(TAPES.glob("*.json")) if options.update else ():
        tape = read_tape(path)
        try:
            write_tape(record(tape.scenario, tape.seed, tape.parameters, tape.faults, tape.shows), path)
        except LearnerError as error:
            lost += 1
            print(f"{path.name}: {error}")
    for found in candidates(options.corpus) if options.corpus else ():
        path = TAPES / f"drawn-{found.seed}.json"
        if len(list(TAPES.glob("*.json"))) >= options.most:
            break
        if path.exists():
            continue
        kept = least(found)
        if _shows(kept, MOST_EVENTS):
            write_tape(record("drawn", kept.seed, {"world": kept.world}, kept.faults, kept.shows), path)
            print(f"{path.name}: {', '.join(kept.shows)}", flush=True)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
