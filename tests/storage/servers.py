"""A real HDFS, a NameNode and a DataNode, and an S3 of moto, each from `with` to its end, on loopback."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.request import urlopen

from mqlab_spark.java_home import java_home
from mqlab_spark.local_cluster import free_port

ROOT = Path(__file__).parents[2]
JARS = ROOT / ".cache" / "jars"
S3_PYTHON = ROOT / os.environ.get("S3_VENV", ".venv-s3") / "bin" / "python"
PATIENCE_S = 300
NODES = "org.apache.hadoop.hdfs.server"


def jars(*names: str) -> list[Path]:
    """The jars that `make storage-test` has fetched, whose names begin so."""
    found = [jar for jar in sorted(JARS.glob("*.jar")) if jar.name.startswith(names)]
    assert found, f"no {names} in {JARS}: make storage-test fetches them"
    return found


@contextmanager
def hdfs(place: Path) -> Iterator[str]:
    """An HDFS that keeps its files in a directory; gives its address, as hdfs://127.0.0.1:40001."""
    address = f"hdfs://127.0.0.1:{free_port()}"
    listening = ("namenode.http-", "datanode.", "datanode.http.", "datanode.ipc.")
    ports = {name: f"127.0.0.1:{free_port()}" for name in listening}
    settings = {
        "fs.defaultFS": address,
        "dfs.namenode.name.dir": (place / "name").as_uri(),
        "dfs.datanode.data.dir": (place / "data").as_uri(),
        "dfs.replication": "1",
        **{f"dfs.{name}address": port for name, port in ports.items()},
    }
    for file in ("core-site.xml", "hdfs-site.xml"):
        pairs = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items())
        (place / file).write_text("\n".join(["<configuration>", *pairs, "</configuration>"]))
    names = ("commons-logging", "hadoop-client", "jsr305", "slf4j-api", "snappy-java")
    path = os.pathsep.join(map(str, [place, *jars(*names)]))
    java = [str(java_home() / "bin" / "java"), "-Xmx256m", "-XX:+UseSerialGC", "-cp", path]
    with ExitStack() as servers:
        log = servers.enter_context((place / "log").open("w"))
        subprocess.run([*java, f"{NODES}.namenode.NameNode", "-format"], check=True, stdout=log, stderr=log)
        for node in ("namenode.NameNode", "datanode.DataNode"):
            servers.enter_context(_running([*java, f"{NODES}.{node}"], log.fileno()))
        beans = f"http://{ports['namenode.http-']}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
        _wait_until(lambda: json.load(urlopen(beans))["beans"][0]["NumLiveDataNodes"] == 1)
        yield address


@contextmanager
def s3(place: Path) -> Iterator[Mapping[str, str]]:
    """An S3 with the bucket `lake`; gives the variables with which everything that speaks to Amazon's finds it."""
    port = free_port()
    with (place / "log").open("w") as log:
        command = [str(S3_PYTHON), str(Path(__file__).with_name("s3_server.py")), str(port)]
        with _running(command, log.fileno()):
            _wait_until(lambda: socket.create_connection(("127.0.0.1", port), 1).close() is None)
            yield {
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_REGION": "us-east-1",
                "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
            }  # fmt: skip


@contextmanager
def _running(command: list[str], log: int) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _wait_until(is_there: Callable[[], object]) -> None:
    """Wait until a server that starts says so; who does not listen yet says nothing."""
    end = time.monotonic() + PATIENCE_S
    while True:
        with suppress(OSError, LookupError):
            if is_there():
                return
        assert time.monotonic() < end, "a server did not start: its log lies beside its files"
        time.sleep(0.2)
