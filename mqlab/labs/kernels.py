"""Kernels whose addresses nobody else can take.

Jupyter looks for five free TCP ports, closes them, and tells the new process to listen there. Another program may take
one in between, as when many notebooks or servers begin at once; the kernel then dies, or lives on and answers nobody:
where the port of the outputs or of the heartbeat is taken, a thread of ipykernel keeps the process. A Unix socket is a
file whose name is nobody else's.
"""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any
from uuid import uuid4

LONGEST_PLACE = 100
"""Bytes of the connection file's path. A socket's ends with "-ipc-1" in place of ".json", and may have 103 bytes on
macOS and 107 on Linux.
"""


def with_sockets_of_its_own(manager: Any) -> Any:
    """This class of kernel managers, but its kernels listen at Unix sockets.

    The files lie in the system's directory for temporary ones; the manager takes them away when it shuts its kernel
    down. On Windows, and where that directory's name is too long for the path of a socket, kernels keep to ports.
    """

    def began(self: Any, *args: Any, **settings: Any) -> None:
        place = os.path.join(tempfile.gettempdir(), f"mqlab-kernel-{uuid4().hex}.json")
        if sys.platform != "win32" and len(os.fsencode(place)) <= LONGEST_PLACE:
            settings |= {"transport": "ipc", "connection_file": place}
        manager.__init__(self, *args, **settings)

    return type(manager.__name__, (manager,), {"__init__": began})
