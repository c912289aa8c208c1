"""Which scenario tells the story of a lab's main scene, for a teacher who shows it before a class."""

from __future__ import annotations

from mqlab.errors import LearnerError
from mqlab.scenarios.registry import Scenario, get

STORYBOARDS: dict[str, tuple[str, ...]] = {
    "00": ("demo",),
    "01": ("two-brokers",),
    "02": ("orders-cut-off",),
    "03": ("three-ways",),
    "04": ("broker-hangs",),
    "05": ("rivals",),
    "06": ("demo-slow-consumer", "busy-broker"),
    "07": ("member-killed", "demo-two-brokers"),
    "08": ("new-groups",),
    "09": ("demo-retry", "poison"),
    "10": ("pull-schedule",),
    "11": ("take-or-own", "demo-pop", "four-ways"),
    "12": ("pop-check-points",),
    "13": ("merge-buffer",),
    "14": ("in-order",),
    "15": ("owner-killed", "owner-wakes"),
    "16": ("half-message",),
    "17": ("accident", "sync-replication"),
    "18": ("who-reads",),
    "19": ("three-copies",),
    "31": ("three-cousins",),
}
"""For each lab the scenarios whose captions tell it; the first one is its main scene."""


def story_of(name: str) -> Scenario:
    """The scenario of a lab's main scene ("06"), or of that name; LearnerError where there are no captions."""
    scenario = get(STORYBOARDS[name][0] if name in STORYBOARDS else name)
    if not scenario.captions:
        raise LearnerError(
            f"the scenario {name!r} has no captions", f"give the number of a lab: {', '.join(STORYBOARDS)}"
        )
    return scenario
