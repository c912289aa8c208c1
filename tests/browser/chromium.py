"""Where the browser is: `python -m tests.browser.chromium` prints its path, or says how to get one and ends with 1."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mqlab.commands.doctor import CHROMIUM

if TYPE_CHECKING:
    from playwright.sync_api import Browser

MISSING = "the browser tests need a Chromium, and none is found: run `make browser-test`, which installs it or says how"
FLAGS = [
    # A container's root has no sandbox, and a machine without a screen no graphics card.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    # Nothing but this machine has a name.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost",
]


def chromium() -> str | None:
    """The path of a Chromium: the system's, else the one that `playwright install chromium` has fetched."""
    found = next((path for path in map(shutil.which, CHROMIUM) if path), None)
    return found or _fetched()


@contextmanager
def running() -> Iterator[Browser]:
    """A running Chromium for a test; the test fails where there is none.

    Playwright keeps an event loop in the main thread, beside which no other can run: tests in other directories have
    to wait until it has ended.
    """
    import pytest

    found = chromium()
    if found is None:
        pytest.fail(MISSING, pytrace=False)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield launched
        launched.close()


def _fetched() -> str | None:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).is_file() else None


if __name__ == "__main__":
    found = chromium()
    print(found or MISSING)
    sys.exit(0 if found else 1)
