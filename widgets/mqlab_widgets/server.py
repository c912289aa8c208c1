"""An extension of Jupyter Server that lets a live view answer a click at once.

Jupyter Server leaves the kernel's socket to gather small messages, so that each answer to a click waits about 40 ms for
the browser's acknowledgement. With this extension it sends them as they come. It is switched on by
etc/jupyter/jupyter_server_config.d/mqlab.json, which is installed with mqlab.
"""

from __future__ import annotations

from typing import Any

SETTING = "kernel_websocket_connection_class"


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "mqlab_widgets.server"}]


def _load_jupyter_server_extension(server: Any) -> None:
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
