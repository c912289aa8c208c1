"""Data sets: many worlds of one recipe, each recorded in a file of its own, the same wherever they are made.

A recipe is a file `datasets/NAME.toml`: which scenario with which parameters and faults, which seeds for each size, and
what question it is for. What is made has a card with the checksum of all its events; a data set of which it is known
that messages were lost or came twice has a sealed list of them, by which answers can be judged without being told.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab import __version__, scenarios
from mqlab.data_sets.named_worlds import NAME, TRACE_HASH, WorldSpec
from mqlab.errors import LearnerError, MqlabError, ProtocolError
from mqlab.explore.store_contents import StoreContents
from mqlab.progress import counted
from mqlab.protocol.topics import CID_SYS_RMQ_TRANS, RMQ_SYS_TRANS_HALF_TOPIC
from mqlab.trace.digest import TraceDigest
from mqlab.trace.recorded import check_whole, read_parquet
from mqlab.trace.recorder import ParquetRecorder
from mqlab.views.journey import CONSUMED

if TYPE_CHECKING:
    from mqlab.lab import Lab

CARD = "card.json"
RECIPE = ".toml"
LOST, TWICE, LATE = "lost", "twice", "late"
"""What a sealed list may be of: see `hidden`."""


class Size(NamedTuple):
    """So many worlds, one for each seed from the recipe's first on; `checksum` is what they must come to, if known."""

    worlds: int
    checksum: str | None


class Recipe(NamedTuple):
    """How a data set is made, and what for. `faults` are the kinds of faults that are drawn from each seed."""

    name: str
    title: str
    question: str
    scenario: str
    parameters: dict[str, Any]
    faults: tuple[str, ...]
    settle_seconds: float
    sealed: tuple[str, ...]
    oddities: tuple[str, ...]
    sizes: dict[str, Size]
    first_seed: int = 0

    def seeds(self, size: str) -> range:
        """The seeds of its worlds; LearnerError for a size that the recipe does not have."""
        return range(self.first_seed, self.first_seed + _size(self, size).worlds)


class Made(NamedTuple):
    """One world of a data set as it was recorded: its file, its events and their hash, and what it hides, sealed."""

    file: str
    events: int
    trace_hash: str
    sealed: list[str]


Progress = Callable[[int, int, int], None]
"""Told after each world: worlds made, of how many, and events so far."""


# -- recipes ----------------------------------------------------------------------------------------------------------


def recipes(directory: Traversable) -> dict[str, Recipe]:
    """The recipes of a directory, by name; LearnerError for one that cannot be read. None where it is not there."""
    inside = directory.iterdir() if directory.is_dir() else ()
    files = sorted((file for file in inside if file.name.endswith(RECIPE)), key=lambda file: file.name)
    return {file.name.removesuffix(RECIPE): read_recipe(file) for file in files}


def read_recipe(file: Traversable) -> Recipe:
    """The recipe in a file; LearnerError that names what is wrong with it."""
    try:
        told = tomllib.loads(file.read_text(encoding="utf-8"))
        sizes = {name: Size(int(size["worlds"]), size.get("checksum")) for name, size in told["sizes"].items()}
        recipe = Recipe(
            file.name.removesuffix(RECIPE),
            told["title"],
            told["question"],
            told["scenario"],
            dict(told.get("parameters", {})),
            tuple(told.get("faults", ())),
            float(told.get("settle_seconds", 0)),
            _sealed(told.get("sealed", False)),
            tuple(told.get("oddities", ())),
            sizes,
            int(told.get("first_seed", 0)),
        )
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError, AttributeError) as problem:
        raise LearnerError(f"{file} is no recipe: {problem}", "see datasets/README.md for what one must have") from None
    unknown = set(recipe.sealed) - {LOST, TWICE, LATE}
    if unknown:
        raise LearnerError(f"{file}: nothing {min(unknown)!r} can be sealed", f"choose among {LOST}, {TWICE}, {LATE}")
    scenarios.get(recipe.scenario).check(dict(recipe.parameters))
    return recipe


def _sealed(told: bool | list[str]) -> tuple[str, ...]:
    if isinstance(told, bool):
        return (LOST, TWICE) if told else ()
    return tuple(told)


# -- making -----------------------------------------------------------------------------------------------------------


def make(recipe: Recipe, size: str, out: Path, *, jobs: int = 1, progress: Progress | None = None) -> dict[str, Any]:
    """Make a data set in a directory, or go on with one that was interrupted; its card.

    Worlds that are there and whole are kept. LearnerError for a size that the recipe does not have, and when the worlds
    come to another checksum than the recipe says.
    """
    chosen = _size(recipe, size)
    out.mkdir(parents=True, exist_ok=True)
    made: list[Made] = []
    events = 0
    for each in _made(recipe, recipe.seeds(size), out, jobs):
        made.append(each)
        events += each.events
        if progress is not None:
            progress(len(made), chosen.worlds, events)
    card = _card(recipe, size, made)
    if chosen.checksum is not None and card["checksum"] != chosen.checksum:
        raise LearnerError(
            f"{recipe.name} {size} has the checksum {card['checksum']}, and {chosen.checksum} was expected",
            f"is this the mqlab that the recipe is of? It is {__version__}; if it is, a scenario has changed",
        )
    (out / CARD).write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    return card


