"""Traces of mqlab as Spark data: a session for a small machine, worlds and recorded traces as tables, and jobs.

from mqlab_spark import read_trace, session, worlds
from mqlab_spark.jobs import delivery_latency, percentiles

spark = session()
trace = read_trace(spark, "trace.parquet")        # what was recorded
trace = worlds(spark, "steady-load", "0-999")     # or a thousand worlds, played by Spark's workers
percentiles(delivery_latency(trace), "topic", "queue_id").show()
"""

from mqlab.errors import MissingExtraError

try:
    import pyspark  # noqa: F401  asked for here once, so that everything below may take it for granted
except ImportError:
    raise MissingExtraError("pyspark", "spark") from None

from mqlab.data_sets.named_worlds import world_of
from mqlab_spark.build import build
from mqlab_spark.opening import open_at
from mqlab_spark.reading import tables_at
from mqlab_spark.schema import of_kind, trace_schema, world_id
from mqlab_spark.session import session
from mqlab_spark.store_source import read_store
from mqlab_spark.traces import read_trace
from mqlab_spark.world_source import worlds, worlds_of

__all__ = [
    "build",
    "of_kind",
    "open_at",
    "read_store",
    "read_trace",
    "session",
    "tables_at",
    "trace_schema",
    "world_id",
    "world_of",
    "worlds",
    "worlds_of",
]
