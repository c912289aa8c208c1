"""A solution that runs in another process is judged as if it ran here."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mqlab import Lab
from mqlab.check import Wrong, find_check, lab_check
from mqlab.check.own_process import in_own_process
from mqlab.check.registry import LabCheck
from mqlab.exercises.handed_over import handed_over, is_handed_over
from mqlab.exercises.waiting_room import Pull
from mqlab.grading.students_process import StudentsProcess
from mqlab.labs.build import read_lab
from mqlab.labs.reference import reference_answers
from mqlab.labs.rules import answers_of
from mqlab.labs.source import LabSource, text_argument

SOURCES = [
    path
    for path in sorted((Path(__file__).parents[2] / "labs" / "sources").glob("*.py"))
    if path.stem < "20"  # the labs of Spark start a Java for each exercise
]
SEEDS = range(1, 3)


def checks(lab: LabSource) -> Iterator[tuple[str, list[str]]]:
    """The name of each check, and of the functions that it is given."""
    for cell in lab.tagged("check"):
        for call in cell.calls("check"):
            yield text_argument(call) or "", list(answers_of(call))


@pytest.mark.parametrize("source", SOURCES, ids=[path.stem for path in SOURCES])
def test_reference_and_stub_are_judged_as_in_one_process(source: Path) -> None:
    lab = read_lab(source)
    cells = [cell.source for cell in lab.tagged("exercise")]
    here = reference_answers(lab)
    for name, functions in checks(lab):
        with StudentsProcess(cells, module=f"lab_{lab.name}") as there:
            got = find_check(name).play(*there.answers(functions), seeds=SEEDS)
        assert got.passed, got
        assert repr(got) == repr(find_check(name).play(*here[name], seeds=SEEDS))


@pytest.mark.parametrize("source", SOURCES, ids=[path.stem for path in SOURCES])
def test_a_wrong_solution_is_told_the_same_as_in_one_process(source: Path) -> None:
    lab = read_lab(source)
    kept = Path(__file__).parents[1] / "labs" / "wrong" / source.name
    names: dict[str, Any] = {"__name__": f"lab_{lab.name}"}
    exec(compile(kept.read_text(), str(kept), "exec", dont_inherit=True), names)
    for name, wrong in names["WRONG"].items():
        answers = wrong[0] if isinstance(wrong[0], tuple) else (wrong[0],)
        functions = [answer.__name__ for answer in answers]
        with StudentsProcess([kept.read_text()], module=f"lab_{lab.name}") as there:
            got = find_check(name).play(*there.answers(functions), failures_wanted=1)
        assert repr(got) == repr(find_check(name).play(*answers, failures_wanted=1))


# -- what a hostile solution can do ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def double() -> LabCheck:
    @lab_check("99/double", points=1)
    def judge(answer: Callable[..., Any], *, seed: int) -> Wrong | None:
        """Twice a number."""
        got = answer(seed)
        return None if got == 2 * seed else Wrong(f"twice {seed} is {2 * seed}, and yours gives {got!r}")

    return judge


def told(check: LabCheck, cell: str, **settings: Any) -> str:
    """What the verdict says of a cell that defines `double`."""
    with StudentsProcess([textwrap.dedent(cell)], **settings) as theirs:
        return repr(check.play(*theirs.answers(["double"]), seeds=range(1, 4)))


def test_what_is_equal_to_everything_is_equal_to_nothing_here(double: LabCheck) -> None:
    said = told(double, """
        class Yes(int):
            def __eq__(self, other): return True
            def __hash__(self): return 1
        class Also:
            def __eq__(self, other): return True
        def double(n): return Yes(n) if n % 2 else Also()
    """)  # fmt: skip
    assert "0 of 3 seeds went well" in said


def test_patching_what_judges_changes_nothing(double: LabCheck) -> None:
    said = told(double, """
        import sys
        import mqlab.check.registry as registry, mqlab.check as check
        check.Wrong = registry.Wrong = lambda *_: None
        registry.LabCheck.play = lambda *a, **k: None
        sys.modules["mqlab.labs.checks"] = None
        def double(n): return 0
    """)  # fmt: skip
    assert "0 of 3 seeds went well" in said


def test_a_process_that_ends_itself_is_told_so(double: LabCheck) -> None:
    said = told(double, "import os\ndef double(n): os._exit(0)")
    assert "the process of your solution ended with exit code 0 before it answered" in said
    assert "raised" not in said
    assert "0 of 3 seeds went well" in said


def test_a_forged_line_is_no_verdict(double: LabCheck) -> None:
    said = told(double, """
        import os, json
        def double(n):
            for pipe in range(3, 20):
                try: os.write(pipe, b'["value", null]\\n{"state": "passed"}\\n')
                except OSError: pass
            return 0
    """)  # fmt: skip
    assert "passed" not in said


def test_an_endless_loop_is_broken_off(double: LabCheck) -> None:
    said = told(double, "def double(n):\n    while True: pass", patience_s=0.5)
    assert "your code does not come to an end: it was broken off after 0.5 s of computing" in said


def test_who_sleeps_for_ever_is_broken_off(double: LabCheck) -> None:
    said = told(double, "import time\ndef double(n): time.sleep(1_000)", asleep_s=0.3)
    assert "your code does not come to an end: it was broken off after 0.3 s without an answer" in said


@pytest.mark.parametrize(
    "reads", ["ledger.__class__", "ledger._entries", "ledger.judge.__globals__", "ledger.lab", "ledger.module.os"]
)
def test_what_is_handed_over_leads_nowhere(reads: str) -> None:
    import os

    @handed_over
    class Ledger:
        """What a check hands over, with more than it should."""

        def __init__(self) -> None:
            self._entries = [1]
            self.lab = Lab(1)
            self.module = os

        def judge(self) -> None:
            """A method."""

    @lab_check("99/ledger", points=1)
    def judge(answer: Callable[..., Any], *, seed: int) -> Wrong | None:
        """Nothing is found."""
        answer(Ledger())
        return None

    said = told(judge, f"def double(ledger): return {reads}")
    assert "your code raised AttributeError" in said or reads == "ledger.__class__"


def test_lists_that_a_solution_changes_are_changed_here(double: LabCheck) -> None:
    @lab_check("99/change", points=1)
    def judge(answer: Callable[..., Any], *, seed: int) -> Wrong | None:
        """A table without one entry."""
        table, queue, seen = {1: "a", 2: "b"}, [3, 1, 2], {1}
        answer(table, queue, seen=seen)
        return None if (table, queue, seen) == ({2: "b"}, [1, 2, 3], {1, 9}) else Wrong(f"{table} {queue} {seen}")

    cell = """
        def double(table, queue, *, seen):
            del table[1]
            queue.sort()
            seen.add(9)
    """
    assert "passed" in told(judge, cell)


@handed_over
class Secret:
    """A class that a solution may hold objects of, and that it has, too."""

    word = "kept"


class Derived(Secret):
    """One that is derived from it, and not marked itself."""

    __module__ = "mqlab.exercises.waiting_room"


class Disguised:
    """One that says it is of a marked class."""

    __module__ = "mqlab.labs.checks.99"
    __class__ = Secret  # type: ignore[assignment]


@pytest.mark.parametrize("made", [Derived, Disguised])
def test_only_a_class_that_is_marked_itself_is_handed_over(made: type) -> None:
    def judge(answer: Callable[..., Any], *, seed: int) -> Wrong | None:
        """What is not meant for a solution stays here, whatever its module is called."""
        answer(made())
        return None

    said = told(judged(judge), "def double(secret): return secret.word")
    assert f"an object of the class {made.__name__} can't be had in a solution" in said


@pytest.mark.parametrize(
    "body",
    [
        "class Mine(Pull): word = 'forged'",
        "@handed_over\nclass Mine(Pull): word = 'forged'",
        "class Mine(Pull):\n    word, __class__ = 'forged', Pull",
        "class Mine(Pull):\n    word, __module__ = 'forged', 'mqlab.exercises.waiting_room'",
    ],
)
def test_no_class_of_a_solution_earns_what_a_marked_one_may(body: str) -> None:
    """What stands here for its objects is a `Pull`, and neither handed over nor read by the process of another one."""
    imports = "from mqlab.exercises.handed_over import handed_over\nfrom mqlab.exercises.waiting_room import Pull\n"
    with (
        StudentsProcess([f"{imports}{body}\ndef make(): return object.__new__(Mine)"]) as theirs,
        StudentsProcess(["def read(pull): return pull.word"]) as others,
    ):
        (made,) = theirs.answers(["make"])
        forged = made()
        assert isinstance(forged, Pull)
        assert not is_handed_over(forged)
        (read,) = others.answers(["read"])
        with pytest.raises(AttributeError, match="'word' of a Mine is not for a solution"):
            read(forged)


def judged(check_of: Callable[..., Wrong | None]) -> LabCheck:
    return lab_check("99/judged", points=1)(check_of)


def test_what_a_function_holds_is_not_read() -> None:
    def judge(answer: Callable[..., Any], *, seed: int) -> Wrong | None:
        """A function that is bound to a secret."""
        answer(partial(print, "secret"))
        return None

    assert "'args' of a partial is not for a solution" in told(judged(judge), "def double(bound): return bound.args")


def test_only_what_is_a_container_comes_back_changed() -> None:
    class Ledger(dict[str, int]):
        """It can be cleared."""

    ledger = Ledger(entry=1)

    def judge(answer: Callable[..., Any], *, seed: int) -> Wrong | None:
        """The books are left alone."""
        answer(ledger)
        return None

    cell = """
        import mqlab.grading.peer as peer
        does = peer.Peer._do
        def forged(self, operation, reference, *rest):
            done = does(self, operation, reference, *rest)
            if operation == "call" and isinstance(self._values.decode(rest[0])[0], dict):
                return done[0], {0: {}}
            return done
        peer.Peer._do = forged
        def double(ledger): return 0
    """
    assert "only lists, dictionaries and sets come back changed" in told(judged(judge), cell)
    assert ledger == {"entry": 1}


def test_who_says_too_much_at_once_is_broken_off(double: LabCheck) -> None:
    with StudentsProcess(["def double(n):\n    return 'x' * 80_000_000"]) as there:
        assert "32 MiB" in double.play(*there.answers(["double"]), seeds=[1]).explanation
        assert there.is_over


def test_who_reads_no_more_is_broken_off() -> None:
    def judge(answer: Callable[..., Any], *, seed: int) -> Wrong | None:
        """A question that no pipe holds."""
        answer("x" * 1_000_000)
        return None

    cell = """
        import time, mqlab.grading.solution_process as far
        import __main__
        def read(self): time.sleep(1_000)
        def double(text):
            __main__.FarPipe.read = read
            return 0
    """
    said = told(judged(judge), cell, asleep_s=0.5)
    assert "your code does not come to an end" in said


def test_a_process_that_ends_inside_a_world_is_told_so(in_a_world: LabCheck) -> None:
    said = told(in_a_world, "import os\ndef double(n): os._exit(3)")
    assert "the process of your solution ended with exit code 3 before it answered" in said
    assert "raised" not in said


def test_a_cell_that_fails_is_told() -> None:
    with StudentsProcess(["def broken(:"]) as theirs, pytest.raises(SyntaxError):
        theirs.answers(["broken"])
    with StudentsProcess(["1 / 0"]) as theirs, pytest.raises(ZeroDivisionError):
        theirs.answers(["broken"])
    with StudentsProcess([""]) as theirs, pytest.raises(KeyError):
        theirs.answers(["broken"])


def test_a_cell_that_fails_spoils_no_other_one() -> None:
    with StudentsProcess(["def broken(:", "def whole(): return 7"]) as theirs:
        (whole,) = theirs.answers(["whole"])
        assert whole() == 7
        with pytest.raises(SyntaxError):
            theirs.answers(["broken"])
        with pytest.raises(SyntaxError):
            theirs.answers(["whole", "broken"])


def test_members_of_a_group_have_no_way_to_talk() -> None:
    def judge(answer: Any, *, seed: int) -> Wrong | None:
        """Each member is asked once, and comes back as a new process."""
        told = [in_own_process(answer, number)().count() for number in (1, 2, 3)]
        return None if told == [1, 1, 1] else Wrong(f"they have counted {told}")

    cell = """
        import builtins, os, sys, mqlab
        class double:
            def count(self):
                seen = set()
                for place in (sys.__dict__, mqlab.__dict__, builtins.__dict__, os.environ.__dict__):
                    place["seen"] = place.get("seen", 0) + 1
                    seen.add(place["seen"])
                for name in (os.environ["TMPDIR"] + "/seen", "/dev/shm/seen"):
                    with open(name, "a+") as file:
                        file.write("x")
                        seen.add(file.tell())
                return max(seen)
    """
    with StudentsProcess([textwrap.dedent(cell)]) as theirs:
        assert repr(judged(judge).play(*theirs.answers(["double"]), seeds=[1])).startswith("99/judged: passed")


def test_sets_have_the_same_order_each_time() -> None:
    cell = "def order(): return ''.join({'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'})"
    told = set()
    for _ in range(2):
        with StudentsProcess([cell]) as theirs:
            told.add(theirs.answers(["order"])[0]())
    assert len(told) == 1
