"""Half messages in a broker: hidden, committed, rolled back, asked about, given up; their records byte for byte."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlab.broker.transaction.check_listener import as_its_producer_sent, real_queue_id_of
from mqlab.broker.transaction.half_messages import committed, hide
from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.message import MessageConst, MessageExt
from mqlab.protocol.record import decode_record
from mqlab.protocol.topics import (
    RMQ_SYS_TRANS_CHECK_MAX_TIME_TOPIC,
    RMQ_SYS_TRANS_HALF_TOPIC,
    RMQ_SYS_TRANS_OP_HALF_TOPIC,
)
from mqlab.store import MessageExtBrokerInner
from mqlab.store.running_flags import RunningFlags
from tests.broker.conftest import Cluster, RawClient, messages_of
from tests.golden.recorded import STORES, manifest, record_sha256

COMMIT, ROLLBACK, UNKNOW = 8, 12, 0
GROUP = "PG"


@pytest.fixture
def bank() -> Cluster:
    """A broker with a topic T."""
    cluster = Cluster()
    cluster.topic("T")
    return cluster


def prepare(client: RawClient, body: bytes = b"x", **properties: str) -> h.SendMessageResponseHeader:
    """Send a half message; what the broker answers."""
    properties = {"TRAN_MSG": "true", "PGROUP": GROUP, "UNIQ_KEY": "K-" + body.decode(), **properties}
    now_ms = client.node.now_ms()
    answer = client.send("T", body, properties=properties, sys_flag=4, born_timestamp=now_ms)
    assert answer.code == ResponseCode.SUCCESS
    return answer.header_as(h.SendMessageResponseHeader)


def end(client: RawClient, sent: h.SendMessageResponseHeader, state: int, **other: Any) -> Any:
    """Say how it ended, and wait for the answer, which a producer would not get."""
    values = {
        "producer_group": GROUP,
        "tran_state_table_offset": sent.queue_offset,
        "commit_log_offset": int(sent.msg_id[16:], 16),
        "commit_or_rollback": state,
        "msg_id": sent.transaction_id,
        **other,
    }
    return client.call(RequestCode.END_TRANSACTION, h.EndTransactionRequestHeader(**values))


def bodies(client: RawClient) -> list[bytes]:
    """What everybody may see of T."""
    return [message.body for message in messages_of(client.pull("T"))]


def most(cluster: Cluster, topic: str) -> int:
    """How many messages a topic's only queue has had."""
    return cluster.broker.message_store.get_max_offset_in_queue(topic, 0)


# -- ending ----------------------------------------------------------------------------------------------------------


def test_a_half_message_is_answered_as_sent_to_its_queue_and_nobody_gets_it(bank: Cluster) -> None:
    client = bank.client()
    sent = prepare(client)
    bank.run(50)
    assert (sent.queue_id, sent.queue_offset, sent.transaction_id) == (0, 0, "K-x")
    assert bodies(client) == []
    (half,) = messages_of(client.pull(RMQ_SYS_TRANS_HALF_TOPIC))
    assert half.properties["REAL_TOPIC"] == "T"
    assert half.properties["__transactionId__"] == "K-x"
    assert half.sys_flag & 12 == 0


def test_what_is_committed_is_delivered_and_says_where_its_half_lies(bank: Cluster) -> None:
    client = bank.client()
    prepare(client, b"other")
    sent = prepare(client)
    assert end(client, sent, COMMIT).code == ResponseCode.SUCCESS
    bank.run(50)
    (message,) = messages_of(client.pull("T"))
    assert (message.body, message.sys_flag & 12) == (b"x", COMMIT)
    assert message.prepared_transaction_offset == int(sent.msg_id[16:], 16) > 0


def test_what_is_rolled_back_is_never_delivered_and_never_asked_about(bank: Cluster) -> None:
    client = bank.client()
    client.heartbeat(group="", producers=(GROUP,))
    assert end(client, prepare(client), ROLLBACK).code == ResponseCode.SUCCESS
    bank.run(100_000)
    assert bodies(client) == []
    assert bank.seen("TransactionChecked") == []
    assert most(bank, RMQ_SYS_TRANS_OP_HALF_TOPIC) == 1


