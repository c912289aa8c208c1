"""The scenarios of the merge buffer: a cook who takes orders for a while, a broker that remembers, and its end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab.lab import Lab
from mqlab.protocol import Message
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.extra_info import parse_handle
from mqlab.protocol.headers import AckMessageRequestHeader, PopMessageRequestHeader
from mqlab.protocol.record import decode_record
from mqlab.scenarios.registry import scenario, story
from mqlab.sim import public_call

if TYPE_CHECKING:
    from mqlab.protocol.message import MessageExt

TOPIC = "Orders"
GROUP = "kitchen"
REVIVE_TOPIC = "rmq_sys_REVIVE_LOG_DefaultCluster"
WHEEL_TOPIC = "rmq_sys_wheel_timer"
CALL_MS = 5_000
COMES_MS = 8_000
"""So long behind the end of its invisible time an order that nobody did has come again."""
FLUSHED_SOON_MS = 500
"""How often the broker of these scenarios writes offsets to its disk; RocketMQ's setting is 5000."""
QUEUE_FILE_BYTES = 20_000
"""Small files: a broker that was killed reads them whole."""


class Kitchen:
    """A client that pops `Orders` by hand and acknowledges what it likes; everything else lies with the broker."""

    def __init__(self, lab: Lab, name: str = GROUP) -> None:
        self._connection = lab.producer("connection", node=name)
        self.node = self._connection.node
        self._broker = lab.brokers[0]

    @public_call
    async def open(self) -> None:
        """Connect to the broker."""
        await type(self._connection).start.inside(self._connection)  # type: ignore[attr-defined]  # see public_call

    @public_call
    async def pop(self, most: int = 32, *, invisible_ms: int = 60_000) -> list[MessageExt]:
        """Take at most so many orders, which nobody else gets for that long; without waiting for new ones."""
        from mqlab.client.consumer.pop.pop_result import process_pop_response

        header = PopMessageRequestHeader(
            GROUP, TOPIC, -1, most, invisible_ms, 0, self.node.now_ms(), 0, "TAG", "*", order=False
        )
        response = await self._call(RemotingCommand.request(RequestCode.POP_MESSAGE, header))
        return process_pop_response(response, self._broker.name, self._broker.address, TOPIC).msg_found_list

    @public_call
    async def ack(self, *orders: MessageExt) -> None:
        """Tell the broker that these orders are done."""
        for order in orders:
            handle = parse_handle(order.properties["POP_CK"])
            topic = handle.real_topic(TOPIC, GROUP)
            header = AckMessageRequestHeader(GROUP, topic, handle.queue_id, handle.encode(), handle.queue_offset)
            await self._call(RemotingCommand.request(RequestCode.ACK_MESSAGE, header))

    async def _call(self, request: RemotingCommand) -> RemotingCommand:
        remoting = self._connection.impl.instance.api.remoting_client
        return await remoting.invoke_sync(self._broker.address, request, CALL_MS)


def open_kitchen(lab: Lab, orders: int, *, buffer: bool, **broker: Any) -> Kitchen:
    """A broker with one queue of `Orders` and so many orders in it, and a kitchen that has taken none yet."""
    lab.name_server()
    settings = {
        "flush_consumer_offset_interval": FLUSHED_SOON_MS,
        "mapped_file_size_consume_queue": QUEUE_FILE_BYTES,
        **broker,
    }
    lab.broker("broker-a", enable_pop_buffer_merge=buffer, **settings)
    lab.create_topic(TOPIC, 1)
    shop = lab.producer("shop", node="shop")
    lab.run(shop.start())
    for number in range(orders):
        lab.run(shop.send(Message(TOPIC, b"order %d" % number, keys=f"order-{number}")))
    kitchen = Kitchen(lab)
    lab.run(kitchen.open())
    lab.run_for(ms=12_000 - lab.now_ms)
    return kitchen


def records_of_pops(lab: Lab) -> dict[str, int]:
    """How many records the broker's commit log has of check points and acknowledgements: while they waited, and due."""
    stored = [record.topic for record in lab.history.find("MessageStored")]
    return {"waiting": stored.count(WHEEL_TOPIC), "due": stored.count(REVIVE_TOPIC)}


