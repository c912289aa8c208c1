"""`python -m benchmarks`: measures every figure, prints the table, and writes out/bench.json."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks import clients, compiled, imports, kernel, messages, pop, recording, scale, viewer
from benchmarks.harness import Figure, python_build

Measure = Callable[[], Figure | Iterable[Figure]]

AREAS: dict[str, list[Measure]] = {
    "kernel": [kernel.hops, kernel.timers],
    "imports": [imports.import_mqlab, imports.first_message],
    "scale": [scale.idle_broker, scale.queues, scale.backlog],
    "messages": [
        messages.against_fakeredis,
        messages.beside_others,
        messages.executed,
        messages.against_bare_appends,
    ],
    "pop": [pop.written, pop.against_push, pop.waiting, pop.idle_broker],
    "compiled": [compiled.against_fakeredis],
    "recording": [recording.recording],
    "clients": [clients.async_send, clients.push_consume, clients.rebalance],
    "viewer": [
        *(viewer.clicks, viewer.frames, viewer.speed, viewer.story),
        *(viewer.many_queues, viewer.memory, viewer.rewind),
    ],
}

_ROW = "{:<46} {:>12} {:<16} {:>12} {:>8} {:>10} {:>4}"


def row(measured: Figure) -> str:
    """One line of the table."""
    side = "≥" if measured.better == "higher" else "≤"
    return _ROW.format(
        measured.name,
        f"{measured.value:,g}",
        measured.unit,
        "" if measured.versus is None else f"{measured.versus:,g}",
        "" if measured.ratio is None else f"{measured.ratio:g}",
        "" if measured.aim is None else f"{side} {measured.aim:g}",
        "" if measured.aim is None else "yes" if measured.met else "NO",
    )


def main(arguments: list[str]) -> int:
    """Measure the areas that were asked for (all of them unless told), print and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("areas", nargs="*", metavar="area", help=f"one or more of {', '.join(AREAS)}; all unless given")
    parser.add_argument(
        "--out", type=Path, default=Path("out/bench.json"), help="the file to write (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    unknown = [area for area in options.areas if area not in AREAS]
    if unknown:
        parser.error(f"there is no area {unknown[0]!r}: choose from {', '.join(AREAS)}")
    began = time.monotonic()
    print(python_build())
    print(_ROW.format("name", "value", "unit", "versus", "ratio", "aim", "met"), flush=True)
    figures: list[Figure] = []
    for area in options.areas or AREAS:
        for measure in AREAS[area]:
            result = measure()
            for measured in [result] if isinstance(result, Figure) else result:
                figures.append(measured)
                print(row(measured), flush=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    written = {"python": python_build(), "figures": [f._asdict() for f in figures]}
    options.out.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    missed = sum(not f.met for f in figures)
    print(f"{len(figures)} figures in {time.monotonic() - began:.0f} s, {missed} aims missed; written to {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
