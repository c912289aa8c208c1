"""The words that a parameter takes in more than one scenario; those of a single one stand beside it."""

from __future__ import annotations

from typing import Literal

Flush = Literal["ASYNC_FLUSH", "SYNC_FLUSH"]
"""flushDiskType: whether a broker answers before or after a message is on its disk."""
AnyFlush = Literal["ASYNC_FLUSH", "SYNC_FLUSH", "any"]
"""The same; with "any" the seed draws it."""
