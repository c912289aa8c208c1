"""Everything else that a name server is asked: by brokers, which report, and by administrators."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from zlib import crc32

from mqlab.errors import LearnerError
from mqlab.namesrv.batch_unregistration_service import UnregisterBroker
from mqlab.namesrv.broker_report import BrokerAddrInfo, BrokerReport
from mqlab.namesrv.kv_config_manager import ORDER_TOPIC_CONFIG
from mqlab.namesrv.route_info_manager import ASKED
from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.java_properties import (
    decode_java_properties,
    encode_java_properties,
    settings_to_properties,
    update_settings,
)
from mqlab.protocol.route import BrokerMemberGroup, ClusterInfo, GetBrokerMemberGroupResponseBody, TopicRouteData
from mqlab.protocol.topic_config import (
    DataVersion,
    RegisterBrokerBody,
    TopicConfigAndMappingSerializeWrapper,
    TopicList,
)
from mqlab.remoting import Channel, RequestProcessor

if TYPE_CHECKING:
    from mqlab.namesrv.kv_config_manager import KVConfigManager
    from mqlab.namesrv.namesrv_config import NamesrvConfig
    from mqlab.namesrv.route_info_manager import RouteInfoManager

Handler = Callable[[Channel, RemotingCommand], RemotingCommand]
_NOTHING = RegisterBrokerBody(TopicConfigAndMappingSerializeWrapper())
CONFIG_BLACK_LIST = ("configBlackList", "configStorePath", "kvConfigPath")


class DefaultRequestProcessor(RequestProcessor):
    """Registration, KV configuration and administration of routes.

    Java: org.apache.rocketmq.namesrv.processor.DefaultRequestProcessor.
    """

    def __init__(self, config: NamesrvConfig, routes: RouteInfoManager, kv: KVConfigManager) -> None:
        self._config = config
        self._routes = routes
        self._kv = kv
        self._handlers: dict[int, Handler] = {
            RequestCode.PUT_KV_CONFIG: self._put_kv_config,
            RequestCode.GET_KV_CONFIG: self._get_kv_config,
            RequestCode.DELETE_KV_CONFIG: self._delete_kv_config,
            RequestCode.GET_KVLIST_BY_NAMESPACE: self._get_kv_list_by_namespace,
            RequestCode.REGISTER_BROKER: self._register_broker,
            RequestCode.UNREGISTER_BROKER: self._unregister_broker,
            RequestCode.BROKER_HEARTBEAT: self._broker_heartbeat,
            RequestCode.QUERY_DATA_VERSION: self._query_data_version,
            RequestCode.GET_BROKER_CLUSTER_INFO: self._get_broker_cluster_info,
            RequestCode.GET_BROKER_MEMBER_GROUP: self._get_broker_member_group,
            RequestCode.WIPE_WRITE_PERM_OF_BROKER: self._wipe_write_perm_of_broker,
            RequestCode.ADD_WRITE_PERM_OF_BROKER: self._add_write_perm_of_broker,
            RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: self._get_all_topic_list,
            RequestCode.DELETE_TOPIC_IN_NAMESRV: self._delete_topic,
            RequestCode.REGISTER_TOPIC_IN_NAMESRV: self._register_topic,
            RequestCode.GET_TOPICS_BY_CLUSTER: self._get_topics_by_cluster,
            RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: self._get_system_topic_list,
            RequestCode.UPDATE_NAMESRV_CONFIG: self._update_namesrv_config,
            RequestCode.GET_NAMESRV_CONFIG: self._get_namesrv_config,
        }

    def process_request(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        """The answer of whoever handles the code; 3 if nobody does."""
        handler = self._handlers.get(request.code)
        if handler is None:
            remark = f" request type {request.code} not supported"
            return RemotingCommand.response(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark)
        return handler(channel, request)

    # -- key-value configuration ------------------------------------------------------------------------------------

    def _put_kv_config(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        header = request.header_as(h.PutKVConfigRequestHeader)
        self._kv.put_kv_config(header.namespace, header.key, header.value)
        return _success()

    def _get_kv_config(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        header = request.header_as(h.GetKVConfigRequestHeader)
        value = self._kv.get_kv_config(header.namespace, header.key)
        if value is None:
            remark = f"No config item, Namespace: {header.namespace} Key: {header.key}"
            return RemotingCommand.response(ResponseCode.QUERY_NOT_FOUND, remark)
        return _success(h.GetKVConfigResponseHeader(value))

    def _delete_kv_config(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        header = request.header_as(h.DeleteKVConfigRequestHeader)
        self._kv.delete_kv_config(header.namespace, header.key)
        return _success()

    def _get_kv_list_by_namespace(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        header = request.header_as(h.GetKVListByNamespaceRequestHeader)
        body = self._kv.get_kv_list_by_namespace(header.namespace)
        if body is None:
            remark = f"No config item, Namespace: {header.namespace}"
            return RemotingCommand.response(ResponseCode.QUERY_NOT_FOUND, remark)
        return _success(body=body)

    # -- brokers ----------------------------------------------------------------------------------------------------

    def _register_broker(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        header = request.header_as(h.RegisterBrokerRequestHeader)
        body = request.body or b""
        if header.body_crc32 and header.body_crc32 != crc32(body) & 0x7FFFFFFF:
            return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, "crc32 not match")
        if header.compressed:
            return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, "compressed registrations are not read here")
        registered = RegisterBrokerBody.decode(body) if body else _NOTHING
        report = BrokerReport(
            header.cluster_name,
            header.broker_addr,
            header.broker_name,
            header.broker_id,
            header.ha_server_addr,
            header.heartbeat_timeout_millis,
            header.enable_acting_master,
            registered.topic_config_serialize_wrapper,
            registered.filter_server_list,
        )
        result = self._routes.register_broker(report, channel)
        if result is None:
            return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, "register broker failed")
        ordered: bytes | None = None
        if self._config.return_order_topic_config_to_broker:
            ordered = self._kv.get_kv_list_by_namespace(ORDER_TOPIC_CONFIG)
        # A broker from outside reaches its master where the edge of this world says.
        told = (address and channel.outer_address(address) for address in result)
        return _success(h.RegisterBrokerResponseHeader(*told), body=ordered)

    def _unregister_broker(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        header = request.header_as(h.UnRegisterBrokerRequestHeader)
        leaving = UnregisterBroker(
            header.cluster_name, header.broker_addr, header.broker_name, header.broker_id, ASKED
        )
        if not self._routes.submit_unregister_broker_request(leaving):
            return RemotingCommand.response(ResponseCode.SYSTEM_ERROR)
        return _success()

    def _broker_heartbeat(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        header = request.header_as(h.BrokerHeartbeatRequestHeader)
        self._routes.update_broker_info_update_timestamp(BrokerAddrInfo(header.cluster_name, header.broker_addr))
        return _success()

    def _query_data_version(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        header = request.header_as(h.QueryDataVersionRequestHeader)
        info = BrokerAddrInfo(header.cluster_name, header.broker_addr)
        changed = self._routes.is_broker_topic_config_changed(info, DataVersion.decode(request.body))
        self._routes.update_broker_info_update_timestamp(info)
        known = self._routes.query_broker_topic_config(info)
        return _success(h.QueryDataVersionResponseHeader(changed), body=known.encode() if known else None)

    def _get_broker_cluster_info(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        clusters = {cluster: tuple(names) for cluster, names in self._routes.cluster_addr_table.items()}
        table = self._routes.broker_addr_table
        brokers = {name: broker.seen_from(channel.outer_address) for name, broker in table.items()}
        return _success(body=ClusterInfo(brokers, clusters).encode())

    def _get_broker_member_group(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        header = request.header_as(h.GetBrokerMemberGroupRequestHeader)
        broker = self._routes.broker_addr_table.get(header.broker_name)
        addresses = broker.broker_addrs if broker is not None and broker.cluster == header.cluster_name else {}
        group = BrokerMemberGroup(header.cluster_name, header.broker_name, dict(addresses))
        return _success(body=GetBrokerMemberGroupResponseBody(group).encode())

    # -- topics -----------------------------------------------------------------------------------------------------

    def _wipe_write_perm_of_broker(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        header = request.header_as(h.WipeWritePermOfBrokerRequestHeader)
        count = self._routes.wipe_write_perm_of_broker(header.broker_name)
        return _success(h.WipeWritePermOfBrokerResponseHeader(count))

    def _add_write_perm_of_broker(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        header = request.header_as(h.AddWritePermOfBrokerRequestHeader)
        count = self._routes.add_write_perm_of_broker(header.broker_name)
        return _success(h.AddWritePermOfBrokerResponseHeader(count))

    def _get_all_topic_list(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        if not self._config.enable_all_topic_list:
            return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, "disable")
        return _success(body=TopicList(self._routes.get_all_topic_list()).encode())

    def _delete_topic(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        header = request.header_as(h.DeleteTopicFromNamesrvRequestHeader)
        self._routes.delete_topic(header.topic, header.cluster_name)
        return _success()

    def _register_topic(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        header = request.header_as(h.RegisterTopicRequestHeader)
        self._routes.register_topic(header.topic, TopicRouteData.decode(request.body).queue_datas)
        return _success()

    def _get_topics_by_cluster(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        if not self._config.enable_topic_list:
            return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, "disable")
        header = request.header_as(h.GetTopicsByClusterRequestHeader)
        return _success(body=TopicList(self._routes.get_topics_by_cluster(header.cluster)).encode())

    def _get_system_topic_list(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        topics, broker_addr = self._routes.get_system_topic_list()
        return _success(body=TopicList(topics, broker_addr).encode())

    # -- the name server's own settings -----------------------------------------------------------------------------

    def _update_namesrv_config(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        properties = decode_java_properties((request.body or b"").decode("utf-8", "replace"))
        if any(name in CONFIG_BLACK_LIST for name in properties):
            return RemotingCommand.response(ResponseCode.NO_PERMISSION, "Can not update config in black list.")
        try:
            update_settings(properties, self._config)
        except LearnerError as error:
            return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, error.message)
        return _success()

    def _get_namesrv_config(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        text = encode_java_properties(settings_to_properties(self._config))
        return _success(body=text.encode("utf-8", "replace"))


def _success(header: object = None, body: bytes | None = None) -> RemotingCommand:
    return RemotingCommand.response(ResponseCode.SUCCESS, None, header, body)
