"""Fault plans: what goes wrong in a world, and when, drawn from its seed and written as a fault schedule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mqlab.errors import LearnerError
from mqlab.lab.processes import BrokerProcess, NameServerProcess
from mqlab.sim.choices import Choices
from mqlab.sim.faults import FAULTS
from mqlab.sim.schedule import Fault, parse_schedule
from mqlab.store import FlushDiskType

if TYPE_CHECKING:
    from mqlab.lab import Lab

Plan = tuple[str, ...]
"""Lines of a fault schedule, in order of time: ("at 3.25s: crash broker-a for 4s", ...)."""

MOST_FAULTS = 4
MOST_DELAY_MS = 3_000
MOST_SLOW_MS = 2_000
"""From a second on the page cache counts as busy: half of the slow disks are over it."""
MOST_FREE_BYTES = 16_384
"""What a full disk may have left: it ends within a message, within a batch, or after some."""
MOST_SPARE_BYTES = 262_144
"""What one in four may have left: old files of it go before it is full."""
MOST_DRIFT_PPM = 50_000
"""A clock that is 5 % wrong: in two minutes 6 s, more than any tolerance."""
WIDE = "drawn"
"""The scenario whose plans also cut clients off from everybody, and leave disks some room: those of all others stay as
they are, since data sets have them.
"""
DRAWN = tuple(verb for verb, kind in FAULTS.items() if kind.drawn_for)
DURATIONS_MS = ((6, 50, 2_000), (3, 2_000, 15_000), (1, 15_000, 150_000))
"""(weight, from, to): most faults are short; one in ten may outlast a lock (60 s) and a silent client (120 s)."""


def plan_from_text(text: str) -> Plan:
    """The plan in a text with one fault a line, or with faults separated by ";". LearnerError for a bad line."""
    lines = tuple(line.strip() for part in text.splitlines() for line in part.split(";") if line.strip())
    parse_schedule("\n".join(lines))
    return lines


def plan_text(plan: Plan) -> str:
    """The plan as one line."""
    return "; ".join(plan)


def faults_of(plan: Plan) -> list[Fault]:
    """What is done to the world, in order of time, with what ends each fault."""
    return parse_schedule("\n".join(plan))


def draw_plan(lab: Lab, verbs: Iterable[str], window_ms: int) -> Plan:
    """One to four faults of these kinds for a world that was just built, within `window_ms` from now.

    The draws come from the world's seed, at choice points of their own, so the world itself is not moved by them. No
    two faults hold at one time on the same process, link, disk or clock.
    """
    return _Drawing(lab, tuple(verbs), window_ms).plan()


class _Drawing:
    """The draws of one plan."""

    def __init__(self, lab: Lab, verbs: tuple[str, ...], window_ms: int) -> None:
        self._choices = Choices(lab.seed)
        self._begin_ms = round(lab.now_ms) + 1
        self._window_ms = window_ms
        self._brokers = [p.name for p in lab.processes.values() if isinstance(p, BrokerProcess)]
        self._name_servers = [p.name for p in lab.processes.values() if isinstance(p, NameServerProcess)]
        named = {p.name: p.settings["broker_name"] for p in lab.processes.values() if isinstance(p, BrokerProcess)}
        self._copies = {name: [one for one in named if one != name and named[one] == named[name]] for name in named}
        """Broker -> its slaves or its master."""
        servers = {*self._brokers, *self._name_servers}
        self._clients = [name for name in lab.processes if name not in servers]
        self._taken: list[tuple[str, int, int]] = []
        for verb in verbs:
            if verb not in DRAWN:
                raise LearnerError(f"{verb!r} cannot be drawn", f"choose among {', '.join(DRAWN)}")
        self._verbs = verbs
        self._is_wide = lab.origin is not None and lab.origin.scenario == WIDE

    def plan(self) -> Plan:
        """Draw the faults, and leave out what would come on top of another one."""
        drawn = [self._fault() for _ in range(1 + self._choose("number", MOST_FAULTS))] if self._verbs else []
        return tuple(line for _, line in sorted(one for one in drawn if one is not None))

    def _choose(self, point: str, n: int) -> int:
        return self._choices.choose(f"faults/{point}", n)

    def _one(self, point: str, names: Sequence[str]) -> str:
        return names[self._choose(point, len(names))]

    def _duration_ms(self) -> int:
        weight = self._choose("duration", sum(w for w, _, _ in DURATIONS_MS))
        for share, least, most in DURATIONS_MS:
            if weight < share:
                return least + self._choose("length", most - least)
            weight -= share
        raise AssertionError("the weights cover every draw")

    def _fault(self) -> tuple[int, str] | None:
        verb = self._one("kind", self._verbs)
        at_ms = self._begin_ms + self._choose("time", self._window_ms)
        duration_ms = self._duration_ms()
        text, resources = self._target(verb) or ("", [])
        if not text or not self._take(resources, at_ms, at_ms + duration_ms):
            return None
        lasting = f" for {duration_ms}ms" if FAULTS[verb].undo else ""
        return at_ms, f"at {at_ms}ms: {text}{lasting}"

    def _take(self, resources: list[str], begin_ms: int, end_ms: int) -> bool:
        if any(what in resources and begin_ms <= until and since <= end_ms for what, since, until in self._taken):
            return False
        self._taken += [(what, begin_ms, end_ms) for what in resources]
        return True

    def _target(self, verb: str) -> tuple[str, list[str]] | None:
        """The fault without its times, and what it holds meanwhile."""
        kind = FAULTS[verb]
        match kind.targets:
            case "node":
                name = self._one("node", self._brokers) if kind.drawn_for == "brokers" else self._anybody()
                held = name if kind.holds == "process" else f"the {kind.holds} of {name}"
                return f"{verb} {name}{self._amount(verb)}", [held]
            case "left | right":
                return self._two_sides(verb)
            case "source > target":
                return self._one_direction(verb)
        pair = self._pair("node")
        return None if pair is None else (f"{verb} {pair[0]} | {pair[1]}", [])

    def _anybody(self) -> str:
        # Servers matter to everybody, so a broker is drawn as often as all clients together.
        groups = [names for names in (self._brokers, self._clients, self._name_servers) if names]
        weights = [0, 0, 1, 1, 2]
        names = groups[min(weights[self._choose("role", len(weights))], len(groups) - 1)]
        return self._one("node", names)

    def _amount(self, verb: str) -> str:
        match verb:
            case "drift":
                ppm = 1 + self._choose("drift", MOST_DRIFT_PPM)
                return f" by {ppm if self._choose('fast', 2) else -ppm}"
            case "fill_disk":
                has_spare = self._is_wide and self._choose("spare", 4) == 0
                return f" by {self._choose('free', MOST_SPARE_BYTES if has_spare else MOST_FREE_BYTES)}"
            case "delay":
                return f" by {1 + self._choose('delay', MOST_DELAY_MS)}ms"
            case "slow_disk":
                return f" by {1 + self._choose('slow', MOST_SLOW_MS)}ms"
        return ""

    def _pair(self, point: str) -> tuple[str, str] | None:
        """A server and somebody who talks to it."""
        server = self._one(point, [*self._brokers, *self._brokers, *self._name_servers])
        others = [*self._clients, *(self._name_servers if server in self._brokers else self._brokers)]
        others += self._copies.get(server, [])
        return (server, self._one("peer", others)) if others else None

    def _two_sides(self, verb: str) -> tuple[str, list[str]] | None:
        pair = self._pair("node")
        if pair is None:
            return None
        left, right = pair[0], [pair[1]]
        who_is_alone = self._choose("alone", 4 if self._is_wide else 3)
        if who_is_alone < (2 if self._is_wide else 1):
            left = pair[who_is_alone]
            right = [n for n in [*self._brokers, *self._clients, *self._name_servers] if n != left]
        links = [link for other in right for link in (f"{left}>{other}", f"{other}>{left}")]
        return f"{verb} {left} | {' '.join(right)}", links

    def _one_direction(self, verb: str) -> tuple[str, list[str]] | None:
        pair = self._pair("node")
        if pair is None:
            return None
        source, target = pair if self._choose("direction", 2) else pair[::-1]
        return f"{verb} {source} > {target}{self._amount(verb)}", [f"{source}>{target}"]


def flushes_before_the_answer(broker: BrokerProcess) -> bool:
    """Does this broker flush a message before it is acknowledged (SYNC_FLUSH)?"""
    return broker.store.config.flush_disk_type is FlushDiskType.SYNC_FLUSH
