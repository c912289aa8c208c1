"""The Lab builds worlds, plays them, steps them and breaks them."""

from __future__ import annotations

from threading import Event, Thread
from typing import Any

import pytest

from mqlab import ConsumeConcurrentlyStatus, DefaultMQProducer, Lab, LinkSpec, Message
from mqlab.errors import LearnerError, SimulationError
from mqlab.trace.events.world import ActionTaken
from tests.worlds import noting, send, shop, started_consumer, started_producer


def cluster(**options: Any) -> Lab:
    return shop(topic="TopicTest", **options)


@pytest.fixture
def lab() -> Lab:
    return cluster()


@pytest.fixture
def producer(lab: Lab) -> DefaultMQProducer:
    return started_producer(lab)


def test_a_message_goes_from_send_to_the_listener(lab: Lab) -> None:
    bodies: list[bytes] = []
    started_consumer(lab, noting(bodies), topic="TopicTest")
    lab.run_for(seconds=3)
    lab.run(started_producer(lab).send(Message("TopicTest", b"hello", tags="TagA")))
    lab.run_for(ms=50)
    assert bodies == [b"hello"]


def test_the_same_code_and_seed_give_the_same_trace() -> None:
    def play() -> str:
        lab = cluster()
        lab.run(started_producer(lab).send(Message("TopicTest", b"hello")))
        return lab.run_for(seconds=2).trace_hash()

    assert play() == play()


def test_step_plays_one_slice_and_step_event_moves_the_cursor_by_one(lab: Lab) -> None:
    before = lab.world.slice_no
    lab.step()
    assert lab.world.slice_no == before + 1
    place = lab.history.cursor
    record = lab.step_event()
    assert lab.history.cursor == place + 1
    assert lab.history.record(place) == record


def test_stepping_notes_the_line_that_emitted_an_event(lab: Lab) -> None:
    record = lab.step_event()
    assert record.ts_ms >= 20, "the cursor stood at the end, where the last run left it"
    source = lab.source_of(record)
    assert source.file.startswith("mqlab/")
    assert record.kind in str(source)
    assert f">{source.line}" in source._repr_html_().replace(" ", "")
    lab.run_for(seconds=40)
    with pytest.raises(LearnerError, match="only stepping notes it"):
        lab.source_of(lab.history.record(len(lab.history) - 1))


def test_a_breakpoint_stops_the_run_at_its_event(lab: Lab, producer: DefaultMQProducer) -> None:
    with lab.break_on("MessageStored", topic="TopicTest") as breakpoint_:
        lab.run(producer.send(Message("TopicTest", b"hello")))
    assert breakpoint_.hits == 1
    assert lab.stopped_at is not None
    assert lab.stopped_at.kind == "MessageStored"


def test_run_until_event_returns_the_event_and_leaves_no_breakpoint_behind(lab: Lab) -> None:
    record = lab.run_until_event("RequestReceived")
    assert record.kind == "RequestReceived"
    assert len(list(lab.world.hooks.sinks)) == 1


def test_run_until_event_goes_through_the_breakpoints_that_come_first(lab: Lab, producer: DefaultMQProducer) -> None:
    first = lab.add_breakpoint("SendAttempted")
    producer.send(Message("TopicTest", b"hello")).start()
    stored = lab.run_until_event("MessageStored", topic="TopicTest")
    assert (stored.kind, first.hits) == ("MessageStored", 1)
    assert lab.stopped_at == stored


def test_run_until_event_names_its_limit_whatever_breakpoints_came_before() -> None:
    """It named what was left of the limit when the last breakpoint was hit, and lost a part of a ms at each."""
    lab = Lab(seed=7)
    for ms in (30.5, 70.25):
        lab.node(f"node-{ms:g}").call_later(ms, lambda: lab.world.hooks.emit(ActionTaken("begin", "")))
    with lab.break_on("ActionTaken") as breakpoint_, pytest.raises(SimulationError, match="did not come within 100 ms"):
        lab.run_until_event("MessageStored", limit_ms=100)
    assert (breakpoint_.hits, lab.now_ms) == (2, 100)


