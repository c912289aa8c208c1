"""A recorded trace that can be changed: rows taken out, put in, moved to another time, and written as a trace again."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from mqlab.data_sets.named_worlds import TRACE_HASH
from mqlab.trace.bus import COMMON_FIELDS, Row
from mqlab.trace.catalogue import positions
from mqlab.trace.digest import TraceDigest
from mqlab.trace.record import KIND, NODE, TS_US
from mqlab.trace.recorded import read_json_lines, read_parquet
from mqlab.trace.recorder import JsonLinesRecorder, ParquetRecorder
from mqlab.views.journey import CONSUMED
from mqlab_spark.traces import TraceFile

SLICE, PLACE = COMMON_FIELDS.index("slice"), COMMON_FIELDS.index("i")


def get(row: Row, field: str) -> Any:
    """A field of its kind of a row."""
    return row[positions()[row[KIND]][field]]


def with_fields(row: Row, **fields: Any) -> Row:
    """The row with other values in these columns."""
    places = {**{name: place for place, name in enumerate(COMMON_FIELDS)}, **positions()[row[KIND]]}
    values = list(row)
    for name, value in fields.items():
        values[places[name]] = value
    return tuple(values)


class Call:
    """A group's only call with a message, which went well: the places of its two events among the rows."""

    def __init__(self, group: str, key: str, began: int, ended: int) -> None:
        self.group = group
        self.key = key
        self.began = began
        self.ended = ended


