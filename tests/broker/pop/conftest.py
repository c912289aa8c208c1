"""A client that pops, in commands alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.extra_info import ReceiptHandle
from mqlab.protocol.pop_check_point import BatchAck, BatchAckMessageRequestBody, bits_of
from mqlab.protocol.record import scan_records


def batch_ack_of(op: dict[str, Any], handles: list[ReceiptHandle]) -> bytes:
    """The body in which the recorded client acknowledged the messages of these handles as one."""
    first = handles[0]
    ack = BatchAck(
        op["group"],
        op["topic"],
        first.retry,
        first.start_offset,
        first.queue_id,
        first.revive_qid,
        first.pop_time,
        first.invisible_time,
        bits_of(handle.queue_offset - first.start_offset for handle in handles),
    )
    return BatchAckMessageRequestBody("broker-a", [ack]).encode()


class Popper:
    """What a client that pops says to a broker; topic T and group G unless told."""

    def __init__(self, cluster: Any, raw: Any) -> None:
        self.cluster = cluster
        self.raw = raw

    def header(self, topic: str = "T", **more: Any) -> h.PopMessageRequestHeader:
        """A pop of all queues for at most 32 messages for 10 s, which does not wait."""
        values: dict[str, Any] = {
            "consumer_group": "G",
            "queue_id": -1,
            "max_msg_nums": 32,
            "invisible_time": 10_000,
            "poll_time": 0,
            "born_time": self.cluster.broker_node.now_ms(),
            "init_mode": 0,
            "exp_type": "TAG",
            "exp": "*",
            "order": False,
            **more,
        }
        return h.PopMessageRequestHeader(topic=topic, **values)

    def begin(self, topic: str = "T", **more: Any) -> Any:
        """Pop; the future of the answer."""
        return self.raw.begin(RequestCode.POP_MESSAGE, self.header(topic, **more))

    def pop(self, topic: str = "T", **more: Any) -> RemotingCommand:
        """Pop and play until the answer is there."""
        answer: RemotingCommand = self.raw.call(RequestCode.POP_MESSAGE, self.header(topic, **more))
        return answer

    def pop_again(self, op: dict[str, Any]) -> RemotingCommand:
        """Ask what a real broker was asked; the random number is one that begins where it began."""
        found = op.get("messages") or [{"queueId": 0, "POP_CK": "0 0 0 0 0"}]
        first = next((m for m in found if m["POP_CK"].split()[4] == "0"), found[0])
        self.random_q(40 + first["queueId"])
        return self.pop(
            op["topic"],
            consumer_group=op["group"],
            queue_id=op["queueId"],
            max_msg_nums=op["maxMsgNums"],
            invisible_time=op["invisibleTime"],
            poll_time=op["pollTime"],
            order=op["order"],
            exp=op["exp"],
            attempt_id=op.get("attemptId"),
            init_mode=op["initMode"],
        )

    def bodies(self, topic: str = "T", **more: Any) -> list[bytes]:
        """Pop; the bodies of what came."""
        return [message.body for message in scan_records(self.pop(topic, **more).body or b"")]

    def notification_header(self, topic: str = "T", **more: Any) -> h.NotificationRequestHeader:
        """Is there anything? Without waiting."""
        values: dict[str, Any] = {
            "consumer_group": "G",
            "queue_id": -1,
            "poll_time": 0,
            "born_time": self.cluster.broker_node.now_ms(),
            **more,
        }
        return h.NotificationRequestHeader(topic=topic, **values)

    def begin_asking(self, topic: str = "T", **more: Any) -> Any:
        """Ask whether there is something to pop; the future of the answer."""
        return self.raw.begin(RequestCode.NOTIFICATION, self.notification_header(topic, **more))

    def ask(self, topic: str = "T", **more: Any) -> tuple[bool, bool]:
        """Ask whether there is something to pop, and play: has a message, polling is full."""
        response = self.raw.call(RequestCode.NOTIFICATION, self.notification_header(topic, **more))
        header = response.header_as(h.NotificationResponseHeader)
        return header.has_msg, header.polling_full

    def send(self, *bodies: bytes, topic: str = "T", **more: Any) -> None:
        """Send messages and let the broker dispatch them."""
        for body in bodies:
            assert self.raw.send(topic, body, **more).code == 0
        self.cluster.run(2)

    def random_q(self, *values: int, point: str = "pop-random-q") -> None:
        """Say what the next draws of a pop's random number shall give."""
        choices, name = self.cluster.world.choices, f"broker-a/{point}"
        made = choices.point(name).made
        for place, value in enumerate(values):
            choices.override(name, made + place, value)

    def offset(self, queue_id: int = 0, topic: str = "T", group: str = "G") -> int:
        """The committed offset."""
        offset: int = self.cluster.broker.consumer_offset_manager.query_offset(group, topic, queue_id)
        return offset

    def seen(self, kind: str) -> list[dict[str, Any]]:
        """The events of a kind so far."""
        return self.cluster.seen(kind)  # type: ignore[no-any-return]


@pytest.fixture
def popper(cluster: Any, client: Any) -> Popper:
    """A client that pops from the cluster with topic T."""
    return Popper(cluster, client)


@pytest.fixture
def make_popper(make_cluster: Callable[..., Any]) -> Callable[..., Popper]:
    """Make a cluster with settings of one's own, a topic T with `queues` queues, and a client that pops from it."""

    def make(queues: int = 1, **settings: Any) -> Popper:
        cluster = make_cluster(**settings)
        cluster.topic("T", queues)
        return Popper(cluster, cluster.client())

    return make
