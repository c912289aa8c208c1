"""A lab that breaks a rule of the format is refused, with the place and what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlab.errors import LearnerError
from mqlab.labs.build import read_lab
from mqlab.labs.errors import LabError
from mqlab.labs.source import LabSource, read_source

BROKEN = {
    "no kernelspec": ("#   kernelspec:", "#   kernel:", "the header's kernelspec must be"),
    "half a kernelspec": ("#     name: python3\n", "", "its header cannot be read: 'name' is a required property"),
    "no YAML": ("title: Taking", "title: Taking: ", "its header cannot be read: mapping values are not allowed"),
    "no head": ("#   mqlab:", "#   other:", "the header has no `mqlab:` part"),
    "no question": ("#     question: In which", "#     quest: In which", "head: `question` is missing"),
    "two objectives": ("#       - write the pull\n", "", "head: `objectives` has 2 lines; write 3"),
    "minutes as text": ("minutes: 5", "minutes: five", "head: `minutes` must be a whole number"),
    "prerequisites as text": ("prerequisites: []", "prerequisites: 00", "head: `prerequisites` must be a list"),
    "unknown tag": ('tags=["parameters"]', 'tags=["params"]', "the tag `params` is none of"),
    "unknown metadata": ('tags=["parameters"]', 'tags=["parameters"] slow=true', "`slow` is not known on a cell"),
    "no Python": ("print(", "print((", "line 3:"),
    "no student": ('student_id = ""', 'student = ""', 'must have `student_id = ""`'),
    "computed parameter": ("waiting = 5", "waiting = 2 + 3", "parameters are plain lines"),
    "seed of another lab": (
        'seed_for(student_id, "90")',
        'seed_for(student_id, "91")',
        "no cell after the parameters has",
    ),
    "untagged prediction": (
        '# %% tags=["prediction"]\npredict("left"',
        '# %%\npredict("left"',
        "without the tag `prediction`",
    ),
    "answered prediction": (
        'unit="messages", prediction=...',
        'unit="messages", prediction=3',
        "write `prediction=...`",
    ),
    "prediction twice": ('predict("left"', 'predict("first-out"', "'first-out' is asked twice"),
    "never revealed": ('reveal("left", len(queue))', "len(queue)", 'no later cell has reveal("left"'),
    "no overview": ("reveal()", "1 + 1", "no `reveal()` after the last reveal"),
    "solution never ends": ("    ### END SOLUTION\n", "", "a solution begins and never ends"),
    "solution outside a function": (
        "    ### BEGIN SOLUTION\n    return queue[:limit], queue[limit:]\n    ### END SOLUTION\n",
        "    return queue[:limit], queue[limit:]\n\n\n### BEGIN SOLUTION\nanswer = pull\n### END SOLUTION\n",
        "a solution must stand inside a function",
    ),
    "solution without a tag": ('# %% tags=["exercise"]', "# %%", "has a solution without the tag `exercise`"),
    "nothing checked": ('check("90/pull", pull)', 'check("90/pull", print)', "no check is called with pull"),
    "unknown check": ('check("90/pull", pull)', 'check("90/push", pull)', "there is no check '90/push'"),
    "minutes": ("A queue of five\n", "A queue of five (3 minutes)\n", "headings name 3 minutes, the head says 5"),
    "a hint that is the answer": (
        "# - A second piece begins at the same place. In which order are the two asked for?",
        "# - `queue[:limit], queue[limit:]`",
        "may hold 35%",
    ),
    "one reason for two answers": (
        'reveal("first-out", "a"',
        'reveal("first-out", "a" if queue else "b"',
        "its `why` is one text for all answers",
    ),
    "no hints": ('# %% [markdown] tags=["hints"]', "# %% [markdown]", "no hints stand in front of this exercise"),
    "a round without an exercise": (
        "# ## A queue of five",
        "# ## Round one: a queue of five",
        "'Round one: a queue of five' has no exercise",
    ),
    "two hints": ("# - A list can be cut in two.\n", "", "has 2 hints; write a list of 3"),
    "hints elsewhere": (
        '# %% tags=["check"]',
        '# %% [markdown] tags=["hints"]\n# - 1\n# - 2\n# - 3\n\n# %% tags=["check"]',
        "hints stand directly in front of their exercise",
    ),
    "extension": ("# %precision 3", "# %load_ext mqlab", "every notebook begins with `%load_ext mqlab`"),
    "a text that is not shown": ("reveal()", 'say("nobody sees this")\nreveal()', "only if it is the last line"),
    "check and more": ('check("90/pull", pull)', 'print()\ncheck("90/pull", pull)', "in it and nothing else"),
}


@pytest.mark.parametrize(("old", "new", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_rule_is_named(example_text: str, tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in example_text
    path = tmp_path / "90_batches.py"
    path.write_text(example_text.replace(old, new), encoding="utf-8")
    with pytest.raises(LabError) as refused:
        read_lab(path)
    assert message in str(refused.value)
    assert "docs/labs.md" in refused.value.hint


def test_all_problems_are_named_at_once(example_text: str, tmp_path: Path) -> None:
    path = tmp_path / "90_batches.py"
    path.write_text(example_text.replace('student_id = ""', "").replace("reveal()", "1 + 1"), encoding="utf-8")
    with pytest.raises(LabError) as refused:
        read_lab(path)
    assert len(refused.value.problems) == 2


def test_a_lab_is_named_by_number_and_subject(tmp_path: Path) -> None:
    with pytest.raises(LearnerError, match=r"store\.py is no name of a lab\n.*NN_name\.py"):
        read_source(tmp_path / "store.py")


def test_magic_and_await_are_cells_like_others(example: LabSource) -> None:
    assert [cell.source.splitlines()[0] for cell in example.cells if "%precision" in cell.source] == ["%precision 3"]
    assert any("await asyncio.sleep" in cell.source for cell in example.cells)
