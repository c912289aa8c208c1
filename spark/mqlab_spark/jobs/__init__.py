"""The questions that traces are asked: pure functions from DataFrame to DataFrame."""

from mqlab_spark.jobs.hold_times import histogram, hold_times
from mqlab_spark.jobs.latency import consume_latency, delivered_by_cause, delivery_latency, percentiles, send_latency

__all__ = [
    "consume_latency",
    "delivered_by_cause",
    "delivery_latency",
    "histogram",
    "hold_times",
    "percentiles",
    "send_latency",
]
