"""From a row back to its world: the live view, standing at the event that the row tells of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mqlab.data_sets.named_worlds import TRACE_HASH, played_world, world_of
from mqlab.errors import LearnerError
from mqlab.lab import Lab
from mqlab.trace.record import Record
from mqlab_spark.reading import hashes_in_tables, name_in_tables
from mqlab_spark.schema import WORLD, WORLD_NAME, world_id
from mqlab_spark.traces import hashes_read, name_read

if TYPE_CHECKING:
    from mqlab_widgets import Stepper
    from mqlab_widgets.boards.board import Board

KEYS = ("msg_id", "unique_key")
"""The columns that name a message."""

SAME = ("slice", "i", "node", "kind")
"""What a row of the table of events and the event itself have in common in any case."""

NOT_OF_AN_EVENT = (WORLD, "seq", "ts_us", TRACE_HASH)


def open_at(row: Any, boards: Sequence[type[Board]] = (), *, at: str | None = None) -> Stepper:
    """The live view of the world that a row is from, standing at the event that the row tells of.

    `row` is a row of a Spark or pandas DataFrame, or a dict. Its `world` is played anew: a name, or the number that
    tables have, where these were opened in this process or the row has the world's `name`, too. The event is the
    `seq`-th of the world (from 0) or that at `ts_us`; of a row with several times, the first of its columns that end in
    `_us` and are not null, or the one that `at` names; of one with only a `second`, its end. Of several events at that
    time it is the one that agrees with most of the row. The message that the row is of is followed.

    LearnerError when the row does not say of which world or when it is, when nothing leads back to that world, and when
    the world does not come out as it was recorded (the trace hash that is known of it is compared).
    """
    fields = _fields(row)
    name = _name(fields)
    seq, at_us = _when(fields, at)
    try:
        spec = world_of(name)
    except LearnerError as problem:
        raise LearnerError(
            f"nothing leads back to the world {name!r}: {problem.message}",
            "record traces with `mqlab trace`, `mqlab dataset` or mqlab.data_sets: their headers name the world",
        ) from None
    lab = played_world(spec).lab
    _check_hash(name, lab, fields.get(TRACE_HASH))
    place = _place(lab, name, fields, seq, at_us)
    lab.history.move_to(place + 1)
    return _view(lab, boards, fields)


def _fields(row: Any) -> dict[str, Any]:
    """The columns of a row that have a value, numbers as Python's own."""
    as_dict = getattr(row, "asDict", None) or getattr(row, "to_dict", None)
    fields = as_dict() if as_dict is not None else dict(row) if isinstance(row, Mapping) else None
    if not isinstance(fields, dict):
        raise LearnerError(f"{row!r} is no row", "give a row of a DataFrame, like table.first(), or a dict")
    plain = {key: value.item() if hasattr(value, "item") else value for key, value in fields.items()}
    # pandas makes a column of whole numbers with gaps into one of floats, where a gap is not equal to itself.
    return {
        key: int(value) if isinstance(value, float) and value.is_integer() else value
        for key, value in plain.items()
        if value is not None and value == value
    }


def _name(fields: Mapping[str, Any]) -> str:
    """The name of a row's world."""
    world = fields.get(WORLD)
    if isinstance(world, str) and world:
        return world
    if type(world) is not int:
        raise LearnerError("this row does not say of which world it is", f"keep the column {WORLD!r} in the table")
    told = fields.get(WORLD_NAME)
    name = told if isinstance(told, str) and world_id(told) == world else name_in_tables(world) or name_read(world)
    if name is None:
        raise LearnerError(
            f"nothing here tells the name of the world with the number {world}",
            f"open its tables with tables_at, or join the column {WORLD_NAME!r} of their table `worlds`",
        )
    return name


def _when(fields: Mapping[str, Any], at: str | None) -> tuple[int | None, int | None]:
    """The place of the event, or its time; one of them is None."""
    times = [name for name, value in fields.items() if name.endswith("_us") and type(value) is int]
    if at is not None:
        if at not in times:
            raise LearnerError(f"this row has no time {at!r}", f"it has: {', '.join(times) or 'none'}")
        return None, fields[at]
    if type(fields.get("seq")) is int:
        return fields["seq"], None
    if not times and type(fields.get("second")) is int:
        return None, (fields["second"] + 1) * 1_000_000
    if not times:
        raise LearnerError("this row does not say when it happened", "keep a column like ts_us, or seq, in the table")
    return None, fields["ts_us" if "ts_us" in times else times[0]]


def _check_hash(name: str, lab: Lab, told: str | None) -> None:
    known = {told} if told is not None else hashes_read(name) | hashes_in_tables(name)
    if known and lab.trace_hash() not in known:
        raise LearnerError(
            f"the world {name!r} does not come out as it was recorded: its trace hash is {lab.trace_hash()}, "
            f"and {' or '.join(sorted(known))} was recorded",
            "another version of mqlab recorded it: install that one, or record the world again",
        )


def _place(lab: Lab, name: str, fields: Mapping[str, Any], seq: int | None, at_us: int | None) -> int:
    """The place of the event that is meant, from 0."""
    events = len(lab.history)
    if seq is not None or at_us is None:
        if seq is None or not 0 <= seq < events:
            raise LearnerError(f"the world {name!r} has {events} events, and no event {seq}", "is the row of it?")
        return seq
    at_us = min(at_us, lab.world.now_us) if "second" in fields else at_us
    if not events or not 0 <= at_us <= lab.world.now_us:
        raise LearnerError(
            f"the world {name!r} ends at {lab.world.now_us} us, and has no event at {at_us} us", "is the row of it?"
        )
    end = lab.history.place_after(at_us / 1_000)
    at_us = lab.history.record(max(0, end - 1)).ts_us
    wanted = {key: value for key, value in fields.items() if key not in NOT_OF_AN_EVENT}
    best, most = max(0, end - 1), -1
    for place in range(end - 1, -1, -1):
        record = lab.history.record(place)
        if record.ts_us != at_us:
            break
        agrees = _agreement(record, wanted)
        if agrees > most or agrees == most > 0:
            best, most = place, agrees
    if "kind" in fields and any(fields.get(key) not in (None, _told(lab.history.record(best))[key]) for key in SAME):
        raise LearnerError(
            f"the world {name!r} does not come out as it was recorded: {lab.history.record(best)} is there instead",
            "another version of mqlab recorded it: install that one, or record the world again",
        )
    return best


def _told(record: Record) -> dict[str, Any]:
    """All that an event says, by the names of a table's columns."""
    return {**{key: getattr(record, key) for key in (*SAME, "task")}, **record.fields}


def _agreement(record: Record, wanted: Mapping[str, Any]) -> int:
    """In how many columns an event agrees with a row."""
    told = _told(record)
    told.update({key: told[other] for key, other in (KEYS, KEYS[::-1]) if key not in told and other in told})
    return sum(1 for key, value in wanted.items() if key in told and told[key] == value)


def _view(lab: Lab, boards: Sequence[type[Board]], fields: Mapping[str, Any]) -> Stepper:
    try:
        from mqlab_widgets import Stepper
    except ImportError as problem:
        hint = "pip install 'mqlab[labs]', or in a clone: make lab"
        raise LearnerError(f"there is no live view here: {problem}", hint) from None
    stepper = Stepper(lab, boards)
    message = next((fields[key] for key in KEYS if isinstance(fields.get(key), str)), "")
    if message:
        stepper.session.do({"do": "follow", "message": message})
    return stepper
