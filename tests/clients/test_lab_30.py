"""Lab 30 with the real client: what was recorded is what it does, and the lab's own application loses nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlab.exercises.client_sessions import calls, recorded
from mqlab.exercises.for_real import RealClient, play_source, shop
from mqlab.labs.build import read_lab

SOURCE = Path(__file__).parents[2] / "labs" / "sources" / "30_real_clients.py"


@pytest.fixture
def work() -> str:
    """The application of the lab's solution, as its cell has it."""
    (cell,) = (cell for cell in read_lab(SOURCE).tagged("exercise") if "async def work" in cell.source)
    return cell.source


def test_the_first_calls_are_those_that_were_recorded() -> None:
    lab = shop(7)
    with lab.serve() as serving, RealClient("send", serving) as client:
        client.until("sent order 0").for_seconds(2)
    was = [call.name for call in calls(recorded("python-begins")) if call.at_s < 2]
    assert [call.name for call in calls(lab)][: len(was)] == was


def test_the_application_of_the_solution_loses_nothing_for_real(work: str) -> None:
    table = play_source(work, 7)
    assert [row[0] for row in table.rows if not row[1]] == []


def test_an_application_that_ends_at_an_error_loses_orders_for_real(work: str) -> None:
    table = play_source(work.replace("except Exception:", "except MemoryError:"), 7)
    assert [row[0] for row in table.rows if not row[1]]
