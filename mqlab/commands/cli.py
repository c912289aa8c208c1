"""The command line, `mqlab COMMAND ...`: each command is a module beside this one, imported when it is called."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from mqlab import __version__
from mqlab.errors import MqlabError

COMMANDS = {
    "scenarios": "list the named worlds and their parameters",
    "trace": "play a scenario and print its events, its hash, or write them to a file",
    "replay": "play a report or a tape again and say whether it still agrees",
    "explore": "play a scenario from many seeds, with faults",
    "corpus": "say how thorough the worlds of an exploration were",
    "lab": "open JupyterLab on your copy of the labs",
    "demo": "open JupyterLab on a world that plays",
    "serve": "open a world to programs outside, at real ports",
    "store": "look into a store directory: ls, recover",
    "copies": "play accidents of a master and its slave, and say what each costs",
    "why": "find the answer to a question in your own words",
    "museum": "play real bugs of RocketMQ's Pop",
    "dataset": "make a data set of traces",
    "run": "execute every lab headless",
    "my-labs": "copy the labs to a directory to work in, my-labs/",
    "course": "hand out labs to a class",
    "grade": "mark what a class has handed in",
    "fast": "run a command with mqlab compiled",
    "doctor": "say what is missing on this machine and how to mend it",
}
"""What each command is for; `my-labs` is the module `my_labs`."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status: 0 fine, 1 the answer is no, 2 the command could not be carried out.

    130 after Ctrl-C, as shells say it.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments:
        _parser().print_help()
        return 2
    name = arguments[0]
    if name == "check":
        # Its old name, kept for one version: `mqlab.check` is the student's.
        print("mqlab: 'mqlab check' is called 'mqlab explore' now; the old name goes soon", file=sys.stderr)
        name = "explore"
    if name not in COMMANDS:
        _parser().parse_args(arguments)
    return _guarded(lambda: import_module(f"mqlab.commands.{name.replace('-', '_')}").main(arguments[1:]))


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
    """It prints the help and the version, and refuses what is no command."""
    parser = argparse.ArgumentParser(prog="mqlab", description="A laboratory for the inside of a message queue.")
    parser.add_argument("--version", action="version", version=f"mqlab {__version__}")
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", required=True, description="mqlab COMMAND --help says more of each"
    )
    for name, what in COMMANDS.items():
        commands.add_parser(name, help=what, add_help=False)
    return parser
