"""Pulling: which broker to ask, what to ask, and what to make of the answer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING

from mqlab.errors import MQBrokerException, MQClientException, ProtocolError, RemotingCommandException
from mqlab.protocol.batch import unwrap_inner_batch
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.errors import HeaderError, RecordError
from mqlab.protocol.headers import PullMessageRequestHeader, PullMessageResponseHeader
from mqlab.protocol.heartbeat import ExpressionType
from mqlab.protocol.message import MessageConst, MessageExt, MessageQueue
from mqlab.protocol.record import decode_record
from mqlab.protocol.route import MASTER_ID
from mqlab.protocol.sysflag import MessageSysFlag, PullSysFlag
from mqlab.trace.events.client import MessagesFiltered, PullFinished

if TYPE_CHECKING:
    from mqlab.client.mq_client_instance import MQClientInstance
    from mqlab.client.route_table import FindBrokerResult
    from mqlab.protocol.command import RemotingCommand
    from mqlab.protocol.heartbeat import SubscriptionData
    from mqlab.remoting.response_future import InvokeCallback

V4_1_0_VERSION = 233
"""Brokers older than 4.1.0 know no SQL filters (the ordinal of V4_1_0_SNAPSHOT in MQVersion)."""

INNER_BATCH = MessageSysFlag.INNER_BATCH | MessageSysFlag.NEED_UNWRAP


class PullStatus(Enum):
    """How a pull ended (org.apache.rocketmq.client.consumer.PullStatus)."""

    FOUND = "FOUND"
    NO_NEW_MSG = "NO_NEW_MSG"
    NO_MATCHED_MSG = "NO_MATCHED_MSG"
    OFFSET_ILLEGAL = "OFFSET_ILLEGAL"

    def __str__(self) -> str:
        return self.value


STATUS_BY_CODE = {
    int(ResponseCode.SUCCESS): PullStatus.FOUND,
    int(ResponseCode.PULL_NOT_FOUND): PullStatus.NO_NEW_MSG,
    int(ResponseCode.PULL_RETRY_IMMEDIATELY): PullStatus.NO_MATCHED_MSG,
    int(ResponseCode.PULL_OFFSET_MOVED): PullStatus.OFFSET_ILLEGAL,
}


class PullResult:
    """The answer to a pull (org.apache.rocketmq.client.impl.consumer.PullResultExt).

    `message_binary` holds the records as they came until they are decoded into `msg_found_list`.
    """

    __slots__ = (
        "max_offset",
        "message_binary",
        "min_offset",
        "msg_found_list",
        "next_begin_offset",
        "offset_delta",
        "pull_status",
        "suggest_which_broker_id",
    )

    def __init__(
        self, pull_status: PullStatus, header: PullMessageResponseHeader, message_binary: bytes | None
    ) -> None:
        self.pull_status = pull_status
        self.next_begin_offset = header.next_begin_offset
        self.min_offset = header.min_offset
        self.max_offset = header.max_offset
        self.suggest_which_broker_id = header.suggest_which_broker_id
        self.offset_delta = header.offset_delta or 0
        self.message_binary = message_binary
        self.msg_found_list: list[MessageExt] = []

    def __repr__(self) -> str:
        return (
            f"PullResult [pullStatus={self.pull_status}, nextBeginOffset={self.next_begin_offset}, "
            f"minOffset={self.min_offset}, maxOffset={self.max_offset}, msgFoundList={len(self.msg_found_list)}]"
        )


class FilterMessageContext:
    """What a filter hook sees; it may take messages out of `msg_list` (FilterMessageContext).

    Java: org.apache.rocketmq.client.hook.FilterMessageContext.
    """

    __slots__ = ("consumer_group", "message_queue", "msg_list", "unit_mode")

    def __init__(
        self, consumer_group: str, message_queue: MessageQueue, msg_list: list[MessageExt], unit_mode: bool
    ) -> None:
        self.consumer_group = consumer_group
        self.message_queue = message_queue
        self.msg_list = msg_list
        self.unit_mode = unit_mode


FilterMessageHook = Callable[[FilterMessageContext], object]
"""Looks at the messages of each pull and may take some out (org.apache.rocketmq.client.hook.FilterMessageHook)."""


class PullAPIWrapper:
    """Sends pulls and decodes what comes (org.apache.rocketmq.client.impl.consumer.PullAPIWrapper)."""

    def __init__(self, instance: MQClientInstance, consumer_group: str, unit_mode: bool) -> None:
        self._instance = instance
        self._node = instance.node
        self._group = consumer_group
        self._unit_mode = unit_mode
        self.pull_from_which_node_table: dict[MessageQueue, int] = {}
        self.connect_broker_by_user = False
        self.default_broker_id = MASTER_ID
        self.filter_message_hooks: list[FilterMessageHook] = []

    def recalculate_pull_from_which_node(self, queue: MessageQueue) -> int:
        """The id of the broker to ask: what the last answer for this queue suggested, else the master.

        Java: org.apache.rocketmq.client.impl.consumer.PullAPIWrapper.recalculatePullFromWhichNode.
        """
        if self.connect_broker_by_user:
            return self.default_broker_id
        return self.pull_from_which_node_table.get(queue, MASTER_ID)

    def find_broker(self, queue: MessageQueue) -> FindBrokerResult | None:
        """The address to ask for a queue, as far as it is known."""
        return self._instance.routes.find_broker_address_in_subscribe(
            queue.broker_name, self.recalculate_pull_from_which_node(queue), False
        )

    async def find_broker_surely(self, queue: MessageQueue) -> FindBrokerResult:
        """The address to ask, after one more look at the name server; MQClientException if there is none."""
        found = self.find_broker(queue)
        if found is None:
            await self._instance.routes.refresh(queue.topic)
            found = self.find_broker(queue)
        if found is None:
            raise MQClientException(f"The broker[{queue.broker_name}] not exist")
        return found

    def pull_header(
        self,
        found: FindBrokerResult,
        queue: MessageQueue,
        sub_expression: str | None,
        expression_type: str | None,
        sub_version: int,
        offset: int,
        max_nums: int,
        max_bytes: int,
        sys_flag: int,
        commit_offset: int,
        suspend_timeout_ms: int,
    ) -> PullMessageRequestHeader:
        """The header of a pull; a slave takes no offset commits.

        Java: org.apache.rocketmq.client.impl.consumer.PullAPIWrapper.pullKernelImpl. Differs from RocketMQ: filter
        servers, which RocketMQ has given up, are never asked.
        """
        if found.slave:
            sys_flag = PullSysFlag.clear_commit_offset(sys_flag)
        if not ExpressionType.is_tag_type(expression_type):
            version = self._instance.heartbeats.broker_version(queue.broker_name, found.address)
            if 0 < version < V4_1_0_VERSION:
                raise MQClientException(
                    f"The broker[{queue.broker_name}, {version}] does not upgrade to support for filter message by "
                    f"{expression_type}"
                )
        return PullMessageRequestHeader(
            self._group,
            queue.topic,
            queue.queue_id,
            offset,
            max_nums,
            sys_flag,
            commit_offset,
            suspend_timeout_ms,
            sub_expression,
            sub_version,
            expression_type,
            max_bytes,
            bname=queue.broker_name,
        )

    def pull_async(
        self, found: FindBrokerResult, header: PullMessageRequestHeader, timeout_ms: int, callback: InvokeCallback
    ) -> None:
        """Send a pull; `callback(response_future)` is called once."""
        self._instance.api.pull_message_async(found.address, header, timeout_ms, callback)

    async def pull_sync(self, found: FindBrokerResult, header: PullMessageRequestHeader, timeout_ms: int) -> PullResult:
        """Send a pull and wait for its result, whose messages are not decoded yet; the errors of a call."""
        response = await self._instance.api.pull_message_sync(found.address, header, timeout_ms)
        return self.process_pull_response(response, found.address)

    def process_pull_response(self, response: RemotingCommand, address: str) -> PullResult:
        """The result in an answer; MQBrokerException for any code that is no pull status.

        RemotingCommandException when the answer cannot be read.

        Java: org.apache.rocketmq.client.impl.MQClientAPIImpl.processPullResponse.
        """
        status = STATUS_BY_CODE.get(response.code)
        if status is None:
            raise MQBrokerException(response.code, response.remark or "", address)
        try:
            header = response.header_as(PullMessageResponseHeader)
        except HeaderError as error:
            raise RemotingCommandException(address, str(error)) from error
        return PullResult(status, header, response.body)

    def process_pull_result(
        self, queue: MessageQueue, result: PullResult, subscription: SubscriptionData
    ) -> PullResult:
        """Decode the messages, drop those whose tag only has the hash code of a wanted one, and tell of the pull's end.

        Java: org.apache.rocketmq.client.impl.consumer.PullAPIWrapper.processPullResult.
        """
        self.pull_from_which_node_table[queue] = result.suggest_which_broker_id
        if result.pull_status is PullStatus.FOUND:
            result.msg_found_list = self._wanted_messages(queue, result, subscription)
        if self._node.hooks.on:
            count, next_offset = len(result.msg_found_list), result.next_begin_offset
            self._node.hooks.emit(PullFinished(self._group, *queue, result.pull_status.value, count, next_offset))
        return result

    def _wanted_messages(
        self, queue: MessageQueue, result: PullResult, subscription: SubscriptionData
    ) -> list[MessageExt]:
        messages = decoded(result.message_binary or b"")
        result.message_binary = None
        if [message for message in messages if message.sys_flag & INNER_BATCH == INNER_BATCH]:
            # A batch whose body cannot be read stays as it is, and so do all messages beside it, as in RocketMQ.
            with suppress(ProtocolError):
                messages = [single for message in messages for single in unwrap_inner_batch(message)]
        tags = subscription.tags_set
        if tags and not subscription.class_filter_mode:
            wanted = [message for message in messages if message.properties.get(MessageConst.TAGS) in tags]
            if len(wanted) < len(messages) and self._node.hooks.on:
                self._node.hooks.emit(MessagesFiltered(self._group, *queue, len(messages) - len(wanted)))
            messages = wanted
        if self.filter_message_hooks:
            context = FilterMessageContext(self._group, queue, messages, self._unit_mode)
            for hook in self.filter_message_hooks:
                hook(context)
            messages = context.msg_list
        min_offset, max_offset = str(result.min_offset), str(result.max_offset)
        _, broker_name, queue_id = queue
        delta = result.offset_delta
        for message in messages:
            properties = message.properties
            if "TRAN_MSG" in properties and properties["TRAN_MSG"].lower() == "true":
                message.transaction_id = properties.get(MessageConst.UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
            properties["MIN_OFFSET"] = min_offset
            properties["MAX_OFFSET"] = max_offset
            message.broker_name = broker_name
            message.queue_id = queue_id
            message.queue_offset += delta
        return messages


def decoded(message_binary: bytes) -> list[MessageExt]:
    """The messages of an answer, up to the first bytes that are no record.

    A broker sends what its queue entries point at, and after two losses of power an old entry may point between two
    records. CRCs are not compared: what rotted on the disk is consumed. Java:
    org.apache.rocketmq.common.message.MessageDecoder.decodesBatch.
    """
    messages: list[MessageExt] = []
    offset = 0
    try:
        while offset < len(message_binary):
            message = decode_record(message_binary, offset)
            messages.append(message)
            offset += message.store_size
    except RecordError:
        return messages
    return messages
