"""Building a drawn world: each of its lines becomes a process, a topic, a group, or clients at work."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from mqlab.client import ConsumeFromWhere, MessageModel
from mqlab.scenarios import lite_pull
from mqlab.scenarios.demo import process_of
from mqlab.scenarios.drawing import loads5
from mqlab.scenarios.drawing.acts import Acts
from mqlab.scenarios.drawing.kinds import ALL, OWN
from mqlab.scenarios.drawing.loads import (
    NUMBERS_APART,
    InOrder,
    listener,
    poll_all,
    pull_all,
    pull_in_turns,
    send_all,
    send_in_transactions,
    wanted,
)
from mqlab.scenarios.drawing.parts import Part, World
from mqlab.scenarios.numbered import come_and_go
from mqlab.scenarios.replication import TABLES_MS
from mqlab.scenarios.transfers import Accounts, Bank

if TYPE_CHECKING:
    from mqlab.lab import Lab
    from mqlab.lab.processes import BrokerProcess

DEFAULTS: dict[str, Any] = {
    "topic": "Orders", "tags": "*", "members": 1, "moves": False, "refuse_one_in": 0, "slow_ms": 20,
    "queues": 4, "messages": 20, "every_ms": 200, "size": 100, "delay_level": 0, "next_delay_ms": 200,
    "debit_ms": 10, "batch": 8, "pause_ms": 500, "wants": ALL, "timer_ms": 0,
    "memory_bytes": 0, "known": False,
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
            lab.create_topic(part.name, _said(part)["queues"])
        elif part.kind == "group":
            lab.create_group(part.name, **part.settings())
    if any(_said(part)["known"] for part in slaves):
        lab.run_for(ms=TABLES_MS)
    for part in world:
        if part.kind == "proxy":
            lab.proxy(part.name, **part.settings())
    producers = 0
    members: dict[str, list[Any]] = {}
    for part in world:
        if part.kind == "producer":
            await _start_producer(lab, part, producers * NUMBERS_APART)
            producers += 1
        elif part.kind == "transactions":
            await _start_bank(lab, part, producers * NUMBERS_APART)
            producers += 1
        elif part.kind in ("push", "orderly", "broadcasting", "pop"):
            members[part.name] = await _start_pushed(lab, part)
        elif part.kind == "producer5":
            await loads5.start_producer(lab, part.name, part.settings(), producers * NUMBERS_APART, _said(part))
            producers += 1
        elif part.kind in ("push5", "simple5"):
            start = loads5.start_listening if part.kind == "push5" else loads5.start_receiving
            for node in _nodes(part):
                await start(lab, part.name, node, part.settings(), _said(part))
        elif part.kind == "lite":
            members[part.name] = await _start_lite(lab, part)
        elif part.kind == "schedule":
            await _start_schedule(lab, part)
        elif part.kind == "pull":
            await _start_pull(lab, part)
    Acts(lab, world, members)


def _set_up(broker: BrokerProcess, part: Part) -> None:
    """Give the machine of a broker as much memory as a line says, if it says any."""
    if memory_bytes := _said(part)["memory_bytes"]:
        broker.node.spec = broker.node.spec._replace(memory_bytes=memory_bytes)


def _said(part: Part) -> dict[str, Any]:
    """What a line says of the part itself, with what it leaves out."""
    own = OWN[part.kind]
    return {key: part.says.get(key, DEFAULTS.get(key, own[key].drawn[0])) for key in own}


def _settings(part: Part) -> dict[str, Any]:
    """RocketMQ's settings of a reader; unless it says otherwise it begins with the first message."""
    return {"consume_from_where": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, **part.settings()}


def _nodes(part: Part) -> list[str]:
    return [f"{part.name}-{number + 1}" for number in range(_said(part)["members"])]


async def _start_producer(lab: Lab, part: Part, first: int) -> None:
    settings = {"compress_msg_body_over_howmuch": NO_COMPRESSION, **part.settings()}
    producer = lab.producer(part.name, node=part.name, **settings)
    await producer.start()
    producer.node.spawn(send_all(producer, first, _said(part)), "load")


async def _start_bank(lab: Lab, part: Part, first: int) -> None:
    says, accounts = _said(part), Accounts()
    bank = lab.transaction_producer(part.name, node=part.name, topics=[says["topic"]], **part.settings())
    bank.transaction_listener = Bank(bank.node, accounts, says["debit_ms"])
    await bank.start()
    bank.node.spawn(send_in_transactions(bank, first, says), "transfers")


async def _start_pushed(lab: Lab, part: Part) -> list[Any]:
    members: list[Any] = []
    says, model = _said(part), MessageModel.BROADCASTING if part.kind == "broadcasting" else MessageModel.CLUSTERING
    settings = {"message_model": model, "client_rebalance": part.kind != "pop", **_settings(part)}
    if part.kind == "pop":
        lab.set_message_request_mode(says["topic"], part.name, "POP")
    for place, node in enumerate(_nodes(part)):
        consumer = lab.consumer(part.name, node=node, **settings)
        members.append(consumer)
        consumer.subscribe(says["topic"], wanted(says))
        in_order = part.kind == "orderly"
        consumer.register_message_listener(InOrder(consumer, says) if in_order else listener(consumer, says))
        if place and says["moves"]:
            _spawn_coming(come_and_go, consumer)
        else:
            await consumer.start()
    return members


async def _start_lite(lab: Lab, part: Part) -> list[Any]:
    members: list[Any] = []
    says = _said(part)
    for place, node in enumerate(_nodes(part)):
        consumer = lab.lite_pull_consumer(part.name, node=node, **_settings(part))
        members.append(consumer)
        consumer.subscribe(says["topic"], wanted(says))
        if place and says["moves"]:
            _spawn_coming(lite_pull.come_and_go, consumer)
        else:
            await consumer.start()
            consumer.node.spawn(poll_all(consumer), "poll")
    return members


async def _start_schedule(lab: Lab, part: Part) -> None:
    says = _said(part)
    for place, node in enumerate(_nodes(part)):
        service = lab.pull_schedule_service(part.name, node=node, **part.settings())
        pull_in_turns(service, says)
        if place and says["moves"]:
            _spawn_coming(come_and_go, service)
        else:
            await service.start()


async def _start_pull(lab: Lab, part: Part) -> None:
    says = _said(part)
    for place, node in enumerate(_nodes(part)):
        consumer = lab.pull_consumer(part.name, node=node, **part.settings())
        consumer.register_message_queue_listener(says["topic"])
        if place and says["moves"]:
            _spawn_coming(come_and_go, consumer)
        else:
            await consumer.start()
        process_of(lab, consumer).run_in_each_life("pull", partial(pull_all, consumer, says))


def _spawn_coming(work: Any, consumer: Any) -> None:
    draw = consumer.node.choose
    joins, stays = (least + draw(point, more) for point, (least, more) in (("join", JOINS_MS), ("stay", STAYS_MS)))
    consumer.node.spawn(work(consumer, joins, stays), "come and go")
