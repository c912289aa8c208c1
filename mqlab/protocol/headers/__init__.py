"""The typed headers of every command, one file per area; `table` says which code goes with which header.

These files do without `from __future__ import annotations`: a NamedTuple would compile each of those texts on import.
"""

from typing import TYPE_CHECKING

from mqlab.lazy import names_of_areas

if TYPE_CHECKING:
    from mqlab.protocol.headers.admin import *  # noqa: F403
    from mqlab.protocol.headers.auth import *  # noqa: F403
    from mqlab.protocol.headers.client import *  # noqa: F403
    from mqlab.protocol.headers.namesrv import *  # noqa: F403
    from mqlab.protocol.headers.offset import *  # noqa: F403
    from mqlab.protocol.headers.pop import *  # noqa: F403
    from mqlab.protocol.headers.pull import *  # noqa: F403
    from mqlab.protocol.headers.send import *  # noqa: F403
    from mqlab.protocol.headers.transaction import *  # noqa: F403

__getattr__ = names_of_areas(
    __name__, ("client", "namesrv", "offset", "pull", "send", "pop", "admin", "transaction", "auth")
)
