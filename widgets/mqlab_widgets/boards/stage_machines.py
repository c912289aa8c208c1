"""The part of the stage that follows machines and the wire: who is there, and which frames are on their way."""

from __future__ import annotations

import json

from mqlab.protocol.codes import RequestCode
from mqlab.protocol.route import MASTER_ID
from mqlab.protocol.v2.definition import Code
from mqlab.trace.record import Record
from mqlab_widgets.boards.stage_notes import StageNotes, is_worker
from mqlab_widgets.boards.stage_state import DOWN, FROZEN, OUTSIDE, RUNNING, Consumer, Flight, Hand, Producer, Queue

SENDS = {RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE}
PULLS = {RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE, RequestCode.POP_MESSAGE}
ACKS = {RequestCode.ACK_MESSAGE, RequestCode.CHANGE_MESSAGE_INVISIBLETIME}
ABOUT_TRANSACTIONS = {RequestCode.END_TRANSACTION, RequestCode.CHECK_TRANSACTION_STATE}
WELL = {0, int(Code.OK), int(Code.MULTIPLE_RESULTS), int(Code.MESSAGE_NOT_FOUND)}
"""The codes of answers that are no refusal: of brokers, and of proxies to clients of 5.x."""
OF_CALLS = {"SendMessage": "send", "ReceiveMessage": "pull", "AckMessage": "ack"}
"""What the calls of clients of 5.x are, which have no code."""
HANGS, IS_SLOW, IS_FULL = "hangs", "is slow", "is full"
"""What may be wrong with a disk."""
SCARCE = 65_536
"""A disk with fewer bytes left is called full."""


class StageMachines(StageNotes):
    """Machines that start, fail and come back; connections, links, and the frames on them."""

    # -- machines -----------------------------------------------------------------------------------------------------

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
        self.woken.pop(node, None)
        self.following.pop(node, None)
        self.unanswered.pop(node, None)
        self._die({name: flight for name, flight in self.flights.items() if node in (flight.source, flight.target)})
        self._forget_client(node)

    def _forget_client(self, node: str) -> None:
        if node in self.producers:
            self.producers[node].forget()
        if node in self.consumers:
            self.consumers[node] = Consumer(done=self.consumers[node].done)
        if node in self.hands:
            self.hands[node] = Hand(done=self.hands[node].done)
        self.sending.pop(node, None)
        self.asking.pop(node, None)
        for strip in self.strips.values():
            strip.give_up(node)

    def on_disk_hung(self, record: Record) -> None:
        self._disk(record.target, HANGS, is_so=True)

    def on_disk_unhung(self, record: Record) -> None:
        self._disk(record.target, HANGS, is_so=False)

    def on_disk_slowed(self, record: Record) -> None:
        self._disk(record.target, IS_SLOW, is_so=True)

    def on_disk_quick(self, record: Record) -> None:
        self._disk(record.target, IS_SLOW, is_so=False)

    def on_disk_full_changed(self, record: Record) -> None:
        self._disk(record.node, IS_FULL, is_so=record.full)

    def on_action_taken(self, record: Record) -> None:
        if record.verb == "restart":
            self.states[json.loads(record.arguments)["node"]] = RUNNING
        elif record.verb == "fill_disk":
            given = json.loads(record.arguments)
            self._disk(given["node"], IS_FULL, is_so=given.get("free_bytes", 0) < SCARCE)

    def _disk(self, node: str, what: str, *, is_so: bool) -> None:
        """From now on this is wrong with a disk, or is not any more."""
        wrong = (*(one for one in self.trouble.pop(node, ()) if one != what), *[what] * is_so)
        if wrong:
            self.trouble[node] = wrong

    def trouble_words(self, node: str) -> str:
        """What is wrong with the disk of a machine, in words."""
        return f"its disk {' and '.join(self.trouble[node])}"

    # -- the wire -----------------------------------------------------------------------------------------------------

    def on_connection_opened(self, record: Record) -> None:
        ends = (record.node, self.name_of(record.remote))
        if self.name_of(record.local) == record.local:
            ends = (OUTSIDE, record.node)
            self.states[OUTSIDE] = RUNNING
        self.connections[record.connection] = ends
        if ends[::-1] not in self.wires:
            self.wires[ends] = None

    def _end_of(self, address: str) -> str:
        """Who is at an address: a machine, or programs outside, once there are any."""
        name = self.name_of(address)
        return OUTSIDE if name == address and OUTSIDE in self.states else name

    def _leaves(self, name: str, flight: Flight) -> None:
        if flight.target == OUTSIDE:
            self.given = {name: flight}
        else:
            self.flights[name] = flight

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
        elif code in ABOUT_TRANSACTIONS:
            key, kind = self.saying.pop(node, ("", "other"))
        keys = (key,) if key else ()
        flight = Flight(node, self._end_of(remote), name, kind, False, keys, len(keys), queue, record.ts_us)
        self._leaves(f"{connection}:{local}:{frame}", flight)

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
        kind = "pull" if answered is not None else "answer" if code in WELL else "refusal"
        flight = Flight(node, self._end_of(remote), record.response_name, kind, True, keys, count, queue, record.ts_us)
        self._leaves(f"{connection}:{local}:{frame}", flight)

    def on_request_received(self, record: Record) -> None:
        connection, frame, _, remote = record.row[8:12]
        flight = self.flights.pop(f"{connection}:{remote}:{frame}", None)
        if flight is None and self._end_of(remote) == OUTSIDE:
            flight = _from_outside(record)
        if flight is not None:
            self.landed[record.node] = flight
            if flight.kind == "pull" and flight.keys and is_worker(record.node):
                self.hand_of(record.node).receive(flight.keys)

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


def _from_outside(record: Record) -> Flight:
    """What a program outside has sent, of which nothing is known before it is there."""
    code, name = record.row[13:15]
    response = record.kind == "ResponseReceived"
    kinds = (("send", SENDS), ("pull", PULLS), ("ack", ACKS), ("back", {RequestCode.CONSUMER_SEND_MSG_BACK}))
    kind = next((kind for kind, codes in kinds if code in codes), OF_CALLS.get(name, "other"))
    return Flight(OUTSIDE, record.node, name, "answer" if response else kind, response, (), 0, None, record.ts_us)
