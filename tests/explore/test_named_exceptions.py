"""What real RocketMQ does not promise is excused by its name, and only that: each named exception is shown here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from mqlab import Lab, Message
from mqlab.broker.filter.property_message_filter import PropertyMessageFilter
from mqlab.broker.transaction.half_messages import HalfMessages
from mqlab.client import ConsumeOrderlyContext, ConsumeOrderlyStatus, MessageListenerOrderly
from mqlab.client.consumer.process_queue import ProcessQueue
from mqlab.explore import RULES, Outcome, Trial, plan_from_text
from mqlab.explore.places import Place
from mqlab.explore.rule import Case
from mqlab.explore.rules_of_begins import BEHIND
from mqlab.explore.rules_of_delivery import NOT_WAITED_FOR, OTHER_UNIT, SKIPPED, USED_TWICE
from mqlab.explore.rules_of_entries import EachHasAnEntry
from mqlab.explore.rules_of_leftovers import GHOST
from mqlab.explore.rules_of_offsets import ILLEGAL, LATE_ANSWER, LATE_COMMIT, LISTENER_AT_WORK, TWO_OWNERS
from mqlab.explore.rules_of_order import (
    FORGOTTEN_LOCK,
    HUNG_OWNER,
    LEAVING_OWNER,
    LOST_ON_THE_WAY,
    TAKEN_AT_THE_END,
    InOrder,
)
from mqlab.explore.rules_of_queues import LATE_POLL, LATE_PULL
from mqlab.explore.rules_of_replication import SHORTER
from mqlab.explore.rules_of_replies import PUSHED
from mqlab.explore.rules_of_reviving import LONE_ACKS
from mqlab.explore.rules_of_settling import AGAIN_WITHOUT_END, NO_MEMBER
from mqlab.explore.rules_of_storing import DELETED, GAP, UNFLUSHED, AcknowledgedSurvives
from mqlab.explore.rules_of_time import GHOST_BROKER
from mqlab.explore.rules_of_transactions import LOST_AGAIN, NOT_WRITTEN
from mqlab.explore.stale_entries import STALE
from mqlab.explore.stopped_timer import TORN
from mqlab.protocol.errors import RecordError
from mqlab.protocol.message import MessageExt
from mqlab.protocol.topics import RMQ_SYS_SCHEDULE_TOPIC, RMQ_SYS_TRANS_HALF_TOPIC
from mqlab.scenarios import Scenario, add
from mqlab.scenarios.registry import _SCENARIOS
from mqlab.store import readable_store
from mqlab.store.consume_queue import ConsumeQueue
from mqlab.store.dispatch_request import DispatchRequest

from .broken.mutants import MUTANTS

FULL_AT_FIRST = "at 556ms: fill_disk broker-a by 10794 for 20351ms"
OF_BEFORE = "at 76960ms: power_off slave-a for 1647ms; at 96326ms: freeze slave-a for 55592ms"
TORN_HALF = "at 68923ms: power_off broker-a for 103560ms"
OTHER_TAGS = (
    "at 423ms: freeze broker-a for 7061ms; at 521ms: fill_disk broker-a by 5652 for 11962ms; "
    "at 11798ms: power_off broker-a for 3940ms"
)
CORRECTED_TO_66 = "at 88560ms: power_off broker-a for 291ms"
"""The orderly reader had consumed up to offset 38 of both queues."""
NO_RECORD = "at 2831ms: power_off broker-a for 453ms; at 6109ms: power_off broker-a for 1518ms"


def first_with(name: str, scenario: str, plan: tuple[str, ...], seeds: int, **parameters: Any) -> Outcome:
    """The first of these seeds in which the exception is needed; all of them must pass."""
    for seed in range(seeds):
        outcome = Trial(scenario, seed, parameters, plan).outcome
        assert outcome.passed, outcome.breaches[0]
        if name in outcome.excused:
            return outcome
    pytest.fail(f"{seeds} seeds of {scenario} did not need: {name}")


def excused(scenario: str, seed: int, plan: str) -> dict[str, int]:
    """What this seed, which must pass, has needed."""
    outcome = Trial(scenario, seed, plan=plan_from_text(plan)).outcome
    assert outcome.passed, outcome.breaches[0]
    return outcome.excused


def consumers_lose(monkeypatch: pytest.MonkeyPatch, queue_id: int, queue_offset: int) -> None:
    """Let each consumer lose the message at this offset of a queue with this number."""
    put_message = ProcessQueue.put_message

    def put_all_but_one(queue: ProcessQueue, messages: list[MessageExt]) -> bool:
        messages[:] = [m for m in messages if (m.queue_id, m.queue_offset) != (queue_id, queue_offset)]
        return put_message(queue, messages)

    monkeypatch.setattr(ProcessQueue, "put_message", put_all_but_one)


def test_every_exception_is_explained_in_a_sentence() -> None:
    for rule in RULES:
        for text in rule.EXCEPTIONS.values():
            assert text.endswith(".")


def test_with_async_flush_a_power_loss_costs_acknowledged_messages_and_offsets_are_used_twice() -> None:
    plan = ("at 800ms: power_off broker-a for 500ms",)
    outcome = first_with(UNFLUSHED, "push-clustering", plan, 10, flush="ASYNC_FLUSH", every_ms=20)
    assert USED_TWICE in outcome.excused


def test_a_reply_is_acknowledged_when_it_was_pushed_although_the_disk_has_no_room_for_it() -> None:
    plan = "at 5548ms: fill_disk broker-b by 5359 for 13968ms"
    assert excused("request-reply", 187, plan)[PUSHED] > 0


def test_a_record_torn_by_a_power_loss_loses_its_properties() -> None:
    plan = ("at 800ms: power_off broker-a for 500ms",)
    first_with(TORN, "push-clustering", plan, 30, flush="ASYNC_FLUSH", every_ms=20)


@pytest.mark.parametrize(
    ("scenario", "seed", "plan"),
    [
        ("demo-slow-consumer", 899, "at 3149ms: cut consumer-1 > broker-a for 134963ms; "
                                    "at 27717ms: power_off broker-a for 7593ms"),
        ("demo-retry", 183, "at 22932ms: partition broker-a | producer-1 consumer-1 namesrv-1 for 1043ms; "
                            "at 24012ms: power_off broker-a for 193ms; at 29891ms: crash broker-a for 396ms"),
    ],
)  # fmt: skip
def test_a_listener_may_get_a_record_without_an_id_or_one_put_together_of_others(
    scenario: str, seed: int, plan: str
) -> None:
    assert TORN in excused(scenario, seed, plan)


def test_a_message_that_has_lost_its_tag_is_not_given_to_who_wanted_it() -> None:
    plan = "at 3451ms: crash consumer-2 for 11474ms; at 5541ms: power_off broker-a for 959ms"
    parameters = {"also": "", "nameless": 0, "bit_maps": False}
    outcome = Trial("sql-filters", 538, parameters, plan_from_text(plan)).outcome
    assert outcome.passed
    assert outcome.excused[TORN] == 2


def test_an_orderly_consumer_may_skip_what_it_had_cached() -> None:
    trial = Trial("slave-reads", 18, plan=plan_from_text(CORRECTED_TO_66))
    assert trial.outcome.passed, trial.outcome.breaches[0]
    assert [rule.excused[SKIPPED] for rule in trial.rules if isinstance(rule, InOrder)] == [2]


def test_a_torn_half_message_is_asked_of_nobody() -> None:
    assert excused("bank-transfers", 157, "at 14016ms: power_off broker-a for 1454ms")[LOST_AGAIN] == 2


def test_a_half_message_whose_newest_copy_is_torn_is_never_asked_about_again() -> None:
    assert excused("bank-transfers", 314, TORN_HALF)[TORN] == 1


def test_a_half_message_that_the_disk_refuses_is_not_taken_for_the_one_at_offset_0() -> None:
    """That one says of itself that it is immune for 18 s; the one that is sent again to another broker does not."""
    assert excused("bank-transfers", 296, FULL_AT_FIRST) == {NOT_WRITTEN: 4}


@pytest.mark.parametrize(
    ("seed", "plan"),
    [
        (470, OTHER_TAGS),
        (899, "at 455ms: cut consumer-3 > broker-a for 134963ms; at 3427ms: disconnect broker-a | producer-1; "
              "at 5940ms: hang_disk broker-a for 162ms; at 15810ms: power_off broker-a for 7593ms"),
    ],
)  # fmt: skip
def test_an_entry_that_outlived_its_unit_may_hide_its_message(seed: int, plan: str) -> None:
    assert excused("sql-filters", seed, plan)[OTHER_UNIT] > 0


def test_a_broker_cannot_judge_a_stale_entry_that_points_to_no_record() -> None:
    outcome = Trial("sql-filters", 533, plan=plan_from_text(NO_RECORD)).outcome
    assert outcome.passed
    assert outcome.excused[STALE] > 0
    assert outcome.now_ms < 100_000, "exploration does not wait for whom nothing helps"


def test_after_a_power_loss_and_one_more_restart_a_queue_has_entries_of_other_messages() -> None:
    plan = ("at 2s: power_off broker-a for 500ms", "at 8s: crash broker-a for 500ms")
    outcome = Trial("push-clustering", 44, {"flush": "ASYNC_FLUSH"}, plan).outcome
    assert outcome.passed
    assert STALE in outcome.excused


@pytest.mark.parametrize(
    ("seed", "plan"),
    [
        (51, "at 4735ms: power_off broker-a for 1907ms; at 7089ms: power_off broker-a for 1388ms"),
        (230, "at 1230ms: power_off broker-a for 2676ms; at 4368ms: power_off broker-a for 3579ms"),
    ],
    ids=["the end of an older one", "the beginning of an older one"],
)
def test_a_record_of_two_messages_names_a_place_that_is_taken(seed: int, plan: str) -> None:
    assert excused("power-cuts", seed, plan)[TORN] == 1


def test_a_record_whose_entry_has_moved_up_may_have_its_offset_taken() -> None:
    plan = (
        "at 6978ms: power_off broker-a for 365ms; at 10491ms: power_off broker-a for 396ms; "
        "at 11579ms: power_off broker-a for 1871ms"
    )
    assert STALE in excused("power-cuts", 608, plan)


def test_recovery_keeps_entries_in_front_of_three_files_of_which_the_first_is_blank() -> None:
    plan = "at 464ms: hang_disk broker-a for 11616ms; at 6959ms: power_off broker-a for 274ms"
    assert STALE in excused("power-cuts", 547, plan)


def test_a_copy_that_was_given_back_is_not_waited_for() -> None:
    plan = ("at 10s: power_off broker-a for 1s",)
    first_with(NOT_WAITED_FOR, "retry-and-dead-letters", plan, 5, flush="ASYNC_FLUSH")


def test_a_consumer_that_leaves_does_not_wait_for_its_orderly_listener() -> None:
    first_with(LEAVING_OWNER, "push-orderly", (), 30)


def test_a_consumer_that_ends_while_it_takes_a_queue_over_keeps_the_lock() -> None:
    assert excused("orderly-rebalance", 424, "")[TAKEN_AT_THE_END] == 1


def test_an_orderly_listener_is_called_when_its_consumer_has_let_go_of_the_lock_just_before() -> None:
    assert excused("orderly-rebalance", 47, "at 18913ms: freeze consumer-2 for 4377ms")[LOST_ON_THE_WAY] == 1


def test_an_orderly_listener_that_always_fails_stands_for_ever() -> None:
    outcome = first_with(AGAIN_WITHOUT_END, "poison", (), 1)
    assert outcome.excused[AGAIN_WITHOUT_END] == 1


def test_a_broker_that_was_killed_has_forgotten_its_locks() -> None:
    plan = ("at 3s: crash broker-a for 500ms",)
    first_with(FORGOTTEN_LOCK, "push-orderly", plan, 40, consumers=3, every_ms=200)


def test_a_pull_that_was_being_prepared_goes_out_after_its_queue_was_given_up() -> None:
    plan = ("at 1194ms: delay consumer-1 > broker-a by 1228ms for 801ms",)
    outcome = Trial("push-orderly", 714, plan=plan).outcome
    assert outcome.passed
    assert LATE_PULL in outcome.excused


def test_a_poll_that_has_its_batch_hands_it_out_after_its_queue_was_given_up() -> None:
    outcome = Trial("lite-pull", 367).outcome
    assert outcome.passed, outcome.breaches[0]
    assert outcome.excused[LATE_POLL] == 1


def test_a_lite_pull_consumer_that_nobody_polls_leaves_its_messages() -> None:
    first_with(NO_MEMBER, "lite-pull", ("at 5s: crash consumer-1 for 1s",), 3)


def test_a_heartbeat_that_is_looked_at_too_late_makes_a_ghost() -> None:
    seen = excused("hurried-senders", 29, "at 8488ms: freeze broker-b for 1927ms")
    assert GHOST in seen


def test_a_report_that_is_looked_at_too_late_makes_a_ghost_of_a_broker() -> None:
    assert GHOST_BROKER in excused("one-way", 36, "at 4967ms: cut broker-b > namesrv-1 for 67343ms")


def test_two_owners_overwrite_each_others_offsets() -> None:
    assert TWO_OWNERS in excused("retry-and-dead-letters", 43, "at 4833ms: power_off broker-a for 762ms")


def test_what_a_listener_finishes_while_its_consumer_ends_is_not_written() -> None:
    assert LISTENER_AT_WORK in excused("maintenance", 160, "")


def test_a_commit_arrives_when_the_queue_has_another_owner() -> None:
    plan = "at 106634ms: cut consumer-2 > broker-b for 60075ms"
    assert LATE_COMMIT in excused("silence", 26, plan)


def test_a_full_disk_costs_the_oldest_files() -> None:
    assert DELETED in excused("power-cuts", 3, "at 17965ms: fill_disk broker-a by 14517 for 91604ms")


def test_entries_that_were_not_flushed_are_not_written_again_when_recovery_begins_behind_them() -> None:
    plan = "at 5703ms: power_off broker-a for 250ms; at 16721ms: power_off broker-a for 1661ms"
    assert GAP in excused("many-files", 21, plan)


FROZEN_AHEAD = "at 16381ms: freeze consumer-1 for 12900ms; at 22200ms: power_off broker-a for 903ms"
"""The consumer asks from offset 83; three messages behind that have their entries at 80 to 82 by then."""


def test_entries_that_moved_up_behind_a_groups_progress_are_never_asked_for() -> None:
    assert GAP in excused("many-files", 426, FROZEN_AHEAD)


def test_a_message_that_moved_up_and_was_asked_for_is_not_excused(monkeypatch: pytest.MonkeyPatch) -> None:
    consumers_lose(monkeypatch, 0, 90)
    breaches = Trial("many-files", 426, plan=plan_from_text(FROZEN_AHEAD)).outcome.breaches
    assert "queue 0 offset 90, which nobody has consumed" in breaches[0].reason


def test_what_a_killed_process_had_not_flushed_is_lost_in_the_midst_of_the_log() -> None:
    plan = "at 9693ms: crash broker-a for 1282ms; at 14285ms: power_off broker-a for 1194ms"
    seen = excused("power-cuts", 937, plan)
    assert seen[UNFLUSHED] > 244, "what lies behind the last flush, and the hole"


def test_a_consumer_that_is_ahead_of_its_queue_is_told_another_offset() -> None:
    assert ILLEGAL in excused("many-files", 6, "at 27896ms: power_off broker-a for 617ms")


def test_a_correction_passes_over_what_a_slow_listener_has_not_finished() -> None:
    assert SKIPPED in excused("demo-slow-consumer", 0, "at 3900ms: power_off broker-a for 979ms")


# -- what an exception does not cover ---------------------------------------------------------------------------------

TWO_RESTARTS = ("at 2s: power_off broker-a for 500ms", "at 8s: crash broker-a for 500ms")
TWO_LOSSES = ("at 5703ms: power_off broker-a for 250ms", "at 16721ms: power_off broker-a for 1661ms")


@pytest.mark.parametrize(
    ("name", "scenario", "seed", "parameters", "plan", "lost"),
    [
        (STALE, "push-clustering", 44, {"flush": "ASYNC_FLUSH"}, TWO_RESTARTS, ("Orders", 2, 10)),
        (GAP, "many-files", 21, {}, TWO_LOSSES, ("SCHEDULE_TOPIC_XXXX", 0, 39)),
    ],
)
def test_a_message_that_is_lost_later_in_the_same_queue_is_not_excused(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    scenario: str,
    seed: int,
    parameters: dict[str, Any],
    plan: tuple[str, ...],
    lost: tuple[str, int, int],
) -> None:
    whole = Trial(scenario, seed, parameters, plan).outcome
    assert whole.passed
    assert name in whole.excused
    put = ConsumeQueue.put

    def put_all_but_one(queue: ConsumeQueue, request: DispatchRequest) -> None:
        if (request.topic, request.queue_id, request.consume_queue_offset) != lost:
            put(queue, request)

    monkeypatch.setattr(ConsumeQueue, "put", put_all_but_one)
    breaches = Trial(scenario, seed, parameters, plan).outcome.breaches
    assert any("was acknowledged, and no broker has it" in breach.reason for breach in breaches)


def test_a_half_message_that_is_whole_and_passed_over_is_not_excused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that notes two more than it has come to passes the copies over that it has just made."""
    commit = HalfMessages.commit

    def commit_too_much(half_messages: HalfMessages, topic: str, offset: int) -> None:
        commit(half_messages, topic, offset + 2 * (topic == RMQ_SYS_TRANS_HALF_TOPIC))

    monkeypatch.setattr(HalfMessages, "commit", commit_too_much)
    outcome = Trial("bank-transfers", 314, plan=plan_from_text(TORN_HALF)).outcome
    assert any("neither ended nor going to be asked about" in breach.reason for breach in outcome.breaches)


