"""`python -m mqlab_spark latency|holds TRACE`: the tables of a recorded trace; works under spark-submit too."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame

from mqlab.errors import MqlabError
from mqlab_spark import jobs, read_trace, session

MOST_ROWS = 1_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run one job and print its tables; returns the exit status: 0 fine, 2 the command could not be carried out."""
    options = _parser().parse_args(argv)
    command: Callable[[DataFrame, argparse.Namespace], None] = options.command
    try:
        trace = read_trace(session("mqlab-spark", options.master), options.trace)
        command(trace.cache(), options)
    except MqlabError as error:
        print(f"mqlab_spark: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mqlab_spark", description="Tables of a recorded trace, by Spark.")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    latency = commands.add_parser("latency", help="how long messages take: to be sent, delivered and consumed")
    latency.set_defaults(command=_latency)
    holds = commands.add_parser("holds", help="how long brokers hold pulls that find nothing new")
    holds.add_argument("--bin-ms", type=int, default=1_000, help="width of the histogram's bins (default 1000)")
    holds.set_defaults(command=_holds)
    for command in (latency, holds):
        command.add_argument("trace", help="a .parquet or .jsonl file, a directory or a pattern")
        command.add_argument("--master", help="the Spark master (default: what is given from outside, else local[*])")
    return parser


def _latency(trace: DataFrame, options: argparse.Namespace) -> None:
    queue = ("topic", "broker_name", "queue_id")
    _print("send: first attempt to answer", jobs.percentiles(jobs.send_latency(trace), *queue))
    pulled = ("group", "topic", "node", "queue_id")
    _print("delivery: stored to pulled", jobs.percentiles(jobs.delivery_latency(trace), *pulled))
    _print("delivery by cause", jobs.percentiles(jobs.delivery_latency(trace), "cause"))
    _print("consumption: stored to listener", jobs.percentiles(jobs.consume_latency(trace), "group", *queue))


def _holds(trace: DataFrame, options: argparse.Namespace) -> None:
    holds = jobs.hold_times(trace)
    _print("hold times", jobs.histogram(holds, options.bin_ms, "reason"))
    _print("pulls that brought messages", jobs.delivered_by_cause(trace))


def _print(title: str, table: DataFrame) -> None:
    print(title)
    table.orderBy(*table.columns).show(MOST_ROWS, truncate=False)


if __name__ == "__main__":
    sys.exit(main())
