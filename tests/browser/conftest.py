"""One JupyterLab and one browser for all tests of this directory; a page that fails the test on what must not be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from .chromium import running
from .jupyter_lab import JupyterLab

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from .notebook_page import Notebook, NotebookPage

SCENARIO = """from mqlab.scenarios import get
from mqlab_widgets.stepper import Stepper
lab = get("two-brokers").build(7).run_for(seconds=4)"""

STEADY = """from pathlib import Path
from mqlab import Lab
from mqlab.scenarios import get
from mqlab_widgets.stepper import Stepper
lab = get("steady-load").build(7).run_for(seconds=4)"""


@pytest.fixture(scope="package")
def jupyter_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JupyterLab]:
    """A running JupyterLab."""
    with JupyterLab(tmp_path_factory.mktemp("browser")) as lab:
        yield lab


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """A running Chromium.

    For this directory alone: Playwright keeps an event loop in the main thread, beside which no other can run.
    """
    with running() as launched:
        yield launched


@pytest.fixture(scope="package")
def loaded(jupyter_lab: JupyterLab, browser: Browser) -> Iterator[NotebookPage]:
    """JupyterLab in a page, loaded once."""
    from .notebook_page import NotebookPage

    page = NotebookPage(browser.new_page(viewport={"width": 1500, "height": 1200}), jupyter_lab)
    page.load()
    yield page
    page.page.close()


@pytest.fixture
def notebooks(loaded: NotebookPage) -> Iterator[NotebookPage]:
    """JupyterLab in a page. The test fails on an error in the console and on a request that leaves this machine."""
    yield loaded
    seen, loaded.seen[:] = list(loaded.seen), []
    assert seen == []


@pytest.fixture(scope="module")
def two_brokers(loaded: NotebookPage) -> Iterator[Notebook]:
    """A notebook whose second cell shows a stepper of a world with two brokers, at second 4."""
    notebook = loaded.open("two_brokers.ipynb", [SCENARIO, "stepper = Stepper(lab)\nstepper"])
    notebook.run()
    yield notebook
    notebook.close()
