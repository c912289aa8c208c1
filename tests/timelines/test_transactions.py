"""Half messages and the questions about them, beside those of a real RocketMQ 5.3.3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest

from mqlab import Lab, LocalTransactionState, Message, TransactionListener
from mqlab.broker.transaction.transaction_services import CHECK_BEGINS_MS
from mqlab.protocol.topics import RMQ_SYS_TRANS_CHECK_MAX_TIME_TOPIC
from tests.worlds import shop, started_consumer

COMMIT, ROLLBACK, UNKNOW = LocalTransactionState

Said = tuple[LocalTransactionState, ...]
DEFAULT: Mapping[str, Said] = {
    "commit_now": (COMMIT,),
    "rollback_now": (ROLLBACK,),
    "commit_on_check1": (UNKNOW, COMMIT),
    "rollback_on_check1": (UNKNOW, ROLLBACK),
    "commit_on_check2": (UNKNOW, UNKNOW, COMMIT),
    "commit_on_check1_immunity20": (UNKNOW, COMMIT),
}
THREE_CHECKS: Mapping[str, Said] = {
    "always_unknown": (UNKNOW,) * 4,
    "commit_on_check2": (UNKNOW, UNKNOW, COMMIT),
    "rollback_on_check1": (UNKNOW, ROLLBACK),
}


class Application(TransactionListener):
    """Says of each transaction what is laid down for it, in turn, and writes down what it was asked."""

    def __init__(self, lab: Lab, plan: Mapping[str, Said]) -> None:
        self.lab = lab
        self.plan = plan
        self.asked: list[dict[str, Any]] = []

    def execute_local_transaction(self, message: Message, argument: Any) -> LocalTransactionState:
        """The first of the answers."""
        return self.plan[message.keys][0]

    def check_local_transaction(self, message: Any) -> LocalTransactionState:
        """The next of the answers."""
        run, number = message.properties["run"], 1 + sum(
            (event["key"], event["run"]) == (message.keys, message.properties["run"]) for event in self.asked
        )
        self.asked.append(
            {
                "key": message.keys,
                "run": run,
                "number": number,
                "checkTimesProperty": message.properties["TRANSACTION_CHECK_TIMES"],
                "queueOffset": message.queue_offset,
                "t_ms": self.lab.world.now_us / 1_000,
            }
        )
        return self.plan[message.keys][number]


def play(
    plan: Mapping[str, Said], round_at_ms: float, begin_at_ms: Sequence[float], until_ms: float, **broker: Any
) -> tuple[Application, Lab, list[float], list[tuple[str, str, float]]]:
    """A run that begins at each of these times; the broker's first round comes at `round_at_ms` on the same clock.

    Returns the application, its lab, when each run began, and what was delivered: key, run, ms.
    """
    lab = shop(**broker)
    broker_began_ms = lab.brokers[0].controller.start_us / 1_000
    delivered: list[tuple[str, str, float]] = []

    def note(messages: Any, context: Any) -> Any:
        from mqlab import ConsumeConcurrentlyStatus

        delivered.extend((m.keys, m.properties["run"], lab.world.now_us / 1_000) for m in messages)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    started_consumer(lab, note)
    application = Application(lab, plan)
    producer = lab.transaction_producer("PG", application)
    lab.run(producer.start())
    interval_ms = lab.brokers[0].controller.broker_config.transaction_check_interval
    first_ms = broker_began_ms + CHECK_BEGINS_MS + interval_ms - round_at_ms
    begins = []
    for run, at_ms in enumerate(begin_at_ms):
        lab.world.run_to(round((first_ms + at_ms) * 1_000))
        begins.append(lab.world.now_us / 1_000)
        for key in plan:
            message = Message("T", b"x", keys=key)
            message.properties["run"] = str(run)
            if "immunity" in key:
                message.properties["CHECK_IMMUNITY_TIME_IN_SECONDS"] = "20"
            lab.run(producer.send_message_in_transaction(message))
    lab.world.run_to(round((begins[0] + until_ms) * 1_000))
    return application, lab, begins, delivered


@pytest.fixture(scope="module")
def default() -> Any:
    """The three runs with default settings, at the times against the broker's rounds that the recording shows."""
    return play(DEFAULT, 22_340, (0, 11_155, 22_196), 120_000)


