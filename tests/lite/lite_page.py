"""The web site on a plain server of this machine, and its JupyterLite in a browser."""

from __future__ import annotations

import functools
import http.server
import threading
from pathlib import Path
from typing import Any, Self

from playwright.sync_api import Browser, Page, expect

from tests.browser.notebook_page import Notebook, ViewerPage

PATIENCE_MS = 120_000
"""How long a condition may take to come true: Pyodide starts in seconds, and on a loaded machine in a minute."""
SAVE = """([path, content]) =>
    jupyterapp.serviceManager.contents.save(path, { type: "notebook", format: "json", content })"""
OPEN = """async path => {
    const panel = await jupyterapp.commands.execute("docmanager:open", { path });
    await panel.revealed;
    await panel.context.ready;
    await panel.sessionContext.ready;
    jupyterapp.shell.activateById(panel.id);
    return panel.id;
}"""
KERNEL = """async id => {
    const panel = [...jupyterapp.shell.widgets("main")].find(widget => widget.id === id);
    await panel.sessionContext.session.kernel.info;
}"""
CELLS = """id => {
    const panel = [...jupyterapp.shell.widgets("main")].find(widget => widget.id === id);
    return panel.context.model.toJSON().cells;
}"""


class SiteServer:
    """The site's files on a free port of the loopback interface, as `with SiteServer(directory) as address`."""

    def __init__(self, directory: Path) -> None:
        handler = functools.partial(_Quiet, directory=str(directory))
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)

    def __enter__(self) -> str:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_port}"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing of each file that is asked for."""


class LitePage:
    """JupyterLite in a page of a browser that has never seen it: nothing is in its cache, nothing was written there.

    `seen` collects what must not be there: console errors and requests that leave this machine.
    """

    def __init__(self, browser: Browser, address: str) -> None:
        self.address = address
        self.seen: list[str] = []
        self._context = browser.new_context(viewport={"width": 1500, "height": 1200})
        self.page: Page = self._context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        self.page.on(
            "console",
            lambda line: (
                self.seen.append(f"console: {line.text} ({line.location['url']})") if line.type == "error" else None
            ),
        )
        self.page.on("pageerror", lambda error: self.seen.append(f"page error: {error}"))
        self._context.on("request", lambda request: self._requested(request.url))

    def _requested(self, url: str) -> None:
        if not url.startswith((self.address, "data:", "blob:", "about:")):
            self.seen.append(f"a request left this machine: {url}")

    def load(self) -> None:
        """Load JupyterLab, with nothing open."""
        self.page.goto(f"{self.address}/lite/lab/index.html")
        self.page.wait_for_function("() => window.jupyterapp")
        self.page.evaluate("() => jupyterapp.restored.then(() => { jupyterapp.shell.collapseLeft(); })")

    def open(self, name: str, content: dict[str, Any] | None = None) -> Notebook:
        """Open a notebook, one that is there or this one, and wait until its kernel has started."""
        if content is not None:
            self.page.evaluate(SAVE, [name, content])
        notebook = Notebook(self.page, self.page.evaluate(OPEN, name))
        self.page.evaluate(KERNEL, notebook.panel)
        return notebook

    def run_to_first_view(self, notebook: Notebook) -> ViewerPage:
        """Run the cells from the top until one shows a world."""
        for index, cell in enumerate(self.cells(notebook)):
            if cell["cell_type"] == "code":
                notebook.run_cell(index)
                if "Stepper(" in cell["source"]:
                    return notebook.viewer(index)
        raise AssertionError("there is no live view in this notebook")

    def cells(self, notebook: Notebook) -> list[dict[str, Any]]:
        """The notebook's cells with their outputs, as they are now."""
        return list(self.page.evaluate(CELLS, notebook.panel))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._context.close()
