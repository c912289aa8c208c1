"""The allocation strategies against what the Java classes gave, and their own properties."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.errors import LearnerError
from mqlab.protocol.message import MessageQueue
from mqlab.rebalance import (
    AllocateMachineRoomNearby,
    AllocateMessageQueueAveragely,
    AllocateMessageQueueAveragelyByCircle,
    AllocateMessageQueueByConfig,
    AllocateMessageQueueByMachineRoom,
    AllocateMessageQueueConsistentHash,
    AllocateMessageQueueStrategy,
    MachineRoomResolver,
    allocate_to_all,
    strategy_named,
)

VECTORS = Path(__file__).parents[1] / "golden" / "vectors" / "allocate.json"
ROWS: list[dict[str, Any]] = json.loads(VECTORS.read_text())["rows"]


class RoomBeforeDash(MachineRoomResolver):
    """The room is what stands before the first dash."""

    def broker_deploy_in(self, queue: MessageQueue) -> str:
        return queue.broker_name.split("-")[0]

    def consumer_deploy_in(self, client_id: str) -> str:
        return client_id.split("-", maxsplit=1)[0]


def queue_of(text: str) -> MessageQueue:
    broker_name, _, queue_id = text.rpartition(":")
    return MessageQueue("T", broker_name, int(queue_id))


def strategy_of(row: dict[str, Any]) -> AllocateMessageQueueStrategy:
    averagely = AllocateMessageQueueAveragely()
    return {
        "AVG": averagely,
        "AVG_BY_CIRCLE": AllocateMessageQueueAveragelyByCircle(),
        "CONSISTENT_HASH": AllocateMessageQueueConsistentHash(),
        "CONSISTENT_HASH_1": AllocateMessageQueueConsistentHash(1),
        "MACHINE_ROOM": AllocateMessageQueueByMachineRoom(row.get("consumerIdcs", ())),
        "MACHINE_ROOM_NEARBY": AllocateMachineRoomNearby(averagely, RoomBeforeDash()),
    }[row["strategy"]]


@pytest.mark.parametrize("row", [row for row in ROWS if row["strategy"] != "CONFIG"])
def test_each_strategy_divides_as_the_java_class_does(row: dict[str, Any]) -> None:
    queues = [queue_of(text) for text in row["queues"]]
    for cid, expected in row["result"].items():
        if cid.endswith("Error"):
            with pytest.raises(LearnerError, match=expected.removeprefix("IllegalArgumentException: ")):
                strategy_of(row).allocate("G", cid, queues, row["consumers"])
            continue
        mine = strategy_of(row).allocate("G", cid, queues, row["consumers"])
        assert [f"{queue.broker_name}:{queue.queue_id}" for queue in mine] == expected


def test_a_configured_allocation_is_returned_as_it_is() -> None:
    queues = [MessageQueue("T", "broker-a", 2)]
    assert AllocateMessageQueueByConfig(queues).allocate("G", "anybody", [], []) == queues


MEMBERS = st.lists(st.integers(0, 40).map(lambda k: f"10.0.0.{k}@{k}"), min_size=1, max_size=12, unique=True)
QUEUES = st.integers(1, 60).map(lambda n: [MessageQueue("T", f"broker-{k % 3}", k // 3) for k in range(n)])
STRATEGIES = st.sampled_from(
    [
        AllocateMessageQueueAveragely(),
        AllocateMessageQueueAveragelyByCircle(),
        AllocateMessageQueueConsistentHash(),
    ]
)


@given(STRATEGIES, QUEUES, MEMBERS)
def test_every_queue_gets_exactly_one_owner(
    strategy: AllocateMessageQueueStrategy, queues: list[MessageQueue], members: list[str]
) -> None:
    shares = allocate_to_all(strategy, "G", queues, members)
    assert sorted(queue for mine in shares.values() for queue in mine) == sorted(queues)


@given(QUEUES, MEMBERS)
def test_averaging_shares_differ_by_one_queue_at_most(queues: list[MessageQueue], members: list[str]) -> None:
    for strategy in (AllocateMessageQueueAveragely(), AllocateMessageQueueAveragelyByCircle()):
        sizes = [len(mine) for mine in allocate_to_all(strategy, "G", queues, members).values()]
        assert max(sizes) - min(sizes) <= 1


@given(QUEUES, MEMBERS)
def test_with_consistent_hashing_only_the_queues_of_a_leaver_move(
    queues: list[MessageQueue], members: list[str]
) -> None:
    strategy = AllocateMessageQueueConsistentHash()
    before = allocate_to_all(strategy, "G", queues, members)
    if len(members) > 1:
        after = allocate_to_all(strategy, "G", queues, sorted(members)[1:])
        for cid, mine in after.items():
            assert set(before[cid]) <= set(mine)


@pytest.mark.parametrize(
    ("cid", "queues", "members", "text"),
    [
        ("", [MessageQueue("T", "b", 0)], ["a"], "currentCID is empty"),
        ("a", [], ["a"], "mqAll is null or mqAll empty"),
        ("a", [MessageQueue("T", "b", 0)], [], "cidAll is null or cidAll empty"),
    ],
)
def test_empty_arguments_are_errors(cid: str, queues: list[MessageQueue], members: list[str], text: str) -> None:
    with pytest.raises(LearnerError, match=text):
        AllocateMessageQueueAveragely().allocate("G", cid, queues, members)


def test_a_blank_room_is_an_error() -> None:
    class Nowhere(RoomBeforeDash):
        def consumer_deploy_in(self, client_id: str) -> str:
            return " "

    strategy = AllocateMachineRoomNearby(AllocateMessageQueueAveragely(), Nowhere())
    with pytest.raises(LearnerError, match="Machine room is null for c1"):
        strategy.allocate("G", "c1", [MessageQueue("T", "r1-b", 0)], ["c1"])


def test_strategies_are_found_by_name() -> None:
    assert [strategy_named(name).name for name in ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")] == [
        "AVG",
        "AVG_BY_CIRCLE",
        "CONSISTENT_HASH",
    ]
    with pytest.raises(LearnerError, match="there is no allocation strategy 'FAIR'"):
        strategy_named("FAIR")
    with pytest.raises(LearnerError, match="illegal virtualNodeCnt"):
        AllocateMessageQueueConsistentHash(-1)
