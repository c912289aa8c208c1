"""Replays: a report brings back the same world, whatever was chosen or done in it."""

from __future__ import annotations

from mqlab import scenarios
from mqlab.replay import replay, replay_to, report_of


def test_a_world_in_which_ties_are_choices_can_be_played_again() -> None:
    scenario = scenarios.get("first-message")
    lab = scenario.play(7, tie_is_choice=True)
    assert lab.world.choices.drawn()["ties"]
    assert lab.trace_hash() != scenario.play(7).trace_hash()
    again = replay(report_of(lab))
    assert again.agrees
    assert again.lab.world.tie_is_choice


def test_what_a_person_picks_goes_next_also_where_ties_are_choices() -> None:
    lab = scenarios.get("first-message").build(7, tie_is_choice=True)
    for _ in range(10):
        pending = lab.world.pending()
        index = max(n for n, offered in enumerate(pending) if offered.frame is None)
        target, token, _ = pending[index].entry
        lab.act("pick", index=index)
        lab.world.step()
        assert target.token != token
    assert replay(report_of(lab)).agrees


def test_a_report_from_before_ties_could_be_choices_still_replays() -> None:
    lab = scenarios.get("first-message").play(7)
    report = report_of(lab)
    del report["tie_is_choice"]
    assert replay_to(report, lab.world.slice_no).trace_hash() == lab.trace_hash()
