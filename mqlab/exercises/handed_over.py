"""What a check may hand to a solution that runs in another process: objects of the classes that are marked here.

The mark belongs to one class. It is no base class and no attribute, so no class gets it from another one: neither one
that is derived from a marked class, nor what stands in the judge's process for an object of a solution.
"""

from __future__ import annotations

from typing import TypeVar
from weakref import WeakKeyDictionary

_Marked = TypeVar("_Marked", bound=type)
_compared: WeakKeyDictionary[type, bool] = WeakKeyDictionary()
"""A marked class -> whether the solution's process asks here how its objects compare."""


def handed_over(kind: _Marked) -> _Marked:
    """Mark a class: a solution may hold its objects, read what is public of them, and call their methods."""
    _compared[kind] = False
    return kind


def handed_over_to_compare(kind: _Marked) -> _Marked:
    """Mark a class whose objects count what is done with them: compared, hashed or reckoned with there, they are asked
    here. They may be read from other objects, too.
    """
    _compared[kind] = True
    return kind


def is_handed_over(value: object) -> bool:
    """Whether a solution may hold it. What the object itself says of its class is not asked."""
    return type(value) in _compared


def is_compared(value: object) -> bool:
    """Whether how it compares is decided here."""
    return _compared.get(type(value), False)
