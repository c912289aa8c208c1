"""How the limits of groups that read old messages follow what all of them read."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mqlab.broker.coldctr.cold_data_cg_ctr_service import ColdDataCgCtrService

PROMOTED, DECELERATED = 1.5, 0.8
"""By what a limit grows, and by what it shrinks."""
EXPECTED_SHARE = 0.8
"""How much of the limit of all groups PIDAdaptiveColdCtrStrategy tries to reach."""
KP, KI, KD = 0.5, 0.3, 0.2
MAX_STORE_NUMS = 10


class ColdCtrStrategy(Protocol):
    """Moves the limits of single groups (org.apache.rocketmq.broker.coldctr.ColdCtrStrategy)."""

    def collect(self, global_acc: int) -> None:
        """Note how many bytes all groups have read from the disk since the last time."""
        ...

    def promote(self, key: str, threshold: int) -> None:
        """A group has read up to its limit: it may get a higher one."""
        ...

    def decelerate(self, key: str, threshold: int) -> None:
        """A limit that was raised may get lower."""
        ...


class SimpleColdCtrStrategy:
    """Raises the limit of whoever reaches it, and lowers those that are raised while all together read too much.

    Java: org.apache.rocketmq.broker.coldctr.SimpleColdCtrStrategy.
    """

    def __init__(self, service: ColdDataCgCtrService) -> None:
        self._service = service

    def collect(self, global_acc: int) -> None:
        """Nothing to note."""

    def promote(self, key: str, threshold: int) -> None:
        """Raise it by half."""
        self._service.add_or_update_group_config(key, int(threshold * PROMOTED))

    def decelerate(self, key: str, threshold: int) -> None:
        """Lower it by a fifth, but not below the limit of every group."""
        if self._service.is_global_cold_ctr:
            _lower(self._service, key, threshold)


class PIDAdaptiveColdCtrStrategy:
    """Steers what all groups read together towards four fifths of their limit, as a PID controller does.

    The error counts (half), the sum of the last ten errors (0.3) and the last change of it (0.2); before there are ten,
    nothing is done.
    Java: org.apache.rocketmq.broker.coldctr.PIDAdaptiveColdCtrStrategy.
    """

    def __init__(self, service: ColdDataCgCtrService, expect_global_val: int) -> None:
        self._service = service
        self._expect_global_val = expect_global_val
        self._errors: deque[int] = deque(maxlen=MAX_STORE_NUMS)

    def decision_factor(self) -> float:
        """Above 0 more may be read, below 0 less."""
        errors = self._errors
        if len(errors) < MAX_STORE_NUMS:
            return 0.0
        return KP * errors[-1] + KI * sum(errors) + KD * (errors[-1] - errors[-2])

    def collect(self, global_acc: int) -> None:
        """Note by how much less was read than is expected."""
        self._errors.append(self._expect_global_val - global_acc)

    def promote(self, key: str, threshold: int) -> None:
        """Raise it by half while more may be read."""
        if self.decision_factor() > 0:
            self._service.add_or_update_group_config(key, int(threshold * PROMOTED))

    def decelerate(self, key: str, threshold: int) -> None:
        """Lower it by a fifth while less may be read."""
        if self.decision_factor() < 0:
            _lower(self._service, key, threshold)


def _lower(service: ColdDataCgCtrService, key: str, threshold: int) -> None:
    lowered = max(int(threshold * DECELERATED), service.broker_config.cg_cold_read_threshold)
    service.add_or_update_group_config(key, lowered)
