# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   mqlab:
#     title: A trace as data (PySpark)
#     question: Ten minutes in a shop are tens of thousands of events. How does one ask them anything?
#     objectives:
#       - record a world as a trace, and ask one trace or twenty of them with one Spark job
#       - read percentiles and histograms, and say what a mean or a single run hides
#       - join events into one row per message that says why it had to wait
#     minutes: 91
#     prerequisites: [00 Tour]
#     wrong_predictions:
#       - "events: five or ten for each order; it is some dozens, and most of them belong to pulls that bring nothing"
#       - "median-wait: half of 5 s or half of 15 s; arrival wakes a held pull at once, the pass only ends it"
#       - "slowest-percent: a few ms, since the median is below one"
#       - "shape: one bar at 15 s, as the client asked; or even from 15 to 20"
#       - "twenty: the teeth of one world again; they were chance"
#       - "pause: as many as before, since 100 ms are less than a bar is wide; some holds get shorter by five seconds"
#       - "brought: a handful, since pulls are nearly always held; but not while readers start"
# ---

# %% tags=["parameters"]
student_id = ""

# %% [markdown]
# In the other labs we stop the machine and look. That answers "what happens here?". It does not answer "how often,
# how long, and for whom?". For that one needs every event, as data.
#
# A **trace** is just that: each thing that happened in a world, one row each, with its time in microseconds. This
# lab records one, loads it with **Spark** (a program that runs one question over many files, on many machines if it
# must), and asks two questions: how long do messages wait, and how long do requests wait?
#
# What you need to know from the tour: a consumer asks the broker for messages of one queue; that request is a
# **pull**. If there is nothing new, the broker does not say no. It **holds** the pull, and answers when something
# comes, or when the pull's time is up. The consumer asks for 15 seconds.

# %%
from tempfile import TemporaryDirectory

from mqlab import scenarios
from mqlab.check import NotSolvedYet, check, draws_for, predict, reveal, say, seed_for
from mqlab.trace.recorder import ParquetRecorder
from mqlab.views import Table
from mqlab_widgets.charts import show_bars, show_dots, show_histogram

seed = seed_for(student_id, "20")
draw = draws_for(seed)

# %% [markdown]
# ## The scene (13 minutes)
#
# The scenario `shop-day`: orders come in from the first second, in some queues. Three readers (one consumer group)
# join one by one within the first seconds. The day has many orders a second, the night one every ten seconds.

# %%
shop = {"queues": draw.between("queues", 4, 8), "day_s": draw.between("day", 40, 90, step=5),
        "day_gap_ms": draw.between("gap", 40, 60)}
lab = scenarios.get("shop-day").play(seed, parameters=shop)
lab.topics()

# %%
say(f"Your shop has **{shop['queues']}** queues, its day has **{shop['day_s']} s** with an order about every "
    f"**{shop['day_gap_ms']} ms**, and the whole trace has 600 s.")

# %% [markdown]
# (The topic `%RETRY%readers` is the group's own, for messages that failed. Here none does, so it stays empty. Its
# queue is pulled all the same; we shall see it again.)
#
# One order of the night, from the broker's point of view: it is stored, its queue gets an entry, a held pull wakes,
# and its answer goes out.

# %%
order = lab.history.last("MessageStored")
lab.space_time(order.ts_ms - 0.6, order.ts_ms + 1.5,
               nodes=["producer-1", "broker-a", "consumer-1", "consumer-2", "consumer-3"],
               kinds=["MessageStored", "MessageDispatched", "PullWoken", "PullHeld", "ConsumeStarted"])

# %% tags=["prediction"]
predict("events", "How many events does the trace have for each order, on average?",
        unit="events", prediction=...)

# %%
orders = lab.topics().rows[-1][-1]
print(f"{len(lab.history):,} events, {orders:,} orders")

# %%
reveal("events", round(len(lab.history) / orders),
       why="Each pull is asked, sent, received, held, woken, answered; most of them at night for nothing.")

