"""Labels: what a message is called, on the stage and in sentences: its number, with a letter if there are two of it.

The number is the counter in the message's unique key; each process that sends counts for itself, so the messages of the
second process to send in a world have an "a" behind their number, those of the third a "b".
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from mqlab.trace.catalogue import positions
from mqlab.trace.record import KIND

if TYPE_CHECKING:
    from mqlab import Lab

KEY_LETTERS = (32, 34, 56)
"""The lengths of a unique key in hex: that of a remoting client, that of a 5.x client, and that of a remoting client
outside whose machine has an address of IPv6.
"""
SENDER_LETTERS = 20
"""The part of the first two that is the same for all messages of a process."""
_FIRST = positions()["SendAttempted"]["msg_id"]


class _Senders:
    """The processes that have sent, in their order; no event is looked at twice."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}
        self._looked_at = 0

    def place_of(self, sender: str, lab: Lab) -> int:
        """How many processes sent before this one did."""
        for row in lab.history.rows(self._looked_at) if sender not in self.places else ():
            self._looked_at += 1
            if row[KIND] == "SendAttempted":
                self.places.setdefault(row[_FIRST][:SENDER_LETTERS], len(self.places))
                if sender in self.places:
                    break
        return self.places.get(sender, 0)


_of_labs: WeakKeyDictionary[Lab, _Senders] = WeakKeyDictionary()


def label_of(key: str, lab: Lab) -> str:
    """What is written on the message with this unique key; "" for one without.

    Source: org.apache.rocketmq.common.message.MessageClientIDSetter, whose last two bytes are the counter, as are the
    last four of org.apache.rocketmq.client.java.message.MessageIdCodec.
    """
    if len(key) not in KEY_LETTERS:
        return ""
    place = _of_labs.setdefault(lab, _Senders()).place_of(key[:SENDER_LETTERS], lab)
    return f"{int(key[-4:], 16)}{chr(ord('a') + (place - 1) % 26) if place else ''}"
