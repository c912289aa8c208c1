"""Giving messages to consumers that pull."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from mqlab.broker.default_pull_message_result_handler import DefaultPullMessageResultHandler
from mqlab.broker.errors import FAQ, RequestError, rejected
from mqlab.broker.filter.filter_for import filter_of_pull
from mqlab.broker.filter.message_filter import MessageFilter
from mqlab.errors import LearnerError
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import PullMessageRequestHeader, PullMessageResponseHeader
from mqlab.protocol.heartbeat import ConsumeType, SubscriptionData, build_subscription_data
from mqlab.protocol.sysflag import PermName, PullSysFlag
from mqlab.remoting import Channel, RequestProcessor
from mqlab.sim import EndpointClosed
from mqlab.store import BrokerRole, GetMessageResult, GetMessageStatus
from mqlab.trace.events.broker import PullReceived

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.broker.pull_request import PullRequest
    from mqlab.protocol.topic_config import SubscriptionGroupConfig, TopicConfig

FORBIDDEN_BROKER = "1"
FORBIDDEN_GROUP = "2"
FORBIDDEN_TOPIC = "3"
FORBIDDEN_BROADCASTING = "4"
FORBIDDEN_SUBSCRIPTION = "5"

_READ_BIT = 2

PassPull = Callable[
    [Channel, RemotingCommand, PullMessageRequestHeader, MessageFilter],
    tuple[PullMessageRequestHeader, MessageFilter] | None,
]
"""Says with which header and filter a pull goes on; None when it is held, RequestError when it is refused."""


class PullMessageProcessor(RequestProcessor):
    """PULL_MESSAGE and LITE_PULL_MESSAGE (org.apache.rocketmq.broker.processor.PullMessageProcessor).

    A request is checked, read for, and answered; or, when there is nothing new and its consumer agreed, held. A held
    request is processed from the start when it is woken, but then it may not be held again. Differs from RocketMQ:
    a subscription that came with a pull is forgotten.
    """

    def __init__(self, broker: BrokerParts) -> None:
        self._broker = broker
        self._node = broker.node
        self._config = broker.broker_config
        self._store = broker.message_store
        self._topics = broker.topic_config_manager
        self._groups = broker.subscription_group_manager
        self._consumers = broker.consumer_manager
        self._offsets = broker.consumer_offset_manager
        self._handler = DefaultPullMessageResultHandler(broker)
        self.pass_pull: PassPull | None = None
        """What each pull has to pass before it reads; None while there is no cold data control."""

    def reject_request(self) -> str | None:
        """Refuse everything on a slave that nobody may read from (the text is remoting's own).

        Java: org.apache.rocketmq.broker.processor.PullMessageProcessor.rejectRequest.
        """
        refuses = self._store.config.broker_role is BrokerRole.SLAVE and not self._config.slave_read_enable
        return "" if refuses else None

    def process_request(
        self, channel: Channel, request: RemotingCommand
    ) -> RemotingCommand | Coroutine[Any, Any, RemotingCommand | None] | None:
        """Answer a pull that has just come; None when it is held."""
        return self.process(channel, request, broker_allow_suspend=True)

    def process(
        self, channel: Channel, request: RemotingCommand, *, broker_allow_suspend: bool
    ) -> RemotingCommand | Coroutine[Any, Any, RemotingCommand | None] | None:
        """Answer a pull; None when it is held, which happens only with `broker_allow_suspend`.

        What does not lie in memory is read from the disk: on a slow one the answer is a coroutine.
        Java: org.apache.rocketmq.broker.processor.PullMessageProcessor.processRequest.
        """
        header = request.header_as(PullMessageRequestHeader)
        hooks = self._node.hooks
        if hooks.on:
            hooks.emit(
                PullReceived(
                    header.consumer_group,
                    header.topic,
                    header.queue_id,
                    header.queue_offset,
                    request.opaque,
                    channel.remote_address,
                    broker_allow_suspend,
                )
            )
        try:
            group, topic = self._check(channel, request, header)
            message_filter = filter_of_pull(
                self._broker,
                header.consumer_group,
                self._subscription(header, group),
                header.sub_version,
                in_request=bool(header.sys_flag & PullSysFlag.SUBSCRIPTION),
            )
            if self.pass_pull is not None:
                passed = self.pass_pull(channel, request, header, message_filter)
                if passed is None:
                    return None
                header, message_filter = passed
        except RequestError as error:
            return rejected(hooks, channel, request, error)
        result = self._get_message(header, message_filter)
        if result is None:
            return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, "store getMessage return null")
        if result.suggest_pulling_from_slave and self._store.disk.slow_us:
            return self._answer_slowly(
                result, request, header, channel, group, topic, message_filter, broker_allow_suspend
            )
        return self._answer(result, request, header, channel, group, topic, message_filter, broker_allow_suspend)

    async def _answer_slowly(self, result: GetMessageResult, *args: Any) -> RemotingCommand | None:
        await self._store.disk.crawl()
        return self._answer(result, *args)

    def _answer(
        self,
        result: GetMessageResult,
        request: RemotingCommand,
        header: PullMessageRequestHeader,
        channel: Channel,
        group: SubscriptionGroupConfig,
        topic: TopicConfig,
        message_filter: MessageFilter,
        broker_allow_suspend: bool,
    ) -> RemotingCommand | None:
        response = self._handler.handle(
            result, request, header, channel, group, topic, message_filter, broker_allow_suspend
        )
        if response is not None and self._config.enable_broadcast_offset_store:
            self._note_broadcast_offset(channel, header, response)
        self._note_offsets(header, result.next_begin_offset, broker_allow_suspend)
        return response

    # -- checks -----------------------------------------------------------------------------------------------------

    def _check(
        self, channel: Channel, request: RemotingCommand, header: PullMessageRequestHeader
    ) -> tuple[SubscriptionGroupConfig, TopicConfig]:
        config, ip = self._config, self._broker.broker_ip
        no_permission = ResponseCode.NO_PERMISSION
        if not config.broker_permission & PermName.READ:
            raise RequestError(
                no_permission, f"the broker[{ip}] pulling message is forbidden", forbiddenType=FORBIDDEN_BROKER
            )
        if request.code == RequestCode.LITE_PULL_MESSAGE and not config.lite_pull_message_enable:
            raise RequestError(
                no_permission, f"the broker[{ip}] for lite pull consumer is forbidden", forbiddenType=FORBIDDEN_BROKER
            )
        group = self._groups.find_subscription_group_config(header.consumer_group)
        if group is None:
            raise RequestError(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
                f"subscription group [{header.consumer_group}] does not exist, \n{FAQ}",
            )
        if not group.consume_enable:
            raise RequestError(
                no_permission,
                f"subscription group no permission, {header.consumer_group}",
                forbiddenType=FORBIDDEN_GROUP,
            )
        topic = self._topics.topic_config_table.get(header.topic)
        if topic is None:
            raise RequestError(
                ResponseCode.TOPIC_NOT_EXIST, f"topic[{header.topic}] not exist, apply first please! \n{FAQ}"
            )
        if not topic.perm & PermName.READ:
            raise RequestError(
                no_permission,
                f"the topic[{header.topic}] pulling message is forbidden",
                forbiddenType=FORBIDDEN_TOPIC,
            )
        if not 0 <= header.queue_id < topic.read_queue_nums:
            raise RequestError(
                ResponseCode.INVALID_PARAMETER,
                f"queueId[{header.queue_id}] is illegal, topic:[{header.topic}] topicConfig.readQueueNums:"
                f"[{topic.read_queue_nums}] consumer:[/{channel.remote_address}]",
            )
        return group, topic

    def _subscription(self, header: PullMessageRequestHeader, group: SubscriptionGroupConfig) -> SubscriptionData:
        """What the consumer wants: said in the request, or in the last heartbeat of its group."""
        if header.sys_flag & PullSysFlag.SUBSCRIPTION:
            return self._subscription_in_request(header)
        return self._subscription_in_heartbeat(header, group)

    def _subscription_in_request(self, header: PullMessageRequestHeader) -> SubscriptionData:
        try:
            return build_subscription_data(header.topic, header.subscription, header.expression_type)
        except LearnerError:
            raise RequestError(
                ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed"
            ) from None

    def _subscription_in_heartbeat(
        self, header: PullMessageRequestHeader, group: SubscriptionGroupConfig
    ) -> SubscriptionData:
        name, topic = header.consumer_group, header.topic
        members = self._consumers.get_consumer_group_info(name)
        if members is None:
            raise RequestError(ResponseCode.SUBSCRIPTION_NOT_EXIST, f"the consumer's group info not exist\n{FAQ}")
        if members.is_broadcasting and not group.consume_broadcast_enable:
            raise RequestError(
                ResponseCode.NO_PERMISSION,
                f"the consumer group[{name}] can not consume by broadcast way",
                forbiddenType=FORBIDDEN_BROADCASTING,
            )
        if self._groups.forbidden_table and self._groups.is_forbidden(name, topic, _READ_BIT):
            raise RequestError(
                ResponseCode.NO_PERMISSION,
                f"the consumer group[{name}] is forbidden for topic[{topic}]",
                forbiddenType=FORBIDDEN_SUBSCRIPTION,
            )
        subscription = members.subscription_table.get(topic)
        if subscription is None:
            raise RequestError(ResponseCode.SUBSCRIPTION_NOT_EXIST, f"the consumer's subscription not exist\n{FAQ}")
        if subscription.sub_version < header.sub_version:
            raise RequestError(ResponseCode.SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest")
        return subscription

    # -- reading ----------------------------------------------------------------------------------------------------

    def _get_message(self, header: PullMessageRequestHeader, message_filter: MessageFilter) -> GetMessageResult | None:
        reset = self._offsets.query_then_erase_reset_offset(header.consumer_group, header.topic, header.queue_id)
        if reset is not None:
            store = self._store
            return GetMessageResult(
                GetMessageStatus.OFFSET_RESET,
                reset,
                store.get_min_offset_in_queue(header.topic, header.queue_id),
                store.get_max_offset_in_queue(header.topic, header.queue_id),
            )
        result = self._store.get_message(
            header.consumer_group,
            header.topic,
            header.queue_id,
            header.queue_offset,
            header.max_msg_nums,
            message_filter=None if message_filter.wants_all else message_filter,
        )
        if result is not None and self._node.hooks.on:
            message_filter.tell_read(self._node.hooks, header.topic, header.queue_id, header.queue_offset, result)
        return result

    def _note_offsets(
        self, header: PullMessageRequestHeader, next_begin_offset: int, broker_allow_suspend: bool
    ) -> None:
        group, topic, queue_id = header.consumer_group, header.topic, header.queue_id
        self._offsets.commit_pull_offset(group, topic, queue_id, next_begin_offset)
        if broker_allow_suspend and header.sys_flag & PullSysFlag.COMMIT_OFFSET:
            self._offsets.commit_offset(group, topic, queue_id, header.commit_offset, "pull")

    def _note_broadcast_offset(
        self, channel: Channel, header: PullMessageRequestHeader, response: RemotingCommand
    ) -> None:
        members = self._consumers.get_consumer_group_info(header.consumer_group)
        if members is None or not members.is_broadcasting or members.consume_type != ConsumeType.CONSUME_PASSIVELY:
            return
        member = members.channel_info_table.get(channel)
        if member is None:
            return
        offset = header.queue_offset
        if response.code == ResponseCode.PULL_OFFSET_MOVED:
            offset = response.header_as(PullMessageResponseHeader).next_begin_offset
        self._broker.broadcast_offset_manager.update_offset(
            header.consumer_group, header.topic, header.queue_id, offset, member.client_id
        )

    # -- held requests ----------------------------------------------------------------------------------------------

    def execute_request_when_wakeup(self, held: PullRequest) -> None:
        """Process a held request once more, on a thread of the pull pool; a full pool loses it, as in RocketMQ.

        Java: org.apache.rocketmq.broker.processor.PullMessageProcessor.executeRequestWhenWakeup.
        """
        if self._broker.executors.pull.submit(self._answer_held, held, service_us=self._config.service_us.pull):
            return
        lost = RequestError(ResponseCode.SYSTEM_BUSY, "no thread is free for a held request, which is lost")
        rejected(self._node.hooks, held.channel, held.request, lost)

    def _answer_held(self, held: PullRequest) -> Coroutine[Any, Any, None] | None:
        response = self.process(held.channel, held.request, broker_allow_suspend=False)
        if isinstance(response, Coroutine):
            return self._answer_held_slowly(held, response)
        self._write(held, response)
        return None

    async def _answer_held_slowly(
        self, held: PullRequest, response: Coroutine[Any, Any, RemotingCommand | None]
    ) -> None:
        self._write(held, await response)

    def _write(self, held: PullRequest, response: RemotingCommand | None) -> None:
        if response is None:
            return
        response.opaque = held.request.opaque
        response.mark_response()
        try:
            held.channel.write(response)
        except EndpointClosed:
            return
