"""What is to be marked again although nothing was changed: a lab, or one check of it, for everybody.

`again.json` beside the marks counts how often each was asked for, and a result says for which counts it was made. So a
marker that was interrupted goes on with those that are left.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from mqlab.errors import LearnerError

AGAIN = "again.json"


def asked_again(marks: Path) -> dict[str, int]:
    """A lab's number, or a check's name, -> how often it was asked for. LearnerError when the file was damaged."""
    place = marks / AGAIN
    try:
        counts = json.loads(place.read_text(encoding="utf-8"))
        return {str(name): int(count) for name, count in counts.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise LearnerError(f"{place} can't be read: {error}", "remove it: everything is then marked again") from None


def with_again(counts: Mapping[str, int], names: Iterable[str]) -> dict[str, int]:
    """The counts with each of these asked for once more."""
    return {**counts, **{name: counts.get(name, 0) + 1 for name in names}}


def keep_again(marks: Path, counts: Mapping[str, int]) -> None:
    """Write the counts beside the marks, where there are any."""
    if counts:
        unfinished = marks / f".{AGAIN}.unfinished"
        unfinished.write_text(json.dumps(dict(sorted(counts.items())), indent=1) + "\n", encoding="utf-8")
        unfinished.replace(marks / AGAIN)
