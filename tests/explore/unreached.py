"""Which lines drawn worlds never reach: `python -m tests.explore.unreached [--seeds 2000] [--write] [--list]`.

Plays drawn worlds one after the other while coverage.py looks on, in parts of 50 seeds. What a part has reached is a
file below `--data`; a part that is there is not played again, so a long run can be ended and goes on. Parts of other
sources are left aside: their lines are not those of today.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatch
from hashlib import blake2b
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from coverage import Coverage

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "checks.md"
BEGIN, END = "<!-- unreached -->\n", "<!-- end of unreached -->\n"
PLACES = ("broker", "client", "proxy", "store", "namesrv")
PART = 50
LEFT_OUT = ("if TYPE_CHECKING:", "raise NotImplementedError", "raise AssertionError")
"""What no world can reach: imports for types, and what says that it is never reached."""
WHY: dict[str, tuple[str, ...]] = {
    "slaves: refusals, ends, what rarely happens to a pair": ("broker/ha/*", "*/slave_*", "namesrv/*min_broker*"),
    "Pop: acks of many, the buffer of the key-value engine, refusals, errors": (
        "broker/pop/*", "broker/*pop*", "client/consumer/pop/*",
    ),
    "conditions: what no drawn condition says, and its mistakes": ("broker/filter/*", "store/*bit_map*", "store/*ext*"),
    "requests and replies: refusals and errors": (
        "*repl*", "*request_future*", "*request_response*", "client/producer/requests.py",
    ),
    "transactions: refusals, what ends badly": (
        "proxy/*transaction*", "client/v5/transaction.py", "broker/transaction/*",
    ),
    "5.x clients and proxies otherwise: refusals, errors, what a client is told": ("client/v5/*", "proxy/*"),
    "cold data: limits that move, ends": ("broker/coldctr/*",),
    "timers: messages that roll, refusals of recalls": ("broker/*recall*", "store/timer/*", "broker/*timer*"),
    "requests of administrators: what no drawn one asks, refusals": (
        "broker/admin_*", "broker/broker2client.py", "client/consumer/running_info.py", "client/broker_requests.py",
        "client/consumer/push/consume_directly.py", "broker/topic_attributes.py",
    ),
    "name servers: topics that are registered, refusals": ("namesrv/*",),
    "the store: batch queues, deletion of files, what a store's files are asked": ("store/*",),
    "clients of 4.x: calls that no load makes, errors that no fault brings about": ("client/*",),
    "the broker otherwise: a clean end, refusals, errors": ("broker/*",),
}  # fmt: skip
"""Why lines are not reached, with the files below mqlab/ of which that is said; of several reasons the first counts."""

Reached = dict[str, dict[int, int]]
"""File -> line -> the first seed that reached it."""


class Gap(NamedTuple):
    """Lines of one function that follow each other, none of which was reached."""

    file: str
    first: int
    last: int
    lines: int
    function: str


def state_of_code() -> str:
    """A digest of the sources that say which lines there are and which worlds are drawn."""
    digest = blake2b(digest_size=8)
    for place in (*PLACES, "scenarios/drawing"):
        for path in sorted((ROOT / "mqlab" / place).rglob("*.py")):
            digest.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return digest.hexdigest()


def play_part(first_seed: int, seeds: int = PART) -> Reached:
    """What the worlds of so many seeds reach."""
    looking = Coverage(
        data_file=None, config_file=False, include=[f"{ROOT}/mqlab/{place}/*" for place in PLACES], context="",
    )  # fmt: skip
    looking.start()
    # Not at the top: lines that run when a module is imported count as reached, if a world imports it.
    from mqlab.explore import Trial

    for seed in range(first_seed, first_seed + seeds):
        looking.switch_context(str(seed))
        Trial("drawn", seed)
    looking.stop()
    data = looking.get_data()
    return {
        str(Path(file).relative_to(ROOT)): {
            line: min(int(seed or first_seed) for seed in seeds)
            for line, seeds in data.contexts_by_lineno(file).items()
        }
        for file in sorted(data.measured_files())
    }


def play_apart(first_seed: int, seeds: int = PART) -> Reached:
    """The same in a young process: in one in which much code has run Python 3.11 may go round for ever once lines are
    traced.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as young:
        return young.submit(play_part, first_seed, seeds).result()


def kept_part(place: Path, first_seed: int) -> Reached:
    """What a part has reached: as it was kept, or played now and kept."""
    kept = place / f"{first_seed:06}.json"
    if not kept.exists():
        place.mkdir(parents=True, exist_ok=True)
        unfinished = kept.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(play_apart(first_seed)), encoding="utf-8")
        unfinished.replace(kept)
    read = json.loads(kept.read_text(encoding="utf-8"))
    return {file: {int(line): seed for line, seed in lines.items()} for file, lines in read.items()}


def merged(parts: Iterator[Reached]) -> Reached:
    """The first seed of all parts for each line."""
    whole: Reached = defaultdict(dict)
    for part in parts:
        for file, lines in part.items():
            for line, seed in lines.items():
                whole[file][line] = min(seed, whole[file].get(line, seed))
    return whole


class Missing(NamedTuple):
    """Of each file its lines with code, and those of them that no world has reached."""

    lines: dict[str, list[int]]
    missing: dict[str, list[int]]


