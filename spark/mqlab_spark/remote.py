"""Spark Connect: a session whose Spark is a server elsewhere, so that this process has no Java and no SparkContext."""

from __future__ import annotations

from pyspark.sql import SparkSession


def is_remote(spark: SparkSession) -> bool:
    """Is this a session of Spark Connect?"""
    return type(spark).__module__.startswith("pyspark.sql.connect.")
