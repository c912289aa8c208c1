"""Older worlds: a cell that is run again makes another world under its name, and views of the first still show that."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakMethod, ref

from mqlab import Lab

if TYPE_CHECKING:
    from mqlab_widgets.session import Session

_shells: WeakKeyDictionary[Any, list[Named]] = WeakKeyDictionary()
"""Shell of a notebook -> the worlds that are shown in it, with their names."""


class Named:
    """The names that a notebook's cells had for a world when a view of it was made."""

    def __init__(self, session: Session, names: list[str], told: Callable[[str], None]) -> None:
        self._lab = ref(session.lab)
        self._names = names
        self._told = WeakMethod(told)

    def look(self, cells: dict[str, Any]) -> bool:
        """Tell if a name has gone to another world and none is left; False when there is no more to look for."""
        lab, told = self._lab(), self._told()
        if lab is None or told is None:
            return False
        now = {name: cells.get(name) for name in self._names}
        if any(value is lab for value in now.values()):
            return True
        name = next((name for name, value in now.items() if isinstance(value, Lab)), "")
        if name:
            told(name)
        return not name


def tell_when_older(session: Session, told: Callable[[str], None]) -> None:
    """Call `told` with the name once a cell has made another world under the name of this one; outside of a notebook
    never. `told` is a method, whose object is not kept alive.
    """
    shell = _shell()
    if shell is None:
        return
    names = [name for name, value in shell.user_ns.items() if value is session.lab and not name.startswith("_")]
    if not names:
        return
    if shell not in _shells:
        _shells[shell] = []
        shell.events.register("post_run_cell", lambda *_: _look(shell))
    _shells[shell].append(Named(session, names, told))


def _look(shell: Any) -> None:
    _shells[shell][:] = [named for named in _shells[shell] if named.look(shell.user_ns)]


def _shell() -> Any:
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()