def test_questions_come_when_the_real_broker_asks_and_name_the_same_places(default: Any, recorded: Any) -> None:
    application, _, begins, _ = default
    for run, real in enumerate(recorded("transaction.check-back-default")["runs"]):
        expected = {(e["key"], e["number"]): e for e in real if e["event"] == "check_back"}
        asked = {(e["key"], e["number"]): e for e in application.asked if e["run"] == str(run)}
        assert asked.keys() == expected.keys()
        for name, event in expected.items():
            mine = asked[name]
            assert mine["queueOffset"] == event["queueOffset"], name
            assert mine["checkTimesProperty"] == event["checkTimesProperty"], name
            assert mine["t_ms"] - begins[run] == pytest.approx(event["t_ms"], abs=50), name


def test_what_is_committed_is_delivered_within_milliseconds_and_nothing_else_is(default: Any, recorded: Any) -> None:
    _, _, begins, delivered = default
    for run, real in enumerate(recorded("transaction.check-back-default")["runs"]):
        expected = {e["key"]: e["t_ms"] for e in real if e["event"] == "deliver"}
        mine = {key: ms - begins[run] for key, of, ms in delivered if of == str(run)}
        assert mine.keys() == expected.keys()
        for key, ms in mine.items():
            assert ms == pytest.approx(expected[key], abs=200), key
    assert len(delivered) == 12


def test_the_first_copy_of_a_half_message_has_the_places_of_the_real_one(default: Any, recorded: Any) -> None:
    _, lab, _, _ = default
    real = [e["queueOffset"] for run in recorded("transaction.check-back-default")["runs"] for e in run
            if e["event"] == "send_returned"]  # fmt: skip
    assert [record.half_offset for record in lab.history.find("HalfMessageHidden")] == real


@pytest.fixture(scope="module")
def three_checks() -> Any:
    """Three runs with at most 3 checks and a round every 5 s, at the times that the recording shows."""
    settings = {"transaction_check_max": 3, "transaction_check_interval": 5_000}
    return play(THREE_CHECKS, 5_380, (0, 7_515, 14_960), 90_000, **settings)


def test_a_half_message_is_asked_about_three_times_and_then_put_aside(three_checks: Any, recorded: Any) -> None:
    application, lab, begins, _ = three_checks
    steps = {s["step"]: s for s in recorded("transaction.check-max-3")["summary"]}
    distances = [d for run in steps["always_unknown: distances between check-backs"]["per_run"] for d in run]
    for run in range(3):
        asked = [e for e in application.asked if e["run"] == str(run) and e["key"] == "always_unknown"]
        assert [e["checkTimesProperty"] for e in asked] == ["1", "2", "3"]
        # It is asked about in the first round that finds it older than 6 s; in the recording each send took longer.
        assert 6_000 < asked[0]["t_ms"] - begins[run] < 12_500
        for before, after in pairwise(asked):
            assert min(distances) - 1_200 < after["t_ms"] - before["t_ms"] < max(distances) + 100
    given_up = lab.history.find("HalfMessageGivenUp")
    assert [(e.check_times, e.stored) for e in given_up] == [(3, True)] * 3
    store = lab.brokers[0].controller.message_store
    assert store.get_max_offset_in_queue(RMQ_SYS_TRANS_CHECK_MAX_TIME_TOPIC, 0) == 3


def test_with_three_checks_what_is_committed_in_time_is_delivered_once(three_checks: Any) -> None:
    assert sorted((key, run) for key, run, _ in three_checks[3]) == [("commit_on_check2", str(run)) for run in range(3)]