def test_an_end_that_is_lost_when_the_disk_has_room_is_not_excused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the ends that are written in one go only the last is: those of the full disk stay the only ones excused."""
    next(mutant for mutant in MUTANTS if mutant.number == 67).apply(monkeypatch)
    outcome = Trial("bank-transfers", 296, plan=plan_from_text(FULL_AT_FIRST)).outcome
    assert any("is ended and asked about" in breach.reason for breach in outcome.breaches)
    assert outcome.excused[NOT_WRITTEN] == 4


def test_a_message_with_its_own_unit_is_not_excused(monkeypatch: pytest.MonkeyPatch) -> None:
    consumers_lose(monkeypatch, 0, 0)
    reasons = [breach.reason for breach in Trial("sql-filters", 470, plan=plan_from_text(OTHER_TAGS)).outcome.breaches]
    missed = "broker-a Orders queue 0 offset 0, which nobody has consumed"
    assert f"paid-orders committed an offset behind {missed}" in reasons


def test_an_orderly_consumer_that_skips_more_than_a_correction_says_is_not_excused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    consumers_lose(monkeypatch, 0, 66)
    trial = Trial("slave-reads", 18, plan=plan_from_text(CORRECTED_TO_66))
    reasons = [breach.reason for breach in trial.outcome.breaches]
    assert "offset 67 of broker-a Orders queue 0 was consumed before offset 39" in reasons


def test_who_notes_less_than_it_holds_is_not_excused_for_a_late_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    remove_message = ProcessQueue.remove_message

    def remove_and_say_less(queue: ProcessQueue, messages: Sequence[MessageExt]) -> int:
        offset = remove_message(queue, messages)
        return offset - 1 if queue.msg_tree_map else offset

    monkeypatch.setattr(ProcessQueue, "remove_message", remove_and_say_less)
    outcome = Trial("slave-reads", 732, plan=plan_from_text(OF_BEFORE)).outcome
    assert any(", and notes " in breach.reason for breach in outcome.breaches)


def brokers_fail_over_what_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = PropertyMessageFilter.is_matched_by_commit_log

    def judge_or_fail(judging: PropertyMessageFilter, record: bytes) -> bool:
        if judging._group == "late":
            raise RecordError(0, "it is not read")
        return judge(judging, record)

    monkeypatch.setattr(PropertyMessageFilter, "is_matched_by_commit_log", judge_or_fail)


def test_an_entry_that_no_pull_comes_to_does_not_excuse_who_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """One pull brings 32 messages to a group that wants all of them."""
    brokers_fail_over_what_is_late(monkeypatch)
    parameters = {"also": "amount >= 0", "nameless": 0, "bit_maps": False, "queues": 1, "every_ms": 100}
    for offset, passes in ((31, True), (32, False)):
        monkeypatch.setattr(Case, "points_to_no_record", lambda _, p, at=offset: p.queue_offset == at)
        outcome = Trial("sql-filters", 0, parameters, ()).outcome
        assert outcome.passed == passes
        assert passes or any("late stands at offset 0" in breach.reason for breach in outcome.breaches)


def test_a_broker_that_cannot_judge_a_whole_record_is_not_excused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker fails over what one group asks for, and no entry of this world is stale."""
    brokers_fail_over_what_is_late(monkeypatch)
    outcome = Trial("sql-filters", 533, plan=plan_from_text("at 2831ms: power_off broker-a for 453ms")).outcome
    assert any("late stands at offset 0" in breach.reason for breach in outcome.breaches)
    assert STALE not in outcome.excused


