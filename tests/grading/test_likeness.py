"""Copies are found behind other names, another order and another layout; solutions of different people are not."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import pytest

from mqlab.commands.cli import main
from mqlab.grading.likeness import LEAST, SHORTEST, Comparison, compare, likenesses
from mqlab.grading.likeness_page import page
from mqlab.grading.normal_form import NormalForm, normal_form
from mqlab.grading.submission import Submission, read_submission
from mqlab.labs.build import read_lab
from mqlab.labs.notebook import given_name, make_notebook
from mqlab.labs.solution import remove_solutions
from mqlab.labs.source import LabSource

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "labs" / "sources").glob("*.py"))
EXERCISE = "10-make_pull_task"
Function = ast.FunctionDef | ast.AsyncFunctionDef


# -- copies, as they are disguised -------------------------------------------------------------------------------------


def renamed(text: str) -> str:
    """All names of one's own are others, annotations and docstrings are gone, and the layout is Python's own."""
    tree = ast.parse(text)
    own = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    methods = functions_of(text)
    own |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)} - {"self"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in own:
            node.id = f"v_{node.id[::-1]}"
        elif isinstance(node, ast.arg):
            node.annotation = None
            node.arg = f"v_{node.arg[::-1]}" if node.arg in own else node.arg
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            node.attr = node.attr if node.attr in methods else f"of_{node.attr}"
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
    return ast.unparse(tree)


def commented(text: str) -> str:
    """Other docstrings, a comment on each line, and empty lines."""
    lines = []
    for line in text.splitlines():
        lines += [line, f"{line[: len(line) - len(line.lstrip())]}# my own thought", ""]
    return "\n".join(lines) if normal_form("\n".join(lines)) else text


def reordered(text: str) -> str:
    """Methods and functions stand the other way round."""
    tree = ast.parse(text)
    for node in holders_in(tree):
        places = [at for at, part in enumerate(node.body) if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)]
        turned = [node.body[at] for at in reversed(places)]
        for at, part in zip(places, turned, strict=True):
            node.body[at] = part
    return ast.unparse(tree)


def with_dead_lines(text: str) -> str:
    """Twelve lines that do nothing, and what follows from them, in each function."""
    tree = ast.parse(text)
    for function in functions_in(tree):
        dead = [f"spare_{n} = {n} + 3\nif spare_{n} < 0:\n    print('never', spare_{n})" for n in range(4)]
        body = ast.parse("started = []\nstep_count = 0\nstep_count += 1\nassert True").body
        for place, statement in enumerate(function.body):
            body += ast.parse(dead[place]).body if place < len(dead) else []
            body.append(statement)
        function.body = body
    return ast.unparse(tree)


def with_lines_between(text: str) -> str:
    """A line that does something, and nothing that matters, behind each other line."""
    tree = ast.parse(text)
    for function in functions_in(tree):
        body = ast.parse("seen = []").body
        for statement in function.body:
            between = ast.parse("seen.append(len(seen) + 2)").body
            body += [*between, statement] if isinstance(statement, ast.Return | ast.Raise) else [statement, *between]
        function.body = body
    return ast.unparse(tree)


class _OverPlaces(ast.NodeTransformer):
    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.iter, ast.Name | ast.Attribute):
            return node
        place = f"place_{node.lineno}"
        get: ast.stmt = ast.Assign([node.target], ast.Subscript(node.iter, ast.Name(place, ast.Load()), ast.Load()))
        places = ast.parse(f"range(len({ast.unparse(node.iter)}))", mode="eval").body
        return ast.For(ast.Name(place, ast.Store()), places, [get, *node.body], node.orelse)


def over_places(text: str) -> str:
    """Loops over the places of things in place of the things."""
    return ast.unparse(ast.fix_missing_locations(_OverPlaces().visit(ast.parse(text))))


def with_a_helper(text: str) -> str:
    """The first function, and a method of each class, hand their work on to a helper."""
    tree = ast.parse(text)
    for holder in holders_in(tree):
        for function in [node for node in holder.body if isinstance(node, Function) and node.name != "__init__"][:1]:
            names = [each.arg for each in function.args.args]
            helped = "self.helped" if names[:1] == ["self"] else "helped"
            waits, await_it = ("async ", "await ") if isinstance(function, ast.AsyncFunctionDef) else ("", "")
            (helper,) = ast.parse(f"{waits}def helped({', '.join(names)}): pass").body
            given = ", ".join(name for name in names if name != "self")
            (outer,) = ast.parse(f"{waits}def outer(): return {await_it}{helped}({given})").body
            assert isinstance(helper, Function)
            assert isinstance(outer, Function)
            helper.body, function.body = function.body, outer.body
            holder.body.append(helper)
    return ast.unparse(tree)


def turned(text: str) -> str:
    """What was compared stands on the other side."""
    signs = {ast.Gt: ast.Lt, ast.Lt: ast.Gt, ast.GtE: ast.LtE, ast.LtE: ast.GtE}
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in signs:
            node.left, node.comparators = node.comparators[0], [node.left]
            node.ops = [signs[type(node.ops[0])]()]
    return ast.unparse(tree)


def holders_in(tree: ast.Module) -> list[ast.Module | ast.ClassDef]:
    return [tree, *(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]


def functions_in(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


def all_at_once(text: str) -> str:
    """All of it but for the lines between."""
    return with_dead_lines(with_a_helper(over_places(turned(commented(reordered(renamed(text)))))))


DISGUISES = [
    renamed, commented, reordered, with_dead_lines, with_lines_between, over_places, with_a_helper, turned, all_at_once,
]  # fmt: skip


# -- honest solutions --------------------------------------------------------------------------------------------------


def solutions() -> Iterator[tuple[str, dict[str, tuple[str, str]]]]:
    """For each exercise of each lab: the texts of the lab's own solution and of the kept wrong ones, and the skeleton.

    The wrong ones were written by people who had the same task and another thought.
    """
    for source in SOURCES:
        lab = read_lab(source)
        text = (ROOT / "tests" / "labs" / "wrong" / source.name).read_text()
        kept = {
            node.name: ast.get_source_segment(text, node) or ""
            for node in ast.parse(text).body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        }
        wrong = _wrong_of(ast.parse(text))
        for cell in lab.tagged("exercise"):
            for call in (call for check in lab.tagged("check") for call in check.calls("check")):
                given = [argument.id for argument in call.args[1:] if isinstance(argument, ast.Name)]
                if given and given[-1] in cell.definitions:
                    skeleton = remove_solutions(cell.source)
                    name = str(ast.literal_eval(call.args[0]))
                    texts = {"the lab's own": cell.source, **{each: kept[each] for each in wrong[name] if each in kept}}
                    yield name, {who: (text, skeleton) for who, text in texts.items()}


def _wrong_of(tree: ast.Module) -> dict[str, list[str]]:
    """The names of the wrong solutions of each check, of several functions the last."""
    for node in tree.body:
        if isinstance(node, ast.AnnAssign):
            target, mapping = cast("ast.expr", node.target), node.value
        elif isinstance(node, ast.Assign):
            target, mapping = node.targets[0], node.value
        else:
            continue
        if isinstance(target, ast.Name) and target.id == "WRONG" and isinstance(mapping, ast.Dict):
            return {
                str(ast.literal_eval(key)): [_last_name(part) for part in value.elts]
                for key, value in zip(mapping.keys, mapping.values, strict=True)
                if key is not None and isinstance(value, ast.List)
            }
    raise AssertionError("no WRONG")


def _last_name(node: ast.expr) -> str:
    last = node.elts[-1] if isinstance(node, ast.Tuple) else node
    return last.id if isinstance(last, ast.Name) else ""


def own_part(text: str, skeleton: str) -> NormalForm:
    """What somebody has written."""
    asked_for = functions_of(skeleton)
    form, given = normal_form(text, asked_for), normal_form(skeleton, asked_for)
    assert form is not None
    assert given is not None
    return form.without(given)


def functions_of(text: str) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, Function)}


def likeness(one: NormalForm, other: NormalForm) -> float:
    return float(likenesses([one, other])[0, 1])


@pytest.mark.parametrize("disguise", DISGUISES)
def test_a_disguised_copy_is_alike(disguise: Callable[[str], str]) -> None:
    tried = 0
    for name, texts in solutions():
        for who, (text, skeleton) in texts.items():
            own = own_part(text, skeleton)
            if len(own.tokens) >= SHORTEST:
                tried += 1
                copied = own_part(disguise(text), skeleton)
                assert likeness(own, copied) >= LEAST, (name, who)
    assert tried > 80


def test_solutions_of_different_thoughts_are_seldom_alike() -> None:
    """Measured: 5 of 129 pairs. In each one author has written the same lines with a word changed."""
    compared, alike = 0, []
    for name, texts in solutions():
        forms = {who: own_part(text, skeleton) for who, (text, skeleton) in texts.items()}
        for (one, a), (other, b) in combinations(forms.items(), 2):
            if min(len(a.tokens), len(b.tokens)) >= SHORTEST:
                compared += 1
                if likeness(a, b) >= LEAST:
                    alike.append((name, one, other))
    assert compared > 100
    assert len(alike) <= 0.05 * compared, alike


# -- a class -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lab() -> LabSource:
    """Lab 10, whose last exercise is a long one."""
    return read_lab(ROOT / "labs" / "sources" / "10_pull.py")


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """Solutions of that exercise."""
    return {who: text for who, (text, _) in dict(solutions())["10/pull-task"].items()}


def compared(lab: LabSource, cells: dict[str, str], **options: Any) -> Comparison:
    """A class in which each has handed in that cell."""
    handed_in = [Submission(Path("x"), student, "10", cells={EXERCISE: text}) for student, text in cells.items()]
    return compare([(lab, handed_in)], **options)


def test_a_class_is_compared_pair_by_pair(lab: LabSource, texts: dict[str, str]) -> None:
    own = texts["the lab's own"]
    cells = {
        "ada": texts["lets_others_overtake"],
        "bob": all_at_once(texts["lets_others_overtake"]),
        "cleo": texts["keeps_what_was_refused_in_memory"],
        "dan": own,
        "eve": renamed(own),
        "fay": remove_solutions(own),
        "gus": "def (",
        "hal": "x = 1\n" * 5_000,
    }
    found = compared(lab, cells)
    assert [(pair.one, pair.other) for pair in found.pairs] == [("ada", "bob")]
    assert found.pairs[0].exercises[0].likeness >= LEAST
    (common,) = found.common
    assert (common.students, common.like_the_reference) == (["dan", "eve"], True)
    assert found.left == [
        f"gus: not compared: {EXERCISE} (no Python)",
        f"hal: not compared: {EXERCISE} (15,000 tokens)",
    ]
    assert (found.compared, found.short) == (5, 0)


def test_who_has_written_no_python_is_named_in_one_line(lab: LabSource) -> None:
    exercises = [given_name(lab, cell) or "" for cell in lab.tagged("exercise")]
    assert len(exercises) > 1
    gus = Submission(Path("x"), "gus", "10", cells=dict.fromkeys(exercises, "def ("))
    named = ", ".join(f"{exercise} (no Python)" for exercise in exercises)
    assert compare([(lab, [gus])]).left == [f"gus: not compared: {named}"]


def test_functions_in_another_order_are_found(lab: LabSource, texts: dict[str, str]) -> None:
    text = f"{texts['lets_others_overtake']}\n\n{texts['keeps_what_was_refused_in_memory']}\n"
    (pair,) = compared(lab, {"ada": text, "bob": reordered(text)}).pairs
    assert pair.exercises[0].likeness == 1


def test_what_many_write_is_told_once_and_not_as_pairs(lab: LabSource, texts: dict[str, str]) -> None:
    text = texts["lets_others_overtake"]
    few = compared(lab, {f"s{number}": text for number in range(5)})
    assert (len(few.pairs), few.common) == (10, [])
    many = compared(lab, {f"s{number}": text for number in range(6)})
    assert many.pairs == []
    assert [(len(each.students), each.like_the_reference) for each in many.common] == [(6, False)]


def test_short_solutions_say_nothing(lab: LabSource, texts: dict[str, str]) -> None:
    cells = dict.fromkeys(["ada", "bob"], texts["lets_others_overtake"])
    found = compared(lab, cells, shortest=400)
    assert (found.pairs, found.compared, found.short) == ([], 0, 2)


def test_the_page_shows_both_sides_as_text(lab: LabSource, texts: dict[str, str]) -> None:
    text = texts["lets_others_overtake"] + "\n# <script>alert(1)</script>\n"
    shown = page(compared(lab, {"ada": text, "<b>bob": all_at_once(text)}))
    assert "<script>" not in shown
    assert "<b>bob" not in shown.replace("<b>&lt;b&gt;bob", "")
    assert shown.count("<pre>") == 2
    assert shown.count("<mark>") > 10


def test_the_command_reads_and_never_runs(texts: dict[str, str], tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    code = f"open({str(ran)!r}, 'w')\n"
    for student, text in (("ada", texts["lets_others_overtake"]), ("bob", renamed(texts["lets_others_overtake"]))):
        notebook = json.loads((ROOT / "labs" / "10_pull.ipynb").read_text())
        for cell in notebook["cells"]:
            if cell["metadata"].get("nbgrader", {}).get("grade_id") == EXERCISE:
                cell["source"] = code + text
        (tmp_path / "in" / student).mkdir(parents=True)
        (tmp_path / "in" / student / "10_pull.ipynb").write_text(json.dumps(notebook))
    (tmp_path / "in" / "eve").mkdir()
    (tmp_path / "in" / "eve" / "10_pull.ipynb").symlink_to("/dev/zero")
    command = ["course", "compare", str(tmp_path / "in"), "--root", str(ROOT), "--out", str(tmp_path / "alike.html")]
    assert main(command) == 1
    shown = (tmp_path / "alike.html").read_text()
    assert "<b>ada</b> and <b>bob</b>" in shown
    assert "eve/10_pull.ipynb: this is no file but a link" in shown
    assert not ran.exists()
    assert main([*command, "--shortest", "4000"]) == 0
    assert main([*command, "--lab", "05"]) == 2


def test_files_that_are_the_same_byte_for_byte_are_told_and_those_as_handed_out_are_not(tmp_path: Path) -> None:
    lab = read_lab(ROOT / "labs" / "sources" / "05_push_is_pull.py")
    blank = make_notebook(lab, "student")
    solved = make_notebook(lab, "solution")
    texts = {"ada": solved, "bob": solved, "eve": blank, "kim": blank}
    read = []
    for student, notebook in texts.items():
        path = tmp_path / f"{student}.ipynb"
        path.write_text(json.dumps(notebook), encoding="utf-8")
        read.append(read_submission(path, student, lab))
    found = compare([(lab, read)])
    assert found.same == ["05_push_is_pull: ada, bob handed in the same file, byte for byte"]
    assert found.same[0] in page(found)


def test_who_means_per_cent_is_told_how_a_share_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["course", "compare", "in", "--least", "80"])
    assert ended.value.code == 2
    assert "80 is not above 0, up to 1: this is a share, so 80 % is 0.8" in capsys.readouterr().err
