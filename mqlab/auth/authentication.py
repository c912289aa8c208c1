"""Who asks: what a request says of it, and whether its signature is right."""

from __future__ import annotations

import hmac
from base64 import b64encode
from typing import TYPE_CHECKING, NamedTuple

from mqlab.auth.errors import AuthenticationException
from mqlab.auth.session_credentials import (
    ACCESS_KEY,
    AUTHORIZATION,
    DATE_TIME,
    SIGNATURE,
    cal_signature,
    combine_request_content,
)
from mqlab.auth.user import DISABLE, key_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mqlab.auth.user import User
    from mqlab.protocol.command import RemotingCommand

V4_9_3 = 399
"""The version of RocketMQ (org.apache.rocketmq.common.MQVersion) up to which one field is not signed."""

UNIQUE_MSG_QUERY_FLAG = "_UNIQUE_KEY_QUERY"

FAILED = "Authentication failed. Please verify the credentials and try again."
"""What is said when it cannot be found out who asks, since a broker does not answer."""


class AuthenticationContext(NamedTuple):
    """Who a request says that asks, and what it was signed with.

    Java: org.apache.rocketmq.auth.authentication.context.DefaultAuthenticationContext.
    """

    rpc_code: str
    username: str | None = None
    signature: str | None = None
    content: bytes = b""


def context_of_command(request: RemotingCommand) -> AuthenticationContext:
    """What a request over remoting says.

    Java: org.apache.rocketmq.auth.authentication.builder.DefaultAuthenticationContextBuilder.build.
    """
    fields = request.ext_fields or {}
    if ACCESS_KEY not in fields:
        return AuthenticationContext(str(request.code))
    signed = fields
    if request.version <= V4_9_3:
        signed = {name: text for name, text in fields.items() if name != UNIQUE_MSG_QUERY_FLAG}
    content = combine_request_content(signed, request.body)
    return AuthenticationContext(str(request.code), fields[ACCESS_KEY], fields.get(SIGNATURE), content)


def context_of_call(rpc_code: str, metadata: Mapping[str, str]) -> AuthenticationContext:
    """What a call over gRPC says; AuthenticationException for headers that cannot be read.

    Java: org.apache.rocketmq.auth.authentication.builder.DefaultAuthenticationContextBuilder.build.
    """
    authorization = metadata.get(AUTHORIZATION, "")
    if not authorization:
        return AuthenticationContext(rpc_code)
    date_time = metadata.get(DATE_TIME, "")
    if not date_time:
        raise AuthenticationException("datetime is null.")
    _, space, items = authorization.partition(" ")
    if not space:
        raise AuthenticationException("authentication header is incorrect.")
    username = signature = None
    for item in items.split(","):
        name, equals, value = item.strip().partition("=")
        if not equals:
            raise AuthenticationException("authentication keyValues length is incorrect, actual length=1.")
        if name == "Credential":
            username = value.partition("/")[0]
        elif name == "Signature":
            try:
                signature = b64encode(bytes.fromhex(value)).decode("ascii")
            except ValueError:
                raise AuthenticationException("create authentication context error.") from None
    return AuthenticationContext(rpc_code, username, signature, key_bytes(date_time))


def check_username(context: AuthenticationContext) -> str:
    """Who a request says that asks; AuthenticationException when it says nobody."""
    if not context.username:
        raise AuthenticationException("username cannot be null.")
    return context.username


def authenticate(context: AuthenticationContext, user: User | None) -> None:
    """AuthenticationException unless the user is known and let in, and has signed the request.

    Java: org.apache.rocketmq.auth.authentication.chain.DefaultAuthenticationHandler.
    """
    if user is None:
        raise AuthenticationException(f"User:{context.username} is not found.")
    if user.user_status == DISABLE:
        raise AuthenticationException(f"User:{context.username} is disabled.")
    expected = cal_signature(context.content, user.password)
    if context.signature is None or not hmac.compare_digest(expected.encode(), key_bytes(context.signature)):
        raise AuthenticationException("check signature failed.")
