"""An application that pops by itself, in commands: it acknowledges soon, late or never, and asks for other times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.client import ServiceState
from mqlab.errors import MqlabError
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.extra_info import parse_handle
from mqlab.protocol.headers import (
    AckMessageRequestHeader,
    ChangeInvisibleTimeRequestHeader,
    ChangeInvisibleTimeResponseHeader,
    PopMessageRequestHeader,
)
from mqlab.protocol.message import MessageConst
from mqlab.scenarios.numbered import FAILURES, TOPIC, number_of

if TYPE_CHECKING:
    from mqlab.client import DefaultMQProducer
    from mqlab.lab import Lab
    from mqlab.protocol.extra_info import ReceiptHandle
    from mqlab.protocol.message import MessageExt

POPPERS = "poppers"
POLL_MS = 5_000
CALL_MS = 3_000
PAUSE_MS = 1_000
"""How long the application waits when a pop has failed."""


class Popper:
    """One process of a group that pops a topic with its own hands; `lazy_in` says how many of its messages are not
    acknowledged in time: one in so many, by a draw.

    It works on one message after the other, with several threads. In order it has one thread.
    """

    def __init__(
        self, lab: Lab, group: str = POPPERS, *, order: bool = False, invisible_ms: int = 10_000, lazy_in: int = 8
    ) -> None:
        self._connection: DefaultMQProducer = lab.producer(f"connection of {group}".replace(" ", "-"))
        self._broker = lab.brokers[0]
        self._group = group
        self._order = order
        self._invisible_ms = invisible_ms
        self._lazy_in = lazy_in
        self._node = self._connection.node
        self._lab = lab

    async def start(self, threads: int = 2) -> None:
        """Begin to pop; a process that is started again goes on by itself."""
        await self._connection.start()
        process = self._lab.processes[self._node.name]
        for number in range(1 if self._order else threads):
            process.run_in_each_life(f"pop {number}", self._pop_forever)  # type: ignore[attr-defined]

    # -- popping ----------------------------------------------------------------------------------------------------

    async def _pop_forever(self) -> None:
        attempt = 0
        while True:
            attempt += 1
            if self._connection.impl.service_state is not ServiceState.RUNNING:
                await self._node.sleep(PAUSE_MS)
                continue
            try:
                messages = await self._pop(f"{self._node.name}-{self._node.life.number}-{attempt}")
            except FAILURES:
                await self._node.sleep(PAUSE_MS)
                continue
            for message in messages:
                # An entry that a loss of power has left may give a message of the timer.
                if MessageConst.REAL_TOPIC not in message.properties:
                    number_of(message)
                await self._work_on(message)

    async def _pop(self, attempt_id: str) -> list[MessageExt]:
        from mqlab.client.consumer.pop.pop_result import process_pop_response

        header = PopMessageRequestHeader(
            consumer_group=self._group,
            topic=TOPIC,
            queue_id=-1,
            max_msg_nums=8,
            invisible_time=self._invisible_ms,
            poll_time=POLL_MS,
            born_time=self._node.now_ms(),
            init_mode=0,
            exp_type="TAG",
            exp="*",
            order=self._order,
            attempt_id=attempt_id,
        )
        request = RemotingCommand.request(RequestCode.POP_MESSAGE, header)
        response = await self._call(request, POLL_MS + CALL_MS)
        return process_pop_response(
            response, self._broker.name, self._broker.address, TOPIC, order=self._order
        ).msg_found_list

    async def _call(self, request: RemotingCommand, timeout_ms: int) -> RemotingCommand:
        remoting = self._connection.impl.instance.api.remoting_client
        return await remoting.invoke_sync(self._broker.address, request, timeout_ms)

    # -- what becomes of a message ----------------------------------------------------------------------------------

    async def _work_on(self, message: MessageExt) -> None:
        """Mostly acknowledge at once; else late, never, or after having asked for more or less time."""
        draw, handle = self._node.choose, parse_handle(message.properties[MessageConst.POP_CK])
        await self._node.sleep(draw("work", 40))
        if draw("lazy", self._lazy_in):
            await self._ack(handle)
            return
        kind = draw("kind of laziness", 4)
        if kind == 1:
            self._node.spawn(self._ack_later(handle, draw("late", 2 * self._invisible_ms)), "a late ack")
        elif kind == 2:
            self._node.spawn(self._change(handle, 1_000 + draw("time", 2 * self._invisible_ms)), "another time")
        elif kind == 3:
            await self._node.sleep(draw("slow", self._invisible_ms // 2))
            await self._ack(handle)

    async def _ack_later(self, handle: ReceiptHandle, ms: int) -> None:
        await self._node.sleep(ms)
        await self._ack(handle)

    async def _ack(self, handle: ReceiptHandle) -> None:
        header = AckMessageRequestHeader(
            self._group, handle.real_topic(TOPIC, self._group), handle.queue_id, handle.encode(), handle.queue_offset
        )
        try:
            await self._call(RemotingCommand.request(RequestCode.ACK_MESSAGE, header), CALL_MS)
        except FAILURES:
            return

    async def _change(self, handle: ReceiptHandle, invisible_ms: int) -> None:
        """Ask for another invisible time, and acknowledge under the new handle, or leave it at that."""
        topic = handle.real_topic(TOPIC, self._group)
        header = ChangeInvisibleTimeRequestHeader(
            self._group, topic, handle.queue_id, handle.encode(), handle.queue_offset, invisible_ms
        )
        request = RemotingCommand.request(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, header)
        try:
            response = await self._call(request, CALL_MS)
            said = response.header_as(ChangeInvisibleTimeResponseHeader)
        except MqlabError:
            return
        if response.code == 0 and said.pop_time and self._node.choose("then", 2):
            await self._node.sleep(self._node.choose("until", invisible_ms))
            await self._ack(handle.changed(topic, *said))
