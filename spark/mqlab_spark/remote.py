"""Spark Connect: a session whose Spark is a server elsewhere, so that this process has no Java and no SparkContext.

    spark = session(master="sc://spark.example:15002")

Formats, worlds, traces, tables and explorations work as on any other session; `session()` ships the code of mqlab to
the server, and from there it comes to the workers, which need pyspark and pyarrow alone. Paths mean files that the
server and its workers see.
"""

from __future__ import annotations

import os
import socket
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from pyspark import SparkContext
from pyspark import __version__ as own_version
from pyspark.sql import SparkSession

from mqlab.errors import LearnerError, MissingExtraError

SCHEME = "sc://"
PORT = 15002
PATIENCE_S = 10
MODE_VARIABLE = "SPARK_CONNECT_MODE_ENABLED"
"""PySpark's own: while it is set, this process builds plans for Spark Connect."""


def is_remote(spark: SparkSession) -> bool:
    """Is this a session of Spark Connect?"""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def connected() -> SparkSession | None:
    """The session of Spark Connect that this process has."""
    if MODE_VARIABLE not in os.environ or _address is None:
        return None
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    return RemoteSession.getActiveSession()  # type: ignore[return-value]


def address() -> str | None:
    """Where this process is connected to, or was last."""
    return _address


_address: str | None = None


def connect(app_name: str, server: str) -> SparkSession:
    """The session of this process on the server at an address such as sc://host:15002; the code of mqlab is shipped.

    LearnerError when nothing answers there, when the server is of another version of Spark, or when this process has
    another session; MissingExtraError without grpcio.
    """
    global _address  # noqa: PLW0603  a process has one
    if find_spec("grpc") is None:
        raise MissingExtraError("grpcio", "spark")
    _answers(server)
    if SparkContext._active_spark_context is not None:
        raise LearnerError(
            f"a Spark session runs already in this process, not on {server}", "end it first: spark.stop()"
        )
    spark = SparkSession.builder.appName(app_name).remote(server).getOrCreate()
    if spark.version.split(".")[:2] != own_version.split(".")[:2]:
        spark.stop()
        raise LearnerError(
            f"{server} is Spark {spark.version}, and pyspark here is {own_version}",
            "have the same on both sides, up to the second number",
        )
    # Here, so that `python -m mqlab_spark.archive` does not find itself imported already.
    from mqlab_spark.archive import write_archive

    with TemporaryDirectory(prefix="mqlab-archive-") as place:
        archive = Path(place) / "mqlab-spark.zip"
        write_archive(archive)
        spark.addArtifacts(str(archive), pyfile=True)
    _address = server
    return spark


def _answers(server: str) -> None:
    """LearnerError when nobody listens there: gRPC would go on trying for ten minutes."""
    try:
        where = urlsplit(server)
        host, port = where.hostname, where.port or PORT
    except ValueError:
        host = None
    if not host:
        raise LearnerError(f"{server!r} is no address of Spark Connect", "write it like sc://host:15002")
    try:
        socket.create_connection((host, port), PATIENCE_S).close()
    except OSError as problem:
        raise LearnerError(
            f"no Spark Connect server answers at {host}:{port} ({problem})",
            "start one (docs/spark.md says how), or name another with --master",
        ) from None
