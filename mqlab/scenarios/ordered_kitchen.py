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
        return process_pop_response(response, self._broker.name, self._address, TOPIC, order=True).msg_found_list

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
