"""Java's string hash, and what RocketMQ makes of it: tag codes, index hashes, the order of a HashMap.

A string is hashed over its UTF-16 units: h = 31 * h + unit, kept to a signed 32-bit number. Two different tags can have
one hash ("Aa" and "BB"), which is why a consumer compares the tags again after the broker has compared the codes.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache


@lru_cache(maxsize=65536)
def java_string_hash(text: str) -> int:
    """`String.hashCode()` of Java: a signed 32-bit number."""
    value = 0
    if text.isascii():
        for unit in text.encode("ascii"):
            value = (31 * value + unit) & 0xFFFFFFFF
    else:
        units = text.encode("utf-16-be", "surrogatepass")
        for i in range(0, len(units), 2):
            value = (31 * value + (units[i] << 8 | units[i + 1])) & 0xFFFFFFFF
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value


def tags_code(tags: str | None) -> int:
    """What a consume queue entry keeps of a message's tag: the hash of the whole TAGS text, 0 without one.

    Java: MessageExtBrokerInner.tagsString2tagsCode.
    """
    return java_string_hash(tags) if tags else 0


def index_key_hash(key: str) -> int:
    """What an index file keeps of a key: the hash made positive, 0 for the one hash that has no positive twin.

    Java: IndexFile.indexKeyHashMethod.
    """
    value = abs(java_string_hash(key))
    return value if value <= 0x7FFF_FFFF else 0


_FEW_KEYS = 64


def java_map_order(keys: Iterable[str], capacity: int = 16) -> list[str]:
    """The keys in the order in which a Java `HashMap` that got them in this order gives them back.

    `capacity` is what the map was made with; it doubles when more than three quarters are taken. RocketMQ writes the
    extension fields of a command in this order, so that frames made here are the same bytes.
    """
    given = tuple(keys)
    # A frame's few fields come again and again; a large table hardly ever has the same keys twice.
    return list(_known_order(given, capacity) if len(given) <= _FEW_KEYS else _java_map_order(given, capacity))


@lru_cache(maxsize=4096)
def _known_order(keys: tuple[str, ...], capacity: int) -> tuple[str, ...]:
    return _java_map_order(keys, capacity)


def _java_map_order(keys: tuple[str, ...], capacity: int) -> tuple[str, ...]:
    while len(keys) > capacity * 3 // 4:
        capacity *= 2
    mask = capacity - 1

    def bucket(key: str) -> int:
        value = java_string_hash(key) & 0xFFFFFFFF
        return (value ^ (value >> 16)) & mask

    return tuple(sorted(keys, key=bucket))


def java_number_order(numbers: Iterable[int], capacity: int = 16) -> list[int]:
    """Numbers in the order in which a Java `HashSet<Integer>` that got them in this order gives them back."""
    given = list(numbers)
    while len(given) > capacity * 3 // 4:
        capacity *= 2

    def bucket(number: int) -> int:
        value = number & 0xFFFFFFFF
        return (value ^ (value >> 16)) & (capacity - 1)

    return sorted(given, key=bucket)


_LCG_FACTOR = 2862933555777941757


def guava_consistent_hash(value: int, buckets: int) -> int:
    """A bucket in range(buckets) that mostly stays the same when buckets are added: jump consistent hash.

    Java: com.google.common.hash.Hashing.consistentHash(long, int).
    """
    state, candidate = value & 0xFFFF_FFFF_FFFF_FFFF, 0
    while True:
        state = (_LCG_FACTOR * state + 1) & 0xFFFF_FFFF_FFFF_FFFF
        following = int((candidate + 1) / (((state >> 33) + 1) / 2.0**31))
        if following >= buckets:
            return candidate
        candidate = following