def test_unknow_changes_nothing_and_has_no_answer(bank: Cluster) -> None:
    client = bank.client()
    sent = prepare(client)
    future = client.begin(RequestCode.END_TRANSACTION, h.EndTransactionRequestHeader(GROUP, 0, 0, UNKNOW, "K-x"))
    bank.run(1_000)
    assert not future.done
    assert end(client, sent, COMMIT).code == ResponseCode.SUCCESS


@pytest.mark.parametrize(
    ("wrong", "remark"),
    [
        ({"producer_group": "stranger"}, "The producer group wrong"),
        ({"tran_state_table_offset": 7}, "The transaction state table offset wrong"),
        ({"commit_log_offset": 5}, "Find prepared transaction message failed"),
        ({"commit_log_offset": 10**12}, "Find prepared transaction message failed"),
    ],
)
@pytest.mark.parametrize("state", [COMMIT, ROLLBACK])
def test_a_stranger_ends_nothing(bank: Cluster, wrong: dict[str, Any], remark: str, state: int) -> None:
    client = bank.client()
    answer = end(client, prepare(client), state, **wrong)
    bank.run(5_000)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, remark)
    assert bodies(client) == []
    assert most(bank, RMQ_SYS_TRANS_OP_HALF_TOPIC) == 0


def test_ended_twice_it_is_delivered_twice_as_with_rocketmq(bank: Cluster) -> None:
    client = bank.client()
    sent = prepare(client)
    for _ in range(2):
        assert end(client, sent, COMMIT).code == ResponseCode.SUCCESS
    bank.run(50)
    assert bodies(client) == [b"x", b"x"]


def test_an_ordinary_message_is_no_half_message(bank: Cluster) -> None:
    client = bank.client()
    client.send("T", b"plain")
    bank.run(50)
    (message,) = messages_of(client.pull("T"))
    header = h.EndTransactionRequestHeader(GROUP, 0, message.commit_log_offset, COMMIT, "x")
    assert client.call(RequestCode.END_TRANSACTION, header).remark == "The producer group wrong"


def test_a_late_end_counts_only_as_an_answer_to_a_question_where_the_message_has_a_time_of_its_own(
    bank: Cluster,
) -> None:
    client = bank.client()
    sent = prepare(client, CHECK_IMMUNITY_TIME_IN_SECONDS="8")
    bank.run(8_100)
    assert end(client, sent, COMMIT).code == ResponseCode.ILLEGAL_OPERATION
    assert end(client, sent, COMMIT, from_transaction_check=True).code == ResponseCode.SUCCESS


def test_a_broker_may_refuse_transactions() -> None:
    cluster = Cluster(reject_transaction_message=True)
    cluster.topic("T")
    answer = cluster.client().send("T", properties={"TRAN_MSG": "true", "PGROUP": GROUP})
    assert answer.code == ResponseCode.NO_PERMISSION
    assert answer.remark == f"the broker[{cluster.broker.broker_ip}] sending transaction message is forbidden"


def test_a_commit_that_the_store_refuses_leaves_the_half_message_to_be_asked_about() -> None:
    cluster = Cluster(disk_bytes=6_000_000)
    cluster.topic("T")
    client = cluster.client()
    client.heartbeat(group="", producers=(GROUP,))
    sent = prepare(client)
    cluster.broker.message_store.running_flags.set(RunningFlags.NOT_WRITEABLE)
    answer = end(client, sent, COMMIT)
    assert (answer.code, answer.remark) == (ResponseCode.SERVICE_NOT_AVAILABLE, "Service not available now.")
    cluster.broker.message_store.running_flags.set(RunningFlags.NOT_WRITEABLE, on=False)
    cluster.run(32_000)
    assert [event["unique_key"] for event in cluster.seen("TransactionChecked")] == ["K-x"]


# -- op messages -----------------------------------------------------------------------------------------------------


def test_what_ends_within_three_seconds_is_written_down_in_one_message(bank: Cluster) -> None:
    client = bank.client()
    for number in range(5):
        end(client, prepare(client, b"%d" % number), ROLLBACK)
    assert most(bank, RMQ_SYS_TRANS_OP_HALF_TOPIC) == 0
    bank.run(6_100)
    (op,) = messages_of(client.pull(RMQ_SYS_TRANS_OP_HALF_TOPIC))
    assert (op.body, op.tags) == (b"0,1,2,3,4,", "d")


