"""What a slave lets a group that pops do, as a real one did: it hands out and takes back, and remembers nothing."""

from __future__ import annotations

from typing import Any

from mqlab.protocol import RequestCode
from mqlab.protocol import headers as h
from tests.broker.ha.conftest import Pair, timeline


def _recorded(code: int, group: str) -> list[dict[str, Any]]:
    """The raw requests to the slave with this code and of this group."""
    return [
        step
        for step in timeline("pop-slave")["steps"]
        if step["event"] == "raw"
        and step["code"] == code
        and step["to"].endswith("20")
        and step["fields"]["consumerGroup"] == group
    ]


class _Slave:
    def __init__(self, pair: type[Pair]) -> None:
        self.pair = p = pair(slave_read_enable=True)
        p.send(6)
        p.lab.run_for(ms=65_000)
        self.asker = p.asker()

    def pop(self) -> Any:
        """Pop two messages of queue 0."""
        now_ms = self.pair.slave.node.now_ms()
        header = h.PopMessageRequestHeader("GNew", "T", 0, 2, 15_000, 0, now_ms, 0, order=False)
        answer = self.asker.call(RequestCode.POP_MESSAGE, header)
        assert (answer.code, answer.remark) == (0, "FOUND")
        return answer.header_as(h.PopMessageResponseHeader)

    def offset(self) -> int | None:
        """How far the group has come, as the slave says it."""
        header = h.QueryConsumerOffsetRequestHeader("GNew", "T", 0)
        answer = self.asker.call(RequestCode.QUERY_CONSUMER_OFFSET, header)
        return answer.header_as(h.QueryConsumerOffsetResponseHeader).offset


def test_what_is_popped_at_a_slave_comes_again_within_seconds(pair: type[Pair]) -> None:
    slave = _Slave(pair)
    real = [step["answerFields"]["msgOffsetInfo"] for step in _recorded(200050, "GNew")]
    assert real[:3] == ["0 0 0,1", "0 0 2,3", "0 0 0,1"]
    assert [slave.pop().msg_offset_info, slave.pop().msg_offset_info] == real[:2]
    slave.pair.lab.run_for(ms=5_100)
    assert slave.pop().msg_offset_info == real[2]
    assert {step["answerFields"]["offset"] for step in _recorded(14, "GNew")} == {"0"}
    assert slave.offset() == 0


def test_a_slave_takes_acknowledgements_and_refuses_to_hide_for_longer(pair: type[Pair]) -> None:
    slave = _Slave(pair)
    popped = slave.pop()
    handle = f"0 {popped.pop_time} 15000 {popped.revive_qid} 0 broker-a 0 "
    acked = slave.asker.call(RequestCode.ACK_MESSAGE, h.AckMessageRequestHeader("GNew", "T", 0, f"{handle}0", 0))
    assert {step["answer"] for step in _recorded(200051, "GNew")} == {acked.code} == {0}
    longer = slave.asker.call(
        RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
        h.ChangeInvisibleTimeRequestHeader("GNew", "T", 0, f"{handle}1", 1, 5_000),
    )
    (real,) = _recorded(200053, "GNew")
    assert (longer.code, longer.remark) == (real["answer"], real["remark"])
    assert slave.pair.slave.store.max_phy_offset == slave.pair.master.store.max_phy_offset


def test_a_slave_that_hands_out_changes_nothing_at_its_master(pair: type[Pair]) -> None:
    slave = _Slave(pair)
    stored = len(slave.pair.events("MessageStored"))
    for _ in range(3):
        slave.pop()
        slave.pair.lab.run_for(ms=5_000)
    slave.pair.lab.run_for(ms=30_000)
    assert len(slave.pair.events("MessageStored")) == stored
    assert slave.offset() == 0
