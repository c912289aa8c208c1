"""Drawn worlds: a text names one, the same seed draws the same, and a bad line is answered with what to write."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqlab import scenarios
from mqlab.errors import LearnerError
from mqlab.replay import read_report, replay
from mqlab.scenarios.drawing import draw_world, shorter_worlds, world_from_text, world_text
from mqlab.scenarios.drawing.kinds import ACTS, KINDS, OWN, SETTINGS
from mqlab.scenarios.drawing.parts import Part
from mqlab.store import FlushDiskType

SMALL = "name-server n; broker b; topic Orders queues=2; producer shop messages=5; push workers topic=Orders"


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_a_drawn_world_is_read_from_its_text(seed: int) -> None:
    world = draw_world(seed)
    assert world_from_text(world_text(world)) == world
    assert world_from_text(world_text(world).replace("; ", "\n")) == world


@given(st.data())
def test_any_legal_line_is_read_as_it_is_written(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([kind for kind in KINDS if kind not in ACTS]))
    known = {**OWN[kind], **SETTINGS[kind]}
    chosen = data.draw(st.lists(st.sampled_from(sorted(known)), unique=True)) if known else []
    text = " ".join((kind, "one", *(f"{key}={str(known[key].drawn[0]).lower()}" for key in chosen
                                    if isinstance(known[key].drawn[0], int))))  # fmt: skip
    world = world_from_text(f"name-server n; broker broker-a; proxy p; topic Orders; {text}")
    assert world[-1].text == text


def test_the_same_seed_draws_the_same_world_and_another_seed_another_one() -> None:
    assert draw_world(7) == draw_world(7)
    assert len({world_text(draw_world(seed)) for seed in range(100)}) == 100


def test_every_kind_of_part_and_of_setting_is_drawn_within_2000_seeds() -> None:
    drawn: dict[str, set[str]] = {kind: set() for kind in KINDS}
    seen: set[str] = set()
    for seed in range(2_000):
        for part in draw_world(seed):
            drawn[part.kind].update(part.says)
            if seed < 200:
                seen.add(part.kind)
    assert seen == set(KINDS)
    for kind in KINDS:
        assert drawn[kind] == {*OWN[kind], *SETTINGS[kind]}


def test_a_world_has_one_trace_twice_in_a_row_and_from_its_text() -> None:
    drawn = scenarios.get("drawn")
    hashes = {drawn.play(3).trace_hash() for _ in range(2)}
    hashes.add(drawn.play(3, parameters={"world": world_text(draw_world(3))}).trace_hash())
    assert len(hashes) == 1


def test_leaving_a_line_out_changes_no_other_choice_of_the_world() -> None:
    drawn = scenarios.get("drawn")

    def sent(world: str) -> list[int]:
        lab = drawn.play(3, seconds=10, parameters={"world": world})
        return [record.ts_us for record in lab.history if record.kind == "SendAttempted"][:1]

    assert sent(SMALL) == sent(SMALL.replace("; push workers topic=Orders", ""))


@pytest.mark.parametrize(
    ("line", "told", "hint"),
    [
        ("pusher w", "no kind of part 'pusher'", "did you mean push"),
        ("push", "has no name", "push NAME"),
        ("push topic=Orders", "has no name", "push NAME"),
        ("push w pull_batch_sise=1", "no setting 'pull_batch_sise'", "did you mean pull_batch_size"),
        ("push w pull_batch_size=0", "pull_batch_size=0 is not possible", "from 1 to 1,024"),
        ("push w pull_batch_size=many", "pull_batch_size=many is not possible", "from 1 to 1,024"),
        ("producer p way=upwards", "way=upwards is not possible", "sync or async"),
        ("producer p unit_mode=yes", "is not possible", "true or false"),
        ("push w members=2 members=3", "says members twice", "leave one"),
        ("push w Orders", "'Orders' says nothing", "setting=value"),
        ("suspend w for_ms=5", "done at a time", "at 5000ms: suspend"),
        ("at 5000ms: push w", "from the beginning", "write: push NAME"),
        ("at 5000ms: seek w", "nothing named 'w'", "a line of lite"),
        ("push5 w topic=Orders", "needs a proxy", "proxy proxy-1"),
        ("pop w topic=Orders", "Orders can be popped only where", "topic Orders"),
        ("push w wants=few", "does not judge conditions", "enable_property_filter=true"),
        ("producer p timer_as=noon", "timer_as=noon is not possible", "delay-ms or delay-s or deliver-at"),
        ("slave s of=broker-z", "no broker 'broker-z'", "choose among b"),
        ("broker b", "another part named 'b'", "a name of its own"),
    ],
)
def test_a_bad_line_is_answered_with_its_number_and_what_is_allowed(line: str, told: str, hint: str) -> None:
    with pytest.raises(LearnerError) as error:
        world_from_text(f"name-server n; broker b; {line}")
    assert "line 3 of the world" in error.value.message
    assert told in error.value.message
    assert hint in (error.value.hint or "")


def test_what_people_do_happens_at_its_time() -> None:
    acts = "; at 5000ms: suspend workers for_ms=3000; at 6000ms: scale Orders queues=5; at 7000ms: create-topic Refunds"
    lab = scenarios.get("drawn").play(3, seconds=12, parameters={"world": SMALL + acts})
    made = ("TopicCreated", "TopicUpdated")
    changed = [(r.ts_us // 1_000, r.topic) for r in lab.history if r.kind in made and r.ts_us > 1_000_000]
    assert changed == [(6_000, "Orders"), (7_000, "Refunds")]


def test_people_set_groups_to_other_offsets() -> None:
    acts = "; at 5000ms: reset workers; at 6000ms: seek pollers to=middle; at 7000ms: seek pollers to=end"
    lab = scenarios.get("drawn").play(3, seconds=12, parameters={"world": f"{SMALL}; lite pollers{acts}"})
    resets = [(r.ts_us // 1_000_000, r.group, r.queue_offset) for r in lab.history if r.kind == "OffsetReset"]
    assert resets == [(5, "workers", 0)] * 2
    sought = {
        queue_id: [r.queue_offset for r in lab.history if r.kind == "QueueSought" and r.queue_id == queue_id]
        for queue_id in (0, 1)
    }
    ends = [lab.brokers[0].store.get_max_offset_in_queue("Orders", queue_id) for queue_id in (0, 1)]
    assert sought == {queue_id: [end // 2, end] for queue_id, end in enumerate(ends)}


def test_a_group_is_forgotten_and_a_topic_gets_fewer_queues() -> None:
    acts = "; at 5000ms: delete-group workers clean_offset=true; at 6000ms: scale Orders queues=1"
    lab = scenarios.get("drawn").play(3, seconds=12, parameters={"world": SMALL + acts})
    forgotten = [(r.ts_us // 1_000_000, r.group) for r in lab.history if r.kind == "SubscriptionGroupDeleted"]
    assert forgotten == [(5, "workers")]
    assert lab.brokers[0].running().topic_config_manager.topic_config_table["Orders"].read_queue_nums == 1


@pytest.mark.parametrize("way", ["at-once", "held"])
def test_a_plain_pull_consumer_gets_everything_also_when_its_process_ends(way: str) -> None:
    world = f"{SMALL}; pull readers way={way} members=2"
    lab = scenarios.get("drawn").play(3, seconds=8, parameters={"world": world})
    lab.crash("readers-1")
    lab.restart("readers-1")
    lab.run_for(seconds=30)
    held = [r for r in lab.history if r.kind == "PullHeld" and r.group == "readers"]
    assert bool(held) == (way == "held")
    offsets = lab.brokers[0].running().consumer_offset_manager
    ends = [lab.brokers[0].store.get_max_offset_in_queue("Orders", queue_id) for queue_id in (0, 1)]
    assert [offsets.query_offset("readers", "Orders", queue_id) for queue_id in (0, 1)] == ends


def test_groups_want_messages_by_a_condition() -> None:
    judging = SMALL.replace("broker b", "broker b enable_property_filter=true").replace("messages=5", "messages=20")
    world = f"{judging}; push few wants=few; lite gifts wants=gifts; orderly ordinary wants=ordinary"
    lab = scenarios.get("drawn").play(3, seconds=30, parameters={"world": world})
    held_back = {r.group: r.messages for r in lab.history if r.kind == "MessagesFilteredByBroker"}
    assert set(held_back) == {"few", "gifts", "ordinary"}
    counts = Counter(r.group for r in lab.history if r.kind == "ConsumeStarted")
    counts.update({"gifts": sum(r.messages for r in lab.history if r.kind == "MessagesPolled")})
    assert counts == {"workers": 20, "few": 8, "gifts": 9, "ordinary": 10}


@pytest.mark.parametrize("how", ["delay-ms", "delay-s", "deliver-at"])
def test_the_timer_keeps_what_a_producer_wants_later(how: str) -> None:
    world = SMALL.replace("messages=5", f"messages=5 timer_ms=3000 timer_as={how}")
    lab = scenarios.get("drawn").play(3, seconds=12, parameters={"world": world})
    sent = {r.msg_id: r.ts_us for r in lab.history if r.kind == "SendAttempted"}
    waited_ms = [(r.ts_us - sent[r.msg_id]) // 1_000 for r in lab.history if r.kind == "ConsumeStarted"]
    assert len(waited_ms) == 5
    assert all(2_900 <= ms < 4_100 for ms in waited_ms)


def test_a_world_in_which_people_do_everything_is_played_again_from_a_report(tmp_path: Path) -> None:
    on = {
        "seek": "pollers", "scale": "Orders", "create-topic": "Refunds", "set": "b", "restart-broker": "b",
        "restart-slave": "s", "ask": "b", "ask-name-server": "n", "pause": "pollers", "restart-pollers": "pollers",
        "restart-poppers": "takers", "delete-topic": "Payments", "forget-topic": "Orders",
        "restart-server": "n",
    }  # fmt: skip
    acts = [f"at {3_000 + 500 * place}ms: {kind} {on.get(kind, 'workers')}" for place, kind in enumerate(ACTS)]
    world = "; ".join([SMALL, "slave s of=b", "topic Payments", "lite pollers", "pop takers", *acts])
    lab = scenarios.get("drawn").play(3, seconds=20, parameters={"world": world})
    path = str(tmp_path / "world.mqlab")
    lab.report(path)
    assert replay(read_report(path)).lab.trace_hash() == lab.trace_hash()


def test_a_group_reads_another_topic_and_no_more() -> None:
    acts = "; topic Payments; at 5000ms: subscribe workers topic=Payments; at 6000ms: unsubscribe workers topic=Orders"
    lab = scenarios.get("drawn").play(3, seconds=40, parameters={"world": SMALL + acts})
    taken = {r.topic for r in lab.history if r.kind == "QueueAllocated" and r.topic in ("Orders", "Payments")}
    given_up = {r.topic for r in lab.history if r.kind == "QueueDropped"}
    assert (taken, given_up) == ({"Orders", "Payments"}, {"Orders"})


def test_settings_of_a_broker_are_changed_while_it_runs_and_by_a_restart() -> None:
    acts = (
        "; at 5000ms: set b short_polling_time_mills=100"
        "; at 6000ms: restart-broker b down_ms=500 flush_disk_type=SYNC_FLUSH"
    )
    lab = scenarios.get("drawn").play(3, seconds=5.5, parameters={"world": SMALL + acts})
    assert lab.brokers[0].running().broker_config.short_polling_time_mills == 100
    lab.run_for(seconds=5)
    told = [(r.kind, r.ts_us // 100_000) for r in lab.history if r.kind in ("BrokerShutDown", "NodeStarted")]
    assert told[-2:] == [("BrokerShutDown", 60), ("NodeStarted", 65)]
    assert lab.brokers[0].is_up()
    assert lab.brokers[0].running().broker_config.short_polling_time_mills == 1_000
    assert lab.brokers[0].store.config.flush_disk_type is FlushDiskType.SYNC_FLUSH


def test_members_begin_anew_with_other_settings() -> None:
    act = "; at 5000ms: restart-members workers down_ms=300 pull_batch_size=1"
    lab = scenarios.get("drawn").play(3, seconds=7, parameters={"world": SMALL + act})
    ends = ("ClientStopped", "ClientStarted")
    of_group = [r for r in lab.history if r.kind in ends and r.group == "workers" and r.ts_us > 2_000_000]
    told = [(r.kind, r.ts_us // 100_000) for r in of_group]
    assert told == [("ClientStopped", 50), ("ClientStarted", 53)]
    ((consumer, *_),) = lab.processes["workers-1"].clients  # type: ignore[attr-defined]  # a process of clients
    assert consumer.pull_batch_size == 1


def test_a_slave_follows_its_master_before_clients_begin_and_is_read_when_that_is_away() -> None:
    servers = (
        "name-server n; broker b broker_role=SYNC_MASTER in_sync_replicas=2 slave_read_enable=true; "
        "slave s of=b known=true long_polling_enable=true; topic Orders queues=2; "
    )
    act = "; at 70000ms: restart-broker b down_ms=60000; at 100000ms: restart-slave s down_ms=500"
    world = f"{servers}producer shop messages=20 every_ms=50; push workers slow_ms=1000{act}"
    lab = scenarios.get("drawn").play(3, seconds=90, parameters={"world": world})
    taken = [r.ts_us // 1_000_000 for r in lab.history if r.kind == "SlaveSynchronized"]
    sent = [r.ts_us // 1_000_000 for r in lab.history if r.kind == "SendSucceeded"]
    assert 60 < taken[0] < sent[0] < 70
    assert {r.send_status for r in lab.history if r.kind == "SendSucceeded"} == {"SEND_OK"}
    asked = [r.ts_us // 1_000_000 for r in lab.history if r.kind == "PullReceived" and r.node == "s"]
    assert 70 < asked[0] < 130
    stopped = [(r.node, r.ts_us // 1_000_000) for r in lab.history if r.kind == "BrokerShutDown"]
    assert stopped == [("b", 70), ("s", 100)]


@pytest.mark.parametrize("word", ["flush_disk_type=SYNC_FLUSH", "mapped_file_size_commit_log=65536"])
def test_what_a_running_broker_does_not_follow_is_not_set(word: str) -> None:
    with pytest.raises(LearnerError, match="a set has no setting"):
        world_from_text(f"{SMALL}; at 5000ms: set b {word}")


def test_an_act_that_has_nobody_left_is_left_out_with_them() -> None:
    world = world_from_text(f"{SMALL}; at 5000ms: suspend workers for_ms=3000")
    for shorter in shorter_worlds(world):
        assert world_from_text(world_text(shorter)) == shorter


@pytest.mark.parametrize("text", ["name-server n", "broker b", "; ;"])
def test_a_world_without_servers_is_none(text: str) -> None:
    with pytest.raises(LearnerError, match="a world without a"):
        world_from_text(text)


def test_shorter_worlds_lack_one_thing_each_and_are_whole() -> None:
    world = world_from_text(SMALL)
    shorter = [world_text(each) for each in shorter_worlds(world)]
    assert SMALL.removesuffix("; push workers topic=Orders") in shorter
    assert SMALL.replace(" queues=2", "") in shorter
    assert all(world_from_text(text) for text in shorter)
    assert Part("broker", "b", {}) in world
    assert not any("broker" not in text or "name-server" not in text for text in shorter)
