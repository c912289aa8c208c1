"""A notebook in JupyterLab in a browser, and the viewer in one of its outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from playwright.sync_api import Locator, Page, expect

from .jupyter_lab import JupyterLab

PATIENCE_MS = 60_000
"""How long a condition may take to come true: long, for a loaded machine; nobody waits longer than it takes."""
expect.set_options(timeout=PATIENCE_MS)

OPEN = """async path => {
    const panel = await jupyterapp.commands.execute("docmanager:open", { path });
    await panel.revealed;
    await panel.context.ready;
    await panel.sessionContext.ready;
    await panel.sessionContext.session.kernel.info;
    jupyterapp.shell.activateById(panel.id);
    return panel.id;
}"""
COMMAND = """async ([id, command]) => {
    jupyterapp.shell.activateById(id);
    return await jupyterapp.commands.execute(command);
}"""
EXECUTE = """async ([id, code]) => {
    const panel = [...jupyterapp.shell.widgets("main")].find(widget => widget.id === id);
    const reply = await panel.sessionContext.session.kernel.requestExecute({ code }).done;
    return reply.content.status;
}"""
RUN_CELL = """async ([id, index]) => {
    const panel = [...jupyterapp.shell.widgets("main")].find(widget => widget.id === id);
    panel.content.activeCellIndex = index;
    panel.content.deselectAll();
    return await jupyterapp.commands.execute("notebook:run-cell");
}"""
PREPARE = """() => jupyterapp.restored.then(() => { jupyterapp.shell.collapseLeft(); })"""
MOST_ABORTED = 50
OF_JUPYTER = (
    # The debugger, of a notebook that is closed before the kernel has told it about itself.
    "Could not restore the debugger state: Canceled future",
    # A kernel that is ended while it writes mixes the parts of two messages.
    "Kernel message validation error: ",
    # Once in some hundred notebooks that are opened; which of its parts it is, is not known.
    "Failed to execute 'removeChild' on 'Node': The node to be removed is not a child of this node.",
)
"""How errors begin that JupyterLab itself raises now and then."""


def is_of_jupyter(error: str, stack: str) -> bool:
    """Whether it is one of these, and no line of the stack is in a module that a widget has loaded."""
    return error.startswith(OF_JUPYTER) and "blob:" not in stack and "data:" not in stack


class NotebookPage:
    """JupyterLab in a page. `seen` collects what must not be there: console errors and requests that leave us."""

    def __init__(self, page: Page, lab: JupyterLab) -> None:
        self.page = page
        self.lab = lab
        self.seen: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda line: self._said(line.text) if line.type == "error" else None)
        page.on("pageerror", lambda error: self._raised(str(error), error.stack or ""))
        page.on("request", lambda request: self._requested(request.url))

    def _said(self, error: str) -> None:
        if not is_of_jupyter(error, stack=""):
            self.seen.append(f"console: {error}")

    def _raised(self, error: str, stack: str) -> None:
        if not is_of_jupyter(error, stack):
            self.seen.append(f"page error: {error}\n{stack}")

    def _requested(self, url: str) -> None:
        if not url.startswith((self.lab.address, "data:", "blob:", "about:")):
            self.seen.append(f"a request left this machine: {url}")

    def load(self) -> None:
        """Load JupyterLab anew, with nothing open."""
        self.page.goto(f"{self.lab.address}/lab?reset")
        self.page.wait_for_function("() => window.jupyterapp")
        self.page.evaluate(PREPARE)

    def open(self, name: str, cells: Sequence[str] = ()) -> Notebook:
        """Open a notebook: one that is there, or one made of these cells."""
        if cells:
            self.lab.write(name, cells)
        return Notebook(self.page, self.page.evaluate(OPEN, name))


class Notebook:
    """An open notebook with a kernel."""

    def __init__(self, page: Page, panel: str) -> None:
        self.page = page
        self.panel = panel
        self.root = page.locator(f'[id="{panel}"]')

    def cell(self, index: int) -> Locator:
        """One of its cells, counted from 0."""
        return self.root.locator(".jp-Notebook .jp-Cell").nth(index)

    def command(self, name: str) -> Any:
        """Carry out one of JupyterLab's commands on this notebook."""
        return self.page.evaluate(COMMAND, [self.panel, name])

    def run(self) -> None:
        """Run all cells, to their end."""
        assert self.command("notebook:run-all-cells"), self.errors()
        assert not self.errors()

    def run_cell(self, index: int) -> None:
        """Run one cell, to its end."""
        assert self.page.evaluate(RUN_CELL, [self.panel, index]), self.errors()

    def begin_cell(self, index: int) -> None:
        """Let one cell begin, and do not wait for its end."""
        self.page.evaluate(f"arguments => {{ ({RUN_CELL})(arguments); }}", [self.panel, index])

    def execute(self, code: str) -> None:
        """Run code in its kernel without a cell.

        After a cell that raised an error a kernel aborts what comes in the next moment: that was not run, and is asked
        for again.
        """
        status = "aborted"
        for _ in range(MOST_ABORTED):
            status = self.page.evaluate(EXECUTE, [self.panel, code])
            if status != "aborted":
                break
        assert status == "ok", code

    def send(self, code: str) -> None:
        """Run code in its kernel without a cell, and do not wait for its end."""
        self.page.evaluate(f"arguments => {{ ({EXECUTE})(arguments).catch(() => undefined); }}", [self.panel, code])

    def restart(self) -> None:
        """Start its kernel anew."""
        self.page.evaluate(
            """async id => {
                const panel = [...jupyterapp.shell.widgets("main")].find(widget => widget.id === id);
                await panel.sessionContext.session.kernel.restart();
                await panel.sessionContext.session.kernel.info;
            }""",
            self.panel,
        )

    def errors(self) -> list[str]:
        """The tracebacks in its outputs."""
        return self.root.locator('[data-mime-type="application/vnd.jupyter.stderr"]').all_inner_texts()

    def viewer(self, index: int) -> ViewerPage:
        """The viewer in the output of a cell, once it shows something."""
        return ViewerPage(self.page, self.cell(index))

    def close(self) -> None:
        """Close it, unsaved, and end its kernel."""
        self.page.evaluate(
            """async id => {
                const panel = [...jupyterapp.shell.widgets("main")].find(widget => widget.id === id);
                await panel.sessionContext.shutdown();
                panel.context.model.dirty = false;
                panel.close();
            }""",
            self.panel,
        )


