"""An extension of Jupyter Server: a live view answers a click at once, and leaves a picture when its kernel is gone.

Jupyter Server leaves the kernel's socket to gather small messages, so that each answer to a click waits about 40 ms for
the browser's acknowledgement. With this extension it sends them as they come.

In place of a widget that neither the kernel nor the notebook knows, JupyterLab writes "model not found", whatever else
the output holds. Our settings let it save the widgets' state; where that was not done, the view is left out of the
output when a notebook without a kernel is opened, so that the picture and the text beside it are shown.

It is switched on by etc/jupyter/jupyter_server_config.d/mqlab.json, which is installed with mqlab.
"""

from __future__ import annotations

from typing import Any

SETTING = "kernel_websocket_connection_class"
VIEW = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "mqlab_widgets.server"}]


def _load_jupyter_server_extension(server: Any) -> None:
    """Change what the server does: called by it when it starts."""
    send_without_delay(server)
    show_pictures_of_lost_widgets(server)


def send_without_delay(server: Any) -> None:
    """Use a connection without delay, unless the server has a kind of connection of its own (a gateway's)."""
    from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection

    if server.web_app.settings[SETTING] is not ZMQChannelsWebsocketConnection:
        return

    class NoDelayWebsocketConnection(ZMQChannelsWebsocketConnection):
        """The kernel's connection, with TCP_NODELAY."""

        def connect(self) -> Any:
            self.websocket_handler.set_nodelay(True)
            return super().connect()

    server.web_app.settings[SETTING] = NoDelayWebsocketConnection


def show_pictures_of_lost_widgets(server: Any) -> None:
    """Leave the views that nobody knows any more out of a notebook that is opened."""
    from jupyter_server.utils import ensure_async

    contents = server.contents_manager
    get = contents.get

    async def get_with_pictures(*args: Any, **options: Any) -> Any:
        model = await ensure_async(get(*args, **options))
        if model["type"] == "notebook" and model["content"]:
            sessions = await ensure_async(server.session_manager.list_sessions())
            if all(session["path"].strip("/") != model["path"].strip("/") for session in sessions):
                leave_out_lost_views(model["content"])
        return model

    contents.get = get_with_pictures


def leave_out_lost_views(notebook: Any) -> None:
    """Take each view whose widget's state is not in the notebook out of its output, where something else is shown."""
    state = notebook["metadata"].get("widgets", {}).get(STATE, {}).get("state", {})
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if VIEW in data and len(data) > 1 and data[VIEW].get("model_id") not in state:
                del data[VIEW]
