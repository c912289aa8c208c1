"""The unmodified Python client of 5.x with the proxy of a served world."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mqlab.scenarios import get
from mqlab.serving import Serving

from .conftest import Starts


@pytest.fixture
def serving() -> Iterator[Serving]:
    topics = "T;F=FIFO;D=DELAY;X=TRANSACTION"
    with get("served").build(7, parameters={"proxies": 1, "topics": topics}).serve() as serving:
        yield serving


def test_what_is_sent_is_received_by_its_tag(start_python: Starts, serving: Serving) -> None:
    use = start_python("send", serving.endpoints)
    use.until("sync True", "async True", "received sync", "done")
    assert "received async" not in use.lines


def test_messages_of_one_group_come_in_order(start_python: Starts, serving: Serving) -> None:
    use = start_python("order", serving.endpoints)
    use.until("done")
    assert [line for line in use.lines if line.startswith("received")] == [f"received step-{i}" for i in range(5)]


def test_a_delayed_message_comes_when_time_has_jumped(start_python: Starts, serving: Serving) -> None:
    use = start_python("delay", serving.endpoints)
    use.until("sent")
    # What comes in the middle of a jump is visible again before a client can acknowledge it.
    serving.fast_forward("3597s")
    assert "received in an hour" not in use.lines
    use.until("received in an hour", "done")


def test_transactions_are_ended_and_asked_about(start_python: Starts, serving: Serving) -> None:
    use = start_python("transaction", serving.endpoints)
    use.until("sent", "received commit")
    serving.fast_forward("70s")
    use.until("asked leave", "received leave", "done")
    assert "received rollback" not in use.lines


def test_what_a_listener_fails_comes_again(start_python: Starts, serving: Serving) -> None:
    use = start_python("push", serving.endpoints)
    use.until("consumed pushed at attempt 1", "done")
    serving.fast_forward("11s")
    use.until("consumed pushed at attempt 2")
