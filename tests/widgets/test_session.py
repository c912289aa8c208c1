"""What a viewer does to a world: stepping, jumping, breaking, choosing, branching, sharing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import mqlab
from mqlab import Lab
from mqlab.errors import LearnerError, ProtocolError
from mqlab_widgets import sharing
from mqlab_widgets.breaking import link_verbs, machine_verbs
from mqlab_widgets.commands import offered
from mqlab_widgets.controls import menu_html
from mqlab_widgets.next_up import pending_groups, pending_of
from mqlab_widgets.session import Session
from mqlab_widgets.verbs import LINKS, MACHINES
from tests.worlds import played


class Viewed:
    """A session on a scenario's world; `do("crash", node="broker-a")` returns what was said."""

    def __init__(self, name: str = "two-brokers", seconds: float = 4, **parameters: Any) -> None:
        self.lab = played(name, seconds, **parameters)
        self.changes = 0
        self.session = Session(self.lab, changed=self._count)

    def _count(self) -> None:
        self.changes += 1

    def do(self, command: str, **arguments: Any) -> str:
        self.session.do({"do": command, **arguments})
        return self.session.said

    @property
    def cursor(self) -> int:
        return self.session.lab.history.cursor


@pytest.fixture
def viewed() -> Viewed:
    """Two brokers after four seconds."""
    return Viewed()


# -- time -----------------------------------------------------------------------------------------------------------


def test_stepping_goes_on_one_event_or_one_slice(viewed: Viewed) -> None:
    before, slice_no = viewed.cursor, viewed.lab.world.slice_no
    assert viewed.do("step_event") == ""
    assert viewed.cursor == before + 1
    viewed.do("step_slice")
    assert viewed.lab.world.slice_no > slice_no
    assert viewed.session.cursor.at_end


def test_before_the_first_event_there_is_no_way_back_and_it_is_said(viewed: Viewed) -> None:
    viewed.do("goto", place="1")
    assert viewed.do("back") == ""
    assert viewed.cursor == 0
    assert "back" not in offered(viewed.session)
    assert viewed.do("back") == "This is the beginning: nothing has happened before it."
    assert viewed.cursor == 0
    assert viewed.do("step_event") == ""
    assert viewed.cursor == 1


def test_the_cursor_goes_back_and_forth_without_playing(viewed: Viewed) -> None:
    played = viewed.lab.world.slice_no
    viewed.do("start")
    assert (viewed.cursor, viewed.session.cursor.event()) == (0, None)
    viewed.do("step_event")
    viewed.do("goto", place="500")
    viewed.do("back")
    assert viewed.cursor == 499
    assert not viewed.session.cursor.at_end
    viewed.do("to_time", ms="100")
    assert viewed.session.cursor.event().ts_ms <= 100 < viewed.lab.history.record(viewed.cursor).ts_ms
    viewed.do("now")
    assert viewed.session.cursor.at_end
    assert viewed.lab.world.slice_no == played


def test_to_the_next_event_of_a_kind_through_the_history_and_beyond(viewed: Viewed) -> None:
    viewed.do("start")
    viewed.do("set_kind", kind="PullHeld")
    seen = []
    for _ in range(40):
        viewed.do("next_kind")
        seen.append(viewed.session.cursor.event())
    assert {event.kind for event in seen} == {"PullHeld"}
    assert seen == list(viewed.lab.history.find("PullHeld"))[:40]
    viewed.do("previous_kind")
    assert viewed.session.cursor.event() == seen[-2]


def test_the_next_of_a_kind_is_of_that_kind_although_breakpoints_come_first(viewed: Viewed) -> None:
    viewed.lab.add_breakpoint("RequestSent")
    viewed.do("set_kind", kind="PullHeld")
    viewed.do("next_kind")
    assert viewed.session.cursor.event().kind == "PullHeld"


def test_to_a_time_ahead_and_to_a_breakpoint_the_world_is_played(viewed: Viewed) -> None:
    viewed.do("to_time", ms=5_000)
    assert viewed.lab.now_ms == 5_000
    viewed.lab.add_breakpoint("NodeCrashed")
    assert "Stopped at a breakpoint" in viewed.do("to_breakpoint")
    assert viewed.session.cursor.event().kind == "NodeCrashed"


