"""Fault schedules: faults as data, a line each, part of a scenario and shown in the trace.

at 12.5s: partition broker-a | broker-b for 3s
at 20s: freeze consumer-1 for 130s
at 30s: power_off broker-a
at 31s: restart broker-a
at 40s: delay producer-1 > broker-a by 250ms for 5s
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ..errors import LearnerError
from .faults import FAULTS

_LINE = re.compile(r"at\s+(?P<at>\S+?)\s*:\s*(?P<verb>\w+)\s+(?P<rest>.*)$")
_FOR = re.compile(r"\s+for\s+(\S+)$")
_BY = re.compile(r"\s+by\s+(\S+)$")
_TIME = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)$")
_UNIT_US = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}

UNDO = {
    "crash": "restart",
    "power_off": "restart",
    "freeze": "thaw",
    "partition": "unpartition",
    "cut": "heal",
    "delay": "delay",
    "drift": "drift",
}


class Fault(NamedTuple):
    """One line of a schedule: at `at_us`, do `verb(**arguments)`."""

    at_us: int
    verb: str
    arguments: dict[str, Any]


def parse_time_us(text: str) -> int:
    """Microseconds of "250ms", "12.5s", "3m" or "1h"."""
    match = _TIME.match(text.strip())
    if not match:
        raise LearnerError(f"{text!r} is not a time", "write it like 250ms, 12.5s, 3m or 1h")
    return round(float(match[1]) * _UNIT_US[match[2]])


def parse_schedule(text: str) -> list[Fault]:
    """The faults of a schedule in order of time; "for" adds the fault that undoes it. LearnerError names a bad line."""
    faults: list[Fault] = []
    for number, line in enumerate(text.strip().splitlines(), 1):
        stripped = line.split("#")[0].strip()
        if stripped:
            faults.extend(_parse_line(stripped, number))
    return sorted(faults, key=lambda fault: fault.at_us)


def _parse_line(line: str, number: int) -> list[Fault]:
    match = _LINE.match(line)
    if not match:
        raise LearnerError(f"line {number} of the fault schedule, {line!r}, cannot be read", _EXAMPLE)
    verb, rest = match["verb"], f" {match['rest'].strip()}"
    if verb not in FAULTS:
        raise LearnerError(f"line {number}: there is no fault {verb!r}", f"use one of {', '.join(FAULTS)}")
    at_us = parse_time_us(match["at"])
    lasting = _FOR.search(rest)
    if lasting:
        rest = rest[: lasting.start()]
    amount = _BY.search(rest)
    if amount:
        rest = rest[: amount.start()]
    arguments = _arguments(verb, rest.strip(), amount[1] if amount else None, number)
    faults = [Fault(at_us, verb, arguments)]
    if lasting:
        if verb not in UNDO:
            raise LearnerError(f"line {number}: {verb} cannot last 'for' a time", "leave 'for' away")
        undone = (
            {**arguments, "ms": 0} if verb == "delay" else {**arguments, "ppm": 0} if verb == "drift" else arguments
        )
        faults.append(Fault(at_us + parse_time_us(lasting[1]), UNDO[verb], undone))
    return faults


def _arguments(verb: str, rest: str, amount: str | None, number: int) -> dict[str, Any]:
    if verb in ("partition", "unpartition"):
        left, bar, right = rest.partition("|")
        if not bar:
            raise LearnerError(f"line {number}: {verb} needs two sides", _EXAMPLE)
        return {"left": left.split(), "right": right.split()}
    if verb in ("cut", "heal", "delay"):
        source, arrow, target = (part.strip() for part in rest.partition(">"))
        if not arrow:
            raise LearnerError(f"line {number}: {verb} needs a direction", f"at 3s: {verb} producer-1 > broker-a")
        arguments: dict[str, Any] = {"source": source, "target": target}
        if verb == "delay":
            arguments["ms"] = parse_time_us(amount or "0ms") / 1_000
        return arguments
    if verb == "disconnect":
        a, _, b = rest.partition("|")
        return {"a": a.strip(), "b": b.strip()}
    if verb == "drift":
        return {"node": rest, "ppm": int(amount or 0)}
    return {"node": rest}


_EXAMPLE = "write it like: at 12.5s: partition broker-a | broker-b for 3s"
