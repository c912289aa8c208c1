"""A broker whose answers to pops are written by the test, so that the client's side can be seen alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.extra_info import msg_offset_info, start_offset_info
from mqlab.protocol.headers import (
    AckMessageRequestHeader,
    ChangeInvisibleTimeRequestHeader,
    ChangeInvisibleTimeResponseHeader,
    PopMessageRequestHeader,
    PopMessageResponseHeader,
)
from mqlab.protocol.properties import encode_properties
from mqlab.protocol.record import encode_record
from mqlab.remoting import Channel, RequestProcessor

HEADERS = {
    RequestCode.POP_MESSAGE: PopMessageRequestHeader,
    RequestCode.ACK_MESSAGE: AckMessageRequestHeader,
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME: ChangeInvisibleTimeRequestHeader,
}


class Asked(NamedTuple):
    """A request, and when it came (ms of the world)."""

    at_ms: float
    header: Any


class Record(NamedTuple):
    """A message for an answer."""

    queue_offset: int
    queue_id: int = 0
    tags: str = "TagA"
    reconsume_times: int = 0
    born_ms_ago: int = 0
    more: tuple[tuple[str, str], ...] = ()


class ScriptedPop(RequestProcessor):
    """Answers each pop with the next of `answers`, keeps those that come when there is none, and notes all requests."""

    def __init__(self, cluster: Any, broker: str = "broker-a") -> None:
        self.cluster = cluster
        self.controller = cluster.brokers[broker]
        self.answers: list[Callable[[PopMessageRequestHeader], RemotingCommand]] = []
        self.asked: dict[RequestCode, list[Asked]] = {code: [] for code in HEADERS}
        self.refusals: dict[RequestCode, ResponseCode] = {}
        self._kept: list[tuple[Channel, RemotingCommand]] = []
        for code in HEADERS:
            self.controller.remoting_server.register_processor(code, self, self.controller.executors.pull, 40)

    def process_request(self, channel: Channel, request: RemotingCommand) -> RemotingCommand | None:
        code = RequestCode(request.code)
        header = request.header_as(HEADERS[code])
        self.asked[code].append(Asked(self.cluster.now_ms, header))
        if code in self.refusals:
            return RemotingCommand.response(self.refusals[code], "refused by the test")
        if code is RequestCode.ACK_MESSAGE:
            return RemotingCommand.response(ResponseCode.SUCCESS)
        if code is RequestCode.CHANGE_MESSAGE_INVISIBLETIME:
            changed = ChangeInvisibleTimeResponseHeader(self.now_ms, header.invisible_time, 1)
            return RemotingCommand.response(ResponseCode.SUCCESS, None, changed)
        if self.answers:
            return self.answers.pop(0)(header)
        self._kept.append((channel, request))
        return None

    @property
    def now_ms(self) -> int:
        """The broker's clock."""
        return self.controller.node.now_ms()

    # -- answers ----------------------------------------------------------------------------------------------------

    def give(self, *records: Record, pop_ms_ago: int = 0, topic: str = "T", **header: Any) -> None:
        """Answer a kept pop, or else the next one, with these messages."""

        def answer(asked: PopMessageRequestHeader) -> RemotingCommand:
            queues: dict[int, list[int]] = {}
            for record in records:
                queues.setdefault(record.queue_id, []).append(record.queue_offset)
            values = {
                "pop_time": self.now_ms - pop_ms_ago,
                "invisible_time": asked.invisible_time,
                "revive_qid": 3,
                "rest_num": 0,
                "start_offset_info": ";".join(start_offset_info(topic, q, ids[0]) for q, ids in queues.items()),
                "msg_offset_info": ";".join(msg_offset_info(topic, q, ids) for q, ids in queues.items()),
                **header,
            }
            body = b"".join(self._encode(record, topic) for record in records)
            return RemotingCommand.response(ResponseCode.SUCCESS, "FOUND", PopMessageResponseHeader(**values), body)

        self._answer(answer)

    def say(self, code: ResponseCode) -> None:
        """Answer a kept pop, or else the next one, with this code and no messages."""
        header = PopMessageResponseHeader(self.now_ms, 60_000, 0, 0, "", "")
        self._answer(lambda asked: RemotingCommand.response(code, "said by the test", header))

    def _answer(self, answer: Callable[[PopMessageRequestHeader], RemotingCommand]) -> None:
        if not self._kept:
            self.answers.append(answer)
            return
        channel, request = self._kept.pop(0)
        response = answer(request.header_as(PopMessageRequestHeader))
        response.opaque = request.opaque
        channel.write(response)

    def _encode(self, record: Record, topic: str) -> bytes:
        key = f"{record.queue_id:04X}{record.queue_offset:028X}"
        properties = {"UNIQ_KEY": key, **({"TAGS": record.tags} if record.tags else {}), **dict(record.more)}
        return encode_record(
            topic,
            f"{record.queue_id}/{record.queue_offset}".encode(),
            encode_properties(properties),
            record.queue_id,
            record.queue_offset,
            1_000 * record.queue_offset,
            self.now_ms,
            self.now_ms - record.born_ms_ago,
            "10.0.0.9:1",
            "10.0.0.2:10911",
            reconsume_times=record.reconsume_times,
        )

    # -- what was asked ---------------------------------------------------------------------------------------------

    @property
    def pops(self) -> list[Asked]:
        return self.asked[RequestCode.POP_MESSAGE]

    @property
    def acked(self) -> list[tuple[int, int]]:
        """The messages that were acknowledged: queue and offset."""
        return [(a.header.queue_id, a.header.offset) for a in self.asked[RequestCode.ACK_MESSAGE]]

    @property
    def put_off(self) -> list[tuple[int, int]]:
        """The messages that are to come later: offset, and after how many ms."""
        changes = self.asked[RequestCode.CHANGE_MESSAGE_INVISIBLETIME]
        return [(each.header.offset, each.header.invisible_time) for each in changes]
