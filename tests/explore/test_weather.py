"""Fair weather: which faults are over, and from when on."""

import pytest

from mqlab.explore.weather import Weather
from mqlab.sim import World
from mqlab.sim.faults import FAULTS, start


@pytest.mark.parametrize("end", ["thaw", "crash", "power_off", "restart"])
def test_who_hung_hangs_no_more_after_its_end(end: str) -> None:
    """It was counted as hanging for ever, and every rule that asks for fair weather was silent from then on."""
    world = World()
    weather = Weather()
    world.hooks.attach(weather)
    world.node("n").boot = lambda node: None
    start(world, "n")
    world.run_for(1_000)
    FAULTS["freeze"](world, node="n")
    assert weather.fair_since_us() is None
    world.run_for(1_000)
    FAULTS[end](world, node="n")
    if end != "thaw":
        FAULTS["restart"](world, node="n")
    world.run_for(1_000)
    assert weather.fair_since_us() == 2_000
    assert weather.was_fair(2_001, 3_000)
    assert not weather.was_fair(1_500, 3_000)
