# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   mqlab:
#     title: The slow consumer
#     question: A consumer stops asking when it holds too much. How often does it stop, how far does it fall behind, and what does the limit cost?
#     objectives:
#       - turn single refusals into episodes, with window functions
#       - play a grid of parameters over many seeds with one Spark job, and read a law from it
#       - say when the limit of a consumer costs throughput, and when it costs nothing
#     minutes: 88
#     prerequisites: [00 Tour, 06 Flow control, 20 A trace as data]
#     wrong_predictions:
#       - "episodes: as many as there were refusals; or one"
#       - "slow-took: longer, the consumer stands still all the time; it never has nothing to do"
#       - "fast-took: as long, since the slow packer showed that the limit costs nothing"
#       - "twice: all that it held when it died; what was only held was never packed. Or as many as before"
# ---

# %% tags=["parameters"]
student_id = ""
size = ""  # "million" or "small"; empty: what the variable MQLAB_LAB_DATA says, and else a million events

# %% [markdown]
# ## The scene (8 minutes)
#
# Orders come in a wave, faster than they can be packed. The packer (a push consumer) pulls two at a time and keeps them in its memory until its one thread has packed them. If it holds *more than* a limit
# (`pullThresholdForQueue`), it does not pull, and asks itself again 50 ms later. That was lab 06: one consumer, looked at closely. Now the question is what the limit **costs**, and one world cannot
# answer that. We need many limits, packers of many speeds, and many seeds.
#
# Every combination of parameters that is to be tried, as the rows of a table: that is a **grid**. We begin with it, since playing it takes a while: Spark plays one world for each row, in a thread beside this notebook, and you read on.

# %%
from concurrent.futures import ThreadPoolExecutor
from tempfile import TemporaryDirectory

from mqlab.check import NotSolvedYet, check, draws_for, predict, reveal, say, seed_for
from mqlab.views import Table
from mqlab_spark.background import size_of
from mqlab_widgets.charts import show_bars, show_lines

seed = seed_for(student_id, "22")
draw = draws_for(seed)

# %% tags=["nbval-ignore-output"]
from mqlab_spark import of_kind, open_at, session, worlds, worlds_of

spark = session("lab 22", driver_memory="512m", reuse_workers=False)

# %%
from pyspark.sql import functions as F

LIMITS = [1, 2, 4, 8, 16, 32, 64]
PACKING_MS = [5, 20, 100, 400]
first_seed, orders = draw.between("first seed", 1_000, 900_000), draw.between("orders", 130, 180)

seeds = spark.range(first_seed, first_seed + size_of(size, small=1, million=9)).withColumnRenamed("id", "seed")
grid = (seeds.crossJoin(spark.createDataFrame([(limit,) for limit in LIMITS], "threshold int"))
        .crossJoin(spark.createDataFrame([(ms,) for ms in PACKING_MS], "packing_ms int"))
        .withColumns({"scenario": F.lit("demo-slow-consumer"), "seconds": F.lit(90.0), "queues": F.lit(1),
                      "wave": F.lit(orders), "messages": F.lit(orders), "every_ms": F.lit(2), "calm_ms": F.lit(1_000)}))
Table("the first rows of the grid", ("threshold", "packing_ms", "wave", "queues", "seconds"),
      grid.orderBy("packing_ms", "threshold").select("threshold", "packing_ms", "wave", "queues", "seconds").limit(5).collect())

# %% [markdown]
# The columns `scenario`, `seed` and `seconds` say which world, all others are parameters of the scenario. `worlds_of(grid)` is the events of all these worlds: a DataFrame like any other, and
# nothing is played before somebody asks for rows. We ask for the kinds of events that we need, and have them written to files, one seed after the other, so that Spark has
# time for our other questions in between.

# %% tags=["nbval-ignore-output"]
folder = TemporaryDirectory()
kinds = ["MessageStored", "MessagesCached", "FlowControlled", "ConsumeStarted", "ConsumeFinished", "OffsetUpdated", "PullRequested"]

def play_all():
    for number in range(first_seed, first_seed + size_of(size, small=1, million=9)):
        wanted = worlds_of(grid.where(F.col("seed") == number)).where(F.col("kind").isin(kinds))
        wanted.write.mode("append").parquet(f"{folder.name}/sweep")

