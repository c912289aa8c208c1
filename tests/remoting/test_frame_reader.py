"""The frame reader: the same commands, however their bytes were cut on the way."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.errors import CommandError
from mqlab.remoting.frame_reader import FrameReader

COMMANDS = [RemotingCommand.request(code, body=b"x" * length) for code, length in ((34, 0), (11, 300), (310, 5))]
STREAM = b"".join(command.encode() for command in COMMANDS)


def commands_in(reader: FrameReader) -> list[bytes]:
    """All whole commands that there are now, encoded again."""
    found = []
    while (command := reader.next_command()) is not None:
        found.append(command.encode())
    return found


@given(st.lists(st.integers(0, len(STREAM)), max_size=8).map(sorted))
def test_commands_come_out_whole_and_in_order_wherever_the_bytes_are_cut(cuts: list[int]) -> None:
    reader, found = FrameReader(), []
    for begin, end in zip([0, *cuts], [*cuts, len(STREAM)], strict=True):
        reader.receive_data(STREAM[begin:end])
        found += commands_in(reader)
    assert found == [command.encode() for command in COMMANDS]


def test_a_command_is_there_with_its_last_byte_and_not_before() -> None:
    reader = FrameReader()
    for byte in STREAM[: len(COMMANDS[0].encode()) - 1]:
        reader.receive_data(bytes([byte]))
        assert reader.next_command() is None
    reader.receive_data(STREAM[len(COMMANDS[0].encode()) - 1 :][:1])
    assert commands_in(reader) == [COMMANDS[0].encode()]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (struct.pack(">i", -1), "the length field says -1 bytes"),
        (struct.pack(">i", 3), "a frame has at least 4 after it"),
        (struct.pack(">i", 16_777_213), "a frame of 16777217 bytes is over the limit"),
        (struct.pack(">iI", 4, 0x02_000000), "unknown serialize type 2"),
    ],
)
def test_bytes_that_can_be_no_command_are_refused_as_soon_as_that_is_known(data: bytes, says: str) -> None:
    reader = FrameReader()
    reader.receive_data(data)
    with pytest.raises(CommandError, match=says):
        reader.next_command()


def test_the_longest_length_that_is_allowed_is_waited_for() -> None:
    reader = FrameReader()
    reader.receive_data(struct.pack(">i", 16_777_212))
    assert reader.next_command() is None
