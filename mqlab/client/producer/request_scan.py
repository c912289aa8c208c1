"""Since when the scan for expired requests turns in a process: known before there is a request, and all of it then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.sim import ServiceThread

if TYPE_CHECKING:
    from mqlab.sim import Node

SCAN = "RequestHouseKeepingService"
HOLDER = "RequestFutureHolder"


def scan_begins(node: Node) -> None:
    """A producer has started: the scan of its process counts from the first of them.

    Java: org.apache.rocketmq.client.producer.RequestFutureHolder.startScheduledTask.
    """
    node.life.singletons.setdefault(SCAN, node.now_us())


def scan_ends(node: Node) -> None:
    """The last producer of a process has ended, and with it the scan.

    Java: org.apache.rocketmq.client.producer.RequestFutureHolder.shutdown.
    """
    node.life.singletons.pop(SCAN, None)
    holder = node.life.singletons.get(HOLDER)
    if isinstance(holder, ServiceThread):
        holder.shutdown()
