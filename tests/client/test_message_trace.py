"""What clients note of their messages travels as messages of a topic of its own, byte for byte as RocketMQ's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mqlab import ConsumeConcurrentlyStatus, DefaultMQProducer, DefaultMQPushConsumer, Lab, Message
from mqlab.client import (
    ConsumeMessageHook,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    LocalTransactionState,
    MessageExt,
    MessageListenerOrderly,
    MessageQueue,
    SendMessageHook,
    TransactionListener,
)
from mqlab.client.producer.hooks import EndTransactionHook
from mqlab.client.trace.async_trace_dispatcher import AsyncTraceDispatcher
from mqlab.client.trace.trace_context import TraceBean, TraceContext, TraceType
from mqlab.client.trace.trace_data_encoder import decode_contexts, encode_context
from mqlab.errors import MQClientException, ProtocolError
from mqlab.protocol.hashing import java_map_order
from tests.worlds import send, shop, slow, started_consumer, started_producer, succeed

RECORDED = json.loads((Path(__file__).parent.parent / "golden" / "ha" / "message-trace.json").read_text())
TRACES = "RMQ_SYS_TRACE_TOPIC"
LATER = ConsumeConcurrentlyStatus.RECONSUME_LATER


@pytest.fixture
def lab() -> Lab:
    return shop(trace_topic_enable=True)


def trace_messages(lab: Lab, topic: str = TRACES, queue_id: int = 0) -> list[MessageExt]:
    """The messages of the topic of traces, as somebody would pull them."""
    reader = lab.pull_consumer(f"readers-of-{topic}-{queue_id}")
    reader.start().play()
    result = reader.pull(MessageQueue(topic, "broker-a", queue_id), "*", 0, 32).play()
    return list(result.msg_found_list)


def records(lab: Lab) -> list[TraceContext]:
    """All that has been noted, in the order in which it arrived."""
    return [context for message in trace_messages(lab) for context in decode_contexts(message.body.decode())]


def lost(lab: Lab) -> list[str]:
    return [record.reason for record in lab.history.find("TraceLost")]


# -- the records ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("message", RECORDED["traceMessages"], ids=lambda message: str(message["queueOffset"]))
def test_recorded_traces_are_read_and_written_byte_for_byte(message: dict[str, Any]) -> None:
    contexts = decode_contexts(message["body"])
    assert "".join(encode_context(context).trans_data for context in contexts) == message["body"]
    assert [shown(context) for context in contexts] == [shown_there(each) for each in message["decoded"]]
    words: dict[str, None] = {}
    for context in contexts:
        if context.trace_beans[0].keys == "null":
            context.trace_beans[0].keys = None
        words.update(dict.fromkeys(encode_context(context).trans_key))
    assert " ".join(java_map_order(words)) == message["keys"]


def shown(context: TraceContext) -> tuple[Any, ...]:
    [bean] = context.trace_beans
    return (
        context.trace_type.value, context.time_stamp, context.region_id, context.group_name, context.cost_time,
        context.is_success, context.context_code, bean.topic, bean.msg_id, bean.offset_msg_id, bean.tags, bean.keys,
        bean.retry_times, bean.body_length,
    )  # fmt: skip


def shown_there(decoded: dict[str, Any]) -> tuple[Any, ...]:
    [bean] = decoded["traceBeans"]
    return (
        decoded["traceType"], decoded["timeStamp"], decoded["regionId"], decoded["groupName"], decoded["costTime"],
        decoded["isSuccess"], decoded["contextCode"], bean["topic"], bean["msgId"], bean["offsetMsgId"], bean["tags"],
        bean["keys"], bean["retryTimes"], bean["bodyLength"],
    )  # fmt: skip


def test_what_a_client_does_is_noted_in_the_recorded_order_with_the_recorded_ids(lab: Lab) -> None:
    """Each record takes a unique key of its process, as there: the ids of messages are even numbers."""
    producer = started_producer(lab, enable_trace=True)
    sent = send(producer, "a", "b", tags="tagT", keys="key0")
    assert [result.msg_id[-4:] for result in sent] == ["0000", "0002"]
    batch = producer.send([Message("T", "x", keys=key) for key in ("b0", "b1", "b2")]).play()
    lab.run(producer.send_oneway(Message("T", "ow", keys="ow")))
    lab.run(producer.send_async(Message("T", "as", keys="as"), lambda result, error: None))
    lab.run_for(seconds=6)
    noted = records(lab)
    assert [context.trace_type for context in noted] == [TraceType.PUB] * 4, "of one-way sends nothing is known"
    assert [context.trace_beans[0].keys for context in noted] == ["key0", "key0", "null", "as"]
    assert noted[2].trace_beans[0].msg_id == batch.msg_id
    first = noted[0]
    assert (first.group_name, first.region_id, first.is_success) == ("shop", "DefaultRegion", True)
    bean = first.trace_beans[0]
    assert (bean.topic, bean.tags, bean.body_length) == ("T", "tagT", 1)
    assert (bean.msg_id, bean.offset_msg_id) == (sent[0].msg_id, sent[0].offset_msg_id)
    assert bean.store_host == "10.0.0.2:10911"
    assert trace_messages(lab)[0].topic == TRACES


def test_records_of_transactions_and_of_recalls_have_their_layout() -> None:
    bean = TraceBean(
        "T", "id", tags=None, keys="k", store_host="h:1", msg_type="TRANS_MSG_COMMIT", transaction_id="tx",
        transaction_state="COMMIT_MESSAGE", from_transaction_check=True,
    )  # fmt: skip
    ended = TraceContext(TraceType.END_TRANSACTION, 5, "R", "G", trace_beans=[bean])
    text = "EndTransaction\x015\x01R\x01G\x01T\x01id\x01null\x01k\x01h:1\x012\x01tx\x01COMMIT_MESSAGE\x01true\x02"
    assert encode_context(ended).trans_data == text
    recalled = TraceContext(TraceType.RECALL, 5, "R", "G", is_success=False, trace_beans=[TraceBean("T", "id")])
    recall_text = "Recall\x015\x01R\x01G\x01T\x01id\x01false\x02"
    assert encode_context(recalled).trans_data == recall_text
    [again, again_recalled] = decode_contexts(text + recall_text)
    assert encode_context(again).trans_data == text
    assert encode_context(again_recalled).trans_data == recall_text
    assert again.trace_beans[0].transaction_state == "COMMIT_MESSAGE"


def test_records_of_older_clients_and_of_others_are_read() -> None:
    pub = "Pub\x011\x01R\x01G\x01T\x01id\x01t\x01k\x01h\x015\x016\x010"
    [oldest] = decode_contexts(f"{pub}\x01true\x02")
    assert (oldest.is_success, oldest.trace_beans[0].offset_msg_id) == (True, "")
    [with_host] = decode_contexts(f"{pub}\x01offset\x01false\x01client\x02")
    assert (with_host.is_success, with_host.trace_beans[0].client_host) == (False, "client")
    [short] = decode_contexts("SubAfter\x01r\x01id\x013\x01true\x01k\x02")
    assert (short.cost_time, short.context_code, short.time_stamp) == (3, 0, 0)
    assert decode_contexts("Unknown\x011\x02") == decode_contexts("") == []
    for broken in ("Pub\x011", "SubBefore\x01x\x01R\x01G\x01r\x01id\x010\x01k"):
        with pytest.raises(ProtocolError, match="cannot be read"):
            decode_contexts(broken)


# -- what is noted --------------------------------------------------------------------------------------------------


def test_each_call_of_a_listener_is_noted_before_and_after(lab: Lab) -> None:
    answers = iter([LATER, succeed(None, None), None])

    async def listener(messages: Any, context: Any) -> Any:
        await context.sleep(30)
        answer = next(answers)
        if answer is None:
            raise ValueError("no")
        return answer

    producer = started_producer(lab)
    started_consumer(lab, listener, enable_trace=True, consume_thread_min=1, consume_thread_max=1)
    sent = send(producer, "x", "y", keys="key1 key2")
    lab.run_for(seconds=30)
    noted = records(lab)
    kinds = [context.trace_type.value for context in noted]
    assert kinds == ["SubBefore", "SubAfter"] * 3
    for before, after in zip(noted[::2], noted[1::2], strict=True):
        assert before.request_id == after.request_id != ""
        assert before.trace_beans[0].msg_id == after.trace_beans[0].msg_id
        assert after.cost_time == 30
    assert [(after.is_success, after.context_code) for after in noted[1::2]] == [(False, 4), (True, 0), (False, 2)]
    assert [before.trace_beans[0].retry_times for before in noted[::2]] == [0, 0, 1]
    assert noted[0].trace_beans[0].msg_id == noted[4].trace_beans[0].msg_id == sent[0].msg_id


def test_a_batch_of_one_call_has_a_record_for_each_message_with_its_part_of_the_time(lab: Lab) -> None:
    producer = started_producer(lab)
    consumer = started_consumer(lab, slow(30), enable_trace=True, consume_message_batch_max_size=3)
    lab.run_for(seconds=1)
    consumer.suspend()
    producer.send([Message("T", body) for body in "abc"]).play()
    consumer.resume()
    lab.run_for(seconds=8)
    after = [context for context in records(lab) if context.trace_type is TraceType.SUB_AFTER]
    assert len({context.request_id for context in after}) == 1
    assert {context.trace_beans[0].msg_id for context in after} == {after[0].trace_beans[0].msg_id}, "that of the batch"
    assert [context.cost_time for context in after] == [10, 10, 10]


def test_orderly_popping_and_lite_consumers_are_traced_too(lab: Lab) -> None:
    class Orderly(MessageListenerOrderly):
        def consume_message(self, messages: Any, context: ConsumeOrderlyContext) -> ConsumeOrderlyStatus:
            return ConsumeOrderlyStatus.SUCCESS

    producer = started_producer(lab)
    started_consumer(lab, Orderly(), group="orderly", enable_trace=True)
    lite = lab.lite_pull_consumer("lite", enable_trace=True)
    lite.subscribe("T", "*")
    lite.start().play()
    lab.run_for(seconds=2)
    send(producer, "x")
    assert [message.body for message in lite.poll(2_000).play()] == [b"x"]
    lab.run_for(seconds=12)
    groups = [(context.group_name, context.trace_type.value) for context in records(lab)]
    assert sorted(groups) == [(group, kind) for group in ("lite", "orderly") for kind in ("SubAfter", "SubBefore")]


def test_a_broker_that_wants_no_traces_gets_none() -> None:
    lab = shop(trace_topic_enable=True, trace_on=False)
    producer = started_producer(lab, enable_trace=True)
    consumer = started_consumer(lab, enable_trace=True)
    send(producer, "x")
    lab.run_for(seconds=8)
    assert trace_messages(lab) == []
    assert not consumer.trace_dispatcher.trace_context_queue  # type: ignore[union-attr]


def test_a_delayed_message_and_a_packed_one_are_noted_as_such(lab: Lab) -> None:
    producer = started_producer(lab, enable_trace=True)
    producer.send(Message("T", "x", delay_level=1)).play()
    producer.send(Message("T", b"." * 5_000)).play()
    lab.run_for(seconds=6)
    delayed, packed = records(lab)
    assert delayed.trace_beans[0].msg_type == "DELAY_MSG"
    assert packed.trace_beans[0].body_length < 100, "what has travelled counts"


def test_a_send_that_fails_is_not_noted(lab: Lab) -> None:
    producer = started_producer(lab, enable_trace=True)
    with pytest.raises(MQClientException, match="broker-x"):
        producer.send(Message("T", "x"), queue=MessageQueue("T", "broker-x", 0)).play()
    assert not dispatcher_of(producer).trace_context_queue


def dispatcher_of(client: DefaultMQProducer | DefaultMQPushConsumer) -> AsyncTraceDispatcher:
    dispatcher = client.trace_dispatcher
    assert dispatcher is not None
    return dispatcher


def test_the_end_of_a_transaction_is_noted_also_when_the_broker_has_asked(lab: Lab) -> None:
    class Listener(TransactionListener):
        def execute_local_transaction(self, message: Message, argument: Any) -> LocalTransactionState:
            return argument  # type: ignore[no-any-return]

        def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
            return LocalTransactionState.ROLLBACK_MESSAGE

    shown: list[Any] = []

    class Seeing(EndTransactionHook):
        def end_transaction(self, context: Any) -> None:
            shown.append((context.transaction_state, context.from_transaction_check))
            raise ValueError("no")

    producer = lab.transaction_producer("accounts", enable_trace=True)
    producer.transaction_listener = Listener()
    producer.register_end_transaction_hook(Seeing())
    producer.start().play()
    sent = [
        producer.send_message_in_transaction(Message("T", "x", keys="k"), state).play()
        for state in (LocalTransactionState.COMMIT_MESSAGE, LocalTransactionState.UNKNOW)
    ]
    lab.run_for(seconds=150)
    ends = [context for context in records(lab) if context.trace_type is TraceType.END_TRANSACTION]
    outcomes = [(c.trace_beans[0].transaction_state, c.trace_beans[0].from_transaction_check) for c in ends]
    commit, doubt = ("COMMIT_MESSAGE", False), ("UNKNOW", False)
    assert outcomes[:3] == shown[:3] == [commit, doubt, ("ROLLBACK_MESSAGE", True)]
    assert [context.trace_beans[0].msg_id for context in ends][:2] == [result.msg_id for result in sent]
    assert {context.trace_beans[0].msg_type for context in ends} == {"TRANS_MSG_COMMIT"}
    assert [c.trace_beans[0].msg_type for c in records(lab) if c.trace_type is TraceType.PUB] == ["TRANS_MSG_HALF"] * 2
    assert {record.reason for record in lab.history.find("SendHookFailed")} == {"ValueError: no"}


# -- when it is sent ------------------------------------------------------------------------------------------------


def test_ten_notes_go_at_once_and_fewer_five_seconds_after_the_last_batch(lab: Lab) -> None:
    producer = started_producer(lab, enable_trace=True)
    send(producer, *"abcdefghijkl")
    tenth = [record.ts_ms for record in lab.history.find("TraceNoted")][9]
    lab.run_for(seconds=10)
    first, second = [record.ts_ms for record in lab.history.find("TraceSent")]
    assert 0 <= first - tenth <= 6
    assert 5_000 < second - first <= 5_006
    assert [len(decode_contexts(message.body.decode())) for message in trace_messages(lab)] == [10, 2]


@pytest.mark.parametrize(("number", "together"), [(3, 3), (50, 20)])
def test_a_batch_is_as_large_as_is_set_but_at_most_twenty(lab: Lab, number: int, together: int) -> None:
    producer = started_producer(lab, enable_trace=True, trace_msg_batch_num=number)
    send(producer, *("x" * 21))
    lab.run_for(seconds=12)
    sizes = [len(decode_contexts(message.body.decode())) for message in trace_messages(lab)]
    assert sizes[0] == together
    assert sum(sizes) == 21


def test_notes_of_two_topics_travel_apart(lab: Lab) -> None:
    lab.create_topic("U", 1)
    producer = started_producer(lab, enable_trace=True)
    for topic in "TUTU":
        send(producer, "x", topic=topic)
    lab.run_for(seconds=6)
    noted = [[c.trace_beans[0].topic for c in decode_contexts(m.body.decode())] for m in trace_messages(lab)]
    assert sorted(noted) == [["T", "T"], ["U", "U"]]


def test_a_client_that_leaves_sends_what_it_has_noted(lab: Lab) -> None:
    producer = started_producer(lab, enable_trace=True)
    consumer = started_consumer(lab, enable_trace=True)
    send(producer, "x")
    lab.run_for(seconds=2)
    consumer.shutdown().play()
    producer.shutdown().play()
    lab.run_for(seconds=1)
    assert [context.trace_type.value for context in records(lab)] == ["SubBefore", "SubAfter", "Pub"]
    assert dispatcher_of(producer).trace_producer.impl.service_state.value == "SHUTDOWN_ALREADY"


def test_a_topic_of_ones_own_is_made_like_any_other_and_traces_are_not_traced(lab: Lab) -> None:
    producer = started_producer(lab, enable_trace=True, trace_topic="MyTraces")
    send(producer, "x")
    send(producer, "y", topic="MyTraces")
    lab.run_for(seconds=6)
    bodies = [message.body for queue_id in range(4) for message in trace_messages(lab, "MyTraces", queue_id)]
    assert b"y" in bodies
    [noted] = [context for body in bodies if body != b"y" for context in decode_contexts(body.decode())]
    assert noted.trace_beans[0].topic == "T"


def test_without_a_broker_that_has_the_topic_traces_are_lost() -> None:
    lab = shop(auto_create_topic_enable=False)
    producer = started_producer(lab, enable_trace=True)
    send(producer, "x")
    lab.run_for(seconds=6)
    [reason] = lost(lab)
    assert "No route info of this topic: RMQ_SYS_TRACE_TOPIC" in reason


def test_more_notes_than_there_is_room_for_are_lost_and_counted(lab: Lab) -> None:
    producer = started_producer(lab, enable_trace=True)
    dispatcher = dispatcher_of(producer)
    context = TraceContext(TraceType.PUB, trace_beans=[TraceBean("T", "id")])
    assert [dispatcher.append(context) for _ in range(2_049)].count(False) == 1
    assert dispatcher.discard_count == 1
    assert lost(lab) == ["buffer full 1"]
    lab.run_for(seconds=1)
    assert len(dispatcher.trace_context_queue) == 2_048 % 10
    lab.run_for(seconds=5)
    assert not dispatcher.trace_context_queue


def test_a_text_that_is_too_long_for_a_message_is_refused_by_the_producer(lab: Lab) -> None:
    producer = started_producer(lab, enable_trace=True)
    dispatcher = dispatcher_of(producer)
    for _ in range(3):
        dispatcher.append(TraceContext(TraceType.PUB, trace_beans=[TraceBean("T", "i", tags="t" * 70_000)]))
    lab.run_for(seconds=6)
    [reason] = lost(lab)
    assert "the message body size over max value, MAX: 128000" in reason
    assert [len(decode_contexts(message.body.decode())) for message in trace_messages(lab)] == [1]


# -- the life of a process ------------------------------------------------------------------------------------------


def test_all_clients_of_a_process_share_the_instance_that_sends_traces(lab: Lab) -> None:
    first = started_producer(lab, enable_trace=True)
    second = started_producer(lab, "second", node=first.node.name, enable_trace=True)
    producers = [dispatcher_of(client).trace_producer for client in (first, second)]
    assert [producer.producer_group for producer in producers] == [
        "_INNER_TRACE_PRODUCER-shop-PRODUCE-1", "_INNER_TRACE_PRODUCER-second-PRODUCE-2",
    ]  # fmt: skip
    assert producers[0].impl.instance is producers[1].impl.instance
    assert producers[0].impl.instance.client_id == "10.0.0.3@PID_CLIENT_INNER_TRACE_PRODUCER_10.0.0.1:9876"


def test_a_process_that_was_killed_traces_again_and_keeps_other_hooks(lab: Lab) -> None:
    producer = started_producer(lab, enable_trace=True)
    consumer = started_consumer(lab, enable_trace=True)
    own, own_of_consumer = SendMessageHook(), ConsumeMessageHook()
    producer.register_send_message_hook(own)
    consumer.register_consume_message_hook(own_of_consumer)
    for node in (producer.node.name, consumer.node.name):
        lab.crash(node)
        lab.restart(node)
    lab.run_for(seconds=2)
    send(producer, "x")
    lab.run_for(seconds=12)
    assert [hook.name for hook in producer.send_message_hooks] == ["SendMessageHook", "SendMessageTraceHook"]
    assert len(consumer.consume_message_hooks) == 2
    assert sorted(context.trace_type.value for context in records(lab)) == ["Pub", "SubAfter", "SubBefore"]


def test_a_world_without_traces_has_nothing_of_them(lab: Lab) -> None:
    producer = started_producer(lab)
    send(producer, "x")
    assert producer.trace_dispatcher is None
    assert not producer.send_message_hooks
