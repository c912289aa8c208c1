"""Lab: builds a world of RocketMQ processes, plays it, steps it, breaks it; the one object that a notebook needs."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeVar

from .arguments import check_condition, check_count, check_keywords, check_number, span_us
from .client import DefaultMQProducer, DefaultMQPushConsumer
from .errors import LearnerError
from .inspectors import QueueView, frames_under_way, held_pulls_table, process_queues_table, routes_table, topics_table
from .processes import BrokerProcess, ClientProcess, NameServerProcess, Process
from .sim import FAULTS, Call, LinkSpec, Node, NodeSpec, World
from .sim.faults import check_fault
from .sim.faults import start as start_process
from .sim.schedule import parse_schedule
from .sim.timer import Timer
from .sim.world import Halted
from .trace.breakpoints import Breakpoint
from .trace.digest import TraceDigest
from .trace.events.world import ActionTaken
from .trace.history import History
from .trace.matching import Kinds
from .trace.record import Record
from .views.source_line import SourceLine

if TYPE_CHECKING:
    from .diagram import SpaceTimeDiagram
    from .replay import Origin
    from .views import Table, Wire

T = TypeVar("T")
P = TypeVar("P", bound=Process)
Action = tuple[int, int, str, dict[str, Any]]
"""(slice number, time in us, verb, JSON-able arguments): what was done to the world from outside, and when."""

START_LIMIT_MS = 60_000
FIRST_CONNECT_US = 20_000
"""What a Java process was seen to need for its first connection, at least: 20 to 500 ms."""


def _named(wanted: list[str] | None, known: list[str]) -> str:
    missing = [repr(name) for name in wanted or [] if name not in known]
    return " " + " and ".join(missing) if missing else ""


class Lab:
    """A laboratory: one world with its name servers, brokers and clients.

    The same seed and the same code give the same events, byte for byte. `history` keeps every event unless it is
    switched off; `wire="bytes"` encodes and decodes each command on its way, which changes nothing that can be seen.
    """

    def __init__(
        self,
        seed: int | str = 0,
        *,
        wire: str = "objects",
        history: bool = True,
        overrides: Mapping[tuple[str, int], int] | None = None,
    ) -> None:
        if wire not in ("objects", "bytes"):
            raise LearnerError(f"wire={wire!r} is unknown", "use wire='objects' or wire='bytes'")
        self.seed = seed
        self.wire = wire
        self.world = World(seed, overrides=overrides, wire_bytes=wire == "bytes")
        self.processes: dict[str, Process] = {}
        self.actions: list[Action] = []
        self.origin: Origin | None = None
        """The scenario that made this world, or None for a world built cell by cell."""
        self._history = History(follow=True) if history else None
        if self._history is not None:
            self.world.hooks.attach(self._history)
        self._breakpoints: list[Breakpoint] = []
        self._sources: dict[tuple[int, int], tuple[str, int]] = {}
        self._building = True
        self._changed_from_outside: list[str] = []
        self.first_overrides = dict(overrides or {})

    # -- where it comes from ----------------------------------------------------------------------------------------

    def finish_building(self, scenario: Coroutine[Any, Any, None]) -> None:
        """Run a scenario's function to its end (or to the slice at which a replay stops)."""
        try:
            scenario.send(None)
        except StopIteration:
            pass
        except Halted:
            pass
        else:
            scenario.close()
            raise LearnerError(
                "the scenario's function waits for something outside of the world (asyncio, for example)",
                "await calls of mqlab only",
            )
        self._building = False
        self.world.outside_calls.clear()

    def replayable_origin(self) -> Origin:
        """The scenario that this world can be played from again; LearnerError if there is none, saying why and what to
        do.
        """
        if self.origin is None:
            raise LearnerError(
                "this world was built cell by cell, so it cannot be played again from a file",
                "build it in a %%scenario cell, or with a scenario of the registry",
            )
        outside = self.world.outside_calls + self._changed_from_outside
        if outside:
            raise LearnerError(
                f"this world was changed from outside by {outside[0]}, which no replay can repeat",
                "move it into the scenario, or use lab.act(...)",
            )
        return self.origin

    def _note_change(self, what: str) -> None:
        if self.origin is not None and not self._building:
            self._changed_from_outside.append(what)

    # -- building ---------------------------------------------------------------------------------------------------

    def node(self, name: str, spec: NodeSpec | None = None) -> Node:
        """A machine with no process yet; `spec` says what RocketMQ finds on its host."""
        return self.world.node(name, spec)

    def name_server(self, name: str = "", *, start: bool = True, **settings: Any) -> NameServerProcess:
        """Add a name server (port 9876) and start it. `settings` are RocketMQ's NamesrvConfig in Python's case."""
        process = NameServerProcess(self, self._new_node(name, "namesrv"), settings)
        return self._add(process, start)

    def broker(self, name: str = "", *, start: bool = True, **settings: Any) -> BrokerProcess:
        """Add a broker (port 10911) and start it: the call returns when its first registration is through.

        `settings` are RocketMQ's BrokerConfig and MessageStoreConfig in Python's case, in one list. With `start=False`
        the process waits for `lab.start(name)`, so that its start can be stepped.
        """
        process = BrokerProcess(self, self._new_node(name, "broker", letters=True), settings)
        return self._add(process, start)

    def producer(self, group: str, *, node: str = "", **settings: Any) -> DefaultMQProducer:
        """A producer on a machine of its own (or on `node`, shared with other clients); `await producer.start()` starts
        it.
        """
        process = self._client_process(node, "producer")
        return process.add(DefaultMQProducer, group, settings)

    def consumer(self, group: str, *, node: str = "", **settings: Any) -> DefaultMQPushConsumer:
        """A push consumer on a machine of its own (or on `node`); subscribe, register a listener, then `await
        consumer.start()`.
        """
        process = self._client_process(node, "consumer")
        return process.add(DefaultMQPushConsumer, group, settings)

    def create_topic(
        self, topic: str, queues: int = 4, *, brokers: str | list[str] | None = None, **settings: Any
    ) -> None:
        """Create a topic on the brokers (all of them unless told), as an administrator does, and wait until it is
        registered.
        """
        known = [broker.name for broker in self.brokers]
        wanted = [brokers] if isinstance(brokers, str) else brokers
        chosen = [broker for broker in self.brokers if wanted is None or broker.name in wanted]
        if not chosen or (wanted is not None and set(wanted) - set(known)):
            hint = f"choose among {', '.join(known)}" if known else "start one first: lab.broker('broker-a')"
            raise LearnerError(f"there is no broker{_named(wanted, known)} to create topic {topic!r} on", hint)
        for broker in chosen:
            broker.create_topic(topic, queues, **settings)

    @property
    def brokers(self) -> list[BrokerProcess]:
        """The brokers, in the order in which they were added."""
        return [p for p in self.processes.values() if isinstance(p, BrokerProcess)]

    @property
    def name_servers(self) -> list[NameServerProcess]:
        """The name servers, in the order in which they were added."""
        return [p for p in self.processes.values() if isinstance(p, NameServerProcess)]

    @property
    def name_server_address(self) -> str:
        """What clients and brokers are given as name server address: "ip:port;ip:port"."""
        return ";".join(p.address for p in self.name_servers)

    def _new_node(self, name: str, kind: str, *, letters: bool = False) -> Node:
        self._note_change(f"a new {kind}")
        if not name:
            number = sum(1 for node in self.world.nodes if node.startswith(f"{kind}-"))
            name = f"{kind}-{chr(ord('a') + number) if letters else number + 1}"
        return self.world.node(name, self.world.next_spec()._replace(first_connect_us=FIRST_CONNECT_US))

    def _add(self, process: P, start: bool) -> P:
        self.processes[process.name] = process
        if start:
            start_process(self.world, process.name)
            self.world.run_until(process.is_up, START_LIMIT_MS, what=f"the start of {process.name}")
        return process

    def _client_process(self, node: str, kind: str) -> ClientProcess:
        known = self.processes.get(node)
        if isinstance(known, ClientProcess):
            return known
        if not self.name_servers:
            raise LearnerError("a client needs a name server", "start one first: lab.name_server()")
        process = ClientProcess(self, self._new_node(node, kind))
        self.processes[process.name] = process
        return process

    # -- playing ----------------------------------------------------------------------------------------------------

    @property
    def now_ms(self) -> float:
        """The world's time in ms since it began."""
        return self.world.now_us / 1_000

    def run(self, call: Call[T], limit_ms: int = 600_000) -> T:
        """Play until the call's answer is there: what `await call` does in a cell, for plain scripts."""
        if not isinstance(call, Call):
            raise LearnerError(
                f"lab.run plays a call of mqlab, not {type(call).__name__}",
                "write lab.run(producer.send(message)): one method that is awaited in a cell, with its parentheses",
            )
        return call.play(limit_ms)

    def run_for(self, ms: float = 0, *, seconds: float = 0) -> Lab:
        """Let time pass. A breakpoint ends it early (see `stopped_at`)."""
        self._stopped_at = None
        self.world.run_for(span_us(ms, seconds))
        return self

    def run_until(self, condition: Callable[[], bool], *, limit_ms: int = 600_000) -> Lab:
        """Play until `condition()` holds, tested after each slice; a breakpoint ends it early."""
        check_condition(condition)
        self._stopped_at = None
        self.world.run_until(condition, limit_ms)
        return self

    def run_until_event(self, kind: Kinds, *, limit_ms: int = 600_000, **fields: Any) -> Record:
        """Play until the next event of this kind (with these field values), and return it."""
        with self.break_on(kind, **fields) as awaited:
            self._stopped_at = None
            self.world.run_until(lambda: awaited.hits > 0, limit_ms, what=f"an event {awaited.about}")
        assert self._stopped_at is not None
        return self._stopped_at

    def step(self, slices: int = 1) -> list[Record]:
        """Play one slice (or some) and return the events of it; an empty list means that nothing worth an event
        happened.
        """
        check_count("slices", slices, "write lab.step() or lab.step(10)")
        before = len(self.history)
        with self._noting_sources():
            for _ in range(slices):
                if not self.world.step():
                    break
        self.history.cursor = len(self.history)
        return self.history.records(before, len(self.history))

    def step_event(self) -> Record:
        """Move the cursor one event on, playing slices when it stands at the end, and return the event."""
        history = self.history
        place = history.cursor
        with self._noting_sources():
            while place >= len(history):
                if not self.world.step():
                    raise LearnerError("nothing is left to happen in this world", "start a process or send a message")
        history.cursor = place + 1
        return history.record(place)

    @contextmanager
    def _noting_sources(self) -> Iterator[None]:
        hooks = self.world.hooks
        hooks.sources = self._sources
        try:
            yield
        finally:
            hooks.sources = None

    def source_of(self, record: Record) -> SourceLine:
        """The line of code that emitted an event; known for events that `step` and `step_event` played."""
        if not isinstance(record, Record):
            raise LearnerError(f"{record!r} is not an event", "give one that lab.step() or lab.step_event() returned")
        found = self._sources.get(record.at)
        if found is None:
            raise LearnerError("the source line of this event was not noted", "only stepping notes it: lab.step()")
        return SourceLine(*found)

    async def play(self, speed: float = 1.0, *, seconds: float | None = None) -> Lab:
        """Play at a speed for the eye, `speed` seconds of the world per real second, for `seconds` of its time."""
        from .sim.pacing import play_in_real_time

        for name, value in (("speed", speed), ("seconds", 0 if seconds is None else seconds)):
            check_number(name, value, "write await lab.play(speed=0.5, seconds=3)")
        await play_in_real_time(self.world, speed, None if seconds is None else round(seconds * 1_000))
        return self

    # -- watching ---------------------------------------------------------------------------------------------------

    _stopped_at: Record | None = None

    @property
    def history(self) -> History:
        """Every event of this world so far."""
        if self._history is None:
            raise LearnerError("this lab keeps no history", "make it with Lab(history=True)")
        return self._history

    @property
    def stopped_at(self) -> Record | None:
        """The event whose breakpoint ended the last run, or None."""
        return self._stopped_at

    @contextmanager
    def break_on(self, kind: Kinds | Callable[[Record], bool], **fields: Any) -> Iterator[Breakpoint]:
        """Stop `run_for` and `run_until` at each event of this kind with these field values, inside a `with` block."""
        breakpoint_ = self.add_breakpoint(kind, **fields)
        try:
            yield breakpoint_
        finally:
            self.remove_breakpoint(breakpoint_)

    def add_breakpoint(self, kind: Kinds | Callable[[Record], bool], **fields: Any) -> Breakpoint:
        """Stop at each event of this kind with these field values, until the breakpoint is removed."""
        breakpoint_ = Breakpoint(kind, self._hit, **fields)
        self._breakpoints.append(breakpoint_)
        self.world.hooks.attach(breakpoint_)
        return breakpoint_

    def remove_breakpoint(self, breakpoint_: Breakpoint) -> None:
        """Forget a breakpoint."""
        self.world.hooks.detach(breakpoint_)
        if breakpoint_ in self._breakpoints:
            self._breakpoints.remove(breakpoint_)

    def _hit(self, record: Record) -> None:
        if self._stopped_at is None:
            self._stopped_at = record
        if self._history is not None:
            self._history.cursor = len(self._history)
        self.world.request_stop()

    def trace_hash(self) -> str:
        """The hash of everything that has happened: equal hashes mean equal worlds."""
        digest = TraceDigest()
        for row in self.history.rows():
            digest(row)
        return digest.hexdigest()

    def topics(self, *, system: bool = False) -> Table:
        """The topics of the running brokers; with `system` also those that RocketMQ keeps for itself."""
        return topics_table(self._up(self.brokers), system=system)

    def queue(self, topic: str, queue_id: int = 0, *, broker: str = "") -> QueueView:
        """One queue, with its entries and messages: on `broker`, or on the first broker that has it."""
        chosen = [b for b in self._up(self.brokers) if not broker or b.name == broker]
        if not chosen:
            raise LearnerError(f"there is no running broker {broker!r}", "see lab.brokers")
        having = [b for b in chosen if b.store.find_consume_queue(topic, queue_id) is not None]
        return QueueView((having or chosen)[0], topic, queue_id)

    def routes(self, topic: str) -> Table:
        """What each running name server answers to "where is this topic?"."""
        return routes_table(self._up(self.name_servers), topic)

    def under_way(self) -> Wire:
        """The frames that travel between machines right now; `lab.under_way().frame(0)` labels the bytes of one."""
        return frames_under_way(self.world)

    def held_pulls(self) -> Table:
        """The pulls that the running brokers hold at present."""
        return held_pulls_table(self._up(self.brokers))

    def process_queues(self, consumer: DefaultMQPushConsumer) -> Table:
        """The queues that a consumer owns, and what it holds of each."""
        if not isinstance(consumer, DefaultMQPushConsumer):
            raise LearnerError(f"{consumer!r} is not a push consumer", "give the one that lab.consumer(...) returned")
        return process_queues_table(consumer)

    @staticmethod
    def _up(processes: list[P]) -> list[P]:
        return [process for process in processes if process.is_up()]

    def space_time(self, start_ms: float = 0, end_ms: float | None = None, **options: Any) -> SpaceTimeDiagram:
        """A space-time diagram of a stretch of history: nodes as lanes, messages as arrows, as static SVG."""
        from .diagram import SpaceTimeDiagram

        until_ms = self.now_ms if end_ms is None else end_ms
        for name, value in (("start_ms", start_ms), ("end_ms", until_ms)):
            check_number(name, value, "times are ms of the world: lab.space_time(3070, 3075)", least=None)
        check_keywords("lab.space_time", SpaceTimeDiagram.of, options, first=3)
        return SpaceTimeDiagram.of(self.history, start_ms, until_ms, **options)

    # -- acting -----------------------------------------------------------------------------------------------------

    def act(self, verb: str, **arguments: Any) -> None:
        """Do something to the world from outside: a fault of the registered vocabulary, recorded for replays."""
        if verb not in FAULTS:
            raise LearnerError(f"there is no action {verb!r}", f"use one of {', '.join(FAULTS)}")
        check_fault(self.world, verb, arguments)
        try:
            text = json.dumps(arguments, sort_keys=True)
        except TypeError as error:
            raise LearnerError(
                f"the arguments of {verb!r} are not JSON: {error}", "use texts, numbers and lists"
            ) from None
        self.actions.append((self.world.slice_no, self.world.now_us, verb, arguments))
        if self.world.hooks.on:
            self.world.hooks.emit(ActionTaken(verb, text))
        FAULTS[verb](self.world, **arguments)

    def start(self, name: str) -> None:
        """Start a process that was added with `start=False` (or that ended); it begins with the next slice."""
        if name in self.processes and self.processes[name].state == "down":
            self.restart(name)
            return
        self._note_change("lab.start(...)")
        start_process(self.world, name)

    def crash(self, name: str) -> None:
        """Kill a process: memory is lost, written data stays with the machine, the others see the connections close."""
        self.act("crash", node=name)

    def power_off(self, name: str) -> None:
        """Pull the plug of a machine: also what was written but not flushed may be lost."""
        self.act("power_off", node=name)

    def restart(self, name: str) -> None:
        """Start a process (again) on its disk."""
        self.act("restart", node=name)

    def freeze(self, name: str) -> None:
        """Let a process hang, connections open."""
        self.act("freeze", node=name)

    def thaw(self, name: str) -> None:
        """Let a frozen process go on."""
        self.act("thaw", node=name)

    def partition(self, left: str | list[str], right: str | list[str]) -> None:
        """Cut all links between two groups of machines."""
        self.act("partition", left=left, right=right)

    def heal(self, left: str | list[str], right: str | list[str]) -> None:
        """Mend all links between two groups of machines."""
        self.act("unpartition", left=left, right=right)

    def disconnect(self, a: str, b: str) -> None:
        """Break the connections between two machines; frames in flight are lost."""
        self.act("disconnect", a=a, b=b)

    def faults(self, schedule: str) -> None:
        """Let faults happen at their times, a line each: `at 12.5s: partition broker-a | broker-b for 3s`."""
        faults = parse_schedule(schedule)
        self._note_change("lab.faults(...)")
        for fault in faults:
            timer = Timer(self.world.life, fault.verb, self._fault_now, (fault.verb, fault.arguments))
            self.world.push(fault.at_us, timer, 0)

    def _fault_now(self, verb: str, arguments: dict[str, Any]) -> None:
        if self.world.hooks.on:
            self.world.hooks.emit(ActionTaken(verb, json.dumps(arguments, sort_keys=True)))
        FAULTS[verb](self.world, **arguments)

    def link(self, a: str, b: str, spec: LinkSpec) -> None:
        """Set how frames travel between two machines, both directions; before the first connection between them."""
        for source, target in ((a, b), (b, a)):
            self.world.network.link(source, target).spec = spec

    def report(self, path: str | PurePath) -> None:
        """Write what is needed to play this world again: scenario, parameters, seed, actions, overrides, trace hash."""
        from .replay import write_report

        if not isinstance(path, str | PurePath):
            raise LearnerError(f"{path!r} is not the name of a file", "write lab.report('bug.mqlab')")
        write_report(self, path)

    def __repr__(self) -> str:
        names = ", ".join(self.world.nodes) or "no nodes yet"
        return f"<Lab seed={self.seed!r}: {names}; {self.now_ms:g} ms, slice {self.world.slice_no}>"
