"""What a newcomer tries in the first hour: forgotten awaits, wrong arguments, faults with typing errors, reports."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlab import Lab, Message
from mqlab.commands.cli import main
from mqlab.errors import LearnerError, ProtocolError
from mqlab.ipython import scenario_cell
from mqlab.replay import read_report, replay
from mqlab.scenarios import get
from tests.worlds import shop, started_consumer, started_producer


@pytest.fixture
def lab() -> Lab:
    """A running broker with one topic, a producer and a consumer."""
    lab = shop(topic="TopicTest")
    started_producer(lab, "orders", node="producer-1")
    started_consumer(lab, topic="TopicTest", node="consumer-1")
    lab.run_for(seconds=2)
    return lab


async def _played(lab: Lab, **options: Any) -> None:
    await lab.play(**options)


WRONG: dict[str, Callable[[Lab], Any]] = {
    "not a number from 0 up": lambda lab: lab.run_for(-1),
    "seconds='3' is not a number": lambda lab: lab.run_for(seconds="3"),  # type: ignore[arg-type]
    "ms=nan is not a number": lambda lab: lab.run_for(float("nan")),
    "needs a function, not True": lambda lab: lab.run_until(True),  # type: ignore[arg-type]
    "seconds=-1 is not a number": lambda lab: asyncio.run(_played(lab, seconds=-1)),
    "speed='x' is not a number": lambda lab: asyncio.run(_played(lab, speed="x")),
    "slices=0 is not a whole number": lambda lab: lab.step(0),
    "5 is not an event kind": lambda lab: lab.add_breakpoint(5),  # type: ignore[arg-type]
    "7 is not an event kind": lambda lab: lab.history.last(7),  # type: ignore[arg-type]
    "3 is not an event\n": lambda lab: lab.history.chain(3),  # type: ignore[arg-type]
    "None is not an event\n": lambda lab: lab.source_of(None),  # type: ignore[arg-type]
    "'readers' is not a push consumer": lambda lab: lab.process_queues("readers"),  # type: ignore[arg-type]
    "start_ms='now' is not a number": lambda lab: lab.space_time("now"),  # type: ignore[arg-type]
    "its arguments are: nodes, kinds": lambda lab: lab.space_time(0, 9, lanes=["broker-a"]),
    "there is no frame 'x'": lambda lab: lab.under_way().frame("x"),  # type: ignore[arg-type]
    "crash needs node": lambda lab: lab.act("crash", name="broker-a"),
    "freeze takes no for_ms": lambda lab: lab.act("freeze", node="broker-a", for_ms=3),
    "is not the name of a node": lambda lab: lab.crash(["broker-a"]),  # type: ignore[arg-type]
    "there is no node 'broker-b'": lambda lab: lab.partition("broker-a", ["producer-1", "broker-b"]),
    "ms=-5 cannot be": lambda lab: lab.act("delay", source="broker-a", target="producer-1", ms=-5),
    "a fault schedule is a text": lambda lab: lab.faults(None),  # type: ignore[arg-type]
    "there is no broker 'broker-b'": lambda lab: lab.create_topic("T", brokers=["broker-a", "broker-b"]),
    "is not the name of a file": lambda lab: lab.report(None),  # type: ignore[arg-type]
    "the tag of a message is one text": lambda lab: Message("T", b"x", tags=5),  # type: ignore[arg-type]
    "the keys of a message are texts, not 5": lambda lab: Message("T", b"x", keys=5),  # type: ignore[arg-type]
    "the keys of a message are texts, not 6": lambda lab: Message("T", b"x", keys=["a", 6]),  # type: ignore[list-item]
}


@pytest.mark.parametrize("text", WRONG)
def test_what_cannot_be_gets_an_error_that_says_what_to_do(lab: Lab, text: str) -> None:
    before = len(lab.history)
    with pytest.raises(LearnerError) as caught:
        WRONG[text](lab)
    assert text in str(caught.value)
    assert caught.value.hint
    assert lab.actions == []
    assert len(lab.history) == before


def test_a_fault_that_may_be_below_zero() -> None:
    lab = Lab(seed=7)
    lab.name_server("namesrv-1")
    lab.act("drift", node="namesrv-1", ppm=-200, jump_ms=-5)
    assert lab.history.last("ClockDrifted") is not None


def test_the_answer_of_a_call_that_was_not_awaited(lab: Lab) -> None:
    producer = started_producer(lab, "more", node="producer-1")
    result: Any = producer.send(Message("TopicTest", b"x"))
    with pytest.raises(LearnerError, match=r"has no 'queue_offset'\n.*write 'await producer.send\(...\)' first"):
        result.queue_offset  # noqa: B018  the access is what is tested
    assert not hasattr(result, "send_status")
    assert lab.run(result).queue_offset == 0


def test_wrong_arguments_of_a_call_are_told_when_it_is_awaited(lab: Lab) -> None:
    producer: Any = lab.producer("more", node="producer-1")
    lab.run(producer.start())
    with pytest.raises(LearnerError, match=r"unexpected keyword argument 'timeout_ms'(.|\n)*timeout"):
        lab.run(producer.send(Message("TopicTest", b"x"), timeout_ms=100))
    with pytest.raises(LearnerError, match="missing 1 required positional argument: 'message'"):
        lab.run(producer.send())


def test_a_running_consumer_keeps_its_listener(lab: Lab) -> None:
    consumer = started_consumer(lab, group="more", topic="TopicTest", node="consumer-1")
    with pytest.raises(LearnerError, match="keeps the listener with which it was started"):
        consumer.register_message_listener(lambda messages, context: None)


def test_a_fault_that_the_world_refused_does_not_spoil_the_replay(tmp_path: Path) -> None:
    lab = get("first-message").build(seed=7).run_for(seconds=4)
    with pytest.raises(LearnerError):
        lab.crash("broker-z")
    lab.crash("broker-a")
    with pytest.raises(LearnerError, match="down already"):
        lab.crash("broker-a")
    lab.run_for(seconds=1)
    lab.restart("broker-a")
    lab.run_for(seconds=5)
    path = tmp_path / "bug.mqlab"
    lab.report(path)
    assert replay(read_report(str(path))).agrees


def test_a_report_with_a_part_missing(tmp_path: Path) -> None:
    path = tmp_path / "bug.mqlab"
    path.write_text(json.dumps({"format": 1, "seed": 7}))
    with pytest.raises(ProtocolError, match="has no actions, mqlab"):
        read_report(str(path))


def test_a_parameter_of_a_scenario_in_the_wrong_place() -> None:
    with pytest.raises(LearnerError, match=r"parameters=\{'queues': 3\}"):
        get("first-message").build(seed=7, queues=3)


@pytest.mark.parametrize(
    ("line", "cell", "text"),
    [
        ("mine seconds=long", "pass", "seconds='long' is not a number"),
        ("mine 'open", "pass", "close each quote"),
        ("mine", "from mqlab import *\n", "every name of mqlab is there already"),
        ("mine", "lab.step()\ndef f(:\n", "line 2 of scenario 'mine' is not Python"),
    ],
)
def test_a_scenario_cell_that_cannot_be_read(line: str, cell: str, text: str) -> None:
    with pytest.raises(LearnerError) as caught:
        scenario_cell(line, cell)
    assert text in str(caught.value)


def test_a_trace_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("no directory")
    assert main(["trace", "first-message", "--out", str(tmp_path / "file" / "trace.jsonl")]) == 2
    assert f"{tmp_path / 'file'}: " in capsys.readouterr().err


def test_a_producer_is_started_anew_with_its_process(lab: Lab) -> None:
    producer = started_producer(lab, "more", node="producer-1")
    lab.crash("producer-1")
    lab.run_for(seconds=1)
    lab.restart("producer-1")
    lab.run_for(seconds=1)
    assert lab.run(producer.send(Message("TopicTest", b"x"))).queue_offset == 0


def test_a_traceback_shows_the_lines_of_a_scenario_cell() -> None:
    scenario_cell("halves", "lab.name_server()\nhalf = 1 / 0\n")
    with pytest.raises(ZeroDivisionError) as caught:
        get("halves").build(seed=7)
    assert "half = 1 / 0" in str(caught.traceback[-1].statement)


def test_the_place_of_an_error_is_the_cell_in_which_it_happened() -> None:
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    shell: Any = InteractiveShell()  # type: ignore[no-untyped-call]
    shell.run_line_magic("load_ext", "mqlab")
    shell.run_cell("from mqlab import Lab\n\ndef build():\n    Lab(wire='x')\n")
    with capture_output() as here:
        shell.run_cell("1\nLab(wire='x')")
    with capture_output() as earlier:
        shell.run_cell("build()")
    shell.run_cell_magic("scenario", "unbuilt", "lab.producer('g')\n")
    with capture_output() as scenario:
        shell.run_cell("import mqlab\nmqlab.scenarios.get('unbuilt').build(seed=7)")
    assert here.stderr.startswith("LearnerError (in this cell, line 2): wire='x'")
    assert earlier.stderr.startswith("LearnerError (in an earlier cell, line 4): wire='x'")
    assert scenario.stderr.startswith("LearnerError (in the cell of scenario unbuilt, line 2): a client needs")
