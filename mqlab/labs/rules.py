"""The rules that every lab's source keeps: a bet before the reveal, an exercise with a check, a student's seed."""

from __future__ import annotations

import ast
import re

from mqlab.check import checks_of
from mqlab.labs.errors import LabError
from mqlab.labs.giveaway import giveaway_problems
from mqlab.labs.hints import hint_problems
from mqlab.labs.solution import BEGIN, END, region_problems
from mqlab.labs.source import LabSource, text_argument
from mqlab.labs.whys import why_problems

_PART = re.compile(r"(?m)^## (.+)$")
_MINUTES = re.compile(r"(?m)^##+ .*\((\d+) minutes?\)$")


def require_rules(lab: LabSource) -> None:
    """Raise LabError with everything that breaks a rule; docs/labs.md says each of them in words."""
    problems = [
        *_parameters(lab),
        *_predictions(lab),
        *_reveals(lab),
        *why_problems(lab),
        *_exercises(lab),
        *_checks(lab),
        *_hints(lab),
        *_rounds(lab),
        *_extension(lab),
        *_minutes(lab),
        *_progress(lab),
        *_says(lab),
    ]
    if problems:
        raise LabError(lab.name, problems, f"correct labs/sources/{lab.name}.py; docs/labs.md describes the format")


def _parameters(lab: LabSource) -> list[str]:
    cells = lab.tagged("parameters")
    if len(cells) != 1:
        return [f"{len(cells)} cells carry the tag `parameters`; write exactly one"]
    cell = cells[0]
    literals: dict[str, object] = {}
    for statement in cell.tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value)):
                literals[name] = value
            case _:
                return [f"{cell.place}: parameters are plain lines `name = value`"]
    problems = []
    if literals.get("student_id") != "":
        problems.append(f'{cell.place}: the parameters must have `student_id = ""`')
    later = lab.cells[lab.cells.index(cell) + 1 :]
    if not any(_is_seed_for(call, lab) for after in later for call in after.calls("seed_for")):
        problems.append(f'no cell after the parameters has `seed = seed_for(student_id, "{lab.number}")`')
    return problems


def _is_seed_for(call: ast.Call, lab: LabSource) -> bool:
    match call.args:
        case [ast.Name(id="student_id"), ast.Constant(value=number)]:
            return bool(number == lab.number)
    return False


def _predictions(lab: LabSource) -> list[str]:
    problems = _untagged(lab, "prediction", "predict")
    cells = lab.tagged("prediction")
    if not cells:
        problems.append("no cell carries the tag `prediction`; let the reader bet before the reveal")
    asked: list[str] = []
    for cell in cells:
        calls = cell.calls("predict")
        if len(calls) != 1 or text_argument(calls[0]) is None:
            problems.append(f'{cell.place}: write one predict("id", "question?", ...) in it')
        elif _answered(calls[0]):
            problems.append(f"{cell.place}: write `prediction=...` (three dots); the answer is the student's")
        else:
            asked.append(text_argument(calls[0]) or "")
    problems += [f"the prediction {name!r} is asked twice" for name in sorted({n for n in asked if asked.count(n) > 1})]
    return problems


def _answered(call: ast.Call) -> bool:
    given = [*call.args[2:3], *(word.value for word in call.keywords if word.arg == "prediction")]
    return not all(isinstance(answer, ast.Constant) and answer.value is ... for answer in given)


def _reveals(lab: LabSource) -> list[str]:
    problems = []
    revealed = {
        text_argument(call): at for at, cell in enumerate(lab.cells) for call in cell.calls("reveal") if call.args
    }
    overview = [at for at, cell in enumerate(lab.cells) for call in cell.calls("reveal") if not call.args]
    for at, cell in enumerate(lab.cells):
        for call in cell.calls("predict"):
            name = text_argument(call)
            if name is not None and revealed.get(name, -1) <= at:
                problems.append(f'{cell.place}: no later cell has reveal("{name}", what_was_seen)')
    if not overview or overview[-1] < max(revealed.values(), default=-1):
        problems.append("no `reveal()` after the last reveal; it shows all predictions again beside the truth")
    return problems


def _exercises(lab: LabSource) -> list[str]:
    problems = [
        f"{cell.place}: has a solution without the tag `exercise`"
        for cell in lab.cells
        if "exercise" not in cell.tags and (BEGIN in cell.source or END in cell.source)
    ]
    cells = lab.tagged("exercise")
    if not cells:
        problems.append("no cell carries the tag `exercise`; let the reader build a piece")
    checked = {name for cell in lab.tagged("check") for call in cell.calls("check") for name in answers_of(call)}
    for cell in cells:
        problems += [f"{cell.place}: {problem}" for problem in region_problems(cell.source)]
        if not cell.definitions:
            problems.append(f"{cell.place}: an exercise defines a function or a class")
        elif not checked.intersection(cell.definitions):
            problems.append(f"{cell.place}: no check is called with {cell.definitions[-1]}")
    return problems


