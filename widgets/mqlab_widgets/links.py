"""Links: an address that opens a scenario's world at one event, in a browser alone.

    https://SITE/play/#scenario=demo&seed=1&at=120&v=1.0.0&hash=1f2e3d4c
    https://SITE/play/#check=06/limits&seed=17&answers=[[{"pull_batch_size":32}]]&at=300

| part | what it says |
|---|---|
| `scenario` | its name |
| `seed` | a whole number, or a text |
| a parameter of the scenario | its value, where it is not the one that it has unless told |
| `actions` | what was done to the world: a list of [slice, time in us, verb, {arguments}] as JSON |
| `overrides` | the drawn choices that came out differently: a list of [point, k, value] as JSON |
| `wire`, `ties` | `bytes`, and `choice`, where these are not what they are unless told |
| `check` | in the place of a scenario: a check that has failed with this seed |
| `answers` | what the functions that it judged have answered, a list for each, call by call |
| `at` | behind how many events the cursor stands |
| `v`, `hash` | the mqlab that made it, and the first letters of the hash of these events |

A link holds names, numbers and the verbs of `mqlab.sim.FAULTS`: nothing of it is run. What opens may differ from what
was seen, in another version; then the page says so.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

from mqlab import __version__
from mqlab.errors import LearnerError, MqlabError, ProtocolError
from mqlab.replay import act_again, check_part, report_of
from mqlab.sim import FAULTS
from mqlab.trace.digest import TraceDigest

if TYPE_CHECKING:
    from mqlab import Lab
    from mqlab.scenarios import Scenario

PLAY = "play/"
"""Where links lead to, from the site's first page."""
SITE = "MQLAB_SITE"
"""The variable of the environment that says where the site is, such as https://school.example/mqlab/."""
MOST_EVENTS = 100_000
"""A link opens at no later event: a page plays these in less than half a minute."""
MOST_SLICES = 2_000_000
"""And plays no more than this on its way there."""
MOST_TIMES = 100
"""A number of a scenario may be so many times what it is unless told, or `MOST_AT_LEAST`."""
MOST_AT_LEAST = 10_000
LONGEST = 60_000
"""Letters of a link; browsers take at least 64,000."""
HASH_LETTERS = 8
LONGEST_SEED = 18
"""Digits of a seed that is a number; one that is longer is taken as a text."""
OWN = frozenset((
    "scenario", "seed", "actions", "overrides", "wire", "ties", "at", "v", "hash", "controls",
    "check", "answers", "answer",
))  # fmt: skip
"""Names that a scenario's parameters can't have."""
_SAFE = ",:[]{}/"


class Opened(NamedTuple):
    """The world of a link at its event, and what the reader must be told of it: one sentence each."""

    lab: Lab
    notes: list[str]


def site() -> str:
    """The address that links begin with: what `MQLAB_SITE` says; "" where it is not set."""
    base = os.environ.get(SITE, "")
    return base if not base or base.endswith("/") else f"{base}/"


def link_of(lab: Lab, place: int | None = None, base: str | None = None) -> str:
    """The link to a world behind `place` events (the cursor's place unless told), on the site at `base`.

    LearnerError for a world that a link can't hold.
    """
    at = lab.history.cursor if place is None else place
    return f"{site() if base is None else base}{PLAY}#{fragment_of(lab, at)}"


def fragment_of(lab: Lab, at: int | None) -> str:
    """What stands behind the # of a link; without `at` that of the world, and not of a moment."""
    from mqlab import scenarios

    if at is not None and at > MOST_EVENTS:
        raise LearnerError(
            f"a link opens at event {MOST_EVENTS:,} at most, and this is {at:,}", "share the line of text instead"
        )
    failure = lab.failure
    if failure is not None:
        if len(lab.actions) != failure.actions:
            raise LearnerError(
                "something was done to this world since its check has failed, which its link can't hold",
                "open it anew: Stepper(verdict.open())",
            )
        parts = {"check": failure.name, "seed": str(failure.seed), "answers": _json(failure.answers())}
        return _whole(lab, parts, at)
    report = report_of(lab)
    if report["source"] is not None:
        raise LearnerError(
            "a link holds no program, and this world comes from a cell's own scenario", "share the line of text instead"
        )
    foreign = next((action[2] for action in report["actions"] if action[2] not in FAULTS), None)
    if foreign is not None:
        raise LearnerError(
            "what programs outside have sent to this world is too much for a link",
            "write serving.report('session.mqlab') and send the file",
        )
    usual = {parameter.name: parameter.default for parameter in scenarios.get(report["scenario"]).parameters}
    parts = {"scenario": report["scenario"], "seed": _seed_text(report["seed"])}
    parts |= {name: _text(value) for name, value in report["parameters"].items() if value != usual.get(name)}
    parts |= {name: _json(report[name]) for name in ("actions", "overrides") if report[name]}
    parts |= {"wire": "bytes"} if report["wire"] == "bytes" else {}
    parts |= {"ties": "choice"} if report["tie_is_choice"] else {}
    return _whole(lab, parts, at)


