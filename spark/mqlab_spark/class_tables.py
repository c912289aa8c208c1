"""What a class has made of its labs: tables of the results that `mqlab grade` has written.

    results = read_results(spark, "marks/")
    hardest_checks(results).show()
"""

from __future__ import annotations

import re
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab.errors import LearnerError

RESULTS = """
    student string, lab string, points double, most double, unreadable string, seconds double, end boolean,
    run struct<verdict: string, seconds: double, peak_mib: double>,
    marks array<struct<check: string, points: double, most: double>>,
    bets array<struct<bet: string, question: string, said: string, told: string, truth: string>>
"""
"""Of a result.json as much as the tables need; what an older one lacks is null."""

NO_BET = "no prediction yet"


def read_results(spark: SparkSession, marks: Path) -> DataFrame:
    """One row for each whole result below the directory. LearnerError when there is none."""
    files = sorted(_no_pattern(str(path.absolute())) for path in marks.glob("*/*/result.json"))
    if not files:
        raise LearnerError(f"there is no result in {marks}", "mark something first: mqlab grade")
    read = spark.read.schema(RESULTS).option("multiLine", True).json(files)
    return read.where("end")


def _no_pattern(path: str) -> str:
    """The path as Hadoop has to be given it, which takes `[1]` and its like for patterns."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", path)


def points_of(results: DataFrame) -> DataFrame:
    """One row for each notebook: student, lab, points, why it can't be read, the seconds of its run (null without)."""
    return results.select(
        "student", "lab", "points", "most", "unreadable",
        F.col("run.seconds").alias("run_s"), F.col("run.verdict").alias("run"),
    ).orderBy("lab", "student")  # fmt: skip


def hardest_checks(results: DataFrame) -> DataFrame:
    """One row for each check, hardest first: how many have all of its points, some, none, and the mean share."""
    each = results.select("lab", F.explode("marks").alias("mark")).select("lab", "mark.*")
    every, none = F.col("points") >= F.col("most"), F.col("points") <= 0
    return (
        each.groupBy("lab", "check")
        .agg(
            F.count("*").alias("students"),
            F.count_if(every).alias("all_points"),
            F.count_if(~every & ~none).alias("some_points"),
            F.count_if(none).alias("no_points"),
            F.round(F.avg(F.col("points") / F.col("most")), 4).alias("share"),
        )
        .orderBy("share", "lab", "check")
    )


def bets_made(results: DataFrame) -> DataFrame:
    """One row for each student and bet: what was bet, in the words of the reveal, and whether that is true.

    `right` is null where the run showed no truth, and where nothing was bet.
    """
    told = F.when(F.col("bet.told") != NO_BET, F.col("bet.told"))
    return results.select("student", "lab", F.posexplode("bets").alias("place", "bet")).select(
        "student",
        "lab",
        "place",
        F.col("bet.bet").alias("bet"),
        F.col("bet.question").alias("question"),
        F.coalesce(told, F.col("bet.said")).alias("answer"),
        F.col("bet.truth").alias("truth"),
        F.when(told.isNotNull(), told == F.col("bet.truth")).alias("right"),
    )


def bets_gone_wrong(made: DataFrame) -> DataFrame:
    """One row for each bet, those that most have lost first: how many were right, wrong, not made; answers and truths.

    `answers` and `truths` are pairs of a text and how many students it is of, the most frequent first. A truth may
    differ from student to student, since each has a world of its own.
    """
    keys = ["lab", "bet"]
    counted = made.groupBy(*keys).agg(
        F.max("question").alias("question"),
        F.count("*").alias("students"),
        F.count_if("right").alias("right"),
        F.count_if(~F.col("right")).alias("wrong"),
        F.count_if(F.col("answer").isNotNull() & F.col("right").isNull()).alias("unknown"),
        F.count_if(F.col("answer").isNull()).alias("not_made"),
    )
    return (
        counted.join(_frequent(made, "answer").withColumnRenamed("found", "answers"), keys, "left")
        .join(_frequent(made, "truth").withColumnRenamed("found", "truths"), keys, "left")
        .orderBy(F.desc(F.col("wrong") / F.col("students")), *keys)
    )


def _frequent(made: DataFrame, column: str) -> DataFrame:
    """For each bet the texts of a column with their counts, as `found`."""
    counts = made.where(F.col(column).isNotNull()).groupBy("lab", "bet", column).count()
    # In the order of structs: many before few, and then by text.
    pair = F.struct((-F.col("count")).alias("order"), F.col(column).alias("text"), F.col("count").alias("count"))
    return counts.groupBy("lab", "bet").agg(F.sort_array(F.collect_list(pair)).alias("found"))
