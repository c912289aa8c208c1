"""Unmodified clients of 5.x, in three languages, with the proxy of a served world."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from mqlab.lab import Lab
from mqlab.scenarios import get
from mqlab.serving import Serving
from mqlab.trace.record import KIND

from .conftest import WAIT_S, Starts, stored

LANGUAGES = ("java", "node", "python")
NOT_PYTHON = pytest.mark.parametrize("language", LANGUAGES[:2])
STEPS = [f"step-{i}" for i in range(5)]


@pytest.fixture(params=LANGUAGES)
def language(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def lab() -> Lab:
    topics, settings = "F=FIFO;D=DELAY;X=TRANSACTION", "enablePropertyFilter=true;recallMessageEnable=true"
    lab = get("served").build(7, parameters={"proxies": 1, "topics": topics, "settings": settings})
    # One queue: what is not to come would come before what is sent behind it.
    lab.create_topic("T", queues=1)
    lab.create_group("orderly", consume_message_orderly=True)
    lab.create_group("failing", retry_max_times=1)
    return lab


@pytest.fixture
def serving(lab: Lab, language: str) -> Iterator[Serving]:
    """Java's client speaks TLS as it comes, so nothing else is let in."""
    with lab.serve(tls="enforcing" if language == "java" else "permissive") as serving:
        yield serving


def test_what_is_sent_is_received_by_its_tag(start_v5: Starts, serving: Serving) -> None:
    use = start_v5("send", serving.endpoints)
    use.until("sync sent", "async sent", "received async", "done")
    assert "received sync" not in use.lines


@NOT_PYTHON
def test_what_is_sent_is_received_by_a_condition(start_v5: Starts, serving: Serving) -> None:
    use = start_v5("condition", serving.endpoints)
    use.until("received n=5", "done")
    assert "received n=1" not in use.lines


def test_messages_of_one_group_come_in_order(start_v5: Starts, serving: Serving) -> None:
    use = start_v5("order", serving.endpoints)
    use.until("done")
    assert [line for line in use.lines if line.startswith("received")] == [f"received {step}" for step in STEPS]


@NOT_PYTHON
def test_messages_of_one_group_are_pushed_in_order(start_v5: Starts, serving: Serving) -> None:
    use, consumed = start_v5("in_order", serving.endpoints), [f"consumed {step} at attempt 1" for step in STEPS]
    use.until("done", *consumed)
    assert [line for line in use.lines if line.startswith("consumed")] == consumed


def test_a_delayed_message_comes_when_time_has_jumped(start_v5: Starts, serving: Serving, lab: Lab) -> None:
    use = start_v5("delay", serving.endpoints)
    use.until("sent")
    # What comes in the middle of a jump is visible again before a client can acknowledge it.
    serving.fast_forward("3597s")
    assert stored(lab, "D") == []
    use.until("received in an hour", "done")


@NOT_PYTHON
def test_a_delayed_message_is_taken_back(start_v5: Starts, serving: Serving, lab: Lab) -> None:
    use = start_v5("recall", serving.endpoints)
    use.until("sent")
    serving.fast_forward("3597s")
    use.until("received kept", "done")
    assert len(stored(lab, "D")) == 1


def test_transactions_are_ended_and_asked_about(start_v5: Starts, serving: Serving, lab: Lab) -> None:
    use = start_v5("transaction", serving.endpoints)
    use.until("sent", "received commit")
    serving.fast_forward("70s")
    use.until("asked leave", "received leave", "done")
    assert len(set(stored(lab, "X"))) == 2, "commit and leave; who is asked twice may commit twice"


def test_what_a_listener_fails_comes_again(start_v5: Starts, serving: Serving) -> None:
    use = start_v5("push", serving.endpoints)
    use.until("consumed pushed at attempt 1", "done")
    serving.fast_forward("11s")
    use.until("consumed pushed at attempt 2")


@NOT_PYTHON
def test_what_fails_again_and_again_becomes_a_dead_letter(start_v5: Starts, serving: Serving, lab: Lab) -> None:
    is_dead = threading.Event()
    dead = ("MessageStored", "%DLQ%failing")
    lab.world.hooks.attach(lambda row: is_dead.set() if row[KIND] == dead[0] and dead[1] in row else None)
    use = start_v5("fail", serving.endpoints)
    use.until("consumed failing at attempt 1", "done")
    serving.fast_forward("11s")
    use.until("consumed failing at attempt 2")
    serving.fast_forward("2m")
    assert is_dead.wait(WAIT_S)
    serving.fast_forward("2m")
    assert len(stored(lab, "%DLQ%failing")) == 1
    assert "consumed failing at attempt 3" not in use.rest()
