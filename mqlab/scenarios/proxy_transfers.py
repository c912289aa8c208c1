"""The scenario of transactions through proxies: producers that die, through proxies that die, and no money is lost."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from mqlab.scenarios.demo import process_of
from mqlab.scenarios.numbered import pause
from mqlab.scenarios.registry import ANY_FAULT, scenario, story
from mqlab.scenarios.transfers import TRANSFERS
from mqlab.scenarios.words import AnyFlush, drawn_flush

if TYPE_CHECKING:
    from mqlab.client.v5 import MessageView, Producer, TransactionResolution
    from mqlab.lab import Lab

Debits = dict[str, "TransactionResolution"]
"""Of each transfer what became of its debit. It stands for a data base on a machine that never fails."""

STORY = story("""
    ClientSettingsTaken 1 proxy-1: A bank will send transactions. The proxy tells brokers, every 20 s, to ask here.
    HalfMessageHidden 1 broker-a: A transfer begins: the proxy has a half message stored, which nobody can receive.
    TransactionResolved 1 producer-1: The money has left the account. The bank tells the proxy: commit.
    EndTransactionRelayed 1 proxy-1: For 30 s the proxy knows where that half message lies, and tells the broker.
    ConsumeStarted 1 consumer-1: The broker has stored the message where it belongs, and the other bank gets it.
    NodeCrashed 1 producer-1: In its third transfer the bank's machine is killed. Was the money taken?
    NodeCrashed 2 proxy-1: In the other machine's transfer the proxy is killed, and what it knew dies with it.
    RpcRefused 1 proxy-2: The bank has the money and says commit at the other proxy, which knows nothing of it.
    OrphanedTransactionRelayed 1 proxy-2: The broker asks what became of it: proxy-2 asks a producer of the topic.
    LocalTransactionRemembered 2 producer-2: The data base knows the debit, and the transfer comes after all.
""")


def _checker(producer: Producer, debits: Debits, *, may_be_busy: bool) -> None:
    """Let a producer look transfers up when it is asked; where it may be busy, the data base is so one time in four.

    A transfer that is not there never began, or its machine died before the debit: then nothing is owed.
    """
    from mqlab.client.v5 import TransactionResolution

    def checker(message: MessageView) -> TransactionResolution:
        if may_be_busy and producer.node.choose("data base is busy", 4) == 0:
            return TransactionResolution.UNKNOWN
        return debits.get(message.keys[0], TransactionResolution.ROLLBACK)

    producer.set_transaction_checker(checker)


async def _transfer(
    producer: Producer, debits: Debits, number: int, debit_ms: int, fate: TransactionResolution | None = None
) -> None:
    """One transfer, of an application that goes on whatever fails; one account in six is empty, and one time in six
    the application dies in itself before it says how the transfer ended.
    """
    from mqlab.client.v5 import ClientException, Message, TransactionResolution

    key, node = f"transfer-{number}", producer.node
    with suppress(ClientException):
        transaction = producer.begin_transaction()
        await producer.send(Message(TRANSFERS, f"100 from A to B, transfer {number}", keys=key), transaction)
        await node.sleep(debit_ms)
        is_silent = fate is None and node.choose("never says how it ended", 6) == 0
        if fate is None:
            is_empty = node.choose("account is empty", 6) == 0
            fate = TransactionResolution.ROLLBACK if is_empty else TransactionResolution.COMMIT
        debits[key] = fate
        if not is_silent:
            await (transaction.commit() if fate is TransactionResolution.COMMIT else transaction.rollback())


async def _bank(lab: Lab, debits: Debits, *, may_be_busy: bool) -> Producer:
    producer = lab.producer_v5(topics=TRANSFERS)
    _checker(producer, debits, may_be_busy=may_be_busy)
    await producer.start()
    return producer


def _tell(lab: Lab, first: Producer, second: Producer, debits: Debits, debit_ms: int) -> None:
    """Four transfers: a commit, a rollback, one in which the machine dies, and one in which the proxy dies."""
    from mqlab.client.v5 import TransactionResolution as Fate

    async def load() -> None:
        await _transfer(first, debits, 1, debit_ms, Fate.COMMIT)
        await first.node.sleep(500)
        await _transfer(first, debits, 2, debit_ms, Fate.ROLLBACK)
        await first.node.sleep(3_500)
        await _transfer(first, debits, 3, debit_ms, Fate.COMMIT)

    async def last() -> None:
        await second.node.sleep(8_000)
        await _transfer(second, debits, 4, debit_ms, Fate.COMMIT)

    begin_ms = lab.now_ms
    first.node.spawn(load(), "load")
    second.node.spawn(last(), "load")
    third_ms = begin_ms + 4_000 + 2 * debit_ms + debit_ms // 2
    fourth_ms = begin_ms + 8_000 + debit_ms // 2
    lab.faults(f"at {third_ms:g}ms: crash {first.node.name} for 60s\nat {fourth_ms:g}ms: crash proxy-1 for 60s")


@scenario(
    "proxy-transactions",
    seconds=80,
    captions=STORY,
    faults=ANY_FAULT,
    explored_with={"told": False, "brokers": 2, "flush": "any"},
    goals=("proxy-relays-an-end", "proxy-relays-a-question"),
)
async def proxy_transactions(
    lab: Lab,
    *,
    brokers: int = 1,
    proxies: int = 2,
    producers: int = 2,
    transfers: int = 15,
    every_ms: int = 1_500,
    debit_ms: int = 400,
    flush: AnyFlush = "ASYNC_FLUSH",
    told: bool = True,
) -> None:
    """5.x producers move money in transactions through proxies; machines and proxies die in the midst of it.

    With `told` four transfers and two accidents make a story; without, each producer makes its `transfers`, and says of
    one in six not how it ended.
    """
    from mqlab.client.v5 import ConsumeResult

    flush = drawn_flush(lab, flush)
    lab.name_server()
    for _ in range(brokers):
        lab.broker(flush_disk_type=flush)
    lab.create_topic(TRANSFERS, 2, attributes={"+message.type": "TRANSACTION"})
    for _ in range(proxies):
        lab.proxy()
    consumer = lab.push_consumer_v5("credits")
    consumer.subscribe(TRANSFERS)
    consumer.set_message_listener(lambda message: ConsumeResult.SUCCESS)
    await consumer.start()
    debits: Debits = {}
    told = told and producers > 1
    banks = [await _bank(lab, debits, may_be_busy=not told) for _ in range(producers)]
    lab.run_for(seconds=1)
    if told:
        _tell(lab, banks[0], banks[1], debits, debit_ms)
        return
    numbers = iter(range(producers * transfers))

    async def load(producer: Producer) -> None:
        for number in numbers:
            await _transfer(producer, debits, number, debit_ms)
            await pause(producer.node, every_ms)

    for producer in banks:
        process_of(lab, producer).run_in_each_life("transfers", partial(load, producer))
