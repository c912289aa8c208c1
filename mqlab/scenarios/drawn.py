"""The scenario whose world is drawn: what is in it, and what its clients do, comes from the seed or from a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.scenarios.drawing import draw_world, world_from_text
from mqlab.scenarios.drawing.build import build_world
from mqlab.scenarios.registry import ANY_FAULT, scenario

if TYPE_CHECKING:
    from mqlab.lab import Lab


@scenario("drawn", seconds=25, faults=(*ANY_FAULT, "slow_disk"))
async def drawn(lab: Lab, *, world: str = "") -> None:
    """The seed draws which servers, topics, clients and settings there are; `world` says it instead, as text."""
    await build_world(lab, world_from_text(world) if world.strip() else draw_world(lab.seed))
