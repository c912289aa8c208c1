"""A kitchen that also pops in order, asks for another invisible time, and acknowledges by a handle of its choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqlab.protocol import Message
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.extra_info import parse_handle
from mqlab.protocol.headers import (
    AckMessageRequestHeader,
    ChangeInvisibleTimeRequestHeader,
    ChangeInvisibleTimeResponseHeader,
    PopMessageRequestHeader,
)
from mqlab.scenarios.merge_buffer import GROUP, TOPIC, Kitchen
from mqlab.scenarios.registry import scenario, story
from mqlab.sim import public_call

if TYPE_CHECKING:
    from mqlab.lab import Lab
    from mqlab.protocol.message import MessageExt

READY_MS = 12_000


class OrderedKitchen(Kitchen):
    """A client that pops `Orders` by hand, in order if it likes."""

    @public_call
    async def take(self, attempt: str, most: int, *, invisible_ms: int = 60_000) -> list[MessageExt]:
        """Pop in order, under the name of an attempt; nothing while the queue is blocked for this attempt."""
        from mqlab.client.consumer.pop.pop_result import process_pop_response

        header = PopMessageRequestHeader(
            GROUP, TOPIC, -1, most, invisible_ms, 0, self.node.now_ms(), 0, "TAG", "*", order=True, attempt_id=attempt
        )
        response = await self._call(RemotingCommand.request(RequestCode.POP_MESSAGE, header))
        return process_pop_response(response, self._broker.name, self._broker.address, TOPIC, order=True).msg_found_list

    @public_call
    async def change(self, order: MessageExt, invisible_ms: int) -> tuple[int, int]:
        """Ask for another invisible time, from now on; the pop time and the invisible time of the answer."""
        handle = parse_handle(order.properties["POP_CK"])
        header = ChangeInvisibleTimeRequestHeader(
            GROUP,
            handle.real_topic(TOPIC, GROUP),
            handle.queue_id,
            handle.encode(),
            handle.queue_offset,
            invisible_ms,
        )
        response = await self._call(RemotingCommand.request(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, header))
        said = response.header_as(ChangeInvisibleTimeResponseHeader)
        return said.pop_time, said.invisible_time

    @public_call
    async def ack_by(self, text: str) -> int:
        """Acknowledge with this handle; the code of the answer, 0 for success."""
        handle = parse_handle(text)
        topic = handle.real_topic(TOPIC, GROUP)
        header = AckMessageRequestHeader(GROUP, topic, handle.queue_id, text, handle.queue_offset)
        return int((await self._call(RemotingCommand.request(RequestCode.ACK_MESSAGE, header))).code)


async def open_ordered_kitchen(lab: Lab, orders: int, **broker: Any) -> OrderedKitchen:
    """A broker with one queue of `Orders` and so many orders in it, and a kitchen that has taken none yet."""
    lab.name_server()
    lab.broker("broker-a", **broker)
    lab.create_topic(TOPIC, 1)
    shop = lab.producer("shop", node="shop")
    await shop.start()
    for number in range(orders):
        await shop.send(Message(TOPIC, b"order %d" % number, keys=f"order-{number}"))
    kitchen = OrderedKitchen(lab)
    await kitchen.open()
    lab.run_for(ms=READY_MS - lab.now_ms)
    return kitchen


IN_ORDER = story("""
    MessageStored 5 broker-a: Five orders wait in one queue. A guest wants the soup before the roast.
    OrderTaken 1 kitchen: The kitchen takes three of them in order. Its request has a name, an attempt.
    OrderAcked 1 kitchen: The first order is done, so the group's place moves on by one.
    OrderAcked 2 broker-a: The third is done, but not the second. The place stays in front of the second.
    OrderBlocked 1 other-cook: Another cook asks, under an attempt of his own, and gets nothing: the queue is blocked.
    OrderTaken 2 kitchen: The kitchen asks again, as the same attempt. It gets three from the second order on.
    OrderAcked 5 broker-a: Now all of the batch is done, one order of it twice. The queue is free.
    OrderTaken 3 other-cook: The other cook asks again, and gets the last order.
""")


@scenario("in-order", seconds=5, captions=IN_ORDER)
async def in_order(lab: Lab, *, orders: int = 5, taken: int = 3) -> None:
    """Two cooks pop in order: one takes a batch and does the second order late, the other one is turned away."""
    kitchen = await open_ordered_kitchen(lab, orders)
    other = OrderedKitchen(lab, "other-cook")
    await other.open()
    batch = await kitchen.take("monday", taken)
    await kitchen.ack(batch[0], *batch[2:])
    lab.run_for(ms=500)
    await other.take("tuesday", taken)
    lab.run_for(ms=500)
    await kitchen.ack(*await kitchen.take("monday", taken))
    lab.run_for(ms=500)
    await other.take("tuesday", taken)
