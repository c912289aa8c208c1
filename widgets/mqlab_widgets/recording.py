"""Recordings: a world's stage as a page is told it, kept to be played where no Python is.

A recording is a line of JSON for what comes first, and one for each beat (`mqlab_widgets.story`):

    {"recording": 1, "mqlab": "1.0.0", "link": "scenario=demo&seed=1",    the world; `place` is where it begins
     "width": 960, "height": 560, "place": 31, "clock": "0.000 s",
     "stage": "<svg ...>", "caption": "...", "stations": "<div ...>"}
    {"at": 1250, "place": 34, "parts": {...}, "acts": [...], ...,
     "trails": {"7F00...": "<div ...>"}}                            the stations of messages

It is compressed as gzip, which a page unpacks while it comes: the first beats are played with the first bytes.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from mqlab import __version__
from mqlab_widgets.links import fragment_of
from mqlab_widgets.player import AHEAD_MS, STORY, WAKE_SECONDS
from mqlab_widgets.session import Session
from mqlab_widgets.stations import stations_html, trail_html
from mqlab_widgets.story import Beat
from mqlab_widgets.telling import Telling, View
from mqlab_widgets.words import clock

if TYPE_CHECKING:
    from mqlab import Lab
    from mqlab_widgets.boards.lives import Life

FORMAT = 1
_WAKE_MS = round(WAKE_SECONDS * 1_000)


def record_stage(lab: Lab, *, seconds: float, width: float) -> Iterator[dict[str, Any]]:
    """Play a world from where its cursor stands for so many seconds of the screen at story pace, on a stage of so many
    px: the lines of the recording, as they are described above. It ends early where nothing is left to happen.
    """
    told: list[Beat] = []
    trails: dict[str, object] = {}

    def around() -> dict[str, str]:
        caption = session.caption()
        return {
            "stations": stations_html(session.cursor.lives(), now_us=session.cursor.now_us),
            "caption": escape(caption.words) if caption is not None else "",
        }

    session = Session(lab, changed=_nothing, on_story=lambda beats, _: told.extend(beats), around=around)
    session.page.captions = True
    session.page.seen(width)
    scene = session.scene()
    session.story.shown(scene)
    yield {
        "recording": FORMAT,
        "mqlab": __version__,
        "link": fragment_of(lab, at=None),
        "width": scene.width,
        "height": scene.height,
        "place": session.cursor.place(),
        "clock": clock(session.cursor.now_us),
        "stage": scene.svg(),
        **around(),
    }
    views: WeakSet[View] = WeakSet([session])
    telling = Telling(lab, views, STORY)
    for ms in range(0, round(seconds * 1_000), _WAKE_MS):
        ended = telling.tell(ms, ms + AHEAD_MS, _no_clock)
        if ended is not None:
            telling.finish()
        telling.send()
        for beat in told:
            yield _with_trails(beat, session, trails)
        told.clear()
        if ended is not None:
            break
    session.close()


def _with_trails(beat: Beat, session: Session, known: dict[str, object]) -> Beat:
    lives = session.cursor.lives()
    now = {key: _passed(life) for key, life in lives.lives.items()}
    changed = {key: trail_html(lives, key) for key, passed in now.items() if known.get(key) != passed}
    known |= now
    return {**beat, "trails": changed} if changed else beat


def _passed(life: Life) -> tuple[object, ...]:
    """What a message has passed: as long as this is the same, so is its trail."""
    laps = ((group, *lap.at.items(), lap.tries, lap.calls) for group, lap in life.laps.items())
    return (*life.at.items(), *laps)


def packed(lines: Iterable[dict[str, Any]]) -> bytes:
    """The recording as a file, the same bytes each time."""
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    return gzip.compress(text.encode(), 9, mtime=0)


def _nothing() -> None:
    """Nobody looks."""


def _no_clock() -> float:
    """No beat is late: what is told hangs on the world alone."""
    return 0.0
