"""`python -m benchmarks`: measures every figure, prints the table, and writes out/bench.json.

What takes longer than five minutes is measured only when it is named: grading, serving (beside a real RocketMQ), and
spark-build, spark-questions, spark-explore, for which --events and --data choose sizes and where data sets and tables
are.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from benchmarks import (
    brokers,
    clients,
    compiled,
    filters,
    grading,
    imports,
    judging,
    kernel,
    messages,
    pop,
    recording,
    scale,
    serving,
    spark_build,
    spark_explore,
    spark_questions,
    spark_store,
    spark_worlds,
    viewer,
)
from benchmarks.harness import Figure, python_build
from benchmarks.spark_data import SIZES, Wanted

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
    "filters": [filters.one_of_ten],
    "brokers": [brokers.sync_against_async, brokers.half_messages, brokers.idle_pair],
    "judging": [judging.worlds_a_minute],
    "compiled": [compiled.against_fakeredis],
    "recording": [recording.recording],
    "clients": [clients.async_send, clients.push_consume, clients.rebalance],
    "viewer": [
        *(viewer.clicks, viewer.frames, viewer.speed, viewer.story),
        *(viewer.many_queues, viewer.memory, viewer.rewind),
    ],
    "spark-worlds": [spark_worlds.per_core, spark_worlds.two_cores],
    "spark-store": [spark_store.reading],
}

LONG: dict[str, Callable[[Wanted], Iterable[Figure]]] = {
    "grading": grading.marking,
    "serving": lambda _wanted: serving.serving(),
    "spark-build": spark_build.building,
    "spark-questions": spark_questions.questions,
    "spark-explore": spark_explore.against_the_command_line,
}

_ROW = "{:<48} {:>12} {:<16} {:>12} {:>8} {:>10} {:>4}"


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
    parser.add_argument(
        "areas", nargs="*", metavar="area",
        help=f"one or more of {', '.join(AREAS)}, all of these unless given; or of {', '.join(LONG)}",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, default=Path("out/bench.json"), help="the file to write (default: %(default)s)"
    )
    parser.add_argument(
        "--events", choices=SIZES, action="append", help="of these sizes alone (beside 1M, that growth is told from)"
    )
    parser.add_argument(
        "--data", type=Path, default=Wanted().directory,
        help="where the data sets steady-1M, ... are, or are made, and their tables (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--copied", action="store_true", help="make a data set that is missing of the smaller one, ten times over"
    )
    options = parser.parse_args(arguments)
    sizes = [size for size in SIZES if size in {SIZES[0], *(options.events or SIZES)}]
    wanted = Wanted(sizes, options.data, options.copied)
    unknown = [area for area in options.areas if area not in {**AREAS, **LONG}]
    if unknown:
        parser.error(f"there is no area {unknown[0]!r}: choose from {', '.join([*AREAS, *LONG])}")
    began = time.monotonic()
    print(python_build())
    print(_ROW.format("name", "value", "unit", "versus", "ratio", "aim", "met"), flush=True)
    figures: list[Figure] = []
    for area in options.areas or AREAS:
        for measure in [partial(LONG[area], wanted)] if area in LONG else AREAS[area]:
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
