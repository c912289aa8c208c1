"""`mqlab dataset NAME SIZE`: makes a data set of datasets/NAME.toml, goes on with one, or verifies one."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from mqlab import material
from mqlab.commands.numbers import whole
from mqlab.data_sets import CARD, Recipe, make, recipes, verify
from mqlab.data_sets.pages import write_pages
from mqlab.errors import LearnerError
from mqlab.material import INSTALL
from mqlab.progress import bar


def main(argv: Sequence[str] | None = None) -> int:
    """The command; the exit code."""
    options = _parser().parse_args(argv)
    known = recipes(options.recipes)
    if not known:
        raise LearnerError(f"there are no recipes in {options.recipes}", INSTALL)
    if options.pages:
        print(*(f"wrote {file}" for file in write_pages(options.recipes)), sep="\n")
        return 0
    if options.name is None:
        _list(known)
        return 0
    if options.name not in known:
        raise LearnerError(f"there is no data set {options.name!r}", f"there are: {', '.join(known)}")
    recipe = known[options.name]
    out = Path(options.out or Path("out") / "datasets" / f"{recipe.name}-{options.size}")
    if options.verify:
        print(f"{verify(recipe, options.size, out):,} events in {out} are what {CARD} says")
        return 0
    with bar("worlds", 0) as shown:
        card = make(
            recipe, options.size, out, jobs=options.jobs,
            progress=lambda made, worlds, events: shown.to(made, f"{events:,} events", total=worlds),
        )  # fmt: skip
    print(f"{card['events']:,} events of {card['worlds']:,} worlds in {out}, checksum {card['checksum']}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mqlab dataset", description=__doc__)
    parser.add_argument("name", nargs="?", help="which data set (default: list them)")
    parser.add_argument("size", nargs="?", default="small", help="small (the default), 1M, 10M or 100M: events, about")
    parser.add_argument("--out", metavar="DIR", help="where to (default: out/datasets/NAME-SIZE)")
    where = "where the recipes are (default: datasets/ of the clone here, else what mqlab was installed with)"
    parser.add_argument("--recipes", type=Path, metavar="DIR", default=material.recipes(), help=where)
    parser.add_argument(
        "--jobs", "-j", type=whole(1, 1_000), default=os.cpu_count() or 1, metavar="N", help="processes to play in"
    )
    parser.add_argument("--verify", action="store_true", help="read what is there again and compare it with its card")
    parser.add_argument("--pages", action="store_true", help="write the page of every data set, from its sample")
    return parser


def _list(known: dict[str, Recipe]) -> None:
    for recipe in known.values():
        print(f"{recipe.name}: {recipe.title}\n    {recipe.question}\n    sizes: {', '.join(recipe.sizes)}")
