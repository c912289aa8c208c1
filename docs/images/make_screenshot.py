"""Take the picture of a lab in JupyterLab that the README shows: `python docs/images/make_screenshot.py`.

It needs a Chromium; CONTRIBUTING.md says where to get one. Nothing is executed: the notebook is shown as it is
committed, with all outputs, also those that hide until their cells run.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from mqlab.commands.doctor import CHROMIUM

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "labs" / "00_tour.ipynb"
PICTURE = ROOT / "docs" / "images" / "tour.png"
SIZE = {"width": 1400, "height": 940}
TOP_CELL = "result = await producer.send"
"""The cell with these words stands at the top of the picture."""
SETTINGS = {
    "apputils-extension/notification": '{"fetchNews": "false", "checkForUpdates": false}',
    "notebook-extension/tracker": '{"windowingMode": "none"}',
}


@contextmanager
def jupyterlab(directory: Path) -> Iterator[str]:
    """A JupyterLab over a directory, with settings of its own, that trusts its notebooks; gives its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for name, text in SETTINGS.items():
        setting = directory / "config" / "lab" / "user-settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        setting.parent.mkdir(parents=True)
        setting.write_text(text, encoding="utf-8")
    own = {f"JUPYTER_{kind}_DIR": str(directory / kind.lower()) for kind in ("CONFIG", "DATA", "RUNTIME")}
    environment = os.environ | own
    trust = [sys.executable, "-m", "jupyter", "trust", str(directory / NOTEBOOK.name)]
    subprocess.run(trust, env=environment, check=True, capture_output=True)
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", f"--port={port}", "--allow-root"]
    command += ["--IdentityProvider.token=", f"--ServerApp.root_dir={directory}"]
    server = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}/lab"
    finally:
        server.terminate()
        server.wait()


def open_notebook(page: Page, address: str) -> None:
    """Open the notebook, once the server answers, without the list of files; bring the wanted cell to the top."""
    for _ in range(60):
        try:
            page.goto(f"{address}/tree/{NOTEBOOK.name}", wait_until="load")
            break
        except Exception:  # noqa: BLE001  the server is still starting
            page.wait_for_timeout(500)
    page.locator(".jp-Notebook .jp-CodeCell").first.wait_for(timeout=60_000)
    page.keyboard.press("Control+b")
    page.get_by_text("| Idle").wait_for(timeout=60_000)
    page.locator(".jp-CodeCell", has_text=TOP_CELL).first.evaluate("cell => cell.scrollIntoView()")
    page.wait_for_timeout(1_000)


def main() -> None:
    """Write docs/images/tour.png."""
    chromium = next((path for path in map(shutil.which, CHROMIUM) if path), None)
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        directory = Path(temporary)
        shown = re.sub(r'"(collapsed|outputs_hidden)": true', r'"\1": false', NOTEBOOK.read_text(encoding="utf-8"))
        (directory / NOTEBOOK.name).write_text(shown, encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE)  # type: ignore[arg-type]  # a plain dict is what it takes
        with jupyterlab(directory) as address:
            open_notebook(page, address)
            page.screenshot(path=str(PICTURE))
        browser.close()


if __name__ == "__main__":
    main()
