"""What brokers ask of their clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.protocol.codes import RequestCode
from mqlab.remoting import Channel, ChannelEventListener, RequestProcessor

if TYPE_CHECKING:
    from mqlab.client.mq_client_instance import MQClientInstance
    from mqlab.protocol.command import RemotingCommand
    from mqlab.remoting.processor import Processed


class ClientRemotingProcessor(RequestProcessor):
    """Answers the requests of brokers (org.apache.rocketmq.client.impl.ClientRemotingProcessor).

    What seldom comes is imported when it comes. Differs from RocketMQ: of the seven requests that a broker may send
    NOTIFY_CONSUMER_IDS_CHANGED and PUSH_REPLY_MESSAGE_TO_CLIENT are known; the others are answered "not supported".
    """

    def __init__(self, instance: MQClientInstance) -> None:
        self._instance = instance

    def register(self) -> None:
        """Take over the codes that this processor knows."""
        client = self._instance.api.remoting_client
        client.register_processor(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, self)
        client.register_processor(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, self)

    def process_request(self, channel: Channel, request: RemotingCommand) -> Processed:
        """The answer to a request of a broker, None to a one-way one."""
        if request.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED:
            # The members of a group have changed.
            self._instance.rebalance_immediately()
            return None
        from mqlab.client.reply_message import receive_reply_message

        return receive_reply_message(self._instance.node, request)


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
