"""Plausible wrong solutions of lab 31_cousins, each of which its check catches."""

from __future__ import annotations

from typing import Any


def only_in_time(system: str, late_s: float, others: bool) -> bool:
    """Too late is too late, for all of them."""
    return late_s < 0


def told_ok(system: str, late_s: float, others: bool) -> bool:
    """Believes the answer OK."""
    return late_s < 0 or system != "share-group"


def handle_is_a_lock(system: str, late_s: float, others: bool) -> bool:
    """Takes the handle of SQS for a lock."""
    return late_s < 0 or (system == "pop" and late_s < 2)


def others_matter_to_all(system: str, late_s: float, others: bool) -> bool:
    """Thinks that a late word counts everywhere as long as nobody else has the order."""
    return late_s < 0 or not others


def nothing_is_forgotten(ends: list[str]) -> tuple[int, int, int]:
    """Thinks that a count at acquire is written at acquire."""
    return len(ends), 1 + len(ends), 1 + len(ends)


def all_from_one(ends: list[str]) -> tuple[int, int, int]:
    """Lets RocketMQ count like the others."""
    return 1 + len(ends), 1 + ends.count("silence"), 1 + len(ends)


def all_forgotten(ends: list[str]) -> tuple[int, int, int]:
    """Thinks that a broker that dies forgets all counts."""
    since = len(ends) if "broker dies" not in ends else ends[::-1].index("broker dies")
    return len(ends), 1 + since, 1 + len(ends)


def pop_forgets(ends: list[str]) -> tuple[int, int, int]:
    """Thinks that Pop has its check points in memory."""
    return ends.count("silence"), 1 + ends.count("silence"), 1 + len(ends)


Records = list[tuple[str, int]]


def acquired_stays(records: Records) -> list[tuple[int, int]]:
    """Leaves what was acquired to those who held it."""
    return [(offset, count + 1) for offset, (state, count) in enumerate(records) if state == "AVAILABLE"]


def one_more_for_all(records: Records) -> list[tuple[int, int]]:
    """Counts the delivery that nobody knows of any more."""
    return [(n, count + 1) for n, (state, count) in enumerate(records) if state in ("AVAILABLE", "ACQUIRED")]


def from_one(records: Records) -> list[tuple[int, int]]:
    """Begins all counts anew."""
    return [(n, 1) for n, (state, _) in enumerate(records) if state in ("AVAILABLE", "ACQUIRED")]


class Right:
    """The parts of a share partition; each wrong solution changes one of them."""

    def __init__(self, limit: int, lock_ms: int, most_locks: int) -> None:
        self.limit, self.lock_ms, self.most_locks = limit, lock_ms, most_locks
        self.start = 0
        self.records: list[dict[str, Any]] = []

    def end(self, log_end: int) -> int:
        return min(log_end, self.start + self.most_locks)

    def acquire(self, member: str, most: int, log_end: int, now_ms: int) -> list[tuple[int, int]]:
        given: list[tuple[int, int]] = []
        for offset in range(self.start, self.end(log_end)):
            if len(given) == most:
                break
            if offset == len(self.records):
                self.records.append({"state": "available", "count": 0})
            record = self.records[offset]
            if self.can_be_had(record, now_ms):
                count = self.count(record)
                record.update(state="acquired", count=count, member=member, end_ms=now_ms + self.lock_ms)
                given.append((offset, count))
        return given

    def can_be_had(self, record: dict[str, Any], now_ms: int) -> bool:
        return bool(record["state"] == "available")

    def count(self, record: dict[str, Any]) -> int:
        return int(record["count"]) + 1

    def holds(self, member: str, offset: int, now_ms: int) -> bool:
        record = self.records[offset] if 0 <= offset < len(self.records) else {"state": "available"}
        return record["state"] == "acquired" and record["member"] == member

    def acknowledge(self, member: str, offset: int, kind: str, now_ms: int) -> bool:
        if not self.holds(member, offset, now_ms):
            return False
        self.settle(self.records[offset], kind, now_ms)
        self.move()
        return True

    def settle(self, record: dict[str, Any], kind: str, now_ms: int) -> None:
        if kind == "RENEW":
            record["end_ms"] = now_ms + self.lock_ms
        elif kind == "RELEASE":
            self.let_go(record)
        else:
            record["state"] = "acknowledged" if kind == "ACCEPT" else "archived"

    def time_out(self, now_ms: int) -> None:
        for record in self.records:
            if record["state"] == "acquired" and record["end_ms"] <= now_ms:
                self.let_go(record)
        self.move()

    def let_go(self, record: dict[str, Any]) -> None:
        record["state"] = "archived" if record["count"] >= self.limit else "available"

    def move(self) -> None:
        while self.start < len(self.records) and self.ended(self.records[self.start]):
            self.start += 1

    def ended(self, record: dict[str, Any]) -> bool:
        return record["state"] in ("acknowledged", "archived")

    def window(self) -> tuple[int, int]:
        return self.start, len(self.records)