def test_at_event_0_the_time_is_0(viewed: Viewed) -> None:
    viewed.do("start")
    assert viewed.session.cursor.now_us == 0
    viewed.do("step_event")
    assert viewed.session.cursor.now_us == viewed.session.cursor.event().ts_us
    viewed.do("now")
    assert viewed.session.cursor.now_us == viewed.lab.world.now_us > 4_000_000


def test_a_slice_in_the_past_is_one_of_the_record(viewed: Viewed) -> None:
    played = viewed.lab.world.slice_no
    viewed.do("goto", place=500)
    first = viewed.lab.history.record(500)
    viewed.do("step_slice")
    assert viewed.session.cursor.event().slice == first.slice
    assert viewed.lab.history.record(viewed.cursor).slice > first.slice
    assert (viewed.lab.world.slice_no, viewed.session.cursor.past) == (played, True)


# -- searching ------------------------------------------------------------------------------------------------------


def test_what_never_comes_is_looked_for_one_minute_and_there_is_a_way_back(viewed: Viewed) -> None:
    viewed.do("goto", place=700)
    was_us, began_ms = viewed.session.cursor.now_us, viewed.lab.now_ms
    viewed.do("set_kind", kind="PowerLost")
    assert viewed.do("next_kind") == "Not found in 60 s of the world: PowerLost. Once more goes on from here."
    assert viewed.lab.now_ms == began_ms + 60_000
    place, words = viewed.session.back_offer
    assert (place, words) == (700, f"back to {was_us / 1e6:.1f} s")
    assert "back_to" in offered(viewed.session)
    viewed.do("back_to", place=str(place))
    assert (viewed.cursor, viewed.session.back_offer) == (700, None)


def test_without_a_breakpoint_there_is_none_to_go_to(viewed: Viewed) -> None:
    assert "to_breakpoint" not in offered(viewed.session)
    began_ms = viewed.lab.now_ms
    assert "this lab has no breakpoint" in viewed.do("to_breakpoint")
    assert viewed.lab.now_ms == began_ms
    viewed.lab.add_breakpoint("PowerLost")
    assert "to_breakpoint" in offered(viewed.session)
    assert "Not found in 60 s" in viewed.do("to_breakpoint")
    assert viewed.lab.now_ms == began_ms + 60_000


def test_a_long_way_can_be_cancelled_and_clicks_are_heard_meanwhile(viewed: Viewed) -> None:
    async def cell() -> None:
        viewed.do("to_time", ms="99999999")
        assert viewed.session.searching == "99,999.999 s"
        assert viewed.session.moving
        assert viewed.do("choose", node="broker-a") == ""
        changes = viewed.changes
        while viewed.changes < changes + 3:
            await asyncio.sleep(0)
        viewed.do("cancel")
        while viewed.session.moving:
            await asyncio.sleep(0)

    asyncio.run(cell())
    assert viewed.session.said == f"Stopped at {viewed.lab.now_ms / 1_000:,.3f} s."
    assert 4_000 < viewed.lab.now_ms < 99_999_999
    assert viewed.session.back_offer is not None
    assert viewed.session.page.chosen == "broker-a"


def test_another_command_ends_a_search(viewed: Viewed) -> None:
    async def cell() -> None:
        viewed.do("to_time", ms=99_999_999)
        viewed.do("goto", place=3)
        for _ in range(10):
            await asyncio.sleep(0)

    asyncio.run(cell())
    assert (viewed.session.searching, viewed.cursor) == ("", 3)


# -- breaking -------------------------------------------------------------------------------------------------------


def test_a_machine_that_was_clicked_is_broken_and_mended(viewed: Viewed) -> None:
    assert "no machine is chosen" in viewed.do("crash")
    viewed.do("choose", node="broker-a")
    for verb, state in (("freeze", "frozen"), ("thaw", "running"), ("crash", "down"), ("restart", "running")):
        assert viewed.do(verb) == ""
        viewed.lab.run_for(seconds=1)
        assert viewed.lab.processes["broker-a"].state == state
    assert [action[2] for action in viewed.lab.actions] == ["freeze", "thaw", "crash", "restart"]
    viewed.do("power_off")
    assert "is down already" in viewed.do("crash")
    assert "no power" in viewed.do("power_off")