class ViewerPage:
    """A viewer with its controls, as a person finds them: by role and name."""

    def __init__(self, page: Page, cell: Locator) -> None:
        self.page = page
        self.cell = cell
        self.root = cell.locator(".mq-viewer")
        self.root.locator('[data-part="stage"] svg').wait_for()

    def attribute(self, name: str) -> str:
        """One of its data attributes: place, length, world, playing, past, beats, flown, story, kernel."""
        return self.root.get_attribute(f"data-{name}") or ""

    @property
    def id(self) -> str:
        """The name of the view in its page."""
        return self.root.get_attribute("id") or ""

    @property
    def place(self) -> int:
        """How many events lie behind the cursor."""
        return int(self.attribute("place"))

    @property
    def length(self) -> int:
        """How many events the world has had."""
        return int(self.attribute("length"))

    @property
    def taken(self) -> int:
        """How many commands the kernel has taken."""
        return int(self.attribute("taken"))

    def part(self, name: str) -> Locator:
        """One of its parts: stage, stations, bar, said, timeline, or a tab."""
        return self.root.locator(f'[data-part="{name}"]')

    def text(self, name: str) -> str:
        """The text of one of its parts."""
        return self.part(name).text_content() or ""

    def open(self, tab: str) -> Locator:
        """Open a tab; what it shows."""
        opened = self.root.get_by_role("tab", name=tab, exact=True)
        opened.click()
        expect(opened).to_have_attribute("aria-selected", "true")
        return self.part(tab.lower())

    def button(self, name: str) -> Locator:
        """A button of the bar, by its name for those who do not see it."""
        return self.part("bar").get_by_role("button", name=name, exact=True)

    def play(self) -> None:
        """Let the world pass."""
        self.button("Play").click()
        expect(self.root).to_have_attribute("data-playing", "true")

    def pause(self) -> None:
        """Let it stand, and all that moves come to rest."""
        self.button("Pause").click()
        expect(self.root).to_have_attribute("data-playing", "false")
        self.still()

    def still(self) -> None:
        """Wait until nothing moves."""
        expect(self.root).not_to_have_attribute("data-story", "playing")

    def more(self, name: str) -> None:
        """One of the buttons behind the three dots."""
        self.button("More").click()
        self.root.get_by_role("dialog", name="More").get_by_role("button", name=name).click()

    def share(self) -> str:
        """The line that brings back this world at this event, as the dialog shows it; the dialog is closed again."""
        self.button("Share").click()
        line = self.root.get_by_role("dialog", name="Share").get_by_role("textbox").first
        expect(line).to_be_focused()
        text = line.input_value()
        self.page.keyboard.press("Escape")
        return text

    def machine(self, name: str) -> Locator:
        """A machine on the stage."""
        return self.part("stage").locator(f'g[data-node="{name}"]')

    def choose(self, name: str) -> None:
        """Click a machine where it says its name; what can be done to it opens there."""
        self.machine(name).click(position={"x": 30, "y": 14})
        self.root.get_by_role("menu", name=name).wait_for()

    def do(self, name: str) -> None:
        """Something that the open menu offers."""
        self.root.get_by_role("menuitem", name=name, exact=True).click()

    def twin(self) -> str:
        """What all pictures show, as text."""
        opened = self.open("Text")
        expect(opened).not_to_be_empty()
        return opened.text_content() or ""

    def press(self, key: str) -> None:
        """Press a key while the viewer has the focus."""
        self.root.focus()
        self.page.keyboard.press(key)

    def until(self, what: Callable[[], Any]) -> Any:
        """Wait until something is so; the page goes on meanwhile."""
        waited_ms = 0
        while not (found := what()):
            assert waited_ms < PATIENCE_MS, f"it never came about; the viewer says {self.text('said')!r}"
            self.page.wait_for_timeout(20)
            waited_ms += 20
        return found

    def until_place(self, place: int) -> None:
        """Wait until the cursor stands behind so many events."""
        self.page.wait_for_function(
            "([element, place]) => element.dataset.place === place", arg=[self.root.element_handle(), str(place)]
        )

    def until_said(self, words: str) -> None:
        """Wait until it says these words."""
        self.root.locator('[data-part="said"]', has_text=words).wait_for()
