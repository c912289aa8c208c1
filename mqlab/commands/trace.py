"""`mqlab trace SCENARIO`: plays a scenario and prints its events, its hash, or writes them to a file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mqlab.arguments import named_values, seed_of
from mqlab.commands.numbers import number
from mqlab.data_sets.named_worlds import WorldSpec
from mqlab.errors import LearnerError
from mqlab.progress import bar
from mqlab.trace.catalogue import CATALOGUE
from mqlab.trace.recorder import JsonLinesRecorder, ParquetRecorder


def main(argv: Sequence[str] | None = None) -> int:
    """Play the world and show what was asked for; 0."""
    options = _parser().parse_args(argv)
    for kind in options.kind:
        if kind not in CATALOGUE:
            raise LearnerError(f"there is no event kind {kind!r}", "see docs/events.md")
    faults = tuple(filter(None, options.draw_faults.split(",")))
    spec = WorldSpec(
        options.scenario, seed_of(options.seed), named_values(options.param), options.seconds, faults, options.settle
    ).check()  # fmt: skip
    with bar("seconds of the world", 0) as shown:
        lab = spec.play(lambda done, total: shown.to(done, total=round(total, 3)), wire=options.wire)
    if options.out:
        count = write_trace(lab.history.rows(), options.out, spec.header(lab))
        print(f"{count} events written to {options.out}")
    elif options.hash:
        print(lab.trace_hash())
    else:
        for record in lab.history.records():
            if not options.kind or record.kind in options.kind:
                print(record)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mqlab trace", description=__doc__)
    parser.add_argument("scenario")
    parser.add_argument("--seed", default="0", help="the world's seed (default 0)")
    parser.add_argument("--seconds", type=number(0, above=True), help="how long to play, in the world's time")
    parser.add_argument(
        "--param",
        "-p",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of the scenario (mqlab scenarios lists them); may be repeated",
    )
    parser.add_argument(
        "--draw-faults", default="", metavar="KINDS", help="draw faults from the seed: crash,freeze,..."
    )
    parser.add_argument(
        "--settle", type=number(0), default=0, metavar="SECONDS", help="how long to go on behind its time"
    )
    parser.add_argument(
        "--wire", choices=["objects", "bytes"], default="objects", help="encode and decode every command"
    )
    parser.add_argument("--hash", action="store_true", help="print only the hash of the trace")
    parser.add_argument("--kind", action="append", default=[], help="print only events of this kind (may be repeated)")
    parser.add_argument("--out", metavar="FILE", help="write to FILE: .jsonl or .parquet")
    return parser


def write_trace(rows: Any, path: str, metadata: dict[str, Any]) -> int:
    """Write rows to a .jsonl or .parquet file, in a directory that is made where it is missing; returns how many."""
    recorder_class: Any = {"jsonl": JsonLinesRecorder, "parquet": ParquetRecorder}.get(path.rpartition(".")[2])
    if recorder_class is None:
        raise LearnerError(f"{path} is neither .jsonl nor .parquet", "choose one of these endings")
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with recorder_class(path, metadata) as recorder:
        for row in rows:
            recorder(row)
            count += 1
    return count
