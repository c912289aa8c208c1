"""Orderly consumption: suspended queues, locks, and owners that hang or die, compared with a real RocketMQ 5.3.3."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from mqlab import Message, MessageQueue
from mqlab.client import ConsumeOrderlyStatus, MessageListenerOrderly
from mqlab.protocol import RequestCode

from .recordings import recorded_events, step_of

SHORT_LEVELS = "1s 2s 3s 4s 5s 6s 7s 8s 9s 10s 11s 12s 13s 14s 15s 16s 17s 18s"
ONE_CALL_MS = 60
LOCK_INTERVAL_MS = 20_000
LOCK_MAX_LIVE_MS = 60_000
DISPATCH_MS = 500
MIN_INTERVAL_MS = 1_000
SEND_EVERY_MS = 254
"""The real producer slept 250 ms between two messages, and sent one each 254 to 255 ms."""
STOPPED_MS, CONTINUED_MS, STOP_END_MS = 75_000, 225_000, 262_000
KILLED_MS, KILL_END_MS = 33_020, 105_000


# -- suspend ----------------------------------------------------------------------------------------------------------


class AlwaysSuspend(MessageListenerOrderly):
    """Never content; notes the time, the key and the reconsume times of each delivery."""

    def __init__(self, scene: Any) -> None:
        self.scene = scene
        self.delivered: list[tuple[float, str, int]] = []

    def consume_message(self, messages: Any, context: Any) -> ConsumeOrderlyStatus:
        (message,) = messages
        self.delivered.append((self.scene.now_ms, message.keys, message.reconsume_times))
        return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT


def play_suspend(stage: Any, phase_ms: int) -> Any:
    """Two messages 10 ms apart, 4 s after the start of a consumer that suspends for ever and may try 4 times again."""
    scene = stage(queues=1, phase_ms=phase_ms, message_delay_level=SHORT_LEVELS)
    scene.listener = AlwaysSuspend(scene)
    consumer = scene.consumer(max_reconsume_times=4)
    consumer.register_message_listener(scene.listener)
    scene.lab.run(consumer.start())
    producer = scene.producer()
    scene.at(4_000)
    scene.send(producer, "m0")
    scene.at(4_010)
    scene.send(producer, "m1")
    scene.at(24_000)
    return scene


def test_a_suspended_message_is_tried_four_times_again_before_the_next_one(
    stage: Any, recorded: Any, phase_ms: int
) -> None:
    timeline = recorded("retry.orderly-suspend-max4")
    ours = [(key, times) for _, key, times in play_suspend(stage, phase_ms).listener.delivered]
    (seen,) = step_of(timeline, "number of deliveries and reconsumeTimes")["per_run"]
    assert ours == [(key, times) for key in ("m0", "m1") for times in seen]
    for run in timeline["runs"]:
        assert ours == [(e["key"], e.get("reconsumeTimes", 0)) for e in recorded_events(run, "deliver")]


def test_a_suspended_queue_rests_for_a_second_each_time(
    stage: Any, recorded: Any, smallest: Any, phase_ms: int
) -> None:
    timeline = recorded("retry.orderly-suspend-max4")
    delivered = play_suspend(stage, phase_ms).listener.delivered
    for number, (earlier, later) in enumerate(pairwise([at for at, _, _ in delivered[:5]]), 1):
        step = f"delivery {number} -> {number + 1}"
        assert step_of(timeline, step)["constant"] == "suspendCurrentQueueTimeMillis 1000"
        assert 1_000 <= later - earlier <= 1_005
        assert abs(smallest(timeline, step) - (later - earlier)) <= ONE_CALL_MS


def test_after_the_last_try_it_is_a_dead_letter_at_once(
    stage: Any, recorded: Any, smallest: Any, phase_ms: int
) -> None:
    """It is sent to the retry topic, with one more reconsume than allowed; the broker makes it a dead letter."""
    timeline = recorded("retry.orderly-suspend-max4")
    assert step_of(timeline, "5th delivery")["constant"].startswith("none")
    assert smallest(timeline, "5th delivery") <= ONE_CALL_MS
    scene = play_suspend(stage, phase_ms)
    last = {key: at for at, key, times in scene.listener.delivered if times == 4}
    stored = [event["t_ms"] for event in scene.events("MessageStored", topic="%DLQ%G")]
    assert len(stored) == 2
    for tried, dead in zip((last["m0"], last["m1"]), stored, strict=True):
        assert 0 < dead - tried <= 5
    (received, again) = [e for e in scene.events("MessageSendReceived") if e["topic"] == "%RETRY%G"]
    assert received["t_ms"] - last["m0"] <= 5
    assert again["t_ms"] - last["m1"] <= 5
    store = scene.lab.brokers[0].store
    queue = store.find_consume_queue("%DLQ%G", 0)
    dead_letters = [store.look_message_by_offset(queue.get(number).pos) for number in (0, 1)]
    ours = [(m.keys, m.reconsume_times, m.properties["RETRY_TOPIC"], m.properties["DELAY"]) for m in dead_letters]
    for run in timeline["runs"]:
        real = recorded_events(run, "dlq_arrival")
        assert ours == [(e["key"], e["reconsumeTimes"], e["retryTopic"], e["delay"]) for e in real]
        sent = [e["topic"] for e in recorded_events(run, "request", code=RequestCode.SEND_MESSAGE_V2)]
        assert sent == ["%RETRY%G", "%RETRY%G"]


def test_the_message_behind_it_follows_at_once(stage: Any, recorded: Any, smallest: Any, phase_ms: int) -> None:
    timeline = recorded("retry.orderly-suspend-max4")
    step = "last delivery of m0 -> first delivery of m1"
    assert step_of(timeline, step)["constant"] == "none"
    assert smallest(timeline, step) <= ONE_CALL_MS
    delivered = play_suspend(stage, phase_ms).listener.delivered
    assert 0 < delivered[5][0] - delivered[4][0] <= 5


# -- locks ------------------------------------------------------------------------------------------------------------


class Noting(MessageListenerOrderly):
    """Takes 20 ms for a message and notes who got it."""

    def __init__(self, scene: Any, name: str) -> None:
        self.scene = scene
        self.name = name

    async def consume_message(self, messages: Any, context: Any) -> ConsumeOrderlyStatus:
        (message,) = messages
        self.scene.delivered.append((self.scene.now_ms, self.name, message.keys, message.queue_id))
        await context.sleep(20)
        return ConsumeOrderlyStatus.SUCCESS


class Owners:
    """Consumers A and B of four queues, and four messages a second, in turn to each queue."""

    def __init__(self, stage: Any, phase_ms: int, b_starts_ms: int, load_ms: int) -> None:
        scene = self.scene = stage(queues=4, phase_ms=phase_ms)
        self.returned_ms: dict[str, float] = {}
        self._start("A")
        scene.at(b_starts_ms)
        self._start("B")
        scene.at(load_ms)
        producer = scene.producer()

        async def load() -> None:
            for number in range(2_000):
                queue = MessageQueue("T", "broker-a", number % 4)
                await producer.send(Message("T", b"x", keys=f"p{number}"), queue=queue)
                await producer.node.sleep(SEND_EVERY_MS)

        producer.node.spawn(load(), "load")

    def _start(self, name: str) -> None:
        consumer = self.scene.consumer(name, consume_thread_min=4, consume_thread_max=4)
        consumer.register_message_listener(Noting(self.scene, name))
        self.scene.lab.run(consumer.start())
        self.returned_ms[name] = self.scene.now_ms

    def locks(self, who: str) -> list[float]:
        """When a consumer asked for locks."""
        return [event["t_ms"] for event in self.scene.requests(who, RequestCode.LOCK_BATCH_MQ)]

    def renewals(self, who: str) -> list[float]:
        """When a consumer asked for locks twice at once, as its two services do."""
        asked = self.locks(who)
        return [one for one, other in pairwise(asked) if one == other]

    def has_all(self, who: str, after_ms: float) -> float:
        """When a consumer first had all four queues after a time."""
        owned: set[int] = set()
        for event in sorted(
            self.scene.events("QueueAllocated", topic="T") + self.scene.events("QueueDropped", topic="T"),
            key=lambda event: event["t_ms"],
        ):
            if event["node"] == who:
                change = owned.add if "queue_offset" in event else owned.discard
                change(event["queue_id"])
                if event["t_ms"] >= after_ms and len(owned) == 4:
                    return float(event["t_ms"])
        raise AssertionError(f"{who} never had all queues")

    def first_delivery(self, who: str, after_ms: float, queues: tuple[int, ...] = (0, 1, 2, 3)) -> float:
        """When a consumer first got a message of these queues after a time."""
        found = [
            at for at, name, _, queue in self.scene.delivered if name == who and at >= after_ms and queue in queues
        ]
        return min(found)

    def twice(self, begin_ms: float, end_ms: float) -> list[str]:
        """The keys of messages that came again between two times."""
        seen: set[str] = set()
        found = []
        for at, _, key, _ in self.scene.delivered:
            if key in seen and begin_ms <= at < end_ms:
                found.append(key)
            seen.add(key)
        return found


def play_stopped_owner(stage: Any, phase_ms: int) -> Owners:
    owners = Owners(stage, phase_ms, b_starts_ms=25_000, load_ms=26_000)
    scene = owners.scene
    scene.at(STOPPED_MS)
    scene.lab.freeze("A")
    scene.at(CONTINUED_MS)
    scene.lab.thaw("A")
    scene.at(STOP_END_MS)
    return owners


def play_killed_owner(stage: Any, phase_ms: int) -> Owners:
    owners = Owners(stage, phase_ms, b_starts_ms=2_000, load_ms=14_000)
    scene = owners.scene
    scene.at(KILLED_MS)
    scene.lab.crash("B")
    scene.at(KILL_END_MS)
    return owners


@pytest.fixture
def stopped_owner(stage: Any, once: Any, phase_ms: int) -> Owners:
    return once(play_stopped_owner, stage, phase_ms)  # type: ignore[no-any-return]


@pytest.fixture
def killed_owner(stage: Any, once: Any, phase_ms: int) -> Owners:
    return once(play_killed_owner, stage, phase_ms)  # type: ignore[no-any-return]


STOPPED, KILLED = "orderly.lock-renewal-and-stopped-owner", "orderly.owner-killed"


# -- an owner that hangs ----------------------------------------------------------------------------------------------


def test_the_first_rebalance_locks_each_queue_by_itself(stopped_owner: Owners, recorded: Any) -> None:
    """1 s after the client instance was made; a real start takes longer than that interval, or part of it."""
    first = stopped_owner.locks("A")[:4]
    assert MIN_INTERVAL_MS <= first[0] <= MIN_INTERVAL_MS + ONE_CALL_MS
    assert first[3] - first[0] <= 5
    assert "minInterval 1000" in step_of(recorded(STOPPED), "A: start() returned")["constant"]
    for run in recorded(STOPPED)["runs"]:
        (begun,) = recorded_events(run, "consumer_start_called", who="A")
        asked = recorded_events(run, "request", who="A", code=RequestCode.LOCK_BATCH_MQ)
        assert asked[0]["t_ms"] - begun["t_ms"] >= MIN_INTERVAL_MS
        single = [e["queues"] for e in asked[:4]]
        assert sorted(single) == [["0"], ["1"], ["2"], ["3"]]


def test_all_locks_are_renewed_every_20_s_and_twice_each_time(
    stopped_owner: Owners, recorded: Any, smallest: Any
) -> None:
    timeline = recorded(STOPPED)
    assert step_of(timeline, "lockAll period")["constant"].endswith("lockInterval 20000")
    assert smallest(timeline, "lockAll period") == pytest.approx(LOCK_INTERVAL_MS, abs=3)
    for who, until in (("A", STOPPED_MS), ("B", CONTINUED_MS)):
        ticks = [at for at in stopped_owner.renewals(who) if at < until]
        assert len(ticks) >= 3
        assert {round(later - earlier, 3) for earlier, later in pairwise(ticks)} == {LOCK_INTERVAL_MS}
    assert step_of(timeline, "lockAll requests sent per period")["per_run"] == [2.0, 2.0, 2.0]
    for tick in stopped_owner.renewals("B"):
        assert stopped_owner.locks("B").count(tick) == 2


def dropped_ms(owners: Owners) -> float:
    found = [e["t_ms"] for e in owners.scene.events("ClientExpired", group="G")]
    return float(found[0])


def test_a_hanging_owner_leaves_the_group_120_s_after_its_last_heartbeat(stopped_owner: Owners, recorded: Any) -> None:
    """The scan comes every 10 s, the heartbeats every 30 s: 90 to 130 s after it began to hang."""
    step = step_of(recorded(STOPPED), "A stopped -> broker list without A")
    assert step["constant"] == "channelExpiredTimeout 120000 since the last heartbeat, scan 10000"
    scene = stopped_owner.scene
    last = max(e["t_ms"] for e in scene.requests("A", RequestCode.HEART_BEAT) if e["t_ms"] < STOPPED_MS)
    assert 120_000 <= dropped_ms(stopped_owner) - last <= 130_000 + ONE_CALL_MS
    for after in [dropped_ms(stopped_owner) - STOPPED_MS, *step["per_run_ms"]]:
        assert 90_000 <= after <= 130_000 + ONE_CALL_MS


def test_the_other_finds_out_at_its_own_rebalance_and_the_locks_are_free_by_then(
    stopped_owner: Owners, recorded: Any
) -> None:
    timeline = recorded(STOPPED)
    dropped = dropped_ms(stopped_owner)
    locked = stopped_owner.has_all("B", STOPPED_MS)
    for after in [locked - dropped, *step_of(timeline, "A dropped -> B has locked all 4")["per_run_ms"]]:
        assert 0 <= after <= 20_000 + 2 * ONE_CALL_MS
    for after in [locked - STOPPED_MS, *step_of(timeline, "A stopped -> B has locked all 4")["per_run_ms"]]:
        assert 90_000 <= after <= 150_000 + 3 * ONE_CALL_MS
    # The first try gets them: one request for each of two queues and the retry queue, and none again.
    renewals = stopped_owner.renewals("B")
    assert sum(1 for at in stopped_owner.locks("B") if dropped <= at <= locked + 5 and at not in renewals) == 3


def test_the_new_owner_gets_messages_half_a_second_after_the_locks(stopped_owner: Owners, recorded: Any) -> None:
    timeline = recorded(STOPPED)
    step = step_of(timeline, "A stopped -> first delivery by B")
    assert step["constant"] == "+ 500 dispatch delay"
    locked = stopped_owner.has_all("B", STOPPED_MS)
    first = stopped_owner.first_delivery("B", STOPPED_MS, (0, 1))
    assert DISPATCH_MS <= first - locked <= DISPATCH_MS + ONE_CALL_MS
    whole = step_of(timeline, "A stopped -> B has locked all 4")["per_run_ms"]
    for real_locked, real_first in zip(whole, step["per_run_ms"], strict=True):
        assert DISPATCH_MS - 5 <= real_first - real_locked <= DISPATCH_MS + ONE_CALL_MS


def test_when_it_goes_on_all_missed_renewals_go_out_at_once(stopped_owner: Owners, recorded: Any) -> None:
    """A timer with a fixed rate catches up: one turn for each 20 s that it hung, for both services."""
    missed = sum(1 for tick in range(1_000, 1_000_000, LOCK_INTERVAL_MS) if STOPPED_MS < tick <= CONTINUED_MS)
    burst = [at for at in stopped_owner.locks("A") if CONTINUED_MS <= at < CONTINUED_MS + 90]
    assert len(burst) == 2 * missed
    for run in recorded(STOPPED)["runs"]:
        real = recorded_events(run, "request", who="A", code=RequestCode.LOCK_BATCH_MQ)
        at_once = [e for e in real if CONTINUED_MS <= e["t_ms"] < CONTINUED_MS + 500]
        assert 12 <= len(at_once) <= 2 * 8 + 2


def test_when_it_goes_on_it_has_its_two_queues_again_within_seconds(stopped_owner: Owners, recorded: Any) -> None:
    """No constant: how long it takes depends on who asks first. What is cached or pulled anew comes within 2 s."""
    timeline = recorded(STOPPED)
    locked = step_of(timeline, "A continues -> A has its 2 queues locked again")["per_run_ms"]
    taken = [
        e for e in stopped_owner.scene.events("QueueLockTaken", topic="T")
        if e["node"] == "A" and e["t_ms"] >= CONTINUED_MS
    ]  # fmt: skip
    assert {e["queue_id"] for e in taken} == {0, 1}
    assert max(e["t_ms"] for e in taken) - CONTINUED_MS <= max(locked)
    delivered = step_of(timeline, "A continues (SIGCONT) -> first delivery by A")["per_run_ms"]
    first = stopped_owner.first_delivery("A", CONTINUED_MS) - CONTINUED_MS
    assert 100 <= first <= max(delivered)
    for queue in (0, 1):
        assert stopped_owner.first_delivery("A", CONTINUED_MS, (queue,)) - CONTINUED_MS <= max(delivered)


def test_all_that_the_other_consumed_meanwhile_comes_again(stopped_owner: Owners, recorded: Any) -> None:
    """It goes on from its old offsets, so it gets again what the other had of its two queues in 150 s."""
    step = step_of(recorded(STOPPED), "number of messages delivered twice")
    whole, after = ([max(runs), min(runs)] for runs in step["per_run"])
    again = stopped_owner.twice(CONTINUED_MS, STOP_END_MS)
    assert min(after) - 3 <= len(again) <= max(after) + 3
    # Before that at most the last message of each queue, whose end was not committed when the owner stopped.
    before = stopped_owner.twice(0, CONTINUED_MS)
    assert len(before) <= 2
    assert all(b - a <= 2 for a, b in zip(sorted(step["per_run"][1]), sorted(step["per_run"][0]), strict=True))
    assert len(again) + len(before) <= max(whole) + 3


# -- an owner that is killed ------------------------------------------------------------------------------------------


def test_the_group_hears_of_the_kill_at_once(killed_owner: Owners, recorded: Any, smallest: Any) -> None:
    step = "B killed -> notice to A"
    assert step_of(recorded(KILLED), step)["constant"] == "none: channel close event"
    assert smallest(recorded(KILLED), step) <= ONE_CALL_MS
    told = [
        e["t_ms"] for e in killed_owner.scene.events("RequestReceived", request_name="NOTIFY_CONSUMER_IDS_CHANGED")
        if e["node"] == "A" and e["t_ms"] >= KILLED_MS
    ]  # fmt: skip
    assert 0 < told[0] - KILLED_MS <= 1


def test_the_locks_of_a_killed_owner_live_on_for_60_s(killed_owner: Owners, recorded: Any) -> None:
    """Nothing unlocks at the broker when a channel closes: 60 s after the last renewal, and up to 1 s until a try."""
    timeline = recorded(KILLED)
    last_lock = step_of(timeline, "last LOCK_BATCH_MQ of B")
    assert last_lock["constant"] == "lockInterval 20000"
    last = killed_owner.locks("B")[-1]
    for before in [last - KILLED_MS, *last_lock["per_run_ms"]]:
        assert -LOCK_INTERVAL_MS <= before <= 0
    locked = killed_owner.has_all("A", KILLED_MS)
    from_lock = step_of(timeline, "last lock of B -> A has locked all 4")
    assert from_lock["constant"] == "60000"
    for lived in [locked - last, *from_lock["per_run_ms"]]:
        assert LOCK_MAX_LIVE_MS <= lived <= LOCK_MAX_LIVE_MS + MIN_INTERVAL_MS + ONE_CALL_MS
    from_kill = step_of(timeline, "B killed -> A has locked all 4")
    assert from_kill["constant"].startswith("REBALANCE_LOCK_MAX_LIVE_TIME 60000")
    for waited in [locked - KILLED_MS, *from_kill["per_run_ms"]]:
        assert LOCK_MAX_LIVE_MS - LOCK_INTERVAL_MS <= waited <= LOCK_MAX_LIVE_MS + MIN_INTERVAL_MS + ONE_CALL_MS


def refusals(owners: Owners) -> list[float]:
    return [
        e["t_ms"] for e in owners.scene.events("RebalanceSkipped", topic="T")
        if e["node"] == "A" and e["t_ms"] >= KILLED_MS and "the lock of" in e["reason"]
    ]  # fmt: skip


def test_meanwhile_the_survivor_tries_once_a_second_for_each_queue(killed_owner: Owners, recorded: Any) -> None:
    timeline = recorded(KILLED)
    step = step_of(timeline, "gap between the lock attempts of A for one queue")
    assert step["constant"] == "rebalanceLater 500 after a failed lock, minInterval 1000"
    refused = refusals(killed_owner)
    rounds = refused[::2]
    gaps = [later - earlier for earlier, later in pairwise(rounds)]
    for gap in [*gaps, *step["per_run_ms"]]:
        assert MIN_INTERVAL_MS <= gap <= MIN_INTERVAL_MS + ONE_CALL_MS
    locked = killed_owner.has_all("A", KILLED_MS)
    assert len(refused) == 2 * len(rounds)
    assert len(rounds) == pytest.approx((locked - KILLED_MS) / MIN_INTERVAL_MS, abs=1.2)
    # Of the real answers at most one for each queue and second; slow rounds make some fewer.
    answers = step_of(timeline, "LOCK_BATCH_MQ answers to A that locked nothing")["per_run"]
    waits = step_of(timeline, "B killed -> A has locked all 4")["per_run_ms"]
    for count, waited in zip(answers, waits, strict=True):
        assert 0.85 * waited <= count / 2 * MIN_INTERVAL_MS <= waited + MIN_INTERVAL_MS


def test_after_the_locks_the_messages_come_half_a_second_later(killed_owner: Owners, recorded: Any) -> None:
    timeline = recorded(KILLED)
    step = step_of(timeline, "B killed -> first delivery by A from a queue of B")
    assert step["constant"] == "+ 500 dispatch delay"
    locked = killed_owner.has_all("A", KILLED_MS)
    first = killed_owner.first_delivery("A", KILLED_MS, (2, 3))
    assert DISPATCH_MS <= first - locked <= DISPATCH_MS + ONE_CALL_MS
    whole = step_of(timeline, "B killed -> A has locked all 4")["per_run_ms"]
    for real_locked, real_first in zip(whole, step["per_run_ms"], strict=True):
        assert DISPATCH_MS - 30 <= real_first - real_locked <= DISPATCH_MS + ONE_CALL_MS


def test_of_a_killed_owner_the_last_message_of_each_queue_comes_again(killed_owner: Owners, recorded: Any) -> None:
    """The offset behind it was to be carried by the pull after the next message. All others come once, in order."""
    last = {queue: key for _, who, key, queue in killed_owner.scene.delivered if who == "B"}
    assert sorted(killed_owner.twice(0, KILL_END_MS)) == sorted(last.values())
    for run in recorded(KILLED)["runs"]:
        delivered = recorded_events(run, "deliver")
        times = Counter(e["key"] for e in delivered)
        real_last = {e["queueId"]: e["key"] for e in delivered if e["who"] == "B"}
        assert sorted(key for key, count in times.items() if count > 1) == sorted(real_last.values())
    for queue in range(4):
        keys = [int(key[1:]) for _, _, key, at in killed_owner.scene.delivered if at == queue]
        assert list(dict.fromkeys(keys)) == list(range(queue, max(keys) + 1, 4))
