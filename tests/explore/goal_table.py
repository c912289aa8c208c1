"""Which scenario reaches which goal first: plays seeds, and writes the table of goals in docs/checks.md.

    python -m tests.explore.goal_table out/goals.json --seeds 1000 drawn async-send     plays on from where it ended
    python -m tests.explore.goal_table out/goals.json --write                           writes the table

The file has of each scenario how many seeds were played and the first seed of each goal; it is written after each ten.
Why a goal was not reached is kept as the table says it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

from mqlab import scenarios
from mqlab.explore import Trial, goals

PAGE = Path(__file__).parents[2] / "docs" / "checks.md"
BEGIN, END = "<!-- goals -->\n", "<!-- end of goals -->\n"
HEAD = "| subject | goal | what it means | reached first |\n|---|---|---|---|\n"
PART = 10
DRAWN = "drawn"
State = dict[str, dict[str, Any]]


class Row(NamedTuple):
    """A line of the table: a goal, and the command that reaches it; or why none does."""

    subject: str
    goal: str
    words: str
    reached: str

    @property
    def place(self) -> tuple[str, int] | None:
        """The scenario and the seed that reach it; None for a goal that was not reached."""
        words = self.reached.strip("`").split()
        return (words[2], int(words[4])) if words[:2] == ["mqlab", "explore"] else None


def rows() -> list[Row]:
    """The table as docs/checks.md has it."""
    table = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    lines = table.removeprefix(HEAD).splitlines()
    return [Row(*(cell.strip() for cell in line.strip("|").split("|"))) for line in lines]


def play(path: Path, scenario: str, seeds: int) -> None:
    """Play a scenario on up to so many seeds."""
    known = _state(path).get(scenario, {"played": 0, "first": {}})
    while known["played"] < seeds:
        end = min(known["played"] + PART, seeds)
        for seed in range(known["played"], end):
            for goal in Trial(scenario, seed).outcome.goals:
                known["first"].setdefault(goal, seed)
        known["played"] = end
        state = {**_state(path), scenario: known}
        path.write_text(json.dumps(state, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        print(f"{scenario}: {end} seeds, {len(known['first'])} goals", flush=True)


def write(state: State) -> None:
    """Write the table, with the best scenario for each goal."""
    why = {row.goal: row.reached for row in rows() if row.place is None}
    text = BEGIN + HEAD
    for goal in goals().values():
        found = [(name, known["first"][goal.name]) for name, known in state.items() if goal.name in known["first"]]
        reached = why.get(goal.name, "not reached")
        if found:
            name, seed = min(found, key=lambda place: _rank(goal.name, *place))
            reached = f"`mqlab explore {name} --seed {seed}`"
        text += f"| {goal.subject} | {goal.name} | {goal.words} | {reached} |\n"
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    PAGE.write_text(before + text + END + rest.partition(END)[2], encoding="utf-8")


def _rank(goal: str, name: str, seed: int) -> tuple[bool, bool, int, bool, str]:
    """The best is a scenario that is there for the goal, then one that bears faults, then one that needs few seeds."""
    scenario = scenarios.get(name)
    return goal not in scenario.goals, not scenario.faults, seed, name == DRAWN, name


def _state(path: Path) -> State:
    state: State = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return state


def main() -> None:
    """Play, or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, help="where what was found is kept")
    parser.add_argument("scenarios", nargs="*", help="those that bear faults, unless told")
    parser.add_argument("--seeds", type=int, default=1_000, help="how many of each (1000)")
    parser.add_argument("--write", action="store_true", help="write the table, and play nothing")
    options = parser.parse_intermixed_args()
    if options.write:
        write(_state(options.path))
        return
    every = [name for name in scenarios.names() if scenarios.get(name).faults]
    for name in options.scenarios or every:
        play(options.path, name, options.seeds)


if __name__ == "__main__":
    main()
