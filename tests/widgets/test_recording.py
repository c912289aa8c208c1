"""A recording tells a stage from its first picture to its last, as a page shows it, and always in the same bytes."""

from __future__ import annotations

import gzip
import json
import re
from typing import Any

import pytest

from mqlab import __version__, scenarios
from mqlab_widgets.links import open_link
from mqlab_widgets.recording import packed, record_stage
from mqlab_widgets.session import Session


def recorded(name: str, seconds: float = 20, width: float = 960) -> list[dict[str, Any]]:
    return list(record_stage(scenarios.get(name).build(1), seconds=seconds, width=width))


def test_the_first_line_is_the_whole_picture_and_names_the_world() -> None:
    first, *beats = recorded("demo")
    assert (first["recording"], first["mqlab"], first["link"]) == (1, __version__, "scenario=demo&seed=1")
    assert first["stage"].startswith('<svg class="mq-stage"')
    assert first["caption"] == "The consumer asks for messages. There are none yet, so the broker keeps the question."
    assert [beat["at"] for beat in beats] == sorted(beat["at"] for beat in beats)
    assert 19_000 < beats[-1]["at"] < 21_000


@pytest.mark.parametrize("name", ["demo", "demo-pop", "member-killed", "half-message", "through-a-proxy"])
def test_the_parts_of_all_beats_make_the_picture_that_stands_at_the_last_event(name: str) -> None:
    first, *beats = recorded(name)
    parts: dict[str, str] = {}
    for beat in beats:
        parts |= beat["parts"]
    lab = open_link(f"{first['link']}&at={beats[-1]['place']}").lab
    session = Session(lab, changed=lambda: None)
    session.page.captions = True
    session.page.seen(960)
    scene = session.scene()
    shown = {key: html for key, html in parts.items() if html}
    assert shown
    assert {key: scene.parts.get(key) for key in shown} == shown
    assert not {key for key, html in parts.items() if not html} & scene.parts.keys()


def test_a_message_that_is_clicked_has_its_trail_at_every_beat() -> None:
    _, *beats = recorded("demo")
    known: dict[str, str] = {}
    for beat in beats:
        known |= beat.get("trails", {})
    assert len(known) >= 3
    first = next(iter(known.values()))
    assert re.findall(r"<span>([a-z ]+)</span>", first)[:3] == ["sent", "stored", "answered"]
    pieces = [html for beat in beats for html in beat["parts"].values()]
    shown = {name for html in pieces for name in re.findall(r'data-message="(\w+)"', html)}
    assert shown <= known.keys() | {""}


def test_the_same_world_gives_the_same_bytes() -> None:
    once, again = (packed(recorded("demo", 8)) for _ in range(2))
    assert once == again
    lines = gzip.decompress(once).decode().splitlines()
    assert json.loads(lines[0])["stage"] == recorded("demo", 8)[0]["stage"]


def test_a_recording_ends_where_nothing_is_left_to_happen() -> None:
    lab = scenarios.get("first-message").build(1)
    for process in list(lab.processes):
        lab.act("crash", node=process)
    beats = list(record_stage(lab, seconds=600, width=360))
    assert len(beats) < 20
