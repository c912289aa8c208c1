"""The viewer's code alone in an empty page: without JupyterLab and kernel, whose words are said by the test."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import Browser, Page

from mqlab_widgets.viewer import Viewer

PAGE = """<!doctype html><meta charset="utf-8"><style>{css}</style>
<body tabindex="-1"><div></div><script>window.frame = {frame};</script><script type="module">
{esm}
const handlers = new Map();
const state = {{ frame: window.frame }};
window.said = [];
window.escaped = [];
const model = {{
  get: (name) => state[name],
  set: (name, value) => {{ state[name] = value; }},
  send: (content) => {{ window.said.push(content); window.answer?.(content); }},
  on: (name, handler) => handlers.set(name, handler),
  off: () => {{}},
}};
// As a viewer does: messages are numbered, and who says that it is shown gets all of it.
window.number = 0;
window.tell = (message) => handlers.get("msg:custom")({{ ...message, n: (window.number += 1) }});
window.whole = () => tell({{ whole: true, frame: {{ ...state.frame }} }});
window.answers = {answers};
window.answer = (content) => window.answers && content.do === "shown" && queueMicrotask(whole);
window.kept = () => state.frame;
document.addEventListener("keydown", (event) => window.escaped.push(event.key));
window.view = document.querySelector("div");
render({{ model, el: window.view }});
const first = document.querySelector(".mq-stage");
window.first = first && getComputedStyle(first).visibility;
window.ready = true;
</script></body>"""


def stage(*parts: str, width: int = 600) -> str:
    """A picture of these parts, as a scene makes it."""
    return f'<svg class="mq-stage" width="{width}" height="200" viewBox="0 0 {width} 200">{"".join(parts)}</svg>'


def card(name: str, words: str, x: int) -> str:
    """A machine that says something."""
    return (
        f'<g data-key="card:{name}" class="mq-card" data-do="choose" data-node="{name}" role="button" '
        f'transform="translate({x} 60)"><rect width="120" height="60"/><text x="8" y="20">{words}</text></g>'
    )


def flights(*ids: str, x: float = 380) -> str:
    """Frames at rest near their target's door."""
    rest = "".join(
        f'<g data-key="{name}" class="mq-flight" transform="translate({x} 90)"><circle r="8"/></g>' for name in ids
    )
    return f'<g data-key="flights">{rest}</g>'


class BarePage:
    """A view in a page of its own, which shows a frame; `close` it in the end. `answers=False`: no kernel does."""

    def __init__(self, browser: Browser, frame: dict[str, str], *, answers: bool = True, **context: Any) -> None:
        self.context = browser.new_context(viewport={"width": 800, "height": 700}, **context)
        self.page: Page = self.context.new_page()
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        # The module's own names are to be seen by what follows it.
        esm = Viewer._esm.replace("export default { render };", "")
        does = json.dumps(answers)
        self.page.set_content(PAGE.format(css=Viewer._css, esm=esm, frame=json.dumps(frame), answers=does))
        self.page.wait_for_function("() => window.ready && (window.view.dataset.drawn || !window.answers)")
        self.root = self.page.locator(".mq-viewer")

    def tell(self, **message: Any) -> None:
        """What the kernel says."""
        self.page.evaluate("message => tell(message)", message)

    def until(self, condition: str, arg: Any = None) -> Any:
        """Wait until JavaScript is true in the page, looked at in each painted frame."""
        return self.page.wait_for_function(condition, arg=arg)

    def said(self) -> list[dict[str, Any]]:
        """What the page has said to the kernel, without its own name."""
        return list(self.page.evaluate("() => said.map(({ view, ...content }) => content)"))

    def close(self) -> None:
        """Close it; it must not have raised an error."""
        self.context.close()
        assert self.errors == []
