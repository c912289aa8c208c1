"""Everything that is asked of a broker beside sending, pulling and heartbeats."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from mqlab.broker.errors import RequestError, rejected
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.remoting import Channel, RequestProcessor

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import Handler
    from mqlab.broker.whole_broker import WholeBroker


class AdminBrokerProcessor(RequestProcessor):
    """The processor of all codes that have no other (org.apache.rocketmq.broker.processor.AdminBrokerProcessor).

    Its handlers are imported with the first such request: many a world has none, and its first message need not wait.
    """

    def __init__(self, broker: WholeBroker) -> None:
        self._broker = broker
        self._hooks = broker.node.hooks
        self._handlers: dict[int, Handler] = {}

    def process_request(
        self, channel: Channel, request: RemotingCommand
    ) -> RemotingCommand | Coroutine[Any, Any, RemotingCommand]:
        """The answer of whoever handles the code; 3 if nobody does."""
        if not self._handlers:
            self._handlers = _all_handlers(self._broker)
        handler = self._handlers.get(request.code)
        try:
            if handler is None:
                remark = f" request type {request.code} not supported"
                raise RequestError(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark)
            return handler(channel, request)
        except RequestError as error:
            return rejected(self._hooks, channel, request, error)


def _all_handlers(broker: WholeBroker) -> dict[int, Handler]:
    from mqlab.broker.admin_clients import AdminClients
    from mqlab.broker.admin_cold_data import AdminColdData
    from mqlab.broker.admin_files import AdminFiles
    from mqlab.broker.admin_groups import AdminGroups
    from mqlab.broker.admin_offsets import AdminOffsets
    from mqlab.broker.admin_queues import AdminQueues
    from mqlab.broker.admin_settings import AdminSettings
    from mqlab.broker.admin_topics import AdminTopics

    return {
        **AdminTopics(broker).handlers(),
        **AdminGroups(broker).handlers(),
        **AdminOffsets(broker).handlers(),
        **AdminQueues(broker).handlers(),
        **AdminSettings(broker).handlers(),
        **AdminClients(broker).handlers(),
        **AdminColdData(broker).handlers(),
        **AdminFiles(broker).handlers(),
    }
