"""The part of the stage that follows workers who take messages by hand, and the queues of Pop's cousins.

A worker of Pop has in hand what a broker gave it and it has not acknowledged; of the others the events say it.
"""

from __future__ import annotations

from mqlab.trace.record import Record
from mqlab_widgets.boards.stage_notes import StageNotes
from mqlab_widgets.boards.stage_state import BACK, ENDED, Strip

COUSIN = "#"
"""Between the server and the number of a message in the key by which the stage knows a cousin's message."""
PARTITION, NO_PARTS = "p", ""
"""What begins the name of a part of a topic in Kafka; a queue of SQS has no parts."""
RENEWED, TAKEN_BACK = "RENEW", "AVAILABLE"


class StageCousins(StageNotes):
    """Share partitions, queues of SQS, and what each worker has in hand."""

    # -- what is stored -----------------------------------------------------------------------------------------------

    def on_record_produced(self, record: Record) -> None:
        self._order(record.node, record.topic, record.queue_offset, record.order_name).letter = PARTITION
        self.windows.setdefault(record.node, (0, 0))

    def on_sqs_message_sent(self, record: Record) -> None:
        number = self._number(record)
        strip = self._order(record.node, record.queue, number, record.order_name)
        strip.lapses, strip.letter = True, NO_PARTS

    def _order(self, server: str, topic: str, number: int, order: str) -> Strip:
        strip = self._strip((server, topic, 0))
        strip.append(number, number, f"{server}{COUSIN}{number}")
        self.orders[server, order] = f"{server}{COUSIN}{number}"
        return strip

    def _number(self, record: Record) -> int:
        """The number of a message of SQS, in the order in which it was heard of first."""
        numbers = self.numbers.setdefault((record.node, record.queue), {})
        return numbers.setdefault(record.message_id, len(numbers))

    # -- a share partition --------------------------------------------------------------------------------------------

    def on_record_acquired(self, record: Record) -> None:
        strip = self._strip((record.node, record.topic, 0))
        strip.pop(record.queue_offset, record.ts_us, record.ts_us + 1_000 * record.lock_ms)
        begin, end = self.windows.get(record.node, (0, 0))
        self.windows[record.node] = begin, max(end, record.queue_offset + 1)

    def on_record_acknowledged(self, record: Record) -> None:
        if record.acknowledge_type != RENEWED:
            self.on_record_let_go(record)
            return
        strip = self._strip((record.node, record.topic, 0))
        out = strip.popped.get(record.queue_offset)
        if out is not None:
            strip.pop(record.queue_offset, record.ts_us, record.ts_us + out.until_us - out.since_us)

    def on_record_let_go(self, record: Record) -> None:
        strip = self._strip((record.node, record.topic, 0))
        strip.settle(record.queue_offset, BACK if record.state == TAKEN_BACK else ENDED)

    def on_start_offset_moved(self, record: Record) -> None:
        end = self.windows.get(record.node, (0, 0))[1]
        self.windows[record.node] = record.to_offset, max(end, record.to_offset)

    def on_share_state_read(self, record: Record) -> None:
        # Acquisitions are not durable: what was in a hand is available again.
        strip = self._strip((record.node, record.topic, 0))
        for offset, out in list(strip.popped.items()):
            if out.state == "out":
                strip.settle(offset, BACK)
        # "0 ACKNOWLEDGED x1, 2-3 AVAILABLE x1": the window ends behind the last record that has a state.
        last = record.states.rpartition(", ")[2].partition(" ")[0].rpartition("-")[2]
        self.windows[record.node] = record.start_offset, max(record.start_offset, int(last) + 1 if last else 0)

    # -- a queue of SQS -----------------------------------------------------------------------------------------------

    def on_sqs_message_received(self, record: Record) -> None:
        until_us = record.ts_us + 1_000 * record.invisible_ms
        self._strip((record.node, record.queue, 0)).pop(self._number(record), record.ts_us, until_us)

    on_sqs_visibility_changed = on_sqs_message_received

    def on_sqs_message_deleted(self, record: Record) -> None:
        if record.deleted:
            self.on_sqs_message_redriven(record)

    def on_sqs_message_redriven(self, record: Record) -> None:
        self._strip((record.node, record.queue, 0)).settle(self._number(record), ENDED)
        self.ended[record.node] = self.ended.get(record.node, 0) + 1

    # -- hands --------------------------------------------------------------------------------------------------------

    def on_work_taken(self, record: Record) -> None:
        hand = self.hand_of(record.worker)
        key = self.orders.get((self.server_of(record.worker), record.order_name))
        if key is None:
            # An order of Pop: the message that came with its frame, and has no name yet.
            named = set(self.orders.values())
            key = next((one for one in hand.came if one not in named), "")
            self.orders[self.server_of(record.worker), record.order_name] = key
        hand.take(key, record.told_count + (record.system == "pop"))

    def on_work_answered(self, record: Record) -> None:
        hand = self.hand_of(record.worker)
        hand.put_down(self.orders.get((self.server_of(record.worker), record.order_name), ""), record.answer)

    def said(self, record: Record) -> tuple[str, str]:
        """Who has said something of a cousin's message with this event, and the message's key."""
        of_sqs = record.kind.startswith("Sqs")
        number = self._number(record) if of_sqs else record.queue_offset
        return record.task.removeprefix("from "), f"{record.node}{COUSIN}{number}"

    def server_of(self, worker: str) -> str:
        """The machine that a worker has a connection with; a name server is none."""
        servers = {queue[0] for queue in self.strips}
        ends = (ends for ends in self.wires if worker in ends and (ends[0] in servers or ends[1] in servers))
        source, target = next(ends, ("", ""))
        return source if target == worker else target
