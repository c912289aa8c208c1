"""The command line: `mqlab scenarios | trace | replay | explore | museum | demo | store | ...`, as `mqlab` lists it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from mqlab import __version__
from mqlab.arguments import named_values, seed_of
from mqlab.command_numbers import number
from mqlab.errors import LearnerError, MqlabError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status: 0 fine, 1 the answer is no, 2 the command could not be carried out.

    130 after Ctrl-C, as shells say it.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    passed_on = {
        "explore": _explore,
        "check": _check,
        "demo": _demo,
        "lab": _lab,
        "doctor": _doctor,
        "fast": _fast,
        "run": _run,
        "store": _store,
        "museum": _museum,
        "dataset": _dataset,
        "my-labs": _my_labs,
        "course": _course,
        "grade": _grade,
    }
    if arguments and arguments[0] in passed_on:
        return _guarded(lambda: passed_on[arguments[0]](arguments[1:]))
    parser = _parser()
    options = parser.parse_args(arguments)
    if not hasattr(options, "command"):
        parser.print_help()
        return 2
    command: Callable[[argparse.Namespace], int] = options.command
    return _guarded(lambda: command(options))


def _guarded(command: Callable[[], int]) -> int:
    try:
        return command()
    except MqlabError as error:
        print(f"mqlab: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("mqlab: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except OSError as error:
        print(f"mqlab: {error.filename or 'the system'}: {error.strerror or error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mqlab", description="A laboratory for the inside of a message queue.")
    parser.add_argument("--version", action="version", version=f"mqlab {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    scenarios = commands.add_parser("scenarios", help="list the named worlds and their parameters")
    scenarios.add_argument("--json", action="store_true", help="as one JSON array")
    scenarios.add_argument("--faulty", action="store_true", help="only the names of those that bear faults")
    scenarios.set_defaults(command=_scenarios)

    trace = commands.add_parser("trace", help="play a scenario and print its events, its hash, or write them to a file")
    trace.add_argument("scenario")
    trace.add_argument("--seed", default="0", help="the world's seed (default 0)")
    trace.add_argument("--seconds", type=number(0, above=True), help="how long to play, in the world's time")
    trace.add_argument(
        "--param", "-p", action="append", default=[], metavar="NAME=VALUE",
        help="a parameter of the scenario (mqlab scenarios lists them); may be repeated"
    )
    trace.add_argument("--draw-faults", default="", metavar="KINDS", help="draw faults from the seed: crash,freeze,...")
    trace.add_argument(
        "--settle", type=number(0), default=0, metavar="SECONDS", help="how long to go on behind its time"
    )
    trace.add_argument(
        "--wire", choices=["objects", "bytes"], default="objects", help="encode and decode every command"
    )
    trace.add_argument("--hash", action="store_true", help="print only the hash of the trace")
    trace.add_argument("--kind", action="append", default=[], help="print only events of this kind (may be repeated)")
    trace.add_argument("--out", metavar="FILE", help="write to FILE: .jsonl or .parquet")
    trace.set_defaults(command=_trace)

    replay = commands.add_parser("replay", help="play a report again and say whether its hash agrees")
    replay.add_argument("report", help="a file that lab.report(...) wrote")
    replay.add_argument(
        "--allow-source", action="store_true", help="run the scenario source code that the report carries"
    )
    replay.set_defaults(command=_replay)

    commands.add_parser(
        "explore", help="play a scenario from many seeds, with faults (see mqlab explore --help)", add_help=False
    )
    commands.add_parser("lab", help="open JupyterLab on your copy of the labs (see mqlab lab --help)", add_help=False)
    commands.add_parser(
        "demo", help="open JupyterLab on a world that plays (see mqlab demo --help)", add_help=False
    )
    commands.add_parser(
        "store", help="look into a store directory: ls, recover (see mqlab store --help)", add_help=False
    )
    commands.add_parser(
        "museum", help="play real bugs of RocketMQ's Pop (see mqlab museum --help)", add_help=False
    )
    commands.add_parser("dataset", help="make a data set of traces (see mqlab dataset --help)", add_help=False)
    commands.add_parser("run", help="execute every lab headless (see mqlab run --help)", add_help=False)
    commands.add_parser("my-labs", help="copy the labs to a directory to work in, my-labs/", add_help=False)
    commands.add_parser("course", help="hand out labs to a class (see mqlab course --help)", add_help=False)
    commands.add_parser("grade", help="mark what a class has handed in (see mqlab grade --help)", add_help=False)
    commands.add_parser("fast", help="run a command with mqlab compiled (see mqlab fast --help)", add_help=False)
    commands.add_parser("doctor", help="say what is missing on this machine and how to mend it", add_help=False)
    return parser


def _scenarios(options: argparse.Namespace) -> int:
    from mqlab import scenarios

    rows = [scenarios.get(name) for name in scenarios.names()]
    if options.faulty:
        print(*(s.name for s in rows if s.faults), sep="\n")
        return 0
    if options.json:
        listed = [
            {
                "name": s.name,
                "summary": s.summary,
                "seconds": s.seconds,
                "parameters": [p._asdict() for p in s.parameters],
            }
            for s in rows
        ]
        print(json.dumps(listed, indent=1))
        return 0
    width = max(len(s.name) for s in rows)
    for s in rows:
        print(f"{s.name:<{width}}  {s.summary}")
        for p in s.parameters:
            among = f" ({', '.join(p.words)})" if p.words else ""
            print(f"{'':<{width}}    {p.name}={p.default!r}{among}")
    return 0


def _trace(options: argparse.Namespace) -> int:
    from mqlab.named_worlds import WorldSpec
    from mqlab.progress import bar
    from mqlab.trace.catalogue import CATALOGUE

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


def write_trace(rows: Any, path: str, metadata: dict[str, Any]) -> int:
    """Write rows to a .jsonl or .parquet file, in a directory that is made where it is missing; returns how many."""
    from pathlib import Path

    from mqlab.trace.recorder import JsonLinesRecorder, ParquetRecorder

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


def _replay(options: argparse.Namespace) -> int:
    from mqlab.progress import bar
    from mqlab.replay import read_report, replay

    report = read_report(options.report)
    with bar("slices", report["slice"]) as shown:
        result = replay(report, allow_source=options.allow_source, told=shown.to)
    print(result)
    return 0 if result.agrees else 1


def _explore(arguments: list[str]) -> int:
    from mqlab.explore_command import main as explore

    return explore(arguments)


def _museum(arguments: list[str]) -> int:
    from mqlab.museum.command import main as museum

    return museum(arguments)


def _check(arguments: list[str]) -> int:
    """The old name of `mqlab explore`, kept for one version: `mqlab.check` is the student's."""
    print("mqlab: 'mqlab check' is called 'mqlab explore' now; the old name goes soon", file=sys.stderr)
    return _explore(arguments)


def _fast(arguments: list[str]) -> int:
    from mqlab.fast.command import main as fast

    return fast(arguments)


def _demo(arguments: list[str]) -> int:
    from mqlab.demo_command import main as demo

    return demo(arguments)


def _lab(arguments: list[str]) -> int:
    from mqlab.lab_command import main as lab

    return lab(arguments)


def _doctor(arguments: list[str]) -> int:
    from mqlab.doctor import main as doctor

    return doctor(arguments)


def _course(arguments: list[str]) -> int:
    from mqlab.course_command import main as course

    return course(arguments)


def _grade(arguments: list[str]) -> int:
    from mqlab.grade_command import main as grade

    return grade(arguments)


def _dataset(arguments: list[str]) -> int:
    from mqlab.dataset_command import main as dataset

    return dataset(arguments)


def _my_labs(arguments: list[str]) -> int:
    from mqlab.my_labs import main as my_labs

    return my_labs(arguments)


def _run(arguments: list[str]) -> int:
    from mqlab.run_labs import main as run_labs

    return run_labs(arguments)


def _store(arguments: list[str]) -> int:
    from mqlab.store_command import main as store

    return store(arguments)
