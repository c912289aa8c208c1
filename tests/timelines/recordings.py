"""How to find something in the recording of a time-line."""

from __future__ import annotations

from typing import Any


def step_of(timeline: Any, step: str) -> Any:
    """The step of the summary whose name begins so."""
    (found,) = [s for s in timeline["summary"] if s["step"].startswith(step)]
    return found


def recorded_events(run: list[Any], event: str, **fields: Any) -> list[Any]:
    """The events of a run that are named so and have these fields."""
    return [e for e in run if e["event"] == event and all(e.get(name) == value for name, value in fields.items())]
