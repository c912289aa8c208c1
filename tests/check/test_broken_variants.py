"""Each safeguard, taken out, makes `mqlab check` fail: so the rules bite."""

from __future__ import annotations

import pytest

from mqlab.explore import Trial

from .broken.variants import VARIANTS, Variant


def rule_name(variant: Variant) -> str:
    found_by = variant.found_by
    return found_by if isinstance(found_by, str) else (found_by.__doc__ or "").partition("\n")[0]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.break_it.__name__)
def test_a_safeguard_taken_out_is_found(variant: Variant, monkeypatch: pytest.MonkeyPatch) -> None:
    variant.break_it(monkeypatch)
    for seed in range(variant.seeds):
        outcome = Trial(variant.scenario, seed).outcome
        if any(breach.rule == rule_name(variant) for breach in outcome.breaches):
            return
    pytest.fail(f"{variant.seeds} seeds of {variant.scenario} found nothing")
