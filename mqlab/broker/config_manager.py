"""Tables that a broker keeps in JSON files on its disk."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from mqlab.errors import LearnerError, ProtocolError
from mqlab.protocol import fastjson
from mqlab.protocol.json_body import JsonBody
from mqlab.sim import DiskFull
from mqlab.trace.events.broker import ConfigNotPersisted, ConfigPersisted

if TYPE_CHECKING:
    from mqlab.sim import Node

_ENTRY_DEPTH = 2
"""How deep a topic or a group stands in its file: in the table, in the object around it."""


class ConfigManager:
    """A table with a file of its own (org.apache.rocketmq.common.ConfigManager).

    Before the file is written over, its content is kept beside it as `.bak`; a file that cannot be read is replaced
    by that. The text is RocketMQ's, tabs and unquoted numbers included, so that either can read the other's.
    """

    def __init__(self, node: Node, path: str, *, pretty: bool = True) -> None:
        self._node = node
        self.path = path
        self._pretty = pretty
        """Whether the text stands on several lines."""
        self._written: bytes | None = None
        self._texts: dict[str, tuple[JsonBody, fastjson.Written]] = {}
        """What an entry of the table was when its text was made, and the text."""

    def encode(self) -> dict[str, Any]:
        """The table as the object that goes into the file."""
        raise NotImplementedError(f"{type(self).__name__} must define encode()")

    def decode(self, value: dict[str, Any]) -> None:
        """Take the table over from such an object; BodyError if it is not one."""
        raise NotImplementedError(f"{type(self).__name__} must define decode()")

    def texts_of(self, table: Mapping[str, JsonBody]) -> dict[str, fastjson.Written]:
        """The texts of a table's entries, each made anew only when it has changed: each change writes all of them."""
        for name in self._texts.keys() - table.keys():
            del self._texts[name]
        return {name: self._text_of(name, entry) for name, entry in table.items()}

    def _text_of(self, name: str, entry: JsonBody) -> fastjson.Written:
        known = self._texts.get(name)
        if known is None or known[0] != entry:
            text = fastjson.Written(fastjson.dumps(entry.to_json(), pretty=True, depth=_ENTRY_DEPTH))
            known = self._texts[name] = deepcopy(entry), text
        return known[1]

    def load(self) -> bool:
        """Read the file, else its `.bak`; False if both are there and neither can be read."""
        found = False
        for path in (self.path, f"{self.path}.bak"):
            if not self._node.disk.exists(path):
                continue
            if self._node.disk.is_dir(path):
                found = True
                continue
            data = self._node.disk.read_bytes(path)
            if not data:
                continue
            found = True
            try:
                value = fastjson.loads(data.decode("utf-8"))
                if isinstance(value, dict):
                    self.decode(value)
                    return True
            except (ValueError, ProtocolError):
                continue
        return not found

    def load_or_fail(self) -> None:
        """Read the file; LearnerError when neither it nor its `.bak` can be read: the broker refuses to start."""
        if not self.load():
            raise LearnerError(
                f"{self._node.name} cannot read {self.path}, nor the .bak beside it",
                "put back a good copy of the file, or remove both to start with an empty table",
            )

    def persist(self) -> bool:
        """Write the file and flush it, unless it holds just that already; whether it now does.

        On a full disk the old file stays, as the broker goes on working with the table in its memory.
        """
        # Java writes half of a surrogate pair as a question mark.
        data = fastjson.dumps(self.encode(), pretty=self._pretty).encode("utf-8", "replace")
        if data == self._written:
            return True
        disk, hooks = self._node.disk, self._node.hooks
        try:
            if disk.exists(self.path):
                disk.write_bytes(f"{self.path}.bak", disk.read_bytes(self.path), flush=True)
            disk.write_bytes(self.path, data, flush=True)
        except (DiskFull, OSError) as error:
            # The latter when a folder has the file's name.
            if hooks.on:
                hooks.emit(ConfigNotPersisted(self.path, str(error)))
            return False
        self._written = data
        if hooks.on:
            hooks.emit(ConfigPersisted(self.path, len(data)))
        return True
