"""What administrators ask about users and rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.auth.acl import CUSTOM, DEFAULT, Acl, Resource
from mqlab.auth.errors import AuthenticationException, AuthorizationException
from mqlab.auth.user import User, named, subject_key
from mqlab.broker.errors import RequestError, rejected
from mqlab.protocol import fastjson
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import auth as h
from mqlab.remoting import Channel, RequestProcessor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mqlab.broker.auth.broker_auth import BrokerAuth
    from mqlab.protocol.json_body import JsonBody
    from mqlab.trace.bus import Bus

SUPER_BY_SUPER = "The super user can only be update by super user"
NOT_SET = "not set any response code"
"""What a new response says in RocketMQ, and these, which succeed, go on saying."""
TRY_LATER = "An system error occurred, please try again later."


class AuthProcessor(RequestProcessor):
    """The requests about users and rules of org.apache.rocketmq.broker.processor.AdminBrokerProcessor."""

    def __init__(self, auth: BrokerAuth, hooks: Bus) -> None:
        self._auth = auth
        self._hooks = hooks
        self._handlers = {
            int(RequestCode.AUTH_CREATE_USER): self._create_user,
            int(RequestCode.AUTH_UPDATE_USER): self._update_user,
            int(RequestCode.AUTH_DELETE_USER): self._delete_user,
            int(RequestCode.AUTH_GET_USER): self._get_user,
            int(RequestCode.AUTH_LIST_USER): self._list_users,
            int(RequestCode.AUTH_CREATE_ACL): self._update_acl,
            int(RequestCode.AUTH_UPDATE_ACL): self._update_acl,
            int(RequestCode.AUTH_DELETE_ACL): self._delete_acl,
            int(RequestCode.AUTH_GET_ACL): self._get_acl,
            int(RequestCode.AUTH_LIST_ACL): self._list_acls,
        }

    def process_request(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        """The answer; 16 (NO_PERMISSION) for what users and rules do not allow."""
        try:
            body = self._handlers[request.code](request)
        except RequestError as error:
            return rejected(self._hooks, channel, request, error)
        except (AuthenticationException, AuthorizationException) as refusal:
            refused = RequestError(ResponseCode.NO_PERMISSION, str(refusal))
            return rejected(self._hooks, channel, request, refused)
        return RemotingCommand.response(ResponseCode.SUCCESS, NOT_SET, body=body)

    # -- users ------------------------------------------------------------------------------------------------------

    def _create_user(self, request: RemotingCommand) -> None:
        user = self._user_in(request, request.header_as(h.CreateUserRequestHeader).username, "create")
        self._auth.create_user(user)

    def _update_user(self, request: RemotingCommand) -> None:
        user = self._user_in(request, request.header_as(h.UpdateUserRequestHeader).username, "update")
        old = self._auth.user(user.username)
        if old is None:
            raise AuthenticationException("The user is not exist")
        if old.is_super and self._auth.is_not_super_user_login(request):
            raise AuthenticationException(SUPER_BY_SUPER)
        self._auth.update_user(user)

    def _user_in(self, request: RemotingCommand, username: str | None, doing: str) -> User:
        if not username:
            raise RequestError(ResponseCode.INVALID_PARAMETER, "The username is blank")
        user = User.decode(request.body)
        user.username = username
        if user.is_super and self._auth.is_not_super_user_login(request):
            raise RequestError(ResponseCode.SYSTEM_ERROR, f"The super user can only be {doing} by super user")
        return user

    def _delete_user(self, request: RemotingCommand) -> None:
        username = request.header_as(h.DeleteUserRequestHeader).username
        user = self._auth.user(username)
        if user is None:
            return
        if user.is_super and self._auth.is_not_super_user_login(request):
            raise AuthenticationException(SUPER_BY_SUPER)
        self._auth.delete_user(user.username)

    def _get_user(self, request: RemotingCommand) -> bytes | None:
        username = request.header_as(h.GetUserRequestHeader).username
        if not (username or "").strip():
            raise RequestError(ResponseCode.INVALID_PARAMETER, "The username is blank")
        user = self._auth.user(username)
        return None if user is None else user.encode()

    def _list_users(self, request: RemotingCommand) -> bytes | None:
        return _listed(self._auth.users(request.header_as(h.ListUsersRequestHeader).filter))

    # -- rules ------------------------------------------------------------------------------------------------------

    def _update_acl(self, request: RemotingCommand) -> None:
        """To create rules and to update them are the same, as in RocketMQ."""
        acl = Acl.decode(request.body)
        if not acl.policies:
            raise RequestError(ResponseCode.SYSTEM_ERROR, "The body of acl is null")
        acl.subject = acl.subject or _checked_subject(request.header_as(h.CreateAclRequestHeader).subject)
        self._auth.update_acl(acl)

    def _delete_acl(self, request: RemotingCommand) -> None:
        header = request.header_as(h.DeleteAclRequestHeader)
        subject = subject_key(header.subject)
        if subject is None:
            raise AuthorizationException("The subject is null.")
        self._auth.delete_acl(subject, named(header.policy_type, (CUSTOM, DEFAULT)), Resource.of(header.resource))

    def _get_acl(self, request: RemotingCommand) -> bytes | None:
        acl = self._auth.acl(_checked_subject(request.header_as(h.GetAclRequestHeader).subject))
        return None if acl is None else acl.encode()

    def _list_acls(self, request: RemotingCommand) -> bytes | None:
        header = request.header_as(h.ListAclsRequestHeader)
        return _listed(self._auth.acls(header.subject_filter, header.resource_filter))


def _checked_subject(subject: str | None) -> str:
    """The subject as it stands in the table; RequestError when it is none."""
    key = subject_key(subject)
    if key is None:
        raise RequestError(ResponseCode.SYSTEM_ERROR, TRY_LATER)
    return key


def _listed(bodies: Sequence[JsonBody]) -> bytes | None:
    """A list as the body of an answer; none when it is empty."""
    return fastjson.dumps([body.to_json() for body in bodies]).encode("utf-8", "replace") if bodies else None
