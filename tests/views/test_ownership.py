"""The pictures of rebalance: who owns which queue, what came twice and why, and who knows which offset."""

from __future__ import annotations

from collections import Counter
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from mqlab import Lab, scenarios
from mqlab.errors import LearnerError
from mqlab.scenarios.membership import open_shop, packer, spawn_orders
from mqlab.views import Ownership, Table, duplicates_table, offsets_table
from mqlab.views.duplicates import NOT_COMMITTED, NOT_DONE, OLD_OFFSET, TOO_LATE


def shop(**settings: Any) -> tuple[Lab, Any]:
    lab = Lab(seed=7)
    steps = open_shop(lab, **settings)
    with pytest.raises(StopIteration) as ended:
        steps.send(None)
    return lab, ended.value.value


def join(lab: Lab, names: str, **settings: Any) -> list[Any]:
    members = [packer(lab, name, **settings) for name in names]
    for member in members:
        lab.run(member.start())
    return members


@pytest.fixture(scope="module")
def killed() -> Lab:
    return scenarios.get("member-killed").play(7)


@pytest.fixture(scope="module")
def hung() -> Lab:
    return scenarios.get("member-hangs").play(7)


def time_of(lab: Lab, kind: str, **fields: Any) -> float:
    record = lab.history.last(kind, **fields)
    assert record is not None
    return record.ts_ms


# -- ownership ------------------------------------------------------------------------------------------------------


def test_a_newcomers_queues_have_no_owner_for_a_second(killed: Lab) -> None:
    at = time_of(killed, "ClientStarted", node="B", role="consumer")
    picture = Ownership.of(killed.history, "Orders", start_ms=at - 500, end_ms=at + 2_000, zero_ms=at)
    owners = {queue_id: [stretch.owners for stretch in found] for (_, queue_id), found in picture.rows.items()}
    assert owners[0] == [("A",)]
    assert owners[7] == [("A",), (), ("B",)]
    assert 900 < picture.orphaned_ms() <= 1_000
    assert picture.shared_ms() == 0


def test_a_killed_member_owns_nothing_from_that_moment_on(killed: Lab) -> None:
    at = time_of(killed, "NodeCrashed", target="C")
    picture = Ownership.of(killed.history, "Orders", start_ms=at - 500, end_ms=at + 1_500, zero_ms=at)
    (had,) = {stretches[0].owners for (_, q), stretches in picture.rows.items() if q == 7}
    assert had == ("C",)
    assert picture.rows["broker-a", 7][0].end_us == round(at * 1_000)
    assert all("C" not in stretch.owners for found in picture.rows.values() for stretch in found[1:])
    assert [(mark.who, mark.what) for mark in picture.marks] == [("C", "is killed")]


def test_one_that_hangs_keeps_its_queues_so_two_own_them(hung: Lab) -> None:
    at = time_of(hung, "NodeFrozen", target="D")
    picture = Ownership.of(hung.history, "Orders", start_ms=at - 5_000, end_ms=hung.now_ms, zero_ms=at)
    assert [stretch.owners for stretch in picture.rows["broker-a", 7]] == [("D",), ("A", "D"), ("D",)]
    assert 10_000 < picture.shared_ms() < 50_000
    assert "A and D 1" in str(picture)


def test_a_lite_pull_consumer_that_has_left_owns_nothing() -> None:
    lab = scenarios.get("lite-pull").play(7, seconds=40)
    left = lab.history.last("ClientStopped", role="consumer")
    assert left is not None
    picture = Ownership.of(lab.history, "Orders", start_ms=left.ts_ms, end_ms=lab.now_ms)
    assert all(left.node not in stretch.owners for found in picture.rows.values() for stretch in found)


def test_the_picture_is_an_svg_with_a_title_an_axis_and_hatches(hung: Lab) -> None:
    at = time_of(hung, "NodeFrozen", target="D")
    picture = Ownership.of(hung.history, "Orders", start_ms=at, end_ms=hung.now_ms, pulls=True, title="D <hangs>")
    root = ET.fromstring(picture.svg())
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"D <hangs>", "queue 7", "time, s", "A and D at once", "a pull", "D goes on"} <= set(texts)
    (pattern,) = root.iter("{http://www.w3.org/2000/svg}pattern")
    assert f"url(#{pattern.get('id')})" in picture.svg()
    assert len(list(root.iter("{http://www.w3.org/2000/svg}circle"))) == 1 + sum(map(len, picture.pulls.values()))


