"""`mqlab replay FILE`: plays a report again and says whether its hash agrees, or a tape, and whether it still fits."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from mqlab.explore.tape import is_tape, play, read_tape
from mqlab.progress import bar
from mqlab.replay import read_report, replay


def main(argv: Sequence[str] | None = None) -> int:
    """Play it again; 0 when the hash agrees, or the tape fits and all rules hold, else 1."""
    parser = argparse.ArgumentParser(prog="mqlab replay", description=__doc__)
    parser.add_argument("report", help="a file that lab.report(...) or mqlab explore --tape wrote")
    parser.add_argument(
        "--allow-source", action="store_true", help="run the scenario source code that the report carries"
    )
    options = parser.parse_args(argv)
    if is_tape(Path(options.report)):
        return _play_tape(Path(options.report))
    report = read_report(options.report)
    with bar("slices", report["slice"]) as shown:
        result = replay(report, allow_source=options.allow_source, told=shown.to)
    print(result)
    return 0 if result.agrees else 1


def _play_tape(path: Path) -> int:
    tape = read_tape(path)
    playing = play(tape)
    print(playing.difference or f"all {len(tape.choices):,} choices are the same")
    for name in playing.lacks:
        print(f"no longer shown: {name}")
    for breach in playing.outcome.breaches:
        print(f"BROKEN: {breach.rule}\n  {breach.reason}")
    return 0 if playing.fits else 1
