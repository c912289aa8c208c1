"""A view of a world whose cell was run again says that it shows an older one."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from mqlab_widgets.stepper import Stepper

WORLD = "from mqlab.scenarios import get\nlab = get('steady-load').build(7)"


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    """A notebook's shell, of this test alone."""
    shell = InteractiveShell.instance()
    yield shell
    InteractiveShell.clear_instance()


def run(shell: InteractiveShell, cell: str) -> Any:
    result = shell.run_cell(cell)
    result.raise_error()
    return result.result


def test_a_view_says_that_its_world_is_an_older_one(shell: InteractiveShell) -> None:
    run(shell, f"{WORLD}\nfrom mqlab_widgets.stepper import Stepper\nold = Stepper(lab)")
    run(shell, "other = Stepper(get('demo').build(1))")
    old, other = shell.user_ns["old"], shell.user_ns["other"]
    for view in (old, other):
        view._handle_custom_msg({"do": "shown"}, [])
    run(shell, "lab.run_for(ms=10)")
    assert old.session.older == ""
    assert "older world" not in old.frame["bar"]
    run(shell, f"{WORLD}\nnew = Stepper(lab)")
    assert old.session.older == "lab"
    assert "older world" in old.frame["bar"]
    assert old.frame["said"].startswith("This view shows an older world: lab is another one")
    assert "Run the cell of this view again" in old.frame["said"]
    for view in (other, shell.user_ns["new"]):
        assert view.session.older == ""
    # What it says goes, and the mark stays.
    old._handle_custom_msg({"do": "step_event"}, [])
    assert "older world: lab" not in old.frame["said"]
    assert "older world" in old.frame["bar"]


def test_a_world_that_has_another_name_still_is_no_older_one(shell: InteractiveShell) -> None:
    run(shell, f"{WORLD}\nfrom mqlab_widgets.stepper import Stepper\nkept = lab\nold = Stepper(lab)")
    run(shell, WORLD)
    assert shell.user_ns["old"].session.older == ""
    run(shell, "del kept")
    assert shell.user_ns["old"].session.older == "lab"


def test_a_name_for_something_else_makes_no_older_world(shell: InteractiveShell) -> None:
    run(shell, f"{WORLD}\nfrom mqlab_widgets.stepper import Stepper\nold = Stepper(lab)")
    run(shell, "lab = 7")
    assert shell.user_ns["old"].session.older == ""


def test_a_view_is_not_kept_alive(shell: InteractiveShell) -> None:
    run(shell, f"{WORLD}\nfrom mqlab_widgets.stepper import Stepper\nold = Stepper(lab)")
    gone = weakref.ref(shell.user_ns["old"].session)
    shell.user_ns.pop("old").close()
    gc.collect()
    assert gone() is None
    run(shell, WORLD)


def test_outside_of_a_notebook_there_is_nothing_to_tell() -> None:
    from mqlab.scenarios import get

    lab = get("steady-load").build(7)
    assert Stepper(lab).session.older == ""
