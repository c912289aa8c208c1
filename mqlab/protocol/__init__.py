"""What travels between nodes and what is stored, byte for byte RocketMQ's.

Typed headers are in `mqlab.protocol.headers`, JSON bodies in `heartbeat`, `route`, `topic_config`,
`group_bodies`, `assignment` and `bodies`.
"""

from typing import TYPE_CHECKING

from mqlab.lazy import names_of_areas

if TYPE_CHECKING:
    from mqlab.protocol.batch import *  # noqa: F403
    from mqlab.protocol.codes import *  # noqa: F403
    from mqlab.protocol.command import *  # noqa: F403
    from mqlab.protocol.compression import *  # noqa: F403
    from mqlab.protocol.errors import *  # noqa: F403
    from mqlab.protocol.hashing import *  # noqa: F403
    from mqlab.protocol.header_codec import *  # noqa: F403
    from mqlab.protocol.heartbeat import *  # noqa: F403
    from mqlab.protocol.message import *  # noqa: F403
    from mqlab.protocol.message_id import *  # noqa: F403
    from mqlab.protocol.properties import *  # noqa: F403
    from mqlab.protocol.record import *  # noqa: F403
    from mqlab.protocol.route import *  # noqa: F403
    from mqlab.protocol.sysflag import *  # noqa: F403
    from mqlab.protocol.topic_config import *  # noqa: F403
    from mqlab.protocol.topics import *  # noqa: F403

# Messages and codes come first: whoever wants those imports nothing else.
__getattr__ = names_of_areas(
    __name__,
    (
        "message", "codes", "command", "route", "sysflag", "errors", "batch", "compression", "hashing",
        "header_codec", "heartbeat", "message_id", "properties", "record", "topic_config", "topics",
    ),
)  # fmt: skip
