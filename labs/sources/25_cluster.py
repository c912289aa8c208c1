# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   mqlab:
#     title: From laptop to cluster (PySpark)
#     question: Four cores, and the job is hardly faster than with one. What does it wait for?
#     objectives:
#       - read a plan of Spark, and say what it reads, what crosses between tasks and how many tasks there are
#       - find the task that all others wait for, and write the query so that there is none
#       - run one job on a laptop, on a standalone cluster and over Spark Connect, and say what must be the same
#     minutes: 75
#     prerequisites: [00 Tour, 20 A trace as data]
#     wrong_predictions:
#       - "columns: all of them, since a row has all of them; or the one that is counted"
#       - "tasks: one, since it is one question; or one for each core"
#       - "crossing: all rows, since each must get to the task that counts its kind"
#       - "largest: a quarter, since there are four tasks"
#       - "sixteen: a quarter of what it was, since there are four times as many tasks"
#       - "faster: nearly four times"
#       - "two-hundred: as many as there are kinds to count"
# ---

# %% tags=["parameters"]
student_id = ""
cluster = False

# %% [markdown]
# Spark lets you write a question once and have it answered by one core or by a thousand. Whether a thousand are of any
# use is not said there. This lab is about what decides it: which **tasks** a job is cut into, what must go between them,
# and whether one of them has all the work.
#
# We measure no seconds. A machine that does something else beside makes them worthless, and they would not be yours.
# We count tasks and rows: those are the same on every machine, and they are what the seconds come from.

# %%
from tempfile import TemporaryDirectory

from mqlab import scenarios
from mqlab.check import NotSolvedYet, check, draws_for, predict, reveal, say, seed_for
from mqlab.trace.recorder import ParquetRecorder
from mqlab.views import Table
from mqlab_widgets.charts import show_bars

seed = seed_for(student_id, "25")
draw = draws_for(seed)

# %% [markdown]
# ## The scene (8 minutes)
#
# A chain of shops, each with its own broker, its own consumers, and its own trace: one Parquet file for each shop. One
# of the shops is in the middle of the town, the others are not.

# %%
shops = draw.between("shops", 7, 10)
large = draw.between("large", 2, shops - 1)
orders = {shop: 15 + draw.between(f"orders {shop}", 0, 9) for shop in range(1, shops + 1)}
orders[large] = draw.between("many", 420, 520, step=10)
folder = TemporaryDirectory()

for shop, number in orders.items():
    lab = scenarios.get("steady-load").play(shop, parameters={"messages": number})
    with ParquetRecorder(f"{folder.name}/shop-{shop:02}.parquet", {"scenario": "steady-load"}) as recorder:
        for row in lab.history.rows():
            recorder(row)

# %%
say(f"There are **{shops}** shops. Shop {large} has **{orders[large]}** orders, the others have 15 to 24 each.")

# %% [markdown]
# Spark on one core, with half a gigabyte of memory. The files are tiny, and Spark would read all of them in one task to
# save itself the trouble. One setting makes it plan as it does for files of 128 MB, which is what a cluster's look like:
# opening a file is said to cost as much as reading so many bytes.

# %% tags=["nbval-ignore-output"]
from mqlab_spark import session

spark = session("lab 25", "local[1]", driver_memory="512m")
spark.conf.set("spark.sql.files.openCostInBytes", 128 * 1024 * 1024)

# %%
from pyspark.sql import functions as F

from mqlab_spark import trace_schema

trace = spark.read.schema(trace_schema()).parquet(folder.name).withColumn("world", F.col("_metadata.file_name"))

def table(title, frame):
    return Table(title, frame.columns, frame.collect())

table("events of each shop", trace.groupBy("world").count().orderBy("world"))

# %% [markdown]
# ## Round one: what is read? (14 minutes)
#
# A first question: how many messages were stored in each topic?

# %%
stored = trace.where("kind = 'MessageStored'").groupBy("topic").count()
say(f"An event has **{len(trace.columns)}** columns: a few that all kinds have, and one for each field of each kind.")

# %% tags=["prediction"]
predict("columns", "How many of the columns does Spark read from the files to answer that?",
        unit="columns", prediction=...)

# %% [markdown]
# A DataFrame can tell what it is going to do, before it does it: its **plan**. It is read from the bottom up.
# `stored.explain()` prints it. We ask for one line of it, the one that says what is read:

# %%
from mqlab_spark.stages import columns_read

", ".join(columns_read(stored))

# %%
reveal("columns", len(columns_read(stored)),
       why="One to choose the rows by, one to group them by. To count rows needs no column at all.")

