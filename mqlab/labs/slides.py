"""A lab as slides: one idea on each, bets with their reveal behind them, and notes for whoever speaks.

`deck` makes slides of a lab's source and of its notebook as it ran. Of the prose a slide has the whole paragraphs, but
of a very long one its first sentences; the notes have all of it. Code without output stands in the notes of the slide
that it leads to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Any

from mqlab.check.bets import REVEAL_MIME, REVEALED_MIME, tells_of_bets
from mqlab.labs.bets import between, reveals_in
from mqlab.labs.hints import hints_of
from mqlab.labs.notebook import Notebook, code_cells
from mqlab.labs.source import Cell, LabSource, text_argument

MOST_TEXT = 560
"""Letters of prose on one slide."""
WHOLE_PARAGRAPH, LEAST_OF_PARAGRAPH = 480, 280
"""A paragraph of so many letters is shown whole; of a longer one the first sentences that have so many at least."""
MOST_CODE = 12
"""Lines of code on one slide."""
CODE_BESIDE_PICTURE = 4
"""So many lines of code stand above what they show; longer ones have a slide of their own."""
LINES_BELOW_CODE = 11
"""What has more lines or rows has a slide without the code."""
LEADS = 190
"""So many letters that lead to a picture stand above it."""
SHORT_OUTPUT = 6
"""Lines of text that a cell shows below its code, however long that is."""
MOST_LINES = 18
"""Lines of a dump or rows of a table on one slide; what has more goes on on the next one."""
MOST_ITEMS, LEAST_OF_ITEM = 4, 130
"""Items of a list on one slide, and of each the first sentences that have so many letters at least."""
_HEADING = re.compile(r"\A(#{1,4}) (.+)\n*")
_MINUTES = re.compile(r" \((\d+) minutes?\)$")
_SENTENCE = re.compile(r"(?<=[.?!:]) (?=[A-Z`*\"(])")
_BLOCK = re.compile(r"\n\s*\n")
_ITEM = re.compile(r"(?m)^(?:[-*]|\d+\.) ")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
# What a notebook printed is cut as text: a parser would write names of SVG (viewBox) in small letters.
_ACT = re.compile(r"(?=<h4>[^<]*</h4><p>)")
_STAGE = re.compile(r"<svg class=\"mq-stage.*?</svg>", re.DOTALL)
_LINES = re.compile(
    r"(?P<head><pre\b[^>]*>|<table\b(?:(?!</table>).)*?<tbody>)(?P<rows>.+?)(?P<foot></pre>|</tbody>.*?</table>)",
    re.DOTALL,
)
"""A dump or a table in HTML."""
_ROW = re.compile(r"<tr\b.*?</tr>|[^\n]*\n|[^\n]+\Z", re.DOTALL)
_WORDS = re.compile(r"<div[^>]*>[^<]+</div>")
WIDGET = "application/vnd.jupyter.widget-view+json"
HTML, TEXT, PICTURE = "text/html", "text/plain", "image/svg+xml"
_KEPT = (HTML, TEXT, PICTURE, "text/markdown", "image/png", REVEAL_MIME, REVEALED_MIME)


@dataclass
class Slide:
    """One slide: its kind (title, part, text, code, picture, bet, reveal, task), and what stands on it."""

    kind: str
    title: str
    body: str = ""
    """Markdown or HTML."""
    code: str = ""
    outputs: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Paragraphs of markdown for the speaker."""


def deck(lab: LabSource, executed: Notebook, story: tuple[str, ...] = ()) -> list[Slide]:
    """The slides of a lab. `executed` is the student's notebook with the pictures of its live views; `story` are the
    captions of the lab's storyboard, for the notes of the first slide.
    """
    return _Deck(lab, executed, story).slides


