"""Records the sessions of lab 30, which it plays everywhere: python -m tests.clients.record_sessions [NAME]

It takes five minutes, and what `make clients-test` fetches. What a client says of its machine is put in other words
first: a session tells of the client alone. Bets of the lab are about these sessions, so a new one may want new words.

A session is recorded anew when its replay does not agree any more: tests/lab/test_client_sessions.py says so.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from mqlab.exercises.client_sessions import DIRECTORY, SESSIONS
from mqlab.lab import Lab
from mqlab.replay import report_of
from mqlab.scenarios import get
from mqlab.serving import Serving

from .conftest import VERSIONS, Use, compiled, java

PROGRAMS = Path("mqlab/exercises/client_programs.py")
SOMEBODY = """
import runpy, socket, sys
socket.gethostname = lambda: "shop"
import rocketmq.v5.util as util
util.Misc.get_local_ip = staticmethod(lambda: "127.0.0.1")
util.Misc.get_os_description = staticmethod(lambda: "Linux")
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a program with Python's client on a machine that is called "shop"."""

IDLE_S = 72


class Recording:
    """A served world, and the programs that use it."""

    def __init__(self, home: Path, lab: Lab, serving: Serving) -> None:
        self.home = home
        self.lab = lab
        self.serving = serving
        self.uses: list[Use] = []

    def python(self, program: str) -> Use:
        """Start a program with Python's client, which keeps its own log in its home directory."""
        self.uses.append(Use(self.home, sys.executable, "-c", SOMEBODY, str(PROGRAMS), program, self.serving.endpoints))
        return self.uses[-1]

    def java(self, use: str) -> Use:
        """Start a use of the 4.x client."""
        classpath = compiled(VERSIONS[0], "Uses.java", self.home)
        told = ("-Drocketmq.client.name=shop", "Uses", use, self.serving.name_server)
        self.uses.append(Use(self.home, *java(self.home, classpath, *told)))
        return self.uses[-1]

    def outage(self, up_s: float, down_s: float) -> None:
        """Let the broker work for a while, kill it, and start it again."""
        time.sleep(up_s)
        self.lab.crash("broker-a")
        time.sleep(down_s)
        self.lab.restart("broker-a")


def begins(of: Recording) -> None:
    """One message, and then nothing."""
    of.python("send").until("sent order 0")
    time.sleep(IDLE_S)


def outages(of: Recording) -> None:
    """An order every two seconds; the broker is killed twice, the second time while the proxy asks for a route."""
    of.python("send_on").until("order 0: sent")
    of.outage(3.3, 8.0)
    of.outage(6.0, 7.0)
    time.sleep(45)


def lost(source: str, target: str) -> Callable[[Recording], None]:
    """What is on its way from `source` to `target` while a message is acknowledged is lost."""

    def play(of: Recording) -> None:
        of.python("send").until("sent order 0")
        packer = of.python("receive")
        packer.until("received order 0, attempt 1")
        of.lab.act("cut", source=source, target=target)
        packer.until("ack of order 0, attempt 1: ProxyTimeoutException")
        of.lab.act("disconnect", a=source, b=target)
        of.lab.act("heal", source=source, target=target)
        time.sleep(25)

    return play


def with_java(of: Recording) -> None:
    """An order every three seconds, and somebody who listens; the broker is killed once."""
    of.java("orders").until("order 0: sent")
    of.outage(41.0, 7.0)
    time.sleep(IDLE_S - 48)


PLAYED: Mapping[str, Callable[[Recording], None]] = {
    "python-begins": begins,
    "python-outages": outages,
    "python-ack-lost": lost("proxy-1", "broker-a"),
    "python-answer-lost": lost("broker-a", "proxy-1"),
    "java-4": with_java,
}


def record(name: str) -> None:
    """Record a session anew."""
    lab = get("served").build(30, parameters=dict(SESSIONS[name]))
    with TemporaryDirectory() as home, lab.serve() as serving:
        recording = Recording(Path(home), lab, serving)
        try:
            PLAYED[name](recording)
        finally:
            for use in recording.uses:
                use.end()
        time.sleep(1)
    path = DIRECTORY / f"{name}.mqlab"
    path.write_text(json.dumps(report_of(lab), sort_keys=True, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    for asked in sys.argv[1:] or PLAYED:
        record(asked)
