"""The stage: who is there, where each message is, and what is on its way, folded from the events.

`mqlab_widgets.scene` draws it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from mqlab.protocol.codes import RequestCode
from mqlab.protocol.pop_check_point import REVIVE_GROUP, is_revive_topic
from mqlab.protocol.route import MASTER_ID
from mqlab.protocol.topics import RMQ_SYS_SCHEDULE_TOPIC, TIMER_TOPIC, is_system_topic, retry_topic
from mqlab.trace.record import Record
from mqlab_widgets.boards.board import Board
from mqlab_widgets.boards.stage_state import Consumer, Flight, Log, Producer, Strip, words_of_waiting
from mqlab_widgets.labels import SENDER_LETTERS, label_of

if TYPE_CHECKING:
    from mqlab import Lab

RUNNING, FROZEN, DOWN = "running", "frozen", "down"
SENDS = {RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE}
PULLS = {RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE, RequestCode.POP_MESSAGE}
ACKS = {RequestCode.ACK_MESSAGE, RequestCode.CHANGE_MESSAGE_INVISIBLETIME}
DELAYED = RMQ_SYS_SCHEDULE_TOPIC
BROADCAST = "@broadcast"
"""What a broker adds to the name of a group whose members all get everything (BroadcastOffsetManager)."""
SCARCE = 65_536
"""A disk with fewer bytes left is called full."""
POP_US = 10_000
"""A pop gives its messages the time of its beginning, which is so much before at most."""
MOST_TOLD = 4
"""The keys of so many messages in a frame are known."""
MOST_KEYS = 8_000
"""Of so many messages the unique key is known by their place; of older ones only the place."""

Queue = tuple[str, str, int]
"""(machine of the broker, topic, queue id)"""


class Held(NamedTuple):
    """A pull that a broker holds."""

    topic: str
    queue_id: int
    since_us: int
    hold_ms: int
    consumer: str


PROCESSES = {"NameServerProcess": "namesrv", "BrokerProcess": "broker", "ProxyProcess": "proxy"}
"""What stands at its own place on the stage, whatever it does."""


class StageBoard(Board):
    """Who is there, what is stored, held and cached, and what is on its way."""

    title: ClassVar[str] = "The world"

    def __init__(self, lab: Lab) -> None:
        self._keys: dict[tuple[str, str, int, int], str] = {}
        """Place of a message -> its unique key. Any state agrees with it, so it is not copied with the state."""
        self._senders: dict[str, str] = {}
        """What the keys of one process have in common -> the machine; it is not copied either."""
        self._names: dict[str, str] = {}
        """Address of a machine -> its name."""
        super().__init__(lab)

    def begin(self) -> None:
        """Nobody is there yet."""
        self.states: dict[str, str] = {}
        self.roles: dict[str, str] = {}
        self.groups: dict[str, str] = {}
        self.masters: dict[str, str] = {}
        """Name of a broker in the routes -> the machine of its master."""
        self.slaves: dict[str, str] = {}
        """Machine of a slave -> the name of its broker."""
        self.wires: dict[tuple[str, str], None] = {}
        self.connections: dict[int, tuple[str, str]] = {}
        self.cut: dict[tuple[str, str], bool] = {}
        self.flights: dict[str, Flight] = {}
        self.lost: dict[str, Flight] = {}
        """Frames that died with the newest event that ended a process or a connection."""
        self.landed: dict[str, Flight] = {}
        """Machine -> the frame that it got last."""
        self.strips: dict[Queue, Strip] = {}
        self.logs: dict[str, Log] = {}
        self.held: dict[str, dict[tuple[int, str], Held]] = {}
        self.trouble: dict[str, str] = {}
        """Machine -> what is wrong with its disk."""
        self.producers: dict[str, Producer] = {}
        self.consumers: dict[str, Consumer] = {}
        self.answers: dict[tuple[str, int, str], tuple[Queue, tuple[str, ...], int]] = {}
        """(broker, opaque, remote) -> (queue, first few unique keys, messages) of a pull that is being answered."""
        self.handed: dict[tuple[str, str], tuple[str, ...]] = {}
        """(broker, remote) -> unique keys of messages that are popped, and not in an answer yet."""
        self.pops: dict[tuple[str, str], None] = {}
        """(broker, topic) of which messages are popped from any queue."""
        self.sending: dict[str, tuple[tuple[int, int], str]] = {}
        """Producer -> event and key of its newest attempt, which tells what the next frame carries."""
        self.asking: dict[str, tuple[tuple[int, int], Queue]] = {}
        """Consumer -> event and queue of its newest pull."""

    # -- names ------------------------------------------------------------------------------------------------------

    def name_of(self, address: str) -> str:
        """The machine at an address; the address itself if nobody has it."""
        host = address.partition(":")[0]
        if host not in self._names:
            self._names = {node.spec.ip: name for name, node in self.lab.world.nodes.items()}
        return self._names.get(host, address)

    def key_at(self, queue: Queue, offset: int) -> str:
        """The unique key of the message at a place; "" if it is not known (any more)."""
        return self._keys.get((*queue, offset), "")

    def label(self, key: str) -> str:
        """What is written on a message."""
        return label_of(key, self.lab)

    def queue_of(self, record: Record) -> Queue:
        """The queue that a client's event is about."""
        return self.masters.get(record.broker_name, record.broker_name), record.topic, record.queue_id

    # -- machines ---------------------------------------------------------------------------------------------------

    def on_node_started(self, record: Record) -> None:
        self.states[record.target] = RUNNING
        if record.target in self.logs:
            self.logs[record.target].dark = False

    def on_node_crashed(self, record: Record) -> None:
        self._gone(record.target)

    def on_power_lost(self, record: Record) -> None:
        self._gone(record.target)
        if record.target in self.logs:
            self.logs[record.target].dark = record.pages_lost > 0

    def on_node_frozen(self, record: Record) -> None:
        self.states[record.target] = FROZEN

    def on_node_thawed(self, record: Record) -> None:
        self.states[record.target] = RUNNING

    def on_broker_started(self, record: Record) -> None:
        if record.broker_id == MASTER_ID:
            self.masters[record.broker_name] = record.node
        else:
            self.slaves[record.node] = record.broker_name

    def on_client_started(self, record: Record) -> None:
        self.states[record.node] = RUNNING
        self.roles[record.node] = record.role
        self.groups[record.node] = record.group
        if "producer" in record.role:
            self.producers[record.node] = Producer()
        else:
            self.consumers[record.node] = Consumer()

    def on_client_stopped(self, record: Record) -> None:
        self._forget_client(record.node)

    def _gone(self, node: str) -> None:
        self.states[node] = DOWN
        self.held.pop(node, None)
        self._die({name: flight for name, flight in self.flights.items() if node in (flight.source, flight.target)})
        self._forget_client(node)

    def _die(self, lost: dict[str, Flight]) -> None:
        self.lost = lost
        for name in lost:
            del self.flights[name]

    def _forget_client(self, node: str) -> None:
        if node in self.producers:
            self.producers[node].forget()
        if node in self.consumers:
            self.consumers[node] = Consumer(done=self.consumers[node].done)
        self.sending.pop(node, None)
        self.asking.pop(node, None)
        for strip in self.strips.values():
            strip.give_up(node)

    def on_disk_hung(self, record: Record) -> None:
        self.trouble[record.target] = "its disk hangs"

    def on_disk_unhung(self, record: Record) -> None:
        self.trouble.pop(record.target, None)

    def on_disk_full_changed(self, record: Record) -> None:
        if record.full:
            self.trouble[record.node] = "its disk is full"
        else:
            self.trouble.pop(record.node, None)

    def on_action_taken(self, record: Record) -> None:
        if record.verb == "restart":
            self.states[json.loads(record.arguments)["node"]] = RUNNING
        elif record.verb == "fill_disk":
            given = json.loads(record.arguments)
            if given.get("free_bytes", 0) < SCARCE:
                self.trouble[given["node"]] = "its disk is full"
            else:
                self.trouble.pop(given["node"], None)

    # -- the wire ---------------------------------------------------------------------------------------------------

    def on_connection_opened(self, record: Record) -> None:
        ends = (record.node, self.name_of(record.remote))
        self.connections[record.connection] = ends
        if ends[::-1] not in self.wires:
            self.wires[ends] = None

    def on_request_sent(self, record: Record) -> None:
        # Half of all events are frames, so these read the row itself: connection, frame, local, remote come first.
        connection, frame, local, remote, _, code, name = record.row[8:15]
        node, kind, key, queue = record.row[3], "other", "", None
        if code in SENDS:
            kind, key = "send", self._attempt(record)
        elif code in PULLS:
            kind, (_, queue) = "pull", self.asking.get(node, ((-1, -1), None))
        elif code == RequestCode.CONSUMER_SEND_MSG_BACK:
            kind, key = "back", self._attempt(record)
        elif code in ACKS:
            kind, key = "ack", self._attempt(record)
        keys = (key,) if key else ()
        flight = Flight(node, self.name_of(remote), name, kind, False, keys, len(keys), queue, record.ts_us)
        self.flights[f"{connection}:{local}:{frame}"] = flight

    def _attempt(self, record: Record) -> str:
        return self.sending.get(record.node, ((-1, -1), ""))[1]

    def on_response_sent(self, record: Record) -> None:
        connection, frame, local, remote, opaque, code = record.row[8:14]
        node = record.row[3]
        queue: Queue | None = None
        keys: tuple[str, ...] = ()
        count = 0
        answered = self.answers.pop((node, opaque, remote), None)
        if answered is not None:
            queue, keys, count = answered
        kind = "pull" if answered is not None else "answer" if code == 0 else "refusal"
        flight = Flight(node, self.name_of(remote), record.response_name, kind, True, keys, count, queue, record.ts_us)
        self.flights[f"{connection}:{local}:{frame}"] = flight

    def on_request_received(self, record: Record) -> None:
        connection, frame, _, remote = record.row[8:12]
        flight = self.flights.pop(f"{connection}:{remote}:{frame}", None)
        if flight is not None:
            self.landed[record.node] = flight

    on_response_received = on_request_received

    def on_connection_broken(self, record: Record) -> None:
        self._connection_gone(record.connection)

    def on_connection_closed(self, record: Record) -> None:
        self._connection_gone(record.connection)

    def _connection_gone(self, connection: int) -> None:
        self.connections.pop(connection, None)
        mine = f"{connection}:"
        self._die({name: flight for name, flight in self.flights.items() if name.startswith(mine)})

    def on_link_cut(self, record: Record) -> None:
        self.cut[record.source, record.target] = True

    def on_link_healed(self, record: Record) -> None:
        self.cut.pop((record.source, record.target), None)

    # -- the producer -----------------------------------------------------------------------------------------------

    def on_send_attempted(self, record: Record) -> None:
        self.sending[record.node] = (record.at, record.msg_id)
        self._senders[record.msg_id[:SENDER_LETTERS]] = record.node
        self._producer(record.node).attempt(record.msg_id)

    def on_send_succeeded(self, record: Record) -> None:
        self._producer(record.node).succeeded(record.msg_id)

    def on_send_attempt_failed(self, record: Record) -> None:
        self._producer(record.node).last = record.reason

    def on_send_failed(self, record: Record) -> None:
        self._producer(record.node).failed(record.msg_id, record.reason)

    def _producer(self, node: str) -> Producer:
        return self.producers.setdefault(node, Producer())

    # -- the broker -------------------------------------------------------------------------------------------------

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

    def _strip(self, queue: Queue) -> Strip:
        strip = self.strips.get(queue)
        if strip is None:
            strip = self.strips[queue] = Strip()
        return strip

    def on_commit_log_flushed(self, record: Record) -> None:
        self.logs.setdefault(record.node, Log()).flushed = record.flushed_where

    def on_store_recovered(self, record: Record) -> None:
        end = record.commit_log_max_offset
        if record.node in self.logs:
            self.logs[record.node].cut(end)
        for (node, _, _), strip in self.strips.items():
            if node == record.node:
                strip.cut(end)

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
        self.held.get(record.node, {}).pop((record.opaque, record.remote), None)

    # -- the broker, when it is popped from -------------------------------------------------------------------------

    def on_pop_held(self, record: Record) -> None:
        self.pops[record.node, record.topic] = None
        self.on_pull_held(record)

    on_pop_woken = on_pull_woken

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

    def on_invisible_time_changed(self, record: Record) -> None:
        strip = self._strip((record.node, record.topic, record.queue_id))
        since_us = self._us_of(record.new_pop_time)
        strip.pop(record.queue_offset, since_us, since_us + 1_000 * record.invisible_ms)

    def _us_of(self, wall_ms: int) -> int:
        return (wall_ms - self.lab.world.epoch_ms) * 1_000

    # -- the consumer -----------------------------------------------------------------------------------------------

    def _consumer(self, node: str) -> Consumer:
        return self.consumers.setdefault(node, Consumer())

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

    # -- summed up --------------------------------------------------------------------------------------------------

    def kind_of(self, node: str) -> str:
        """ "namesrv", "proxy", "broker", "slave", "producer", "consumer" or "machine"."""
        process = self.lab.processes.get(node)
        name = type(process).__name__
        if node in self.slaves:
            return "slave"
        if name in PROCESSES:
            return PROCESSES[name]
        role = self.roles.get(node, "")
        if "producer" in role or (not role and node.startswith("producer")):
            return "producer"
        return "consumer" if role or node.startswith("consumer") else "machine"

    def queues_of(self, broker: str, *, system: bool = False) -> dict[str, dict[int, Strip]]:
        """Topic -> queue id -> the queue, of all that have messages or an owner."""
        topics: dict[str, dict[int, Strip]] = {}
        for (node, topic, queue_id), strip in sorted(self.strips.items()):
            # A 5.x client knows of no queue but "any", -1.
            if node == broker and queue_id >= 0 and (system or not is_system_topic(topic)):
                topics.setdefault(topic, {})[queue_id] = strip
        return topics

    def way_of(self, key: str) -> list[str]:
        """The machines on the way of a message: who has sent it, the brokers that have it, and who pulls it."""
        way = dict.fromkeys([self._senders.get(key[:SENDER_LETTERS], "")])
        for (broker, _, _), strip in self.strips.items():
            if any(cell.key == key for cell in strip.cells):
                way |= dict.fromkeys([broker, *strip.owners])
        return [node for node in way if node]

    def html(self) -> str:
        """The picture."""
        from mqlab_widgets.scene.scene import Look, scene_of

        return scene_of(self, Look()).svg()

    def text(self) -> list[str]:
        """One line for each machine, then what is on its way."""
        lines = [self._line(node) for node in self.states]
        by_link: dict[tuple[str, str], list[str]] = {}
        for flight in self.flights.values():
            by_link.setdefault((flight.source, flight.target), []).append(flight.name)
        for (source, target), names in by_link.items():
            shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
            lines.append(f"on the way from {source} to {target}: {shown}")
        lines += [f"the link from {source} to {target} is cut" for source, target in self.cut]
        return lines or ["no machine has started yet"]

    def _line(self, node: str) -> str:
        kind, state = self.kind_of(node), self.states[node]
        parts = [f"{node} ({kind}) is {state}"]
        for topic, queues in self.queues_of(node).items():
            stored = sum(strip.end for strip in queues.values())
            if stored:
                waiting = words_of_waiting(queues.values())
                parts.append(f"{topic}: {stored} messages in {len(queues)} queues, {waiting}")
        if self.held.get(node):
            parts.append(f"{len(self.held[node])} pulls held")
        if node in self.trouble:
            parts.append(self.trouble[node])
        if kind == "consumer" and state != DOWN:
            consumer = self._consumer(node)
            parts.append(f"{consumer.cached} messages cached, {consumer.busy} in listeners")
            if consumer.limited:
                parts.append(f"flow control: {consumer.limited}")
        if kind == "producer" and self._producer(node).failures:
            parts.append(f"{self._producer(node).failures} messages could not be sent")
        return "; ".join(parts)
