"""Rules of time: what is to happen after a while happens then, not before and not much later."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from mqlab.client import DefaultMQPushConsumer
from mqlab.explore.places import Place
from mqlab.explore.readers import clients_in, is_running
from mqlab.explore.rule import Case, Rule
from mqlab.lab.processes import NameServerProcess
from mqlab.protocol.topics import RMQ_SYS_SCHEDULE_TOPIC, is_dlq_topic
from mqlab.store.dispatch_request import delay_level_table
from mqlab.trace.record import Record

MOST_HOLD_MS = 30_000
"""A consumer gives a held pull up after 30 s (consumerTimeoutMillisWhenSuspend)."""
CHECK_US = 5_000_000
"""The hold service goes through the held pulls so often."""
LATE_MS = 1_200
"""A delay level looks every 100 ms for what is due, and a second after its broker's start."""
SETTLED_US = 5_000_000
"""Behind a fault what has piled up may take so long."""
PROMPT_US = 200_000
"""What is due at once may take so long."""
GHOST_BROKER = "a ghost broker"
SCAN_MS = 10_000
"""Name servers look for silent brokers every 5 s."""
HEARTBEAT_US = 31_000_000
RENEWAL_US = 21_000_000
DEFAULT_MOST_TRIES = 16
CLEAN_LEVEL = 3
"""The level with which a consumer gives back what its listener takes too long for."""


class _Held(NamedTuple):
    """A pull that a broker holds."""

    since_us: int
    hold_ms: int
    queue: tuple[str, str, int]
    offset: int
    group: str


class HoldsEnd(Rule):
    """A held pull is answered when a message comes for it, at once, and else when its time is up.

    A broker without long polling tells nobody that a message came: there the time alone counts
    (DefaultMessageStore.ReputMessageService, and PullRequestHoldService.run, in RocketMQ 5.3).
    """

    kinds = ("PullHeld", "PullWoken", "MessageDispatched", "NodeCrashed", "PowerLost", "BrokerShutDown")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._held: dict[tuple[str, str, int], _Held] = {}
        """(broker, remote address, opaque) -> what is held."""
        self._by_queue: dict[tuple[str, str, int], dict[tuple[str, str, int], None]] = {}
        self._came_us: dict[tuple[str, str, int], int] = {}
        """When a message came for a held pull."""

    def on_event(self, record: Record) -> None:
        """Note what is held, and judge what is woken."""
        if record.kind in ("NodeCrashed", "PowerLost", "BrokerShutDown"):
            node = record.node if record.kind == "BrokerShutDown" else record.target
            for key in [key for key in self._held if key[0] == node]:
                self._forget(key)
            return
        queue = (record.node, record.topic, record.queue_id)
        if record.kind == "MessageDispatched":
            for key in self._by_queue.get(queue, ()):
                if self._wants(self._held[key], record):
                    self._came_us.setdefault(key, record.ts_us)
            return
        key = (record.node, record.remote, record.opaque)
        if record.kind == "PullHeld":
            self._held[key] = _Held(record.ts_us, record.hold_ms, queue, record.queue_offset, record.group)
            self._by_queue.setdefault(queue, {})[key] = None
        elif key in self._held:
            self._judge(record, key, record.ts_us)
            self._forget(key)

    def at_end(self) -> None:
        """Judge what is still held."""
        for key in list(self._held):
            self._judge(None, key, self.case.lab.world.now_us)

    def _wants(self, held: _Held, record: Record) -> bool:
        readers = [r for r in self.case.readers.values() if r.group == held.group and record.topic in r.topics]
        if record.queue_offset < held.offset:
            return False
        consumption = self.case.ledger.consumption
        place = Place(record.node, record.topic, record.queue_id, record.queue_offset)
        return any(
            consumption.wants(reader, place)
            if record.topic in reader.conditions
            else not reader.topics[record.topic] or record.tags_code in reader.topics[record.topic]
            for reader in readers
        )

    def _judge(self, record: Record | None, key: tuple[str, str, int], now_us: int) -> None:
        held = self._held[key]
        if not self.case.fault_times.none_between(held.since_us, now_us):
            return
        self.judged += 1
        came_us = self._came_us.get(key, now_us)
        at = f"{held.queue[0]} {held.queue[1]} queue {held.queue[2]} offset {held.offset}"
        row = record.row if record is not None else None
        if held.hold_ms > MOST_HOLD_MS:
            self.found(row, f"a pull of {at} is to be held for {held.hold_ms} ms, longer than its consumer waits")
        elif now_us - came_us > PROMPT_US and self._tells(held.queue[0]):
            self.found(row, f"a pull of {at} was held {(now_us - came_us) // 1_000} ms longer than its message needed")
        elif now_us - held.since_us > held.hold_ms * 1_000 + CHECK_US + PROMPT_US:
            self.found(row, f"a pull of {at} was held for {(now_us - held.since_us) // 1_000} ms, not {held.hold_ms}")

    def _tells(self, broker: str) -> bool:
        """Are held pulls of this broker answered as soon as a message comes?"""
        return bool(self.case.broker(broker).running().broker_config.long_polling_enable)

    def _forget(self, key: tuple[str, str, int]) -> None:
        held = self._held.pop(key)
        self._by_queue[held.queue].pop(key)
        self._came_us.pop(key, None)


