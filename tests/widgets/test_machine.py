"""The inspectors of one machine: its views, its queues byte by byte, and every field of every part."""

from __future__ import annotations

import re
from collections import deque
from enum import Enum
from typing import Any, NamedTuple

import pytest

from mqlab import Lab
from mqlab.errors import LearnerError
from mqlab_widgets.machine import machine_html
from mqlab_widgets.part_tree import MOST_FIELDS, fields_of, is_leaf, lines, roots_of, told, tree_html
from mqlab_widgets.session import Session
from tests.worlds import played


@pytest.fixture(scope="module")
def lab() -> Lab:
    """Two brokers after four seconds."""
    return played("two-brokers", 4)


def shown(lab: Lab, node: str, **state: Any) -> str:
    """What the panel says of a machine."""
    session = Session(lab, changed=lambda: None)
    session.do({"do": "choose", "node": node})
    for name, value in state.items():
        setattr(session.page, name, value)
    return machine_html(session)


def test_every_machine_has_its_views(lab: Lab) -> None:
    lab.history.move_to(len(lab.history))
    assert "route of TopicTest" in shown(lab, "namesrv-1")
    assert "TBW102" not in shown(lab, "namesrv-1")
    assert "held pulls" in shown(lab, "broker-a")
    assert "bytes of message" in shown(lab, "broker-a")
    consumer = shown(lab, "consumer-1")
    assert "process queues" in consumer
    assert "<svg" in consumer
    assert "response table of consumer-1" in consumer
    assert "semaphoreAsync" in shown(lab, "producer-1")
    assert f"after slice {lab.world.slice_no:,}" in consumer


def test_a_broker_shows_its_pops_once_somebody_pops(lab: Lab) -> None:
    lab.history.move_to(len(lab.history))
    assert "held pops" not in shown(lab, "broker-a")
    popped = played("four-ways", 4, messages=2)
    html = shown(popped, "broker-a")
    for title in ("held pulls", "held pops", "check points in memory", "revive queues"):
        assert f">{title}<" in html
    assert "popped" in html
    assert not re.search(r"0x[0-9a-f]{6,}", html)


def test_no_picture_has_an_address_of_memory_in_it(lab: Lab) -> None:
    lab.history.move_to(len(lab.history))
    for node in lab.world.nodes:
        assert not re.search(r"0x[0-9a-f]{6,}", shown(lab, node))


def test_the_bytes_of_the_message_that_is_asked_for(lab: Lab) -> None:
    lab.history.move_to(len(lab.history))
    first = shown(lab, "broker-a", queue=("TopicTest", 1, 0))
    assert "TopicTest, queue 1" in first
    assert "bytes of message at offset 0" in first
    assert "physicalOffset" in first
    beyond = shown(lab, "broker-a", queue=("TopicTest", 1, 10**6))
    newest = lab.queue("TopicTest", 1, broker="broker-a").max_offset - 1
    assert f"bytes of message at offset {newest}" in beyond


def test_the_buttons_of_a_queue_stay_where_they_are(lab: Lab) -> None:
    lab.history.move_to(len(lab.history))
    names = ["previous queue", "next queue", "older message", "newer message"]
    for offset in (0, 1, 10**6):
        html = shown(lab, "broker-a", queue=("TopicTest", 1, offset))
        assert re.findall(r'data-do="show_queue"[^>]*aria-label="([^":]*): [^"]+"', html) == names


def test_the_past_of_a_machine_needs_a_world_of_its_own(lab: Lab) -> None:
    session = Session(lab, changed=lambda: None)
    session.do({"do": "choose", "node": "broker-a"})
    session.do({"do": "goto", "place": 300})
    assert 'data-do="take_back"' in machine_html(session)
    session.do({"do": "take_back"})
    assert "after slice" in machine_html(session)


def test_what_is_down_says_so_and_can_be_started() -> None:
    crashed = played("two-brokers", 2)
    crashed.crash("broker-b")
    html = shown(crashed, "broker-b")
    assert "Nothing is in its memory: it is down." in html
    assert 'data-do="restart" data-node="broker-b"' in html


@pytest.mark.parametrize("node", ["broker-b", "consumer-1", "producer-1", "namesrv-1"])
def test_nothing_of_a_dead_process_is_shown_for_the_one_that_comes_after_it(node: str) -> None:
    lab = played("two-brokers", 4)
    lab.crash(node)
    lab.restart(node)
    html = shown(lab, node)
    assert "has not begun to run yet" in html
    assert "<table" not in html


def test_no_machine_is_chosen_at_first(lab: Lab) -> None:
    assert "Click a machine on the stage" in machine_html(Session(lab, changed=lambda: None))


def test_a_client_that_was_not_started_is_told() -> None:
    lab = Lab(seed=1)
    lab.name_server()
    lab.producer("orders")
    assert "has not been started yet" in shown(lab, "producer-1")


# -- the generic inspector ------------------------------------------------------------------------------------------


class Colour(Enum):
    RED = 1


class Point(NamedTuple):
    x: int
    y: int


class Slotted:
    __slots__ = ("_hidden", "shown", "unset")

    def __init__(self) -> None:
        self._hidden = 1
        self.shown = {"b": 2, "a": [1]}


def test_fields_of_parts_of_all_kinds() -> None:
    assert fields_of({("T", 1): 5}) == {"('T', 1)": 5}
    assert fields_of(deque([7])) == {"[0]": 7}
    assert fields_of({3, 1}) == {"1": 1, "3": 3}
    assert fields_of(Point(1, 2)) == {"x": 1, "y": 2}
    assert fields_of(Slotted()) == {"shown": {"b": 2, "a": [1]}}


def test_a_value_in_a_few_words() -> None:
    assert told(Colour.RED) == "RED"
    assert told([1, 2]) == "list of 2"
    assert told(b"ab") == "b'ab'"
    assert told(object()) == "object"
    assert told("x" * 500).endswith("... (500 letters)")
    assert told(Point(1, 2)) == "Point"


def test_parts_open_one_level_at_a_time() -> None:
    parts = {"one": {"two": {"three": 3}}}
    assert [path for _, path, _ in lines(parts, (), "p")] == ["p/one"]
    opened = ("p/one", "p/one/two")
    assert [(depth, path) for depth, path, _ in lines(parts, opened, "p")] == [
        (0, "p/one"), (1, "p/one/two"), (2, "p/one/two/three")
    ]  # fmt: skip


def test_a_part_with_very_many_fields_is_cut_short() -> None:
    many = {str(number): number for number in range(1_000)}
    told_lines = list(lines(many, (), "p"))
    assert len(told_lines) == MOST_FIELDS + 1
    assert told_lines[-1][2] == "... and 940 more"


def test_every_part_of_a_running_broker_can_be_opened(lab: Lab) -> None:
    """Four levels down from the controller, each field is told without an error."""
    opened: set[str] = set()
    for _ in range(3):
        paths = [path for _, path, value in lines(roots_of(lab, "broker-a"), opened, "broker-a") if not is_leaf(value)]
        opened.update(path for path in paths if path)
    tree = tree_html(lab, "broker-a", opened)
    assert "message_store" in tree
    assert "consumer_offset_manager" in tree
    assert tree.count("mq-row") > 300


def test_what_has_no_process_is_told() -> None:
    lab = Lab(seed=1)
    lab.name_server()
    lab.crash("namesrv-1")
    with pytest.raises(LearnerError, match="is down"):
        roots_of(lab, "namesrv-1")
