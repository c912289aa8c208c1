"""Whatever is wrong with what a world is given, it ends in RocketMQ's error, or in one that says what to do."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from mqlab import ConsumeConcurrentlyStatus, DefaultMQProducer, Lab, Message
from mqlab.client import MessageModel, MessageQueue
from mqlab.errors import LearnerError, MQBrokerException, MQClientException, SimulationError
from mqlab.protocol import RemotingCommand, RequestCode, ResponseCode
from mqlab.sim import NodeSpec
from mqlab.store import StoreError
from tests import worlds
from tests.worlds import noting, send, started_consumer, started_producer

SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
LOG = "store/commitlog/00000000000000000000"
SMALL_LOG_BYTES = 65_536


def shop(**broker: Any) -> tuple[Lab, DefaultMQProducer]:
    """A name server, a broker with a topic T of one queue, and a started producer."""
    lab = worlds.shop(**broker)
    return lab, started_producer(lab)


@pytest.fixture
def lab() -> Lab:
    return worlds.shop()


@pytest.fixture
def producer(lab: Lab) -> DefaultMQProducer:
    return started_producer(lab)


def consume_one(listener: Any) -> Lab:
    """A world in which a listener gets one message, 20 s long."""
    lab, producer = shop()
    started_consumer(lab, listener)
    lab.run(producer.send(Message("T", "x")))
    return lab.run_for(seconds=20)


def stored(lab: Lab) -> int:
    return len(list(lab.history.find("MessageStored")))


# -- names and kinds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topic", "text"),
    [
        ("", "The specified topic is blank"),
        (None, "The specified topic is blank"),
        ("a b", r"The specified topic\[a b\] contains illegal characters"),
        ("订单", r"The specified topic\[订单\] contains illegal characters"),
        ("t" * 128, "The specified topic is longer than topic max length 127."),
    ],
)
def test_a_wrong_topic_name_is_refused_when_sending_and_when_creating(
    lab: Lab, producer: DefaultMQProducer, topic: Any, text: str
) -> None:
    with pytest.raises(MQClientException, match=text):
        lab.run(producer.send(Message(topic, b"x")))
    with pytest.raises(MQClientException, match=text):
        lab.create_topic(topic)
    assert stored(lab) == 0


def test_the_topics_that_rocketmq_keeps_for_itself_are_refused(lab: Lab, producer: DefaultMQProducer) -> None:
    with pytest.raises(MQClientException, match=r"Sending message to topic\[SCHEDULE_TOPIC_XXXX\] is forbidden"):
        lab.run(producer.send(Message("SCHEDULE_TOPIC_XXXX", b"x")))
    with pytest.raises(MQClientException, match=r"The topic\[TBW102\] is conflict with system topic"):
        lab.create_topic("TBW102")


def test_a_topic_is_created_with_queues_and_settings_that_there_are_on_brokers_that_there_are(lab: Lab) -> None:
    for queues in (0, -1, "4"):
        with pytest.raises(LearnerError, match=r"cannot have .* queues"):
            lab.create_topic("U", queues)  # type: ignore[arg-type]  # the mistake under test
    with pytest.raises(LearnerError, match="did you mean perm"):
        lab.create_topic("U", perms=6)
    with pytest.raises(LearnerError, match="choose among broker-a"):
        lab.create_topic("U", brokers=["broker-z"])


def test_without_auto_creation_an_unknown_topic_has_no_route() -> None:
    lab, producer = shop(auto_create_topic_enable=False)
    with pytest.raises(MQClientException, match=r"No route info of this topic: Nowhere. What to do: create the topic"):
        lab.run(producer.send(Message("Nowhere", b"x")))


def test_a_consumer_of_an_unknown_topic_waits_and_the_trace_says_why(lab: Lab) -> None:
    started_consumer(lab, topic="Nowhere")
    lab.run_for(seconds=25)
    reasons = {record.reason for record in lab.history.find("RebalanceSkipped", topic="Nowhere")}
    assert reasons == {"no queues of the topic are known"}


def test_what_is_no_text_is_no_name(lab: Lab) -> None:
    with pytest.raises(LearnerError, match="the topic of a message is a text, not int"):
        Message(5, b"x")  # type: ignore[arg-type]  # the mistake under test
    with pytest.raises(LearnerError, match="the name of a group is a text, not NoneType"):
        lab.consumer(None)  # type: ignore[arg-type]  # the mistake under test
    with pytest.raises(LearnerError, match="the name of a group is a text, not int"):
        lab.producer(5)  # type: ignore[arg-type]  # the mistake under test
    with pytest.raises(LearnerError, match="a consumer subscribes to a text"):
        lab.consumer("readers").subscribe(None, "*")  # type: ignore[arg-type]  # the mistake under test
    with pytest.raises(LearnerError, match="a consumer subscribes to a text"):
        lab.consumer("readers").subscribe("T", ["TagA"])  # type: ignore[arg-type]  # the mistake under test


def test_what_is_no_message_is_not_sent(lab: Lab, producer: DefaultMQProducer) -> None:
    for nonsense, kind in (("hello", "str"), (5, "int"), ([5], "list")):
        with pytest.raises(LearnerError, match=f"a producer sends messages, not {kind}"):
            lab.run(producer.send(nonsense))  # type: ignore[arg-type]  # the mistake under test
    with pytest.raises(LearnerError, match="a producer sends messages, not str"):
        lab.run(producer.send_oneway("hello"))  # type: ignore[arg-type]  # the mistake under test
    with pytest.raises(MQClientException, match="CODE: 13  DESC: the message is null"):
        lab.run(producer.send(None))  # type: ignore[arg-type]  # the mistake under test
    with pytest.raises(LearnerError, match="the body of a message is bytes, not int"):
        Message("T", 5)  # type: ignore[arg-type]  # the mistake under test


# -- sizes ----------------------------------------------------------------------------------------------------------


def test_an_oversized_message_is_refused_by_the_producer_and_else_by_the_broker(
    lab: Lab, producer: DefaultMQProducer
) -> None:
    body = b"x" * (4 * 1024 * 1024 + 1)
    with pytest.raises(MQClientException, match="CODE: 13  DESC: the message body size over max value, MAX: 4194304"):
        lab.run(producer.send(Message("T", body)))
    careless = started_producer(lab, "careless", max_message_size=1 << 23, compress_msg_body_over_howmuch=1 << 30)
    with pytest.raises(MQBrokerException, match="msg body length limit 4194304B") as caught:
        lab.run(careless.send(Message("T", body)))
    assert caught.value.response_code == ResponseCode.MESSAGE_ILLEGAL
    assert stored(lab) == 0


def test_properties_of_more_than_32_kb_are_refused_by_the_broker(lab: Lab, producer: DefaultMQProducer) -> None:
    with pytest.raises(MQBrokerException, match="msg properties length limit 32KB"):
        lab.run(producer.send(Message("T", b"x", keys="k" * 40_000)))


def test_a_batch_is_measured_as_a_whole(lab: Lab, producer: DefaultMQProducer) -> None:
    with pytest.raises(MQClientException, match="the message body size over max value"):
        lab.run(producer.send([Message("T", b"x" * 3_000_000), Message("T", b"x" * 3_000_000)]))
    with pytest.raises(MQClientException, match="messages can not be null or empty"):
        lab.run(producer.send([]))


# -- starts ---------------------------------------------------------------------------------------------------------


def test_clients_start_once(lab: Lab, producer: DefaultMQProducer) -> None:
    reader = started_consumer(lab)
    with pytest.raises(MQClientException, match=r"maybe started once, RUNNING. What to do: start a consumer once"):
        lab.run(reader.start())
    with pytest.raises(MQClientException, match=r"maybe started once, RUNNING. What to do: start a producer once"):
        lab.run(producer.start())
    with pytest.raises(MQClientException, match=r"await producer.start\(\) first"):
        lab.run(lab.producer("other").send(Message("T", b"x")))


def test_one_instance_has_a_group_once(lab: Lab) -> None:
    together = {"node": "machine", "instance_name": "one"}
    started_consumer(lab, **together)
    with pytest.raises(MQClientException, match=r"The consumer group\[readers\] has been created before"):
        started_consumer(lab, **together)


def test_a_process_starts_once_and_the_running_one_stays(lab: Lab, producer: DefaultMQProducer) -> None:
    lab.start("broker-a")
    with pytest.raises(LearnerError, match=r"broker-a runs already\n  What to do: lab.restart\('broker-a'\)"):
        lab.run_for(ms=1)
    assert lab.brokers[0].state == "running"
    lab.run(producer.send(Message("T", b"x")))


def test_a_process_that_ended_can_be_started(lab: Lab, producer: DefaultMQProducer) -> None:
    lab.crash("broker-a")
    lab.start("broker-a")
    lab.run_for(seconds=1)
    assert lab.brokers[0].state == "running"
    assert lab.run(producer.send(Message("T", b"x"))).send_status.name == "SEND_OK"


@pytest.mark.parametrize("group", ["", " ", "a b", "g" * 256, "DEFAULT_CONSUMER"])
def test_a_wrong_group_name_is_refused_at_the_start(lab: Lab, group: str) -> None:
    with pytest.raises(MQClientException, match=r"the specified group|consumerGroup can not equal DEFAULT_CONSUMER"):
        started_consumer(lab, group=group)


def test_an_unknown_group_gets_nothing_where_groups_are_not_created_and_the_trace_says_why() -> None:
    lab, producer = shop(auto_create_subscription_group=False)
    started_consumer(lab)
    lab.run(producer.send(Message("T", b"x")))
    lab.run_for(seconds=5)
    assert list(lab.history.find("ConsumeStarted")) == []
    (skipped, *_) = lab.history.find("RebalanceSkipped", topic="T")
    assert "no consumer for this group, readers" in skipped.reason


# -- the commit log -------------------------------------------------------------------------------------------------


def killed_with_five_messages() -> tuple[Lab, Any]:
    lab, producer = shop(mapped_file_size_commit_log=SMALL_LOG_BYTES)
    send(producer, *(f"m{number}" for number in range(5)))
    lab.crash("broker-a")
    return lab, lab.world.nodes["broker-a"].disk


def test_a_truncated_log_file_is_refused_and_restored_it_is_read() -> None:
    lab, disk = killed_with_five_messages()
    good = disk.read_bytes(LOG)
    disk.open(LOG).truncate(700)
    lab.restart("broker-a")
    with pytest.raises(StoreError, match=r"has 700 bytes, all files here must have 65536\n  What to do: restore"):
        lab.run_for(seconds=1)
    assert lab.brokers[0].state == "down"
    with pytest.raises(LearnerError, match="broker-a is down"):
        _ = lab.brokers[0].store
    disk.write_bytes(LOG, good)
    lab.restart("broker-a")
    lab.run_for(seconds=1)
    assert lab.queue("T").max_offset == 5


@pytest.mark.parametrize(
    ("at", "what", "left", "reason"),
    [
        (300, b"\xff\xff\xff\xff", 1, "its parts take"),
        (0, bytes(range(256)), 0, "its total size is 66051"),
    ],
)
def test_a_damaged_log_ends_before_the_damage_and_says_why(at: int, what: bytes, left: int, reason: str) -> None:
    lab, disk = killed_with_five_messages()
    disk.open(LOG).write(at, what)
    lab.restart("broker-a")
    lab.run_for(seconds=1)
    recovered = list(lab.history.find("StoreRecovered"))[-1]
    assert (recovered.records, recovered.clean) == (left, False)
    assert recovered.cut_bytes > 0
    assert reason in recovered.reason
    assert lab.queue("T").max_offset == left


def test_a_file_that_does_not_belong_into_the_log_is_named() -> None:
    lab, disk = killed_with_five_messages()
    disk.write_bytes("store/commitlog/notes.txt", b"do not forget")
    lab.restart("broker-a")
    with pytest.raises(StoreError, match=r"notes\.txt: its name is not an offset of 20 digits"):
        lab.run_for(seconds=1)
    disk.remove("store/commitlog/notes.txt")
    lab.restart("broker-a")
    lab.run_for(seconds=1)
    assert lab.queue("T").max_offset == 5


# -- commands -------------------------------------------------------------------------------------------------------


def say(lab: Lab, frame: bytes) -> list[Any]:
    """Send bytes to the broker from a machine of our own; what it answers."""
    stranger = lab.node("stranger")
    heard: list[Any] = []

    async def speak() -> None:
        endpoint = await stranger.connect("10.0.0.2:10911", 3_000)
        endpoint.on_frame = heard.append
        endpoint.send(frame)

    stranger.spawn(speak(), "stranger")
    lab.run_for(seconds=1)
    return heard


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "a frame of 1195725860 bytes is over the limit of 16777216"),
        (b"\x00\x00\x00\x02\x00\x00", "the length field says 2 bytes, a frame has at least 4 after it"),
        (b'\x00\x00\x00\x09\x00\x00\x00\x05{"a":', "the JSON header cannot be read"),
    ],
)
def test_bytes_that_are_no_command_close_the_connection_and_trouble_nobody_else(
    lab: Lab, producer: DefaultMQProducer, frame: bytes, reason: str
) -> None:
    assert say(lab, frame) == []
    (refused,) = lab.history.find("FrameRefused")
    assert refused.node == "broker-a"
    assert refused.reason.startswith(reason)
    (closed, *_) = lab.history.find("ConnectionClosed")
    assert closed.node == "broker-a"
    lab.run(producer.send(Message("T", b"x")))


@pytest.mark.parametrize(
    ("request_", "code", "remark"),
    [
        (RemotingCommand.request(9_999), ResponseCode.REQUEST_CODE_NOT_SUPPORTED, "request type 9999 not supported"),
        (RemotingCommand.request(RequestCode.PULL_MESSAGE), ResponseCode.SYSTEM_ERROR, "PullMessageRequestHeader"),
        (RemotingCommand.request(RequestCode.HEART_BEAT, body=b"[1]"), ResponseCode.SYSTEM_ERROR, "a list, not an obj"),
        (RemotingCommand.request(RequestCode.HEART_BEAT, body=b"{"), ResponseCode.SYSTEM_ERROR, "HeartbeatData"),
    ],
)
def test_a_command_that_makes_no_sense_is_answered_with_an_error(
    lab: Lab, producer: DefaultMQProducer, request_: Any, code: int, remark: str
) -> None:
    (answer,) = say(lab, request_.encode())
    assert answer.code == code
    assert remark in answer.remark
    lab.run(producer.send(Message("T", b"x")))


# -- calls ----------------------------------------------------------------------------------------------------------


def test_a_call_without_await_warns_that_it_never_happened(lab: Lab, producer: DefaultMQProducer) -> None:
    with pytest.warns(UserWarning, match=r"producer.send\(...\) was never awaited, so it never happened"):
        producer.send(Message("T", b"x"))
    assert stored(lab) == 0


@pytest.mark.filterwarnings("always")
def test_a_listener_that_forgets_an_await_is_told(lab: Lab, producer: DefaultMQProducer) -> None:
    async def forgetful(messages: Any, context: Any) -> Any:
        context.sleep(100)
        producer.send(Message("Other", b"x"))
        return SUCCESS

    started_consumer(lab, forgetful)
    lab.run(producer.send(Message("T", b"x")))
    with pytest.warns() as caught:
        lab.run_for(seconds=3)
    texts = [str(warning.message) for warning in caught]
    assert "coroutine 'ConsumeConcurrentlyContext.sleep' was never awaited" in texts
    assert any(text.startswith("producer.send(...) was never awaited") for text in texts)


@pytest.mark.parametrize("what", ["producer.send", "send"])
def test_what_is_no_call_cannot_be_run(lab: Lab, producer: DefaultMQProducer, what: str) -> None:
    with pytest.raises(LearnerError, match=r"lab.run plays a call of mqlab, not .*\n  What to do: write lab.run\(prod"):
        lab.run(producer.send if what == "producer.send" else what)  # type: ignore[arg-type]  # the mistake under test


def test_a_call_is_awaited_once(lab: Lab, producer: DefaultMQProducer) -> None:
    call = producer.send(Message("T", b"x"))
    lab.run(call)
    with pytest.raises(LearnerError, match="was awaited already"):
        lab.run(call)
    assert stored(lab) == 1


# -- listeners ------------------------------------------------------------------------------------------------------


def bad_value(messages: Any, context: Any) -> Any:
    raise ValueError("no such order")


def takes_one_argument(messages: Any) -> Any:
    return SUCCESS


def changes_the_list(messages: Any, context: Any) -> Any:
    messages.clear()
    return SUCCESS


@pytest.mark.parametrize(
    ("listener", "status"),
    [
        (bad_value, "ValueError: no such order"),
        (changes_the_list, "AttributeError: 'tuple' object has no attribute 'clear'"),
        (lambda messages, context: None, "None"),
    ],
)
def test_a_listener_that_raises_gets_the_message_again_and_the_trace_says_what_it_raised(
    listener: Any, status: str
) -> None:
    lab = consume_one(listener)
    (first, *_) = lab.history.find("ConsumeFinished")
    assert first.status == status
    (given_back, *_) = lab.history.find("MessageGivenBack")
    assert given_back.msg_id == first.msg_id


@pytest.mark.parametrize("answer", [True, "CONSUME_SUCCESS", 0])
def test_a_listener_that_returns_no_status_is_a_loud_error(answer: object) -> None:
    told = r"the listener of group 'readers' returned .*\n  What to do: return ConsumeConcurrentlyStatus"
    with pytest.raises(LearnerError, match=told):
        consume_one(lambda messages, context: answer)


def test_a_coroutine_listener_that_returns_no_status_is_a_loud_error() -> None:
    async def listener(messages: Any, context: Any) -> Any:
        return True

    with pytest.raises(LearnerError, match="the listener of group 'readers' returned True"):
        consume_one(listener)


def test_a_listener_with_other_arguments_is_refused_before_it_is_called(lab: Lab) -> None:
    with pytest.raises(LearnerError) as refused:
        lab.consumer("readers").register_message_listener(takes_one_argument)  # type: ignore[arg-type]  # the mistake
    assert str(refused.value) == (
        "the listener of group 'readers' is called with (messages, context), but takes_one_argument takes (messages)\n"
        "  What to do: write def takes_one_argument(messages, context):"
    )
    with pytest.raises(LearnerError, match=r"write lambda messages, context: \.\.\."):
        lab.consumer("others").register_message_listener(lambda messages: SUCCESS)  # type: ignore[arg-type,misc]
    with pytest.raises(LearnerError, match="the pull task of group 'pulling' is called with"):
        lab.pull_schedule_service("pulling").register_pull_task_callback("T", takes_one_argument)  # type: ignore[arg-type]


@pytest.mark.parametrize("change", [lambda offset: 99, lambda offset: 1 - offset])
def test_a_listener_that_changes_the_offset_of_a_message_is_a_loud_error(
    lab: Lab, producer: DefaultMQProducer, change: Any
) -> None:
    for body in (b"a", b"b"):
        lab.run(producer.send(Message("T", body), queue=MessageQueue("T", "broker-a", 0)))

    def listener(messages: Any, context: Any) -> Any:
        messages[0].queue_offset = change(messages[0].queue_offset)
        return SUCCESS

    started_consumer(lab, listener)
    with pytest.raises(LearnerError, match=r"a listener changed queue_offset of the message at 0 of queue 0 of T to "):
        lab.run_for(seconds=5)


def test_what_is_no_listener_is_refused(lab: Lab) -> None:
    with pytest.raises(LearnerError, match="is not a listener"):
        lab.consumer("readers").register_message_listener("print")  # type: ignore[arg-type]  # the mistake under test
    with pytest.raises(MQClientException, match=r"messageListener is null. What to do"):
        lab.run(lab.consumer("others").start())


# -- the real world -------------------------------------------------------------------------------------------------


def sleeps(messages: Any, context: Any) -> Any:
    time.sleep(0.001)
    return SUCCESS


def starts_a_thread(messages: Any, context: Any) -> Any:
    threading.Thread(target=print).start()
    return SUCCESS


@pytest.mark.parametrize(
    ("listener", "text"),
    [
        (sleeps, r"'ConsumeMessageThread_readers' on consumer-1 called time.sleep.*Use 'await ctx.sleep"),
        (starts_a_thread, r"'ConsumeMessageThread_readers' on consumer-1 started a real thread.*Use 'node.spawn"),
    ],
)
def test_a_real_sleep_or_thread_inside_the_world_stops_it_and_names_the_task(listener: Any, text: str) -> None:
    with pytest.raises(SimulationError, match=text):
        consume_one(listener)


def test_waiting_for_asyncio_inside_the_world_stops_it_and_names_the_task() -> None:
    async def listener(messages: Any, context: Any) -> Any:
        await asyncio.sleep(0.001)
        return SUCCESS

    async def cell() -> None:
        consume_one(listener)

    with pytest.raises(SimulationError, match=r"awaited _?asyncio.*which the world cannot play"):
        asyncio.run(cell())


# -- the disk -------------------------------------------------------------------------------------------------------


def fill(lab: Lab, producer: DefaultMQProducer) -> MQClientException:
    """Send until the disk is full; the error of the first send that fails."""
    for _ in range(100):
        try:
            lab.run(producer.send(Message("T", b"x" * 2_000)))
        except MQClientException as error:
            return error
    raise AssertionError("the disk did not fill")


def test_a_full_disk_refuses_messages_until_there_is_room(lab: Lab, producer: DefaultMQProducer) -> None:
    lab.act("fill_disk", node="broker-a", free_bytes=20_000)
    error = fill(lab, producer)
    assert error.response_code == ResponseCode.SERVICE_NOT_AVAILABLE
    assert "the broker's disk is full CL:" in str(error)
    lab.run_for(seconds=100)
    assert lab.brokers[0].state == "running"
    lab.act("fill_disk", node="broker-a", free_bytes=10_000_000)
    lab.run_for(seconds=20)
    lab.run(producer.send(Message("T", b"room again")))


def test_on_a_full_disk_what_is_stored_is_consumed_all_the_same(lab: Lab, producer: DefaultMQProducer) -> None:
    lab.act("fill_disk", node="broker-a", free_bytes=20_000)
    fill(lab, producer)
    bodies: list[bytes] = []
    started_consumer(lab, noting(bodies))
    lab.run_for(seconds=100)
    assert len(bodies) == lab.queue("T").max_offset > 0


def test_a_broker_that_has_no_room_for_its_queues_starts_and_makes_them_when_there_is_room() -> None:
    lab, disk = killed_with_five_messages()
    disk.rmtree("store/consumequeue")
    lab.act("fill_disk", node="broker-a")
    lab.restart("broker-a")
    lab.run_for(seconds=1)
    assert lab.brokers[0].state == "running"
    (stalled,) = lab.history.find("DispatchStalled")
    assert stalled.reason == "no space left for the entries of queues"
    assert lab.queue("T").max_offset == 0
    lab.act("fill_disk", node="broker-a", free_bytes=10_000_000)
    # The broker looks after its disk every ten seconds, first after a minute.
    lab.run_for(seconds=70)
    assert lab.queue("T").max_offset == 5


def test_a_broadcasting_consumer_with_a_full_disk_goes_on_with_the_offsets_in_its_memory(
    lab: Lab, producer: DefaultMQProducer
) -> None:
    bodies: list[bytes] = []
    reader = started_consumer(lab, noting(bodies), message_model=MessageModel.BROADCASTING)
    lab.run_for(seconds=3)
    lab.act("fill_disk", node=reader.node.name)
    for number in range(3):
        lab.run(producer.send(Message("T", f"m{number}")))
        lab.run_for(seconds=10)
    assert bodies == [b"m0", b"m1", b"m2"]
    assert list(lab.history.find("OffsetPersisted")) == []
    lab.act("fill_disk", node=reader.node.name, free_bytes=100_000)
    lab.run_for(seconds=10)
    assert [record.queue_offset for record in lab.history.find("OffsetPersisted", topic="T")][-1] == 3


def test_after_a_wrong_setting_the_corrected_cell_makes_the_same_world() -> None:
    lab = Lab(seed=7)
    wrong: dict[str, Any] = {"no_such_setting": 1}
    for make in (lab.name_server, lab.broker, lambda **settings: lab.broker("broker-x", **settings)):
        with pytest.raises(LearnerError, match="has no setting 'no_such_setting'"):
            make(**wrong)
        make()
    for client in (lab.producer, lab.consumer, lab.pull_consumer, lab.lite_pull_consumer, lab.pull_schedule_service):
        with pytest.raises(LearnerError, match="there is no setting 'no_such_setting'"):
            client("shop", **wrong)
        client("shop")
    undisturbed = Lab(seed=7)
    undisturbed.name_server()
    undisturbed.broker()
    undisturbed.broker("broker-x")
    undisturbed.producer("shop")
    for _ in range(4):
        undisturbed.consumer("shop")
    assert [(node.name, node.spec) for node in lab.world.nodes.values()] == [
        (node.name, node.spec) for node in undisturbed.world.nodes.values()
    ]
    assert lab.processes.keys() == lab.world.nodes.keys()
    assert lab.trace_hash() == undisturbed.trace_hash()


def test_a_machine_whose_address_is_taken_is_not_there() -> None:
    lab = Lab(seed=7)
    lab.node("a", NodeSpec("10.0.0.1"))
    with pytest.raises(LearnerError, match="b and a have the same address"):
        lab.node("b", NodeSpec("10.0.0.1"))
    assert lab.node("b", NodeSpec("10.0.0.2")).name == "b"


def test_freezing_and_thawing_what_is_not_so_is_told(lab: Lab) -> None:
    broker = lab.brokers[0].name
    with pytest.raises(LearnerError, match=rf"{broker} is not frozen\n.*lab\.freeze"):
        lab.thaw(broker)
    lab.freeze(broker)
    with pytest.raises(LearnerError, match=rf"{broker} is frozen already\n.*lab\.thaw"):
        lab.freeze(broker)
    lab.crash(broker)
    for act in (lab.freeze, lab.thaw):
        with pytest.raises(LearnerError, match=rf"{broker} is down\n.*lab\.restart"):
            act(broker)
        with pytest.raises(LearnerError, match="there is no node 'nobody'"):
            act("nobody")
    assert [action[2] for action in lab.actions] == ["freeze", "crash"]


@pytest.mark.parametrize("copies", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_lab_can_be_neither_pickled_nor_copied_and_says_what_to_do(lab: Lab, copies: Callable[[Any], Any]) -> None:
    with pytest.raises(LearnerError, match=r"neither pickled nor copied[\s\S]*same seed.*lab\.report.*replay"):
        copies(lab)


@pytest.mark.parametrize("copies", [pickle.dumps, copy.deepcopy])
def test_what_belongs_to_a_world_can_be_neither_pickled_nor_copied(lab: Lab, copies: Callable[[Any], Any]) -> None:
    node = lab.world.nodes[lab.brokers[0].name]
    for part in (lab.world, node, node.disk, lab.brokers[0], {"lab": lab}):
        with pytest.raises(LearnerError, match="neither pickled nor copied"):
            copies(part)
    assert copies(lab.history.record(3))
