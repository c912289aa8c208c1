"""The words that a parameter takes in more than one scenario; those of a single one stand beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from mqlab.lab import Lab

Flush = Literal["ASYNC_FLUSH", "SYNC_FLUSH"]
"""flushDiskType: whether a broker answers before or after a message is on its disk."""
AnyFlush = Literal["ASYNC_FLUSH", "SYNC_FLUSH", "any"]
"""The same; with "any" the seed draws it."""
FLUSHES: tuple[Flush, ...] = ("SYNC_FLUSH", "ASYNC_FLUSH")


def drawn_flush(lab: Lab, flush: AnyFlush) -> Flush:
    """The setting that is meant; of "any" the one that the seed draws."""
    return FLUSHES[lab.world.choose("flush", len(FLUSHES))] if flush == "any" else flush
