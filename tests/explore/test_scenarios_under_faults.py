"""The scenarios of sending, pushing, retrying and pulling hold all rules under seeded faults: here for a few seeds.

`make explore-seeds` plays a thousand of each.
"""

from __future__ import annotations

import pytest

from mqlab import scenarios
from mqlab.explore import RULES, Trial, plan_from_text, plan_text
from mqlab.explore.rules_of_pop import NOBODY_POPS
from mqlab.explore.rules_of_storing import UNFLUSHED

UNDER_FAULTS = [name for name in scenarios.names() if scenarios.get(name).faults]
SEEDS = range(6)
COSTLY = {
    "pull-schedule": range(2), "lite-pull": range(4), "many-files": range(3), "power-cuts": range(3),
    "pop-plain": range(3), "pop-buffer-merge": range(3), "pop-key-value": range(3), "pop-ordered": range(3),
    "pop-mixed-with-push": range(2), "through-a-proxy": range(3), "slave-reads": range(3),
}  # fmt: skip


def test_the_scenarios_of_this_chapter_bear_faults() -> None:
    wanted = {
        "sync-send-two-brokers", "async-send", "one-way", "push-clustering", "push-orderly", "slow-listener",
        "broadcasting", "retry-and-dead-letters", "delayed-messages", "pull-schedule", "lite-pull", "power-cuts",
        "many-files", "batches", "short-consume-timeout", "orderly-rebalance", "silence", "hurried-senders",
        "tag-twins", "maintenance", "timer-messages", "sync-replication", "slave-reads",
        "pop-plain", "pop-buffer-merge", "pop-key-value", "pop-ordered", "pop-mixed-with-push",
    }  # fmt: skip
    assert wanted <= set(UNDER_FAULTS)


@pytest.mark.parametrize("name", UNDER_FAULTS)
def test_every_rule_holds(name: str) -> None:
    for seed in COSTLY.get(name, SEEDS):
        trial = Trial(name, seed)
        outcome = trial.outcome
        assert outcome.passed, f"seed {seed}, {plan_text(outcome.plan)}: {outcome.breaches[0]}"
        assert outcome.load_ended
        assert NOBODY_POPS not in outcome.excused
        for rule in trial.rules:
            assert sum(rule.excused.values()) <= rule.judged, rule


def test_a_message_of_a_retry_topic_is_another_one_than_that_at_the_same_place_of_its_topic() -> None:
    trial = Trial("through-a-proxy", 7, plan=("at 4270ms: cut broker-a > proxy-1 for 14482ms",))
    assert trial.outcome.passed, trial.outcome.breaches[0]
    assert trial.outcome.goals["5x-message-comes-again"]


def test_a_level_does_not_note_what_it_passes_over_since_the_log_has_it_no_more() -> None:
    plan = "at 6796ms: power_off broker-a for 945ms; at 7777ms: fill_disk broker-a by 12861 for 143436ms"
    trial = Trial("many-files", 541, plan=plan_from_text(plan))
    assert trial.outcome.passed, trial.outcome.breaches[0]
    service = trial.lab.brokers[0].running().schedule_message_service
    assert service.offset_table[1] < service.loops[1].offset


def test_no_rule_is_silent_in_all_scenarios() -> None:
    silent = {rule.__name__ for rule in RULES}
    for name, seed in (
        ("slave-reads", 1), ("bank-transfers", 0), ("pop-ordered", 1), ("short-consume-timeout", 0), ("tag-twins", 0),
        ("request-reply", 1), ("power-cuts", 1), ("pop-plain", 1), ("through-a-proxy", 0),
    ):  # fmt: skip
        judged = Trial(name, seed).outcome.judged
        assert judged.keys() == {rule.__name__ for rule in RULES}
        silent -= {rule for rule, times in judged.items() if times}
    for world, faults in (
        ("topic Orders; producer p messages=40; push w; at 9000ms: reset w", ""),
        ("broker c; topic Orders; producer p messages=40; push w; broadcasting s", "at 1s: crash c for 70s"),
        ("topic Steps type=FIFO; group w consume_message_orderly=true; proxy x; producer5 p topic=Steps way=in-order "
         "messages=40; push5 w topic=Steps refuse_one_in=3", "at 3s: crash x for 5s"),
        ("topic Steps type=FIFO queues=1; group w consume_message_orderly=true retry_max_times=1; proxy x; "
         "producer5 p topic=Steps way=in-order messages=40; push5 w topic=Steps refuse_one_in=2; "
         "simple5 w2 topic=Steps members=2; group w2 consume_message_orderly=true", "at 3s: crash x for 5s"),
        ("topic Transfers type=TRANSACTION; proxy x; transactions5 p topic=Transfers messages=8", ""),
    ):  # fmt: skip
        parameters = {"world": f"name-server n; broker b; {world}"}
        judged = Trial("drawn", 0, parameters, plan_from_text(faults)).outcome.judged
        silent -= {rule for rule, times in judged.items() if times}
    assert silent == set()


def test_the_end_of_a_load_without_end_is_not_judged() -> None:
    outcome = Trial("take-or-own", 0, {"every_ms": 2_000}, ()).outcome
    assert not outcome.load_ended
    assert outcome.judged["AcknowledgedSurvives"] > 0
    assert outcome.judged["EverythingSettles"] == outcome.judged["AcknowledgedIsReadable"] == 0


@pytest.mark.parametrize("name", UNDER_FAULTS)
def test_every_rule_holds_without_faults(name: str) -> None:
    outcome = Trial(name, 1, plan=()).outcome
    assert outcome.passed, outcome.breaches[0]
    assert outcome.plan == ()


@pytest.mark.parametrize(
    "name", ["first-message", "steady-load", "held-pulls", "rebalance", "two-brokers", "new-topic"]
)
def test_the_rules_judge_any_scenario(name: str) -> None:
    outcome = Trial(name, 7, plan=()).outcome
    assert outcome.passed, outcome.breaches[0]


@pytest.mark.parametrize(("flush", "keeps"), [("SYNC_FLUSH", True), ("ASYNC_FLUSH", False)])
def test_a_power_cut_costs_acknowledged_messages_unless_each_is_flushed_first(flush: str, keeps: bool) -> None:
    outcome = Trial("power-cut", 7, {"flush": flush, "cut_ms": 1, "messages": 20}, ()).outcome
    assert outcome.passed, outcome.breaches[0]
    assert (UNFLUSHED not in outcome.excused) == keeps
