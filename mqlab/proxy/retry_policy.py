"""After which time a message of a group is delivered again, as the group's settings say it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from mqlab.protocol.v2 import definition as v2
from mqlab.protocol.v2.protobuf import Duration

if TYPE_CHECKING:
    from mqlab.protocol.topic_config import GroupRetryPolicy

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000

CUSTOMIZED_MS = (
    1 * SECOND, 5 * SECOND, 10 * SECOND, 30 * SECOND, *(minutes * MINUTE for minutes in (*range(1, 11), 20, 30)),
    1 * HOUR, 2 * HOUR,
)  # fmt: skip
"""What a group has unless it was given something else, in ms."""

RENEW_MS = (1 * MINUTE, 3 * MINUTE, 5 * MINUTE, 10 * MINUTE, 30 * MINUTE, 1 * HOUR)
"""For how long a proxy makes a message invisible at its first renewal, its second, and so on, in ms."""


class CustomizedRetryPolicy(NamedTuple):
    """A wait for each attempt, in ms; the last one again and again.

    Java: org.apache.rocketmq.remoting.protocol.subscription.CustomizedRetryPolicy.
    """

    next: Sequence[int] = CUSTOMIZED_MS

    def next_delay_ms(self, reconsume_times: int) -> int:
        """The wait after so many deliveries; it begins at the third entry, as the delay levels of 4.x did."""
        return self.next[min(max(reconsume_times, 0) + 2, len(self.next) - 1)]

    def backoff(self, max_attempts: int) -> v2.RetryPolicy:
        """The policy as clients get it."""
        waits = tuple(Duration(ms) for ms in self.next)
        return v2.RetryPolicy(max_attempts, customized_backoff=v2.CustomizedBackoff(waits))


class ExponentialRetryPolicy(NamedTuple):
    """Waits that grow, in ms (org.apache.rocketmq.remoting.protocol.subscription.ExponentialRetryPolicy)."""

    initial: int = 5 * SECOND
    max: int = 2 * HOUR
    multiplier: int = 2

    def next_delay_ms(self, reconsume_times: int) -> int:
        """The wait after so many deliveries."""
        grown: int = self.initial * self.multiplier ** min(max(reconsume_times, 0), 32)
        return min(self.max, grown)

    def backoff(self, max_attempts: int) -> v2.RetryPolicy:
        """The policy as clients get it."""
        waits = v2.ExponentialBackoff(Duration(self.initial), Duration(self.max), float(self.multiplier))
        return v2.RetryPolicy(max_attempts, exponential_backoff=waits)


def retry_policy_of(group: GroupRetryPolicy) -> CustomizedRetryPolicy | ExponentialRetryPolicy:
    """The policy in a group's settings."""
    if group.type == "EXPONENTIAL":
        return ExponentialRetryPolicy(**group.exponential_retry_policy or {})
    return CustomizedRetryPolicy(**group.customized_retry_policy or {})


def renew_delay_ms(renew_times: int) -> int:
    """For how long a message that was renewed so often is renewed next.

    Java: org.apache.rocketmq.proxy.common.RenewStrategyPolicy.
    """
    return RENEW_MS[min(max(renew_times, 0), len(RENEW_MS) - 1)]
