"""The scenarios of transactions: money leaves one account, and a message that it has left is let go, or is not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from mqlab.client.producer.transaction_listener import LocalTransactionState, TransactionListener
from mqlab.protocol import Message
from mqlab.protocol.message import MessageConst
from mqlab.scenarios.demo import process_of
from mqlab.scenarios.ground import keep_nothing, start_consumer
from mqlab.scenarios.numbered import FAILURES, pause
from mqlab.scenarios.registry import ANY_FAULT, scenario, story
from mqlab.scenarios.words import AnyFlush, drawn_flush

if TYPE_CHECKING:
    from mqlab.client.producer.transaction_mq_producer import TransactionMQProducer
    from mqlab.lab import Lab
    from mqlab.protocol.message import MessageExt
    from mqlab.sim import Node

TRANSFERS = "Transfers"
BANK = "bank"
COMMIT, ROLLBACK, UNKNOW = LocalTransactionState

Accounts = dict[str, LocalTransactionState]
"""Of each transfer what became of its debit. It stands for a data base on a machine that never fails."""


class Bank(TransactionListener):
    """One machine of the bank: takes the money from the account, and looks the transfer up when it is asked.

    A transfer that is not in the data base never began, or its machine died before the debit: then nothing is owed.
    """

    def __init__(self, node: Node, accounts: Accounts, debit_ms: int) -> None:
        self._node = node
        self._accounts = accounts
        self._debit_ms = debit_ms

    async def execute_local_transaction(self, message: Message, argument: Any) -> LocalTransactionState:
        """Debit the account, which takes a moment; one in six is empty, and one answer in six never comes."""
        await self._node.sleep(self._debit_ms)
        fate: LocalTransactionState = COMMIT
        if argument is not None:
            fate = argument
        elif self._node.choose("account is empty", 6) == 0:
            fate = ROLLBACK
        self._accounts[message.keys or ""] = fate
        return UNKNOW if argument is None and self._node.choose("answer is late", 6) == 0 else fate

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Look the transfer up; one time in four the data base is busy."""
        if self._node.choose("data base is busy", 4) == 0:
            return UNKNOW
        return self._accounts.get(message.keys or "", ROLLBACK)


async def open_banks(
    lab: Lab, listener: Callable[[Node], TransactionListener], *, machines: int = 1, **broker: Any
) -> list[TransactionMQProducer]:
    """A name server, a broker, the other bank that books what it gets, and `machines` of the bank that sends.

    `listener(node)` makes the transaction listener of a machine; `broker` are settings of the broker.
    """
    lab.name_server()
    lab.broker(**broker)
    lab.create_topic(TRANSFERS, 1)
    await start_consumer(lab, "credits", TRANSFERS, keep_nothing, node="other-bank")
    banks = []
    for number in range(1, machines + 1):
        bank = lab.transaction_producer(BANK, node=f"bank-{number}", topics=[TRANSFERS])
        bank.transaction_listener = listener(bank.node)
        await bank.start()
        banks.append(bank)
    lab.run_for(seconds=1)
    return banks


async def transfer(
    producer: TransactionMQProducer, number: int, argument: Any = None, *, immune_s: int = 0
) -> None:
    """Begin one transfer, about which nobody shall be asked for a while; an application that goes on when the half
    message cannot be sent.
    """
    message = Message(TRANSFERS, b"100 from A to B, transfer %d" % number, keys=f"transfer-{number}")
    if immune_s:
        message.properties[MessageConst.CHECK_IMMUNITY_TIME_IN_SECONDS] = str(immune_s)
    try:
        await type(producer).send_message_in_transaction.inside(  # type: ignore[attr-defined]  # see public_call
            producer, message, argument
        )
    except FAILURES:
        return


@scenario(
    "bank-transfers", seconds=100, faults=ANY_FAULT, explored_with={"immune_s": 18},
    goals=("transaction-commits-when-asked", "another-member-is-asked", "half-message-is-asked-about-twice"),
)
async def bank_transfers(
    lab: Lab,
    *,
    brokers: int = 2,
    producers: int = 2,
    transfers: int = 20,
    every_ms: int = 1_500,
    debit_ms: int = 150,
    immune_s: int = 0,
    flush: AnyFlush = "any",
) -> None:
    """Machines of a bank begin transfers and die now and then in the midst of one; others of the group are asked.

    Of three transfers one says that nobody shall be asked about it for `immune_s` seconds (0: none does). With `flush`
    "any" the seed draws whether the brokers flush before they answer.
    """
    flush = drawn_flush(lab, flush)
    lab.name_server()
    for _ in range(brokers):
        lab.broker(flush_disk_type=flush)
    lab.create_topic(TRANSFERS, 2)
    await start_consumer(lab, "credits", TRANSFERS)
    accounts: Accounts = {}
    numbers = iter(range(producers * transfers))

    async def load(producer: TransactionMQProducer) -> None:
        for number in numbers:
            await transfer(producer, number, immune_s=0 if number % 3 else immune_s)
            await pause(producer.node, every_ms)

    for _ in range(producers):
        producer = await _bank(lab, accounts, debit_ms)
        process_of(lab, producer).run_in_each_life("transfers", partial(load, producer))


HALF_MESSAGE = story("""
    HalfMessageHidden 1 broker-a: A bank begins a transfer. The message is stored as a half message: nobody can pull it.
    LocalTransactionExecuted 1 producer-1: Only now the bank takes the money from the account: the local part.
    TransactionEnded 1 broker-a: The bank says commit, one-way. The broker stores the message where it belongs ...
    ConsumeStarted 1 consumer-1: ... and the other bank gets it at once.
    TransactionEnded 2 broker-a: Another account is empty: rollback. This half message stays hidden for ever.
    HalfMessageHidden 3 broker-a: A third transfer is stored as a half message ...
    NodeCrashed 1 producer-1: ... and the bank's machine is killed. Was the money taken? The broker cannot know.
    TransactionChecked 1 broker-a: At its next round, every 30 seconds, the broker asks another machine of the group.
    LocalTransactionRemembered 1 producer-2: That one looks into the data base: there is no such transfer.
    TransactionEnded 3 broker-a: Rollback. Had nobody been there, the broker would ask 15 times, and then put it aside.
""")


@scenario("half-message", seconds=40, captions=HALF_MESSAGE)
async def half_message(lab: Lab, *, debit_ms: int = 400) -> None:
    """Three transfers of a bank: one is committed, one is rolled back, and in the third the bank's machine dies."""
    lab.name_server()
    lab.broker("broker-a")
    lab.create_topic(TRANSFERS, 1)
    await start_consumer(lab, "credits", TRANSFERS, keep_nothing)
    accounts: Accounts = {}
    first, _ = [await _bank(lab, accounts, debit_ms) for _ in range(2)]
    lab.run_for(seconds=1)

    async def load() -> None:
        await transfer(first, 1, COMMIT)
        await first.node.sleep(500)
        await transfer(first, 2, ROLLBACK)
        await first.node.sleep(5_500)
        await transfer(first, 3, COMMIT)

    first.node.spawn(load(), "load")
    lab.faults(f"at {lab.now_ms + 6_000 + 2 * debit_ms + debit_ms // 2:g}ms: crash {first.node.name} for 60s")


async def _bank(lab: Lab, accounts: Accounts, debit_ms: int) -> TransactionMQProducer:
    producer = lab.transaction_producer(BANK, topics=[TRANSFERS])
    producer.transaction_listener = Bank(producer.node, accounts, debit_ms)
    await producer.start()
    return producer
