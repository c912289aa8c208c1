"""Clients survive what no server should answer: they call it an error, or come again later, as RocketMQ's do."""

from __future__ import annotations

from .mutated import play


def test_every_kind_of_client_survives_nonsense_and_is_well_when_it_ends() -> None:
    assert play(5, sick_ms=10_000, well_ms=40_000) > 50
