"""Several questions with one seed: how many were answered well, without those that a guess answers.

    cases = Cases()
    for ...:
        cases.note(want, got == want or Wrong(...))
    return cases.result

The cases are put into groups by the answer that is right, and the share is the mean of the groups' shares, of which a
guess is taken off: with `n` groups it is (mean - 1/n) / (1 - 1/n). Whoever gives the same answer to all questions has
one group right and the others wrong, so the share is exactly 0, whatever the answer and however often it is right.
"""

from __future__ import annotations

from mqlab.check.found import Wrong


class Cases:
    """The cases of one seed, as they were answered."""

    def __init__(self) -> None:
        self._groups: dict[str, list[bool]] = {}
        """The answer that is right, as text -> how each of its cases went."""
        self._first: Wrong | None = None

    def note(self, want: object, found: Wrong | bool) -> None:
        """One case: the answer that is right, and `Wrong` if another one came."""
        went_well = not isinstance(found, Wrong)
        self._groups.setdefault(repr(want), []).append(went_well)
        if isinstance(found, Wrong) and self._first is None:
            self._first = found

    @property
    def share(self) -> float:
        """The share of what a guess does not answer, from 0 to 1; 1 only when all cases went well."""
        if self._first is None:
            return 1.0
        groups = len(self._groups)
        if groups == 1:
            return 0.0
        mean = sum(sum(went) / len(went) for went in self._groups.values()) / groups
        return max(0.0, (mean - 1 / groups) / (1 - 1 / groups))

    @property
    def result(self) -> Wrong | None:
        """None when all went well; else the first failure, with the counts and the share."""
        if self._first is None:
            return None
        well = sum(sum(went) for went in self._groups.values())
        of = sum(len(went) for went in self._groups.values())
        return Wrong(self._first.explanation, self._first.trace, self._first.world, self.share, (well, of))
