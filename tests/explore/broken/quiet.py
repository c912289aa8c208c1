"""Quiet variants: mqlab with a safeguard broken whose events say that all is well. A rule finds it by what is there.

Each is looked for in one world: that of a named scenario's seed, or a drawn one whose lines are given.
"""

from __future__ import annotations

from typing import NamedTuple

from mqlab.explore import Rule
from mqlab.explore.rules_of_calls import SendsEnd

from .mutants import PRODUCER, Change


class Quiet(NamedTuple):
    """A variant, the world in which it shows, and the rule that finds it there."""

    what: str
    changes: tuple[Change, ...]
    found_by: type[Rule]
    scenario: str
    seed: int
    world: str = ""
    """The lines of a drawn world."""
    faults: str | None = None
    """A schedule; None are the faults that the seed draws."""


QUIET = (
    Quiet(
        "a retry forgets which broker failed, and says that none did",
        (
            Change(
                f"{PRODUCER}.send_attempts:SendAttempts.run",
                "if hooks.on:\n            hooks.emit(QueueSelected(*queue, times + 1, last_broker or \"\"))\n        ",
                "",
            ),
            Change(
                f"{PRODUCER}.mq_fault_strategy:MQFaultStrategy.select_one_message_queue",
                "info.select_avoiding(last_broker, thread)", "info.select_avoiding(None, thread)",
            ),
        ),
        SendsEnd, "sync-send-two-brokers", 0,
    ),
)  # fmt: skip
