"""Topics and groups are deleted, and progress is cloned, while consumers run."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import Lab
from mqlab.client import MessageQueue
from mqlab.protocol.codes import ResponseCode
from tests.broker.administrator import Admin
from tests.worlds import noting, send, shop, started_consumer, started_producer

QUEUE = MessageQueue("T", "broker-a", 0)


@pytest.fixture(params=["objects", "bytes"])
def lab(request: pytest.FixtureRequest) -> Lab:
    return shop(wire=request.param)


def progress(lab: Lab, group: str, topic: str = "T") -> dict[int, int]:
    controller = lab.brokers[0].controller
    assert controller is not None
    return controller.consumer_offset_manager.query_offsets(group, topic)


# -- cloning --------------------------------------------------------------------------------------------------------


def test_a_group_begins_where_another_one_is(lab: Lab) -> None:
    producer = started_producer(lab)
    started_consumer(lab)
    send(producer, "a", "b", "c")
    lab.run_for(seconds=16)
    assert progress(lab, "readers") == {0: 3}
    admin = Admin(lab)
    answer = admin.clone("readers", "heirs")
    assert (answer.code, answer.remark) == (0, None)
    assert progress(lab, "heirs") == {0: 3}
    send(producer, "d")
    seen: list[bytes] = []
    started_consumer(lab, noting(seen), group="heirs")
    lab.run_for(seconds=2)
    assert seen == [b"d"]
    cloned = [record for record in lab.history.find("OffsetCommitted") if record.origin == "cloned"]
    assert [(record.group, record.queue_id, record.queue_offset) for record in cloned] == [("heirs", 0, 3)]


def test_what_cannot_be_cloned_changes_nothing_and_is_a_success_all_the_same(lab: Lab) -> None:
    lab.create_topic("U", 1)
    started_consumer(lab)
    producer = started_producer(lab)
    send(producer, "a")
    lab.run_for(seconds=16)
    admin = Admin(lab)
    assert admin.clone("readers", "heirs", "None").code == 0
    assert admin.clone("nobody", "heirs").code == 0
    assert admin.clone("readers", "heirs", "U").code == 0, "it has no progress there"
    assert admin.clone("readers", "heirs", None).code == 0, "RocketMQ looks for a topic without a name"
    assert admin.clone("readers", "heirs", " ").code == 0
    assert progress(lab, "heirs") == progress(lab, "heirs", "U") == {}


def test_a_topic_that_the_source_has_given_up_is_cloned_only_offline(lab: Lab) -> None:
    consumer = started_consumer(lab)
    send(started_producer(lab), "a")
    lab.run_for(seconds=16)
    consumer.subscribe("U", "*")
    consumer.unsubscribe("T")
    consumer.impl.node.spawn(consumer.impl.instance.heartbeats.send_to_all_brokers(), "heartbeat")
    lab.run_for(seconds=1)
    admin = Admin(lab)
    admin.clone("readers", "heirs")
    assert progress(lab, "heirs") == {}
    admin.clone("readers", "heirs", offline=True)
    assert progress(lab, "heirs") == {0: 1}


# -- topics ---------------------------------------------------------------------------------------------------------


def test_a_blank_topic_is_no_topic(lab: Lab) -> None:
    answer = Admin(lab).delete_topic(" ")
    assert (answer.code, answer.remark) == (ResponseCode.INVALID_PARAMETER, "The specified topic is blank.")


def test_a_topic_that_is_deleted_under_its_consumer_is_pulled_in_vain_until_it_is_there_again(lab: Lab) -> None:
    seen: list[bytes] = []
    started_consumer(lab, noting(seen))
    producer = started_producer(lab)
    lab.run_for(seconds=2)
    send(producer, "a", "b", "c")
    lab.run_for(seconds=16)
    admin = Admin(lab)
    assert admin.delete_topic().code == 0
    assert progress(lab, "readers") == {}
    deleted_us = lab.world.now_us
    lab.run_for(seconds=25)
    refused = [r for r in lab.history.find("RequestRejected") if r.ts_us > deleted_us and r.code == 17]
    assert refused, "pulls are answered that there is no such topic"
    assert "topic[T] not exist, apply first please!" in refused[0].remark
    # The producer still knows the way: its next message makes the topic anew, from offset 0.
    [again] = send(producer, "d")
    assert again.queue_offset == 0
    lab.run_for(seconds=5)
    # The consumer asks behind the end, is told the end, gives the queue up, and comes back to it.
    assert progress(lab, "readers") == {0: 1}
    send(producer, "e")
    lab.run_for(seconds=2)
    assert seen == [b"a", b"b", b"c", b"e"], "what the new topic got before is passed over"


# -- groups ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clean", [False, True])
def test_a_group_that_is_deleted_under_its_members_is_made_again_with_the_next_pull(lab: Lab, clean: bool) -> None:
    seen: list[bytes] = []
    started_consumer(lab, noting(seen))
    producer = started_producer(lab)
    lab.run_for(seconds=2)
    send(producer, "a", "b")
    lab.run_for(seconds=16)
    admin = Admin(lab)
    answer = admin.delete_group(clean_offset=clean)
    assert (answer.code, answer.remark) == (0, None)
    assert progress(lab, "readers") == ({} if clean else {0: 2})
    lab.run_for(seconds=25)
    made = [record.group for record in lab.history.find("SubscriptionGroupCreated")]
    assert made.count("readers") == 2
    assert progress(lab, "readers") == {0: 2}, "the member knows it, and writes it again"
    send(producer, "c")
    lab.run_for(seconds=2)
    assert seen == [b"a", b"b", b"c"]


def test_where_groups_are_not_made_by_themselves_a_deleted_one_is_refused() -> None:
    lab = shop()
    seen: list[bytes] = []
    started_consumer(lab, noting(seen))
    producer = started_producer(lab)
    lab.run_for(seconds=2)
    config: Any = lab.brokers[0].controller.broker_config  # type: ignore[union-attr]
    config.auto_create_subscription_group = False
    deleted = Admin(lab).delete_group()
    assert deleted.code == 0
    send(producer, "a")
    lab.run_for(seconds=5)
    refused = [r for r in lab.history.find("RequestRejected") if r.code == 26]
    assert refused
    assert refused[0].remark.startswith("subscription group [readers] does not exist, ")
