"""Why somebody is not let in; the texts are RocketMQ's."""

from __future__ import annotations

from mqlab.errors import MqlabError


class AuthenticationException(MqlabError):
    """Who asks is not known, or cannot prove it.

    Java: org.apache.rocketmq.auth.authentication.exception.AuthenticationException.
    """


class AuthorizationException(MqlabError):
    """Who asks may not do it (org.apache.rocketmq.auth.authorization.exception.AuthorizationException)."""
