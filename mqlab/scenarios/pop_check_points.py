"""A worker that pops by hand, and what a broker notes of it: check points and acknowledgements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab.errors import MQBrokerException
from mqlab.protocol import Message
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.extra_info import ReceiptHandle, parse_handle
from mqlab.protocol.headers import (
    AckMessageRequestHeader,
    ChangeInvisibleTimeRequestHeader,
    ChangeInvisibleTimeResponseHeader,
    PopMessageRequestHeader,
)
from mqlab.protocol.pop_check_point import (
    ACK_TAG,
    BATCH_ACK_TAG,
    CK_TAG,
    AckMsg,
    BatchAckMsg,
    PopCheckPoint,
    revive_topic,
)
from mqlab.protocol.record import decode_record
from mqlab.protocol.topics import TIMER_TOPIC
from mqlab.scenarios.registry import scenario, story
from mqlab.sim import public_call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mqlab.lab import Lab
    from mqlab.protocol.message import MessageExt

TOPIC = "Orders"
GROUP = "kitchen"
REVIVE_TOPIC = revive_topic("DefaultCluster")
RETRY_TOPIC = f"%RETRY%{GROUP}_{TOPIC}"
WHEEL_TOPIC = TIMER_TOPIC
KINDS: dict[str, type[PopCheckPoint | AckMsg]] = {CK_TAG: PopCheckPoint, ACK_TAG: AckMsg, BATCH_ACK_TAG: BatchAckMsg}
CALL_MS = 60_000


def handle_of(message: MessageExt) -> ReceiptHandle:
    """The receipt handle of a popped message."""
    return parse_handle(message.properties["POP_CK"])


class Worker:
    """A client that pops, and acknowledges only what it is told to acknowledge.

    It is a member of `group` on a machine of its own, and talks to the first broker of the lab. `await worker.open()`
    makes the connection.
    """

    call_name = "worker"

    def __init__(self, lab: Lab, name: str = "worker", group: str = GROUP) -> None:
        self.lab = lab
        self.group = group
        self._broker = lab.brokers[0]
        self._connection = lab.producer("connection", node=name)
        self.node = self._connection.node

    @public_call
    async def open(self) -> None:
        """Connect to the broker."""
        await type(self._connection).start.inside(self._connection)  # type: ignore[attr-defined]  # see public_call

    @public_call
    async def pop(self, most: int = 32, *, invisible_ms: int = 30_000, tags: str = "*") -> list[MessageExt]:
        """At most so many orders, which nobody else of the group gets for `invisible_ms`; none when there are none."""
        from mqlab.client.consumer.pop.pop_result import process_pop_response

        header = PopMessageRequestHeader(
            self.group, TOPIC, -1, most, invisible_ms, 0, self.node.now_ms(), 0, "TAG", tags, False
        )
        response = await self._call(RequestCode.POP_MESSAGE, header, None)
        return process_pop_response(response, self._broker.name, self._broker.address, TOPIC).msg_found_list

    @public_call
    async def ack(self, *messages: MessageExt) -> None:
        """Say of each of these messages, in a request of its own, that it is done."""
        for message in messages:
            handle = handle_of(message)
            topic = handle.real_topic(TOPIC, self.group)
            text = message.properties["POP_CK"]
            header = AckMessageRequestHeader(self.group, topic, handle.queue_id, text, handle.queue_offset)
            await self._checked(RequestCode.ACK_MESSAGE, header, None)

    @public_call
    async def ack_together(self, messages: Sequence[MessageExt]) -> None:
        """Say in one request that all of these messages are done."""
        from mqlab.client.pop_client_api import batch_ack_body

        handles = [message.properties["POP_CK"] for message in messages]
        await self._checked(RequestCode.BATCH_ACK_MESSAGE, None, batch_ack_body(TOPIC, self.group, handles).encode())

    @public_call
    async def hide(self, message: MessageExt, invisible_ms: int) -> None:
        """Let a popped message be invisible for so long from now on; it has a new receipt handle then."""
        handle = handle_of(message)
        topic = handle.real_topic(TOPIC, self.group)
        text = message.properties["POP_CK"]
        header = ChangeInvisibleTimeRequestHeader(
            self.group, topic, handle.queue_id, text, handle.queue_offset, invisible_ms
        )
        response = await self._checked(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, header, None)
        said = response.header_as(ChangeInvisibleTimeResponseHeader)
        message.properties["POP_CK"] = handle.changed(topic, *said).encode()

    async def _checked(self, code: RequestCode, header: object, body: bytes | None) -> RemotingCommand:
        response = await self._call(code, header, body)
        if response.code != 0:
            raise MQBrokerException(response.code, response.remark or "", self._broker.address)
        return response

    async def _call(self, code: RequestCode, header: object, body: bytes | None) -> RemotingCommand:
        remoting = self._connection.impl.instance.api.remoting_client
        return await remoting.invoke_sync(self._broker.address, RemotingCommand.request(code, header, body), CALL_MS)

    def __repr__(self) -> str:
        return f"<Worker {self.node.name} of {self.group}>"


class Note(NamedTuple):
    """A check point or an acknowledgement as it lies in a topic, and when it is due, in ms of the lab's time."""

    kind: str
    due_ms: int
    content: PopCheckPoint | AckMsg


