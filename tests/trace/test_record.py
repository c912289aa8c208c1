"""One event, read by a person and by a program."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from mqlab.trace.catalogue import CATALOGUE, fields_of
from mqlab.trace.events.broker import BrokerShutDown, PullHeld
from mqlab.trace.events.world import NodeStarted
from mqlab.trace.history import History
from mqlab.trace.record import KIND, Record, format_trace, record_class, records

ROW = (
    41,
    1,
    3_000_250,
    "broker-a",
    "PullMessageThread_1",
    41,
    0,
    "PullHeld",
    "readers",
    "TopicTest",
    3,
    17,
    15_000,
    42,
    "c",
)


def test_a_record_reads_a_row() -> None:
    record = Record(ROW)
    assert (record.slice, record.i, record.at) == (41, 1, (41, 1))
    assert (record.ts_us, record.ts_ms) == (3_000_250, 3_000.25)
    assert (record.node, record.task, record.kind) == ("broker-a", "PullMessageThread_1", "PullHeld")
    assert record.cause == (41, 0)
    assert record.event == PullHeld("readers", "TopicTest", 3, 17, 15_000, 42, "c")
    assert (record.group, record.queue_id, record.hold_ms) == ("readers", 3, 15_000)
    assert record.fields == record.event._asdict()
    assert record.get("topic") == "TopicTest"
    assert record.get("size", 0) == 0


def test_an_event_without_a_cause_says_so() -> None:
    assert Record((0, 0, 0, "broker-a", "main", -1, -1, "NodeStarted", "broker-a", 1)).cause is None


def test_a_field_that_is_not_there_is_answered_with_those_that_are() -> None:
    with pytest.raises(AttributeError, match="PullHeld has no field 'size'; it has: group, topic, queue_id"):
        _ = Record(ROW).size
    assert "hold_ms" in dir(Record(ROW))


@pytest.mark.parametrize("kind", CATALOGUE)
def test_the_class_of_a_kind_reads_as_any_record_does(kind: str) -> None:
    row = (*ROW[:KIND], kind, *range(len(fields_of(kind))))
    record, quick = Record(row), record_class(kind)(row)
    assert isinstance(quick, Record)
    assert quick == record
    assert hash(quick) == hash(record)
    assert pickle.loads(pickle.dumps(quick)) == record
    assert str(quick) == str(record)
    for name in ("slice", "i", "ts_us", "node", "task", "kind", "at", "cause", *fields_of(kind)):
        assert getattr(quick, name) == getattr(record, name)
    with pytest.raises(AttributeError, match=f"{kind} has no field 'no_such'"):
        _ = quick.no_such


def test_records_of_one_row_are_equal_and_travel() -> None:
    assert Record(ROW) == Record(tuple(ROW))
    assert len({Record(ROW), Record(tuple(ROW))}) == 1
    assert pickle.loads(pickle.dumps(Record(ROW))) == Record(ROW)


def test_a_record_is_one_dense_line() -> None:
    assert str(Record(ROW)) == (
        "    3000.250 ms  broker-a     PullMessageThread_1          PullHeld               "
        "group=readers topic=TopicTest queue_id=3 queue_offset=17 hold_ms=15000 opaque=42 remote=c"
    )


def test_a_text_with_spaces_or_without_any_letter_is_quoted() -> None:
    line = str(Record((0, 0, 0, "client-1", "main", -1, -1, "NameServerChosen", "", "a b\n")))
    assert line.endswith(r"previous='' chosen='a b\n'")


def test_a_trace_as_text_has_one_line_for_each_event(play: Callable[[Any], History]) -> None:
    history = play([(1, "broker-a", NodeStarted("broker-a", 1)), (2.5, "broker-a", BrokerShutDown("broker-a", 0))])
    assert format_trace(history.rows()) == "".join(f"{record}\n" for record in records(history.rows()))
    assert format_trace(history.rows()).splitlines()[1].split() == [
        "2.500", "ms", "broker-a", "emit", "BrokerShutDown", "broker_name=broker-a", "broker_id=0",
    ]  # fmt: skip


def test_a_notebook_shows_the_same_as_the_text() -> None:
    html = Record(ROW)._repr_html_()
    assert "<b>PullHeld</b>" in html
    assert "3000.250 ms" in html
    for name, value in Record(ROW).fields.items():
        assert f"{name}=<b>{value}</b>" in html


def test_what_an_event_says_cannot_break_the_page() -> None:
    row = (*ROW[:8], "<script>", *ROW[9:])
    assert "&lt;script&gt;" in Record(row)._repr_html_()