class WithoutALimit(Right):
    """Brings a record back for ever."""

    def let_go(self, record: dict[str, Any]) -> None:
        record["state"] = "available"


class OneTooMany(Right):
    """Archives a record behind one delivery more."""

    def let_go(self, record: dict[str, Any]) -> None:
        record["state"] = "archived" if record["count"] > self.limit else "available"


class CountsWhenItComesBack(Right):
    """Counts as RocketMQ does: when a delivery has failed."""

    def count(self, record: dict[str, Any]) -> int:
        return max(1, int(record["count"]))

    def let_go(self, record: dict[str, Any]) -> None:
        record["count"] += 1
        super().let_go(record)


class WhoeverSaysSo(Right):
    """Asks whether a record is acquired, and not by whom."""

    def holds(self, member: str, offset: int, now_ms: int) -> bool:
        return 0 <= offset < len(self.records) and self.records[offset]["state"] == "acquired"


class LateIsFine(Right):
    """Takes a late word as SQS does: as long as nobody else has the record."""

    def holds(self, member: str, offset: int, now_ms: int) -> bool:
        record = self.records[offset] if 0 <= offset < len(self.records) else {}
        return record.get("member") == member and record["state"] in ("acquired", "available")


class RenewsNothing(Right):
    """Takes RENEW for a word that changes nothing."""

    def settle(self, record: dict[str, Any], kind: str, now_ms: int) -> None:
        if kind != "RENEW":
            super().settle(record, kind, now_ms)


class RejectsForNow(Right):
    """Takes REJECT for RELEASE."""

    def settle(self, record: dict[str, Any], kind: str, now_ms: int) -> None:
        super().settle(record, "RELEASE" if kind == "REJECT" else kind, now_ms)


class PassesTheAcquired(Right):
    """Moves the SPSO past what was handed out, as a consumer group does with its offset."""

    def ended(self, record: dict[str, Any]) -> bool:
        return bool(record["state"] != "available")


class StaysBehindTheArchived(Right):
    """Moves the SPSO past what was accepted alone."""

    def ended(self, record: dict[str, Any]) -> bool:
        return bool(record["state"] == "acknowledged")


class MovesWhenSomebodySpeaks(Right):
    """Forgets that a lock's end may be the end of a record, too."""

    def time_out(self, now_ms: int) -> None:
        for record in self.records:
            if record["state"] == "acquired" and record["end_ms"] <= now_ms:
                self.let_go(record)


class EndlessWindow(Right):
    """Hands out whatever the log has."""

    def end(self, log_end: int) -> int:
        return log_end


class NewOnesOnly(Right):
    """Goes on behind the SPEO, and forgets what has come back."""

    def acquire(self, member: str, most: int, log_end: int, now_ms: int) -> list[tuple[int, int]]:
        given = []
        while len(given) < most and len(self.records) < self.end(log_end):
            given.append((len(self.records), 1))
            self.records.append(
                {"state": "acquired", "count": 1, "member": member, "end_ms": now_ms + self.lock_ms}
            )
        return given


class LocksThatNeverEnd(Right):
    """Waits for a word that a dead member never says."""

    def time_out(self, now_ms: int) -> None:
        return


class EndsAllLocks(Right):
    """Lets everything go when any lock ends."""

    def time_out(self, now_ms: int) -> None:
        for record in self.records:
            if record["state"] == "acquired":
                self.let_go(record)
        self.move()


WRONG = {
    "31/is-done": [only_in_time, told_ok, handle_is_a_lock, others_matter_to_all],
    "31/counts": [nothing_is_forgotten, all_from_one, all_forgotten, pop_forgets],
    "31/given-out": [acquired_stays, one_more_for_all, from_one],
    "31/share-partition": [
        WithoutALimit,
        OneTooMany,
        CountsWhenItComesBack,
        WhoeverSaysSo,
        LateIsFine,
        RenewsNothing,
        RejectsForNow,
        PassesTheAcquired,
        StaysBehindTheArchived,
        MovesWhenSomebodySpeaks,
        EndlessWindow,
        NewOnesOnly,
        LocksThatNeverEnd,
        EndsAllLocks,
    ],
}
