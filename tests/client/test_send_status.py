"""The statuses of a stored message that a broker without slaves can give, each brought about by its disk.

The two of slaves are brought about in tests/broker/ha/test_sync_master.py; what a producer makes of them stands in the
table of tests/client/test_send_answers.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import Lab
from mqlab.client import Message, SendStatus
from mqlab.errors import RemotingTooMuchRequestException
from tests.worlds import shop, started_producer


def lab_with_sync_flush() -> tuple[Lab, Any, Any]:
    """A lab whose broker flushes before it answers, with a producer."""
    lab = shop(seed=1, flush_disk_type="SYNC_FLUSH")
    return lab, lab.brokers[0], started_producer(lab)


def test_send_ok_with_synchronous_flush_means_flushed() -> None:
    lab, broker, producer = lab_with_sync_flush()
    broker.node.disk.flush_us = 40_000
    begin_us = lab.world.now_us
    assert lab.run(producer.send(Message("T", "x"))).send_status is SendStatus.SEND_OK
    assert lab.world.now_us - begin_us > 40_000


def test_flush_disk_timeout_comes_5_s_after_the_append_when_the_disk_hangs() -> None:
    lab, broker, producer = lab_with_sync_flush()
    lab.run(producer.send(Message("T", "first")))
    broker.node.disk.hang()
    begin_us = lab.world.now_us
    result = lab.run(producer.send(Message("T", "x"), timeout=10_000))
    assert result.send_status is SendStatus.FLUSH_DISK_TIMEOUT
    assert result.queue_offset == 1
    assert lab.world.now_us - begin_us == pytest.approx(5_000_000, abs=5_000)


def test_a_disk_that_hangs_by_a_fault_schedule_holds_up_the_answer_until_it_is_undone() -> None:
    lab, _, producer = lab_with_sync_flush()
    lab.run(producer.send(Message("T", "first")))
    begin_us = lab.world.now_us
    lab.faults(f"at {begin_us / 1_000 + 1}ms: hang_disk broker-a for 2s")
    lab.run_for(ms=2)
    assert lab.run(producer.send(Message("T", "x"))).send_status is SendStatus.SEND_OK
    assert lab.world.now_us - begin_us == pytest.approx(2_001_000, abs=5_000)
    assert [record.kind for record in lab.history.find(("DiskHung", "DiskUnhung"))] == ["DiskHung", "DiskUnhung"]


def test_with_the_usual_budget_of_3_s_a_producer_is_gone_before_the_flush_times_out() -> None:
    lab, broker, producer = lab_with_sync_flush()
    lab.run(producer.send(Message("T", "first")))
    broker.node.disk.hang()
    with pytest.raises(RemotingTooMuchRequestException, match="sendDefaultImpl call timeout"):
        lab.run(producer.send(Message("T", "x")))

