"""The handle with which a producer can take a timer message back: one text that says all that the broker needs."""

from __future__ import annotations

import base64
import binascii
from typing import NamedTuple

from mqlab.errors import ProtocolError

_VERSION_1 = "v1"
_ITEMS = 5


class RecallMessageHandle(NamedTuple):
    """What a handle says (org.apache.rocketmq.common.producer.RecallMessageHandle.HandleV1).

    `timestamp` is a text, the ms since 1970 of a moment within the slot that the message waits for; `message_id` is the
    unique key.
    """

    topic: str
    broker_name: str
    timestamp: str
    message_id: str

    def encode(self) -> str:
        """The handle: Base64 for URLs of five words with spaces between them."""
        return base64.urlsafe_b64encode(" ".join((_VERSION_1, *self)).encode()).decode()

    @classmethod
    def decode(cls, handle: str) -> RecallMessageHandle:
        """What a handle says; InvalidRecallHandle when it is none."""
        try:
            # As in Java the signs at the end may be missing.
            raw = base64.b64decode(handle + "=" * (-len(handle) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise InvalidRecallHandle() from None
        items = raw.decode("utf-8", "replace").split(" ")
        if not handle or items[0] != _VERSION_1 or len(items) < _ITEMS:
            raise InvalidRecallHandle()
        return cls(*items[1:_ITEMS])


class InvalidRecallHandle(ProtocolError):
    """A text is no handle of a timer message."""

    def __init__(self) -> None:
        super().__init__("recall handle is invalid")