def test_what_would_change_nothing_is_refused_with_a_sentence(viewed: Viewed) -> None:
    viewed.do("choose", node="broker-a")
    actions = viewed.lab.actions
    assert "broker-a is not frozen" in viewed.do("thaw")
    assert actions == []
    viewed.do("freeze")
    assert "broker-a is frozen already" in viewed.do("freeze")
    viewed.do("crash")
    assert "is down already, so there is nothing to freeze" in viewed.do("freeze")
    assert "the link between broker-b and producer-1 is not cut" in viewed.do(
        "heal", source="broker-b", target="producer-1"
    )
    viewed.do("cut", source="broker-b", target="producer-1")
    assert "is cut already" in viewed.do("cut", source="producer-1", target="broker-b")
    assert [action[2] for action in actions] == ["freeze", "crash", "partition"]


def test_only_what_can_be_done_is_offered(viewed: Viewed) -> None:
    faults = {"crash", "power_off", "freeze", "thaw", "restart", "cut", "heal", "disconnect"}
    assert not faults & offered(viewed.session)
    viewed.do("choose", node="broker-a")
    assert faults & offered(viewed.session) == {"crash", "power_off", "freeze", "restart"}
    viewed.do("freeze")
    assert faults & offered(viewed.session) == {"crash", "power_off", "thaw", "restart"}
    viewed.do("power_off")
    assert faults & offered(viewed.session) == {"restart"}
    viewed.do("choose_link", source="producer-1", target="broker-b")
    assert (viewed.session.page.other, viewed.session.page.chosen) == ("producer-1", "broker-b")
    assert {"cut", "disconnect"} <= offered(viewed.session)
    viewed.do("cut")
    assert {"heal", "disconnect"} <= offered(viewed.session)
    assert "cut" not in offered(viewed.session)
    viewed.do("start")
    assert not {"back", "start", "previous_kind", "pick", "hold"} & offered(viewed.session)
    assert {"now", "play", "step_event", "share", "take_back"} <= offered(viewed.session)


def test_in_the_past_nothing_is_done_before_it_is_said_where(viewed: Viewed) -> None:
    viewed.do("goto", place=300)
    length = len(viewed.lab.history)
    for verb, arguments in (
        *((verb, {"node": "broker-a"}) for verb in MACHINES),
        *((verb, {"source": "broker-a", "target": "producer-1"}) for verb in LINKS),
    ):
        assert "what is shown is past, and nothing was done" in viewed.do(verb, **arguments)
    assert "there is no 'then' to do it in" in viewed.do("crash", node="broker-a", where="then")
    assert viewed.lab.actions == []
    assert (viewed.cursor, len(viewed.lab.history), len(viewed.session.worlds.branches)) == (300, length, 1)


def test_from_the_past_a_machine_is_broken_now_if_that_is_what_is_meant(viewed: Viewed) -> None:
    viewed.do("goto", place=300)
    assert viewed.do("crash", node="broker-a", where="now") == ""
    assert not viewed.session.cursor.past
    assert viewed.session.cursor.event().kind == "NodeCrashed"
    assert viewed.session.lab is viewed.lab


def test_from_the_past_a_machine_is_broken_in_a_new_world(viewed: Viewed) -> None:
    viewed.do("crash", node="broker-a")
    viewed.lab.run_for(seconds=1)
    viewed.do("goto", place=600)
    before, slice_no = list(viewed.lab.actions), viewed.session.cursor.event().slice
    # It is down in the present, but it was not then.
    assert "down already" in viewed.do("crash", node="broker-a", where="now")
    said = viewed.do("crash", node="broker-a", where="new")
    assert said == (
        "This is a new world, which has gone on from there: crash broker-a. The other one stands under Worlds."
    )
    new = viewed.session.lab
    assert new is not viewed.lab
    assert viewed.lab.actions == before
    assert [action[2] for action in new.actions] == ["crash"]
    assert new.actions[0][0] == slice_no
    assert viewed.session.worlds.branches[1].what == "crash broker-a"
    assert new.processes["broker-a"].state == "down"
    assert list(new.history.rows(0))[:600] == list(viewed.lab.history.rows(0))[:600]
    assert viewed.do("restart", node="broker-a") == ""