# -- worlds made for one exception ------------------------------------------------------------------------------------


class TwoSeconds(MessageListenerOrderly):
    """An orderly listener that takes two seconds for a message."""

    async def consume_message(self, messages: Sequence[Any], context: ConsumeOrderlyContext) -> ConsumeOrderlyStatus:
        await context.sleep(2_000)
        return ConsumeOrderlyStatus.SUCCESS


async def two_slow_members(lab: Lab) -> None:
    """Two members consume two queues in order, two seconds for each message."""
    lab.name_server()
    lab.broker()
    lab.create_topic("Orders", 2)
    for _ in range(2):
        consumer = lab.consumer("readers")
        consumer.subscribe("Orders", "*")
        consumer.register_message_listener(TwoSeconds())
        await consumer.start()
    lab.run_for(seconds=2)
    producer = lab.producer("shop")
    await producer.start()
    for number in range(20):
        await producer.send(Message("Orders", f"order {number}"))


@pytest.fixture(autouse=True)
def _worlds() -> Iterator[None]:
    before = dict(_SCENARIOS)
    add(Scenario("two-slow-members", two_slow_members, 60))
    yield
    _SCENARIOS.clear()
    _SCENARIOS.update(before)


def test_a_master_that_lost_its_power_is_shorter_than_its_slave() -> None:
    assert SHORTER in excused("sync-replication", 0, "at 80s: power_off broker-a for 5s")