# %% [markdown]
# Let us see what that means outside of a laboratory. A large broker takes in a hundred thousand messages a second.
# At this rate an hour of it has about ten billion events. No list in Python holds them. So the events go into
# files in columns (**Parquet**: all times together, all kinds together, which packs well and lets a reader skip the
# columns it does not need), and the questions go to a program that can work on many files in many places at once.

# %%
folder = TemporaryDirectory()

def record(lab, name):
    with ParquetRecorder(f"{folder.name}/{name}.parquet", {"scenario": "shop-day"}) as recorder:
        for row in lab.history.rows():
            recorder(row)

record(lab, "day")

# %% [markdown]
# On a command line `mqlab trace shop-day --seed 7 --out day.parquet` does such a thing.
#
# Now Spark (`make spark` installs it, once). It is a Java program, and takes some seconds to start. Half a gigabyte of
# memory is plenty for us. The session is one for the whole process: whoever asks again gets the same one.

# %% tags=["nbval-ignore-output"]
from mqlab_spark import of_kind, read_trace, session

spark = session("lab 20", driver_memory="512m")

# %%
trace = read_trace(spark, f"{folder.name}/day.parquet")
held = of_kind(trace, "PullHeld")
held

# %% [markdown]
# That came at once, because nothing was read. A **DataFrame** is a table that is *described*: which files, which
# rows, which columns. The work begins when somebody wants to see rows. Two habits for the rest of this lab: we always
# say in which order we want them (Spark promises none), and we show them with a function of our own.
#
# Each step below makes a new description from an old one, and changes nothing in it. With these you can read this lab,
# and write its large exercise:
#
# | step | the table that it describes |
# |---|---|
# | `t.select("node", F.col("ts_us").alias("stored_us"))` | only these columns, one of them under another name |
# | `t.where("queue_id = 2 AND hold_ms > 0")` | only the rows for which that holds |
# | `t.withColumn("s", F.col("ts_us") / 1_000_000)` | one column more, worked out from others in the same row |
# | `t.groupBy("node").agg(F.count("*").alias("n"), F.min("ts_us"))` | one row for each node: how many rows it had, and the least of their times |
# | `a.join(b, ["world", "node"])` | each row of `a` beside each row of `b` that is equal in these columns; who has no partner is left out |
# | `a.join(b, ["world", "node"], "left")` | the same, but a row of `a` without a partner stays, and the columns of `b` are **null** (nothing) in it |
#
# `F` is `from pyspark.sql import functions as F`. `F.col("x")` is the column x of whatever table it is used on. A comparison
# with null is null, and `where` takes that for no; `F.coalesce("x", F.lit(0))` puts a 0 in its place. Rows come into Python,
# as a list, with `collect()`.

# %%
def table(title, frame):
    return Table(title, frame.columns, frame.collect())

columns = ["ts_us", "node", "topic", "queue_id", "queue_offset", "hold_ms", "remote", "opaque"]
table("the first five pulls that were held", held.orderBy("slice", "i").select(columns).limit(5))

# %% [markdown]
# A kind that does not exist is answered before any work is done:

# %% tags=["raises-exception"]
of_kind(trace, "PullHold")

# %% [markdown]
# `remote` and `opaque` together are the name of a request: the connection it came on, and the number that the client
# gave it. Remember that; you will need it. What is in the trace at all?

# %%
counted = trace.groupBy("kind").count().orderBy("count", "kind", ascending=[False, True])
table("the ten most frequent kinds of event", counted.limit(10))

# %% [markdown]
# ## Round one: how long does an order wait? (14 minutes)
#
# From the moment when the broker has stored it to the moment when a reader's listener gets it. In between stands a
# pull that is probably held. The thread that looks after held pulls, `PullRequestHoldService`, sleeps for 5 seconds
# between two looks.

# %% tags=["prediction"]
predict("median-wait", "Half of the orders wait for less than ... (the median)?",
        choices=["about 1 ms",
                 "about 2.5 s: half of what the thread sleeps",
                 "about 7.5 s: half of the 15 seconds"], prediction=...)

# %% tags=["prediction"]
predict("slowest-percent", "And the slowest hundredth: one order in a hundred waits longer than ...?",
        unit="ms", prediction=...)

