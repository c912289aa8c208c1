"""The stage: who is there, where each message is, and what is on its way, folded from the events.

`mqlab_widgets.scene` draws it.
"""

from __future__ import annotations

from typing import ClassVar

from mqlab.protocol.topics import RMQ_SYS_TRANS_HALF_TOPIC, is_system_topic
from mqlab_widgets.boards.stage_brokers import StageBrokers
from mqlab_widgets.boards.stage_clients import StageClients
from mqlab_widgets.boards.stage_copies import StageCopies
from mqlab_widgets.boards.stage_cousins import COUSIN, StageCousins
from mqlab_widgets.boards.stage_machines import StageMachines
from mqlab_widgets.boards.stage_notes import is_worker
from mqlab_widgets.boards.stage_state import DOWN, OUTSIDE, Strip, words_of_waiting
from mqlab_widgets.labels import SENDER_LETTERS

PROCESSES = {"NameServerProcess": "namesrv", "BrokerProcess": "broker", "ProxyProcess": "proxy"}
"""What stands at its own place on the stage, whatever it does."""


class StageBoard(StageMachines, StageBrokers, StageCopies, StageClients, StageCousins):
    """Who is there, what is stored, held and cached, and what is on its way."""

    title: ClassVar[str] = "The world"

    def kind_of(self, node: str) -> str:
        """ "namesrv", "proxy", "broker", "slave", "server", "producer", "consumer", "worker", "machine", or
        "outside" of programs there.
        """
        if node == OUTSIDE:
            return "outside"
        process = self.lab.processes.get(node)
        name = type(process).__name__
        if node in self.slaves:
            return "slave"
        if name in PROCESSES:
            return PROCESSES[name]
        if name == "CousinServer":
            return "server"
        role = self.roles.get(node, "")
        if is_worker(node) and "consumer" not in role:
            return "worker"
        if "producer" in role or (not role and node.startswith("producer")):
            return "producer"
        return "consumer" if role or node.startswith("consumer") else "machine"

    @property
    def connected_outside(self) -> int:
        """How many connections programs outside have."""
        return sum(OUTSIDE in ends for ends in self.connections.values())

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
        way |= dict.fromkeys(worker for worker, hand in self.hands.items() if key in hand.held)
        return [node for node in way if node]

    def label(self, key: str) -> str:
        """What is written on a message; on a cousin's its number."""
        _, cousin, number = key.rpartition(COUSIN)
        return number if cousin else super().label(key)

    def cousin_words(self, server: str) -> str:
        """How far a cousin's queue is, in words."""
        if server in self.windows:
            begin, end = self.windows[server]
            return f"window (SPSO to SPEO): {begin:,} to {end:,}"
        stored = sum(strip.end for (node, _, _), strip in self.strips.items() if node == server)
        return f"{stored - self.ended.get(server, 0):,} not deleted"

    def html(self) -> str:
        """The picture of the world as SVG."""
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
        if node == OUTSIDE:
            count = self.connected_outside
            return f"{node} have {count} connection{'s' if count != 1 else ''}"
        kind, state = self.kind_of(node), self.states[node]
        parts = [f"{node} ({kind}) is {state}"]
        for topic, queues in self.queues_of(node).items() if kind != "server" else ():
            stored = sum(strip.end for strip in queues.values())
            if stored:
                waiting = words_of_waiting(queues.values())
                parts.append(f"{topic}: {stored} messages in {len(queues)} queues, {waiting}")
        half = self.strips.get((node, RMQ_SYS_TRANS_HALF_TOPIC, 0))
        if half is not None:
            parts.append(f"{half.hidden()} half messages hidden")
        if kind == "server":
            parts.append(self.cousin_words(node))
        if kind == "worker" and state != DOWN and node in self.hands:
            hand = self.hands[node]
            parts.append(f"in hand: {', '.join(map(self.label, hand.held)) or 'nothing'}; {hand.done} done")
            parts += [f"its last answer: {hand.answer}"] * bool(hand.answer)
        if self.held.get(node):
            parts.append(f"{len(self.held[node])} pulls held")
        if node in self.trouble:
            parts.append(self.trouble_words(node))
        if kind == "consumer" and state != DOWN:
            consumer = self._consumer(node)
            parts.append(f"{consumer.cached} messages cached, {consumer.busy} in listeners")
            if consumer.limited:
                parts.append(f"flow control: {consumer.limited}")
        if kind == "producer" and self._producer(node).failures:
            parts.append(f"{self._producer(node).failures} messages could not be sent")
        return "; ".join(parts)
