"""The rebalance that a broker does for its consumers: which queues each shall have, and whether to pull or to pop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mqlab.broker.errors import RequestError, rejected
from mqlab.broker.message_request_mode_manager import MessageRequestModeManager
from mqlab.broker.topic_route_info_manager import TopicRouteInfoManager
from mqlab.errors import LearnerError
from mqlab.protocol.assignment import (
    ANY_QUEUE,
    POP,
    PULL,
    MessageQueueAssignment,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
    SetMessageRequestModeRequestBody,
)
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.heartbeat import MessageModel
from mqlab.protocol.message import MessageQueue
from mqlab.protocol.topics import is_retry_topic
from mqlab.rebalance import (
    AllocateMessageQueueAveragely,
    AllocateMessageQueueAveragelyByCircle,
    AllocateMessageQueueStrategy,
)
from mqlab.remoting import Channel, RequestProcessor
from mqlab.trace.events.broker import AssignmentAnswered

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.remoting.processor import Processed


class QueryAssignmentProcessor(RequestProcessor):
    """QUERY_ASSIGNMENT and SET_MESSAGE_REQUEST_MODE (org.apache.rocketmq.broker.processor.QueryAssignmentProcessor).

    Differs from RocketMQ: the queues of an answer are sorted, where there a set has no particular order.
    """

    def __init__(self, broker: BrokerParts) -> None:
        self._broker = broker
        self._hooks = broker.node.hooks
        self._strategies: dict[str, AllocateMessageQueueStrategy] = {
            strategy.name: strategy
            for strategy in (AllocateMessageQueueAveragely(), AllocateMessageQueueAveragelyByCircle())
        }
        self.message_request_mode_manager = MessageRequestModeManager(
            broker.node, broker.message_store_config.path("config") + "/messageRequestMode.json"
        )
        self.message_request_mode_manager.load()
        self.topic_route_info_manager = TopicRouteInfoManager(broker)

    def shutdown(self) -> None:
        """Ask the name servers no more."""
        self.topic_route_info_manager.shutdown()

    def process_request(self, channel: Channel, request: RemotingCommand) -> Processed:
        """Answer one of the two; who asks for queues may have to wait for a name server's answer."""
        if request.code == RequestCode.QUERY_ASSIGNMENT:
            return self._query_assignment(QueryAssignmentRequestBody.decode(request.body))
        try:
            self.set_message_request_mode(SetMessageRequestModeRequestBody.decode(request.body))
        except RequestError as error:
            return rejected(self._hooks, channel, request, error)
        return RemotingCommand.response(ResponseCode.SUCCESS)

    # -- the mode ---------------------------------------------------------------------------------------------------

    def set_message_request_mode(self, body: SetMessageRequestModeRequestBody) -> None:
        """Let a group pull or pop a topic; RequestError for a retry topic, an unknown topic or group.

        Java: org.apache.rocketmq.broker.processor.QueryAssignmentProcessor.setMessageRequestMode.
        """
        topic, group = body.topic, body.consumer_group
        if is_retry_topic(topic):
            raise RequestError(ResponseCode.NO_PERMISSION, "retry topic is not allowed to set mode")
        if self._broker.topic_config_manager.select_topic_config(topic) is None:
            raise RequestError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist")
        if self._broker.subscription_group_manager.find_subscription_group_config(group) is None:
            raise RequestError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "subscription group does not exist")
        self.message_request_mode_manager.set_message_request_mode(body)

    def _mode_of(self, topic: str, group: str) -> SetMessageRequestModeRequestBody:
        """What was set; else a retry topic is pulled, and any other as the broker's settings say."""
        known = self.message_request_mode_manager.get_message_request_mode(topic, group)
        if known is not None:
            return known
        config = self._broker.broker_config
        mode = PULL if is_retry_topic(topic) else config.default_message_request_mode
        share = config.default_pop_share_queue_num if mode == POP else 0
        return SetMessageRequestModeRequestBody(topic, group, mode, share)

    # -- the queues -------------------------------------------------------------------------------------------------

    async def _query_assignment(self, body: QueryAssignmentRequestBody) -> RemotingCommand:
        mode = self._mode_of(body.topic, body.consumer_group)
        queues = await self._do_load_balance(body, mode)
        assignments = None
        if queues is not None:
            assignments = [MessageQueueAssignment(queue, mode.mode) for queue in sorted(set(queues))]
        if self._hooks.on:
            count = -1 if assignments is None else len(assignments)
            self._hooks.emit(
                AssignmentAnswered(body.client_id, body.consumer_group, body.topic, mode.mode, count)
            )
        answer = QueryAssignmentResponseBody(assignments)
        return RemotingCommand.response(ResponseCode.SUCCESS, body=answer.encode())

    async def _do_load_balance(
        self, body: QueryAssignmentRequestBody, mode: SetMessageRequestModeRequestBody
    ) -> Sequence[MessageQueue] | None:
        """The queues of one member; None when they cannot be told: it shall keep what it has.

        Java: org.apache.rocketmq.broker.processor.QueryAssignmentProcessor.doLoadBalance.
        """
        queues = await self.topic_route_info_manager.get_topic_subscribe_info(body.topic)
        if queues is None or body.message_model is MessageModel.BROADCASTING:
            return queues
        if not self._broker.broker_config.server_load_balancer_enable:
            return queues
        members = self._broker.consumer_manager.get_consumer_group_info(body.consumer_group)
        strategy = self._strategies.get(body.strategy_name)
        if members is None or strategy is None:
            return None
        mq_all, cid_all = sorted(queues), sorted(members.all_client_ids())
        try:
            if mode.mode == POP:
                return allocate4_pop(strategy, body, mq_all, cid_all, mode.pop_share_queue_num)
            return strategy.allocate(body.consumer_group, body.client_id, mq_all, cid_all)
        except LearnerError:
            # No queues, no members, or nobody's name.
            return None


def allocate4_pop(
    strategy: AllocateMessageQueueStrategy,
    body: QueryAssignmentRequestBody,
    mq_all: Sequence[MessageQueue],
    cid_all: Sequence[str],
    pop_share_queue_num: int,
) -> list[MessageQueue]:
    """The queues that a member pops: any of every broker, unless less sharing was asked for.

    With `pop_share_queue_num` from 1 to the number of members less two, a member has its own share and those of so many
    members behind it; when there are more members than queues, each has one queue.

    Java: org.apache.rocketmq.broker.processor.QueryAssignmentProcessor.allocate4Pop.
    """
    if pop_share_queue_num <= 0 or pop_share_queue_num >= len(cid_all) - 1:
        return [queue._replace(queue_id=ANY_QUEUE) for queue in mq_all]
    group, client_id = body.consumer_group, body.client_id
    if client_id not in cid_all:
        return []
    index = cid_all.index(client_id)
    if len(cid_all) > len(mq_all):
        return [mq_all[index % len(mq_all)]] if mq_all else strategy.allocate(group, client_id, mq_all, cid_all)
    shared: list[MessageQueue] = []
    for step in range(pop_share_queue_num + 1):
        shared += strategy.allocate(group, cid_all[(index + step) % len(cid_all)], mq_all, cid_all)
    return shared
