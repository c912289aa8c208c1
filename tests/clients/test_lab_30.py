"""Lab 30 with the real client: what was recorded is what it does, and the lab's own application loses nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from mqlab.errors import LearnerError
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
    came = [call.name for call in calls(lab)][: len(was)]
    # A second after the start two threads of the client, each with a clock of its own, call at the same time.
    assert came[:3] == was[:3]
    assert sorted(came) == sorted(was)


ENDS_AT_ONCE = "async def work(*_):\n    return 1 / 0\n"
NAMES_ITS_ARGUMENTS = """
async def work(consumer, *_):
    await consumer.receive(max_message_num=1, invisible_duration=15)
"""
Application = Callable[[str], RealClient]


@pytest.fixture
def application(tmp_path: Path) -> Iterator[Application]:
    """Starts an application with the real client."""
    with shop(7).serve() as serving, ExitStack() as started:
        yield lambda work: started.enter_context(RealClient("application", serving, work=work, directory=str(tmp_path)))


def test_an_application_names_the_arguments_of_a_call(application: Application) -> None:
    assert application(NAMES_ITS_ARGUMENTS).until("the application is over").lines[-2] == "receive is done"


def test_a_program_that_has_ended_is_not_waited_for(application: Application) -> None:
    with pytest.raises(LearnerError, match="the client has ended and did not say 'never'") as told:
        application(ENDS_AT_ONCE).until("never", 300)
    assert "ZeroDivisionError" in str(told.value)


def test_a_program_that_lives_on_is_waited_for_so_long(application: Application) -> None:
    with pytest.raises(LearnerError, match=r"the client did not say 'never' in 0\.2 s"):
        application(NAMES_ITS_ARGUMENTS).until("the producer has started").until("never", 0.2)


def test_all_that_a_killed_program_has_said_is_kept(application: Application) -> None:
    client = application(ENDS_AT_ONCE)
    client.until("the producer has started")
    while not client.is_over:
        client.for_seconds(0)
    client.kill()
    assert client.lines[-1] == "ZeroDivisionError: division by zero"


def test_the_application_of_the_solution_loses_nothing_for_real(work: str) -> None:
    table = play_source(work, 7)
    assert [row[0] for row in table.rows if not row[1]] == []


def test_an_application_that_ends_at_an_error_loses_orders_for_real(work: str) -> None:
    table = play_source(work.replace("except Exception:", "except MemoryError:"), 7)
    assert [row[0] for row in table.rows if not row[1]]
