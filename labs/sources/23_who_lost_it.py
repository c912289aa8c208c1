# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   mqlab:
#     title: Who lost my message?
#     question: The broker said "stored", and nobody ever got the order. In a million events, which orders are lost, and who did it?
#     objectives:
#       - account for every acknowledged message of many worlds with one job
#       - say where an acknowledged message is that nobody ever got, and whose doing it was
#       - have an audit judged by a sealed list, and read what "wrong" and "missing" cost
#     minutes: 98
#     prerequisites: [00 Tour, 02 Store, 20 A trace as data]
#     wrong_predictions:
#       - "lost-share: none, since each of them was acknowledged; or nearly all that were sent around a power cut"
#       - "torn-unpacked: 100, since what is torn off is gone; most of it had been packed long before"
#       - "still-there: 0, since lost means gone"
#       - "after-back: below 0, shortly before the cut; all of them came when the power was back"
#       - "packer-too: more, since two machines fail now in place of one"
#       - "twice-worst: one or two, those that were in somebody's hands"
# ---

# %% tags=["parameters"]
student_id = ""
size = ""  # "million" or "small"; empty: what the variable MQLAB_LAB_DATA says, and else a million events

# %% [markdown]
# ## The scene (10 minutes)
#
# A letter to the people who run the message queue of a shop:
#
# > *On Monday our counter sent order 4711. Your broker answered SEND_OK, I have it in my log. No packer has ever seen the
# > order. You lost it. Find out how many others you have lost, and how.*
#
# We need every event of that Monday, and of many days like it. The shop has a bad power line: now and then the broker's
# machine goes dark, and comes back a bit later. The broker answers "stored" when a message is in the machine's
# memory, and writes it to the disk a bit later (`flush = ASYNC_FLUSH`, RocketMQ's default; lab 02).
#
# A **data set** is many worlds of one recipe. Here is yours. A process of its own begins to make it now, world after world, while
# you read on. Whoever makes it knows which messages get lost, and seals a list of them: one **hash** (a fingerprint) for each,
# which tells nobody what it is, but tells right from wrong. We shall be judged by it.

# %%
from mqlab import data_sets
from mqlab.check import NotSolvedYet, check, draws_for, predict, reveal, say, seed_for
from mqlab.views import Table
from mqlab_spark.background import begin, recipe, size_of
from mqlab_widgets.charts import show_bars, show_histogram, show_lines

seed = seed_for(student_id, "23")
draw = draws_for(seed)

# %%
days = size_of(size, small=8, million=107)
lost_orders = recipe("lost-orders", "power-cuts", worlds=days, first_seed=draw.between("first day", 1_000, 900_000),
                     parameters={"flush": "ASYNC_FLUSH", "messages": 400}, faults=["power_off"],
                     settle_seconds=150, sealed=True)
print(lost_orders)

# %% tags=["nbval-ignore-output"]
monday = begin(lost_orders)
monday

# %% [markdown]
# Each world is a shop with four counters that send orders and one packer, for 20 seconds; the power fails once to four times in the
# first 15 of them. Then everybody gets 150 s more: whatever only *waits* is packed by then. What is not packed by then never will be.
# (A day of 20 s is a short one. But nothing that follows depends on that.)
#
# (Run the cell above again now and then: it says how far the process has come.) Meanwhile Spark starts, and the first day is there already.

# %% tags=["nbval-ignore-output"]
from mqlab_spark import of_kind, open_at, read_trace, session

spark = session("lab 23", driver_memory="512m", reuse_workers=False)

# %%
from pyspark.sql import functions as F


def table(title, frame):
    return Table(title, frame.columns, frame.collect())


day = read_trace(spark, monday.first())
kinds = ["PowerLost", "StoreRecovered"]
table("the first day: when the power went, and what the broker found when it was back",
      day.where(F.col("kind").isin(kinds) & (F.col("ts_us") > 0)).orderBy("slice", "i")
      .select(F.round(F.col("ts_us") / 1_000_000, 1).alias("at, s"), "kind", "pages_lost", "records", "cut_bytes"))

# %% [markdown]
# `pages_lost` are the pages of 4 KiB that were not on the disk yet. `StoreRecovered` is the broker, back again: it reads its
# commit log from the front, finds the place where it makes no sense any more, and cuts off the rest.
#
# ## Round one: how many? (16 minutes)
#
# An **audit** goes through the books. Two books here: what the counters were told (`SendSucceeded`), and what the packers were done
# with (`ConsumeFinished`, with the status `CONSUME_SUCCESS`). An order that stands in the first and not in the second
# was never packed.

