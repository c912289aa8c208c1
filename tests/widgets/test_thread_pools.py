"""The thread pools of a broker: who is at work, and what waits."""

from __future__ import annotations

from mqlab.scenarios import get
from mqlab_widgets.thread_pools import pools_html
from tests.worlds import played


def test_a_pool_that_had_no_work_is_left_out() -> None:
    lab = played("first-message", 2)
    drawn = pools_html(lab.brokers[0].running().executors.all())
    assert "SendMessageThread" in drawn
    assert "EndTransactionThread" not in drawn
    assert pools_html([]) == "<div>No thread pool has had work yet.</div>"


def test_what_waits_before_busy_threads_is_counted() -> None:
    lab = get("busy-broker").build(7)
    pool = lab.brokers[0].running().executors.send
    for _ in range(2_000):
        if pool.queue:
            break
        lab.run_for(ms=5)
    drawn = pools_html([pool])
    assert pool.queue
    assert f"{pool.busy} of {pool.threads} threads busy" in drawn
    assert f"{len(pool.queue):,} of {pool.capacity:,}, the first for " in drawn
