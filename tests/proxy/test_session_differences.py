"""The comparison of sessions finds what was broken in a played one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mqlab.protocol.v2 import service
from mqlab.protocol.v2.definition import Code
from mqlab.protocol.v2.protobuf import encode
from mqlab.rpc.status import StatusCode

from .golden_sessions import Call, Session, recorded
from .session_differences import differences
from .session_player import Player

BOOM = (0.0, StatusCode.INTERNAL, "boom")


@pytest.fixture(scope="module")
def session() -> Session:
    return recorded("py-two")


@pytest.fixture(scope="module")
def player(session: Session) -> Player:
    player = Player(session)
    player.play()
    return player


@pytest.fixture(autouse=True)
def whole(player: Player) -> Iterator[None]:
    """Each test gives the calls back as they were."""
    kept = {key: (list(call.answers), call.end) for key, call in player.calls.items()}
    yield
    for key, (answers, end) in kept.items():
        player.calls[key].answers, player.calls[key].end = answers, end


def polls_with_a_message(player: Player) -> list[Call]:
    polls = [call for call in player.calls.values() if call.rpc is service.RECEIVE_MESSAGE]
    return [call for call in polls if any(answer.message for answer in call.messages())]


def found(session: Session, player: Player, field: str) -> int:
    return len([each for each in differences(session, player) if each.field == field])


def test_a_poll_that_fails_after_its_messages(session: Session, player: Player) -> None:
    polls = polls_with_a_message(player)
    for call in polls:
        call.end = BOOM
    assert found(session, player, "grpc code") == len(polls) > 0


def test_a_poll_that_brings_messages_with_another_status(session: Session, player: Player) -> None:
    polls = polls_with_a_message(player)
    for call in polls:
        answers = [
            answer._replace(status=answer.status._replace(code=Code.TOO_MANY_REQUESTS)) if answer.status else answer
            for answer in call.messages()
        ]
        times = [ms for ms, _ in call.answers]
        call.answers = list(zip(times, map(encode, answers), strict=True))
    assert found(session, player, "status.code") == len(polls) > 0


def test_a_stream_that_fails_and_had_not_ended(session: Session, player: Player) -> None:
    streams = [
        player.calls[key]
        for key, call in session.calls.items()
        if call.rpc is service.TELEMETRY and call.end is None and key in player.calls
    ]
    for call in streams:
        call.end = BOOM
    assert found(session, player, "end") == len(streams) > 0
