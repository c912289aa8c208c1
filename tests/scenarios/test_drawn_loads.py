"""What clients of drawn worlds do: they ask and answer, and send and receive through proxies."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate

import pytest

from mqlab import scenarios
from mqlab.explore import Trial
from mqlab.explore.rules_of_replies import ENDS_WHEN_SENT
from mqlab.lab import Lab

SERVERS = "name-server n; broker b enable_property_filter=true; topic Orders queues=2; "
PROXIED = f"{SERVERS}proxy p; "


def played(world: str, seconds: float = 30) -> Lab:
    """The world, after so long."""
    return scenarios.get("drawn").play(3, seconds=seconds, parameters={"world": world})


@pytest.mark.parametrize("to", ["any", "queue", "selector"])
def test_who_asks_gets_the_reply_to_its_own_request(to: str) -> None:
    lab = played(f"{SERVERS}replier workers members=2; producer other; asker shop messages=8 timeout_ms=10000 to={to}")
    arrived = [r for r in lab.history if r.kind == "ReplyArrived"]
    assert [r.matched for r in arrived] == [True] * 8
    assert len({r.correlation_id for r in arrived}) == 8


def test_nobody_answers_and_the_time_of_each_request_ends() -> None:
    outcome = Trial("drawn", 3, {"world": f"{SERVERS}asker shop messages=5 timeout_ms=500"}, ()).outcome
    assert outcome.passed, outcome.breaches[0]
    assert outcome.judged["RequestsEnd"] >= 5
    assert not outcome.excused


def test_a_request_of_some_releases_ends_when_it_is_sent() -> None:
    world = f"{SERVERS}asker shop messages=5 request_ends_when_sent=true; replier workers"
    outcome = Trial("drawn", 3, {"world": world}, ()).outcome
    assert outcome.passed, outcome.breaches[0]
    assert outcome.excused[ENDS_WHEN_SENT]


def test_transactions_through_proxies_are_ended_or_asked_about() -> None:
    world = (
        f"{PROXIED}proxy p-2; topic Transfers queues=1 type=TRANSACTION; push5 workers topic=Transfers; "
        "transactions5 bank topic=Transfers messages=16"
    )
    trial = Trial("drawn", 3, {"world": world}, ())
    assert trial.outcome.passed, trial.outcome.breaches[0]
    assert trial.lab is not None
    kinds = Counter(r.kind for r in trial.lab.history)
    assert kinds["EndTransactionRelayed"] > 5
    assert kinds["OrphanedTransactionRelayed"] > 0


@pytest.mark.parametrize("bank", ["transactions bank", "transactions5 bank topic=Transfers"])
def test_transactions_go_on_one_by_one_or_side_by_side(bank: str) -> None:
    topic = "topic Transfers queues=1 type=TRANSACTION; "

    def most_at_once(at_once: str) -> int:
        lab = played(f"{PROXIED}{topic}{bank} messages=8 debit_ms=3000 at_once={at_once}")
        steps = {"HalfMessageHidden": 1, "TransactionEnded": -1}
        return max(accumulate(steps[r.kind] for r in lab.history if r.kind in steps))

    assert most_at_once("true") > 5 > most_at_once("false")


@pytest.mark.parametrize("shares", ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "MACHINE_ROOM_NEARBY"])
@pytest.mark.parametrize("kind", ["push", "lite", "pull"])
def test_a_group_shares_its_queues_as_its_line_says(kind: str, shares: str) -> None:
    servers = "name-server n; broker broker-a; broker broker-b; topic Orders queues=4"
    lab = played(f"{servers}; {kind} w members=3 shares={shares}")
    owners: dict[tuple[str, int], str] = {}
    for r in lab.history:
        if r.kind == "QueueAllocated" and r.topic == "Orders":
            owners[r.broker_name, r.queue_id] = r.node
    assert len(owners) == 8
    by_turns = [owners["broker-a", n] for n in range(4)]
    if shares == "AVG":
        assert by_turns[0] == by_turns[1]
    elif shares == "AVG_BY_CIRCLE":
        assert len(set(by_turns[:3])) == 3
    elif shares == "MACHINE_ROOM_NEARBY":
        assert not {owners["broker-a", n] for n in range(4)} & {owners["broker-b", n] for n in range(4)}


def test_groups_that_run_together_are_one_client() -> None:
    servers = "name-server n; broker b; topic Orders queues=4"
    lab = played(f"{servers}; push w runs=together; orderly v runs=together members=2")
    registered = [r for r in lab.history if r.kind == "ClientRegistered" and r.role == "consumer"]
    groups: dict[str, set[str]] = {}
    for r in registered:
        groups.setdefault(r.client_id, set()).add(r.group)
    assert sorted(map(sorted, groups.values())) == [["v"], ["v", "w"]]
    shared = {r.remote for r in registered if len(groups[r.client_id]) == 2}
    assert len(shared) == 1


def test_what_a_topic_was_not_made_for_is_not_sent() -> None:
    lab = played(f"{PROXIED}producer5 shop way=in-order messages=3")
    told = [r.reason for r in lab.history if r.kind == "SendFailed"]
    assert len(told) == 3
    assert all("message type not match" in reason for reason in told)


def test_a_group_of_5x_gets_its_messages_in_order() -> None:
    world = (
        f"{PROXIED}topic Steps queues=2 type=FIFO; group workers consume_message_orderly=true; "
        "producer5 shop topic=Steps way=in-order every_ms=500; push5 workers topic=Steps refuse_one_in=5"
    )
    trial = Trial("drawn", 3, {"world": world}, ())
    assert trial.outcome.passed, trial.outcome.breaches[0]
    assert trial.outcome.judged["OrderedPopsWait"] > 5


def test_a_message_that_waits_for_its_time_is_taken_back_through_a_proxy() -> None:
    world = (
        "name-server n; broker b recall_message_enable=true; topic Reminders type=DELAY; proxy p; "
        "push5 w topic=Reminders; producer5 shop topic=Reminders way=later messages=10 timer_ms=6000 "
        "every_ms=500 recall_one_in=3"
    )
    lab = played(world)
    came = {r.msg_id for r in lab.history if r.kind == "ConsumeStarted"}
    sent = {r.msg_id for r in lab.history if r.kind == "SendSucceeded"}
    assert len(sent) == 10
    assert len(sent - came) == 4


@pytest.mark.parametrize("kind", ["push5", "simple5", "pop"])
def test_who_pops_wants_messages_by_a_condition_or_by_tags(kind: str) -> None:
    world = f"{PROXIED}producer shop every_ms=500; {kind} few wants=few; {kind} late tags=late"
    trial = Trial("drawn", 3, {"world": world}, ())
    assert trial.outcome.passed, trial.outcome.breaches[0]
    assert trial.lab is not None
    popped = Counter(r.group for r in trial.lab.history if r.kind == "MessagePopped")
    assert 0 < popped["few"] <= 8
    assert 0 < popped["late"] <= 10


@pytest.mark.parametrize("way", ["sync", "async", "one-way", "batches", "batches-async"])
@pytest.mark.parametrize("to", ["queue", "selector"])
def test_a_producer_sends_to_a_queue_that_it_or_a_selector_chooses(way: str, to: str) -> None:
    lab = played(f"{SERVERS}producer shop messages=6 way={way} to={to}; push workers")
    consumed = Counter(r.msg_id for r in lab.history if r.kind == "ConsumeFinished")
    assert consumed.total() == 6


def test_a_producer_takes_back_what_waits_for_its_time() -> None:
    servers = SERVERS.replace("broker b", "broker b recall_message_enable=true")
    lab = played(f"{servers}producer shop messages=6 timer_ms=6000 recall_one_in=3 every_ms=500; push workers")
    assert len([r for r in lab.history if r.kind == "ConsumeFinished"]) == 4


@pytest.mark.parametrize("fails", ["later", "soon", "raises", "none", "partly", "by-hand"])
def test_a_listener_wants_messages_again_in_many_ways(fails: str) -> None:
    world = f"{SERVERS}producer shop messages=20; push workers refuse_one_in=2 fails={fails}"
    trial = Trial("drawn", 3, {"world": f"{world} consume_message_batch_max_size=2"}, ())
    assert trial.outcome.passed, trial.outcome.breaches[0]
    assert trial.lab is not None
    given_back = Counter(r.delay_level for r in trial.lab.history if r.kind == "MessageGivenBack")
    assert set(given_back) == ({1} if fails in ("soon", "by-hand") else {0})


@pytest.mark.parametrize("fails", ["later", "raises"])
@pytest.mark.parametrize("commits", ["auto", "by-hand"])
def test_an_orderly_listener_commits_by_itself_or_by_hand(commits: str, fails: str) -> None:
    world = f"{SERVERS}producer shop; orderly cooks refuse_one_in=3 fails={fails} commits={commits}"
    trial = Trial("drawn", 3, {"world": world}, ())
    assert trial.outcome.passed, trial.outcome.breaches[0]
    assert trial.lab is not None
    said = {r.status for r in trial.lab.history if r.kind == "ConsumeFinished"}
    assert ("COMMIT" in said) == (commits == "by-hand")
    assert len(said) == 2


@pytest.mark.parametrize("commits", ["auto", "all", "queues", "offsets", "written"])
@pytest.mark.parametrize("way", ["subscribe", "assign"])
def test_who_polls_gets_everything_and_commits_it(way: str, commits: str) -> None:
    lab = played(f"{SERVERS}producer shop; lite pollers members=2 way={way} commits={commits}")
    polled = sum(r.messages for r in lab.history if r.kind == "MessagesPolled")
    assert polled >= 20
    offsets, store = lab.brokers[0].running().consumer_offset_manager, lab.brokers[0].store
    for queue_id in (0, 1):
        end = store.get_max_offset_in_queue("Orders", queue_id)
        assert offsets.query_offset("pollers", "Orders", queue_id) == end


def test_who_has_queues_assigned_takes_those_that_are_added() -> None:
    world = f"{SERVERS}lite pollers way=assign topic_metadata_check_interval_millis=1000; producer shop messages=99"
    lab = played(f"{world} every_ms=500; at 5000ms: scale Orders queues=3", 60)
    assert {r.queue_id for r in lab.history if r.kind == "MessagesPolled"} == {0, 1, 2}


@pytest.mark.parametrize("way", ["at-once", "held", "at-once-async", "held-async"])
def test_who_pulls_gives_messages_back_and_pulls_them_again(way: str) -> None:
    world = f"{SERVERS}producer shop; pull readers members=2 way={way} refuse_one_in=5 tags=late"
    trial = Trial("drawn", 3, {"world": world}, ())
    assert trial.outcome.passed, trial.outcome.breaches[0]
    assert trial.lab is not None
    found = Counter(r.topic for r in trial.lab.history if r.kind == "PullFinished" and r.messages)
    assert set(found) == {"Orders", "%RETRY%readers"}


def test_a_group_that_reads_old_data_is_held_back_and_gets_it_all_the_same() -> None:
    broker = (
        "broker b cold_data_flow_control_enable=true cg_cold_read_threshold=500 memory_bytes=20000 "
        "access_message_in_memory_hot_ratio=1"
    )
    load = "producer shop messages=40 every_ms=20 size=1000; pull readers pause_ms=500 batch=4"
    trial = Trial("drawn", 3, {"world": f"name-server n; {broker}; topic Orders queues=2; {load}"}, ())
    assert trial.outcome.passed, trial.outcome.breaches[0]
    assert trial.lab is not None
    assert [r for r in trial.lab.history if r.kind == "ColdDataPullHeld"]
