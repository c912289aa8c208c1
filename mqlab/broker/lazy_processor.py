"""A processor that is made when it is first needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mqlab.remoting import RequestProcessor

if TYPE_CHECKING:
    from mqlab.protocol.command import RemotingCommand
    from mqlab.remoting import Channel
    from mqlab.remoting.processor import Processed


class LazyProcessor(RequestProcessor):
    """Hands requests on to a processor that `get` makes, and imports, with the first of them.

    Many a world sends no such request: it needs neither the processor's modules nor what it keeps.
    """

    def __init__(self, get: Callable[[], RequestProcessor]) -> None:
        self._get = get

    def process_request(self, channel: Channel, request: RemotingCommand) -> Processed:
        """The answer of the processor, which is made now at the latest."""
        return self._get().process_request(channel, request)