sweep_is_played = ThreadPoolExecutor(1).submit(play_all)

# %% [markdown]
# ## Round one: episodes (20 minutes)
#
# Meanwhile one world: a packer that takes about a quarter of a second for an order, waves of orders with a calm between them, two queues, and a low limit.

# %%
day = {"threshold": draw.between("limit", 3, 8), "wave": draw.between("wave", 24, 40), "calm_ms": draw.between("calm", 6_000, 9_000, step=500)}
one = worlds(spark, "demo-slow-consumer", str(draw.between("one day", 1_000, 900_000)), seconds=60, **day).cache()
refused = of_kind(one, "FlowControlled")
refusals = refused.count()
say(f"The limit is **{day['threshold']} orders** for each queue, a wave has **{day['wave']} orders**, and in 60 s the packer has put **{refusals:,} pulls** off.")

# %% [markdown]
# Many refusals are one story: the packer was full from here to there. An **episode** is a row of refusals of one queue in which none comes more than a second after the one before.

# %% tags=["prediction"]
predict("episodes", f"{refusals:,} refusals of two queues in 60 s. How many episodes are that?", unit="episodes", prediction=...)

# %%
from mqlab_spark.tables.gold.flow_control import FLOW_CONTROL

episodes = FLOW_CONTROL.make({"events": one}).orderBy("began_us", "queue_id").cache()
shown = episodes.select("queue_id", F.round(F.col("began_us") / 1e6, 2).alias("from, s"), F.round(F.col("ended_us") / 1e6, 2).alias("to, s"), "refusals", "most_cached")
Table("episodes", shown.columns, shown.collect())

# %%
reveal("episodes", episodes.count(), why="a queue is refused every 50 ms while it is full, and one wave makes one pile")

# %%
second = F.floor(F.col("ts_us") / 1_000_000)

def running(name, kind, of):
    rows = of_kind(one, kind).where(of).groupBy(second.alias("s")).count().orderBy("s").collect()
    so_far, points = 0, {0: 0}
    for row in rows:
        so_far += row["count"]
        points[row.s + 1] = so_far
    return [(s, max(count for at, count in points.items() if at <= s)) for s in range(61)]

came, done = running("stored", "MessageStored", "topic = 'Orders'"), running("packed", "ConsumeFinished", "true")
pile = show_lines("Where the pile is: orders that came, and orders that were packed", "time, s", "orders since the beginning", {"stored": came, "packed": done})
pile

# %% [markdown]
# The same chart, drawn by Bokeh in your browser: drag over a stretch to zoom. (Where no browser is at work, this cell shows nothing.)

# %% tags=["nbval-ignore-output"]
pile.live()

# %% [markdown]
# The distance between the two lines is the **lag**. It grows with each wave and falls in the calm. The packer holds a handful of it (the limit, and one pull on top); all the rest lies in the broker, on disk,
# where it belongs.
#
# The first episode, in the machine: `open_at` plays that world again and stops where the episode begins. Press **Next**: refused, and refused again.

# %%
open_at(episodes.withColumnRenamed("began_us", "ts_us").select("world", "node", "ts_us", "queue_id").first())

# %% [markdown]
# ### A small exercise: from refusals to episodes
#
# First in plain Python, for one queue. `times` are the moments of refusals in ms, in order. A refusal that comes more than `gap` ms after the one before begins a new episode. Return a list of
# tuples: (first moment, last moment, number of refusals). Where there was no refusal, there is no episode.

# %% [markdown] tags=["hints"]
# - Go through the times, and keep a list of episodes. Which one does a time belong to?
# - If there is an episode and `time - its last moment <= gap`, the time belongs to it. Else it begins a new one.
# - An episode that is still going on has to be changed, so keep it as a list of three, and make tuples at the end. Which two of the three change when one more time belongs to it?

# %% tags=["exercise"]
def episodes_of(times, gap):
    """Episodes as (first moment, last moment, refusals)."""
    ### BEGIN SOLUTION
    found = []
    for time in times:
        if found and time - found[-1][1] <= gap:
            found[-1][1] = time
            found[-1][2] += 1
        else:
            found.append([time, time, 1])
    return [tuple(each) for each in found]
    ### END SOLUTION


