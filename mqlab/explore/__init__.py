"""Exploring: a scenario played from many seeds, each with faults of its own, and judged by rules.

Entry points: `Trial` plays one seed, `play_seeds` many, `shrink` looks for the shortest plan that still fails; `goals`
are what must have been reached for the passes to mean anything. How thorough that was is said by `seen` (what a world
has shown), `corpus` and `thoroughness`; `tape` keeps single worlds.
"""

from mqlab.explore.fault_plan import Plan, draw_plan, faults_of, plan_from_text, plan_text
from mqlab.explore.goals import Goal, goal_named, goals
from mqlab.explore.many_seeds import Result, play_seeds
from mqlab.explore.rule import Rule
from mqlab.explore.shrink import shrink
from mqlab.explore.trial import RULES, Breach, Outcome, Trial

__all__ = [
    "RULES",
    "Breach",
    "Goal",
    "Outcome",
    "Plan",
    "Result",
    "Rule",
    "Trial",
    "draw_plan",
    "faults_of",
    "goal_named",
    "goals",
    "plan_from_text",
    "plan_text",
    "play_seeds",
    "shrink",
]