# %% [markdown]
# Parquet keeps each column by itself, so what is not asked for is not touched. That is the first law of a fast job:
# **say early what you do not need.** A `select("*")`, a Python function that is given whole rows, or a `cache()` of the
# whole trace take that from Spark, and then all columns are read.
#
# It goes on with the rows. A Parquet file is a row of blocks (*row groups*), and its footer says for each block the
# least and the greatest value of each column. Spark hands the reader its filter (`PushedFilters` in the plan), and a block
# in which nothing can be is not read. That helps only if the file is sorted so that the values lie together.
#
# ### A small exercise: which blocks?
#
# `blocks` is a list of pairs, the least and the greatest time in each block. We want the events from `first` to `last`,
# both included. Return the numbers (from 0) of the blocks that must be read, in order.

# %% [markdown] tags=["hints"]
# - When is there surely nothing in a block? When it ends before the stretch, or ...
# - A block can reach over one end of the stretch, lie inside it, or hold it whole.
# - All other blocks have to be read. Turn the two cases of the first hint round, join them, and keep the numbers of those blocks.

# %% tags=["exercise"]
def blocks_to_read(blocks, first, last):
    """The numbers of the blocks in which there may be an event from first to last."""
    ### BEGIN SOLUTION
    return [n for n, (low, high) in enumerate(blocks) if low <= last and high >= first]
    ### END SOLUTION

# %% tags=["check"]
check("25/read", blocks_to_read)

# %% [markdown]
# ## Round two: what crosses? (14 minutes)
#
# The second question: how many events of each kind are there, in all shops together? Every file has nearly every kind,
# and the counts of one kind must come together somewhere. Between "somewhere" and the files lies the **shuffle**: each
# task writes what it has for each of the others, and then those fetch it. It goes over the disk, and on a cluster over
# the network. A job is cut into **stages** at its shuffles; the tasks of one stage need nothing of each other.

# %%
by_kind = trace.groupBy("kind").count()
events, kinds = trace.count(), by_kind.count()
say(f"**{events:,}** events in {shops} files, of **{kinds}** kinds.")

# %% tags=["prediction"]
predict("tasks", "How many tasks does the job have, in all its stages together?", unit="tasks", prediction=...)

# %% tags=["prediction"]
predict("crossing", "How many rows go through the shuffle?", unit="rows", prediction=...)

# %%
from mqlab_spark.stages import stages_of


def stages(title, action):
    found = stages_of(spark, action)
    rows = [(number, stage.tasks, stage.rows_read, stage.rows_fetched, stage.rows_shuffled)
            for number, stage in enumerate(found, 1)]
    return Table(title, ("stage", "tasks", "rows read", "rows fetched", "rows given on"), rows), found

shown, found = stages("events of each kind", by_kind.collect)
shown

# %%
reveal("tasks", sum(stage.tasks for stage in found),
       why="One for each file, and then one that adds up: Spark saw how little had come, and put the rest together.")

# %%
reveal("crossing", found[0].rows_shuffled,
       why="Each task counts its own rows first, and gives on one row for each kind that it has seen.")

# %% [markdown]
# In the plan there are two `HashAggregate`, one below the `Exchange` (the shuffle) and one above it. The lower one works
# where the rows are. `count`, `sum`, `min`, `max` and `avg` can be put together from parts, so hardly anything crosses.
# A list of all values, an exact median, or a sort cannot: there every row crosses.
#
# What does one row for each file and kind mean for a million events in a file? The same number of rows. That is the
# second law: **let what is large stay where it is, and send what is small.**
#
# ### A small exercise: count what crosses
#
# `tasks` is a list: for each task the kinds of its rows, in any order. How many rows cross when the rows are counted by
# kind, as above?

# %% [markdown] tags=["hints"]
# - One task by itself: it gives on one row for each kind that it has.
# - Two tasks that have the same kind do not know of each other.
# - A `set` has each thing once. So how many rows does one task give on, and how many all of them?

# %% tags=["exercise"]
def rows_that_cross(tasks):
    """How many rows go through the shuffle when each task counts its own first."""
    ### BEGIN SOLUTION
    return sum(len(set(rows)) for rows in tasks)
    ### END SOLUTION

# %% tags=["check"]
check("25/crossing", rows_that_cross)

# %% [markdown]
# ## Round three: who has the work? (17 minutes)
#
# Some questions need all rows of a shop in one place, in order: what came before what? Spark puts them there by a
# number that it computes from the key (a *hash*), modulo the number of tasks. We do that by hand, with four tasks, and
# ask how many rows each one gets.

# %% tags=["prediction"]
predict("largest", "Four tasks share all the rows, by shop. What share of them has the largest task?",
        unit="%", prediction=...)

