"""History: every event of a world, the newest in memory and the rest in a temporary file."""

from __future__ import annotations

import marshal
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import IO, Any, overload

from mqlab.errors import LearnerError
from mqlab.trace.bus import Row
from mqlab.trace.catalogue import check_row
from mqlab.trace.matching import Kinds, row_filter
from mqlab.trace.record import Record

KEEP_ROWS = 100_000
"""How many rows stay in memory at most."""

BLOCK_ROWS = 1_000
"""How many rows are written, and read again, at a time."""

SPILL_ROWS = 10 * BLOCK_ROWS
"""How many of the oldest rows leave memory when it is full."""

CACHED_BLOCKS = 4


class History:
    """A sink that keeps all events of a world.

    `len(history)` counts them, `history[n]` reads one, `history[m:n]` some, `for record in history` all. At most
    100,000 rows stay in memory; older ones go to an anonymous temporary file, which ends with the history. The
    `cursor` is a place between two events: `cursor == n` means that `n` events lie behind it.
    """

    def __init__(self, *, follow: bool = False) -> None:
        self._recent: list[Row] = []
        self._spilled = _Spill()
        self._follow = follow
        self._cursor: int | None = None if follow else 0

    def __call__(self, row: Row) -> None:
        recent = self._recent
        recent.append(row)
        if len(recent) >= KEEP_ROWS:
            self._spilled.append(recent[:SPILL_ROWS])
            del recent[:SPILL_ROWS]

    # -- reading ----------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._spilled.count + len(self._recent)

    def row(self, n: int) -> Row:
        """The n-th event as atoms, counted from 0. IndexError outside of the history."""
        length = len(self)
        if not -length <= n < length:
            raise IndexError(f"the history has {length} events, so there is no event {n}")
        n %= length
        spilled = self._spilled.count
        return self._recent[n - spilled] if n >= spilled else self._spilled.row(n)

    def record(self, n: int) -> Record:
        """The n-th event, counted from 0. IndexError outside of the history."""
        return Record(self.row(n))

    @overload
    def __getitem__(self, n: int) -> Record: ...
    @overload
    def __getitem__(self, n: slice) -> list[Record]: ...
    def __getitem__(self, n: int | slice) -> Record | list[Record]:
        if isinstance(n, slice):
            start, stop, step = n.indices(len(self))
            if step == 1:
                return self.records(start, stop)
            return [self.record(place) for place in range(start, stop, step)]
        return self.record(n)

    def __iter__(self) -> Iterator[Record]:
        return map(Record, self.rows())

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        """The rows from place `start` up to (not including) `stop`, lazily; without `stop`, up to the last one now."""
        end = len(self) if stop is None else min(stop, len(self))
        place = max(start, 0)
        while place < end:
            spilled = self._spilled.count
            if place < spilled:
                first = place % BLOCK_ROWS
                part = self._spilled.block(place // BLOCK_ROWS)[first : first + end - place]
            else:
                part = self._recent[place - spilled : min(end - spilled, place - spilled + BLOCK_ROWS)]
            yield from part
            place += len(part)

    def records(self, start: int = 0, stop: int | None = None) -> list[Record]:
        """The events from place `start` up to (not including) `stop` as a list; for a long stretch, iterate instead."""
        return list(map(Record, self.rows(start, stop)))

    def find(self, kind: Kinds = None, *, start: int = 0, stop: int | None = None, **fields: Any) -> Iterator[Record]:
        """The events of this kind with these values, lazily: `find(PullHeld, node="broker-a", queue_id=3)`."""
        matches = row_filter(kind, **fields)
        return (Record(row) for row in self.rows(start, stop) if matches(row))

    def last(self, kind: Kinds = None, *, before: int | None = None, **fields: Any) -> Record | None:
        """The newest event of this kind with these values (before place `before`), or None."""
        place = self._last_place(row_filter(kind, **fields), len(self) if before is None else before)
        return None if place is None else self.record(place)

    def _last_place(self, matches: Callable[[Row], bool], end: int) -> int | None:
        end = min(end, len(self))
        while end > 0:
            start = (end - 1) // BLOCK_ROWS * BLOCK_ROWS
            hits = [start + k for k, row in enumerate(self.rows(start, end)) if matches(row)]
            if hits:
                return hits[-1]
            end = start
        return None

    def between(self, start_ms: float, end_ms: float) -> Iterator[Record]:
        """The events from one time of the world to another, both included, lazily."""
        # 2047.387 ms is no whole number of us in binary, and the event at it must not be missed.
        first = bisect_left(range(len(self)), round(start_ms * 1_000), key=self._ts_us)
        return map(Record, self.rows(first, self.place_after(end_ms)))

    def place_after(self, ms: float) -> int:
        """How many events happened up to this time of the world, the time itself included."""
        return bisect_right(range(len(self)), round(ms * 1_000), key=self._ts_us)

    def _ts_us(self, n: int) -> int:
        return int(self.row(n)[2])

    # -- causes -----------------------------------------------------------------------------------------------------

    def index_of(self, at: tuple[int, int]) -> int:
        """The place of the event with id (slice, i). KeyError if the history does not have it."""
        recent = self._recent
        if recent and at >= recent[0][:2]:
            rows, first = recent, self._spilled.count
        else:
            rows, first = self._spilled.block_with(at)
        place = bisect_left(rows, at, key=_id_of)
        if place == len(rows) or _id_of(rows[place]) != at:
            raise KeyError(f"the history has no event {at}")
        return first + place

    def cause_of(self, record: Record) -> Record | None:
        """The event that led to this one; None if there was none, or if it happened before the history began."""
        if record.cause is None:
            return None
        try:
            return self.record(self.index_of(record.cause))
        except KeyError:
            return None

    def chain(self, record: Record) -> list[Record]:
        """How it came to this event: all causes back to the first, oldest first, the event itself last."""
        if not isinstance(record, Record):
            raise LearnerError(f"{record!r} is not an event", "give one of the history: history.last('MessageStored')")
        chain = [record]
        while (cause := self.cause_of(chain[-1])) is not None:
            chain.append(cause)
        return chain[::-1]

    # -- the cursor -------------------------------------------------------------------------------------------------

    @property
    def cursor(self) -> int:
        """How many events lie behind the cursor. With `follow`, a cursor that stands at the end stays there."""
        return len(self) if self._cursor is None else self._cursor

    @cursor.setter
    def cursor(self, place: int) -> None:
        self._cursor = None if self._follow and place >= len(self) else place

    def hold(self, place: int) -> None:
        """Put the cursor behind `place` events, where it stays although there may be the end and more events come."""
        self._cursor = place

    @property
    def at_cursor(self) -> Record | None:
        """The last event behind the cursor: the one that happened most recently, seen from there. None at the start."""
        return self.record(self.cursor - 1) if self.cursor > 0 else None

    def move_to(self, place: int) -> Record | None:
        """Put the cursor behind `place` events (it stops at both ends), and return the last of them."""
        self.cursor = max(0, min(place, len(self)))
        return self.at_cursor

    def forward(self, kind: Kinds = None, **fields: Any) -> Record | None:
        """Move the cursor behind the next event that is meant, and return it; None, unmoved, if there is none."""
        matches = row_filter(kind, **fields)
        for place, row in enumerate(self.rows(self.cursor), self.cursor):
            if matches(row):
                return self.move_to(place + 1)
        return None

    def back(self, kind: Kinds = None, **fields: Any) -> Record | None:
        """Move the cursor behind the event before that is meant, and return it; None, unmoved, if there is none."""
        place = self._last_place(row_filter(kind, **fields), self.cursor - 1)
        return None if place is None else self.move_to(place + 1)

    def __repr__(self) -> str:
        return f"<History: {len(self)} events, cursor at {self.cursor}>"


class _Spill:
    """The rows that left memory: blocks in an anonymous temporary file, and where each begins.

    The file lives as long as the history and is read by nobody else, so its form may be Python's own (`marshal`): ten
    times cheaper than JSON, which keeps the hook cheap.
    """

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._starts = [0]
        self._first_ids: list[tuple[int, int]] = []
        self._cache: dict[int, list[Row]] = {}

    @property
    def count(self) -> int:
        return (len(self._starts) - 1) * BLOCK_ROWS

    def append(self, rows: list[Row]) -> None:
        """Write rows, a whole number of blocks."""
        blocks = [_dump(rows[k : k + BLOCK_ROWS]) for k in range(0, len(rows), BLOCK_ROWS)]
        try:
            if self._file is None:
                import tempfile

                self._file = tempfile.TemporaryFile()  # noqa: SIM115  it lives as long as the history
            self._file.seek(self._starts[-1])
            self._file.write(b"".join(blocks))
            self._file.flush()
        except OSError as error:
            raise LearnerError(
                f"the history cannot be written to a temporary file: {error}",
                "set TMPDIR to a directory with space, or make the world without history: Lab(history=False)",
            ) from error
        for block in blocks:
            self._starts.append(self._starts[-1] + len(block))
        self._first_ids += [_id_of(row) for row in rows[::BLOCK_ROWS]]

    def block(self, number: int) -> list[Row]:
        """The rows of one block; the last few blocks that were read stay in memory."""
        rows = self._cache.pop(number, None)
        if rows is None:
            assert self._file is not None
            start, end = self._starts[number : number + 2]
            self._file.seek(start)
            rows = marshal.loads(self._file.read(end - start))  # noqa: S302  our own bytes, in a file without a name
        self._cache[number] = rows
        if len(self._cache) > CACHED_BLOCKS:
            del self._cache[next(iter(self._cache))]
        return rows

    def row(self, n: int) -> Row:
        return self.block(n // BLOCK_ROWS)[n % BLOCK_ROWS]

    def block_with(self, at: tuple[int, int]) -> tuple[list[Row], int]:
        """The block in which the event `at` would be, and the place of the block's first row."""
        number = bisect_right(self._first_ids, at) - 1
        return ([], 0) if number < 0 else (self.block(number), number * BLOCK_ROWS)


def _id_of(row: Row) -> tuple[int, int]:
    return row[0], row[1]


def _dump(rows: list[Row]) -> bytes:
    try:
        return marshal.dumps(rows)
    except ValueError:
        for row in rows:
            check_row(row)
        raise
