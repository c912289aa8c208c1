"""A world that is served, in a notebook: what a program outside does is seen while no cell runs."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.serving.conftest import Program

from .conftest import STEADY
from .jupyter_lab import JupyterLab
from .notebook_page import PATIENCE_MS, NotebookPage

SERVE = """serving = lab.serve()
serving.name_server"""
SEND = """import subprocess, sys
program = '''
import socket, sys
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import SendMessageRequestHeader
header = SendMessageRequestHeader("outside", "FromOutside", "TBW102", 4, 0, 0, 0, 0)
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
    for _ in range(int(sys.argv[2])):
        connection.sendall(RemotingCommand.request(RequestCode.SEND_MESSAGE, header, b"from outside").encode())
        connection.recv(1 << 16)
'''
_ = subprocess.Popen([sys.executable, "-c", program, str(serving.ports["broker-a"]), str(MESSAGES)])"""
WATCH_SECONDS = 8
# In how many places each message was painted on its way, in so many seconds, and what was said meanwhile.
PAINTED = """async ([root, seconds]) => {
    const places = new Map(), said = new Set();
    const until = performance.now() + seconds * 1000;
    while (performance.now() < until) {
        await new Promise(requestAnimationFrame);
        said.add(root.querySelector('[data-part="said"]').textContent);
        for (const one of root.querySelectorAll('.mq-air > [data-act="move"]')) {
            if (!places.has(one.dataset.key)) places.set(one.dataset.key, new Set());
            places.get(one.dataset.key).add(one.getAttribute("transform"));
        }
    }
    return { places: [...places].map(([key, painted]) => [key, painted.size]), said: [...said] };
}"""


def test_what_a_program_outside_sends_is_seen(notebooks: NotebookPage) -> None:
    quiet = STEADY.replace('get("steady-load").build(7).run_for(seconds=4)', 'get("served").build(7)')
    send = SEND.replace("MESSAGES", "1")
    notebook = notebooks.open("served.ipynb", [quiet, "Stepper(lab)", SERVE, send, "serving.close()"])
    for cell in range(3):
        notebook.run_cell(cell)
    viewer = notebook.viewer(1)
    notebook.run_cell(3)
    viewer.until(lambda: "FromOutside" in viewer.twin())
    length = viewer.length
    viewer.until(lambda: viewer.length > length)
    notebook.run_cell(4)
    notebook.close()


def test_it_is_told_at_story_pace_somewhat_behind_and_now_is_one_click(notebooks: NotebookPage) -> None:
    quiet = STEADY.replace('get("steady-load").build(7).run_for(seconds=4)', 'get("served").build(7)')
    send = SEND.replace("MESSAGES", "40")
    notebook = notebooks.open("story.ipynb", [quiet, SERVE, "Stepper(lab)", send, "serving.close()"])
    for cell in range(3):
        notebook.run_cell(cell)
    viewer = notebook.viewer(2)
    behind = viewer.part("bar").locator('[data-key="behind"]')
    expect(behind).to_have_text("live")
    viewer.play()
    notebook.run_cell(3)
    viewer.until(lambda: "programs outside" in viewer.text("stage"))
    painted = viewer.root.evaluate(f"root => ({PAINTED})([root, {WATCH_SECONDS}])")
    moved = [key for key, places in painted["places"] if places >= 3]
    # Each of some messages is seen to come, to go into the log and from there into its queue.
    assert len(moved) >= 6
    assert "a program outside sends broker-a a message" in painted["said"]
    assert any("is in queue" in words for words in painted["said"])
    expect(behind).to_contain_text("s behind")
    shown = viewer.part("stage").locator('[data-node="broker-a"]')
    expect(shown).not_to_contain_text("40 messages")
    viewer.button("Now").click()
    expect(shown).to_contain_text("40 messages")
    expect(behind).to_have_text("live")
    notebook.run_cell(4)
    notebook.close()


@contextmanager
def watching(directory: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """`mqlab serve --watch` with these options; both its outputs in one, where lines of Jupyter's log stand, too."""
    home = JupyterLab(directory)
    command = [sys.executable, "-m", "mqlab", "serve", "--watch", "--no-browser", f"--jupyter=--port={home.port}"]
    with subprocess.Popen(
        [*command, "--jupyter=--IdentityProvider.token=", "--jupyter=--log-level=ERROR", *options],
        env=home.environment(), cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(30)
            finally:
                process.kill()


def line_with(process: subprocess.Popen[str], words: str) -> str:
    """The next line that has these words."""
    assert process.stdout is not None
    return next(line for line in process.stdout if words in line)


def test_the_command_opens_the_stage_beside_it(browser: Browser, tmp_path: Path) -> None:
    with watching(tmp_path, "--port", "0") as process:
        told = json.loads(line_with(process, "name_server"))
        address = line_with(process, "the stage is at").split()[-1]
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(address)
        broker, empty = page.locator('.mq-card[data-node="broker-a"]').first, "no queue has a message yet"
        expect(broker).to_contain_text(empty, timeout=2 * PATIENCE_MS)
        program = Program(told["processes"]["broker-a"])
        assert program.send(b"seen").code == 0
        expect(broker).not_to_contain_text(empty, timeout=2 * PATIENCE_MS)
        program.close()
        page.close()


def test_a_stage_without_a_served_world_says_so(tmp_path: Path) -> None:
    old = tmp_path / "ready"
    old.write_text("what an earlier one has left")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with watching(tmp_path, "--port", port, "--ready-file", str(old)) as process:
            assert "the notebook says why: http" in line_with(process, "is not served")
    assert not old.exists()
