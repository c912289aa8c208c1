"""Goals of pulling: held pulls, flow control, filters, and listeners that fail."""

from __future__ import annotations

from typing import ClassVar

from mqlab.explore.rule import Case
from mqlab.explore.sights.sights import Sights, seen
from mqlab.protocol.codes import ResponseCode
from mqlab.trace.record import Record


class SightsOfPulling(Sights):
    """Pulling: what is held, put off, refused, and left out."""

    SUBJECT = "pulling"
    SEEN = (
        seen(
            "held-pull-is-woken", "PullWoken",
            "A pull that is held is answered since a message has come.", reason="arrived",
        ),
        seen(
            "held-pull-times-out", "PullWoken",
            "A pull that is held is answered since its time is up.", reason="timed out",
        ),
        seen(
            "too-many-messages-held", "FlowControlled",
            "A consumer does not pull, since it holds too many messages of a queue.", reason="count",
        ),
        seen(
            "too-many-bytes-held", "FlowControlled",
            "A consumer does not pull, since what it holds of a queue is too large.", reason="size",
        ),
        seen(
            "span-of-offsets-too-wide", "FlowControlled",
            "A consumer does not pull, since the offsets that it holds lie too far apart.", reason="span",
        ),
        seen(
            "too-much-unacknowledged", "FlowControlled",
            "A consumer that pops does not pop, since too many of its messages wait for their acknowledgement.",
            reason="unacked",
        ),
        seen(
            "lite-pull-holds-too-much", "FlowControlled",
            "A lite pull consumer does not pull, since it holds too much of all its queues together.", reason="all",
        ),
        seen(
            "consumer-is-suspended", "PullPutOff",
            "A consumer does not pull, since its application has suspended it.", reason="the consumer is suspended",
        ),
        seen(
            "broker-does-not-know-the-newest-subscription", "RequestRejected",
            "A broker refuses a pull, since it knows an older subscription of the group.",
            code=ResponseCode.SUBSCRIPTION_NOT_LATEST,
        ),
        seen(
            "broker-does-not-know-the-subscription", "RequestRejected",
            "A broker that does not know the members of a group any more refuses a pull of one.",
            code=ResponseCode.SUBSCRIPTION_NOT_EXIST,
        ),
        seen(
            "broker-does-not-know-the-group", "RequestRejected",
            "A broker refuses a request of a group that it does not know.",
            code=ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
        ),
        seen(
            "request-is-refused-for-its-permission", "RequestRejected",
            "A broker refuses a request, since the topic, the group or the broker does not permit it.",
            code=ResponseCode.NO_PERMISSION,
        ),
        seen(
            "listener-gets-several-messages", "ConsumeStarted",
            "A listener is called with more than one message.", lambda r: r.messages > 1,
        ),
        seen(
            "pull-task-fails", "PullTaskFailed", "The application's task of a schedule service raises an error.",
        ),
        seen(
            "pull-task-ends-while-it-runs", "PullTaskEnded",
            "The task of a schedule service is cancelled while it is at work.", reason="it was cancelled while it ran",
        ),
        seen(
            "cold-read-is-held", "ColdDataPullHeld",
            "A pull is held, since its group has read too much that is no longer in memory.",
        ),
    )  # fmt: skip
    GOALS: ClassVar[dict[str, str]] = {
        "member-leaves-while-its-pull-is-held": "A broker holds a pull of a client that ends.",
        "message-given-back-while-its-listener-works": (
            "A consumer gives a message back although its listener is still at work on it, since that takes too long."
        ),
    }
    FOLLOWS = (
        "PullHeld", "PullWoken", "ClientRegistered", "ClientUnregistered", "ConsumeStarted", "ConsumeFinished",
        "MessageGivenBack",
    )  # fmt: skip

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._held: dict[tuple[str, str], dict[int, None]] = {}
        """(broker, the client's address) -> the numbers of its pulls that are held."""
        self._remote_of: dict[tuple[str, str], str] = {}
        """(broker, client) -> its address."""
        self._at_work: dict[tuple[str, str, str, int, int], None] = {}
        """(process, group, broker, queue id, offset) of the messages that a listener was called with, and not done."""

    def follow(self, record: Record) -> None:
        """Note what is held, and what listeners are at."""
        if record.kind == "PullHeld":
            self._held.setdefault((record.node, record.remote), {})[record.opaque] = None
        elif record.kind == "PullWoken":
            self._held.get((record.node, record.remote), {}).pop(record.opaque, None)
        elif record.kind == "ClientRegistered":
            self._remote_of[record.node, record.client_id] = record.remote
        elif record.kind == "ClientUnregistered":
            if self._held.pop((record.node, self._remote_of.get((record.node, record.client_id), "")), None):
                self.reach("member-leaves-while-its-pull-is-held", record)
        else:
            delivery = (record.node, record.group, record.broker_name, record.queue_id, record.queue_offset)
            if record.kind == "ConsumeStarted":
                self._at_work[delivery] = None
            elif record.kind == "ConsumeFinished":
                self._at_work.pop(delivery, None)
            elif delivery in self._at_work:
                self.reach("message-given-back-while-its-listener-works", record)
