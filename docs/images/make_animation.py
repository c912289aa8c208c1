"""Film `mqlab demo`: `python -m docs.images.make_animation` writes docs/images/demo.webp, which the README shows first.

With `--stills DIRECTORY` it takes 20 pictures of the stage alone in the first 30 seconds instead: for somebody who was
not told what it is, to say what happens. It needs a Chromium; CONTRIBUTING.md says where to get one.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import subprocess
import sys
import tempfile
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from mqlab.commands.doctor import CHROMIUM

PICTURE = Path(__file__).with_name("demo.webp")
SIZE = {"width": 1180, "height": 800}
WIDTH = 800
FILM_SECONDS, STILLS_SECONDS, STILLS = 24, 30, 20
FRAME_MS = 80
"""Nothing on the stage moves so fast that it needs more pictures."""
MOST_BYTES = 1_000_000
QUALITIES = (80, 65, 50, 35, 25)
STAGE, SAID = '[data-part="stage"]', '[data-part="said"]'


class Shot(NamedTuple):
    """One picture of the film, and when it was taken, in seconds."""

    at_s: float
    image: Image.Image


@contextmanager
def demo(scenario: str, seed: str) -> Iterator[str]:
    """`mqlab demo` with files and settings of its own; gives the page's address."""
    with tempfile.TemporaryDirectory() as directory:
        own = {f"JUPYTER_{kind}_DIR": f"{directory}/{kind}" for kind in ("CONFIG", "DATA", "RUNTIME")}
        command = [sys.executable, "-m", "mqlab", "demo", scenario, "--seed", seed, "--no-browser"]
        server = subprocess.Popen(
            command, env=os.environ | own, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert server.stdout is not None
        try:
            yield next(line.split()[-1] for line in server.stdout if " plays at " in line)
        finally:
            server.terminate()
            server.wait()


@contextmanager
def page_of(address: str) -> Iterator[Page]:
    """The page, from the moment at which the world plays."""
    chromium = next((path for path in map(shutil.which, CHROMIUM) if path), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE)  # type: ignore[arg-type]  # a plain dict is what it takes
        page.goto(address)
        page.locator('.mq-viewer[data-playing="true"]').wait_for(timeout=120_000)
        yield page
        browser.close()


def film(page: Page, seconds: float) -> list[Shot]:
    """What the browser paints in so many seconds."""
    shots: list[Shot] = []
    session = page.context.new_cdp_session(page)

    def take(frame: dict[str, Any]) -> None:
        session.send("Page.screencastFrameAck", {"sessionId": frame["sessionId"]})
        at_s = frame["metadata"]["timestamp"]
        if not shots or at_s - shots[-1].at_s >= FRAME_MS / 1_000:
            shots.append(Shot(at_s, Image.open(io.BytesIO(b64decode(frame["data"]))).convert("RGB")))

    session.on("Page.screencastFrame", take)
    session.send("Page.startScreencast", {"format": "png"})
    page.wait_for_timeout(seconds * 1_000)
    session.send("Page.stopScreencast")
    return shots


def box(page: Page, last: str) -> tuple[int, int, int, int]:
    """The rectangle from the stage down to another part of the viewer."""
    stage, below = page.locator(f".mq-viewer {STAGE}").bounding_box(), page.locator(f".mq-viewer {last}").bounding_box()
    assert stage is not None
    assert below is not None
    right, bottom = stage["x"] + stage["width"], below["y"] + below["height"]
    return round(stage["x"]), round(stage["y"]), round(right), round(bottom)


def write_film(shots: Sequence[Shot], area: tuple[int, int, int, int]) -> None:
    """Write the film, at the best quality with which it is small enough."""
    height = round(WIDTH * (area[3] - area[1]) / (area[2] - area[0]))
    frames = [shot.image.crop(area).resize((WIDTH, height), Image.Resampling.LANCZOS) for shot in shots]
    ends_s = [*(shot.at_s for shot in shots[1:]), shots[-1].at_s + 1]
    lasting_ms = [round((end_s - shot.at_s) * 1_000) for shot, end_s in zip(shots, ends_s, strict=True)]
    for quality in QUALITIES:
        frames[0].save(
            PICTURE, save_all=True, append_images=frames[1:], duration=lasting_ms, loop=0, quality=quality, method=4
        )
        if PICTURE.stat().st_size <= MOST_BYTES:
            print(f"{PICTURE}: {len(frames)} pictures, {PICTURE.stat().st_size:,} bytes at quality {quality}")
            return
    raise SystemExit(f"{PICTURE} has {PICTURE.stat().st_size:,} bytes: film fewer seconds")


def write_stills(shots: Sequence[Shot], area: tuple[int, int, int, int], directory: Path) -> None:
    """Write 20 pictures, as far apart as they can be."""
    directory.mkdir(parents=True, exist_ok=True)
    begin_s = shots[0].at_s
    for number in range(STILLS):
        at_s = begin_s + (number + 0.5) * STILLS_SECONDS / STILLS
        shot = min(shots, key=lambda shot: abs(shot.at_s - at_s))
        shot.image.crop(area).save(directory / f"{number + 1:02}.png")
    print(f"{STILLS} stills in {directory}")


def main(argv: Sequence[str] | None = None) -> None:
    """Film the demo."""
    parser = argparse.ArgumentParser(prog="python -m docs.images.make_animation", description=__doc__)
    parser.add_argument("--scenario", default="demo")
    parser.add_argument("--seed", default="7")
    parser.add_argument("--stills", type=Path, metavar="DIRECTORY", help="20 pictures of the stage, in place of a film")
    options = parser.parse_args(argv)
    with demo(options.scenario, options.seed) as address, page_of(address) as page:
        area = box(page, SAID if options.stills is None else STAGE)
        shots = film(page, FILM_SECONDS if options.stills is None else STILLS_SECONDS)
    if options.stills is None:
        write_film(shots, area)
    else:
        write_stills(shots, area, options.stills)


if __name__ == "__main__":
    main()
