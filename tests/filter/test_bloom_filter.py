"""Bloom filters have the bits of RocketMQ's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.filter import BitsArray, BloomFilter

VECTORS = Path(__file__).parents[1] / "golden" / "vectors" / "bloom.json"
ROWS = json.loads(VECTORS.read_text(encoding="utf-8"))["rows"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['f']} percent, {row['n']} names")
def test_a_filter_has_the_bits_of_java(row: dict[str, Any]) -> None:
    bloom = BloomFilter(row["f"], row["n"])
    assert (bloom.k, bloom.m) == (row["k"], row["m"])
    for name in row["strings"]:
        data = bloom.generate(name["string"])
        assert list(data.bit_pos) == name["positions"]
        bits = BitsArray(bloom.m)
        bloom.hash_to(data, bits)
        assert bits.bytes.hex() == name["bitsHex"]


@given(st.sets(st.text(max_size=40), max_size=20))
def test_a_name_that_was_put_in_is_found(names: set[str]) -> None:
    bloom = BloomFilter(20, 32)
    bits = BitsArray(bloom.m)
    for name in names:
        bloom.hash_to(bloom.generate(name), bits)
    read = BitsArray(bits.bytes)
    assert all(bloom.is_hit(bloom.generate(name), read) for name in names)


def test_some_names_that_were_not_put_in_are_found_as_well_but_few() -> None:
    bloom = BloomFilter(20, 32)
    bits = BitsArray(bloom.m)
    for i in range(32):
        bloom.hash_to(bloom.generate(f"group-{i}#Orders"), bits)
    others = sum(bloom.is_hit(bloom.generate(f"other-{i}#Orders"), bits) for i in range(1000))
    assert 100 < others < 300


def test_what_is_of_another_filter_is_refused() -> None:
    bloom, other = BloomFilter(20, 32), BloomFilter(20, 64)
    assert not bloom.is_valid(None)
    with pytest.raises(ValueError, match="may not belong to this filter"):
        bloom.is_hit(other.generate("G#T"), BitsArray(bloom.m))
    with pytest.raises(ValueError, match=r"Length\(216\) of bits in BitsArray is not equal to 112!"):
        bloom.hash_to(bloom.generate("G#T"), BitsArray(other.m))
    with pytest.raises(ValueError, match="Bytes is empty!"):
        BitsArray(b"")
    with pytest.raises(IndexError):
        BitsArray(8).get_bit(8)
    for f, n in ((0, 1), (100, 1), (5, 0)):
        with pytest.raises(ValueError, match="must be"):
            BloomFilter(f, n)