def test_long_lists_are_written_at_once() -> None:
    cluster = Cluster(transaction_op_msg_max_size=20)
    cluster.topic("T")
    client = cluster.client()
    for number in range(25):
        end(client, prepare(client, b"%d" % number), ROLLBACK)
    cluster.run(50)
    ops = [op.body for op in messages_of(client.pull(RMQ_SYS_TRANS_OP_HALF_TOPIC))]
    assert ops[0] == b"0,1,2,3,4,5,6,7,8,9,10,"[: len(ops[0])]
    assert len(ops) >= 2


def test_ends_that_were_not_written_down_before_a_crash_are_asked_about(bank: Cluster) -> None:
    client = bank.client()
    end(client, prepare(client), ROLLBACK)
    bank.run(600)
    bank.do("crash", node="broker-a")
    bank.restart(1_000)
    client.heartbeat(group="", producers=(GROUP,))
    bank.run(32_000)
    (asked,) = bank.seen("TransactionChecked")
    assert asked["unique_key"] == "K-x"


def test_what_was_written_down_is_known_after_a_crash(bank: Cluster) -> None:
    client = bank.client()
    end(client, prepare(client), ROLLBACK)
    bank.run(7_000)
    bank.do("crash", node="broker-a")
    bank.restart(70_000)
    assert bank.seen("TransactionChecked") == []
    assert bank.broker.transactions.half_messages.offset(RMQ_SYS_TRANS_HALF_TOPIC) == 1


# -- asking ----------------------------------------------------------------------------------------------------------


def test_producers_of_the_group_are_asked_in_turn(bank: Cluster) -> None:
    producers = [bank.client() for _ in range(2)]
    for client in producers:
        client.remoting.register_processor(RequestCode.CHECK_TRANSACTION_STATE, client.noted)
        client.heartbeat(group="", producers=(GROUP,))
    for number in range(4):
        prepare(producers[0], b"%d" % number)
    bank.run(32_000)
    asked = [[r for r in client.noted.requests if r.code == 39] for client in producers]
    assert [len(requests) for requests in asked] == [2, 2]
    request = asked[0][0]
    header = request.header_as(h.CheckTransactionStateRequestHeader)
    half = decode_record(request.body)
    assert (half.topic, half.queue_id) == ("T", 0)
    assert half.properties["TRANSACTION_CHECK_TIMES"] == "1"
    assert (half.queue_offset, half.commit_log_offset) == (header.tran_state_table_offset, header.commit_log_offset)
    # A commit refers to the copy that was made for the question.
    answer = h.EndTransactionRequestHeader(
        GROUP, header.tran_state_table_offset, header.commit_log_offset, COMMIT, header.msg_id, True
    )
    assert producers[0].call(RequestCode.END_TRANSACTION, answer).code == ResponseCode.SUCCESS


@pytest.mark.parametrize("own", [{}, {"CHECK_IMMUNITY_TIME_IN_SECONDS": "29"}])
@pytest.mark.parametrize(("born_at_ms", "round_took_ms"), [(1_099, 0), (1_100, 1_000)])
def test_a_half_message_whose_immunity_ends_at_the_millisecond_of_a_round_is_asked_about_in_it(
    own: dict[str, str], born_at_ms: int, round_took_ms: int
) -> None:
    """The round comes at 30,100 ms. Who is older than 29 s is asked about at once, who is as old a second later, when
    the round has found that there are no more op messages.
    """
    cluster = Cluster(transaction_time_out=100_000 if own else 29_000)
    cluster.topic("T")
    client = cluster.client()
    cluster.run(born_at_ms - client.node.now_ms() % 10_000)
    prepare(client, **own)
    cluster.run(32_000)
    (ended,) = cluster.seen("TransactionRoundEnded")
    assert (ended["messages"], ended["took_ms"]) == (1, round_took_ms)
    assert len(cluster.seen("TransactionChecked")) == 1