# %%
from mqlab_spark.jobs import consume_latency, percentiles

waits = consume_latency(trace)
per_queue = percentiles(waits, "queue_id").orderBy("queue_id")
table("from stored to listener", per_queue)

# %%
NAMES = {"median": "p50_ms", "nine in ten": "p90_ms", "99 in 100": "p99_ms", "longest": "max_ms"}

def spread(title, y_label, frame):
    rows = {row[0]: {name: row[column] for name, column in NAMES.items()} for row in frame.collect()}
    return show_dots(title, "time, ms; each step is ten times the one before", y_label, rows, log=True)

spread("From stored to listener: how long orders wait", "queue", per_queue)

# %% [markdown]
# A **percentile** is a value that so many percent stay below: p50 is the median, p99 is what one in a hundred
# exceeds. The jobs come from the package `mqlab_spark.jobs`; each is a function from DataFrame to DataFrame, so that
# they can be put behind one another: first the waits, one row for each order, then what is said about them. Over all
# queues together:

# %%
(overall,) = percentiles(waits).collect()
reveal("median-wait", "a" if overall.p50_ms < 5 else "b",
       why="The reput thread tells of each new message, and the held pull is woken at once.")

# %%
reveal("slowest-percent", round(overall.p99_ms),
       why="These are orders of another kind. Which kind, you will find out yourself.")

# %% [markdown]
# A held pull does not wait for the thread that sleeps. Another thread, `ReputMessageService`, gives each new message
# its entry in the queue, and then calls `NotifyMessageArrivingListener`, which wakes the pulls that are held for that
# queue. You saw both in the picture, at the same microsecond.

# %% [markdown]
# Measured on a real RocketMQ 5.3.3: twelve messages that met a held pull took 7 to 282 ms, half of them less
# than 26 ms, on a machine that had a lot else to do. The seconds of sleep do not show there either.
#
# Most dashboards show a mean, and the mean of our waits is this:

# %%
from pyspark.sql import functions as F

mean_ms = waits.agg(F.avg("latency_us") / 1_000).first()[0]
near = waits.where(F.col("latency_us").between(mean_ms * 500, mean_ms * 2_000)).count()
print(f"mean {mean_ms:.0f} ms; orders between half of that and twice that: {near} of {overall['count']:,}")

# %% [markdown]
# Nearly nobody waited for about the mean. There are two crowds, one at a millisecond and one at seconds, and the mean
# lies where hardly anybody is. And a warning about p99 per queue: a queue has only some hundred orders here, so
# its p99 rests on the few slowest. It is a story about a few orders, with a decimal point.
#
# ### A small exercise: a percentile
#
# Write one yourself: the smallest of the waits for which at least `percent` in a hundred waits are not longer. (Spark's
# `percentile` also takes points between two waits; yours does not need that.)

# %% [markdown] tags=["hints"]
# - Sort. How many of the waits are not longer than the one at index 0? And at index n?
# - So many waits must be not longer: `percent * len(waits) / 100`, rounded up.
# - `-(-a // b)` is `a / b` rounded up, in whole numbers. Which place has the n-th of a list that is counted from 0?

