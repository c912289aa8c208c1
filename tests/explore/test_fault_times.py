"""Which faults are over, and from when on."""

import pytest

from mqlab.explore.fault_times import FaultTimes
from mqlab.sim import World
from mqlab.sim.faults import FAULTS, start


@pytest.mark.parametrize("end", ["thaw", "crash", "power_off", "restart"])
def test_who_hung_hangs_no_more_after_its_end(end: str) -> None:
    """It was counted as hanging for ever, so a rule that asks for a time without faults was silent for ever."""
    world = World()
    fault_times = FaultTimes()
    world.hooks.attach(fault_times)
    world.node("n").boot = lambda node: None
    start(world, "n")
    world.run_for(1_000)
    FAULTS["freeze"](world, node="n")
    assert fault_times.over_since_us() is None
    world.run_for(1_000)
    FAULTS[end](world, node="n")
    if end != "thaw":
        FAULTS["restart"](world, node="n")
    world.run_for(1_000)
    assert fault_times.over_since_us() == 2_000
    assert fault_times.none_between(2_001, 3_000)
    assert not fault_times.none_between(1_500, 3_000)


def test_a_disk_is_slow_until_it_is_quick() -> None:
    world = World()
    fault_times = FaultTimes()
    world.hooks.attach(fault_times)
    world.node("n")
    FAULTS["slow_disk"](world, node="n", ms=20)
    world.run_for(1_000)
    assert fault_times.over_since_us() is None
    FAULTS["slow_disk"](world, node="n", ms=0)
    assert fault_times.over_since_us() == 1_000
