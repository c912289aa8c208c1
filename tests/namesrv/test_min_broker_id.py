"""Notices of the smallest broker id in a group (notifyMinBrokerIdChanged), as a real name server sent them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from mqlab import Lab
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import NotifyMinBrokerIdChangeRequestHeader
from mqlab.remoting.processor import RPCHook
from tests.worlds import send, started_producer

GOLDEN = Path(__file__).parents[1] / "golden" / "ha" / "min-broker-notices.jsonl"
RECORDED = [json.loads(line) for line in GOLDEN.read_text(encoding="ascii").splitlines()]
"""The notice after the master's death, and the one after its return."""


class Ears(RPCHook):
    """What the notices say that come to a broker."""

    def __init__(self) -> None:
        self.heard: list[dict[str, str] | None] = []

    def do_before_request(self, remote_address: str, request: RemotingCommand) -> None:
        if request.code == RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE:
            self.heard.append(request.ext_fields)


def group(slaves: int = 1, *, acting: bool = True, notify: bool = True, wire: str = "objects") -> Lab:
    """A master with slaves, all registered and connected."""
    lab = Lab(seed=7, wire=wire)
    lab.name_server(notify_min_broker_id_changed=notify)
    lab.broker("broker-a", enable_slave_acting_master=acting)
    for _ in range(slaves):
        lab.broker(slave_of="broker-a")
    lab.create_topic("T", 1)
    lab.run_for(seconds=40)
    return lab


def changes(lab: Lab) -> list[tuple[str, int, str, str]]:
    return [
        (event.node, event.min_broker_id, event.min_broker_addr, event.offline)
        for event in lab.history.find("MinBrokerChanged")
    ]


def notices(lab: Lab) -> list[Any]:
    return [event for event in lab.history.find("RequestSent") if event.request_name == "NOTIFY_MIN_BROKER_ID_CHANGE"]


def fields_of(lab: Lab, number: int) -> dict[str, Any]:
    """The fields of the recorded notice, with this group's addresses in the place of the recorded ones."""
    (master, slave) = (broker.running().broker_addr for broker in lab.brokers[:2])
    mine = {"127.0.0.1:31510": master, "127.0.0.1:31540": slave, "127.0.0.1:31511": master.replace("10911", "10912")}
    fields = RECORDED[number]["header"]["extFields"]
    return {name: mine.get(value, value) for name, value in fields.items()}


@pytest.mark.parametrize("wire", ["objects", "bytes"])
def test_a_slave_hears_of_its_masters_death_and_return_what_the_real_one_heard(wire: str) -> None:
    lab = group(wire=wire)
    slave = lab.brokers[1].running()
    ears = Ears()
    slave.remoting_server.rpc_hooks.append(ears)
    death = fields_of(lab, 0)
    lab.act("crash", node="broker-a")
    lab.run_for(seconds=1)
    assert ears.heard == [death]
    assert slave.slave_synchronize is not None
    assert slave.slave_synchronize.master_addr is None
    assert slave.ha_service.ha_client is not None
    assert slave.ha_service.ha_client.ha_master_address is None
    lab.act("restart", node="broker-a")
    lab.run_for(seconds=2)
    assert ears.heard == [death, fields_of(lab, 1)]
    assert slave.ha_service.ha_client.ha_master_address == "10.0.0.2:10912"
    lab.run_for(seconds=40)
    send(started_producer(lab), "back")
    lab.run_for(seconds=2)
    assert slave.message_store.max_phy_offset == lab.brokers[0].running().message_store.max_phy_offset > 0


def test_recorded_notices_are_read_and_written() -> None:
    for row in RECORDED:
        command = RemotingCommand.decode(base64.b64decode(row["frame"]))
        header = command.header_as(NotifyMinBrokerIdChangeRequestHeader)
        again = RemotingCommand.request(command.code, header)
        assert RemotingCommand.decode(again.encode()).ext_fields == row["header"]["extFields"]


def test_all_that_are_left_are_told_of_a_death_and_all_others_of_who_comes() -> None:
    lab = group(slaves=2)
    lab.act("crash", node="broker-a")
    lab.run_for(seconds=1)
    master, first, _ = (str(broker.node.spec.ip) + ":10911" for broker in lab.brokers)
    assert sorted(changes(lab)) == [("slave-a", 1, first, master), ("slave-b", 1, first, master)]
    lab.act("restart", node="broker-a")
    lab.run_for(seconds=2)
    assert sorted(changes(lab)[2:]) == [("slave-a", 0, master, ""), ("slave-b", 0, master, "")]
    lab.act("crash", node="slave-b")
    lab.run_for(seconds=1)
    assert len(changes(lab)) == 4, "it was not the smallest"


def test_it_is_off_unless_both_sides_want_it() -> None:
    silent = group(notify=False)
    silent.act("crash", node="broker-a")
    silent.run_for(seconds=1)
    assert notices(silent) == []
    # As in RocketMQ a return is told to every group, a death only to one whose slaves may act for their master.
    plain = group(acting=False)
    plain.act("crash", node="broker-a")
    plain.run_for(seconds=1)
    assert notices(plain) == []
    plain.act("restart", node="broker-a")
    plain.run_for(seconds=2)
    assert len(notices(plain)) == 1
    assert changes(plain) == []


def test_a_group_without_its_master_can_be_read_and_not_written() -> None:
    lab = group()
    routes = lab.name_servers[0].running().route_info_manager
    assert [row["perm"] for row in routes.show_topics() if row["topic"] == "T"] == ["RW-"]
    lab.act("crash", node="broker-a")
    lab.run_for(seconds=1)
    assert [row["perm"] for row in routes.show_topics() if row["topic"] == "T"] == ["R--"]