# %%
def dealt(tasks):
    """The rows of each task when the events are dealt out by shop."""
    counted = (trace.select("world").repartition(tasks, "world")
               .groupBy(F.spark_partition_id().alias("task")).count().collect())
    rows = {row["task"]: row["count"] for row in counted}
    return [rows.get(task, 0) for task in range(tasks)]

four = dealt(4)
show_bars("Rows of each of four tasks, dealt out by shop", "task", "rows", [str(n) for n in range(4)], {"rows": four})

# %%
reveal("largest", round(100 * max(four) / sum(four)),
       why="A shop stays whole: the task with the large one has all of that, and what fell to it beside.")

# %%
say(f"With four tasks the largest has **{max(four):,}** of {sum(four):,} rows.")

# %% [markdown]
# This is **skew**: keys are dealt out evenly, rows are not. What helps? More tasks, says many an article.

# %% tags=["prediction"]
predict("sixteen", "We take sixteen tasks in place of four. How many rows has the largest one then?",
        unit="rows", prediction=...)

# %% tags=["prediction"]
predict("faster", "And four cores in place of one: how many times as fast is this stage of sixteen tasks?",
        unit="times", prediction=...)

# %%
sixteen = dealt(16)
show_bars("Rows of each of sixteen tasks, dealt out by shop", "task", "rows", [str(n) for n in range(16)],
          {"rows": sixteen})

# %%
reveal("sixteen", max(sixteen), why="A key cannot be cut in two. More tasks only take its neighbours away from it.")

# %% [markdown]
# How long does such a stage take? Let a core do one row in one unit of time. Each free core takes the next task of the
# list. The stage is done when the last task is.

# %%
import heapq


def done_at(tasks, cores):
    busy = [0] * cores
    for rows in tasks:
        heapq.heappush(busy, heapq.heappop(busy) + rows)
    return max(busy)

at = {cores: done_at(sixteen, cores) for cores in (1, 2, 4, 8, 16)}
show_bars("When the stage of sixteen tasks is done", "cores", "time, in rows of one core", [str(n) for n in at],
          {"done": list(at.values())})

# %%
reveal("faster", round(at[1] / at[4], 1),
       why="It ends with its largest task. The other cores are done early, and wait.")

# %% [markdown]
# A cluster with a hundred machines would not be faster than the largest task. On the web page of Spark that is the stage
# with "199 of 200 tasks done" for an hour, and in its table of tasks the *max* stands far from the *median*. Adding
# machines is the answer to many tasks of one size, and to nothing else.
#
# ### A small exercise: what if one machine is slow?
#
# On a cluster not all cores are alike. `tasks` is a list of rows, dealt out in this order; each core that is free takes the
# next one. Of two that are free at the same moment the one that comes first in the list does. For one row core number n
# needs `ms_per_row[n]` ms, so the list has as many numbers as there are cores. When is all done, in ms?
#
# The function above, `done_at`, does not help as it is: it forgets which core is which.

# %% [markdown] tags=["hints"]
# - Keep for each core the time at which it is free: at first 0 for all.
# - The next task goes to the core that is free first, and makes it busy for as long as it has rows.
# - So you need the *number* of the core that is free first, not only when it is free: it says how long a row takes there. A list of times has an `index`. All is done when the last core is.

# %% tags=["exercise"]
def stage_done_at(tasks, ms_per_row):
    """When a stage is done whose cores are not alike, in ms."""
    ### BEGIN SOLUTION
    ends = [0] * len(ms_per_row)
    for rows in tasks:
        core = ends.index(min(ends))
        ends[core] += rows * ms_per_row[core]
    return max(ends)
    ### END SOLUTION

# %% tags=["check"]
check("25/stage", stage_done_at)

# %% [markdown]
# ## Break it: without the adaptive planner (5 minutes)
#
# How many tasks should there be behind a shuffle? Nobody knows before the rows are there. Spark's own default is 200.
# Since version 3.2 it looks after each stage what has come, and puts small parts together
# (*adaptive query execution*). We switch that off, and count the kinds once more.

# %% tags=["prediction"]
predict("two-hundred", "The same count by kind with Spark's default and without adaptive execution. How many tasks "
        "has the job now?", unit="tasks", prediction=...)

# %%
spark.conf.set("spark.sql.adaptive.enabled", "false")
spark.conf.set("spark.sql.shuffle.partitions", "200")
plain = trace.groupBy("kind").count()
shown, without = stages("events of each kind, without adaptive execution", plain.collect)
shown

# %%
reveal("two-hundred", sum(stage.tasks for stage in without),
       why="One for each file, and 200 behind the shuffle, most of which find nothing to do.")