# %% tags=["prediction"]
predict("lost-share", "Of 1,000 orders that were acknowledged, how many are never packed? (over all days)", unit="of 1,000",
        prediction=...)

# %% [markdown]
# For that we need all days. If this cell has to wait, it says how far the process is; the small exercise below can be done meanwhile.

# %% tags=["nbval-ignore-output"]
monday.whole()

# %%
events = read_trace(spark, monday.whole())
acknowledged = of_kind(events, "SendSucceeded").select("world", "msg_id", F.col("ts_us").alias("acknowledged_us"))
packed = of_kind(events, "ConsumeFinished").where("status = 'CONSUME_SUCCESS'").select("world", "msg_id").distinct()
victims = acknowledged.join(packed, ["world", "msg_id"], "left_anti").cache()
all_orders, all_victims = acknowledged.count(), victims.count()
say(f"**{all_orders:,}** orders were acknowledged in **{days}** days.")

# %%
reveal("lost-share", round(1_000 * all_victims / all_orders, 1), why="orders of which the broker had said that it has them")

# %% [markdown]
# A join with `left_anti` keeps the rows of the left side that have *no* partner on the right: the natural tool of an auditor.
#
# Is it much? It depends on whom you ask. A counter that sends one order a day will not notice for a year. But each of
# these orders was promised to somebody.
#
# ### A small exercise: never packed
#
# Write it as a function of any trace, for the exercise at the end. It returns the columns `world` and `msg_id`: one row for each order that was acknowledged and
# never packed. The check plays fifty hidden days. Names of messages are made of the counter's address, its process and its time, so
# that no two of one day are the same. But every day begins with the same addresses and at the same time.

# %% [markdown] tags=["hints"]
# - Two tables, each from `of_kind` and `select`, and one join. Which columns name an order, when there are many days?
# - An order may be packed twice, or a packer may fail with it: take only `status = 'CONSUME_SUCCESS'`.
# - There is a kind of join that keeps just those rows of the left table that have no partner on the right.

# %% tags=["exercise"]
from pyspark.sql import DataFrame

from mqlab_spark import of_kind


def never_packed(trace: DataFrame) -> DataFrame:
    """One row for each order that was acknowledged and that no packer was done with."""
    ### BEGIN SOLUTION
    sent = of_kind(trace, "SendSucceeded").select("world", "msg_id")
    done = of_kind(trace, "ConsumeFinished").where("status = 'CONSUME_SUCCESS'")
    return sent.join(done, ["world", "msg_id"], "left_anti")
    ### END SOLUTION


# %% tags=["check"]
check("23/never-packed", never_packed)

# %% [markdown]
# ## Round two: the first suspect (14 minutes)
#
# The power, of course. What was in memory only is gone; the broker comes back and cuts the log where it makes no sense any more.
# Each message has its place in the log (`commit_log_offset`, in bytes). A **copy** of a message is torn off if a recovery that comes *after*
# it found that the log ends at or before its place.

# %%
stored = of_kind(events, "MessageStored").where("topic = 'Orders'").select(
    "world", "queue_id", "queue_offset", "commit_log_offset",
    F.col("unique_key").alias("msg_id"), F.col("ts_us").alias("stored_us"))
ends = of_kind(events, "StoreRecovered").select("world", F.col("commit_log_max_offset").alias("end"), F.col("ts_us").alias("back_us"))
later = stored.join(F.broadcast(ends), "world", "left").withColumn("torn", F.expr("back_us > stored_us AND commit_log_offset >= end"))
copies = later.groupBy("world", "msg_id", "queue_id", "queue_offset", "commit_log_offset", "stored_us").agg(F.max("torn").alias("torn"))
left = copies.groupBy("world", "msg_id").agg(F.max(~F.col("torn")).alias("in_log"))
torn_off = acknowledged.join(left.where("NOT in_log"), ["world", "msg_id"]).cache()
torn_count = torn_off.count()
say(f"The power cuts have torn **{torn_count:,}** acknowledged orders off, with all their copies.")

# %% tags=["prediction"]
predict("torn-unpacked", f"{torn_count:,} orders were torn off. How many percent of them were never packed?", unit="%", prediction=...)

# %%
torn_victims = torn_off.join(victims.select("world", "msg_id"), ["world", "msg_id"]).count()
show_bars("Orders that were torn off the log", "what became of them", "orders", ["packed before the cut", "never packed"],
          {"orders": [torn_count - torn_victims, torn_victims]})

