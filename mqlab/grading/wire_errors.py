"""Errors as they go over the pipe: the names of their classes, what they hold, and where they came from."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

from mqlab.check.patience import CodeIsGone
from mqlab.grading.values import Encoded, Values, WireError

if TYPE_CHECKING:
    from mqlab.grading.gate import Gate

_MODULES = re.compile(r"(builtins|mqlab|pyspark\.errors)\.")


class PeerLost(CodeIsGone):
    """The other process is gone, or says what nobody asked."""


def described(error: BaseException, values: Values, gate: Gate) -> list[Encoded]:
    """The error as it is sent."""
    kinds = [f"{kind.__module__}:{kind.__qualname__}" for kind in type(error).__mro__[:-2]]
    try:
        content = values.encode((error.args, dict(vars(error))))
    except WireError:
        content = values.encode(((str(error),), {}))
    return [kinds, content, gate.told(error)]


def raised(told_of: Any, values: Values) -> Exception:
    """The error that was sent, of the same class where there is one here. PeerLost if it is none."""
    try:
        kinds, content, told = told_of
        arguments, attributes = values.decode(content)
        kind = next((found for found in map(_exception_class, kinds) if found is not None), Exception)
        name = str(kinds[0]).rpartition(":")[2].rpartition(".")[2]
        if name != kind.__name__:
            kind = type(name, (kind,), {"__module__": "answer"})
        # Python's own keep some of what they say beside their arguments.
        error = kind(*arguments) if kind.__module__ == "builtins" else kind.__new__(kind)
        error.args = arguments
        vars(error).update(attributes, students_frames=str(told))
    except Exception:  # noqa: BLE001  whatever it is, it is no error of a solution
        raise PeerLost("the other process sent an error that is none") from None
    return error


def _exception_class(name: Any) -> type[Exception] | None:
    """The class of that name, of Python's own or of mqlab's."""
    module, _, qualname = str(name).partition(":")
    found = getattr(sys.modules.get(module), qualname, None) if _MODULES.match(f"{module}.") else None
    return found if isinstance(found, type) and issubclass(found, Exception) else None
