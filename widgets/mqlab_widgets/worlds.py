"""The tree of worlds that a viewer has played: where each has left its parent, and how two of them differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mqlab.errors import LearnerError
from mqlab.replay import replay_to, report_of

if TYPE_CHECKING:
    from mqlab import Lab
    from mqlab.trace.record import Record
    from mqlab_widgets.cursor import Cursor


class Branch(NamedTuple):
    """One world of the tree: where it comes from, at which slice it left its parent, and what was different."""

    number: int
    parent: int
    at_slice: int
    what: str
    lab: Lab


class Worlds:
    """The worlds that one viewer has played, each with where it left another one, and which of them is shown."""

    def __init__(self, lab: Lab) -> None:
        self.branches = [Branch(0, -1, 0, "the first world", lab)]
        self.now = 0
        """The number of the world that is shown."""
        self._compared: dict[frozenset[int], int] = {}
        """Two worlds -> how many events they are known to share; it only grows, so no event is compared twice."""

    @property
    def lab(self) -> Lab:
        """The world that is shown."""
        return self.branches[self.now].lab

    @property
    def can_branch(self) -> bool:
        """Whether the world that is shown can be played anew."""
        try:
            self.lab.replayable_origin()
        except LearnerError:
            return False
        return True

    def take_back(self, cursor: Cursor, what: str) -> None:
        """Play a new world up to the slice of the cursor, which can go on from there in another way."""
        event = cursor.event()
        self._branch(event.slice if event is not None else 0, {}, what, undone=cursor.done_later())

    def override(self, point: str, k: int, value: int) -> None:
        """Play a new world in which one drawn choice came out differently."""
        self._branch(self.lab.world.slice_no, {(point, k): value}, f"{point} #{k} = {value}")

    def show(self, number: int | str) -> None:
        """Show another world of the tree."""
        if not 0 <= int(number) < len(self.branches):
            raise LearnerError(f"there is no world {number}", f"choose one of 0..{len(self.branches) - 1}")
        self.now = int(number)

    def _branch(self, at_slice: int, overrides: dict[tuple[str, int], int], what: str, undone: int = 0) -> None:
        """Play a new world up to a slice, without so many of the actions that were done at its end."""
        report = report_of(self.lab)
        if undone:
            done = sum(action[0] <= at_slice for action in self.lab.actions)
            report["actions"] = report["actions"][: done - undone]
        known = {(point, k): value for point, k, value in report["overrides"]}
        report["overrides"] = [[point, k, value] for (point, k), value in sorted({**known, **overrides}.items())]
        lab = replay_to(report, at_slice, allow_source=True)
        lab.origin = self.lab.origin
        self.branches.append(Branch(len(self.branches), self.now, at_slice, what, lab))
        self.now = len(self.branches) - 1

    def difference(self, number: int) -> tuple[int, Record | None, Record | None]:
        """Where the shown world and another one part: how many events they share, and the next event of each."""
        mine, other = self.lab.history, self.branches[number].lab.history
        pair = frozenset((self.now, number))
        shared = self._compared.get(pair, 0)
        for left, right in zip(mine.rows(shared), other.rows(shared), strict=False):
            if left != right:
                break
            shared += 1
        self._compared[pair] = shared
        return (
            shared,
            mine.record(shared) if shared < len(mine) else None,
            other.record(shared) if shared < len(other) else None,
        )
