"""The hash of a whole trace: two worlds with the same digest did the same things at the same times."""

from __future__ import annotations

from mqlab.trace.bus import Row

_BLOCK = 1_000


class TraceDigest:
    """A sink that hashes every event: blake2b over the `ascii` form of the rows, a line each.

    `ascii` and not `repr`, because what `repr` leaves unescaped depends on the Unicode tables of the Python at hand.
    """

    def __init__(self) -> None:
        # Imported here, as OpenSSL comes with it.
        from hashlib import blake2b

        self._hash = blake2b(digest_size=16)
        self._pending: list[Row] = []
        self.count = 0

    def __call__(self, row: Row) -> None:
        self._pending.append(row)
        if len(self._pending) >= _BLOCK:
            self._drain()

    def _drain(self) -> None:
        pending = self._pending
        if pending:
            self._hash.update(("\n".join(map(ascii, pending)) + "\n").encode("ascii"))
            self.count += len(pending)
            pending.clear()

    def hexdigest(self) -> str:
        """The digest of all events so far, 32 hexadecimal digits."""
        self._drain()
        return self._hash.copy().hexdigest()
