"""Plausible wrong solutions of lab 02_store, each of which its check catches."""

from __future__ import annotations

import struct
from zlib import crc32

MESSAGE, BLANK, PRE_BLANK_SIZE = 0xDAA320A7, 0xCBD43194, 0x7FFFFFFF
Entry = tuple[int, int, int, int]


# -- entries of a consume queue ------------------------------------------------------------------------------------


def _entries(name: str, data: bytes, layout: str = ">qiq") -> list[Entry]:
    first = int(name) // 20
    rows = enumerate(struct.iter_unpack(layout, data), first)
    return [(number, offset, size, code) for number, (offset, size, code) in rows]


def takes_offset_zero_for_nothing(name: str, data: bytes) -> list[Entry]:
    """Stops at physical offset 0, where the very first message of a broker lies."""
    entries = []
    for entry in _entries(name, data):
        if entry[1] == 0 and entry[2] != PRE_BLANK_SIZE:
            break
        if entry[2] != PRE_BLANK_SIZE:
            entries.append(entry)
    return entries


def tags_without_a_sign(name: str, data: bytes) -> list[Entry]:
    """Reads the tags code as a number without a sign; half of all hashes are negative."""
    return [entry for entry in _entries(name, data, ">qiQ") if 0 < entry[2] != PRE_BLANK_SIZE]


def counts_from_zero_in_each_file(name: str, data: bytes) -> list[Entry]:
    """Forgets that the file's name says where in the queue it begins."""
    return [entry for entry in _entries("0", data) if 0 < entry[2] != PRE_BLANK_SIZE]


def name_is_a_queue_offset(name: str, data: bytes) -> list[Entry]:
    """Takes the file's name for a queue offset; it is a byte offset."""
    rows = enumerate(struct.iter_unpack(">qiq", data), int(name))
    return [(number, offset, size, code) for number, (offset, size, code) in rows if 0 < size != PRE_BLANK_SIZE]


def takes_fillers_for_messages(name: str, data: bytes) -> list[Entry]:
    """Counts the fillers at the head of a queue that lost its oldest messages."""
    return [entry for entry in _entries(name, data) if entry[2] > 0]


def reads_on_into_the_zeros(name: str, data: bytes) -> list[Entry]:
    """Takes the unwritten end of the file for entries."""
    return [entry for entry in _entries(name, data) if entry[2] != PRE_BLANK_SIZE]


# -- the end of a torn log -----------------------------------------------------------------------------------------


def _problem(data: bytes, at: int, *, mask: int = 0x7FFFFFFF, crc: bool = True, sums: bool = True) -> bool:
    """Is there no good record at `at`?"""
    size, magic = struct.unpack_from(">II", data, at)
    record = data[at : at + size]
    if magic != MESSAGE or size < 91 or len(record) < size:
        return True
    body_end = 88 + int.from_bytes(record[84:88], "big")
    if body_end >= size:
        return True
    properties_at = body_end + 1 + record[body_end] + 2
    length = int.from_bytes(record[properties_at - 2 : properties_at], "big")
    if sums and properties_at + length != size:
        return True
    return crc and crc32(record[88:body_end]) & mask != int.from_bytes(record[8:12], "big")


def _walk(files: list[bytes], *, mask: int = 0x7FFFFFFF, crc: bool = True, sums: bool = True) -> int:
    for number, data in enumerate(files):
        at = 0
        while struct.unpack_from(">I", data, at + 4) != (BLANK,):
            if _problem(data, at, mask=mask, crc=crc, sums=sums):
                return number * len(data) + at
            at += int.from_bytes(data[at : at + 4], "big")
    return len(files) * len(files[0])


def believes_every_body(files: list[bytes]) -> int:
    """Does not compare the CRC: a body with a hole in it counts as good."""
    return _walk(files, crc=False)


def forgets_the_mask(files: list[bytes]) -> int:
    """Compares all 32 bits of the CRC; RocketMQ stores 31 of them."""
    return _walk(files, mask=0xFFFFFFFF)


def does_not_add_the_lengths_up(files: list[bytes]) -> int:
    """Stops at a bad body only: a hole behind the body, in topic or properties, goes unnoticed."""
    return _walk(files, sums=False)


def stops_at_the_blank(files: list[bytes]) -> int:
    """Takes the blank at the end of a full file for the end of the log."""
    at, data = 0, files[0]
    while struct.unpack_from(">I", data, at + 4) != (BLANK,) and not _problem(data, at):
        at += int.from_bytes(data[at : at + 4], "big")
    return at


def keeps_what_lies_behind_the_hole(files: list[bytes]) -> int:
    """Jumps over damage to the next magic code: the log ends behind the last whole record, with a hole inside."""
    end = 0
    for number, data in enumerate(files):
        at = data.find(MESSAGE.to_bytes(4, "big")) - 4
        while at >= 0:
            if not _problem(data, at):
                end = number * len(data) + at + int.from_bytes(data[at : at + 4], "big")
            at = data.find(MESSAGE.to_bytes(4, "big"), at + 8) - 4
    return end


def looks_for_zeros_only(files: list[bytes]) -> int:
    """Follows the sizes until one is zero, whatever the records say."""
    for number, data in enumerate(files):
        at = 0
        while at + 8 <= len(data) and struct.unpack_from(">I", data, at + 4) != (BLANK,):
            size = int.from_bytes(data[at : at + 4], "big")
            if size == 0:
                return number * len(data) + at
            at += size
    return len(files) * len(files[0])


WRONG = {
    "02/read-entries": [
        takes_offset_zero_for_nothing,
        tags_without_a_sign,
        counts_from_zero_in_each_file,
        name_is_a_queue_offset,
        takes_fillers_for_messages,
        reads_on_into_the_zeros,
    ],
    "02/find-end": [
        believes_every_body,
        forgets_the_mask,
        does_not_add_the_lengths_up,
        stops_at_the_blank,
        keeps_what_lies_behind_the_hole,
        looks_for_zeros_only,
    ],
}
