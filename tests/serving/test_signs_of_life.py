"""What is said for a client while time jumps: its last heartbeat, its last question, the locks that it renews."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.remoting.frame_reader import FrameReader
from mqlab.serving.signs_of_life import RENEWED_WITHIN_US, SignsOfLife


def frame(code: int, body: bytes = b"") -> bytes:
    return RemotingCommand.request(code, body=body).encode()


def said(frames: list[bytes]) -> list[tuple[int, bytes, bool]]:
    """What stands in bytes, as (code, body, whether an answer is wanted)."""
    reader = FrameReader()
    reader.receive_data(b"".join(frames))
    found = []
    while (command := reader.next_command()) is not None:
        found.append((int(command.code), command.body or b"", not command.is_oneway))
    return found


HEARTBEAT, LOCK, UNLOCK, SEND = (
    int(code)
    for code in (
        RequestCode.HEART_BEAT,
        RequestCode.LOCK_BATCH_MQ,
        RequestCode.UNLOCK_BATCH_MQ,
        RequestCode.SEND_MESSAGE,
    )
)


@given(st.data())
def test_the_pieces_in_which_bytes_come_make_no_difference(data: st.DataObject) -> None:
    bodies = data.draw(st.lists(st.tuples(st.sampled_from([HEARTBEAT, SEND]), st.binary(max_size=60)), min_size=1))
    stream = b"".join(frame(code, body) for code, body in bodies)
    signs, at = SignsOfLife(), 0
    while at < len(stream):
        size = data.draw(st.integers(1, 80))
        signs.watch(stream[at : at + size], 0)
        at += size
    beats = [body for code, body in bodies if code == HEARTBEAT]
    assert said(signs.said_again(0)) == [(HEARTBEAT, body, False) for body in beats[-1:]]


def test_a_lock_is_renewed_as_long_as_the_client_did_so() -> None:
    signs = SignsOfLife()
    signs.watch(frame(LOCK, b"G"), 0)
    for now_us in (10_000_000, 30_000_000, 50_000_000):
        assert said(signs.said_again(now_us)) == [(LOCK, b"G", False)]
    assert signs.said_again(50_000_001 + RENEWED_WITHIN_US) == []


def test_a_lock_that_was_given_back_is_not_taken_again() -> None:
    signs = SignsOfLife()
    signs.watch(frame(LOCK, b"G") + frame(UNLOCK, b"G"), 0)
    assert signs.said_again(0) == []


def test_the_same_lock_is_said_once() -> None:
    signs = SignsOfLife()
    for now_us in (0, 20_000_000):
        signs.watch(frame(LOCK, b"G"), now_us)
    signs.watch(frame(LOCK, b"H"), 20_000_000)
    assert [body for _, body, _ in said(signs.said_again(21_000_000))] == [b"G", b"H"]


def test_who_sends_no_frames_is_not_spoken_for() -> None:
    signs = SignsOfLife()
    signs.watch(frame(HEARTBEAT), 0)
    signs.watch(b"\xff" * 20, 0)
    signs.watch(frame(HEARTBEAT), 0)
    assert signs.said_again(0) == []


def test_in_the_middle_of_a_frame_nothing_is_said() -> None:
    signs = SignsOfLife()
    signs.watch(frame(HEARTBEAT) + frame(SEND)[:9], 0)
    assert signs.said_again(0) == []
    signs.watch(frame(SEND)[9:], 0)
    assert said(signs.said_again(0)) == [(HEARTBEAT, b"", False)]
