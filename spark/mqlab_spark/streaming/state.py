"""What a stream keeps of lives that have not ended, and when it puts one out and forgets it.

A life that was consumed waits until the watermark has passed its end: until then an event that is late may still make
one of its times an earlier one; after it Spark drops such events, so what was put out never has to be taken back. Then
it is forgotten as soon as its producer has the answer: as long as it has none it may send the message again, and a
second copy must not begin a second life.

The state is kept in buckets of many messages, since Spark calls Python once for each bucket and not for each message.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.state import GroupState

BUCKET = "bucket"
TIMES = ("sent", "answered", "stored", "taken", "consumed")
STATE = "lives string"
"""A bucket's lives as JSON, a list of objects, so that whoever opens the state can read it. (Spark 4.3 fails with
arrays in this place.)
"""

KEPT = (
    "array<struct<world string, msg_id string, topic string, sent_us bigint, answered_us bigint, stored_us bigint, "
    "taken_us bigint, consumed_us bigint, put_out boolean>>"
)
"""What stands in that text."""

OUTPUT = (
    "world string, msg_id string, topic string, sent_us bigint, stored_us bigint, taken_us bigint, consumed_us bigint, "
    "latency_us bigint, outcome string, watermark_us bigint, bucket int, open bigint, waiting bigint"
)

FINISHED, GIVEN_UP, IN_STATE = "finished", "given up", "state"

ANSWER_US = 60_000_000
"""How long a life that was put out is remembered for a producer that still has no answer, in us of the world. By then
it has long stopped trying: it has 3 s for all its attempts unless told otherwise.
"""


class Life:
    """What is known of one message; each time is the first of its kind, in us, or None."""

    __slots__ = ("put_out", "times", "topic")

    def __init__(self, topic: str | None = None, times: Iterable[int | None] = (), put_out: bool = False) -> None:
        self.topic = topic
        self.times: dict[str, int | None] = dict.fromkeys(TIMES) | dict(zip(TIMES, times, strict=False))
        self.put_out = put_out

    def note(self, what: str, topic: str, ts_us: int) -> None:
        """Something happened to the message."""
        known = self.times[what]
        if known is None or ts_us < known:
            self.times[what] = ts_us
            if what == "sent":
                self.topic = topic

    def as_json(self, world: str, msg_id: str) -> dict[str, Any]:
        """What the state keeps of it."""
        times = {f"{what}_us": ts_us for what, ts_us in self.times.items() if ts_us is not None}
        return {"world": world, "msg_id": msg_id, "topic": self.topic, **times, "put_out": self.put_out}

    def ends_us(self, give_up_us: int) -> int | None:
        """When the watermark must have passed for it to be put out; None if that is not known yet."""
        sent, consumed = self.times["sent"], self.times["consumed"]
        if sent is None or self.put_out:
            return None
        if consumed is not None:
            return consumed
        return sent + give_up_us if give_up_us >= 0 else None

    def forgotten_us(self) -> int | None:
        """When the watermark must have passed for it to be forgotten; None if that is not known yet."""
        known = [ts_us for ts_us in self.times.values() if ts_us is not None]
        if self.times["sent"] is None:
            # Its beginning would be older than all of this. It was sent before the trace began, or has ended already.
            return min(known)
        if not self.put_out:
            return None
        return self.times["answered"] or max(known) + ANSWER_US


def carry_on(
    key: tuple[int], batches: Iterable[pd.DataFrame], kept: GroupState, *, give_up_us: int
) -> Iterator[pd.DataFrame]:
    """Note the marks of one bucket in one micro-batch, and put out what has ended (see `lives_as_they_end`)."""
    import pandas as pd

    lives = _unpacked(kept.get[0]) if kept.exists else {}
    for batch in batches:
        columns = (batch[name].tolist() for name in ("world", "msg_id", "what", "topic", "ts_us"))
        for world, msg_id, what, topic, ts_us in zip(*columns, strict=True):
            life = lives.get((world, msg_id))
            if life is None:
                life = lives[world, msg_id] = Life()
            life.note(what, topic, ts_us)
    watermark_us = kept.getCurrentWatermarkMs() * 1_000
    rows = list(_put_out(lives, watermark_us, give_up_us))
    for name in [name for name, life in lives.items() if _passed(life.forgotten_us(), watermark_us)]:
        del lives[name]
    moments = [moment for life in lives.values() for moment in (life.ends_us(give_up_us), life.forgotten_us())]
    _keep(kept, lives, [moment for moment in moments if moment is not None])
    waiting = sum(life.times["consumed"] is not None and not life.put_out for life in lives.values())
    still_open = sum(life.times["consumed"] is None and not life.put_out for life in lives.values())
    rows.append((*[None] * 8, IN_STATE, watermark_us, int(key[0]), still_open, waiting))
    names = [column.split()[0] for column in OUTPUT.split(", ")]
    # As objects: pandas would make floats of whole numbers beside a None.
    yield pd.DataFrame(rows, columns=names, dtype=object)


def _passed(moment_us: int | None, watermark_us: int) -> bool:
    return moment_us is not None and moment_us <= watermark_us


def _put_out(lives: dict[tuple[str, str], Life], watermark_us: int, give_up_us: int) -> Iterator[tuple[Any, ...]]:
    for (world, msg_id), life in lives.items():
        if _passed(life.ends_us(give_up_us), watermark_us):
            life.put_out = True
            sent, _, stored, taken, consumed = life.times.values()
            latency = None if consumed is None or sent is None else consumed - sent
            outcome = GIVEN_UP if consumed is None else FINISHED
            yield (
                world,
                msg_id,
                life.topic,
                sent,
                stored,
                taken,
                consumed,
                latency,
                outcome,
                watermark_us,
                None,
                None,
                None,
            )


def _keep(kept: GroupState, lives: dict[tuple[str, str], Life], moments: list[int]) -> None:
    if not lives:
        if kept.exists:
            kept.remove()
        return
    kept.update((json.dumps([life.as_json(*name) for name, life in lives.items()]),))
    if moments:
        # Spark calls again when the watermark is above this time, also when nothing new has come for the bucket.
        kept.setTimeoutTimestamp(max(-(-min(moments) // 1_000), kept.getCurrentWatermarkMs() + 1))


def _unpacked(text: str) -> dict[tuple[str, str], Life]:
    return {
        (one["world"], one["msg_id"]): Life(one["topic"], [one.get(f"{what}_us") for what in TIMES], one["put_out"])
        for one in json.loads(text)
    }
