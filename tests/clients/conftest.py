"""RocketMQ's own clients, which `make clients-test` fetches, and programs that use them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, Queue
from threading import Thread

import pytest

from mqlab.lab import Lab
from tests.real import rocketmq

CLIENTS = Path(os.environ.get("MQLAB_CLIENTS", ".cache/clients")).absolute()
VERSIONS = ("4.9.8", "5.3.3")
JAVA_V5 = "5.0.8"
HERE = Path(__file__).parent
WAIT_S = 60


class Use:
    """One use of a client, in a process of its own; its lines come in a queue."""

    def __init__(self, home: Path, *command: str) -> None:
        """Clients write their logs into their user's home."""
        self.process = subprocess.Popen(
            command,
            env={**os.environ, "HOME": str(home), "NODE_PATH": str(CLIENTS / "node_modules")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._lines: list[str] = []
        self._queue: Queue[str] = Queue()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._queue.put(line.strip())

    @property
    def lines(self) -> list[str]:
        """All lines that have come."""
        while not self._queue.empty():
            self._lines.append(self._queue.get())
        return self._lines

    def until(self, *wanted: str) -> None:
        """Wait until all these lines have come, in whatever order; AssertionError with what came instead."""
        missing = set(wanted) - set(self.lines)
        while missing:
            try:
                line = self._queue.get(timeout=WAIT_S)
            except Empty:
                raise AssertionError(f"{sorted(missing)} did not come; what came: {self.lines}") from None
            self._lines.append(line)
            missing.discard(line)

    def say(self, line: str) -> None:
        """Give it a line on its standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def rest(self) -> list[str]:
        """Let it end, and give all its lines: programs end with their standard input."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(WAIT_S)
        self._reader.join()
        return self.lines

    def end(self) -> None:
        """Kill it, as a test ends."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


Starts = Callable[..., Use]
"""Starts a use of a client with the address of a served world; what a JVM is told besides comes after."""


def stored(lab: Lab, topic: str) -> list[str]:
    """The ids of the messages that a topic has."""
    with lab.world.door:
        return [r.unique_key for r in lab.history.records() if r.kind == "MessageStored" and r.topic == topic]


def compiled(version: str, source: str, made: Path) -> str:
    """The class path of a client in a version and of a program that uses it."""
    return rocketmq.compiled(CLIENTS / version, HERE / source, made)


@pytest.fixture(scope="session", params=VERSIONS)
def classpath(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The remoting client in each version."""
    return compiled(request.param, "Uses.java", tmp_path_factory.mktemp("uses"))


@pytest.fixture(scope="session")
def classpath_v5(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The client of 5.x over gRPC."""
    return compiled(JAVA_V5, "UsesV5.java", tmp_path_factory.mktemp("uses-v5"))


@pytest.fixture
def uses(tmp_path: Path) -> Iterator[Starts]:
    """Starts commands, and ends them with the test."""
    started: list[Use] = []

    def begin(*command: str) -> Use:
        started.append(Use(tmp_path, *command))
        return started[-1]

    yield begin
    for use in started:
        use.end()


def java(home: Path, classpath: str, *arguments: str) -> tuple[str, ...]:
    return ("java", "-Xmx200m", f"-Duser.home={home}", "-cp", classpath, *arguments)


@pytest.fixture
def start(classpath: str, uses: Starts, tmp_path: Path) -> Starts:
    """Starts a use of Java's remoting client."""
    return lambda use, name_server, *told: uses(*java(tmp_path, classpath, *told, "Uses", use, name_server))


@pytest.fixture
def start_v5(language: str, request: pytest.FixtureRequest, uses: Starts, tmp_path: Path) -> Starts:
    """Starts a use of the 5.x client in a language."""
    if language == "java":
        program = java(tmp_path, request.getfixturevalue("classpath_v5"), "UsesV5")
    elif language == "node":
        program = ("node", str(HERE / "uses.js"))
    else:
        program = (sys.executable, str(HERE / "uses.py"))
    return lambda use, endpoints: uses(*program, use, endpoints)