def test_a_new_world_is_without_what_was_done_after_the_cursor(viewed: Viewed) -> None:
    place = viewed.cursor
    viewed.do("freeze", node="broker-a")
    viewed.do("freeze", node="broker-b")
    viewed.lab.run_for(seconds=1)
    viewed.do("goto", place=place)
    viewed.do("crash", node="broker-a", where="new")
    assert [action[2] for action in viewed.session.lab.actions] == ["crash"]
    viewed.do("branch", number=0)
    first = viewed.lab.history.find("NodeFrozen", start=place)
    viewed.do("goto", place=viewed.lab.history.index_of(next(iter(first)).at) + 1)
    viewed.do("crash", node="broker-b", where="new")
    assert [action[2] for action in viewed.session.lab.actions] == ["freeze", "crash"]


def test_in_the_middle_of_the_newest_slice_a_machine_is_broken_at_its_end(viewed: Viewed) -> None:
    viewed.do("step_event")
    assert viewed.session.cursor.past
    assert viewed.do("freeze", node="broker-a") == ""
    assert viewed.session.cursor.at_end
    # Before that, and in the same slice, it was not frozen.
    viewed.do("back")
    viewed.do("back")
    assert "nothing was done" in viewed.do("crash", node="broker-a")


def test_while_the_record_is_played_it_is_asked_where_too(viewed: Viewed) -> None:
    async def cell() -> None:
        viewed.do("goto", place=100)
        viewed.do("play")
        assert viewed.session.cursor.past
        assert "nothing was done" in viewed.do("crash", node="broker-a")
        assert viewed.session.playing
        viewed.do("crash", node="broker-a", where="new")
        assert not viewed.session.playing

    asyncio.run(cell())
    assert viewed.lab.actions == []
    assert viewed.session.lab.processes["broker-a"].state == "down"


def test_every_verb_of_the_menus_has_a_way_back_and_a_sentence(viewed: Viewed) -> None:
    viewed.do("choose_link", source="producer-1", target="broker-a")
    session, lab = viewed.session, viewed.lab
    broker, link = {"node": "broker-a"}, {"source": "producer-1", "target": "broker-a"}
    for verb, back, whom in (
        ("fill_disk", "free_disk", broker), ("hang_disk", "unhang_disk", broker),
        ("slow_disk", "quick_disk", broker), ("drift", "set_clock", broker),
        ("freeze", "thaw", broker), ("cut", "heal", link), ("slow", "quick", link),
    ):  # fmt: skip
        offered = machine_verbs(session) | link_verbs(session)
        assert verb in offered
        assert back not in offered
        assert viewed.do(back, **whom) != "", "it would change nothing"
        assert viewed.do(verb, **whom) == ""
        assert session.cursor.line() != ""
        lab.run_for(ms=20)
        changed = machine_verbs(session) | link_verbs(session)
        assert back in changed
        assert verb not in changed
        assert viewed.do(verb, **whom) != "", "it would change nothing"
        assert viewed.do(back, **whom) == ""
        lab.run_for(ms=20)
        assert (machine_verbs(session) | link_verbs(session)) == offered
    assert not {"fill_disk", "hang_disk"} & machine_verbs_of(session, "producer-1")
    assert "is no broker" in viewed.do("fill_disk", node="producer-1")


def machine_verbs_of(session: Session, node: str) -> set[str]:
    session.do({"do": "choose", "node": node})
    return set(machine_verbs(session))


def test_the_menu_of_the_past_says_which_verbs_mean_what(viewed: Viewed) -> None:
    viewed.do("choose", node="broker-a")
    assert "In a new world" not in menu_html(viewed.session, link=False)
    viewed.do("crash", node="broker-a")
    viewed.do("goto", place=600)
    menu = menu_html(viewed.session, link=False)
    new, _, now = menu.partition('aria-label="Now, at')
    assert "In a new world from here, " in new
    assert 'data-do="crash"' in new
    assert 'data-where="new"' in new
    assert 'data-where="now"' not in new
    assert 'data-do="crash"' not in now
    assert 'data-do="restart"' in now
    assert 'data-where="now"' in now


def test_a_link_is_cut_between_the_two_machines_clicked_last(viewed: Viewed) -> None:
    viewed.do("choose", node="producer-1")
    assert "a link needs two machines" in viewed.do("cut")
    viewed.do("choose", node="broker-b")
    assert viewed.do("cut") == ""
    assert viewed.lab.world.network.link("producer-1", "broker-b").cut
    viewed.do("heal")
    assert not viewed.lab.world.network.link("broker-b", "producer-1").cut
    assert viewed.do("disconnect") == ""