class RetriesComeInTime(Rule):
    """A delayed message comes at its level's time, never early; a given-back one has its level, and a last try.

    Late it comes only where something goes wrong.
    """

    LOOKS: ClassVar[dict[str, str]] = {
        "MessageGivenBack": "_asked_for", "SendBackStored": "_given_back", "DiskFullChanged": "_has_room",
        "PutRefused": "_refused", "MessageParked": "_parked", "MessageStored": "_stored",
        "ParkedMessageDelivered": "_delivered",
    }  # fmt: skip
    kinds = tuple(LOOKS)

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._asked: dict[tuple[str, int], None] = {}
        """(group, delay level) that its application has asked for when it gave a message back."""
        self._odd: list[Record] = []
        """What was stored again with another level than the broker would have chosen."""
        self._due: dict[tuple[str, str, str, int], list[int]] = {}
        """(broker, topic, unique key, level) -> when each copy is due, in ms of the broker's clock."""
        self._parked_ms: dict[tuple[str, str, int], int] = {}
        """(broker, unique key, level) -> when a copy was last to be parked."""
        self._put_off: dict[tuple[str, str, int], int] = {}
        """The same -> how long that one waited to be stored: its time counts from then on."""
        self._had_no_room_us: dict[str, int] = {}
        """Broker -> until when it last took its disk for full: it looks again every 10 s, the first time after 60 s."""

    def _asked_for(self, record: Record) -> None:
        self._asked[record.group, record.delay_level] = None

    def _has_room(self, record: Record) -> None:
        self._had_no_room_us[record.node] = record.ts_us

    def _refused(self, record: Record) -> None:
        if self._odd and (self._odd[-1].node, self._odd[-1].slice) == (record.node, record.slice):
            # It was to be stored again, and was not.
            self._odd.pop()
        # That there was no room for an entry of a queue shows in nothing else.
        if "DISK_FULL" in record.reason:
            self._had_no_room_us[record.node] = record.ts_us

    def _stored(self, record: Record) -> None:
        if record.topic == RMQ_SYS_SCHEDULE_TOPIC and self.case.is_live:
            key, now_ms = (record.node, record.unique_key, record.queue_id + 1), self._now_ms(record)
            self._put_off[key] = now_ms - self._parked_ms.get(key, now_ms)

    def _delivered(self, record: Record) -> None:
        """Judge the time. Of several copies, or one that comes again after a crash, no one can say which it is."""
        if not self.case.is_live:
            return
        self.judged += 1
        due = self._due.get((record.node, record.topic, record.unique_key, record.delay_level), [0])
        late_ms = self._now_ms(record) - due[0]
        put_off_ms = self._put_off.get((record.node, record.unique_key, record.delay_level), 0)
        if late_ms < 0:
            self.found(record.row, f"message {record.unique_key} comes {-late_ms} ms before its time")
        elif len(due) == 1 and late_ms - put_off_ms > LATE_MS and self._nothing_wrong_since(record, late_ms):
            self.found(record.row, f"message {record.unique_key} comes {late_ms} ms after its time")

    def _now_ms(self, record: Record) -> int:
        return self.case.lab.world.nodes[record.node].now_ms()

    def _parked(self, record: Record) -> None:
        """Note when a message is due: that is what its level says, whatever the event does."""
        if not self.case.is_live:
            return
        now_ms = self._parked_ms[record.node, record.unique_key, record.delay_level] = self._now_ms(record)
        delays_ms = delay_level_table(self.case.broker(record.node).running().message_store_config.message_delay_level)
        delay_ms = delays_ms[min(record.delay_level, len(delays_ms)) - 1]
        due = self._due.setdefault((record.node, record.topic, record.unique_key, record.delay_level), [])
        due.append(now_ms + delay_ms)
        if record.delay_ms != delay_ms:
            self.found(record.row, f"level {record.delay_level} is {delay_ms} ms, and a message is parked for another")

    def _nothing_wrong_since(self, record: Record, late_ms: int) -> bool:
        """Was nothing wrong since a message was due, and did its broker run all the time?"""
        due_us = record.ts_us - late_ms * 1_000
        if self._had_no_room_us.get(record.node, -1) >= due_us:
            return False
        began_us = self.case.ledger.processes.started_us.get(record.node, 0)
        return began_us + SETTLED_US < due_us and self.case.fault_times.none_between(due_us - SETTLED_US, record.ts_us)

    def _given_back(self, record: Record) -> None:
        most = self._most_tries(record.group)
        tries = record.reconsume_times - 1
        if most is None:
            return
        self.judged += 1
        if is_dlq_topic(record.topic):
            if tries < most:
                self.found(record.row, f"message {record.unique_key} is a dead letter after {tries} of {most} retries")
        elif tries >= most:
            self.found(record.row, f"message {record.unique_key} had its {most} retries and shall come once more")
        elif record.delay_level not in (record.reconsume_times + 2, CLEAN_LEVEL):
            self._odd.append(record)

    def at_end(self) -> None:
        """Judge the levels that no broker chooses by itself: an application must have asked for them."""
        for record in self._odd:
            if (record.group, record.delay_level) not in self._asked:
                self.found(record.row, f"retry {record.reconsume_times} is at delay level {record.delay_level}")

    def _most_tries(self, group: str) -> int | None:
        for process in self.case.lab.processes:
            for client, of_group, _ in clients_in(self.case.lab, process):
                if of_group == group and isinstance(client, DefaultMQPushConsumer):
                    most = client.max_reconsume_times
                    return DEFAULT_MOST_TRIES if most == -1 else most
        return None


