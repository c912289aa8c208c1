"""The files of users and of rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqlab.auth.acl import Acl
from mqlab.auth.user import User
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
        """Take the users over from the file."""
        self.users = {name: User.from_json(members) for name, members in _members(value, "users").items()}


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
        """Take the rules over from the file."""
        self.acls = {subject: Acl.from_json(members) for subject, members in _members(value, "acls").items()}


def _in_order(table: dict[str, Any]) -> dict[str, Any]:
    """The entries as RocksDB has them: sorted by the bytes of their keys."""
    entries: dict[str, JsonBody] = {name: table[name] for name in sorted(table, key=str.encode)}
    return {name: entry.to_json() for name, entry in entries.items()}


def _members(value: dict[str, Any], name: str) -> dict[str, Any]:
    members = value.get(name)
    if not isinstance(members, dict):
        raise ValueError(f"{name} is no object")  # what ConfigManager.load takes as a damaged file
    return members
