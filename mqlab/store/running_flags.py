"""What a store may do at the moment, as bits."""

from __future__ import annotations


class RunningFlags:
    """The reasons why a store does not read or write (org.apache.rocketmq.store.RunningFlags)."""

    NOT_READABLE = 1
    NOT_WRITEABLE = 2
    WRITE_LOGICS_QUEUE_ERROR = 4
    WRITE_INDEX_FILE_ERROR = 8
    DISK_FULL = 16
    FENCED = 32
    LOGIC_DISK_FULL = 64

    __slots__ = ("bits",)

    def __init__(self) -> None:
        self.bits = 0

    @property
    def is_readable(self) -> bool:
        """May messages be read?"""
        return not self.bits & self.NOT_READABLE

    @property
    def is_writeable(self) -> bool:
        """May messages be stored?"""
        return not self.bits & NO_PUT

    @property
    def is_disk_full(self) -> bool:
        """Is there no room for messages, or none for the entries of queues?"""
        return bool(self.bits & (self.DISK_FULL | self.LOGIC_DISK_FULL))

    def set(self, bit: int, on: bool = True) -> bool:
        """Set or clear a bit; what it was before."""
        before = bool(self.bits & bit)
        self.bits = self.bits | bit if on else self.bits & ~bit
        return before

    def reasons(self) -> list[str]:
        """The names of the bits that are set, lowest first."""
        names = ("NOT_READABLE", "NOT_WRITEABLE", "WRITE_LOGICS_QUEUE_ERROR", "WRITE_INDEX_FILE_ERROR", "DISK_FULL",
                 "FENCED", "LOGIC_DISK_FULL")  # fmt: skip
        return [name for i, name in enumerate(names) if self.bits >> i & 1]


NO_PUT = (
    RunningFlags.NOT_WRITEABLE
    | RunningFlags.WRITE_LOGICS_QUEUE_ERROR
    | RunningFlags.WRITE_INDEX_FILE_ERROR
    | RunningFlags.DISK_FULL
    | RunningFlags.FENCED
    | RunningFlags.LOGIC_DISK_FULL
)
"""Any of these refuses a message."""
