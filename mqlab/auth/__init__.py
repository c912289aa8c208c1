"""Access control: who asks (authentication), and whether he may (authorization). Java: RocketMQ's module `auth`.

Signatures are worked out here, rules are matched, and it is said what each request needs. Nothing here keeps users or
sends anything: brokers keep them (mqlab.broker.auth), proxies ask brokers for them (mqlab.proxy.auth_pipeline), clients
sign. A world in which nobody asks for signatures imports none of it.
"""

from typing import TYPE_CHECKING

from mqlab.lazy import lazy_names

if TYPE_CHECKING:
    from mqlab.auth.acl import Acl
    from mqlab.auth.auth_config import AuthConfig
    from mqlab.auth.errors import AuthenticationException, AuthorizationException
    from mqlab.auth.session_credentials import SessionCredentials
    from mqlab.auth.user import User

_HOMES = {
    "Acl": "acl",
    "AuthConfig": "auth_config",
    "AuthenticationException": "errors",
    "AuthorizationException": "errors",
    "SessionCredentials": "session_credentials",
    "User": "user",
}

__all__ = ["Acl", "AuthConfig", "AuthenticationException", "AuthorizationException", "SessionCredentials", "User"]

__getattr__ = lazy_names(__name__, _HOMES)
