"""Plausible wrong solutions of lab 24_watching, each of which its check catches."""

from __future__ import annotations

Times = list[list[int]]
Marks = list[tuple[int, str, str]]
Rows = list[tuple[str, int, int]]


def with_this_batch(batches: Times, late_ms: int) -> list[int]:
    """Lets the newest event of a batch count for this batch already."""
    newest, marks = 0, []
    for batch in batches:
        newest = max(newest, *batch)
        marks.append(max(0, newest - late_ms))
    return marks


def of_the_batch_before(batches: Times, late_ms: int) -> list[int]:
    """Looks at the batch before alone, so that the watermark goes back when that had old events only."""
    return [0, *[max(0, max(batch) - late_ms) for batch in batches[:-1]]]


def below_zero(batches: Times, late_ms: int) -> list[int]:
    """Begins before the world did."""
    newest, marks = 0, []
    for batch in batches:
        marks.append(newest - late_ms)
        newest = max(newest, *batch)
    return marks


def _watermarks(batches: Times, late_ms: int) -> list[int]:
    newest, marks = 0, []
    for batch in batches:
        marks.append(max(0, newest - late_ms))
        newest = max(newest, *batch)
    return marks


def by_its_own_watermark(batches: Times, late_ms: int) -> list[int]:
    """Judges a batch by its own watermark: Spark is one batch more patient."""
    marks = _watermarks(batches, late_ms)
    return [time for mark, batch in zip(marks, batches, strict=True) for time in batch if mark and time <= mark]


def only_older(batches: Times, late_ms: int) -> list[int]:
    """Keeps what is just as old as the watermark."""
    marks = [0, *_watermarks(batches, late_ms)]
    return [time for mark, batch in zip(marks, batches, strict=False) for time in batch if time < mark]


def out_of_order(batches: Times, late_ms: int) -> list[int]:
    """Calls late whatever is older than something that came before it."""
    newest, late = 0, []
    for batch in batches:
        late += [time for time in batch if time < newest - late_ms]
        newest = max(newest, *batch)
    return late


def as_late_as_it_was(batches: Times) -> int:
    """Takes how late the latest was, and forgets that what is as old as the watermark is dropped, too."""
    late = 0
    for number, batch in enumerate(batches):
        before = [time for one in batches[: max(0, number - 1)] for time in one]
        late = max(late, *[max(before, default=0) - time for time in batch])
    return late


def by_all_before(batches: Times) -> int:
    """Compares with all batches before, also with the last of them."""
    late = 0
    for number, batch in enumerate(batches):
        before = [time for one in batches[:number] for time in one]
        late = max(late, *[max(before, default=0) - time + 1 for time in batch])
    return late


def the_whole_stretch(batches: Times) -> int:
    """From the first event to the last: enough, and far too much."""
    times = [time for batch in batches for time in batch]
    return max(times) - min(times)


class PutsOutAtOnce:
    """Puts a life out when it has both ends, without waiting for the watermark."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, int]] = {}

    def batch(self, marks: Marks, watermark_ms: int) -> Rows:
        for ts_ms, what, msg_id in marks:
            life = self.kept.setdefault(msg_id, {})
            life[what] = min(ts_ms, life.get(what, ts_ms))
        done = [name for name, life in self.kept.items() if len(life) == 2]
        return [(name, *[self.kept[name]["sent"], self.kept.pop(name)["consumed"]]) for name in done]


class NeverForgets:
    """Marks what was put out instead of forgetting it: right, until the memory is full."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, int]] = {}
        self.done: set[str] = set()

    def batch(self, marks: Marks, watermark_ms: int) -> Rows:
        for ts_ms, what, msg_id in marks:
            life = self.kept.setdefault(msg_id, {})
            life[what] = min(ts_ms, life.get(what, ts_ms))
        rows = []
        for name, life in self.kept.items():
            if name not in self.done and len(life) == 2 and life["consumed"] <= watermark_ms:
                self.done.add(name)
                rows.append((name, life["sent"], life["consumed"]))
        return rows


class KeepsOrphans:
    """Forgets a life that was put out; when its message is consumed again, that stays for ever."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, int]] = {}

    def batch(self, marks: Marks, watermark_ms: int) -> Rows:
        for ts_ms, what, msg_id in marks:
            life = self.kept.setdefault(msg_id, {})
            life[what] = min(ts_ms, life.get(what, ts_ms))
        done = [name for name, life in self.kept.items() if len(life) == 2 and life["consumed"] <= watermark_ms]
        return [(name, *[self.kept[name]["sent"], self.kept.pop(name)["consumed"]]) for name in done]


class SentComesFirst:
    """Throws a consumption away when nothing was sent yet: the other machine's log was only late."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, int]] = {}

    def batch(self, marks: Marks, watermark_ms: int) -> Rows:
        for ts_ms, what, msg_id in marks:
            if what == "sent":
                self.kept.setdefault(msg_id, {"sent": ts_ms})
            elif msg_id in self.kept:
                self.kept[msg_id].setdefault("consumed", ts_ms)
        done = [name for name, life in self.kept.items() if life.get("consumed", 1 << 62) <= watermark_ms]
        return [(name, *[self.kept[name]["sent"], self.kept.pop(name)["consumed"]]) for name in done]


class LastOneCounts:
    """Lets the last consumption count, not the first."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, int]] = {}

    def batch(self, marks: Marks, watermark_ms: int) -> Rows:
        for ts_ms, what, msg_id in marks:
            life = self.kept.setdefault(msg_id, {})
            life[what] = max(ts_ms, life.get(what, ts_ms))
        over = [name for name, life in self.kept.items() if life.get("consumed", 1 << 62) <= watermark_ms]
        lives = [(name, self.kept.pop(name)) for name in over]
        return [(name, life["sent"], life["consumed"]) for name, life in lives if "sent" in life]


class RemembersBeside:
    """Keeps the beginnings beside its state, where the next micro-batch does not find them."""

    def __init__(self) -> None:
        self.kept: dict[str, int] = {}
        self.sent: dict[str, int] = {}

    def batch(self, marks: Marks, watermark_ms: int) -> Rows:
        for ts_ms, what, msg_id in marks:
            known = self.sent if what == "sent" else self.kept
            known[msg_id] = min(ts_ms, known.get(msg_id, ts_ms))
        over = [name for name, consumed_ms in self.kept.items() if consumed_ms <= watermark_ms]
        ended = [(name, self.kept.pop(name)) for name in over]
        return [(name, self.sent[name], consumed_ms) for name, consumed_ms in ended if name in self.sent]


WRONG = {
    "24/watermarks": [with_this_batch, of_the_batch_before, below_zero],
    "24/dropped": [by_its_own_watermark, only_older, out_of_order],
    "24/smallest-delay": [as_late_as_it_was, by_all_before, the_whole_stretch],
    "24/lives": [PutsOutAtOnce, NeverForgets, KeepsOrphans, SentComesFirst, LastOneCounts, RemembersBeside],
}
