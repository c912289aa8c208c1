"""Flow control: how many messages a consumer holds of each queue, and which limit keeps it from pulling."""

from __future__ import annotations

from html import escape
from typing import ClassVar

from mqlab.lab.processes import ClientProcess
from mqlab.protocol.topics import is_retry_topic, retry_topic
from mqlab.trace.record import Record
from mqlab_widgets.boards.board import Board

Held = tuple[str, str, str, str, int]
"""(process, group, topic, broker name, queue id)"""
KEPT = ("SUSPEND_CURRENT_QUEUE_A_MOMENT", "ROLLBACK")
"""After these answers of an orderly listener the messages stay in hand."""
BAR, MOST = 90, 16


class FlowControlBoard(Board):
    """The messages in hand of each queue beside the threshold, and the limit that refused the last pull.

    A message is in hand until its listener has ended. No event tells bytes and span before they refuse a pull; the
    inspector of a machine has them for the present.
    """

    title: ClassVar[str] = "Flow control"

    def begin(self) -> None:
        """Nobody holds anything."""
        self.counts: dict[Held, int] = {}
        self.limited: dict[Held, str] = {}
        self.dropped: dict[Held, None] = {}
        self.calls: dict[tuple[str, str, int], tuple[Held, int]] = {}
        """(process, message id, offset) of a running listener's first message -> its queue, and how many it has."""

    def on_queue_allocated(self, record: Record) -> None:
        self.counts[_key(record)] = 0
        self.dropped.pop(_key(record), None)

    def on_queue_dropped(self, record: Record) -> None:
        self.counts.pop(_key(record), None)
        self.limited.pop(_key(record), None)
        self.dropped[_key(record)] = None

    def on_messages_cached(self, record: Record) -> None:
        # An answer may come when its queue has been given up, which changes nothing any more.
        if _key(record) not in self.dropped:
            self.counts[_key(record)] = record.cached

    def on_consume_started(self, record: Record) -> None:
        key = _key(record)
        # The events of a listener call a message of the retry topic by its own topic.
        again = (*key[:2], retry_topic(record.group), *key[3:])
        key = again if record.reconsume_times and self.counts.get(again) else key
        self.calls[record.node, record.msg_id, record.queue_offset] = (key, record.messages)

    def on_consume_finished(self, record: Record) -> None:
        key, messages = self.calls.pop((record.node, record.msg_id, record.queue_offset), (None, 0))
        if key in self.counts and record.status not in KEPT:
            self.counts[key] = max(0, self.counts[key] - messages)

    def on_messages_polled(self, record: Record) -> None:
        self.counts[_key(record)] = max(0, self.counts.get(_key(record), 0) - record.messages)

    def on_flow_controlled(self, record: Record) -> None:
        self.limited[_key(record)] = f"refused by the {record.reason}: {record.cached:,} > {record.limit:,}"

    def on_pull_requested(self, record: Record) -> None:
        self.limited.pop(_key(record), None)

    def on_client_stopped(self, record: Record) -> None:
        self._gone(record.node, record.group)

    def on_process_ended(self, record: Record) -> None:
        self._gone(record.target)

    def messages_of_call(self, record: Record) -> int:
        """How many messages the listener's call has that a `ConsumeFinished` ends."""
        return self.calls.get((record.node, record.msg_id, record.queue_offset), ((), 1))[1]

    def _gone(self, node: str, group: str = "") -> None:
        for key in [key for key in self.counts if key[0] == node and group in ("", key[1])]:
            del self.counts[key]
            self.limited.pop(key, None)

    def _threshold(self, node: str, group: str) -> int:
        """What the application has set, or RocketMQ's 1,000."""
        process = self.lab.processes.get(node)
        clients = process.clients if isinstance(process, ClientProcess) else []
        set_to = [getattr(client, "pull_threshold_for_queue", 1_000) for client, own, _ in clients if own == group]
        return int(set_to[0]) if set_to else 1_000

    def _rows(self) -> list[tuple[Held, int, int, str]]:
        """(queue, messages, threshold, what refuses a pull); of many queues the fullest."""
        shown = [key for key in sorted(self.counts) if self.counts[key] or not is_retry_topic(key[2])]
        if len(shown) > MOST:
            shown = sorted(shown, key=lambda key: (key not in self.limited, -self.counts[key], key))[:MOST]
        return [(key, self.counts[key], self._threshold(*key[:2]), self.limited.get(key, "")) for key in shown]

    def html(self) -> str:
        """A bar for each queue, with a line where the threshold is."""
        rows = "".join(
            f"<span>{escape(f'{node}: {topic} {queue_id}, {broker}')}</span>"
            f'<span><b>{count:,}</b> <span class="mq-faint">of {limit:,}</span></span>'
            f"{_bar(count, limit)}{_why(refused)}"
            for (node, _, topic, broker, queue_id), count, limit, refused in self._rows()
        )
        grid = f'<div style="display:grid;grid-template-columns:repeat(3,max-content);gap:0 10px">{rows}</div>'
        return grid if rows else '<div class="mq-faint">No consumer has a queue.</div>'

    def text(self) -> list[str]:
        """The same in words."""
        return [
            f"{node}: {topic} queue {queue_id} on {broker}: {count:,} messages in hand, threshold {limit:,}"
            + (f"; the last pull was {refused}" if refused else "")
            for (node, _, topic, broker, queue_id), count, limit, refused in self._rows()
        ] or ["no consumer has a queue"]


def _key(record: Record) -> Held:
    return (record.node, record.group, record.topic, record.broker_name, record.queue_id)


def _why(refused: str) -> str:
    style = "grid-column:1/-1;border-left:4px solid #D55E00;padding-left:6px"
    return f'<span style="{style}">the last pull was {escape(refused)}</span>' if refused else ""


def _bar(count: int, limit: int) -> str:
    """The bar ends at a quarter more than the threshold, or than what is held."""
    full = 1.25 * max(count, limit, 1)
    at, line = BAR * count / full, BAR * limit / full
    colour = "#D55E00" if count > limit else "#0072B2"
    return (
        f'<svg width="{BAR}" height="16" role="img" aria-label="{count} of {limit}" style="align-self:center">'
        f'<rect y="3" width="{BAR}" height="10" rx="2" fill="var(--mq-cell,#d9d9d9)"/>'
        f'<rect y="3" width="{at:.1f}" height="10" rx="2" fill="{colour}"/>'
        f'<rect x="{line:.1f}" width="2" height="16" fill="var(--mq-ink,#1a1a1a)"/></svg>'
    )
