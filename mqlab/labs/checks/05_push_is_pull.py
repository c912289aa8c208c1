"""The check of lab 05: a student's hold service in a real broker, judged on delay and on the work that it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqlab.check import Right, Wrong, lab_check
from mqlab.scenarios.waiting_room import WaitingRoom


@lab_check("05/hold", points=3)
def hold(answer: Callable[[], Any], *, seed: int) -> Right | Wrong:
    """Readers of 12 to 20 queues wait in a real broker: prompt, with no empty answer too soon, and with little work."""
    room = WaitingRoom(answer(), seed)
    room.play()
    if room.wrong:
        return Wrong(room.wrong, room.story())
    work = room.service.comparisons
    return Right({"comparisons for all arrivals": {"yours": work.done, "allowed": work.allowed}})