# %% tags=["check"]
check("22/episodes-of", episodes_of)

# %% [markdown]
# ## Round two: what does a limit cost? (16 minutes)
#
# Now the grid. One wave of orders, 2 ms apart, for packers that take up to 5, 20, 100 and 400 ms for an order (about two thirds of it, on average), each with seven limits. For each world: how long from the first order to the last one,
# how much the packer held at most, and how many pulls it put off.

# %% tags=["nbval-ignore-output"]
sweep_is_played.result()

# %%
sweep = spark.read.parquet(f"{folder.name}/sweep")
parameter = {name: F.regexp_extract("world", rf"{name}=(\d+)", 1).cast("int") for name in ("threshold", "packing_ms")}
runs = sweep.withColumns(parameter).groupBy("packing_ms", "threshold", "world").agg(
    ((F.max(F.expr("CASE kind WHEN 'ConsumeFinished' THEN ts_us END")) - F.min(F.expr("CASE kind WHEN 'ConsumeStarted' THEN ts_us END"))) / 1_000).alias("took_ms"),
    F.max(F.expr("CASE kind WHEN 'MessagesCached' THEN cached END")).alias("most_held"),
    F.count(F.expr("CASE kind WHEN 'FlowControlled' THEN 1 END")).alias("refusals"))
cells = runs.groupBy("packing_ms", "threshold").agg(
    F.count("*").alias("worlds"), F.round(F.avg("took_ms")).cast("int").alias("took_ms"), F.max("most_held").alias("most_held"), F.round(F.avg("refusals")).cast("int").alias("refusals")).cache()
of = {(row.packing_ms, row.threshold): row for row in cells.collect()}
say(f"With the limit 64 the packer that takes up to 400 ms was done with all {orders} orders in **{of[400, 64].took_ms:,} ms**, and put **{of[400, 64].refusals}** pulls off.")

# %% tags=["prediction"]
predict("slow-took", f"The slowest packer needs {of[400, 64].took_ms:,} ms with the limit 64. How long does it need with the limit 1?", unit="ms", prediction=...)

# %%
def rows_of(packing_ms):
    return [(limit, of[packing_ms, limit].took_ms, of[packing_ms, limit].most_held, of[packing_ms, limit].refusals) for limit in LIMITS]

Table("a packer that takes up to 400 ms", ("limit", "took, ms", "held at most", "pulls put off"), rows_of(400))

# %%
reveal("slow-took", of[400, 1].took_ms, why="it always holds at least one more order than it is packing")

# %% [markdown]
# The same time, to the millisecond. Hundreds of pulls were put off, and the packer was never without work. The limit decides only **where the pile lies**: in the packer's memory, or at the broker. With a low one the orders stay where they are
# safe, where another packer can get them when this one dies, and where a monitor sees them. "Flow control in the log" says *the listener is slow*. It does not say that the limit is wrong, and raising it makes nothing faster.
#
# ### A small exercise: choose a limit
#
# `rows` are tuples (limit, ms that it took, orders held at most), in any order. Return the smallest limit with which it took at most `percent` in a hundred longer than with the fastest one.

# %% [markdown] tags=["hints"]
# - Which row is the fastest? How long may it take then?
# - `took * 100 <= fastest * (100 + percent)` compares without rounding.
# - Of all rows that pass this comparison you want one number: the smallest limit. First work out `fastest`, over all rows.

# %% tags=["exercise"]
def smallest_good_limit(rows, percent):
    """The smallest limit that is at most so many percent slower than the fastest one."""
    ### BEGIN SOLUTION
    fastest = min(took for _, took, _ in rows)
    return min(limit for limit, took, _ in rows if took * 100 <= fastest * (100 + percent))
    ### END SOLUTION


# %% tags=["check"]
check("22/smallest-good-limit", smallest_good_limit)

# %% [markdown]
# ## Round three: a fast packer (14 minutes)
#
# So a low limit costs nothing? That was a slow packer. The fastest one takes up to 5 ms for an order.