# %%
idle = sum(rows == 0 for rows in without[-1].of_tasks)
spark.conf.set("spark.sql.adaptive.enabled", "true")
spark.conf.set("spark.sql.shuffle.partitions", "4")
say(f"**{idle}** of the 200 tasks got no row at all. Starting one costs some milliseconds, row or no row.")

# %% [markdown]
# Adaptive execution can also cut a large part of a *join* into several tasks (`spark.sql.adaptive.skewJoin.enabled`),
# because a join can be done piece by piece. With a window or a sort within a key it can't: only you know how your
# question can be put together from pieces. That is next.

# %% [markdown]
# ## Build it: the longest silence (17 minutes)
#
# For each shop: how many events, and what was the longest time in which *nothing* happened? With a window it is one line:
# for each event the time since the one before (`F.lag`), in the order of time, within the shop; and of that the maximum.
#
#     gap = F.col("ts_us") - F.lag("ts_us").over(Window.partitionBy("world").orderBy("ts_us"))
#
# It is right, and it is what you have just seen: all rows of the large shop in one task.
#
# So it is done in two steps. First the time of each shop is cut into slices of `slice_us` microseconds, and each shop *and slice*
# is summed up in one row. These are many small pieces, which are dealt out evenly. Then the answer for the shop is put together from
# its few rows. (This is what people call *salting* a key: something is added to it, so that it falls apart. Here it must be
# something that keeps neighbours together, or the gaps are wrong.)
#
# ### Cut the time
#
# The function gets a DataFrame with the columns `world` and `ts_us`, in no order. It returns one row for each world and slice in
# which something happens:
#
# | column | what |
# |---|---|
# | `world`, `slice` | slice 0 is from 0 to `slice_us` (not included), slice 1 from there to `2 * slice_us`, ... |
# | `events` | how many events |
# | `first_us`, `last_us` | the times of the first one and of the last one |
# | `inside_us` | the longest time between two events *of this slice*; null if there is only one |
#
# The check plays fifty worlds, one of them large, and looks at what you return, and at the tasks: none may get more than half of all rows.

# %% [markdown] tags=["hints"]
# - `F.floor(F.col("ts_us") / slice_us)` is the number of the slice.
# - A window over `world` *and* `slice` gives the time since the event before, and null for the first one of each slice.
# - `groupBy("world", "slice").agg(...)` of that has the rest: how many, the first, the last, and the longest time between two.

# %% tags=["exercise"]
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F


def slices(events: DataFrame, slice_us: int) -> DataFrame:
    """One row for each world and slice: its events, the first and the last of them, and the longest gap inside."""
    ### BEGIN SOLUTION
    sliced = events.withColumn("slice", F.floor(F.col("ts_us") / slice_us))
    inside = Window.partitionBy("world", "slice").orderBy("ts_us")
    return (
        sliced.withColumn("gap", F.col("ts_us") - F.lag("ts_us").over(inside))
        .groupBy("world", "slice")
        .agg(
            F.count("*").alias("events"),
            F.min("ts_us").alias("first_us"),
            F.max("ts_us").alias("last_us"),
            F.max("gap").alias("inside_us"),
        )
    )
    ### END SOLUTION


# %% tags=["check"]
check("25/slices", slices)

# %% [markdown]
# ### Put it together
#
# Now one row for each world, with `world`, `events` and `silence_us`: all its events, and the longest time between two of them, from the
# rows that `slices` gives (in no order). The silence may lie inside a slice, or begin in one and end in another, with empty slices in
# between, for which there are no rows. The check hands you rightly cut slices of fifty worlds, each cut in four widths.

# %% [markdown] tags=["hints"]
# - Here a window by `world` alone does no harm: there are few rows.
# - `F.lag("last_us")` over it, in the order of `slice`, is the last event of the slice before that has any. From there to `first_us`
#   nothing happened.
# - Then there are two silences in each row, one inside the slice and one in front of it. `F.greatest` takes the longer one and passes over nulls. What is left to do for each world?

# %% tags=["exercise"]
def silences(cut: DataFrame) -> DataFrame:
    """One row for each world: its events, and the longest time between two of them, from the rows of its slices."""
    ### BEGIN SOLUTION
    before = F.lag("last_us").over(Window.partitionBy("world").orderBy("slice"))
    return (
        cut.withColumn("across_us", F.col("first_us") - before)
        .groupBy("world")
        .agg(F.sum("events").alias("events"), F.max(F.greatest("inside_us", "across_us")).alias("silence_us"))
    )
    ### END SOLUTION


# %% tags=["check"]
check("25/longest-silence", silences)

