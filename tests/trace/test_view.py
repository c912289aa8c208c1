"""Views as folds, moved forward and back."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mqlab.trace.bus import Row
from mqlab.trace.history import History
from mqlab.trace.record import Record
from mqlab.trace.view import Folded, View

EVENTS = 4_500


def row(n: int) -> Row:
    held = n % 3 < 2
    fields = (15_000, n, "c") if held else ("arrived", 70, n, "c")
    return (n, 0, n, "broker-a", "pull", -1, -1, "PullHeld" if held else "PullWoken", "g", "t", n % 4, n, *fields)


def history() -> History:
    made = History()
    for n in range(EVENTS):
        made(row(n))
    return made


class HeldPulls(View[dict[int, int]]):
    """How many pulls are held on each queue; its state is changed in place."""

    kinds = ("PullHeld", "PullWoken")

    def __init__(self) -> None:
        self.steps = 0

    def initial(self) -> dict[int, int]:
        return {}

    def step(self, state: dict[int, int], record: Record) -> dict[int, int]:
        self.steps += 1
        state[record.queue_id] = state.get(record.queue_id, 0) + (1 if record.kind == "PullHeld" else -1)
        return state


class LastWoken(View[int]):
    """The offset at which a pull was last woken; its state is a number."""

    kinds = "PullWoken"

    def initial(self) -> int:
        return -1

    def step(self, state: int, record: Record) -> int:
        return int(record.queue_offset)


def plainly_folded(position: int) -> dict[int, int]:
    view = HeldPulls()
    state = view.initial()
    for n in range(position):
        state = view.step(state, Record(row(n)))
    return state


LONG = history()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-10, EVENTS + 10), max_size=12))
def test_wherever_one_goes_the_picture_is_the_same(places: list[int]) -> None:
    folded = Folded(HeldPulls(), LONG)
    for place in places:
        position = max(0, min(place, EVENTS))
        assert folded.seek(place) == plainly_folded(position)
        assert folded.position == position


def test_going_back_folds_at_most_a_thousand_events() -> None:
    view = HeldPulls()
    folded = Folded(view, LONG)
    folded.to_end()
    assert view.steps == EVENTS
    for place in (4_400, 3_999, 17, 2_000):
        view.steps = 0
        folded.seek(place)
        assert view.steps < 1_000


def test_one_step_forward_folds_one_event() -> None:
    view = HeldPulls()
    folded = Folded(view, LONG)
    folded.seek(1_500)
    view.steps = 0
    folded.forward()
    assert (folded.position, view.steps) == (1_501, 1)
    assert folded.back(2) == plainly_folded(1_499)


def test_events_of_other_kinds_are_passed_over() -> None:
    folded = Folded(LastWoken(), LONG)
    assert [folded.seek(n) for n in (0, 2, 3, 5, 6, 3)] == [-1, -1, 2, 2, 5, 2]


def test_a_view_follows_a_history_that_grows() -> None:
    growing = History()
    folded = Folded(LastWoken(), growing)
    assert folded.to_end() == -1
    for n in range(3):
        growing(row(n))
    assert folded.to_end() == 2
