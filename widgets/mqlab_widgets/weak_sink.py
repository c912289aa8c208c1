"""A sink that does not keep its view alive: a world goes on for longer than the views of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakMethod

from mqlab.trace.bus import Bus, Row


class WeakSink:
    """Hands each event of a world to a view's method, until it is detached or the view is gone.

    A view that is gone is noticed at the next event, by the thread that plays: garbage is collected anywhere.
    """

    def __init__(self, hooks: Bus, method: Callable[[Row], None]) -> None:
        self._hooks = hooks
        self._method = WeakMethod(method)
        hooks.attach(self)

    @property
    def view(self) -> Any:
        """Whose method it is, or None if that is gone."""
        method = self._method()
        return getattr(method, "__self__", None)

    @property
    def about(self) -> str:
        """Whose events it hands on, for the report of an error."""
        return f"of a {type(self.view).__name__}"

    def __call__(self, row: Row) -> None:
        method = self._method()
        if method is None:
            self.detach()
        else:
            method(row)

    def detach(self) -> None:
        """Hand on no more events."""
        self._hooks.detach(self)
