"""What was done to a real broker with the merge buffer, done here: what stays in memory, what is written, and when."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from typing import Any

import pytest

from mqlab.protocol import fastjson
from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.extra_info import parse_handle
from mqlab.protocol.record import scan_records
from tests.broker.pop.conftest import batch_ack_of
from tests.broker.pop.test_pop_golden import Replay
from tests.golden.recorded import STORES, manifest

REVIVE = "rmq_sys_REVIVE_LOG_DefaultCluster"
WHEEL = "rmq_sys_wheel_timer"
STATUS = {"OK": (0,), "NO_EXIST": (208, 13, 17)}


class MergeReplay(Replay):
    """The operations before the revival, each at its time; `popped` gives our pop time for a recorded one."""

    def __init__(self, recorded: dict[str, Any], make_cluster: Callable[..., Any], **settings: Any) -> None:
        super().__init__(recorded, make_cluster, enable_pop_buffer_merge=True, **settings)
        self.popped: dict[int, int] = {}
        self.begin_ms = recorded["ops"][0]["at"]
        self.start_ms = self.cluster.now_ms

    def at(self, recorded_ms: int) -> None:
        """Play up to a recorded time."""
        self.cluster.run(max(0, recorded_ms - self.begin_ms - (self.cluster.now_ms - self.start_ms)))

    def play(self, op: dict[str, Any]) -> None:
        """Do what was done; the answer must be as it was."""
        self.at(op["at"])
        if op["op"] == "pop":
            self._pop(op)
        elif op["op"] == "ack":
            header = h.AckMessageRequestHeader(
                op["group"], op["topic"], op["queueId"], self.ours(op["extraInfo"]), op["offset"]
            )
            assert self.popper.raw.call(RequestCode.ACK_MESSAGE, header).code in STATUS[op["status"]], op
        elif op["op"] == "batchAck":
            self._batch_ack(op)
        else:
            self._change(op)

    def ours(self, handle: str) -> str:
        """A recorded handle with the pop time that the same pop had here."""
        fields = handle.split(" ")
        return " ".join([fields[0], str(self.popped.get(int(fields[1]), int(fields[1]))), *fields[2:]])

    def _pop(self, op: dict[str, Any]) -> None:
        response = self.popper.pop_again(op)
        if op.get("messages"):
            header = response.header_as(h.PopMessageResponseHeader)
            self.popped[op["popTime"]] = header.pop_time
            places = [(m.queue_id, m.queue_offset) for m in scan_records(response.body or b"")]
            assert places == [(m["queueId"], m["queueOffset"]) for m in op["messages"]], op["note"]
            assert header.revive_qid == int(op["messages"][0]["POP_CK"].split()[3]), op["note"]

    def _batch_ack(self, op: dict[str, Any]) -> None:
        body = batch_ack_of(op, [parse_handle(self.ours(handle)) for handle in op["extraInfoList"]])
        assert self.popper.raw.call(RequestCode.BATCH_ACK_MESSAGE, None, body).code == 0

    def _change(self, op: dict[str, Any]) -> None:
        header = h.ChangeInvisibleTimeRequestHeader(
            op["group"], op["topic"], op["queueId"], self.ours(op["extraInfo"]), op["offset"], op["invisibleTime"]
        )
        response = self.popper.raw.call(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, header)
        assert response.code == 0
        answer = response.header_as(h.ChangeInvisibleTimeResponseHeader)
        if int(op["newExtraInfo"].split()[3]) != 999:
            self.popped[int(op["newExtraInfo"].split()[1])] = answer.pop_time

    # -- what is in the store ---------------------------------------------------------------------------------------

    def lengths(self) -> dict[str, dict[int, int]]:
        """How many messages each queue of the revive topic, the wheel's topic and the retry topics has."""
        table: dict[str, dict[int, int]] = {}
        queues = self.cluster.broker.message_store.consume_queue_store.consume_queue_table
        for (topic, queue_id), queue in queues.items():
            if queue.max_offset_in_queue:
                table.setdefault(topic, {})[queue_id] = queue.max_offset_in_queue
        return table

    def written(self) -> list[tuple[str, str, int]]:
        """What went onto the wheel: tag, body with the recorded pop time, and how old its pop was, ms."""
        recorded = {ours: theirs for theirs, ours in self.popped.items()}
        store = self.cluster.broker.message_store
        queue = store.find_consume_queue(WHEEL, 0)
        found = []
        for offset in range(queue.max_offset_in_queue):
            message = store.look_message_by_offset(queue.get(offset).pos)
            body = json.loads(message.body)
            age_ms = message.store_timestamp - body["pt"]
            body["pt"] = recorded[body["pt"]]
            if "reviveTime" in body:
                body["reviveTime"] = body["pt"] + body["it"]
            found.append((message.properties["TAGS"], json.dumps(body), age_ms))
        return found


def really_written(recorded: dict[str, Any], until_ms: int) -> list[tuple[str, str, int]]:
    """What a real broker wrote up to a time, in the same form."""
    rows = [m for m in recorded["messages"] if m["topic"] == WHEEL and m["storeTimestamp"] <= until_ms]
    found = []
    for row in sorted(rows, key=lambda row: int(row["queueOffset"])):
        body = json.loads(row["bodyText"])
        found.append((row["tags"], json.dumps(body), row["storeTimestamp"] - body["pt"]))
    return found


