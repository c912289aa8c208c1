"""The thread pools of a broker: which threads are at work, and what waits before them."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from mqlab.sim import Pool

MOST_THREADS, CELL, WIDE = 16, 7, 60


def pools_html(pools: Iterable[Pool]) -> str:
    """A line for each pool that has had work: its threads as cells, the queue before it as a bar.

    No event tells when a thread begins or ends, so this is the present, "after slice k".
    """
    used = [pool for pool in pools if pool.completed or pool.busy or pool.queue or pool.rejected]
    if not used:
        return "<div>No thread pool has had work yet.</div>"
    rows = "".join(_row(pool) for pool in used)
    head = "".join(f'<b class="mq-faint">{words}</b>' for words in ("pool", "threads", "waiting", "", "done"))
    grid = "display:grid;grid-template-columns:repeat(5,max-content);gap:1px 10px;align-items:center"
    return f'<div>Thread pools (those that have had work)</div><div style="{grid}">{head}{rows}</div>'


def _row(pool: Pool) -> str:
    waiting = len(pool.queue)
    words = "none"
    if waiting:
        words = f"{waiting:,} of {pool.capacity:,}, the first for {pool.oldest_wait_us() / 1_000:,.3g} ms"
    done = f"{pool.completed:,}" + (f", {pool.rejected:,} refused" if pool.rejected else "")
    return (
        f"<span>{escape(pool.name)}</span>{_threads(pool)}"
        f"{_queue(waiting, pool.capacity)}<span>{words}</span><span>{done}</span>"
    )


def _threads(pool: Pool) -> str:
    """A cell for each thread; of more than 16 each cell is several."""
    cells = min(pool.threads, MOST_THREADS)
    busy = -(-pool.busy * cells // max(1, pool.threads))
    shapes = "".join(
        f'<rect x="{n * CELL}" y="2" width="{CELL - 2}" height="12" rx="1" '
        f'fill="{"#009E73" if n < busy else "var(--mq-cell,#d9d9d9)"}"/>'
        for n in range(cells)
    )
    label = f"{pool.busy} of {pool.threads} threads busy"
    x, width = cells * CELL + 4, MOST_THREADS * CELL + 64
    return (
        f'<svg width="{width}" height="16" role="img" aria-label="{label}"><title>{label}</title>{shapes}'
        f'<text x="{x}" y="12" font-size="12" fill="var(--mq-ink,#1a1a1a)">{pool.busy} of {pool.threads}</text></svg>'
    )


def _queue(waiting: int, capacity: int) -> str:
    full = WIDE * min(1.0, waiting / max(1, capacity))
    return (
        f'<svg width="{WIDE}" height="16" aria-hidden="true"><rect y="3" width="{WIDE}" height="10" rx="2" '
        f'fill="var(--mq-cell,#d9d9d9)"/><rect y="3" width="{full:.1f}" height="10" rx="2" fill="#E69F00"/></svg>'
    )
