"""Reports and replays: a small file that brings back the exact world at the exact slice."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab import __version__
from mqlab.errors import LearnerError, MqlabError, ProtocolError, SimulationError
from mqlab.fast import running
from mqlab.sim.faults import FAULTS
from mqlab.sim.outside import OUTSIDE, to_report

if TYPE_CHECKING:
    from mqlab.lab import Lab
    from mqlab.sim import World

FORMAT = 1


def _is_action(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 4
        and all(_is_count(number) for number in value[:2])
        and isinstance(value[2], str)
        and (value[2] in FAULTS or value[2] in OUTSIDE)
        and isinstance(value[3], dict)
    )


def _is_override(value: object) -> bool:
    return isinstance(value, list) and len(value) == 3 and isinstance(value[0], str) and all(map(_is_count, value[1:]))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _all(one: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list) and all(map(one, value))


_PARTS: dict[str, tuple[Callable[[object], bool], str]] = {
    "scenario": (_is_text, "a text"),
    "parameters": (lambda value: isinstance(value, dict), "an object"),
    "source": (lambda value: value is None or _is_text(value), "a text or null"),
    "seed": (lambda value: type(value) in (int, str), "a whole number or a text"),
    "wire": (lambda value: value in ("objects", "bytes"), '"objects" or "bytes"'),
    "actions": (_all(_is_action), "a list of [slice, time in us, a verb of mqlab, {arguments}]"),
    "overrides": (_all(_is_override), "a list of [point, k, value]"),
    "slice": (_is_count, "a whole number from 0 up"),
    "now_us": (_is_count, "a whole number from 0 up"),
    "trace_hash": (_is_text, "a text"),
    "mqlab": (_is_text, "a text"),
}
"""The parts that a report must have, what each must be, and in words."""


SLICES_PER_PIECE = 10_000
"""Between two of these whoever wants to know is told how far it is."""

Told = Callable[[int], None]


class Origin(NamedTuple):
    """The scenario that made a world, with its parameters, and its source text if it came from a cell."""

    scenario: str
    parameters: dict[str, Any]
    source: str | None


class ReplayResult(NamedTuple):
    """What a replay came to: the lab, both hashes, both versions."""

    lab: Lab
    expected_hash: str
    hash: str
    made_by: str

    @property
    def agrees(self) -> bool:
        """Did the same things happen again?"""
        return self.hash == self.expected_hash

    def __str__(self) -> str:
        if self.agrees:
            return f"the trace hash agrees: {self.hash}"
        differ = self.made_by != __version__
        hint = f"this is {__version__}" if differ else "as this is; is it also the same state of the code?"
        said = f"The report was made by mqlab {self.made_by}, {hint}"
        return f"the trace hash DIFFERS: expected {self.expected_hash}, got {self.hash}. {said}{'.' if differ else ''}"


def write_report(lab: Lab, path: str | PurePath) -> None:
    """Write the report of a scenario's world to a file. LearnerError if the world cannot be played again from one."""
    Path(path).write_text(json.dumps(report_of(lab), indent=1, sort_keys=True) + "\n", encoding="utf-8")


def report_of(lab: Lab) -> dict[str, Any]:
    """The report as JSON-able data: everything the world is a function of, and the hash that proves it."""
    origin = lab.replayable_origin()
    overrides = lab.first_overrides | lab.world.choices.deviations
    return {
        "format": FORMAT,
        "mqlab": __version__,
        "running": running(),
        "scenario": origin.scenario,
        "parameters": origin.parameters,
        "source": origin.source,
        "seed": lab.seed,
        "wire": lab.wire,
        "tie_is_choice": lab.world.tie_is_choice,
        "actions": [[*action[:3], to_report(action[3])] for action in lab.actions],
        "overrides": [[point, k, value] for (point, k), value in sorted(overrides.items())],
        "slice": lab.world.slice_no,
        "now_us": lab.world.now_us,
        "events": len(lab.history),
        "trace_hash": lab.trace_hash(),
    }


def read_report(path: str) -> dict[str, Any]:
    """Read a report; ProtocolError with the reason if the file is not one."""
    try:
        report = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LearnerError(f"there is no file {path!r}", "write one with lab.report('bug.mqlab')") from None
    except OSError as error:
        raise LearnerError(f"{path!r} cannot be read: {error.strerror}", "give the path of a report's file") from None
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"{path} is not a report of mqlab: {error}") from None
    if not isinstance(report, dict) or report.get("format") != FORMAT:
        raise ProtocolError(f"{path} is not a report of mqlab in format {FORMAT}")
    check_report(report, path)
    return report


