"""Says the clients' side of a recorded session to a proxy of a world, from outside, and takes the answers."""

from __future__ import annotations

from typing import Any, NamedTuple

from mqlab.lab import Lab
from mqlab.protocol.v2 import service
from mqlab.protocol.v2.definition import (
    Broker,
    ClientType,
    Message,
    MessageQueue,
    Resource,
    Settings,
    Subscription,
    SubscriptionEntry,
    SystemProperties,
)
from mqlab.protocol.v2.protobuf import Duration, ProtobufError, decode, encode
from mqlab.rpc.frame import answer_parts, request_bytes, reset_bytes
from mqlab.rpc.status import StatusCode
from mqlab.scenarios.served import broker_settings

from .golden_sessions import Call, Key, Said, Session

BROKER = (
    "autoCreateTopicEnable=true;autoCreateSubscriptionGroup=true;enablePropertyFilter=true;timerWheelEnable=true;"
    "timerMaxDelaySec=86400;recallMessageEnable=true;transactionCheckInterval=10000;maxMessageSize=4194304;"
    "waitTimeMillsInSendQueue=900"
)
TYPES = {
    "FIFO": "FIFO", "PFIFO": "FIFO", "FDLQ": "FIFO", "DELAY": "DELAY", "TRANSACTION": "TRANSACTION"
}  # fmt: skip
ONE_QUEUE = ("SIMPLE", "INV", "DLQ", "BRK", "FDLQ")
TOPICS = dict.fromkeys((*TYPES, *ONE_QUEUE, "NORMAL", "PUSH", "TWO", "TAG", "SQL", "HB"))
GROUPS = (("FIFO", True, 16), ("PFIFO", True, 16), ("DLQ", False, 2), ("FDLQ", True, 2), ("TWO", False, 16))
"""Groups that were there before: whether they are in order, and how often they try again."""

BEGIN_US = 120_000_000
"""When a session begins: all has started by then."""

LONG_AGO_MS = 100_000
"""What others sent before that was there by then."""

OTHERS = "others"
"""The connection of the clients of other sessions."""

CRASHES = {"jv-broker": ((8_980, "crash"), (16_200, "restart"))}
"""When the broker was killed and started again (ms of the session)."""

LATER_MS = 1_000
"""How long is waited for an answer that the client already had when it said something that names it."""

GIVING = (service.RECEIVE_MESSAGE, service.CHANGE_INVISIBLE_DURATION, service.SEND_MESSAGE)
"""Calls whose answers hold handles."""

CLOSED = (StatusCode.UNAVAILABLE, "the connection was closed by the proxy")


class Handles:
    """The handles that one side has given for each message, in their order."""

    def __init__(self) -> None:
        self._of: dict[str, list[str]] = {}

    def note(self, request: Any, answer: Any) -> None:
        """Look for handles in an answer."""
        if isinstance(answer, service.ReceiveMessageResponse) and answer.message is not None:
            system = answer.message.system_properties
            self._add(system.message_id, system.receipt_handle)
        elif isinstance(answer, service.ChangeInvisibleDurationResponse):
            self._add(request.message_id, answer.receipt_handle)
        elif isinstance(answer, service.SendMessageResponse):
            for entry in answer.entries:
                self._add(f"recall {entry.message_id}", entry.recall_handle)

    def _add(self, message: str, handle: str | None) -> None:
        if handle:
            self._of.setdefault(message, []).append(handle)

    def place_of(self, handle: str) -> tuple[str, int] | None:
        """Whose handle this is, and which of its handles."""
        for message, handles in self._of.items():
            if handle in handles:
                return message, handles.index(handle)
        return None

    def at(self, place: tuple[str, int]) -> str | None:
        """The handle at a place; None if it was not given yet."""
        handles = self._of.get(place[0], [])
        return handles[place[1]] if place[1] < len(handles) else None


class Other(NamedTuple):
    """A message that a client of another session sent: when (ms of this one), and the group that got it here."""

    ms: float
    group: Resource
    message: Message