def read_card(recipe: Recipe, size: str, directory: Path) -> dict[str, Any]:
    """The card of a data set in a directory. LearnerError where there is none."""
    try:
        return dict(json.loads((directory / CARD).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        raise LearnerError(
            f"there is no whole data set in {directory}",
            f"make it: mqlab dataset {recipe.name} {size} --out {directory}",
        ) from None


def verify(recipe: Recipe, size: str, directory: Path) -> int:
    """Read a data set again and compare it with its card; the number of its events. LearnerError if it differs."""
    card = read_card(recipe, size, directory)
    hashes, events = [], 0
    seeds = recipe.seeds(size)
    for seed in counted("worlds", seeds, len(seeds)):
        digest = TraceDigest()
        try:
            for row in read_parquet(directory / file_name(seed)):
                digest(row)
        except (OSError, MqlabError) as problem:
            raise LearnerError(f"{directory / file_name(seed)}: {problem}", "remove it and make it again") from None
        hashes.append(digest.hexdigest())
        events += digest.count
    if checksum(hashes) != card["checksum"]:
        raise LearnerError(f"{directory} is not what its card says", "remove it and make it again")
    return events


def file_name(seed: int) -> str:
    """The file of one world."""
    return f"seed-{seed:06}.parquet"


def checksum(trace_hashes: Iterable[str]) -> str:
    """The checksum of worlds, in the order of their seeds."""
    return blake2b("\n".join(trace_hashes).encode(), digest_size=16).hexdigest()


def _size(recipe: Recipe, size: str) -> Size:
    if size not in recipe.sizes:
        raise LearnerError(f"{recipe.name} has no size {size!r}", f"it has: {', '.join(recipe.sizes)}")
    return recipe.sizes[size]


def _made(recipe: Recipe, seeds: range, out: Path, jobs: int) -> Iterator[Made]:
    tasks = [(recipe, seed, out) for seed in seeds]
    if jobs <= 1 or len(tasks) < jobs:
        yield from map(_make_world, tasks)
        return
    import multiprocessing

    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(_make_world, tasks)


def _make_world(task: tuple[Recipe, int, Path]) -> Made:
    recipe, seed, out = task
    file = out / file_name(seed)
    known = _known(recipe, seed, file)
    if known is not None:
        return known
    spec = world(recipe, seed)
    lab = spec.play()
    seals = seal(recipe.name, seed, (each for each in hidden(lab) if each[0] in recipe.sealed)) if recipe.sealed else []
    about = {
        **spec.header(lab), "data_set": recipe.name, "events": len(lab.history), "seals": recipe.sealed, "sealed": seals
    }  # fmt: skip
    made = Made(file.name, about["events"], about[TRACE_HASH], seals)
    with ParquetRecorder(file, about) as recorder:
        for row in lab.history.rows():
            recorder(row)
    return made


def _known(recipe: Recipe, seed: int, file: Path) -> Made | None:
    """The world in a file that is there already; None if it is not whole, or of another recipe."""
    if not file.exists():
        return None
    try:
        about = check_whole(file)["metadata"]
    except (OSError, ProtocolError):
        return None
    wanted = {"data_set": recipe.name, NAME: world(recipe, seed).name, "seals": list(recipe.sealed)}
    if any(about.get(key) != value for key, value in wanted.items()):
        return None
    return Made(file.name, about["events"], about[TRACE_HASH], about["sealed"])


def world(recipe: Recipe, seed: int) -> WorldSpec:
    """Which world a data set has for a seed."""
    return WorldSpec(recipe.scenario, seed, recipe.parameters, None, recipe.faults, recipe.settle_seconds)


def _card(recipe: Recipe, size: str, made: list[Made]) -> dict[str, Any]:
    return {
        "name": recipe.name,
        "title": recipe.title,
        "question": recipe.question,
        "size": size,
        "scenario": recipe.scenario,
        "parameters": recipe.parameters,
        "faults": list(recipe.faults),
        "settle_seconds": recipe.settle_seconds,
        "seeds": f"{recipe.first_seed}-{recipe.first_seed + len(made) - 1}",
        "worlds": len(made),
        "events": sum(each.events for each in made),
        "checksum": checksum(each.trace_hash for each in made),
        "seals": list(recipe.sealed),
        "sealed": sorted(text for each in made for text in each.sealed),
        "oddities": list(recipe.oddities),
        "made_by": f"mqlab {__version__}",
        "licence": "CC0-1.0: nobody's data, made by a program",
    }


# -- what a world hides -----------------------------------------------------------------------------------------------


def hidden(lab: Lab) -> list[tuple[str, str, str]]:
    """What went wrong in a world: (what, group, unique key) of each message that was lost, consumed twice, or late.

    Lost is what a producer was told is stored, what the group was never done with, and what will not come any more: no
    broker has it, or the group's offset was committed behind it; not what was rolled back. Of groups that want all of a
    topic, that is: tags and conditions are not looked at. Late is what the group was first done with after a later one
    of the queue in which the message was first stored.
    """
    acknowledged = {key: r.topic for r in lab.history.find("SendSucceeded") for key in r.msg_id.split(",")}
    ended = [record for record in lab.history.find("TransactionEnded") if record.code == 0]
    committed = {record.unique_key for record in ended if record.local_state == "COMMIT_MESSAGE"}
    for record in ended:
        if record.local_state == "ROLLBACK_MESSAGE" and record.unique_key not in committed:
            acknowledged.pop(record.unique_key, None)
    done: Counter[tuple[str, str]] = Counter(
        (record.group, record.msg_id) for record in lab.history.find("ConsumeFinished") if record.status in CONSUMED
    )
    groups = {record.group for record in lab.history.find("ConsumeStarted")}
    wants = {(record.group, record.topic) for record in lab.history.find("SubscriptionChanged") if record.expression}
    offsets = {broker.name: broker.running().consumer_offset_manager for broker in lab.masters}
    contents = StoreContents(lab)
    to_come: set[tuple[str, str]] = set()
    for found in contents.found.values():
        place = found.place
        is_half = place.topic == RMQ_SYS_TRANS_HALF_TOPIC
        for group in groups:
            # A half message comes when its broker asks about it, and is told that it is to be committed.
            reader = CID_SYS_RMQ_TRANS if is_half else group
            if found.queue_offset >= offsets[place.broker].query_offset(reader, place.topic, place.queue_id):
                to_come.add((group, found.unique_key))
    # What a master has lost and its slave has can be had from there.
    kept = {found.unique_key for found in contents.found.values()}
    copies = {copy.unique_key for same in contents.copies.values() for copy in same} - kept
    to_come.update((group, key) for group in groups for key in copies)
    lost = [(LOST, group, key) for group in groups for key, topic in acknowledged.items() if (group, topic) in wants
            and not done[group, key] and (group, key) not in to_come]  # fmt: skip
    twice = [(TWICE, group, key) for (group, key), times in done.items() if times > 1 and key in acknowledged]
    late = [(LATE, group, key) for group, key in _overtaken(lab)]
    return sorted(lost + twice + late)


def _overtaken(lab: Lab) -> Iterator[tuple[str, str]]:
    """(group, unique key) of each message that a group was first done with after a later one of its queue."""
    places: dict[str, tuple[tuple[str, str, int], int]] = {}
    attempted: dict[str, str] = {}
    furthest: dict[tuple[object, ...], int] = {}
    seen: set[tuple[str, str]] = set()
    at_once: list[tuple[tuple[object, ...], int]] = []
    now_us = -1
    for record in lab.history:
        if record.ts_us != now_us:
            # What ends in the same microsecond has no order that anybody could see.
            for queue, offset in at_once:
                furthest[queue] = max(furthest.get(queue, -1), offset)
            at_once, now_us = [], record.ts_us
        if record.kind == "SendAttempted":
            attempted.update(dict.fromkeys(record.msg_id.split(","), record.topic))
        elif record.kind == "MessageStored" and attempted.get(record.unique_key) == record.topic:
            places.setdefault(
                record.unique_key, ((record.node, record.topic, record.queue_id), record.queue_offset)
            )  # fmt: skip
        elif record.kind == "ConsumeFinished" and record.status in CONSUMED and record.msg_id in places:
            whose = (record.group, record.msg_id)
            if whose not in seen:
                seen.add(whose)
                place, offset = places[record.msg_id]
                queue = (record.group, *place)
                if furthest.get(queue, -1) > offset:
                    yield whose
                at_once.append((queue, offset))


def seal(name: str, seed: int | str, found: Iterable[tuple[str, str, str]]) -> list[str]:
    """What an answer is compared with: a hash of each thing that was found, which tells nobody what it is."""
    return sorted(
        blake2b("|".join((name, str(seed), *each)).encode(), digest_size=12).hexdigest() for each in found
    )  # fmt: skip


def judge(card: dict[str, Any], answers: Iterable[tuple[int, str, str, str]]) -> dict[str, int]:
    """How many of these answers (seed, what, group, unique key) are right and wrong, and how many are missing."""
    sealed = set(card["sealed"])
    given = {seal(card["name"], seed, [tuple(rest)])[0] for seed, *rest in answers}  # type: ignore[list-item]
    return {"right": len(given & sealed), "wrong": len(given - sealed), "missing": len(sealed - given)}
