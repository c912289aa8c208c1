"""Labelled bytes: every byte of a record belongs to one named field."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mqlab.errors import LearnerError
from mqlab.views import LabelledBytes, label_consume_queue_entry, label_frame, label_record
from tests.worlds import send, shop, started_producer

GOLDEN = Path(__file__).parents[1] / "golden"


def records() -> list[dict[str, object]]:
    rows = json.loads((GOLDEN / "vectors" / "message-encode.json").read_text(encoding="utf-8"))["rows"]
    return [row for row in rows if any("Hex" in key for key in row)]


def covered(view: LabelledBytes) -> list[int]:
    return [at for field in view.fields for at in range(field.start, field.start + field.length)]


def test_the_fields_of_a_recorded_message_cover_it_without_gap_or_overlap() -> None:
    frames = 0
    for row in records():
        for key, value in row.items():
            if key.endswith("Hex") and isinstance(value, str) and value[8:16].upper() in ("DAA320A7", "DAA320AB"):
                data = bytes.fromhex(value)
                assert covered(label_record(data)) == list(range(len(data)))
                frames += 1
    assert frames > 0


def test_a_recorded_frame_is_labelled_completely() -> None:
    import base64

    line = (GOLDEN / "frames" / "client-json.jsonl").read_text(encoding="utf-8").splitlines()[1]
    row = json.loads(line)
    data = base64.b64decode(row["frame"])
    view = label_frame(data)
    assert covered(view) == list(range(len(data)))
    assert view["headerLength"].value == str(row["headerLength"])
    assert "JSON" in view["serializeType"].value


def test_a_queue_entry_says_where_its_message_is() -> None:
    view = label_consume_queue_entry(bytes.fromhex("00000000000000640000008000000000 0027a847".replace(" ", "")), 3)
    assert view["physicalOffset"].value.startswith("100")
    assert view["size"].value.startswith("128")
    assert view["tagsCode"].value.startswith("2598983")
    assert view.base == 3 * 20


def test_text_and_html_name_the_same_fields() -> None:
    view = label_consume_queue_entry(bytes(20), 0)
    for field in view.fields:
        assert field.name in str(view)
        assert field.name in view._repr_html_()


def test_bytes_that_end_too_early_are_a_clear_error() -> None:
    with pytest.raises(LearnerError, match="the bytes end inside size"):
        label_consume_queue_entry(bytes(9), 0)


def test_each_property_can_be_a_field_of_its_own() -> None:
    lab = shop()
    send(started_producer(lab), b"x", keys="k-1", tags="red")
    lab.run_for(ms=2)
    labelled = lab.queue("T").record(0, each_property=True)
    assert labelled["KEYS"].value == "k-1"
    assert labelled["TAGS"].value == "red"
    last = labelled.fields[-1]
    assert last.start + last.length == len(labelled.data)
    assert lab.queue("T").record(0).fields[-1].name == "properties"