# %%
reveal("torn-unpacked", round(100 * torn_victims / torn_count), why="the packer is faster than the disk")

# %% [markdown]
# A message can be consumed before it is safe. The packer's pull is held at the broker and is woken within a millisecond, while the flush comes
# up to half a second later (`FlushRealTimeService`, `flushIntervalCommitLog` 500 ms). So most of what a power cut takes from the log has done its
# duty already. Keep that in mind: **the packer was further than the disk.**
#
# ### A small exercise: what is torn off?
#
# You get two lists: `copies` with `(order, stored at ms, place in the log)`, in any order, and `recoveries` with
# `(back at ms, where the log ends then)`. Return the set of orders of which *no* copy is left. A producer that got no
# answer sends its order again, so one order may have more than one copy. And places are used again after a cut.

# %% [markdown] tags=["hints"]
# - First decide for one copy: which recoveries can have torn it off? Only those that came later.
# - A copy is left if for *every* later recovery its place lies before the end. Python's `all(...)` asks that of a whole list.
# - An order may have several copies, and one that is left is enough. So collect the orders that are safe first; who of all orders is not among them?

# %% tags=["exercise"]
def torn_off_orders(copies, recoveries):
    """The orders of which no copy is left in the log."""
    ### BEGIN SOLUTION
    safe = set()
    for order, at_ms, place in copies:
        if all(place < end for back_ms, end in recoveries if back_ms > at_ms):
            safe.add(order)
    return {order for order, _, _ in copies} - safe
    ### END SOLUTION


# %% tags=["check"]
check("23/torn-off", torn_off_orders)

# %% [markdown]
# ## Round three: where are the others? (20 minutes)
#
# The suspect was seen at the scene, and has done something. But has it done all of it?

# %%
say(f"**{all_victims:,}** orders were acknowledged and never packed. All of them were stored, once at least.")

# %% tags=["prediction"]
predict("still-there", "How many percent of the orders that were never packed are still in the broker's log, whole and readable?", unit="%",
        prediction=...)

# %%
alive = victims.join(left.where("in_log"), ["world", "msg_id"]).cache()
reveal("still-there", round(100 * alive.count() / all_victims), why="lost does not mean gone")

# %% [markdown]
# They are on the disk, in their queue, at an offset, whole. The power cut has not taken them. Yet nobody has packed them, 150
# seconds after everything was well again. So they are not late.
#
# A detective asks for the time of death. When was each of them acknowledged? We measure from the nearest moment at which the broker
# was back after a power cut: above 0 it was back already, below 0 it was not (or the cut was still to come).

# %% tags=["prediction"]
predict("after-back", "Half of these orders (in the log, never packed) were acknowledged earlier than ... ms after the broker was back (below 0: before)?",
        unit="ms", prediction=...)

# %%
cuts = of_kind(events, "PowerLost").select("world", F.col("ts_us").alias("dark_us"))
backs = ends.where("back_us > 0").drop("end")
nearest = alive.join(backs, "world").withColumn("away_us", F.col("acknowledged_us") - F.col("back_us"))
nearest = nearest.groupBy("world", "msg_id").agg(F.min_by("away_us", F.abs("away_us")).alias("away_us"))
bars = nearest.groupBy((F.floor(F.col("away_us") / 250_000) * 250).alias("from_ms")).count().orderBy("from_ms").collect()
when = show_histogram("Orders that are in the log and were never packed", "acknowledged, s after the broker was back", "orders",
                      {"orders": [(row.from_ms / 1_000, row.from_ms / 1_000 + 0.25, row["count"]) for row in bars]})
when

# %% [markdown]
# The same chart, drawn by Bokeh in your browser: drag over a stretch to zoom, point at a bar for its numbers. (Where no browser is at work, this cell shows nothing.)

# %% tags=["nbval-ignore-output"]
when.live()

# %%
median_us = nearest.agg(F.percentile("away_us", 0.5)).first()[0]
reveal("after-back", round(median_us / 1_000), why="the victims came when all seemed well again")

# %% [markdown]
# Nobody would have looked there. The power was back, the broker took orders, answered SEND_OK, and wrote them to the disk: **the
# victims are those that came just *after* the accident.** Let us watch one of them. `open_at` plays the world of a row again, here on this
# machine, and stops at the event that the row tells of: this order is being stored. Press **Next** a few times, and
# look at what the packer asks for.

