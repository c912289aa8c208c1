"""`mqlab serve` beside a real RocketMQ 5.3.3 on the same machine: start, memory, and what a Java client gets through.

`python -m benchmarks.serving jump` measures a jump of time alone, in a process that may take the compiled copy.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import psutil

from benchmarks.harness import Figure, beside, figure, shown
from mqlab.fast.build import environment, state
from mqlab.lab import Lab
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.headers import SendMessageRequestHeader
from tests.real.rocketmq import JARS, RealRocketMQ, compiled
from tests.serving.conftest import Program

THREADS, MESSAGES = 16, 20_000
DELAYED = 10_000
ROUNDS = 3
SERVE = (sys.executable, "-P", "-m", "mqlab", "serve", "--port", "0")


class Served(NamedTuple):
    """A server that takes connections."""

    name_server: str
    ready_ms: float
    processes: list[psutil.Process]

    @property
    def memory_mb(self) -> float:
        return sum(process.memory_info().rss for process in self.processes) / (1 << 20)


@contextmanager
def own(env: Mapping[str, str] | None = None) -> Iterator[Served]:
    """A process of `mqlab serve`, with a proxy."""
    with subprocess.Popen(SERVE, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        yield Served(told["name_server"], told["ready_ms"], [psutil.Process(process.pid)])
        process.terminate()


@contextmanager
def real() -> Iterator[Served]:
    """A name server, a broker and a proxy of the real one, with 512 MB each."""
    began_s = time.monotonic()
    with RealRocketMQ() as rocketmq:
        rocketmq.broker()
        rocketmq.proxy()
        ready_ms = (time.monotonic() - began_s) * 1_000
        yield Served(rocketmq.name_server, ready_ms, [psutil.Process(p.process.pid) for p in rocketmq.processes])


def beside_the_real_one() -> Iterable[Figure]:
    """Start, memory and sends, in turns; where the real one was not fetched, nothing."""
    if not JARS.is_dir():
        print(f"serving: there is no {JARS} (make real-jars)")
        return
    with TemporaryDirectory() as classes:
        classpath = compiled(JARS, Path(__file__).with_name("Load.java"), Path(classes))
        load = ["java", "-Xmx200m", "-cp", classpath, "Load"]
        contenders = {"real": real, "plain": own}
        if state() == "current":
            contenders["compiled"] = lambda: own(environment())
        measured: dict[str, list[tuple[float, float, float, float]]] = {name: [] for name in contenders}
        for _ in range(ROUNDS):
            for name, contender in contenders.items():
                with contender() as served:
                    before_mb = served.memory_mb
                    done = subprocess.run(
                        [*load, served.name_server, str(THREADS), str(MESSAGES)],
                        stdout=subprocess.PIPE, text=True, check=True,
                    )  # fmt: skip
                    measured[name].append((served.ready_ms, before_mb, served.memory_mb, float(done.stdout)))
    medians = [[median(values) for values in zip(*measured[name], strict=True)] for name in contenders]
    ready_ms, fresh_mb, used_mb, rate = zip(*medians, strict=True)
    within_ms, within_mb = 300 / ready_ms[0], 80 / fresh_mb[0]
    yield figure("mqlab serve: ready after", ready_ms[1], "ms", versus=ready_ms[0], aim=within_ms, better="lower")
    yield figure("mqlab serve: memory, fresh", fresh_mb[1], "MB", versus=fresh_mb[0], aim=within_mb, better="lower")
    yield beside(f"mqlab serve: memory, {MESSAGES:,} messages of 1 KB", used_mb[1], "MB", used_mb[0])
    yield beside(f"Java sends 1 KB, {THREADS} threads, plain", rate[1], "messages/s", rate[0])
    if "compiled" in contenders:
        name = f"Java sends 1 KB, {THREADS} threads, compiled"
        yield figure(name, rate[2], "messages/s", versus=rate[0], aim=0.5, better="higher")


def fresh_world() -> Figure:
    """A name server and a broker, made, served and closed, as between two tests."""
    times_s = [time.perf_counter()]
    for seed in range(20):
        lab = Lab(seed, history=False)
        lab.name_server()
        lab.broker()
        with lab.serve():
            times_s.append(time.perf_counter())
    took_ms = median((after - before) * 1_000 for before, after in pairwise(times_s))
    return figure("a fresh world, served", took_ms, "ms", aim=20, better="lower")


def jump() -> float:
    """How many seconds two hours take in which 10,000 delayed messages come due."""
    lab = Lab(7, history=False)
    lab.name_server()
    lab.broker()
    with lab.serve() as serving:
        program = Program(f"127.0.0.1:{serving.ports['broker-a']}")
        for number in range(DELAYED):
            header = SendMessageRequestHeader("P", "T", "TBW102", 4, number % 4, 0, 0, 0, "DELAY\00117\2")
            assert program.ask(RequestCode.SEND_MESSAGE, header, bytes(100)).code == 0
        began_s = time.perf_counter()
        serving.fast_forward("2h")
        took_s = time.perf_counter() - began_s
        program.close()
        # A connection over which nothing came for two minutes of the jump is closed.
        reader = Program(f"127.0.0.1:{serving.ports['broker-a']}")
        assert all(reader.pull(DELAYED // 4 - 1, queue_id=queue_id).body for queue_id in range(4))
        reader.close()
    return took_s


def jumps() -> Iterable[Figure]:
    """Two hours in a jump, plain and compiled."""
    yield figure(f"jump of 2 h, {DELAYED:,} delayed messages", jump(), "s", aim=2, better="lower")
    if state() == "current":
        done = subprocess.run(
            [sys.executable, "-P", "-m", "benchmarks.serving", "jump"],
            env=environment(), capture_output=True, text=True, check=True,
        )  # fmt: skip
        yield shown("the same, compiled", float(done.stdout), "s")


def serving() -> Iterable[Figure]:
    """All figures of the door."""
    yield fresh_world()
    yield from jumps()
    yield from beside_the_real_one()


if __name__ == "__main__":
    print(jump())
