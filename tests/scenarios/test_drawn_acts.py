"""What people do in drawn worlds: they ask, rest, begin anew and change limits, and nobody fails over it."""

from __future__ import annotations

import pytest

from mqlab import scenarios
from mqlab.errors import LearnerError
from mqlab.explore import Trial
from mqlab.lab import Lab
from mqlab.scenarios.drawing import world_from_text
from mqlab.scenarios.drawing.kinds import ADMINISTRATOR
from mqlab.scenarios.drawing.questions import OF_BROKERS, OF_NAME_SERVERS

SERVERS = "name-server n; broker b; topic Orders queues=2; "
READERS = "push workers; pop takers; lite pollers; producer shop messages=20; transactions bank; "


def played(world: str, seconds: float = 30) -> Lab:
    """The world, after so long."""
    return scenarios.get("drawn").play(3, seconds=seconds, parameters={"world": world})


@pytest.mark.parametrize("about", [*OF_BROKERS, *OF_NAME_SERVERS])
def test_an_administrator_asks_and_nobody_fails_over_it(about: str) -> None:
    act = f"ask b about={about}" if about in OF_BROKERS else f"ask-name-server n about={about}"
    trial = Trial("drawn", 3, {"world": f"{SERVERS}slave s of=b; {READERS}at 12000ms: {act}"}, ())
    assert trial.outcome.passed, trial.outcome.breaches[0]
    assert trial.lab is not None
    asked = [r for r in trial.lab.history if r.node == ADMINISTRATOR and r.kind == "RequestSent"]
    answered = {r.opaque: r.response_code for r in trial.lab.history
                if r.node == ADMINISTRATOR and r.kind == "ResponseReceived"}  # fmt: skip
    assert len(asked) == len(answered) > 1
    assert 0 in answered.values()
    assert 3 not in answered.values()


def test_who_polls_rests_and_goes_on_at_a_time() -> None:
    acts = "at 4000ms: pause pollers for_ms=5000; at 12000ms: seek pollers to=time"
    lab = played(f"{SERVERS}lite pollers; producer shop messages=40; {acts}")
    polled = [r.ts_us // 1_000 for r in lab.history if r.kind == "MessagesPolled"]
    assert any(ms < 4_000 for ms in polled)
    assert not any(6_000 < ms < 9_000 for ms in polled)
    assert any(ms > 9_000 for ms in polled)
    assert min(r.ts_us // 1_000_000 for r in lab.history if r.kind == "QueueSought") == 12


@pytest.mark.parametrize(
    ("kind", "act", "key"),
    [("lite", "restart-pollers", "pull_batch_size"), ("pop", "restart-poppers", "pop_batch_nums")],
)
def test_who_polls_or_pops_begins_anew_with_other_settings(kind: str, act: str, key: str) -> None:
    world = f"{SERVERS}{kind} group; producer shop messages=40; at 5000ms: {act} group down_ms=300 {key}=1"
    trial = Trial("drawn", 3, {"world": world}, ())
    assert trial.outcome.passed, trial.outcome.breaches[0]
    assert trial.lab is not None
    told = [(r.kind, r.ts_us // 100_000) for r in trial.lab.history
            if r.kind in ("ClientStopped", "ClientStarted") and r.group == "group" and r.ts_us > 2_000_000]  # fmt: skip
    (stopped, stopped_at), (started, started_at) = told
    assert (stopped, started, started_at - stopped_at) == ("ClientStopped", "ClientStarted", 3)
    assert 50 <= stopped_at < 53


def test_listeners_are_given_other_limits() -> None:
    act = "at 5000ms: adjust workers pull_batch_size=1 consume_thread_min=2"
    lab = played(f"{SERVERS}push workers; producer shop; {act}", 6)
    ((consumer, *_),) = lab.processes["workers-1"].clients  # type: ignore[attr-defined]  # a process of clients
    assert (consumer.pull_batch_size, consumer.consume_thread_min) == (1, 2)


def test_a_topic_is_deleted_and_made_anew_by_who_sends_to_it() -> None:
    world = f"{SERVERS}producer shop messages=40; at 4000ms: delete-topic Orders"
    trial = Trial("drawn", 3, {"world": world}, ())
    assert trial.outcome.passed, trial.outcome.breaches[0]
    assert trial.lab is not None
    told = [r.kind for r in trial.lab.history
            if r.kind in ("TopicCreated", "TopicDeleted") and r.topic == "Orders"]  # fmt: skip
    assert told == ["TopicCreated", "TopicDeleted", "TopicCreated"]
    stored = [r.queue_offset for r in trial.lab.history if r.kind == "MessageStored" and r.topic == "Orders"]
    assert stored.count(0) > 2


def test_name_servers_forget_a_topic_until_its_broker_reports_again() -> None:
    world = f"{SERVERS}broker c register_name_server_period=10000; producer shop messages=40; push workers"
    trial = Trial("drawn", 3, {"world": f"{world}; at 12000ms: forget-topic Orders"}, ())
    assert trial.outcome.passed, trial.outcome.breaches[0]
    assert trial.lab is not None
    told = [r.ts_us // 1_000_000 for r in trial.lab.history
            if r.kind in ("TopicRouteRemoved", "TopicRouteChanged") and r.topic == "Orders"]  # fmt: skip
    assert 12 in told
    assert max(told) > 12


def test_an_administrator_asks_about_everything_at_once() -> None:
    def asked(about: str) -> int:
        lab = played(f"{SERVERS}{READERS}at 9000ms: ask b about={about}")
        return sum(r.kind == "RequestSent" and r.node == ADMINISTRATOR for r in lab.history)

    assert asked("everything") == sum(asked(about) for about in OF_BROKERS)


def test_a_topic_that_somebody_reads_is_not_deleted() -> None:
    with pytest.raises(LearnerError, match="somebody reads Orders"):
        world_from_text(f"{SERVERS}push workers; at 4000ms: delete-topic Orders")


@pytest.mark.parametrize("name", ["n", "p"])
def test_a_name_server_and_a_proxy_stop_in_good_order_and_start_again(name: str) -> None:
    world = f"{SERVERS}proxy p; push5 workers; producer5 shop; at 5000ms: restart-server {name} down_ms=500"
    trial = Trial("drawn", 3, {"world": world}, ())
    assert trial.outcome.passed, trial.outcome.breaches[0]
    assert trial.lab is not None
    started = [r.ts_us // 100_000 for r in trial.lab.history if r.kind == "NodeStarted" and r.target == name]
    assert started == [0, 55]
    ends = [r.ts_us // 100_000 for r in trial.lab.history if r.kind in ("ConnectionClosed", "ChannelClosed")]
    assert 50 in ends