# %%
victim = (alive.join(copies.where("NOT torn"), ["world", "msg_id"]).orderBy("world", "stored_us")
          .select("world", "msg_id", "queue_id", "queue_offset", F.col("stored_us").alias("ts_us")).first())
open_at(victim)

# %% [markdown]
# And the same as data. This is the queue of that order around the accident: what was stored at which offset, and from which offset the packer asked.

# %%
same_queue = (F.col("world") == victim.world) & (F.col("queue_id") == victim.queue_id)
puts = stored.where(same_queue).select((F.col("stored_us") / 1e6).alias("s"), F.col("queue_offset"))
asks = of_kind(events, "PullReceived").where(same_queue & (F.col("topic") == "Orders")).select((F.col("ts_us") / 1e6).alias("s"), "queue_offset")
around = F.col("s").between(victim.ts_us / 1e6 - 3, victim.ts_us / 1e6 + 3)
show_lines("One queue around the accident: offsets stored, and offsets asked for", "time, s", "offset in the queue",
           {"asked from": [tuple(row) for row in asks.where(around).orderBy("s").collect()],
            "stored at": [tuple(row) for row in puts.where(around).orderBy("s").collect()]}, marks=True)

# %% [markdown]
# There it is. Before the accident the packer follows the queue closely. Then the log is cut: the queue *ends earlier*. New orders come, and get **offsets that were used before**.
# The packer comes back (its connection was broken; after an error it waits 1 s, `pullTimeDelayMillsWhenException`) and goes on where *it* stood. It remembers an offset that
# is further than the queue now is. What lies between is never asked for. For the packer these offsets are done: it had orders there,
# only they were others.
#
# Nobody has made a mistake that one could see. The counter was told the truth, the broker has kept what it says, the packer has
# packed everything that it was given. **An offset is only a number: two parties that remember it must remember the same log.** RocketMQ's answer to that is a copy of the log on
# another machine, or a disk that is asked first.
#
# (And if the packer asks for an offset *beyond* the end? Then the broker corrects it to the end, `PullMessageProcessor` with
# `PULL_OFFSET_MOVED`, and everything that lies before that end is passed over, too.)
#
# ### A small exercise: how many are passed over?
#
# After a power cut the queue ends at offset `end`: the next order gets this offset. Before the packer is back `stored` orders come. Then it
# asks from offset `asks`. If that lies beyond the end of the queue by then, it is corrected to this end. How many of the `stored`
# orders are never asked for?

# %% [markdown] tags=["hints"]
# - The new orders have the offsets `end`, `end + 1`, ... Where does the queue end when the packer comes?
# - The packer goes on at `asks`, but not beyond `end + stored`. What lies before, from `end` on, is passed over.
# - One `min` for "not beyond the end", and one `max`, since it cannot be fewer than 0: a packer that was behind passes nothing over.

# %% tags=["exercise"]
def passed_over(end, stored, asks):
    """How many orders are never asked for."""
    ### BEGIN SOLUTION
    goes_on = min(asks, end + stored)
    return max(0, goes_on - end)
    ### END SOLUTION


# %% tags=["check"]
check("23/passed-over", passed_over)

# %% [markdown]
# ## Break it: the packer falls, too (8 minutes)
#
# We put the packer on the same power line. Whenever the broker's machine goes dark, the packer's process dies, and both come back at the same time. Two machines fail
# now in place of one.

# %%
from mqlab import scenarios
from mqlab.explore import draw_plan


def played(number, packer_too):
    lab = scenarios.get("power-cuts").build(number, parameters=monday.recipe.parameters)
    plan = draw_plan(lab, ["power_off"], 15_000)
    if packer_too:
        plan += tuple(line.replace("power_off broker-a", "crash consumer-1") for line in plan)
    lab.faults("\n".join(plan))
    return lab.run_for(seconds=170)


def outcome(packer_too):
    found = [what for number in monday.seeds[:6] for what, _, _ in data_sets.hidden(played(number, packer_too))]
    return found.count(data_sets.LOST), found.count(data_sets.TWICE)


alone = outcome(packer_too=False)
say(f"On the first six days **{alone[0]}** orders were lost, and **{alone[1]}** were packed twice.")

# %% tags=["prediction"]
predict("packer-too", f"{alone[0]} orders were lost on these days. The same days, the same power cuts, but the packer falls with the broker. "
        "How many are lost now?", unit="orders", prediction=...)

