"""Programs outside on the stage: their card, what they send and are given, and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import Lab
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import PullMessageRequestHeader, SendMessageRequestHeader
from mqlab_widgets.boards.stage import StageBoard
from mqlab_widgets.boards.stage_state import OUTSIDE
from mqlab_widgets.labels import label_of
from mqlab_widgets.words import say
from tests.widgets.screen import Screen
from tests.worlds import played

BROKER = "10.0.0.2:10911"


class Program:
    """A program outside, one of whose connections comes to the broker."""

    def __init__(self, lab: Lab, number: int = 1) -> None:
        self.lab = lab
        self.number = number
        remote = f"127.0.0.1:{50_000 + number}"
        self._say("come_in", address=BROKER, remote=remote, came_to="127.0.0.1")

    def _say(self, verb: str, **arguments: Any) -> None:
        self.lab.from_outside(verb, {"number": self.number, **arguments})
        self.lab.run_for(ms=50)

    def ask(self, code: int, header: Any, body: bytes | None = None) -> None:
        self._say("bring", data=RemotingCommand.request(code, header, body).encode())

    def send(self, body: bytes) -> None:
        self.ask(RequestCode.SEND_MESSAGE, SendMessageRequestHeader("P", "T", "TBW102", 4, 0, 0, 0, 0), body)

    def leave(self) -> None:
        self._say("hang_up", broken=False)


@pytest.fixture
def screen() -> Screen:
    return Screen(played("served", 1))


def stage(screen: Screen) -> StageBoard:
    return screen.session.cursor.stage()


def test_one_card_stands_for_all_programs_and_counts_their_connections(screen: Screen) -> None:
    assert OUTSIDE not in screen.session.scene().cards
    first, _ = Program(screen.lab), Program(screen.lab, 2)
    assert f"{OUTSIDE} have 2 connections" in stage(screen).text()
    assert ">2 connections<" in screen.session.scene().svg()
    assert f"wire:{OUTSIDE}>broker-a" in screen.session.scene().parts
    first.leave()
    assert ">1 connection<" in screen.session.scene().svg()
    parts = screen.session.scene().parts
    # Nothing can be done to it from here.
    assert "data-do" not in parts[f"card:{OUTSIDE}"] + parts[f"wire:{OUTSIDE}>broker-a"]
    assert "data-do" in parts["card:broker-a"]


def test_what_they_send_is_seen_to_come_all_the_way_and_the_answer_to_go(screen: Screen) -> None:
    program = Program(screen.lab)
    scene = screen.session.scene()
    screen.do("goto", place=len(screen.lab.history))
    program.send(b"from outside")
    came = screen.lab.history.last("RequestReceived", node="broker-a")
    assert came is not None
    place = screen.lab.history.index_of(came.at)
    screen.do("goto", place=place)
    screen.played(8)
    moves = [act for beat in screen.beats for act in beat["acts"] if act["act"] == "move"]
    lane, back = scene.lane(OUTSIDE, "broker-a"), scene.lane("broker-a", OUTSIDE)
    assert lane is not None
    assert back is not None
    ways = [act["path"] for act in moves]
    assert ways[0] == lane
    assert ways.index(back) > 0
    # The picture changes when the message is there, and it goes on from where it came in.
    assert screen.beats[0]["after"] >= 500
    assert any(way[:2] == lane[2:] for way in ways)
    assert stage(screen).flights == {}


def test_what_they_do_is_said(screen: Screen) -> None:
    program = Program(screen.lab)
    program.send(b"from outside")
    program.ask(RequestCode.PULL_MESSAGE, PullMessageRequestHeader("G", "T", 0, 0, 32, 0, 0, 0, "*", 0))
    said = [say(record, screen.lab) for record in screen.lab.history.records()]
    assert "a program outside has opened a connection to broker-a" in said
    assert "a program outside sends broker-a a message" in said
    assert "a program outside sends broker-a a question for messages" in said
    assert not any("broker-a has opened a connection to broker-a" in words for words in said)


def test_in_a_world_without_them_nothing_of_it_is_seen_or_said() -> None:
    screen = Screen(played("steady-load", 2))
    assert OUTSIDE not in stage(screen).states
    said = [say(record, screen.lab) for record in screen.lab.history.records()]
    assert not any("outside" in words for words in said)


def test_a_message_of_a_java_client_on_a_machine_with_ipv6_has_its_number(screen: Screen) -> None:
    """RocketMQ's MessageClientIDSetter: 16 bytes of address, process, class loader, time, and the counter."""
    assert label_of("FD00000000000000000000000000000211614E0E2F2A66170CCE0003", screen.lab) == "3"


def test_what_a_proxy_answers_well_is_no_refusal() -> None:
    screen = Screen(played("through-a-proxy", 3))
    answers = screen.lab.history.find("ResponseSent", node="proxy-1")
    kinds = set()
    for record in answers:
        screen.do("goto", place=screen.lab.history.index_of(record.at) + 1)
        kinds |= {one.kind for one in stage(screen).flights.values() if one.source == "proxy-1" and one.response}
    assert kinds == {"answer"}
    said = {say(record, screen.lab) for record in screen.lab.history.records()}
    assert "producer-1 sends proxy-1 a message" in said
