"""Take the pictures of docs/gallery.md, and write the page: `python -m docs.images.make_gallery [view ...]`.

Each view is shown in JupyterLab, in a world made from a seed, and its own part of the page becomes a small PNG. With
names of views only these are taken anew. It needs a Chromium; CONTRIBUTING.md says where to get one.
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageOps
from playwright.sync_api import Browser, sync_playwright

import mqlab_widgets
from tests.browser.chromium import FLAGS, chromium
from tests.browser.jupyter_lab import JupyterLab
from tests.browser.notebook_page import NotebookPage

HERE = Path(__file__).parent
PICTURES = HERE / "gallery"
PAGE = HERE.parent / "gallery.md"
MOST_BYTES = 150_000
COLOURS = (128, 64, 32)
DARK = {"theme": "JupyterLab Dark"}
BOARD = ".mq-board"
EDGE = 18
"""Paper around a picture, px."""
TAB = '[role="tabpanel"]:not([hidden])'
WHOLE = ".mq-viewer"


class View(NamedTuple):
    """One picture: what is said of it, the cell that shows it, the part of the cell's output that is taken, and what is
    done in the page before: keys that are pressed, the tab that is opened.
    """

    name: str
    title: str
    about: str
    cell: str
    part: str = WHOLE
    width: int = 1200
    height: int = 2_400
    dark: bool = False
    keys: str = ""
    tab: str = ""

    @property
    def snippet(self) -> str:
        """The whole cell, with the imports that it needs."""
        used = [name for name in mqlab_widgets.__all__ if re.search(rf"\b{name}\b", self.cell)]
        return f"from mqlab.scenarios import get\nfrom mqlab_widgets import {', '.join(used)}\n\n{self.cell}"


DEMO = 'lab = get("demo").build(7).run_for(seconds={})\n'
TWO_BROKERS = 'lab = get("two-brokers").build(7).run_for(seconds={})\n'
SENDING = 'lab.run_until_event("RequestSent", request_name="SEND_MESSAGE_V2")\n'
STAGE = '[data-part="stage"]'
VIEWS = (
    View(
        "stepper", "The stepper", "A world on its stage, the way of the newest message, the bar that plays, steps "
        "and breaks, the line of time, and what stands behind it all in tabs.",
        DEMO.format(5) + 'lab.run_until_event("MessageStored")\nStepper(lab)', WHOLE, 1400,
    ),
    View(
        "stepper-dark", "The same in the dark theme", "Colours come from JupyterLab's theme; messages keep theirs.",
        DEMO.format(5) + SENDING + "Stepper(lab, [LightsBoard])", WHOLE, 1400, dark=True,
    ),
    View(
        "stage", "The stage", "Two brokers, one of them killed, and a link that is cut. Each message has one number "
        "and one colour wherever it is; a queue shows how far its group is, and how far the broker knows it.",
        TWO_BROKERS.format(21) + 'lab.partition("producer-1", "namesrv-1")\n'
        'lab.run_until_event("ConsumeStarted")\n' + SENDING + "Stepper(lab)", STAGE,
    ),
    View(
        "queues", "Queues that are not consumed in time", "Filled: not consumed. Framed: consumed, and the broker "
        "does not know it yet, so these come twice if the consumer dies now. What the consumer has fetched stands in "
        "its cache, what its listener works on below.",
        'lab = get("demo-slow-consumer").build(7).run_for(seconds=6)\nStepper(lab)', STAGE,
    ),
    View(
        "retry", "Retries", "What a listener could not handle waits in a queue of delayed messages and comes back "
        "through the retry queue of its group.",
        'lab = get("demo-retry").build(7).run_for(seconds=16)\nStepper(lab)', STAGE,
    ),
    View(
        "trail", "The trail of a message", "A click on a message lights its way; the line below says when it came to "
        "each station.",
        TWO_BROKERS.format(12) + 'message = lab.run_until_event("MessageDispatched")\n'
        'stored = lab.history.last("MessageStored")\nstepper = Stepper(lab)\n'
        'stepper.session.do({"do": "follow", "message": stored.unique_key})\nstepper', WHOLE,
    ),
    View(
        "power-cut", "A power cut", "What was not flushed is gone from the commit log.",
        'lab = get("steady-load").build(7).run_for(seconds=5)\nlab.power_off("broker-a")\nStepper(lab)', STAGE,
    ),
    View(
        "narrow", "On a narrow page", "Below 760 px the machines stand one under the other.",
        DEMO.format(5) + SENDING + "Stepper(lab)", STAGE, 860,
    ),
    View(
        "projector", "Projector mode", "The stage alone, for the last row of the room: the key f.",
        DEMO.format(5) + SENDING + "Stepper(lab)", WHOLE, 1280, 720, keys="f",
    ),
    View(
        "storyboard", "A storyboard", "The main scene of a lab in projector mode, at its first caption. Page Down and "
        "Page Up, as a presenter's remote control sends them, go from caption to caption; space plays on from there.",
        'storyboard("02")', WHOLE, 1280, 720,
    ),
    View(
        "settings", "A panel of settings", "The parameters of a scenario. Change one, and the world is played again "
        "with the same seed: each figure says what it was and what it is now.",
        'Settings("demo-slow-consumer").change(threshold=32)',
        ".jp-OutputArea-output", 1000,
    ),
    View(
        "choices", "What may happen next", "Every delivery and timer that may go next can be let go now, held back or "
        "broken.",
        TWO_BROKERS.format(4) + SENDING + "Stepper(lab)", TAB, 1200, tab="Next",
    ),
    View(
        "worlds", "The tree of worlds", "Each choice made in the past is a world of its own, compared with the others.",
        TWO_BROKERS.format(4) + SENDING + "stepper = Stepper(lab)\n"
        'commands = [{"do": "goto", "place": len(lab.history) - 40}, {"do": "take_back"},\n'
        '            {"do": "crash", "node": "broker-b"}, {"do": "step_slice"}, {"do": "step_slice"}]\n'
        "for command in commands:\n    stepper.session.do(command)\nstepper", TAB, 1200, tab="Worlds",
    ),
    View(
        "broker", "The inspector of a broker", "Its held pulls, its thread pools, a queue with the bytes of a message, "
        "and the fields of all its parts.",
        TWO_BROKERS.format(4) + 'stepper = Stepper(lab)\nstepper.session.do({"do": "choose", "node": "broker-a"})\n'
        "stepper", TAB, 1200, tab="Machine",
    ),
    View(
        "consumer", "The inspector of a consumer", "Its process queues and the three limits of flow control, with the "
        "one that holds the next pull back.",
        'lab = get("held-back-by-count").build(7).run_for(seconds=2)\nstepper = Stepper(lab)\n'
        'stepper.session.do({"do": "choose", "node": "consumer-1"})\nstepper', TAB, 1200, tab="Machine",
    ),
    View(
        "space-time", "Space and time", "The newest events before the cursor: machines as lanes, frames as arrows, a "
        "held pull as a bar. `SpaceTimeDiagram.of_trace(file, start_ms, end_ms)` draws a stretch of a recorded trace.",
        'lab = get("rebalance").build(7).run_for(seconds=3)\n'
        'lab.run_until_event("OffsetCommitted")\nStepper(lab, [SpaceTimeBoard])', BOARD,
    ),
    View(
        "lights", "Invariant lights", "The rules of `mqlab explore`, live. Green holds, a red cross is broken, amber "
        "is what RocketMQ itself does not promise, by name; a ring has nothing to judge.",
        'lab = get("power-cut").build(7)\nstepper = Stepper(lab, [LightsBoard])\nlab.run_for(seconds=3)\nstepper',
        BOARD, 900,
    ),
    View(
        "side-by-side", "Push and Pop side by side", "One world, two groups that get the same orders: on the left "
        "each queue has an owner, on the right whoever is free takes. A member of each hangs. A button for each of "
        "three acts plays it.",
        "from mqlab.scenarios.take_or_own import three_acts\n\nSideBySide(three_acts(7))", WHOLE, 1200,
    ),
    View(
        "ordered-pops", "Ordered pops", "The batch that is out of a queue, the attempt that has it, what is done of "
        "it, and who was turned away meanwhile.",
        'lab = get("pop-ordered").build(7)\nlab.run_until_event("OrderBlocked")\nStepper(lab, [OrderedPopsBoard])',
        BOARD, 900,
    ),
    View(
        "pop-records", "Records of the key-value engine", "A record for each message that is out: in memory alone, on "
        "the disk, or deleted, and why.",
        'lab = get("pop-key-value").build(7).run_for(seconds=8)\nStepper(lab, [PopRecordsBoard])', BOARD, 900,
    ),
    View(
        "charts", "Charts", "Throughput, backlog, messages in flight, lag and hold times against the world's time, "
        "drawn by Bokeh and at most twice a second while the world plays.",
        'lab = get("slow-listener").build(7, parameters={"messages": 500})\n'
        "lab.run_for(seconds=30)\nWorldCharts(lab).live()",
        ".jp-OutputArea-output", 1200,
    ),
    View(
        "owners", "Who owns which queue", "Rebalancing and its locks: a line for each member, a column for each queue; "
        "a queue without an owner is framed in red.",
        'lab = get("push-orderly").build(7, parameters={"queues": 8}).run_for(seconds=8)\n'
        "Stepper(lab, [OwnersBoard])", BOARD, 700,
    ),
    View(
        "flow-control", "Flow control", "What each consumer holds of a queue against its threshold, and which limit "
        "refused the last pull.",
        'lab = get("held-back-by-count").build(7).run_for(seconds=2)\nStepper(lab, [FlowControlBoard])', BOARD, 700,
    ),
    View(
        "held-pulls", "Held pulls", "Pulls that a broker keeps because there is nothing to give yet.",
        'lab = get("held-pulls").build(7).run_for(seconds=30)\nStepper(lab, [HeldPullsBoard])', BOARD, 700,
    ),
    View(
        "offsets", "Offsets", "How far each queue reaches, how far a group is in the consumer's memory, and how far "
        "the broker knows it.",
        TWO_BROKERS.format(4) + 'lab.run_until_event("ConsumeFinished")\nStepper(lab, [OffsetsBoard])', BOARD, 800,
    ),
    View(
        "timer-wheel", "Timer wheel", "The next slots of a broker's timer wheel, how far it is read and written, and "
        "what waits for when.",
        'lab = get("timer-messages").build(7).run_for(seconds=9)\nStepper(lab, [TimerWheelBoard])', BOARD, 800,
    ),
    View(
        "responses", "Response tables", "Requests that wait for their answers, by the process that waits.",
        TWO_BROKERS.format(4) + "Stepper(lab, [ResponsesBoard])", BOARD, 700,
    ),
    View(
        "pop", "Pop", "Two consumers pop from the same queues and own none. A message that is out with one of them is "
        "pale, and its bar runs empty with its time; a red edge has what nobody acknowledged in time.",
        'lab = get("demo-pop").build(7).run_for(seconds=19)\nlab.run_until_event("MessagePopped")\nStepper(lab)',
        STAGE, 1300,
    ),
    View(
        "popped-messages", "Popped messages", "Each message that was handed out, with its deliveries: for how long "
        "others do not see it, when it was acknowledged, put off, or put into the retry topic.",
        'lab = get("demo-pop").build(7).run_for(seconds=30)\nStepper(lab, [PoppedMessagesBoard])', BOARD, 900,
    ),
    View(
        "check-points", "Check points", "What the broker notes of each batch, bit by bit, and where the note is: in "
        "memory, in the revive topic, or done with.",
        'lab = get("demo-pop").build(7, parameters={"merge": True}).run_for(seconds=30)\n'
        "Stepper(lab, [CheckPointsBoard])", BOARD, 900,
    ),
    View(
        "revive-queues", "Revive queues", "What the readers of the revive topic have read, how far each is, and what "
        "the next check point waits for.",
        'lab = get("demo-pop").build(7).run_for(seconds=30)\nStepper(lab, [ReviveQueueBoard])', BOARD, 900,
    ),
    View(
        "revive-ruler", "The reviver's two seconds", "A ruler of two seconds behind each invisible time, and a line "
        "that says how far the reviver has read: what lies left of the line is decided.",
        'lab = get("demo-pop").build(7).run_for(seconds=30)\nStepper(lab, [ReviveRulerBoard])', BOARD, 900,
    ),
    View(
        "merge-buffer", "The merge buffer", "What is known in memory alone, and what a crash at this moment would do: "
        "which messages are popped again, although they are acknowledged.",
        'lab = get("demo-pop").build(7, parameters={"merge": True}).run_for(seconds=26)\n'
        "Stepper(lab, [MergeBufferBoard])", BOARD, 900,
    ),
    View(
        "routes", "Routes", "What the name servers say of a topic, and what each client still believes after a broker "
        "has died.",
        TWO_BROKERS.format(21) + "Stepper(lab, [RoutesBoard])", BOARD, 700,
    ),
)  # fmt: skip


def take(browser: Browser, lab: JupyterLab, view: View) -> None:
    """Show a view in JupyterLab and write its picture."""
    lab.set("@jupyterlab/apputils-extension/themes", DARK if view.dark else {})
    page = browser.new_page(viewport={"width": view.width, "height": view.height}, device_scale_factor=1.5)
    shown = NotebookPage(page, lab)
    shown.load()
    notebook = shown.open(f"{view.name}.ipynb", [view.snippet])
    notebook.run()
    cell = notebook.cell(0)
    if view.keys:
        cell.locator(WHOLE).focus()
        page.keyboard.press(view.keys)
    if view.tab:
        cell.get_by_role("tab", name=view.tab).click()
    part = cell.locator(view.part).first
    part.wait_for()
    if view.name == "charts":
        cell.locator(".bk-Figure").last.wait_for()
    page.wait_for_timeout(700)
    png = part.screenshot()
    assert shown.seen == [], shown.seen
    notebook.close()
    page.close()
    (PICTURES / f"{view.name}.png").write_bytes(small(png, view.name))


def small(png: bytes, name: str) -> bytes:
    """The picture on some paper, with as many colours as fit into 150 kB."""
    bare = Image.open(io.BytesIO(png)).convert("RGB")
    picture = ImageOps.expand(bare, EDGE, bare.getpixel((0, 0)))
    for colours in COLOURS:
        file = io.BytesIO()
        picture.quantize(colours, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(
            file, "PNG", optimize=True
        )
        if file.tell() < MOST_BYTES:
            return file.getvalue()
    raise SystemExit(f"the picture {name} has {file.tell():,} bytes with {colours} colours: show less in it")


def page_text() -> str:
    """docs/gallery.md."""
    parts = [
        "# Gallery\n\nWhat the live views look like, each in a world made from a seed. "
        "`python -m docs.images.make_gallery` writes this page and its pictures.\n"
    ]
    for view in VIEWS:
        cell = view.snippet.replace("\n", "\n    ").replace("    \n", "\n")
        parts.append(
            f"## {view.title}\n\n{view.about}\n\n![{view.title}](images/gallery/{view.name}.png)\n\n    {cell}\n"
        )
    return "\n".join(parts)


def main(names: list[str]) -> None:
    """Take the pictures of these views, or of all."""
    unknown = sorted({*names} - {view.name for view in VIEWS})
    if unknown:
        raise SystemExit(f"no such view: {', '.join(unknown)}; there are {', '.join(view.name for view in VIEWS)}")
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        with JupyterLab(Path(temporary)) as lab:
            for view in VIEWS:
                if not names or view.name in names:
                    take(browser, lab, view)
        browser.close()
    PAGE.write_text(page_text(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
