"""What a job came to: its stages, and the columns that it reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mqlab.errors import LearnerError
from mqlab_spark.stages import Stage, columns_read, stages_of
from tests.spark.conftest import RETAINED


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


@pytest.mark.slow
def test_stages_that_were_not_needed_may_be_forgotten_by_spark_but_not_those_that_were(spark: SparkSession) -> None:
    """With more than `spark.ui.retainedStages` behind it, Spark forgets the stages first that it left out."""
    remembered = int(spark.sparkContext.getConf().get(RETAINED, ""))

    def crossings(times: int) -> list[Stage]:
        numbers = spark.range(0, 30, 1, 1)
        return stages_of(spark, lambda: [numbers.repartition(3).groupBy("id").count().collect() for _ in range(times)])

    for _ in range(4):
        assert [stage.rows_fetched for stage in crossings(remembered // 6)] == [0, 30, 30] * (remembered // 6)
    with pytest.raises(LearnerError, match="remembers fewer"):
        crossings(remembered)
