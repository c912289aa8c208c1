"""Delayed messages: parked in the schedule topic by delay level, and delivered when their time has come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqlab.broker.config_manager import ConfigManager
from mqlab.broker.deliver_delayed_message import PERIOD_US, DeliverDelayedMessage
from mqlab.broker.parked_message import delay_level_of, is_timer_message, park
from mqlab.protocol.sysflag import MessageSysFlag
from mqlab.protocol.topic_config import DataVersion, DelayOffsetSerializeWrapper
from mqlab.protocol.topics import RMQ_SYS_SCHEDULE_TOPIC
from mqlab.store import BrokerRole, PutMessageResult, PutMessageStatus
from mqlab.trace.events.broker import DelayOffsetCorrected, MessageParked

if TYPE_CHECKING:
    from mqlab.broker.broker_config import BrokerConfig
    from mqlab.broker.broker_stats import BrokerStats
    from mqlab.sim import Node, PeriodicTask
    from mqlab.store import DefaultMessageStore, MessageExtBrokerInner
    from mqlab.store.writable_store import PutMessageHook

FIRST_DELAY_MS = 1_000
PERSIST_FIRST_MS = 10_000


class ScheduleMessageService(ConfigManager):
    """One delivery loop for each delay level (org.apache.rocketmq.broker.schedule.ScheduleMessageService).

    Level n waits as long as the n-th word of `message_delay_level` says, in queue n - 1 of SCHEDULE_TOPIC_XXXX. How far
    each level has come is in config/delayOffset.json, written every 10 s and at a clean stop: after a crash what was
    delivered since is delivered again. The loops look first 1 s after the start, and then every 100 ms.
    """

    def __init__(
        self, node: Node, path: str, config: BrokerConfig, message_store: DefaultMessageStore, stats: BrokerStats
    ) -> None:
        super().__init__(node, path)
        self.node = node
        self.message_store = message_store
        self.stats = stats
        self.offset_table: dict[int, int] = {}
        self.data_version = DataVersion(node.now_ms())
        self.loops: dict[int, DeliverDelayedMessage] = {}
        self.transform_timer_message: PutMessageHook = lambda message: None
        """Gives a timer message to the timer; the broker says how."""
        self._version_step = config.delay_offset_update_version_step
        self._updates = 0
        self._first_turn_us = 0
        self._persisting: PeriodicTask | None = None

    @property
    def max_delay_level(self) -> int:
        """The highest delay level; 0 when none is set up."""
        return len(self.message_store.delays_ms)

    # -- parking ----------------------------------------------------------------------------------------------------

    def handle_schedule_message(self, message: MessageExtBrokerInner) -> PutMessageResult | None:
        """Park a message that asks for a delay level, before the store takes it; give one that asks for a time to the
        timer.

        Prepared and rolled-back messages of transactions are left alone.
        Java: org.apache.rocketmq.broker.util.HookUtils.handleScheduleMessage.
        """
        properties = message.properties
        delayed = "DELAY" in properties
        # Nearly all messages end here: no call is spent on them.
        if not delayed and not (
            "TIMER_DELAY_MS" in properties or "TIMER_DELAY_SEC" in properties or "TIMER_DELIVER_MS" in properties
        ):
            return None
        if MessageSysFlag.transaction_value(message.sys_flag) not in (
            MessageSysFlag.TRANSACTION_NOT_TYPE,
            MessageSysFlag.TRANSACTION_COMMIT,
        ):
            return None
        if delayed and delay_level_of(message) > 0:
            if self.max_delay_level:
                self._park(message)
        elif is_timer_message(message):
            if not self.message_store.config.timer_wheel_enable:
                return PutMessageResult(PutMessageStatus.WHEEL_TIMER_NOT_ENABLE, remark="the timer wheel is off")
            return self.transform_timer_message(message)
        return None

    def _park(self, message: MessageExtBrokerInner) -> None:
        topic, queue_id = message.topic, message.queue_id
        level = park(message, self.max_delay_level)
        if self.node.hooks.on:
            unique_key = message.properties.get("UNIQ_KEY", "")
            delay_ms = self.message_store.delays_ms[level - 1]
            self.node.hooks.emit(MessageParked(topic, queue_id, unique_key, level, delay_ms))

    # -- life -------------------------------------------------------------------------------------------------------

    def load(self) -> bool:
        """Read the file, and move progress that lies outside of its queue to the nearest end."""
        loaded = super().load()
        self._correct_delay_offsets()
        return loaded

    def _correct_delay_offsets(self) -> None:
        for level in range(1, self.max_delay_level + 1):
            queue = self.message_store.find_consume_queue(RMQ_SYS_SCHEDULE_TOPIC, level - 1)
            offset = self.offset_table.get(level)
            if offset is None:
                continue
            least = queue.min_offset_in_queue if queue is not None else 0
            most = queue.max_offset_in_queue if queue is not None else 0
            corrected = min(max(offset, least), most)
            if corrected != offset:
                self.offset_table[level] = corrected
                if self.node.hooks.on:
                    self.node.hooks.emit(DelayOffsetCorrected(level, offset, corrected))

    def start(self) -> None:
        """Let the loops turn, from 1 s on; a slave has none, as its master delivers."""
        if self.message_store.config.broker_role is BrokerRole.SLAVE:
            return
        node = self.node
        self._first_turn_us = node.now_us() + FIRST_DELAY_MS * 1_000
        for level, delay_ms in enumerate(self.message_store.delays_ms, 1):
            loop = DeliverDelayedMessage(self, level, delay_ms, self.offset_table.get(level, 0))
            self.loops[level] = loop
            loop.arm()
        node.life.clock_listeners.append(self._clock_was_set)
        interval_ms = self.message_store.config.flush_delay_offset_interval
        self._persisting = node.schedule_at_fixed_rate(
            self.persist, PERSIST_FIRST_MS, interval_ms, "persist delay offsets"
        )

    def shutdown(self) -> None:
        """Stop the loops and write the file."""
        if self._persisting is None:
            return
        self._persisting.cancel()
        self._persisting = None
        self.node.life.clock_listeners.remove(self._clock_was_set)
        self.persist()
        for loop in self.loops.values():
            loop.cancel()
        self.loops.clear()

    def arrived(self, queue_id: int) -> None:
        """A queue of the schedule topic has one more message."""
        loop = self.loops.get(queue_id + 1)
        if loop is not None:
            loop.arrived()

    def _clock_was_set(self) -> None:
        for loop in self.loops.values():
            loop.arm()

    # -- the grid on which the loops turn -----------------------------------------------------------------------------

    def turn_at(self, earliest_us: int) -> int:
        """The time of the first turn behind now that is not before `earliest_us`."""
        beyond_us = max(earliest_us, self.node.now_us() + 1) - self._first_turn_us
        return self._first_turn_us + max(0, -(-beyond_us // PERIOD_US)) * PERIOD_US

    def turns_before(self, now_us: int) -> int:
        """How many turns a loop that always turns has made before `now_us`."""
        return max(0, -((self._first_turn_us - now_us) // PERIOD_US))

    # -- progress and its file ----------------------------------------------------------------------------------------

    def update_offset(self, level: int, offset: int, times: int = 1) -> None:
        """Note how far a level has come; every 200th note makes a new version of the table."""
        self.offset_table[level] = offset
        versions = (self._updates + times) // self._version_step - self._updates // self._version_step
        self._updates += times
        for _ in range(versions):
            self.data_version.next_version(self.node.now_ms())

    def runtime_info(self) -> dict[str, str]:
        """How far each level that was ever used has come, and how long its queue is."""
        self._count_turns()
        end_of = self.message_store.get_max_offset_in_queue
        return {
            f"scheduleMessageOffset_{level}": f"{offset},{end_of(RMQ_SYS_SCHEDULE_TOPIC, level - 1)}"
            for level, offset in self.offset_table.items()
        }

    def _count_turns(self) -> None:
        for loop in self.loops.values():
            loop.count_turns()

    def wrapper(self) -> DelayOffsetSerializeWrapper:
        """The whole table, as the file on the disk has it."""
        self._count_turns()
        return DelayOffsetSerializeWrapper(dict(sorted(self.offset_table.items())), self.data_version)

    def replace_all(self, wrapper: DelayOffsetSerializeWrapper) -> None:
        """Take over a master's progress, as a slave does, as far as the own queues go."""
        self.offset_table = wrapper.offset_table
        self.data_version.assign(wrapper.data_version)
        self._correct_delay_offsets()
        self.persist()

    def encode(self) -> dict[str, Any]:
        """The content of delayOffset.json."""
        return self.wrapper().to_json()

    def decode(self, value: dict[str, Any]) -> None:
        """Take over the progress in a file."""
        wrapper = DelayOffsetSerializeWrapper.from_json(value)
        self.offset_table = wrapper.offset_table
        self.data_version.assign(wrapper.data_version)
