"""`mqlab fast`: builds the compiled copy of mqlab, and runs commands with it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from mqlab.fast import running
from mqlab.fast.build import PLACE, build, environment, state
from mqlab.fast.choice import has_compiled

USAGE = """\
usage: mqlab fast build              compile mqlab into out/fast, unless that is current
       mqlab fast COMMAND ...        run a command with it, for example: mqlab fast explore broker-killed --seeds 1000
       mqlab fast python ...         run Python with it, for example: mqlab fast python my_experiment.py"""


def main(arguments: Sequence[str]) -> int:
    """Do what the arguments say; the exit status."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(f"{USAGE}\n\nThis mqlab is {running()}; {PLACE} is {state()}.")
        return 0 if arguments else 2
    if list(arguments) == ["build"]:
        if has_compiled():
            print("this mqlab has its compiled modules with it; there is nothing to build")
            return 0
        if state() != "current":
            print("Compiling, which takes one to three minutes ...", flush=True)
            build()
        print(f"{PLACE} is current")
        return 0
    program = arguments[1:] if arguments[0] == "python" else ["-m", "mqlab", *arguments]
    return subprocess.run([sys.executable, "-P", *program], env=environment(), check=False).returncode
