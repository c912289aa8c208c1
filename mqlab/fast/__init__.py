"""mqlab compiled: the same code and the same hashes in less time, for explorations, data sets and benchmarks.

`make fast` builds a copy below out/fast (see build.py); `mqlab fast COMMAND ...` runs any command with it.
"""

from __future__ import annotations

from importlib.util import find_spec

COMPILED, INTERPRETED = "compiled", "interpreted"


def running() -> str:
    """Which mqlab runs: "compiled" or "interpreted"."""
    spec = find_spec("mqlab.sim.world")
    assert spec is not None
    return INTERPRETED if str(spec.origin).endswith((".py", ".pyc")) else COMPILED
