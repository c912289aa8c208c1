"""The name server's table of keys and values, kept on disk."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mqlab.sim import DiskFull
from mqlab.trace.events.broker import ConfigNotPersisted
from mqlab.trace.events.namesrv import KVConfigChanged

if TYPE_CHECKING:
    from mqlab.sim import Node

ORDER_TOPIC_CONFIG = "ORDER_TOPIC_CONFIG"
"""The namespace in which an ordered topic says which brokers hold how many of its queues."""


class KVConfigManager:
    """Namespaces of keys and values (org.apache.rocketmq.namesrv.kvconfig.KVConfigManager).

    Every change is written to the file at once, the version before it stays beside it as `.bak`.
    """

    def __init__(self, node: Node, path: str) -> None:
        self._node = node
        self._path = path
        self.config_table: dict[str, dict[str, str]] = {}

    def load(self) -> None:
        """Read the file, or its `.bak` when it is damaged; without either the table starts empty."""
        for path in (self._path, f"{self._path}.bak"):
            if not self._node.disk.exists(path):
                continue
            try:
                table = json.loads(self._node.disk.read_bytes(path))["configTable"]
                self.config_table = {namespace: dict(values) for namespace, values in table.items()}
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                continue
            return

    def put_kv_config(self, namespace: str, key: str, value: str) -> None:
        """Set a key of a namespace, and write the table."""
        self.config_table.setdefault(namespace, {})[key] = value
        self._changed(namespace, key, value, removed=False)

    def delete_kv_config(self, namespace: str, key: str) -> None:
        """Remove a key; unknown ones are ignored."""
        table = self.config_table.get(namespace)
        if table is not None and key in table:
            del table[key]
            self._changed(namespace, key, "", removed=True)

    def get_kv_config(self, namespace: str, key: str) -> str | None:
        """The value of a key, or None."""
        return self.config_table.get(namespace, {}).get(key)

    def get_kv_list_by_namespace(self, namespace: str) -> bytes | None:
        """All keys and values of a namespace as a response body, or None when nobody ever used the namespace."""
        table = self.config_table.get(namespace)
        if table is None:
            return None
        return _dump({"table": table})

    def _changed(self, namespace: str, key: str, value: str, *, removed: bool) -> None:
        self._persist()
        hooks = self._node.hooks
        if hooks.on:
            hooks.emit(KVConfigChanged(namespace, key, value, removed))

    def _persist(self) -> None:
        disk = self._node.disk
        try:
            if disk.exists(self._path):
                disk.write_bytes(f"{self._path}.bak", disk.read_bytes(self._path), flush=True)
            disk.write_bytes(self._path, _dump({"configTable": self.config_table}), flush=True)
        except DiskFull as error:
            # As in RocketMQ the table has what was asked for, and the next change writes all of it.
            if self._node.hooks.on:
                self._node.hooks.emit(ConfigNotPersisted(self._path, str(error)))


def _dump(value: object) -> bytes:
    # Java writes half of a surrogate pair as a question mark.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
