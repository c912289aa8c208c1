"""What a viewer does to a world: steps, jumps, faults, picks, and the tree of worlds that come of it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab.errors import LearnerError, MqlabError
from mqlab.replay import replay_to, report_of
from mqlab.trace.record import Record
from mqlab_widgets.boards.board import Board, Fold
from mqlab_widgets.boards.stage import StageBoard
from mqlab_widgets.sharing import shared_text

if TYPE_CHECKING:
    from mqlab import Lab
    from mqlab.sim import Pending

FRAMES_PER_SECOND = 20
REST_SECONDS = 0.005
"""The least time between two frames of playing in which clicks are heard."""
RUN_LIMIT_MS = 600_000
MOST_DRAWN = 8
"""How many of the choices that were drawn last are shown."""
BREAKABLE = ("crash", "power_off", "freeze", "thaw", "restart")
LINKS = ("cut", "heal", "disconnect")

PAUSING = (
    *("step_event", "step_slice", "back", "start", "goto", "next_kind", "previous_kind", "to_time"),
    *("to_breakpoint", "pick", "hold", "take_back", "override", "branch"),
)
"""The commands that end playing, because they say themselves where to go."""


class Branch(NamedTuple):
    """One world of the tree: where it comes from, at which slice it left its parent, and what was different."""

    number: int
    parent: int
    at_slice: int
    what: str
    lab: Lab


class Session:
    """A world under a viewer: its boards at the cursor, what is chosen, what was said, and its branches.

    `do(command)` carries out {"do": name, ...}; whatever goes wrong becomes the sentence `said`, never an error in the
    page. `changed` is called after everything that may have changed the picture.
    """

    def __init__(self, lab: Lab, boards: Iterable[type[Board]] = (), *, changed: Callable[[], None]) -> None:
        self._kinds_of_boards: list[type[Board]] = [StageBoard, *boards]
        self._changed = changed
        self.branches = [Branch(0, -1, 0, "the first world", lab)]
        self.now = 0
        self.kind = "MessageStored"
        self.speed = 1.0
        self.chosen = ""
        self.other = ""
        self.opened_kinds: set[str] = set()
        """The kinds of machines of which all are drawn, however many there are."""
        self.opened: set[str] = set()
        """Paths of the parts that are opened in the generic inspector."""
        self.queue: tuple[str, int, int] = ("", 0, -1)
        """(topic, queue id, offset) of the message whose bytes are shown; -1: the newest."""
        self.said = ""
        self.taken = 0
        """How many commands have been taken, by which a page sees that it is heard."""
        self.shared = ""
        """The text to send to somebody, after `do_share` and until the next command."""
        self._playing: asyncio.Task[None] | None = None
        self._shared: dict[frozenset[int], int] = {}
        """Two worlds -> how many events they are known to share; it only grows, so no event is compared twice."""
        self._show(0)

    def _make_boards(self, lab: Lab) -> list[Board]:
        return [kind(lab) for kind in self._kinds_of_boards]

    # -- what is shown ----------------------------------------------------------------------------------------------

    @property
    def lab(self) -> Lab:
        """The world that is shown."""
        return self.branches[self.now].lab

    @property
    def playing(self) -> bool:
        """Whether the world is being played at a speed for the eye."""
        return self._playing is not None and not self._playing.done()

    @property
    def moving(self) -> bool:
        """Whether time passes in the world at this moment: it is being played here, or by a cell."""
        return self.playing or self.lab.world.door.is_playing

    @property
    def at_end(self) -> bool:
        """Whether the cursor stands at the newest event, so that the picture is the world's present."""
        return self.lab.history.cursor >= len(self.lab.history)

    def boards(self) -> list[Board]:
        """The boards at the cursor, the stage first."""
        self._fold.go_to(self.lab.history.cursor)
        return self._fold.boards

    def changes(self) -> list[str]:
        """What the newest event behind the cursor changed: the lines of the boards' text that were not there before."""
        place = self.lab.history.cursor
        if place == 0:
            return []
        self._fold.go_to(place - 1)
        before = {line for board in self._fold.boards for line in board.text()}
        return [line for board in self.boards() for line in board.text() if line not in before]

    def event(self) -> Record | None:
        """The newest event behind the cursor."""
        return self.lab.history.at_cursor

    # -- commands ---------------------------------------------------------------------------------------------------

    def do(self, command: dict[str, Any]) -> None:
        """Carry out a command of the page or of a control."""
        self.taken += 1
        name, arguments = command["do"], {key: value for key, value in command.items() if key != "do"}
        if name in PAUSING:
            self._pause()
        method = getattr(self, f"do_{name}", None)
        self.said = self.shared = ""
        if method is None:
            self.said = f"There is no command {name!r}."
        elif self._another_plays() and name != "play":
            self._while_another_plays(name, arguments)
        else:
            try:
                method(**arguments)
            except (MqlabError, TypeError, ValueError) as error:
                self.said = str(error)
            except KeyboardInterrupt:
                self.said = "Stopped."
        for watcher in list(self.lab.watchers):
            watcher.changed()

    def close(self) -> None:
        """Leave the worlds: stop playing, and be told nothing any more."""
        self._pause()
        for lab in (branch.lab for branch in self.branches):
            lab.watchers.discard(self)
            if not any(isinstance(watcher, Session) for watcher in lab.watchers):
                lab.note_sources(False)

    def changed(self) -> None:
        """Something was done to the world, by this view or by another one of it."""
        self._changed()

    def _another_plays(self) -> bool:
        """Whether a cell is playing the world at this moment (it can only be seen from another thread)."""
        return self.lab.world.door.is_playing

    def _while_another_plays(self, name: str, arguments: dict[str, Any]) -> None:
        if name in (*BREAKABLE, *LINKS):
            self.lab.world.door.post(lambda: self._act(name, arguments))
        elif name in ("choose", "set_kind", "set_speed"):
            getattr(self, f"do_{name}")(**arguments)
        else:
            self.said = "A cell is playing this world. Wait for it, or press the notebook's stop button."

    def _act(self, name: str, arguments: dict[str, Any]) -> None:
        try:
            getattr(self, f"do_{name}")(**arguments)
        except MqlabError as error:
            self.said = str(error)

    # -- time -------------------------------------------------------------------------------------------------------

    def do_play(self) -> None:
        """Play, or pause."""
        if self.playing:
            self._pause()
        elif self._another_plays():
            self.lab.world.door.post(self.lab.world.request_stop)
        else:
            self.do_end()
            self._playing = asyncio.ensure_future(self._play())

    def _pause(self) -> None:
        if self._playing is not None:
            self._playing.cancel()
            self._playing = None

    async def _play(self) -> None:
        """Play `speed` seconds of the world in each real second, from where it stands, up to the next breakpoint."""
        clock = asyncio.get_running_loop().time
        due = clock()
        try:
            while True:
                lab = self.lab
                span_us = max(1, round(self.speed * 1_000_000 / FRAMES_PER_SECOND))
                if not lab.world.run_for(span_us):
                    self.said = f"Stopped at a breakpoint: {lab.history.at_cursor}"
                    break
                self._changed()
                due = max(due + 1 / FRAMES_PER_SECOND, clock() + REST_SECONDS)
                await asyncio.sleep(due - clock())
        except MqlabError as error:
            self.said = str(error)
        self._playing = None
        self._changed()

    def do_step_event(self) -> None:
        """One event on; at the end the world is played for it."""
        self.lab.step_event()

    def do_step_slice(self) -> None:
        """One slice on, from the newest event."""
        self.do_end()
        if not self.lab.step() and not self.lab.world.pending():
            self.said = "Nothing is left to happen in this world: start a process or send a message."

    def do_back(self) -> None:
        """One event back."""
        self.lab.history.move_to(self.lab.history.cursor - 1)

    def do_start(self) -> None:
        """Before the first event."""
        self.lab.history.move_to(0)

    def do_end(self) -> None:
        """To the newest event."""
        self.lab.history.move_to(len(self.lab.history))

    def do_goto(self, place: int | str) -> None:
        """Behind so many events."""
        self.lab.history.move_to(int(place))

    def do_set_kind(self, kind: str) -> None:
        """The event kind that the next and previous buttons look for."""
        self.kind = kind

    def do_set_speed(self, speed: float | str) -> None:
        """Seconds of the world per real second."""
        self.speed = float(speed)

    def do_next_kind(self) -> None:
        """To the next event of the chosen kind, playing the world when none has happened yet."""
        history = self.lab.history
        if history.forward(self.kind) is None:
            self.do_end()
            found = self.lab.run_until_event(self.kind, limit_ms=RUN_LIMIT_MS)
            history.move_to(history.index_of(found.at) + 1)

    def do_previous_kind(self) -> None:
        """To the event of the chosen kind before this one."""
        if self.lab.history.back(self.kind) is None:
            self.said = f"No {self.kind} happened before this."

    def do_to_breakpoint(self) -> None:
        """Play up to the next breakpoint of the lab."""
        self.do_end()
        self.lab.run_for(RUN_LIMIT_MS)
        if self.lab.stopped_at is None:
            self.said = "No breakpoint was reached in ten minutes of the world's time."

    def do_to_time(self, ms: float | str) -> None:
        """To a time of the world: back by the cursor, forward by playing."""
        lab, ms = self.lab, float(ms)
        if ms > lab.now_ms:
            self.do_end()
            lab.run_for(ms=ms - lab.now_ms)
        else:
            lab.history.move_to(lab.history.place_after(ms))

    # -- breaking things --------------------------------------------------------------------------------------------

    def do_choose(self, node: str) -> None:
        """The machine that the controls act on; the one before it stays as the other end of a link."""
        if node not in self.lab.world.nodes:
            raise LearnerError(f"there is no machine {node!r}", f"choose one of {', '.join(self.lab.world.nodes)}")
        if node != self.chosen:
            self.other, self.chosen = self.chosen, node

    def do_open_kind(self, kind: str) -> None:
        """Draw all machines of a kind, or sum the most of them up again."""
        self.opened_kinds ^= {kind}

    def do_open_part(self, path: str) -> None:
        """Open a part in the generic inspector, or close it."""
        self.opened ^= {path}

    def do_show_queue(self, topic: str, queue_id: int | str, offset: int | str = -1) -> None:
        """The queue, and the message in it, whose bytes are shown."""
        self.queue = (topic, int(queue_id), int(offset))

    def do_crash(self, node: str = "") -> None:
        """Kill the process."""
        self._fault("crash", node=node or self.chosen)

    def do_power_off(self, node: str = "") -> None:
        """Pull the plug."""
        self._fault("power_off", node=node or self.chosen)

    def do_freeze(self, node: str = "") -> None:
        """Let the process hang."""
        self._fault("freeze", node=node or self.chosen)

    def do_thaw(self, node: str = "") -> None:
        """Let it go on."""
        self._fault("thaw", node=node or self.chosen)

    def do_restart(self, node: str = "") -> None:
        """Start the process again."""
        self._fault("restart", node=node or self.chosen)

    def do_cut(self, source: str = "", target: str = "") -> None:
        """Hold back everything between two machines, in both directions."""
        self._link("partition", source, target)

    def do_heal(self, source: str = "", target: str = "") -> None:
        """Let it through again."""
        self._link("unpartition", source, target)

    def do_disconnect(self, source: str = "", target: str = "") -> None:
        """Break the connections between two machines."""
        a, b = source or self.other, target or self.chosen
        self._fault("disconnect", a=a, b=b)

    def _link(self, verb: str, source: str, target: str) -> None:
        self._fault(verb, left=source or self.other, right=target or self.chosen)

    def _fault(self, verb: str, **arguments: Any) -> None:
        if not all(arguments.values()):
            two = len(arguments) > 1
            raise LearnerError(
                "no machine is chosen" if not two else "a link needs two machines",
                "click a machine on the stage" if not two else "click one machine, then the other",
            )
        in_past = not self.at_end
        self.do_end()
        self.lab.act(verb, **arguments)
        if in_past:
            self.said = "This happened in the present. To change the past, play a new world up to there first."

    # -- choosing what happens next ---------------------------------------------------------------------------------

    def pending(self) -> dict[str, Pending]:
        """What may happen next, by keys that hold as long as the entry is there."""
        pending: dict[str, Pending] = {}
        for entry in self.lab.world.pending():
            same = sum(other.startswith(f"{entry.key}#") for other in pending)
            pending[f"{entry.key}#{same}"] = entry
        return pending

    def _place_of(self, key: str) -> int:
        """Where the entry stands among the world's pending ones now; LearnerError if it has gone."""
        keys = list(self.pending())
        if key not in keys:
            raise LearnerError(
                "what was clicked has happened meanwhile, or cannot happen any more", "choose again from the new list"
            )
        return keys.index(key)

    def do_pick(self, entry: str) -> None:
        """Let one of the pending entries happen now."""
        index = self._place_of(entry)
        self.do_end()
        self.lab.act("pick", index=index)
        self.lab.step()

    def do_hold(self, entry: str, ms: float | str = 100) -> None:
        """Hold one of the pending entries back for some ms."""
        index = self._place_of(entry)
        self.do_end()
        self.lab.act("hold", index=index, ms=float(ms))

    # -- sharing ----------------------------------------------------------------------------------------------------

    def do_share(self) -> None:
        """Show the text that brings back this world at this event."""
        self.shared = shared_text(self.lab)

    # -- the tree ---------------------------------------------------------------------------------------------------

    def do_take_back(self) -> None:
        """Play a new world up to the slice of the cursor, which can go on from there in another way."""
        event = self.event()
        self._branch(event.slice if event is not None else 0, {}, "gone back")

    def do_override(self, point: str, k: int | str, value: int | str) -> None:
        """Play a new world in which one drawn choice came out differently."""
        changed = {(point, int(k)): int(value)}
        self._branch(self.lab.world.slice_no, changed, f"{point} #{k} = {value}")

    def _branch(self, at_slice: int, overrides: dict[tuple[str, int], int], what: str) -> None:
        report = report_of(self.lab)
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

    def _show(self, number: int) -> None:
        self.now = number
        self._fold = Fold(self.lab.history, self._make_boards(self.lab))
        self.lab.note_sources()
        if self.lab.world.choices.log is None:
            self.lab.world.choices.log = deque(maxlen=MOST_DRAWN)
        self.lab.watchers.add(self)

    def difference(self, number: int) -> tuple[int, Record | None, Record | None]:
        """Where the shown world and another one part: how many events they share, and the next event of each."""
        mine, other = self.lab.history, self.branches[number].lab.history
        pair = frozenset((self.now, number))
        shared = self._shared.get(pair, 0)
        for left, right in zip(mine.rows(shared), other.rows(shared), strict=False):
            if left != right:
                break
            shared += 1
        self._shared[pair] = shared
        return (
            shared,
            mine.record(shared) if shared < len(mine) else None,
            other.record(shared) if shared < len(other) else None,
        )
