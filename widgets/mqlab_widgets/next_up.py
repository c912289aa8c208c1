"""What comes next: the deliveries, threads and timers of a world, which a viewer lets go first, or holds back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.errors import LearnerError

if TYPE_CHECKING:
    from mqlab import Lab
    from mqlab.sim import Pending
    from mqlab_widgets.session import Session


def pending_of(lab: Lab) -> dict[str, Pending]:
    """What may happen next, by keys that hold as long as the entry is there."""
    pending: dict[str, Pending] = {}
    for entry in lab.world.pending():
        same = sum(other.startswith(f"{entry.key}#") for other in pending)
        pending[f"{entry.key}#{same}"] = entry
    return pending


def pending_groups(lab: Lab) -> tuple[dict[str, Pending], dict[str, Pending]]:
    """What may happen next: the deliveries, and the housekeeping of the machines (their threads and timers)."""
    pending = pending_of(lab)
    deliveries = {key: entry for key, entry in pending.items() if entry.source}
    return deliveries, {key: entry for key, entry in pending.items() if key not in deliveries}


def _place_of(session: Session, key: str) -> int:
    """Where the entry stands among the world's pending ones now; LearnerError if it has gone."""
    if session.cursor.past:
        raise LearnerError(
            "what is shown is the past, where all has happened",
            "go to the present, or play a new world up to here",
        )
    keys = list(pending_of(session.lab))
    if key not in keys:
        raise LearnerError(
            "what was clicked has happened meanwhile, or cannot happen any more", "choose again from the new list"
        )
    return keys.index(key)


def pick(session: Session, entry: str) -> None:
    """Let one of the pending entries happen now."""
    session.lab.act("pick", index=_place_of(session, entry))
    with session.player.stepping():
        session.lab.step()


def hold(session: Session, entry: str, ms: float | str = 100) -> None:
    """Hold one of the pending entries back for some ms."""
    session.lab.act("hold", index=_place_of(session, entry), ms=float(ms))