def test_a_slave_that_knows_no_master_lets_a_consumer_ask_without_a_pause() -> None:
    plan = "at 66793ms: crash slave-a for 7863ms; at 72534ms: crash namesrv-1 for 1092ms"
    assert excused("sync-replication", 112, plan)[BEHIND] > 1_000


def test_a_slave_whose_name_server_heard_of_it_first_follows_a_minute_later() -> None:
    plan = "at 115605ms: freeze broker-a for 244ms; at 139961ms: crash slave-a for 1422ms; "
    assert not excused("slave-reads", 892, plan + "at 175617ms: crash namesrv-1 for 3549ms").keys() - {LONE_ACKS}


def test_a_reader_whose_name_server_heard_of_the_slave_first_comes_home_later() -> None:
    plan = "at 132640ms: crash namesrv-1 for 274ms; at 132897ms: power_off slave-a for 11105ms"
    assert not excused("sync-replication", 232, plan)


def test_an_answer_to_a_pull_of_before_the_queue_was_given_up_is_taken() -> None:
    assert excused("slave-reads", 732, OF_BEFORE)[LATE_ANSWER] == 1


SEAM = (
    "at 74760ms: power_off broker-a for 13226ms; at 101799ms: power_off broker-a for 14475ms; "
    "at 166468ms: crash slave-a for 717ms"
)
"""The master comes back with less than its slave has, twice: the slave's log goes on at 154510, in a record's midst."""


