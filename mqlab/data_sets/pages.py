"""The pages of data sets: what is in each, how it was made, what is odd about it, its licence and its checksums.

`mqlab dataset --pages` writes them as datasets/NAME.md, from the recipes and from the samples in datasets/samples.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from mqlab import scenarios
from mqlab.data_sets.recipe import LATE, LOST, TWICE, Recipe, file_name, read_card, recipes
from mqlab.trace.catalogue import about
from mqlab.trace.record import KIND
from mqlab.trace.recorded import read_parquet

SAMPLE, SAMPLES = "sample", "samples"
KINDS = 12
"""So many kinds of events a page counts, the most frequent ones."""

SEALS = {
    LOST: "messages that a producer was told are stored and that their group will never be done with",
    TWICE: "messages that a group was done with more than once",
    LATE: "messages that a group was first done with after a later one of their queue",
}


def page(recipe: Recipe, directory: Path) -> str:
    """The page of a data set whose sample lies below this directory."""
    sample = directory / SAMPLES / recipe.name
    card = read_card(recipe, SAMPLE, sample)
    kinds: Counter[str] = Counter()
    for seed in recipe.seeds(SAMPLE):
        kinds.update(row[KIND] for row in read_parquet(sample / file_name(seed)))
    given = ", ".join(f"`{name}={value}`" for name, value in recipe.parameters.items()) or "none"
    faults = f"one to four of {', '.join(recipe.faults)}, drawn from the seed" if recipe.faults else "none"
    lines = [
        f"# {recipe.title}",
        "",
        recipe.question,
        "",
        "This page is written by `mqlab dataset --pages`.",
        "",
        "## How it was made",
        "",
        f"- Scenario: `{recipe.scenario}`. {scenarios.get(recipe.scenario).summary}",
        f"- Parameters: {given}",
        f"- Faults: {faults}",
        f"- Behind its time each world goes on for {recipe.settle_seconds:g} s.",
        f"- One world for each seed, from {recipe.first_seed} on; one file for each world.",
        "",
        "## Sizes",
        "",
        "| size | worlds | checksum |",
        "|---|---|---|",
        *(f"| {name} | {size.worlds:,} | {size.checksum or 'in its card'} |" for name, size in recipe.sizes.items()),
        "",
        f"    mqlab dataset {recipe.name} small",
        f"    mqlab dataset {recipe.name} small --verify",
        "",
        f"`{SAMPLES}/{recipe.name}` in a clone is the size `{SAMPLE}`: {card['events']:,} events of {card['worlds']} "
        "worlds. The checksum is over the trace hashes of the worlds, so it is of the events and not of the files' "
        "bytes.",
        "",
        "## What is in it",
        "",
        "The most frequent events of the sample; all columns: [schema.json](schema.json), all kinds: "
        "[events](../docs/events.md).",
        "",
        "| kind | events | what it says |",
        "|---|---|---|",
        *(f"| `{kind}` | {count:,} | {about(kind)} |" for kind, count in kinds.most_common(KINDS)),
        "",
    ]
    if recipe.sealed:
        lines += ["## What is sealed", "", f"The sample's card has {len(card['sealed'])} hashes, of:", ""]
        lines += [*(f"- **{what}**: {SEALS[what]};" for what in recipe.sealed), ""]
        lines += ["`python -m mqlab_spark audit DIRECTORY` finds them; `mqlab.data_sets.judge` compares answers.", ""]
    if recipe.oddities:
        lines += ["## Oddities", "", *(f"- {each}" for each in recipe.oddities), ""]
    return "\n".join([*lines, "## Licence", "", f"{card['licence']}.", ""])


def write_pages(directory: Path) -> list[Path]:
    """Write the page of each recipe in a directory beside it; the files."""
    written = []
    for name, recipe in recipes(directory).items():
        target = directory / f"{name}.md"
        target.write_text(page(recipe, directory), encoding="utf-8")
        written.append(target)
    return written
