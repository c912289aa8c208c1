"""What a student gets back: one page of HTML that needs nothing beside it."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; color: #1b1b1b; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; } h3 { font-size: 1rem; margin: 1.2rem 0 0; }
section p, section pre { margin: .3rem 0; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; padding: .3rem .6rem; vertical-align: top; }
tr { border-bottom: 1px solid #ddd; } .points { white-space: nowrap; font-variant-numeric: tabular-nums; }
.all { color: #00614b; } .some { color: #8a5a00; } .none { color: #8f1d3f; }
pre { background: #f4f4f4; padding: .6rem; white-space: pre-wrap; overflow-wrap: anywhere;
      font-size: .85rem; }
"""

_AFTERWARDS = "<br><small>written after the truth was shown</small>"


def write_report(result: dict[str, Any], path: Path) -> None:
    """Write the page of one result."""
    path.write_text(report(result), encoding="utf-8")


def report(result: dict[str, Any]) -> str:
    """The page as text. Everything that a student wrote stands in it as text."""
    title = f"{result['lab']}: {_points(result['points'])} of {result['most']} points"
    parts = [
        f"<h1>{escape(title)}</h1><p>{escape(result['student'])}</p>",
        _paragraphs([result["unreadable"], *result["remarks"]]),
        _arrived(result),
        _by_hand(result.get("by_hand", [])),
        "<h2>Checks</h2>",
        *(_mark(mark, played=not result["unreadable"]) for mark in result["marks"]),
        _bets(result["bets"]),
        _hints(result["hints"]),
        _exam(result["exam"]),
        _run(result["run"]),
        _certificate(result["certificate"]),
        _signed(result["signed"]),
        _how(result),
    ]
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'


def _arrived(result: dict[str, Any]) -> str:
    """When it came in and by when it was due; of what was late, what that takes."""
    arrival, late = result.get("arrival") or {}, result.get("late") or {}
    if not arrival:
        return ""
    if not late:
        return f"<p>Came in: {escape(arrival['at'])} ({escape(arrival['said_by'])}).</p>"
    told = f"Due {escape(late['due'])}; came in {escape(arrival['at'])} ({escape(arrival['said_by'])}): "
    told += f"<b>late: {escape(late['told'])}</b>" if late["told"] else "in time"
    if late["taken"]:
        full, taken = _points(result["before_late"]), _points(late["taken"])
        told += f". Of the {full} points that were reached this takes {taken}"
    return f"<p>{told}.</p>"


def _by_hand(marks: list[dict[str, Any]]) -> str:
    if not marks:
        return ""
    rows = "".join(
        f"<tr><td>{escape(each['check'] or 'all of the lab')}</td><td>{_points(each['points'])}</td>"
        f"<td>{_points(each['judged'])}</td><td>{escape(each['reason'])}</td>"
        f"<td>{escape(each['by'])}, {escape(each['at'])}</td></tr>"
        for each in marks
    )
    head = "<tr><th>check</th><th>points</th><th>the judge gave</th><th>why</th><th>by whom</th></tr>"
    return f"<h2>Set by hand</h2><table>{head}{rows}</table>"


def share_line(mark: dict[str, Any]) -> str:
    """A line for a notebook, below the exercise: it opens the world in which the solution failed."""
    given = ", ".join([f'"{mark["check"]}"', *mark["functions"]])
    return f"Stepper(check({given}, seeds=[{mark['failing_seed']}]).open())"


def _mark(mark: dict[str, Any], *, played: bool) -> str:
    colour = "all" if mark["points"] == mark["most"] else "some" if mark["points"] else "none"
    head = (
        f'<h3 class="{colour}">{escape(mark["check"])}: '
        f'<span class="points">{_points(mark["points"])} of {mark["most"]}{_of_hand(mark)}</span></h3>'
    )
    if not played:
        return f"<section>{head}</section>"
    rows = [
        head,
        f"<p>Public seeds: {mark['public'][0]} of {mark['public'][1]} went well. Hidden seeds: {mark['hidden'][0]} of "
        f"{mark['hidden'][1]}.{_with_cases(mark)}</p>",
    ]
    if mark["failing_seed"] is not None:
        rows.append(f"<p>With seed {mark['failing_seed']}: {escape(mark['reason'])}</p>")
        rows.append(f"<pre>{escape(mark['story'])}</pre>" if mark["story"] else "")
        if mark.get("has_world"):
            rows.append(f"<p>To look into it, in your notebook:</p><pre>{escape(share_line(mark))}</pre>")
    elif mark.get("judged", mark["points"]) < mark["most"]:
        rows.append(f"<p>{escape(mark['reason'])}</p>")
    return f"<section>{''.join(rows)}</section>"


