"""JupyterLab as `make lab` starts it: the settings that are installed with mqlab hold."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# What Jupyter's own packages say to each other.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture
def jupyter_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory for all that Jupyter writes; the signals that a server takes for itself are given back."""
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)}
    yield tmp_path
    for number, handler in handlers.items():
        signal.signal(number, handler)


def serve(home: Path) -> Any:
    """A Jupyter server in this process, on a free port of the loopback interface."""
    from jupyter_server.serverapp import ServerApp

    server = ServerApp()
    options = ["--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", "--ServerApp.port=0"]
    options += [f"--ServerApp.root_dir={home}", "--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True"]
    server.initialize(options)
    return server


def test_a_kernels_connection_sends_without_delay(jupyter_home: Path) -> None:
    from tornado.httpclient import AsyncHTTPClient
    from tornado.websocket import websocket_connect

    async def nodelay_of_a_connection() -> int:
        server = serve(jupyter_home)
        try:
            address = f"127.0.0.1:{server.port}/api/kernels"
            answer = await AsyncHTTPClient().fetch(f"http://{address}", method="POST", body="{}")
            client = await websocket_connect(f"ws://{address}/{json.loads(answer.body)['id']}/channels")
            (connection,) = server.kernel_websocket_connection_class._open_sockets
            sending = connection.websocket_handler.ws_connection.stream.socket
            nodelay = sending.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            client.close()
            return int(nodelay)
        finally:
            await server._cleanup()

    assert asyncio.run(nodelay_of_a_connection()) != 0


def test_a_view_whose_state_is_not_in_the_notebook_is_left_out_where_a_picture_stands_beside_it() -> None:
    from mqlab_widgets.server import STATE, VIEW, leave_out_lost_views

    def output(model: str, **beside: str) -> dict[str, Any]:
        return {"output_type": "display_data", "data": {VIEW: {"model_id": model}, **beside}}

    known, lost, alone = output("a", text="twin"), output("b", text="twin"), output("c")
    stream = {"output_type": "stream", "text": "x"}
    cells = [{"cell_type": "markdown"}, {"cell_type": "code", "outputs": [stream, known, lost, alone]}]
    leave_out_lost_views({"metadata": {"widgets": {STATE: {"state": {"a": {}}}}}, "cells": cells})
    assert (VIEW in known["data"], VIEW in lost["data"], VIEW in alone["data"]) == (True, False, True)
    leave_out_lost_views({"metadata": {}, "cells": cells})
    assert list(known["data"]) == ["text"]
