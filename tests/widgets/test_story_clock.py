"""The story clock: what is seen when, whatever the world does."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from mqlab_widgets.story_clock import (
    FLIGHT_MS,
    GRID_MS,
    LONGEST_FLIGHT_MS,
    ROOM_MS,
    SHORT_FLIGHT_MS,
    SILENCE_US,
    TICK_MS,
    LinearClock,
    Seen,
    StoryClock,
)


class Happening(NamedTuple):
    """An event as the clock sees it."""

    us: int
    rest_ms: int
    leaves: str
    arrives: str


class Flight(NamedTuple):
    """A frame on the screen: when it left and arrived, there and in the world."""

    left: int
    arrived: int
    left_us: int
    arrived_us: int

    @property
    def ms(self) -> int:
        return self.arrived - self.left


def told(events: list[Happening]) -> list[Seen]:
    """When each of these events is seen."""
    clock = StoryClock(0)
    leave = [(event.leaves,) if event.leaves else () for event in events]
    return [
        clock.take(event.us, event.rest_ms, leave=frames, arrives=event.arrives)
        for event, frames in zip(events, leave, strict=True)
    ]


def flights(events: list[Happening], seen: list[Seen]) -> list[Flight]:
    """The frames that arrived."""
    left = {event.leaves: (moment.at, event.us) for event, moment in zip(events, seen, strict=True) if event.leaves}
    return [
        Flight(left[event.arrives][0], moment.at, left[event.arrives][1], event.us)
        for event, moment in zip(events, seen, strict=True)
        if event.arrives
    ]


@st.composite
def worlds(draw: st.DrawFn, *, in_order: bool = False, slow: int = 0) -> list[Happening]:
    """Events of a world of frames that take 100 to 300 us (up to `slow` us), and of things that happen in machines."""
    events: list[tuple[int, int, Happening]] = []
    us = 0
    last_arrival = 0
    for number in range(draw(st.integers(1, 12))):
        us += draw(st.one_of(st.integers(0, 400), st.integers(0, 200_000)))
        rest_ms = draw(st.sampled_from([0, 40, 150, 250, 400]))
        if draw(st.booleans()):
            arrival = us + (200 if in_order else draw(st.integers(100, max(300, slow))))
            last_arrival = arrival = max(arrival, last_arrival) if in_order else arrival
            events.append((us, 2 * number, Happening(us, rest_ms, str(number), "")))
            events.append((arrival, 2 * number + 1, Happening(arrival, rest_ms, "", str(number))))
        else:
            events.append((us, 2 * number, Happening(us, rest_ms, "", "")))
    return [event for *_, event in sorted(events)]


@given(worlds(slow=60_000))
def test_what_is_seen_never_goes_back_and_is_the_same_each_time(events: list[Happening]) -> None:
    seen = told(events)
    ats = [moment.at for moment in seen]
    assert ats == sorted(ats)
    assert all(at % GRID_MS == 0 for at in ats)
    assert seen == told(events)


@given(worlds(slow=60_000))
def test_every_flight_can_be_seen(events: list[Happening]) -> None:
    for flight in flights(events, told(events)):
        assert flight.ms >= SHORT_FLIGHT_MS


@given(worlds(in_order=True))
def test_no_frame_hangs_in_the_air(events: list[Happening]) -> None:
    for flight in flights(events, told(events)):
        assert flight.ms <= LONGEST_FLIGHT_MS


@given(worlds())
def test_a_frame_that_is_overtaken_waits_for_the_flights_of_those_and_for_nothing_else(events: list[Happening]) -> None:
    arrived = flights(events, told(events))
    for flight in arrived:
        within = [
            other
            for other in arrived
            if flight.left_us <= other.left_us and other.arrived_us <= flight.arrived_us and other != flight
        ]
        assert flight.ms <= LONGEST_FLIGHT_MS + FLIGHT_MS * len(within)


@given(worlds(slow=60_000))
def test_a_silence_is_one_tick(events: list[Happening]) -> None:
    seen = told(events)
    before_us, before_at, rest_ms = 0, 0, 0
    for event, moment in zip(events, seen, strict=True):
        silence_us = event.us - before_us
        if silence_us > SILENCE_US:
            assert moment.silence_us == silence_us
            least = TICK_MS + rest_ms
            assert least <= moment.at - before_at <= max(least, FLIGHT_MS) + GRID_MS
        else:
            assert moment.silence_us == 0
        before_us, before_at, rest_ms = event.us, moment.at, event.rest_ms


def test_a_message_alone_is_shown_step_by_step() -> None:
    clock = StoryClock(0)
    assert clock.take(98_000, leave=["send"]) == (300, 98_000), "a tick for the 98 ms before"
    assert clock.take(98_200, 250, arrives="send") == (300 + FLIGHT_MS, 0)
    assert clock.take(98_240, leave=["answer"]) == (1050, 0), "the message rested in the broker for a quarter second"
    assert clock.take(98_300, 400) == (1050, 0)
    assert clock.take(98_340, 100) == (1050 + ROOM_MS, 0), "the answer is in the air, so the rest is cut short"
    assert clock.take(98_440, arrives="answer") == (1050 + FLIGHT_MS, 0)


def test_in_a_dense_world_what_happens_meanwhile_is_seen_at_once() -> None:
    clock = StoryClock(0)
    clock.take(0, leave=["a"])
    ats = {clock.take(us, 250).at for us in range(10, 200)}
    assert ats == {0, 250, ROOM_MS}
    assert clock.take(200, arrives="a").at == FLIGHT_MS


def test_a_frame_on_a_slow_link_does_not_hold_up_the_story() -> None:
    clock = StoryClock(0)
    clock.take(0, leave=["slow"])
    ats = [clock.take(us, 250).at for us in range(1_500, 11_000, 1_500)]
    assert ats[-1] > 3 * LONGEST_FLIGHT_MS
    assert clock.take(12_000, arrives="slow").at > ats[-1]


def test_a_frame_that_is_lost_is_not_waited_for() -> None:
    clock = StoryClock(0)
    clock.take(0, leave=["a"])
    clock.take(10, 400, lost=["a"])
    assert clock.take(20).at == 400


def test_what_the_clock_says_of_the_next_event_comes_true() -> None:
    clock = StoryClock(0)
    clock.take(0, 400, leave=["a"])
    assert clock.when(100) == 300
    assert clock.when(100, "a") == clock.take(100, arrives="a").at == 500


def test_after_a_pause_of_the_kernel_the_story_goes_on_from_there() -> None:
    clock = StoryClock(0)
    clock.take(0, 400)
    clock.not_before = 5_000
    assert clock.take(100, 250) == (5_000, 0)
    assert clock.take(200) == (5_250, 0)


def test_at_a_pace_the_worlds_time_is_stretched() -> None:
    clock = LinearClock(1_000_000, 200, 0.01)
    assert clock.when(1_001_000) == 300
    assert clock.take(1_004_000, 999) == (600, 0)
    assert clock.take(1_003_000) == (600, 0), "it never goes back"
    assert clock.world_us(600) == 1_004_000
    clock.restart(1_004_000, 2_000)
    assert clock.when(1_005_000) == 2_100
