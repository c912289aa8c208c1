"""Plausible wrong solutions of lab 02_store, each of which its check catches."""

from __future__ import annotations

import struct
from zlib import crc32

MESSAGE, BLANK = 0xDAA320A7, 0xCBD43194
Entry = tuple[int, ...]


# -- an entry of a consume queue -----------------------------------------------------------------------------------


def _entry(files: dict[str, bytes], name: int, at: int, layout: str = ">qiq") -> Entry:
    return struct.unpack_from(layout, files[f"{name:020d}"], at)


def _file_bytes(files: dict[str, bytes]) -> int:
    return len(next(iter(files.values())))


def knows_the_first_file_only(files: dict[str, bytes], number: int) -> Entry:
    """Looks for all entries in the first file."""
    return _entry(files, 0, number * 20)


def counts_from_the_start_of_the_queue(files: dict[str, bytes], number: int) -> Entry:
    """Finds the file, and looks in it as if it began with entry 0."""
    first = number * 20 // _file_bytes(files) * _file_bytes(files)
    return _entry(files, first, number * 20)


def name_is_a_queue_offset(files: dict[str, bytes], number: int) -> Entry:
    """Takes the file's name for the number of its first entry; it is a byte offset."""
    in_a_file = _file_bytes(files) // 20
    return _entry(files, number // in_a_file * in_a_file, number % in_a_file * 20)


def tags_without_a_sign(files: dict[str, bytes], number: int) -> Entry:
    """Reads the hash as a number without a sign; half of all hashes are negative."""
    first = number * 20 // _file_bytes(files) * _file_bytes(files)
    return _entry(files, first, number * 20 - first, ">qiQ")


def little_endian(files: dict[str, bytes], number: int) -> Entry:
    """Takes the least significant byte for the first."""
    first = number * 20 // _file_bytes(files) * _file_bytes(files)
    return _entry(files, first, number * 20 - first, "<qiq")


# -- tags that share a hash ----------------------------------------------------------------------------------------


def the_other_way(tag: str) -> str:
    """Moves both characters in the same direction."""
    return chr(ord(tag[0]) + 1) + chr(ord(tag[1]) + 31) + tag[2:]


def at_the_end_only(tag: str) -> str:
    """Changes the first and the last character; they are 31 apart only if they are neighbours."""
    return chr(ord(tag[0]) + 1) + tag[1:-1] + chr(ord(tag[-1]) - 31)


def turned_round(tag: str) -> str:
    """Thinks that the order of the characters does not count."""
    return tag[::-1]


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


def counts_dirty_bytes(written: int, flushed: int, since_ms: int) -> bool:
    """Waits for as many bytes as four pages have, wherever they begin."""
    return written > flushed if since_ms >= 10_000 else written - flushed >= 4 * 4_096


def always_when_late(written: int, flushed: int, since_ms: int) -> bool:
    """Flushes when it is time, though nothing was written."""
    return since_ms >= 10_000 or written // 4_096 - flushed // 4_096 >= 4


def more_than_four(written: int, flushed: int, since_ms: int) -> bool:
    """Four pages are not enough for it."""
    return written > flushed if since_ms >= 10_000 else written // 4_096 - flushed // 4_096 > 4


WRONG = {
    "02/read-entry": [
        knows_the_first_file_only,
        counts_from_the_start_of_the_queue,
        name_is_a_queue_offset,
        tags_without_a_sign,
        little_endian,
    ],
    "02/same-hash": [the_other_way, at_the_end_only, turned_round],
    "02/flushes": [counts_dirty_bytes, always_when_late, more_than_four],
    "02/find-end": [
        believes_every_body,
        forgets_the_mask,
        does_not_add_the_lengths_up,
        stops_at_the_blank,
        keeps_what_lies_behind_the_hole,
        looks_for_zeros_only,
    ],
}
