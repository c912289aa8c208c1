"""What administrators ask and set of groups that read old messages from the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.java_properties import decode_java_properties

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import Handler
    from mqlab.broker.whole_broker import WholeBroker
    from mqlab.remoting import Channel


class AdminColdData:
    """The requests of org.apache.rocketmq.broker.processor.AdminBrokerProcessor about cold data control.

    They are answered, and limits are kept, also while the control itself is off.
    """

    def __init__(self, broker: WholeBroker) -> None:
        self._broker = broker

    def handlers(self) -> dict[int, Handler]:
        """What this part answers, by request code."""
        return {
            RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG: self._update_config,
            RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG: self._remove_config,
            RequestCode.GET_COLD_DATA_FLOW_CTR_INFO: self._get_info,
        }

    def _update_config(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        """Set limits: lines of group=bytes. What is no number is passed over, as in RocketMQ."""
        for group, text in decode_java_properties((request.body or b"").decode("utf-8", "replace")).items():
            digits = text[1:] if text[:1] in ("+", "-") else text
            if digits.isascii() and digits.isdigit():
                self._broker.cold_data_control.cg_ctr_service.add_or_update_group_config(group, int(text))
        return RemotingCommand.response(ResponseCode.SUCCESS)

    def _remove_config(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        if request.body is not None:
            group = request.body.decode("utf-8", "replace")
            self._broker.cold_data_control.cg_ctr_service.remove_group_config(group)
        return RemotingCommand.response(ResponseCode.SUCCESS)

    def _get_info(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        info = self._broker.cold_data_control.cg_ctr_service.get_cold_data_flow_ctr_info()
        return RemotingCommand.response(ResponseCode.SUCCESS, body=info.encode())
