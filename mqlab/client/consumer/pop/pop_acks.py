"""Telling a broker what became of a popped message: it is done, or it shall come again after a while."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mqlab.client.pop_client_api import AckStatus
from mqlab.errors import ProtocolError
from mqlab.protocol.extra_info import ReceiptHandle, parse_handle
from mqlab.protocol.headers import AckMessageRequestHeader, ChangeInvisibleTimeRequestHeader
from mqlab.protocol.message import MessageConst, MessageExt
from mqlab.protocol.route import MASTER_ID
from mqlab.trace.events.pop import AckFailed, AckRequested, InvisibleTimeNotChanged, InvisibleTimeRequested

if TYPE_CHECKING:
    from mqlab.client.consumer.consumer_impl import ConsumerImpl
    from mqlab.remoting import ResponseFuture

ASYNC_TIMEOUT_MS = 3_000

Which = tuple[str, str, str, int, int, str]
"""Group, topic (the one popped from), broker, queue, offset and id of a message, as the events have them."""


class PopAcks:
    """Sends acknowledgements, and wishes for another invisible time, and waits for nothing.

    A failure changes nothing here: the message comes again when its invisible time is over. Java: ackAsync and
    changePopInvisibleTimeAsync of org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl. Differs from
    RocketMQ: while a route must be asked for, the thread of the listener goes on.
    """

    def __init__(self, owner: ConsumerImpl) -> None:
        self._owner = owner
        self._node = owner.node
        self._api = owner.instance.api.pop

    def ack_async(self, message: MessageExt, reason: str) -> None:
        """Say that a message is done; `reason` is for those who watch."""
        handle = self._handle_of(message)
        if handle is None:
            return
        which = self._which(message, handle)
        group, topic, broker_name, queue_id, queue_offset, _ = which
        extra_info = message.properties[MessageConst.POP_CK]
        header = AckMessageRequestHeader(group, topic, queue_id, extra_info, queue_offset, broker_name)
        if self._node.hooks.on:
            self._node.hooks.emit(AckRequested(*which, handle.pop_time, reason))

        def answered(future: ResponseFuture) -> None:
            response = future.response
            if response is None:
                self._ack_failed(which, str(future.error))
            elif self._api.process_ack_response(response).status is not AckStatus.OK:
                self._ack_failed(which, f"CODE: {response.code}  DESC: {response.remark or ''}")

        self._to_master(
            message.topic,
            broker_name,
            lambda address: self._api.ack_message_async(address, header, ASYNC_TIMEOUT_MS, answered),
            lambda why: self._ack_failed(which, why),
        )

    def change_pop_invisible_time_async(self, message: MessageExt, invisible_time_ms: int) -> None:
        """Ask that a message come again after this time, counted from when the broker gets the request."""
        handle = self._handle_of(message)
        if handle is None:
            return
        which = self._which(message, handle)
        group, topic, broker_name, queue_id, queue_offset, _ = which
        extra_info = message.properties[MessageConst.POP_CK]
        header = ChangeInvisibleTimeRequestHeader(
            group, topic, queue_id, extra_info, queue_offset, invisible_time_ms, broker_name
        )
        if self._node.hooks.on:
            self._node.hooks.emit(
                InvisibleTimeRequested(*which, handle.pop_time, invisible_time_ms, message.reconsume_times)
            )

        def answered(future: ResponseFuture) -> None:
            response = future.response
            if response is None:
                self._not_changed(which, str(future.error))
            elif response.code != 0:
                self._not_changed(which, f"CODE: {response.code}  DESC: {response.remark or ''}")

        self._to_master(
            message.topic,
            broker_name,
            lambda address: self._api.change_invisible_time_async(address, header, ASYNC_TIMEOUT_MS, answered),
            lambda why: self._not_changed(which, why),
        )

    # -- where to ---------------------------------------------------------------------------------------------------

    def _to_master(
        self, topic: str, broker_name: str, send: Callable[[str], None], fail: Callable[[str], None]
    ) -> None:
        routes = self._owner.instance.routes
        found = routes.find_broker_address_in_subscribe(broker_name, MASTER_ID, True)
        if found is not None:
            send(found.address)
        else:
            self._node.spawn(self._after_refresh(topic, broker_name, send, fail), "acknowledge")

    async def _after_refresh(
        self, topic: str, broker_name: str, send: Callable[[str], None], fail: Callable[[str], None]
    ) -> None:
        routes = self._owner.instance.routes
        await routes.refresh(topic)
        found = routes.find_broker_address_in_subscribe(broker_name, MASTER_ID, True)
        if found is not None:
            send(found.address)
        else:
            fail(f"The broker[{broker_name}] not exist")

    # -- what and why not -------------------------------------------------------------------------------------------

    def _handle_of(self, message: MessageExt) -> ReceiptHandle | None:
        """The receipt handle of a message; None, as in RocketMQ with a line in the log, for one that a listener broke.
        """
        try:
            return parse_handle(message.properties.get(MessageConst.POP_CK, ""))
        except ProtocolError as error:
            which = (self._owner.group_name, message.topic, message.broker_name or "", message.queue_id)
            self._ack_failed((*which, message.queue_offset, message.msg_id), str(error))
            return None

    def _which(self, message: MessageExt, handle: ReceiptHandle) -> Which:
        group = self._owner.group_name
        topic = handle.real_topic(message.topic, group)
        return group, topic, handle.broker_name, handle.queue_id, handle.queue_offset, message.msg_id

    def _ack_failed(self, which: Which, reason: str) -> None:
        if self._node.hooks.on:
            self._node.hooks.emit(AckFailed(*which, reason))

    def _not_changed(self, which: Which, reason: str) -> None:
        if self._node.hooks.on:
            self._node.hooks.emit(InvisibleTimeNotChanged(*which, reason))
