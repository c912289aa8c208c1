"""Transactions of 5.x producers: half messages through a proxy, their ends, and questions over the standing stream."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.client.v5 import (
    ClientException,
    ConsumeResult,
    Message,
    MessageView,
    Producer,
    Transaction,
    TransactionResolution,
)
from mqlab.errors import LearnerError
from mqlab.protocol.v2 import service
from mqlab.protocol.v2.definition import Code, Resource, SystemProperties, TransactionSource
from mqlab.protocol.v2.definition import Message as ProtoMessage
from mqlab.protocol.v2.definition import MessageType as Kind
from mqlab.protocol.v2.definition import TransactionResolution as Resolution
from mqlab.protocol.v2.protobuf import Duration, Timestamp

from .conftest import Shop
from .recorded import QUESTIONS, answer_to, call, fields_set

COMMIT, ROLLBACK, UNKNOWN = TransactionResolution


class Bank(Shop):
    """A shop whose topic T is for transactions; its checkers say `verdict` and note what they were asked."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.lab.create_topic("TX", 2, attributes={"+message.type": "TRANSACTION"})
        self.verdict: Any = COMMIT
        self.asked: list[tuple[float, str, MessageView]] = []

    def bank(self, topics: str = "TX", **settings: Any) -> Producer:
        """A producer with a checker that has started."""
        producer = self.lab.producer_v5(topics=topics, **settings)

        def checker(message: MessageView) -> Any:
            self.asked.append((self.lab.now_ms, producer.node.name, message))
            return self.verdict(message) if callable(self.verdict) else self.verdict

        producer.set_transaction_checker(checker)
        self.run(producer.start())
        return producer

    def half(self, producer: Producer, body: str = "money", topic: str = "TX") -> tuple[Transaction, Any]:
        """A message of a transaction that is stored and not ended, and its receipt."""
        transaction = producer.begin_transaction()
        return transaction, self.run(producer.send(Message(topic, body, "a"), transaction))

    def consume(self) -> None:
        """Let a push consumer of TX note in `delivered` what it gets."""
        consumer = self.lab.push_consumer_v5("credits")
        consumer.subscribe("TX")
        consumer.set_message_listener(self.noting(consumer, lambda _: ConsumeResult.SUCCESS))
        self.run(consumer.start())
        self.run_ms(1_100)

    def end(self, producer: Producer, transaction_id: str, resolution: Resolution, topic: str = "TX") -> Any:
        """What a proxy answers when this producer ends a transaction by hand."""
        request = service.EndTransactionRequest(
            Resource(name=topic), transaction_id, transaction_id, resolution, TransactionSource.SOURCE_CLIENT
        )
        return call(self.lab, producer.impl, service.END_TRANSACTION, request)

    def ended(self) -> list[tuple[str, bool, int]]:
        """What brokers were told: state, whether they had asked, and their code."""
        return [(e.local_state, e.from_check, e.code) for e in self.events("TransactionEnded")]


@pytest.fixture
def bank() -> Bank:
    return Bank()


# -- ends by the producer itself ---------------------------------------------------------------------------------------


def test_what_is_committed_is_delivered_and_what_is_rolled_back_never(bank: Bank) -> None:
    bank.consume()
    producer = bank.bank()
    committed, receipt = bank.half(producer, "commit")
    taken_back, _ = bank.half(producer, "rollback")
    bank.run_ms(2_000)
    assert bank.bodies() == []
    bank.run(committed.commit())
    bank.run(taken_back.rollback())
    bank.run_ms(120_000)
    assert bank.bodies() == ["commit"]
    assert bank.asked == []
    (message,) = (delivery.message for delivery in bank.delivered)
    # Recorded: jv-tx, the message that the Java client's listener got.
    assert (message.message_id, message.properties) == (receipt.message_id, {"__transactionId__": receipt.message_id})
    assert receipt.transaction_id == receipt.message_id


def test_a_transaction_is_ended_once(bank: Bank) -> None:
    transaction, _ = bank.half(bank.bank())
    bank.run(transaction.commit())
    with pytest.raises(ClientException, match="cannot found transaction data") as refused:
        bank.run(transaction.rollback())
    assert refused.value.code == Code.INTERNAL_SERVER_ERROR
    bank.run_ms(1_000)
    assert bank.ended() == [("COMMIT_MESSAGE", False, 0)]


