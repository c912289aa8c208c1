"""The files of users and of rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqlab.auth.acl import Acl, check_acl
from mqlab.auth.errors import AuthenticationException, AuthorizationException
from mqlab.auth.user import User, check_user, key_bytes
from mqlab.broker.config_manager import ConfigManager
from mqlab.protocol.json_body import JsonBody

if TYPE_CHECKING:
    from mqlab.sim import Node


class UserTable(ConfigManager):
    """Users by name.

    Differs from RocketMQ, whose LocalAuthenticationMetadataProvider keeps them in a RocksDB, `config/users`: this is a
    JSON file beside the other tables. The passwords stand in it, as they do there: signatures can't be checked without.
    """

    def __init__(self, node: Node, path: str) -> None:
        super().__init__(node, path)
        self.users: dict[str, User] = {}

    def encode(self) -> dict[str, Any]:
        """All users."""
        return {"users": _in_order(self.users)}

    def decode(self, value: dict[str, Any]) -> None:
        """Take the users over from the file; ValueError for one that no administrator could have made."""
        users = _members(value, "users")
        self.users = {name: _user(_members(users, name)) for name in users}


class AclTable(ConfigManager):
    """Rules by subject ("User:alice").

    Differs from RocketMQ, whose LocalAuthorizationMetadataProvider keeps them in a RocksDB, `config/acls`.
    """

    def __init__(self, node: Node, path: str) -> None:
        super().__init__(node, path)
        self.acls: dict[str, Acl] = {}

    def encode(self) -> dict[str, Any]:
        """All rules."""
        return {"acls": _in_order(self.acls)}

    def decode(self, value: dict[str, Any]) -> None:
        """Take the rules over from the file; ValueError for one that no administrator could have made."""
        acls = _members(value, "acls")
        self.acls = {subject: _acl(_members(acls, subject)) for subject in acls}


def _user(members: dict[str, Any]) -> User:
    user = User.from_json(members)
    try:
        check_user(user, is_new=True)
    except AuthenticationException as error:
        raise ValueError(str(error)) from None  # what ConfigManager.load takes as a damaged file
    if user.user_type is None or user.user_status is None:
        raise ValueError(f"the type or the status of {user.username} is none")
    return user


def _acl(members: dict[str, Any]) -> Acl:
    acl = Acl.from_json(members)
    try:
        check_acl(acl)
    except AuthorizationException as error:
        raise ValueError(str(error)) from None
    return acl


def _in_order(table: dict[str, Any]) -> dict[str, Any]:
    """The entries as RocksDB has them: sorted by the bytes of their keys."""
    entries: dict[str, JsonBody] = {name: table[name] for name in sorted(table, key=key_bytes)}
    return {name: entry.to_json() for name, entry in entries.items()}


def _members(value: dict[str, Any], name: str) -> dict[str, Any]:
    members = value.get(name)
    if not isinstance(members, dict):
        raise ValueError(f"{name} is no object")
    return members
