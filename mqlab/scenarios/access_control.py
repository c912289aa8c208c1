"""Users and rules in one text of JSON, for a world that is served (`mqlab serve --acl FILE`); `EXAMPLE` is one.

The members are RocketMQ's UserInfo and AclInfo (org.apache.rocketmq.remoting.protocol.body).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from mqlab.auth import Acl, AuthenticationException, AuthorizationException, User
from mqlab.auth.user import ENABLE, NORMAL, check_texts
from mqlab.errors import LearnerError, ProtocolError
from mqlab.protocol import fastjson
from mqlab.protocol.header_codec import camel_case
from mqlab.protocol.json_body import JsonBody

if TYPE_CHECKING:
    from mqlab.lab import Lab

EXAMPLE = """\
{"users": [{"username": "admin", "password": "...", "userType": "Super"},
           {"username": "orders", "password": "..."}],
 "acls": [{"subject": "User:orders", "policies": [{"entries": [
            {"resource": "Topic:Orders", "actions": ["Pub", "Sub", "Get"], "decision": "Allow"}]}]}]}"""

_HINT = f"write them as in\n{EXAMPLE}"


@dataclass
class UsersAndRules(JsonBody):
    """The users and rules that a text says."""

    users: list[User] = field(default_factory=list)
    acls: list[Acl] = field(default_factory=list)


class AccessControl:
    """What a text says of users and rules.

    LearnerError for a text that cannot be understood, all of it, or that has no super user who is let in.
    """

    def __init__(self, text: str) -> None:
        try:
            written = fastjson.loads_object("UsersAndRules", text.encode("utf-8", "replace"))
            said = UsersAndRules.from_json(written)
        except ProtocolError as error:
            raise LearnerError(f"the users and rules cannot be read: {error}", _HINT) from None
        for word in _lost(written, said):
            raise LearnerError(f"the users and rules say {word!r}, which means nothing there", _HINT)
        for user in said.users:
            check_texts(user.username, user.password)
        self._acls = said.acls
        self._users = [
            replace(user, user_type=user.user_type or NORMAL, user_status=user.user_status or ENABLE)
            for user in said.users
        ]
        self._first = next((user for user in self._users if user.is_super and user.user_status == ENABLE), None)
        if self._first is None:
            raise LearnerError("there is no super user who is let in, so nobody could ever change a rule", _HINT)

    def settings(self) -> dict[str, Any]:
        """The settings of brokers and proxies: access control is on, and the first super user who is let in is also the
        inner one.
        """
        first = self._first
        assert first is not None
        return {
            "authentication_enabled": True,
            "authorization_enabled": True,
            "init_authentication_user": json.dumps({"username": first.username, "password": first.password}),
            "inner_client_authentication_credentials": json.dumps(
                {"accessKey": first.username, "secretKey": first.password}
            ),
        }

    def give(self, lab: Lab) -> None:
        """Let each broker have the users and the rules, beside those that it has; LearnerError for what it refuses."""
        for broker in lab.brokers:
            auth = broker.running().auth
            try:
                for user in self._users:
                    auth.put_user(user)
                for acl in self._acls:
                    auth.update_acl(acl)
            except (AuthenticationException, AuthorizationException) as error:
                raise LearnerError(f"the users and rules are refused: {error}", _HINT) from None


def _lost(written: Any, understood: Any) -> Iterator[str]:
    """The words of what was written that are not in what was understood."""
    match understood:
        case JsonBody():
            kind: type = type(understood)
            members = {camel_case(one.name): getattr(understood, one.name) for one in fields(kind)}
            for name, value in written.items():
                if name not in members:
                    yield str(name)
                elif value is not None:
                    yield from _lost(value, members[name])
        case [JsonBody(), *_]:
            for one, other in zip(written, understood, strict=True):
                yield from _lost(one, other)
        case list():
            known = {word.lower() for word in understood}
            yield from (word for word in written if word.lower() not in known)
        case _:
            if written.lower() != (understood or "").lower():
                yield written
