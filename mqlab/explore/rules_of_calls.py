"""Rules of calls: every frame arrives, every request is answered, every call comes to an end."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from typing import Any, ClassVar, NamedTuple

from mqlab.explore.places import Place
from mqlab.explore.readers import clients_in
from mqlab.explore.rule import Case, Rule
from mqlab.explore.rules_of_pop import NO_RECORD, NO_RECORD_TEXT
from mqlab.explore.stale_entries import STALE, STALE_TEXT
from mqlab.lab.processes import ProxyProcess
from mqlab.protocol.codes import RequestCode
from mqlab.store import BrokerRole
from mqlab.trace.record import Record

WIRE_US = 5_000_000
"""A frame on a whole connection arrives within this time, when nothing is wrong."""
ANSWER_US = 35_000_000
"""A request is answered within this time: a held pull takes up to 20 s."""
SCAN_US = 2_100_000
"""The scan that ends calls comes every second, and gives each a second more (NettyRemotingAbstract)."""
REACHED_US = 30_000_000
"""A proxy has begun to listen so long after its start, and who had asked before has asked again."""
WELL_AGAIN_US = 20_000_000
"""So long after all is well again routes are asked for again, connections are made again, and queues are empty."""
NOBODY_LISTENS = re.compile(r"nobody listens at ([0-9.]+:[0-9]+)")
CONNECT_US = 3_000_000
"""A connection that nobody answers is waited for so long, however little is left (NettyClientConfig)."""
MOST_DRIFT = 50
"""What a clock that is 5 % wrong adds to each millisecond, us."""
WAITED_FOR = (
    RequestCode.GET_ROUTEINFO_BY_TOPIC, RequestCode.HEART_BEAT, RequestCode.GET_CONSUMER_LIST_BY_GROUP,
    RequestCode.QUERY_CONSUMER_OFFSET, RequestCode.LOCK_BATCH_MQ,
)  # fmt: skip
"""Requests whose caller always waits for the answer, and gives up by itself."""

OTHER_CLOCK = "a pop whose time is up by another clock"
OTHER_CLOCK_TEXT = (
    "A broker holds a pop until pollTime is over from bornTime on, which its client's clock has said, by its own "
    "clock. Where that one is seconds behind, the client gives up first."
)
ANSWERED_US = 100_000
"""A broker looks every 20 ms whose time is up; then the answer travels."""

RELAYED = (
    RequestCode.GET_CONSUMER_RUNNING_INFO, RequestCode.CONSUME_MESSAGE_DIRECTLY,
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
)  # fmt: skip
"""What a broker asks its clients for who asks it."""


class FramesArrive(Rule):
    """What was written to a connection arrives there, in order, unless the connection ends."""

    LOOKS: ClassVar[dict[str, str]] = {
        "RequestSent": "_sent", "ResponseSent": "_sent",
        "RequestReceived": "_received", "ResponseReceived": "_received",
        "ConnectionClosed": "_connection_ended", "ConnectionBroken": "_connection_ended",
    }  # fmt: skip
    kinds = tuple(LOOKS)

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._under_way: dict[tuple[int, str], deque[Record]] = defaultdict(deque)
        """(connection, address of the sender) -> what was sent and has not arrived."""
        self._ended: dict[int, None] = {}

    def _connection_ended(self, record: Record) -> None:
        self._ended[record.connection] = None

    def _sent(self, record: Record) -> None:
        self._under_way[record.connection, record.local].append(record)

    def _received(self, record: Record) -> None:
        """Compare what arrives with what was sent."""
        self.judged += 1
        sent = self._under_way.get((record.connection, record.remote))
        if not sent or sent.popleft().opaque != record.opaque:
            self.found(record.row, f"{record.kind} on connection {record.connection} is not what was sent next")

    def at_end(self) -> None:
        """Judge what never arrived."""
        over_us = self.case.fault_times.over_since_us()
        if over_us is None:
            return
        lives = {endpoint.connection_id for endpoint in self._whole()}
        for (connection, _), sent in self._under_way.items():
            self.judged += bool(sent)
            is_whole = connection in lives and connection not in self._ended
            if sent and is_whole and self.case.lab.world.now_us - max(sent[0].ts_us, over_us) > WIRE_US:
                self.found(sent[0].row, f"what was sent on connection {connection} never arrived")

    def _whole(self) -> list[Any]:
        return [endpoint for endpoint in self.case.lab.world.network.connections() if endpoint.peer.open]


class CallsEnd(Rule):
    """A request on a connection that ends fails at once; every other one is answered, or given up in its time."""

    LOOKS: ClassVar[dict[str, str]] = {
        "RequestSent": "_sent", "ResponseReceived": "_over", "RequestTimedOut": "_over", "RequestFailed": "_over",
        "ConnectionClosed": "_connection_ended", "ConnectionBroken": "_connection_ended",
        "NodeCrashed": "_process_ended", "PowerLost": "_process_ended", "RequestReceived": "_received",
        "ResponseSent": "_answered", "RpcCancelled": "_answered", "PopRecordsNotWritten": "_records_not_written",
    }  # fmt: skip
    kinds = tuple(LOOKS)
    EXCEPTIONS: ClassVar[dict[str, str]] = {NO_RECORD: NO_RECORD_TEXT}

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._not_written: dict[str, list[int]] = {}
        """Broker -> when its key-value engine could not write down what it was to hand out, us."""
        self._asked: dict[tuple[str, int], dict[int, Record]] = defaultdict(dict)
        """(server, connection) -> opaque -> the request, until it is answered."""
        self._waiting: dict[tuple[str, int], dict[int, Record]] = defaultdict(dict)
        """(process, connection) -> opaque -> the request."""
        self._closed_us: dict[tuple[str, int], int] = {}

    def _process_ended(self, record: Record) -> None:
        for calls in (self._waiting, self._asked):
            for key in [key for key in calls if key[0] == record.target]:
                del calls[key]

    def _records_not_written(self, record: Record) -> None:
        self._not_written.setdefault(record.node, []).append(record.ts_us)

    def _sent(self, record: Record) -> None:
        if not record.oneway:
            self._waiting[record.node, record.connection][record.opaque] = record

    def _received(self, record: Record) -> None:
        if not record.oneway:
            self._asked[record.node, record.connection][record.opaque] = record

    def _answered(self, record: Record) -> None:
        asked = self._asked.get((record.node, record.connection))
        if asked is not None:
            asked.pop(record.opaque, None)

    def _connection_ended(self, record: Record) -> None:
        key = (record.node, record.connection)
        self._closed_us[key] = record.ts_us
        self._asked.pop(key, None)

    def _over(self, record: Record) -> None:
        """Judge who has waited in vain."""
        key = (record.node, record.connection)
        calls = self._waiting.get(key)
        waited = calls.pop(record.opaque, None) if calls is not None else None
        self.judged += 1
        if record.kind == "RequestTimedOut":
            if waited is None:
                # Its answer is there, and waits for a thread that reads answers.
                return
            self._timed_out(record, waited)
            closed_us = self._closed_us.get(key)
            if closed_us is not None and record.ts_us > closed_us:
                self.found(record.row, f"request {record.opaque} waited in vain: its connection had ended")

    def _timed_out(self, record: Record, request: Record) -> None:
        # In a process that hung both come due at once.
        hung = self.case.ledger.processes.frozen_us.get(record.node, -1) >= request.ts_us
        if record.expired_by_scan and record.request_code in WAITED_FOR and not hung:
            self.found(record.row, f"only the scan ended request {record.opaque}, whose caller waits for it")

    def at_end(self) -> None:
        """Judge who still waits."""
        now_us, over_us = self.case.lab.world.now_us, self.case.fault_times.over_since_us()
        if over_us is None:
            return
        for key, calls in self._waiting.items():
            self.judged += len(calls)
            for request in calls.values():
                if key in self._closed_us or now_us - max(request.ts_us, over_us) > ANSWER_US:
                    self.found(request.row, f"{key[0]} still waits for the answer to request {request.opaque}")
        for key, calls in self._asked.items():
            self.judged += len(calls)
            for request in calls.values():
                if key in self._closed_us or now_us - max(request.ts_us, over_us) <= ANSWER_US:
                    continue
                if self._could_not_write(request):
                    self.excuse(NO_RECORD)
                else:
                    self.found(request.row, f"{key[0]} never answered request {request.opaque}")

    def _could_not_write(self, request: Record) -> bool:
        """Is this a pop that was to be answered when the key-value engine had no room for its notes?"""
        return request.request_code == RequestCode.POP_MESSAGE and any(
            0 <= us - request.ts_us < ANSWER_US for us in self._not_written.get(request.node, ())
        )


class ProcessorsAnswer(Rule):
    """No server fails over a request: it answers, or refuses it with a code that says why."""

    LOOKS: ClassVar[dict[str, str]] = {
        "ResponseSent": "_answered", "ProcessorFailed": "_failed", "PullReceived": "_pull_received"
    }  # fmt: skip
    kinds = tuple(LOOKS)
    EXCEPTIONS: ClassVar[dict[str, str]] = {STALE: STALE_TEXT}

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._pulls: dict[tuple[str, str, int], Record] = {}
        """(broker, remote address, opaque) -> a pull that is dealt with."""

    def _pull_received(self, record: Record) -> None:
        self._pulls[record.node, record.remote, record.opaque] = record

    def _answered(self, record: Record) -> None:
        self.judged += 1
        self._pulls.pop((record.node, record.remote, record.opaque), None)

    def _failed(self, record: Record) -> None:
        self.judged += 1
        pull = self._pulls.pop((record.node, record.remote, record.opaque), None)
        if pull is not None and self._comes_to_no_record(pull):
            self.excuse(STALE)
        else:
            self.found(record.row, f"{record.node} fails over request {record.opaque}: {record.reason}")

    def _comes_to_no_record(self, pull: Record) -> bool:
        reader = self.case.ledger.names.known(pull.group)
        queue = self.case.broker(pull.node).store.find_consume_queue(pull.topic, pull.queue_id)
        if reader is None or queue is None:
            return False
        place = Place(pull.node, pull.topic, pull.queue_id, pull.queue_offset)
        return self.case.pull_comes_to_no_record(reader, place, queue.max_offset_in_queue)


def _all_well_since_us(case: Case) -> int | None:
    """Since when nothing is wrong and everybody runs; None while a fault holds."""
    over_us = case.fault_times.over_since_us()
    return None if over_us is None else max([over_us, *case.ledger.processes.started_us.values()])


class CallsGoThrough(Rule):
    """When nothing has been wrong for a while no call times out: who could not be reached is reached again.

    A master that waits for its slaves may answer later than its producer waits; and a client that reads answers on one
    thread may keep that one busy with a call of its own, so that no answer is read (clientCallbackExecutorThreads).
    """

    LOOKS: ClassVar[dict[str, str]] = {"RequestTimedOut": "_given_up", "PopHeld": "_held"}
    kinds = tuple(LOOKS)
    EXCEPTIONS: ClassVar[dict[str, str]] = {OTHER_CLOCK: OTHER_CLOCK_TEXT}

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._held_longer: dict[tuple[str, str, int], tuple[int, int]] = {}
        """(server, client's process, opaque) -> until when a pop is held, and how far the broker's clock is behind."""

    def _held(self, record: Record) -> None:
        world = self.case.lab.world
        client = world.network.node_at(record.remote)
        if client is None or not self.case.is_live:
            return
        behind_us = client.clock_error_us - world.nodes[record.node].clock_error_us
        if behind_us > 0:
            until_us = record.ts_us + record.hold_ms * 1_000 + ANSWERED_US
            self._held_longer[record.node, client.name, record.opaque] = until_us, behind_us

    def _given_up(self, record: Record) -> None:
        """Look whether there was a reason."""
        self.judged += 1
        since_us = _all_well_since_us(self.case)
        server = self.case.lab.world.network.node_at(record.remote)
        if since_us is None or server is None or record.request_code in RELAYED or self._waits_for_copies(server.name):
            return
        if self._has_one_thread(record.node) or self._has_one_thread(server.name):
            return
        if record.ts_us - record.timeout_ms * 1_000 - since_us <= WELL_AGAIN_US:
            return
        until_us, behind_us = self._held_longer.get((server.name, record.node, record.opaque), (0, 0))
        if until_us - behind_us < record.ts_us < until_us:
            self.excuse(OTHER_CLOCK)
        else:
            ago_ms = (record.ts_us - since_us) // 1_000
            what = f"request {record.opaque} (code {record.request_code}) to {server.name}"
            self.found(record.row, f"{record.node} gives {what} up, and nothing has been wrong for {ago_ms} ms")

    def _has_one_thread(self, process: str) -> bool:
        clients = clients_in(self.case.lab, process)
        return any(getattr(client, "client_callback_executor_threads", 0) == 1 for client, *_ in clients)

    def _waits_for_copies(self, process: str) -> bool:
        broker = self.case.ledger.names.broker(process)
        return broker is not None and broker.is_up() and broker.store.config.broker_role is BrokerRole.SYNC_MASTER


class ServersAreReached(Rule):
    """No 5.x client is told that nobody listens where a proxy has been running for a while, nor leaves one out.

    A producer leaves out a proxy by which a send has failed until it answers a heartbeat, which it does every 10 s.
    """

    kinds = ("RouteMissing", "ReceivePutOff", "SettlingFailed", "SendAttemptFailed")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._failed_us: dict[str, int] = {}
        """Process -> when a send of its last failed."""

    def on_event(self, record: Record) -> None:
        """Look who should listen at the address."""
        if record.kind == "SendAttemptFailed":
            self._failed_us[record.node] = record.ts_us
        match = NOBODY_LISTENS.search(record.reason)
        node = self.case.lab.world.network.node_at(match[1]) if match is not None else None
        process = self.case.lab.processes.get(node.name) if node is not None else None
        if not isinstance(process, ProxyProcess) or not self.case.is_live:
            return
        self.judged += 1
        runs_us = record.ts_us - self.case.ledger.processes.started_us.get(process.name, record.ts_us)
        if process.is_up() and runs_us > REACHED_US:
            reason = f"nobody listens at {process.name}, which has been running for {runs_us // 1_000} ms"
            self.found(record.row, f"{record.node} is told that {reason}")

    def at_end(self) -> None:
        """Look who is left out, where all has been well for some heartbeats."""
        since_us, now_us = _all_well_since_us(self.case), self.case.lab.world.now_us
        if since_us is None or now_us - since_us < REACHED_US:
            return
        for name, process in self.case.lab.processes.items():
            for client, _, _ in clients_in(self.case.lab, name):
                isolated = getattr(client.impl, "isolated", None)
                if isolated is None or process.state != "running" or not client.impl.is_running:
                    continue
                self.judged += 1
                if isolated and self._failed_us.get(name, -REACHED_US) < now_us - REACHED_US:
                    self.found(None, f"{name} still leaves out {', '.join(map(str, isolated))}")


class _Try(NamedTuple):
    """What is known of a sending when it is tried again."""

    broker_name: str
    """The broker that was tried last."""
    had_others: bool
    """Had the route another one at the first try? All tries of a send use that route."""
    begin_us: int
    budget_ms: int
    """What the whole sending may take, from its first try on."""


class SendsEnd(Rule):
    """Every sending ends in its time, and its caller is told; a try that failed is followed by one elsewhere.

    All tries are of the same message.
    """

    LOOKS: ClassVar[dict[str, str]] = {
        "QueueSelected": "_selected", "SendAttempted": "_attempted", "SendAttemptFailed": "_answered",
        "SendSucceeded": "_ended", "SendFailed": "_ended", "NodeCrashed": "_process_ended",
        "PowerLost": "_process_ended",
    }  # fmt: skip
    kinds = tuple(LOOKS)

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._under_way: dict[tuple[str, str], Record] = {}
        """(process, message ids) -> the last attempt."""
        self._tries: dict[tuple[str, str], _Try] = {}
        """The same, until the sending ends."""
        self._selected_for: dict[tuple[str, str], list[int]] = {}
        """(process, task) -> the numbers of the tries for which queues were just selected; a pool has many at once."""

    def _process_ended(self, record: Record) -> None:
        self._under_way = {key: sent for key, sent in self._under_way.items() if key[0] != record.target}
        self._tries = {key: tried for key, tried in self._tries.items() if key[0] != record.target}
        self._selected_for = {key: tries for key, tries in self._selected_for.items() if key[0] != record.target}

    def _selected(self, record: Record) -> None:
        self._selected_for.setdefault((record.node, record.task), []).append(record.attempt)
        if record.attempt == 1:
            return
        self.judged += 1
        if record.broker_name == record.last_broker and self._has_others(record):
            self.found(record.row, f"try {record.attempt} goes to {record.broker_name}, where the last failed")

    def _attempted(self, record: Record) -> None:
        is_new = (record.node, record.msg_id) not in self._tries
        tries = self._selected_for.get((record.node, record.task), [])
        this = next((n for n in tries if (n == 1) == is_new), None)
        if this is not None:
            tries.remove(this)
        if record.mode.lower() in ("oneway", "one-way"):
            return
        self.judged += 1
        self._under_way[record.node, record.msg_id] = record
        if this is None and tries and is_new:
            self.found(record.row, f"try {tries.pop()} is of another message, {record.msg_id}")
        self._tried(record)

    def _ended(self, record: Record) -> None:
        if record.kind == "SendFailed" and not record.attempts:
            # Without a route nothing was sent, and the message has no id yet.
            return
        tried = self._tries.pop((record.node, record.msg_id), None)
        if tried is not None:
            self._judge_time(record, tried)
        self._answered(record)

    def _answered(self, record: Record) -> None:
        if self._under_way.pop((record.node, record.msg_id), None) is None:
            # Of a batch the attempt names its own id, and the answer those of its messages.
            for key, sent in list(self._under_way.items()):
                queue_id = sent.queue_id if record.kind == "SendFailed" else record.queue_id
                if key[0] == record.node and (sent.topic, sent.queue_id) == (record.topic, queue_id):
                    del self._under_way[key]

    def _tried(self, record: Record) -> None:
        """Note a try, and judge one that follows a failed one: it goes to another broker if there is one.

        Which that was is what was tried before, whatever the producer says. Asynchronous tries may be for a queue that
        the application has chosen, and the tries of a 5.x producer are its proxy's.
        """
        key, at = (record.node, record.msg_id), record.broker_name
        has_others, before = self._has_others(record), self._tries.get(key)
        if before is None:
            self._tries[key] = _Try(at, has_others, record.ts_us, record.budget_ms)
            return
        # Where a proxy chooses the queue a try names no broker, and each has the whole time-out of its own.
        self._tries[key] = before._replace(broker_name=at, begin_us=before.begin_us if at else record.ts_us)
        self._judge_time(record, before)
        if at and at == before.broker_name and record.mode == "SYNC" and before.had_others and has_others:
            self.found(record.row, f"message {record.msg_id} is tried again at {at}, where it failed")

    def _judge_time(self, record: Record, tried: _Try) -> None:
        """Is what happens to a sending within its budget? A process that hung may be late."""
        late_us = record.ts_us - tried.begin_us - 1_000 * tried.budget_ms
        hung = self.case.ledger.processes.frozen_us.get(record.node, -1) >= tried.begin_us
        if late_us > SCAN_US + CONNECT_US + tried.budget_ms * MOST_DRIFT and not hung:
            self.found(
                record.row,
                f"message {record.msg_id} is still on its way {late_us // 1_000} ms after its {tried.budget_ms} ms",
            )

    def at_end(self) -> None:
        """Judge what has no end."""
        now_us, over_us = self.case.lab.world.now_us, self.case.fault_times.over_since_us()
        if over_us is None:
            return
        for (process, msg_id), attempt in self._under_way.items():
            if now_us - max(attempt.ts_us, over_us) > ANSWER_US:
                self.found(attempt.row, f"{process} never learned what became of message {msg_id}")

    def _has_others(self, record: Record) -> bool:
        """Has the producer a route with another broker for this topic, and avoids none for being slow?"""
        producers = [
            client.impl
            for client, *_ in clients_in(self.case.lab, record.node)
            if record.topic in getattr(client.impl, "topic_publish_info_table", {})
        ]
        if any(producer.fault_strategy.send_latency_fault_enable for producer in producers):
            return False
        routes = [producer.topic_publish_info_table[record.topic].message_queue_list for producer in producers]
        return bool(routes) and all(len({queue.broker_name for queue in queues}) > 1 for queues in routes)
