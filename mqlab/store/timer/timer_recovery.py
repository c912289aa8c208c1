"""What the timer does with its files after a stop: the log decides, and the wheel is mended from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.protocol.topics import TIMER_TOPIC
from mqlab.store.timer.timer_wheel import IGNORE

if TYPE_CHECKING:
    from mqlab.store.timer.timer_message_store import TimerMessageStore

TIMER_BLANK_SLOTS = 60
_LOOK_BACK = 20_000
"""How many entries of the timer's queue are looked at to find that of a message."""


def recover(timer: TimerMessageStore) -> None:
    """Find the end of the timer log, put its records into the wheel, and say where reading and enqueuing go on.

    Java: org.apache.rocketmq.store.timer.TimerMessageStore.recover.
    """
    log, checkpoint = timer.timer_log.mapped_file_queue, timer.timer_checkpoint
    begin = checkpoint.last_timer_log_flush_pos - (log.file_size if log.mapped_files else 0)
    end = _recover_and_revise(timer, max(0, begin), check=True)
    log.flushed_where = end
    offset = _revise_queue_offset(timer, end)
    offset = checkpoint.last_timer_queue_offset if offset < 0 else offset + 1
    offset = min(offset, checkpoint.master_timer_queue_offset)
    queue = timer.message_store.find_consume_queue(TIMER_TOPIC, 0)
    if queue is not None:
        offset = max(queue.min_offset_in_queue, min(offset, queue.max_offset_in_queue))
    timer.curr_queue_offset = timer.commit_queue_offset = offset
    precision_ms = timer.precision_ms
    earliest = timer.format_time_ms(timer.node.now_ms()) - (timer.slots_total - TIMER_BLANK_SLOTS) * precision_ms
    timer.curr_read_time_ms = max(checkpoint.last_read_time_ms, earliest)
    # A torn wheel can know records that the log has lost.
    first = timer.timer_wheel.check_phy_pos(timer.curr_read_time_ms, end)
    if first < end:
        _recover_and_revise(timer, first, check=False)


def _recover_and_revise(timer: TimerMessageStore, begin: int, *, check: bool) -> int:
    """Let the slots of the wheel end at the newest of their records, from the file of `begin` on; where the log ends.

    With `check` the first bytes that are no record end the log.
    """
    files = timer.timer_log.mapped_file_queue
    if not files.mapped_files:
        return 0
    started = [file for file in files.mapped_files if file.file_from_offset <= begin]
    at = len(started) - 1 if started else 0
    end = files.mapped_files[at].file_from_offset
    for file in files.mapped_files[at:]:
        records, goes_on = timer.timer_log.records_of(file, to_end=check)
        for record in records:
            timer.timer_wheel.revise_slot(record.slot_ms, IGNORE, record.position)
            end = record.position + record.size
        if not records:
            end = file.file_from_offset
        if not goes_on:
            break
    if check:
        files.truncate_dirty_files(end)
    return end


def _revise_queue_offset(timer: TimerMessageStore, end: int) -> int:
    """The place in the timer's queue of the message with the last record of the log; -1 when it cannot be found."""
    offset_py, size_py = timer.timer_log.message_before(end)
    message = timer.message_at(offset_py, size_py)
    if message is None:
        return -1
    queue = timer.message_store.find_consume_queue(TIMER_TOPIC, message.queue_id)
    if queue is None:
        return message.queue_offset
    for queue_offset in range(message.queue_offset, max(-1, message.queue_offset - _LOOK_BACK), -1):
        unit = queue.get(queue_offset)
        if unit is not None and (unit.pos, unit.size) == (offset_py, size_py):
            return queue_offset
    return message.queue_offset
