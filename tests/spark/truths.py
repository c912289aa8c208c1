"""What the tables of transactions, copies, filters and replies must say, told event by event without Spark."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from mqlab.data_sets.named_worlds import WorldSpec
from mqlab.lab import Lab
from mqlab.trace.record import Record
from mqlab.trace.recorder import ParquetRecorder
from mqlab_spark import read_trace

HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
HIDDEN = ("PUT_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE")
COMMIT, ROLLBACK = "COMMIT_MESSAGE", "ROLLBACK_MESSAGE"
ACCIDENTS = ("crash", "freeze", "partition", "power_off")

Worlds = Mapping[str, Lab]
"""The name of each world, as a trace has it, and its lab."""


def played(scenario: str, seeds: Iterable[int], *faults: str, settle_s: float = 60, **parameters: Any) -> Worlds:
    """Worlds of a scenario under drawn faults."""
    specs = [WorldSpec(scenario, seed, parameters, None, faults, settle_s) for seed in seeds]
    return {f"{scenario}-{spec.seed}.parquet": spec.play() for spec in specs}


def recorded(spark: SparkSession, directory: Path, worlds: Worlds) -> DataFrame:
    """The events of all these worlds, read from their traces."""
    record_all(directory, worlds)
    return read_trace(spark, directory)


def record_all(directory: Path, worlds: Worlds) -> None:
    """Write a trace of each world into this directory."""
    for name, lab in worlds.items():
        with ParquetRecorder(directory / name) as recorder:
            for row in lab.history.rows():
                recorder(row)


# -- transactions -----------------------------------------------------------------------------------------------------


@dataclass
class Transaction:
    """The life of a half message on one broker."""

    hidden_us: int
    copies: int = 0
    asked: int = 0
    asked_nobody: int = 0
    commits: int = 0
    committed_us: int | None = None
    rolled_back_us: int | None = None
    put_aside_us: int | None = None
    visible_us: int | None = None
    lost_us: int | None = None

    @property
    def outcome(self) -> str:
        """How it ended, or how far it has come."""
        ends = {
            "committed": self.committed_us, "rolled back": self.rolled_back_us, "put aside": self.put_aside_us,
            "lost": self.lost_us,
        }  # fmt: skip
        open_yet = "asked about" if self.asked else "open"
        return next((name for name, us in ends.items() if us is not None), open_yet)

    @property
    def gone_us(self) -> int | None:
        """When it was open no longer."""
        ends = (self.committed_us, self.rolled_back_us, self.put_aside_us, self.lost_us)
        return next((us for us in ends if us is not None), None)


def transactions(lab: Lab) -> dict[tuple[str, str], Transaction]:
    """(broker, unique key) -> what became of that half message."""
    lives: dict[tuple[str, str], Transaction] = {}
    halves: dict[str, list[tuple[int, str]]] = defaultdict(list)
    """Broker -> (place in the log, unique key) of each half message that is in it."""
    for record in lab.history:
        kind = record.kind
        if kind == "StoreRecovered":
            kept = [half for half in halves[record.node] if half[0] < record.commit_log_max_offset]
            for _, key in halves[record.node]:
                life = lives.get((record.node, key))
                if life and life.gone_us is None and key not in {key for _, key in kept}:
                    life.lost_us = record.ts_us
            halves[record.node] = kept
        elif kind == "MessageStored" and record.topic == HALF_TOPIC:
            halves[record.node].append((record.commit_log_offset, record.unique_key))
        elif kind == "MessageStored" and not record.topic.startswith(("RMQ_SYS", "TRANS_CHECK", "%RETRY%")):
            life = lives.get((record.node, record.unique_key))
            if life is not None and life.visible_us is None:
                life.visible_us = record.ts_us
        elif kind == "HalfMessageHidden" and record.status in HIDDEN:
            lives.setdefault((record.node, record.unique_key), Transaction(record.ts_us))
        elif (life := lives.get((record.node, getattr(record, "unique_key", "")))) is None:
            continue
        elif kind == "TransactionChecked":
            life.asked += 1
            life.asked_nobody += not record.remote
        elif kind == "HalfMessageGivenUp" and record.stored and life.put_aside_us is None:
            life.put_aside_us = record.ts_us
        elif kind == "TransactionEnded" and record.code == 0:
            life.commits += record.local_state == COMMIT
            if record.local_state == COMMIT and life.committed_us is None:
                life.committed_us = record.ts_us
            if record.local_state == ROLLBACK and life.rolled_back_us is None:
                life.rolled_back_us = record.ts_us
    return lives


MINUTE_US, SECOND_US = 60_000_000, 1_000_000


def check_backs(lab: Lab) -> dict[tuple[str, int], tuple[int, int, int, int | None]]:
    """(broker, minute) -> how many half messages were hidden, how often the broker asked, how many are open at the end,
    and since when the oldest of these is.
    """
    lives = transactions(lab)
    asked = Counter((record.node, record.ts_us // MINUTE_US) for record in lab.history.find("TransactionChecked"))
    told = {}
    for broker in sorted({broker for broker, _ in lives}):
        here = [life for (node, _), life in lives.items() if node == broker]
        for minute in range(last_us(lab) // MINUTE_US + 1):
            end_us = (minute + 1) * MINUTE_US
            begun = sum(life.hidden_us // MINUTE_US == minute for life in here)
            open_yet = [
                life.hidden_us for life in here
                if life.hidden_us < end_us and (life.gone_us is None or life.gone_us >= end_us)
            ]  # fmt: skip
            told[broker, minute] = (begun, asked[broker, minute], len(open_yet), min(open_yet, default=None))
    return told


def last_us(lab: Lab) -> int:
    """When the last event of a world was."""
    return max(record.ts_us for record in lab.history)


# -- copies -----------------------------------------------------------------------------------------------------------


@dataclass
class Lacking:
    """A record of a master's log which a slave has not, or had not for a while."""

    begins: int
    ends: int
    key: str
    since_us: int
    is_there: bool = False