def check_report(report: dict[str, Any], name: str = "this") -> None:
    """ProtocolError unless a report has all its parts, and each is what it must be."""
    missing = sorted(_PARTS.keys() - report.keys())
    if missing:
        raise ProtocolError(f"{name} is not a complete report of mqlab: it has no {', '.join(missing)}")
    for part in _PARTS:
        check_part(part, report[part], f"{name} is no report that can be played")
    if not isinstance(report.get("tie_is_choice", False), bool):
        raise ProtocolError(f"{name} is no report that can be played: tie_is_choice must be true or false")


def check_part(part: str, value: object, words: str) -> None:
    """ProtocolError, beginning with these words, unless one part of a report is what it must be."""
    fits, wanted = _PARTS[part]
    if not fits(value):
        if part in ("actions", "overrides") and isinstance(value, list):
            # Of a long list the first entry that does not fit says more than all of it.
            value = next(entry for entry in value if not fits([entry]))
        raise ProtocolError(f"{words}: {part} must be {wanted}, not {value!r}")


def replay(report: dict[str, Any], *, allow_source: bool = False, told: Told | None = None) -> ReplayResult:
    """Play a report's world again, up to its slice, with its actions at their times.

    A report of a `%%scenario` cell carries the cell's source, which is run only with `allow_source=True`. `told`
    is called now and then with how many slices have been played.
    """
    lab = replay_to(report, report["slice"], report["now_us"], allow_source=allow_source, told=told)
    return ReplayResult(lab, report["trace_hash"], lab.trace_hash(), report["mqlab"])


def replay_to(
    report: dict[str, Any],
    slice_no: int,
    now_us: int | None = None,
    *,
    allow_source: bool = False,
    told: Told | None = None,
) -> Lab:
    """A new world, played from the start up to and including slice `slice_no` of the report's world."""
    from mqlab import scenarios

    check_report(report)
    if report["source"] is not None:
        if not allow_source:
            raise LearnerError(
                "this report carries a scenario's own source code, which would be run",
                "read it first (key 'source' of the file), then use --allow-source",
            )
        scenarios.add_from_source(report["scenario"], report["source"], report["parameters"])
    lab = scenarios.get(report["scenario"]).build(
        report["seed"],
        parameters=report["parameters"],
        wire=report["wire"],
        tie_is_choice=report.get("tie_is_choice", False),
        overrides={(point, k): value for point, k, value in report["overrides"]},
        until_slice=slice_no,
    )
    act_again(lab, report["actions"], slice_no, now_us, told=told)
    _play_on(lab.world, slice_no, now_us, told)
    if now_us is not None:
        lab.world.move_clock(now_us)
    lab.world.halt_at_slice = None
    return lab


def act_again(
    lab: Lab, actions: list[list[Any]], slice_no: int, now_us: int | None = None, *, told: Told | None = None
) -> None:
    """Do what was done to a world, each action ([slice, us, verb, arguments]) at its slice and time, up to a slice."""
    for at_slice, at_us, verb, arguments in actions:
        if at_slice > slice_no:
            break
        _play_on(lab.world, at_slice, now_us, told)
        lab.world.move_clock(at_us)
        lab.check_action(verb, arguments)
        # What the world refused then, it refuses again; an error in a process that was ended was told then.
        with suppress(LearnerError, SimulationError):
            lab.act(verb, **arguments)


def _play_on(world: World, slice_no: int, until_us: int | None, told: Told | None) -> None:
    """Play up to a slice, through dead tasks and processes that refuse to start: whoever played the world then was
    told of them, and went on.

    The report's world had come there by `until_us`; a damaged report could let one that never rests play for ever.
    Without that, as for a world whose choices come out differently, it takes the time that it takes.
    """
    while world.slice_no < slice_no:
        before = world.slice_no
        try:
            if told is None:
                world.run_to_slice(slice_no, until_us)
            else:
                told(world.slice_no)
                world.run_to_slice(min(slice_no, world.slice_no + SLICES_PER_PIECE), until_us)
        except MqlabError:
            if world.slice_no == before:
                raise
