"""The museum: real bugs of RocketMQ's Pop, each in a world of its own, with a rule that it breaks and with its mending.

Entry points: `EXHIBITS`, `visit` plays one world, `first_broken` looks through seeds, `shortest` for the smallest load,
`fix_of` gives the decision to mend, with a check.
"""

from mqlab.museum.exhibits import EXHIBITS, Exhibit, exhibit
from mqlab.museum.fixes import FIXES, Fix, fix_of
from mqlab.museum.search import Visit, first_broken, shortest, story_of, visit

__all__ = [
    "EXHIBITS",
    "FIXES",
    "Exhibit",
    "Fix",
    "Visit",
    "exhibit",
    "first_broken",
    "fix_of",
    "shortest",
    "story_of",
    "visit",
]
