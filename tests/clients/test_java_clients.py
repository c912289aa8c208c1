"""Unmodified Java clients of 4.9 and 5.3 with a served world: each kind of sending and of reading."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlab.lab import Lab
from mqlab.protocol.codes import ResponseCode
from mqlab.replay import read_report, replay
from mqlab.scenarios import get
from mqlab.serving import Serving
from mqlab.trace.record import KIND

from .conftest import WAIT_S, Starts, stored


@pytest.fixture
def lab() -> Lab:
    return get("served").build(7)


@pytest.fixture
def serving(lab: Lab) -> Iterator[Serving]:
    with lab.serve() as serving:
        yield serving


def test_every_way_of_sending(start: Starts, serving: Serving, lab: Lab) -> None:
    start("send", serving.name_server).until(
        "sync SEND_OK", "async SEND_OK", "batch SEND_OK", "large SEND_OK", "queues 4", "done"
    )
    assert len(stored(lab, "Uses")) == 8, "first, sync, async, one-way, three in a batch, a large one"


def test_transactions_are_ended_and_asked_about(start: Starts, serving: Serving, lab: Lab) -> None:
    use = start("transaction", serving.name_server)
    use.until("done", "reader got commit")
    serving.fast_forward("70s")
    use.until("asked unknown", "reader got unknown")
    assert len(set(stored(lab, "Uses"))) == 3, "first, commit, unknown; who is asked twice may commit twice"


def test_delayed_messages_come_when_time_has_jumped(start: Starts, serving: Serving, lab: Lab) -> None:
    use = start("delay", serving.name_server)
    use.until("timer SEND_OK", "done", "reader got first")
    serving.fast_forward("59m")
    assert len(stored(lab, "Uses")) == 1
    serving.fast_forward("1m")
    use.until("reader got level")
    assert len(stored(lab, "Uses")) == 2
    serving.fast_forward("31m")
    use.until("reader got timer")


def test_what_fails_again_and_again_becomes_a_dead_letter(start: Starts, serving: Serving, lab: Lab) -> None:
    is_dead = threading.Event()
    dead = ("MessageStored", "%DLQ%failing")
    lab.world.hooks.attach(lambda row: is_dead.set() if row[KIND] == dead[0] and dead[1] in row else None)
    use = start("fail", serving.name_server)
    for number in range(3):
        use.until(f"try {number} of first")
        serving.fast_forward("31s")
    assert is_dead.wait(WAIT_S), "the client gives a message back after its last try, too"


def test_a_queue_is_read_in_order(start: Starts, serving: Serving) -> None:
    steps = [f"in order got step-{i}" for i in range(10)]
    use = start("order", serving.name_server)
    use.until(*steps)
    assert [line for line in use.lines if line.startswith("in order")] == steps


def test_everybody_gets_what_is_broadcast(start: Starts, serving: Serving) -> None:
    start("broadcast", serving.name_server).until("reader-0 got first", "reader-1 got first")


def test_readers_choose_by_tag_and_by_condition(start: Starts) -> None:
    lab = get("served").build(7, parameters={"settings": "enablePropertyFilter=true"})
    with lab.serve() as serving:
        use = start("tags", serving.name_server)
        use.until("by tag got red", "by tag got blue", "by sql got green", "by sql got blue", "done")
        assert not {"by tag got green", "by sql got red"} & set(use.lines)


def test_all_of_it_goes_over_tls(start: Starts, lab: Lab) -> None:
    with lab.serve(tls="enforcing") as serving:
        send = start("send", serving.name_server, "-Dtls.enable=true")
        send.until("sync SEND_OK", "async SEND_OK", "batch SEND_OK", "large SEND_OK", "queues 4", "done")
        order = start("order", serving.name_server, "-Dtls.enable=true")
        order.until("done", *(f"in order got step-{i}" for i in range(10)))


def test_a_consumer_that_polls(start: Starts, serving: Serving) -> None:
    start("poll", serving.name_server).until("polled first")


def test_a_sender_outlives_its_broker(start: Starts, serving: Serving, lab: Lab) -> None:
    use = start("again", serving.name_server)
    use.until("sending")
    lab.crash("broker-a")
    use.until("failed")
    lab.restart("broker-a")
    use.until("sent again")


@pytest.mark.parametrize("classpath", ["5.3.3"], indirect=True)
def test_no_send_fails_when_one_of_two_brokers_stops_in_order(start: Starts) -> None:
    """The broker leaves the name server, and tells who still sends to go away; clients after 5.3.1 understand it."""
    settings = "enableShutdownGracefully=true;shutdownWaitTimeSeconds=2"
    lab = get("served").build(7, parameters={"brokers": 2, "topics": "Uses", "settings": settings})
    is_down = threading.Event()
    lab.world.hooks.attach(lambda row: is_down.set() if row[KIND] == "BrokerShutDown" else None)
    with lab.serve() as serving:
        use = start("steady", serving.name_server)
        use.until("sending 100")
        controller = lab.brokers[0].running()
        with lab.world.door:
            controller.node.spawn(controller.shutdown(), "shutdown")
        assert is_down.wait(WAIT_S)
        hundreds = len(stored(lab, "Uses")) // 100 + 2
        use.until(f"sending {hundreds * 100}")
        use.say("enough")
        use.until("done")
    (last,) = (line for line in use.lines if line.startswith("sent "))
    assert not [line for line in use.lines if line.startswith("failed")]
    assert len(stored(lab, "Uses")) == 1 + int(last.removeprefix("sent ")), "nothing was sent twice"
    refusals = {r.response_code for r in lab.history.records() if r.kind == "RequestRefused"}
    assert ResponseCode.GO_AWAY in refusals


@pytest.mark.parametrize("classpath", ["5.3.3"], indirect=True)
def test_a_serving_that_closes_leaves_no_send_in_doubt(start: Starts) -> None:
    """Each send was answered, or has failed and is not stored."""
    lab = get("served").build(7, parameters={"topics": "Uses"})
    with lab.serve() as serving:
        use = start("steady", serving.name_server)
        use.until("sending 200")
    use.say("enough")
    use.until("done")
    (last,) = (line for line in use.lines if line.startswith("sent "))
    assert [line for line in use.lines if line.startswith("failed")]
    assert len(stored(lab, "Uses")) == 1 + int(last.removeprefix("sent "))


def test_a_session_is_played_again_without_the_client(start: Starts, tmp_path: Path) -> None:
    lab = get("served").build(8)
    with lab.serve() as serving:
        order, delay = start("order", serving.name_server), start("delay", serving.name_server)
        order.until("done")
        delay.until("done")
        serving.fast_forward("2h")
        delay.until("reader got timer")
    serving.report(tmp_path / "session.mqlab")
    result = replay(read_report(str(tmp_path / "session.mqlab")))
    assert result.agrees, result
