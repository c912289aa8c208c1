"""Each safeguard, taken out, makes `mqlab explore` fail: so the rules bite."""

from __future__ import annotations

import pytest

from mqlab.client import ProcessQueue
from mqlab.errors import LearnerError
from mqlab.explore import (
    RULES,
    Trial,
    rules_of_handles,
    rules_of_ordered_pops,
    rules_of_pop,
    rules_of_reviving,
    rules_of_timers,
)

from .broken.quiet import QUIET
from .broken.variants import VARIANTS, WORLD_GOES_ON, Variant


def rule_name(variant: Variant) -> str:
    found_by = variant.found_by
    return found_by if isinstance(found_by, str) else (found_by.__doc__ or "").partition("\n")[0]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.break_it.__name__)
def test_a_safeguard_taken_out_is_found(variant: Variant, monkeypatch: pytest.MonkeyPatch) -> None:
    variant.break_it(monkeypatch)
    for seed in range(variant.first_seed, variant.first_seed + variant.seeds):
        outcome = Trial(variant.scenario, seed).outcome
        if any(breach.rule == rule_name(variant) for breach in outcome.breaches):
            return
    pytest.fail(f"{variant.seeds} seeds of {variant.scenario} found nothing")


def test_each_rule_of_pop_and_of_the_timer_has_a_variant_that_it_finds() -> None:
    of_pop = (rules_of_handles, rules_of_ordered_pops, rules_of_pop, rules_of_reviving, rules_of_timers)
    modules = [module.__name__ for module in of_pop]
    rules = {rule for rule in RULES if rule.__module__ in modules}
    assert len(rules) == 17
    assert rules <= {variant.found_by for variant in (*VARIANTS, *QUIET)}


def test_an_error_of_the_world_fails_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that looks like a learner's: it comes out of the world, not out of a cell."""

    def refuse(self: ProcessQueue, *arguments: object) -> None:
        raise LearnerError("there is no such message", "look elsewhere")

    monkeypatch.setattr(ProcessQueue, "remove_message", refuse)
    outcome = Trial("push-clustering", 0, plan=()).outcome
    assert outcome.breaches[0].rule == WORLD_GOES_ON
    assert "there is no such message" in outcome.breaches[0].reason
