"""Runs a notebook in a fresh kernel, with nothing read from or left in the home directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mqlab.check.bets import OPEN
from mqlab.labs.errors import LabError
from mqlab.labs.extra import extra
from mqlab.labs.kernels import with_sockets_of_its_own
from mqlab.labs.notebook import Notebook
from mqlab.labs.source import place_of

TIMEOUT_S = 300
SMALL_DATA = ("MQLAB_LAB_DATA", "small")
"""The variable that the Spark labs ask how much data to make, and what the committed notebooks are built with."""
TRUTHS_SHOWN = (OPEN, "shown")

_OWN_DIRECTORIES = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")


@contextmanager
def jupyter_apart() -> Iterator[None]:
    """Within it, Jupyter and IPython keep their files in a temporary directory, and import paths are absolute.

    Labs with a data set of a million events take their small one, and `reveal` tells truths to whoever has bet nothing.
    """
    before = dict(os.environ)
    with TemporaryDirectory(prefix="mqlab-labs-") as place:
        for name in _OWN_DIRECTORIES:
            os.environ[name] = str(Path(place) / name.lower())
            Path(os.environ[name]).mkdir()
        if "PYTHONPATH" in before:
            os.environ["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, before["PYTHONPATH"].split(os.pathsep)))
        os.environ.setdefault(*SMALL_DATA)
        os.environ.setdefault(*TRUTHS_SHOWN)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def execute(name: str, notebook: Notebook, directory: Path) -> Notebook:
    """The notebook with outputs, every cell run once from the top. Raises LabError with the cell that failed.

    `directory` is where the kernel works. A cell with the tag `raises-exception` may fail.
    """
    nbclient = extra("nbclient")
    node = extra("nbformat").from_dict(notebook)
    client = nbclient.NotebookClient(
        node,
        timeout=TIMEOUT_S,
        record_timing=False,
        store_widget_state=False,
        coalesce_streams=True,
        extra_arguments=["--log-level=ERROR"],
        kernel_manager_class=with_sockets_of_its_own(extra("jupyter_client.manager").AsyncKernelManager),
        resources={"metadata": {"path": str(directory)}},
    )
    with jupyter_apart():
        try:
            client.execute()
        except nbclient.exceptions.CellExecutionError as failed:
            place = _place(node, failed)
            raise LabError(name, [f"{place} fails: {failed.ename}: {failed.evalue}"], "run it in JupyterLab") from None
        except nbclient.exceptions.CellTimeoutError as late:
            raise LabError(name, [f"a cell runs longer than {TIMEOUT_S} s"], "make it shorter") from late
        except nbclient.exceptions.DeadKernelError as dead:
            raise LabError(name, ["the kernel died"], "run it in JupyterLab to see why") from dead
    # The kernel writes its Python's version into the metadata; what was built must not depend on it.
    return dict(node) | {"metadata": notebook["metadata"]}


def _place(node: Any, failed: Exception) -> str:
    """The cell that raised: the last one that has run."""
    run = [(at, cell) for at, cell in enumerate(node["cells"], 1) if cell.get("execution_count")]
    if not run:
        return "a cell"
    at, cell = run[-1]
    return place_of(at, cell["source"])
