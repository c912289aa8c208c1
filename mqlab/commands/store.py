"""`mqlab store ls DIR` and `mqlab store recover DIR`: looking into a store directory, which is never written to."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from mqlab.commands.numbers import whole
from mqlab.errors import MqlabError
from mqlab.progress import bar
from mqlab.store.store_directory import Damage, find_store, list_records, open_store, record_fields, recovered_fields

OK, DAMAGED, REFUSED = 0, 1, 2
"""Exit codes: all is well; the log holds bytes that are no record; the directory cannot be read at all."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sub-commands `ls` and `recover` to a parser."""
    commands = parser.add_subparsers(dest="store_command", required=True, metavar="COMMAND")
    listing = commands.add_parser(
        "ls", help="print one JSON line for each record of the commit log", description=list_records.__doc__
    )
    listing.add_argument("--body", action="store_true", help="add bodyBase64, the unpacked body")
    recover = commands.add_parser(
        "recover", help="print what a broker would recover from the directory, as one JSON object"
    )
    recover.add_argument(
        "--consume-queue-file-size",
        type=whole(0),
        default=0,
        metavar="BYTES",
        help="instead of the size most files have",
    )
    for command in (listing, recover):
        command.add_argument(
            "directory", metavar="DIR", help="a storePathRootDir, or a directory that contains it as store/"
        )
        command.add_argument(
            "--commit-log-file-size",
            type=whole(0, 1 << 40),
            default=0,
            metavar="BYTES",
            help="instead of the size most files have",
        )


def run(options: argparse.Namespace) -> int:
    """Do what the parsed options say; the exit code."""
    try:
        return _list(options) if options.store_command == "ls" else _recover(options)
    except MqlabError as problem:
        print(problem, file=sys.stderr)
        return REFUSED
    except BrokenPipeError:
        # The reader of the pipe has seen enough (| head); nothing more can be written, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK


def main(argv: Sequence[str] | None = None) -> int:
    """The command as a program; the exit code."""
    parser = argparse.ArgumentParser(prog="mqlab store", description=__doc__)
    add_arguments(parser)
    return run(parser.parse_args(argv))


def _list(options: argparse.Namespace) -> int:
    code = OK
    files = sorted(Path(find_store(options.directory), "commitlog").glob("[0-9]*"))
    first = int(files[0].name) if files else 0
    # Where the lines themselves are seen, nobody needs to be told how many have come.
    quiet = sys.stdout.isatty() or not files
    total = sum(path.stat().st_size for path in files if path.exists())
    with nullcontext(None) if quiet else bar("bytes", total) as shown:
        for found in list_records(options.directory, options.commit_log_file_size):
            if isinstance(found, Damage):
                with nullcontext() if shown is None else shown.aside():
                    print(found, file=sys.stderr)
                code = DAMAGED
                continue
            if shown is not None:
                shown.to(found[0].commit_log_offset - first)
            _print_json(record_fields(*found, with_body=options.body))
    return code


def _recover(options: argparse.Namespace) -> int:
    store = open_store(options.directory, options.commit_log_file_size, options.consume_queue_file_size)
    _print_json(recovered_fields(store))
    return OK


def _print_json(fields: dict[str, Any]) -> None:
    """One line; texts stay readable where the terminal takes them."""
    is_unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    print(json.dumps(fields, ensure_ascii=not is_unicode))


if __name__ == "__main__":
    sys.exit(main())
