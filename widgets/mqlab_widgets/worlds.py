"""The tree of worlds that a viewer has played: where each has left its parent, and how two of them differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mqlab.errors import LearnerError
from mqlab.replay import replay_to, report_of
from mqlab.trace.record import KIND

if TYPE_CHECKING:
    from mqlab import Lab
    from mqlab.trace.record import Record


class Branch(NamedTuple):
    """One world of the tree: where it comes from, at which slice it left its parent, and what was different."""

    number: int
    parent: int
    at_slice: int
    what: str
    lab: Lab


class Worlds:
    """The part of a session that plays new worlds and shows one of them."""

    branches: list[Branch]
    now: int
    _compared: dict[frozenset[int], int]
    """Two worlds -> how many events they are known to share; it only grows, so no event is compared twice."""

    @property
    def lab(self) -> Lab:
        """The world that is shown."""
        raise NotImplementedError

    def event(self) -> Record | None:
        """The newest event behind the cursor."""
        raise NotImplementedError

    def _show(self, number: int) -> None:
        """Show a world of the tree."""
        raise NotImplementedError

    def _worlds_offered(self) -> set[str]:
        try:
            self.lab.replayable_origin()
        except LearnerError:
            return set()
        return {"share", "take_back", "override"}

    def do_take_back(self, what: str = "gone back") -> None:
        """Play a new world up to the slice of the cursor, which can go on from there in another way."""
        event = self.event()
        self._branch(event.slice if event is not None else 0, {}, what, undone=self._done_later(event))

    def _done_later(self, event: Record | None) -> int:
        """How many of the last actions were done after the cursor, though before the next slice."""
        history = self.lab.history
        slice_no = event.slice if event is not None else 0
        place = history.cursor
        later = 0
        for row in history.rows(place):
            if row[0] != slice_no:
                break
            later += row[KIND] == "ActionTaken"
        done = sum(action[0] == slice_no for action in self.lab.actions)
        return min(later, done)

    def do_override(self, point: str, k: int | str, value: int | str) -> None:
        """Play a new world in which one drawn choice came out differently."""
        changed = {(point, int(k)): int(value)}
        self._branch(self.lab.world.slice_no, changed, f"{point} #{k} = {value}")

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
        self._show(len(self.branches) - 1)

    def do_branch(self, number: int | str) -> None:
        """Show another world of the tree."""
        if not 0 <= int(number) < len(self.branches):
            raise LearnerError(f"there is no world {number}", f"choose one of 0..{len(self.branches) - 1}")
        self._show(int(number))

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
