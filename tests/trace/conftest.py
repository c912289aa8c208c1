"""Small histories, made by a real world: events emitted on real nodes at given times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab.sim import World
from mqlab.trace.history import History

Script = list[tuple[float, str, Any]]
"""(time in ms, node, event) of each event, in order."""


@pytest.fixture
def play() -> Callable[[Script], History]:
    """Let a world emit these events at these times on these nodes, and return its history."""

    def play(script: Script) -> History:
        world = World(7)
        history = History()
        world.hooks.attach(history)
        for at_ms, name, event in script:
            node = world.nodes.get(name) or world.node(name)
            node.call_later(at_ms, node.hooks.emit, event)
        if script:
            world.run_for(round(script[-1][0] * 1_000) + 1)
        return history

    return play
