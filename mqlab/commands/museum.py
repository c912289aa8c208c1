"""`mqlab museum [NUMBER]`: what there is to be seen, one exhibit with its story, a fix of one's own, or the table of
all."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from mqlab.check.verdict import OPENS
from mqlab.commands.numbers import whole
from mqlab.errors import LearnerError
from mqlab.material import INSTALL, root
from mqlab.museum.exhibits import EXHIBITS, Exhibit, exhibit
from mqlab.museum.fixes import OTHER_SEEDS, Fix, fix_of, function_of
from mqlab.museum.search import Visit, first_broken, shortest, visit, visits
from mqlab.progress import bar, counted
from mqlab.scenarios.museum import BROKEN, FIXED

HELD, BROKE = 0, 1
"""Exit codes of a visit: its rule held; it was broken."""
SEEDS = 1_000
"""So many seeds are tried unless told otherwise."""
COUNTED = 100
"""In so many seeds the table counts how often a bug shows."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `mqlab museum` takes to a parser."""
    parser.add_argument("number", nargs="?", default="", help="play this exhibit; without it, say which there are")
    parser.add_argument("--seed", type=whole(0), metavar="N", help="the seed (default: the first that breaks the rule)")
    parser.add_argument("--fixed", action="store_true", help="with the code that is mended")
    parser.add_argument("--shortest", action="store_true", help="with the fewest messages that still break the rule")
    parser.add_argument(
        "--fix", metavar="FILE", help="write the fix: play with the function in this Python file, from seeds that were "
        "not shown; a file that is not there is made, with the decision as it was",
    )  # fmt: skip
    parser.add_argument("--hint", type=int, choices=(1, 2, 3), metavar="N", help="print the first N of three hints")
    parser.add_argument("--table", action="store_true", help="print the table of docs/museum.md")
    parser.add_argument("--page", action="store_true", help="print docs/museum.md, or what it says of this exhibit")
    parser.add_argument(
        "--seeds",
        type=whole(1),
        metavar="N",
        help=f"how many seeds to try (default {SEEDS}; with --fix {len(OTHER_SEEDS)})",
    )
    parser.add_argument(
        "--jobs",
        "-j",
        type=whole(1, 1_000),
        default=os.cpu_count() or 1,
        metavar="N",
        help="processes to play in",
    )


def main(argv: Sequence[str] | None = None) -> int:
    """The command as a program; the exit code."""
    parser = argparse.ArgumentParser(prog="mqlab museum", description=__doc__)
    add_arguments(parser)
    options = parser.parse_args(argv)
    if (options.fix or options.hint) and not options.number:
        raise LearnerError("a fix of which exhibit?", f"name one: mqlab museum {EXHIBITS[0].number} --fix my_fix.py")
    if options.hint:
        for number, hint in enumerate(fix_of(options.number).all_hints[: options.hint], 1):
            print(f"{number}. {hint}")
        return HELD
    if options.fix:
        return _try(fix_of(options.number), Path(options.fix), options.seeds or len(OTHER_SEEDS))
    options.seeds = options.seeds or SEEDS
    if options.page:
        print(_page(options.number), end="")
        return HELD
    if options.table:
        return _table(options.seeds, options.jobs)
    if not options.number:
        for one in EXHIBITS:
            print(f"{one.number}  {one.title}\n      {one.invariant}")
        return HELD
    return _one(exhibit(options.number), options)


# -- one exhibit ----------------------------------------------------------------------------------------------------


def _one(one: Exhibit, options: argparse.Namespace) -> int:
    code = FIXED if options.fixed else BROKEN
    if options.seed is not None:
        seen: Visit | None = visit(one, options.seed, code)
    else:
        seen = first_broken(one, counted("seeds", range(options.seeds), options.seeds), code)
    if seen is not None and options.shortest and not seen.holds:
        seen = shortest(one, seen.seed) or seen
    print(_heading(one))
    if seen is None or seen.holds:
        tried = f"seed {options.seed}" if options.seed is not None else f"{options.seeds} seeds"
        print(f"It holds with the {code} code in {tried}.")
        return HELD
    print(f"BROKEN in seed {seen.seed}: {seen.reason}")
    for line in seen.story:
        print(line)
    return BROKE