def test_an_end_that_says_nothing_makes_the_proxy_forget_the_transaction(bank: Bank) -> None:
    """Recorded: st-others, "end transaction unspecified for a real half" and the commit that follows."""
    producer = bank.bank()
    _, receipt = bank.half(producer)
    assert bank.end(producer, receipt.message_id, Resolution.UNSPECIFIED).status.code == Code.OK
    assert bank.end(producer, receipt.message_id, Resolution.COMMIT).status.code == Code.INTERNAL_SERVER_ERROR
    bank.run_ms(1_000)
    assert bank.ended() == [("UNKNOW", False, 0)]


def test_whoever_knows_the_transaction_id_ends_the_transaction(bank: Bank) -> None:
    """Recorded: st-telemetry, "end transaction of another client"."""
    _, receipt = bank.half(bank.bank())
    stranger = bank.lab.producer_v5()
    bank.run(stranger.start())
    assert bank.end(stranger, receipt.message_id, Resolution.COMMIT, "T").status.code == Code.INTERNAL_SERVER_ERROR
    assert bank.end(stranger, receipt.message_id, Resolution.COMMIT).status.code == Code.OK
    bank.run_ms(1_000)
    assert bank.ended() == [("COMMIT_MESSAGE", False, 0)]


@pytest.mark.parametrize(("wait_ms", "known"), [(29_900, True), (30_100, False)])
def test_a_proxy_knows_for_30_s_where_a_half_message_lies(bank: Bank, wait_ms: int, known: bool) -> None:
    # Nobody is asked about this one, so nothing is learnt anew of it.
    bank.lab.create_topic("M", 1, attributes={"+message.type": "MIXED"})
    transaction, _ = bank.half(bank.bank("M"), topic="M")
    bank.run_ms(wait_ms)
    if known:
        bank.run(transaction.commit())
    else:
        with pytest.raises(ClientException, match="cannot found transaction data"):
            bank.run(transaction.commit())


def test_what_has_expired_is_thrown_away(bank: Bank) -> None:
    bank.verdict = UNKNOWN
    bank.half(bank.bank())
    data = bank.proxy.transaction_service()._data
    bank.run_ms(29_000)
    assert not data.is_empty
    bank.lab.crash("producer-1")
    bank.run_ms(110_000)
    assert data.is_empty
    assert data.cleaner.idle


def test_of_one_transaction_a_proxy_knows_the_15_newest_half_messages(bank: Bank) -> None:
    data = bank.proxy.transaction_service()._data
    for offset in range(20):
        data.add("TX", "id", "broker-a", offset, offset * 100)
    taken = []
    while (found := data.poll("TX", "id")) is not None:
        taken.append(found.tran_state_table_offset)
    assert taken == list(range(19, 4, -1))


# -- questions ---------------------------------------------------------------------------------------------------------


