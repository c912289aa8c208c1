"""The process in which a notebook is run.

    python -m mqlab.grading.notebook_process LIMITS NOTEBOOK WRITE TIMEOUT_S PARAMETERS

Into the descriptor WRITE it says how the run ended, a line of JSON, and then the notebook as it is after the run.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from mqlab.check.exam import OVER
from mqlab.grading.confine import take_on
from mqlab.grading.outside import Unreadable, read_file
from mqlab.grading.running import MOST_BYTES


def main(arguments: list[str]) -> None:
    """Run the notebook, which lies in the directory where this begins."""
    take_on(arguments[0])
    from mqlab.labs.execute import jupyter_apart
    from mqlab.labs.run_one_lab import run

    lab, ran = Path(arguments[1]).absolute(), Path("ran.ipynb").absolute()
    os.environ[OVER] = "1"
    with jupyter_apart():
        verdict = run(lab, ran, int(arguments[3]), json.loads(arguments[4]))
    try:
        notebook = read_file(ran, MOST_BYTES)
    except Unreadable:
        notebook = b""
    with os.fdopen(int(arguments[2]), "wb") as told:
        told.write(json.dumps({"verdict": verdict[:500]}).encode() + b"\n" + notebook)


if __name__ == "__main__":
    main(sys.argv[1:])
