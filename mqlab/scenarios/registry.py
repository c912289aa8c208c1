"""The registry of scenarios: named, parametrised worlds, used by the command line, tests, benchmarks, labs and data
sets.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Coroutine, Mapping
from textwrap import dedent
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args, get_origin

from mqlab.errors import LearnerError
from mqlab.lab import Lab
from mqlab.replay import Origin
from mqlab.sim.faults import FAULTS

ScenarioFunction = Callable[..., Coroutine[Any, Any, None]]


class Parameter(NamedTuple):
    """One parameter of a scenario: its name, its type ("int", "bool", "str") and the value it has unless told; `words`
    are all that it takes, if these are few: then its annotation is a `Literal`.
    """

    name: str
    type: str
    default: Any
    words: tuple[str, ...] = ()


class Caption(NamedTuple):
    """One sentence of a scenario's story: at the `nth` event of a kind, say `words` and point to a machine."""

    kind: str
    nth: int
    words: str
    points_to: str


def story(text: str) -> tuple[Caption, ...]:
    """The captions in a text: a line `KIND NTH MACHINE: words` for each; what is indented deeper goes on with it."""
    lines = dedent(text).strip().replace("\n  ", " ").splitlines()
    heads = [line.partition(": ") for line in lines]
    return tuple(
        Caption(kind, int(nth), " ".join(words.split()), machine)
        for head, _, words in heads
        for kind, nth, machine in [head.split()]
    )


NOTHING: Mapping[str, Any] = MappingProxyType({})


class Scenario(NamedTuple):
    """A world and its load under a name.

    `function(lab, **parameters)` is an async function, written as the cells of a notebook would be; `seconds` is how
    long the world plays after it, unless told otherwise. `source` is its text when it comes from a `%%scenario` cell.
    `faults` are the kinds of faults that its tasks can bear, which `mqlab explore` draws from a seed (docs/checks.md);
    it plays the scenario with the parameters in `explored_with`, since a load must end before all of it can be judged.
    `captions` tell its story, in order. `goals` are those that it is there for (docs/checks.md): exploration says
    loudly which of them it has not reached.
    """

    name: str
    function: ScenarioFunction
    seconds: float
    source: str | None = None
    faults: tuple[str, ...] = ()
    captions: tuple[Caption, ...] = ()
    explored_with: Mapping[str, Any] = NOTHING
    goals: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """The first line of the function's docstring."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    @property
    def parameters(self) -> list[Parameter]:
        """The keyword parameters, in order."""
        signature = inspect.signature(self.function)
        return [
            Parameter(p.name, type(p.default).__name__, p.default, _words(p.annotation, self.function))
            for p in signature.parameters.values()
            if p.kind is inspect.Parameter.KEYWORD_ONLY
        ]

    def check(self, given: dict[str, Any]) -> dict[str, Any]:
        """The parameters with defaults filled in; texts from a command line become the parameter's type."""
        known = {p.name: p for p in self.parameters}
        for name in given:
            if name not in known:
                raise LearnerError(
                    f"scenario {self.name!r} has no parameter {name!r}", f"it has: {', '.join(known) or 'none'}"
                )
        return {p.name: _convert(p, given[p.name]) if p.name in given else p.default for p in self.parameters}

    def build(self, seed: int | str = 0, *, until_slice: int | None = None, **options: Any) -> Lab:
        """A new lab with this scenario's world, at the point where its function returned.

        `parameters` (a dict) sets the scenario's parameters, `overrides` and `policy` its choices; `wire`, `history`
        and `tie_is_choice` go to the Lab. With `until_slice` the world stops for good after that slice.
        """
        parameters = self.check(options.pop("parameters", None) or {})
        for option, value in options.items():
            if option not in _LAB_OPTIONS:
                raise LearnerError(
                    f"a scenario is not built with {option}=...",
                    f"its own parameters go into one: build(seed=7, parameters={{{option!r}: {value!r}}})",
                )
        lab = Lab(seed, **options)
        lab.origin = Origin(self.name, parameters, self.source)
        lab.world.halt_at_slice = until_slice
        lab.finish_building(self.function(lab, **parameters))
        return lab

    def play(self, seed: int | str = 0, *, seconds: float | None = None, **options: Any) -> Lab:
        """Build the world and let it play for `seconds` (the scenario's own time unless told)."""
        lab = self.build(seed, **options)
        return lab.run_for(seconds=self.seconds if seconds is None else seconds)


