"""Exploring: a scenario played from many seeds, each with faults of its own, and judged by rules.

Entry points: `Trial` plays one seed, `play_seeds` many, `shrink` looks for the shortest plan that still fails.
"""

from .fault_plan import Plan, plan_from_text, plan_text
from .many import Result, play_seeds
from .rule import Rule
from .shrink import shrink
from .trial import RULES, Breach, Outcome, Trial

__all__ = [
    "RULES",
    "Breach",
    "Outcome",
    "Plan",
    "Result",
    "Rule",
    "Trial",
    "plan_from_text",
    "plan_text",
    "play_seeds",
    "shrink",
]
