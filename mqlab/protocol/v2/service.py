"""The calls of apache.rocketmq.v2.MessagingService (service.proto): requests, answers, and the table of calls.

Differs from RocketMQ: lite topics and what administrators ask of a client are absent. Four calls are there
by name alone: the proxy of 5.3.3 itself does not serve them.
"""

from typing import Annotated, Any, NamedTuple

from mqlab.protocol.v2.definition import (
    Assignment,
    ClientType,
    Endpoints,
    FilterExpression,
    Message,
    MessageQueue,
    Resource,
    Settings,
    Status,
    TransactionResolution,
    TransactionSource,
)
from mqlab.protocol.v2.protobuf import Duration, Timestamp

SERVICE = "apache.rocketmq.v2.MessagingService"


class QueryRouteRequest(NamedTuple):
    """Where are the queues of this topic?"""

    topic: Annotated[Resource, 1] = Resource()
    endpoints: Annotated[Endpoints, 2] = Endpoints()


class QueryRouteResponse(NamedTuple):
    """The queues, one entry for each id."""

    status: Annotated[Status, 1] = Status()
    message_queues: Annotated[tuple[MessageQueue, ...], 2] = ()


class QueryAssignmentRequest(NamedTuple):
    """Which queues of this topic shall I receive from?"""

    topic: Annotated[Resource, 1] = Resource()
    group: Annotated[Resource, 2] = Resource()
    endpoints: Annotated[Endpoints, 3] = Endpoints()


class QueryAssignmentResponse(NamedTuple):
    """The queues that this client shall receive from."""

    status: Annotated[Status, 1] = Status()
    assignments: Annotated[tuple[Assignment, ...], 2] = ()


class HeartbeatRequest(NamedTuple):
    """I am still here."""

    group: Annotated[Resource | None, 1] = None
    client_type: Annotated[ClientType, 2] = ClientType.UNSPECIFIED


class HeartbeatResponse(NamedTuple):
    """Heard."""

    status: Annotated[Status, 1] = Status()


class NotifyClientTerminationRequest(NamedTuple):
    """A client says that it ends, and of which group it was."""

    group: Annotated[Resource | None, 1] = None


class NotifyClientTerminationResponse(NamedTuple):
    """Heard."""

    status: Annotated[Status, 1] = Status()


class SendMessageRequest(NamedTuple):
    """The messages to be stored, all of one topic."""

    messages: Annotated[tuple[Message, ...], 1] = ()


class SendResultEntry(NamedTuple):
    """What became of one message."""

    status: Annotated[Status, 1] = Status()
    message_id: Annotated[str, 2] = ""
    transaction_id: Annotated[str, 3] = ""
    offset: Annotated[int, 4] = 0
    recall_handle: Annotated[str, 5] = ""


class SendMessageResponse(NamedTuple):
    """What became of them."""

    status: Annotated[Status, 1] = Status()
    entries: Annotated[tuple[SendResultEntry, ...], 2] = ()


class ReceiveMessageRequest(NamedTuple):
    """Give me messages of this queue, and hide them from others for a while.

    With `auto_renew` the server decides for how long, and makes it longer while the client lives.
    """

    group: Annotated[Resource, 1] = Resource()
    message_queue: Annotated[MessageQueue, 2] = MessageQueue()
    filter_expression: Annotated[FilterExpression, 3] = FilterExpression()
    batch_size: Annotated[int, 4] = 0
    invisible_duration: Annotated[Duration | None, 5] = None
    auto_renew: Annotated[bool, 6] = False
    long_polling_timeout: Annotated[Duration | None, 7] = None
    attempt_id: Annotated[str | None, 8] = None


class ReceiveMessageResponse(NamedTuple):
    """One of three: the status (first), a message, the time of the delivery (last)."""

    status: Annotated[Status | None, 1] = None
    message: Annotated[Message | None, 2] = None
    delivery_timestamp: Annotated[Timestamp | None, 3] = None


class AckMessageEntry(NamedTuple):
    """A message that is done."""

    message_id: Annotated[str, 1] = ""
    receipt_handle: Annotated[str, 2] = ""


class AckMessageRequest(NamedTuple):
    """These messages are done."""

    group: Annotated[Resource, 1] = Resource()
    topic: Annotated[Resource, 2] = Resource()
    entries: Annotated[tuple[AckMessageEntry, ...], 3] = ()


class AckMessageResultEntry(NamedTuple):
    """What became of one of them."""

    message_id: Annotated[str, 1] = ""
    receipt_handle: Annotated[str, 2] = ""
    status: Annotated[Status, 3] = Status()


class AckMessageResponse(NamedTuple):
    """What became of them."""

    status: Annotated[Status, 1] = Status()
    entries: Annotated[tuple[AckMessageResultEntry, ...], 2] = ()


class ChangeInvisibleDurationRequest(NamedTuple):
    """Hide this message from now on for so long."""

    group: Annotated[Resource, 1] = Resource()
    topic: Annotated[Resource, 2] = Resource()
    receipt_handle: Annotated[str, 3] = ""
    invisible_duration: Annotated[Duration, 4] = Duration(0)
    message_id: Annotated[str, 5] = ""


