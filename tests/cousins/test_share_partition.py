"""The state machine of a share partition: each move of KIP-932, and what holds whatever consumers do."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.cousins import AcknowledgeType, InvalidRecordState, RecordState, SharePartition
from mqlab.cousins.share_partition import StateBatch

ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType
LOCK_MS = 1_000


def partition(**settings: int) -> SharePartition:
    """A share partition that begins at 0, with locks of a second."""
    return SharePartition(**{"lock_duration_ms": LOCK_MS, **settings})


def test_the_defaults_are_those_of_kafka() -> None:
    share = SharePartition()
    assert (share.delivery_count_limit, share.lock_duration_ms, share.max_record_locks) == (5, 30_000, 2_000)


def test_a_delivery_counts_when_a_record_is_acquired() -> None:
    share = partition()
    assert share.acquire("a", 2, log_end=3, now_ms=0) == [(0, 1), (1, 1)]
    assert share.acquire("b", 5, log_end=3, now_ms=1) == [(2, 1)]
    assert (share.start_offset, share.end_offset) == (0, 3)
    share.acknowledge("a", 1, RELEASE, 2)
    assert share.acquire("b", 5, log_end=3, now_ms=3) == [(1, 2)]


def test_the_window_begins_behind_what_has_come_to_an_end() -> None:
    share = partition()
    share.acquire("a", 3, log_end=9, now_ms=0)
    assert share.acknowledge("a", 1, ACCEPT, 1) is RecordState.ACKNOWLEDGED
    assert share.advance() == 0
    assert share.acknowledge("a", 0, REJECT, 1) is RecordState.ARCHIVED
    assert share.advance() == 2
    assert share.state_of(0) is RecordState.ARCHIVED
    assert share.state_of(7) is RecordState.AVAILABLE
    assert share.acknowledge("a", 0, ACCEPT, 2) is RecordState.ARCHIVED, "what lies before the window is not looked at"


def test_only_who_holds_a_record_may_say_what_becomes_of_it() -> None:
    share = partition()
    share.acquire("a", 1, log_end=9, now_ms=0)
    with pytest.raises(InvalidRecordState, match="held by a"):
        share.acknowledge("b", 0, ACCEPT, 1)
    with pytest.raises(InvalidRecordState, match="not acquired"):
        share.acknowledge("a", 5, ACCEPT, 1)
    assert share.time_out(LOCK_MS - 1) == []
    assert share.time_out(LOCK_MS) == [0]
    for kind in AcknowledgeType:
        with pytest.raises(InvalidRecordState):
            share.acknowledge("a", 0, kind, LOCK_MS)


def test_renew_begins_the_lock_anew_and_counts_nothing() -> None:
    share = partition()
    share.acquire("a", 1, log_end=9, now_ms=0)
    assert share.acknowledge("a", 0, RENEW, 600) is RecordState.ACQUIRED
    assert share.time_out(LOCK_MS) == []
    assert share.time_out(600 + LOCK_MS) == [0]
    assert share.acquire("a", 1, log_end=9, now_ms=2_000) == [(0, 2)]


@pytest.mark.parametrize("end", ["released", "timed out", "left"])
def test_a_record_that_was_delivered_as_often_as_it_may_is_archived(end: str) -> None:
    share = partition(delivery_count_limit=2)
    for count in (1, 2):
        assert share.acquire("a", 1, log_end=1, now_ms=0) == [(0, count)]
        if end == "released":
            share.acknowledge("a", 0, RELEASE, 1)
        else:
            assert (share.time_out(LOCK_MS) if end == "timed out" else share.release_all("a")) == [0]
    assert share.state_of(0) is RecordState.ARCHIVED
    assert share.acquire("a", 1, log_end=1, now_ms=0) == []
    assert share.advance() == 1


def test_the_window_grows_no_longer_than_the_locks_that_are_allowed() -> None:
    share = partition(max_record_locks=3)
    assert len(share.acquire("a", 9, log_end=9, now_ms=0)) == 3
    share.acknowledge("a", 1, ACCEPT, 1)
    assert share.acquire("a", 9, log_end=9, now_ms=1) == [], "record 0 is still there, and the window begins with it"
    share.acknowledge("a", 0, ACCEPT, 1)
    share.advance()
    assert share.acquire("a", 9, log_end=9, now_ms=1) == [(3, 1), (4, 1)]


def test_what_was_acquired_and_not_written_was_never_delivered_as_far_as_anybody_knows() -> None:
    share = partition()
    share.acquire("a", 4, log_end=9, now_ms=0)
    share.acknowledge("a", 1, RELEASE, 1)
    share.acknowledge("a", 3, ACCEPT, 1)
    written = share.batches_of([1, 3])
    assert written == [StateBatch(1, 1, RecordState.AVAILABLE, 1), StateBatch(3, 3, RecordState.ACKNOWLEDGED, 1)]
    again = partition()
    again.restore(0, written)
    assert (again.start_offset, again.end_offset) == (0, 4)
    assert again.acquire("b", 1, log_end=5, now_ms=9) == [(0, 1)]
    assert again.end_offset == 4
    assert again.acquire("b", 9, log_end=5, now_ms=9) == [(1, 2), (2, 1), (4, 1)]


def test_neighbours_that_fare_alike_are_written_together() -> None:
    share = partition()
    share.acquire("a", 5, log_end=9, now_ms=0)
    share.time_out(LOCK_MS)
    assert share.batches_of(range(5)) == [StateBatch(0, 4, RecordState.AVAILABLE, 1)]


MEMBERS = st.sampled_from("abc")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("acquire"), MEMBERS, st.integers(1, 4)),
        st.tuples(st.sampled_from(AcknowledgeType), MEMBERS, st.integers(0, 9)),
        st.tuples(st.just("pass"), MEMBERS, st.integers(1, 900)),
        st.tuples(st.just("leave"), MEMBERS, st.just(0)),
        st.tuples(st.just("restart"), MEMBERS, st.just(0)),
    ),
    max_size=60,
)


@given(STEPS)
def test_whatever_consumers_do(steps: list[tuple[object, str, int]]) -> None:
    """No record is held by two, what has ended stays so, nobody gets a record too often, and none is passed over."""
    share, now_ms, end = partition(delivery_count_limit=3), 0, 10
    durable: dict[int, StateBatch] = {}
    durable_start = 0
    holder: dict[int, str] = {}
    ended: set[int] = set()
    deliveries: Counter[int] = Counter()
    for what, member, number in steps:
        changed: list[int] = []
        if what == "acquire":
            for offset, count in share.acquire(member, number, end, now_ms):
                assert offset not in holder
                assert offset not in ended
                holder[offset] = member
                deliveries[offset] += 1
                assert count == deliveries[offset] <= 3
        elif isinstance(what, AcknowledgeType):
            was = share.start_offset
            try:
                state = share.acknowledge(member, number, what, now_ms)
            except InvalidRecordState:
                assert holder.get(number) != member
            else:
                assert number < was or holder[number] == member
                changed = [number] if number >= was and what is not RENEW else []
                if state is not RecordState.ACQUIRED:
                    holder.pop(number, None)
        elif what == "pass":
            now_ms += number
            changed = share.time_out(now_ms)
        elif what == "leave":
            changed = share.release_all(member)
            assert set(changed) == {offset for offset, who in holder.items() if who == member}
        else:
            share = partition(delivery_count_limit=3)
            share.restore(durable_start, [durable[offset] for offset in sorted(durable)])
            holder = {}
            deliveries = Counter({offset: batch.delivery_count for offset, batch in durable.items()})
        for offset in changed:
            holder.pop(offset, None)
            durable[offset] = share.batches_of([offset])[0]
            if share.state_of(offset) in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED):
                ended.add(offset)
        durable_start = share.start_offset if changed else durable_start
        share.advance()
        assert share.start_offset == next(offset for offset in range(end + 1) if offset not in ended)
        assert share.start_offset <= share.end_offset <= end
    now_ms += LOCK_MS
    share.time_out(now_ms)
    left = {offset for offset in range(end) if share.state_of(offset) is RecordState.AVAILABLE}
    assert {offset for offset, _ in share.acquire("d", end, end, now_ms)} == left, "nothing is lost"