# %%
together = outcome(packer_too=True)
show_bars("Six days with power cuts", "who falls", "orders", ["the broker", "the broker and the packer"],
          {"lost": [alone[0], together[0]], "packed twice": [alone[1], together[1]]})

# %%
reveal("packer-too", together[0], why="a packer that has forgotten asks the broker where to begin")

# %% [markdown]
# A packer that starts anew has no offset of its own. It asks the broker, and the broker reads what it has on *its* disk (`consumerOffset.json`, written
# every 5 s): an offset that is older than the cut. So orders are packed again, hundreds of them, and fewer are passed over. **It was the memory of the one who stayed awake that lost
# the orders.** (What is torn off before anybody has packed it stays lost, of course. The cure for both is not to answer before the order is on the disk, `SYNC_FLUSH`, or in two places.)
#
# ## The other complaint: twice (8 minutes)
#
# A second letter, from another shop: *some of our orders are packed twice.* That shop has three packers, good power, and processes that hang,
# die, or lose their network for a while. Its data set is begun now.

# %% tags=["nbval-ignore-output"]
tuesday = begin(recipe("twice", "push-clustering", worlds=size_of(size, small=8, million=60), first_seed=draw.between("tuesday", 1_000, 900_000),
                       faults=["crash", "freeze", "partition"], settle_seconds=150, sealed=True))
tuesday

# %% tags=["prediction"]
predict("twice-worst", "Each of these days has at most 50 orders. On the worst day, how many of them are packed more than once?", unit="orders",
        prediction=...)

# %% tags=["nbval-ignore-output"]
tuesday.whole()

# %%
done = of_kind(read_trace(spark, tuesday.whole()), "ConsumeFinished").where("status = 'CONSUME_SUCCESS'")
times = done.groupBy("world", "group", "msg_id").agg(F.count("*").alias("times"), F.countDistinct("node").alias("packers"))
twice = times.where("times > 1").cache()
worst = twice.groupBy("world").count().orderBy(F.desc("count"), "world").first()
table("orders that were packed more than once", twice.groupBy("packers").agg(F.count("*").alias("orders"), F.max("times").alias("most times")).orderBy("packers"))

# %%
reveal("twice-worst", worst["count"] if worst else 0, why="all that a packer held when it froze or fell out of touch")

# %% [markdown]
# The same coin, other side. A packer tells the broker every 5 s how far it is (`persistConsumerOffsetInterval`). If it dies or
# hangs, another one takes its queues over and begins at what the broker knows: everything since then is packed again, and when a frozen packer wakes up it packs what it still
# holds. Here the memory of the packer is *ahead* of the broker's, too. With a log that was not cut this costs work; with one that was, it costs orders.
#
# ## Build it: the audit (20 minutes)
#
# Write the report for the first letter. Your function gets a trace of many days and returns one row for each lost order, with the columns
# `world`, `msg_id` and `how`:
#
# | `how` | the order was acknowledged, never packed, and |
# |---|---|
# | `torn off` | no copy of it is left in the log |
# | `passed over` | a copy is left, and the group's offset was committed behind it |
#
# An order that a copy is left of, and that nobody has passed over, only **waits**: it is no case for you. On the fifty hidden days of the check, some end
# while orders still wait. What the broker knows of the group's progress is in `OffsetCommitted` (`queue_id`, `queue_offset`: all before this offset
# is done); the last one of each queue counts, by `slice` and `i`, which put the events of a world in order. A queue of which nothing was ever committed has no such event: nothing in it
# is passed over. There is one topic, `Orders`, and one group. But a group has a topic of its own for retries, too, whose queues have the same numbers: take events of the
# topic `Orders`.

# %% [markdown] tags=["hints"]
# - Three tables: who was never packed (round one); which copy is torn off (round two: a left join of `MessageStored` with `StoreRecovered`, then
#   `groupBy` the copy); how far each queue of `Orders` is committed: `groupBy("world", "queue_id").agg(F.max_by("queue_offset", F.struct("slice", "i")))`.
# - Of each copy that is left say whether its offset is below the committed one. Then `groupBy("world", "msg_id")`: has the order a copy that is left? Has it one that still waits?
# - Join this with who was never packed. Each of them has one of three ends: no copy is left, a copy is left and does not wait any more, or it still waits. Name the first two, in this order; the third one is no victim.

# %% tags=["exercise"]
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqlab_spark import of_kind


