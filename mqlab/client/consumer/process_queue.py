"""The messages of one queue that a consumer holds: pulled, but not yet consumed for good."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mqlab.client.consumer.tree_map import TreeMap
from mqlab.errors import LearnerError
from mqlab.protocol.message import MessageConst, MessageExt
from mqlab.sim import Lock

if TYPE_CHECKING:
    from mqlab.sim import Node

REBALANCE_LOCK_MAX_LIVE_MS = 30_000
"""A consumer trusts its lock of a queue this long after the last renewal."""
REBALANCE_LOCK_INTERVAL_MS = 20_000
PULL_MAX_IDLE_MS = 120_000
"""A queue that was not pulled for so long is given up and taken anew (rocketmq.client.pull.pullMaxIdleTime)."""

CLEAN_EXPIRED_MOST = 16
CLEAN_EXPIRED_DELAY_LEVEL = 3

SendBack = Callable[[MessageExt, int], Coroutine[Any, Any, bool]]


class ProcessQueue:
    """A window on one queue: what was pulled and is being consumed, sorted by offset.

    Java: org.apache.rocketmq.client.impl.consumer.ProcessQueue. `msg_count` and `msg_size` (bytes of the bodies) are
    what flow control looks at, with `max_span()`. Only one task of a world runs at a time, so the locks of the Java
    class are not needed, except the consume lock, which an orderly listener holds while it waits.
    """

    __slots__ = (
        "_node",
        "consume_lock",
        "consuming",
        "consuming_msg_orderly_tree_map",
        "dropped",
        "last_consume_us",
        "last_lock_us",
        "last_pull_us",
        "locked",
        "msg_acc_cnt",
        "msg_count",
        "msg_size",
        "msg_tree_map",
        "queue_offset_max",
        "try_unlock_times",
    )

    def __init__(self, node: Node) -> None:
        now_us = node.now_us()
        self._node = node
        self.msg_tree_map = TreeMap()
        self.consuming_msg_orderly_tree_map: dict[int, MessageExt] = {}
        """What an orderly listener has at present; messages are taken, so they stand, in the order of their offsets."""
        self.msg_count = 0
        self.msg_size = 0
        self.queue_offset_max = 0
        self.msg_acc_cnt = 0
        self.dropped = False
        self.consuming = False
        self.locked = False
        self.try_unlock_times = 0
        self.last_pull_us = now_us
        self.last_consume_us = now_us
        self.last_lock_us = now_us
        self.consume_lock = Lock("the consume lock of a process queue")

    # -- pulled and consumed ----------------------------------------------------------------------------------------

    def put_message(self, messages: Sequence[MessageExt]) -> bool:
        """Take in pulled messages; True if orderly consumption must be started, because nobody is at it."""
        tree = self.msg_tree_map
        new = 0
        for message in messages:
            offset = message.queue_offset
            if offset not in tree:
                new += 1
                self.queue_offset_max = offset
                self.msg_size += len(message.body)
            tree.put(offset, message)
        self.msg_count += new
        dispatch = bool(tree) and not self.consuming
        if dispatch:
            self.consuming = True
        if messages:
            last = messages[-1]
            behind = int(last.properties.get(MessageConst.MAX_OFFSET, "0")) - last.queue_offset
            if behind > 0:
                self.msg_acc_cnt = behind
        return dispatch

    def remove_message(self, messages: Sequence[MessageExt]) -> int:
        """Take out consumed messages; the offset that may now be committed, or -1 if there is none.

        That is the smallest offset still held: one message that is stuck holds all commits back.

        Java: org.apache.rocketmq.client.impl.consumer.ProcessQueue.removeMessage.
        """
        self.last_consume_us = self._node.world.now_us
        tree = self.msg_tree_map
        if not tree:
            return -1
        for message in messages:
            held = tree.pop(message.queue_offset, None)
            if held is not message:
                _check_offset_unchanged(message, tree)
            if held is not None:
                self.msg_count -= 1
                self.msg_size -= len(message.body)
        if self.msg_count == 0:
            self.msg_size = 0
        return tree.first_key() if tree else self.queue_offset_max + 1

    def contains_message(self, message: MessageExt) -> bool:
        """Whether the message is still held."""
        return message.queue_offset in self.msg_tree_map

    def max_span(self) -> int:
        """The distance from the first to the last offset held; 0 when empty."""
        tree = self.msg_tree_map
        return tree.last_key() - tree.first_key() if tree else 0

    # -- orderly consumption ----------------------------------------------------------------------------------------

    def take_messages(self, batch_size: int) -> list[MessageExt]:
        """Move the first messages aside for an orderly listener; none left means that consuming stops."""
        self.last_consume_us = self._node.now_us()
        taken: list[MessageExt] = []
        while self.msg_tree_map and len(taken) < batch_size:
            offset, message = self.msg_tree_map.poll_first_entry()
            self.consuming_msg_orderly_tree_map[offset] = message
            taken.append(message)
        if not taken:
            self.consuming = False
        return taken

    def commit(self) -> int:
        """The messages set aside are consumed; the offset behind them, or -1 if there were none."""
        aside = self.consuming_msg_orderly_tree_map
        if not aside:
            return -1
        offset = max(aside)
        self.msg_count -= len(aside)
        self.msg_size -= sum(len(message.body) for message in aside.values())
        if self.msg_count == 0:
            self.msg_size = 0
        aside.clear()
        return offset + 1

    def rollback(self) -> None:
        """Put everything set aside back to its place."""
        for offset, message in self.consuming_msg_orderly_tree_map.items():
            self.msg_tree_map.put(offset, message)
        self.consuming_msg_orderly_tree_map.clear()

    def make_message_to_consume_again(self, messages: Sequence[MessageExt]) -> None:
        """Put these messages, which were set aside, back to their places."""
        for message in messages:
            if self.consuming_msg_orderly_tree_map.pop(message.queue_offset, None) is not message:
                _check_offset_unchanged(message, self.consuming_msg_orderly_tree_map)
            self.msg_tree_map.put(message.queue_offset, message)

    # -- time -------------------------------------------------------------------------------------------------------

    @property
    def is_lock_expired(self) -> bool:
        """Whether the lock was not renewed for 30 s."""
        return self._node.now_us() - self.last_lock_us > REBALANCE_LOCK_MAX_LIVE_MS * 1_000

    @property
    def is_pull_expired(self) -> bool:
        """Whether no pull was tried for 120 s."""
        return self._node.now_us() - self.last_pull_us > PULL_MAX_IDLE_MS * 1_000

    async def clean_expired_msg(self, consume_timeout_minutes: int, send_back: SendBack) -> None:
        """Give messages back whose listener has been at it for too long: at most 16 from the front of the queue.

        Looks at the first message each time and stops at one that is not too old. One that nobody takes back stays, and
        is offered again as long as the 16 turns last.

        Java: org.apache.rocketmq.client.impl.consumer.ProcessQueue.cleanExpiredMsg.
        """
        for _ in range(min(len(self.msg_tree_map), CLEAN_EXPIRED_MOST)):
            if not self.msg_tree_map:
                return
            offset = self.msg_tree_map.first_key()
            message = self.msg_tree_map[offset]
            started = message.properties.get(MessageConst.CONSUME_START_TIMESTAMP)
            if started is None:
                return
            try:
                started_ms = int(started)
            except ValueError:
                # Only a producer can have written that; in RocketMQ, too, it ends the round.
                return
            if self._node.now_ms() - started_ms <= consume_timeout_minutes * 60_000:
                return
            given_back = await send_back(message, CLEAN_EXPIRED_DELAY_LEVEL)
            if given_back and self.msg_tree_map and self.msg_tree_map.first_key() == offset:
                self.remove_message([message])

    def clear(self) -> None:
        """Forget every message that is held, consumed or not."""
        self.msg_tree_map.clear()
        self.consuming_msg_orderly_tree_map.clear()
        self.msg_count = 0
        self.msg_size = 0
        self.queue_offset_max = 0

    def __repr__(self) -> str:
        tree = self.msg_tree_map
        held = f"offsets {tree.first_key()}..{tree.last_key()}" if tree else "empty"
        state = ", dropped" if self.dropped else ""
        return f"<ProcessQueue: {self.msg_count} messages, {self.msg_size} bytes, {held}{state}>"


def _check_offset_unchanged(message: MessageExt, held: Mapping[int, MessageExt]) -> None:
    """LearnerError if the message is held at another offset than its own: RocketMQ would hold it for ever."""
    for offset, other in held.items():
        if other is message:
            queue = f"queue {message.queue_id} of {message.topic}"
            raise LearnerError(
                f"a listener changed queue_offset of the message at {offset} of {queue} to {message.queue_offset}: its "
                "consumer would not find it again, and never commit an offset behind it",
                "leave messages as they are; put what is to be changed into an object of your own",
            )
