"""What people do in a drawn world while it plays: groups stand still or begin anew, topics grow and are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mqlab.client.service_state import ServiceState
from mqlab.scenarios.drawing.parts import ACTS, Part, World
from mqlab.scenarios.lite_pull import seek_all_to_begin
from mqlab.sim.timer import Timer

if TYPE_CHECKING:
    from mqlab.lab import Lab

Members = Mapping[str, Sequence[Any]]
"""The consumers of each group."""
FOR_MS, QUEUES = 1_000, 4
"""What a line means that does not say it."""


def plan_acts(lab: Lab, world: World, members: Members) -> None:
    """Let each act happen at its time, or at once if that is over."""
    for part in world:
        if part.kind in ACTS:
            at_us = max(part.at_ms * 1_000, lab.world.now_us + 1)
            lab.world.push(at_us, Timer(lab.world.life, part.kind, DONE[part.kind], (lab, part, members)), 0)


def _suspend(lab: Lab, part: Part, members: Members) -> None:
    for consumer in _running(members[part.name]):
        consumer.suspend()
        consumer.node.call_later(int(part.says.get("for_ms", FOR_MS)), consumer.resume, name="resume")


def _seek(lab: Lab, part: Part, members: Members) -> None:
    for consumer in _running(members[part.name]):
        consumer.node.spawn(seek_all_to_begin(consumer), "seek")


def _make_topic(lab: Lab, part: Part, members: Members) -> None:
    for broker in lab.masters:
        if broker.is_up():
            broker.running().create_topic(part.name, int(part.says.get("queues", QUEUES)))


def _running(consumers: Sequence[Any]) -> list[Any]:
    return [one for one in consumers if one.impl.service_state is ServiceState.RUNNING and not one.node.life.over]


DONE: dict[str, Callable[[Any, Part, Members], None]] = {
    "suspend": _suspend, "seek": _seek, "scale": _make_topic, "create-topic": _make_topic,
}  # fmt: skip