def _of_hand(mark: dict[str, Any]) -> str:
    return f", set by hand; the judge gave {_points(mark['judged'])}" if "judged" in mark else ""


def _with_cases(mark: dict[str, Any]) -> str:
    """What the points are made of, where cases of seeds that went wrong count, too."""
    public, hidden = mark.get("shares", (0, 0))
    seeds = [well / played if played else 0 for well, played in (mark["public"], mark["hidden"])]
    if public <= seeds[0] + 0.001 and hidden <= seeds[1] + 0.001:
        return ""
    return f" With the cases that went well in the other seeds: {public:.0%} and {hidden:.0%}."


def _bets(bets: list[dict[str, Any]]) -> str:
    if not bets:
        return ""
    rows = "".join(
        f"<tr><td>{escape(bet.get('question') or bet['bet'])}</td>"
        f"<td>{_said(_bet(bet))}{_AFTERWARDS if bet.get('afterwards') else ''}</td>"
        f"<td>{_said(bet['truth'])}</td></tr>"
        for bet in bets
    )
    made = sum(bet["said"] is not None for bet in bets)
    return (
        f"<h2>Bets</h2><p>{made} of {len(bets)} were made. A bet gives no points: it is there to be wrong.</p>"
        f"<table><tr><th>bet</th><th>you said</th><th>your notebook showed</th></tr>{rows}</table>"
    )


def _bet(bet: dict[str, Any]) -> Any:
    """What was bet: in the words of the truth, where the notebook has shown both."""
    return bet["said"] if bet["said"] is None else bet.get("told") or bet["said"]


def _hints(hints: dict[str, list[int]]) -> str:
    if not hints:
        return ""
    rows = "".join(
        f"<tr><td>{escape(exercise)}</td><td>{escape(', '.join(map(str, opened)) or 'none')}</td></tr>"
        for exercise, opened in hints.items()
    )
    return (
        "<h2>Hints</h2><p>They cost nothing. JupyterLab notes in the notebook which ones were opened; other programs "
        f"note nothing.</p><table><tr><th>exercise</th><th>opened</th></tr>{rows}</table>"
    )


def _exam(exam: dict[str, Any]) -> str:
    if not exam:
        return ""
    times = [
        ("handed out, as the notebook says", exam["released"]),
        ("opened, by the clock of the machine where it was opened last", exam["opened"]),
    ]
    rows = "".join(f"<tr><td>{escape(what)}</td><td>{escape(when or 'not known')}</td></tr>" for what, when in times)
    return f"<h2>Exam {escape(exam['name'])}</h2><table>{rows}</table>"


def _certificate(told: dict[str, Any]) -> str:
    if told["holds"] is None:
        return ""
    verdict = "holds" if told["holds"] else "does not hold"
    return (
        f"<h2>Certificate</h2><p>The notebook's own line {verdict}: {escape(told['why'])}.</p>"
        f"<pre>{escape(told['line'])}</pre>"
    )


def _signed(line: str) -> str:
    if not line:
        return ""
    return f"<h2>Signed by the marker</h2><p>To show to somebody who can ask your teacher:</p><pre>{escape(line)}</pre>"


def _said(value: Any) -> str:
    return "<i>nothing</i>" if value is None else escape(str(value))


def _run(run: dict[str, Any] | None) -> str:
    if run is None:
        return ""
    return f"<h2>The notebook</h2><p>It was run from its top: {escape(run['verdict'])} ({run['seconds']:.0f} s).</p>"


def _how(result: dict[str, Any]) -> str:
    if "made_of" not in result:
        return ""
    made = result["made_of"]
    told = f"Marked by mqlab {made['mqlab']}; notebook {made['notebook'][:12]}."
    told += "" if result.get("confined") else " The code was not confined."
    return f"<p><small>{escape(told)}</small></p>"


def _paragraphs(texts: list[str]) -> str:
    return "".join(f"<p><b>{escape(text)}</b></p>" for text in texts if text)


def _points(points: float) -> str:
    return f"{points:g}"
