"""Messages that fail or wait while others pass: which they are, and what is said of each in a few words."""

from __future__ import annotations

from typing import NamedTuple

from mqlab_widgets.boards.lives import Lap, Life, Lives

LONG_US = 1_000_000
"""A message that has been nowhere new for so long waits."""
WAITS = {
    "listener": "in the listener",
    "pulled": "waits in the cache",
    "popped": "popped, not acknowledged",
    "dispatched": "waits in its queue",
    "stored": "stored, in no queue yet",
    "parked": "kept back until its time",
    "sent": "sent, not answered",
}
"""The stations at which a message may stand for long, from the last to the first, and what is said of it there."""
SETTLED = ("done", "committed", "acked")


class Held(NamedTuple):
    """A message that fails or waits: its unique key, why, since when (us), whether all is over for it, and whether
    something went wrong.
    """

    key: str
    words: str
    since_us: int
    over: bool = False
    bad: bool = True


def held_up(lives: Lives, now_us: int) -> list[Held]:
    """The messages that did not pass as they should, of those that are known: first those that fail or come again, the
    oldest first; then the one that waits longest without having failed; then those for which all is over, the newest
    first.
    """
    found = [held for life in lives.lives.values() if (held := _failing(life))]
    open_, over = [one for one in found if not one.over], [one for one in found if one.over]
    known = {one.key for one in found}
    waits = next(
        (one for life in lives.lives.values() if life.key not in known and (one := _waiting(life, now_us))), None
    )
    return [*open_, *([waits] if waits else []), *reversed(over)]


def _failing(life: Life) -> Held | None:
    """What went wrong with a message; None if nothing did, or if it went well in the end."""
    if "lost" in life.at:
        return Held(life.key, "lost with the power", life.at["lost"], over=True)
    if "given up" in life.at:
        stored = "stored" in life.at
        words = "stored, but its sender does not know" if stored else "refused, and given up"
        return Held(life.key, words, life.at["given up"], over=True)
    if life.refused_us and "stored" not in life.at:
        return Held(life.key, "could not be sent yet", life.refused_us)
    return next((held for lap in life.laps.values() if (held := _failing_in(life, lap))), None)


def _failing_in(life: Life, lap: Lap) -> Held | None:
    at = lap.at
    if "dead" in at:
        return Held(life.key, "a dead letter", at["dead"], over=True)
    if any(station in at for station in SETTLED):
        return None
    for station, words in (
        ("retried", "waits for its retry"), ("revived", "not acknowledged: comes again"),
        ("parked", "kept back for a retry"), ("given back", "given back"), ("put off", "put off"),
    ):  # fmt: skip
        if station in at and "listener" not in at:
            return Held(life.key, f"{_failed(lap)}{words}", at[station])
    if "failed" in at and "listener" not in at:
        return Held(life.key, _failed(lap).removesuffix(", "), at["failed"])
    return None


def _failed(lap: Lap) -> str:
    if not lap.tries:
        return ""
    return "failed, " if lap.tries == 1 else f"failed {lap.tries} times, "


def _waiting(life: Life, now_us: int) -> Held | None:
    """A message that stands still without having failed."""
    laps = [lap for lap in life.laps.values() if not any(station in lap.at for station in SETTLED)]
    if life.laps and not laps:
        return None
    at = life.at | (laps[0].at if laps else {})
    place = next((place for place in WAITS if place in at), "")
    if not place or now_us - at[place] < LONG_US:
        return None
    return Held(life.key, WAITS[place], at[place], bad=False)
