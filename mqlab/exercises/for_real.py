"""RocketMQ's own Python client of 5.x with a served world, in processes of its own: a lab's programs, or somebody's.

Nothing here is the same twice, since a real client keeps real time: no check and no bet stands on it. Where the client
or sockets are missing, `missing()` says so in a sentence.
"""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from queue import Empty, Queue
from tempfile import TemporaryDirectory
from threading import Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from mqlab.client.v5 import ClientException, Message, Producer
from mqlab.errors import LearnerError, MissingExtraError
from mqlab.lab import Lab
from mqlab.protocol.record import decode_record
from mqlab.scenarios import get
from mqlab.views import Table

if TYPE_CHECKING:
    from mqlab.serving import Serving

PROGRAMS = Path(__file__).with_name("client_programs.py")
ORDERS, INVOICES, BROKER = "Orders", "Invoices", "broker-a"
COUNT, EVERY_MS = 10, 1_000
WAIT_S, LOOK_S, DAY_S = 20.0, 0.1, 90.0
DOWN_S, LAST_S = 5.0, 1.0


def missing() -> str:
    """Why the real client cannot be used here, in a sentence; empty where it can."""
    if sys.platform == "emscripten":
        return "In a browser there are no sockets and no processes: what follows are recorded sessions."
    try:
        version("rocketmq-python-client")
    except PackageNotFoundError:
        return "RocketMQ's client is not installed (pip install 'mqlab[clients]'): what follows are recorded sessions."
    return ""


def shop(seed: int) -> Lab:
    """A name server, a broker and a proxy, with topics for orders and invoices, in which nothing happens."""
    return get("served").build(seed, parameters={"proxies": 1, "topics": f"{ORDERS};{INVOICES}"})


class RealClient:
    """A program with the real client, in a process of its own; its log and its files lie in a directory of its own.

        with lab.serve() as serving, RealClient("send", serving) as client:
            client.until("sent order 0")

    `lines` are what it has said so far. MissingExtraError where there is no client.
    """

    def __init__(self, program: str, serving: Serving, *, work: str = "", directory: str = "") -> None:
        if missing():
            raise MissingExtraError("rocketmq-python-client", "clients")
        self.lines: list[str] = []
        self._come: Queue[str | None] = Queue()
        self._said_all = False
        self._own = TemporaryDirectory()
        arguments = [program, serving.endpoints]
        if work:
            Path(directory, "work.py").write_text(work, encoding="utf-8")
            arguments.append(directory)
        self._process = subprocess.Popen(
            [sys.executable, str(PROGRAMS), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # The client writes a log into the home directory.
            env={**os.environ, "HOME": self._own.name},
        )
        self._reader = Thread(target=self._read, name="a real client's lines", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._come.put(line.rstrip())
        self._come.put(None)

    def until(self, wanted: str, seconds: float = WAIT_S) -> Self:
        """Wait until a line has this in it. LearnerError, with what came instead, when it does not come in time, or the
        program ends before.
        """
        end_s = time.monotonic() + seconds
        while (line := self._next(end_s)) is not None:
            if wanted in line:
                return self
        said = "; ".join(self.lines[-5:]) or "nothing"
        if self._said_all:
            raise LearnerError(f"the client has ended and did not say {wanted!r}", f"it said: {said}")
        raise LearnerError(f"the client did not say {wanted!r} in {seconds:g} s", f"it said: {said}")

    def for_seconds(self, seconds: float) -> Self:
        """Let it work for so long."""
        end_s = time.monotonic() + seconds
        while self._next(end_s) is not None:
            pass
        return self

    def _next(self, end_s: float) -> str | None:
        """Its next line; None where none comes until then, or no more at all."""
        left_s = end_s - time.monotonic()
        if self._said_all or left_s <= 0:
            return None
        try:
            return self._take(self._come.get(timeout=left_s))
        except Empty:
            return None

    def _take(self, line: str | None) -> str | None:
        if line is None:
            self._said_all = True
        else:
            self.lines.append(line)
        return line

    @property
    def is_over(self) -> bool:
        """Has the program ended?"""
        return self._process.poll() is not None

    def kill(self) -> None:
        """End it (kill -9)."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        while not self._said_all:
            self._take(self._come.get())
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._own.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()


def play_for_real(work: Callable[..., Any], seed: int = 7) -> Table | str:
    """Play an application with the real client: ten orders, the broker is killed, the application, too. It takes a
    minute or two, and up to five with one that stops sending invoices.

    It gets what the check gives it, with the official client behind. The function's own text alone goes to another
    process: what it uses must be defined or imported in it. Says which invoices are stored then, or in a sentence why
    nothing was played.
    """
    if missing():
        return missing()
    try:
        source = inspect.getsource(work)
    except OSError:
        return "The text of the application is not there: define it in a cell of a notebook, or in a file."
    if "raise NotSolvedYet" in source:
        return "The application is not written yet."
    return play_source(source, seed)


def play_source(source: str, seed: int) -> Table:
    """The same with the text of an application, where the client is there."""
    lab = shop(seed)
    seller = lab.producer_v5(node="shop")
    lab.run(seller.start())
    with TemporaryDirectory() as directory, lab.serve() as serving:
        with RealClient("application", serving, work=source, directory=directory) as client:
            client.until("the producer has started")
            with lab.world.door:
                seller.node.spawn(_sell(seller), "orders")
            _wait(client, lambda: _stored(lab) > 2)
            lab.crash(BROKER)
            client.for_seconds(DOWN_S)
            lab.restart(BROKER)
            had = _stored(lab)
            _wait(client, lambda: _stored(lab) > had)
            is_over = client.is_over
        if not is_over:
            with RealClient("application", serving, work=source, directory=directory) as client:
                _wait(client, lambda: min(_invoices(lab)) > 0)
                client.for_seconds(LAST_S)
                is_over = client.is_over
    title = f"the application is over: {client.lines[-1]}" if is_over else "with the real client"
    return Table(title, ("order", "invoices stored"), list(enumerate(_invoices(lab))))


def _wait(client: RealClient, condition: Callable[[], bool]) -> None:
    """Until it holds; an application that is over is not waited for, and none is for ever."""
    end_s = time.monotonic() + DAY_S
    while not condition() and not client.is_over and time.monotonic() < end_s:
        client.for_seconds(LOOK_S)


async def _sell(seller: Producer) -> None:
    """Send the orders, each until it is stored."""
    for number in range(COUNT):
        await seller.node.sleep(EVERY_MS)
        while True:
            try:
                await seller.send(Message(ORDERS, f"order {number}", keys=f"order-{number}"))
                break
            except ClientException:
                await seller.node.sleep(EVERY_MS)


def _stored(lab: Lab) -> int:
    """How many invoices have been stored so far, also while the broker is away."""
    with lab.world.door:
        return sum(1 for _ in lab.history.find("MessageStored", topic=INVOICES))


def _invoices(lab: Lab) -> list[int]:
    """How many invoices the broker has for each order."""
    with lab.world.door:
        store = lab.brokers[0].running().message_store
        found = [store.get_message("look", INVOICES, queue_id, 0, 1_000) for queue_id in range(8)]
        bodies = Counter(decode_record(record).body for each in found if each is not None for record in each.messages)
    return [bodies[f"invoice for order {number}".encode()] for number in range(COUNT)]