class SignsOfLifeGoOn(Rule):
    """A client that runs tells every broker that it lives, and renews its locks, as often as it should."""

    kinds = ("HeartbeatAnswered", "NodeStarted", "ClientStopped", "BrokerForgotten")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._last_us: dict[tuple[str, str, str], int] = {}
        """(process, client id, broker's name) -> when the last heartbeat was answered."""

    def on_event(self, record: Record) -> None:
        """Note the heartbeats."""
        if record.kind == "HeartbeatAnswered":
            self._last_us[record.node, record.client_id, record.broker_name] = record.ts_us
            return
        ended = record.target if record.kind == "NodeStarted" else record.node
        name = record.broker_name if record.kind == "BrokerForgotten" else ""
        for key in [key for key in self._last_us if key[0] == ended and name in ("", key[2])]:
            del self._last_us[key]

    def at_end(self) -> None:
        """Judge what is old, when nothing was wrong for long enough."""
        now_us, over_us = self.case.lab.world.now_us, self.case.fault_times.over_since_us()
        if over_us is None:
            return
        for (process, client_id, broker), last_us in self._last_us.items():
            self.judged += 1
            if now_us - max(last_us, over_us) > HEARTBEAT_US:
                ago_ms = (now_us - last_us) // 1_000
                self.found(None, f"{client_id} on {process} told {broker} {ago_ms} ms ago that it lives")
        for name in self.case.lab.processes:
            for client, *_ in clients_in(self.case.lab, name):
                if isinstance(client, DefaultMQPushConsumer) and is_running(self.case.lab, name, client.impl):
                    self._look_at_locks(name, client, now_us, over_us)

    def _look_at_locks(self, process: str, consumer: DefaultMQPushConsumer, now_us: int, over_us: int) -> None:
        rebalance = consumer.impl.rebalance_impl
        if rebalance.needs_lock:
            for queue, held in rebalance.process_queue_table.items():
                self.judged += held.locked
                if held.locked and now_us - max(held.last_lock_us, over_us) > RENEWAL_US:
                    ago_ms = (now_us - held.last_lock_us) // 1_000
                    self.found(None, f"{process} renewed its lock of {queue} {ago_ms} ms ago and trusts it")


