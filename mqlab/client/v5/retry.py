"""How long to wait after an attempt.

Java: org.apache.rocketmq.client.java.retry.CustomizedBackoffRetryPolicy and ExponentialBackoffRetryPolicy.
"""

from __future__ import annotations

from mqlab.protocol.v2.definition import ExponentialBackoff, RetryPolicy
from mqlab.protocol.v2.protobuf import Duration


def next_attempt_delay_ms(policy: RetryPolicy, attempt: int) -> int:
    """The wait after the attempt of this number, from 1, in ms."""
    if policy.customized_backoff is not None and policy.customized_backoff.next:
        waits = policy.customized_backoff.next
        return int(waits[min(attempt, len(waits)) - 1])
    backoff = policy.exponential_backoff
    if backoff is None:
        return 0
    return int(min(backoff.initial * backoff.multiplier ** (attempt - 1), backoff.max))


PRODUCER_POLICY = RetryPolicy(3, ExponentialBackoff(Duration(10), Duration(1_000), 2.0))
"""What a producer has until a proxy says something else."""