def test_words_of_marks_do_not_stand_on_each_other(killed: Lab) -> None:
    picture = Ownership.of(killed.history, "Orders", start_ms=0, end_ms=600_000)
    levels = [level for _, level in picture._levels()]
    assert len(levels) == len(picture.marks) == 4
    assert levels == [0, 1, 2, 3]


def test_a_topic_that_nobody_owns_has_no_picture(killed: Lab) -> None:
    with pytest.raises(LearnerError, match="nobody has owned a queue of 'Nothing' until then"):
        Ownership.of(killed.history, "Nothing", start_ms=0, end_ms=1_000)


# -- duplicates -----------------------------------------------------------------------------------------------------


def reasons(table: Table) -> Counter[str]:
    return Counter(row[-1] for row in table.rows)


def test_what_a_sleeper_delivers_again_comes_from_its_old_offset(hung: Lab) -> None:
    at = time_of(hung, "NodeThawed", target="D")
    table = duplicates_table(hung.history, "Orders", start_ms=at, end_ms=at + 20_000)
    assert 600 < len(table) < 850
    assert set(reasons(table)) == {OLD_OFFSET}
    assert {(row[2], row[4]) for row in table.rows} == {("A", "D")}


def test_all_that_was_done_since_the_last_report_comes_again_after_a_kill() -> None:
    lab, producer = shop()
    join(lab, "AB")
    lab.run_for(seconds=11)
    spawn_orders(producer, orders=160, every_ms=0)
    lab.run_for(seconds=3)
    known = offsets_table(lab.history, "Orders", group="packers")
    assert [row[2:] for row in known.rows] == [[20, 20, 20, 0, 20]] * 8
    at = lab.now_ms
    lab.crash("B")
    lab.run_for(seconds=6)
    table = duplicates_table(lab.history, "Orders", start_ms=at, end_ms=lab.now_ms, most=3)
    assert len(table) == 80
    assert set(reasons(table)) == {NOT_COMMITTED}
    assert str(table).startswith("80 messages of Orders came twice")
    assert str(table).endswith("... and 77 more")


def test_what_was_being_consumed_at_the_kill_comes_again() -> None:
    lab, producer = shop(queues=1)
    (first,) = join(lab, "A", packing_ms=5_000)
    spawn_orders(producer, orders=1, queues=1)
    lab.run_for(seconds=3)
    at = lab.now_ms
    lab.crash(first.node.name)
    join(lab, "B")
    lab.run_for(seconds=3)
    table = duplicates_table(lab.history, "Orders", start_ms=at, end_ms=lab.now_ms)
    assert reasons(table) == {NOT_DONE: 1}
    assert str(table).startswith("1 message of Orders came twice")


def test_a_listener_that_ends_after_its_queue_was_given_up_ends_in_vain() -> None:
    lab, producer = shop(queues=2)
    join(lab, "A", packing_ms=500)
    lab.run_for(seconds=3)
    spawn_orders(producer, orders=2, queues=2, every_ms=0)
    lab.run_for(ms=300)
    join(lab, "B")
    lab.run_for(seconds=3)
    assert reasons(duplicates_table(lab.history, "Orders", start_ms=0, end_ms=lab.now_ms)) == {TOO_LATE: 1}


def test_several_messages_at_a_time_are_refused() -> None:
    lab, producer = shop(queues=1)
    join(lab, "A", consume_message_batch_max_size=8)
    spawn_orders(producer, orders=20, queues=1, every_ms=0)
    lab.run_for(seconds=3)
    with pytest.raises(LearnerError, match="messages at a time"):
        duplicates_table(lab.history, "Orders", start_ms=0, end_ms=lab.now_ms)


# -- offsets --------------------------------------------------------------------------------------------------------


def test_offsets_are_told_as_they_were_at_a_time(killed: Lab) -> None:
    at = time_of(killed, "NodeCrashed", target="C")
    before = offsets_table(killed.history, "Orders", group="packers", at_ms=at - 1)
    after = offsets_table(killed.history, "Orders", group="packers")
    assert {row[1] for row in before.rows} == {"A", "B", "C"}
    assert {row[1] for row in after.rows} == {"A", "B"}
    for _, _, stored, done, memory, broker, twice in before.rows:
        assert stored >= done >= memory >= broker
        assert twice == done - broker
