"""Access control of a proxy: brokers know the users and the rules, the proxy asks them and lets clients in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqlab.auth.acl import Acl
from mqlab.auth.auth_config import whitelist
from mqlab.auth.authentication import FAILED as AUTHENTICATION_FAILED
from mqlab.auth.authentication import authenticate, check_username, context_of_call
from mqlab.auth.authorization import FAILED as AUTHORIZATION_FAILED
from mqlab.auth.authorization import authorize
from mqlab.auth.errors import AuthenticationException, AuthorizationException
from mqlab.auth.rpc_needs import needs_of_call, rpc_code
from mqlab.auth.user import User
from mqlab.errors import MqlabError
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers.auth import GetAclRequestHeader, GetUserRequestHeader
from mqlab.protocol.v2.definition import Code
from mqlab.proxy.errors import GrpcProxyException
from mqlab.proxy.loading_cache import LoadingCache

if TYPE_CHECKING:
    from mqlab.auth.auth_config import AuthConfig
    from mqlab.auth.authentication import AuthenticationContext
    from mqlab.proxy.cluster_metadata_service import ClusterMetadataService
    from mqlab.proxy.proxy_config import ProxyConfig
    from mqlab.rpc import ServerStream
    from mqlab.sim import Node


class AuthPipeline:
    """Lets no message of a client pass whose user is not known, or may not do it: status UNAUTHORIZED.

    What brokers say of users and rules counts for `user_cache_refresh_seconds` and longer, as in RocketMQ: a change is
    seen by who asks once more after that. Java: org.apache.rocketmq.proxy.grpc.pipeline.AuthenticationPipeline and
    AuthorizationPipeline, org.apache.rocketmq.proxy.service.metadata.ClusterMetadataService. Differs from RocketMQ: the
    rules are those for who has signed, also where a client names somebody else in x-mq-authorization-ak.
    """

    def __init__(self, node: Node, config: ProxyConfig, auth: AuthConfig, metadata: ClusterMetadataService) -> None:
        self._authorizes = auth.authorization_enabled
        self._known = whitelist(auth.authentication_whitelist)
        self._allowed = whitelist(auth.authorization_whitelist)
        self._metadata = metadata
        self._users: LoadingCache[User | None] = LoadingCache(
            node, "users", self._load_user, config.user_cache_refresh_seconds, config.user_cache_expired_seconds
        )
        self._acls: LoadingCache[Acl | None] = LoadingCache(
            node, "rules", self._load_acl, config.acl_cache_refresh_seconds, config.acl_cache_expired_seconds
        )

    async def execute(self, stream: ServerStream, request: Any) -> None:
        """Look at one message; GrpcProxyException with UNAUTHORIZED refuses it."""
        try:
            context = context_of_call(rpc_code(request), stream.metadata)
            if context.rpc_code not in self._known:
                await self._authenticate(context)
            if self._authorizes and context.rpc_code not in self._allowed:
                await self._authorize(context, request, stream.connection.remote_address.rpartition(":")[0])
        except (AuthenticationException, AuthorizationException) as error:
            raise GrpcProxyException(Code.UNAUTHORIZED, str(error)) from None

    async def _authenticate(self, context: AuthenticationContext) -> None:
        username = check_username(context)
        try:
            user = await self._users.get(username)
        except MqlabError:
            raise AuthenticationException(AUTHENTICATION_FAILED) from None
        authenticate(context, user)

    async def _authorize(self, context: AuthenticationContext, request: Any, source_ip: str) -> None:
        needs = needs_of_call(request)
        if not needs:
            return
        username = context.username
        user = acl = None
        if username is not None:
            try:
                user = await self._users.get(username)
                acl = None if user is None or user.is_super else await self._acls.get(user.subject)
            except MqlabError:
                raise AuthorizationException(AUTHORIZATION_FAILED) from None
        authorize(needs, username, user, acl, source_ip)

    async def _load_user(self, username: str) -> User | None:
        request = RemotingCommand.request(RequestCode.AUTH_GET_USER, GetUserRequestHeader(username))
        return await self._metadata.ask_one_broker_of_cluster(request, User)

    async def _load_acl(self, subject: str) -> Acl | None:
        request = RemotingCommand.request(RequestCode.AUTH_GET_ACL, GetAclRequestHeader(subject))
        return await self._metadata.ask_one_broker_of_cluster(request, Acl)