class _Deck:
    def __init__(self, lab: LabSource, executed: Notebook, story: tuple[str, ...]) -> None:
        self._lab = lab
        self._outputs = _outputs(lab, executed)
        self._stubs = {cell["id"]: cell["source"] for cell in code_cells(executed)}
        self._reveals = self._bets()
        self._wrong = dict(line.partition(": ")[::2] for line in lab.head.wrong_predictions)
        self._title = lab.head.title
        self._pending: list[str] = []
        """What the next slide's notes begin with."""
        self.slides: list[Slide] = [self._first(story)]
        for cell in lab.cells:
            for slide in self._of(cell):
                slide.notes[:0], self._pending = self._pending, []
                self._add(slide)
        self.slides[-1].notes += self._pending

    def _add(self, slide: Slide) -> None:
        """Put a slide behind the others; a short text stands above what it leads to, or below the text before it."""
        last = self.slides[-1]
        if last.kind == slide.kind == "text" and last.title == slide.title and _together(last, slide) <= LEADS:
            last.body = f"{last.body}\n\n{slide.body}"
            last.notes += slide.notes
            return
        leads = last.kind == "text" and slide.kind in ("picture", "code", "task") and last.title == slide.title
        if leads and not slide.body and len(last.body) <= LEADS:
            slide.body = last.body
            slide.notes[:0] = last.notes
            self.slides.pop()
        self.slides.append(slide)

    def _first(self, story: tuple[str, ...]) -> Slide:
        head = self._lab.head
        aims = "\n".join(f"- {aim}" for aim in head.objectives)
        notes = [
            f"{head.minutes} minutes for who does all of it. Needed before: {', '.join(head.prerequisites) or 'none'}.",
            "Often predicted wrongly:\n\n" + "\n".join(f"- {line}" for line in head.wrong_predictions),
        ]
        if story:
            told = "\n".join(f"- {words}" for words in story)
            notes.append(f'The moving picture: `storyboard("{self._lab.number}")`. Its captions:\n\n{told}')
        body = f"**{head.question}**\n\nAfter this lab you can\n\n{aims}"
        return Slide("title", f"{self._lab.number} · {head.title}", body, notes=notes)

    def _bets(self) -> dict[str, tuple[str, str]]:
        """Each bet's truth, and why, as the notebook has shown them."""
        shown = reveals_in(output for outputs in self._outputs.values() for output in outputs)
        found = {bet: (facts["truth"], " ".join(facts["why"].split())) for bet, facts in shown.items()}
        missing = sorted(set(between(self._lab)) - set(found))
        assert not missing, missing
        return found

    def _of(self, cell: Cell) -> Iterator[Slide]:
        if "teacher" in cell.tags:
            self._pending.append(cell.source)
        elif "hints" in cell.tags:
            lines = [f"{number}. {hint}" for number, hint in enumerate(hints_of(cell.source), 1)]
            self._pending.append("Hints, one by one:\n\n" + "\n".join(lines))
        elif cell.kind == "markdown":
            yield from self._prose(cell)
        elif cell.calls("predict"):
            yield from self._bet(cell)
        elif "exercise" in cell.tags:
            stub = self._stubs[f"{self._lab.number}-{cell.definitions[-1]}"]
            yield Slide("task", self._title, code=_first_lines(stub))
        elif cell.calls("reveal") or cell.calls("check") or "parameters" in cell.tags:
            yield from self._seen(cell)
        else:
            yield from self._shown(cell)

    # -- prose ------------------------------------------------------------------------------------------------------

    def _prose(self, cell: Cell) -> Iterator[Slide]:
        notes, page = [_HEADING.sub("", cell.source)], ""
        for block in _blocks(cell.source):
            heading = _HEADING.match(block)
            shown = "" if heading else _shorter(block)
            if page and (heading or len(page) + len(shown) > MOST_TEXT):
                yield Slide("text", self._title, page, notes=notes)
                notes, page = [], ""
            if heading:
                minutes = _MINUTES.search(heading[2])
                self._title = _MINUTES.sub("", heading[2])
                if len(heading[1]) == 2:
                    yield Slide("part", self._title, f"{minutes[1]} minutes" if minutes else "")
            page = f"{page}\n\n{shown}".strip()
        if page:
            yield Slide("text", self._title, page, notes=notes)

    # -- code -------------------------------------------------------------------------------------------------------

    def _shown(self, cell: Cell) -> Iterator[Slide]:
        """A cell's code, and what it shows."""
        outputs = self._outputs.get(id(cell), [])
        if not outputs:
            self._pending.append(_fenced(cell.source))
            return
        yield from self._with_outputs(cell, outputs)

    def _seen(self, cell: Cell) -> Iterator[Slide]:
        """What a cell with a reveal shows beside it; nothing of a check that nobody has solved yet."""
        if "check" not in cell.tags and "parameters" not in cell.tags:
            outputs = [output for output in self._outputs.get(id(cell), ()) if not tells_of_bets(output)]
            if outputs:
                yield from self._with_outputs(cell, outputs)

    def _with_outputs(self, cell: Cell, outputs: list[dict[str, Any]]) -> Iterator[Slide]:
        code, lines = cell.source, cell.source.count("\n") + 1
        if cell.calls("say"):
            words = "\n\n".join(str(output["data"]["text/markdown"]) for output in outputs if "data" in output)
            yield Slide("text", self._title, words, notes=[_fenced(code)])
            return
        short = all(_is_short(output) for output in outputs)
        if lines > MOST_CODE:
            self._pending.append(_fenced(code))
            code = ""
        elif (lines > CODE_BESIDE_PICTURE and not short) or max(map(_height, outputs)) > LINES_BELOW_CODE:
            yield Slide("code", self._title, code=code)
            code = ""
        if short:
            yield Slide("picture", self._title, code=code, outputs=outputs)
            return
        for output in outputs:
            for piece in _pieces(output):
                yield Slide("picture", self._title, code=code, outputs=[piece])
                code = ""

    # -- bets -------------------------------------------------------------------------------------------------------

    def _bet(self, cell: Cell) -> Iterator[Slide]:
        for call in cell.calls("predict"):
            name = text_argument(call) or ""
            shown = "\n".join(str(output.get("data", {}).get(TEXT, "")) for output in self._outputs[id(cell)])
            question, *rest = shown.removeprefix("Before you look: ").splitlines()
            choices = [line.strip() for line in rest if re.match(r"  \([a-z]\) ", line)]
            unit = next((str(_value(word.value)) for word in call.keywords if word.arg == "unit"), "")
            wanted = "".join(f"<li>{_inline(choice)}</li>" for choice in choices)
            answer = f"<ul>{wanted}</ul>" if choices else f'<p class="unit">a number, in {_inline(unit)}</p>'
            wrong = self._wrong.get(name, "")
            notes = [f"The bet `{name}`. Let everybody write an answer down before you go on."]
            notes += [f"Often said: {wrong}."] if wrong else []
            yield Slide("bet", "Your bet", f'<p class="question">{_inline(question)}</p>{answer}', notes=notes)
            truth, why = self._reveals[name]
            said = f'<p class="question">{_inline(question)}</p><p class="truth">{_inline(truth)}</p>'
            reason = f'<p class="why">{_inline(why)}</p>' if why else ""
            notes = ["The slides behind this one show how it comes. With another id the numbers may be others."]
            yield Slide("reveal", "What the machine shows", said + reason, notes=notes)


