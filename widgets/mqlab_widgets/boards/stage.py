"""The stage: machines, queues, held requests and frames in flight, as one picture of a world.

The events say who is there and what each holds (`StageBoard`); `stage_picture.py` draws it.
"""

from __future__ import annotations

from typing import Any, ClassVar

from mqlab.protocol.topics import is_system_topic
from mqlab.trace.record import Record
from mqlab_widgets.boards.board import Board

RUNNING, FROZEN, DOWN = "running", "frozen", "down"

Queue = tuple[str, str, int]
"""(broker, topic, queue id)"""


InFlight = tuple[str, str, str, bool]
"""A frame on its way: from this machine, to that one, what it is, and whether it answers a request."""


class StageBoard(Board):
    """Who is there, what is stored, held and cached, and what is on its way."""

    title: ClassVar[str] = "The world"

    def begin(self) -> None:
        """Nobody is there yet."""
        self.states: dict[str, str] = {}
        self.roles: dict[str, str] = {}
        self.groups: dict[str, str] = {}
        self.stored: dict[Queue, int] = {}
        self.committed: dict[Queue, dict[str, int]] = {}
        self.held: dict[str, dict[tuple[int, str], tuple[str, int, int]]] = {}
        self.frames: dict[tuple[int, str, int], InFlight] = {}
        self.cut: dict[tuple[str, str], bool] = {}
        self.cached: dict[tuple[str, Queue], int] = {}
        self.listening: dict[str, dict[tuple[str, int, int], int]] = {}
        self.limited: dict[str, str] = {}
        self._names: dict[str, str] = {}
        """Address of a machine -> its name."""

    def _name_of(self, address: str) -> str:
        host = address.partition(":")[0]
        if host not in self._names:
            self._names = {node.spec.ip: name for name, node in self.lab.world.nodes.items()}
        return self._names.get(host, address)

    # -- machines ---------------------------------------------------------------------------------------------------

    def on_node_started(self, record: Record) -> None:
        self.states[record.target] = RUNNING

    def on_node_crashed(self, record: Record) -> None:
        self._gone(record.target)

    def on_power_lost(self, record: Record) -> None:
        self._gone(record.target)

    def on_node_frozen(self, record: Record) -> None:
        self.states[record.target] = FROZEN

    def on_node_thawed(self, record: Record) -> None:
        self.states[record.target] = RUNNING

    def on_client_started(self, record: Record) -> None:
        self.states[record.node] = RUNNING
        self.roles[record.node] = record.role
        self.groups[record.node] = record.group

    def on_client_stopped(self, record: Record) -> None:
        self._forget_client(record.node)

    def _gone(self, node: str) -> None:
        self.states[node] = DOWN
        self.held.pop(node, None)
        self.frames = {key: frame for key, frame in self.frames.items() if node not in frame[:2]}
        self._forget_client(node)

    def _forget_client(self, node: str) -> None:
        self.listening.pop(node, None)
        self.limited.pop(node, None)
        for key in [key for key in self.cached if key[0] == node]:
            del self.cached[key]

    # -- the wire ---------------------------------------------------------------------------------------------------

    def on_request_sent(self, record: Record) -> None:
        self._sent(record, record.request_name, False)

    def on_response_sent(self, record: Record) -> None:
        self._sent(record, record.response_name, True)

    def _sent(self, record: Record, name: str, response: bool) -> None:
        # Half of all events are frames, so these read the row itself: connection, frame, local, remote come first.
        connection, frame, local, remote = record.row[8:12]
        self.frames[connection, local, frame] = (record.row[3], self._name_of(remote), name, response)

    def on_request_received(self, record: Record) -> None:
        connection, frame, _, remote = record.row[8:12]
        self.frames.pop((connection, remote, frame), None)

    def on_response_received(self, record: Record) -> None:
        connection, frame, _, remote = record.row[8:12]
        self.frames.pop((connection, remote, frame), None)

    def on_connection_broken(self, record: Record) -> None:
        self._connection_gone(record.connection)

    def on_connection_closed(self, record: Record) -> None:
        self._connection_gone(record.connection)

    def _connection_gone(self, connection: int) -> None:
        for key in [key for key in self.frames if key[0] == connection]:
            del self.frames[key]

    def on_link_cut(self, record: Record) -> None:
        self.cut[record.source, record.target] = True

    def on_link_healed(self, record: Record) -> None:
        self.cut.pop((record.source, record.target), None)

    # -- the broker -------------------------------------------------------------------------------------------------

    def on_message_dispatched(self, record: Record) -> None:
        self.stored[record.node, record.topic, record.queue_id] = record.queue_offset + 1

    def on_offset_committed(self, record: Record) -> None:
        key = (record.node, record.topic, record.queue_id)
        self.committed.setdefault(key, {})[record.group] = record.queue_offset

    def on_pull_held(self, record: Record) -> None:
        held = self.held.setdefault(record.node, {})
        held[record.opaque, record.remote] = (record.topic, record.queue_id, record.ts_us)

    def on_pull_woken(self, record: Record) -> None:
        self.held.get(record.node, {}).pop((record.opaque, record.remote), None)

    # -- the consumer -----------------------------------------------------------------------------------------------

    def on_messages_cached(self, record: Record) -> None:
        self.cached[record.node, (record.broker_name, record.topic, record.queue_id)] = record.cached
        self.limited.pop(record.node, None)

    def on_queue_dropped(self, record: Record) -> None:
        self.cached.pop((record.node, (record.broker_name, record.topic, record.queue_id)), None)

    def on_flow_controlled(self, record: Record) -> None:
        self.limited[record.node] = f"{record.reason} {record.cached} > {record.limit}"

    def on_pull_requested(self, record: Record) -> None:
        self.limited.pop(record.node, None)

    def on_consume_started(self, record: Record) -> None:
        at = (record.broker_name, record.queue_id, record.queue_offset)
        self.listening.setdefault(record.node, {})[at] = record.messages

    def on_consume_finished(self, record: Record) -> None:
        at = (record.broker_name, record.queue_id, record.queue_offset)
        messages = self.listening.get(record.node, {}).pop(at, 1)
        key = (record.node, (record.broker_name, record.topic, record.queue_id))
        if key in self.cached:
            self.cached[key] = max(0, self.cached[key] - messages)

    # -- summed up --------------------------------------------------------------------------------------------------

    def kind_of(self, node: str) -> str:
        """ "namesrv", "broker", "producer", "consumer" or "machine"."""
        process = self.lab.processes.get(node)
        name = type(process).__name__
        if name in ("NameServerProcess", "BrokerProcess"):
            return {"NameServerProcess": "namesrv", "BrokerProcess": "broker"}[name]
        role = self.roles.get(node, "")
        if "producer" in role or (not role and node.startswith("producer")):
            return "producer"
        return "consumer" if role or node.startswith("consumer") else "machine"

    def topics_of(self, broker: str, *, system: bool = False) -> dict[str, list[tuple[int, int, int]]]:
        """Topic -> (queue id, end, how many the slowest group has not consumed yet) of each queue with messages."""
        topics: dict[str, list[tuple[int, int, int]]] = {}
        for (node, topic, queue_id), end in sorted(self.stored.items()):
            if node == broker and (system or not is_system_topic(topic)):
                groups = self.committed.get((node, topic, queue_id))
                behind = end - min(groups.values()) if groups else end
                topics.setdefault(topic, []).append((queue_id, end, max(0, behind)))
        return topics

    def cached_by(self, node: str) -> int:
        """How many messages a consumer holds."""
        return sum(count for (holder, _), count in self.cached.items() if holder == node)

    def html(self) -> str:
        """The picture."""
        from mqlab_widgets.boards.stage_picture import stage_svg

        return stage_svg(self)

    def text(self) -> list[str]:
        """One line for each machine, then what is on its way."""
        lines = [self._line(node) for node in self.states]
        by_link: dict[tuple[str, str], list[str]] = {}
        for source, target, name, _ in self.frames.values():
            by_link.setdefault((source, target), []).append(name)
        for (source, target), names in by_link.items():
            shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
            lines.append(f"on the way from {source} to {target}: {shown}")
        lines += [f"the link from {source} to {target} is cut" for source, target in self.cut]
        return lines or ["no machine has started yet"]

    def _line(self, node: str) -> str:
        kind, state = self.kind_of(node), self.states[node]
        parts: list[Any] = [f"{node} ({kind}) is {state}"]
        for topic, queues in self.topics_of(node).items():
            stored, behind = sum(queue[1] for queue in queues), sum(queue[2] for queue in queues)
            parts.append(f"{topic}: {stored} messages in {len(queues)} queues, {behind} not consumed")
        if self.held.get(node):
            parts.append(f"{len(self.held[node])} pulls held")
        if kind == "consumer" and state != DOWN:
            parts.append(f"{self.cached_by(node)} messages cached, {len(self.listening.get(node, {}))} in listeners")
        if node in self.limited:
            parts.append(f"flow control: {self.limited[node]}")
        return "; ".join(parts)