def note(lab: Lab, number: int) -> dict[str, Any]:
    """The check point or acknowledgement that was stored as the `number`-th, waiting for its time."""
    body = decode_record(lab.queue(WHEEL_TOPIC).record_bytes(number)).body
    members: dict[str, Any] = json.loads(body)
    return members


def cook(lab: Lab, kitchen: Kitchen, batches: int, size: int, *, work_ms: int, late: int, late_ms: int) -> None:
    """Pop batch after batch, each half a second behind the last; the first `late` of them have an order that takes
    `late_ms`, all other orders take `work_ms`.
    """

    async def work(number: int) -> None:
        orders = await type(kitchen).pop.inside(kitchen, size)  # type: ignore[attr-defined]  # see public_call
        await kitchen.node.sleep(work_ms)
        ack = type(kitchen).ack.inside  # type: ignore[attr-defined]  # see public_call
        await ack(kitchen, *(orders[1:] if number < late else orders))
        if number < late:
            await kitchen.node.sleep(late_ms - work_ms)
            await ack(kitchen, orders[0])

    for number in range(batches):
        kitchen.node.spawn(work(number), f"batch {number}")
        lab.run_for(ms=500)


BUFFERED = story("""
    CheckPointMade 1 broker-a: The kitchen asks for orders. The broker notes what it will give away: a check point.
    MessagePopped 4 kitchen: The kitchen has four orders, and nobody else gets them for a minute.
    AckBuffered 1 broker-a: An order is done. The broker ticks it off in memory; nothing is written.
    CheckPointMerged 1 broker-a: All four orders of the second batch are done, so its check point is forgotten.
    CheckPointMerged 5 broker-a: Five batches are done. And yet the group's place has not moved: the first is not.
    CheckPointStored 1 broker-a: After ten seconds in memory the check point of the first batch goes to the store.
    AckStored 1 broker-a: And so do the orders of it that were ticked off.
    OffsetCommitted 2 broker-a: Only now the group's place moves: a restart begins here.
    AckStored 4 broker-a: The last order is done after twelve seconds. That is written at once.
""")


@scenario("merge-buffer", seconds=20, captions=BUFFERED)
async def merge_buffer(
    lab: Lab, *, buffer: bool = True, batches: int = 6, size: int = 4, late: int = 1, work_ms: int = 400
) -> None:
    """A kitchen pops orders in batches and acknowledges them; one order in each of the first batches takes 12 s."""
    kitchen = open_kitchen(lab, batches * size, buffer=buffer)
    cook(lab, kitchen, batches, size, work_ms=work_ms, late=late, late_ms=12_000)


class Evening(NamedTuple):
    """What came of an evening: the world, and each order that came again: key, reconsumeTimes, s behind its pop."""

    lab: Lab
    again: list[tuple[str, int, float]]

    def keys(self) -> list[str]:
        """The orders that came again, in the order of their numbers, each once."""
        return sorted({key for key, _, _ in self.again}, key=lambda key: int(key.partition("-")[2]))


def evening(
    seed: int | str, popped: int, done: int, how: str, after_s: float, *, buffer: bool, invisible_s: int = 40
) -> Evening:
    """A kitchen pops so many orders at once and does the first few; `after_s` behind the pop its broker ends and comes
    back. Then it pops every half second until every order that shall come again has come.

    `how` is "killed" (kill -9) or "stopped" (in good order).
    """
    lab = Lab(seed)
    kitchen = open_kitchen(lab, popped, buffer=buffer)
    popped_ms = lab.now_ms
    orders = lab.run(kitchen.pop(popped, invisible_ms=invisible_s * 1_000))
    lab.run(kitchen.ack(*orders[:done]))
    lab.run_for(ms=popped_ms + after_s * 1_000 - lab.now_ms)
    if how == "stopped":
        lab.run(lab.brokers[0].running().shutdown())
    lab.crash("broker-a")
    lab.restart("broker-a")
    again: list[tuple[str, int, float]] = []
    while lab.now_ms < popped_ms + invisible_s * 1_000 + COMES_MS:
        lab.run_for(ms=500)
        for order in lab.run(kitchen.pop(invisible_ms=300_000)):
            seconds = round((lab.now_ms - popped_ms) / 1_000, 1)
            again.append((order.keys or "", order.reconsume_times, seconds))
    return Evening(lab, again)
