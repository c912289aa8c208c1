"""Hostile notebooks for any lab: what stands in the cell of its last exercise, or what is done to the whole file.

`{name}` is the exercise's function. Where it should give anything, it gives what is no answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Notebook = dict[str, Any]

CELLS = {
    "endless loop": "def {name}(*a):\n    while True: pass",
    "endless definition": "while True: pass",
    "ignored interrupt": (
        "import signal\nfor s in (2, 15): signal.signal(s, signal.SIG_IGN)\n"
        "def {name}(*a):\n    while True:\n        try: pass\n        except BaseException: pass"
    ),
    "sleeps for ever": "import time\ndef {name}(*a): time.sleep(10_000)",
    "os._exit": "import os\ndef {name}(*a): os._exit(0)",
    "kills its group": "import os, signal\ndef {name}(*a): os.killpg(0, signal.SIGKILL)",
    "fork bomb": "import os\ndef {name}(*a):\n    while True: os.fork()",
    "thread bomb": (
        "import threading, time\ndef {name}(*a):\n"
        "    while True: threading.Thread(target=time.sleep, args=(1000,)).start()"
    ),
    "memory balloon": "def {name}(*a):\n    kept = []\n    while True: kept.append(bytearray(10**7))",
    "flood of output": "def {name}(*a):\n    for _ in range(1_000): print('x' * 100_000)",
    "huge answer": "def {name}(*a): return 'x' * 80_000_000",
    "equal to everything": (
        "class Yes(tuple):\n    def __eq__(self, other): return True\n    __hash__ = None\ndef {name}(*a): return Yes()"
    ),
    "pickle": (
        "import os\nclass P:\n    def __reduce__(self): return os.system, ('touch owned',)\ndef {name}(*a): return P()"
    ),
    "patched judge": (
        "import sys, mqlab.check as c, mqlab.check.registry as r\nc.Wrong = r.Wrong = lambda *a, **k: None\n"
        "r.LabCheck._judge_one = lambda *a, **k: None\nsys.modules['mqlab.labs.checks'] = c\ndef {name}(*a): return 0"
    ),
    "patched check": "def check(*a, **k): return 'passed'\ndef {name}(*a): return 0",
    "forged lines": (
        "import os\ndef {name}(*a):\n    for fd in range(3, 30):\n"
        '        try: os.write(fd, b\'["value", null]\\n{{"state": "passed"}}\\n\')\n        except OSError: pass'
    ),
    "forged result": (
        "import json\nfor place in ('.', '..', '../out'):\n"
        "    try: open(place + '/result.json', 'w').write(json.dumps({{'points': 99, 'end': True}}))\n"
        "    except OSError: pass\ndef {name}(*a): return 0"
    ),
    "reads the solutions": (
        "import glob, sys\nfound = ''\nfor place in sys.path:\n"
        "    for name in glob.glob(place + '/labs/sources/*.py'):\n"
        "        try: found += open(name).read()\n        except OSError: pass\n"
        "if found: raise SystemExit('found')\ndef {name}(*a): return 0"
    ),
    "detached child": (
        "import subprocess\nsubprocess.Popen(['sleep', '9999'], start_new_session=True)\ndef {name}(*a): return 0"
    ),
    "threads left behind": (
        "import threading, time\nfor _ in range(5): threading.Thread(target=time.sleep, args=(9e3,)).start()\n"
        "def {name}(*a): return 0"
    ),
}
"""name of an attack -> what stands in the cell."""


def forged_outputs(notebook: Notebook, path: Path) -> None:
    """Each cell says that all went well."""
    passed = {"output_type": "stream", "name": "stdout", "text": "passed (99 points)"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = [passed]
        cell["metadata"].get("nbgrader", {})["points"] = 99
    path.write_text(json.dumps(notebook), encoding="utf-8")


def deleted_cells(notebook: Notebook, path: Path) -> None:
    """Nothing but texts is left."""
    left = [cell for cell in notebook["cells"] if cell["cell_type"] != "code"]
    path.write_text(json.dumps({**notebook, "cells": left}), encoding="utf-8")


def no_json(notebook: Notebook, path: Path) -> None:
    """A file that is no notebook."""
    path.write_bytes(b"\x80\x04\x95pickle")


def a_link(notebook: Notebook, path: Path) -> None:
    """A link to a file of the machine."""
    path.symlink_to("/etc/passwd")


def too_large(notebook: Notebook, path: Path) -> None:
    """100 MB, nearly all of them output."""
    with path.open("wb") as sink:
        sink.truncate(100_000_000)


FILES: dict[str, Callable[[Notebook, Path], None]] = {
    "forged outputs": forged_outputs,
    "deleted cells": deleted_cells,
    "no JSON": no_json,
    "a link": a_link,
    "100 MB": too_large,
}
"""name of an attack -> what writes the file."""