def test_run_until_event_says_that_somebody_stopped_the_world(lab: Lab) -> None:
    lab.world.nodes["broker-a"].call_later(5, lab.world.request_stop)
    with pytest.raises(LearnerError, match="stopped before an event MessageStored came"):
        lab.run_until_event("MessageStored")


def test_an_event_of_the_very_last_slice_is_found() -> None:
    lab = Lab(seed=7)
    lab.node("alone").call_later(1, lambda: lab.world.hooks.emit(ActionTaken("done", "")))
    assert lab.run_until_event("ActionTaken").verb == "done"


@pytest.mark.parametrize("too_long", [{"seconds": 1e30}, {"ms": 1e12}])
def test_a_time_that_could_never_be_played_is_refused(too_long: dict[str, float]) -> None:
    with pytest.raises(LearnerError, match=r"(?s)days are more than can be played.*1,000 days"):
        cluster().run_for(**too_long)


def test_a_number_that_no_clock_could_hold_is_refused() -> None:
    with pytest.raises(LearnerError, match="is not a number from 0 up"):
        cluster().run_for(seconds=10**400)


@pytest.mark.parametrize("limit_ms", [0.5, float("nan"), "3", -1, True])
def test_a_limit_is_a_whole_number_of_ms(lab: Lab, limit_ms: Any) -> None:
    start = lab.producer("g").start()
    for wait in (
        lambda: lab.run_until(lambda: False, limit_ms=limit_ms),
        lambda: lab.run_until_event("MessageStored", limit_ms=limit_ms),
        lambda: lab.run(start, limit_ms),
    ):
        with pytest.raises(LearnerError, match=r"(?s)limit_ms=.*write limit_ms=60_000"):
            wait()
    lab.run(start)
    assert type(lab.world.now_us) is int


def test_a_thread_that_comes_meanwhile_does_not_hide_why_the_world_stopped(lab: Lab) -> None:
    node, hooks = lab.world.nodes["broker-a"], lab.world.hooks
    lab.add_breakpoint("ActionTaken")
    came = Event()
    other = Thread(target=lambda: (came.wait(10), lab.run_for(0)))

    def long_slice() -> None:
        hooks.emit(ActionTaken("first", ""))
        came.set()
        other.join(0.02)

    node.call_soon(long_slice)
    node.call_later(1, lambda: hooks.emit(ActionTaken("second", "")))
    other.start()
    assert lab.run_until_event("ActionTaken", verb="second").verb == "second"
    other.join(10)
    assert not other.is_alive()


def test_an_unknown_event_kind_is_answered_with_the_near_ones() -> None:
    with pytest.raises(LearnerError, match="MessageStored"):
        cluster().add_breakpoint("MesageStored")


def test_an_unknown_setting_is_answered_with_the_near_ones() -> None:
    lab = Lab()
    lab.name_server()
    with pytest.raises(LearnerError, match="long_polling_enable"):
        lab.broker("broker-a", long_poling_enable=False)


def test_a_client_without_a_name_server_is_told_what_is_missing() -> None:
    with pytest.raises(LearnerError, match=r"lab\.name_server"):
        Lab().producer("orders")


def test_two_nodes_cannot_have_one_name(lab: Lab) -> None:
    with pytest.raises(LearnerError, match="already"):
        lab.broker("broker-a")


def test_a_crashed_broker_restarts_with_its_messages(lab: Lab, producer: DefaultMQProducer) -> None:
    lab.run(producer.send(Message("TopicTest", b"kept")))
    lab.crash("broker-a")
    assert lab.brokers[0].state == "down"
    with pytest.raises(LearnerError, match="is down"):
        _ = lab.brokers[0].store
    lab.restart("broker-a")
    lab.run_for(seconds=1)
    assert lab.queue("TopicTest").max_offset == 1


def test_a_restarted_client_machine_starts_what_was_running_with_its_present_settings(lab: Lab) -> None:
    bodies: list[bytes] = []
    consumer = started_consumer(lab, noting(bodies), topic="TopicTest")
    consumer.pull_batch_size = 7
    never_started = lab.producer("sleepers", node="consumer-1")
    first_instance = consumer.instance_name
    lab.run_for(seconds=3)
    lab.restart("consumer-1")
    lab.run_for(seconds=3)
    assert consumer.pull_batch_size == 7
    assert consumer.instance_name != first_instance
    assert str(never_started.impl.service_state) == "CREATE_JUST"
    lab.run(started_producer(lab).send(Message("TopicTest", b"after")))
    lab.run_for(ms=50)
    assert bodies == [b"after"]


