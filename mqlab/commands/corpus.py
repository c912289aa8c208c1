"""`mqlab corpus DIRECTORY`: how thorough the worlds were that `mqlab explore --corpus DIRECTORY` has played."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill
from typing import Any

from mqlab import scenarios
from mqlab.errors import MissingExtraError
from mqlab.explore.corpus import Header, read_header, together
from mqlab.explore.seen import could_be_seen
from mqlab.explore.thoroughness import Curve, Thoroughness

LINE_LETTERS = 120
MOST_NAMES = 120
"""Of more names a text has the first."""

PLURALS = {
    "event": "kinds of events", "value": "values in events", "setting": "settings", "operation": "operations",
    "fault": "faults", "rule": "rules that judged something", "exception": "exceptions that were needed",
    "goal": "goals that were reached",
}  # fmt: skip
"""What is said of the things of each kind that were seen."""
NEVER = {
    **PLURALS, "rule": "rules that were silent", "exception": "exceptions that nobody needed",
    "goal": "goals that were not reached",
}  # fmt: skip
"""And of those that were not."""
HOW_CHANCE = (
    "A world that has shown something which no other one has would have been new whenever it had come last. "
    "So the share of such worlds is the chance that the next one shows something new (Good and Turing)."
)


def main(argv: Sequence[str] | None = None) -> int:
    """Print how thorough corpora are together, or write it as a page; 0."""
    parser = argparse.ArgumentParser(prog="mqlab corpus", description=__doc__)
    parser.add_argument("directory", type=Path, nargs="+", help="what was given to mqlab explore --corpus")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with pictures to FILE")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(argv)
    headers = [read_header(place) for place in options.directory]
    could = could_be_seen(*(scenarios.get(header.scenario) for header in headers))
    found = Thoroughness(together(options.directory), could)
    if options.html is not None:
        if find_spec("bokeh") is None:
            raise MissingExtraError("bokeh", "labs")
        from mqlab.commands.corpus_page import page

        options.html.write_text(page(headers, found), encoding="utf-8")
    if options.json:
        print(json.dumps(as_json(headers, found), indent=1))
        return 0
    for line in text(headers, found):
        print(line)
    if options.html is not None:
        print(f"\nwritten to {options.html}")
    return 0


def told(headers: Sequence[Header], found: Thoroughness) -> list[str]:
    """Of what the corpora are, in a sentence for each."""
    return [_told(header, found) for header in headers]


def _told(header: Header, found: Thoroughness) -> str:
    seeds = [one.seed for one in found.seeds if one.label == header.label]
    failed = sum(world.label == header.label for world in found.failures)
    count = f"{len(seeds):,} world{'s' * (len(seeds) != 1)} of {header.label}"
    return f"{count} ({spans(seeds)}): {len(seeds) - failed:,} passed, {failed:,} failed"


def spans(seeds: Iterable[int]) -> str:
    """Seeds in words: seeds 0 to 99, 200."""
    in_order, parts = sorted(seeds), list[list[int]]()
    for seed in in_order:
        if parts and seed == parts[-1][1] + 1:
            parts[-1][1] = seed
        else:
            parts.append([seed, seed])
    words = [f"{first}" if first == last else f"{first} to {last}" for first, last in parts]
    return f"seed{'s' * (len(in_order) > 1)} {', '.join(words)}" if words else "no seeds yet"


def chance(curve: Curve) -> str:
    """The chance that the next world shows something new, and from what that follows."""
    n = len(curve.points)
    return f"{curve.chance:.1%} ({curve.alone:,} of {n:,} worlds have shown something that no other one has)"


def forecast(curve: Curve) -> str:
    """Whether the worlds played last were as was to be expected by those before, in a sentence; "" of a few worlds."""
    tested = curve.forecast()
    if tested is None:
        return ""
    return (
        f"Put to the test: by what the first {tested.worlds:,} worlds showed the chance was {tested.chance:.1%}; "
        f"of the {tested.later:,} behind them {tested.new:,} showed something new ({tested.new / tested.later:.1%})."
    )


def listed(names: Sequence[str]) -> str:
    """Names, or the first ones of many."""
    left = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f", and {left:,} more (all of them: --html or --json)" if left > 0 else "")


def text(headers: Sequence[Header], found: Thoroughness) -> Iterator[str]:
    """The report as lines of text."""
    yield from told(headers, found)
    if not found.seeds:
        return
    yield from ("", "What they have shown", f"  {'':<32}{'seen':>8}{'once':>8}{'of':>8}{'never':>8}")
    for kind in found.kinds:
        could = found.could.get(kind)
        behind = f"{len(could):>8,}{len(found.never(kind)):>8,}" if could is not None else ""
        yield f"  {PLURALS[kind]:<32}{len(found.seen(kind)):>8,}{found.once(kind):>8,}{behind}"
    yield f"  {'pairs of events':<32}{len(found.pairs.first):>8,}{len(found.pairs.once):>8,}"
    for curve, what in ((found.named, "different things, without pairs"), (found.pairs, "pairs of events")):
        points = ", ".join(f"{point.things:,} after {point.worlds:,}" for point in curve.after())
        yield from ("", _filled(f"{what}: {points}"))
        yield _filled(f"chance that the next world shows a new one: {chance(curve)}")
        if forecast(curve):
            yield _filled(forecast(curve))
    yield from ("", _filled(HOW_CHANCE), "", "Never seen")
    for kind in found.kinds:
        if found.never(kind):
            yield _filled(f"{NEVER[kind]} ({len(found.never(kind)):,}): {listed(found.never(kind))}")
    yield from ("", f"  {'What each rule judged':<40}{'times':>12}{'in worlds':>12}")
    for name, count in sorted(found.judged.items(), key=lambda item: (-item[1].worlds, item[0])):
        yield f"  {name:<40}{count.times:>12,}{count.worlds:>12,}" + ("  silent" if not count.times else "")
    yield from ("", f"  {'What was excused':<60}{'times':>12}{'in worlds':>12}")
    for name, count in sorted(found.excused.items(), key=lambda item: (-item[1].worlds, item[0])):
        yield f"  {name:<60}{count.times:>12,}{count.worlds:>12,}"
    if found.unended:
        yield from ("", _filled(f"the end of {found.unended:,} worlds was not judged, since messages were still sent"))
    if found.failures:
        yield from ("", "What failed")
    for world in found.failures:
        if world.failure is not None:
            yield f"  {world.label} seed {world.seed}: {world.failure.reason}"
            yield f"    {world.failure.command}"


def as_json(headers: Sequence[Header], found: Thoroughness) -> dict[str, Any]:
    """The report as JSON-able data; of the curves the points after 1, 10, 100 ... worlds."""
    curves = {"named": found.named, "pairs": found.pairs}
    return {
        "corpora": [header._asdict() for header in headers],
        "seeds": found.seeds,
        "failures": [
            {"world": world.label, "seed": world.seed, **world.failure._asdict()}
            for world in found.failures if world.failure
        ],
        "curves": {name: [point._asdict() for point in curve.after()] for name, curve in curves.items()},
        "chance": {name: curve.chance for name, curve in curves.items()},
        "first": {kind: found.seen(kind) for kind in found.kinds},
        "never": {kind: found.never(kind) for kind in found.kinds},
        "judged": {name: count._asdict() for name, count in sorted(found.judged.items())},
        "excused": {name: count._asdict() for name, count in sorted(found.excused.items())},
        "ends_not_judged": found.unended,
    }


def _filled(line: str) -> str:
    return fill(line, LINE_LETTERS, initial_indent="  ", subsequent_indent="    ")
