"""Building a drawn world: each of its lines becomes a process, a topic, a group, or clients at work."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mqlab.client import ConsumeFromWhere, MessageModel
from mqlab.client.consumer.message_selector import MessageSelector
from mqlab.scenarios import lite_pull
from mqlab.scenarios.demo import process_of
from mqlab.scenarios.drawing import loads5
from mqlab.scenarios.drawing.acts import Acts
from mqlab.scenarios.drawing.kinds import ALL, ORDINARY, OWN, TOGETHER
from mqlab.scenarios.drawing.loads import (
    InOrder,
    listener,
    wanted,
)
from mqlab.scenarios.drawing.parts import Part, World
from mqlab.scenarios.drawing.polls import poll_all, pull_all, pull_in_turns, take_a_share, topics_of
from mqlab.scenarios.drawing.replies import ask_all, replier
from mqlab.scenarios.drawing.shares import sharing
from mqlab.scenarios.drawing.ways import NUMBERS_APART, send_all, send_in_transactions
from mqlab.scenarios.numbered import come_and_go
from mqlab.scenarios.replication import TABLES_MS
from mqlab.scenarios.transfers import Accounts, Bank

if TYPE_CHECKING:
    from mqlab.client import DefaultMQPushConsumer
    from mqlab.lab import Lab
    from mqlab.lab.processes import BrokerProcess
    from mqlab.protocol import MessageQueue

DEFAULTS: dict[str, Any] = {
    "topic": "Orders", "tags": "*", "members": 1, "moves": False, "refuse_one_in": 0, "slow_ms": 20,
    "queues": 4, "messages": 20, "every_ms": 200, "size": 100, "delay_level": 0, "next_delay_ms": 200,
    "debit_ms": 10, "immune_s": 0, "batch": 8, "pause_ms": 500, "wants": ALL, "timer_ms": 0,
    "memory_bytes": 0, "known": False, "at_once": False,
}  # fmt: skip
"""What a line means that does not say it; of what is not here the first value that is drawn."""
JOINS_MS, STAYS_MS = (500, 8_000), (2_000, 15_000)
"""When a member that moves joins its group, and how long it stays: from, and by how much more at most."""
NO_COMPRESSION = 4 * 1024 * 1024
"""Packing big bodies costs more of the machine's time than all the rest, so it has to be asked for."""


async def build_world(lab: Lab, world: World) -> None:
    """Make all of a world: servers first, then topics and groups, then clients in the order of their lines."""
    for part in world:
        if part.kind == "name-server":
            lab.name_server(part.name)
    for part in world:
        if part.kind == "broker":
            _set_up(lab.broker(part.name, **part.settings()), part)
    slaves = [part for part in world if part.kind == "slave"]
    masters = {part.name: part for part in world if part.kind == "broker"}
    for part in slaves:
        of = _said(part)["of"]
        _set_up(lab.broker(part.name, slave_of=of, **part.settings()), masters[of])
    for part in world:
        if part.kind == "topic":
            lab.create_topic(part.name, _said(part)["queues"], **_kind_of_topic(part))
        elif part.kind == "group":
            lab.create_group(part.name, **part.settings())
    if any(_said(part)["known"] for part in slaves):
        lab.run_for(ms=TABLES_MS)
    for part in world:
        if part.kind == "proxy":
            lab.proxy(part.name, **part.settings())
    first = 0
    members: dict[str, list[Any]] = {}
    for part in world:
        if part.kind in STARTS:
            members[part.name] = await STARTS[part.kind](lab, part, first)
            first += NUMBERS_APART * (part.kind in SENDERS)
    Acts(lab, world, members)


def _set_up(broker: BrokerProcess, part: Part) -> None:
    """Give the machine of a broker as much memory as a line says, if it says any."""
    if memory_bytes := _said(part)["memory_bytes"]:
        broker.node.spec = broker.node.spec._replace(memory_bytes=memory_bytes)


def _said(part: Part) -> dict[str, Any]:
    """What a line says of the part itself, with what it leaves out."""
    own = OWN[part.kind]
    return {key: part.says.get(key, DEFAULTS.get(key, own[key].drawn[0])) for key in own}


def _kind_of_topic(part: Part) -> dict[str, Any]:
    """The kind of messages that a topic is made for, as proxies ask for it; nothing where it is an ordinary one."""
    kind = _said(part)["type"]
    return {} if kind == ORDINARY else {"attributes": {"+message.type": kind}}


def _settings(part: Part) -> dict[str, Any]:
    """RocketMQ's settings of a reader; unless it says otherwise it begins with the first message."""
    instance = {"instance_name": TOGETHER} if _said(part).get("runs") == TOGETHER else {}
    return {"consume_from_where": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, **instance, **part.settings()}


def _nodes(part: Part) -> list[str]:
    says = _said(part)
    process = TOGETHER if says.get("runs") == TOGETHER else part.name
    return [f"{process}-{number + 1}" for number in range(says["members"])]


async def _start_producer(lab: Lab, part: Part, first: int) -> list[Any]:
    settings = {"compress_msg_body_over_howmuch": NO_COMPRESSION, **part.settings()}
    producer = lab.producer(part.name, node=part.name, **settings)
    await producer.start()
    producer.node.spawn(send_all(producer, first, _said(part)), "load")
    return [producer]


async def _start_asker(lab: Lab, part: Part, first: int) -> list[Any]:
    settings = {"compress_msg_body_over_howmuch": NO_COMPRESSION, **part.settings()}
    producer = lab.producer(part.name, node=part.name, **settings)
    await producer.start()
    producer.node.spawn(ask_all(producer, first, _said(part)), "asks")
    return [producer]


