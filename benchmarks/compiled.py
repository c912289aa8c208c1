"""The message path with the compiled mqlab, against the same peers, in the same run.

`python -m benchmarks.compiled backlog` is one measurement, in a process of its own that takes the compiled copy.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from statistics import median

from benchmarks import messages, peers
from benchmarks.harness import ROUNDS, Contender, Figure, figure, operations_per_second
from mqlab.fast.build import environment, state

CONTENDERS: dict[str, Contender] = {
    "backlog": messages.backlog_of_mqlab,
    "one by one": messages.live_of_mqlab_one_by_one,
}


def _rate(name: str) -> float:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "benchmarks.compiled", name],
        env=environment(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    return float(done.stdout)


def against_fakeredis() -> list[Figure]:
    """What messages.py measures interpreted: in batches of 32, and one at a time."""
    if state() != "current":
        print("compiled: there is no current compiled mqlab (make fast)")
        return []
    return [
        _against("compiled: 1 KB, backlog / fakeredis by 32", "backlog", peers.backlog_of_fakeredis, 2),
        _against("compiled: 1 KB, one by one / fakeredis", "one by one", peers.fakeredis_one_by_one, 4),
    ]


def _against(name: str, contender: str, peer: Callable[[], Callable[[], int]], aim: float) -> Figure:
    own, other = [], []
    for _ in range(ROUNDS):
        own.append(_rate(contender))
        other.append(operations_per_second({"peer": peer}, rounds=1)["peer"])
    return figure(name, median(own), "messages/s", versus=median(other), aim=aim, better="higher")


if __name__ == "__main__":
    # The second of two, since a process's first thousand messages fill its caches.
    prepare = CONTENDERS[sys.argv[1]]
    prepare()()
    print(operations_per_second({"own": prepare}, rounds=1)["own"])
