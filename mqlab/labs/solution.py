"""Solution regions: what stands between the two marks is the teacher's, and a stub stands there for the student."""

from __future__ import annotations

BEGIN = "### BEGIN SOLUTION"
END = "### END SOLUTION"
STUB = ("# your code here", "raise NotSolvedYet")


def region_problems(source: str) -> list[str]:
    """What is wrong with the marks in a cell; empty when nothing is."""
    open_region = False
    regions = 0
    for number, line in enumerate(source.splitlines(), 1):
        mark = line.strip()
        if mark == BEGIN:
            if open_region:
                return [f"line {number}: a solution begins inside a solution"]
            if line == mark:
                return [f"line {number}: a solution must stand inside a function, so that the unsolved cell still runs"]
            open_region = True
            regions += 1
        elif mark == END:
            if not open_region:
                return [f"line {number}: a solution ends that never began"]
            open_region = False
    if open_region:
        return [f"a solution begins and never ends; write `{END}`"]
    return [] if regions else [f"no solution; put the reference solution between `{BEGIN}` and `{END}`"]


def remove_solutions(source: str) -> str:
    """The cell as a student gets it: each region replaced by a stub that raises NotSolvedYet."""
    kept: list[str] = []
    inside = False
    for line in source.splitlines():
        mark = line.strip()
        if mark == BEGIN:
            inside = True
            margin = line[: len(line) - len(line.lstrip())]
            kept += [margin + text for text in STUB]
        elif mark == END:
            inside = False
        elif not inside:
            kept.append(line)
    return "\n".join(kept)