def _together(first: Slide, second: Slide) -> int:
    return len(first.body) + len(second.body)


def _fenced(code: str) -> str:
    return f"The cell:\n\n```python\n{code}\n```"


def _outputs(lab: LabSource, executed: Notebook) -> dict[int, list[dict[str, Any]]]:
    """What each code cell of the source has shown, as a page without a kernel shows it."""
    ran = iter(code_cells(executed)[1:])
    shown = {}
    for cell in lab.cells:
        if cell.kind == "code" and "teacher" not in cell.tags:
            shown[id(cell)] = [output for output in map(_still, next(ran)["outputs"]) if output]
    return shown


def _still(output: dict[str, Any]) -> dict[str, Any]:
    """An output without what needs a kernel: of a live view its picture."""
    data = output.get("data")
    if data is None:
        return dict(output)
    kept = {mime: value for mime, value in data.items() if mime in _KEPT}
    if WIDGET in data and HTML not in kept:
        return {}
    return {**output, "data": kept}


def _is_short(output: dict[str, Any]) -> bool:
    """Whether an output is some lines of text, and no picture or table."""
    data = output.get("data", {})
    if PICTURE in data or "image/png" in data or "mq-stage" in str(data.get(HTML, "")):
        return False
    return (str(data.get(TEXT, "")) or str(output.get("text", ""))).count("\n") < SHORT_OUTPUT


def _height(output: dict[str, Any]) -> int:
    """How many lines of text, or rows of a table, an output has."""
    data = output.get("data", {})
    if PICTURE in data:
        return 0
    return str(data.get(HTML, "")).count("<tr") or (str(data.get(TEXT, "")) or str(output.get("text", ""))).count("\n")


