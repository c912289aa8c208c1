"""`mqlab run`: executes every lab headless, and prints a table of what came of it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from mqlab.commands.numbers import whole
from mqlab.labs.run_labs import CELL_TIMEOUT_S, LabRun, require_packages, run_lab, select_labs
from mqlab.material import add_root, work_place
from mqlab.progress import bar


def main(argv: Sequence[str] | None = None) -> int:
    """Run the labs; 0 when every one went well, 1 when one did not."""
    options = _parser().parse_args(argv)
    labs = select_labs(options.root / "labs", options.only)
    out = options.out or work_place(options.root) / "out"
    width = max(len(lab.stem) for lab in labs)
    require_packages()
    print(f"{'lab':<{width}}  {'seconds':>7}  {'peak MiB':>8}  verdict", flush=True)
    runs: list[LabRun] = []
    with bar("labs", len(labs)) as shown:
        for lab in labs:
            shown.to(len(runs), lab.stem)
            run = run_lab(lab, out, options.cell_timeout)
            runs.append(run)
            with shown.aside():
                print(f"{run.lab:<{width}}  {run.seconds:7.1f}  {run.peak_mib:8.0f}  {run.verdict}", flush=True)
    passed = sum(run.ok for run in runs)
    total_s = sum(run.seconds for run in runs)
    print(f"{passed} of {len(runs)} labs ok in {total_s:.1f} s; the executed notebooks are in {out}")
    return 0 if passed == len(runs) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mqlab run", description="Execute every lab headless and print a table.")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="only this lab: 02, or 02_store")
    add_root(parser)
    parser.add_argument("--out", type=Path, help="where the executed notebooks go (default: out/)")
    parser.add_argument(
        "--cell-timeout",
        type=whole(1),
        default=CELL_TIMEOUT_S,
        metavar="S",
        help="the longest a cell may run (%(default)s)",
    )
    return parser
