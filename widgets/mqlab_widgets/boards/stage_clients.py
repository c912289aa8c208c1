"""The part of the stage that follows producers and consumers: what they send, fetch, work on and have done."""

from __future__ import annotations

from mqlab.protocol.topics import retry_topic
from mqlab.trace.record import Record
from mqlab.views.journey import CONSUMED
from mqlab_widgets.boards.stage_notes import StageNotes
from mqlab_widgets.boards.stage_state import ENDS, Queue
from mqlab_widgets.labels import SENDER_LETTERS


class StageClients(StageNotes):
    """Producers with what is under way, consumers with what waits in them."""

    # -- the producer -------------------------------------------------------------------------------------------------

    def on_send_attempted(self, record: Record) -> None:
        self.sending[record.node] = (record.at, record.msg_id)
        self._senders[record.msg_id[:SENDER_LETTERS]] = record.node
        self._producer(record.node).attempt(record.msg_id)

    def on_send_succeeded(self, record: Record) -> None:
        self._producer(record.node).succeeded(record.msg_id)
        if record.msg_id in self.halves:
            self._producer(record.node).local[record.msg_id] = None

    def on_local_transaction_executed(self, record: Record) -> None:
        self._producer(record.node).local.pop(record.msg_id, None)
        self.halves.pop(record.msg_id, None)
        self.on_local_transaction_remembered(record)

    def on_local_transaction_remembered(self, record: Record) -> None:
        self.saying[record.node] = (record.msg_id, ENDS.get(record.local_state, "other"))

    def on_send_attempt_failed(self, record: Record) -> None:
        self._producer(record.node).last = record.reason

    def on_send_failed(self, record: Record) -> None:
        self._producer(record.node).failed(record.msg_id, record.reason)

    # -- the consumer -------------------------------------------------------------------------------------------------

    def on_queue_allocated(self, record: Record) -> None:
        strip = self._strip(self.queue_of(record))
        strip.owners[record.node] = record.group
        strip.read[record.node] = record.queue_offset

    def on_queue_dropped(self, record: Record) -> None:
        queue = self.queue_of(record)
        self._consumer(record.node).drop(queue)
        self._strip(queue).give_up(record.node)

    def on_pull_requested(self, record: Record) -> None:
        self.asking[record.node] = (record.at, self.queue_of(record))
        self._consumer(record.node).limited = ""

    def on_pop_assigned(self, record: Record) -> None:
        self._consumer(record.node).pops[record.topic] = None

    def on_pop_unassigned(self, record: Record) -> None:
        self._consumer(record.node).pops.pop(record.topic, None)

    def on_pop_requested(self, record: Record) -> None:
        self.on_pull_requested(record)

    def on_messages_taken(self, record: Record) -> None:
        consumer, came = self._consumer(record.node), self.landed.get(record.node)
        consumer.owed = record.unacked
        consumer.limited = ""
        if came is not None and came.kind == "pull" and came.response:
            consumer.take(came.keys)

    def on_ack_requested(self, record: Record) -> None:
        self.sending[record.node] = (record.at, record.msg_id)
        self._paid(record)

    on_invisible_time_requested = on_ack_requested

    def on_pop_given_up(self, record: Record) -> None:
        self._paid(record)

    def _paid(self, record: Record) -> None:
        consumer = self._consumer(record.node)
        consumer.owed = max(0, consumer.owed - (record.get("messages") or 1))

    def on_pull_finished(self, record: Record) -> None:
        self._consumer(record.node).pulled = record.next_offset

    def on_messages_cached(self, record: Record) -> None:
        consumer, queue = self._consumer(record.node), self.queue_of(record)
        if record.node not in self._strip(queue).owners:
            return  # an answer that came after the queue was given up
        consumer.cache(queue, consumer.pulled - record.messages, record.messages, record.cached)
        consumer.limited = ""

    def on_flow_controlled(self, record: Record) -> None:
        self._consumer(record.node).limited = f"{record.reason} {record.cached} > {record.limit}"

    def on_consume_started(self, record: Record) -> None:
        home = self.home_of(record)
        self._consumer(record.node).begin(home, record.queue_offset, record.messages, record.msg_id)

    def on_consume_finished(self, record: Record) -> None:
        self._consumer(record.node).end(self.home_of(record), record.queue_offset)
        if record.status not in CONSUMED:
            # What it gives back next is this one; the event that says so comes when the broker has answered.
            self.sending[record.node] = (record.at, record.msg_id)

    def home_of(self, record: Record) -> Queue:
        """The queue from which a listener's messages came: a retried message says its first topic, and its number and
        offset in the retry queue.

        Source: org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl#resetRetryAndNamespace.
        """
        queue = self.queue_of(record)
        retry = (queue[0], retry_topic(record.group), queue[2])
        consumer = self._consumer(record.node)
        return retry if consumer.has(retry, record.queue_offset) else queue

    def on_messages_polled(self, record: Record) -> None:
        consumer, queue = self._consumer(record.node), self.queue_of(record)
        consumer.begin(queue, record.queue_offset, record.messages)
        consumer.end(queue, record.queue_offset)

    def on_message_given_back(self, record: Record) -> None:
        self.sending[record.node] = (record.at, record.msg_id)

    def on_offset_updated(self, record: Record) -> None:
        self._strip(self.queue_of(record)).read[record.node] = record.queue_offset
