"""What each request over remoting needs.

Java: org.apache.rocketmq.auth.authorization.builder.DefaultAuthorizationContextBuilder, and the annotations
RocketMQAction and RocketMQResource of the request headers. What has no row here needs nothing but a signature: so it is
in RocketMQ 5.3.3 with the settings of brokers and groups, replies, and acknowledgements in batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from mqlab.auth.acl import CLUSTER, CREATE, DELETE, GET, GROUP, LITERAL, PUB, SUB, TOPIC, UPDATE, Resource
from mqlab.auth.authorization import Need
from mqlab.auth.errors import AuthorizationException
from mqlab.errors import ProtocolError
from mqlab.protocol.codes import RequestCode as C
from mqlab.protocol.group_bodies import LockBatchRequestBody, UnlockBatchRequestBody
from mqlab.protocol.heartbeat import HeartbeatData
from mqlab.protocol.topics import is_retry_topic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mqlab.protocol.command import RemotingCommand


class Field(NamedTuple):
    """A field of a request that names a resource, or several joined by `splitter`."""

    name: str
    kind: str
    splitter: str


class Row(NamedTuple):
    """A request's actions and fields; with `cluster` the broker's cluster is meant where no field names anything."""

    actions: tuple[str, ...]
    fields: tuple[Field, ...]
    cluster: bool


def _row(actions: str, *fields: str, cluster: bool = False) -> Row:
    """A row from its words: "Get" and "topic:Topic" or "topics:Topic;" (with a splitter)."""
    return Row((actions,), tuple(map(_field, fields)), cluster)


def _field(text: str) -> Field:
    name, _, kind = text.partition(":")
    splitter = "" if kind[-1].isalpha() else kind[-1]
    return Field(name, kind.removesuffix(splitter), splitter)


_GROUP, _TOPIC, _CLUSTER = f"consumerGroup:{GROUP}", f"topic:{TOPIC}", f"clusterName:{CLUSTER}"

ROWS: dict[int, Row] = {
    17: _row(CREATE, _TOPIC),  # UPDATE_AND_CREATE_TOPIC
    29: _row(GET, _TOPIC),  # SEARCH_OFFSET_BY_TIMESTAMP
    30: _row(GET, _TOPIC),  # GET_MAX_OFFSET
    31: _row(GET, _TOPIC),  # GET_MIN_OFFSET
    32: _row(GET, _TOPIC),  # GET_EARLIEST_MSG_STORETIME
    33: _row(GET, _TOPIC),  # VIEW_MESSAGE_BY_ID
    36: _row(SUB, f"group:{GROUP}", f"originTopic:{TOPIC}"),  # CONSUMER_SEND_MSG_BACK
    39: _row(PUB, _TOPIC),  # CHECK_TRANSACTION_STATE
    40: _row(SUB, _GROUP),  # NOTIFY_CONSUMER_IDS_CHANGED
    100: _row(UPDATE, cluster=True),  # PUT_KV_CONFIG
    101: _row(GET, cluster=True),  # GET_KV_CONFIG
    102: _row(UPDATE, cluster=True),  # DELETE_KV_CONFIG
    103: _row(UPDATE, _CLUSTER, cluster=True),  # REGISTER_BROKER
    104: _row(UPDATE, _CLUSTER, cluster=True),  # UNREGISTER_BROKER
    202: _row(GET, _TOPIC),  # GET_TOPIC_STATS_INFO
    203: _row(GET, _GROUP),  # GET_CONSUMER_CONNECTION_LIST
    204: _row(GET, cluster=True),  # GET_PRODUCER_CONNECTION_LIST
    205: _row(UPDATE, cluster=True),  # WIPE_WRITE_PERM_OF_BROKER
    207: _row(DELETE, f"groupName:{GROUP}"),  # DELETE_SUBSCRIPTIONGROUP
    208: _row(GET, _GROUP, _TOPIC, f"topicList:{TOPIC};"),  # GET_CONSUME_STATS
    215: _row(DELETE, _TOPIC),  # DELETE_TOPIC_IN_BROKER
    216: _row(UPDATE, _CLUSTER, cluster=True),  # DELETE_TOPIC_IN_NAMESRV
    217: _row(UPDATE, cluster=True),  # REGISTER_TOPIC_IN_NAMESRV
    219: _row(GET, cluster=True),  # GET_KVLIST_BY_NAMESPACE
    222: _row(UPDATE, f"group:{GROUP}", _TOPIC),  # INVOKE_BROKER_TO_RESET_OFFSET
    223: _row(GET, _TOPIC, f"group:{GROUP}"),  # INVOKE_BROKER_TO_GET_CONSUMER_STATUS
    300: _row(GET, _TOPIC),  # QUERY_TOPIC_CONSUME_BY_WHO
    303: _row(GET, _TOPIC, f"group:{GROUP}"),  # QUERY_CONSUME_TIME_SPAN
    307: _row(GET, _GROUP),  # GET_CONSUMER_RUNNING_INFO
    308: _row(GET, f"filterGroups:{GROUP},", f"compareGroup:{GROUP}", _TOPIC),  # QUERY_CORRECTION_OFFSET
    309: _row(SUB, _GROUP, _TOPIC),  # CONSUME_MESSAGE_DIRECTLY
    314: _row(UPDATE, f"destGroup:{GROUP}", _TOPIC),  # CLONE_GROUP_OFFSET
    315: _row(GET, cluster=True),  # VIEW_BROKER_STATS_DATA
    317: _row(GET, cluster=True),  # GET_BROKER_CONSUME_STATS
    321: _row(GET, _TOPIC, _GROUP),  # QUERY_CONSUME_QUEUE
    322: _row(GET, _CLUSTER, cluster=True),  # QUERY_DATA_VERSION
    323: _row(UPDATE, _TOPIC),  # RESUME_CHECK_HALF_MESSAGE
    326: _row(SUB, f"producerGroup:{GROUP}", _TOPIC),  # PUSH_REPLY_MESSAGE_TO_CLIENT
    327: _row(UPDATE, cluster=True),  # ADD_WRITE_PERM_OF_BROKER
    328: _row(GET, cluster=True),  # GET_ALL_PRODUCER_INFO
    343: _row(GET, f"group:{GROUP}"),  # QUERY_TOPICS_BY_CONSUMER
    345: _row(GET, f"group:{GROUP}", _TOPIC),  # QUERY_SUBSCRIPTION_BY_CONSUMER
    351: _row(GET, _TOPIC),  # GET_TOPIC_CONFIG
    352: _row(GET, f"group:{GROUP}"),  # GET_SUBSCRIPTIONGROUP_CONFIG
    353: _row(UPDATE, f"group:{GROUP}", _TOPIC),  # UPDATE_AND_GET_GROUP_FORBIDDEN
    354: _row(GET, _TOPIC),  # CHECK_ROCKSDB_CQ_WRITE_PROGRESS
    355: _row(GET, cluster=True),  # EXPORT_ROCKSDB_CONFIG_TO_JSON
    901: _row(GET, _CLUSTER),  # GET_BROKER_MEMBER_GROUP
    902: _row(UPDATE, cluster=True),  # ADD_BROKER
    903: _row(UPDATE, f"brokerClusterName:{CLUSTER}", cluster=True),  # REMOVE_BROKER
    904: _row(UPDATE, _CLUSTER, cluster=True),  # BROKER_HEARTBEAT
    905: _row(UPDATE, cluster=True),  # NOTIFY_MIN_BROKER_ID_CHANGE
    906: _row(UPDATE, cluster=True),  # EXCHANGE_BROKER_HA_INFO
    908: _row(UPDATE, cluster=True),  # RESET_MASTER_FLUSH_OFFSET
    1001: _row(UPDATE, cluster=True),  # CONTROLLER_ALTER_SYNC_STATE_SET
    1002: _row(UPDATE, _CLUSTER, cluster=True),  # CONTROLLER_ELECT_MASTER
    1003: _row(UPDATE, _CLUSTER, cluster=True),  # CONTROLLER_REGISTER_BROKER
    1004: _row(GET, cluster=True),  # CONTROLLER_GET_REPLICA_INFO
    1008: _row(UPDATE, cluster=True),  # NOTIFY_BROKER_ROLE_CHANGED
    1011: _row(UPDATE, _CLUSTER, cluster=True),  # CLEAN_BROKER_DATA
    1012: _row(GET, _CLUSTER, cluster=True),  # CONTROLLER_GET_NEXT_BROKER_ID
    1013: _row(UPDATE, _CLUSTER, cluster=True),  # CONTROLLER_APPLY_BROKER_ID
    3001: _row(UPDATE, cluster=True),  # AUTH_CREATE_USER
    3002: _row(UPDATE, cluster=True),  # AUTH_UPDATE_USER
    3003: _row(UPDATE, cluster=True),  # AUTH_DELETE_USER
    3004: _row(GET, cluster=True),  # AUTH_GET_USER
    3005: _row(GET, cluster=True),  # AUTH_LIST_USER
    3006: _row(UPDATE, cluster=True),  # AUTH_CREATE_ACL
    3007: _row(UPDATE, cluster=True),  # AUTH_UPDATE_ACL
    3008: _row(UPDATE, cluster=True),  # AUTH_DELETE_ACL
    3009: _row(GET, cluster=True),  # AUTH_GET_ACL
    3010: _row(GET, cluster=True),  # AUTH_LIST_ACL
    200050: _row(SUB, _GROUP, _TOPIC),  # POP_MESSAGE
    200051: _row(SUB, _GROUP, _TOPIC),  # ACK_MESSAGE
    200052: _row(SUB, _TOPIC, _GROUP),  # PEEK_MESSAGE
    200053: _row(SUB, _GROUP, _TOPIC),  # CHANGE_MESSAGE_INVISIBLETIME
    200054: _row(SUB, _GROUP, _TOPIC),  # NOTIFICATION
    200055: _row(GET, _GROUP, _TOPIC),  # POLLING_INFO
}
"""What the headers of requests say of themselves, by request code: also of those that mqlab has no answer for."""


def needs_of_command(request: RemotingCommand, cluster_name: str) -> list[Need]:
    """What a request needs, all of it; AuthorizationException when it does not say what it is about.

    `cluster_name` is the broker's own, which requests about brokers and users are about.
    """
    fields = request.ext_fields
    if not fields:
        return []
    try:
        return _needs(request, fields, cluster_name)
    except ProtocolError:
        raise AuthorizationException("parse authorization context error.") from None


def _needs(request: RemotingCommand, fields: Mapping[str, str], cluster_name: str) -> list[Need]:
    code = request.code
    topic, group = fields.get("topic"), fields.get("consumerGroup")
    match code:
        case C.GET_ROUTEINFO_BY_TOPIC:
            if topic and is_retry_topic(topic):
                return [Need(Resource.group(topic), (SUB, GET))]
            return [Need(Resource.topic(topic), (PUB, SUB, GET))]
        case C.SEND_MESSAGE:
            return [_send(topic, fields.get("group"))]
        case C.SEND_MESSAGE_V2 | C.SEND_BATCH_MESSAGE:
            return [_send(fields.get("b"), fields.get("a"))]
        case C.RECALL_MESSAGE:
            return [Need(Resource.topic(topic), (PUB,))]
        case C.END_TRANSACTION:
            return [Need(Resource.topic(topic), (PUB,))] if topic and topic.strip() else []
        case C.CONSUMER_SEND_MSG_BACK:
            return [Need(Resource.group(fields.get("group")), (SUB,))]
        case C.PULL_MESSAGE:
            return _of_topic_and_group(topic, group, SUB)
        case C.QUERY_MESSAGE:
            return [Need(Resource.topic(topic), (SUB, GET))]
        case C.HEART_BEAT:
            return _heartbeat(request)
        case C.UNREGISTER_CLIENT:
            return [Need(Resource.group(group), (SUB,))] if group and group.strip() else []
        case C.GET_CONSUMER_LIST_BY_GROUP:
            return [Need(Resource.group(group), (SUB, GET))]
        case C.QUERY_CONSUMER_OFFSET:
            return _of_topic_and_group(topic, group, SUB, GET)
        case C.UPDATE_CONSUMER_OFFSET:
            return _of_topic_and_group(topic, group, SUB, UPDATE)
        case C.LOCK_BATCH_MQ:
            locks = LockBatchRequestBody.decode(request.body)
            return _lock(locks.consumer_group, (queue.topic for queue in locks.mq_set))
        case C.UNLOCK_BATCH_MQ:
            unlocks = UnlockBatchRequestBody.decode(request.body)
            return _lock(unlocks.consumer_group, (queue.topic for queue in unlocks.mq_set))
    row = ROWS.get(code)
    return [] if row is None else _of_row(row, fields, cluster_name)


def _send(topic: str | None, group: str | None) -> Need:
    """To send to a topic; a message that is sent back to a retry topic is its consumer group's affair."""
    if topic and is_retry_topic(topic):
        return Need(Resource.group(group if group and group.strip() else topic), (SUB,))
    return Need(Resource.topic(topic), (PUB,))


