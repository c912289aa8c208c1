"""Whereabouts: a strip for each world, whose pieces are as long as the messages that they stand for."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from mqlab.errors import LearnerError
from mqlab.views import Whereabouts
from mqlab.views.whereabouts import PLACES

CUT = ["both"] * 6 + ["slave"] * 3 + ["nobody"]
FATES = [
    ("ASYNC_FLUSH, ASYNC_MASTER", "power off", CUT),
    ("ASYNC_FLUSH, ASYNC_MASTER", "process killed", ["both"] * 5),
]


def test_the_text_counts_runs() -> None:
    first, second = str(Whereabouts(FATES)).splitlines()
    assert first == "ASYNC_FLUSH, ASYNC_MASTER, power off: 10 acknowledged: 6 both, 3 slave, 1 nobody"
    assert second == "ASYNC_FLUSH, ASYNC_MASTER, process killed: 5 acknowledged: 5 both"


def test_pieces_have_the_length_of_their_messages_and_say_what_they_are() -> None:
    svg = Whereabouts(FATES).svg()
    ET.fromstring(svg)
    pieces = re.findall(r'width="([\d.]+)" height="14" fill="(#\w+)" stroke="#\w+"><title>(\d+) messages: ([^<]*)', svg)
    assert [(int(count), words) for _, _, count, words in pieces] == [
        (count, PLACES[place][1]) for count, place in ((6, "both"), (3, "slave"), (1, "nobody"), (5, "both"))
    ]
    lengths = {round(float(width) / int(count), 3) for width, _, count, _ in pieces}
    assert len(lengths) == 1
    assert [colour for _, colour, _, _ in pieces] == [PLACES[place][0] for place in ("both", "slave", "nobody", "both")]
    assert "10: 1 lost, 3 on the slave only" in svg
    assert svg.count("ASYNC_FLUSH<") == svg.count("ASYNC_MASTER<") == 1


def test_without_worlds_it_is_empty_and_strange_places_are_refused() -> None:
    assert str(Whereabouts([])) == ""
    ET.fromstring(Whereabouts([]).svg())
    with pytest.raises(LearnerError, match="'moon' is no place"):
        Whereabouts([("a", "b", ["moon"])])
