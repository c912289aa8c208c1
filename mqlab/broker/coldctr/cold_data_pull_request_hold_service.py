"""Pulls that wait because their group has read too much from the disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mqlab.sim import ServiceThread

if TYPE_CHECKING:
    from mqlab.broker.pull_request import PullRequest
    from mqlab.sim import Node

CHECK_PERIOD_MS = 5_000
COLD_HOLD_TIMEOUT_MS = 3_000
MOST_HELD = 10_000
NO_SUSPEND_KEY = "_noSuspend_"


class ColdDataPullRequestHoldService(ServiceThread):
    """Looks every 5 s at the pulls that are held, and lets those go on that have waited for 3 s.

    Such a pull is marked (`_noSuspend_`), and is not held again. Where 10,000 are held one more is lost.
    Java: org.apache.rocketmq.broker.coldctr.ColdDataPullRequestHoldService.
    """

    def __init__(self, node: Node, execute_request_when_wakeup: Callable[[PullRequest], None]) -> None:
        super().__init__(node, period_ms=CHECK_PERIOD_MS)
        self._execute_request_when_wakeup = execute_request_when_wakeup
        self.held: list[PullRequest] = []

    def has_work(self) -> bool:
        """Is any pull held?"""
        return bool(self.held)

    def suspend_cold_data_read_request(self, request: PullRequest) -> bool:
        """Hold a pull; False where there is no room."""
        if len(self.held) >= MOST_HELD:
            return False
        self.held.append(request)
        self.wakeup_for_work()
        return True

    def tick(self) -> None:
        """Let those go on that have waited long enough."""
        latest_us = self.node.now_us() - COLD_HOLD_TIMEOUT_MS * 1_000
        due = [request for request in self.held if request.suspended_us <= latest_us]
        self.held = [request for request in self.held if request.suspended_us > latest_us]
        for request in due:
            request.request.add_ext_fields({NO_SUSPEND_KEY: "1"})
            self._execute_request_when_wakeup(request)
