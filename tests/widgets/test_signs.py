"""Signs: the legend has those that are on the stage, and no others; whatever is drawn is a sign or says what it is."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from mqlab.scenarios.storyboards import STORYBOARDS
from mqlab_widgets.boards.board import Fold
from mqlab_widgets.boards.stage import StageBoard
from mqlab_widgets.scene.scene import Look, Scene, scene_of
from mqlab_widgets.scene.signs import SIGNS, drawn_in
from mqlab_widgets.scene.signs import legend as legend_of
from tests.widgets.folds import folded
from tests.worlds import played

SCENES = sorted({*(name for names in STORYBOARDS.values() for name in names), "retry-and-dead-letters", "power-cut"})
SECONDS = 14
LOOKS = (Look(1096, height=513), Look(580, height=513), Look(669, height=273), Look(1252, big=True, height=607))
FURNITURE = {
    *("mq-stage", "paper", "mq-card", "halo", "box", "head", "inner", "faint", "limit", "trouble", "lane", "owned"),
    *("slot", "hit", "wire", "names", "way", "aside", "held", "mq-flight", "lit", "unlit", "slide", "frost", "dial"),
    *("hand", "full", "tight", "large", "long", "plain"),
}
"""Style classes of what is no sign: machines, wires and lanes, words, and what only places or lights something."""
WITH_WORDS = {"running", "frozen", "down", "chosen", "other", "pointed", "talks", "namesrv", "proxy", "producer",
              "broker", "slave", "server", "consumer", "worker", "machine"}  # fmt: skip
"""States and kinds of a machine, which its head and its menu say."""


def entries(scene: Scene) -> list[str]:
    """The signs that the legend explains."""
    return re.findall('data-legend="([^"]*)"', scene.parts["legend"])


def moments(name: str, looks: tuple[Look, ...] = LOOKS) -> list[Scene]:
    """Scenes of many moments of a world."""
    lab = played(name, SECONDS)
    board = StageBoard(lab)
    fold = Fold(lab.history, [board])
    length = len(lab.history)
    scenes = []
    for number, place in enumerate(range(1, length + 1, max(1, length // 90))):
        fold.go_to(place)
        event = lab.history.record(place - 1)
        look = looks[number % len(looks)]._replace(now_us=event.ts_us)
        if number % 7 == 0:
            look = look._replace(followed=next((key for key in board._keys.values() if key), ""))
        scenes.append(scene_of(board, look))
    return scenes


@pytest.mark.parametrize("name", SCENES)
def test_at_every_moment_the_legend_has_the_signs_of_the_stage_and_no_others(name: str) -> None:
    for scene in moments(name):
        drawn = drawn_in(svg for part, svg in scene.parts.items() if part != "legend")
        shown = entries(scene)
        assert len(shown) == len(set(shown))
        assert set(shown) == drawn
        assert drawn <= set(SIGNS)


@pytest.mark.parametrize("name", SCENES)
def test_whatever_is_drawn_is_a_sign_or_furniture(name: str) -> None:
    for scene in moments(name):
        for part, svg in scene.parts.items():
            if part not in ("legend", "empty"):
                assert unexplained(ET.fromstring(svg)) == set(), part


def unexplained(element: ET.Element, *, inside: bool = False) -> set[str]:
    """The style classes that belong to no sign."""
    inside = inside or "data-sign" in element.attrib
    classes = set(element.get("class", "").split())
    own = set() if inside else {css for css in classes - FURNITURE - WITH_WORDS if not re.fullmatch(r"o\d", css)}
    return own.union(*(unexplained(child, inside=inside) for child in element))


@pytest.mark.parametrize("look", LOOKS)
def test_the_legend_has_room_for_all_signs_at_once(look: Look) -> None:
    board = StageBoard(played("demo", 3))
    scene = scene_of(board, look)
    every = "".join(f'<g data-sign="{name}"/>' for name in SIGNS)
    legend = legend_of([every], scene.width, scene.height, big=look.big)
    assert re.findall('data-legend="([^"]*)"', legend) == list(SIGNS)
    scale = float((re.search(r"scale\(([\d.]+)\)", legend) or [0, 1])[1])
    top = float((re.search(r"translate\(\d+ ([\d.]+)\)", legend) or [0, 0])[1])
    places = re.findall(r'data-legend="(\w+)" transform="translate\(([\d.]+) (\d+)\)', legend)
    for name, x, y in places:
        assert top + float(y) * scale <= scene.height
        assert 10 + float(x) * scale + SIGNS[name].width * scale < scene.width
    assert scale >= 0.5


def test_no_two_signs_look_alike_or_mean_the_same() -> None:
    assert len({sign.picture for sign in SIGNS.values()}) == len(SIGNS)
    assert len({sign.words for sign in SIGNS.values()}) == len(SIGNS)
    assert len({sign.short for sign in SIGNS.values()}) == len(SIGNS)


def test_a_woken_pull_is_a_ring_of_its_own_until_the_broker_looks_at_it() -> None:
    lab = played("demo", 4)
    woken = lab.run_until_event("PullWoken")
    assert woken is not None
    board = StageBoard(lab)
    fold = Fold(lab.history, [board])
    place = lab.history.index_of(woken.at)
    fold.go_to(place)
    assert "woken" not in entries(scene_of(board, Look()))
    fold.go_to(place + 1)
    assert "woken" in entries(scene_of(board, Look()))
    lab.run_for(ms=50)
    fold.go_to(len(lab.history))
    assert "woken" not in entries(scene_of(board, Look()))


def test_what_is_not_on_the_disk_and_what_is_not_noted_are_two_signs() -> None:
    lab = played("demo", 5)
    board = folded(StageBoard, lab)
    svg = scene_of(board, Look()).svg()
    assert {"unflushed", "unnoted"} <= drawn_in([svg])
    for tile in re.findall(r'<g class="mq-token[^>]*data-sign="unnoted"[^>]*>.*?</g>', svg):
        assert "veil" not in tile
        assert "<text" in tile
