"""What RocketMQ does not promise of Pop and of timers is excused by its name, and only that: each is shown here."""

from __future__ import annotations

import pytest

from mqlab.explore import Trial, plan_from_text
from mqlab.explore.places import Place
from mqlab.explore.rule import Rule
from mqlab.explore.rules_of_calls import OTHER_CLOCK
from mqlab.explore.rules_of_handles import NOT_WRITTEN
from mqlab.explore.rules_of_ordered_pops import RINGS_TOO_EARLY
from mqlab.explore.rules_of_pop import (
    ACK_NOT_FLUSHED,
    ACK_ON_ITS_WAY,
    ACK_OVERTAKES,
    BEGUN_AGAIN,
    FORGOTTEN,
    NO_RECORD,
    NOBODY_POPS,
    ORDER_FORGOTTEN,
    REVIVER_AHEAD,
    SAME_MILLISECOND,
    TWO_CHECK_POINTS,
    AckedStaysAway,
    NothingUnackedIsLost,
)
from mqlab.explore.rules_of_reviving import LONE_ACKS, RevivedInTime, ReviversKeepUp
from mqlab.explore.rules_of_storing import UNFLUSHED, NothingUnsentIsDelivered
from mqlab.explore.rules_of_timers import GIVEN_UP
from mqlab.explore.stale_entries import STALE
from mqlab.explore.stopped_timer import TORN, WHEEL_AHEAD
from mqlab.explore.store_contents import StoreContents

CRASH = "at 8s: crash broker-a for 1s"


@pytest.mark.parametrize(
    ("exception", "scenario", "seed", "plan"),
    [
        (GIVEN_UP, "timer-messages", 0, "at 8s: fill_disk broker-a by 100 for 12s"),
        (LONE_ACKS, "pop-plain", 0, ""),
        (BEGUN_AGAIN, "pop-ordered", 0, ""),
        (FORGOTTEN, "pop-plain", 0, CRASH),
        (TWO_CHECK_POINTS, "pop-plain", 1, CRASH),
        (ORDER_FORGOTTEN, "pop-ordered", 0, CRASH),
        (ACK_ON_ITS_WAY, "pop-plain", 3, "at 17943ms: hang_disk broker-a for 91604ms"),
        (ACK_OVERTAKES, "pop-mixed-with-push", 10, "at 9808ms: power_off broker-a for 39577ms"),
        (SAME_MILLISECOND, "pop-plain", 89, ""),
        (NO_RECORD, "pop-key-value", 463, "at 7140ms: fill_disk broker-a by 908 for 136724ms"),
        (NOBODY_POPS, "pop-check-points", 0, ""),
        (NOT_WRITTEN, "proxy-transactions", 227, "at 11580ms: crash consumer-1 for 406ms"),
        (RINGS_TOO_EARLY, "pop-ordered", 943, ""),
        (OTHER_CLOCK, "pop-buffer-merge", 34, "at 10595ms: drift broker-a by -44400 for 115307ms"),
    ],
)
def test_an_exception_is_needed_and_covers_all(exception: str, scenario: str, seed: int, plan: str) -> None:
    outcome = Trial(scenario, seed, plan=plan_from_text(plan) if plan else ()).outcome
    assert outcome.passed, outcome.breaches[0]
    assert exception in outcome.excused


def test_a_reviver_that_is_ahead_of_its_queue_passes_what_is_stored_next() -> None:
    plan = "at 147112ms: power_off broker-a for 1838ms; at 150100ms: freeze consumer-2 for 90s"
    trial = Trial("slave-reads", 670, plan=plan_from_text(plan))
    assert trial.outcome.passed, trial.outcome.breaches[0]
    needed = {type(rule) for rule in trial.rules if REVIVER_AHEAD in rule.excused}
    assert needed == {NothingUnackedIsLost, ReviversKeepUp}


TWO_CUTS = "at 8s: power_off broker-a for 1s; at 20s: power_off broker-a for 2s"
FOUR_STOPS = (
    "at 6s: power_off broker-a for 1s; at 13s: power_off broker-a for 3s; at 22s: power_off broker-a for 1s; "
    "at 28s: crash broker-a for 500ms"
)


@pytest.mark.parametrize(
    ("exception", "scenario", "seed", "plan"),
    [
        (WHEEL_AHEAD, "pop-plain", 1, "at 8s: power_off broker-a for 1s"),
        (TORN, "pop-plain", 8, TWO_CUTS),
        (TORN, "pop-mixed-with-push", 0, TWO_CUTS),
        (STALE, "pop-key-value", 3, TWO_CUTS),
        (STALE, "pop-buffer-merge", 124, FOUR_STOPS),
        (STALE, "pop-buffer-merge", 128, FOUR_STOPS),
        (STALE, "pop-ordered", 100, FOUR_STOPS),
        (ORDER_FORGOTTEN, "pop-ordered", 122, FOUR_STOPS),
    ],
    ids=[
        "a lost timer message", "a torn acknowledgement", "a torn timer message", "a queue that moved up",
        "an entry in front of the timer", "an entry of a message of the timer", "an entry in front of an ordered group",
        "a message that an ordered group is past",
    ],
)
def test_an_exception_of_async_flush_is_needed_and_covers_all(
    exception: str, scenario: str, seed: int, plan: str
) -> None:
    outcome = Trial(scenario, seed, {"flush": "ASYNC_FLUSH"}, plan_from_text(plan)).outcome
    assert outcome.passed, outcome.breaches[0]
    assert exception in outcome.excused