@dataclass
class Second:
    """What a slave was like at the end of a second, and what happened in it."""

    written: int = 0
    copied: int = 0
    behind: int = 0
    behind_bytes: int = 0
    oldest_us: int | None = None
    only_here: int = 0
    sync_ok: int = 0
    sync_timed_out: int = 0


def replication(lab: Lab, master: str, slave: str) -> list[Second]:
    """One slave and its master, second by second."""
    log: list[Lacking] = []
    known: set[str] = set()
    seconds: list[Second] = []
    second = Second()

    def close() -> None:
        nonlocal second
        missing = [record for record in log if not record.is_there]
        second.behind, second.behind_bytes = len(missing), sum(record.ends - record.begins for record in missing)
        second.oldest_us = min((record.since_us for record in missing), default=None)
        second.only_here = sum(record.key in known for record in missing)
        seconds.append(second)
        second = Second()

    for record in lab.history:
        while record.ts_us // SECOND_US > len(seconds):
            close()
        kind, node = record.kind, record.node
        if kind == "SendSucceeded":
            known.update(record.msg_id.split(","))
        elif kind == "MessageStored" and node == master:
            ends = record.commit_log_offset + record.store_size
            log.append(Lacking(record.commit_log_offset, ends, record.unique_key, record.ts_us))
            second.written += 1
        elif kind == "ReplicaDataAppended" and node == slave:
            ends = record.commit_log_offset + record.body_bytes
            for each in log:
                if not each.is_there and record.commit_log_offset < each.ends <= ends:
                    each.is_there = True
                    second.copied += 1
        elif kind == "StoreRecovered" and node == slave:
            for each in log:
                if each.is_there and each.ends > record.commit_log_max_offset:
                    each.is_there, each.since_us = False, record.ts_us
        elif kind == "StoreRecovered" and node == master:
            log = [each for each in log if each.begins < record.commit_log_max_offset]
        elif kind == "ReplicaPutAnswered" and node == master:
            second.sync_ok += record.status == "PUT_OK"
            second.sync_timed_out += record.status != "PUT_OK"
    close()
    return seconds


# -- filters ----------------------------------------------------------------------------------------------------------


def filters(lab: Lab) -> dict[tuple[str, str], dict[str, int]]:
    """(group, topic) -> how many messages its pulls went over, and what was held back, by whom."""
    told: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    by_filter: dict[tuple[Any, ...], Record] = {}
    for record in lab.history:
        kind = record.kind
        if kind == "MessagesFilteredByBroker":
            by_filter[_range(record)] = record
        elif kind == "PullAnswered" and record.status in ("FOUND", "NO_MATCHED_MESSAGE"):
            counts = told[record.group, record.topic]
            held_back = by_filter.pop(_range(record), None)
            passed = record.next_offset - record.queue_offset - record.messages
            if held_back is not None:
                counts.update(by_bit_map=held_back.by_bit_map, by_expression=held_back.by_expression,
                              not_judged=held_back.not_judged)  # fmt: skip
                passed -= held_back.by_bit_map + held_back.by_expression
            counts.update(pulls=1, empty_pulls=record.messages == 0, given=record.messages, bytes=record.size,
                          by_tag_hash=passed, read=record.next_offset - record.queue_offset)  # fmt: skip
        elif kind == "MessagesFiltered":
            told[record.group, record.topic].update(by_client=record.messages)
    names = ("pulls", "empty_pulls", "read", "by_tag_hash", "by_bit_map", "by_expression", "not_judged", "given",
             "by_client", "bytes")  # fmt: skip
    return {whose: {name: counts[name] for name in names} for whose, counts in told.items()}


def _range(record: Record) -> tuple[Any, ...]:
    return (record.node, record.group, record.topic, record.queue_id, record.queue_offset, record.next_offset)


# -- replies ----------------------------------------------------------------------------------------------------------


def replies(lab: Lab) -> Iterator[tuple[str, str, str, int, int | None]]:
    """(correlation id, outcome, reply, how many replies came, ms until the reply or giving up) of each request."""
    for asked in lab.history.find("ReplyAwaited"):
        mine = [r for r in lab.history if getattr(r, "correlation_id", None) == asked.correlation_id]
        arrived = [r for r in mine if r.kind == "ReplyArrived"]
        in_time = [r for r in arrived if r.matched]
        given_up = [r for r in mine if r.kind == "ReplyGivenUp"]
        if in_time:
            outcome = "answered"
        elif given_up:
            outcome = "timed out" if "timeout" in given_up[0].reason else "failed"
        else:
            outcome = "open"
        not_pushed = any(r.kind == "ReplyNotPushed" for r in mine)
        reply = "in time" if in_time else "late" if arrived else "not pushed" if not_pushed else "none"
        ends = in_time or given_up
        took_ms = (ends[0].ts_us - asked.ts_us) // 1_000 if ends else None
        yield asked.correlation_id, outcome, reply, len(arrived), took_ms
