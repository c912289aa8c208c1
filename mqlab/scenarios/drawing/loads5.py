"""What 5.x clients of a drawn world do: they send, listen, and receive through a proxy."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from mqlab.scenarios.demo import process_of
from mqlab.scenarios.drawing.kinds import ALL, CONDITIONS
from mqlab.scenarios.drawing.loads import OFTEN_SLOW_MS, refuses
from mqlab.scenarios.drawing.ways import properties_of
from mqlab.scenarios.numbered import KEY, body_of, pause

if TYPE_CHECKING:
    from mqlab.client.v5 import Message, MessageView, Producer, PushConsumer, SimpleConsumer, TransactionResolution
    from mqlab.client.v5.filter_expression import FilterExpression
    from mqlab.lab import Lab
    from mqlab.sim import Node

QUICK_MS, SLOW_ONE_IN = 20, 20
OFTEN_SLOW_ONE_IN = 4
"""A listener that may take seconds does so for one message in so many."""
INVISIBLE_MS = 15_000
LEAST_INVISIBLE_MS = 10_000
"""Less a proxy refuses."""
CUSTOMERS = 3
"""A producer in order has so many message groups."""
ONE_IN = 6
"""Of so many transactions one is rolled back, and of so many nobody says how they ended."""
BUSY_ONE_IN = 4
"""Of so many questions one is answered: unknown."""
AWAY_MS = 500
"""How often an application looks whether its consumer runs again."""
JOINS_MS, STAYS_MS = (500, 8_000), (2_000, 15_000)

Debits = dict[str, "TransactionResolution"]
"""Of each transfer what became of its debit. It stands for a data base on a machine that never fails."""


async def start_producer(lab: Lab, name: str, settings: dict[str, Any], first: int, says: dict[str, Any]) -> Producer:
    """A producer that sends the numbered messages of its line through the proxies."""
    producer = lab.producer_v5(node=name, topics=says["topic"], **settings)
    await producer.start()
    producer.node.spawn(_send_all(producer, first, says), "load")
    return producer


async def start_bank(lab: Lab, name: str, settings: dict[str, Any], first: int, says: dict[str, Any]) -> Producer:
    """A producer that sends each of its messages in a transaction, and is asked about those it does not end."""
    producer = lab.producer_v5(node=name, topics=says["topic"], **settings)
    debits: Debits = {}
    _answer_questions(producer, debits)
    await producer.start()
    producer.node.spawn(_send_in_transactions(producer, debits, first, says), "transfers")
    return producer


async def start_listening(
    lab: Lab, group: str, node: str, settings: dict[str, Any], says: dict[str, Any]
) -> PushConsumer:
    """A push consumer whose listener fails, and is slow, now and then."""
    consumer = lab.push_consumer_v5(group, node=node, **settings)
    consumer.subscribe(says["topic"], _wanted(says))
    consumer.set_message_listener(_listener(consumer.node, says))
    await _start(consumer, says)
    return consumer


async def start_receiving(
    lab: Lab, group: str, node: str, settings: dict[str, Any], says: dict[str, Any]
) -> SimpleConsumer:
    """A simple consumer that receives again and again, and forgets to acknowledge one message in `refuse_one_in`."""
    consumer = lab.simple_consumer(group, node=node, **settings)
    consumer.subscribe(says["topic"], _wanted(says))
    await _start(consumer, says)
    process_of(lab, consumer).run_in_each_life("receive", partial(_receive_all, consumer, says))
    return consumer


def _wanted(says: Mapping[str, Any]) -> FilterExpression | str:
    from mqlab.client.v5.filter_expression import FilterExpression

    condition = CONDITIONS.get(says.get("wants", ALL))
    return str(says["tags"]).replace("||", " || ") if condition is None else FilterExpression(condition, sql=True)


async def _start(consumer: PushConsumer | SimpleConsumer, says: dict[str, Any]) -> None:
    """Start a member of a group; every second one of a group that moves joins later, and leaves again."""
    if not says["moves"] or consumer.node.name.endswith("-1"):
        await consumer.start()
        return
    draw = consumer.node.choose
    joins, stays = (least + draw(point, more) for point, (least, more) in (("join", JOINS_MS), ("stay", STAYS_MS)))
    consumer.node.spawn(_come_and_go(consumer, joins, stays), "come and go")


async def _come_and_go(consumer: PushConsumer | SimpleConsumer, after_ms: int, stay_ms: int) -> None:
    from mqlab.client.v5 import ClientException

    kind: Any = type(consumer)
    await consumer.node.sleep(after_ms)
    with suppress(ClientException):
        await kind.start.inside(consumer)
        await consumer.node.sleep(stay_ms)
        await kind.shutdown.inside(consumer)


# -- sending --------------------------------------------------------------------------------------------------------


async def _send_all(producer: Producer, first: int, says: dict[str, Any]) -> None:
    from mqlab.client.v5 import ClientException

    for number in range(first, first + says["messages"]):
        with suppress(ClientException):
            receipt = await producer.send(_message(producer, number, says))
            if receipt.recall_handle and says["recall_one_in"] and number % says["recall_one_in"] == 0:
                await producer.recall_message(says["topic"], receipt.recall_handle)
        await pause(producer.node, says["every_ms"])


def _message(producer: Producer, number: int, says: dict[str, Any]) -> Message:
    from mqlab.client.v5 import Message

    key = f"{KEY}{number}"
    said: dict[str, Any] = {"properties": properties_of(number)}
    if says.get("way") == "in-order":
        said["message_group"] = f"customer-{number % CUSTOMERS}"
    elif says.get("way") == "later":
        said["delivery_timestamp"] = producer.node.now_ms() + says["timer_ms"]
    return Message(says["topic"], body_of(key, says["size"]), tag="paid", keys=key, **said)


async def _send_in_transactions(producer: Producer, debits: Debits, first: int, says: dict[str, Any]) -> None:
    from mqlab.client.v5 import ClientException, TransactionResolution

    draw = producer.node.choose

    async def transfer(message: Message) -> None:
        with suppress(ClientException):
            transaction = producer.begin_transaction()
            await producer.send(message, transaction)
            await producer.node.sleep(says["debit_ms"])
            is_empty, is_silent = draw("account is empty", ONE_IN) == 0, draw("never says how it ended", ONE_IN) == 0
            debits[message.keys[0]] = TransactionResolution.ROLLBACK if is_empty else TransactionResolution.COMMIT
            if not is_silent:
                await (transaction.rollback() if is_empty else transaction.commit())

    for number in range(first, first + says["messages"]):
        transferring = transfer(_message(producer, number, says))
        if says["at_once"]:
            producer.node.spawn(transferring, f"transfer {number}")
        else:
            await transferring
        await pause(producer.node, says["every_ms"])


def _answer_questions(producer: Producer, debits: Debits) -> None:
    """Let a producer look transfers up: one that is not there never began, or its machine died before the debit."""
    from mqlab.client.v5 import TransactionResolution

    def checker(message: MessageView) -> TransactionResolution:
        if producer.node.choose("data base is busy", BUSY_ONE_IN) == 0:
            return TransactionResolution.UNKNOWN
        return debits.get(message.keys[0], TransactionResolution.ROLLBACK)

    producer.set_transaction_checker(checker)


# -- consuming ------------------------------------------------------------------------------------------------------


def _listener(node: Node, says: dict[str, Any]) -> Any:
    from mqlab.client.v5 import ConsumeResult

    async def listen(message: MessageView) -> ConsumeResult:
        one_in = OFTEN_SLOW_ONE_IN if says["slow_ms"] in OFTEN_SLOW_MS else SLOW_ONE_IN
        slow = node.choose("kind of reader", one_in) == 0
        await node.sleep(node.choose("reading time", (says["slow_ms"] if slow else QUICK_MS) + 1))
        return ConsumeResult.FAILURE if refuses(node, says) else ConsumeResult.SUCCESS

    return listen


async def _receive_all(consumer: SimpleConsumer, says: dict[str, Any]) -> None:
    from mqlab.client.v5 import ClientException

    node = consumer.node
    while True:
        received: list[MessageView] = []
        if not consumer.impl.is_running:
            await node.sleep(AWAY_MS)
            continue
        with suppress(ClientException):
            received = await consumer.receive(says["batch"], INVISIBLE_MS)
        await node.sleep(QUICK_MS * max(1, len(received)))
        for message in received:
            with suppress(ClientException):
                if says["change_one_in"] and node.choose("change", says["change_one_in"]) == 0:
                    await consumer.change_invisible_duration(message, LEAST_INVISIBLE_MS)
                if not refuses(node, says):
                    await consumer.ack(message)
