"""`mqlab lab`: JupyterLab in the browser, on a working copy of the labs."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mqlab.errors import LearnerError
from mqlab.labs.extra import extra
from mqlab.labs.my_labs import DIRECTORY, copy_labs
from mqlab.labs.run_labs import select_labs
from mqlab.material import add_root, work_place

FIRST = "00"


def main(argv: Sequence[str] | None = None) -> int:
    """Bring the working copy up to date, and serve it until Ctrl-C; 0. MissingExtraError without JupyterLab."""
    options, for_jupyter = _parser().parse_known_args(argv)
    app: Any = extra("jupyterlab.labapp").LabApp
    extra("mqlab_widgets")
    lab = _wanted(options.root / "labs", options.lab)
    target = options.to or work_place(options.root) / DIRECTORY
    for line in copy_labs(options.root, target):
        print(line)
    app.launch_instance(argv=[str(target / lab.name), *allow_root(), *for_jupyter])
    return 0


def allow_root() -> list[str]:
    """The option without which JupyterLab refuses to run as root; in a container that is who one is."""
    return ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []


def _wanted(labs: Path, name: str) -> Path:
    try:
        return select_labs(labs, [name])[0]
    except LearnerError as unknown:
        hint = f"{unknown.hint}; an option for Jupyter has its value behind a =, like --port=9999"
        raise LearnerError(unknown.message, hint) from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mqlab lab",
        description="Open JupyterLab on a working copy of the labs, which is made, or brought up to date. "
        "Options that are not listed here go to Jupyter: --no-browser only prints the address, --port=9999 takes that "
        "port.",
        allow_abbrev=False,
    )
    parser.add_argument("lab", nargs="?", default=FIRST, help="the lab to open: 05, or 05_push_is_pull (default: 00)")
    parser.add_argument("--to", type=Path, help=f"the directory to work in (default: {DIRECTORY}/)")
    add_root(parser)
    return parser