# %%
say(f"With the limit 64 the packer that takes up to 5 ms was done in **{of[5, 64].took_ms:,} ms**, and put **{of[5, 64].refusals}** pulls off.")

# %% tags=["prediction"]
predict("fast-took", f"The fastest packer needs {of[5, 64].took_ms:,} ms with the limit 64. How long does it need with the limit 1?", unit="ms", prediction=...)

# %%
Table("a packer that takes up to 5 ms", ("limit", "took, ms", "held at most", "pulls put off"), rows_of(5))

# %%
reveal("fast-took", of[5, 1].took_ms, why="a refused pull waits 50 ms, and the little that is held is packed long before")

# %%
import math

show_lines("What a limit costs: time for all orders, beside the limit 64", "limit: 2 to the power of", "times as long",
           {f"up to {ms} ms each": [(math.log2(limit), of[ms, limit].took_ms / of[ms, 64].took_ms) for limit in LIMITS] for ms in PACKING_MS})

# %% [markdown]
# The limit hurts the **fast** consumer. The reason is the 50 ms (`PULL_TIME_DELAY_MILLS_WHEN_CACHE_FLOW_CONTROL`): who is refused comes back after 50 ms, and must have enough to do until then. A packer that takes 250 ms always has. One that takes 3 ms has packed
# its two orders after 6 ms, and stands idle for 44. So a limit is a stock for 50 ms, no more and no less, and the slower the listener, the smaller it may be. The default, 1000 for each queue, is enough for 20,000 orders a second.
#
# ### A small exercise: the least limit
#
# A packer with one thread has just been refused: it holds `limit + 1` orders and has just begun with the first. It looks again in 50 ms. What is the smallest limit, 1 or more, with which it has work for all of these 50 ms, if each order takes `ms_each`?

# %% [markdown] tags=["hints"]
# - How long is there work? So many orders are held, and each takes `ms_each`.
# - `(limit + 1) * ms_each` must be at least 50. Solve it for the limit, rounded up.
# - `-(-a // b)` rounds a division up. And a limit is never below 1, however slow the work is.

