"""What the build of a wheel adds to the packages: the labs and what belongs to them, and compiled modules if asked for.

MQLAB_BUILD says which wheel it becomes:

    (not set)   pure Python with the labs, for any machine
    compiled    the same, and beside their sources the modules of mqlab/fast/modules.txt, compiled for this machine
    bare        the code alone, for who brings the labs in another way, as the web site does

A clone, which pip installs as editable, has all of it in its own directories; nothing is added there.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE = "MQLAB_BUILD"
COMPILED, BARE, PLAIN = "compiled", "bare", ""
MATERIAL = "mqlab/labs/material"
"""Where mqlab/material.py looks for it."""
TAKEN = ("labs/sources/*.py", "docs/*.md", "docs/answers/*.*", "datasets/*.*")
"""What goes into the wheel as it is. The sources have the solutions: marking needs them. The samples of data sets stay
behind: nothing that is installed reads them, and `mqlab dataset NAME sample` makes the same.
"""
LEFT_OUT = ("docs/architecture.md", "docs/costs.md", "docs/dependencies.md", "docs/fidelity.md")
"""For who changes mqlab, and as large as five labs; no lab and no other page points to them."""


class WheelHook(BuildHookInterface):  # type: ignore[type-arg]  # what a builder is configured with is its own affair
    """Called by hatchling around the build of a wheel."""

    @property
    def _wanted(self) -> str:
        wanted = os.environ.get(VARIABLE, PLAIN)
        if wanted not in (PLAIN, COMPILED, BARE):
            hint = f"set it to {COMPILED} or {BARE}, or unset it"
            raise SystemExit(f"{VARIABLE}={wanted} is unknown\n  What to do: {hint}")
        return wanted

    def dependencies(self) -> list[str]:
        """What the build itself needs beside hatchling."""
        return ["mypy>=1.15", "setuptools"] if self._wanted == COMPILED else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Say what else goes into the wheel, and make what is not there yet."""
        self._made = Path(tempfile.mkdtemp(prefix="mqlab-wheel-"))
        if version == "editable" or self._wanted == BARE:
            return
        root = Path(self.root)
        # The packages that are built are the ones whose code prepares them.
        sys.path.insert(0, self.root)
        try:
            build_data["force_include"].update(material(root, self._made))
            if self._wanted == COMPILED:
                build_data["force_include"].update(compiled(root, self._made))
                build_data |= {"pure_python": False, "infer_tag": True}
        finally:
            sys.path.remove(self.root)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Take away what was made on the way."""
        shutil.rmtree(self._made, ignore_errors=True)


def material(root: Path, made: Path) -> Iterator[tuple[str, str]]:
    """The labs, pages and recipes, as (file, place in the wheel); notebooks come without the answers to their bets."""
    from mqlab.labs.my_labs import without_answers

    for pattern in TAKEN:
        for path in sorted(root.glob(pattern)):
            name = path.relative_to(root).as_posix()
            if name not in LEFT_OUT:
                yield str(path), f"{MATERIAL}/{name}"
    for path in sorted(root.glob("labs/*.ipynb")):
        notebook = without_answers(json.loads(path.read_text(encoding="utf-8")))
        target = made / path.name
        target.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        yield str(target), f"{MATERIAL}/labs/{path.name}"


def compiled(root: Path, made: Path) -> Iterator[tuple[str, str]]:
    """The compiled modules: those of `mqlab fast build` where they are current, else built for this wheel."""
    from mqlab.errors import LearnerError
    from mqlab.fast import build

    place = root / build.PLACE
    if build.state(place) != "current":
        place = made / "fast"
        try:
            build.build(place)
        except LearnerError as missing:
            raise SystemExit(str(missing)) from None
    for path in build.compiled_files(place):
        yield str(path), path.relative_to(place).as_posix()
