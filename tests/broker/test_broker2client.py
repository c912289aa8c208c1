"""What a broker asks its clients for administrators: running info, progress, one message at once, other offsets."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mqlab import ConsumeConcurrentlyStatus, Lab, Message
from mqlab.client import (
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    MessageExt,
    MessageListenerOrderly,
    MessageQueue,
)
from mqlab.protocol import fastjson
from mqlab.protocol.bodies import (
    ConsumeMessageDirectlyResult,
    ConsumerRunningInfo,
    GetConsumerStatusBody,
    ResetOffsetBody,
)
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.command import RemotingCommand
from tests.broker.administrator import Admin
from tests.worlds import noting, send, shop, slow, started_consumer, started_producer, succeed

FRAMES = Path(__file__).parent.parent / "golden" / "frames"
SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
NO_TEXT = "not set any response code"
QUEUE = MessageQueue("T", "broker-a", 0)


@pytest.fixture(params=["objects", "bytes"])
def lab(request: pytest.FixtureRequest) -> Lab:
    return shop(wire=request.param)


def recorded(name: str, direction: str) -> Any:
    """The body of the recorded answer to a request of this name."""
    for line in (FRAMES / "client-json.jsonl").read_text().splitlines():
        row = json.loads(line)
        if (row["name"], row["dir"], row["kind"]) == (name, direction, "response"):
            command = RemotingCommand.decode(base64.b64decode(row["frame"]))
            return command, fastjson.loads_object(name, command.body)
    raise AssertionError(name)


# -- running info ---------------------------------------------------------------------------------------------------


def test_a_consumer_says_what_it_is_at_with_the_members_of_a_real_one(lab: Lab) -> None:
    producer = started_producer(lab)
    consumer = started_consumer(lab, slow(20), consume_thread_min=1, consume_thread_max=1)
    lab.run_for(seconds=2)
    send(producer, *"abcd")
    lab.run_for(ms=50)
    answer = Admin(lab).running_info(consumer)
    real, members = recorded("GET_CONSUMER_RUNNING_INFO", "client->broker")
    assert (answer.code, answer.remark) == (real.code, real.remark) == (0, NO_TEXT)
    ours = fastjson.loads_object("ours", answer.body)
    assert set(ours) == set(members)
    [(_, real_queue), *_] = members["mqTable"].items()
    [(_, our_queue), *_] = ours["mqTable"].items()
    assert set(our_queue) == set(real_queue)
    assert set(ours["statusTable"]["T"]) == set(members["statusTable"]["FrA"])
    wanted = {name: text for name, text in ours["properties"].items() if name.startswith("PROP_")}
    assert set(wanted) == {name for name in members["properties"] if name.startswith("PROP_")}
    assert wanted["PROP_CONSUMEORDERLY"] == "false"
    assert wanted["PROP_CLIENT_VERSION"] == members["properties"]["PROP_CLIENT_VERSION"]
    same = {name for name in members["properties"] if ours["properties"].get(name) == members["properties"][name]}
    assert {"pullBatchSize", "consumeConcurrentlyMaxSpan", "popInvisibleTime", "messageModel"} <= same
    info = ConsumerRunningInfo.decode(answer.body)
    queue = info.mq_table[QUEUE]
    assert (queue.cached_msg_count, queue.droped) == (4 - queue.commit_offset, False)
    assert (queue.cached_msg_min_offset, queue.cached_msg_max_offset) == (queue.commit_offset, 3)
    assert 0 < queue.commit_offset < 4
    assert lab.world.epoch_ms < queue.last_pull_timestamp <= lab.world.epoch_ms + lab.world.now_us // 1_000
    assert [subscription.topic for subscription in info.subscription_set] == ["%RETRY%readers", "T"]


def test_what_an_orderly_listener_is_at_is_told_as_its_transaction(lab: Lab) -> None:
    class Slow(MessageListenerOrderly):
        async def consume_message(
            self, messages: Sequence[MessageExt], context: ConsumeOrderlyContext
        ) -> ConsumeOrderlyStatus:
            await context.sleep(60_000)
            return ConsumeOrderlyStatus.SUCCESS

    producer = started_producer(lab)
    consumer = started_consumer(lab, Slow())
    lab.run_for(seconds=3)
    send(producer, "x", "y")
    lab.run_for(seconds=5)
    info = ConsumerRunningInfo.decode(Admin(lab).running_info(consumer).body)
    queue = info.mq_table[QUEUE]
    at_work = (queue.transaction_msg_count, queue.transaction_msg_min_offset, queue.transaction_msg_max_offset)
    assert at_work == (1, 0, 0)
    assert (queue.cached_msg_count, queue.cached_msg_min_offset, queue.locked) == (1, 1, True)
    assert info.properties["PROP_CONSUMEORDERLY"] == "true"


def test_other_consumers_have_running_info_too(lab: Lab) -> None:
    lite = lab.lite_pull_consumer("lite")
    lite.subscribe("T", "*")
    lite.start().play()
    lab.run_for(seconds=2)
    answer = Admin(lab).running_info(lite, "lite")  # type: ignore[arg-type]
    info = ConsumerRunningInfo.decode(answer.body)
    assert list(info.mq_table) == [QUEUE]
    assert info.properties["PROP_CONSUME_TYPE"] == "CONSUME_ACTIVELY"


def test_a_client_that_is_not_there_or_has_not_this_group(lab: Lab) -> None:
    consumer = started_consumer(lab)
    lab.run_for(seconds=1)
    admin = Admin(lab)
    client_id = consumer.impl.instance.client_id
    answer = admin.running_info(consumer, "nobody")
    assert (answer.code, answer.remark) == (1, f"The Consumer <nobody> <{client_id}> not online")
    consumer.impl.instance.consumer_table.clear()
    answer = admin.running_info(consumer)
    assert (answer.code, answer.remark) == (1, "The Consumer Group <readers> not exist in this consumer")


def test_a_client_that_does_not_answer_in_ten_seconds_is_told(lab: Lab) -> None:
    consumer = started_consumer(lab)
    lab.run_for(seconds=1)
    admin = Admin(lab)
    admin.status()
    lab.freeze(consumer.node.name)
    begin_us = lab.world.now_us
    answer = admin.running_info(consumer)
    assert answer.code == ResponseCode.CONSUME_MSG_TIMEOUT
    client_id = consumer.impl.instance.client_id
    assert (answer.remark or "").startswith(f"consumer <readers> <{client_id}> Timeout: ")
    assert 10_000 <= (lab.world.now_us - begin_us) // 1_000 < 10_100


# -- one message at once --------------------------------------------------------------------------------------------


def result_of(answer: RemotingCommand) -> ConsumeMessageDirectlyResult:
    assert (answer.code, answer.remark) == (0, NO_TEXT)
    return ConsumeMessageDirectlyResult.decode(answer.body)


def test_a_message_is_consumed_once_more_and_no_offset_moves(lab: Lab) -> None:
    seen: list[Any] = []
    consumer = started_consumer(lab, noting(seen, ""))
    producer = started_producer(lab)
    lab.run_for(seconds=2)
    sent = send(producer, "x", "y")
    lab.run_for(seconds=1)
    before = consumer.impl.offset_store.clone_offset_table("T")
    answer = Admin(lab).consume(consumer, sent[0].offset_msg_id)
    assert [message.body for message in seen] == [b"x", b"y", b"x"]
    assert seen[2].broker_name == "broker-a"
    assert consumer.impl.offset_store.clone_offset_table("T") == before
    _, members = recorded("CONSUME_MESSAGE_DIRECTLY", "client->broker")
    assert set(fastjson.loads_object("ours", answer.body)) == set(members)
    result = result_of(answer)
    assert (result.consume_result, result.order, result.auto_commit) == ("CR_SUCCESS", False, True)
    [told] = lab.history.find("MessageConsumedDirectly")
    assert (told.msg_id, told.result) == (sent[0].msg_id, "CR_SUCCESS")


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (ConsumeConcurrentlyStatus.RECONSUME_LATER, "CR_LATER"),
        (None, "CR_RETURN_NULL"),
        (ValueError("no"), "CR_THROW_EXCEPTION"),
    ],
)
def test_how_a_listener_came_back_is_told_and_nothing_comes_again(lab: Lab, said: Any, wanted: str) -> None:
    answers = [SUCCESS]

    async def listener(messages: Any, context: Any) -> Any:
        if answers:
            return answers.pop()
        await context.sleep(70)
        if isinstance(said, Exception):
            raise said
        return said

    consumer = started_consumer(lab, listener)
    [sent] = send(started_producer(lab), "x")
    lab.run_for(seconds=3)
    result = result_of(Admin(lab).consume(consumer, sent.offset_msg_id))
    assert (result.consume_result, result.spent_time_mills) == (wanted, 70)
    assert result.remark == ("ValueError: no" if isinstance(said, Exception) else None)
    lab.run_for(seconds=20)
    assert not list(lab.history.find("SendBackStored"))


@pytest.mark.parametrize("status", list(ConsumeOrderlyStatus))
def test_an_orderly_listener_has_more_answers(lab: Lab, status: ConsumeOrderlyStatus) -> None:
    answers = [ConsumeOrderlyStatus.SUCCESS]

    class Orderly(MessageListenerOrderly):
        def consume_message(
            self, messages: Sequence[MessageExt], context: ConsumeOrderlyContext
        ) -> ConsumeOrderlyStatus:
            context.auto_commit = bool(answers)
            return answers.pop() if answers else status

    consumer = started_consumer(lab, Orderly())
    [sent] = send(started_producer(lab), "x")
    lab.run_for(seconds=5)
    result = result_of(Admin(lab).consume(consumer, sent.offset_msg_id))
    names = {"SUSPEND_CURRENT_QUEUE_A_MOMENT": "CR_LATER"}
    assert result.consume_result == names.get(status.value, f"CR_{status.value}")
    assert (result.order, result.auto_commit) == (True, False)


def test_a_message_that_is_not_there_cannot_be_consumed(lab: Lab) -> None:
    consumer = started_consumer(lab)
    lab.run_for(seconds=1)
    admin = Admin(lab)
    [sent] = send(started_producer(lab), "x")
    missing = admin.consume(consumer, f"{sent.offset_msg_id[:-4]}FFFF")
    assert missing.code == 1
    assert (missing.remark or "").startswith("java.lang.NullPointerException: Cannot invoke")
    assert admin.consume(consumer, "no id").code == 1
    assert admin.consume(consumer, None).code == 1
    assert (admin.consume(consumer, sent.offset_msg_id, "nobody").remark or "").endswith("not online")


# -- progress -------------------------------------------------------------------------------------------------------


def test_members_say_how_far_they_are(lab: Lab) -> None:
    lab.create_topic("T", 2)
    members = [started_consumer(lab) for _ in range(2)]
    producer = started_producer(lab)
    lab.run_for(seconds=25)
    for queue_id in (0, 1, 1):
        producer.send(Message("T", "x"), queue=MessageQueue("T", "broker-a", queue_id)).play()
    lab.run_for(seconds=1)
    admin = Admin(lab)
    answer = admin.status()
    assert (answer.code, answer.remark) == (0, NO_TEXT)
    table = GetConsumerStatusBody.decode(answer.body).consumer_table
    ids = [member.impl.instance.client_id for member in members]
    assert set(table) == set(ids)
    assert {queue.queue_id: offset for offsets in table.values() for queue, offset in offsets.items()} == {0: 1, 1: 2}
    one = GetConsumerStatusBody.decode(admin.status(client_id=ids[1]).body).consumer_table
    assert one == {ids[1]: table[ids[1]]}
    lab.freeze(members[0].node.name)
    assert set(GetConsumerStatusBody.decode(admin.status().body).consumer_table) == {ids[1]}
    nobody = admin.status("nobody")
    assert nobody.code == 1
    assert (nobody.remark or "").endswith("Broker2Client.getConsumeStatus(Broker2Client.java:246)")


# -- other offsets, by way of the clients ---------------------------------------------------------------------------


@pytest.fixture(params=["objects", "bytes"])
def told(request: pytest.FixtureRequest) -> Lab:
    """A world in which clients move themselves."""
    return shop(wire=request.param, use_server_side_reset_offset=False)


def test_a_group_is_moved_back_to_a_time_by_its_members(told: Lab) -> None:
    seen: list[bytes] = []
    consumer = started_consumer(told, noting(seen))
    producer = started_producer(told)
    told.run_for(seconds=2)
    send(producer, "a", "b")
    told.run_for(seconds=2)
    then_ms = told.world.epoch_ms + told.world.now_us // 1_000
    told.run_for(ms=10)
    send(producer, "c", "d")
    told.run_for(seconds=6)
    begin_us = told.world.now_us
    answer = Admin(told).reset(then_ms)
    assert (answer.code, answer.remark) == (0, NO_TEXT)
    assert ResetOffsetBody.decode(answer.body).offset_table == {QUEUE: 2}
    told.run_for(seconds=9)
    send(producer, "e")
    assert seen == [b"a", b"b", b"c", b"d"], "the consumer waits for ten seconds"
    told.run_for(seconds=3)
    assert seen[4:] == [b"c", b"d", b"e"]
    [moved] = told.history.find("ConsumerOffsetsReset")
    assert (moved.group, moved.topic, moved.queues) == ("readers", "T", 1)
    assert 10_000_000 <= moved.ts_us - begin_us < 10_100_000
    assert not consumer.impl.pause


def test_without_force_nobody_is_moved_forward(told: Lab) -> None:
    seen: list[bytes] = []
    consumer = started_consumer(told, noting(seen))
    producer = started_producer(told)
    told.run_for(seconds=2)
    send(producer, "a")
    told.run_for(seconds=20)
    consumer.suspend()
    # What is on its way is still consumed.
    send(producer, "b", "c", "d")
    told.run_for(seconds=6)
    admin = Admin(told)
    assert ResetOffsetBody.decode(admin.reset(-1, is_force=False).body).offset_table == {QUEUE: 2}
    told.run_for(seconds=20)
    assert seen == [b"a", b"b", b"c", b"d"], "it goes on where it was"
    consumer.suspend()
    send(producer, "e", "f", "g")
    told.run_for(seconds=6)
    assert ResetOffsetBody.decode(admin.reset(-1, is_force=True).body).offset_table == {QUEUE: 7}
    told.run_for(seconds=20)
    assert seen == [b"a", b"b", b"c", b"d", b"e", b"f"], "what it had not pulled is passed over"
    assert [record.queues for record in told.history.find("ConsumerOffsetsReset")] == [1, 1]


def test_a_broker_cannot_move_whom_it_does_not_know(told: Lab) -> None:
    admin = Admin(told)
    unknown = admin.reset(0, topic="None")
    text = "[reset-offset] reset offset failed, no topic in this broker. topic=None"
    assert (unknown.code, unknown.remark) == (ResponseCode.TOPIC_NOT_EXIST, text)
    nobody = admin.reset(0)
    assert (nobody.code, nobody.remark) == (1, "THe consumer group <readers> not exist")
    consumer = started_consumer(told)
    send(started_producer(told), "x")
    told.run_for(seconds=12)
    consumer.shutdown().play()
    gone = admin.reset(5)
    remark = "Consumer not online, so can not reset offset, Group: readers Topic: T Timestamp: 5"
    assert (gone.code, gone.remark) == (ResponseCode.CONSUMER_NOT_ONLINE, remark)


def test_a_consumer_of_another_kind_is_not_moved(told: Lab) -> None:
    lite = told.lite_pull_consumer("lite")
    lite.subscribe("T", "*")
    lite.start().play()
    producer = started_producer(told)
    told.run_for(seconds=2)
    send(producer, "x")
    lite.poll(1_000).play()
    lite.commit().play()
    told.run_for(seconds=15)
    assert Admin(told).reset(0, group="lite").code == 0
    told.run_for(seconds=12)
    assert not list(told.history.find("ConsumerOffsetsReset"))
    assert succeed(None, None) is SUCCESS
