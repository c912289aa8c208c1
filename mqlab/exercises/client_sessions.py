"""Sessions of RocketMQ's own clients with a served world, as they were recorded: they play everywhere, as they went.

Python's client of 5.x speaks to the proxy, the one for Java of 4.x to name server and broker. `recorded(name)` is the
world at the end of a session, with its history. tests/clients/record_sessions.py has recorded them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mqlab.errors import LearnerError
from mqlab.lab import Lab
from mqlab.replay import read_report
from mqlab.scenarios import get
from mqlab.trace.record import Record
from mqlab.views import Table

DIRECTORY = Path(__file__).with_name("recorded")

_WITH_PROXY: Mapping[str, Any] = {"proxies": 1, "topics": "Orders"}
SESSIONS: Mapping[str, Mapping[str, Any]] = {
    "python-begins": _WITH_PROXY,
    "python-outages": _WITH_PROXY,
    "python-ack-lost": _WITH_PROXY,
    "python-answer-lost": _WITH_PROXY,
    "java-4": {"topics": "Uses"},
}
"""The sessions there are, and the parameters of the scenario `served` that each was recorded with."""


class Call(NamedTuple):
    """A call or request that came from outside: when, counted from the first one, over which connection, and what."""

    at_s: float
    connection: int
    to: str
    name: str
    ms: float
    """The time of its world."""


def recorded(name: str) -> Lab:
    """The world of a session at its end. LearnerError where there is no such session.

    What came from the client happens at its time, whatever else the world does meanwhile: so a session fits also a
    later mqlab, whose broker takes other steps to the same answers (`mqlab replay` wants the same steps).
    """
    if name not in SESSIONS:
        raise LearnerError(f"no session {name!r} was recorded", f"choose among {', '.join(SESSIONS)}")
    report = read_report(str(DIRECTORY / f"{name}.mqlab"))
    lab = get(report["scenario"]).build(report["seed"], parameters=report["parameters"])
    for _, at_us, verb, arguments in report["actions"]:
        lab.world.run_to(at_us)
        lab.check_action(verb, arguments)
        lab.act(verb, **arguments)
    lab.world.run_to(report["now_us"])
    return lab


def calls(lab: Lab) -> list[Call]:
    """What programs outside have asked a served world, in its order."""
    came = {
        record.connection
        for record in lab.history.find("ConnectionOpened")
        if record.local.startswith("127.") or record.remote.startswith("127.")
    }
    asked: list[Record] = [record for record in lab.history.find("RequestReceived") if record.connection in came]
    first_ms = asked[0].ts_ms if asked else 0.0
    return [
        Call((each.ts_ms - first_ms) / 1_000, each.connection, each.node, each.request_name, each.ts_ms)
        for each in asked
    ]


def call_table(title: str, asked: Iterable[Call]) -> Table:
    """Calls as a table: when, to whom, what."""
    return Table(title, ("s", "to", "call"), [(f"{each.at_s:.1f}", each.to, each.name) for each in asked])
