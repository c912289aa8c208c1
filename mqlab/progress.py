"""One bar for a long job: how much is done, what is being done, and how long it may still take.

    with bar("worlds", 1_000) as shown:
        for done, world in enumerate(played, 1):
            shown.to(done, f"{len(world.history):,} events")

tqdm draws it: on a terminal, or in a notebook that somebody has open. Where nobody looks (a pipe, papermill, nbval, a
build of the labs) nothing is drawn and nothing is imported, and the same where tqdm is not installed. A job inside
another one has no bar of its own, so there is never more than one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm import tqdm

DELAY_S = 0.5
"""What ends sooner needs no bar."""

DRAW_EVERY_S = 0.1

TERMINAL, NOTEBOOK = "terminal", "notebook"

FORMATS = {
    TERMINAL: "{desc} {percentage:3.0f}%|{bar:30}| {elapsed} gone, {remaining} to go{postfix}",
    # Here the bar itself is a widget between two texts.
    NOTEBOOK: "{desc} {percentage:3.0f}%|{bar}| {elapsed} gone, {remaining} to go{postfix}",
}


class Bar:
    """A bar that is open, or one that nobody sees."""

    def __init__(self, drawn: tqdm[Any] | None, unit: str, total: float) -> None:
        self._drawn = drawn
        self._unit = unit
        self._total = total

    def to(self, done: float, doing: str = "", *, total: float | None = None) -> None:
        """So much is done (a part of a thing may be), and `doing` is what happens now; the total may have grown."""
        if total is not None:
            self._total = total
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


def place() -> str | None:
    """Who looks at this process: TERMINAL, NOTEBOOK, or nobody: None."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    kernel = getattr(shell, "kernel", None)
    if kernel is not None:
        # Whoever executes a notebook without a person (nbclient, papermill, nbval) says that nothing can be asked.
        content = kernel.get_parent("shell").get("content", {})
        return NOTEBOOK if content.get("allow_stdin") else None
    return TERMINAL if sys.stderr is not None and sys.stderr.isatty() else None


def _drawn() -> tqdm[Any] | None:
    where = place()
    if where is None:
        return None
    try:
        if where == NOTEBOOK:
            import ipywidgets  # noqa: F401  without it tqdm has a module for notebooks that draws nothing
            from tqdm.notebook import tqdm_notebook as base
        else:
            from tqdm import tqdm as base
    except ImportError:
        return None
    # tqdm's own thread would wake bars that are never told anything.
    quiet: type[tqdm[Any]] = type("QuietBar", (base,), {"monitor_interval": 0})
    return quiet(
        total=1, file=sys.stderr, leave=False, bar_format=FORMATS[where], delay=DELAY_S, miniters=0,
        mininterval=DRAW_EVERY_S, dynamic_ncols=True,
    )  # fmt: skip
