"""The picture of half messages: how long each is hidden, who asks about it, and what ends it."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import pytest

from mqlab import Lab, LocalTransactionState, Message, TransactionListener
from mqlab.errors import LearnerError, MQClientException
from mqlab.scenarios import get
from mqlab.views import HalfLives

COMMIT, ROLLBACK, UNKNOW = LocalTransactionState


class Teller(TransactionListener):
    """Says what the argument says, and commit when it is asked."""

    def execute_local_transaction(self, message: Message, argument: Any) -> LocalTransactionState:
        return LocalTransactionState(argument)

    def check_local_transaction(self, message: Message) -> LocalTransactionState:
        return COMMIT


def bank(listener: TransactionListener | None = None, **broker: Any) -> tuple[Lab, Any]:
    lab = Lab(7)
    lab.name_server()
    lab.broker(**broker)
    lab.create_topic("Transfers", 1)
    producer = lab.transaction_producer("bank", listener or Teller(), topics=["Transfers"])
    lab.run(producer.start())
    return lab, producer


def send(lab: Lab, producer: Any, says: LocalTransactionState) -> str:
    return str(lab.run(producer.send_message_in_transaction(Message("Transfers", b"100"), says)).msg_id)


def test_a_bar_ends_with_the_first_end_and_questions_come_with_the_rounds() -> None:
    lab, producer = bank()
    keys = [send(lab, producer, says) for says in (COMMIT, ROLLBACK, UNKNOW)]
    lab.run_for(seconds=40)
    lives = HalfLives.of(lab.history, 0, lab.now_ms)
    assert [life.key for life in lives.lives] == keys
    assert [[mark.what for mark in life.marks] for life in lives.lives] == [
        ["commit"], ["rollback"], ["unknown", "asked", "commit"],
    ]  # fmt: skip
    asked = lives.lives[2]
    assert asked.asked_us == [31_100_000]
    assert asked.end_us is not None
    assert asked.end_us - asked.asked_us[0] < 1_000
    assert "rounds of the broker at 30.100 s" in str(lives)
    assert "the broker asks at 31.100 s, for the 1st time" in str(lives)
    assert "let go (commit) at 31.101 s, as an answer" in str(lives)


def test_who_kills_a_machine_is_seen_and_a_broker_that_finds_nobody() -> None:
    lab, producer = bank(transaction_check_max=1, transaction_check_interval=10_000)
    key = send(lab, producer, UNKNOW)
    lab.run_for(seconds=1)
    lab.crash("producer-1")
    lab.run_for(seconds=30)
    lab.restart("producer-1")
    lab.run_for(seconds=1)
    lives = HalfLives.of(lab.history, 0, lab.now_ms, keys=[key], names=["ours"], title="Nobody there")
    told = str(lives).splitlines()
    assert told[0] == "Nobody there"
    assert any("producer-1 is killed at" in line for line in told)
    assert any("producer-1 is back at" in line for line in told)
    assert [mark.what for mark in lives.lives[0].marks] == ["unknown", "nobody", "aside"]


def test_the_picture_has_the_shapes_of_what_it_tells() -> None:
    lab = get("half-message").build(7)
    lab.run_for(seconds=34)
    lives = HalfLives.of(lab.history, 0, lab.now_ms)
    tree = ET.fromstring(lives.svg())
    words = ["".join(node.itertext()) for node in tree.iter() if node.tag.endswith("text")]
    for expected in ("hidden", "a round of the broker", "the broker asks", "let go (commit)", "producer-1 is killed"):
        assert expected in words
    assert "put aside" not in words
    assert lives.svg() == lives.svg()


def test_names_are_one_for_each_and_an_empty_stretch_says_so() -> None:
    lab, producer = bank()
    send(lab, producer, COMMIT)
    with pytest.raises(LearnerError, match="2 names for 1 half messages"):
        HalfLives.of(lab.history, 0, lab.now_ms, names=["one", "two"])
    assert "no half message in this stretch" in str(HalfLives.of(lab.history, lab.now_ms, lab.now_ms + 1))


def test_only_what_was_hidden_in_the_stretch_is_shown() -> None:
    lab, producer = bank()
    send(lab, producer, COMMIT)
    lab.run_for(seconds=1)
    start_ms = lab.now_ms
    later = send(lab, producer, COMMIT)
    assert [life.key for life in HalfLives.of(lab.history, start_ms, lab.now_ms).lives] == [later]


def test_a_half_message_that_the_store_refused_has_no_life() -> None:
    lab, producer = bank()
    stored = send(lab, producer, COMMIT)
    lab.act("fill_disk", node="broker-a")
    with pytest.raises(MQClientException):
        send(lab, producer, COMMIT)
    first, *others = [record.status for record in lab.history.find("HalfMessageHidden")]
    assert (first, set(others)) == ("PUT_OK", {"SERVICE_NOT_AVAILABLE"})
    assert [life.key for life in HalfLives.of(lab.history, 0, lab.now_ms).lives] == [stored]


def test_the_words_of_two_faults_stand_beside_each_other_and_are_left_out_where_there_is_no_room() -> None:
    lab, producer = bank()
    send(lab, producer, COMMIT)
    lab.crash("broker-a")
    lab.run_for(seconds=4)
    lab.restart("broker-a")
    lab.run_for(seconds=1)
    lab.freeze("broker-a")
    lab.run_for(seconds=60)
    tree = ET.fromstring(HalfLives.of(lab.history, 0, lab.now_ms).svg())
    words = {node.text: float(node.get("x", "")) for node in tree.iter() if node.tag.endswith("text")}
    assert words["broker-a is back"] > words["broker-a is killed"] + 18 * 6
    assert "broker-a hangs" not in words
    assert sum(bool(node.get("stroke-dasharray")) for node in tree.iter()) == 3
