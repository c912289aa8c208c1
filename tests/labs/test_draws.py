"""A student's own numbers, drawn by name from the seed, and the tool that shows which answers they change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqlab.check import draws_for, notebook_bets, predict, say, seed_for
from mqlab.errors import LearnerError
from mqlab.labs.source import Cell, LabSource
from mqlab.labs.truths import student_ids, truths_of

SEEDS = range(200)


def test_a_draw_depends_on_the_seed_and_its_name_alone() -> None:
    draw = draws_for(7)
    first = draw.between("limit", 12, 40)
    draw.one_of("brokers", [2, 3, 4])
    assert draw.between("limit", 12, 40) == first == draws_for(7).between("limit", 12, 40)
    assert [draws_for(seed).between("limit", 12, 40) for seed in (7, 8, 9)] == [39, 28, 25]


def test_draws_reach_all_their_values_and_no_others() -> None:
    assert {draws_for(seed).between("size", 10, 25, step=5) for seed in SEEDS} == {10, 15, 20, 25}
    assert {draws_for(seed).one_of("who", "ABC") for seed in SEEDS} == set("ABC")
    orders = {tuple(draws_for(seed).shuffled("order", [1, 2, 3])) for seed in SEEDS}
    assert orders == {(1, 2, 3), (1, 3, 2), (2, 1, 3), (2, 3, 1), (3, 1, 2), (3, 2, 1)}


def test_a_draw_from_nothing_is_told() -> None:
    with pytest.raises(LearnerError, match="nothing to choose from"):
        draws_for(7).one_of("who", [])
    with pytest.raises(LearnerError, match="no number from 5 to 4"):
        draws_for(7).between("limit", 5, 4)


def test_a_text_with_variables_looks_like_a_text() -> None:
    said = say(f"The limit is **{6 * 7}**.")
    assert (repr(said), said._repr_markdown_()) == ("The limit is **42**.",) * 2


def test_one_reason_for_two_choices_is_found_where_students_differ(example: LabSource) -> None:
    at = next(n for n, cell in enumerate(example.cells) if any(call.args for call in cell.calls("reveal")))
    ids = student_ids(6)
    for why, found in (("'offsets grow'", True), ("'grow' if seed % 2 else 'shrink'", False)):
        drawn = f'seed = seed_for(student_id, "90")\nreveal("first-out", "ab"[seed % 2], why={why})'
        cells = (*example.cells[:at], Cell("drawn", "code", drawn, ()), *example.cells[at + 1 :])
        bet = truths_of(replace(example, cells=cells), ids)[0]
        assert (len(set(bet.truths)), bet.contradicts) == (2, found)


def test_a_bet_on_a_draw_has_another_truth_for_another_student(example: LabSource) -> None:
    predict("of mine", "Is it kept?", unit="times", prediction=1)
    ids = student_ids(4)
    assert [str(bet) for bet in truths_of(example, ids)] == ["first-out: the oldest", "left: 3 messages"]
    at = next(n for n, cell in enumerate(example.cells) if cell.calls("reveal"))
    drawn = Cell("drawn", "code", "queue *= seed_for(student_id, '90') % 5", ())
    own = truths_of(replace(example, cells=(*example.cells[:at], drawn, *example.cells[at:])), ids)
    expected = [f"{3 * (seed_for(student, '90') % 5)} messages" for student in ids]
    assert (own[0].same_for_all, own[1].same_for_all, list(own[1].truths)) == (True, False, expected)
    assert list(notebook_bets.take_all()) == ["of mine"]