def test_brokers_hear_of_a_topic_of_transactions_at_the_proxys_20th_second(bank: Bank) -> None:
    began_us = bank.events("ProxyStarted")[0].ts_us
    bank.bank()
    bank.run_ms(50_000)
    beats = [e.ts_us for e in bank.events("HeartbeatReceived", client_id="rmq-proxy-producer-client")]
    # Before the first one the proxy connects.
    assert [(us - began_us) // 1_000 for us in beats] == [20_001, 40_000]
    (member,) = bank.events("ClientRegistered", client_id="rmq-proxy-producer-client")
    assert (member.group, member.role) == ("TX", "producer")


def test_a_question_comes_over_the_stream_with_the_fields_of_the_real_one(bank: Bank) -> None:
    bank.run(bank.bank().shutdown())
    producer = bank.bank()
    commands: list[Any] = []
    producer.impl.recover_orphaned_transaction = lambda endpoints, command: commands.append(command)  # type: ignore[method-assign]
    _, receipt = bank.half(producer, "orphan-commit")
    bank.run_ms(60_000)
    command = commands[0]
    assert command.transaction_id == receipt.message_id
    assert command.message.user_properties == {
        "__transactionId__": receipt.message_id, "TRANSACTION_CHECK_TIMES": "1"
    }  # fmt: skip
    recorded = QUESTIONS[0]
    in_queue = command.message.system_properties._replace(queue_id=recorded.message.system_properties.queue_id)
    asked = command._replace(message=command.message._replace(system_properties=in_queue))
    assert fields_set(asked) == fields_set(recorded)
    ours, theirs = command.message.system_properties, recorded.message.system_properties
    for name in ("tag", "body_digest", "body_encoding", "message_type", "delivery_attempt"):
        assert getattr(ours, name) == getattr(theirs, name), name


def test_a_producer_that_lives_is_asked_about_what_another_one_left(bank: Bank) -> None:
    bank.consume()
    dead, living = bank.bank(), bank.bank()
    bank.half(dead, "orphan")
    bank.lab.crash(dead.node.name)
    bank.run_ms(100_000)
    assert {name for _, name, _ in bank.asked} == {living.node.name}
    assert bank.bodies() == ["orphan"]
    assert bank.ended() == [("COMMIT_MESSAGE", True, 0)]


def test_a_question_to_a_stream_that_has_ended_is_lost_and_the_next_one_finds_another(bank: Bank) -> None:
    """The two are asked in turn; at the third question the dead one would be the next, were its stream not known to
    have ended.
    """
    living, dead = bank.bank(), bank.bank()
    for body in ("first", "second"):
        bank.half(dead, body)
    bank.lab.crash(dead.node.name)
    bank.run_ms(100_000)
    ids = [e.client_id.partition("@")[0] for e in bank.events("OrphanedTransactionRelayed")]
    assert ids == [dead.node.name, living.node.name, living.node.name]
    assert [message.body for _, _, message in bank.asked] == [b"second", b"first"]


def test_who_does_not_know_is_asked_again(bank: Bank) -> None:
    answers = iter([UNKNOWN, None, ROLLBACK])
    bank.verdict = lambda message: next(answers)
    bank.half(bank.bank())
    bank.run_ms(150_000)
    assert [message.properties["TRANSACTION_CHECK_TIMES"] for _, _, message in bank.asked] == ["1", "2", "3"]
    assert bank.ended() == [("ROLLBACK_MESSAGE", True, 0)]


def test_a_checker_that_raises_does_not_know(bank: Bank) -> None:
    def verdict(message: MessageView) -> Any:
        raise RuntimeError("the data base is away")

    bank.verdict = verdict
    bank.half(bank.bank())
    with pytest.warns(UserWarning, match="the data base is away"):
        bank.run_ms(60_000)
    (said, *_) = bank.events("LocalTransactionRemembered")
    assert (said.local_state, said.reason) == ("UNKNOW", "RuntimeError: the data base is away")
    assert bank.ended() == []


def test_questions_wait_for_each_other(bank: Bank) -> None:
    """Recorded: jv-tx, where the second of two questions is checked after the end of the first was answered."""
    producer = bank.bank()

    async def slow(message: MessageView) -> TransactionResolution:
        await producer.node.sleep(1_000)
        return COMMIT

    bank.verdict = slow
    bank.half(producer, "first")
    bank.half(producer, "second")
    bank.run_ms(90_000)
    (first_ms, _, _), (second_ms, _, _) = bank.asked
    assert 1_000 <= second_ms - first_ms < 1_100


def test_a_topic_that_a_producer_did_not_name_at_its_start_is_announced_after_five_minutes(bank: Bank) -> None:
    """As in RocketMQ: the client tells its settings a second after its start, and then every 300 s."""
    producer = bank.bank("T")
    bank.run_ms(2_000)
    bank.half(producer)
    bank.run_ms(290_000)
    assert bank.asked == []
    assert bank.events("HeartbeatReceived", client_id="rmq-proxy-producer-client") == []
    bank.run_ms(60_000)
    assert len(bank.asked) == 1
    assert bank.ended() == [("COMMIT_MESSAGE", True, 0)]


def test_nobody_is_asked_about_a_topic_of_all_types(bank: Bank) -> None:
    bank.lab.create_topic("M", 1, attributes={"+message.type": "MIXED"})
    bank.half(bank.bank("M"), topic="M")
    bank.run_ms(100_000)
    assert {e.remote for e in bank.events("TransactionChecked")} == {""}
    assert bank.asked == []


def test_without_a_producer_the_proxy_tells_brokers_no_more(bank: Bank) -> None:
    producer = bank.bank()
    bank.run_ms(25_000)
    bank.run(producer.shutdown())
    bank.run_ms(60_000)
    assert len(bank.events("HeartbeatReceived", client_id="rmq-proxy-producer-client")) == 1


def test_a_broker_that_drops_the_silent_producer_drops_nothing_else_of_the_proxy(bank: Bank) -> None:
    """After two minutes and a scan without a heartbeat it closes the channel; a call that it holds there would fail."""
    consumer = bank.simple_consumer(await_duration=30_000)
    producer = bank.bank()
    bank.run_ms(25_000)
    bank.run(producer.shutdown())
    bank.run_ms(110_000)
    assert bank.run(consumer.receive(1, 10_000)) == []
    assert bank.lab.now_ms > 155_000
    (gone,) = bank.events("ClientUnregistered", client_id="rmq-proxy-producer-client")
    assert gone.reason == "channel closed"


def test_a_producer_without_a_checker_does_not_answer(bank: Bank) -> None:
    producer = bank.bank()
    bank.half(producer)
    producer.transaction_checker = None
    bank.run_ms(70_000)
    assert bank.events("OrphanedTransactionRelayed") != []
    assert bank.asked == []
    assert bank.ended() == []


# -- accidents ---------------------------------------------------------------------------------------------------------


def test_a_proxy_that_was_killed_has_forgotten_and_the_new_one_is_asked(bank: Bank) -> None:
    bank.consume()
    _, receipt = bank.half(producer := bank.bank())
    bank.lab.crash("proxy-1")
    bank.lab.restart("proxy-1")
    bank.run_ms(5_000)
    answer = bank.end(producer, receipt.message_id, Resolution.COMMIT)
    assert answer.status.message.endswith("ProxyException: cannot found transaction data")
    bank.run_ms(100_000)
    assert bank.bodies() == ["money"]
    assert bank.ended() == [("COMMIT_MESSAGE", True, 0)]


def test_a_broker_that_was_killed_is_told_of_the_topic_again(bank: Bank) -> None:
    bank.half(bank.bank())
    bank.lab.crash("broker-a")
    bank.lab.restart("broker-a")
    bank.run_ms(100_000)
    assert bank.ended() == [("COMMIT_MESSAGE", True, 0)]


def test_another_proxy_knows_nothing_of_a_half_message() -> None:
    bank = Bank(proxies=2)
    first, second = (process.address for process in bank.lab.proxies)
    _, receipt = bank.half(bank.bank(endpoints=first))
    other = bank.bank(endpoints=second)
    assert bank.end(other, receipt.message_id, Resolution.COMMIT).status.code == Code.INTERNAL_SERVER_ERROR


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_a_transaction_may_wait_an_hour_for_its_first_question_at_most(bank: Bank) -> None:
    producer = bank.bank()

    def send(seconds: int) -> Any:
        system = SystemProperties(
            message_id=f"{seconds:034d}", message_type=Kind.TRANSACTION,
            born_timestamp=Timestamp(producer.node.now_ms()),
            orphaned_transaction_recovery_duration=Duration(seconds * 1_000),
        )  # fmt: skip
        message = ProtoMessage(Resource(name="TX"), {}, system, b"x")
        return call(bank.lab, producer.impl, service.SEND_MESSAGE, service.SendMessageRequest((message,)))

    assert send(3_601).status == answer_to("send transaction recovery duration over the limit").status
    assert send(60).status.code == Code.OK
    bank.run_ms(55_000)
    assert bank.asked == []
    bank.run_ms(60_000)
    ((_, _, message),) = bank.asked
    assert message.properties["CHECK_IMMUNITY_TIME_IN_SECONDS"] == "60"


def test_what_a_producer_refuses(bank: Bank) -> None:
    without = bank.producer()
    with pytest.raises(ClientException, match="set_transaction_checker"):
        without.begin_transaction()
    with pytest.raises(LearnerError, match="runs already"):
        without.set_transaction_checker(lambda message: COMMIT)
    with pytest.raises(LearnerError, match="cannot be called"):
        bank.lab.producer_v5().set_transaction_checker(COMMIT)  # type: ignore[arg-type]
    early = bank.lab.producer_v5()
    early.set_transaction_checker(lambda message: COMMIT)
    with pytest.raises(ClientException, match="start it first"):
        early.begin_transaction()
    producer = bank.bank()
    transaction = producer.begin_transaction()
    with pytest.raises(ClientException, match="has not been sent yet"):
        bank.run(transaction.commit())
    with pytest.raises(ClientException, match="should not set messageGroup"):
        bank.run(producer.send(Message("TX", "x", message_group="g"), transaction))
    bank.run(producer.send(Message("TX", "x"), transaction))
    with pytest.raises(ClientException, match="exceeded the threshold: 1"):
        bank.run(producer.send(Message("TX", "y"), transaction))
    with pytest.raises(ClientException, match=r"actualMessageType=TRANSACTION, acceptMessageTypes=\[NORMAL\]"):
        bank.run(producer.send(Message("T", "x"), producer.begin_transaction()))


def test_a_checker_returns_a_resolution(bank: Bank) -> None:
    bank.verdict = "COMMIT"
    bank.half(bank.bank())
    with pytest.raises(LearnerError, match=r"TransactionResolution\.COMMIT"):
        bank.run_ms(70_000)


def test_the_same_bytes_on_the_wire() -> None:
    hashes = set()
    for wire in ("objects", "bytes"):
        bank = Bank(wire=wire)
        transaction, _ = bank.half(producer := bank.bank())
        bank.run(transaction.commit())
        bank.half(producer)
        bank.run_ms(70_000)
        assert len(bank.asked) == 1
        hashes.add(bank.lab.trace_hash())
    assert len(hashes) == 1