def missing_lines(reached: Mapping[str, Mapping[int, int]]) -> Missing:
    """What was not reached of the five directories."""
    looking = Coverage(data_file=None, config_file=False)
    for words in LEFT_OUT:
        looking.exclude(words)
    files = sorted(str(path.relative_to(ROOT)) for place in PLACES for path in (ROOT / "mqlab" / place).rglob("*.py"))
    looking.get_data().add_lines({str(ROOT / file): reached.get(file, {}) for file in files})
    found = Missing({}, {})
    for file in files:
        _, found.lines[file], _, found.missing[file], _ = looking.analysis2(str(ROOT / file))
    return found


def gaps(file: str, lines: list[int], missing: list[int]) -> Iterator[Gap]:
    """The ranges of a file, each within one function."""
    functions = _functions(file)
    ranges: list[tuple[str, list[int]]] = []
    missed = set(missing)
    before = False
    for line in lines:
        if line in missed:
            name = functions.get(line, "the module itself")
            if before and ranges[-1][0] == name:
                ranges[-1][1].append(line)
            else:
                ranges.append((name, [line]))
        before = line in missed
    return (Gap(file, found[0], found[-1], len(found), name) for name, found in ranges)


def _functions(file: str) -> dict[int, str]:
    """Line -> the innermost function that it belongs to, with its class."""
    found: dict[int, str] = {}

    def walk(node: ast.AST, name: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = name
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = f"{name}.{child.name}" if name else child.name
                if not isinstance(child, ast.ClassDef):
                    found.update(dict.fromkeys(range(child.body[0].lineno, (child.end_lineno or 0) + 1), inner))
            walk(child, inner)

    walk(ast.parse((ROOT / file).read_text(encoding="utf-8")), "")
    return found


def table(found: Missing) -> Iterator[str]:
    """A line for each directory, and one for all."""
    yield "| directory | lines | never reached | share |"
    yield "|---|---|---|---|"
    whole = [0, 0]
    for place in PLACES:
        files = [file for file in found.lines if file.startswith(f"mqlab/{place}/")]
        lines, missing = (sum(len(part[file]) for file in files) for part in found)
        whole = [whole[0] + lines, whole[1] + missing]
        yield f"| `mqlab/{place}` | {lines:,} | {missing:,} | {missing / lines:.1%} |"
    yield f"| all | {whole[0]:,} | {whole[1]:,} | {whole[1] / whole[0]:.1%} |"


def why_not(file: str) -> str:
    """Why lines of a file are not reached."""
    below = file.removeprefix("mqlab/")
    return next(why for why, patterns in WHY.items() if any(fnmatch(below, pattern) for pattern in patterns))


def reasons(found: Missing) -> Counter[str]:
    """How many lines are not reached for each reason."""
    counted: Counter[str] = Counter()
    for file, missing in found.missing.items():
        counted[why_not(file)] += len(missing)
    return counted


def reasons_table(found: Missing) -> Iterator[str]:
    """A line for each reason why lines are not reached, those with the most lines first."""
    counted = reasons(found)
    yield "| why | lines | of all that is not reached |"
    yield "|---|---|---|"
    for why, lines in counted.most_common():
        yield f"| {why} | {lines:,} | {lines / max(1, counted.total()):.0%} |"


def listing(found: Missing) -> Iterator[str]:
    """Every range that is not reached, by its reason, its file and its function."""
    for why, count in reasons(found).most_common():
        yield from ("", f"{why} ({count:,} lines)")
        for file, missing in found.missing.items():
            if missing and why_not(file) == why:
                yield f"  {file}: {len(missing):,} of {len(found.lines[file]):,} lines"
                for gap in gaps(file, found.lines[file], missing):
                    where = f"{gap.first}-{gap.last}" if gap.last > gap.first else f"{gap.first}"
                    yield f"    {where:<10} {gap.function}"


def curve(reached: Reached, seeds: int) -> str:
    """How many lines were reached after some worlds, in a sentence."""
    # Of a statement of several lines any may be the one that was seen, so the share of all at the end is the measure.
    firsts = sorted(seed for lines in reached.values() for seed in lines.values())
    steps = [n for n in (1, 10, 100, 1_000) if n < seeds]
    told = (f"{n:,}: {sum(seed < n for seed in firsts) / len(firsts):.1%}" for n in steps)
    return f"Of the lines that {seeds:,} worlds reach, the first worlds reached so many: {', '.join(told)}."


def main(arguments: list[str]) -> int:
    """Play what is not there yet, and print the table of directories, or with `--list` every range."""
    parser = argparse.ArgumentParser(prog="python -m tests.explore.unreached", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2_000, help=f"how many drawn worlds, in parts of {PART}")
    parser.add_argument("--data", type=Path, default=ROOT / "out" / "unreached", help="where the parts are kept")
    parser.add_argument("--write", action="store_true", help="write the table of docs/checks.md anew")
    parser.add_argument("--list", action="store_true", help="print every range, too, by its reason")
    options = parser.parse_args(arguments)
    reached = merged(_told(options.data / state_of_code(), range(0, options.seeds, PART)))
    found = missing_lines(reached)
    lines = [f"{options.seeds:,} drawn worlds:", "", *table(found), "", *reasons_table(found), ""]
    lines.append(curve(reached, options.seeds))
    print("\n".join(lines))
    if options.list:
        print("\n".join(listing(found)))
    if options.write:
        text = PAGE.read_text(encoding="utf-8")
        head, tail = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
        PAGE.write_text(head + "\n".join(lines) + "\n" + tail, encoding="utf-8")
    return 0


def _told(place: Path, firsts: range) -> Iterator[Reached]:
    for first_seed in firsts:
        yield kept_part(place, first_seed)
        print(f"{first_seed + PART:,} worlds", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
