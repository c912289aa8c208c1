"""What official 5.x clients were told by a real proxy, ours tells them, too, but for what docs/fidelity.md names."""

from __future__ import annotations

import re
from functools import cache

import pytest

from tests.fidelity.page import named_differences

from .golden_sessions import names, recorded
from .session_differences import Difference, differences
from .session_player import Player

PATTERNS = [pattern for named in named_differences() for pattern in named.differs]


@cache
def found(session: str) -> list[Difference]:
    """In what our proxy differs in a session."""
    recording = recorded(session)
    player = Player(recording)
    player.play()
    return differences(recording, player)


def fits(pattern: str, difference: Difference) -> bool:
    """Does a pattern name this difference? A `*` in it is whatever."""
    parts = map(re.escape, pattern.split("*"))
    return re.fullmatch(".*".join(parts), difference.name) is not None


@pytest.mark.parametrize("session", names())
def test_a_session_is_answered_as_by_the_real_proxy(session: str) -> None:
    unnamed = [each for each in found(session) if not any(fits(pattern, each) for pattern in PATTERNS)]
    assert unnamed == []


@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_is_named_as_different_differs(pattern: str) -> None:
    assert any(fits(pattern, each) for each in found(pattern.partition(":")[0]))
