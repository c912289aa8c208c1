"""A corpus: what many worlds have shown, on the disk, so that a long exploration can be ended and goes on later.

A corpus is a directory with one file, a line of JSON for each world behind a line that says of what it is. A line
names what its world has shown first of all (`new`), and what it has shown as the second one (`again`): from these two
the curve of what was new and the chance of more can be told, and a corpus of 100,000 worlds has some 20 MB.
"""

from __future__ import annotations

import heapq
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from mqlab.errors import LearnerError
from mqlab.explore.many_seeds import Result

FORMAT = 1
FILE = "worlds.jsonl"


class Header(NamedTuple):
    """Of what a corpus is: worlds of one scenario with its parameters and faults, played by one state of mqlab.

    `code` is the fingerprint of the sources, `faults` a schedule, "" for none, or None where each seed draws its own.
    `rules` are those that have judged, in the order of the counts in a line.
    """

    mqlab: str
    code: str
    scenario: str
    parameters: dict[str, Any]
    faults: str | None
    rules: tuple[str, ...]

    @property
    def label(self) -> str:
        """The scenario with what was given to it, as in "push-clustering messages=5, faults: none"."""
        parameters = "".join(f" {name}={value}" for name, value in self.parameters.items())
        return f"{self.scenario}{parameters}" + ("" if self.faults is None else f", faults: {self.faults or 'none'}")


class Failure(NamedTuple):
    """A seed that broke a rule: which one, why, and the command that plays it again with the shortest plan."""

    rule: str
    reason: str
    command: str


class World(NamedTuple):
    """One line: what one seed came to, with the label of its corpus."""

    label: str
    seed: int
    new: tuple[str, ...]
    again: tuple[str, ...]
    judged: dict[str, int]
    excused: dict[str, int]
    load_ended: bool
    failure: Failure | None


class Corpus:
    """A corpus that is open to be added to; `seeds` are those that it has, `torn` says that a last line was cut off.

    Each world is written at once, so whoever ends the process loses those that were under way and no others. Raises
    LearnerError when the directory has a corpus of something else, when another process adds to it, when it is damaged,
    and when it cannot be written.
    """

    def __init__(self, place: Path, header: Header) -> None:
        self.path = place / FILE
        self.seeds: set[int] = set()
        self.torn = False
        self._seen: dict[str, bool] = {}
        """All that was seen; of what more than one world has shown, True."""
        self._header = header
        try:
            place.mkdir(parents=True, exist_ok=True)
            if not self.path.exists():
                _make(self.path, header)
            self._file = os.open(self.path, os.O_RDWR | os.O_APPEND)
        except OSError as error:
            raise self._refused(error) from None
        try:
            self._begin(place, header)
        except BaseException:
            self.close()
            raise

    def _begin(self, place: Path, header: Header) -> None:
        self._lock()
        _check(place, read_header(place), header)
        for world in worlds(place):
            self.seeds.add(world.seed)
            self._seen |= dict.fromkeys(world.new, False) | dict.fromkeys(world.again, True)
        self._length = _whole_length(self.path)
        self.torn = self._length < self.path.stat().st_size
        os.ftruncate(self._file, self._length)

    def add(self, result: Result, failure: Failure | None = None) -> World:
        """Write down what a seed came to. LearnerError, with all that was written before kept, if that cannot be."""
        outcome = result.outcome
        new = sorted(name for name in result.seen if name not in self._seen)
        again = sorted(name for name in result.seen if self._seen.get(name) is False)
        line: dict[str, Any] = {"seed": outcome.seed}
        judged = [outcome.judged.get(rule, 0) for rule in self._header.rules]
        parts = {"new": new, "again": again, "judged": judged, "excused": outcome.excused, "failure": failure}
        line |= {name: part for name, part in parts.items() if part}
        line |= {} if outcome.load_ended else {"load_ended": False}
        self._write(json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")
        self._seen |= dict.fromkeys(new, False) | dict.fromkeys(again, True)
        world = _world(line, self._header)
        self.seeds.add(world.seed)
        return world

    def close(self) -> None:
        """Let others add to it."""
        os.close(self._file)

    def __enter__(self) -> Corpus:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, line: bytes) -> None:
        """Write a whole line, or none."""
        left = memoryview(line)
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file, self._length)
            raise self._refused(error) from None
        self._length += len(line)

    def _refused(self, error: OSError) -> LearnerError:
        kept = f"; the {len(self.seeds):,} worlds in it are kept" if self.seeds else ""
        return LearnerError(
            f"the corpus {self.path} cannot be written: {error.strerror}{kept}",
            "make room or give another directory, then start the same command again: it goes on where it stopped",
        )

    def _lock(self) -> None:
        """See to it that nobody else adds lines meanwhile, where the system can tell."""
        with suppress(ImportError):
            import fcntl

            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LearnerError(
                    f"another process adds to the corpus {self.path}", "wait for it, or give another directory"
                ) from None