def _heading(one: Exhibit) -> str:
    return f"{one.title} (issue {', '.join(one.issues)})\n{one.invariant}"


def _page(number: str) -> str:
    """The museum's page, or the part of it that is about an exhibit."""
    place = root() / "docs" / "museum.md"
    try:
        text = place.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise LearnerError(f"there is no {place}", INSTALL) from None
    if not number:
        return text
    wanted = f"[#{exhibit(number).number}]"
    return next(f"## {part.strip()}\n" for part in text.split("\n## ")[1:] if wanted in part.split("\n\n")[1])


# -- a fix of one's own ---------------------------------------------------------------------------------------------


def _try(fix: Fix, file: Path, seeds: int) -> int:
    """Play with the function in a file; make the file when it is not there."""
    if not file.exists():
        try:
            file.write_text(fix.start, encoding="utf-8")
        except OSError as error:
            raise LearnerError(f"{file} cannot be written: {error.strerror}", "name another file") from error
        print(f"{file} holds the decision as it was: {fix.name}. Mend it, and give the same command again.")
        return HELD
    try:
        source = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LearnerError(f"{file} cannot be read", "name a Python file") from error
    first, answer = OTHER_SEEDS.start, function_of(fix, source, file.name)
    others = counted("seeds", range(first, first + seeds), seeds)
    verdict = fix.check.play(answer, seeds=others, failures_wanted=3)
    print(_heading(exhibit(fix.number)))
    # Here is no cell in which its world could be opened.
    print("\n".join(line for line in str(verdict).splitlines() if OPENS not in line))
    return HELD if verdict.passed else BROKE


# -- the table ------------------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """What the table says of one exhibit."""

    first: int | None
    broken: int
    fixed_broken: int
    messages: int | None

    def cells(self, one: Exhibit, seeds: int) -> tuple[str, ...]:
        """The row as text."""
        issues = ", ".join(f"#{issue}" for issue in one.issues)
        first = "none" if self.first is None else str(self.first)
        messages = "-" if self.messages is None else str(self.messages)
        counted = f"{self.broken} of {min(seeds, COUNTED)}"
        return issues, one.invariant, first, counted, messages, f"{self.fixed_broken} of {seeds}"


def row_of(one: Exhibit, seeds: int, jobs: int, told: Callable[[int], None] = lambda played: None) -> Row:
    """Play an exhibit: until it breaks, then a hundred times to count, then every seed with the fixed code.

    `told` is called with how many worlds have been played, after each of them.
    """
    played = 0

    def noted(seen: Iterable[Visit]) -> Iterator[Visit]:
        nonlocal played
        for each in seen:
            played += 1
            told(played)
            yield each

    broken = list(noted(visits(one, range(min(seeds, COUNTED)), jobs=jobs)))
    held = len(list(takewhile(lambda seen: seen.holds, broken)))
    first = held if held < len(broken) else None
    if first is None:
        later = first_broken(one, range(len(broken), seeds))
        first = later.seed if later is not None else None
    fixed = sum(not seen.holds for seen in noted(visits(one, range(seeds), FIXED, jobs=jobs)))
    fewest = shortest(one, first) if first is not None else None
    messages = int(dict(fewest.parameters)["messages"]) if fewest is not None else None
    return Row(first, sum(not seen.holds for seen in broken), fixed, messages)


def _table(seeds: int, jobs: int) -> int:
    titles = ("issue", "what must hold", f"first of {seeds} seeds that breaks it", "broken in", "fewest messages",
              "fixed: broken in")  # fmt: skip
    print(f"| {' | '.join(titles)} |\n{'|---' * len(titles)}|")
    ended = HELD
    each = min(seeds, COUNTED) + seeds
    with bar("worlds", each * len(EXHIBITS)) as shown:
        for at, one in enumerate(EXHIBITS):

            def told(played: int, before: int = each * at, room: str = one.number) -> None:
                shown.to(before + played, f"room {room}")

            row = row_of(one, seeds, jobs, told)
            with shown.aside():
                print(f"| {' | '.join(row.cells(one, seeds))} |", flush=True)
            if row.first is None or row.fixed_broken:
                ended = BROKE
    if ended != HELD:
        print("mqlab: a bug that does not show, or a fix that does not hold", file=sys.stderr)
    return ended
