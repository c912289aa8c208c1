"""Sixteen worlds: which acknowledged messages an accident costs, by how they were flushed and copied."""

from __future__ import annotations

import pytest

from mqlab.commands.cli import main
from mqlab.scenarios.replication import ACCIDENTS, Aftermath, sixteen_worlds

Found = dict[tuple[str, str, str], Aftermath]


@pytest.fixture(scope="module")
def worlds() -> Found:
    """All sixteen, by setting and accident."""
    return {world[:3]: world for world in sixteen_worlds(seed=3)}


def test_with_both_nothing_acknowledged_is_lost_whatever_happens(worlds: Found) -> None:
    for what in ACCIDENTS:
        world = worlds["SYNC_FLUSH", "SYNC_MASTER", what]
        assert world.acknowledged > 20
        assert world.lost == 0


@pytest.mark.parametrize("what", ["process killed", "network cut"])
def test_what_does_not_touch_a_disk_costs_nothing(worlds: Found, what: str) -> None:
    assert [world.lost for key, world in worlds.items() if key[2] == what] == [0] * 4


def test_a_flush_helps_against_a_loss_of_power_and_a_copy_against_a_lost_disk(worlds: Found) -> None:
    assert worlds["SYNC_FLUSH", "ASYNC_MASTER", "power off"].lost == 0
    assert worlds["ASYNC_FLUSH", "SYNC_MASTER", "disk lost"].lost == 0
    assert worlds["ASYNC_FLUSH", "ASYNC_MASTER", "disk lost"].lost > 0
    assert worlds["SYNC_FLUSH", "ASYNC_MASTER", "disk lost"].lost > 0


def test_what_a_loss_of_power_takes_from_a_master_alone_is_on_its_slave(worlds: Found) -> None:
    cut = worlds["ASYNC_FLUSH", "SYNC_MASTER", "power off"]
    assert cut.on_slave_only > 0
    first = cut.places.index("slave")
    assert cut.places == ("both",) * first + ("slave",) * cut.on_slave_only + cut.places[first + cut.on_slave_only :]
    for world in worlds.values():
        assert len(world.places) == world.acknowledged
        assert world.places.count("nobody") == world.lost


def test_a_cut_network_is_told_in_the_answers_of_a_synchronous_master_alone(worlds: Found) -> None:
    told = {key: world.less_safe for key, world in worlds.items() if world.less_safe}
    assert told
    assert {key[1] for key in told} == {"SYNC_MASTER"}


def test_the_command_prints_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["copies", "--seed", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith(("ASYNC_FLUSH", "SYNC_FLUSH")) for line in lines) == 16