def lengths_of(recorded: dict[str, Any], name: str) -> dict[str, dict[int, int]]:
    """The recorded lengths of all queues."""
    return {
        topic: {int(queue_id): ends["max"] for queue_id, ends in queues.items()}
        for topic, queues in recorded[name].items()
    }


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    """What was done to the broker, what it answered, and what its store held in the end."""
    return manifest("pop-merge")


def batch_of(row: tuple[str, str, int]) -> tuple[Any, ...]:
    """The batch that a check point or an ack belongs to."""
    body = json.loads(row[1])
    return (body["c"], body["t"], body["q"], body["so"], body["pt"])


def test_the_same_is_kept_in_memory_and_written_with_the_same_words(
    recorded: dict[str, Any], make_cluster: Callable[..., Any]
) -> None:
    replay = MergeReplay(recorded, make_cluster)
    before, after = recorded["queueOffsetsBeforeReviveAt"], recorded["queueOffsetsAfterReviveAt"]
    ops = [op for op in recorded["ops"] if op["at"] < before]
    assert len(ops) > 40
    for op in ops:
        replay.play(op)
    replay.at(before)
    assert replay.lengths() == lengths_of(recorded, "queueOffsetsBeforeRevive")
    at_ms = min(op["at"] for op in recorded["ops"] if op["at"] > before)
    replay.at(at_ms)
    ours, theirs = replay.written(), really_written(recorded, at_ms)
    assert sorted(row[:2] for row in ours) == sorted(row[:2] for row in theirs)
    for batch in {batch_of(row) for row in theirs}:
        same = [row[:2] for row in ours if batch_of(row) == batch]
        assert same == [row[:2] for row in theirs if batch_of(row) == batch], "a check point, then its acks in order"
    assert at_ms <= after
    assert replay.lengths() == lengths_of(recorded, "queueOffsetsAfterRevive")


def test_check_points_are_written_as_old_as_a_real_broker_lets_them_get(
    recorded: dict[str, Any], make_cluster: Callable[..., Any]
) -> None:
    replay = MergeReplay(recorded, make_cluster)
    before = recorded["queueOffsetsBeforeReviveAt"]
    for op in recorded["ops"]:
        if op["at"] < before:
            replay.play(op)
    end_ms = before + 15_000
    replay.at(end_ms)
    theirs = {row[:2]: row[2] for row in really_written(recorded, end_ms)}
    late = 0
    for tag, body, age_ms in replay.written():
        stay_ms = min(10_000, json.loads(body).get("it", 10_000) - 3_000)
        if age_ms < 1_000:
            assert theirs[tag, body] < 1_000, "written by the pop or the change itself"
            continue
        late += 1
        assert theirs[tag, body] > 7_000
        if tag == "ck":
            assert stay_ms < age_ms <= stay_ms + 6
            assert stay_ms < theirs[tag, body] <= stay_ms + 2_300
    assert late > 20


def test_with_batch_acks_the_acks_of_a_check_point_are_written_as_one(
    recorded: dict[str, Any], make_cluster: Callable[..., Any]
) -> None:
    replay = MergeReplay(recorded, make_cluster, enable_pop_batch_ack=True)
    before = recorded["queueOffsetsBeforeReviveAt"]
    for op in recorded["ops"]:
        if op["at"] < before:
            replay.play(op)
    replay.at(before + 15_000)
    theirs = really_written(recorded, before + 15_000)
    ours = {batch_of(row): json.loads(row[1])["aol"] for row in replay.written() if row[0] == "bAck"}
    acked: dict[tuple[Any, ...], list[int]] = {}
    for row in theirs:
        if row[0] == "ack" and row[2] > 1_000:
            acked.setdefault(batch_of(row), []).append(json.loads(row[1])["ao"])
    assert ours == acked
    assert len(acked) > 5


def test_pops_in_order_leave_the_recorded_file(recorded: dict[str, Any], make_cluster: Callable[..., Any]) -> None:
    replay = MergeReplay(recorded, make_cluster)
    for op in recorded["ops"]:
        if op["group"] == "PG_ORDER":
            replay.play(op)
    with tarfile.open(STORES / "pop-merge.tar.xz") as archive:
        file = archive.extractfile("store/config/consumerOrderInfo.json")
        assert file is not None
        theirs = fastjson.loads(file.read().decode())
    ours = replay.cluster.broker.pop.consumer_order_info_manager.encode()
    assert relative_to_pops(ours) == relative_to_pops(theirs)


def relative_to_pops(value: dict[str, Any]) -> dict[str, Any]:
    """The content of consumerOrderInfo.json with all times as distances from the pop, in whole 100 ms."""
    return {
        f"{key}@{queue_id}": {
            **info,
            "popTime": 0,
            "l": 0,
            "ot": {offset: round((at - info["popTime"]) / 100) for offset, at in info.get("ot", {}).items()},
        }
        for key, queues in value["table"].items()
        for queue_id, info in queues.items()
    }