class World:
    """A trace to be changed: its rows, what is known of its messages, and what was changed already."""

    def __init__(self, file: TraceFile) -> None:
        self.file = file
        read = read_json_lines if file.path.endswith(".jsonl") else read_parquet
        self.rows: list[Row | None] = list(read(file.path))
        self.added: list[Row] = []
        self.used: set[str] = set()
        """The keys of messages, and the machines, of which something was changed."""
        self.is_closed = False
        self._next_i: dict[int, int] = {}

    # -- what is known -------------------------------------------------------------------------------------------------

    @cached_property
    def of_kind(self) -> Mapping[str, list[int]]:
        """The places of the rows of each kind, before anything was changed."""
        places: dict[str, list[int]] = defaultdict(list)
        for place, row in enumerate(self.rows):
            places[row[KIND]].append(place)  # type: ignore[index]
        return places

    def find(self, *kinds: str) -> Iterator[tuple[int, Row]]:
        """The rows of these kinds that are left, with their places."""
        for kind in kinds:
            for place in self.of_kind.get(kind, ()):
                row = self.rows[place]
                if row is not None:
                    yield place, row

    @cached_property
    def stored(self) -> dict[str, int]:
        """The place of the only copy of each message that was stored once, in the topic that it was sent to, and
        acknowledged.
        """
        copies: dict[str, list[int]] = defaultdict(list)
        for place, row in self.find("MessageStored"):
            copies[get(row, "unique_key")].append(place)
        topics = {get(row, "msg_id"): get(row, "topic") for _, row in self.find("SendAttempted")}
        known = {get(row, "msg_id") for _, row in self.find("SendSucceeded")}
        odd = {get(row, "unique_key") for _, row in self.find("SendBackStored", "MessagePopped", "HalfMessageHidden")}
        return {
            key: places[0]
            for key, places in copies.items()
            if len(places) == 1 and key in known - odd and topics.get(key) == get(self._row(places[0]), "topic")
        }

    @cached_property
    def at(self) -> dict[tuple[Any, ...], str]:
        """(broker, topic, queue, offset) -> the message there, of those that were stored once."""
        names = ("topic", "queue_id", "queue_offset")
        rows = ((key, self._row(place)) for key, place in self.stored.items())
        return {(row[NODE], *(get(row, name) for name in names)): key for key, row in rows}

    @cached_property
    def calls(self) -> dict[str, list[Call]]:
        """The calls with each of these messages: one of each group that was given it, which went well."""
        several = {get(row, "group") for _, row in self.find("ConsumeStarted") if get(row, "messages") != 1}
        several |= {get(row, "group") for _, row in self.find("MessagesPolled")}
        began, ended = self._by_group("ConsumeStarted"), self._by_group("ConsumeFinished")
        found: dict[str, list[Call]] = defaultdict(list)
        for (group, key), places in began.items():
            ends = ended.get((group, key), [])
            if key in self.stored and len(places) == len(ends) == 1:
                first, last = self._row(places[0]), self._row(ends[0])
                if get(last, "status") in CONSUMED and first[NODE] == last[NODE] and not get(first, "reconsume_times"):
                    found[key].append(Call(group, key, places[0], ends[0]))
        times = Counter(key for _, key in began)
        return {
            key: calls
            for key, calls in found.items()
            if len(calls) == times[key] and several.isdisjoint(self.groups_of(self.topic_of(key)))
        }

    def _by_group(self, kind: str) -> dict[tuple[str, str], list[int]]:
        places: dict[tuple[str, str], list[int]] = defaultdict(list)
        for place, row in self.find(kind):
            places[get(row, "group"), get(row, "msg_id")].append(place)
        return places

    @cached_property
    def wishes(self) -> dict[tuple[str, str], set[str]]:
        """(group, topic) -> what the group said that it wants; nothing of who has a condition, which is no tag."""
        by_condition = {(get(row, "group"), get(row, "topic")) for _, row in self.find("ConsumerFilterChanged")}
        told: dict[tuple[str, str], set[str]] = defaultdict(set)
        for _, row in self.find("SubscriptionChanged"):
            if get(row, "expression"):
                told[get(row, "group"), get(row, "topic")].add(get(row, "expression"))
        return {whose: set() if whose in by_condition else wanted for whose, wanted in told.items()}

    def groups_of(self, topic: str) -> list[str]:
        """The groups that subscribed to a topic."""
        return sorted({group for group, wanted in self.wishes if wanted == topic})

    @cached_property
    def committed(self) -> dict[tuple[Any, ...], int]:
        """(broker, group, topic, queue) -> up to where the broker has the group as done at the end."""
        return {
            (row[NODE], *(get(row, name) for name in ("group", "topic", "queue_id"))): get(row, "queue_offset")
            for _, row in self.find("OffsetCommitted")
        }

    def is_behind(self, call: Call) -> bool:
        """Will the group never ask for the message again?"""
        row = self._row(self.stored[call.key])
        queue = (row[NODE], call.group, get(row, "topic"), get(row, "queue_id"))
        return self.committed.get(queue, 0) > int(get(row, "queue_offset"))

    def _row(self, place: int) -> Row:
        row = self.rows[place]
        assert row is not None
        return row

    def free_calls(self) -> list[Call]:
        """The calls of messages of which nothing was changed yet, in order."""
        free = [call for key, calls in self.calls.items() if key not in self.used for call in calls]
        return sorted(free, key=lambda call: (call.began, call.group))

    def topic_of(self, key: str) -> str:
        """The topic of a message that was stored once."""
        return str(get(self._row(self.stored[key]), "topic"))

    # -- changing ------------------------------------------------------------------------------------------------------

    def drop(self, *places: int) -> None:
        """Take rows out."""
        for place in places:
            self.rows[place] = None

    def add(self, row: Row, ts_us: int, **fields: Any) -> None:
        """Put a row in, with other fields, at another time: at the end of the slice that is the last one until then."""
        last = max((other[SLICE] for other in self._all() if other[TS_US] <= ts_us), default=0)
        if last not in self._next_i:
            self._next_i[last] = 1 + max((other[PLACE] for other in self._all() if other[SLICE] == last), default=-1)
        self.added.append(with_fields(row, slice=last, i=self._next_i[last], ts_us=ts_us, **fields))
        self._next_i[last] += 1

    def move(self, place: int, ts_us: int) -> None:
        """Let a row happen at another time."""
        row = self._row(place)
        self.drop(place)
        self.add(row, ts_us)

    def drop_store(self, key: str) -> None:
        """Take out that a message was stored, and that it came into its queue."""
        row = self._row(self.stored[key])
        queue = ("topic", "queue_id", "queue_offset")
        self.drop(self.stored[key], *(
            place for place, other in self.find("MessageDispatched")
            if other[NODE] == row[NODE] and all(get(other, name) == get(row, name) for name in queue)
        ))  # fmt: skip

    def shift(self, node: str, by_us: int) -> None:
        """Set the clock of a machine."""
        self.rows = [
            with_fields(row, ts_us=row[TS_US] + by_us) if row is not None and row[NODE] == node else row
            for row in self.rows
        ]

    def _all(self) -> Iterator[Row]:
        yield from (row for row in self.rows if row is not None)
        yield from self.added

    def write(self, out: Path) -> str:
        """Write the trace as it is now; the hash of its events."""
        rows = sorted(self._all(), key=lambda row: (row[SLICE], row[PLACE]))
        digest = TraceDigest()
        for row in rows:
            digest(row)
        about = {**self.file.header["metadata"], TRACE_HASH: digest.hexdigest()}
        recorder = JsonLinesRecorder if self.file.path.endswith(".jsonl") else ParquetRecorder
        with recorder(out, about) as record:
            for row in rows:
                record(row)
        return digest.hexdigest()
