"""An S3 on loopback, of moto: `python s3_server.py PORT`, in an environment that has it (requirements/s3-server.txt).

moto looks whether a condition holds and then writes, so here one request is answered after another: what S3 promises of
conditional writes to many writers holds, too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from threading import Lock
from typing import Any

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple


def one_at_a_time(application: Any) -> Any:
    """The same application, which answers one request after another."""
    lock = Lock()

    def answer(*request: Any) -> Iterable[bytes]:
        with lock:
            return [b"".join(application(*request))]

    return answer


if __name__ == "__main__":
    s3 = DomainDispatcherApplication(create_backend_app)
    run_simple("127.0.0.1", int(sys.argv[1]), one_at_a_time(s3), threaded=True)