class ChangeInvisibleDurationResponse(NamedTuple):
    """Done: the message has this handle now."""

    status: Annotated[Status, 1] = Status()
    receipt_handle: Annotated[str, 2] = ""


class ForwardMessageToDeadLetterQueueRequest(NamedTuple):
    """I give this message up: put it to the dead letters."""

    group: Annotated[Resource, 1] = Resource()
    topic: Annotated[Resource, 2] = Resource()
    receipt_handle: Annotated[str, 3] = ""
    message_id: Annotated[str, 4] = ""
    delivery_attempt: Annotated[int, 5] = 0
    max_delivery_attempts: Annotated[int, 6] = 0


class ForwardMessageToDeadLetterQueueResponse(NamedTuple):
    """The answer to it, which has a status and nothing else."""

    status: Annotated[Status, 1] = Status()


class EndTransactionRequest(NamedTuple):
    """Commit or roll back; the transaction id is that of the message's half."""

    topic: Annotated[Resource, 1] = Resource()
    message_id: Annotated[str, 2] = ""
    transaction_id: Annotated[str, 3] = ""
    resolution: Annotated[TransactionResolution, 4] = TransactionResolution.UNSPECIFIED
    source: Annotated[TransactionSource, 5] = TransactionSource.SOURCE_UNSPECIFIED


class EndTransactionResponse(NamedTuple):
    """What became of it."""

    status: Annotated[Status, 1] = Status()


class RecoverOrphanedTransactionCommand(NamedTuple):
    """Nobody has said how this message's transaction ended: what became of it?"""

    message: Annotated[Message, 1] = Message()
    transaction_id: Annotated[str, 2] = ""


class TelemetryCommand(NamedTuple):
    """What client and server tell each other unasked: settings, and questions about transactions."""

    status: Annotated[Status | None, 1] = None
    settings: Annotated[Settings | None, 2] = None
    recover_orphaned_transaction_command: Annotated[RecoverOrphanedTransactionCommand | None, 5] = None


class RecallMessageRequest(NamedTuple):
    """Take back this message, which waits for the time of its delivery."""

    topic: Annotated[Resource, 1] = Resource()
    recall_handle: Annotated[str, 2] = ""


class RecallMessageResponse(NamedTuple):
    """Which message it was."""

    status: Annotated[Status, 1] = Status()
    message_id: Annotated[str, 2] = ""


class Rpc(NamedTuple):
    """A call: its name, the classes of its messages, and which sides send more than one of them."""

    name: str
    request: type[tuple[Any, ...]]
    response: type[tuple[Any, ...]]
    client_streams: bool = False
    server_streams: bool = False

    @property
    def path(self) -> str:
        """How the call is named on the wire."""
        return f"/{SERVICE}/{self.name}"


QUERY_ROUTE = Rpc("QueryRoute", QueryRouteRequest, QueryRouteResponse)
HEARTBEAT = Rpc("Heartbeat", HeartbeatRequest, HeartbeatResponse)
SEND_MESSAGE = Rpc("SendMessage", SendMessageRequest, SendMessageResponse)
QUERY_ASSIGNMENT = Rpc("QueryAssignment", QueryAssignmentRequest, QueryAssignmentResponse)
RECEIVE_MESSAGE = Rpc("ReceiveMessage", ReceiveMessageRequest, ReceiveMessageResponse, server_streams=True)
ACK_MESSAGE = Rpc("AckMessage", AckMessageRequest, AckMessageResponse)
FORWARD_MESSAGE_TO_DEAD_LETTER_QUEUE = Rpc(
    "ForwardMessageToDeadLetterQueue", ForwardMessageToDeadLetterQueueRequest, ForwardMessageToDeadLetterQueueResponse
)
END_TRANSACTION = Rpc("EndTransaction", EndTransactionRequest, EndTransactionResponse)
TELEMETRY = Rpc("Telemetry", TelemetryCommand, TelemetryCommand, client_streams=True, server_streams=True)
NOTIFY_CLIENT_TERMINATION = Rpc(
    "NotifyClientTermination", NotifyClientTerminationRequest, NotifyClientTerminationResponse
)
CHANGE_INVISIBLE_DURATION = Rpc(
    "ChangeInvisibleDuration", ChangeInvisibleDurationRequest, ChangeInvisibleDurationResponse
)
RECALL_MESSAGE = Rpc("RecallMessage", RecallMessageRequest, RecallMessageResponse)

RPCS = {
    rpc.path: rpc
    for rpc in (
        QUERY_ROUTE, HEARTBEAT, SEND_MESSAGE, QUERY_ASSIGNMENT, RECEIVE_MESSAGE, ACK_MESSAGE,
        FORWARD_MESSAGE_TO_DEAD_LETTER_QUEUE, END_TRANSACTION, TELEMETRY, NOTIFY_CLIENT_TERMINATION,
        CHANGE_INVISIBLE_DURATION, RECALL_MESSAGE,
    )
}  # fmt: skip
"""Every call that a proxy serves, by its path."""

UNIMPLEMENTED = frozenset(f"/{SERVICE}/{name}" for name in ("PullMessage", "UpdateOffset", "GetOffset", "QueryOffset"))
"""Paths of calls that the service has and a proxy of 5.3.3 refuses as not implemented."""
