"""Events of the timer wheel: a message with a time of delivery of its own, from its acceptance to its delivery.

`slot_ms` names a slot of the wheel by the moment that it stands for, in ms of the wall clock; other times are
durations.
"""

from __future__ import annotations

from typing import NamedTuple


class TimerMessageAccepted(NamedTuple):
    """A message that asks for a time of delivery goes to the timer's topic; it will come out a tick behind `slot_ms`.

    `topic` and `queue_id` are where it will go then; `delay_ms` is how long it asked to wait from now.
    """

    topic: str
    queue_id: int
    unique_key: str
    slot_ms: int
    delay_ms: int


class TimerMessageEnqueued(NamedTuple):
    """A timer message has got its record in the timer log and its place in a slot of the wheel.

    `log_position` is where the record lies, `previous_position` where the one before it in the slot does (-1: none);
    `slot_messages` counts what the slot holds now; `rolls` says that the slot is not its last one.
    """

    topic: str
    unique_key: str
    slot_ms: int
    log_position: int
    previous_position: int
    slot_messages: int
    rolls: bool
    recalls: bool


class TimerSlotDequeued(NamedTuple):
    """The wheel was read up to the end of a slot, which held so many messages and so many that recall one."""

    slot_ms: int
    messages: int
    recalling: int


class TimerMessageDelivered(NamedTuple):
    """A timer message was due: it is stored again, now in its own topic, `late_ms` after the moment of its slot.

    `from_wheel` is False for one that was due already when the wheel was to take it.
    """

    topic: str
    queue_id: int
    queue_offset: int
    unique_key: str
    slot_ms: int
    late_ms: int
    from_wheel: bool


class TimerMessageRolled(NamedTuple):
    """A timer message that is due later than the wheel reaches was put back into the timer's topic, for the n-th time.
    """

    topic: str
    unique_key: str
    slot_ms: int
    roll_times: int


class TimerMessageRecalled(NamedTuple):
    """A timer message was due, but a message that recalls it lay in the same slot: it is not delivered."""

    topic: str
    unique_key: str
    slot_ms: int


class TimerPutRefused(NamedTuple):
    """The store did not take a message that is due; the timer tries again in half a second, after `attempts` so far."""

    topic: str
    unique_key: str
    status: str
    attempts: int


class TimerMessageDropped(NamedTuple):
    """A timer message is passed over and will never be delivered."""

    topic: str
    unique_key: str
    reason: str


class TimerStalled(NamedTuple):
    """The timer cannot get past a message of its topic, which stands at `queue_offset`: it tries again and again."""

    queue_offset: int
    reason: str


class TimerFlushed(NamedTuple):
    """The timer log, the wheel and the check file are on the disk: read up to `slot_ms`, enqueued up to
    `queue_offset`.
    """

    slot_ms: int
    queue_offset: int
    log_position: int


class TimerLoaded(NamedTuple):
    """The timer has begun with what its files held: it goes on reading at `slot_ms` and enqueuing at `queue_offset`.

    `log_position` is the end of the timer log, `slots` counts the slots that wait to be read.
    """

    slot_ms: int
    queue_offset: int
    log_position: int
    slots: int
