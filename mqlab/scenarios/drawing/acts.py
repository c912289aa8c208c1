"""What people do in a drawn world while it plays: groups stand still or go on elsewhere, topics grow and are made."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from mqlab.broker.broker_config import BrokerConfig
from mqlab.client.service_state import ServiceState
from mqlab.lab.processes import NameServerProcess, ProxyProcess
from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.java_properties import encode_java_properties, property_names
from mqlab.scenarios.drawing.kinds import ACTS, EVERYTHING, OWN, TOPICS
from mqlab.scenarios.drawing.loads import wanted
from mqlab.scenarios.drawing.parts import Part, World
from mqlab.scenarios.drawing.polls import poll_all
from mqlab.scenarios.drawing.questions import OF_BROKERS, OF_NAME_SERVERS
from mqlab.scenarios.drawing.values import value_text
from mqlab.scenarios.numbered import FAILURES
from mqlab.sim import ROOM_BYTES
from mqlab.sim.timer import Timer
from mqlab.store import MessageStoreConfig

if TYPE_CHECKING:
    from mqlab.client import DefaultMQPushConsumer
    from mqlab.client.consumer.lite.default_lite_pull_consumer import DefaultLitePullConsumer
    from mqlab.lab import Lab
    from mqlab.scenarios.drawing.administrator import Administrator
    from mqlab.sim.task import Task

Work = Callable[[], Coroutine[Any, Any, None]]
Members = Mapping[str, Sequence[Any]]
"""The consumers of each group."""
DEFAULTS: dict[str, Any] = {
    "for_ms": 1_000, "queues": 4, "to": "begin", "back_ms": 3_600_000, "topic": TOPICS[0],
    "down_ms": 1_000, "clean_offset": False,
}  # fmt: skip
"""What a line means that does not say it."""
DEFAULTS_OF_POLLING = {"commits": "auto"}
SOUGHT_MS = 3_000
"""Who seeks a time goes back so far."""
TO_THE_END = -1
"""The time that stands for what will be stored next."""


class Acts:
    """Lets each act of a world happen at its time, or at once if that is over."""

    def __init__(self, lab: Lab, world: World, members: Members) -> None:
        self._lab = lab
        self._parts = {part.name: part for part in world if part.kind not in (*ACTS, "group")}
        self._members = members
        self._beginning: dict[str, Task] = {}
        """The consumers that stop and start again, or have done so last."""
        acts = [part for part in world if part.kind in ACTS]
        self._administrator = _administrator(lab) if any(act.kind in ASKED for act in acts) else None
        for act in acts:
            at_us = max(act.at_ms * 1_000, lab.world.now_us + 1)
            lab.world.push(at_us, Timer(lab.world.life, act.kind, DONE[act.kind], (self, act)), 0)

    @property
    def administrator(self) -> Administrator:
        """Who asks the brokers; there is one where an act needs one."""
        assert self._administrator is not None
        return self._administrator

    def ask(self, act: Part) -> None:
        """Ask a broker or a name server, of the first topic and of all groups."""
        topics = [part.name for part in self._parts.values() if part.kind == "topic"]
        groups = [name for name, part in self._parts.items() if "members" in OWN[part.kind]]
        questions = OF_BROKERS if act.kind == "ask" else OF_NAME_SERVERS
        about = str(act.says.get("about", EVERYTHING))
        asked = list(questions.values()) if about == EVERYTHING else [questions[about]]
        self.administrator.ask_about(act.name, asked, (topics or [TOPICS[0]])[0], groups)

    def pause(self, act: Part) -> None:
        """Let the members of a group that polls pull none of the queues that they have, for a while."""
        for consumer in self._running(act.name):
            queues = consumer.assignment()
            consumer.pause(queues)
            consumer.node.call_later(_said(act, "for_ms"), consumer.resume, queues, name="resume")

    def adjust(self, act: Part) -> None:
        """Give listeners other limits while they run."""
        for consumer in self._running(act.name):
            for key, value in act.settings().items():
                setattr(consumer, key, value)

    def suspend(self, act: Part) -> None:
        """Let the listeners of a group stand still for a while."""
        for consumer in self._running(act.name):
            consumer.suspend()
            consumer.node.call_later(_said(act, "for_ms"), consumer.resume, name="resume")

    def seek(self, act: Part) -> None:
        """Let the members of a group that polls go on elsewhere."""
        for consumer in self._running(act.name):
            consumer.node.spawn(_seek_all(consumer, _said(act, "to")), "seek")

    def reset(self, act: Part) -> None:
        """Set a group to what was stored so long ago, or to the end."""
        back_ms = _said(act, "back_ms")
        timestamp = self.administrator.now_ms() - back_ms if back_ms else TO_THE_END
        topic = str(self._parts[act.name].says.get("topic", TOPICS[0]))
        header = h.ResetOffsetRequestHeader(act.name, topic, timestamp, True)
        self.administrator.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)

    def subscribe(self, act: Part) -> None:
        """Let a group read a topic, with the tags or the condition that its line says."""
        for consumer in self._all_there(act.name):
            consumer.subscribe(_said(act, "topic"), wanted(self._parts[act.name].says))

    def unsubscribe(self, act: Part) -> None:
        """Let a group read a topic no more."""
        for consumer in self._all_there(act.name):
            consumer.unsubscribe(_said(act, "topic"))

    def set_broker(self, act: Part) -> None:
        """Change settings of a broker while it runs; when it starts again it has those of before."""
        names = {**property_names(BrokerConfig), **property_names(MessageStoreConfig)}
        text = encode_java_properties({names[key]: value_text(value) for key, value in act.settings().items()})
        self.administrator.ask(RequestCode.UPDATE_BROKER_CONFIG, None, of=act.name, body=text.encode())

    def restart_broker(self, act: Part) -> None:
        """Stop a broker in good order, and start it a while later with other settings, on a disk that has room."""
        broker = next(one for one in self._lab.brokers if one.name == act.name)
        broker.change_settings(**act.settings())
        if broker.is_up():
            broker.node.spawn(broker.running().shutdown(), "shutdown")
        at = f"at {self._lab.now_ms + _said(act, 'down_ms'):g}ms"
        self._lab.faults(f"{at}: fill_disk {act.name} by {ROOM_BYTES}\n{at}: restart {act.name}")

    def restart_server(self, act: Part) -> None:
        """Stop a name server or a proxy in good order, and start it a while later."""
        process = self._lab.processes[act.name]
        if isinstance(process, NameServerProcess | ProxyProcess) and process.is_up():
            process.running().shutdown()
        self._lab.faults(f"at {self._lab.now_ms + _said(act, 'down_ms'):g}ms: restart {act.name}")

    def restart_members(self, act: Part) -> None:
        """Stop the members of a group in good order, and start them a while later with other settings."""
        for consumer in self._running(act.name):
            self._begin_anew(act, consumer)

    def restart_pollers(self, act: Part) -> None:
        """The same for a group that polls, whose members then poll again."""
        says = {**DEFAULTS_OF_POLLING, **self._parts[act.name].says}
        for consumer in self._running(act.name):
            self._begin_anew(act, consumer, partial(poll_all, consumer, says))

    def _begin_anew(self, act: Part, consumer: Any, work: Work | None = None) -> None:
        """Stop and start a consumer, unless one of an act before is at it: its process may be frozen."""
        key = f"{act.name} at {consumer.node.name}"
        before = self._beginning.get(key)
        if before is None or before.done:
            anew = _begin_anew(consumer, act.settings(), _said(act, "down_ms"), work)
            self._beginning[key] = consumer.node.spawn(anew, "begin anew")

    def delete_group(self, act: Part) -> None:
        """Let the brokers forget a group; they make it again when its members give a sign of life."""
        header = h.DeleteSubscriptionGroupRequestHeader(act.name, _said(act, "clean_offset"))
        self.administrator.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, header)

    def delete_topic(self, act: Part) -> None:
        """Delete a topic at all brokers and name servers; who sends to it makes it anew, with offsets from 0 on."""
        self.administrator.ask(RequestCode.DELETE_TOPIC_IN_BROKER, h.DeleteTopicRequestHeader(act.name))
        self.forget_topic(act)

    def forget_topic(self, act: Part) -> None:
        """Delete a topic at the name servers alone; they know it again with the next report of a broker that has it."""
        self.administrator.ask_name_servers(
            RequestCode.DELETE_TOPIC_IN_NAMESRV, h.DeleteTopicFromNamesrvRequestHeader(act.name)
        )

    def make_topic(self, act: Part) -> None:
        """Make a topic, or give it as many queues: what lies in others is read no more."""
        for broker in self._lab.masters:
            if broker.is_up():
                broker.running().create_topic(act.name, _said(act, "queues"))

    def _all_there(self, group: str) -> Sequence[Any]:
        """The members, or none when the process of one is down, as all of a group have to read the same, or when their
        queues are assigned to them.
        """
        members = () if self._parts[group].says.get("way") == "assign" else self._members.get(group, ())
        return () if any(one.node.life.over for one in members) else members

    def _running(self, group: str) -> list[Any]:
        consumers = self._members.get(group, ())
        return [
            one for one in consumers if one.impl.service_state is ServiceState.RUNNING and not one.node.life.over
        ]


async def _begin_anew(
    consumer: DefaultMQPushConsumer | DefaultLitePullConsumer,
    settings: Mapping[str, Any],
    down_ms: int,
    work: Work | None = None,
) -> None:
    """What a program does that reads its settings again; one that cannot start so is left alone."""
    with suppress(*FAILURES):
        await consumer.shutdown()
        await consumer.node.sleep(down_ms)
        for key, value in settings.items():
            setattr(consumer, key, value)
        consumer.begin_life()
        await consumer.start()
        if work is not None:
            consumer.node.spawn(work(), "poll")


async def _seek_all(consumer: DefaultLitePullConsumer, to: str) -> None:
    """Go on elsewhere in every assigned queue; one whose broker cannot be asked stays where it is."""
    offsets = consumer.impl.offsets
    for queue in list(consumer.assignment()):
        with suppress(*FAILURES):
            if to == "begin":
                await consumer.seek_to_begin(queue)
            elif to == "end":
                await consumer.seek_to_end(queue)
            elif to == "time":
                ago_ms = consumer.node.now_ms() - SOUGHT_MS
                await consumer.seek(queue, await consumer.offset_for_timestamp(queue, ago_ms))
            else:
                begin, end = await offsets.min_offset(queue), await offsets.max_offset(queue)
                await consumer.seek(queue, (begin + end) // 2)
            await consumer.committed(queue)


def _administrator(lab: Lab) -> Administrator:
    from mqlab.scenarios.drawing.administrator import Administrator

    return Administrator(lab)


def _said(act: Part, key: str) -> Any:
    return act.says.get(key, DEFAULTS[key])


ASKED = ("ask", "ask-name-server", "reset", "set", "delete-group", "delete-topic", "forget-topic")
"""The acts for which brokers are asked."""
DONE: dict[str, Callable[[Acts, Part], None]] = {
    "ask": Acts.ask, "ask-name-server": Acts.ask, "pause": Acts.pause, "adjust": Acts.adjust,
    "restart-pollers": Acts.restart_pollers, "restart-poppers": Acts.restart_members,
    "suspend": Acts.suspend, "seek": Acts.seek, "reset": Acts.reset,
    "subscribe": Acts.subscribe, "unsubscribe": Acts.unsubscribe, "set": Acts.set_broker,
    "restart-server": Acts.restart_server, "restart-broker": Acts.restart_broker, "restart-slave": Acts.restart_broker,
    "restart-members": Acts.restart_members,
    "delete-group": Acts.delete_group, "scale": Acts.make_topic,
    "delete-topic": Acts.delete_topic, "forget-topic": Acts.forget_topic, "create-topic": Acts.make_topic,
}  # fmt: skip