# %% [markdown] tags=["teacher"]
# In `slices` the window over the world alone gives each slice the gap before it, too. Who leaves that out again has the right rows, and
# fails for the tasks. In `silences` most forget what lies between slices, or look for it in the slice before by number, which may be empty.
# A random salt (`F.rand()`) in place of a slice tears neighbours apart, and nothing can be put together from it.

# %% [markdown]
# ## The same job elsewhere
#
# Up to here one core of one machine did everything. Nothing in our DataFrames says so. Set `cluster = True` in the
# cell at the top (it needs 3 GB of free memory), and run the next cells: they start a real cluster on this machine, a
# *master* and two *workers* with one core each, do the same job there, and then once more over **Spark Connect**, where
# your notebook has no Spark in it at all and only sends plans to a server.

# %%
def same_job(spark):
    """The counts of each kind, and four worlds that are played by Spark's own processes: their trace hashes."""
    import os

    from mqlab_spark import worlds

    def who(batches):
        import pyarrow as pa
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"pid": [os.getpid()] * len(batch)})

    kinds = spark.read.schema(trace_schema()).parquet(folder.name).groupBy("kind").count().collect()
    played = worlds(spark, "async-send", "0-3", table="worlds").collect()
    pids = spark.range(0, 8, 1, 8).mapInArrow(who, "pid long").distinct().count()
    return sorted((row["kind"], row["count"]) for row in kinds), sorted(row["trace_hash"] for row in played), pids

# %% [markdown]
# What must be the same wherever it runs: the counts, and the trace hashes (a world is a function of its scenario and its seed,
# and of no machine). What differs: how many processes had a part in it, and the seconds.

# %%
def places():
    """Where the job was done, and what came of it: this process, two workers, and a client without Spark."""
    from mqlab_spark.local_cluster import LocalCluster

    told = [("this process, local[1]", same_job(spark))]
    spark.stop()
    with LocalCluster(workers=2) as started:
        away = session("lab 25", started.master)
        told.append(("a master and two workers", same_job(away)))
        away.stop()
        with started.connect_server() as server:
            client = session("lab 25", server.address)
            told.append(("Spark Connect, on the same cluster", same_job(client)))
            client.stop()
    (_, (kinds, hashes, _)), *_ = told
    return Table("one job in three places", ("where", "Python processes", "counts", "trace hashes"),
                 [(where, pids, "the same" if got == kinds else "OTHERS", "the same" if seen == hashes else "OTHERS")
                  for where, (got, seen, pids) in told])

places() if cluster else say("No cluster was started: `cluster` is False.")

# %% [markdown]
# Three things that a laptop never asks for, and a cluster does:
#
# - **The code must get there.** The workers have Python, pyspark and pyarrow; mqlab comes to them as one archive
#   (`make spark-archive`, `--py-files`; over Spark Connect `session()` sends it). What is missing is told late, by a task.
# - **The files must be seen from everywhere**: a path means a different disk on each machine. Hence object stores and HDFS.
# - **Machines die.** Spark does their tasks again somewhere else, and whatever a task did to the outside is done
#   twice. Our worlds do nothing to the outside, and come out the same when they are played again.
#
# [docs/spark.md](../docs/spark.md) says how to run this on YARN, on Kubernetes and against an object store, and what a run
# of a thousand million events would need.

# %% [markdown]
# ## What a broker has to do with it
#
# Skew is not Spark's. A topic of RocketMQ is cut into queues, and an ordered message goes to the queue that its key
# says (`MessageQueueSelector`, `SelectMessageQueueByHash`): one buyer with half of all orders is one queue with half of
# all orders, and one consumer who is always behind. More queues don't help, more consumers neither (lab 07). What helps is what helped
# here: a finer key, if the order of its parts is all that you need.
#
# **Where to read on**: `client/src/main/java/org/apache/rocketmq/client/producer/selector/SelectMessageQueueByHash.java`;
# Spark's own pages "Performance Tuning" and "Spark Connect Overview"; in mqlab `spark/mqlab_spark/stages.py`,
# `local_cluster.py` and `remote.py`.
#
# **Three questions to take home**
#
# 1. A stage has 1,000 tasks of one size and one that is fifty times as large. From how many cores on is another core
#    of no use? What if Spark took the large one first?
# 2. Two tables are joined by shop; one has a row for each shop, the other a thousand million events. Must the events
#    cross? What does Spark call the way in which they need not?
# 3. An exact median needs every row in one place. Which summary of a slice would allow a median that is right to within one
#    percent, and how many bytes has it?
#
# ## What you expected, and what was seen

# %%
reveal()
