"""A Bloom filter: which of many names are in a few bytes, with no false "no" and few false "yes"."""

from __future__ import annotations

import math
from typing import NamedTuple

from mqlab.filter.bits_array import BitsArray

MASK = (1 << 64) - 1


class BloomFilterData(NamedTuple):
    """The bits of one name, in a row of `bit_num` (org.apache.rocketmq.filter.util.BloomFilterData)."""

    bit_pos: tuple[int, ...]
    bit_num: int


class BloomFilter:
    """Made for `n` names and a share of `f` percent of false "yes" (org.apache.rocketmq.filter.util.BloomFilter).

    `k` is the number of bits of a name, `m` the number of bits of a row, a multiple of eight. ValueError for an `f`
    outside of 1 to 99 and an `n` below 1, in RocketMQ's words.
    """

    def __init__(self, f: int, n: int) -> None:
        if not 1 <= f < 100:
            raise ValueError("f must be greater or equal than 1 and less than 100")
        if n < 1:
            raise ValueError("n must be greater than 0")
        self.f = f
        self.n = n
        error_rate = f / 100.0
        self.k = math.ceil(math.log(error_rate) / math.log(0.5))
        bits = math.ceil(n * (math.log(1 / error_rate) / math.log(2)) * (math.log(math.e) / math.log(2)))
        self.m = 8 * math.ceil(bits / 8)

    def calc_bit_positions(self, name: str) -> tuple[int, ...]:
        """The bits of a name."""
        first, second = murmur3_low_64(name.encode())
        positions = []
        for i in range(1, self.k + 1):
            combined = _int32(first + i * second)
            positions.append((~combined if combined < 0 else combined) % self.m)
        return tuple(positions)

    def generate(self, name: str) -> BloomFilterData:
        """The bits of a name, with the length of the row to which they belong."""
        return BloomFilterData(self.calc_bit_positions(name), self.m)

    def is_valid(self, data: BloomFilterData | None) -> bool:
        """Do these bits belong to this filter?"""
        return data is not None and data.bit_num == self.m and len(data.bit_pos) == self.k

    def hash_to(self, data: BloomFilterData, bits: BitsArray) -> None:
        """Put a name into a row; ValueError if one of them is not of this filter."""
        self._check(data, bits)
        for position in data.bit_pos:
            bits.set_bit(position)

    def is_hit(self, data: BloomFilterData, bits: BitsArray) -> bool:
        """May the name be in the row? ValueError if one of them is not of this filter."""
        self._check(data, bits)
        return all(bits.get_bit(position) for position in data.bit_pos)

    def __str__(self) -> str:
        return f"f: {self.f}, n: {self.n}, k: {self.k}, m: {self.m}"

    def _check(self, data: BloomFilterData, bits: BitsArray) -> None:
        if not self.is_valid(data):
            raise ValueError(f"Bloom filter data may not belong to this filter! {data}, {self}")
        if bits.bit_length != self.m:
            raise ValueError(f"Length({bits.bit_length}) of bits in BitsArray is not equal to {self.m}!")


def _int32(value: int) -> int:
    value &= 0xFFFF_FFFF
    return value - (1 << 32) if value & 0x8000_0000 else value


def murmur3_low_64(data: bytes) -> tuple[int, int]:
    """The first 64 bits of MurmurHash3 (x64, 128 bits, seed 0) of some bytes: their low 32 bits, and the high ones."""
    h1 = h2 = 0
    whole = len(data) & ~15
    for i in range(0, whole, 16):
        h1 ^= _mixed_1(int.from_bytes(data[i : i + 8], "little"))
        h1 = (_rotated(h1, 27) + h2) * 5 + 0x52DCE729 & MASK
        h2 ^= _mixed_2(int.from_bytes(data[i + 8 : i + 16], "little"))
        h2 = (_rotated(h2, 31) + h1) * 5 + 0x38495AB5 & MASK
    h1 ^= _mixed_1(int.from_bytes(data[whole : whole + 8], "little"))
    h2 ^= _mixed_2(int.from_bytes(data[whole + 8 :], "little"))
    h1 ^= len(data)
    h2 ^= len(data)
    h1 = h1 + h2 & MASK
    h2 = h2 + h1 & MASK
    low = _finished(h1) + _finished(h2) & MASK
    return low & 0xFFFF_FFFF, low >> 32


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & MASK


def _mixed_1(block: int) -> int:
    return _rotated(block * 0x87C37B91114253D5 & MASK, 31) * 0x4CF5AD432745937F & MASK


def _mixed_2(block: int) -> int:
    return _rotated(block * 0x4CF5AD432745937F & MASK, 33) * 0x87C37B91114253D5 & MASK


def _finished(value: int) -> int:
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD & MASK
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 & MASK
    return value ^ value >> 33
