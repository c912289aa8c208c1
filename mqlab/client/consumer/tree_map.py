"""Messages in the order of their offsets, which nearly always come in that order, and leave from the front."""

from __future__ import annotations

from collections import deque

from mqlab.protocol.message import MessageExt


class TreeMap(dict[int, MessageExt]):
    """A dict that stays sorted by offset when it is filled with `put` (java.util.TreeMap).

    Differs from Java: no tree. New offsets go to the end; one that belongs further ahead, as after a give-back, has
    everything sorted anew.
    """

    __slots__ = ("_offsets",)

    def __init__(self) -> None:
        super().__init__()
        self._offsets: deque[int] = deque()
        """The offsets in order; those that were taken out leave when they have come to an end of it."""

    def put(self, offset: int, message: MessageExt) -> None:
        """Put a message at its place (TreeMap.put)."""
        offsets = self._offsets
        if offset in self:
            self[offset] = message
        elif not offsets or offset > offsets[-1]:
            offsets.append(offset)
            self[offset] = message
        else:
            self[offset] = message
            entries = sorted(self.items())
            super().clear()
            self.update(entries)
            self._offsets = deque(self)

    def first_key(self) -> int:
        """The smallest offset (TreeMap.firstKey); the map must not be empty."""
        offsets = self._offsets
        while offsets[0] not in self:
            offsets.popleft()
        return offsets[0]

    def last_key(self) -> int:
        """The largest offset (TreeMap.lastKey); the map must not be empty."""
        offsets = self._offsets
        while offsets[-1] not in self:
            offsets.pop()
        return offsets[-1]

    def poll_first_entry(self) -> tuple[int, MessageExt]:
        """Take out the message with the smallest offset (TreeMap.pollFirstEntry); the map must not be empty."""
        offset = self.first_key()
        return offset, self.pop(offset)

    def clear(self) -> None:
        """Take every entry out."""
        super().clear()
        self._offsets.clear()
