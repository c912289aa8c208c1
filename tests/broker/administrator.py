"""An administrator: a process of a lab that asks its first broker."""

from __future__ import annotations

from typing import Any

from mqlab import DefaultMQPushConsumer, Lab
from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.remoting import RemotingClient


class Admin:
    """A process that asks the broker."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.remoting = RemotingClient(lab.world.node("admin"))
        self.address = lab.brokers[0].controller.broker_addr  # type: ignore[union-attr]

    def ask(self, code: int, header: Any) -> RemotingCommand:
        request = RemotingCommand.request(code, header)
        call = self.remoting.invoke_sync(self.address, request, 30_000)
        answer: RemotingCommand = self.lab.world.wait_for(self.remoting.node.spawn(call, f"call {code}").join())
        return answer

    def running_info(self, client: DefaultMQPushConsumer, group: str = "readers") -> RemotingCommand:
        header = h.GetConsumerRunningInfoRequestHeader(group, client.impl.instance.client_id, False)
        return self.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, header)

    def consume(self, client: DefaultMQPushConsumer, msg_id: str | None, group: str = "readers") -> RemotingCommand:
        header = h.ConsumeMessageDirectlyResultRequestHeader(group, client.impl.instance.client_id, msg_id, topic="T")
        return self.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, header)

    def status(self, group: str = "readers", client_id: str = "") -> RemotingCommand:
        header = h.GetConsumerStatusRequestHeader("T", group, client_id)
        return self.ask(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, header)

    def reset(self, timestamp_ms: int, *, is_force: bool = True, group: str = "readers", topic: str = "T") -> Any:
        header = h.ResetOffsetRequestHeader(group, topic, timestamp_ms, is_force)
        return self.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)

    def clone(self, source: str, target: str, topic: str | None = "T", *, offline: bool = False) -> RemotingCommand:
        header = h.CloneGroupOffsetRequestHeader(source, target, topic, offline)
        return self.ask(RequestCode.CLONE_GROUP_OFFSET, header)

    def delete_topic(self, topic: str = "T") -> RemotingCommand:
        return self.ask(RequestCode.DELETE_TOPIC_IN_BROKER, h.DeleteTopicRequestHeader(topic))

    def delete_group(self, group: str = "readers", *, clean_offset: bool = False) -> RemotingCommand:
        header = h.DeleteSubscriptionGroupRequestHeader(group, clean_offset)
        return self.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, header)
