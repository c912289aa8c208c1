"""In IPython: top-level await plays the world, `%%scenario` makes scenarios, errors are sentences, views show."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from mqlab import scenarios


@pytest.fixture(scope="module")
def shell() -> Iterator[InteractiveShell]:
    shell = InteractiveShell()
    assert shell.run_cell("%load_ext mqlab\nfrom mqlab import Lab, Message, ConsumeConcurrentlyStatus").success
    yield shell
    shell.run_cell("%reset -f")
    InteractiveShell.clear_instance()


def run(shell: InteractiveShell, cell: str) -> Any:
    """Run a cell as a kernel does: with a loop that is already running."""

    async def main() -> Any:
        return await shell.run_cell_async(cell, transformed_cell=shell.transform_cell(cell))

    return asyncio.run(main())


SETUP = """
lab = Lab(seed=7)
lab.name_server()
lab.broker("broker-a")
lab.create_topic("TopicTest", 1)
producer = lab.producer("orders")
await producer.start()
result = await producer.send(Message("TopicTest", b"hello", tags="TagA"))
result.queue_offset
"""


def test_a_cell_awaits_calls_while_a_loop_runs_and_can_be_run_again(shell: InteractiveShell) -> None:
    for _ in range(2):
        outcome = run(shell, SETUP)
        assert outcome.success, outcome.error_in_exec
        assert outcome.result == 0


def test_asyncio_still_works_in_a_cell_beside_the_world(shell: InteractiveShell) -> None:
    outcome = run(shell, "import asyncio\nawait asyncio.sleep(0)\n" + SETUP)
    assert outcome.success, outcome.error_in_exec


def test_a_forgotten_await_shows_as_text(shell: InteractiveShell) -> None:
    run(shell, SETUP)
    with pytest.warns(UserWarning, match="was never awaited"):
        outcome = run(shell, "repr(producer.send(Message('TopicTest', b'x')))")
    assert outcome.result.startswith("not awaited: producer.send(...)")


def test_a_scenario_cell_registers_a_scenario_with_its_parameters(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    body = SETUP.replace("lab = Lab(seed=7)\n", "") + "assert words == 2\n"
    cell = f"%%scenario two-hellos seconds=3 words=2\n{body}"
    assert run(shell, cell).success
    assert "scenario 'two-hellos' is registered" in capsys.readouterr().out
    lab = scenarios.get("two-hellos").play(7)
    assert lab.queue("TopicTest").max_offset == 1


def test_an_error_of_mqlab_is_a_sentence_and_not_a_traceback(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    run(shell, "lab = Lab()\nlab.producer('orders')")
    shown = capsys.readouterr()
    assert "a client needs a name server" in shown.err
    assert "Traceback" not in shown.err + shown.out
    run(shell, "%%scenario\nx = 1")
    assert "needs a name" in capsys.readouterr().err


def test_objects_of_rocketmq_show_themselves_as_html_with_a_text_twin(shell: InteractiveShell) -> None:
    run(shell, SETUP)
    run(
        shell,
        "from mqlab.protocol import RemotingCommand, decode_record\n"
        "lab.run_for(ms=2)\n"
        "command = RemotingCommand.request(105)\n"
        "message = decode_record(lab.queue('TopicTest').record_bytes(0))\n"
        "route = lab.name_servers[0].controller.route_info_manager.pick_up_topic_route_data('TopicTest')\n",
    )
    for name, word in (("command", "totalLength"), ("message", "queue_offset"), ("route", "broker-a")):
        data, _ = shell.display_formatter.format(shell.user_ns[name])
        assert word in data["text/html"], name
        assert word in data["text/plain"], name
