"""A row of bits over bytes."""

from __future__ import annotations


class BitsArray:
    """Bits that are set one by one (org.apache.rocketmq.filter.util.BitsArray).

    Bit 0 is the lowest of the first byte. `bytes` is the row itself, as it lies in a file.
    """

    __slots__ = ("_bytes", "bit_length")

    def __init__(self, bits: int | bytes) -> None:
        """A row of so many bits, none of them set; or the row that lies in these bytes. ValueError for no bytes."""
        if isinstance(bits, int):
            self.bit_length = bits
            self._bytes = bytearray((bits + 7) // 8)
        else:
            if not bits:
                raise ValueError("Bytes is empty!")
            self.bit_length = len(bits) * 8
            self._bytes = bytearray(bits)

    @property
    def bytes(self) -> bytes:
        """The row as bytes."""
        return bytes(self._bytes)

    def set_bit(self, position: int) -> None:
        """Set one bit; IndexError outside of the row."""
        self._bytes[self._checked(position) >> 3] |= 1 << (position & 7)

    def get_bit(self, position: int) -> bool:
        """Is it set? IndexError outside of the row."""
        return bool(self._bytes[self._checked(position) >> 3] >> (position & 7) & 1)

    def _checked(self, position: int) -> int:
        if not 0 <= position < self.bit_length:
            raise IndexError(f"bit {position} is outside of a row of {self.bit_length} bits")
        return position
