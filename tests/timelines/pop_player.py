"""A client that pops, and what became of it in the words of the recorded time-lines of Pop.

A case is a coroutine `async def case(player)` that does what was done to the real RocketMQ; times are those of the
case. Both settings of enablePopBufferMerge play the same cases.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from mqlab import Message
from mqlab.errors import RemotingException
from mqlab.protocol import extra_info
from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.extra_info import ReceiptHandle
from mqlab.protocol.message import MessageExt
from mqlab.protocol.record import scan_records
from mqlab.remoting import RemotingClient
from tests.worlds import shop, started_producer

Event = dict[str, Any]
RETRY_TOPICS = {"0": "T", "1": "%RETRY%G_T", "2": "%RETRY%G+T"}
STATUS = {
    int(ResponseCode.SUCCESS): "FOUND",
    int(ResponseCode.POLLING_TIMEOUT): "POLLING_NOT_FOUND",
    int(ResponseCode.POLLING_FULL): "POLLING_FULL",
}


class Popped(NamedTuple):
    """One message of a pop, with the handle that its client makes."""

    key: str
    handle: ReceiptHandle
    queue_offset: int
    reconsume_times: int
    first_pop_ms: int
    store_ms: int

    def told(self, epoch_ms: float) -> Event:
        """As a recording tells of it."""
        return {
            "key": self.key,
            "queueId": self.handle.queue_id,
            "queueOffset": self.queue_offset,
            "reconsumeTimes": self.reconsume_times,
            "retryFlag": self.handle.retry,
            "reviveQueue": self.handle.revive_qid,
            "firstPopTime": self.first_pop_ms - epoch_ms,
            "storeTime": self.store_ms - epoch_ms,
        }


class PopPlayer:
    """A name server, a broker with topic T of one queue, and a client of group G; t = 0 is when the case begins."""

    def __init__(self, *, seed: int = 7, phase_ms: int = 0, **broker: Any) -> None:
        self.lab = shop(seed=seed, **broker)
        self.broker = self.lab.brokers[0]
        self.producer = started_producer(self.lab, "PG", node="P")
        self.node = self.lab.world.node("A")
        self.remoting = RemotingClient(self.node)
        self.lab.run_for(ms=phase_ms)
        self.begin()

    def begin(self) -> None:
        """A case begins now."""
        self.start_us = self.lab.world.now_us
        self.epoch_ms = self.lab.world.epoch_ms + self.start_us / 1_000
        self.events: list[Event] = []

    def play(self, case: Callable[[PopPlayer], Coroutine[Any, Any, None]]) -> list[Event]:
        """Play a case to its end; its events."""
        self.lab.world.wait_for(self.node.spawn(case(self), "case").join(), 600_000_000)
        self._note("observation_end")
        return self.events

    @property
    def now_ms(self) -> float:
        """The time of the case."""
        return (self.lab.world.now_us - self.start_us) / 1_000

    def _note(self, event: str, **fields: Any) -> None:
        self.events.append({"t_ms": self.now_ms, "event": event, **fields})

    async def until(self, ms: float) -> None:
        """Wait for a time of the case."""
        await self.node.sleep_us(max(0, round((ms - self.now_ms) * 1_000)))

    # -- what a client does -----------------------------------------------------------------------------------------

    async def send(self, *keys: str) -> None:
        """Send messages one after the other, and let the broker dispatch them."""
        for key in keys:
            await self.producer.send.inside(self.producer, Message("T", b"x", keys=key))
        await self.node.sleep(2)

    async def _call(self, code: RequestCode, header: Any, timeout_ms: int = 30_000) -> RemotingCommand:
        address: str = self.broker.controller.broker_addr
        return await self.remoting.invoke_sync(address, RemotingCommand.request(code, header), timeout_ms)

    async def pop(
        self,
        *,
        invisible_ms: int = 10_000,
        poll_ms: int = 5_000,
        most: int = 32,
        order: bool = False,
        attempt: str | None = None,
        quiet: bool = False,
    ) -> list[Popped]:
        """Pop; an answer without messages is noted unless `quiet`."""
        header = h.PopMessageRequestHeader(
            "G", "T", -1, most, invisible_ms, poll_ms, self.node.now_ms(), 0, "TAG", "*", order, attempt
        )
        if not quiet:
            self._note("pop_request", invisibleTime=invisible_ms, pollTime=poll_ms)
        try:
            response = await self._call(RequestCode.POP_MESSAGE, header, poll_ms + 10_000)
        except RemotingException:
            self._note("pop_fails")
            return []
        status = STATUS[response.code]
        if status != "FOUND":
            if not quiet:
                self._note("pop_response", status=status, messages=[])
            return []
        answer = response.header_as(h.PopMessageResponseHeader)
        found = _handed_out(response.body or b"", answer, self.broker.controller.broker_config.broker_name, order)
        self._note(
            "pop_response",
            status=status,
            popTime=answer.pop_time - self.epoch_ms,
            restNum=answer.rest_num,
            messages=[message.told(self.epoch_ms) for message in found],
        )
        return found

    async def pop_every(self, period_ms: float, until_ms: float, **asked: Any) -> None:
        """Pop without waiting again and again; answers without messages are not noted."""
        while self.now_ms < until_ms:
            await self.pop(poll_ms=0, quiet=True, **asked)
            await self.node.sleep(period_ms)

    async def ack(self, message: Popped) -> None:
        """Acknowledge a message."""
        handle = message.handle
        header = h.AckMessageRequestHeader(
            "G", RETRY_TOPICS[handle.retry], handle.queue_id, handle.encode(), handle.queue_offset
        )
        self._note("ack_request", key=message.key)
        response = await self._call(RequestCode.ACK_MESSAGE, header)
        self._note("ack_response", key=message.key, status="OK" if response.code == 0 else "NO_EXIST")

    async def change(self, message: Popped, invisible_ms: int) -> int:
        """Give a message another invisible time from now on; when it was given, in ms of the case."""
        handle = message.handle
        header = h.ChangeInvisibleTimeRequestHeader(
            "G", RETRY_TOPICS[handle.retry], handle.queue_id, handle.encode(), handle.queue_offset, invisible_ms
        )
        self._note("change_invisible_request", key=message.key, invisibleTime=invisible_ms)
        response = await self._call(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, header)
        answer = response.header_as(h.ChangeInvisibleTimeResponseHeader)
        pop_time = answer.pop_time - self.epoch_ms
        self._note("change_invisible_response", key=message.key, status="OK", popTime=pop_time)
        return round(pop_time)

    # -- what was seen ----------------------------------------------------------------------------------------------

    def pops(self) -> list[Event]:
        """The answers with messages."""
        return found(self.events)


def found(events: list[Event]) -> list[Event]:
    """The answers with messages, of a case or of a recorded run."""
    return [event for event in events if event["event"] == "pop_response" and event["status"] == "FOUND"]


def keys(events: list[Event]) -> list[list[tuple[str, int, str]]]:
    """Key, count of deliveries and kind of topic of each message of each answer."""
    return [[(m["key"], m["reconsumeTimes"], m["retryFlag"]) for m in event["messages"]] for event in found(events)]


def _handed_out(body: bytes, answer: h.PopMessageResponseHeader, broker: str, order: bool) -> list[Popped]:
    """The messages of an answer with the handles that a client makes (MQClientAPIImpl.processPopResponse)."""
    records = list(scan_records(body))
    starts = extra_info.parse_start_offset_info(answer.start_offset_info)
    offsets = extra_info.parse_msg_offset_info(answer.msg_offset_info)
    counts = extra_info.parse_order_count_info(answer.order_count_info)
    found = []
    for record in records:
        handle = _handle(record, answer, starts, offsets, broker)
        times = record.reconsume_times
        if order:
            times = counts.get(
                extra_info.message_key("T", record.queue_id, record.queue_offset),
                counts.get(extra_info.queue_key("T", record.queue_id), 0),
            )
        first = int(record.properties.get("1ST_POP_TIME", answer.pop_time))
        key = record.properties["KEYS"]
        found.append(Popped(key, handle, record.queue_offset, times, first, record.store_timestamp))
    return found


def _handle(
    record: MessageExt,
    answer: h.PopMessageResponseHeader,
    starts: dict[str, int],
    offsets: dict[str, list[int]],
    broker: str,
) -> ReceiptHandle:
    written = record.properties.get("POP_CK")
    if written is not None:
        return extra_info.parse_handle(written)
    queue = extra_info.queue_key("T", record.queue_id)
    assert record.queue_offset in offsets[queue]
    return ReceiptHandle(
        starts[queue], answer.pop_time, answer.invisible_time, answer.revive_qid, extra_info.NORMAL_TOPIC, broker,
        record.queue_id, record.queue_offset,
    )  # fmt: skip
