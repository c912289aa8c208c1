"""What brokers ask of their clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.protocol.codes import RequestCode
from mqlab.remoting import Channel, ChannelEventListener, RequestProcessor

if TYPE_CHECKING:
    from mqlab.client.mq_client_instance import MQClientInstance
    from mqlab.protocol.command import RemotingCommand
    from mqlab.remoting.processor import Processed


CODES = (
    RequestCode.CHECK_TRANSACTION_STATE,
    RequestCode.NOTIFY_CONSUMER_IDS_CHANGED,
    RequestCode.RESET_CONSUMER_CLIENT_OFFSET,
    RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT,
    RequestCode.GET_CONSUMER_RUNNING_INFO,
    RequestCode.CONSUME_MESSAGE_DIRECTLY,
    RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT,
)
"""What a broker may ask of a client."""


class ClientRemotingProcessor(RequestProcessor):
    """Answers the requests of brokers (org.apache.rocketmq.client.impl.ClientRemotingProcessor).

    What seldom comes is imported when it comes.
    """

    def __init__(self, instance: MQClientInstance) -> None:
        self._instance = instance

    def register(self) -> None:
        """Take over the codes that this processor knows."""
        client = self._instance.api.remoting_client
        for code in CODES:
            client.register_processor(code, self)

    def process_request(self, channel: Channel, request: RemotingCommand) -> Processed:
        """The answer to a request of a broker, None to a one-way one."""
        if request.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED:
            # The members of a group have changed.
            self._instance.rebalance_immediately()
        elif request.code == RequestCode.CHECK_TRANSACTION_STATE:
            from mqlab.client.broker_requests import check_transaction_state

            check_transaction_state(self._instance, channel, request)
        else:
            from mqlab.client.broker_requests import answer

            return answer(self._instance, request)
        return None


class HeartbeatOnActiveChannel(ChannelEventListener):
    """Sends a heartbeat over every new channel to a broker, so that the broker knows its client at once.

    Java: org.apache.rocketmq.client.impl.factory.MQClientInstance.
    """

    def __init__(self, instance: MQClientInstance) -> None:
        self._instance = instance

    def on_connect(self, channel: Channel) -> None:
        """Spawn the heartbeat, if the channel leads to a broker."""
        for broker_name, addresses in self._instance.routes.broker_addr_table.items():
            for broker_id, address in addresses.items():
                if address == channel.remote_address:
                    self._instance.node.spawn(self._greet(broker_id, broker_name, address), "channel active")
                    return

    async def _greet(self, broker_id: int, broker_name: str, address: str) -> None:
        if await self._instance.heartbeats.send_to_broker(broker_id, broker_name, address):
            self._instance.rebalance_immediately()
