"""What every exercise's world has: a seed and a lab, the time since it began, what happens when, and its story."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from math import inf
from random import Random
from typing import Any, ClassVar, NamedTuple, TypeVar

from mqlab.errors import LearnerError, SimulationError
from mqlab.lab import Lab
from mqlab.sim import Node
from mqlab.trace.bus import Row
from mqlab.trace.record import KIND, Record

Said = TypeVar("Said")


class Line(NamedTuple):
    """One line of a story. `about` says what it concerns: a message, a queue, a topic; None stands for all of them."""

    at_ms: float
    text: str
    about: object = None


class ExerciseWorld:
    """One seed's world, in which somebody's own code decides. A lab's judge looks at it, and shows its story."""

    LINES: ClassVar[int] = 14
    """So many lines of a story are shown, the last ones."""
    SECONDS: ClassVar[str] = "7.3f"
    """How the seconds in front of a line are written."""

    def __init__(self, seed: int, *, draws: str = "", history: bool = False) -> None:
        """`draws`: a name for what is drawn, so that it is other draws than those of another world of this seed."""
        self.seed = seed
        self.random = Random(f"{draws}/{seed}" if draws else seed)
        self.lab = Lab(seed, history=history)
        self.begin_ms = 0.0
        """The time of the lab at which the story begins."""
        self.lines: list[Line] = []
        self._planned: list[tuple[float, str, Callable[[], object]]] = []
        self._of_lives: dict[tuple[str, int], Any] = {}

    @property
    def now_ms(self) -> float:
        """The time since the begin."""
        return self.lab.now_ms - self.begin_ms

    def watch(self, on: Mapping[str, Callable[[Record], None]]) -> None:
        """Call a function with each event of its kind from now on: kind -> function."""

        def sink(row: Row) -> None:
            seen = on.get(row[KIND])
            if seen is not None:
                seen(Record(row))

        self.lab.world.hooks.attach(sink)

    # -- what happens when ------------------------------------------------------------------------------------------

    def at(self, at_ms: float, words: str, do: Callable[[], object]) -> None:
        """Plan what is done so long after the begin. `words` are told then; what has none happens in silence."""
        self._planned.append((at_ms, words, do))

    def passing(self, end_ms: float) -> Iterator[None]:
        """Let time pass until then, and happen what is planned; stops each time before it happens."""
        self._planned.sort(key=lambda planned: planned[0])
        while self._planned and self._planned[0][0] <= end_ms:
            at_ms, words, do = self._planned.pop(0)
            self._pass(at_ms)
            yield
            if words:
                self.tell(words)
            do()
        self._pass(end_ms)

    def pass_to(self, end_ms: float) -> None:
        """Let time pass until so long after the begin, and happen what is planned."""
        for _ in self.passing(end_ms):
            pass

    def _pass(self, at_ms: float) -> None:
        self.lab.run_for(ms=max(0.0, self.begin_ms + at_ms - self.lab.now_ms))

    def kill(self, name: str, down_ms: float) -> None:
        """Kill a process, and start it again so much later."""
        self.tell(f"{name} is killed")
        self.lab.crash(name)
        self.lab.run_for(ms=down_ms)
        self.tell(f"{name} starts again")
        self.lab.restart(name)

    # -- somebody's own code ----------------------------------------------------------------------------------------

    def of_life(self, node: Node, make: Callable[[], Any]) -> Any:
        """The student's object in a process; it is made anew when that starts again."""
        life = (node.name, node.life.number)
        if life not in self._of_lives:
            self._of_lives[life] = make()
        return self._of_lives[life]

    async def told(self, who: str, ask: Callable[[], Awaitable[Said]], about: object, counts_as: str = "") -> Said:
        """What a student's listener returns. That is told, and so is an error (with what it counts as); one that says
        what the student has to do stops the world.
        """
        try:
            said = await ask()
        except LearnerError as error:
            raise SimulationError(f"the listener cannot go on: {error}") from error
        except Exception as error:
            self.tell(f"{who} raises {type(error).__name__}: {counts_as or error}", about)
            raise
        self.tell(f"{who} returns {said}", about)
        return said

    # -- the story --------------------------------------------------------------------------------------------------

    def tell(self, text: str, about: object = None) -> None:
        """Add a line to the story."""
        self.lines.append(Line(self.now_ms, text, about))

    def lines_about(self, *about: object, until_ms: float = inf) -> list[Line]:
        """The lines until then that concern one of these, and those that concern all."""
        return [line for line in self.lines if line.about in (None, *about) and line.at_ms <= until_ms]

    def written(self, *lines: Line) -> str:
        """Lines as text, with the seconds since the begin."""
        return "\n".join(f"{line.at_ms / 1_000:>{self.SECONDS}} s  {line.text}" for line in lines)

    def both_ends(self, *about: object) -> str:
        """What concerns one of these; of a long story the first lines and the last ones."""
        told, half = self.lines_about(*about), self.LINES // 2
        if len(told) <= self.LINES:
            return self.written(*told)
        left_out = f"{'':>10}  ... {len(told) - self.LINES} lines more"
        return "\n".join([self.written(*told[:half]), left_out, self.written(*told[-half:])])

    def story_to(self, at_ms: float, end: str, *about: object) -> str:
        """The last lines up to then; `end` is the line that it is all about."""
        lines = self.lines_about(*about, until_ms=at_ms)[-self.LINES :]
        return self.written(*lines, Line(at_ms, f"{end}   <- this one"))
