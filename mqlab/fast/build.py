"""`make fast`: a copy of mqlab whose busiest modules are compiled, in out/fast; the sources stay as they are.

A compiled wheel (`make wheels`, hatch_build.py) takes its modules from here.

mypyc turns typed Python into C: the modules of modules.txt become extension modules beside the others, which stay
interpreted. Same code, same hashes. What is lost: source lines of events, hints for arguments of a wrong type (a
compiled function raises a bare TypeError), and patching of methods. So labs stay interpreted.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path

from mqlab.errors import LearnerError
from mqlab.fast.choice import VARIABLE, YES, has_compiled
from mqlab.fast.marks import mark_tree
from mqlab.progress import bar

SOURCES = Path(__file__).parents[1]
PLACE = Path("out/fast")
"""Where the copy lies, below the directory in which the command runs: the clone."""

LOOK_S = 0.5
FINGERPRINT = "fingerprint"
"""The file that says of which sources a copy is, and for which Python."""

_SETUP = """\
import sys
from setuptools import setup
from mypyc.build import mypycify

setup(
    name="mqlab-fast",
    ext_modules=mypycify(sys.argv[1:], opt_level="2", debug_level="0", multi_file=True),
    script_args=["--quiet", "build_ext", "--inplace", "--parallel", "2"],
)
"""
_MYPY_INI = """\
[mypy]
strict = True
ignore_missing_imports = True
warn_unused_ignores = False
"""


def modules() -> list[str]:
    """The modules that are compiled, by name."""
    lines = (Path(__file__).parent / "modules.txt").read_text("utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def fingerprint() -> str:
    """What a compiled copy depends on: the sources and the Python."""
    digest = hashlib.blake2b(sys.version.encode(), digest_size=16)
    for path in sorted(SOURCES.rglob("*.py")):
        digest.update(str(path.relative_to(SOURCES)).encode() + path.read_bytes())
    digest.update("\n".join(modules()).encode())
    return digest.hexdigest()


def code_of() -> str:
    """Which sources run: the fingerprint of them, and in a compiled copy that of those from which it was made."""
    mark = SOURCES.parent / FINGERPRINT
    return mark.read_text("ascii") if mark.exists() else fingerprint()


def state(place: Path = PLACE) -> str:
    """What there is at a place: "none", "current", or "outdated" when the sources or the Python have changed since."""
    mark = place / FINGERPRINT
    if not mark.exists():
        return "none"
    return "current" if mark.read_text("ascii") == fingerprint() else "outdated"


def build(place: Path = PLACE) -> None:
    """Build the compiled copy, which takes one to three minutes.

    LearnerError, with what to do, without mypyc, a C compiler or Python's headers.
    """
    _check_tools()
    copied = fingerprint()
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(SOURCES, place / "mqlab", ignore=shutil.ignore_patterns("__pycache__", "material"))
    names = modules()
    mark_tree(place / "mqlab", frozenset(names))
    (place / "setup.py").write_text(_SETUP, "utf-8")
    (place / "mypy.ini").write_text(_MYPY_INI, "utf-8")
    files = [f"{name.replace('.', '/')}.py" for name in names]
    said = place / "said.txt"
    with said.open("wb") as sink:
        compiler = subprocess.Popen([sys.executable, "setup.py", *files], cwd=place, stdout=sink, stderr=sink)
        code = _watched(compiler, place)
    if code:
        last = "\n".join(said.read_text("utf-8", "replace").splitlines()[-30:])
        raise LearnerError(f"compiling failed:\n{last}", f"look at {place}; mqlab itself is untouched")
    said.unlink()
    shutil.rmtree(place / "build")
    (place / FINGERPRINT).write_text(copied, "ascii")


def _watched(compiler: subprocess.Popen[bytes], place: Path) -> int:
    """Wait for the compiler, and show how many of the files that mypyc has written are compiled; the exit status."""
    with bar("files", 0) as shown:
        while True:
            try:
                return compiler.wait(LOOK_S)
            except subprocess.TimeoutExpired:
                # Until all are written they are fewer than modules.
                written = max(len(modules()), sum(1 for _ in (place / "build").rglob("*.c")))
                shown.to(sum(1 for _ in (place / "build").rglob("*.o")), total=written)
            except BaseException:
                compiler.kill()
                raise


def compiled_files(place: Path = PLACE) -> list[Path]:
    """The compiled modules of a copy, and the library that all of them share."""
    return sorted(path for path in place.rglob(f"*{EXTENSION_SUFFIXES[0]}") if "build" not in path.parts)


def environment(place: Path = PLACE) -> dict[str, str]:
    """The environment in which `python -P` takes compiled modules: those of a copy, or of an installed wheel.

    LearnerError where there are none.
    """
    found = state(place)
    if found == "none" and has_compiled():
        return {**os.environ, VARIABLE: YES}
    if found != "current":
        why = "there is no compiled mqlab" if found == "none" else "the compiled mqlab is of other sources"
        raise LearnerError(f"{why} in {place}", "make fast")
    paths = [str(place.resolve()), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, VARIABLE: YES, "PYTHONPATH": os.pathsep.join(paths)}


def _check_tools() -> None:
    for package in ("mypyc", "setuptools"):
        if find_spec(package) is None:
            raise LearnerError(f"there is no {package}, which compiles mqlab", "make fast (it installs what it needs)")
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    if sys.platform != "win32" and shutil.which(compiler) is None:
        raise LearnerError(
            f"there is no C compiler {compiler!r} on this machine, and mypyc needs one",
            "Debian, Ubuntu: sudo apt-get install gcc; macOS: xcode-select --install",
        )
    if not Path(sysconfig.get_paths()["include"], "Python.h").exists():
        raise LearnerError(
            "Python's C headers are not installed, and mypyc needs them",
            "Debian, Ubuntu: sudo apt-get install python3-dev",
        )
