"""Calls: how code outside of a world waits for something inside it."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Coroutine, Generator
from inspect import signature
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from mqlab.errors import LearnerError
from mqlab.sim.life import ProcessEndedError
from mqlab.sim.world import WAIT_LIMIT_MS

if TYPE_CHECKING:
    from mqlab.sim.future import Future
    from mqlab.sim.node import Node

P = ParamSpec("P")
T = TypeVar("T")


class NotAwaitedError(LearnerError, AttributeError):
    """A part of an answer was asked for where only the call is: the `await` was forgotten."""

    def __init__(self, text: str, name: str) -> None:
        super().__init__(f"{text} is a call, not its answer, so it has no {name!r}", f"write 'await {text}' first")
        self.name = name


class Call(Generic[T]):
    """Something that waits, asked for but not yet awaited.

    Awaited inside a slice of the world it is the coroutine itself. Awaited outside (a cell of a notebook, or
    `lab.run(call)`) it starts a task on its node and plays the world until the answer is there, whatever loop the cell
    runs on. `start()` makes the task and plays nothing, so that the world can be stepped while the call is under way;
    awaiting the call later gives the answer.
    """

    __slots__ = ("_answer", "_arguments", "_awaited", "_function", "node", "text")

    def __init__(self, node: Node, function: Callable[..., Coroutine[Any, Any, T]], arguments: Any, text: str) -> None:
        self.node = node
        self.text = text
        self._function = function
        self._arguments = arguments
        self._awaited = False
        self._answer: Future[T] | None = None

    def start(self) -> Call[T]:
        """Let it begin with the next slice and wait for nothing: step the world, and `await` this call later."""
        if self._awaited or self._answer is not None:
            raise LearnerError(f"{self.text} was started already", "call it again to let it happen once more")
        with self.node.world.door:
            if self.node.life.over:
                self._awaited = True
                raise LearnerError(
                    f"{self.node.name} is down, so {self.text} cannot run", f"lab.restart({self.node.name!r})"
                )
            if not self.node.world.door.inside:
                self.node.world.outside_calls.append(self.text)
            self._answer = self.node.spawn(self._coroutine(), self.text).join()
            self._answer.label = self.text
            asked = self.node.life.asked
            asked[self._answer] = None
            self._answer.add_done_callback(lambda answer: asked.pop(answer, None))
        return self

    @property
    def done(self) -> bool:
        """Whether a started call has its answer or its error, which comes at the latest when its process ends."""
        return self._answer is not None and self._answer.done

    def play(self, limit_ms: int = WAIT_LIMIT_MS) -> T:
        """Play the world until the answer is there (at most `limit_ms` of its time) and return it."""
        if self._awaited:
            raise self._awaited_before()
        world = self.node.world
        with world.door:
            if self._answer is None:
                self.start()
            self._awaited = True
            assert self._answer is not None
            result: T = world.wait_for(self._answer, limit_ms)
        return result

    def _coroutine(self) -> Coroutine[Any, Any, T]:
        args, kwargs = self._arguments
        try:
            return self._function(*args, **kwargs)
        except TypeError as error:
            # Calling an `async def` runs none of it, so only its arguments can be wrong.
            self._awaited = True
            wanted = str(signature(self._function, eval_str=False)).replace("(self, ", "(").partition(" -> ")[0]
            raise LearnerError(str(error), f"its arguments are {wanted}") from None

    def _awaited_before(self) -> LearnerError:
        return LearnerError(f"{self.text} was awaited already", "call it again for another answer")

    def _has_lost_its_process(self) -> bool:
        # Not worth a warning: whoever killed the process knows.
        return self._answer is not None and isinstance(self._answer.error, ProcessEndedError)

    def __await__(self) -> Generator[Any, Any, T]:
        if not self.node.world.door.inside:
            return AnswerFromOutside(self)  # type: ignore[return-value]  # an iterator is all that an await needs
        if self._awaited:
            raise self._awaited_before()
        self._awaited = True
        return self._coroutine().__await__() if self._answer is None else self._answer.__await__()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise NotAwaitedError(self.text, name)

    def __repr__(self) -> str:
        if self._awaited:
            return f"<call of {self.text}, awaited>"
        if self._answer is not None:
            return f"<call of {self.text}, {'done' if self.done else 'under way'}>"
        return f"not awaited: {self.text}\n  What to do: write 'await {self.text}' to let it happen."

    def __del__(self) -> None:
        if self._awaited:
            return
        if self._answer is None:
            warnings.warn(
                f"{self.text} was never awaited, so it never happened: write 'await {self.text}'", stacklevel=2
            )
        elif self._answer.done and self._answer.error is not None and not self._has_lost_its_process():
            warnings.warn(f"{self.text} failed, and nobody awaited it: {self._answer.error}", stacklevel=2)


class AnswerFromOutside(Generic[T]):
    """What awaiting a call outside of the world runs: it plays the world, and never yields to the loop of the cell."""

    __slots__ = ("_call",)

    def __init__(self, call: Call[T]) -> None:
        self._call = call

    def __iter__(self) -> AnswerFromOutside[T]:
        return self

    def __next__(self) -> Any:
        raise StopIteration(self._call.play())


def public_call(method: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Call[T]]:
    """Make an `async def` method with a `self.node` return a `Call`; `.inside` is the plain coroutine method.

    Code of the world that calls such a method often should use `.inside`, which spares it the Call.
    """

    @functools.wraps(method)
    def calling(*args: P.args, **kwargs: P.kwargs) -> Call[T]:
        owner: Any = args[0]
        name = getattr(owner, "call_name", type(owner).__name__)
        return Call(owner.node, method, (args, kwargs), f"{name}.{method.__name__}(...)")

    calling.inside = method  # type: ignore[attr-defined]  # documented above
    return calling
