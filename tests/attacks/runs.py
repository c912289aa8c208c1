"""Attacks from a notebook while it is run, and files that are no honest notebook."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tests.attacks.machine import CONFINED_TRIES

RUNS: dict[str, tuple[str, str]] = {
    "reaches outside": (CONFINED_TRIES + """
import socket, sys
def connect(name):
    with socket.socket(socket.AF_UNIX) as mine: mine.connect(name)
tried("socket", lambda: connect("$SOCKET"))
for path in ("$VICTIM/file", "$VICTIM", "$NOTEBOOK", "$KEY", "$MQLAB/__init__.py"):
    tried("chmod " + path, lambda: os.chmod(path, 0))
    tried("utime " + path, lambda: os.utime(path, (1, 1)))
    tried("setxattr " + path, lambda: os.setxattr(path, "user.x", b"x"))
    tried("unlink " + path, lambda: os.unlink(path))
for path in ("$KEY", "$NOTEBOOK", "$CLONE/labs/sources/00_tour.py", "$CLONE/.git/HEAD", "/etc/shadow"):
    tried(path, lambda: open(path).read())
tried("network", lambda: socket.create_connection(("192.0.2.1", 80), 1) and None)
assert not FOUND, FOUND
""", "ok"),
    "leaves shared memory": ("""
for name in ("/dev/shm/mqlab-attack", "$TMP/mqlab-attack", "/var$TMP/mqlab-attack"):
    try: open(name, "w").write("left")
    except OSError: pass
""", "ok"),
    "a pipe in place of the result": ("""
import os, subprocess, sys
for name in ("result.json", "ran.ipynb", "$TMP/result.json", "$TMP/ran.ipynb"):
    try: os.unlink(name)
    except OSError: pass
    try: os.mkfifo(name)
    except OSError: continue
    subprocess.Popen([sys.executable, "-c", f"open({name!r}).read()"], start_new_session=True)
""", ""),
    "a link in place of the result": ("""
import os
for name in ("result.json", "ran.ipynb", "$TMP/result.json", "$TMP/ran.ipynb"):
    try: os.unlink(name)
    except OSError: pass
    try: os.symlink("$KEY", name)
    except OSError: pass
""", ""),
    "nested brackets in place of the notebook": ("""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", '''
import time
while True:
    with open("$TMP/ran.ipynb", "w") as f: f.write("[" * 1_000_000)
    time.sleep(0.01)
'''], start_new_session=True)
""", ""),
    "says what it likes into the marker's pipe": ("""
import os, glob
for fd in glob.glob("/proc/[0-9]*/fd/*"):
    try:
        if os.readlink(fd).startswith("pipe:"):
            writes = os.open(fd, os.O_WRONLY | os.O_NONBLOCK)
            os.write(writes, b'{"verdict": "\\\\u001b[2Jok \\\\ud800"}\\n' + b"[" * 10_000)
    except OSError: pass
""", ""),
    "floods the marker's pipe": ("""
import os, glob
pipes = []
for fd in glob.glob("/proc/[0-9]*/fd/*"):
    try:
        if os.readlink(fd).startswith("pipe:"): pipes.append(os.open(fd, os.O_WRONLY | os.O_NONBLOCK))
    except OSError: pass
import time
end = time.monotonic() + 8
while time.monotonic() < end:
    for each in pipes:
        try: os.write(each, b"x" * 65536)
        except OSError: pass
""", ""),
    "deep directories": ("""
import os
for _ in range(3000):
    os.mkdir("d"); os.chdir("d")
os.chdir("/tmp")
""", "ok"),
    "fills its disk": ("""
for n in range(20):
    with open(f"$TMP/{n}", "wb") as f: f.write(bytes(90_000_000))
""", ""),
    "surrogates in all places": ("""
from mqlab.check import predict
import sys
print("\\ud800\\x1b[2J\\u202e".encode("utf-8", "surrogatepass").decode("utf-8", "replace"))
raise ValueError("\\udcff")
""", ""),
    "kills papermill": ("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)", "failed: the run ended with status"),
    "kills all": ("import os, signal\nassert os.getpid() < 200\nos.kill(-1, signal.SIGKILL)", "failed: the run ended with status"),
    "stops papermill": ("import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)", "ran longer than"),
    "fork bomb": ("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", "stopped: it"),
    "memory balloon": ("a = []\nwhile True: a.append(bytearray(10**7))", ""),
    "memory that belongs to no process": ("""
import os, ctypes
for _ in range(9):
    try: fd = os.memfd_create("m")
    except OSError: break
    for _ in range(20): os.write(fd, bytes(10**7))
else: raise AssertionError("it could be had")
""", "ok"),
    "detached child": ("import subprocess\nsubprocess.Popen(['sleep', '31415'], start_new_session=True)", "ok"),
    "output without an end": ("for _ in range(3000): print('x' * 100_000)", ""),
    "a million outputs": ("from IPython.display import display\nfor _ in range(3000): display({'a': 1})", ""),
    "own start files": ("""
import os
for name in ("~/.ipython/profile_default/startup", "~/.jupyter", "~/.local/lib/python3.11/site-packages"):
    os.makedirs(os.path.expanduser(name), exist_ok=True)
open(os.path.expanduser("~/.ipython/profile_default/startup/x.py"), "w").write("open('$TMP/owned', 'w')")
""", "ok"),
}  # fmt: skip
"""name -> the first cell, and a part of how the run is said to have ended. The exercise in the notebook is right."""


def _huge(path: Path) -> None:
    with path.open("wb") as sink:
        sink.truncate(300 * 2**20)


def _values(path: Path) -> None:
    path.write_text('{"cells": [' + "[]," * 9_000_000 + "[]]}")


def _quotes(path: Path) -> None:
    path.write_text('{"cells": ["' + '\\"' * 9_000_000 + "," * 3_000_000)


FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "pipe": (os.mkfifo, "a link or a device"),
    "link": (lambda path: path.symlink_to("/etc/passwd"), "a link or a device"),
    "directory": (lambda path: path.mkdir(), ""),
    "300 MiB": (_huge, "300 MiB"),
    "nine million lists": (_values, "values"),
    "nine million quotation marks": (_quotes, "no"),
    "deep": (lambda path: path.write_text("[" * 1_000_000), "no JSON"),
    "deep cells": (lambda path: path.write_text('{"cells": ' + '[{"source": ' * 900 + "1" + "}]" * 900 + "}"), ""),
    "not UTF-8": (lambda path: path.write_bytes(b'{"cells": ["\xff\xfe"]}'), "no JSON"),
    "surrogates": (
        lambda path: path.write_text(
            r'{"cells": [{"cell_type": "code", "source": "\ud800", "metadata": {"\udfff": "\ud800"}, "outputs": ["\ud800"]}],'
            r'"metadata": {"mqlab": {"student": "\ud800", "exam": {"name": "\ud800", "code": "\u001b[2J"}}}}'
        ),
        "",
    ),
    "a number without an end": (lambda path: path.write_text('{"cells": [' + "9" * 100_000 + "]}"), ""),
    "not a number": (lambda path: path.write_text('{"cells": [NaN, Infinity, {"cell_type": NaN}]}'), ""),
}
"""name -> what makes the file, and a part of why it is not marked."""