def test_a_slave_is_recovered_up_to_where_its_log_does_not_fit() -> None:
    trial = Trial("slave-reads", 562, plan=plan_from_text(SEAM))
    assert trial.outcome.passed
    survives = next(rule for rule in trial.rules if isinstance(rule, AcknowledgedSurvives))
    assert survives.excused[SHORTER] == 3


def test_what_a_slave_loses_in_front_of_that_is_not_excused(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = readable_store.recover_commit_log

    def short(*arguments: Any, **more: Any) -> Any:
        recovery = whole(*arguments, **more)
        if recovery.end == 154_510:
            recovery.end = 147_525
        return recovery

    monkeypatch.setattr(readable_store, "recover_commit_log", short)
    breaches = Trial("slave-reads", 562, plan=plan_from_text(SEAM)).outcome.breaches
    assert any("was acknowledged and is lost" in breach.reason for breach in breaches)


def test_what_comes_through_a_stale_entry_of_another_queue_moves_the_group_on() -> None:
    plan = "at 88694ms: crash broker-a for 928ms; at 120029ms: power_off broker-a for 1192ms"
    trial = Trial("slave-reads", 3068, plan=plan_from_text(plan))
    assert trial.outcome.passed, trial.outcome.breaches[0]
    in_order = next(rule for rule in trial.rules if isinstance(rule, InOrder))
    assert in_order.excused[STALE] == 1
    queue = [Place("broker-a", "Orders", 0, offset) for offset in range(90)]
    passed = [place.queue_offset for place in queue if in_order.case.ledger.consumption.is_misled("in-order", place)]
    assert passed == [77, 78, 79], "from the entry up to the offset of the message of another queue, and no further"


def test_entries_that_moved_up_into_a_gap_are_told_after_a_second_restart_though_their_offsets_are_used_again() -> None:
    plan = "at 8016ms: power_off broker-a for 1853ms; at 21702ms: crash broker-a for 1952ms"
    trial = Trial("many-files", 542, plan=plan_from_text(plan))
    assert trial.outcome.passed, trial.outcome.breaches[0]
    has_entry = next(rule for rule in trial.rules if isinstance(rule, EachHasAnEntry))
    assert has_entry.excused == {GAP: 16}
    stores = has_entry.case.ledger.stores
    again = [place.queue_offset for place in stores.used_twice if place[1:3] == (RMQ_SYS_SCHEDULE_TOPIC, 1)]
    assert again == [12, 13, 14, 15, 16, 17]


def test_a_record_without_an_entry_is_found_where_others_moved_up_into_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    put = ConsumeQueue.put

    def put_all_but_one(queue: ConsumeQueue, request: DispatchRequest) -> None:
        if request.commit_log_offset != 115_092:
            put(queue, request)

    monkeypatch.setattr(ConsumeQueue, "put", put_all_but_one)
    plan = "at 8016ms: power_off broker-a for 1853ms; at 21702ms: crash broker-a for 1952ms"
    breaches = Trial("many-files", 542, plan=plan_from_text(plan)).outcome.breaches
    assert any("the log of broker-a has a record at 115092" in breach.reason for breach in breaches)


def test_an_owner_that_hangs_outlives_its_lock() -> None:
    first_with(HUNG_OWNER, "two-slow-members", ("at 7s: freeze consumer-2 for 200s",), 1)
