"""The settings of access control, as they stand in a broker's or a proxy's file."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from mqlab.auth.session_credentials import SessionCredentials
from mqlab.auth.user import ENABLE, SUPER, User
from mqlab.errors import LearnerError

_PROVIDERS = {
    "authentication_provider": "DefaultAuthenticationProvider",
    "authentication_metadata_provider": "LocalAuthenticationMetadataProvider ProxyAuthenticationMetadataProvider",
    "authentication_strategy": "StatelessAuthenticationStrategy",
    "authorization_provider": "DefaultAuthorizationProvider",
    "authorization_metadata_provider": "LocalAuthorizationMetadataProvider ProxyAuthorizationMetadataProvider",
    "authorization_strategy": "StatelessAuthorizationStrategy",
}
"""The classes that can be named, without their packages; the first of each is what is there anyway."""


@dataclass
class AuthConfig:
    """What can be set of access control (org.apache.rocketmq.auth.config.AuthConfig).

    A white list is request codes over remoting (or names of messages over gRPC, such as
    apache.rocketmq.v2.QueryRouteRequest), joined by commas. The two users are JSON, as in RocketMQ: {"username":"...",
    "password":"..."} and {"accessKey":"...","secretKey":"..."}; both are super users, made when they are not there.
    Differs from RocketMQ: providers need not be named, other ones and stateful strategies are absent, and so are the
    migration from ACL 1.0 and the settings of a broker's caches, which cannot be seen.
    """

    authentication_enabled: bool = False
    authentication_provider: str = ""
    authentication_metadata_provider: str = ""
    authentication_strategy: str = ""
    authentication_whitelist: str = ""
    init_authentication_user: str = field(default="", repr=False)
    inner_client_authentication_credentials: str = field(default="", repr=False)
    authorization_enabled: bool = False
    authorization_provider: str = ""
    authorization_metadata_provider: str = ""
    authorization_strategy: str = ""
    authorization_whitelist: str = ""

    def __post_init__(self) -> None:
        if self.authorization_enabled and not self.authentication_enabled:
            raise LearnerError(
                "authorization without authentication lets nobody in, since nobody is known",
                "set authentication_enabled=True (authenticationEnabled=true), too",
            )
        for name, known in _PROVIDERS.items():
            value = getattr(self, name)
            if value and value.rpartition(".")[2] not in known.split():
                raise LearnerError(f"{name}={value!r} is not here", f"leave it out, or name {known.split()[0]}")
        _ = self.init_user, self.inner_credentials

    @property
    def init_user(self) -> User | None:
        """The first user, if one is set."""
        said = _members(self, "init_authentication_user", "username", "password")
        return None if said is None else User(said["username"], said["password"], SUPER, ENABLE)

    @property
    def inner_credentials(self) -> SessionCredentials | None:
        """What slaves and proxies sign with, if anything is set."""
        said = _members(self, "inner_client_authentication_credentials", "accessKey", "secretKey")
        return None if said is None else SessionCredentials(said["accessKey"], said["secretKey"])

    def check_inner_client(self, who: str) -> None:
        """LearnerError when authentication is on and `who` has to ask brokers, but has nothing to sign with."""
        if self.authentication_enabled and not self.inner_client_authentication_credentials.strip():
            raise LearnerError(
                f"{who} has nothing to sign with, so its master or its brokers would refuse it",
                "set inner_client_authentication_credentials (innerClientAuthenticationCredentials) to "
                '{"accessKey":"...","secretKey":"..."}, the same for all of them',
            )


def whitelist(text: str) -> frozenset[str]:
    """The entries of a white list."""
    return frozenset(filter(None, (entry.strip() for entry in text.split(","))))


def _members(config: AuthConfig, name: str, *wanted: str) -> dict[str, Any] | None:
    """The members of a setting that is a JSON object of texts; LearnerError if it is something else."""
    text: str = getattr(config, name)
    if not text.strip():
        return None
    try:
        said = json.loads(text)
    except ValueError:
        said = None
    if not isinstance(said, dict) or not all(isinstance(said.get(w), str) and said[w].strip() for w in wanted):
        example = ",".join(f'"{w}":"..."' for w in wanted)
        raise LearnerError(f"{name} names nobody", f"write it as JSON: {{{example}}}")
    return said