def test_what_cannot_be_is_said_and_changes_nothing(viewed: Viewed) -> None:
    slices = viewed.lab.world.slice_no
    assert "no command 'dance'" in viewed.do("dance")
    assert "there is no machine 'broker-z'" in viewed.do("choose", node="broker-z")
    assert "has happened meanwhile" in viewed.do("pick", entry="nothing")
    assert viewed.do("goto", place="not a number") != ""
    assert viewed.do("goto", nowhere=1) != ""
    assert "there is no world 7" in viewed.do("branch", number=7)
    assert viewed.lab.world.slice_no == slices


# -- choosing what happens next -------------------------------------------------------------------------------------


def deliveries(viewed: Viewed) -> list[str]:
    """The keys of the deliveries among what may happen next."""
    return [key for key, entry in pending_of(viewed.session.lab).items() if entry.source]


def test_a_delivery_can_be_let_through_held_back_or_broken(viewed: Viewed) -> None:
    viewed.do("set_kind", kind="RequestSent")
    viewed.do("next_kind")
    (delivery, *_) = deliveries(viewed)
    viewed.do("hold", entry=delivery, ms=50)
    viewed.lab.run_for(ms=40)
    assert list(viewed.lab.history.find("RequestReceived", start=viewed.cursor - 1)) == []
    assert viewed.do("pick", entry=delivery) == "", "what was held back is the same delivery still"
    assert viewed.session.cursor.event().kind in ("RequestReceived", "ResponseReceived")


def test_what_was_picked_and_held_back_is_part_of_the_replay(viewed: Viewed) -> None:
    viewed.do("hold", entry=list(pending_of(viewed.session.lab))[-1], ms=5)
    viewed.do("pick", entry=list(pending_of(viewed.session.lab))[1])
    viewed.lab.run_for(seconds=2)
    again = sharing.reopened(sharing.shared_text(viewed.lab))
    assert again.trace_hash() == viewed.lab.trace_hash()
    assert [action[2] for action in again.actions] == ["hold", "pick"]


def test_a_click_on_an_old_list_means_what_stood_there_or_nothing(viewed: Viewed) -> None:
    viewed.lab.run_for(ms=1)
    seen = pending_of(viewed.session.lab)
    assert len(seen) == len(viewed.lab.world.pending()) > 3
    first, *_, last = seen
    viewed.do("pick", entry=first)
    before = len(viewed.lab.actions)
    said = viewed.do("pick", entry=first)
    assert "has happened meanwhile" in said
    assert "choose again from the new list" in said
    assert "has happened meanwhile" in viewed.do("hold", entry=first, ms=5)
    assert len(viewed.lab.actions) == before
    place = list(pending_of(viewed.session.lab)).index(last)
    assert place != list(seen).index(last)
    viewed.do("pick", entry=last)
    assert viewed.lab.actions[-1][2:] == ("pick", {"index": place})


def test_deliveries_stand_apart_from_housekeeping(viewed: Viewed) -> None:
    viewed.do("set_kind", kind="RequestSent")
    viewed.do("next_kind")
    frames, housekeeping = pending_groups(viewed.session.lab)
    assert set(frames) == set(deliveries(viewed))
    assert housekeeping
    assert frames | housekeeping == pending_of(viewed.session.lab)


def test_in_the_past_nothing_is_left_to_choose(viewed: Viewed) -> None:
    entry = next(iter(pending_of(viewed.session.lab)))
    viewed.do("goto", place=300)
    for command in ("pick", "hold"):
        assert "what is shown is the past" in viewed.do(command, entry=entry)
    assert (viewed.cursor, viewed.lab.actions) == (300, [])


# -- the tree -------------------------------------------------------------------------------------------------------


def test_taking_back_plays_a_new_world_that_can_go_another_way(viewed: Viewed) -> None:
    viewed.do("goto", place=300)
    at = viewed.session.cursor.event()
    assert viewed.do("take_back") == ""
    assert viewed.session.worlds.now == 1
    assert viewed.session.lab is not viewed.lab
    assert viewed.session.lab.history.record(len(viewed.session.lab.history) - 1).slice == at.slice
    viewed.do("crash", node="broker-a")
    viewed.session.lab.run_for(seconds=1)
    shared, mine, other = viewed.session.worlds.difference(0)
    assert shared >= 300
    assert mine.kind == "ActionTaken"
    assert other == viewed.lab.history.record(shared)
    viewed.do("branch", number=0)
    assert viewed.session.lab is viewed.lab


