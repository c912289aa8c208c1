"""Watching a world live: it writes its trace while it plays, and Structured Streaming follows.

    with live_trace(lab, "shop/") as trace:           # small whole files, one for each second of the world
        with follow(spark, "shop/", "followed/") as stream:
            lab.run_for(seconds=30)
            stream.catch_up()
            stream.lives()                            # one row for each message that was sent and consumed
            stream.open()                             # what is still on its way: the state of the stream

segments     the trace as numbered files, written while the world plays
lives        from events to lives: `lives(trace)` for a whole trace, `lives_as_they_end(events)` for a stream
state        what a stream keeps of lives that are still open
following    `follow(...)`: the query, its numbers, its state, its end
"""

from mqlab_spark.streaming.following import BatchNumbers, Following, follow
from mqlab_spark.streaming.lives import lives, lives_as_they_end, open_lives, with_event_time
from mqlab_spark.streaming.segments import LiveTrace, live_trace, recorded

__all__ = [
    "BatchNumbers",
    "Following",
    "LiveTrace",
    "follow",
    "live_trace",
    "lives",
    "lives_as_they_end",
    "open_lives",
    "recorded",
    "with_event_time",
]
