"""`mqlab copies`: plays four settings times four accidents, and says how many acknowledged messages each costs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from mqlab.commands.numbers import whole
from mqlab.scenarios.replication import sixteen_worlds
from mqlab.views import Table


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table of sixteen worlds; 0."""
    parser = argparse.ArgumentParser(prog="mqlab copies", description=__doc__)
    parser.add_argument("--seed", type=whole(0), default=0, metavar="N", help="the seed of all sixteen worlds")
    options = parser.parse_args(argv)
    header = ("flush", "replication", "accident", "acknowledged", "lost", "on the slave only", "answered as less safe")
    rows = [world[: len(header)] for world in sixteen_worlds(options.seed)]
    print(Table("Which acknowledged messages are there afterwards?", header, rows))
    return 0