# %% tags=["exercise"]
def percentile(waits, percent):
    """The smallest wait that at least `percent` in a hundred waits do not exceed."""
    ### BEGIN SOLUTION
    count = -(-percent * len(waits) // 100)
    return sorted(waits)[count - 1]
    ### END SOLUTION

# %% tags=["check"]
check("20/percentile", percentile)

# %% [markdown]
# ## Round two: how long does a pull wait? (14 minutes)
#
# The other side of the same pulls. Some are woken by an order. Some are held for nothing: their time is up, and they are
# answered with nothing. Those we look at. The consumer wrote "hold me for 15,000 ms" into each request (you saw it in
# the column `hold_ms`).

# %% tags=["prediction"]
predict("shape", "How long were the pulls held that got nothing? What will the histogram look like?",
        choices=["one bar at 15 s",
                 "even, from 15 to 20 s",
                 "a tall bar just below 20 s, and a low floor from 15 s on",
                 "a hill around 15 s: some earlier, some later"], prediction=...)

# %%
from mqlab_spark.jobs import histogram, hold_times

holds = hold_times(trace)
for_nothing = holds.where("reason = 'timed out'")

def bins(frame):
    rows = histogram(frame, 250).orderBy("from_ms").collect()
    return [(row.from_ms / 1_000, row.to_ms / 1_000, row.holds) for row in rows]

teeth = show_histogram("Pulls that were held for nothing", "hold time, s", "pulls", {"holds": bins(for_nothing)},
                       x_range=(14.5, 20.5))
teeth

# %% [markdown]
# The same chart, drawn by Bokeh in your browser: drag over a stretch to zoom, point at a bar for its numbers. (Where
# no browser is at work, this cell shows nothing.)

# %% tags=["nbval-ignore-output"]
teeth.live()

# %%
last = for_nothing.where("hold_us >= 19750000").count()
reveal("shape", "c" if last > for_nothing.count() / 3 else "b",
       why="The broker compares ages only when the hold service looks, every 5 s.")

# %% [markdown]
# Why? One question to the same table: at which moments did the holds end? We take each moment modulo 5 seconds (what
# is left of it after the last full 5 s) and count how many different values there are.

# %%
moment = F.col("woken_at_us") % 5_000_000
ends = holds.groupBy("reason").agg(F.count("*").alias("holds"),
                                   F.countDistinct(moment).alias("different moments"))
table("moments at which holds ended, modulo 5 s", ends.orderBy("reason"))

# %% [markdown]
# The pulls held for nothing ended, all of them, at the same moment of the 5-second beat. `PullRequestHoldService.run`
# waits 5 s, goes through all held pulls (a **pass**), waits 5 s again. "15 seconds" is a number in the request
# (`BROKER_SUSPEND_MAX_TIME_MILLIS`, written by `DefaultMQPushConsumerImpl`); nobody sets an alarm clock to it. So 15
# s becomes 15 to 20 s, depending on where in the beat the pull began. That is the floor.
#
# And the tall bar? Look at one queue that never gets a message, the one for failed messages:

# %%
empty = for_nothing.where("topic LIKE '%RETRY%'").orderBy("held_at_us")
table("an empty queue, its first holds", empty.select("held_at_us", "woken_at_us", "hold_us").limit(5))

# %% [markdown]
# A pull gets an empty answer at a pass. The consumer pulls again at once, and the new pull reaches the broker a
# fraction of a millisecond later. Fifteen seconds after the answer the service looks for the third time, and the pull
# is **14.9995 seconds** old. Too young! It waits for the fourth look. And so on, all night: a pull that follows an empty
# answer begins just after a pass, and so does the one after it.
#
# The real one, RocketMQ 5.3.3, ten holds on an empty queue (ms): 15345, 20047, 15174, 15230, 17707, 20088, 15315,
# 15105, 20092, 15309. All between 15.0 and 20.1 s, as here, and some of them 20.0; but more at the *other* end. We
# come back to that.
#
# ### A small exercise: how long is it held?
#
# Write the law: a pull reaches the broker at `begin_us` and asks to be held for `asked_us`. Nothing comes. The passes are
# at 0 s, 5 s, 10 s, 15 s, ..., all times in microseconds. How long is it held?

# %% [markdown] tags=["hints"]
# - Until the first pass at which its age is at least `asked_us`.
# - That is the first multiple of 5,000,000 that is not before `begin_us + asked_us`.
# - `-(-a // b)` says how many times b fits into a, rounded up. That gives the moment at which it ends; the question was how long it was held.

# %% tags=["exercise"]
def held_for_us(begin_us, asked_us):
    """How long a pull for which nothing comes is held, in microseconds."""
    ### BEGIN SOLUTION
    end_us = -(-(begin_us + asked_us) // 5_000_000) * 5_000_000
    return end_us - begin_us
    ### END SOLUTION

# %% tags=["check"]
check("20/hold", held_for_us)

# %% [markdown]
# ## Round three: one night or twenty? (8 minutes)
#
# Between 15 s and the tall bar our histogram has a floor with teeth and gaps. Chance, or a law? One world cannot say.
# But a world is cheap: we record twenty nights, each with another seed, and read all files as **one** DataFrame. Its
# first column, `world`, says which file a row is from.

# %% tags=["prediction"]
predict("twenty", "The same histogram over twenty nights. What becomes of the floor between 15 and 19.75 s?",
        choices=["the same teeth, twenty times as tall",
                 "an even floor without gaps",
                 "it rises towards 20 s"], prediction=...)

# %%
for number in range(1, 21):
    record(scenarios.get("shop-day").play(number, seconds=180, parameters={"day_s": 0}), f"night-{number:02}")

nights = hold_times(read_trace(spark, f"{folder.name}/night-*.parquet")).where("reason = 'timed out'")
twenty = bins(nights)
show_histogram("Twenty nights: pulls that were held for nothing", "hold time, s", "pulls", {"holds": twenty},
               x_range=(14.5, 20.5))

# %%
floor = [count for start, _, count in twenty if start < 19.75]
early, late = sum(floor[: len(floor) // 2]), sum(floor[len(floor) // 2 :])
reveal("twenty", "c" if late > 2 * early else "b" if len(floor) == 19 else "a",
       why="Orders know nothing of the beat: a pull that follows one begins anywhere in it.")

# %% [markdown]
# The teeth were chance, the floor and the tall bar are the law. (The floor even falls a little towards 20 s. Why? A
# pull that would be held longer has more time to be woken by an order, and then it is no hold for nothing.) And "never
# below 15 s, never above 20.1 s" is now a claim about twenty worlds, judged by one job:

# %%
table("twenty nights",
      nights.agg(F.countDistinct("world").alias("worlds"), F.count("*").alias("holds for nothing"),
                 F.min("hold_us").alias("shortest, us"), F.max("hold_us").alias("longest, us")))

# %% [markdown]
# ### A small exercise: chance, or a law?
#
# `holds` is a list of pairs, (world, hold in ms), in any order. Sort the holds into bins of `width_ms` (bin 0 begins at 0 ms, bin 1
# at `width_ms`), and return the numbers of the bins that *every* world has, as a set.

# %%
say(f"In your one night {len(bins(for_nothing))} bins of 250 ms had something in them, in the twenty nights together {len(twenty)}.")

# %% [markdown] tags=["hints"]
# - First the bins of each world by itself: a set for each. A bin's number is `hold_ms // width_ms`.
# - What stands in all sets is their intersection: `a & b`, or `set.intersection(*sets)`.
# - One loop over the holds fills a dictionary with a set for each world (`setdefault`); one line behind it intersects all sets.

# %% tags=["exercise"]
def in_every_world(holds, width_ms):
    """The bins in which every world has a hold."""
    ### BEGIN SOLUTION
    found = {}
    for world, hold_ms in holds:
        found.setdefault(world, set()).add(hold_ms // width_ms)
    return set.intersection(*found.values())
    ### END SOLUTION

# %% tags=["check"]
check("20/every-world", in_every_world)

# %% [markdown]
# ## Break it: the broker pauses (5 minutes)
#
# A Java process stops now and then for its garbage collector, or because the machine has something else to do. We let
# the broker hang for 200 ms, every 35 seconds, beginning 100 ms *before* a pass is due: that pass comes 100 ms late.

# %%
tall = for_nothing.where("hold_us >= 19500000").count()
say(f"Without pauses your shop had **{for_nothing.count()}** holds for nothing. **{tall}** of them stood in the tall bar, at 20 s.")

# %% tags=["prediction"]
predict("pause", f"{tall} pulls were held for 19.5 s or more. Now some passes come 100 ms late. How many are it then?",
        unit="pulls", prediction=...)

# %%
lab = scenarios.get("shop-day").build(seed, parameters=shop)
lab.faults("\n".join(f"at {late - 0.1:.1f}s: freeze broker-a for 200ms" for late in range(75, 600, 35)))
lab.run_for(seconds=600)
record(lab, "pauses")

pauses = hold_times(read_trace(spark, f"{folder.name}/pauses.parquet")).where("reason = 'timed out'")
show_histogram("A broker with pauses: pulls that were held for nothing", "hold time, s", "pulls",
               {"holds": bins(pauses)}, x_range=(14.5, 20.5))

# %%
RANGES = [(15.0, 15.5), (15.5, 19.5), (19.5, 20.5)]
MEASURED_S = [15.345, 20.047, 15.174, 15.230, 17.707, 20.088, 15.315, 15.105, 20.092, 15.309]

def seconds(frame):
    return [row.hold_us / 1_000_000 for row in frame.collect()]

def share(holds_s):
    return [round(100 * sum(low <= s < high for s in holds_s) / len(holds_s), 1) for low, high in RANGES]

shares = {"mqlab": share(seconds(for_nothing)), "with pauses": share(seconds(pauses)),
          "real 5.3.3, ten holds": share(MEASURED_S)}
show_bars("Where the holds for nothing lie", "hold time, s", "share, %",
          [f"{low} to {high}" for low, high in RANGES], shares)

# %%
reveal("pause", pauses.where("hold_us >= 19500000").count(),
       why="When the pass is late, the pulls that would be 14.9995 s old are 15.1 s old: old enough.")

# %% [markdown]
# A part of the tall bar has moved to 15.1 s. A tenth of a second of delay takes five seconds off. Nothing is faster, of course: the pull gets its empty answer a bit
# sooner, and the next one goes out. But this is why the real one has a tall bar at 15 s *and* one at 20 s. On the measured
# machine the passes came 12 to 106 ms late on average, and in Java the 5 s begin anew after each pass
# (`ServiceThread.waitForRunning`), so that delays add up: three late passes made a pull 180 to 320 ms older than 15 s.
# Only when three passes in a row were punctual did it have to wait for the fourth. mqlab's threads wake on the
# microsecond, which is why you had to break one to see it.
#
# It is also the reason why the client gives a held pull 30 s (`CONSUMER_TIMEOUT_MILLIS_WHEN_SUSPEND`) before it calls
# it lost: 15 s would be too short for every single one.

# %% [markdown]
# ## Build it: why did it wait? (26 minutes)
#
# Back to the slowest hundredth of round one. To find out who they are, we need a table with one row for each message,
# saying *how it came about* that the broker gave it out. There are three ways:
#
# | cause | what happened |
# |---|---|
# | `arrived` | the message woke a pull that was held |
# | `timed out` | a held pull was woken because its time was up, and at the second look the message was there |
# | `first pull` | the pull did not have to be held: the message was there before it |
#
# Write the transform. It gets a trace (one world or many) and returns a DataFrame with the columns `world`, `node`,
# `group`, `topic`, `queue_id`, `queue_offset`, `cause`, `wait_us`, `held_us`. One row for each message and each group that
# got it. `wait_us` is the time from `MessageStored` to the `PullAnswered` that brought it. `held_us` is how long the pull
# that brought it was held: from its `PullHeld` to its `PullWoken`, and 0 if it was not held.
#
# | event | fields that you need |
# |---|---|
# | `MessageStored` | `topic`, `queue_id`, `queue_offset` |
# | `PullHeld` | `remote`, `opaque` |
# | `PullWoken` | `reason` (`arrived` or `timed out`), `remote`, `opaque` |
# | `PullAnswered` | `group`, `topic`, `queue_id`, `queue_offset` (the first that was asked for), `next_offset` (where to go on), `messages`, `remote`, `opaque` |
#
# Every event has `world`, `node` (here: the broker) and `ts_us`. Four things to mind:
#
# - One answer can bring many messages, with the offsets from `queue_offset` to `next_offset - 1`, and many answers
#   bring none. `F.sequence(a, b)` makes a list of numbers, `F.explode(list)` a row of each.
# - A request is named by `world`, `node`, `remote` and `opaque`. Every client counts its requests from the same number.
# - A pull that was not held has no `PullHeld` and no `PullWoken`.
# - After a crash a message can be given to the same group twice. The first time counts:
#   `F.min_by("cause", "ts_us")` is the cause in the row with the smallest time.
#
# The check records fifty small worlds and judges all of them with one job. Some have two brokers or two groups, some
# have slow brokers or a reader that crashes. (`mqlab_spark.jobs` has a job that answers a part of this, for a look
# afterwards; it does not know how long a pull was held.)

# %% [markdown] tags=["hints"]
# - Make three small tables first, each with `of_kind` and `select`, and look at the columns: what was stored, what was woken
#   (with the time at which it was held), what was answered with messages. Give each time its own name with `alias`.
# - Join the answers with the wake-ups on the name of a request, with `how="left"`: a pull that was not held must not get
#   lost. `F.coalesce("reason", F.lit("first pull"))` fills the gap, and the same with 0 for the hold. Then `explode`.
# - At the end: `groupBy` the message and the group, with `F.min("ts_us")`, `F.min_by("cause", "ts_us")` and
#   `F.min_by("held_us", "ts_us")`; then join what was stored on the message, and subtract.


# %% tags=["exercise"]
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqlab_spark import of_kind


def time_to_delivery(trace: DataFrame) -> DataFrame:
    """One row for each message and group: why the broker gave it out, and how long after it was stored."""
    ### BEGIN SOLUTION
    pull = ["world", "node", "remote", "opaque"]
    message = ["world", "node", "topic", "queue_id", "queue_offset"]
    stored = of_kind(trace, "MessageStored").select(*message, F.col("ts_us").alias("stored_us"))
    held = of_kind(trace, "PullHeld").select(*pull, F.col("ts_us").alias("from_us"))
    woken = of_kind(trace, "PullWoken").select(*pull, "reason", F.col("ts_us").alias("to_us"))
    holds = woken.join(held, on=pull, how="inner").withColumn("held_us", F.col("to_us") - F.col("from_us"))
    offsets = F.sequence(F.col("queue_offset"), F.col("next_offset") - 1)
    delivered = (
        of_kind(trace, "PullAnswered")
        .where("messages > 0")
        .join(holds, on=pull, how="left")
        .withColumn("cause", F.coalesce("reason", F.lit("first pull")))
        .withColumn("held_us", F.coalesce("held_us", F.lit(0)))
        .withColumn("queue_offset", F.explode(offsets))
        .groupBy(*message, "group")
        .agg(
            F.min("ts_us").alias("delivered_us"),
            F.min_by("cause", "ts_us").alias("cause"),
            F.min_by("held_us", "ts_us").alias("held_us"),
        )
    )
    wait_us = F.col("delivered_us") - F.col("stored_us")
    return delivered.join(stored, on=message, how="inner").select(
        "world", "node", "group", "topic", "queue_id", "queue_offset", "cause", wait_us.alias("wait_us"), "held_us"
    )
    ### END SOLUTION


# %% tags=["check"]
check("20/time-to-delivery", time_to_delivery)

# %% [markdown] tags=["teacher"]
# Most first attempts join on `opaque` alone: within one world of one client that is right, and with two clients it
# gives a wrong cause to a few rows only, which no look at the table shows. The second most frequent mistake is the
# inner join, which loses exactly the rows that the question was about. `jobs.delivery_latency` with a renamed column
# does not pass: it lacks `held_us`, and has lost the name of the pull by which one could join it.

# %% [markdown]
# ## Who are the slow ones? (5 minutes)
#
# Before the answer, one bet. In the shop's ten minutes there were many holds that timed out, and each of them was
# looked at once more before it was answered.

# %% tags=["prediction"]
predict("brought", "How many of the orders did not wake a pull that was held?", unit="orders", prediction=...)

# %%
from mqlab_spark.jobs import delivery_latency

delivered = delivery_latency(trace)
by_cause = percentiles(delivered, "cause").orderBy("cause")
table("from stored to handed out by the broker, by cause", by_cause)

# %%
reveal("brought", delivered.where("cause != 'arrived'").count(),
       why="They were there before the pull. A hold that timed out brings nothing: an order would have to come in the 40 us "
           "between waking the pull and looking again.")

# %%
spread("From stored to handed out by the broker", "cause", by_cause)

# %% [markdown]
# Here are the two crowds, told apart by one column. Orders that woke a pull: a millisecond, always. Orders that were
# there before the pull: up to seconds. When was that?

# %%
second = F.floor(F.col("delivered_us") / 100_000) / 10
slow = delivered.where("cause = 'first pull' AND latency_us > 10000")
table("orders that waited longer than 10 ms for a first pull",
      slow.groupBy(second.alias("handed out at, s"))
      .agg(F.count("*").alias("orders"), F.countDistinct("queue_id").alias("queues"),
           F.round(F.max("latency_us") / 1_000_000, 2).alias("longest, s"))
      .orderBy("handed out at, s"))

# %%
table("who owned how many queues of the topic, and since when",
      of_kind(trace, "QueueAllocated").where("topic = 'Orders'")
      .groupBy((F.floor(F.col("ts_us") / 100_000) / 10).alias("at, s"), F.col("node").alias("reader"))
      .agg(F.count("*").alias("queues taken")).orderBy("at, s", "reader"))

# %% [markdown]
# The first moment is the opening of the shop: the first reader's first pulls find what came before. The later ones
# belong to readers who joined. A queue that changes hands is pulled by nobody for a while: its old owner has stopped,
# and the new one waits half a second before its first pull. (An order may even be given out twice at such a moment;
# the table counts the first time. Lab 07 is about that.) No order was lost and no broker was slow. The p99 of every
# queue in round one was a picture of **three readers that start**, and the broker would have got the blame.
#
# That is what a cause column is for. A percentile tells you that something is slow; to say what, you need the join.

# %% [markdown]
# ## What it takes
#
# Was Spark needed? For some ten thousand events, no: on one machine programs like DuckDB answer such questions several
# times faster, from the same files. Spark's place begins where the files no longer fit on one machine. The jobs do
# not change then: set `MQLAB_SPARK_MASTER` to the address of a cluster, put the traces where all of its machines see
# them, and run this notebook. What you wrote is a description of a table, and does not say where it is computed.

# %% [markdown]
# ## Today's RocketMQ and the articles (6 minutes)
#
# Articles about RocketMQ explain how pulls are held, not always rightly ([docs/seeds.md](../docs/seeds.md) goes through some).
#
# - One article says that a held pull is answered empty at the third check. That is so when the pull began anywhere in
#   the beat. A pull that follows a hold for nothing, which is nearly every pull of a quiet night, is a little too
#   young at the third and is answered at the fourth, unless the third is late.
# - Another one has the 5-second thread find new messages and push them to the consumer. It can, but it hardly ever has
#   to: in our table the pulls that an order woke did not end in the beat. The thread is a safety net.
# - The same article lets a woken pull that finds nothing be held again. It never is (`brokerAllowSuspend = false` at
#   the second look). The trace agrees:

# %%
times_held = held.groupBy("node", "remote", "opaque").count()
table("how often is one pull held?", times_held.groupBy(F.col("count").alias("times held"))
      .agg(F.count("*").alias("pulls")).orderBy("times held"))

# %% [markdown]
# **Where to read on**, in `broker/src/main/java/org/apache/rocketmq/broker/`: `longpolling/PullRequestHoldService.java`,
# `longpolling/NotifyMessageArrivingListener.java`, `processor/PullMessageProcessor.java`; in `client/`:
# `DefaultMQPushConsumerImpl.java` for the constants. In mqlab: `spark/mqlab_spark/jobs.py`, and
# [docs/events.md](../docs/events.md) for every event and its fields.
#
# **Three questions to take home**
#
# 1. Ten thousand queues are empty all night. How many pulls a minute reach the broker if each is held for 20 s? And
#    for 15 s? Who pays for the difference, and what would a hold of 5 minutes cost?
# 2. Twenty brokers each report their p99 every minute. Can you work out the p99 of all messages from these numbers?
#    What would each broker have to report instead, and how many bytes would that be?
# 3. You want to know the slowest hundredth of a broker with a hundred thousand messages a second, and you may record
#    only every thousandth message. Which fields must decide whether an event is recorded, so that your join still
#    works?
#
# ## What you expected, and what was seen

# %%
reveal()
