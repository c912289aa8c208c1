"""In what our proxy answered otherwise than the real one: call by call, field by field."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Any, NamedTuple

from mqlab.protocol.v2 import service
from mqlab.protocol.v2.definition import Code, Message
from mqlab.protocol.v2.protobuf import decode, encode
from mqlab.rpc.status import StatusCode

from .golden_sessions import Call, Key, Session
from .session_player import Player

Found = tuple[str, Any, Any]
"""A field, what the real proxy has in it, and what ours has."""

NEAR_MS = 1_500
"""So far apart may be what both did at the same moment of their sessions; the real proxy was on a busy machine."""

REVIVED_MS = 5_000
"""The same for a message that comes again: the thread that looks for what has become visible comes by so rarely."""

ROUND_MS = 10_000 + NEAR_MS
"""So far apart may be two rounds of questions about transactions (transactionCheckInterval)."""

ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+:\d+")
NOTHING = "nothing"


class Difference(NamedTuple):
    """A field that the real proxy answered otherwise than ours."""

    session: str
    step: str
    method: str
    field: str
    real: Any
    ours: Any

    @property
    def name(self) -> str:
        """How the list of what is known names it."""
        return f"{self.session}: {self.step}: {self.method} {self.field}"


def differences(session: Session, player: Player) -> list[Difference]:
    """All differences of a session that was played.

    Which of the polls of a group brings a message is up to chance. So deliveries are compared message by message (when
    it came, and all that it was), and of polls those to which both proxies brought nothing.
    """
    found: list[Difference] = []
    for key, real in session.calls.items():
        ours = player.calls[key]
        if key in player.unknown:
            compared: Iterable[Found] = [("handle", "given", "never given")]
        elif real.rpc is service.RECEIVE_MESSAGE:
            compared = _of_polls(real, ours)
        else:
            compared = _of_calls(real, ours)
        found += [Difference(session.name, real.step, real.method, *each) for each in compared]
    real_deliveries, our_deliveries = _deliveries(session.calls), _deliveries(player.calls)
    for message in real_deliveries | our_deliveries:
        theirs, mine = real_deliveries.get(message, []), our_deliveries.get(message, [])
        step = (theirs or mine)[0].step
        found += [Difference(session.name, step, "ReceiveMessage", *each) for each in _of_deliveries(theirs, mine)]
    return found


class Delivery(NamedTuple):
    """A message as it came to a client: when (ms of the session), and in which step it was asked for."""

    ms: float
    step: str
    message: Message


def _deliveries(calls: Mapping[Key, Call]) -> dict[str, list[Delivery]]:
    """The deliveries of each message, by its id, in their order."""
    found: dict[str, list[Delivery]] = {}
    for call in calls.values():
        if call.rpc is service.RECEIVE_MESSAGE:
            for (ms, _), answer in zip(call.answers, call.messages(), strict=True):
                if answer.message is not None:
                    name = answer.message.system_properties.message_id
                    found.setdefault(name, []).append(Delivery(ms, call.step, answer.message))
    for deliveries in found.values():
        deliveries.sort(key=lambda each: each.ms)
    return found


def _of_deliveries(real: list[Delivery], ours: list[Delivery]) -> Iterator[Found]:
    if len(real) != len(ours):
        yield "deliveries", len(real), len(ours)
    for number, (theirs, mine) in enumerate(zip(real, ours, strict=False)):
        if abs(theirs.ms - mine.ms) > (NEAR_MS if number == 0 else REVIVED_MS):
            yield "delivered", round(theirs.ms), round(mine.ms)
        again = (theirs.message.system_properties.delivery_attempt or 0) > 1
        for name, one, other in _of_message(theirs.message, mine.message, "message"):
            if not again or not name.endswith("store_timestamp") or abs(one - other) > REVIVED_MS:
                yield name, one, other


def _of_polls(real: Call, ours: Call) -> Iterator[Found]:
    theirs, mine = real.messages(), ours.messages()
    if ours.end is not None and ours.end[1] is StatusCode.OK:
        shape = [name for answer in mine for name, value in answer._asdict().items() if value is not None]
        if shape != ["status", *["message"] * (len(shape) - 2), "delivery_timestamp"]:
            yield "order", "status, messages, delivery_timestamp", shape
    if not any(answer.message for answer in (*theirs, *mine)):
        yield from _of_calls(real, ours)
        return
    if ours.end is not None and ours.end[1] is not StatusCode.OK:
        yield "grpc code", StatusCode.OK.name, ours.end[1].name
    wanted = Code.OK if any(answer.message for answer in mine) else Code.MESSAGE_NOT_FOUND
    for answer in mine:
        if answer.status is not None and answer.status.code != wanted:
            yield "status.code", wanted, answer.status.code


def _of_calls(real: Call, ours: Call) -> Iterator[Found]:
    if real.end is not None:
        yield from _of_ends(real, ours)
    elif ours.end is not None and ours.end[1] is not StatusCode.OK:
        yield "end", NOTHING, ours.end[1:]
    if real.rpc is None:
        return
    for _, data in real.answers:
        if encode(decode(real.rpc.response, data)) != data:
            yield "bytes", data, encode(decode(real.rpc.response, data))
    theirs, mine = real.messages(), ours.messages()
    if real.rpc is service.TELEMETRY:
        asked, we_asked = _questions(theirs), _questions(mine)
        for transaction in sorted(asked.keys() | we_asked.keys()):
            if transaction not in asked or transaction not in we_asked:
                yield "question", asked.get(transaction, NOTHING), we_asked.get(transaction, NOTHING)
            else:
                yield from _of_questions(asked[transaction], we_asked[transaction])
        theirs, mine = [each for each in theirs if not _asks(each)], [each for each in mine if not _asks(each)]
    for one, other in zip_longest(theirs, mine):
        if one is None or other is None:
            yield "answers", one or NOTHING, other or NOTHING
        else:
            yield from _of_message(one, other, "")


def _of_ends(real: Call, ours: Call) -> Iterator[Found]:
    assert real.end is not None
    if ours.end is None:
        yield "end", real.end[1:], NOTHING
        return
    if real.end[1] != ours.end[1]:
        yield "grpc code", real.end[1].name, ours.end[1].name
    if real.end[2] != ours.end[2]:
        yield "grpc text", real.end[2], ours.end[2]
    if abs(real.end[0] - ours.end[0]) > NEAR_MS:
        yield "duration", round(real.end[0] - real.began_ms), round(ours.end[0] - real.began_ms)


def _without_round(properties: Mapping[str, str]) -> dict[str, str]:
    """Without which round of questions it was: rounds are every 10 s since the broker's start."""
    return {name: value for name, value in properties.items() if name != "TRANSACTION_CHECK_TIMES"}


