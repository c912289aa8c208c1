"""Checks of what a cell gives to a lab: each raises a LearnerError that says what to write instead."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

from mqlab.errors import LearnerError

MOST_DAYS = 1_000
"""A world of one broker that has nothing to do is played through so many days in some ten minutes."""


def span_us(ms: float, seconds: float = 0) -> int:
    """Microseconds of a stretch of time given as ms and seconds; LearnerError unless both are numbers from 0 up, and
    small enough to be played to their end.
    """
    for name, value in (("ms", ms), ("seconds", seconds)):
        check_number(name, value, "write lab.run_for(ms=500) or lab.run_for(seconds=3)")
    days = (ms / 1_000 + seconds) / 86_400
    if days > MOST_DAYS:
        raise LearnerError(f"{days:,.0f} days are more than can be played", f"give at most {MOST_DAYS:,} days at once")
    return round((ms + seconds * 1_000) * 1_000)


def check_limit(limit_ms: object) -> None:
    """LearnerError unless `limit_ms` is a whole number from 0 up; it may be more than anybody will wait for."""
    hint = "write limit_ms=60_000 for a minute of the world's time"
    check_whole("limit_ms", limit_ms, hint)
    check_number("limit_ms", limit_ms, hint)


def check_number(name: str, value: object, hint: str, *, least: float | None = 0) -> None:
    """LearnerError with this hint unless `value` is a finite number, and not below `least`."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    if not is_number or (least is not None and value < least):  # type: ignore[operator]  # it is a number here
        up = "" if least is None else f" from {least} up"
        raise LearnerError(f"{name}={value!r} is not a number{up}", hint)


def check_count(name: str, value: object, hint: str) -> None:
    """LearnerError with this hint unless `value` is a whole number, at least 1."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise LearnerError(f"{name}={value!r} is not a whole number from 1 up", hint)


def check_whole(name: str, value: object, hint: str) -> None:
    """LearnerError with this hint unless `value` is a whole number, of whatever sign."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise LearnerError(f"{name}={value!r} is not a whole number", hint)


def check_seed(seed: object) -> None:
    """LearnerError unless `seed` is a whole number or a text, as a report can hold it."""
    hint = "write Lab(seed=7) or Lab(seed='monday')"
    if not isinstance(seed, int | str) or isinstance(seed, bool):
        raise LearnerError(f"seed={seed!r} is neither a whole number nor a text", hint)
    if isinstance(seed, str) and not seed.isascii():
        try:
            seed.encode()
        except UnicodeEncodeError:
            raise LearnerError(f"seed={seed!r} is no text that can be written: it has half a character", hint) from None


def check_least(settings: Any, least: int, *names: str) -> None:
    """LearnerError when one of these settings is less than it may be."""
    for name in names:
        value = getattr(settings, name)
        if isinstance(value, int) and value < least:
            raise LearnerError(f"{name}={value} is too little", f"give {least} or more")


def check_settings(config_class: type[Any], settings: Mapping[str, Any]) -> None:
    """LearnerError if a setting has another type than the dataclass `config_class` says by its default.

    Only yes or no, whole numbers, numbers and texts are looked at; what has no default, or one of another kind, is left
    to its owner.
    """
    for field in dataclasses.fields(config_class):
        if field.name in settings:
            _check_setting(field, settings[field.name])


def _check_setting(field: dataclasses.Field[Any], value: object) -> None:
    default, name = field.default, field.name
    kind: type = type(default)
    if default is None:
        annotation = str(field.type)
        kind = str if annotation == "str | None" else int if annotation == "int | None" else object
        if value is None:
            return
    if kind is bool and not isinstance(value, bool):
        raise LearnerError(f"{name}={value!r} is neither True nor False", f"write {name}=True or {name}=False")
    if kind is int:
        number = value.strip() if isinstance(value, str) and value.strip().lstrip("-").isdigit() else default or 1
        check_whole(name, value, f"write {name}={number}")
    elif kind is float:
        check_number(name, value, f"write {name}={default}", least=None)
    elif kind is str and not isinstance(value, str):
        raise LearnerError(f"{name}={value!r} is not a text", f"write it in quotes: {name}={str(value)!r}")


def check_condition(condition: object) -> None:
    """LearnerError unless `condition` is a function that can be asked again and again."""
    if not callable(condition):
        raise LearnerError(
            f"lab.run_until needs a function, not {condition!r}", "write lab.run_until(lambda: len(got) == 3)"
        )


def check_keywords(what: str, function: Callable[..., Any], given: Mapping[str, Any], first: int) -> None:
    """LearnerError unless `function` takes these keywords beside its `first` leading arguments."""
    signature = inspect.signature(function)
    try:
        signature.bind(*[None] * first, **given)
    except TypeError as error:
        known = ", ".join(list(signature.parameters)[first:])
        raise LearnerError(f"{what}: {error}", f"its arguments are: {known}") from None


def check_takes(what: str, function: Callable[..., Any], *names: str) -> None:
    """LearnerError unless `function` can be called with so many arguments; `names` is what they mean."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # some functions that are written in C say nothing of their arguments
    try:
        signature.bind(*names)
    except TypeError:
        name = getattr(function, "__name__", type(function).__name__)
        arguments = ", ".join(names)
        raise LearnerError(
            f"{what} is called with ({arguments}), but {name} takes ({', '.join(signature.parameters)})",
            f"write def {name}({arguments}):" if name.isidentifier() else f"write lambda {arguments}: ...",
        ) from None


def named_values(given: list[str]) -> dict[str, str]:
    """The values of texts like "messages=10", by name; LearnerError for a text that is not like that."""
    pairs = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise LearnerError(f"{text!r} is not NAME=VALUE", "write for example: -p messages=10")
        pairs[name] = value
    return pairs


def seed_of(text: str) -> int | str:
    """A seed from the command line: a whole number, or any text."""
    try:
        return int(text)
    except ValueError:
        return text