_LAB_OPTIONS = ("wire", "history", "overrides", "policy", "tie_is_choice")

_SCENARIOS: dict[str, Scenario] = {}


WITHOUT_POWER_CUTS = tuple(
    verb for verb, kind in FAULTS.items() if kind.drawn_for and not kind.only_named and verb != "power_off"
)
"""What a scenario bears whose tasks expect that any call may fail."""

MACHINES = frozenset((
    "auditors", "brokers", "consumers", "members", "name_servers", "poppers", "producers", "proxies", "readers",
    "workers",
))  # fmt: skip
"""Parameters that count processes."""
NEVER_NONE = frozenset(("brokers", "consumers", "members", "name_servers", "producers", "queues"))
"""Parameters of which a scenario needs one at least."""
MOST_OF_A_KIND = 1_000
MOST = 1_000_000_000

ANY_FAULT = (*WITHOUT_POWER_CUTS, "power_off")
"""The same for one whose brokers may also lose power."""


def scenario(
    name: str,
    *,
    seconds: float,
    faults: tuple[str, ...] = (),
    captions: tuple[Caption, ...] = (),
    explored_with: Mapping[str, Any] = NOTHING,
    goals: tuple[str, ...] = (),
) -> Callable[[ScenarioFunction], ScenarioFunction]:
    """Register an async function `f(lab, *, parameter=default, ...)` as a scenario that plays for `seconds`."""

    def register(function: ScenarioFunction) -> ScenarioFunction:
        add(Scenario(name, function, seconds, None, faults, captions, explored_with, goals))
        return function

    return register


def add(new: Scenario) -> None:
    """Put a scenario into the registry; one of the same name is replaced (a cell may be run again)."""
    if not inspect.iscoroutinefunction(new.function):
        raise LearnerError(f"scenario {new.name!r} must be an async function", "write: async def name(lab, *, ...):")
    _SCENARIOS[new.name] = new


def find(name: str) -> Scenario | None:
    """The scenario of that name, or None."""
    return _SCENARIOS.get(name)


def get(name: str) -> Scenario:
    """The scenario of that name; LearnerError with the names that come near."""
    found = find(name)
    if found is None:
        from difflib import get_close_matches

        close = get_close_matches(str(name), _SCENARIOS, 3)
        hint = f"did you mean {' or '.join(close)}?" if close else "list them: mqlab scenarios"
        raise LearnerError(f"there is no scenario {name!r}", hint)
    return found


def names() -> list[str]:
    """The names of all scenarios, sorted."""
    return sorted(_SCENARIOS)


def _words(annotation: Any, function: ScenarioFunction) -> tuple[str, ...]:
    """The words of a `Literal`, which with `from __future__ import annotations` is a text; of other types none."""
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, function.__globals__)  # noqa: S307  # the scenario's own source
        except NameError:
            return ()
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def _in_range(parameter: Parameter, value: Any) -> Any:
    """The value, if a world can be made with it; LearnerError for a number that none can."""
    if type(value) is not int:
        return value
    least = min(parameter.default, 1 if parameter.name in NEVER_NONE else 0)
    most = MOST_OF_A_KIND if parameter.name in MACHINES else MOST
    if not least <= value <= most:
        raise LearnerError(
            f"{parameter.name}={value!r} is not possible",
            f"give a whole number from {least} to {most:,}, like {parameter.default}",
        )
    return value


def _convert(parameter: Parameter, value: Any) -> Any:
    wanted = type(parameter.default)
    if parameter.words and value not in parameter.words:
        raise LearnerError(
            f"{parameter.name}={value!r} is none of the words that it takes",
            f"choose among {', '.join(parameter.words)}",
        )
    if isinstance(value, wanted):
        return _in_range(parameter, value)
    try:
        if wanted is bool and isinstance(value, str):
            return {"true": True, "false": False}[value.lower()]
        if isinstance(value, str) and wanted in (list, dict):
            return json.loads(value)
        return _in_range(parameter, wanted(value))
    except (KeyError, ValueError, TypeError):
        raise LearnerError(
            f"{parameter.name}={value!r} is not a {parameter.type}",
            f"give a {parameter.type}, like {parameter.default!r}",
        ) from None