def find_lost(trace: DataFrame) -> DataFrame:
    """One row for each order that was acknowledged and is lost, with how it was lost."""
    ### BEGIN SOLUTION
    order = ["world", "msg_id"]
    sent = of_kind(trace, "SendSucceeded").select(order)
    packed = of_kind(trace, "ConsumeFinished").where("status = 'CONSUME_SUCCESS'").select(order)
    stored = of_kind(trace, "MessageStored").where("topic = 'Orders'").withColumnRenamed("unique_key", "msg_id")
    ends = of_kind(trace, "StoreRecovered").select("world", F.col("ts_us").alias("back_us"), "commit_log_max_offset")
    done = (
        of_kind(trace, "OffsetCommitted")
        .where("topic = 'Orders'")
        .groupBy("world", "queue_id")
        .agg(F.max_by("queue_offset", F.struct("slice", "i")).alias("done"))
    )
    torn = F.expr("back_us > ts_us AND commit_log_offset >= commit_log_max_offset")
    copies = (
        stored.join(ends, "world", "left")
        .groupBy(*order, "queue_id", "queue_offset", "ts_us")
        .agg(F.max(torn).alias("torn"))
        .join(done, ["world", "queue_id"], "left")
        .withColumn("waits", F.expr("NOT torn AND queue_offset >= coalesce(done, 0)"))
    )
    left = copies.groupBy(order).agg(F.max(~F.col("torn")).alias("in_log"), F.max("waits").alias("waits"))
    how = F.when(~F.col("in_log"), "torn off").when(~F.col("waits"), "passed over")
    lost = sent.join(packed, order, "left_anti").join(left, order).withColumn("how", how)
    return lost.where("how IS NOT NULL").select(*order, "how")
    ### END SOLUTION


# %% tags=["check"]
check("23/find-lost", find_lost)

# %% [markdown] tags=["teacher"]
# Most first attempts take the time of a recovery for granted and compare places only: a copy that was written after the power cut, at a place that had been
# torn off before, then counts as torn. The second most frequent mistake is to take the largest committed offset instead of the last one: after a
# cut the committed offset goes back with the broker's file. Both give right answers on nearly all days.

# %% [markdown]
# ## The sealed list (2 minutes)
#
# Now the list that was sealed when the data set was made. Here are three auditors: one who trusts the first suspect, one who takes everything that was never packed, and one who
# takes everything that the power cuts touched *or* that came within 2 s after one. Each is told only how many of their answers are right, how many are wrong,
# and how many lost orders they have not found.

# %%
def judged(found):
    return monday.judge(found.select("world", "msg_id").withColumns({"what": F.lit("lost"), "group": F.lit("readers")}))

near = acknowledged.join(backs, "world").where("acknowledged_us BETWEEN back_us AND back_us + 2000000").select("world", "msg_id")
auditors = {"all that was torn off": torn_off, "all that was never packed": victims,
            "torn off, or within 2 s after a cut": torn_off.select("world", "msg_id").union(near).distinct()}
verdicts = {name: judged(found) for name, found in auditors.items()}
Table("judged by the sealed list", ("auditor", "right", "wrong", "missing"),
      [(name, *(result[what] for what in ("right", "wrong", "missing"))) for name, result in verdicts.items()])

# %% [markdown]
# (Put your own function in: `judged(find_lost(events))`.) On days that all had time to end, "never packed" is the whole truth about *which*, and says nothing about *why*; on a day that is still going on
# it would accuse every order that waits. An audit that runs each night needs the why.
#
# ## Today's RocketMQ and the articles
#
# - The articles say: asynchronous flush may lose the last half second. True for what is torn off. What is passed over *after* the accident they do not mention; it
#   needs a consumer that remembers more than the broker, and every push consumer does.
# - Duplicates are documented ("at least once"), and so every consumer should be able to take a message twice. Nothing protects a consumer from a message that it is never given.
# - To read on: `CommitLog.recoverAbnormally`, `ConsumeQueue.truncateDirtyLogicFiles`, `RemoteBrokerOffsetStore`, `DefaultMessageStore.nextOffsetCorrection`.
#   In `mqlab_spark`, the table `audit` does what you have written, for every group and with the event that proves it ([tables](../docs/tables.md)).
#
# Three questions to take home:
#
# 1. The broker's commit log has a *max offset* that is told with every pull answer. What would a consumer have to remember to notice that the log was cut?
# 2. With two copies of the log (a slave), which of the two kinds of loss goes away, and which can still happen?
# 3. Your audit read all events. For a shop with 10 billion events a day, which kinds are enough, and how many bytes of an event do you need?
#
# ## What you expected, and what was seen

# %%
reveal()
