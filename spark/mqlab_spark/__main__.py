"""`python -m mqlab_spark latency|holds|audit TRACE` prints tables of a trace, `build TRACES OUT` makes all of them, and
`plant TRACES OUT` copies traces and plants faults in them that the audit must find.

The same command lines work under spark-submit.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab.data_sets import CARD
from mqlab_spark import jobs, read_trace, session
from mqlab_spark.auditing import ORPHANS, audited, verdicts
from mqlab_spark.build import build, is_little, tables_to_make, tell, tell_traces
from mqlab_spark.failing import FINE, SET_ASIDE, STATUSES, guarded, interrupt_at_once
from mqlab_spark.place import Place
from mqlab_spark.planting import plant
from mqlab_spark.progress import steps_bar
from mqlab_spark.tables import EVENTS
from mqlab_spark.tables.gold.clocks import CLOCKS
from mqlab_spark.tables.silver.requests import REQUESTS
from mqlab_spark.traces import listed

MOST_ROWS = 1_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run one job and print its tables; returns the exit status, see `mqlab_spark.failing.STATUSES`."""
    return guarded(partial(_run, _parser().parse_args(argv)))


def _run(options: argparse.Namespace, errors: Path) -> int:
    command: Callable[..., int | None] = options.command
    if command is _plant:
        _plant(options)
        return FINE
    _, traces = listed(options.trace)
    little = is_little(sum(file.size for file in traces.values()))
    spark = session("mqlab-spark", options.master, short=little, errors=errors)
    interrupt_at_once()
    if command is _build:
        return _build(spark, options)
    command(read_trace(spark, options.trace).cache(), options)
    return FINE


def _parser() -> argparse.ArgumentParser:
    what = "Tables of a recorded trace, by Spark."
    parser = argparse.ArgumentParser(prog="python -m mqlab_spark", description=what, epilog=STATUSES)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    latency = commands.add_parser("latency", help="how long messages take: to be sent, delivered and consumed")
    latency.set_defaults(command=_latency)
    holds = commands.add_parser("holds", help="how long brokers hold pulls that find nothing new")
    holds.add_argument("--bin-ms", type=int, default=1_000, help="width of the histogram's bins (default 1000)")
    holds.set_defaults(command=_holds)
    making = commands.add_parser("build", help="make bronze, silver and gold tables of traces, or go on making them")
    making.set_defaults(command=_build)
    auditing = commands.add_parser("audit", help="what became of every message, and is what was planted found?")
    auditing.set_defaults(command=_audit)
    planting = commands.add_parser("plant", help="copy traces and plant faults in them, which the audit must find")
    planting.set_defaults(command=_plant)
    planting.add_argument("trace", help="a .parquet or .jsonl file, a directory or a pattern")
    planting.add_argument("out", help="a new directory for the changed copies and their card")
    planting.add_argument("--seed", type=int, default=0, help="which faults are drawn (default 0)")
    planting.add_argument("--each", type=int, default=3, help="how many faults of each kind (default 3)")
    for command in (latency, holds, auditing, making):
        command.add_argument("trace", help="a .parquet or .jsonl file, a directory or a pattern")
        command.add_argument("--master", help="the Spark master (default: what is given from outside, else local[*])")
    making.add_argument("out", help="the directory for the tables: of this machine, or hdfs://..., s3a://...")
    making.add_argument("--only", metavar="TABLES", help="these tables, as in audit,lag, and what they are made from")
    making.add_argument("--strict", action="store_true", help="stop when a trace is not whole and true")
    return parser


def _build(spark: SparkSession, options: argparse.Namespace) -> int:
    only = None if options.only is None else [name.strip() for name in options.only.split(",")]
    steps = len(tables_to_make(only, Place(options.out).entries())) + 2
    with steps_bar(spark, "tables", steps) as step:

        def progress(name: str, rows: int, seconds: float) -> None:
            with step(name):
                tell(name, rows, seconds)

        place = build(spark, options.trace, options.out, progress, strict=options.strict, only=only)
    tell_traces(place)
    return SET_ASIDE if place.read()["set_aside"] else FINE


def _latency(trace: DataFrame, options: argparse.Namespace) -> None:
    queue = ("topic", "broker_name", "queue_id")
    _print("send: first attempt to answer", jobs.percentiles(jobs.send_latency(trace), *queue))
    pulled = ("group", "topic", "node", "queue_id")
    _print("delivery: stored to pulled", jobs.percentiles(jobs.delivery_latency(trace), *pulled))
    _print("delivery by cause", jobs.percentiles(jobs.delivery_latency(trace), "cause"))
    _print("consumption: stored to listener", jobs.percentiles(jobs.consume_latency(trace), "group", *queue))
    tables = {EVENTS: trace}
    for table in (REQUESTS, CLOCKS):
        tables[table.name] = table.make(tables)
    _print_clocks(tables["clocks"])


def _holds(trace: DataFrame, options: argparse.Namespace) -> None:
    holds = jobs.hold_times(trace)
    _print("hold times", jobs.histogram(holds, options.bin_ms, "reason"))
    _print("pulls that brought messages", jobs.delivered_by_cause(trace))


def _audit(trace: DataFrame, options: argparse.Namespace) -> None:
    tables = audited(trace)
    counted = tables["audit"].groupBy("group", "status", "proof", "fault").agg(F.count("*").alias("messages"))
    _print("every acknowledged message in every group", counted)
    again = tables["audit"].where("duplicates > 0").groupBy("duplicate_reason", "fault")
    _print("done more than once", again.agg(F.count("*").alias("messages")))
    _print("done after a later one of the queue", tables["order_violations"].groupBy("reason").count())
    orphans = tables["anomalies"].where(F.col("anomaly").isin(*ORPHANS))
    _print("without what must come before", orphans.groupBy("anomaly", "group", "topic", "reason").count())
    _print_clocks(tables["clocks"])
    judged = verdicts(tables, options.trace)
    if judged is not None:
        kinds, others = judged
        for each in kinds if len(kinds) > 1 else ():
            print(f"{each.kind}: {each.found} found, {each.missing} missing")
        right, missing = (sum(getattr(each, name) for each in kinds) for name in ("found", "missing"))
        print(f"of what was planted: {right} found, {missing} missing; {others} others")


def _plant(options: argparse.Namespace) -> None:
    card = plant(options.trace, options.out, seed=options.seed, each=options.each)
    for kind, times in card["planted"].items():
        print(f"{kind}: {times}")
    print(f"what was planted in {card['worlds']} worlds is sealed in {options.out}/{CARD}")


def _print_clocks(clocks: DataFrame) -> None:
    _print("clocks that disagree", clocks.where("disagrees").drop("disagrees", "round_trips"))


def _print(title: str, table: DataFrame) -> None:
    print(title)
    table.orderBy(*table.columns).show(MOST_ROWS, truncate=False)


if __name__ == "__main__":
    sys.exit(main())
