"""A producer within transactions: what its listener is asked, when, and what the broker hears of it."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import Lab, LocalTransactionState, Message, TransactionListener, TransactionMQProducer
from mqlab.client import TransactionSendResult
from mqlab.client.consumer.listener import ListenerRaised
from mqlab.errors import LearnerError, MQClientException
from tests.worlds import noting, shop, started_consumer

COMMIT, ROLLBACK, UNKNOW = LocalTransactionState


class Says(TransactionListener):
    """Says what it is told to say, or raises it."""

    def __init__(self, local: Any = COMMIT, checked: Any = COMMIT) -> None:
        self.local, self.checked = local, checked
        self.executed: list[tuple[bytes, Any, str | None]] = []
        self.asked: list[str] = []

    def execute_local_transaction(self, message: Message, argument: Any) -> Any:
        """Note what it gets."""
        self.executed.append((message.body, argument, message.transaction_id))
        return _said(self.local)

    def check_local_transaction(self, message: Any) -> Any:
        """Note what it is asked about."""
        self.asked.append(message.transaction_id)
        return _said(self.checked)


def _said(answer: Any) -> Any:
    if isinstance(answer, Exception):
        raise answer
    return answer


def bank(listener: Any, lab: Lab | None = None, **settings: Any) -> tuple[Lab, TransactionMQProducer, list[bytes]]:
    """A lab with a reader of T, a started producer with this listener, and what the reader has got."""
    lab = lab or shop()
    seen: list[bytes] = []
    started_consumer(lab, noting(seen))
    producer = lab.transaction_producer("PG", listener, **settings)
    lab.run(producer.start())
    return lab, producer, seen


def test_the_listener_gets_message_argument_and_transaction_and_the_result_says_what_it_said() -> None:
    listener = Says()
    lab, producer, seen = bank(listener)
    result = lab.run(producer.send_message_in_transaction(Message("T", "x"), {"amount": 100}))
    lab.run_for(seconds=2)
    assert isinstance(result, TransactionSendResult)
    assert listener.executed == [(b"x", {"amount": 100}, result.transaction_id)]
    assert result.local_transaction_state is COMMIT
    assert result.transaction_id == result.msg_id
    assert seen == [b"x"]


@pytest.mark.parametrize(
    ("answer", "state"), [(ROLLBACK, ROLLBACK), (UNKNOW, UNKNOW), (None, UNKNOW), (ValueError("no money"), UNKNOW)]
)
@pytest.mark.filterwarnings("ignore::mqlab.client.consumer.listener.ListenerRaised")
def test_what_is_not_committed_is_not_delivered(answer: Any, state: LocalTransactionState) -> None:
    lab, producer, seen = bank(Says(local=answer, checked=ROLLBACK))
    result = lab.run(producer.send_message_in_transaction(Message("T", "x")))
    lab.run_for(seconds=70)
    assert (result.local_transaction_state, seen) == (state, [])


def test_an_error_of_the_listener_is_told_and_travels_with_the_end() -> None:
    lab, producer, _ = bank(Says(local=ValueError("no money")))
    with pytest.warns(ListenerRaised, match="execute_local_transaction .* raised ValueError: no money"):
        lab.run(producer.send_message_in_transaction(Message("T", "x")))
    (event,) = lab.history.find("LocalTransactionExecuted")
    assert event.reason == "ValueError: no money"


@pytest.mark.parametrize(("answer", "gets"), [(COMMIT, [b"x"]), (ROLLBACK, [])])
def test_a_question_is_answered_by_the_listener(answer: LocalTransactionState, gets: list[bytes]) -> None:
    listener = Says(local=UNKNOW, checked=answer)
    lab, producer, seen = bank(listener)
    result = lab.run(producer.send_message_in_transaction(Message("T", "x")))
    lab.run_for(seconds=130)
    assert listener.asked == [result.transaction_id]
    assert seen == gets


@pytest.mark.filterwarnings("ignore::mqlab.client.consumer.listener.ListenerRaised")
def test_a_listener_that_fails_at_a_question_is_asked_again() -> None:
    listener = Says(local=UNKNOW, checked=OSError("data base is down"))
    lab, producer, seen = bank(listener)
    lab.run(producer.send_message_in_transaction(Message("T", "x")))
    lab.run_for(seconds=100)
    assert len(listener.asked) >= 2
    listener.checked = COMMIT
    lab.run_for(seconds=40)
    assert seen == [b"x"]


def test_a_coroutine_listener_takes_the_worlds_time() -> None:
    class Slow(Says):
        async def execute_local_transaction(self, message: Message, argument: Any) -> Any:
            await producer.node.sleep(2_000)
            return COMMIT

    lab, producer, seen = bank(Slow())
    before_us = lab.world.now_us
    lab.run(producer.send_message_in_transaction(Message("T", "x")))
    assert lab.world.now_us - before_us >= 2_000_000
    lab.run_for(ms=50)
    assert seen == [b"x"]


def test_another_machine_of_the_group_is_asked_when_the_one_that_sent_is_dead() -> None:
    first, second = Says(local=UNKNOW), Says(checked=COMMIT)
    lab, producer, seen = bank(first)
    # Whoever has sent nothing knows a broker by the topics that it is told at its start.
    other = lab.transaction_producer("PG", second, topics=["T"])
    lab.run(other.start())
    lab.run(producer.send_message_in_transaction(Message("T", "x")))
    lab.crash(producer.node.name)
    lab.run_for(seconds=70)
    assert (len(first.asked), len(second.asked), seen) == (0, 1, [b"x"])


def test_a_producer_that_is_started_again_answers_questions_about_its_former_life() -> None:
    listener = Says(local=UNKNOW)
    lab, producer, seen = bank(listener, topics=["T"])
    lab.run(producer.send_message_in_transaction(Message("T", "x")))
    lab.crash(producer.node.name)
    lab.restart(producer.node.name)
    lab.run_for(seconds=70)
    assert (len(listener.asked), seen) == (1, [b"x"])


def test_a_half_message_that_may_not_be_safe_is_rolled_back_without_the_local_part() -> None:
    listener = Says()
    lab = shop(flush_disk_type="SYNC_FLUSH", sync_flush_timeout=100)
    lab, producer, seen = bank(listener, lab)
    lab.act("hang_disk", node="broker-a")
    result = lab.run(producer.send_message_in_transaction(Message("T", "x")))
    lab.act("unhang_disk", node="broker-a")
    lab.run_for(seconds=70)
    assert str(result.send_status) == "FLUSH_DISK_TIMEOUT"
    assert (result.local_transaction_state, listener.executed, seen) == (ROLLBACK, [], [])


def test_a_delay_level_is_left_out() -> None:
    lab, producer, seen = bank(Says())
    message = Message("T", "x")
    message.delay_time_level = 5
    lab.run(producer.send_message_in_transaction(message))
    lab.run_for(seconds=2)
    assert seen == [b"x"]


def test_without_a_listener_a_topic_or_a_message_it_says_what_to_do() -> None:
    lab, producer, _ = bank(None)
    with pytest.raises(MQClientException, match="TransactionListener is null"):
        lab.run(producer.send_message_in_transaction(Message("T", "x")))
    producer.transaction_listener = Says()
    with pytest.raises(LearnerError, match="a transaction is about one message, not list"):
        lab.run(producer.send_message_in_transaction([Message("T", "x")]))  # type: ignore[arg-type]
    with pytest.raises(MQClientException, match="send message Exception"):
        lab.run(producer.send_message_in_transaction(Message("T", b"")))
    fresh = lab.transaction_producer("PG2", Says())
    with pytest.raises(MQClientException, match="service state not OK"):
        lab.run(fresh.send_message_in_transaction(Message("T", "x")))


def test_an_answer_that_is_no_state_is_refused_with_the_states_that_there_are() -> None:
    lab, producer, _ = bank(Says(local="COMMIT_MESSAGE"))
    with pytest.raises(LearnerError, match=r"return LocalTransactionState\.COMMIT_MESSAGE"):
        lab.run(producer.send_message_in_transaction(Message("T", "x")))


def test_questions_for_which_there_is_no_room_are_dropped_and_come_again() -> None:
    class Slow(Says):
        async def check_local_transaction(self, message: Any) -> Any:
            self.asked.append(message.body.decode())
            await producer.node.sleep(1_000)
            return COMMIT

    listener = Slow(local=UNKNOW)
    lab, producer, seen = bank(listener, check_request_hold_max=1)
    for number in range(4):
        lab.run(producer.send_message_in_transaction(Message("T", f"{number}")))
    lab.run_for(seconds=36)
    assert listener.asked == ["0", "1"]
    lab.run_for(seconds=60)
    assert sorted(seen) == [b"0", b"1", b"2", b"3"]