def test_a_message_is_found_where_it_is_when_its_queue_has_moved_up() -> None:
    outcome = Trial("pop-ordered", 3, {"flush": "ASYNC_FLUSH"}, plan_from_text(TWO_CUTS)).outcome
    assert outcome.passed, outcome.breaches[0]


def test_a_record_that_a_power_loss_has_left_without_its_id_is_known_by_its_place() -> None:
    plan = plan_from_text("at 15s: power_off broker-a for 1s")
    trial = Trial("pop-plain", 5, {"flush": "ASYNC_FLUSH"}, plan)
    assert trial.lab is not None
    torn = [found for found in StoreContents(trial.lab).found.values() if found.is_torn]
    assert [found.place for found in torn] == [Place("broker-a", "Orders", 1, 15)]
    assert "\0" not in torn[0].unique_key
    assert trial.outcome.passed, trial.outcome.breaches[0]


def test_a_world_has_not_settled_while_a_group_has_still_to_pop_what_came_back_late() -> None:
    full = "at 319ms: fill_disk broker-a by 15156 for 1246ms; at 24689ms: fill_disk broker-a by 15308 for 56199ms"
    outcome = Trial("pop-mixed-with-push", 20453, plan=plan_from_text(full)).outcome
    assert outcome.passed, outcome.breaches[0]


def test_a_record_that_was_cut_off_may_come_back_in_the_place_of_one_that_is_lost() -> None:
    plan = "at 5s: power_off broker-a for 2s; at 17s: power_off broker-a for 1s; at 26s: power_off broker-a for 1s"
    outcome = Trial("pop-ordered", 211, {"flush": "ASYNC_FLUSH"}, plan_from_text(plan)).outcome
    assert outcome.passed, outcome.breaches[0]
    assert UNFLUSHED in outcome.excused


def test_two_check_points_of_one_moment_are_told_apart() -> None:
    """Of one queue, with other first messages: the bits of their acknowledgements are not mixed up."""
    outcome = Trial("pop-plain", 4, {"flush": "ASYNC_FLUSH"}, plan_from_text(TWO_CUTS)).outcome
    assert outcome.passed, outcome.breaches[0]
    assert ACK_NOT_FLUSHED in outcome.excused


def test_what_was_acknowledged_comes_again_for_ten_named_reasons() -> None:
    """Ten is the most that may be; docs/checks.md says how many there are."""
    assert len(AckedStaysAway.EXCEPTIONS) == 10


@pytest.mark.parametrize(
    ("rule", "exception", "seed"),
    [(RevivedInTime, WHEEL_AHEAD, 101), (RevivedInTime, WHEEL_AHEAD, 495), (AckedStaysAway, STALE, 302),
     (AckedStaysAway, TORN, 920), (NothingUnsentIsDelivered, STALE, 320)],
)  # fmt: skip
def test_through_a_proxy_a_loss_of_power_shows_in_other_rules_too(rule: type[Rule], exception: str, seed: int) -> None:
    trial = Trial("through-a-proxy", seed)
    assert trial.outcome.passed, trial.outcome.breaches[0]
    (judged,) = [one for one in trial.rules if isinstance(one, rule)]
    assert judged.excused[exception]


def test_a_listener_that_was_given_a_message_twice_settles_it_twice() -> None:
    """Both times its handle has expired; what it settles again with one handle is a breach (the quiet variants)."""
    trial = Trial("through-a-proxy", 428)
    assert trial.outcome.passed, trial.outcome.breaches[0]
    assert trial.lab is not None
    failed = [(record.node, record.msg_id) for record in trial.lab.history.find("SettlingFailed")]
    assert max(map(failed.count, failed)) == 2


@pytest.mark.parametrize("seed", [196, 394, 700028])
def test_an_auditor_whose_process_was_killed_goes_on_in_its_next_life(seed: int) -> None:
    trial = Trial("through-a-proxy", seed)
    assert trial.outcome.passed, trial.outcome.breaches[0]


def test_a_message_may_be_put_back_before_the_pop_that_waits_for_a_slow_disk_is_answered() -> None:
    plan = plan_from_text("at 11863ms: crash producer-3 for 5792ms; at 22078ms: hang_disk broker-a for 30s")
    trial = Trial("pop-key-value", 6280, plan=plan)
    assert trial.lab is not None
    deliveries: dict[str, dict[tuple[object, ...], int]] = {"MessagePopped": {}, "MessageRevived": {}}
    for record in trial.lab.history.find(("MessagePopped", "MessageRevived")):
        delivery = (record.topic, record.queue_id, record.queue_offset, record.pop_time)
        deliveries[record.kind].setdefault(delivery, record.ts_us)
    popped_us, revived_us = deliveries["MessagePopped"], deliveries["MessageRevived"]
    assert any(revived_us[delivery] < popped_us[delivery] for delivery in revived_us.keys() & popped_us.keys())
    assert trial.outcome.passed, trial.outcome.breaches[0]
