"""What every request of Pop that asks for messages is checked for, and the errors that it is answered with."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mqlab.broker.errors import FAQ, RequestError
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.sysflag import PermName

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.protocol.command import RemotingCommand
    from mqlab.protocol.topic_config import TopicConfig
    from mqlab.remoting import Channel

BORN_TIME = "bornTime"


class AskedQueue(NamedTuple):
    """What a request names: a group, and a queue of a topic (-1: any)."""

    group: str
    topic: str
    queue_id: int


def fill_born_time(request: RemotingCommand, now_ms: int) -> None:
    """Say in a request when it came, if it does not say when it was made."""
    header = request.header
    if header is not None:
        if not header.born_time:
            request.header = header._replace(born_time=now_ms)
    elif request.ext_field(BORN_TIME) in (None, "0"):
        request.add_ext_field(BORN_TIME, str(now_ms))


def check_broker(broker: BrokerParts, doing: str = "peeking message") -> None:
    """RequestError when the broker may not be read."""
    if not broker.broker_config.broker_permission & PermName.READ:
        raise RequestError(ResponseCode.NO_PERMISSION, f"the broker[{broker.broker_ip}] {doing} is forbidden")


def negative_capacity(max_msg_nums: int) -> RequestError:
    """What a request for fewer than no messages is answered with: the error of the Java list that should hold them.

    Differs from RocketMQ: there the line of Java's own source that raised it stands behind the text.
    """
    return RequestError(
        ResponseCode.SYSTEM_ERROR, f"java.lang.IllegalArgumentException: Illegal Capacity: {max_msg_nums}"
    )


def check_asked(broker: BrokerParts, channel: Channel, asked: AskedQueue) -> TopicConfig:
    """The topic that a request names; RequestError, with RocketMQ's code and text, when it may not be asked for.

    An unknown group is created, where that is allowed.
    """
    topic = broker.topic_config_manager.topic_config_table.get(asked.topic)
    if topic is None:
        raise RequestError(
            ResponseCode.TOPIC_NOT_EXIST, f"topic[{asked.topic}] not exist, apply first please! \n{FAQ}"
        )
    if not topic.perm & PermName.READ:
        raise RequestError(ResponseCode.NO_PERMISSION, f"the topic[{asked.topic}] peeking message is forbidden")
    if asked.queue_id >= topic.read_queue_nums:
        raise RequestError(
            ResponseCode.INVALID_PARAMETER,
            f"queueId[{asked.queue_id}] is illegal, topic:[{asked.topic}] topicConfig.readQueueNums:"
            f"[{topic.read_queue_nums}] consumer:[/{channel.remote_address}]",
        )
    group = broker.subscription_group_manager.find_subscription_group_config(asked.group)
    if group is None:
        raise RequestError(
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            f"subscription group [{asked.group}] does not exist, \n{FAQ}",
        )
    if not group.consume_enable:
        raise RequestError(ResponseCode.NO_PERMISSION, f"subscription group no permission, {asked.group}")
    return topic
