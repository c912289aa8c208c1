"""`mqlab demo`: a world that plays, in JupyterLab in the browser, without a key pressed.

JupyterLab restores the widgets of a kernel that runs when a page is opened. So the notebook's session is begun, and its
cell executed, before the browser is sent there.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mqlab.arguments import seed_of
from mqlab.commands.lab import allow_root
from mqlab.labs.extra import extra
from mqlab.scenarios import get
from mqlab.scenarios.storyboards import STORYBOARDS

NOTEBOOK = "demo.ipynb"
KERNEL = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
CELL = """\
from mqlab.scenarios import get
from mqlab_widgets import Stepper

lab = get({name!r}).build(seed={seed!r})
Stepper(lab, play=True)"""
STORY = """\
from mqlab_widgets import storyboard

storyboard({name!r}, seed={seed!r})"""


def main(argv: Sequence[str] | None = None) -> int:
    """Serve the world until Ctrl-C; 0. MissingExtraError without JupyterLab or the widgets."""
    options = _parser().parse_args(argv)
    cell = cell_of(options.scenario, seed_of(options.seed))

    def told(url: str) -> None:
        print(f"\n{options.scenario} plays at {url}\n", flush=True)

    show(cell, told, options.no_browser, options.jupyter)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mqlab demo", description="Open JupyterLab on a world that plays.")
    parser.add_argument(
        "scenario", nargs="?", default="demo", help="one of `mqlab scenarios` (default: demo), or a lab: 06"
    )
    parser.add_argument("--seed", default="7", help="the world's seed (default 7)")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    parser.add_argument(
        "--jupyter", action="append", default=[], metavar="OPTION", help="an option for Jupyter, like --port=9999"
    )
    return parser


def show(code: str, told: Callable[[str], object], no_browser: bool, options: Sequence[str]) -> None:
    """Run JupyterLab with one notebook, whose only cell has been executed; returns when it is stopped.

    `told` gets the address of the page, when there is something to see.
    """
    extra("mqlab_widgets")
    app: Any = extra("jupyterlab.labapp").LabApp
    with TemporaryDirectory(prefix="mqlab-demo-") as directory:
        root = f"--ServerApp.root_dir={directory}"
        server = app.initialize_server(argv=["--no-browser", root, *allow_root(), *options])
        path = Path(directory) / NOTEBOOK
        write(path, notebook_of(code))

        async def open_the_page() -> None:
            await execute(server, path)
            server.default_url = f"/doc/tree/{NOTEBOOK}"
            told(server.display_url.split()[0])
            if not no_browser:
                server.launch_browser()

        server.io_loop.add_callback(open_the_page)
        server.start()


def notebook_of(code: str) -> Any:
    """A notebook of one cell, which shows the world; the stage stands on top, the code opens with a click."""
    v4 = extra("nbformat").v4
    cell = v4.new_code_cell(code, id="demo", metadata={"jupyter": {"source_hidden": True}})
    return v4.new_notebook(cells=[cell], metadata={"kernelspec": KERNEL})


def cell_of(name: str, seed: int | str) -> str:
    """The code that shows a scenario's world, or the storyboard of a lab. LearnerError when there is none."""
    if name in STORYBOARDS:
        return STORY.format(name=name, seed=seed)
    return CELL.format(name=get(name).name, seed=seed)


async def execute(server: Any, path: Path) -> None:
    """Begin the notebook's session as a page would, execute its cell in that kernel, and write what came of it."""
    session = await server.session_manager.create_session(
        path=path.name, name=path.name, type="notebook", kernel_name=KERNEL["name"]
    )
    notebook = extra("nbformat").read(path, as_version=4)
    kernel = server.kernel_manager.get_kernel(session["kernel"]["id"])
    client = extra("nbclient").NotebookClient(
        notebook, km=kernel, allow_errors=True, record_timing=False, store_widget_state=False
    )
    async with client.async_setup_kernel():
        await client.async_execute_cell(notebook.cells[0], 0)
    client.kc.stop_channels()
    # nbclient has taken the signals for itself and not given them back.
    server.init_signal()
    write(path, notebook)


def write(path: Path, notebook: Any) -> None:
    """Write a notebook and sign it: JupyterLab draws what a notebook shows only when it trusts it."""
    extra("nbformat").write(notebook, path)
    extra("nbformat.sign").NotebookNotary().sign(notebook)