# %% tags=["exercise"]
def least_limit(ms_each):
    """The smallest limit with which a packer is never idle."""
    ### BEGIN SOLUTION
    return max(1, -(-50 // ms_each) - 1)
    ### END SOLUTION


# %% tags=["check"]
check("22/least-limit", least_limit)

# %% [markdown]
# ## Break it: the packer dies (8 minutes)
#
# "A high limit is dangerous: when the consumer dies, all that it holds comes twice." So one hears. We let the packer of round one die in the middle of a wave and come back, once with your limit and once with 500.

# %%
from mqlab import scenarios

second_wave_s = 2 + (day["wave"] * 40 + day["calm_ms"]) / 1_000
dies_s = round(second_wave_s + draw.between("dies", 3_000, 6_000) / 1_000, 1)


def twice_after_a_crash(limit):
    lab = scenarios.get("demo-slow-consumer").build(seed, parameters={**day, "threshold": limit})
    lab.faults(f"at {dies_s}s: crash consumer-1 for 2s")
    lab.run_for(seconds=60)
    held = [event.cached for event in lab.history.find("MessagesCached") if event.ts_us < dies_s * 1_000_000]
    packed = [event.msg_id for event in lab.history.find("ConsumeFinished")]
    return max(held), len(packed) - len(set(packed))

low = twice_after_a_crash(day["threshold"])
say(f"With the limit {day['threshold']} it had held up to **{low[0]}** orders of a queue, and **{low[1]}** orders were packed twice.")

# %% tags=["prediction"]
predict("twice", f"{low[1]} orders were packed twice with the limit {day['threshold']}. How many with the limit 500?", unit="orders", prediction=...)

# %%
high = twice_after_a_crash(500)
show_bars("A packer dies: what it held, and what was packed twice", "limit", "orders", [day["threshold"], 500],
          {"held at most, one queue": [low[0], high[0]], "packed twice": [low[1], high[1]]})

# %%
reveal("twice", high[1], why="twice comes what was packed since the broker was last told, and who pulls seldom tells seldom")

# %% [markdown]
# What is only *held* was never packed: it is fetched again, packed once, and nobody notices. So it is not what the packer held that comes twice. Twice comes what was *packed* and not yet told to the broker. Told it is every 5 s
# (`persistConsumerOffsetInterval`), **and with every pull**: a pull carries the offset up to which all is done (`commitOffset`; in the trace `OffsetCommitted` with the origin `pull`). A packer with a low limit pulls two orders, and two more, and tells each time. One with a high limit has the whole
# wave in its memory after the first moment, pulls nothing more, and says nothing for 5 s. The rule that one hears is right, and its reason is another one. (And if a consumer *hangs*, all that it holds waits with it, while others could have packed it.)
#
# ## Build it: episodes of many worlds (18 minutes)
#
# Now the exercise of round one for any number of worlds, queues and refusals, in Spark. One row for each episode, with the columns `world`, `node` (the consumer's machine), `queue_id`, `began_us`, `ended_us`, `refusals` and `most_cached` (the largest `cached`). A new episode
# begins where a refusal (`FlowControlled`) comes more than **500 ms** after the one before *of the same queue of the same consumer*.
#
# The tool for "the row before" is a **window**: `Window.partitionBy(...).orderBy("ts_us", "slice", "i")` puts rows in order within each group. `F.lag("ts_us").over(window)` is the value of the row before (null for the first), and
# `F.sum(x).over(window)` the sum up to this row. (Several events may have one microsecond; `slice` and `i` tell which came first.)

# %% [markdown] tags=["hints"]
# - A column that is 1 where an episode begins and 0 elsewhere. The first refusal of a queue has no row before it, so its gap is null, and `F.when(gap <= 500_000, 0).otherwise(1)` gives 1 for it.
# - The running sum of this column over the same window is the number of the episode. All rows with one number are one episode.
# - So a number of an episode is unique only within its queue. By which columns do you have to group, and which four of `F.min`, `F.max` and `F.count` does the answer want?

# %% tags=["exercise"]
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from mqlab_spark import of_kind


def flow_episodes(trace: DataFrame) -> DataFrame:
    """One row for each episode in which a queue of a consumer was full."""
    ### BEGIN SOLUTION
    queue = ["world", "node", "queue_id"]
    window = Window.partitionBy(queue).orderBy("ts_us", "slice", "i")
    gap = F.col("ts_us") - F.lag("ts_us").over(window)
    begins = of_kind(trace, "FlowControlled").withColumn("begins", F.when(gap <= 500_000, 0).otherwise(1))
    numbered = begins.withColumn("episode", F.sum("begins").over(window))
    return numbered.groupBy(*queue, "episode").agg(
        F.min("ts_us").alias("began_us"),
        F.max("ts_us").alias("ended_us"),
        F.count("*").alias("refusals"),
        F.max("cached").alias("most_cached"),
    )
    ### END SOLUTION


# %% tags=["check"]
check("22/flow-episodes", flow_episodes)

# %% [markdown] tags=["teacher"]
# Most first attempts leave a column out of the window: then the queues of one consumer, or the worlds, run into each other, and episodes become too long. Cutting time into pieces of half a second (`floor(ts / 500000)`) looks right in a table and
# tears long episodes into many.

# %% [markdown]
# ## Today's RocketMQ and the articles (4 minutes)
#
# - Advice to "raise pullThresholdForQueue when you see flow control" is as old as RocketMQ. You have seen for which consumers it helps.
# - With Pop (lab 11) a consumer has another limit: how many orders it has that are invisible to the others (`popThresholdForQueue`, 96).
# - To read on: `DefaultMQPushConsumerImpl.pullMessage`, the three questions at its top; the tables `flow_control` and `lag` of `mqlab_spark` ([tables](../docs/tables.md)).
#
# Three questions to take home:
#
# 1. Your grid had 28 cells with some seeds each. How many worlds would ten parameters with four values each need, and how would you choose some of them?
# 2. A consumer with 20 threads and listeners of 5 ms: which limit does it need for each of its 4 queues?
# 3. The grid's worlds were played by Spark's tasks, one after the other in each. What of this notebook changes on a cluster with 100 cores, and what does not?
#
# ## What you expected, and what was seen

# %%
reveal()
