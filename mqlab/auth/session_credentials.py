"""A key and a secret, and how a client signs with them: each request over remoting, each call over gRPC.

Over remoting the values of all extension fields, sorted by their names, and the body behind them are signed with
HMAC-SHA1; over gRPC the time that the client sends with the call.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from mqlab.errors import LearnerError
from mqlab.remoting import RPCHook

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mqlab.protocol.command import RemotingCommand

ACCESS_KEY, SIGNATURE, SECURITY_TOKEN = "AccessKey", "Signature", "SecurityToken"
"""The extension fields of a signed request (org.apache.rocketmq.acl.common.SessionCredentials)."""

AUTHORIZATION, DATE_TIME, SESSION_TOKEN = "authorization", "x-mq-date-time", "x-mq-session-token"
"""The headers of a signed call (org.apache.rocketmq.client.java.rpc.Signature)."""

ALGORITHM = "MQv2-HMAC-SHA1"


@dataclass(frozen=True)
class SessionCredentials:
    """Who a client is: the user's name as access key, and the password as secret key.

    A security token travels with each request and is looked at by nobody in RocketMQ 5.3.3. Java:
    org.apache.rocketmq.acl.common.SessionCredentials, org.apache.rocketmq.client.apis.SessionCredentials.
    """

    access_key: str
    secret_key: str
    security_token: str | None = None

    def __post_init__(self) -> None:
        for name, value in (("access_key", self.access_key), ("secret_key", self.secret_key)):
            if not isinstance(value, str) or not value.strip():
                raise LearnerError(
                    f"{name}={value!r} signs nothing", "write SessionCredentials('the user', 'the password')"
                )

    def __repr__(self) -> str:
        return f"SessionCredentials({self.access_key!r}, ...)"


def checked_credentials(credentials: object) -> SessionCredentials:
    """The credentials; LearnerError when they are something else."""
    if not isinstance(credentials, SessionCredentials):
        raise LearnerError(
            f"a {type(credentials).__name__} is no credentials",
            "write credentials=SessionCredentials('the user', 'the password'), from mqlab.auth",
        )
    return credentials


def sign(content: bytes, secret_key: str) -> bytes:
    """HMAC-SHA1 of the content with the secret key: 20 bytes (org.apache.rocketmq.acl.common.AclSigner)."""
    return hmac.digest(secret_key.encode("utf-8", "replace"), content, "sha1")


def cal_signature(content: bytes, secret_key: str) -> str:
    """The signature as it travels over remoting: base64 (org.apache.rocketmq.acl.common.AclUtils.calSignature)."""
    return b64encode(sign(content, secret_key)).decode("ascii")


def combine_request_content(fields: Mapping[str, str], body: bytes | None) -> bytes:
    """What is signed of a request: the values of its fields in the order of their names, and its body.

    Java: org.apache.rocketmq.acl.common.AclUtils.combineRequestContent.
    """
    texts = "".join(fields[name] for name in sorted(fields) if name != SIGNATURE)
    return texts.encode("utf-8", "replace") + (body or b"")


class AclClientRPCHook(RPCHook):
    """Signs each request before it is written (org.apache.rocketmq.acl.common.AclClientRPCHook)."""

    def __init__(self, credentials: SessionCredentials) -> None:
        self.credentials = checked_credentials(credentials)

    def do_before_request(self, remote_address: str, request: RemotingCommand) -> None:
        """Add the key, the token if there is one, and the signature."""
        credentials = self.credentials
        request.add_ext_field(ACCESS_KEY, credentials.access_key)
        if credentials.security_token is not None:
            request.add_ext_field(SECURITY_TOKEN, credentials.security_token)
        content = combine_request_content(request.ext_fields or {}, request.body)
        request.add_ext_field(SIGNATURE, cal_signature(content, credentials.secret_key))


def signed_metadata(credentials: SessionCredentials, now_ms: int) -> dict[str, str]:
    """The headers with which a client signs a call that it makes now (ms since 1970).

    Java: org.apache.rocketmq.client.java.rpc.Signature. Differs from it: the time is UTC's.
    """
    moment = datetime.fromtimestamp(now_ms // 1_000, UTC)
    date_time = moment.strftime("%Y%m%dT%H%M%SZ")
    signature = sign(date_time.encode(), credentials.secret_key).hex().upper()
    metadata = {
        DATE_TIME: date_time,
        AUTHORIZATION: f"{ALGORITHM} Credential={credentials.access_key}, SignedHeaders={DATE_TIME}, "
        f"Signature={signature}",
    }
    if credentials.security_token is not None:
        metadata[SESSION_TOKEN] = credentials.security_token
    return metadata
