"""Finds the Java of this machine, for Spark: `python -m mqlab.java` prints it, and fails where there is none."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

OLDEST = 17
"""Spark 4 is compiled for Java 17."""


class Java(NamedTuple):
    """A Java that runs: the path of its command, and its major version."""

    command: Path
    major: int


def find_java() -> Java | None:
    """The Java in JAVA_HOME, else the one on PATH, when it is new enough for Spark; None when neither is."""
    for command in _candidates():
        major = major_version(command)
        if major is not None and major >= OLDEST:
            return Java(command, major)
    return None


def _candidates() -> list[Path]:
    home = os.environ.get("JAVA_HOME")
    found = [Path(home, "bin", "java")] if home else []
    on_path = shutil.which("java")
    return [*found, Path(on_path)] if on_path else found


def major_version(command: Path) -> int | None:
    """The major version that a java command tells: 17 for "17.0.15", 8 for "1.8.0_412"; None when it does not run.

    macOS has a `java` that only says where to get one, so being there is not enough.
    """
    try:
        answer = subprocess.run([str(command), "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(version[1]) if version else None


if __name__ == "__main__":
    java = find_java()
    print(f"{java.command} (Java {java.major})" if java else f"no Java {OLDEST} or newer")
    sys.exit(0 if java else 1)
