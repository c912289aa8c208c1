"""`mqlab demo`: a world that plays in the browser without a key pressed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from .jupyter_lab import JupyterLab
from .notebook_page import PATIENCE_MS

EVENTS = 30
"""So many events further on nobody can say that the world stands still."""
FURTHER = "place => Number(document.querySelector('.mq-viewer').dataset.place) > place"


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Where `mqlab demo` says that its world plays."""
    home = JupyterLab(tmp_path)
    options = [f"--jupyter=--port={home.port}", "--jupyter=--IdentityProvider.token="]
    command = [sys.executable, "-m", "mqlab", "demo", "demo-two-brokers", "--seed", "3", "--no-browser", *options]
    with subprocess.Popen(
        command, env=home.environment(), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as demo:
        assert demo.stdout is not None
        yield next(line.split()[-1] for line in demo.stdout if " plays at " in line)
        demo.terminate()


def test_the_world_plays_as_soon_as_the_page_is_there(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    seen: list[str] = []
    page.on("pageerror", lambda error: seen.append(str(error)))
    page.goto(address)
    viewer = page.locator(".mq-viewer")
    expect(viewer).to_have_attribute("data-playing", "true", timeout=2 * PATIENCE_MS)
    began = int(viewer.get_attribute("data-place") or 0)
    page.wait_for_function(FURTHER, arg=began + EVENTS, timeout=2 * PATIENCE_MS)
    expect(viewer.locator('.mq-card[data-node="broker-b"]').first).to_be_visible()
    assert seen == []
    page.close()
