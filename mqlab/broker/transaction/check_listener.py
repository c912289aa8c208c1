"""What is done about a half message that nobody has ended: its producer is asked, or it is put aside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.transaction.half_messages import check_times_of, real_topic_of, unique_key_of
from mqlab.errors import RemotingException
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import CheckTransactionStateRequestHeader
from mqlab.protocol.message import MessageConst, MessageExt
from mqlab.protocol.message_id import create_message_id
from mqlab.protocol.properties import DECODED_MAP_CAPACITY, encode_properties
from mqlab.protocol.record import encode_record
from mqlab.protocol.sysflag import PermName
from mqlab.protocol.topics import RMQ_SYS_TRANS_CHECK_MAX_TIME_TOPIC
from mqlab.store import MessageExtBrokerInner
from mqlab.trace.events.transaction import HalfMessageGivenUp, TransactionChecked

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.broker.transaction.half_messages import HalfMessages
    from mqlab.broker.transaction.transaction_metrics import TransactionMetrics

CHECK_TIMEOUT_MS = 10
"""Java: org.apache.rocketmq.broker.client.net.Broker2Client.checkProducerTransactionState."""

TCMT_QUEUE_NUMS = 1


class DefaultTransactionalMessageCheckListener:
    """Asks producers, and puts away what was asked about too often (DefaultTransactionalMessageCheckListener).

    Java: org.apache.rocketmq.broker.transaction.queue.DefaultTransactionalMessageCheckListener. Differs from RocketMQ:
    the thread that finds a half message asks about it itself, where there 2 to 5 threads do it.
    """

    def __init__(self, broker: BrokerParts, half_messages: HalfMessages, metrics: TransactionMetrics) -> None:
        self._broker = broker
        self._node = broker.node
        self._half_messages = half_messages
        self._metrics = metrics

    def resolve_half_msg(self, half: MessageExt) -> None:
        """Ask a producer of the group; `half` has the place where it was stored again. Nobody waits for an answer.

        About a half message that does not say where it belongs, since a loss of power has torn it, nobody is asked: in
        RocketMQ the thread that is to ask logs a NumberFormatException.
        Java: org.apache.rocketmq.broker.transaction.AbstractTransactionalMessageCheckListener.sendCheckMessage.
        """
        group = half.properties.get(MessageConst.PRODUCER_GROUP, "")
        queue_id = real_queue_id_of(half)
        channel = self._broker.producer_manager.get_available_channel(group) if queue_id is not None else None
        if self._node.hooks.on:
            remote = channel.remote_address if channel is not None else ""
            self._node.hooks.emit(
                TransactionChecked(
                    real_topic_of(half), unique_key_of(half), group, half.queue_offset, check_times_of(half), remote
                )
            )
        if channel is None or queue_id is None:
            return
        unique_key = half.properties.get(MessageConst.UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
        header = CheckTransactionStateRequestHeader(
            half.topic,
            half.queue_offset,
            half.commit_log_offset,
            unique_key,
            unique_key,
            create_message_id(half.store_host, half.commit_log_offset),
            self._broker.broker_config.broker_name,
        )
        record = as_its_producer_sent(half, queue_id)
        request = RemotingCommand.request(RequestCode.CHECK_TRANSACTION_STATE, header, record)
        try:
            self._broker.remoting_server.invoke_oneway(channel, request, CHECK_TIMEOUT_MS)
        except RemotingException:
            # The next round asks again, and perhaps another producer.
            return

    async def resolve_discard_msg(self, half: MessageExt) -> None:
        """Put a half message into TRANS_CHECK_MAX_TIME_TOPIC; as in RocketMQ nobody looks at it again if that fails."""
        topic = self._broker.topic_config_manager.create_topic_in_send_message_back_method(
            RMQ_SYS_TRANS_CHECK_MAX_TIME_TOPIC, TCMT_QUEUE_NUMS, PermName.READ_WRITE
        )
        text = encode_properties(half.properties, DECODED_MAP_CAPACITY)
        half.properties[MessageConst.WAIT_STORE_MSG_OK] = "false"
        inner = MessageExtBrokerInner(
            topic.topic_name,
            half.body,
            flag=half.flag,
            sys_flag=half.sys_flag,
            properties=half.properties,
            properties_string=text,
            born_timestamp=half.born_timestamp,
            born_host=half.born_host,
            store_host=half.store_host,
            reconsume_times=half.reconsume_times,
        )
        result = await self._half_messages.put_and_wait(inner)
        if result.is_ok:
            self._metrics.add(real_topic_of(half), -1)
        if self._node.hooks.on:
            self._node.hooks.emit(
                HalfMessageGivenUp(
                    real_topic_of(half), unique_key_of(half), half.queue_offset, check_times_of(half), result.is_ok
                )
            )


def real_queue_id_of(half: MessageExt) -> int | None:
    """The queue that a half message is meant for; None if it names none."""
    try:
        return int(half.properties.get(MessageConst.REAL_QUEUE_ID, ""))
    except ValueError:
        return None


def as_its_producer_sent(half: MessageExt, queue_id: int) -> bytes:
    """The record of a half message with the topic and the queue that it is meant for."""
    return encode_record(
        real_topic_of(half),
        half.body,
        encode_properties(half.properties, DECODED_MAP_CAPACITY),
        queue_id,
        half.queue_offset,
        half.commit_log_offset,
        half.store_timestamp,
        half.born_timestamp,
        half.born_host,
        half.store_host,
        half.flag,
        half.sys_flag,
        half.reconsume_times,
        half.prepared_transaction_offset,
    )