def _pieces(output: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """An output cut at what stands alone: each picture of a live view, each act, each board, some rows of a table."""
    html = str(output.get("data", {}).get(HTML, ""))
    if not html:
        yield output
        return
    if "mq-stage" not in html:
        yield from ({**output, "data": {HTML: portion}} for portion in _portions(html))
        return
    for act in filter(None, _ACT.split(html)):
        before, svg, behind = _cut_at_picture(act)
        if svg:
            yield {**output, "data": {HTML: f"{before}{_as_image(svg)}"}}
        if "<table" in behind or "<svg" in behind:
            # A section would be a slide of its own.
            yield {**output, "data": {HTML: behind.replace("<section", "<div").replace("</section", "</div")}}


def _portions(html: str) -> Iterator[str]:
    """Tables and dumps that are too long for one slide: each of them alone, with its head, so many rows at a time."""
    found = list(_LINES.finditer(html))
    parts = [(part["head"], _ROW.findall(part["rows"]), part["foot"]) for part in found]
    if sum(len(rows) for _, rows, _ in parts) <= MOST_LINES:
        yield html
        return
    words = "".join(_WORDS.findall(html[: found[0].start()]))
    behind = "".join(_WORDS.findall(html[found[-1].end() :]))
    for nth, (head, rows, foot) in enumerate(parts, 1):
        each = -(-len(rows) // -(-len(rows) // MOST_LINES))
        for at in range(0, len(rows), each):
            last = nth == len(parts) and at + each >= len(rows)
            yield f"<div>{words}{head}{''.join(rows[at : at + each])}{foot}{behind if last else ''}</div>"


def _cut_at_picture(html: str) -> tuple[str, str, str]:
    found = _STAGE.search(html)
    return (html[: found.start()], found[0], html[found.end() :]) if found else ("", "", html)


def _as_image(svg: str) -> str:
    """A picture as an image of its own: the names inside it are then its own, too."""
    from base64 import b64encode

    data = b64encode(svg.encode()).decode()
    return f'<img alt="The world: machines, queues and frames in flight" src="data:image/svg+xml;base64,{data}">'


# -- texts ----------------------------------------------------------------------------------------------------------


def _blocks(source: str) -> Iterator[str]:
    """Paragraphs, lists, and code between fences, each as one."""
    pieces = re.split(r"(?ms)^(```.*?^```)", source)
    for n, piece in enumerate(pieces):
        if n % 2:
            yield piece
            continue
        for block in filter(None, map(str.strip, _BLOCK.split(piece))):
            heading = _HEADING.match(block)
            if heading:
                yield heading[0].strip()
                block = block[heading.end() :]
            if block:
                yield from _items(block) if _ITEM.match(block) else [block]


def _items(block: str) -> Iterator[str]:
    """A list in pieces of a few items."""
    items = [item for item in re.split(r"(?m)^(?=(?:[-*]|\d+\.) )", block) if item.strip()]
    for at in range(0, len(items), MOST_ITEMS):
        yield "".join(_short_item(item) for item in items[at : at + MOST_ITEMS])


def _short_item(item: str) -> str:
    return _beginning(item.strip(), LEAST_OF_ITEM) + "\n"


def _shorter(block: str) -> str:
    """What of a paragraph stands on the slide; links are words there."""
    if block.startswith(("```", "|")):
        return block
    block = _LINK.sub(r"\1", block)
    if _ITEM.match(block) or len(block) <= WHOLE_PARAGRAPH:
        return block
    return _beginning(block, LEAST_OF_PARAGRAPH)


def _beginning(text: str, least: int) -> str:
    """The first sentences that have so many letters, and leave no emphasis open."""
    text = " ".join(text.split())
    taken = ""
    for sentence in _SENTENCE.split(text):
        taken = f"{taken} {sentence}".strip()
        if len(taken) >= least and not (taken.count("`") % 2 or taken.count("**") % 2) and not taken.endswith(":"):
            break
    return taken


def _first_lines(code: str) -> str:
    lines = code.splitlines()
    return code if len(lines) <= MOST_CODE else "\n".join([*lines[: MOST_CODE - 1], "    # ..."])


def _inline(text: str) -> str:
    """Text as HTML, in which markdown finds nothing to do."""
    return escape(text).replace("*", "&#42;").replace("_", "&#95;").replace("`", "&#96;")


def _value(node: Any) -> object:
    import ast

    return node.value if isinstance(node, ast.Constant) else ast.unparse(node)
