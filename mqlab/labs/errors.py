"""What can be wrong with a lab, said to its author."""

from __future__ import annotations

from collections.abc import Sequence

from mqlab.errors import LearnerError


class LabError(LearnerError):
    """A lab can not be built, or what was built no longer fits its source. `problems` has one line for each thing."""

    def __init__(self, lab: str, problems: Sequence[str], hint: str) -> None:
        super().__init__("\n  ".join([f"lab {lab}:", *problems]), hint)
        self.lab = lab
        self.problems = tuple(problems)
