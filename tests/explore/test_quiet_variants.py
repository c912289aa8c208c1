"""Rules do not take the product's word for it: each of these variants says that all is well, and is found."""

from __future__ import annotations

import pytest

from mqlab.explore import Trial, plan_from_text

from .broken.quiet import QUIET, Quiet


@pytest.mark.parametrize("quiet", QUIET, ids=lambda quiet: quiet.what)
def test_a_variant_that_says_that_all_is_well_is_found(quiet: Quiet, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _breaches(quiet) == {}
    for change in quiet.changes:
        change.apply(monkeypatch)
    breaches = _breaches(quiet)
    assert (quiet.found_by.__doc__ or "").partition("\n")[0] in breaches, breaches


def _breaches(quiet: Quiet) -> dict[str, str]:
    """The rules that do not hold, and why."""
    parameters = {"world": quiet.world} if quiet.world else {}
    faults = "" if quiet.world and quiet.faults is None else quiet.faults
    plan = None if faults is None else plan_from_text(faults)
    outcome = Trial(quiet.scenario, quiet.seed, parameters, plan).outcome
    return {breach.rule: breach.reason for breach in outcome.breaches}
