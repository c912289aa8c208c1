"""Invariant lights: one lamp for each rule that must hold, with the event that broke it."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import ClassVar

from mqlab.trace.monitors import GROUND_RULES, Monitor, Violation
from mqlab.trace.record import Record

from .board import Board


class LightsBoard(Board):
    """The ground rules, judged by the monitors that also grade: a lamp is red from the event on that broke its rule.

    Monitors remember every message, so they are not copied as a fold's state is: each event is judged once, and a
    breach shows when the cursor has come to it.
    """

    title: ClassVar[str] = "What must always hold"
    rules: ClassVar[tuple[type[Monitor], ...]] = GROUND_RULES

    def begin(self) -> None:
        """Every rule holds."""
        self._monitors = [rule() for rule in self.rules]
        self._judged = (-1, -1)

    def handlers(self) -> dict[str, Callable[[Record], None]]:
        """The kinds that some monitor wants."""
        kinds = {kind for monitor in self._monitors for kind in _names(monitor)}
        return dict.fromkeys(sorted(kinds), self._judge)

    def _judge(self, record: Record) -> None:
        if record.at > self._judged:
            self._judged = record.at
            for monitor in self._monitors:
                monitor(record.row)

    def _broken(self, monitor: Monitor) -> list[Violation]:
        return [violation for violation in monitor.violations if violation.record.at <= self.here]

    def html(self) -> str:
        """One line with a lamp for each rule."""
        return "".join(self._lamp(monitor) for monitor in self._monitors)

    def _lamp(self, monitor: Monitor) -> str:
        broken = self._broken(monitor)
        if not broken:
            return f'<div class="mq-row"><span>🟢 holds</span><span>{escape(monitor.rule)}</span></div>'
        first = broken[0]
        place = self.lab.history.index_of(first.record.at) + 1
        return (
            f'<div class="mq-row"><span>🔴 broken {len(broken)} times</span>'
            f"<span>{escape(monitor.rule)}</span>"
            f'<button type="button" data-do="goto" data-place="{place}">go there</button>'
            f'<span class="mq-faint">{escape(first.reason)}</span></div>'
        )

    def text(self) -> list[str]:
        """The same in words."""
        return [
            f"broken {len(broken)} times: {monitor.rule} First: {broken[0].reason}"
            if (broken := self._broken(monitor))
            else f"holds: {monitor.rule}"
            for monitor in self._monitors
        ]


def _names(monitor: Monitor) -> tuple[str, ...]:
    kinds = monitor.kinds if isinstance(monitor.kinds, tuple) else (monitor.kinds,)
    return tuple(kind if isinstance(kind, str) else kind.__name__ for kind in kinds if kind is not None)
