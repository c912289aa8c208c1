"""The settings of property tests."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("deterministic", derandomize=True, deadline=None, max_examples=200)
settings.load_profile("deterministic")
