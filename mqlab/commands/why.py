"""`mqlab why WORDS`: the answer to a question about RocketMQ, found without a network."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from textwrap import fill

from mqlab.answers import Answer, answers, find
from mqlab.errors import LearnerError

MORE = 3
"""So many other questions are named."""
WIDTH = 100


def main(argv: Sequence[str] | None = None) -> int:
    """Print the best answer and the next questions; 1 where no word of the question is in any page."""
    options = _parser().parse_args(argv)
    if options.list:
        for answer in answers():
            print(f"{answer.name:<28} {answer.question}")
        return 0
    if not options.words:
        raise LearnerError("a question is missing", 'ask in your own words: mqlab why "consumed twice after a restart"')
    found = _named(options.words[0]) if len(options.words) == 1 else []
    found = found or find(" ".join(options.words))
    if not found:
        print("No page is about that. The questions that there are: mqlab why --list", file=sys.stderr)
        return 1
    best, *others = found
    print(best.text if options.page else _in_short(best))
    if options.run:
        run(best)
    if others and not options.page:
        print("Was it something else?")
        for answer in others[:MORE]:
            print(f"  {answer.name:<28} {answer.question}")
    return 0


def run(answer: Answer) -> None:
    """Run the world of an answer; it prints what it shows."""
    names: dict[str, object] = {"__name__": "__main__"}
    for number, cell in enumerate(answer.cells, 1):
        exec(compile(cell.code, f"<{answer.name}, cell {number}>", "exec"), names)  # noqa: S102  # the page's own code


def _named(name: str) -> list[Answer]:
    return [answer for answer in answers() if answer.name == name]


def _in_short(answer: Answer) -> str:
    more = f"mqlab why {answer.name} --page   the whole page: why it is so, what to do, and where it stands"
    shown = f"mqlab why {answer.name} --run    the world in which it happens"
    return f"{answer.question}\n\n{fill(answer.short, WIDTH)}\n\n{more}\n{shown}\n"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mqlab why", description=__doc__)
    parser.add_argument("words", nargs="*", help="the question, in English or Chinese; or the name of a page")
    parser.add_argument("--page", action="store_true", help="print the whole page")
    parser.add_argument("--run", action="store_true", help="run the world of the page")
    parser.add_argument("--list", action="store_true", help="print all questions")
    return parser
