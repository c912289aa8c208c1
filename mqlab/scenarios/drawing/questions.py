"""What an administrator asks of a broker or of a name server: requests that change nothing that anybody notices."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab.protocol import headers as h
from mqlab.protocol.bodies import ConsumerConnection
from mqlab.protocol.codes import RequestCode as C
from mqlab.protocol.message_id import create_message_id
from mqlab.protocol.sysflag import PermName
from mqlab.protocol.topic_config import SubscriptionGroupConfig
from mqlab.protocol.topics import AUTO_CREATE_TOPIC_KEY_TOPIC, CLIENT_INNER_PRODUCER_GROUP

if TYPE_CHECKING:
    from mqlab.protocol.command import RemotingCommand

HOUR_MS = 3_600_000
SINGLE_TAG = "SINGLE_TAG"
"""The filter of every topic."""
CLUSTER = "DefaultCluster"
NAMESPACE, KEY = "ORDER_TOPIC_CONFIG", "price-list"
"""Where an administrator keeps something in the key-value configuration of a name server."""
FIRST_BYTES = (0, 1_000)
"""Places in a commit log at which an administrator looks: at its beginning, and somewhere, mostly within a record."""
NOT_THERE = 1 << 40
"""A place at which no commit log has anything."""

Answer = Callable[..., Awaitable["RemotingCommand | None"]]
"""answer(code, header, body): what is answered; None when nothing is."""


class Asked(NamedTuple):
    """Whom an administrator asks, and about what."""

    answer: Answer
    broker: str
    address: str
    topic: str
    groups: tuple[str, ...]
    now_ms: int


async def _about_topics(asked: Asked) -> None:
    await asked.answer(C.GET_TOPIC_CONFIG, h.GetTopicConfigRequestHeader(asked.topic))
    await asked.answer(C.GET_ALL_TOPIC_CONFIG, h.GetAllTopicConfigRequestHeader())
    await asked.answer(C.GET_ALL_TOPIC_CONFIG, h.GetAllTopicConfigRequestHeader(0, None, 2))
    await asked.answer(C.GET_TOPIC_STATS_INFO, h.GetTopicStatsInfoRequestHeader(asked.topic))
    await asked.answer(C.GET_TOPIC_STATS_INFO, h.GetTopicStatsInfoRequestHeader("NoSuchTopic"))
    for name, attributes in ((KEY, "+message.type=NORMAL"), (KEY, "-message.type"), (KEY, "+no.such=1"), ("a b", "")):
        header = h.CreateTopicRequestHeader(
            name, AUTO_CREATE_TOPIC_KEY_TOPIC, 1, 1, PermName.READ_WRITE, SINGLE_TAG, 0, False, attributes
        )
        await asked.answer(C.UPDATE_AND_CREATE_TOPIC, header)


async def _about_groups(asked: Asked) -> None:
    await asked.answer(C.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, h.GetAllSubscriptionGroupRequestHeader())
    await asked.answer(C.GET_ALL_MESSAGE_REQUEST_MODE, None)
    producers = h.GetProducerConnectionListRequestHeader(CLIENT_INNER_PRODUCER_GROUP)
    await asked.answer(C.GET_PRODUCER_CONNECTION_LIST, producers)
    await asked.answer(C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, SubscriptionGroupConfig(KEY).encode())
    for group in (*asked.groups, "no-such-group"):
        await asked.answer(C.GET_SUBSCRIPTIONGROUP_CONFIG, h.GetSubscriptionGroupConfigRequestHeader(group))
        await asked.answer(C.GET_CONSUMER_CONNECTION_LIST, h.GetConsumerConnectionListRequestHeader(group))
        await asked.answer(C.GET_CONSUME_STATS, h.GetConsumeStatsRequestHeader(group))


async def _about_offsets(asked: Asked) -> None:
    await asked.answer(C.GET_ALL_CONSUMER_OFFSET, None)
    await asked.answer(C.GET_ALL_DELAY_OFFSET, None)
    await asked.answer(C.GET_EARLIEST_MSG_STORETIME, h.GetEarliestMsgStoretimeRequestHeader(asked.topic, 0))
    for boundary in ("LOWER", "UPPER"):
        for back_ms in (0, 1_000, HOUR_MS):
            header = h.SearchOffsetRequestHeader(asked.topic, 0, asked.now_ms - back_ms, boundary)
            await asked.answer(C.SEARCH_OFFSET_BY_TIMESTAMP, header)
    for group in asked.groups:
        for topic in (asked.topic, None):
            copy = h.CloneGroupOffsetRequestHeader(group, f"{group}-copy", topic, True)
            await asked.answer(C.CLONE_GROUP_OFFSET, copy)


async def _about_settings(asked: Asked) -> None:
    for code in (
        C.GET_BROKER_CONFIG, C.GET_BROKER_RUNTIME_INFO, C.GET_BROKER_HA_STATUS, C.GET_TIMER_CHECK_POINT,
        C.GET_TIMER_METRICS, C.GET_COLD_DATA_FLOW_CTR_INFO,
    ):  # fmt: skip
        await asked.answer(code, None)
    for group in asked.groups:
        await asked.answer(C.UPDATE_COLD_DATA_FLOW_CTR_CONFIG, None, f"{group}={HOUR_MS}".encode())
        await asked.answer(C.REMOVE_COLD_DATA_FLOW_CTR_CONFIG, None, group.encode())
    for line in (f"brokerConfigPath={KEY}", "storePathRootDir=elsewhere", "flushDiskType=NEVER"):
        await asked.answer(C.UPDATE_BROKER_CONFIG, None, line.encode())


async def _about_clients(asked: Asked) -> None:
    for group in asked.groups:
        await asked.answer(
            C.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, h.GetConsumerStatusRequestHeader(asked.topic, group)
        )
        connections = h.GetConsumerConnectionListRequestHeader(group)
        answered = await asked.answer(C.GET_CONSUMER_CONNECTION_LIST, connections)
        members = ConsumerConnection.decode(answered.body).connection_set if answered and answered.body else []
        for client_id in [*(member.client_id for member in members), "nobody"]:
            header = h.GetConsumerRunningInfoRequestHeader(group, client_id, False)
            await asked.answer(C.GET_CONSUMER_RUNNING_INFO, header)


async def _about_messages(asked: Asked) -> None:
    for key in ("order-1", "order-1000001", "nothing"):
        header = h.QueryMessageRequestHeader(asked.topic, key, 32, asked.now_ms - HOUR_MS, asked.now_ms + HOUR_MS)
        await asked.answer(C.QUERY_MESSAGE, header)
    for offset in FIRST_BYTES:
        await asked.answer(C.VIEW_MESSAGE_BY_ID, h.ViewMessageRequestHeader(asked.topic, offset))
    # One that is there is stored among the half messages, whatever it is.
    nothing = create_message_id(asked.address, NOT_THERE)
    await asked.answer(C.RESUME_CHECK_HALF_MESSAGE, h.ResumeCheckHalfMessageRequestHeader(asked.topic, nothing))


async def _about_pops(asked: Asked) -> None:
    for group in asked.groups:
        for queue_id in (-1, 0):
            await asked.answer(C.PEEK_MESSAGE, h.PeekMessageRequestHeader(group, asked.topic, queue_id, 4))
            await asked.answer(C.POLLING_INFO, h.PollingInfoRequestHeader(group, asked.topic, queue_id))
            header = h.NotificationRequestHeader(group, asked.topic, queue_id, 1_000, asked.now_ms)
            await asked.answer(C.NOTIFICATION, header)


async def _about_routes(asked: Asked) -> None:
    for code in (
        C.GET_BROKER_CLUSTER_INFO, C.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, C.GET_SYSTEM_TOPIC_LIST_FROM_NS,
        C.GET_NAMESRV_CONFIG,
    ):  # fmt: skip
        await asked.answer(code, None)
    await asked.answer(C.GET_TOPICS_BY_CLUSTER, h.GetTopicsByClusterRequestHeader(CLUSTER))
    await asked.answer(C.GET_BROKER_MEMBER_GROUP, h.GetBrokerMemberGroupRequestHeader(CLUSTER, asked.broker))
    for line in ("kvConfigPath=elsewhere", "enableTopicList=perhaps", "enableTopicList=true"):
        await asked.answer(C.UPDATE_NAMESRV_CONFIG, None, line.encode())


async def _about_keys(asked: Asked) -> None:
    await asked.answer(C.PUT_KV_CONFIG, h.PutKVConfigRequestHeader(NAMESPACE, KEY, f"{asked.broker}:1"))
    for namespace in (NAMESPACE, "none"):
        await asked.answer(C.GET_KV_CONFIG, h.GetKVConfigRequestHeader(namespace, KEY))
        await asked.answer(C.GET_KVLIST_BY_NAMESPACE, h.GetKVListByNamespaceRequestHeader(namespace))
        await asked.answer(C.DELETE_KV_CONFIG, h.DeleteKVConfigRequestHeader(namespace, KEY))


async def _about_writing(asked: Asked) -> None:
    """Take the permission to write from a broker, and give it back before anybody has missed it for long."""
    await asked.answer(C.WIPE_WRITE_PERM_OF_BROKER, h.WipeWritePermOfBrokerRequestHeader(asked.broker))
    await asked.answer(C.ADD_WRITE_PERM_OF_BROKER, h.AddWritePermOfBrokerRequestHeader(asked.broker))


Ask = Callable[[Asked], Awaitable[Any]]
OF_BROKERS: dict[str, Ask] = {
    "topics": _about_topics, "groups": _about_groups, "offsets": _about_offsets, "settings": _about_settings,
    "clients": _about_clients, "messages": _about_messages, "pops": _about_pops,
}  # fmt: skip
OF_NAME_SERVERS: dict[str, Ask] = {"routes": _about_routes, "keys": _about_keys, "writing": _about_writing}
"""What an administrator asks about."""
