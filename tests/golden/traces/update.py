"""Write the golden traces anew: `python -m tests.golden.traces.update`. Look at the change before you commit it."""

from __future__ import annotations

from pathlib import Path

from mqlab import scenarios
from mqlab.trace.record import format_trace

HERE = Path(__file__).parent
HEAD = "# scenario and hash of its trace with seed 7, written by python -m tests.golden.traces.update\n"


def main() -> None:
    """Play every scenario with seed 7; write all hashes, and the texts that are kept."""
    lines = []
    for name in scenarios.names():
        lab = scenarios.get(name).play(7)
        lines.append(f"{name} {lab.trace_hash()}\n")
        text = HERE / f"{name}.txt"
        if text.exists():
            text.write_text(format_trace(lab.history.rows()), encoding="utf-8")
    (HERE / "hashes.txt").write_text(HEAD + "".join(lines), encoding="ascii")


if __name__ == "__main__":
    main()
