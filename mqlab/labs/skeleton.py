"""The first form of a new lab: small, complete, and passing, to be written over."""

from __future__ import annotations

from pathlib import Path
from string import Template

from mqlab.errors import LearnerError
from mqlab.labs.project import Project
from mqlab.labs.source import NAME

_SOURCE = Template('''# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   mqlab:
#     title: $title
#     question: What is the one thing that this lab answers?
#     objectives:
#       - say in one sentence what happens
#       - name the class and the constant behind it
#       - build a small piece of it
#     minutes: 20
#     prerequisites: []
#     wrong_predictions:
#       - "how-many: students say 1, since they forget the first one"
# ---

# %% tags=["parameters"]
student_id = ""

# %%
from mqlab.check import NotSolvedYet, check, predict, reveal, seed_for

seed = seed_for(student_id, "$number")

# %% [markdown]
# ## Round one
#
# Say what you expect before you look: replace the three dots by a number.

# %% tags=["prediction"]
predict("how-many", "How many numbers below 10 are even?", unit="numbers", prediction=...)

# %%
even = [number for number in range(10) if number % 2 == 0]
even

# %%
reveal("how-many", len(even), why="0 is even, too.")

# %% [markdown]
# ### Your turn: twice a number
#
# Write a function that doubles a number. The check below plays it with many numbers.

# %% [markdown] tags=["hints"]
# - A nudge: what is to be done?
# - The way: with which means?
# - One step before the answer: what is left to do, in words?

# %% tags=["exercise"]
def double(number: int) -> int:
    """Twice the number."""
    ### BEGIN SOLUTION
    return 2 * number
    ### END SOLUTION


# %% tags=["check"]
check("$number/double", double)

# %% [markdown]
# ## What you expected, and what was seen

# %%
reveal()

# %% [markdown] tags=["teacher"]
# A cell with the tag `teacher` is in the notebook with solutions only.
''')

_CHECKS = Template('''"""The checks of lab $name."""

from __future__ import annotations

from collections.abc import Callable

from mqlab.check import Wrong, lab_check


@lab_check("$number/double", points=1)
def double(answer: Callable[[int], int], *, seed: int) -> Wrong | None:
    """A number comes back doubled, whatever the number."""
    got = answer(seed)
    if got == 2 * seed:
        return None
    return Wrong(f"double({seed}) is {2 * seed}, and yours gives {got}", trace=f"double({seed}) -> {got}")
''')

_WRONG = Template('''"""Plausible wrong solutions of lab $name, each of which its check catches."""

from __future__ import annotations


def squares(number: int) -> int:
    """Takes doubling for squaring; right for 0 and 2 only."""
    return number * number


def forgets_to_return(number: int) -> None:
    """Computes the answer and keeps it."""
    number *= 2


WRONG = {"$number/double": [squares, forgets_to_return]}
''')


def write_skeleton(name: str, project: Project) -> list[Path]:
    """Write the source, the checks and the wrong solutions of a new lab. Raises LearnerError when one is there."""
    match = NAME.fullmatch(name)
    if not match:
        raise LearnerError(f"{name!r} is no name of a lab", "name it NN_name, for example 02_store")
    taken = sorted(project.sources.glob(f"{match['number']}_*.py"))
    if taken:
        raise LearnerError(f"there is a lab {match['number']} already: {taken[0].stem}", "take a free number")
    values = {"name": name, "number": match["number"], "title": name[3:].replace("_", " ").capitalize()}
    files = {project.source(name): _SOURCE, project.checks(name): _CHECKS, project.wrong(name): _WRONG}
    for path in files:
        if path.exists():
            raise LearnerError(f"{path} is there already", "remove it, or take another name")
    for path, template in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(template.substitute(values), encoding="utf-8")
    return list(files)
