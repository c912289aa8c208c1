"""The museum: real bugs of RocketMQ's Pop, each in a world of its own, with a rule that it breaks and with its mending.

Entry points: `EXHIBITS`, `visit` plays one world, `first_broken` looks through seeds, `shortest` for the smallest load.
"""

from mqlab.museum.exhibits import EXHIBITS, Exhibit, exhibit
from mqlab.museum.search import Visit, first_broken, shortest, story_of, visit

__all__ = ["EXHIBITS", "Exhibit", "Visit", "exhibit", "first_broken", "shortest", "story_of", "visit"]