def _asks(command: Any) -> bool:
    return command.recover_orphaned_transaction_command is not None


def _of_questions(real: Any, ours: Any) -> Iterator[Found]:
    """A half message is stored again in each round, so its time of storage is that of the round."""
    theirs, mine = (each.recover_orphaned_transaction_command for each in (real, ours))
    for name, one, other in _of_message(theirs, mine, "question"):
        if not name.endswith("store_timestamp") or abs(one - other) > ROUND_MS:
            yield name, one, other


def _questions(commands: list[Any]) -> dict[str, Any]:
    """The first question about each transaction; how often one is asked depends on when the broker's rounds are."""
    found: dict[str, Any] = {}
    for command in filter(_asks, commands):
        found.setdefault(command.recover_orphaned_transaction_command.transaction_id, command)
    return found


def _of_message(real: Any, ours: Any, path: str) -> Iterator[Found]:
    for name in real._fields:
        theirs, mine = getattr(real, name), getattr(ours, name)
        where = f"{path}.{name}" if path else name
        same = SAME.get(name) if isinstance(theirs, str | int) else None
        if same is not None and theirs is not None and mine is not None:
            if not same(theirs, mine):
                yield where, theirs, mine
        elif hasattr(theirs, "_fields") and hasattr(mine, "_fields"):
            yield from _of_message(theirs, mine, where)
        elif _holds_messages(theirs) and _holds_messages(mine):
            for one, other in zip_longest(theirs, mine):
                if one is None or other is None:
                    yield f"{where}[]", one or NOTHING, other or NOTHING
                else:
                    yield from _of_message(one, other, f"{where}[]")
        elif name == "user_properties":
            if _without_round(theirs) != _without_round(mine):
                yield where, dict(theirs), dict(mine)
        elif theirs != mine:
            yield where, theirs, mine


def _holds_messages(value: Any) -> bool:
    return type(value) is tuple and bool(value) and hasattr(value[0], "_fields")


# -- what need not be equal --------------------------------------------------------------------------------------------


def _near(real: int, ours: int) -> bool:
    return abs(real - ours) <= NEAR_MS


def _whatever(real: object, ours: object) -> bool:
    """Which queue a message goes to is chosen by chance, and its place there says what was there before."""
    return True


def _address(real: str, ours: str) -> bool:
    """The broker's address in its own world."""
    return bool(ADDRESS.fullmatch(real)) and bool(ADDRESS.fullmatch(ours))


def _text(real: str, ours: str) -> bool:
    return ADDRESS.sub("ADDRESS", real) == ADDRESS.sub("ADDRESS", ours)


def _handle(real: str, ours: str) -> bool:
    """Nine parts: start offset, pop time, invisible ms, revive queue, kind, broker, queue, offset, place in the log."""
    theirs, mine = real.split(" "), ours.split(" ")
    if len(theirs) != 9 or len(mine) != 9:
        return theirs == mine
    in_order = theirs[3] == "999", mine[3] == "999"
    same = theirs[2] == mine[2] and theirs[4:6] == mine[4:6] and in_order[0] == in_order[1]
    return same and _near(int(theirs[1]), int(mine[1]))


def _recall_handle(real: str, ours: str) -> bool:
    """The version, the topic, the broker, when the message is due, and its id."""
    return base64.urlsafe_b64decode(real) == base64.urlsafe_b64decode(ours)


SAME: Mapping[str, Callable[[Any, Any], bool]] = {
    "delivery_timestamp": _near,
    "store_timestamp": _near,
    "queue_id": _whatever,
    "queue_offset": _whatever,
    "offset": _whatever,
    "store_host": _address,
    "message": _text,
    "receipt_handle": _handle,
    "recall_handle": _recall_handle,
}
"""How two values of a field are compared, where it is not equality."""