def notes_in(lab: Lab, topic: str = WHEEL_TOPIC, queue_id: int = 0) -> list[Note]:
    """The check points and acknowledgements in a queue of the first broker."""
    queue = lab.queue(topic, queue_id)
    notes = []
    for place in range(queue.min_offset, queue.max_offset):
        message = decode_record(queue.record_bytes(place))
        kind = message.properties["TAGS"]
        due_ms = int(message.properties["TIMER_DELIVER_MS"]) - lab.world.epoch_ms
        notes.append(Note(kind, due_ms, KINDS[kind].decode(message.body)))
    return notes


async def open_counter(
    lab: Lab, orders: int, *, queues: int = 1, tags: tuple[str, ...] = ("hot",), **broker: Any
) -> Worker:
    """A broker with so many `Orders`, which have these tags in turn, and a worker who has taken none."""
    lab.name_server()
    lab.broker("broker-a", **broker)
    lab.create_topic(TOPIC, queues)
    counter = lab.producer("counter", node="counter")
    await counter.start()
    for number in range(orders):
        tag = tags[number // queues % len(tags)]
        await counter.send(Message(TOPIC, b"order %d" % number, tags=tag, keys=f"order-{number}"))
    worker = Worker(lab)
    await worker.open()
    lab.run_for(ms=10)
    return worker


CHECK_POINTS = story("""
    PopReceived 1 worker: A worker asks for orders. It owns no queue; whoever asks gets some.
    CheckPointMade 1 broker-a: The broker hands them out, and writes down which: a check point.
    AckReceived 1 worker: The worker says of one order that it is done.
    AckStored 1 broker-a: The broker writes this down as well, as a message beside the check point.
    ReviveCheckPointRead 1 broker-a: Shortly before the time of the orders is over the reviver reads the check point.
    ReviveAckRead 1 broker-a: Then the acknowledgements. Each sets a bit of the check point.
    MessageRevived 1 broker-a: For whatever has no bit a copy is stored, and somebody gets the order again.
""")


@scenario("pop-check-points", seconds=40, captions=CHECK_POINTS)
async def pop_check_points(lab: Lab, *, orders: int = 6, acked: int = 3, invisible_ms: int = 20_000) -> None:
    """A worker pops orders and acknowledges some of them: check point, acks, and the others come back."""
    worker = await open_counter(lab, orders)
    popped = await worker.pop(invisible_ms=invisible_ms)
    await worker.ack(*popped[:acked])
