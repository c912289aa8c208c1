"""A JupyterLab of its own: in a directory of its own, on a free port of the loopback interface, without a token."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[2]
START_SECONDS = 60
OVERRIDES = ROOT / "widgets" / "jupyter" / "share" / "lab" / "settings" / "overrides.d" / "mqlab.json"
"""The settings that are installed with mqlab; an environment may have those of an older one."""
EXTENSIONS = ROOT / "widgets" / "jupyter" / "share" / "labextensions"
SETTINGS: dict[str, dict[str, Any]] = {
    **{name.replace(":", "/"): values for name, values in json.loads(OVERRIDES.read_text(encoding="utf-8")).items()},
    # Else cells that are out of sight are no part of the page.
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},
    "@jupyterlab/docmanager-extension/plugin": {"autosave": False},
    "@jupyter-widgets/jupyterlab-manager/plugin": {"saveState": True},
}


class JupyterLab:
    """A server, as `with JupyterLab(directory) as lab`; `lab.address` is its page, `lab.files` its root directory."""

    def __init__(self, directory: Path) -> None:
        self._home = directory / "jupyter"
        self._log = directory / "server.log"
        self.files = directory / "files"
        self.files.mkdir(parents=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        for plugin, values in SETTINGS.items():
            self.set(plugin, values)
        extension = ROOT / "widgets" / "jupyter" / "etc" / "jupyter_server_config.d" / "mqlab.json"
        shutil.copytree(extension.parent, self._home / "config" / extension.parent.name)
        shutil.copytree(EXTENSIONS, self._home / "data" / EXTENSIONS.name)

    def set(self, plugin: str, values: dict[str, Any]) -> None:
        """Write the settings of one of JupyterLab's plugins; a page reads them when it is loaded."""
        file = self._home / "config" / "lab" / "user-settings" / f"{plugin}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values), encoding="utf-8")

    def write(self, name: str, cells: Sequence[str]) -> None:
        """Write a notebook of code cells."""
        kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
        empty: dict[str, Any] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
        code = [{**empty, "id": f"cell-{n}", "source": cell} for n, cell in enumerate(cells)]
        notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": code}
        (self.files / name).write_text(json.dumps(notebook), encoding="utf-8")

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--expose-app-in-browser"]
        command += ["--ServerApp.ip=127.0.0.1", f"--ServerApp.port={self.port}", "--ServerApp.port_retries=0"]
        command += ["--IdentityProvider.token=", f"--ServerApp.root_dir={self.files}"]
        with self._log.open("w") as log:
            self._server = subprocess.Popen(command, env=self.environment(), stdout=log, stderr=log)
        self._wait()
        return self

    def environment(self) -> dict[str, str]:
        """The server's environment, in which Jupyter keeps its files in directories of its own."""
        paths = [str(ROOT), str(ROOT / "widgets"), str(ROOT / "spark"), *filter(None, [os.environ.get("PYTHONPATH")])]
        own = {f"JUPYTER_{name}_DIR": str(self._home / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
        ours = {"IPYTHONDIR": str(self._home / "ipython"), "PYTHONPATH": os.pathsep.join(paths)}
        return {**os.environ, **own, **ours}

    def _wait(self) -> None:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self._server.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.address}/api", timeout=5):
                    return
            except OSError:
                time.sleep(0.1)
        self._stop()
        raise AssertionError(f"JupyterLab did not start:\n{self._log.read_text()}")

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _stop(self) -> None:
        self._server.terminate()
        try:
            self._server.wait(20)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