def others(session: Session) -> list[Other]:
    """What clients got that nobody had sent in the session, in the order of time; without dead letters."""
    sent: set[str] = set()
    polls: dict[Key, Any] = {}
    for said in session.said:
        rpc = session.calls[said.key].rpc
        if said.event == "message" and rpc is service.SEND_MESSAGE and said.data:
            sent |= {each.system_properties.message_id for each in decode(rpc.request, said.data).messages}
        elif said.event == "message" and rpc is service.RECEIVE_MESSAGE:
            polls[said.key] = decode(rpc.request, said.data)
    found: dict[str, Other] = {}
    for key, poll in polls.items():
        for message in filter(None, (answer.message for answer in session.calls[key].messages())):
            system = message.system_properties
            stored_ms = system.store_timestamp - session.epoch_ms if system.delivery_attempt == 1 else -LONG_AGO_MS
            if not message.topic.name.startswith("%"):
                found.setdefault(system.message_id, Other(max(stored_ms, -LONG_AGO_MS), poll.group, message))
    return sorted((each for name, each in found.items() if name not in sent), key=lambda each: each.ms)


def handles_of(session: Session) -> Handles:
    """The handles that the real proxy has given."""
    handles = Handles()
    requests = {said.key: said.data for said in reversed(session.said) if said.event == "message"}
    given = [
        (ms, key, data) for key, call in session.calls.items() if call.rpc in GIVING for ms, data in call.answers
    ]
    for _, key, data in sorted(given):
        call = session.calls[key]
        assert call.rpc is not None
        handles.note(decode(call.rpc.request, requests[key]), decode(call.rpc.response, data))
    return handles