def test_with_nobody_to_ask_the_count_goes_on_until_the_message_is_put_aside() -> None:
    cluster = Cluster(transaction_check_max=2)
    cluster.topic("T")
    client = cluster.client()
    prepare(client)
    cluster.run(100_000)
    assert [(e["check_times"], e["remote"]) for e in cluster.seen("TransactionChecked")] == [(1, ""), (2, "")]
    assert [(e["check_times"], e["stored"]) for e in cluster.seen("HalfMessageGivenUp")] == [(2, True)]
    (kept,) = messages_of(client.pull(RMQ_SYS_TRANS_CHECK_MAX_TIME_TOPIC))
    assert (kept.body, kept.properties["REAL_TOPIC"]) == (b"x", "T")
    assert cluster.broker.transactions.metrics.counts == {"T": 0}


def test_what_was_put_aside_is_brought_back_and_asked_about_anew() -> None:
    cluster = Cluster(transaction_check_max=1)
    cluster.topic("T")
    client = cluster.client()
    prepare(client)
    cluster.run(70_000)
    (kept,) = messages_of(client.pull(RMQ_SYS_TRANS_CHECK_MAX_TIME_TOPIC))
    header = h.ResumeCheckHalfMessageRequestHeader("T", kept.offset_msg_id)
    assert client.call(RequestCode.RESUME_CHECK_HALF_MESSAGE, header).code == ResponseCode.SUCCESS
    client.heartbeat(group="", producers=(GROUP,))
    cluster.run(32_000)
    assert [e["check_times"] for e in cluster.seen("TransactionChecked")] == [1, 1]


@pytest.mark.parametrize("msg_id", [None, "nonsense", "7F00000100002A9F00000000000FFFFF"])
def test_what_is_no_message_is_not_brought_back(bank: Cluster, msg_id: str | None) -> None:
    header = h.ResumeCheckHalfMessageRequestHeader("T", msg_id)
    answer = bank.client().call(RequestCode.RESUME_CHECK_HALF_MESSAGE, header)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.remark == "Exception was thrown when putting message back to RMQ_SYS_TRANS_HALF_TOPIC."


def test_an_idle_broker_with_half_messages_that_are_done_with_does_nothing(bank: Cluster) -> None:
    client = bank.client()
    end(client, prepare(client), COMMIT)
    bank.run(70_000)
    rounds = len(bank.seen("TransactionRoundEnded"))
    bank.run(300_000)
    assert len(bank.seen("TransactionRoundEnded")) == rounds == 1


# -- the files -------------------------------------------------------------------------------------------------------


def test_the_counts_are_written_three_seconds_later_in_rocketmqs_words_and_read_again(bank: Cluster) -> None:
    client = bank.client()
    for number in range(3):
        prepare(client, b"%d" % number)
    bank.run(3_100)
    disk = bank.broker_node.disk
    path = bank.broker.message_store_config.path("config", "transactionMetrics")
    written = json.loads(disk.read_bytes(path))
    assert written["transactionCount"]["T"]["count"] == 3
    assert written["dataVersion"]["counter"] == 3
    bank.do("crash", node="broker-a")
    bank.restart(100)
    assert bank.broker.transactions.metrics.counts == {"T": 3}


def test_the_count_is_written_when_a_half_message_is_put_aside() -> None:
    cluster = Cluster(transaction_check_max=1)
    cluster.topic("T")
    prepare(cluster.client())
    cluster.run(64_000)
    assert len(cluster.seen("HalfMessageGivenUp")) == 1
    path = cluster.broker.message_store_config.path("config", "transactionMetrics")
    assert json.loads(cluster.broker_node.disk.read_bytes(path))["transactionCount"]["T"]["count"] == 0


def test_counts_of_a_real_broker_are_read(bank: Cluster) -> None:
    metrics = bank.broker.transactions.metrics
    metrics.decode(
        {
            "dataVersion": {"counter": 33, "stateVersion": 0, "timestamp": 1795204031477},
            "transactionCount": {"GoldenTx": {"count": -7, "timeStamp": 1795204031477}},
        }
    )
    assert metrics.counts == {"GoldenTx": -7}
    assert metrics.data_version.counter == 33


