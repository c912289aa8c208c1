"""One small world for the tests of the kernel."""

from __future__ import annotations

import pytest

from mqlab.sim import Node, World


@pytest.fixture
def world() -> World:
    """A world with seed 7 and nothing in it."""
    return World(7)


@pytest.fixture
def node(world: World) -> Node:
    """The only machine of that world."""
    return world.node("alpha")