async def _start_bank(lab: Lab, part: Part, first: int) -> list[Any]:
    says, accounts = _said(part), Accounts()
    bank = lab.transaction_producer(part.name, node=part.name, topics=[says["topic"]], **part.settings())
    bank.transaction_listener = Bank(bank.node, accounts, says["debit_ms"])
    await bank.start()
    bank.node.spawn(send_in_transactions(bank, first, says), "transfers")
    return [bank]


async def _start_pushed(lab: Lab, part: Part, first: int) -> list[Any]:
    members: list[Any] = []
    says, model = _said(part), MessageModel.BROADCASTING if part.kind == "broadcasting" else MessageModel.CLUSTERING
    settings = {"message_model": model, "client_rebalance": part.kind != "pop", **sharing(says), **_settings(part)}
    if part.kind == "pop":
        lab.set_message_request_mode(says["topic"], part.name, "POP", pop_share_queue_num=says["share_num"])
    for place, node in enumerate(_nodes(part)):
        consumer = lab.consumer(part.name, node=node, **settings)
        members.append(consumer)
        consumer.subscribe(says["topic"], wanted(says))
        consumer.register_message_listener(await _listener(lab, part, consumer))
        if place and says["moves"]:
            _spawn_coming(come_and_go, consumer)
        else:
            await consumer.start()
    return members


async def _listener(lab: Lab, part: Part, consumer: DefaultMQPushConsumer) -> Any:
    if part.kind == "orderly":
        return InOrder(consumer, _said(part))
    if part.kind != "replier":
        return listener(consumer, _said(part))
    answers = lab.producer(f"answers-of-{part.name}", node=consumer.node.name)
    await answers.start()
    return replier(consumer, answers, _said(part))


async def _start_5(start: Any, lab: Lab, part: Part, first: int) -> list[Any]:
    return [await start(lab, part.name, node, part.settings(), _said(part)) for node in _nodes(part)]


async def _start_producer_5(start: Any, lab: Lab, part: Part, first: int) -> list[Any]:
    return [await start(lab, part.name, part.settings(), first, _said(part))]


async def _start_lite(lab: Lab, part: Part, first: int) -> list[Any]:
    members: list[Any] = []
    says = _said(part)
    for place, node in enumerate(_nodes(part)):
        consumer = lab.lite_pull_consumer(part.name, node=node, **sharing(says), **_settings(part))
        members.append(consumer)
        if says["way"] == "assign":
            await consumer.start()
            await take_a_share(consumer, says, place)
            consumer.node.spawn(poll_all(consumer, says), "poll")
            continue
        consumer.subscribe(says["topic"], wanted(says), _hear_of_queues if place else None)
        if place and says["moves"]:
            _spawn_coming(lite_pull.come_and_go, consumer)
        else:
            await consumer.start()
            consumer.node.spawn(poll_all(consumer, says), "poll")
    return members


def _hear_of_queues(topic: str, all_queues: Sequence[MessageQueue], mine: Sequence[MessageQueue]) -> None:
    """The listener of an application that has nothing to do when its queues change."""


async def _start_schedule(lab: Lab, part: Part, first: int) -> list[Any]:
    says = _said(part)
    members: list[Any] = []
    for place, node in enumerate(_nodes(part)):
        service = lab.pull_schedule_service(part.name, node=node, **part.settings())
        members.append(service)
        pull_in_turns(service, says)
        if place and says["moves"]:
            _spawn_coming(come_and_go, service)
        else:
            await service.start()
    return members


async def _start_pull(lab: Lab, part: Part, first: int) -> list[Any]:
    says = _said(part)
    members: list[Any] = []
    for place, node in enumerate(_nodes(part)):
        consumer = lab.pull_consumer(part.name, node=node, **sharing(says), **part.settings())
        members.append(consumer)
        for topic in topics_of(consumer, says):
            consumer.register_message_queue_listener(topic, _hear_of_queues if place else None)
        selector = wanted(says)
        consumer.add_register_subscriptions(
            says["topic"], MessageSelector.by_tag(selector) if isinstance(selector, str) else selector
        )
        if place and says["moves"]:
            _spawn_coming(come_and_go, consumer)
        else:
            await consumer.start()
        process_of(lab, consumer).run_in_each_life("pull", partial(pull_all, consumer, says))
    return members


def _spawn_coming(work: Any, consumer: Any) -> None:
    draw = consumer.node.choose
    joins, stays = (least + draw(point, more) for point, (least, more) in (("join", JOINS_MS), ("stay", STAYS_MS)))
    consumer.node.spawn(work(consumer, joins, stays), "come and go")


Start = Callable[["Lab", Part, int], Coroutine[Any, Any, list[Any]]]
STARTS: dict[str, Start] = {
    "producer": _start_producer,
    "asker": _start_asker,
    "transactions": _start_bank,
    "producer5": partial(_start_producer_5, loads5.start_producer),
    "transactions5": partial(_start_producer_5, loads5.start_bank),
    **dict.fromkeys(("push", "orderly", "broadcasting", "pop", "replier"), _start_pushed),
    "push5": partial(_start_5, loads5.start_listening),
    "simple5": partial(_start_5, loads5.start_receiving),
    "lite": _start_lite,
    "schedule": _start_schedule,
    "pull": _start_pull,
}
"""What makes the clients of a line, which are given back; who sends has the number of its first message."""
SENDERS = ("producer", "asker", "transactions", "producer5", "transactions5")
