"""A lab as an exam: what was bet is kept, and what is true is told in the report.

    begin_exam("june", released="2026-06-01 08:00 UTC")

The truths are folded away, not locked in: a notebook runs on the student's own machine, and its worlds show what
happens. Bets give no points, in an exam either.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime

from mqlab.check.bets import notebook_bets
from mqlab.check.draws import Said

OVER = "MQLAB_EXAM_OVER"
"""The environment variable with which a marker runs an exam's notebook: truths are shown."""
MINUTE = "%Y-%m-%d %H:%M UTC"
OPENED = re.compile(r"this notebook was opened at (\d{4}-\d\d-\d\d \d\d:\d\d UTC)")


def begin_exam(name: str, *, released: str) -> Said:
    """Fold the truths away until the exam is over, and say when this was: by the clock of this machine."""
    notebook_bets.sealed = not os.environ.get(OVER)
    now = datetime.now(UTC).strftime(MINUTE)
    return Said(
        f"Exam **{name}**, handed out at {released}; this notebook was opened at {now}.\n\n"
        "There are no hints, and `reveal` keeps the truths for your report. Checks say what they always say."
    )