class Player:
    """A world with a proxy, and the clients of a session outside of it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.calls: dict[Key, Call] = {}
        self.unknown: set[Key] = set()
        """Calls that name a handle which we had not given by then."""
        self.lab = lab = Lab(7, history=False)
        lab.act("set_epoch", epoch_ms=int(session.epoch_ms) - BEGIN_US // 1_000)
        lab.name_server()
        lab.broker(**broker_settings(BROKER))
        self._proxy = lab.proxy().address
        prefix = session.name[:2]
        for topic in TOPICS:
            queues = 1 if topic in ONE_QUEUE else 4
            lab.create_topic(f"{prefix}_{topic}", queues, attributes={"+message.type": TYPES.get(topic, "NORMAL")})
        for group, orderly, retries in GROUPS:
            lab.create_group(f"{prefix}_G_{group}", consume_message_orderly=orderly, retry_max_times=retries)
        self._others = others(session)
        self._asked = 1
        self._connections: dict[str, int] = {}
        self._streams: dict[tuple[int, int], Key] = {}
        self._requests: dict[Key, Any] = {}
        self._real, self._ours = handles_of(session), Handles()
        lab.world.outside.output = self._output
        self._run_to(0)

    def _lay(self, other: Other) -> None:
        """Send what others sent; what a group had already had once is popped for it, and comes again."""
        message, system = other.message, other.message.system_properties
        properties = {name: value for name, value in message.user_properties.items() if not name.startswith("__")}
        sent = message._replace(
            user_properties=properties,
            system_properties=SystemProperties(
                system.tag, system.keys, system.message_id, None, system.body_encoding, system.message_type,
                system.born_timestamp, system.born_host,
            ),
        )  # fmt: skip
        self._ask(service.SEND_MESSAGE, service.SendMessageRequest((sent,)))
        if system.delivery_attempt != 1:
            subscription = Subscription(other.group, (SubscriptionEntry(message.topic),))
            settings = Settings(client_type=ClientType.SIMPLE_CONSUMER, subscription=subscription)
            self._ask(service.TELEMETRY, service.TelemetryCommand(settings=settings))
            self._play_to(self._ms + 500)
            poll = service.ReceiveMessageRequest(
                other.group, MessageQueue(message.topic, -1, broker=Broker("broker-a")), batch_size=1,
                invisible_duration=Duration(10_000),
            )  # fmt: skip
            self._ask(service.RECEIVE_MESSAGE, poll)

    def _ask(self, rpc: service.Rpc, request: Any) -> None:
        """Say something as a client of another session; nobody wants its answer."""
        key = (OTHERS, self._asked)
        self._asked += 1
        metadata = {"x-mq-client-id": OTHERS, "x-mq-client-version": "5.0.0", "grpc-timeout": "20000m"}
        ends = not rpc.client_streams
        self._bring(key, request_bytes(key[1] * 2 - 1, rpc.path, metadata, encode(request), ends=ends))

    def _run_to(self, ms: float) -> None:
        while self._others and self._others[0].ms <= ms:
            other = self._others.pop(0)
            self._play_to(other.ms)
            self._lay(other)
        self._play_to(ms)

    def _play_to(self, ms: float) -> None:
        us = BEGIN_US + int(ms * 1_000)
        while us > self.lab.world.now_us:
            self.lab.world.run_to(us)

    @property
    def _ms(self) -> float:
        return (self.lab.world.now_us - BEGIN_US) / 1_000

    def play(self) -> dict[Key, Call]:
        """All that the clients said, and then what was still to be answered."""
        session, crashes = self.session, list(CRASHES.get(self.session.name, ()))
        for said in session.said:
            while crashes and crashes[0][0] <= said.ms:
                ms, verb = crashes.pop(0)
                self._run_to(ms)
                getattr(self.lab, verb)("broker-a")
            self._run_to(said.ms)
            self._say(said)
        last = max(call.end[0] if call.end else call.began_ms for call in session.calls.values())
        self._run_to(max(last, session.said[-1].ms) + LATER_MS)
        self.lab.world.outside.forget_output()
        return self.calls

    def _say(self, said: Said) -> None:
        real, key = self.session.calls[said.key], said.key
        stream = key[1] * 2 - 1
        if said.event == "call":
            self.calls[key] = Call(real.path, said.step, said.ms, real.timeout_ms, real.metadata)
            if real.rpc is None:
                self._bring(key, request_bytes(stream, real.path, _opening(real), None, ends=True))
        elif real.rpc is None or said.too_large:
            return
        elif said.event == "message":
            opening = None if key in self._requests else _opening(real)
            data = self._in_our_words(real, said)
            ends = not real.rpc.client_streams
            self._bring(key, request_bytes(stream, real.path, opening, data, ends=ends))
        elif said.event == "half-close":
            opening = None if key in self._requests else _opening(real)
            self._requests.setdefault(key, None)
            self._bring(key, request_bytes(stream, real.path, opening, None, ends=True))
        elif self.calls[key].end is None:
            self._bring(key, reset_bytes(stream))

    def _in_our_words(self, real: Call, said: Said) -> bytes:
        """The request with our handles in place of the real ones."""
        assert real.rpc is not None
        try:
            request: Any = decode(real.rpc.request, said.data)
        except ProtobufError:
            self._requests[said.key] = None
            return said.data
        ours = request
        if isinstance(request, service.AckMessageRequest):
            entries = tuple(e._replace(receipt_handle=self._our(e.receipt_handle, said)) for e in request.entries)
            ours = request._replace(entries=entries)
        elif hasattr(request, "receipt_handle"):
            ours = request._replace(receipt_handle=self._our(request.receipt_handle, said))
        elif isinstance(request, service.RecallMessageRequest):
            ours = request._replace(recall_handle=self._our(request.recall_handle, said))
        self._requests[said.key] = ours
        return said.data if ours == request else encode(ours)

    def _our(self, handle: str, said: Said) -> str:
        place = self._real.place_of(handle)
        if place is None:
            return handle
        limit_ms = self._ms + LATER_MS
        while self._ours.at(place) is None:
            if self._ms >= limit_ms:
                self.unknown.add(said.key)
                return handle
            self._run_to(self._ms + 5)
        return self._ours.at(place) or handle

    def _bring(self, key: Key, data: bytes) -> None:
        number = self._connections.get(key[0])
        if number is None:
            number = self._connections[key[0]] = self.lab.world.outside.last_number + 1
            port = 40_000 + number
            self.lab.from_outside(
                "come_in",
                {"number": number, "address": self._proxy, "remote": f"127.0.0.1:{port}", "came_to": "127.0.0.1"},
            )
        self._streams[number, key[1] * 2 - 1] = key
        self.lab.from_outside("bring", {"number": number, "data": data})

    def _output(self, number: int, data: bytes | None, broken: bool) -> None:
        if data is None:
            for conn in [conn for conn, known in self._connections.items() if known == number]:
                del self._connections[conn]
            for (connection, _), key in self._streams.items():
                if connection == number and key in self.calls and self.calls[key].end is None:
                    self.calls[key].end = (self._ms, *CLOSED)
            return
        for stream, part in answer_parts(data):
            key = self._streams[number, stream]
            if key[0] == OTHERS:
                continue
            call = self.calls[key]
            if isinstance(part, bytes):
                call.answers.append((self._ms, part))
                if call.rpc is not None:
                    self._ours.note(self._requests[key], decode(call.rpc.response, part))
            else:
                call.end = (self._ms, *part)


def _opening(call: Call) -> dict[str, str]:
    if call.timeout_ms is None:
        return dict(call.metadata)
    return {**call.metadata, "grpc-timeout": f"{call.timeout_ms}m"}
