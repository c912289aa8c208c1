"""Heartbeats of the second form: what a client leaves out, and when it says all again."""

from __future__ import annotations

from typing import Any

from mqlab import Lab
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.remoting import RPCHook
from tests.worlds import noting, send, shop, started_consumer, started_producer


def left_out(lab: Lab, node: str = "") -> list[Any]:
    """The heartbeats without subscriptions, of all machines or of this one."""
    return [e for e in lab.history.find("SubscriptionsLeftOut") if node in ("", e.node)]


def answered(lab: Lab, since_us: int = 0) -> list[int]:
    return [e.ts_us for e in lab.history.find("HeartbeatAnswered") if e.ts_us >= since_us]


def test_by_default_every_heartbeat_says_everything() -> None:
    lab = shop()
    started_consumer(lab)
    lab.run_for(seconds=100)
    assert left_out(lab) == []


def test_what_a_broker_was_told_is_left_out_while_nothing_changes() -> None:
    lab = shop()
    started_consumer(lab, use_heartbeat_v2=True)
    lab.run_for(seconds=25)
    quiet_us = lab.world.now_us
    lab.run_for(seconds=90)
    assert len(answered(lab, quiet_us)) == 3
    assert [e.ts_us for e in left_out(lab) if e.ts_us >= quiet_us] == answered(lab, quiet_us)
    assert not any(e.changed for e in left_out(lab))
    subscribed = lab.brokers[0].running().consumer_manager.find_subscription_data("readers", "T")
    assert subscribed is not None


def test_a_consumer_without_its_subscriptions_in_heartbeats_gets_its_messages() -> None:
    lab = shop()
    seen: list[Any] = []
    started_consumer(lab, noting(seen), use_heartbeat_v2=True)
    lab.run_for(seconds=70)
    send(started_producer(lab), "a", "b")
    lab.run_for(seconds=5)
    assert seen == [b"a", b"b"]


def test_another_subscription_is_told_in_whole() -> None:
    lab = shop()
    lab.create_topic("U", 1)
    consumer = started_consumer(lab, use_heartbeat_v2=True)
    lab.run_for(seconds=35)
    before = len(left_out(lab))
    assert before > 0
    consumer.subscribe("U", "*")
    lab.run_for(seconds=1)
    assert len(left_out(lab)) == before
    assert lab.brokers[0].running().consumer_manager.find_subscription_data("readers", "U") is not None


def test_a_rebalance_that_moves_queues_has_everything_told_anew() -> None:
    lab = shop(queues=4)
    first = started_consumer(lab, use_heartbeat_v2=True)
    lab.run_for(seconds=35)
    before = len(left_out(lab, first.node.name))
    began_us = lab.world.now_us
    started_consumer(lab, use_heartbeat_v2=True)
    lab.run_for(seconds=2)
    mine = [e for e in lab.history.find("HeartbeatAnswered", node=first.node.name) if e.ts_us >= began_us]
    assert len(mine) == 1
    assert len(left_out(lab, first.node.name)) == before


def test_members_that_want_different_things_say_everything_each_time() -> None:
    """A broker keeps one fingerprint for a group: each of the two finds that of the other."""
    lab = shop(queues=2)
    for tags in ("a", "b"):
        started_consumer(lab, tags=tags, use_heartbeat_v2=True)
    lab.run_for(seconds=85)
    began_us = lab.world.now_us
    lab.run_for(seconds=120)
    assert len(answered(lab, began_us)) == 8
    assert [e for e in left_out(lab) if e.ts_us >= began_us] == []


class OldBroker(RPCHook):
    """Lets a broker answer as one that does not know heartbeats of the second form."""

    def do_after_response(
        self, remote_address: str, request: RemotingCommand, response: RemotingCommand | None
    ) -> None:
        if request.code == RequestCode.HEART_BEAT and response is not None:
            response.add_ext_fields({"IS_SUPPORT_HEART_BEAT_V2": "false", "IS_SUB_CHANGE": "false"})


def test_to_a_broker_that_does_not_know_this_form_every_heartbeat_says_everything() -> None:
    lab = shop()
    lab.brokers[0].running().remoting_server.rpc_hooks.append(OldBroker())
    started_consumer(lab, use_heartbeat_v2=True)
    lab.run_for(seconds=100)
    assert len(answered(lab)) >= 4
    assert left_out(lab) == []


def test_a_broker_that_was_started_again_is_never_told_what_it_has_forgotten() -> None:
    """A trap of RocketMQ: the broker has no fingerprint to compare with, and says that nothing has changed."""

    def seen_after_restart(*, use_heartbeat_v2: bool) -> list[bytes]:
        lab = shop()
        seen: list[Any] = []
        started_consumer(lab, noting(seen), use_heartbeat_v2=use_heartbeat_v2)
        lab.run_for(seconds=35)
        lab.crash("broker-a")
        lab.restart("broker-a")
        lab.run_for(seconds=60)
        send(started_producer(lab), "x")
        lab.run_for(seconds=90)
        known = lab.brokers[0].running().consumer_manager
        assert (known.find_subscription_data("readers", "T") is None) == use_heartbeat_v2
        return seen

    assert seen_after_restart(use_heartbeat_v2=False) == [b"x"]
    assert seen_after_restart(use_heartbeat_v2=True) == []