def test_a_broker_without_transactions_imports_nothing_of_them() -> None:
    program = (
        "import sys; from tests.worlds import shop, started_producer, send\n"
        "lab = shop(); send(started_producer(lab), 'x'); lab.run_for(seconds=40)\n"
        "of = 'mqlab.broker.transaction', 'mqlab.client.producer.transactions'\n"
        "print([name for name in sys.modules if name.startswith(of)])"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# -- byte for byte ---------------------------------------------------------------------------------------------------

ROWS = {(m["topic"], m["queueId"], m["queueOffset"]): m for m in manifest("txn")["messages"]}
HALVES = [m for (topic, _, _), m in ROWS.items() if topic == RMQ_SYS_TRANS_HALF_TOPIC]


@pytest.fixture(scope="module")
def stored() -> Callable[[dict[str, Any]], MessageExt]:
    """stored(row): the message that a row of the manifest speaks of, from the recorded log, its properties in order."""
    with tarfile.open(STORES / "txn.tar.xz") as archive:
        member = archive.extractfile("store/commitlog/00000000000000000000")
        assert member is not None
        log = member.read()
    return lambda row: decode_record(log, row["commitLogOffset"])


def test_a_half_message_has_the_record_of_the_real_one(stored: Any) -> None:
    row = HALVES[0]
    half = stored(row)
    for name in ("REAL_TOPIC", "REAL_QID", "__transactionId__"):
        del half.properties[name]
    message = MessageExtBrokerInner(
        "GoldenTx", half.body, 1, half.flag, 4, half.properties, None, half.born_timestamp, half.born_host,
        half.store_host,
    )  # fmt: skip
    hide(message)
    assert record_sha256(message, message.stored_properties(), row) == row["recordSha256"]


def test_committed_messages_have_the_records_of_the_real_ones(stored: Any) -> None:
    rows = [row for (topic, _, _), row in ROWS.items() if topic == "GoldenTx"]
    assert len(rows) == 7
    for row in rows:
        (half,) = [m for m in HALVES if m["commitLogOffset"] == row["preparedTransactionOffset"]]
        message = committed(stored(half), half["commitLogOffset"])
        assert record_sha256(message, message.stored_properties(), row) == row["recordSha256"]


def test_op_messages_have_the_records_of_the_real_ones(bank: Cluster) -> None:
    for (topic, _, _), row in ROWS.items():
        if topic == RMQ_SYS_TRANS_OP_HALF_TOPIC:
            message = bank.broker.transactions.half_messages.op_message(row["bodyText"])
            message.born_timestamp = row["bornTimestamp"]
            message.born_host = message.store_host = row["storeHost"]
            assert record_sha256(message, message.stored_properties(), row) == row["recordSha256"]


def test_half_messages_that_are_stored_again_have_the_records_of_the_real_ones(bank: Cluster, stored: Any) -> None:
    half_messages, compared = bank.broker.transactions.half_messages, 0
    latest: dict[str, MessageExt] = {}
    for row in HALVES:
        before, times = latest.get(row["msgId"]), row["properties"].get("TRANSACTION_CHECK_TIMES")
        if before is not None and "CHECK_IMMUNITY_TIME_IN_SECONDS" not in row["properties"]:
            before.properties[MessageConst.TRANSACTION_CHECK_TIMES] = times
            renewed = half_messages.renewed(before)
            assert record_sha256(renewed, renewed.stored_properties(), row) == row["recordSha256"], row["queueOffset"]
            compared += 1
        latest[row["msgId"]] = stored(row)
    assert compared > 20


def test_a_question_has_the_bytes_of_the_real_one() -> None:
    frames = Path(__file__).parents[1] / "golden" / "frames" / "client-json.jsonl"
    asked = [f for line in frames.read_text(encoding="utf-8").splitlines()
             if (f := json.loads(line))["name"] == "CHECK_TRANSACTION_STATE"]  # fmt: skip
    assert asked
    for frame in asked:
        body = base64.b64decode(frame["frame"])[-frame["bodyLength"] :]
        half = decode_record(body, decompress=False)
        queue_id = real_queue_id_of(half)
        assert queue_id is not None
        assert as_its_producer_sent(half, queue_id) == body
