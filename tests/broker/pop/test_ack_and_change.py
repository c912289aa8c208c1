"""Acknowledgements, single and in batches, and changes of the invisible time: what becomes of them, good and bad."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.pop_check_point import (
    BatchAck,
    BatchAckMessageRequestBody,
    bits_of,
)
from mqlab.store import FlushDiskType


class Acker:
    """A client of group G that pops from T, and acknowledges or changes what it got."""

    def __init__(self, popper: Any, messages: int = 5) -> None:
        self.popper = popper
        self.cluster = popper.cluster
        popper.send(*(b"body %d" % i for i in range(messages)))

    def pop(self, **more: Any) -> h.PopMessageResponseHeader:
        """Pop all; the header of the answer."""
        response = self.popper.pop(**more)
        assert response.code == ResponseCode.SUCCESS
        header: h.PopMessageResponseHeader = response.header_as(h.PopMessageResponseHeader)
        return header

    @staticmethod
    def handle(answer: h.PopMessageResponseHeader, offset: int, start: int = 0, **changes: Any) -> str:
        """The receipt handle of a message in T."""
        fields: dict[str, Any] = {
            "start": start,
            "pop_time": answer.pop_time,
            "invisible": answer.invisible_time,
            "revive_qid": answer.revive_qid,
            "flag": 0,
            "broker": "broker-a",
            "queue": 0,
            "offset": offset,
            **changes,
        }
        return " ".join(map(str, fields.values()))

    def ack(
        self, handle: str, offset: int, *, topic: str = "T", queue_id: int = 0, group: str = "G"
    ) -> RemotingCommand:
        """Acknowledge one message."""
        header = h.AckMessageRequestHeader(group, topic, queue_id, handle, offset)
        answer: RemotingCommand = self.popper.raw.call(RequestCode.ACK_MESSAGE, header)
        return answer

    def batch_ack(self, *acks: BatchAck) -> RemotingCommand:
        """Acknowledge several messages in one request."""
        body = BatchAckMessageRequestBody("broker-a", list(acks)).encode()
        answer: RemotingCommand = self.popper.raw.call(RequestCode.BATCH_ACK_MESSAGE, None, body)
        return answer

    def change(self, handle: str, offset: int, invisible_ms: int, **more: Any) -> RemotingCommand:
        """Ask for another invisible time."""
        values = {"consumer_group": "G", "topic": "T", "queue_id": 0, **more}
        header = h.ChangeInvisibleTimeRequestHeader(
            extra_info=handle, offset=offset, invisible_time=invisible_ms, **values
        )
        answer: RemotingCommand = self.popper.raw.call(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, header)
        return answer

    def revived(self) -> list[int]:
        """The offsets that came back so far."""
        return [event["queue_offset"] for event in self.popper.seen("MessageRevived")]

    def lost(self) -> list[str]:
        """Why acks had no effect so far."""
        return [event["reason"] for event in self.popper.seen("AckLost")]


@pytest.fixture
def acker(popper: Any) -> Acker:
    """Five messages in T, and a client that pops them."""
    return Acker(popper)


@pytest.fixture
def answer(acker: Acker) -> h.PopMessageResponseHeader:
    """The header of the answer to its first pop."""
    return acker.pop()


def batch(answer: h.PopMessageResponseHeader, *offsets: int, **changes: Any) -> BatchAck:
    """Acks of messages of one batch, whose first offset is 0."""
    values: dict[str, Any] = {
        "group": "G",
        "topic": "T",
        "retry": "0",
        "start_offset": 0,
        "queue_id": 0,
        "revive_queue_id": answer.revive_qid,
        "pop_time": answer.pop_time,
        "invisible_time": answer.invisible_time,
        "bit_set": bits_of(offsets),
        **changes,
    }
    return BatchAck(**values)


# -- the plain way ----------------------------------------------------------------------------------------------------


def test_what_is_acknowledged_stays_away_and_the_rest_comes_back(
    answer: h.PopMessageResponseHeader, acker: Acker
) -> None:
    for offset in (0, 2, 3):
        response = acker.ack(acker.handle(answer, offset), offset)
        assert (response.code, response.remark) == (0, None)
    acker.cluster.run(20_000)
    assert acker.revived() == [1, 4]
    assert [event["offsets"] for event in acker.popper.seen("AckStored")] == ["0", "2", "3"]
    counter = acker.cluster.broker.pop.pop_inflight_message_counter
    assert counter.number("T", "G", 0) == 0


def test_an_ack_waits_in_the_timer_and_becomes_readable_when_the_message_could_be_seen_again(
    answer: h.PopMessageResponseHeader, acker: Acker
) -> None:
    acker.ack(acker.handle(answer, 0), 0)
    due_ms = answer.pop_time + answer.invisible_time
    acker.cluster.run(15_000)
    events = {event["revive_offset"]: event["ts_ms"] for event in acker.popper.seen("ReviveAckRead")}
    read_ms = acker.cluster.world.epoch_ms + events[1]
    assert due_ms <= read_ms <= due_ms + 1_200


def test_several_acks_in_one_request(answer: h.PopMessageResponseHeader, acker: Acker) -> None:
    response = acker.batch_ack(batch(answer, 0, 1, 4))
    assert (response.code, response.remark) == (0, None)
    acker.cluster.run(20_000)
    assert acker.revived() == [2, 3]
    assert [event["offsets"] for event in acker.popper.seen("AckStored")] == ["0,1,4"]


def test_acks_of_a_retry_topic(acker: Acker) -> None:
    acker.pop()
    acker.cluster.run(14_000)
    again = acker.pop()
    assert acker.revived() == [0, 1, 2, 3, 4]
    handle = acker.handle(again, 0, flag=1)
    assert acker.ack(handle, 0, topic="%RETRY%G_T").code == 0
    assert acker.batch_ack(batch(again, 1, 2, retry="1")).code == 0
    acker.cluster.run(20_000)
    # These come back to the retry topic itself.
    assert acker.revived()[5:] == [3, 4]


def test_more_time_and_then_an_ack(answer: h.PopMessageResponseHeader, acker: Acker) -> None:
    acker.batch_ack(batch(answer, 1, 2, 3, 4))
    acker.cluster.run(5_000)
    changed = acker.change(acker.handle(answer, 0), 0, 30_000)
    assert (changed.code, changed.remark) == (0, "not set any response code")
    new = changed.header_as(h.ChangeInvisibleTimeResponseHeader)
    assert (new.invisible_time, new.revive_qid) == (30_000, answer.revive_qid)
    assert new.pop_time - answer.pop_time == pytest.approx(5_000, abs=20)
    acker.cluster.run(25_000)
    assert acker.revived() == []
    acker.ack(acker.handle(answer, 0, pop_time=new.pop_time, invisible=30_000), 0)
    acker.cluster.run(20_000)
    assert acker.revived() == []
    (event,) = acker.popper.seen("InvisibleTimeChanged")
    assert (event["pop_time"], event["new_pop_time"], event["invisible_ms"]) == (answer.pop_time, new.pop_time, 30_000)


def test_less_time_brings_a_message_back_sooner(acker: Acker) -> None:
    answer = acker.pop(invisible_time=60_000)
    changed = acker.change(acker.handle(answer, 2), 2, 1_000)
    new = changed.header_as(h.ChangeInvisibleTimeResponseHeader)
    acker.cluster.run(6_000)
    (event,) = acker.popper.seen("MessageRevived")
    assert (event["queue_offset"], event["pop_time"]) == (2, new.pop_time)
    # The first check point is told that this message is done: it comes back once.
    acker.cluster.run(70_000)
    assert sorted(acker.revived()) == [0, 1, 2, 3, 4]


def test_an_ack_with_the_old_handle_does_not_end_the_new_time(answer: h.PopMessageResponseHeader, acker: Acker) -> None:
    acker.batch_ack(batch(answer, 1, 2, 3, 4))
    acker.change(acker.handle(answer, 0), 0, 20_000)
    assert acker.ack(acker.handle(answer, 0), 0).code == 0
    acker.cluster.run(30_000)
    assert acker.revived() == [0]


# -- in order ---------------------------------------------------------------------------------------------------------


def test_in_order_a_message_is_done_when_all_before_it_are(acker: Acker) -> None:
    answer = acker.pop(order=True, max_msg_nums=3)
    assert answer.revive_qid == 999
    for offset, committed in ((1, 0), (0, 2)):
        assert acker.ack(acker.handle(answer, offset), offset).code == 0
        assert acker.popper.offset() == committed
    assert acker.batch_ack(batch(answer, 2)).code == 0
    assert acker.popper.offset() == 3
    assert [event["next_offset"] for event in acker.popper.seen("OrderAcked")] == [0, 2, 3]
    assert acker.popper.seen("AckStored") == []


def test_in_order_what_does_not_fit_is_ignored_or_refused(acker: Acker) -> None:
    answer = acker.pop(order=True, max_msg_nums=3)
    for offset in (0, 1, 2):
        acker.ack(acker.handle(answer, offset), offset)
    # Behind: ignored. Another pop: ignored. Not in the list: refused.
    assert acker.ack(acker.handle(answer, 0), 0).code == 0
    acker.pop(order=True, max_msg_nums=1)
    assert acker.ack(acker.handle(answer, 3), 3).code == 0
    assert acker.lost() == ["the group is past it", "it was popped again since"]
    newest = acker.popper.seen("MessagePopped")[-1]["pop_time"]
    refused = acker.ack(acker.handle(answer, 4, pop_time=newest), 4)
    assert refused.code == ResponseCode.MESSAGE_ILLEGAL
    assert refused.remark is not None
    assert refused.remark.startswith("offset is illegal, key:T@G@0, old:3, commit:4, next:-1, /10.")
    assert acker.cluster.broker.pop.locks.held == {}


@pytest.mark.parametrize(("records", "key"), [(False, "T@G@0"), (True, "G T 0")])
def test_in_order_one_bad_handle_of_a_batch_hinders_no_other_one(
    make_popper: Callable[..., Any], records: bool, key: str
) -> None:
    """The answer is that of the last bad one, and all good ones count, before it and behind it, in both engines."""
    acker = Acker(make_popper(pop_consumer_kv_service_enable=records), messages=6)
    answer = acker.pop(order=True, max_msg_nums=3)
    refused = acker.batch_ack(batch(answer, 5), batch(answer, 0, 1, 4), batch(answer, 2))
    assert refused.code == ResponseCode.MESSAGE_ILLEGAL
    assert (refused.remark or "").startswith(f"offset is illegal, key:{key}, old:2, commit:4, next:-1, /10.")
    assert acker.popper.offset() == 3
    assert acker.popper.bodies(order=True) == [b"body 3", b"body 4", b"body 5"]


def test_in_order_more_time_is_noted_for_the_message(acker: Acker) -> None:
    answer = acker.pop(order=True, max_msg_nums=2)
    acker.cluster.run(4_000)
    changed = acker.change(acker.handle(answer, 0), 0, 20_000).header_as(h.ChangeInvisibleTimeResponseHeader)
    assert (changed.pop_time, changed.revive_qid) == (answer.pop_time, 999)
    assert changed.invisible_time == pytest.approx(24_000, abs=20)
    acker.cluster.run(10_000)
    assert acker.popper.bodies(order=True) == []
    acker.cluster.run(11_000)
    assert acker.popper.bodies(order=True)[:2] == [b"body 0", b"body 1"]
    acker.cluster.broker.consumer_offset_manager.commit_offset("G", "T", 0, 2)
    past = acker.change(acker.handle(answer, 0), 0, 20_000)
    assert past.code == 0
    assert past.header_as(h.ChangeInvisibleTimeResponseHeader) == h.ChangeInvisibleTimeResponseHeader(0, 0, 0)


def test_in_order_an_ack_waits_for_whoever_has_the_queue(acker: Acker) -> None:
    answer = acker.pop(order=True, max_msg_nums=1)
    locks = acker.cluster.broker.pop.locks
    assert locks.try_lock("T", "G", 0)
    header = h.AckMessageRequestHeader("G", "T", 0, acker.handle(answer, 0), 0)
    waiting = acker.popper.raw.begin(RequestCode.ACK_MESSAGE, header)
    acker.cluster.run(50)
    assert not waiting.done
    locks.unlock("T", "G", 0)
    assert acker.cluster.world.wait_for(waiting).code == 0
    assert acker.popper.offset() == 1


# -- bad ones ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "code", "remark"),
    [
        ({"topic": "NoTopic"}, ResponseCode.TOPIC_NOT_EXIST, "topic[NoTopic] not exist, apply first please! "),
        (
            {"queue_id": 77},
            ResponseCode.MESSAGE_ILLEGAL,
            "queueId[77] is illegal, topic:[T] topicConfig.readQueueNums:[1]",
        ),
        ({"queue_id": -1}, ResponseCode.MESSAGE_ILLEGAL, "queueId[-1] is illegal, topic:[T]"),
        ({"offset": 6}, ResponseCode.NO_MESSAGE, "offset is illegal, key:T@0, commit:6, store:0~5"),
        ({"offset": -1}, ResponseCode.NO_MESSAGE, "offset is illegal, key:T@0, commit:-1, store:0~5"),
        ({"handle": "1 2 3"}, ResponseCode.SYSTEM_ERROR, "ExtraInfoError: getBrokerName fail, extraInfoStrs length 3"),
        ({"handle": ""}, ResponseCode.SYSTEM_ERROR, "ExtraInfoError: getBrokerName fail, extraInfoStrs length 1"),
        ({"handle": "a b c d e f"}, ResponseCode.SYSTEM_ERROR, 'ExtraInfoError: For input string: "a"'),
    ],
)
def test_a_bad_ack_is_refused_as_by_a_real_broker(
    acker: Acker, where: dict[str, Any], code: ResponseCode, remark: str
) -> None:
    answer = acker.pop()
    asked = {"offset": 0, "handle": acker.handle(answer, 0), **where}
    before = acker.cluster.broker.message_store.max_phy_offset
    response = acker.ack(asked.pop("handle"), **asked)
    assert response.code == code
    assert response.remark is not None
    assert response.remark.startswith(remark)
    assert acker.cluster.broker.message_store.max_phy_offset == before


def test_an_ack_of_the_end_of_the_queue_is_taken_and_changes_nothing(
    answer: h.PopMessageResponseHeader, acker: Acker
) -> None:
    assert acker.ack(acker.handle(answer, 5), 5).code == 0
    acker.cluster.run(20_000)
    assert acker.revived() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "forged",
    [{"start": 1}, {"pop_time": 1_700_000_000_000}, {"broker": "broker-b"}, {"revive_qid": 5}, {"revive_qid": 12}],
)
def test_a_forged_handle_is_answered_with_success_and_settles_nothing(
    answer: h.PopMessageResponseHeader, acker: Acker, forged: dict[str, Any]
) -> None:
    assert acker.ack(acker.handle(answer, 0, **forged), 0).code == 0
    acker.cluster.run(25_000)
    assert 0 in acker.revived()


def test_another_groups_ack_settles_nothing(answer: h.PopMessageResponseHeader, acker: Acker) -> None:
    assert acker.ack(acker.handle(answer, 0), 0, group="H").code == 0
    acker.cluster.run(20_000)
    assert acker.revived() == [0, 1, 2, 3, 4]


def test_an_ack_twice_is_one(answer: h.PopMessageResponseHeader, acker: Acker) -> None:
    for _ in range(2):
        assert acker.ack(acker.handle(answer, 0), 0).code == 0
    acker.cluster.run(20_000)
    assert acker.revived() == [1, 2, 3, 4]


def test_a_cut_handle_with_all_that_is_used_of_it_is_enough(answer: h.PopMessageResponseHeader, acker: Acker) -> None:
    cut = " ".join(acker.handle(answer, 0).split(" ")[:6])
    assert acker.ack(cut, 0).code == 0
    acker.cluster.run(20_000)
    assert acker.revived() == [1, 2, 3, 4]


def test_bad_batches(answer: h.PopMessageResponseHeader, acker: Acker) -> None:
    empty = acker.batch_ack()
    assert (empty.code, empty.remark) == (ResponseCode.NO_MESSAGE, None)
    assert acker.popper.raw.call(RequestCode.BATCH_ACK_MESSAGE).code == ResponseCode.NO_MESSAGE
    assert acker.popper.raw.call(RequestCode.BATCH_ACK_MESSAGE, None, b"{no").code == ResponseCode.SYSTEM_ERROR
    assert acker.batch_ack(batch(answer, 0, topic="NoTopic")).code == 0
    assert acker.batch_ack(batch(answer, 0, retry="7")).code == ResponseCode.SYSTEM_ERROR
    assert acker.batch_ack(batch(answer, 0, 40)).code == 0
    acker.cluster.run(20_000)
    assert acker.lost() == ["no such queue", "the queue has the offsets 0 to 5"]
    assert acker.revived() == [1, 2, 3, 4]


@pytest.mark.parametrize("offset", [-1, 5])
def test_a_change_of_a_message_that_is_not_there_is_refused(
    answer: h.PopMessageResponseHeader, acker: Acker, offset: int
) -> None:
    response = acker.change(acker.handle(answer, 0), offset, 20_000)
    assert (response.code, response.remark) == (ResponseCode.NO_MESSAGE, "not set any response code")
    assert response.header_as(h.ChangeInvisibleTimeResponseHeader) == h.ChangeInvisibleTimeResponseHeader(0, 0, 0)
    assert acker.change(acker.handle(answer, 0), 0, 20_000, topic="No").code == ResponseCode.TOPIC_NOT_EXIST
    assert acker.change(acker.handle(answer, 0), 0, 20_000, queue_id=9).code == ResponseCode.MESSAGE_ILLEGAL
    assert acker.change("1 2", 0, 20_000).code == ResponseCode.SYSTEM_ERROR


@pytest.mark.parametrize("invisible_ms", [-5_000, 0, 4 * 24 * 3_600_000])
def test_a_change_to_any_time_is_taken_if_the_timer_takes_it(
    answer: h.PopMessageResponseHeader, acker: Acker, invisible_ms: int
) -> None:
    response = acker.change(acker.handle(answer, 0), 0, invisible_ms)
    # The timer reaches three days ahead: what is due later is no check point, and the old one stays as it is.
    refused = invisible_ms > 3 * 24 * 3_600_000
    assert response.code == (ResponseCode.SYSTEM_ERROR if refused else ResponseCode.SUCCESS)
    acker.cluster.run(20_000)
    assert acker.revived().count(0) == 1
    assert len(acker.popper.seen("CheckPointNotMade")) == int(refused)


# -- a store that takes nothing, or takes its time --------------------------------------------------------------------


def test_an_ack_that_cannot_be_written_is_answered_with_success_and_the_message_comes_back(
    answer: h.PopMessageResponseHeader, acker: Acker
) -> None:
    flags = acker.cluster.broker.message_store.running_flags
    flags.set(2)
    assert not flags.is_writeable
    assert acker.ack(acker.handle(answer, 0), 0).code == 0
    assert acker.lost() == ["it was not stored: SERVICE_NOT_AVAILABLE"]
    change = acker.change(acker.handle(answer, 1), 1, 20_000)
    assert change.code == ResponseCode.SYSTEM_ERROR
    flags.set(2, False)
    acker.cluster.run(20_000)
    assert acker.revived() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("append_ack_async", [False, True])
def test_where_the_store_waits_for_its_disk_an_ack_waits_with_it_unless_it_is_told_not_to(
    make_popper: Callable[..., Any], append_ack_async: bool
) -> None:
    popper = make_popper(store={"flush_disk_type": FlushDiskType.SYNC_FLUSH}, append_ack_async=append_ack_async)
    acker = Acker(popper, 2)
    answer = acker.pop()
    acker.cluster.do("hang_disk", node="broker-a")
    acking = popper.raw.begin(
        RequestCode.ACK_MESSAGE, h.AckMessageRequestHeader("G", "T", 0, acker.handle(answer, 0), 0)
    )
    changing = popper.raw.begin(
        RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
        h.ChangeInvisibleTimeRequestHeader("G", "T", 0, acker.handle(answer, 1), 1, 30_000),
    )
    acker.cluster.run(100)
    assert acking.done == append_ack_async
    assert not changing.done
    acker.cluster.do("unhang_disk", node="broker-a")
    assert acker.cluster.world.wait_for(acking).code == 0
    assert acker.cluster.world.wait_for(changing).code == 0
    acker.cluster.run(20_000)
    assert acker.revived() == []


@pytest.mark.parametrize("acked", [0, 2])
def test_check_points_that_lie_on_the_wheel_alone_are_found_after_a_crash_though_nobody_pops(
    acker: Acker, acked: int
) -> None:
    answer = acker.pop(invisible_time=30_000)
    for offset in range(acked):
        acker.ack(acker.handle(answer, offset), offset)
    acker.cluster.run(6_000)
    acker.cluster.do("crash", node="broker-a")
    acker.cluster.restart(20_000)
    assert acker.cluster.broker.made_pop is None
    acker.cluster.run(20_000)
    assert acker.revived() == list(range(acked, 5))


def test_nothing_is_made_for_an_ack_in_a_broker_from_which_nobody_pops(acker: Acker) -> None:
    acker.cluster.topic("U")
    assert acker.cluster.broker.made_pop is None
    assert acker.ack("0 1 2 0 0 broker-a 0 0", 0, topic="NoTopic").code == ResponseCode.TOPIC_NOT_EXIST
    assert acker.cluster.broker.made_pop is not None
