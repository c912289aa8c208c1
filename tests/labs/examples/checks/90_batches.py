"""The checks of the example lab."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from mqlab.check import Wrong, lab_check

Pull = Callable[[list[int], int], tuple[list[int], list[int]]]


@lab_check("90/pull", points=2)
def pull(answer: Pull, *, seed: int) -> Wrong | None:
    """Pulls from queues of up to 20 messages take the oldest, and leave the rest in order."""
    draw = Random(seed)
    first = draw.randrange(1_000)
    queue = list(range(first, first + draw.randint(1, 20)))
    limit = draw.randrange(1, 8)
    trace: list[str] = []
    while queue:
        want = (queue[:limit], queue[limit:])
        got = answer(list(queue), limit)
        trace.append(f"pull({queue}, {limit}) -> {got}")
        if got != want:
            return Wrong(f"the answer to {queue} and limit {limit} is {want}", "\n".join(trace))
        queue = want[1]
    return None
