"""A queue of SQS: each sentence of its documentation that the model keeps."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.cousins import SqsError, SqsQueue
from mqlab.cousins.sqs_queue import MOST_IN_FLIGHT, MOST_VISIBILITY_S, VISIBILITY_TIMEOUT_S

HOUR_MS = 3_600_000


def filled(count: int = 1, **settings: int) -> SqsQueue:
    queue = SqsQueue(**settings)
    for number in range(count):
        queue.send(f"order {number}")
    return queue


def test_the_limits_are_those_of_sqs() -> None:
    assert (VISIBILITY_TIMEOUT_S, MOST_VISIBILITY_S, MOST_IN_FLIGHT) == (30, 12 * 3_600, 120_000)


def test_a_message_is_hidden_until_its_time_is_over_and_counted_with_each_receive() -> None:
    queue = filled()
    (first,) = queue.receive(1, 0)
    assert queue.receive(1, 29_999) == []
    (second,) = queue.receive(1, 30_000)
    assert (first.receive_count, second.receive_count) == (1, 2)
    assert first.receipt_handle != second.receipt_handle


def test_a_late_delete_deletes_while_nobody_else_has_received_the_message() -> None:
    queue = filled()
    (first,) = queue.receive(1, 0)
    assert queue.receive(1, 10_000) == []
    assert queue.delete(first.receipt_handle)
    assert not queue.messages


def test_a_delete_with_an_old_handle_is_no_error_and_deletes_nothing() -> None:
    queue = filled()
    (first,) = queue.receive(1, 0)
    (second,) = queue.receive(1, 30_000)
    assert not queue.delete(first.receipt_handle)
    assert queue.messages
    assert queue.delete(second.receipt_handle)
    assert not queue.delete(second.receipt_handle), "a second time is no error either"


def test_visibility_is_changed_from_now_on_and_ends_twelve_hours_behind_the_receive() -> None:
    queue = filled()
    (message,) = queue.receive(1, 0, 10)
    queue.change_visibility(message.receipt_handle, 20, 9_000)
    assert queue.receive(1, 28_999) == []
    queue.change_visibility(message.receipt_handle, MOST_VISIBILITY_S - 28, 28_000)
    with pytest.raises(SqsError, match="InvalidParameterValue"):
        queue.change_visibility(message.receipt_handle, 11 * 3_600 + 1, HOUR_MS)
    queue.change_visibility(message.receipt_handle, 0, HOUR_MS)
    assert queue.receive(1, HOUR_MS)[0].receive_count == 2


def test_only_a_message_in_flight_has_a_visibility_to_change() -> None:
    queue = filled()
    (first,) = queue.receive(1, 0)
    with pytest.raises(SqsError, match="MessageNotInflight"):
        queue.change_visibility(first.receipt_handle, 30, 30_000)
    queue.receive(1, 30_000)
    with pytest.raises(SqsError, match="ReceiptHandleIsInvalid"):
        queue.change_visibility(first.receipt_handle, 30, 30_001)


def test_what_was_received_as_often_as_it_may_goes_to_the_dead_letters_with_the_next_receive() -> None:
    queue = filled(max_receive_count=2)
    for now_ms in (0, 30_000):
        assert len(queue.receive(1, now_ms)) == 1
    assert not queue.dead_letters, "its time is not over, and nobody has asked"
    assert queue.receive(1, 60_000) == []
    assert [message.receive_count for message in queue.dead_letters] == [2]


def test_too_many_in_flight() -> None:
    queue = filled(3, most_in_flight=2)
    assert len(queue.receive(10, 0)) == 2
    with pytest.raises(SqsError, match="OverLimit"):
        queue.receive(1, 1)


@pytest.mark.parametrize(("most", "visibility_s"), [(0, 30), (11, 30), (1, -1), (1, MOST_VISIBILITY_S + 1)])
def test_what_sqs_does_not_take_is_refused(most: int, visibility_s: int) -> None:
    with pytest.raises(SqsError, match="InvalidParameterValue"):
        filled().receive(most, 0, visibility_s)


def test_a_queue_that_was_loaded_gives_no_id_twice() -> None:
    queue = filled(2)
    again = SqsQueue()
    again.load(json.loads(json.dumps(queue.as_json())))
    assert again.send("one more") == "m-3"


STEPS = st.lists(
    st.tuples(st.sampled_from(("receive", "delete", "change", "pass", "restart")), st.integers(0, 40)), max_size=50
)


@given(STEPS)
def test_whatever_consumers_do(steps: list[tuple[str, int]]) -> None:
    """What is hidden is given to nobody, what is deleted never comes again, and nothing else is ever lost."""
    queue, now_ms = filled(5, max_receive_count=3), 0
    handles: list[str] = []
    hidden_until: dict[str, int] = {}
    deleted: set[str] = set()
    for what, number in steps:
        if what == "receive":
            for message in queue.receive(1 + number % 3, now_ms, number):
                assert hidden_until.get(message.message_id, 0) <= now_ms
                assert message.message_id not in deleted
                assert message.receive_count <= 3
                hidden_until[message.message_id] = now_ms + number * 1_000
                handles.append(message.receipt_handle)
        elif what == "delete" and handles:
            handle = handles[number % len(handles)]
            if queue.delete(handle):
                deleted.add(handle.partition("/")[0])
        elif what == "change" and handles:
            handle = handles[number % len(handles)]
            with suppress(SqsError):
                hidden_until[queue.change_visibility(handle, number, now_ms)] = now_ms + number * 1_000
        elif what == "pass":
            now_ms += number * 1_000
        else:
            again = SqsQueue(max_receive_count=3)
            again.load(json.loads(json.dumps(queue.as_json())))
            queue = again
        kept = {*queue.messages, *(message.message_id for message in queue.dead_letters)}
        assert kept | deleted == {f"m-{number}" for number in range(1, 6)}
        assert not kept & deleted