def read_header(place: Path) -> Header:
    """Of what the corpus in a directory is. LearnerError if there is none, or one that this mqlab cannot read."""
    path = place / FILE
    try:
        with path.open("rb") as file:
            header = json.loads(file.readline())
    except FileNotFoundError:
        hint = "make one: mqlab explore drawn --seeds 1000 --corpus DIRECTORY"
        raise LearnerError(f"there is no corpus in {place}", hint) from None
    except OSError as error:
        raise LearnerError(f"{path} cannot be read: {error.strerror}", "give the directory of a corpus") from None
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.pop("corpus", None) != FORMAT or header.keys() != set(Header._fields):
        raise LearnerError(f"{path} is no corpus that this mqlab can read", "give another directory")
    return Header(**{**header, "rules": tuple(header["rules"])})


def worlds(place: Path) -> Iterator[World]:
    """The worlds of a corpus in the order in which they were played, without a last line that was torn.

    LearnerError, with the number of the line, if another one is damaged.
    """
    header = read_header(place)
    path = place / FILE
    with path.open("rb") as file:
        file.readline()
        for number, line in enumerate(file, 2):
            if not line.endswith(b"\n"):
                return
            try:
                yield _world(json.loads(line), header)
            except (ValueError, TypeError, KeyError):
                hint = f"keep what is in front of it: head -n {number - 1} {path} > kept, and put that in its place"
                raise LearnerError(f"line {number} of the corpus {path} is damaged", hint) from None


def together(places: Sequence[Path]) -> Iterator[World]:
    """The worlds of several corpora, mixed evenly: as if each had been played a bit at a time, and none before another.

    What comes last says what to expect of the next worlds, so it must not be those of one corpus alone.
    """
    parts = [_spread(place) for place in places]
    return (world for _, world in heapq.merge(*parts, key=itemgetter(0)))


def _spread(place: Path) -> Iterator[tuple[float, World]]:
    """Each world with the part of its corpus that lies in front of it."""
    with (place / FILE).open("rb") as file:
        count = sum(1 for _ in file)
    yield from ((number / count, world) for number, world in enumerate(worlds(place)))


def _world(line: dict[str, Any], header: Header) -> World:
    failure = line.get("failure")
    return World(
        header.label,
        line["seed"],
        tuple(line.get("new", ())),
        tuple(line.get("again", ())),
        dict(zip(header.rules, line["judged"], strict=True)),
        line.get("excused", {}),
        line.get("load_ended", True),
        Failure(*failure) if failure else None,
    )


def _make(path: Path, header: Header) -> None:
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps({"corpus": FORMAT, **header._asdict()}) + "\n", encoding="utf-8")
    unfinished.replace(path)


def _check(place: Path, found: Header, wanted: Header) -> None:
    """LearnerError unless a corpus is of what shall be added to it."""
    for name in ("scenario", "parameters", "faults", "mqlab", "code", "rules"):
        there, here = getattr(found, name), getattr(wanted, name)
        if there != here:
            raise LearnerError(f"the corpus in {place} is of {_OTHERS[name].format(there, here)}", _OTHER_HINT)


_OTHERS = {
    "scenario": "the scenario {}, not of {}",
    "parameters": "the parameters {}, not of {}",
    "faults": "the faults {!r}, not of {!r} (None: drawn)",
    "mqlab": "mqlab {}, and this is mqlab {}",
    "code": "another state of mqlab's sources, or another Python",
    "rules": "other rules",
}
_OTHER_HINT = "give another directory for these worlds; mqlab corpus still tells of that one"


def _whole_length(path: Path) -> int:
    """The bytes up to the end of the last whole line."""
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        while end:
            begin = max(0, end - 65_536)
            file.seek(begin)
            place = file.read(end - begin).rfind(b"\n")
            if place >= 0:
                return begin + place + 1
            end = begin
    return 0
