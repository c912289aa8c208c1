"""What a broker says to name servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from mqlab.errors import MQBrokerException, ProtocolError, RemotingException
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import (
    GetRouteInfoRequestHeader,
    RegisterBrokerRequestHeader,
    RegisterBrokerResponseHeader,
    UnRegisterBrokerRequestHeader,
)
from mqlab.protocol.route import TopicRouteData
from mqlab.protocol.topic_config import KVTable
from mqlab.remoting import RemotingClient
from mqlab.sim import Future
from mqlab.trace.events.broker import RegistrationFailed, RegistrationSent

if TYPE_CHECKING:
    from mqlab.protocol.topic_config import RegisterBrokerBody
    from mqlab.sim import Node

UNREGISTER_TIMEOUT_MS = 3_000


class RegisterBrokerResult(NamedTuple):
    """What a name server answers to a report: to a slave where its master is, and which topics are ordered.

    Java: org.apache.rocketmq.remoting.protocol.namesrv.RegisterBrokerResult.
    """

    master_addr: str | None = None
    ha_server_addr: str | None = None
    kv_table: dict[str, str] | None = None


class BrokerOuterAPI:
    """Calls every name server, all at the same time (org.apache.rocketmq.broker.out.BrokerOuterAPI).

    A name server that does not answer is passed over: the next report comes soon enough.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self.remoting_client = RemotingClient(node, name="BrokerOuterAPI")

    def update_name_server_address_list(self, addresses: list[str]) -> None:
        """Report to these name servers from now on."""
        self.remoting_client.update_name_server_address_list(addresses)

    @property
    def name_servers(self) -> list[str]:
        """The name servers in use."""
        return self.remoting_client.name_server_addresses

    async def register_broker_all(
        self, header: RegisterBrokerRequestHeader, body: RegisterBrokerBody, timeout_ms: int, *, oneway: bool = False
    ) -> list[RegisterBrokerResult]:
        """Report to every name server; returns what each said that took the report, the quickest first."""
        data = body.encode()
        header = header._replace(body_crc32=crc32(data) & 0x7FFFFFFF)
        topics = len(body.topic_config_serialize_wrapper.topic_config_table)
        answers = []
        results: list[RegisterBrokerResult | None] = []
        for address in self.name_servers:
            answer: Future[RegisterBrokerResult | None] = Future(f"the registration at {address}")
            answer.add_done_callback(lambda done: results.append(done.result()))
            answers.append(answer)
            if self._node.hooks.on:
                self._node.hooks.emit(RegistrationSent(header.broker_name, address, topics))
            self._node.spawn(self._register(address, header, data, timeout_ms, oneway, answer), "register broker")
        for answer in answers:
            await answer
        return [result for result in results if result is not None]

    async def _register(
        self,
        address: str,
        header: RegisterBrokerRequestHeader,
        data: bytes,
        timeout_ms: int,
        oneway: bool,
        answer: Future[RegisterBrokerResult | None],
    ) -> None:
        request = RemotingCommand.request(RequestCode.REGISTER_BROKER, header, data)
        result: RegisterBrokerResult | None = None
        try:
            if oneway:
                self.remoting_client.invoke_oneway(address, request, timeout_ms)
            else:
                response = await self.remoting_client.invoke_sync(address, request, timeout_ms)
                if response.code != ResponseCode.SUCCESS:
                    raise MQBrokerException(response.code, response.remark or "", address)
                said = response.header_as(RegisterBrokerResponseHeader)
                ordered = KVTable.decode(response.body).table if response.body else None
                result = RegisterBrokerResult(said.master_addr, said.ha_server_addr, ordered)
        except (RemotingException, MQBrokerException, ProtocolError) as error:
            if self._node.hooks.on:
                self._node.hooks.emit(RegistrationFailed(header.broker_name, address, str(error)))
        answer.set_result(result)

    async def unregister_broker_all(self, header: UnRegisterBrokerRequestHeader) -> None:
        """Tell every name server, one after the other, that the broker leaves."""
        for address in self.name_servers:
            request = RemotingCommand.request(RequestCode.UNREGISTER_BROKER, header)
            try:
                await self.remoting_client.invoke_sync(address, request, UNREGISTER_TIMEOUT_MS)
            except RemotingException as error:
                if self._node.hooks.on:
                    self._node.hooks.emit(RegistrationFailed(header.broker_name, address, str(error)))

    async def get_topic_route_info_from_name_server(self, topic: str, timeout_ms: int) -> TopicRouteData:
        """Ask one name server for the route of a topic; MQBrokerException with its code when it has none.

        Java: org.apache.rocketmq.broker.out.BrokerOuterAPI.getTopicRouteInfoFromNameServer.
        """
        request = RemotingCommand.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequestHeader(topic))
        response = await self.remoting_client.invoke_sync(None, request, timeout_ms)
        if response.code != ResponseCode.SUCCESS or response.body is None:
            raise MQBrokerException(response.code, response.remark or "", "name server")
        return TopicRouteData.decode(response.body)

    def shutdown(self) -> None:
        """Close all connections to name servers."""
        self.remoting_client.shutdown()
