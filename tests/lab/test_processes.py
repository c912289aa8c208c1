"""Handles of processes: they stay, while what belongs to a process begins and ends with it."""

from __future__ import annotations

import pytest

from mqlab import Lab
from mqlab.errors import LearnerError
from tests.worlds import shop, started_consumer


@pytest.fixture
def lab() -> Lab:
    return shop(topic="Kept")


def test_between_a_restart_and_the_first_slice_there_is_no_process(lab: Lab) -> None:
    broker, server = lab.brokers[0], lab.name_servers[0]
    before = broker.controller
    lab.restart("broker-a")
    lab.restart("namesrv-1")
    assert (broker.is_up(), server.is_up()) == (False, False)
    assert broker.controller is None
    with pytest.raises(LearnerError, match=r"(?s)broker-a has not begun to run yet.*run_for"):
        broker.create_topic("Lost", 1)
    with pytest.raises(LearnerError, match="namesrv-1 has not begun"):
        server.running()
    assert (len(lab.topics()), len(lab.held_pulls()), len(lab.routes("Kept"))) == (0, 0, 0)
    lab.run_until(broker.is_up)
    assert broker.controller is not before
    assert [row[0] for row in lab.topics().rows] == ["Kept"]


def test_a_process_that_is_down_has_nothing_left(lab: Lab) -> None:
    lab.crash("broker-a")
    assert lab.brokers[0].controller is None
    with pytest.raises(LearnerError, match=r"(?s)broker-a is down.*lab.restart"):
        _ = lab.brokers[0].store


def test_the_tables_of_a_client_are_those_of_its_present_process(lab: Lab) -> None:
    consumer = started_consumer(lab, lambda messages, context: None, topic="Kept")
    lab.run_for(seconds=25)
    assert len(lab.process_queues(consumer)) == 2
    lab.restart("consumer-1")
    for table in (lab.process_queues, lab.permits, lab.response_table):
        with pytest.raises(LearnerError, match="consumer-1 has not begun to run yet"):
            table(consumer)
    lab.run_for(ms=1)
    assert len(lab.process_queues(consumer)) == 0
    lab.crash("consumer-1")
    with pytest.raises(LearnerError, match="consumer-1 is down"):
        lab.process_queues(consumer)