def _of_topic_and_group(topic: str | None, group: str | None, *actions: str) -> list[Need]:
    needs = [] if topic and is_retry_topic(topic) else [Need(Resource.topic(topic), actions)]
    return [*needs, Need(Resource.group(group), actions)]


def _heartbeat(request: RemotingCommand) -> list[Need]:
    """Producers need nothing to be known; consumers their group and what they subscribe to."""
    needs = []
    for data in HeartbeatData.decode(request.body).consumer_data_set:
        needs += _lock(data.group_name, (subscription.topic for subscription in data.subscription_data_set))
    return needs


def _lock(group: str, topics: Iterable[str]) -> list[Need]:
    needs = [Need(Resource.group(group), (SUB,))]
    return needs + [Need(Resource.topic(topic), (SUB,)) for topic in topics if not is_retry_topic(topic)]


def _of_row(row: Row, fields: Mapping[str, str], cluster_name: str) -> list[Need]:
    needs = []
    for field in row.fields:
        value = fields.get(field.name)
        if value is None:
            continue
        names = list(filter(None, value.split(field.splitter))) if field.splitter else [value]
        for name in names:
            if field.kind == GROUP or not is_retry_topic(name):
                needs.append(Need(Resource(field.kind, name, LITERAL), row.actions))
            else:
                needs.append(Need(Resource.group(name), row.actions))
    if not needs and row.cluster:
        needs.append(Need(Resource(CLUSTER, cluster_name, LITERAL), row.actions))
    return needs
