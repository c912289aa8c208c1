"""Judges for lab 22: episodes of a queue, a limit chosen from a sweep, the least limit, and episodes of many worlds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from mqlab.check import Wrong, draws_for, lab_check
from mqlab.data_sets.named_worlds import WorldSpec
from mqlab.lab import Lab
from mqlab.labs.many_worlds import WORLDS_IN_ONE_JOB, Answer, ManyWorlds
from mqlab.trace.history import History

COLUMNS = ("world", "node", "queue_id", "began_us", "ended_us", "refusals", "most_cached")
GAP_US = 500_000
LOOK_MS = 50
LINES_SHOWN = 12

Queue = tuple[str, int]
Row = tuple[int, int, int]


class Episode(NamedTuple):
    """One episode of a queue, times in us."""

    began_us: int
    ended_us: int
    refusals: int
    most_cached: int

    def __str__(self) -> str:
        return f"({self.began_us} to {self.ended_us} us, {self.refusals} refusals, {self.most_cached} held at most)"


@lab_check("22/episodes-of", points=1)
def episodes_of(answer: Callable[[list[int], int], list[Row]], *, seed: int) -> Wrong | None:
    """Refusals every 50 ms with pauses between them, some of them just as long as the gap; and no refusal at all."""
    draw = draws_for(seed)
    gap = draw.one_of("gap", [200, 500, 1_000])
    for case, count in enumerate([draw.between("count", 2, 30), 1, 0]):
        times: list[int] = []
        for n in range(count):
            pause = draw.one_of(f"pause {case} {n}", [50, 50, 50, gap - 1, gap, gap + 1, 3 * gap])
            times.append((times[-1] if times else 0) + pause)
        begins = [n for n in range(count) if n == 0 or times[n] - times[n - 1] > gap]
        ends = [*begins[1:], count]
        want = [(times[a], times[b - 1], b - a) for a, b in zip(begins, ends, strict=False)]
        got = answer(list(times), gap)
        if got != want:
            told = f"with a gap of {gap} ms the episodes are {want}, and yours says {got!r}"
            return Wrong(told, f"refused at {', '.join(map(str, times)) or 'no time'}")
    return None


@lab_check("22/smallest-good-limit", points=1)
def smallest_good_limit(answer: Callable[[list[Row], int], int], *, seed: int) -> Wrong | None:
    """Sweeps in any order, in which the fastest limit is not always the largest."""
    draw = draws_for(seed)
    limits = [1, 2, 4, 8, 16, 32, 64]
    best_ms = draw.between("best", 1_000, 5_000)
    rows = [(limit, best_ms * (100 + draw.between(f"slower {limit}", 0, 40)) // 100, limit + 2) for limit in limits]
    percent = draw.between("percent", 1, 20)
    fastest = sorted(took for _, took, _ in rows)[0]
    want = next(limit for limit, took, _ in rows if (took - fastest) * 100 <= fastest * percent)
    got = answer(draw.shuffled("order", rows), percent)
    if got == want:
        return None
    story = "\n".join(
        f"limit {limit:>2}: {took} ms, {100 * (took - fastest) / fastest:.2f} % slower" for limit, took, _ in rows
    )
    return Wrong(f"at most {percent} % slower is the limit {want}, and yours says {got!r}", story)


@lab_check("22/least-limit", points=1)
def least_limit(answer: Callable[[int], int], *, seed: int) -> Wrong | None:
    """Packers of all speeds, also such that take exactly a part of 50 ms, and such that take longer."""
    draw = draws_for(seed)
    for ms_each in (draw.between("ms", 1, 20), 10, 25, draw.between("slow", 26, 400), 50):
        want = next(limit for limit in range(1, 100) if (limit + 1) * ms_each >= LOOK_MS)
        got = answer(ms_each)
        if got != want:
            work = "\n".join(f"limit {limit}: work for {(limit + 1) * ms_each} ms" for limit in range(1, want + 1))
            return Wrong(f"with {ms_each} ms each the least limit is {want}, and yours says {got!r}", work)
    return None


def _play(seed: int) -> Lab:
    """A consumer that holds too much: of messages, bytes or offsets, in one queue or in three; or in waves."""
    draw = draws_for(seed)
    if seed % 2:
        spec = WorldSpec("slow-listener", seed, {"queues": draw.between("queues", 1, 3), "batch": 8}, 25)
    else:
        waves = {"queues": 2, "wave": draw.between("wave", 10, 24), "calm_ms": draw.between("calm", 1_000, 4_000)}
        spec = WorldSpec("demo-slow-consumer", seed, {**waves, "packing_ms": 120, "messages": 60}, 20)
    return spec.play()


_worlds = ManyWorlds(_play, lambda lab: _episodes(lab.history))


@lab_check("22/flow-episodes", points=3, together=WORLDS_IN_ONE_JOB)
def flow_episodes(answer: Answer, *, seed: int) -> Wrong | None:
    """Fifty hidden worlds in which consumers hold too much: each episode has its row, and no other has."""
    rows = _worlds.rows(answer, seed, COLUMNS)
    if isinstance(rows, Wrong):
        return rows
    wanted = _worlds.truth(seed)
    found: dict[Queue, list[Episode]] = {}
    for row in rows:
        episode = Episode(row.began_us, row.ended_us, row.refusals, row.most_cached)
        found.setdefault((row.node, row.queue_id), []).append(episode)
    for queue in sorted(wanted.keys() | found.keys()):
        want, mine = wanted.get(queue, []), sorted(found.get(queue, []))
        if want == mine:
            continue
        told = f"queue {queue[1]} of {queue[0]} has {len(want)} episodes, and yours has {len(mine)}"
        if len(want) == len(mine):
            one, other = next((one, other) for one, other in zip(want, mine, strict=True) if one != other)
            told = f"queue {queue[1]} of {queue[0]}: {one} is wanted, and yours says {other}"
        story = "\n".join(f"wanted: {episode}" for episode in want[:LINES_SHOWN])
        return replace(Wrong(told, story), world=partial(_play, seed))
    return None


def _episodes(history: History) -> dict[Queue, list[Episode]]:
    """The episodes of each queue, read from the refusals one by one."""
    found: dict[Queue, list[Episode]] = {}
    for event in history.find("FlowControlled"):
        mine = found.setdefault((event.node, event.queue_id), [])
        if mine and event.ts_us - mine[-1].ended_us <= GAP_US:
            last = mine.pop()
            mine.append(Episode(last.began_us, event.ts_us, last.refusals + 1, max(last.most_cached, event.cached)))
        else:
            mine.append(Episode(event.ts_us, event.ts_us, 1, event.cached))
    return found
