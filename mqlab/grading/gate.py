"""What one of two processes that don't trust each other lets the other one do."""

from __future__ import annotations

from typing import Any, Protocol


class Gate(Protocol):
    """What this side lets the other one do."""

    has_the_clock: bool
    """Whether the world's time passes on this side: it drives the other side's coroutines."""

    def may_have(self, value: Any, *, read: bool) -> bool:
        """May the other side hold a reference to this object, which it was given, or has read from another one?"""
        ...

    def may_read(self, owner: Any, name: str) -> bool:
        """May it read this attribute?"""
        ...

    def may_set(self, owner: Any, name: str) -> bool:
        """May it set this attribute?"""
        ...

    def may_import(self, module: str) -> bool:
        """May it name a class of this module?"""
        ...

    def told(self, error: BaseException) -> str:
        """Where an error came from, in words for the other side."""
        ...
