"""A standard queue of Amazon SQS, as its documentation describes it: visibility, receipt handles, receive counts.

    a message is stored    -> in flight    ReceiveMessage: its receive count goes up by one, and it gets a new handle
    in flight              -> stored       its visibility timeout is over, or was set to 0
    stored, in flight      -> deleted      DeleteMessage with its newest receipt handle
    stored                 -> redriven     it would be received more than maxReceiveCount times

What is simpler here than at Amazon, whose servers nobody sees: a receive looks at all messages and takes the oldest
visible ones, where a real one asks some of the servers and may miss some; a message never comes twice by itself, where
a real queue allows that on rare occasions (a copy on a server that was away when it was deleted); and the counts are
exact, where the real one calls them approximate. An old receipt handle deletes nothing here; Amazon says that it might
not. Delays, retention and first-in-first-out queues are left out.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any, NamedTuple

from mqlab.errors import MqlabError

VISIBILITY_TIMEOUT_S = 30
"""How long a message is hidden unless told otherwise."""
MOST_VISIBILITY_S = 43_200
"""A message is hidden 12 hours at most, counted from when it was received."""
MOST_IN_FLIGHT = 120_000
MOST_RECEIVED = 10
"""So many messages one receive gives at most."""


class SqsError(MqlabError):
    """A request that SQS refuses; `code` is the name of the error."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code


class Received(NamedTuple):
    """A message as a receive gives it; the count is ApproximateReceiveCount."""

    message_id: str
    body: str
    receipt_handle: str
    receive_count: int


@dataclass(slots=True)
class SqsMessage:
    """A message of a queue; hidden until `visible_ms`."""

    message_id: str
    body: str
    receipt_handle: str = ""
    receive_count: int = 0
    received_ms: int = 0
    visible_ms: int = 0


class SqsQueue:
    """A queue with its messages; `max_receive_count` 0 means that it has no dead-letter queue. Times are ms."""

    def __init__(self, max_receive_count: int = 0, most_in_flight: int = MOST_IN_FLIGHT) -> None:
        self.max_receive_count = max_receive_count
        self.most_in_flight = most_in_flight
        self.messages: dict[str, SqsMessage] = {}
        """What is not deleted, by id, in the order in which it was sent."""
        self.dead_letters: list[SqsMessage] = []
        self._sent = 0

    def send(self, body: str) -> str:
        """Store a message; its id."""
        self._sent += 1
        message_id = f"m-{self._sent}"
        self.messages[message_id] = SqsMessage(message_id, body)
        return message_id

    def receive(self, most: int, now_ms: int, visibility_s: int = VISIBILITY_TIMEOUT_S) -> list[Received]:
        """Up to `most` visible messages, which are hidden from now on. SqsError OverLimit when too many are in flight,
        InvalidParameterValue for what SQS does not take.
        """
        _check_range("MaxNumberOfMessages", most, 1, MOST_RECEIVED)
        _check_range("VisibilityTimeout", visibility_s, 0, MOST_VISIBILITY_S)
        in_flight = sum(message.visible_ms > now_ms for message in self.messages.values())
        if in_flight >= self.most_in_flight:
            raise SqsError("OverLimit", f"{in_flight} messages are in flight")
        received: list[Received] = []
        for message in list(self.messages.values()):
            if len(received) == min(most, self.most_in_flight - in_flight):
                break
            if message.visible_ms > now_ms:
                continue
            if self.max_receive_count and message.receive_count >= self.max_receive_count:
                self.dead_letters.append(self.messages.pop(message.message_id))
                continue
            message.receive_count += 1
            message.received_ms = now_ms
            message.visible_ms = now_ms + visibility_s * 1_000
            message.receipt_handle = f"{message.message_id}/{message.receive_count}"
            received.append(
                Received(message.message_id, message.body, message.receipt_handle, message.receive_count)
            )
        return received

    def delete(self, receipt_handle: str) -> bool:
        """Delete a message, in flight or not; False (and no error) if it is gone or the handle is not its newest."""
        message = self._of(receipt_handle)
        if message is None or message.receipt_handle != receipt_handle:
            return False
        del self.messages[message.message_id]
        return True

    def change_visibility(self, receipt_handle: str, visibility_s: int, now_ms: int) -> str:
        """Hide a message in flight for so long from now on; its id.

        SqsError: MessageNotInflight, ReceiptHandleIsInvalid for an old handle, InvalidParameterValue beyond 12 hours
        from when it was received.
        """
        message = self._of(receipt_handle)
        if message is None or message.receipt_handle != receipt_handle:
            raise SqsError("ReceiptHandleIsInvalid", f"{receipt_handle} is not the newest handle of a message")
        if message.visible_ms <= now_ms:
            raise SqsError("MessageNotInflight", f"{message.message_id} is visible")
        _check_range("VisibilityTimeout", visibility_s, 0, MOST_VISIBILITY_S - (now_ms - message.received_ms) // 1_000)
        message.visible_ms = now_ms + visibility_s * 1_000
        return message.message_id

    def _of(self, receipt_handle: str) -> SqsMessage | None:
        return self.messages.get(receipt_handle.partition("/")[0])

    # -- what survives ----------------------------------------------------------------------------------------------

    def as_json(self) -> dict[str, Any]:
        """All of it, as plain values."""
        return {
            "sent": self._sent,
            "messages": [astuple(message) for message in self.messages.values()],
            "dead_letters": [astuple(message) for message in self.dead_letters],
        }

    def load(self, content: dict[str, Any]) -> None:
        """Take over what `as_json` gave."""
        self._sent = content["sent"]
        self.messages = {row[0]: SqsMessage(*row) for row in content["messages"]}
        self.dead_letters = [SqsMessage(*row) for row in content["dead_letters"]]


def _check_range(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise SqsError("InvalidParameterValue", f"{name} is {value}, and must be between {least} and {most}")
