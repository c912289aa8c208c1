"""Links to a moment: what they hold, what opens, and what a hostile one comes to."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqlab import Lab, __version__, scenarios
from mqlab.check import find_check
from mqlab.check.failure import Failure
from mqlab.errors import LearnerError, MqlabError, ProtocolError
from mqlab_widgets.commands import offered
from mqlab_widgets.controls import more_html
from mqlab_widgets.links import LONGEST, MOST_EVENTS, OWN, fragment_of, link_of, open_link
from mqlab_widgets.session import Session
from mqlab_widgets.stepper import Stepper

SITE = "https://school.example/mqlab/"


def rows(lab: Lab, end: int) -> list[Any]:
    return list(lab.history.rows(0, end))


@pytest.mark.parametrize(
    ("name", "seed", "options"),
    [
        ("demo", 7, {}),
        ("demo", "7", {}),
        ("demo", '"quoted"', {}),
        ("demo", -3, {"wire": "bytes"}),
        ("shop-day", 2, {"tie_is_choice": True}),
        ("accident", 1, {"parameters": {"what": "disk lost", "flush": "SYNC_FLUSH", "messages": 50}}),
        ("busy-broker", 1, {"parameters": {"fast_failure": False}}),
        ("drawn", 3, {}),
    ],
)
def test_a_link_opens_the_same_world_at_the_same_event(name: str, seed: int | str, options: dict[str, Any]) -> None:
    lab = scenarios.get(name).play(seed, seconds=3, **options)
    at = len(lab.history) * 2 // 3
    opened = open_link(link_of(lab, at, SITE))
    assert opened.notes == []
    assert opened.lab.history.cursor == at
    assert rows(opened.lab, at) == rows(lab, at)
    assert (opened.lab.seed, opened.lab.wire) == (lab.seed, lab.wire)


def test_what_was_done_to_the_world_is_done_again() -> None:
    lab = scenarios.get("demo").play(4, seconds=2)
    lab.act("crash", node="broker-a")
    lab.run_for(seconds=1)
    lab.act("restart", node="broker-a")
    lab.run_for(seconds=5)
    at = len(lab.history) - 3
    link = link_of(lab, at, SITE)
    opened = open_link(link)
    assert opened.notes == []
    assert rows(opened.lab, at) == rows(lab, at)
    assert link.startswith(f"{SITE}play/#scenario=demo&seed=4&actions=[[")
    assert " " not in link


def test_a_choice_that_came_out_differently_is_in_it() -> None:
    lab = scenarios.get("demo").build(1, overrides={("network/producer-1>broker-a", 0): 7})
    lab.run_for(seconds=3)
    opened = open_link(link_of(lab, len(lab.history), SITE))
    assert opened.notes == []
    assert rows(opened.lab, len(lab.history)) == rows(lab, len(lab.history))


def test_no_scenario_has_a_parameter_that_a_link_needs_for_itself() -> None:
    for name in scenarios.names():
        assert OWN.isdisjoint(parameter.name for parameter in scenarios.get(name).parameters), name


def test_the_whole_link_and_what_stands_behind_its_mark_open_the_same() -> None:
    lab = scenarios.get("demo").play(1, seconds=1)
    assert open_link(fragment_of(lab, 20)).lab.history.cursor == open_link(link_of(lab, 20)).lab.history.cursor == 20


def test_a_stepper_gives_its_link_and_opens_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQLAB_SITE", SITE.rstrip("/"))
    stepper = Stepper(scenarios.get("demo").play(1, seconds=1))
    link = stepper.link()
    assert link.startswith(f"{SITE}play/#scenario=demo&seed=1&at=")
    assert Stepper.reopen(link).session.lab.history.cursor == stepper.session.lab.history.cursor


def test_a_world_of_cells_and_one_with_a_program_get_no_link() -> None:
    lab = Lab(1)
    lab.name_server()
    with pytest.raises(LearnerError, match="built cell by cell"):
        link_of(lab)
    from mqlab.replay import Origin

    own = scenarios.get("demo").play(1, seconds=1)
    own.origin = Origin("demo", {}, "async def demo(lab): ...")
    with pytest.raises(LearnerError, match="a link holds no program"):
        link_of(own)


# -- links of other versions, and hostile ones ----------------------------------------------------------------------


def test_another_version_and_other_events_are_told_and_what_can_opens() -> None:
    link = fragment_of(scenarios.get("demo").play(1, seconds=1), 40)
    other = link.replace(f"v={__version__}", "v=9.9.9").replace("hash=", "hash=0")
    opened = open_link(other)
    assert opened.lab.history.cursor == 40
    assert opened.notes == [
        f"The link was made by mqlab '9.9.9', and this is {__version__}.",
        "What has happened in it up to here is not what it was when the link was made.",
    ]


def test_what_stands_in_front_of_the_mark_does_not_matter() -> None:
    with pytest.raises(LearnerError, match="there is no scenario 'nix'"):
        open_link("//[#scenario=nix")


def test_what_is_done_behind_the_last_slice_is_told() -> None:
    actions = json.dumps([[3_000_000, 10, "crash", {"node": "broker-a"}]])
    opened = open_link(f"scenario=first-message&seed=1&actions={quote(actions)}&at=10")
    assert "left out" in opened.notes[0] or "could not be played" in opened.notes[0]


def test_the_notes_of_a_link_are_said_by_the_view_that_it_opens() -> None:
    link = link_of(scenarios.get("demo").play(1, seconds=1), 40, SITE).replace("v=", "v=9")
    assert "was made by mqlab" in Stepper.reopen(link).session.said


def test_a_moment_too_far_gets_no_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqlab_widgets.links.MOST_EVENTS", 100)
    lab = scenarios.get("demo").play(1, seconds=2)
    with pytest.raises(LearnerError, match="a link opens at event 100 at most"):
        link_of(lab, 101)
    cut = open_link("scenario=demo&seed=1&at=120&hash=12345678")
    assert (cut.lab.history.cursor, len(cut.notes)) == (100, 1)


def test_an_event_that_is_too_far_is_not_played_to() -> None:
    far = open_link("scenario=demo&seed=1&at=999999999")
    assert far.lab.history.cursor == MOST_EVENTS
    assert far.notes == [
        f"The link asks for event 999,999,999; a link opens at event {MOST_EVENTS:,} at most, and this is it."
    ]


@pytest.mark.parametrize(
    ("fragment", "words"),
    [
        ("", "this is no link to a moment of a world"),
        ("hello", "this is no link to a moment of a world"),
        ("seed=1", "it names no scenario"),
        ("scenario=demo&scenario=shop-day", "it says 'scenario' twice"),
        ("scenario=nothing-of-the-kind", "there is no scenario"),
        ("scenario=demo&colour=red", "has no parameter 'colour'"),
        ("scenario=batches&size=1000000000", "too much for a page"),
        ("scenario=demo&queues=-5", "not possible"),
        ("scenario=demo&queues=many", "is not a int"),
        ("scenario=accident&what=__import__('os')", "is none of the words"),
        ("scenario=demo&at=-1", "at is '-1'"),
        ("scenario=demo&at=1e9", "at is '1e9'"),
        ("scenario=demo&at=٣", "at is"),
        ("scenario=demo&wire=telepathy", "wire is 'telepathy'"),
        ("scenario=demo&ties=none", "ties is 'none'"),
        ('scenario=demo&seed="1', "seed is"),
        ("scenario=demo&actions=hello", "actions is 'hello'"),
        ('scenario=demo&actions={"a":1}', "actions is"),
        (f"scenario=demo&actions={'[' * 5000}", "actions is"),
        ('scenario=demo&actions=[[1,2,"__import__",{"name":"os"}]]', "a verb of mqlab"),
        ('scenario=demo&actions=[[1,2,"eval",{}]]', "a verb of mqlab"),
        ('scenario=demo&actions=[[-1,2,"crash",{"node":"broker-a"}]]', "actions must be"),
        ('scenario=demo&actions=[[1,2,"bring",{"connection":1,"data":"00"}]]', "a link can't do 'bring'"),
        ("scenario=demo&overrides=[[1,2,3]]", "overrides must be"),
        (f"scenario=demo&x={'y' * LONGEST}", "the longest that is taken"),
        ("&".join(f"p{n}=1" for n in range(500)), "this is no link to a moment of a world"),
    ],
)
def test_a_hostile_link_does_no_harm_and_says_what_is_wrong(fragment: str, words: str) -> None:
    with pytest.raises(MqlabError) as raised:
        open_link(f"{SITE}play/#{fragment}")
    assert words in str(raised.value)
    assert len(str(raised.value)) < 600


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("crash", {"node": "broker-a", "command": "rm"}),
        ("delay", {"source": "producer-1", "target": "broker-a", "ms": 1e308}),
        ("override", {"point": [1], "k": 0, "value": 0}),
        ("pick", {"index": 1.5}),
        ("hold", {"index": 0, "ms": 1e308}),
    ],
)
def test_arguments_that_a_verb_does_not_take_are_told(verb: str, arguments: dict[str, Any]) -> None:
    actions = json.dumps([[200, 3_000_000, verb, arguments]])
    opened = open_link(f"scenario=demo&seed=1&actions={quote(actions)}&at=10")
    assert opened.lab.history.cursor == 10
    assert len(opened.notes) == 1
    assert "could not be played to the end of what the link says" in opened.notes[0]


@given(st.text(max_size=60), st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_whatever_stands_in_a_link_it_opens_or_says_why_not(value: str, other: str) -> None:
    for fragment in (value, f"scenario=demo&{value}={other}", f"scenario=demo&at={value}&actions={other}"):
        with suppress(ProtocolError, LearnerError):
            assert open_link(f"#{fragment}").lab.history.cursor <= MOST_EVENTS


# -- failed checks --------------------------------------------------------------------------------------------------


def too_many(case: Any) -> dict[str, int]:
    """Limits that no memory bears."""
    return {"pull_threshold_for_queue": 1000, "pull_batch_size": 32}


def failed(check: str, *functions: Any) -> Lab:
    verdict = find_check(check).play(*functions, seeds=range(1, 6))
    assert verdict.state == "wrong"
    return verdict.open()


def test_the_link_of_a_failed_check_opens_its_world_with_what_the_function_answered() -> None:
    lab = failed("06/limits", too_many)
    at = len(lab.history) // 2
    link = link_of(lab, at, SITE)
    assert 'answers=[[{"pull_batch_size":32,"pull_threshold_for_queue":1000}]]' in unquote(link)
    opened = open_link(link)
    assert opened.notes == []
    assert rows(opened.lab, at) == rows(lab, at)
    assert opened.lab.history.cursor == at
    assert link_of(opened.lab, at, SITE) == link


def test_a_function_that_is_asked_many_times_answers_call_by_call() -> None:
    asked = []

    def soon(*given: Any) -> int:
        asked.append(given)
        return 1

    lab = failed("06/next-pull", soon)
    assert len(asked) > 5
    opened = open_link(link_of(lab, len(lab.history), SITE))
    assert opened.notes == []
    assert rows(opened.lab, len(lab.history)) == rows(lab, len(lab.history))


WRONG = Path(__file__).parents[1] / "labs" / "wrong"


@pytest.mark.parametrize("name", ["14/decide", "14/deliver-at", "14/passes", "06/limits"])
def test_every_wrong_solution_of_a_check_that_plays_a_world_has_a_link(name: str) -> None:
    (path,) = WRONG.glob(f"{name[:2]}_*.py")
    for answers in runpy.run_path(str(path))["WRONG"][name]:
        given = answers if isinstance(answers, tuple) else (answers,)
        verdict = find_check(name).play(*given, seeds=range(1, 6))
        lab = verdict.open()
        again = open_link(link_of(lab, len(lab.history), SITE))
        assert again.notes == []
        assert rows(again.lab, len(lab.history)) == rows(lab, len(lab.history))


def test_what_a_function_gave_is_noted_as_it_was_then() -> None:
    grown: list[int] = []

    def longer(*_: Any) -> int:
        grown.append(1)
        return grown  # type: ignore[return-value]

    said = Failure(find_check("06/next-pull"), 1, (longer,)).answers()[0]
    assert said[0] == [1]


def test_a_world_that_was_played_on_opens_there_and_one_that_was_acted_on_has_no_link() -> None:
    lab = failed("06/limits", too_many)
    before = len(lab.history)
    lab.run_for(seconds=5)
    opened = open_link(link_of(lab, len(lab.history), SITE))
    assert opened.notes == []
    assert opened.lab.history.cursor == len(lab.history) > before
    lab.act("crash", node=next(iter(lab.processes)))
    with pytest.raises(LearnerError, match="something was done to this world"):
        link_of(lab, before, SITE)


def test_answers_that_are_no_data_get_no_link() -> None:
    lab = failed("06/next-pull", lambda *_: (1, 2))
    with pytest.raises(LearnerError, match="your function has answered something else"):
        link_of(lab)


def test_a_class_gets_no_link() -> None:
    with pytest.raises(LearnerError, match="this answer is a class"):
        link_of(failed("09/idempotent-listener", type("Keeper", (), {"__init__": lambda self, *_: None})))


@pytest.mark.parametrize(
    ("fragment", "words"),
    [
        ("check=99/nothing&seed=1&answers=[[]]", "there is no check"),
        ("check=../../os&seed=1&answers=[[]]", "there is no check"),
        ("check=06/limits&seed=one&answers=[[]]", "the seed of a check is a whole number"),
        ("check=06/limits&seed=1&answers=[1]", "a list for each function"),
        ("check=06/limits&seed=1&answers=hello", "answers is 'hello'"),
        ("check=06/refuse-old&seed=1&answers=[[]]", "plays no world"),
    ],
)
def test_a_hostile_link_of_a_check_says_what_is_wrong(fragment: str, words: str) -> None:
    with pytest.raises(MqlabError) as raised:
        open_link(fragment)
    assert words in str(raised.value)


def test_the_view_of_a_failed_check_shares_a_link_and_no_line() -> None:
    session = Session(failed("06/limits", too_many), changed=lambda: None)
    assert "share" in offered(session)
    session.do({"do": "share"})
    assert session.shared is not None
    assert session.shared.text == ""
    more = more_html(session)
    assert "check=06/limits" in more
    assert more.count("<textarea") == 1


def test_a_view_needs_no_checks_until_a_link_names_one() -> None:
    told = "import sys, mqlab_widgets.stepper; print('mqlab.check' in sys.modules)"
    made = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert made.stdout == "False\n"
