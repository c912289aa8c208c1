"""One bar for a long job: how much is done, what is being done, and how long it may still take.

    with bar("worlds", 1_000) as shown:
        for done, world in enumerate(played, 1):
            shown.to(done, f"{len(world.history):,} events")

tqdm draws it: on a terminal, or in a notebook that somebody has open. In a notebook that a program executes
(papermill, nbval, a build of the labs) nothing is drawn and nothing is imported. Everywhere else, as in the log of a
build, and on a terminal without tqdm, there is a line now and then. All of it goes to stderr. A job inside another one
has no bar of its own, so there is never more than one.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from tqdm import tqdm

DELAY_S = 0.5
"""What ends sooner needs no bar."""

DRAW_EVERY_S = 0.1
LINE_EVERY_S, LINE_ON_TERMINAL_S = 30.0, 3.0
"""So often a line is written where no bar can be drawn: into a file or a pipe, and on a terminal without tqdm."""

T = TypeVar("T")

TERMINAL, NOTEBOOK = "terminal", "notebook"

FORMATS = {
    TERMINAL: "{desc} {percentage:3.0f}%|{bar:30}| {elapsed} gone, {remaining} to go{postfix}",
    # Here the bar itself is a widget between two texts.
    NOTEBOOK: "{desc} {percentage:3.0f}%|{bar}| {elapsed} gone, {remaining} to go{postfix}",
}


class Bar:
    """A bar that is open, or one that nobody sees."""

    def __init__(self, drawn: tqdm[Any] | Lines | None, unit: str, total: float) -> None:
        self._lines = drawn if isinstance(drawn, Lines) else None
        self._drawn = drawn if not isinstance(drawn, Lines) else None
        self._unit = unit
        self._total = total

    def to(self, done: float, doing: str = "", *, total: float | None = None) -> None:
        """So much is done (a part of a thing may be), and `doing` is what happens now; the total may have grown."""
        if total is not None:
            self._total = total
        if self._lines is not None:
            self._lines.tell(f"{int(done):,} of {self._total:,} {self._unit}", done / (self._total or 1), doing)
        if self._drawn is None:
            return
        # tqdm's own total is 1, since ours may grow; and it draws nothing anew that goes back, as a part of more does.
        self._drawn.n = self._drawn.last_print_n = done / self._total if self._total else 0
        self._drawn.set_description_str(f"{int(done):,} of {self._total:,} {self._unit}", refresh=False)
        self._drawn.set_postfix_str(doing, refresh=False)
        self._drawn.update(0)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """What is printed inside stays; the bar gets out of its way."""
        if self._drawn is None:
            yield
        else:
            with self._drawn.external_write_mode():
                yield

    def close(self) -> None:
        """Take the bar away."""
        if self._drawn is not None:
            self._drawn.close()


class Lines:
    """What stands in for a bar where none can be drawn: a line on stderr each `every_s` seconds."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._begun = self._told = time.monotonic()

    def tell(self, done: str, part: float, doing: str) -> None:
        """So much is done, which is that part of all; written when it is time for a line."""
        now = time.monotonic()
        if now - self._told < self._every_s or not 0 < part < 1:
            return
        self._told = now
        gone_s = now - self._begun
        left_s = gone_s / part - gone_s
        about = f", {doing}" if doing else ""
        say(f"{done}{about}; {_clock(gone_s)} gone, {_clock(left_s)} to go")


def say(line: str) -> None:
    """Write a line to stderr, whole or not at all: print() sends its end apart, and Ctrl-C may come between the two."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes:02}:{rest:02}"


_open: list[Bar] = []


@contextmanager
def bar(unit: str, total: float) -> Iterator[Bar]:
    """A bar for a job of `total` things, called `unit` in the plural; it is gone when the job has ended.

    In a notebook the bar of a job that has failed stays where it stopped.
    """
    shown = Bar(None if _open else _drawn(), unit, total)
    _open.append(shown)
    try:
        yield shown
        shown.to(shown._total)
    finally:
        _open.remove(shown)
        shown.close()


def counted(unit: str, things: Iterable[T], total: int) -> Iterator[T]:
    """The things one after the other, with a bar of how many of them are done."""
    with bar(unit, total) as shown:
        for done, thing in enumerate(things):
            shown.to(done)
            yield thing


def place() -> str | None:
    """Who looks at this process: TERMINAL, NOTEBOOK, or nobody: None."""
    kernel = _kernel()
    if kernel is not None:
        # Whoever executes a notebook without a person (nbclient, papermill, nbval) says that nothing can be asked.
        content = kernel.get_parent("shell").get("content", {})
        return NOTEBOOK if content.get("allow_stdin") else None
    return TERMINAL if sys.stderr is not None and sys.stderr.isatty() else None


def _kernel() -> Any:
    """The kernel of a notebook in which this runs; None elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None)


def _drawn() -> tqdm[Any] | Lines | None:
    where = place()
    if where is None:
        return None if _kernel() is not None or sys.stderr is None else Lines(LINE_EVERY_S)
    try:
        if where == NOTEBOOK:
            import ipywidgets  # noqa: F401  without it tqdm has a module for notebooks that draws nothing
            from tqdm.notebook import tqdm_notebook as base
        else:
            from tqdm import tqdm as base
    except ImportError:
        return Lines(LINE_ON_TERMINAL_S) if where == TERMINAL else None
    # tqdm's own thread would wake bars that are never told anything.
    quiet: type[tqdm[Any]] = type("QuietBar", (base,), {"monitor_interval": 0})
    return quiet(
        total=1, file=sys.stderr, leave=False, bar_format=FORMATS[where], delay=DELAY_S, miniters=0,
        mininterval=DRAW_EVERY_S, **_size(),
    )  # fmt: skip


def _size() -> dict[str, Any]:
    """What tqdm is told of the terminal's size: to look itself; in one that says it has no size, as some have in
    recordings and containers, it would draw nothing."""
    try:
        columns, rows = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError):
        return {"dynamic_ncols": True}
    return {"dynamic_ncols": True} if columns and rows else {"ncols": columns or 100, "nrows": 24}
