"""A student's seed follows from the student's id and the lab, on every machine."""

from __future__ import annotations

import pytest

from mqlab.check import DEFAULT_SEED, seed_for


def test_without_an_id_everybody_has_the_default_seed() -> None:
    assert [seed_for("", "02"), seed_for("  ", "03")] == [DEFAULT_SEED, DEFAULT_SEED]


def test_seeds_are_the_committed_ones() -> None:
    seeds = [seed_for("anna", "02"), seed_for("anna", "03"), seed_for("bo", "02")]
    assert seeds == [841157433, 987959183, 928194099]


def test_case_and_spaces_of_an_id_do_not_count() -> None:
    assert seed_for(" Anna ", "02") == seed_for("anna", "02")


def test_on_a_hub_the_user_is_the_student(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTERHUB_USER", "anna")
    assert seed_for("", "02") == 841157433
    assert seed_for("bo", "02") == 928194099
