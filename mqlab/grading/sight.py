"""What a confined process sees of this machine, as arguments of bubblewrap; none of it can be changed from in there.

The system's programs and libraries, this Python with its packages, a Java, and mqlab. Of mqlab a solution does not see
the labs: their checks know what is right. Nobody sees home directories, a clone, keys, marks, or what others have
handed in.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PLACE = "/tmp"  # noqa: S108  in there it is a file system of its own
"""Where a confined process may write, as it sees that itself."""

_OF_THE_SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/nix/store", "/gnu/store")
_SETTINGS = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "fonts", "mime.types", "java*")
"""Those of the files in /etc that programs need."""
_OURS = ("mqlab", "mqlab_widgets", "mqlab_spark")
_OF_THE_LABS = ("__init__.py", "tasks.py")
"""What a solution may have of mqlab.labs: how many rows each task of Spark had."""
_NEVER = ("sources",)
"""Directories of mqlab.labs with solutions in them."""


@cache
def sight(checks: bool) -> tuple[str, ...]:
    """Arguments of bubblewrap that show what may be seen; with `checks` those of the labs, too."""
    shown: list[str] = []
    for place in _OF_THE_SYSTEM:
        shown += ["--symlink", os.readlink(place), place] if os.path.islink(place) else ["--ro-bind-try", place, place]
    for setting in _SETTINGS:
        for path in sorted(Path("/etc").glob(setting)):
            shown += ["--ro-bind-try", str(path), str(path)]
    known = [*_OF_THE_SYSTEM, *(prefix for prefix in _prefixes() if not _is_below(prefix, _OF_THE_SYSTEM))]
    for prefix in known[len(_OF_THE_SYSTEM) :]:
        shown += ["--ro-bind", prefix, prefix]
    for link in _links(sys.executable):
        if not _is_below(link, known):
            shown += ["--ro-bind", link, link]
    for clone in _clones():
        if _is_below(clone, known):
            shown += ["--tmpfs", clone]
        for package in _OURS:
            if os.path.isdir(os.path.join(clone, package)):
                shown += ["--ro-bind", os.path.join(clone, package), os.path.join(clone, package)]
        if _is_below(clone, known):
            shown += ["--remount-ro", clone]
    for labs in _of_labs():
        shown += _without(labs, _NEVER) if checks else _only(labs, _OF_THE_LABS)
    return tuple(shown)


def _prefixes() -> list[str]:
    """Where this Python and its packages lie, and a Java; by the names that they have and by their real ones."""
    places = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, *_javas()]
    every = dict.fromkeys(each for place in places for each in (os.path.abspath(place), os.path.realpath(place)))
    return [place for place in every if os.path.isdir(place) and place != "/"]


def _links(file: str) -> Iterator[str]:
    """The names that lead from one to the next, to the file itself."""
    while os.path.islink(file):
        file = os.path.normpath(os.path.join(os.path.dirname(file), os.readlink(file)))
        yield file


def _javas() -> Iterator[str]:
    java = shutil.which("java")
    homes = [os.environ.get("JAVA_HOME"), java and os.path.dirname(os.path.dirname(os.path.realpath(java)))]
    # A Java has this file, and a home directory that has a bin/java has none.
    yield from (home for home in homes if home and os.path.isfile(os.path.join(home, "release")))


def _clones() -> list[str]:
    """The directories on Python's path that lie outside of it."""
    prefixes = [os.path.realpath(prefix) for prefix in (sys.prefix, sys.base_prefix)]
    found = dict.fromkeys(os.path.realpath(place) for place in sys.path if place)
    return [
        place
        for place in found
        if os.path.isdir(place) and not _is_below(place, [os.path.join(prefix, "lib") for prefix in prefixes])
    ]


def _of_labs() -> Iterator[str]:
    """The directories of mqlab.labs that can be imported here."""
    for place in dict.fromkeys(os.path.realpath(place) for place in sys.path if place):
        labs = os.path.join(place, "mqlab", "labs")
        if os.path.isdir(labs):
            yield labs


def _only(directory: str, names: Iterable[str]) -> list[str]:
    shown = ["--tmpfs", directory]
    for name in names:
        file = os.path.join(directory, name)
        shown += ["--ro-bind-try", file, file]
    return [*shown, "--remount-ro", directory]


def _without(directory: str, names: Iterable[str]) -> list[str]:
    hidden = [os.path.join(directory, name) for name in names if os.path.isdir(os.path.join(directory, name))]
    return [argument for each in hidden for argument in ("--tmpfs", each, "--remount-ro", each)]


def _is_below(place: str, others: Iterable[str]) -> bool:
    return any(f"{place}/".startswith(f"{other}/") for other in others)
