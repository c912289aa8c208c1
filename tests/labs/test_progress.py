"""The last line of a lab says how far somebody is, and a certificate says it of one text alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mqlab.check import NotSolvedYet, Wrong, check, how_far, lab_check, notebook_bets, predict
from mqlab.check.progress import Played, certificate, read_certificate
from mqlab.check.registry import _checks, noted_checks
from mqlab.labs.notebook import make_notebook
from mqlab.labs.source import LabSource
from tests.labs.conftest import cell

TWICE = "def twice(n):\n    return 2 * n\n"
THRICE = "class Thrice:\n    def of(self, n):\n        return 3 * n if n < 50 else 0\n"


@pytest.fixture(autouse=True)
def a_lab_of_two_checks() -> Iterator[None]:
    """Lab 87, with nothing played and nothing asked before."""
    asked = notebook_bets.take_all()

    @lab_check("87/twice", points=2)
    def twice(answer: Callable[[int], int], *, seed: int) -> Wrong | None:
        """A number comes back doubled."""
        return None if answer(seed) == 2 * seed else Wrong("not doubled")

    @lab_check("87/thrice", points=3)
    def thrice(answer: type[Any], *, seed: int) -> Wrong | None:
        """A number comes back three times."""
        return None if answer().of(seed) == 3 * seed else Wrong("not tripled")

    yield
    notebook_bets.put_back(asked)
    for name in (twice.name, thrice.name):
        _checks.pop(name)
        noted_checks.pop(name, None)


def test_nothing_done_is_said_without_a_certificate() -> None:
    def unsolved(_: int) -> int:
        raise NotSolvedYet

    predict("one", "How many?", unit="requests")
    check("87/twice", unsolved)
    told = how_far("ada", "87", bets=3)
    assert repr(told).splitlines() == [
        "lab 87: 0 of 3 bets, 0 of 2 checks passed over 50 seeds, 0 of 5 points",
        "  left: 87/twice: not solved yet",
        "  left: 87/thrice: not run since the kernel was started",
    ]


def test_the_line_counts_bets_that_were_made_and_checks_as_they_ended_last() -> None:
    predict("one", "How many?", 3, unit="requests")
    predict("two", "How many?", unit="requests")
    check("87/twice", cell("def twice(n):\n    return n\n", "twice"))
    assert how_far("ada", "87", bets=2).left[0] == "87/twice: 0 of 3 seeds went well"
    check("87/twice", cell(TWICE, "twice"))
    check("87/twice", lambda _: 0, seeds=[4])  # with seeds of one's own: to look into a world
    check("87/thrice", cell(THRICE, "Thrice"))
    told = how_far(" Ada ", "87", bets=2)
    assert told.headline == "lab 87: 1 of 2 bets, 1 of 2 checks passed over 50 seeds, 2 of 5 points"
    assert told.left == ["87/thrice: 49 of 50 seeds went well"]
    read = read_certificate(f"noise\n{told!r}\n")
    assert read is not None
    assert (read.lab, read.student, read.made, read.bets) == ("87", "ada", 1, 2)
    assert read.checks == {"twice": Played(50, 50), "thrice": Played(49, 50)}
    # Made again from the texts of the cells alone.
    assert read == certificate("87", "ada", 1, 2, read.checks, [TWICE.strip() + "   \n", THRICE])


def test_a_certificate_belongs_to_one_student_one_text_and_one_outcome() -> None:
    facts: tuple[Any, ...] = ("87", "ada", 1, 2, {"twice": Played(50, 50)}, [TWICE])
    others: list[tuple[Any, ...]] = [
        ("95", *facts[1:]),
        ("87", "bob", *facts[2:]),
        ("87", "ada", 2, *facts[3:]),
        (*facts[:4], {"twice": Played(49, 50)}, [TWICE]),
        (*facts[:5], [TWICE.replace("2", "3")]),
        (*facts[:5], [TWICE, TWICE]),
    ]
    digests = {certificate(*other).digest for other in [facts, *others]}
    assert len(digests) == 1 + len(others)


def test_an_id_with_spaces_is_read_back() -> None:
    made = certificate("87", "ada l/ü=@", 1, 2, {"twice": Played(50, 50)}, [TWICE])
    assert read_certificate(str(made)) == made
    assert read_certificate(str(made)[:-1]) is None


def test_the_builder_ends_every_lab_with_it_and_with_handing_in(example: LabSource) -> None:
    how_far, text, hand_in = make_notebook(example, "student")["cells"][-3:]
    assert how_far["source"] == 'from mqlab.check import hand_in, how_far\n\nhow_far(student_id, "90", bets=2)'
    assert text["source"].startswith("To hand in, write `done=True` in place of the dots")
    assert hand_in["source"] == 'hand_in(student_id, "90", bets=2, done=...)'
