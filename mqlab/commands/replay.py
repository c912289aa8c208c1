"""`mqlab replay REPORT`: plays a report again and says whether its hash agrees."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from mqlab.progress import bar
from mqlab.replay import read_report, replay


def main(argv: Sequence[str] | None = None) -> int:
    """Play it again; 0 when the hash agrees, else 1."""
    parser = argparse.ArgumentParser(prog="mqlab replay", description=__doc__)
    parser.add_argument("report", help="a file that lab.report(...) wrote")
    parser.add_argument(
        "--allow-source", action="store_true", help="run the scenario source code that the report carries"
    )
    options = parser.parse_args(argv)
    report = read_report(options.report)
    with bar("slices", report["slice"]) as shown:
        result = replay(report, allow_source=options.allow_source, told=shown.to)
    print(result)
    return 0 if result.agrees else 1
