"""What the live view costs and how fast it answers: in JupyterLab in a Chromium where that is needed.

`python -m benchmarks.viewer memory` measures the memory of one kernel's worth of play, in a process of its own.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

from benchmarks.harness import ROUNDS, Figure, figure, seconds_of
from benchmarks.scale import resident_bytes
from mqlab import Lab, Message
from mqlab.client import DefaultMQProducer
from mqlab.scenarios import get
from mqlab.scenarios.flow_control import taking
from mqlab_widgets.boards.board import Board
from mqlab_widgets.boards.flow_control import FlowControlBoard
from mqlab_widgets.boards.held_pulls import HeldPullsBoard
from mqlab_widgets.boards.lights import LightsBoard
from mqlab_widgets.boards.offsets import OffsetsBoard
from mqlab_widgets.boards.owners import OwnersBoard
from mqlab_widgets.boards.responses import ResponsesBoard
from mqlab_widgets.boards.routes import RoutesBoard
from mqlab_widgets.boards.space_time import SpaceTimeBoard
from mqlab_widgets.session import Session
from mqlab_widgets.stepper import Stepper

if TYPE_CHECKING:
    from tests.browser.notebook_page import NotebookPage

TOPIC = "TopicCrowd"
BROKERS, PRODUCERS, CONSUMERS = 3, 5, 5
MESSAGES = 5_000
CLICKS = 100
WATCH_SECONDS = 6
PLAY_SECONDS, FRAME_MS = 600, 250
REWOUND = 100_000
RUN_SECONDS = 20
STORY_SECONDS = 60
QUEUES = 10_000
BOARDS = [
    *(FlowControlBoard, HeldPullsBoard, LightsBoard, OffsetsBoard),
    *(OwnersBoard, ResponsesBoard, RoutesBoard, SpaceTimeBoard),
]

_inside_send = DefaultMQProducer.send.inside  # type: ignore[attr-defined]  # see public_call

# Clicks a button; gives the ms until the page has changed, until it has painted that, and until the panels below the
# stage have followed. Changed means: the command is heard, the stage stands at the new place (what is at rest is drawn,
# what moves has begun to), and so do the bar, its clock and the live line. How long a message then takes from one
# place to the next is the story's time, as slow as it shall be, and does not count.
CLICK_TO_PAINT = """async ([cell, clicks]) => {
    const view = cell.querySelector(".mq-viewer");
    const panel = view.querySelector('[data-part="step"]');
    const clock = view.querySelector('[data-key="clock"]');
    const button = [...cell.querySelectorAll("button")].find(one => one.dataset.do === "step_event");
    const painted = () => new Promise(done => requestAnimationFrame(() => {
        const channel = new MessageChannel();
        channel.port1.onmessage = done;
        channel.port2.postMessage(0);
    }));
    const until = (element, how, isSo) => new Promise(done => {
        const watch = new MutationObserver(() => { if (isSo()) { watch.disconnect(); done(performance.now()); } });
        watch.observe(element, how);
    });
    const changed = ({ place, taken }) => until(view, { attributes: true }, () =>
        view.dataset.place !== place && view.dataset.taken !== taken && clock.textContent === view.dataset.clock);
    const times = [];
    for (let click = 0; click < clicks; click++) {
        const began = performance.now();
        const answer = changed({ ...view.dataset });
        const followed = until(panel, { subtree: true, childList: true, characterData: true }, () => true);
        button.click();
        const heard = await answer;
        await painted();
        const shown = performance.now();
        times.push([heard, shown, await followed].map((at) => at - began));
        await new Promise(done => setTimeout(done, 60 + click % 17));
    }
    return times;
}"""
# Counts the pictures that the browser paints in a second.
PAINTED = """async seconds => {
    let frames = 0;
    const began = performance.now();
    while (performance.now() - began < seconds * 1000) {
        await new Promise(requestAnimationFrame);
        frames++;
    }
    return frames / (performance.now() - began) * 1000;
}"""
CROWD = [
    "from benchmarks import viewer\nfrom mqlab_widgets.stepper import Stepper\n"
    "lab = viewer.crowd()\nlab.run_for(seconds=5)",
    "stepper = Stepper(lab)\nstepper",
]
DEMO = [
    "from mqlab.scenarios import get\nfrom mqlab_widgets.stepper import Stepper",
    'stepper = Stepper(get("demo").build(7).run_for(seconds=4))\nstepper',
]


def crowd(messages: int = MESSAGES, every_ms: int = 100) -> Lab:
    """Three brokers, five producers that go on sending, five slow consumers, and a backlog that they hold."""
    lab = Lab(seed=1)
    lab.name_server()
    for letter in "abc"[:BROKERS]:
        lab.broker(f"broker-{letter}")
    lab.create_topic(TOPIC, 4)
    producers = [lab.producer("orders") for _ in range(PRODUCERS)]
    for producer in producers:
        lab.run(producer.start())

    async def send(producer: DefaultMQProducer, count: int, pause_ms: int) -> None:
        for _ in range(count):
            await _inside_send(producer, Message(TOPIC, b"x" * 100))
            if pause_ms:
                await producer.node.sleep(pause_ms)

    first = producers[0].node.spawn(send(producers[0], messages, 0), "backlog")
    lab.world.wait_for(first.join(), limit_ms=10**9)
    for _ in range(CONSUMERS):
        consumer = lab.consumer("readers", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
        consumer.subscribe(TOPIC, "*")
        consumer.register_message_listener(taking(40_000))
        lab.run(consumer.start())
    for producer in producers:
        producer.node.spawn(send(producer, 10**6, every_ms), "load")
    return lab


# -- in a browser ------------------------------------------------------------------------------------------------------


@cache
def _seen_in_a_browser() -> dict[str, Any]:
    """What was measured in JupyterLab; nothing, with a line that says so, where there is no Chromium."""
    from tests.browser.chromium import FLAGS, MISSING, chromium

    found = chromium()
    if found is None:
        print(f"viewer: {MISSING}")
        return {}
    from playwright.sync_api import sync_playwright

    from tests.browser.jupyter_lab import JupyterLab
    from tests.browser.notebook_page import NotebookPage

    with (
        tempfile.TemporaryDirectory() as directory,
        JupyterLab(Path(directory)) as lab,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        page = NotebookPage(browser.new_page(viewport={"width": 1500, "height": 1200}), lab)
        page.load()
        measured = _measure_in(page)
        browser.close()
    return measured


def _measure_in(page: NotebookPage) -> dict[str, Any]:
    notebook = page.open("crowd.ipynb", CROWD)
    notebook.run()
    viewer = notebook.viewer(1)
    cell = viewer.cell.element_handle()
    viewer.button("One event back").click()
    viewer.until(lambda: viewer.place == viewer.length - 1)
    page.page.evaluate(CLICK_TO_PAINT, [cell, 5])
    clicks = page.page.evaluate(CLICK_TO_PAINT, [cell, CLICKS])
    notebook.close()
    notebook = page.open("demo.ipynb", DEMO)
    notebook.run()
    viewer = notebook.viewer(1)
    empty = page.page.evaluate(PAINTED, WATCH_SECONDS)
    viewer.play()
    played = page.page.evaluate(PAINTED, WATCH_SECONDS)
    viewer.pause()
    return {"clicks": clicks, "empty": empty, "played": played}


def clicks() -> list[Figure]:
    """A click on "one event on", through server and kernel and back: until the page has changed, and has painted it."""
    seen = _seen_in_a_browser().get("clicks")
    if seen is None:
        return []
    changed, painted, followed = zip(*seen, strict=True)
    return [
        figure("viewer: click to changed page, median", median(changed), "ms", aim=25, better="lower"),
        figure("viewer: click to paint, median", median(painted), "ms", aim=35, better="lower"),
        figure("viewer: click to paint, p95", quantiles(painted, n=20)[-1], "ms", aim=50, better="lower"),
        figure("viewer: click to panels below, median", median(followed), "ms", aim=100, better="lower"),
    ]


def frames() -> list[Figure]:
    """Pictures that the browser paints in a second while a world plays at story pace, beside those of an empty loop."""
    seen = _seen_in_a_browser()
    if not seen:
        return []
    name = "viewer: painted at story pace / empty"
    return [figure(name, seen["played"], "frames/s", versus=seen["empty"], aim=0.8, better="higher")]


# -- in the kernel's process alone -------------------------------------------------------------------------------------


def _shown(lab: Lab, boards: Sequence[type[Board]] = ()) -> Stepper:
    """A stepper that draws as it does when a page shows it."""
    stepper = Stepper(lab, boards)
    stepper._handle_custom_msg({"do": "shown"}, [])
    return stepper


async def _cell(lab: Lab) -> float:
    """Seconds that a cell takes, as in a notebook: in a loop, which draws the rest when the cell has ended."""
    return seconds_of(lambda: lab.run_for(seconds=RUN_SECONDS))


def _rate(viewed: bool) -> float:
    """A crowd played by a cell; the events it has per second of CPU time."""
    lab = crowd()
    lab.run_for(seconds=5)
    stepper = _shown(lab) if viewed else None
    before = len(lab.history)
    seconds = asyncio.run(_cell(lab))
    assert stepper is None or stepper._pump.sent > 1
    return (len(lab.history) - before) / seconds


def speed() -> Figure:
    """How fast a cell plays a world, with its viewer open beside none, in turns."""
    rates = [(_rate(True), _rate(False)) for _ in range(ROUNDS)]
    opened, closed = (median(rate) for rate in zip(*rates, strict=True))
    return figure("viewer: play, open / closed", opened, "events/s", versus=closed, aim=0.85, better="higher")


class _Time:
    """A clock of a screen that need not be waited for."""

    now = 0.0

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


def story() -> Figure:
    """The kernel's part while lab 00's first view is played at story pace for a minute of the screen."""
    stepper = _shown(get("steady-load").build(7).run_for(seconds=2))
    player, time = stepper.session.player, _Time()
    player.clock, player.sleep = lambda: time.now, time.sleep

    async def watch() -> None:
        stepper.session.do({"do": "play"})
        while time.now < STORY_SECONDS:
            await asyncio.sleep(0)
        stepper.session.do({"do": "play"})

    percent = 100 * seconds_of(lambda: asyncio.run(watch())) / STORY_SECONDS
    return figure("viewer: kernel at story pace", percent, "% of a core", aim=15, better="lower")


def many_queues() -> Figure:
    """A step in a world of 10,000 queues with all boards open: the slowest of ten."""
    lab = Lab(seed=1)
    lab.name_server()
    lab.broker()
    topics = [f"Topic{number}" for number in range(QUEUES // 1_000)]
    for topic in topics:
        lab.create_topic(topic, 1_000)
    producer, consumer = lab.producer("orders"), lab.consumer("readers")
    for topic in topics:
        consumer.subscribe(topic, "*")
    consumer.register_message_listener(taking(1_000))
    lab.run(producer.start())
    lab.run(consumer.start())
    lab.run_for(seconds=30)
    for topic in topics:
        lab.run(producer.send(Message(topic, b"x")))
    stepper = _shown(lab, BOARDS)
    stepper._command({"do": "tab", "name": "boards"})
    slowest = max(seconds_of(lambda: stepper._command({"do": "step_event"})) for _ in range(10))
    return figure("viewer: step, 10,000 queues, all boards", slowest * 1_000, "ms", aim=300, better="lower")


def measure_memory() -> dict[str, float]:
    """Ten minutes of a world's time, a frame for each quarter of a second; the memory half way and at the end."""
    lab = crowd(every_ms=200)
    stepper = _shown(lab)
    memory = []
    for _ in range(2):
        for _ in range(PLAY_SECONDS * 1_000 // FRAME_MS // 2):
            lab.run_for(ms=FRAME_MS)
            stepper._changed()
        memory.append(resident_bytes())
    return {"half": memory[0] / 2**20, "end": memory[1] / 2**20}


def memory() -> Figure:
    """The memory of a kernel after ten minutes of play (played faster, with four frames a second) beside five."""
    command = [sys.executable, "-m", "benchmarks.viewer", "memory"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    measured = json.loads(done.stdout)
    name = "viewer: memory after 10 min / 5 min of play"
    return figure(name, measured["end"], "MiB", versus=measured["half"], aim=1.1, better="lower")


def rewind() -> Figure:
    """From the newest of 100,000 events to the first, back again, and to the middle: the slowest of the three."""
    lab = crowd()
    while len(lab.history) < REWOUND:
        lab.run_for(seconds=1)
    stepper = _shown(lab)
    session: Session = stepper.session

    def jump(**command: Any) -> float:
        return seconds_of(lambda: session.do(command))

    slowest = max(jump(do="start"), jump(do="now"), jump(do="goto", place=REWOUND // 2 + 999))
    return figure("viewer: rewind 100,000 events", slowest, "s", aim=1, better="lower")


if __name__ == "__main__":
    print(json.dumps(measure_memory()))
