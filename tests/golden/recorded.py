"""What the manifests of recorded stores say, and our records beside theirs."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from mqlab.protocol.message import MessageExt
from mqlab.protocol.properties import encode_properties
from mqlab.store.message_ext_encoder import encode_message

STORES = Path(__file__).parent / "store"


def manifest(name: str) -> dict[str, Any]:
    """What was noted of a recorded store: what was done to its broker, what that answered, what it held in the end."""
    noted: dict[str, Any] = json.loads((STORES / f"{name}.json").read_text(encoding="utf-8"))
    return noted


def record_sha256(message: MessageExt, properties: str, row: dict[str, Any]) -> str:
    """The hash of a message's record at the place and time of a recorded one, whose own is `recordSha256`."""
    record = encode_message(message, properties, row["queueOffset"], row["storeTimestamp"], row["commitLogOffset"])
    return hashlib.sha256(record).hexdigest()


def properties_text(record: bytes, message: MessageExt) -> str:
    """The properties of a record as they stand there, whose order is part of its bytes; `message` is what it holds."""
    return record[-len(encode_properties(message.properties).encode()) :].decode()
