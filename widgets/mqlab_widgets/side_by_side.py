"""Push and Pop beside each other in one moving picture: one world, two groups, one player, and acts to choose from."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

from mqlab.errors import LearnerError
from mqlab.scenarios.take_or_own import Act, three_acts
from mqlab_widgets.boards.board import Fold
from mqlab_widgets.boards.own_and_take import OwnAndTakeBoard
from mqlab_widgets.scene.picture import Picture
from mqlab_widgets.scene.scene import Look
from mqlab_widgets.scene.side_by_side import moves_of, scene_of
from mqlab_widgets.stepper import Stepper
from mqlab_widgets.viewer import Frame
from mqlab_widgets.worlds import Branch

if TYPE_CHECKING:
    from mqlab_widgets.session import Session

HALVES = Picture(OwnAndTakeBoard, scene_of, moves_of)


class SideBySide(Stepper):
    """The groups `owners` (push) and `takers` (Pop) of the same world, each in one half of the picture.

    `SideBySide(three_acts(seed))` as the last line of a cell. A button for each act shows its world from where the act
    begins, and plays it; everything else is as in a `Stepper`. Without acts it makes those of seed 0.
    """

    picture: ClassVar[Picture] = HALVES

    def __init__(self, acts: Sequence[Act] = ()) -> None:
        self._acts = list(acts) or three_acts()
        if not all(isinstance(act, Act) for act in self._acts):
            raise LearnerError(f"{acts!r} is no list of acts", "write SideBySide(three_acts(seed))")
        super().__init__(self._acts[0].lab)
        first, *rest = self._acts
        self.session.worlds.branches = [
            Branch(0, -1, 0, first.title, first.lab),
            *(Branch(number, -1, 0, act.title, act.lab) for number, act in enumerate(rest, 1)),
        ]

    def _command(self, command: dict[str, Any]) -> None:
        if command["do"] == "act":
            self._begin_act(int(command["number"]))
        else:
            super()._command(command)

    def _begin_act(self, number: int) -> None:
        """Show an act from its beginning, and play it."""
        act, session = self._acts[number], self.session
        session.do({"do": "branch", "number": number})
        session.do({"do": "to_time", "ms": act.begins_ms})
        session.do({"do": "pace", "value": act.pace})
        session.do({"do": "play"})

    def _draw(self) -> Frame:
        return {**super()._draw(), "acts": acts_html(self._acts, self.session)}

    def __repr__(self) -> str:
        return f"<SideBySide: {len(self._acts)} acts>"

    def _repr_mimebundle_(self, **given: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widget, and beside it each act as it stands, with what is to be seen in it."""
        data, metadata = super()._repr_mimebundle_(**given)
        pictures, lines = [], [repr(self)]
        for number, act in enumerate(self._acts):
            board = OwnAndTakeBoard(act.lab)
            Fold(act.lab.history, [board]).go_to(len(act.lab.history))
            scene = scene_of(board, Look(now_us=act.lab.world.now_us))
            pictures.append(f"<h4>{escape(act.title)}</h4><p>{escape(act.look_at)}</p>{scene.svg()}")
            lines += [f"{number + 1}. {act.title} ({act.lab.now_ms / 1_000:.1f} s)", *board.text()]
        return {**data, "text/html": "".join(pictures), "text/plain": "\n".join(lines)}, metadata


def acts_html(acts: Sequence[Act], session: Session) -> str:
    """A button for each act, and what is to be seen in the one that is shown."""
    buttons = "".join(
        f'<button type="button" data-do="act" data-key="act-{number}" data-number="{number}" '
        f'aria-pressed="{"true" if act.lab is session.lab else "false"}">{number + 1}. {escape(act.title)}</button>'
        for number, act in enumerate(acts)
    )
    words = next((act.look_at for act in acts if act.lab is session.lab), "")
    return f'<div class="mq-acts" role="group" aria-label="Acts">{buttons}</div><p>{escape(words)}</p>'