def test_worlds_are_compared_again_as_they_grow(viewed: Viewed) -> None:
    viewed.do("goto", place=300)
    viewed.do("take_back")
    shared, mine, other = viewed.session.worlds.difference(0)
    assert mine is None
    assert other == viewed.lab.history.record(shared)
    for _ in range(20):
        viewed.do("step_event")
    assert viewed.session.worlds.difference(0)[0] == len(viewed.session.lab.history) > shared
    viewed.do("crash", node="broker-a")
    viewed.session.lab.run_for(seconds=1)
    parted = viewed.session.worlds.difference(0)
    assert parted[1].kind == "ActionTaken"
    viewed.do("branch", number=0)
    assert viewed.session.worlds.difference(1) == (parted[0], parted[2], parted[1])


def test_a_choice_that_was_drawn_can_be_set_otherwise(viewed: Viewed) -> None:
    point = next(point for point, draws in viewed.lab.world.choices.drawn().items() if draws > 3)
    assert viewed.do("override", point=point, k=0, value=0) == ""
    assert viewed.session.lab.world.choices.overrides == {(point, 0): 0}
    assert viewed.session.worlds.branches[1].what == f"{point} #0 = 0"


def test_what_chance_drew_last_is_offered_in_other_ways(viewed: Viewed) -> None:
    viewed.lab.run_for(seconds=1)
    newest = viewed.lab.world.choices.log[-1]
    other = 0 if newest.value else newest.n - 1
    assert viewed.do("override", point=newest.point, k=str(newest.k), value=str(other)) == ""
    assert viewed.session.lab.world.choices.overrides == {(newest.point, newest.k): other}
    assert viewed.session.lab.trace_hash() != viewed.lab.trace_hash()


def test_a_world_built_cell_by_cell_cannot_be_taken_back_and_says_what_to_do() -> None:
    lab = Lab(seed=1)
    lab.name_server()
    session = Session(lab, changed=lambda: None)
    assert not {"share", "take_back", "override"} & offered(session)
    session.do({"do": "take_back"})
    assert "%%scenario" in session.said


# -- looking --------------------------------------------------------------------------------------------------------


def test_how_a_viewer_looks_is_what_is_drawn(viewed: Viewed) -> None:
    key = viewed.lab.history.last("MessageStored").unique_key
    viewed.session.page.seen(width="1280", height=600, big="1")
    for command, arguments in {
        "choose_link": {"source": "producer-1", "target": "broker-a"},
        "follow": {"message": key},
        "open_kind": {"kind": "consumer"},
        "goto": {"place": 300},
    }.items():
        assert viewed.do(command, **arguments) == ""
    look = viewed.session.look()
    assert look[:7] == (1280, True, 600, "broker-a", "producer-1", key, frozenset({"consumer"}))
    assert (look.now_us, look.past) == (viewed.session.cursor.event().ts_us, True)
    viewed.do("follow", message=key)
    viewed.session.page.seen(big="0")
    viewed.session.page.seen(width=5, height=0)
    assert viewed.session.look()[:6] == (320, False, 0, "broker-a", "producer-1", "")
    assert 'data-key="card:broker-a"' in viewed.session.scene().svg()


# -- several views --------------------------------------------------------------------------------------------------


def test_views_of_one_world_follow_each_other(viewed: Viewed) -> None:
    seen: list[int] = []
    other = Session(viewed.lab, changed=lambda: seen.append(viewed.lab.history.cursor))
    viewed.do("goto", place=42)
    assert seen == [42]
    assert other.cursor.event() == viewed.session.cursor.event()


def test_a_broken_world_is_told(viewed: Viewed) -> None:
    viewed.lab.world.broken = "somebody broke it"
    assert "this world is broken: somebody broke it" in viewed.do("step_slice")


# -- sharing --------------------------------------------------------------------------------------------------------


