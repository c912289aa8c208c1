"""Time that jumps: what waits comes due, clients count as alive, and what cannot be is said."""

from __future__ import annotations

import pytest

from mqlab.errors import LearnerError
from mqlab.lab import Lab
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.serving import Serving
from tests.serving.conftest import Connects, pull_header


def test_a_delayed_message_comes_when_time_has_jumped(connect: Connects, serving: Serving, broker_address: str) -> None:
    connect(broker_address).send(b"in two hours", properties="DELAY\x0118")
    serving.fast_forward("1h")
    assert b"in two hours" not in (connect(broker_address).pull(0).body or b"")
    serving.fast_forward("61m")
    assert b"in two hours" in (connect(broker_address).pull(0).body or b"")


def test_who_is_connected_counts_as_alive_and_who_is_not_does_not(
    connect: Connects, lab: Lab, serving: Serving, broker_address: str
) -> None:
    stays, leaves = connect(broker_address), connect(broker_address)
    stays.heartbeat("client-1", "C")
    leaves.heartbeat("client-2", "C")
    leaves.close()
    name_server = connect(serving.name_server)
    name_server.route("T")
    serving.fast_forward("3h")
    assert b"client-1" in (stays.members("C") or b"")
    assert b"client-2" not in (stays.members("C") or b"")
    assert name_server.route("T")
    assert "ChannelIdle" not in {r.kind for r in lab.history.records()}


def test_a_client_that_says_nothing_is_not_spoken_for(connect: Connects, serving: Serving, broker_address: str) -> None:
    silent = connect(broker_address)
    silent.send(b"1")
    serving.fast_forward("10m")
    assert silent.read() is None, "the broker closes a connection over which nothing came for two minutes"


def test_nothing_is_said_in_the_middle_of_a_frame(connect: Connects, serving: Serving, broker_address: str) -> None:
    program = connect(broker_address)
    program.heartbeat("client-1", "C")
    frame = RemotingCommand.request(RequestCode.PULL_MESSAGE, pull_header(0)).encode()
    program.socket.sendall(frame[:20])
    serving.fast_forward("90s")
    program.socket.sendall(frame[20:])
    assert program.read() is not None


@pytest.mark.parametrize("span", ["73h", "two hours", "-1s", ""])
def test_a_span_that_cannot_be_is_refused(serving: Serving, span: str) -> None:
    with pytest.raises(LearnerError):
        serving.fast_forward(span)


def test_a_world_that_stands_still_or_is_closed_does_not_jump(lab: Lab) -> None:
    with lab.serve() as serving:
        serving.pause()
        serving.resume()
        serving.fast_forward("1s")
        with lab.break_on("BrokerRegistered"):
            with pytest.raises(LearnerError, match="a breakpoint ended the jump"):
                serving.fast_forward("2h")
            with pytest.raises(LearnerError, match="stands still"):
                serving.fast_forward("2h")
    with pytest.raises(LearnerError, match="no longer served"):
        serving.fast_forward("1s")
