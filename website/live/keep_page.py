"""Run where the Python of the page that plays links is kept: imports all that a world or a view may need later, since
the page has no files to import it from.
"""

import gc
import importlib
import pkgutil
import zipfile

import mqlab
import mqlab_widgets
from mqlab import scenarios
from mqlab.errors import MissingExtraError

AWAY = frozenset((
    "__main__", "answers", "commands", "data_sets", "explore", "fast", "grading", "ipython", "java", "museum",
    "serving",
))  # fmt: skip
"""Parts that no page needs."""
CHECKS = "mqlab.labs.checks"
"""All that it needs of the labs."""

# The page's own side comes first: it says what anywidget is.
importlib.import_module("mqlab_page")
for package in (mqlab, mqlab_widgets):
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        part = found.name.split(".")[1]
        if part not in AWAY and (part != "labs" or found.name.startswith(CHECKS)):
            try:
                importlib.import_module(found.name)
            except (ImportError, MissingExtraError):
                # A view that needs what a page does not have.
                continue
scenarios.get("demo").play(0, seconds=1)
# An open file is none any more when the Python goes on: importlib keeps the archive of the standard library open.
importlib.invalidate_caches()
gc.collect()
assert not [kept for kept in gc.get_objects() if isinstance(kept, zipfile.ZipFile)]