def test_a_wait_that_never_ends_says_who_waits_for_what(lab: Lab) -> None:
    with pytest.raises(SimulationError, match="Who waits for what"):
        lab.run_until(lambda: False, limit_ms=1_000)


def test_encoding_every_command_changes_nothing_that_can_be_seen() -> None:
    def play(wire: str) -> str:
        lab = cluster(wire=wire)
        started_consumer(lab, topic="TopicTest")
        lab.run(started_producer(lab).send(Message("TopicTest", b"hello", keys="k1")))
        return lab.run_for(seconds=20).trace_hash()

    assert play("objects") == play("bytes")


def test_inspectors_show_topics_routes_queues_and_held_pulls(lab: Lab) -> None:
    started_consumer(lab, topic="TopicTest")
    lab.run_for(seconds=3)
    lab.run(started_producer(lab).send(Message("TopicTest", b"hello")))
    lab.run_for(ms=50)
    assert "TopicTest" in str(lab.topics())
    assert "broker-a" in str(lab.routes("TopicTest"))
    assert "TOPIC_NOT_EXIST" in str(lab.routes("Nowhere"))
    assert {row[2] for row in lab.held_pulls().rows} == {"TopicTest"}
    queue = lab.queue("TopicTest")
    assert queue.record(0)["body"].value == "hello"
    assert queue.entry(0)["physicalOffset"].value.startswith(str(int.from_bytes(queue.entry_bytes(0)[:8], "big")))
    with pytest.raises(LearnerError, match="has no message 1"):
        queue.entry(1)
    with pytest.raises(LearnerError, match="has no queue 9"):
        lab.queue("TopicTest", 9)


def test_a_diagram_draws_each_request_as_an_arrow_between_two_lanes(lab: Lab, producer: DefaultMQProducer) -> None:
    start = lab.now_ms
    lab.run(producer.send(Message("TopicTest", b"hello")))
    diagram = lab.space_time(start, requests=["SEND_MESSAGE_V2"])
    assert "SEND_MESSAGE_V2" in str(diagram)
    assert diagram.lanes == ["producer-1", "broker-a"]
    svg = diagram.svg()
    assert svg.count('class="arrow"') == 2
    assert svg.startswith("<svg")


def test_a_listener_that_raises_is_told_once_for_each_error(lab: Lab) -> None:
    def listener(messages: list[Any], context: Any) -> ConsumeConcurrentlyStatus:
        raise KeyError("no such order")

    started_consumer(lab, listener, topic="TopicTest")
    producer = started_producer(lab)
    send(producer, *[b"hello"] * 3, topic="TopicTest")
    with pytest.warns(UserWarning, match="raised KeyError: 'no such order' in line") as told:
        lab.run_for(seconds=5)
    assert len(told) == 1
    assert "comes again later" in str(told[0].message)


def test_a_node_needs_a_name_that_a_file_could_have() -> None:
    with pytest.raises(LearnerError, match="is not a name for a node"):
        Lab().name_server("name server/1")


def test_a_forgotten_await_says_so(producer: DefaultMQProducer) -> None:
    call = producer.send(Message("TopicTest", b"hello"))
    assert repr(call).startswith("not awaited: producer.send(...)")
    with pytest.warns(UserWarning, match="was never awaited"):
        del call


def test_a_link_is_as_slow_as_the_lab_says() -> None:
    lab = Lab(seed=7)
    lab.name_server()
    lab.broker("broker-a")
    lab.create_topic("T", 1)
    producer = lab.producer("shop", node="far-away")
    lab.link("far-away", "broker-a", LinkSpec(30_000, 30_000))
    lab.run(producer.start())
    lab.run(producer.send(Message("T", b"hello")))
    before_ms = lab.now_ms
    lab.run(producer.send(Message("T", b"hello")))
    assert 60 <= lab.now_ms - before_ms < 63
