"""The part of the stage that follows brokers: what they store, hold back, hand out and commit."""

from __future__ import annotations

from mqlab.protocol.pop_check_point import REVIVE_GROUP, is_revive_topic
from mqlab.protocol.topics import RMQ_SYS_TRANS_HALF_TOPIC, TIMER_TOPIC
from mqlab.trace.events.transaction import STORED
from mqlab.trace.record import Record
from mqlab_widgets.boards.stage_notes import StageNotes
from mqlab_widgets.boards.stage_state import ASIDE, ASKED, DELAYED, ENDS, HIDDEN, MOST_TOLD, Held, Log, Queue

BROADCAST = "@broadcast"
"""What a broker adds to the name of a group whose members all get everything (BroadcastOffsetManager)."""
POP_US = 10_000
"""A pop gives its messages the time of its beginning, which is so much before at most."""
MOST_KEYS = 8_000
"""Of so many messages the unique key is known by their place; of older ones only the place."""


class StageBrokers(StageNotes):
    """Queues and commit logs, pulls that are held, messages that are popped, acknowledged and revived."""

    # -- what is stored and pulled ------------------------------------------------------------------------------------

    def on_message_stored(self, record: Record) -> None:
        node, key = record.node, record.unique_key
        log = self.logs.setdefault(node, Log())
        log.append(record.commit_log_offset, record.store_size, key)
        if key:
            self._keys[node, record.topic, record.queue_id, record.queue_offset] = key
            if len(self._keys) > MOST_KEYS:
                del self._keys[next(iter(self._keys))]

    def on_message_dispatched(self, record: Record) -> None:
        queue = (record.node, record.topic, record.queue_id)
        self._strip(queue).append(
            record.queue_offset, record.commit_log_offset, self.key_at(queue, record.queue_offset)
        )

    def on_commit_log_flushed(self, record: Record) -> None:
        self.logs.setdefault(record.node, Log()).flushed = record.flushed_where

    def on_store_recovered(self, record: Record) -> None:
        end = record.commit_log_max_offset
        if record.node in self.logs:
            self.logs[record.node].cut(end)
        for (node, _, _), strip in self.strips.items():
            if node == record.node:
                strip.cut(end)
        for pair, copied in self.copied.items():
            if record.node in pair:
                self.copied[pair] = min(copied, end)

    def on_parked_message_delivered(self, record: Record) -> None:
        strip = self._strip((record.node, DELAYED, record.delay_level - 1))
        strip.committed[DELAYED] = strip.committed.get(DELAYED, 0) + 1

    on_parked_message_dropped = on_parked_message_delivered

    def on_timer_message_delivered(self, record: Record) -> None:
        strip = self._strip((record.node, TIMER_TOPIC, 0))
        strip.committed[TIMER_TOPIC] = strip.committed.get(TIMER_TOPIC, 0) + 1

    on_timer_message_dropped = on_timer_message_recalled = on_timer_message_rolled = on_timer_message_delivered

    def on_revive_offset_committed(self, record: Record) -> None:
        for (node, topic, queue_id), strip in self.strips.items():
            if node == record.node and queue_id == record.revive_qid and is_revive_topic(topic):
                strip.committed[REVIVE_GROUP] = record.revive_offset + 1

    def on_offset_committed(self, record: Record) -> None:
        group = record.group.removesuffix(BROADCAST)
        strip = self._strip((record.node, record.topic, record.queue_id))
        strip.committed[group] = record.queue_offset
        if record.origin == "reset":
            strip.handed.pop(group, None)

    def on_pull_answered(self, record: Record) -> None:
        queue, first = (record.node, record.topic, record.queue_id), record.queue_offset
        keys = tuple(self.key_at(queue, first + place) for place in range(min(record.messages, MOST_TOLD)))
        self.answers[record.node, record.opaque, record.remote] = (queue, keys, record.messages)

    def on_pull_held(self, record: Record) -> None:
        held = self.held.setdefault(record.node, {})
        consumer = self.name_of(record.remote)
        held[record.opaque, record.remote] = Held(record.topic, record.queue_id, record.ts_us, record.hold_ms, consumer)

    def on_pull_woken(self, record: Record) -> None:
        held = self.held.get(record.node, {}).pop((record.opaque, record.remote), None)
        if held is not None:
            self.woken.setdefault(record.node, {})[record.opaque, record.remote] = held

    def on_pull_received(self, record: Record) -> None:
        self.woken.get(record.node, {}).pop((record.opaque, record.remote), None)

    on_request_timed_out_in_queue = on_pull_received

    # -- half messages ------------------------------------------------------------------------------------------------

    def on_half_message_hidden(self, record: Record) -> None:
        if record.status in STORED:
            self.halves[record.unique_key] = None
            self._half(record, record.half_offset, HIDDEN)

    def on_half_message_stored_again(self, record: Record) -> None:
        strip = self._strip((record.node, RMQ_SYS_TRANS_HALF_TOPIC, 0))
        strip.moving[record.new_half_offset] = record.half_offset
        strip.half(record.new_half_offset, HIDDEN)

    def on_transaction_checked(self, record: Record) -> None:
        if record.remote:
            self._half(record, record.half_offset, ASKED)
            self.saying[record.node] = (record.unique_key, "question")

    def on_transaction_ended(self, record: Record) -> None:
        if record.code == 0:
            self._half(record, record.half_offset, ENDS.get(record.local_state, HIDDEN))

    def on_half_message_given_up(self, record: Record) -> None:
        self._half(record, record.half_offset, ASIDE)

    def _half(self, record: Record, offset: int, state: str) -> None:
        self._strip((record.node, RMQ_SYS_TRANS_HALF_TOPIC, 0)).half(offset, state)

    # -- what is popped -----------------------------------------------------------------------------------------------

    def on_pop_held(self, record: Record) -> None:
        self.pops[record.node, record.topic] = None
        self.on_pull_held(record)

    on_pop_woken = on_pull_woken
    on_pop_received = on_pull_received

    def on_message_popped(self, record: Record) -> None:
        invisible_us = 1_000 * record.invisible_ms
        strip = self._strip((record.node, record.topic, record.queue_id))
        strip.hand_out(record.group, record.queue_offset)
        strip.pop(record.queue_offset, record.ts_us, record.ts_us + invisible_us)
        handed = self.handed.get((record.node, record.remote), ())
        self.handed[record.node, record.remote] = (*handed, record.unique_key)

    def on_pop_answered(self, record: Record) -> None:
        queue = (record.node, record.topic, record.queue_id)
        keys = self.handed.pop((record.node, record.remote), ())
        self.answers[record.node, record.opaque, record.remote] = (queue, keys, record.messages)

    def on_ack_buffered(self, record: Record) -> None:
        self._settle(record, str(record.queue_offset), "acked")

    on_order_acked = on_ack_buffered

    def on_ack_stored(self, record: Record) -> None:
        self._settle(record, record.offsets, "acked")

    def on_message_revived(self, record: Record) -> None:
        self._settle(record, str(record.queue_offset), "revived")

    def _settle(self, record: Record, offsets: str, state: str) -> None:
        strip = self.strips.get((record.node, record.topic, record.queue_id))
        out = {} if strip is None else strip.popped
        for offset in map(int, offsets.split(",")):
            # The old check point of a message whose time was changed is acknowledged, too: that is no ack of it.
            if strip is not None and offset in out and out[offset].since_us <= self._us_of(record.pop_time) + POP_US:
                strip.settle(offset, state)
            if state == "acked":
                self._put_down((record.node, record.topic, record.queue_id), offset)

    def _put_down(self, queue: Queue, offset: int) -> None:
        """Who has sent the acknowledgement has the message in hand no more."""
        came = self.landed.get(queue[0])
        if came is not None and came.source in self.hands and came.name.endswith("ACK_MESSAGE"):
            self.hands[came.source].put_down(self.key_at(queue, offset))

    def on_invisible_time_changed(self, record: Record) -> None:
        strip = self._strip((record.node, record.topic, record.queue_id))
        since_us = self._us_of(record.new_pop_time)
        strip.pop(record.queue_offset, since_us, since_us + 1_000 * record.invisible_ms)

    def _us_of(self, wall_ms: int) -> int:
        return (wall_ms - self.lab.world.epoch_ms) * 1_000