def _whole(lab: Lab, parts: dict[str, str], at: int | None) -> str:
    if at is not None:
        parts |= {"at": str(at), "v": __version__, "hash": _hash(lab, at)}
    link = urlencode(parts, safe=_SAFE, quote_via=quote)
    if len(link) > LONGEST:
        raise LearnerError(
            f"so much was done to this world that its link would have {len(link):,} letters",
            "share the line of text instead",
        )
    return link


def is_link(text: str) -> bool:
    """Whether a text is a link to a moment, and not the name of a file or a line of text."""
    names = {pair.partition("=")[0] for pair in text.partition("#")[2].split("&")}
    return bool(names & {"scenario", "check"})


def open_link(link: str) -> Opened:
    """The world of a link (all of it, or what stands behind its #), its cursor at the event.

    What the link says of another version, or asks too much, is told in the notes. ProtocolError when it is no link,
    LearnerError when it names something that mqlab does not have.
    """
    from mqlab import scenarios

    said = _parts(link)
    if "check" in said:
        return _open_check(said)
    seed = _seed(said.pop("seed", "0"))
    at = _count("at", said.pop("at", "0"))
    actions, overrides = (_list(name, said.pop(name, "[]")) for name in ("actions", "overrides"))
    strange = next((action[2] for action in actions if action[2] not in FAULTS), None)
    if strange is not None:
        raise LearnerError(f"a link can't do {strange!r} to a world", f"its verbs are: {', '.join(sorted(FAULTS))}")
    wire = _word("wire", said.pop("wire", "objects"), ("objects", "bytes"))
    ties = _word("ties", said.pop("ties", "time"), ("time", "choice"))
    made_by, hashed = said.pop("v", ""), said.pop("hash", "")
    said.pop("controls", None)
    scenario = scenarios.get(said.pop("scenario"))
    _check_sizes(scenario, said)
    notes = _too_far(at)
    at, hashed = min(at, MOST_EVENTS), "" if notes else hashed
    lab = scenario.build(
        seed,
        parameters=said,
        wire=wire,
        tie_is_choice=ties == "choice",
        overrides={(point, k): value for point, k, value in overrides},
        until_slice=MOST_SLICES,
    )
    notes += _play_to(lab, at, actions)
    lab.history.move_to(min(at, len(lab.history)))
    return Opened(lab, notes + _differs(lab, at, made_by, hashed))


def _open_check(said: dict[str, str]) -> Opened:
    """The world of a check that has failed, at its event."""
    from mqlab.check.failure import Failure
    from mqlab.check.registry import find_check

    seed, at = _seed(said.get("seed", "0")), _count("at", said.get("at", "0"))
    answers = _loaded("answers", said.get("answers", "[]"), list)
    if not isinstance(seed, int):
        raise ProtocolError(f"this link is damaged: the seed of a check is a whole number, not {_shown(seed)}")
    if not all(isinstance(each, list) for each in answers):
        raise ProtocolError("this link is damaged: answers must be a list for each function that was judged")
    lab = Failure(find_check(said["check"]), seed, said=answers).open()
    notes = _too_far(at)
    at, hashed = min(at, MOST_EVENTS), "" if notes else said.get("hash", "")
    notes += _play_to(lab, at, [])
    lab.history.move_to(min(at, len(lab.history)))
    return Opened(lab, notes + _differs(lab, at, said.get("v", ""), hashed))


def _too_far(at: int) -> list[str]:
    if at <= MOST_EVENTS:
        return []
    return [f"The link asks for event {at:,}; a link opens at event {MOST_EVENTS:,} at most, and this is it."]