def answers_of(call: ast.Call) -> list[str]:
    """The names of the functions that a call of check is given."""
    return [argument.id for argument in call.args[1:] if isinstance(argument, ast.Name)]


def _checks(lab: LabSource) -> list[str]:
    problems = _untagged(lab, "check", "check")
    known = {check.name for check in checks_of(lab.number)}
    built = {name for cell in lab.tagged("exercise") for name in cell.definitions}
    called: list[str] = []
    for cell in lab.tagged("check"):
        calls = cell.calls("check")
        name = text_argument(calls[0]) if len(calls) == 1 else None
        if name is None or len(cell.tree.body) != 1:
            problems.append(f'{cell.place}: write one check("{lab.number}/exercise", function) in it and nothing else')
            continue
        called.append(name)
        if name not in known:
            problems.append(f"{cell.place}: there is no check {name!r}; write it in mqlab/labs/checks/{lab.name}.py")
        if not answers_of(calls[0]) or not built.issuperset(answers_of(calls[0])):
            problems.append(f"{cell.place}: check a function that an exercise cell defines")
    times = {name: called.count(name) for name in sorted(known)}
    problems += [
        f"the check {name!r} is called {count} times; call it once" for name, count in times.items() if count != 1
    ]
    return problems


def _untagged(lab: LabSource, tag: str, function: str) -> list[str]:
    found = [cell for cell in lab.cells if tag not in cell.tags and cell.calls(function)]
    return [f"{cell.place}: calls {function}(...) without the tag `{tag}`" for cell in found]


def _hints(lab: LabSource) -> list[str]:
    """Hints are a text with three items, and stand directly in front of their exercise, so that one finds them."""
    problems = []
    for at, cell in enumerate(lab.cells):
        if "hints" not in cell.tags:
            continue
        if cell.kind != "markdown":
            problems.append(f"{cell.place}: hints are a [markdown] cell")
            continue
        problems += [f"{cell.place}: {problem}" for problem in hint_problems(cell.source)]
        if at + 1 == len(lab.cells) or "exercise" not in lab.cells[at + 1].tags:
            problems.append(f"{cell.place}: hints stand directly in front of their exercise")
            continue
        problems += [f"{cell.place}: {problem}" for problem in giveaway_problems(cell.source, lab.cells[at + 1].source)]
    fronts = zip([None, *lab.cells], lab.cells, strict=False)
    problems += [
        f"{cell.place}: no hints stand in front of this exercise"
        for front, cell in fronts
        if "exercise" in cell.tags and (front is None or "hints" not in front.tags)
    ]
    return problems


def _rounds(lab: LabSource) -> list[str]:
    """Each round has an exercise of its own, before the large one at the end."""
    part, exercises = "", 0
    problems = []
    for cell in lab.cells:
        found = _PART.findall(cell.source) if cell.kind == "markdown" else []
        if found:
            problems += _without_exercise(part, exercises)
            part, exercises = found[-1], 0
        exercises += "exercise" in cell.tags
    return problems + _without_exercise(part, exercises)


def _without_exercise(part: str, exercises: int) -> list[str]:
    if exercises or not part.startswith("Round"):
        return []
    return [f"{part!r} has no exercise; give each round a small one"]


def _extension(lab: LabSource) -> list[str]:
    return [
        f"{cell.place}: every notebook begins with `%load_ext mqlab`; leave it out here"
        for cell in lab.cells
        if cell.kind == "code" and "load_ext mqlab" in cell.source
    ]


def _progress(lab: LabSource) -> list[str]:
    return [
        f"{cell.place}: the builder adds `{name}(...)` behind the last cell; leave it out here"
        for cell in lab.cells
        for name in ("how_far", "hand_in")
        if cell.calls(name)
    ]


def _says(lab: LabSource) -> list[str]:
    """Jupyter shows the value of a cell's last line, and no other."""
    return [
        f"{cell.place}: the text of `say(...)` is shown only if it is the last line of its cell"
        for cell in lab.cells
        for line in cell.tree.body[:-1]
        if isinstance(line, ast.Expr) and line.value in cell.calls("say")
    ]


def _minutes(lab: LabSource) -> list[str]:
    """Where headings say how long their part takes, all parts together take what the head says."""
    said = [int(found) for cell in lab.cells if cell.kind == "markdown" for found in _MINUTES.findall(cell.source)]
    if not said or sum(said) == lab.head.minutes:
        return []
    return [f"the headings name {sum(said)} minutes, the head says {lab.head.minutes}"]