class RoutesForgetTheDead(Rule):
    """A name server forgets a broker when its connection ends, and when it was silent for 120 s.

    Until then it knows it by its name, too, so that routes can name it.
    """

    kinds = ("RouteQueried", "BrokerRegistered", "ConnectionClosed", "ConnectionBroken")
    EXCEPTIONS: ClassVar[dict[str, str]] = {
        GHOST_BROKER: (
            "A report that a name server looks at when its connection has ended is taken all the same: the broker is "
            "in the routes again, until it was silent for 120 s or reports over a new connection."
        )
    }

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._closed: dict[tuple[str, str], tuple[int, int]] = {}
        """(name server, remote address) -> when the connection ended, by the world's clock and by its own."""

    def on_event(self, record: Record) -> None:
        """Look through the name server's table of living brokers."""
        process = self.case.lab.processes.get(record.node)
        if not self.case.is_live or not isinstance(process, NameServerProcess) or process.controller is None:
            return
        now_ms = process.node.now_ms()
        if record.kind.startswith("Connection"):
            self._closed[record.node, record.remote] = (record.ts_us, now_ms)
            return
        routes = process.controller.route_info_manager
        named = {address for data in routes.broker_addr_table.values() for address in data.broker_addrs.values()}
        for info, live in routes.broker_live_table.items():
            self.judged += 1
            if info.broker_addr not in named:
                self.found(record.row, f"{record.node} knows that {info.broker_addr} lives, and by no name")
            silent_ms = now_ms - live.last_update_ms
            if silent_ms > live.heartbeat_timeout_ms + SCAN_MS:
                none_held = self.case.fault_times.none_between(record.ts_us - SCAN_MS * 1_000, record.ts_us)
                if none_held or not self._hung(record):
                    self.found(record.row, f"{record.node} keeps {info.broker_addr}, silent for {silent_ms} ms")
            elif not live.channel.is_active:
                since_us, since_ms = self._closed.get((record.node, live.channel.remote_address), (0, 0))
                if live.last_update_ms >= since_ms:
                    self.excuse(GHOST_BROKER)
                elif record.ts_us - since_us > PROMPT_US:
                    self.found(record.row, f"{record.node} keeps {info.broker_addr}, whose connection has ended")

    def _hung(self, record: Record) -> bool:
        """Has the name server itself hung, or its clock been wrong, so that its scan comes late?"""
        ledger = self.case.ledger
        return record.ts_us - ledger.processes.frozen_us.get(record.node, -1 << 60) < 1_000 * (120_000 + 2 * SCAN_MS)
