"""The timer wheel: which slots are taken, how far it is read and written, and what waits for when."""

from __future__ import annotations

from typing import ClassVar

from mqlab.trace.record import Record
from mqlab.views import Table
from mqlab_widgets.boards.board import Board
from mqlab_widgets.boards.timer_wheel_picture import wheel_svg
from mqlab_widgets.labels import label_of
from mqlab_widgets.words import span_words

TICK_MS = 1_000
MOST_ROWS = 14
MOST_LABELS = 8


class TimerWheelBoard(Board):
    """A message waits in the slot of its second; reading takes what is in front of the slot of now.

    It comes out when its slot is over, so a second after the slot began. A message that is due later than the wheel
    reaches waits in a slot on its way, and goes round once more.
    """

    title: ClassVar[str] = "Timer wheel"

    def begin(self) -> None:
        """No timer has anything."""
        self.accepted: dict[str, dict[str, int]] = {}
        """Broker -> unique key -> slot, of messages that are stored and not on the wheel yet."""
        self.slots: dict[str, dict[int, dict[int, tuple[str, str]]]] = {}
        """Broker -> slot -> place in the timer log -> unique key, and "rolls", "recalls" or nothing."""
        self.read_ms: dict[str, int] = {}
        self.now_us = 0

    # -- events -----------------------------------------------------------------------------------------------------

    def on_timer_message_accepted(self, record: Record) -> None:
        """It is stored in the timer's topic."""
        self.accepted.setdefault(record.node, {})[record.unique_key] = record.slot_ms
        self.now_us = record.ts_us

    def on_timer_message_enqueued(self, record: Record) -> None:
        """It is on the wheel."""
        self.accepted.get(record.node, {}).pop(record.unique_key, None)
        kind = "recalls" if record.recalls else "rolls" if record.rolls else ""
        slot = self.slots.setdefault(record.node, {}).setdefault(record.slot_ms, {})
        slot[record.log_position] = (record.unique_key, kind)
        self.now_us = record.ts_us

    def on_timer_slot_dequeued(self, record: Record) -> None:
        """The wheel was read up to the end of a slot."""
        slots = self.slots.get(record.node, {})
        self.slots[record.node] = {slot: held for slot, held in slots.items() if slot > record.slot_ms}
        self.read_ms[record.node] = record.slot_ms + TICK_MS
        self.now_us = record.ts_us

    def on_timer_message_delivered(self, record: Record) -> None:
        """One that was due when the wheel was to take it was never there."""
        self.accepted.get(record.node, {}).pop(record.unique_key, None)

    def on_timer_loaded(self, record: Record) -> None:
        """A broker begins with what its files hold: less than it knew, after a loss of power."""
        slots = self.slots.get(record.node, {})
        kept = {
            slot: {at: held for at, held in of_slot.items() if at < record.log_position}
            for slot, of_slot in slots.items()
            if slot >= record.slot_ms
        }
        self.slots[record.node] = {slot: held for slot, held in kept.items() if held}
        self.read_ms[record.node] = record.slot_ms
        self.now_us = record.ts_us

    def on_message_dispatched(self, record: Record) -> None:
        """Note how far the wheel's time has come."""
        self.now_us = record.ts_us

    # -- drawing ----------------------------------------------------------------------------------------------------

    def _write_ms(self) -> int:
        """The slot of now."""
        return (self.lab.world.epoch_ms + self.now_us // 1_000) // TICK_MS * TICK_MS

    def _read_ms(self, broker: str) -> int:
        """The first slot that has not been read: empty ones are passed at once."""
        return max(self.read_ms.get(broker, 0), min([self._write_ms(), *self.slots.get(broker, {})]))

    def _second(self, time_ms: int) -> str:
        return f"{(time_ms - self.lab.world.epoch_ms) / 1_000:,.3g} s"

    def _labels(self, held: list[tuple[str, str]]) -> str:
        labels = [f"{label_of(key, self.lab) or key}{f' ({kind})' if kind else ''}" for key, kind in held]
        more = len(labels) - MOST_LABELS
        return ", ".join(labels[:MOST_LABELS]) + (f" and {more} more" if more > 0 else "")

    def _table(self) -> Table:
        now_ms = self.lab.world.epoch_ms + self.now_us // 1_000
        rows = []
        for broker in sorted({*self.slots, *self.accepted}):
            for slot, held in sorted(self.slots.get(broker, {}).items()):
                wait = span_words(max(0, slot + TICK_MS - now_ms) * 1_000)
                rows.append((broker, self._second(slot), wait, len(held), self._labels(list(held.values()))))
            new = self.accepted.get(broker, {})
            if new:
                rows.append((broker, "not on the wheel yet", "", len(new), self._labels([(key, "") for key in new])))
        return Table("", ("broker", "slot", "comes out in", "messages", "which"), rows, most=MOST_ROWS)

    def html(self) -> str:
        """A strip of slots for each broker, and a table of what waits."""
        epoch_ms, write_ms = self.lab.world.epoch_ms, self._write_ms()
        pictures = [
            wheel_svg(broker, self._read_ms(broker), write_ms, {s: len(h) for s, h in slots.items()}, epoch_ms)
            for broker, slots in sorted(self.slots.items())
        ]
        return "".join(pictures) + self._table()._repr_html_()

    def text(self) -> list[str]:
        """How far each wheel is, and the same table."""
        write = self._second(self._write_ms())
        lines = [
            f"{broker}: read up to {self._second(self._read_ms(broker))}, written up to {write}"
            for broker in sorted(self.slots)
        ]
        return [*lines, *str(self._table()).splitlines()]
