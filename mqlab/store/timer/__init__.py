"""Messages for any time: a wheel of slots of one second, the log of what lies in them, and who turns it."""

from __future__ import annotations

from mqlab.store.timer.timer_message_store import TimerMessageStore

__all__ = ["TimerMessageStore"]
