"""What a consumer makes of an answer whose bytes are not all records: it keeps what comes before them."""

from __future__ import annotations

from mqlab.client.consumer.pull_api_wrapper import decoded
from mqlab.protocol.record import encode_record


def record(text: str) -> bytes:
    host = "10.0.0.2:10911"
    return bytes(encode_record("Orders", text.encode(), "", 0, 0, 0, 0, 0, host, host))


def test_whole_records_are_messages() -> None:
    assert [message.body for message in decoded(record("one") + record("two"))] == [b"one", b"two"]


def test_what_follows_bytes_that_are_no_record_is_dropped() -> None:
    answer = record("one") + b"." * 91 + record("two")
    assert [message.body for message in decoded(answer)] == [b"one"]


def test_an_answer_that_begins_between_two_records_has_no_message() -> None:
    assert decoded(b"." * 200) == []
    assert decoded(b"") == []
