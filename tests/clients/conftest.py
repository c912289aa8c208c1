"""RocketMQ's own clients, which `make clients-test` fetches, and programs that use them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, Queue
from threading import Thread

import pytest

JARS = Path(os.environ.get("MQLAB_CLIENTS", ".cache/clients"))
VERSIONS = ("4.9.8", "5.3.3")
PYTHON = os.environ.get("MQLAB_CLIENTS_PYTHON", ".venv-clients/bin/python")
SOURCE = Path(__file__).with_name("Uses.java")
WAIT_S = 60


class Use:
    """One use of a client, in a process of its own; its lines come in a queue."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        self._queue: Queue[str] = Queue()
        Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._queue.put(line.strip())

    def until(self, *wanted: str) -> None:
        """Wait until all these lines have come, in whatever order; AssertionError with what came instead."""
        missing = set(wanted) - set(self.lines)
        while missing:
            try:
                line = self._queue.get(timeout=WAIT_S)
            except Empty:
                raise AssertionError(f"{sorted(missing)} did not come; what came: {self.lines}") from None
            self.lines.append(line)
            missing.discard(line)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


Starts = Callable[[str, str], Use]


@pytest.fixture(scope="session", params=VERSIONS)
def classpath(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The client's jars and the program, compiled with them."""
    jars = JARS.absolute() / request.param
    assert jars.is_dir(), f"{jars} is not there: make clients-test fetches it"
    compiled = tmp_path_factory.mktemp(f"uses-{request.param}")
    subprocess.run(["javac", "-nowarn", "-d", str(compiled), "-cp", f"{jars}/*", str(SOURCE)], check=True)
    return f"{compiled}:{jars}/*"


@pytest.fixture
def start(classpath: str) -> Iterator[Starts]:
    """Starts a use, and ends it with the test."""
    started: list[Use] = []

    def begin(use: str, name_server: str) -> Use:
        started.append(Use("java", "-Xmx200m", "-cp", classpath, "Uses", use, name_server))
        return started[-1]

    yield begin
    for use in started:
        use.end()


@pytest.fixture
def start_python() -> Iterator[Starts]:
    """The same with the Python client, in the environment that has it."""
    started: list[Use] = []

    def begin(use: str, endpoints: str) -> Use:
        started.append(Use(PYTHON, str(Path(__file__).with_name("uses.py")), use, endpoints))
        return started[-1]

    yield begin
    for use in started:
        use.end()
