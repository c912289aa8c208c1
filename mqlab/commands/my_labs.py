"""`mqlab my-labs`: makes or updates the working copy of the labs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from mqlab.labs.my_labs import DIRECTORY, copy_labs
from mqlab.material import add_root, work_place


def main(argv: Sequence[str] | None = None) -> int:
    """Make the working copy, or bring it up to date, and say what was kept."""
    parser = argparse.ArgumentParser(prog="mqlab my-labs", description="Copy the labs to a directory to work in.")
    add_root(parser)
    parser.add_argument("--to", type=Path, help=f"the directory to work in (default: {DIRECTORY}/)")
    options = parser.parse_args(argv)
    target = options.to or work_place(options.root) / DIRECTORY
    for line in copy_labs(options.root, target):
        print(line)
    print(f"the labs to work in: {target}")
    return 0
