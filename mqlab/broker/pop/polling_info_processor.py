"""Telling how many pops wait: POLLING_INFO."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.errors import RequestError, rejected
from mqlab.broker.pop.notification_processor import NO_REMARK_SET
from mqlab.broker.pop.pop_checks import AskedQueue, check_asked, check_broker
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import PollingInfoRequestHeader, PollingInfoResponseHeader
from mqlab.remoting import Channel, RequestProcessor

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.broker.pop.pop_long_polling_service import PopLongPollingService


class PollingInfoProcessor(RequestProcessor):
    """POLLING_INFO (org.apache.rocketmq.broker.processor.PollingInfoProcessor)."""

    def __init__(self, broker: BrokerParts, pops: PopLongPollingService) -> None:
        self._broker, self._pops = broker, pops

    def process_request(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        """How many pops of a group wait for a queue; with queue -1, for any queue."""
        header = request.header_as(PollingInfoRequestHeader)
        asked = AskedQueue(header.consumer_group, header.topic, header.queue_id)
        try:
            check_broker(self._broker)
            check_asked(self._broker, channel, asked)
        except RequestError as error:
            response = rejected(self._broker.node.hooks, channel, request, error)
            response.header = PollingInfoResponseHeader(0)
            return response
        number = self._pops.polling_num(asked.topic, asked.group, asked.queue_id)
        return RemotingCommand.response(ResponseCode.SUCCESS, NO_REMARK_SET, PollingInfoResponseHeader(number))
