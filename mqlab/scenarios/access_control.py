"""Users and rules in one text of JSON, for a world that is served (`mqlab serve --acl FILE`).

    {"users": [{"username": "admin", "password": "...", "userType": "Super"},
               {"username": "orders", "password": "..."}],
     "acls": [{"subject": "User:orders", "policies": [{"entries": [
                {"resource": "Topic:Orders", "actions": ["Pub", "Sub", "Get"], "decision": "Allow"}]}]}]}

The members are RocketMQ's UserInfo and AclInfo (org.apache.rocketmq.remoting.protocol.body).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mqlab.auth import Acl, AuthenticationException, AuthorizationException, User
from mqlab.auth.user import check_texts
from mqlab.errors import LearnerError, ProtocolError
from mqlab.protocol.json_body import JsonBody

if TYPE_CHECKING:
    from mqlab.lab import Lab

EXAMPLE = '{"users": [{"username": "admin", "password": "...", "userType": "Super"}], "acls": []}'


@dataclass
class _Said(JsonBody):
    users: list[User] = field(default_factory=list)
    acls: list[Acl] = field(default_factory=list)


class AccessControl:
    """What a text says of users and rules; LearnerError for one that cannot be understood, or has no super user."""

    def __init__(self, text: str) -> None:
        try:
            self._said = _Said.decode(text.encode("utf-8", "replace"))
        except ProtocolError as error:
            raise LearnerError(f"the users and rules cannot be read: {error}", f"write them as in {EXAMPLE}") from None
        for user in self._said.users:
            check_texts(user.username, user.password)
        self._first = next((user for user in self._said.users if user.is_super), None)
        if self._first is None:
            raise LearnerError("there is no super user, so nobody could ever change a rule", f"add one as in {EXAMPLE}")

    def settings(self) -> dict[str, Any]:
        """The settings of brokers and proxies: access control is on, and the first super user is also the inner one."""
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
        """Let each broker have the users and the rules; LearnerError for what a broker refuses."""
        for broker in lab.brokers:
            auth = broker.running().auth
            try:
                for user in self._said.users:
                    if auth.user(user.username) is None:
                        auth.create_user(User.from_json(user.to_json()))
                    else:
                        auth.update_user(user)
                for acl in self._said.acls:
                    auth.update_acl(Acl.from_json(acl.to_json()))
            except (AuthenticationException, AuthorizationException) as error:
                raise LearnerError(f"the users and rules are refused: {error}", f"write them as in {EXAMPLE}") from None
