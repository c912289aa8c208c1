"""What a job came to: its stages, and the columns that it reads."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from mqlab_spark.stages import columns_read, stages_of


def test_stages_have_the_rows_that_they_read_gave_on_and_fetched(spark: SparkSession, tmp_path: Path) -> None:
    """Three tasks of 100 rows, two keys in each: six rows cross."""
    path = str(tmp_path / "numbers")
    spark.range(0, 300, 1, 1).selectExpr("id", "id % 2 AS key", "id + 1 AS other").write.parquet(path)
    read = spark.read.parquet(path)
    counted = read.groupBy("key").count()
    assert columns_read(counted) == ["key"]
    assert columns_read(read.where("other > 5").select("id")) == ["id", "other"]
    (first, last) = stages_of(spark, lambda: read.repartition(3).groupBy("key").count().collect())[-2:]
    assert (first.tasks, first.rows_fetched, first.rows_shuffled) == (3, 300, 6)
    assert sorted(first.of_tasks) == [100, 100, 100]
    assert (last.rows_fetched, last.rows_shuffled) == (6, 0)
    assert stages_of(spark, lambda: None) == []
