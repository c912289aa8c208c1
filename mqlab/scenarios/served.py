"""The world of `mqlab serve`: a cluster in which nothing happens until somebody from outside sends something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.scenarios.registry import scenario

if TYPE_CHECKING:
    from mqlab.lab import Lab


@scenario("served", seconds=1)
async def served(
    lab: Lab, *, brokers: int = 1, slaves: int = 0, flush: str = "ASYNC_FLUSH", auto_create_topics: bool = True
) -> None:
    """A name server and brokers, each with `slaves`, for clients that come over real sockets (mqlab serve)."""
    lab.name_server()
    for _ in range(brokers):
        master = lab.broker(flush_disk_type=flush, auto_create_topic_enable=auto_create_topics)
        for _ in range(slaves):
            lab.broker(slave_of=master.name)
