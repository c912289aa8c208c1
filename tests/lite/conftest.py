"""The site that `make site-test` has built, on a server of its own, and a browser to look at it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.chromium import running

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SITE = Path(__file__).parents[2] / "out" / "site-test"


@pytest.fixture(scope="package")
def address() -> Iterator[str]:
    """Where the site is."""
    from .lite_page import SiteServer

    if not (SITE / "lite" / "lab" / "index.html").is_file():
        pytest.fail(f"there is no site in {SITE}: run `make site-test`, which builds it", pytrace=False)
    with SiteServer(SITE) as address:
        yield address


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """A running Chromium. For this directory alone: Playwright keeps an event loop in the main thread."""
    with running() as launched:
        yield launched
