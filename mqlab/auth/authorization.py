"""Whether who asks may do it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from mqlab.auth.acl import DENY, Resource, matched_entry
from mqlab.auth.errors import AuthorizationException

if TYPE_CHECKING:
    from mqlab.auth.acl import Acl
    from mqlab.auth.user import User

FAILED = "Authorization failed. Please verify your access rights and try again."
"""What is said when nobody is known who asks, or when a broker that knows the rules does not answer."""


class Need(NamedTuple):
    """What a request needs: one of these actions on a resource.

    Java: org.apache.rocketmq.auth.authorization.context.DefaultAuthorizationContext.
    """

    resource: Resource
    actions: tuple[str, ...]


def authorize(needs: Iterable[Need], username: str | None, user: User | None, acl: Acl | None, source_ip: str) -> None:
    """AuthorizationException for the first need that no rule grants; a super user needs no rules.

    `user` is who has this name, `acl` the rules for him; None where there is nobody, or none. Java:
    org.apache.rocketmq.auth.authorization.chain.UserAuthorizationHandler and AclAuthorizationHandler.
    """
    for need in needs:
        if username is None:
            raise AuthorizationException(FAILED)
        if user is None:
            raise AuthorizationException(f"User:{username} not found.")
        if user.is_super:
            return
        entry = None if acl is None else matched_entry(acl, need.resource, need.actions, source_ip)
        if entry is None or entry.decision == DENY:
            detail = "no matched policies." if entry is None else "the decision is deny."
            raise AuthorizationException(
                f"User:{username} has no permission to access {need.resource.key} from {source_ip}, {detail}"
            )