def _check_sizes(scenario: Scenario, said: dict[str, str]) -> None:
    """LearnerError for a number with which a world would be too large for a page."""
    values = scenario.check(said)
    for parameter in scenario.parameters:
        value = values[parameter.name]
        if type(value) is int and value > max(MOST_AT_LEAST, MOST_TIMES * parameter.default):
            raise LearnerError(
                f"{parameter.name}={value:,} is too much for a page",
                f"play it here: mqlab trace {scenario.name} -p {parameter.name}={value}",
            )


def _differs(lab: Lab, at: int, made_by: str, hashed: str) -> list[str]:
    """What the reader must know of another version, and of other events up to this one."""
    notes = []
    if made_by not in ("", __version__):
        notes.append(f"The link was made by mqlab {_shown(made_by)}, and this is {__version__}.")
    if hashed and at <= len(lab.history) and hashed != _hash(lab, at):
        notes.append("What has happened in it up to here is not what it was when the link was made.")
    return notes


def _play_to(lab: Lab, at: int, actions: list[list[Any]]) -> list[str]:
    """Play up to an event and through all actions, or as far as it goes; what there is to say of that."""
    world = lab.world
    try:
        act_again(lab, actions, MOST_SLICES)
        if actions and actions[-1][0] > MOST_SLICES:
            return [f"What the link does to the world behind slice {MOST_SLICES:,} is left out."]
        while len(lab.history) < at and world.slice_no < MOST_SLICES:
            if not world.step():
                return [f"The link asks for event {at:,}, and after {len(lab.history):,} nothing is left to happen."]
    except (MqlabError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        # Arguments of a verb that no person would give.
        return [f"It could not be played to the end of what the link says: {error}"]
    finally:
        world.halt_at_slice = None
    if len(lab.history) < at or world.slice_no >= MOST_SLICES:
        return [f"The world of the link goes on for too long: it is played for {MOST_SLICES:,} slices only."]
    return []


# -- texts ----------------------------------------------------------------------------------------------------------


def _hash(lab: Lab, at: int) -> str:
    digest = TraceDigest()
    for row in lab.history.rows(0, at):
        digest(row)
    return digest.hexdigest()[:HASH_LETTERS]


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def _text(value: object) -> str:
    """A parameter as a command line would give it."""
    return value if isinstance(value, str) else _json(value)


def _seed_text(seed: int | str) -> str:
    """A seed: a text that looks like a number, or like a text in quotation marks, stands in quotation marks."""
    return seed if isinstance(seed, str) and _seed(seed) == seed else _json(seed)


def _seed(value: str) -> int | str:
    number = value.removeprefix("-")
    if number.isascii() and number.isdigit() and len(number) <= LONGEST_SEED:
        return int(value)
    if value[:1] == '"':
        text: str = _loaded("seed", value, str)
        return text
    return value


def _parts(link: str) -> dict[str, str]:
    fragment = link.partition("#")[2] if "#" in link else link
    if len(fragment) > LONGEST:
        raise ProtocolError(f"this link has {len(fragment):,} letters, and the longest that is taken has {LONGEST:,}")
    try:
        pairs = parse_qsl(fragment.strip(), keep_blank_values=True, strict_parsing=True, max_num_fields=100)
    except ValueError as error:
        raise ProtocolError(f"this is no link to a moment of a world: {error}") from None
    said = dict(pairs)
    if len(said) < len(pairs):
        twice = next(name for name, _ in pairs if [other for other, _ in pairs].count(name) > 1)
        raise ProtocolError(f"this is no link to a moment of a world: it says {_shown(twice)} twice")
    if not said.keys() & {"scenario", "check"}:
        raise ProtocolError("this is no link to a moment of a world: it names no scenario and no check")
    return said


def _loaded(name: str, value: str, kind: type) -> Any:
    try:
        loaded = json.loads(value)
    except (ValueError, RecursionError):
        loaded = None
    if not isinstance(loaded, kind):
        raise ProtocolError(f"this link is damaged: {name} is {_shown(value)}")
    return loaded


def _list(name: str, value: str) -> list[Any]:
    loaded: list[Any] = _loaded(name, value, list)
    check_part(name, loaded, "this link is damaged")
    return loaded


def _count(name: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= 18):
        raise ProtocolError(f"this link is damaged: {name} is {_shown(value)}, and must be a whole number from 0 up")
    return int(value)


def _word(name: str, value: str, words: tuple[str, ...]) -> str:
    if value not in words:
        raise ProtocolError(f"this link is damaged: {name} is {_shown(value)}, and must be {' or '.join(words)}")
    return value


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}...")
