"""Where things are: sources, built notebooks, solutions, checks and their wrong solutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mqlab.errors import LearnerError
from mqlab.material import INSTALL


@dataclass(frozen=True, slots=True)
class Project:
    """A clone of the repository, or what a wheel has of it, by its root directory: `mqlab.material.root`."""

    root: Path

    @property
    def sources(self) -> Path:
        """One text file per lab."""
        return self.root / "labs" / "sources"

    @property
    def labs(self) -> Path:
        """The students' notebooks, committed."""
        return self.root / "labs"

    @property
    def solutions(self) -> Path:
        """The notebooks with solutions, not committed."""
        return self.root / "out" / "solutions"

    def source(self, name: str) -> Path:
        """The source of a lab."""
        return self.sources / f"{name}.py"

    def student(self, name: str) -> Path:
        """The student's notebook of a lab."""
        return self.labs / f"{name}.ipynb"

    def solution(self, name: str) -> Path:
        """The notebook with solutions of a lab."""
        return self.solutions / f"{name}.ipynb"

    def checks(self, name: str) -> Path:
        """The module with the checks of a lab."""
        return self.root / "mqlab" / "labs" / "checks" / f"{name}.py"

    def wrong(self, name: str) -> Path:
        """The module with plausible wrong solutions of a lab, each of which its check must catch."""
        return self.root / "tests" / "labs" / "wrong" / f"{name}.py"

    def select(self, wanted: Sequence[str] = ()) -> list[Path]:
        """The sources of the labs whose name or number is wanted; all of them when none is named."""
        found = sorted(self.sources.glob("*.py"))
        if not found:
            raise LearnerError(
                f"there is no lab source in {self.sources}",
                f"{INSTALL}; or begin a lab in a clone: python -m mqlab.labs new 00_name",
            )
        if not wanted:
            return found
        chosen = [path for path in found if path.stem in wanted or path.stem[:2] in wanted]
        matched = {part for path in chosen for part in (path.stem, path.stem[:2])}
        missing = [name for name in wanted if name not in matched]
        if missing:
            raise LearnerError(
                f"there is no lab {missing[0]!r}", f"labs that there are: {', '.join(path.stem for path in found)}"
            )
        return chosen