def test_a_shared_world_opens_at_its_event(viewed: Viewed, tmp_path: Path) -> None:
    viewed.do("crash", node="broker-b")
    viewed.lab.run_for(seconds=1)
    viewed.do("goto", place=777)
    viewed.do("share")
    assert viewed.session.shared.text.startswith("mqlab:")
    assert viewed.session.shared.place == 777
    file = tmp_path / "world.mqlab"
    sharing.save_shared(viewed.lab, file)
    for shared in (viewed.session.shared.text, file):
        again = sharing.reopened(shared)
        assert (again.history.cursor, again.trace_hash()) == (777, viewed.lab.trace_hash())


def test_a_world_of_another_version_is_refused_rather_than_shown(
    viewed: Viewed, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = sharing.shared_text(viewed.lab)
    monkeypatch.setattr(sharing, "__version__", "99.0")
    with pytest.raises(LearnerError, match=f"shared from mqlab {mqlab.__version__}, and this is 99.0"):
        sharing.reopened(text)


def test_a_world_that_comes_out_otherwise_is_refused(viewed: Viewed, tmp_path: Path) -> None:
    file = tmp_path / "world.mqlab"
    sharing.save_shared(viewed.lab, file)
    text = file.read_text()
    digest = viewed.lab.trace_hash()
    file.write_text(text.replace(digest, "0" * len(digest)))
    with pytest.raises(LearnerError, match="does not come out as it was shared"):
        sharing.reopened(file)


def test_what_can_be_no_shared_world_is_told(tmp_path: Path) -> None:
    for given, told in (
        (tmp_path, "cannot be read: Is a directory"),
        (str(tmp_path), "cannot be read: Is a directory"),
        ("nowhere", "there is no file 'nowhere'"),
        (str(tmp_path / ("x" * 300)), "nor the name of a file"),
        (tmp_path / ("x" * 300), "cannot be read: File name too long"),
        (None, "this is NoneType"),
        (7, "this is int"),
    ):
        with pytest.raises((LearnerError, ProtocolError), match=told):
            sharing.reopened(given)  # type: ignore[arg-type]


def test_what_is_shared_while_it_plays_is_what_the_page_showed(viewed: Viewed) -> None:
    viewed.do("share", place="500")
    assert sharing.reopened(viewed.session.shared.text).history.cursor == viewed.session.shared.place == 500
    viewed.do("share", place="")
    assert viewed.session.shared.place == viewed.cursor
    viewed.do("step_event")
    assert viewed.session.shared is None


def test_a_line_of_an_older_mqlab_opens(viewed: Viewed) -> None:
    line, stop, _ = sharing.shared_text(viewed.lab).partition(".")
    assert stop
    assert sharing.reopened(line).history.cursor == viewed.cursor


@pytest.mark.parametrize("quotes", ['""', "''", "``", "\u201c\u201d"])
def test_a_line_in_quotation_marks_is_told_so(viewed: Viewed, quotes: str) -> None:
    with pytest.raises(ProtocolError, match=r"begins with a quotation mark .* give it without, from mqlab: on"):
        sharing.reopened(sharing.shared_text(viewed.lab).join(quotes))


@pytest.mark.parametrize(
    "damage", [
        lambda t: t[:-7], lambda t: "mqlab:", lambda t: "mqlab:bm90aGluZw==", lambda t: t[:40], lambda t: t + "A",
        lambda t: t.removeprefix("mqlab:"), lambda t: t[:100] + "\n" + t[100:], lambda t: t + '"',
        lambda t: t[:60] + t[61:], lambda t: t[:60] + t[61] + t[60] + t[62:], lambda t: t.partition(".")[0] + "AAAA",
        lambda t: t.partition(".")[0] + "A", lambda t: t.replace(".", ""), lambda t: t + t,
    ]
)  # fmt: skip
def test_a_damaged_text_says_to_copy_all_of_it(viewed: Viewed, damage: Any) -> None:
    with pytest.raises(ProtocolError, match="copy all of it"):
        sharing.reopened(damage(sharing.shared_text(viewed.lab)))


@pytest.mark.parametrize("verb", ["crash", "cut"])
def test_a_page_cannot_put_another_verb_into_a_command(viewed: Viewed, verb: str) -> None:
    viewed.do("choose", node="producer-1")
    viewed.do("choose", node="broker-a")
    before = list(viewed.lab.actions)
    viewed.do(verb, name="freeze")
    assert "name" in viewed.session.said
    viewed.do(verb, name="nothing of the kind")
    assert "name" in viewed.session.said
    assert viewed.lab.actions == before
