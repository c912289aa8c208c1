"""Recorded stages: scenes that move on a page without any Python, each a figure and two compressed files.

`stages/NAME-wide.gz` is drawn for a page of a computer, `stages/NAME-narrow.gz` for one of a telephone.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from mqlab import Lab, scenarios
from mqlab.scenarios.storyboards import STORYBOARDS
from mqlab_widgets.recording import packed, record_stage

WIDTHS = {"wide": 960, "narrow": 360}
"""px of a stage."""
SECONDS = 60
SPEEDS = {0.5: "½", 1: "1", 2: "2", 4: "4"}
SEED = 1
FRONT = "demo"
"""The scene of the first page."""
SCENES = {
    **STORYBOARDS,
    "20": ("shop-day",),
    "21": ("demo-two-brokers",),
    "22": ("demo-slow-consumer",),
    "23": ("power-cuts",),
    "24": ("steady-load",),
    "25": ("steady-load",),
    "30": ("through-a-proxy",),
}
"""The main scenes of each lab: worlds that it shows, or such as it asks about; by the lab's number."""
SCRIPTS = ("story.js", "picture.js")
"""The widgets' own code, by which a recording is played."""
STYLES = ("viewer.css", "words.css")


class Recording(NamedTuple):
    """What was recorded of a scenario: its files by size, and of each size the width and height of the stage and the
    first picture.
    """

    files: dict[str, bytes]
    heads: dict[str, dict[str, Any]]


@cache
def recording_of(scenario: str) -> Recording:
    """A scenario's stage in all widths."""
    files, heads = {}, {}
    for size, width in WIDTHS.items():
        lines = list(record_stage(before_the_story(scenario), seconds=SECONDS, width=width))
        files[size], heads[size] = packed(lines), lines[0]
    return Recording(files, heads)


def before_the_story(scenario: str) -> Lab:
    """A scenario's world, with the cursor in front of its first caption where that has been passed already."""
    lab = scenarios.get(scenario).build(SEED)
    first = scenarios.Storyboard(lab).after(0)
    if first is not None and first < len(lab.history):
        lab.history.move_to(first - 1)
    return lab


def write_stages(target: Path, names: Iterable[str]) -> None:
    """Write the recordings of these scenarios, and the code and style that show them."""
    (target / "stages").mkdir(parents=True, exist_ok=True)
    for name in names:
        for size, file in recording_of(name).files.items():
            (target / "stages" / f"{name}-{size}.gz").write_bytes(file)
    here, widgets = Path(__file__).parent, _widgets()
    code = [*(widgets / name for name in SCRIPTS), here / "live" / "unpacked.js", here / "live" / "recorded.js"]
    (target / "stages" / "stage.js").write_text(
        "(() => {\n" + "\n".join(path.read_text(encoding="utf-8") for path in code) + "})();\n", encoding="utf-8"
    )
    style = [*(widgets / name for name in STYLES), here / "live" / "recorded.css"]
    (target / "stages" / "stage.css").write_text(
        "\n".join(path.read_text(encoding="utf-8") for path in style), encoding="utf-8"
    )


def _widgets() -> Path:
    import mqlab_widgets

    return Path(mqlab_widgets.__file__).parent


def stage_head(up: str, first: str = "") -> str:
    """What a page with recorded stages has in its head; the recording of `first` begins to come with the page."""
    media = {"wide": "(min-width: 701px)", "narrow": "(max-width: 700px)"}
    hints = "".join(
        f'<link rel="preload" as="fetch" crossorigin href="{up}stages/{first}-{size}.gz" media="{media[size]}">\n'
        for size in WIDTHS
        if first
    )
    return (
        f'{hints}<link rel="stylesheet" href="{up}stages/stage.css">\n'
        f'<script defer src="{up}stages/stage.js"></script>\n'
    )


def figure(scenario: str, up: str, *, autoplay: bool = False) -> str:
    """A scene as a figure; it plays by itself only where `autoplay` is said, and not for who wants less motion."""
    heads = recording_of(scenario).heads
    ratios = ";".join(f"--{size}:{head['width']:g}/{head['height']:g}" for size, head in heads.items())
    about = escape(scenarios.get(scenario).summary)
    moment = f"{up}play/index.html#{heads['wide']['link']}"
    plays = " data-autoplay" if autoplay else ""
    said = "A recording: click a message to see its way. <i>Take over</i> goes on from here with the same world, in a"
    speeds = "".join(
        f'<option value="{speed}"{" selected" if speed == 1 else ""}>{words}×</option>'
        for speed, words in SPEEDS.items()
    )
    return f"""<figure class="recorded mq-viewer" data-past="false" data-recording="{up}stages/{scenario}"{plays}
 style="{ratios}" role="group" aria-label="{about}">
<div data-part="caption" aria-live="polite"></div>
<div class="mq-scene"><div data-part="stage"></div><div class="mq-gap" aria-hidden="true"></div></div>
<noscript>{heads["wide"]["stage"]}</noscript>
<div data-part="said"></div>
<div class="recorded-bar"><button type="button" data-control="play">Play</button>
<input type="range" data-control="scrub" min="0" max="0" value="0" aria-label="Where in the recording">
<span data-control="time">0:00</span> <select data-control="pace" aria-label="How fast">{speeds}</select>
<span class="world">in the world: <b data-control="clock"></b></span>
<a data-moment href="{escape(moment)}">Take over, live</a></div>
<div data-part="stations"></div>
<figcaption>{about} {said} Python in your browser.</figcaption>
</figure>"""
