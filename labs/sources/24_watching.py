# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   mqlab:
#     title: Watching it live (PySpark streaming)
#     question: A world is still playing, and some of its news come late. When may one say that something is over?
#     objectives:
#       - follow a live world with a stream, and say what it keeps in its state and why
#       - say what a watermark loses when it is too short, and what it costs when it is long
#       - write the part that keeps open lives, puts each out once, and forgets it in time
#     minutes: 93
#     prerequisites: [00 Tour, 20 A trace as data]
#     wrong_predictions:
#       - "put-out: nearly all of them, since nearly all were consumed; they wait for the watermark"
#       - "twice: those of the batch that was done twice; but the stream knows which of its rows count"
#       - "never-consumed: none, since late events are only late; or all of the hang"
#       - "waiting: ten times as many, since the delay is ten times as long; a part of the wait is the length of a segment"
# ---

# %% tags=["parameters"]
student_id = ""

# %% [markdown]
# ## The scene (10 minutes)
#
# In lab 20 the world had ended before we asked it anything. An operator can't wait for that: the shop is open, and the
# question is what is wrong **now**. How many orders are on their way? How long did those take that have just arrived?
#
# The scene: a shop sends orders, a **broker** (the server that keeps them) hands them out, two packers consume them. While
# the world plays it writes its trace, in small files of three seconds each, **segments**. A program follows the
# directory, reads each new segment as soon as it is there, and never sees the end. That is **streaming**; the program is
# Spark again, and its word for "one more piece" is **micro-batch**.
#
# One thing goes wrong, as it does every day: each machine ships its own log, and the shipper of one packer hangs for some
# seconds. The packer itself works on as if nothing was wrong. Only its *news* come late, all at once.

# %%
from tempfile import TemporaryDirectory

from mqlab import scenarios
from mqlab.check import NotSolvedYet, check, draws_for, predict, reveal, say, seed_for
from mqlab.views import Table
from mqlab_widgets.charts import show_lines
from mqlab_widgets.stream_charts import StreamCharts

seed = seed_for(student_id, "24")
draw = draws_for(seed)

# %%
every_ms = draw.between("every", 160, 240, step=10)
hang_from, hang_s = draw.between("hang", 16, 18), draw.between("long", 8, 9)
lab = scenarios.get("steady-load").build(seed, parameters={"messages": 26_000 // every_ms, "every_ms": every_ms, "consumers": 2})
say(f"Your shop sends an order every **{every_ms} ms**. The shipper of `consumer-2` hangs from **{hang_from} s** on, for **{hang_s} s**.")

# %% tags=["nbval-ignore-output"]
from mqlab_spark import session
from mqlab_spark.streaming import follow, live_trace, lives, open_lives, recorded

spark = session("lab 24", driver_memory="480m")

# %% [markdown]
# The world writes, and the stream follows. `late_s=10` says how much patience the stream has; we come to it at once.

# %%
folder = TemporaryDirectory()
trace = live_trace(lab, f"{folder.name}/shop", segment_ms=3_000,
                   hangs=[("consumer-2", hang_from, hang_from + hang_s)])
stream = follow(spark, f"{folder.name}/shop", f"{folder.name}/followed", late_s=10)

# %% [markdown]
# Two pictures of the stream, drawn in your browser: how many lives it keeps in its memory, its **state**, and how long
# those took that have ended. Each micro-batch adds a point. (Where no browser is at work, this cell shows nothing.)

# %% tags=["nbval-ignore-output"]
charts = StreamCharts(stream)
charts.live()

# %% [markdown]
# ## Round one: when is it over? (18 minutes)
#
# A **life** is one order: from the first attempt to send it to the moment when a packer is done with it. The stream keeps
# what it knows of each life, and *puts it out*, as one row of a table, when it has ended. Once, and for good.
#
# We let fifteen seconds of the world pass; that is five segments. Nothing hangs yet, and a packer takes an order within
# milliseconds once both have started. So nearly all orders that were sent have been consumed as well.

# %% tags=["prediction"]
predict("put-out", "The world is at 15 s, and the stream has read all of it. How many lives has it put out?",
        unit="lives", prediction=...)

# %%
for _ in range(5):
    lab.run_for(seconds=3)
    stream.catch_up()
trace.flush()
stream.catch_up()
batches = {n.batch: n for n in stream.numbers}


def micro_batches(columns):
    return Table("micro-batches", ("batch", *columns),
                 [(n, *[value(batches[n]) for value in columns.values()]) for n in sorted(batches)])


clocks = {"newest event, s": lambda n: round(n.newest_us / 1e6, 3),
          "watermark, s": lambda n: "behind all" if n.watermark_us > 1e12 else round(n.watermark_us / 1e6, 3)}
micro_batches({**clocks, "put out": lambda n: n.finished})

# %%
reveal("put-out", sum(n.finished for n in batches.values()),
       why="Only what ended before the watermark is put out; all others might still change.")

# %% [markdown]
# Why is the stream so slow to say what it knows? Because it does not know that it knows. The life of an order has an end,
# "a packer was done with it". Perhaps another packer was done with the same order *earlier* (lab 07 has such cases), and
# only its log is late. What has been put out cannot be taken back: somebody may have sent a mail about it.
#
# So there is a line behind which nothing can change any more, the **watermark**: the newest time that was seen, minus
# the patience, ten seconds. Whoever comes with news from before that line is turned away. Two details you can read off the
# table:
#
# - The clock is the **world's**. Nobody looks at the clock on the wall; a stream that reads an old trace at a hundred
#   times the speed comes to the same watermarks.
# - The watermark of a batch comes from the batches **before** it. What it brings itself counts for the next one.
#
# ### A small exercise: watermarks
#
# `batches` is a list of micro-batches, each a list of times in ms, in the order in which they came; none is empty. Return
# the watermark of each micro-batch: what was the newest time in all batches before, minus `late_ms`? It is never below
# 0, and it never goes back.

# %% [markdown] tags=["hints"]
# - The first watermark is 0: nothing was seen before. Which number do you have to carry from batch to batch?
# - Carry the newest time of all. First note `max(0, newest - late_ms)`, then look at the batch.
# - The order of the two steps in the loop's body counts: the watermark of a batch knows nothing of that batch. And an old batch does not turn the newest time back.

# %% tags=["exercise"]
def watermarks(batches, late_ms):
    """The watermark of each micro-batch, in ms."""
    ### BEGIN SOLUTION
    newest, marks = 0, []
    for batch in batches:
        marks.append(max(0, newest - late_ms))
        newest = max(newest, *batch)
    return marks
    ### END SOLUTION

# %% tags=["check"]
check("24/watermarks", watermarks)

# %% [markdown]
# ## Break it: the plug is pulled (10 minutes)
#
# The stream writes two things down. For each micro-batch a note *before* it begins (which segment it will read) and one
# *after* it (done). And its state, and the rows that it puts out. All of this is its **checkpoint**, so that it can go on
# where it was.
#
# The worst moment to die is between the two notes: the rows are written, and nobody has noted that. That is what we bring
# about. The stream is stopped, and the last note "done" is taken away, as if the plug had been pulled before it was
# written. Then we follow again, into the same directory. The last micro-batch will be done a second time, and its
# rows are in the directory already.

# %%
stream.stop()
done = sorted((stream.into / "checkpoint" / "commits").glob("[0-9]*"), key=lambda note: int(note.name))
for note in (done[-1], done[-1].with_name(f".{done[-1].name}.crc")):
    note.unlink()

# %% tags=["prediction"]
predict("twice", "The stream goes on to the end of the world. Which lives stand twice in its table?",
        choices=["those of the micro-batch that was done twice",
                 "those that were in the state when it died",
                 "none"], prediction=...)

# %%
stream = follow(spark, f"{folder.name}/shop", f"{folder.name}/followed", late_s=10)
lab.run_for(seconds=20)
trace.close()
stream.catch_up()
batches = dict(sorted(({n.batch: n for n in stream.numbers} | batches).items()))
micro_batches({**clocks, "put out": lambda n: n.finished})

# %%
from pyspark.sql import functions as F

whole = recorded(spark, f"{folder.name}/shop")
truth = lives(whole)
streamed = stream.lives().select(*truth.columns)
twice = streamed.groupBy("msg_id").count().where("count > 1").count()
Table("the stream and the batch", ("", "rows"),
      [("lives in the trace, read as a whole", truth.count()), ("lives that the stream put out", streamed.count()),
       ("of these twice", twice), ("missing", truth.exceptAll(streamed).count()),
       ("too much", streamed.exceptAll(truth).count())])

# %%
reveal("twice", "c" if twice == 0 else "a",
       why="A batch that is done again reads the same segment from the same state, and its number is in the table's own log.")

# %% [markdown]
# "Exactly once" does not mean that everything is *done* once. It means that doing it twice leaves the same: the same input
# (noted before), the same state (kept for each batch), and an output that knows the numbers of its batches. Take one of
# the three away and it is gone; a stream that sends a mail for each row sends some twice.
#
# Look at the last rows of the table, too. When the world ended we closed its trace, and that wrote an end mark: "nothing
# will come any more". Only for that did the watermark pass everything. In a shop that never closes it
# would have stood still with the last event, and the last ten seconds of lives would be in the state until the next
# morning.
#
# ## Round two: too little patience (16 minutes)
#
# Ten seconds of patience were enough: the shipper hung for less. But ten seconds are long for somebody who waits
# for a row. A second stream follows the same trace, with one second of patience. Every order of this world was consumed,
# and the table above has them all.

# %%
say(f"The shipper hung for **{hang_s} s**, an order came every **{every_ms} ms**, and about half of them went to `consumer-2`.")

# %% tags=["prediction"]
predict("never-consumed", "With one second of patience: how many orders does the stream believe were never consumed?",
        unit="orders", prediction=...)

# %%
with follow(spark, f"{folder.name}/shop", f"{folder.name}/hasty", late_s=1) as hasty:
    hasty.catch_up()
hurried = {n.batch: n for n in hasty.numbers}
Table("micro-batches with one second of patience", ("batch", "newest event, s", "watermark, s", "too late", "put out"),
      [(n.batch, round(n.newest_us / 1e6, 3), round(n.watermark_us / 1e6, 3), n.late, n.finished) for n in hurried.values()
       if n.batch < len(hurried) - 2])

# %%
believed = hasty.open().count()
reveal("never-consumed", believed, why="Their end came behind the watermark and was dropped; their beginning had come in time.")

# %%
Table("at the end", ("", "orders"),
      [("sent and not consumed, in truth", open_lives(whole).count()),
       ("open in the state of the hasty stream", believed),
       ("put out by it", hasty.lives().count())])

# %% [markdown]
# No error, no warning. A number in the query's progress says how many events were too late; whoever does not look at it
# gets a table of orders that "were never consumed", calls the packers, and hears that everything is fine. These lives
# will never end: the state keeps them for ever. **A watermark that is too short does not lose rows at random. It loses
# the ends and keeps the beginnings**, and that looks just like lost messages.
#
# Did you expect more of them? The news of the whole hang came late. But a part was saved. For one thing, one
# segment holds three seconds. For another, Spark is more patient than you told it: a micro-batch drops what is not newer
# than the watermark **of the batch before it**.
#
# ### A small exercise: what is dropped?
#
# The same `batches` as before. Return the times of the events that are dropped, in the order in which they came: those
# that are not newer than the watermark of the batch before theirs. (While that watermark is 0, nothing is dropped.)

# %% [markdown] tags=["hints"]
# - In the first two batches nothing can be dropped. Why?
# - Work out the list of watermarks first, as in round one. Batch n is judged by entry n - 1.
# - So batches and watermarks are shifted against each other by one. What stands in front of the first watermark? Then `zip` goes through both side by side.

# %% tags=["exercise"]
def dropped(batches, late_ms):
    """The times of the events that are too late, in the order in which they came."""
    ### BEGIN SOLUTION
    newest, marks = 0, []
    for batch in batches:
        marks.append(max(0, newest - late_ms))
        newest = max(newest, *batch)
    return [time for mark, batch in zip([0, *marks], batches, strict=False) for time in batch if mark and time <= mark]
    ### END SOLUTION

# %% tags=["check"]
check("24/dropped", dropped)

# %% [markdown]
# ## Round three: what patience costs (12 minutes)
#
# So let us be patient, with a minute, or an hour? Each life that has ended waits in the state until the watermark has
# passed it. The state is memory, and it is written to disk with each micro-batch.

# %%
most_hasty = max(n.waiting for n in hurried.values())
say(f"With 1 s of patience at most **{most_hasty}** ended lives waited in the state at one time.")

# %% tags=["prediction"]
predict("waiting", "With 10 s of patience: how many ended lives waited in the state at most?", unit="lives", prediction=...)

# %%
def waiting(numbers):
    return [(n.newest_us / 1e6, n.waiting) for n in numbers if n.batch < len(hurried) - 2]


show_lines("Ended lives that wait for the watermark", "time of the world, s", "lives in the state",
           {"10 s of patience": waiting(batches.values()), "1 s of patience": waiting(hurried.values())})

# %%
reveal("waiting", max(n.waiting for n in batches.values()),
       why="Ten seconds of orders, and those of the segments that the watermark is behind anyway.")

# %% [markdown]
# The state grows with the patience times the rate. Ten seconds of a small shop are nothing; an hour of a hundred thousand
# orders a second are 360 million lives. And each row comes out that much later. What is the right patience? Long enough
# for the latest news that you want to believe, and no longer. For what comes later still you need another way: the same
# question once more at night, over the whole trace. `lives(whole)` is that, the same rows from the same definition.
#
# One more cost hides in the first table. With segments of three seconds and a watermark that is a batch behind, even a
# patience of nothing makes a life wait for up to six seconds.
#
# ### A small exercise: the smallest patience
#
# The same `batches` again. What is the smallest `late_ms` with which nothing is dropped?

# %% [markdown] tags=["hints"]
# - An event in batch n is judged by the newest time of all batches before n - 1. How much older is it than that?
# - What is just as old as the watermark is dropped as well: it takes one ms more. (A watermark of 0 drops nothing.)
# - So each event has a delay that would just have saved it, and the answer is the largest of these. Two cases need care: an event at time 0, and a batch in which nothing is late.

# %% tags=["exercise"]
def smallest_delay(batches):
    """The smallest delay in ms with which none of the events is dropped."""
    ### BEGIN SOLUTION
    before, newest, late_ms = 0, 0, 0
    for batch in batches:
        if before:
            late_ms = max(late_ms, *[before - time + (time > 0) for time in batch])
        before, newest = newest, max(newest, *batch)
    return late_ms
    ### END SOLUTION

# %% tags=["check"]
check("24/smallest-delay", smallest_delay)

# %% [markdown]
# ## Build it: the state of a stream (22 minutes)
#
# Now write the heart of it: the class that Spark asks in each micro-batch. Spark drops what is too late, keeps your state
# and knows the watermark. You decide what to remember, what to put out, and what to forget.
#
# `batch(marks, watermark_ms)` gets the marks of one micro-batch, a list of `(ts_ms, what, msg_id)` in the order in which they
# came; `what` is `"sent"` or `"consumed"`. It returns the lives that are over now, a list of
# `(msg_id, sent_ms, consumed_ms)`. What you remember goes into the dict `self.kept`, by `msg_id`. Spark may move a state to
# another machine: a new `Lives()` answers each micro-batch, and all that it has of the last one is `kept`. Mind:
#
# - A life is put out in the first micro-batch in which it has both ends and its end is **not newer** than the watermark.
# - The marks of two machines come in any order: an order may be consumed before it was sent, as far as you can know.
# - An order can be consumed twice, by two packers. The **earliest** time counts, whichever came first.
# - After a life was put out, its order may be consumed once more. That must not put it out again, and it must not stay
#   in your state for ever. And of an order whose beginning was dropped you get an end alone.
# - The check counts `len(self.kept)` after each micro-batch: no more than those of which something can still come of use.
#
# The check plays fifty worlds in which a packer crashes and some orders come twice; one machine's log is late, and with
# some the patience is too short.

# %% [markdown] tags=["hints"]
# - Keep for each message a small dict: `{"sent": ..., "consumed": ...}`, with the smallest time of each.
# - Which messages can you forget after a batch? All whose end is not newer than the watermark: with a beginning they are
#   put out, without one the beginning was older still and would be dropped now.
# - So after a batch go once through all that is kept, and first list the names that are over (a dictionary must not change while a loop goes through
#   it). Then take each out. A life without an end is never over; one without a beginning is taken out and not put out.

# %% tags=["exercise"]
class Lives:
    """The open lives of a stream: each is put out once, and forgotten."""

    def __init__(self):
        self.kept = {}

    def batch(self, marks, watermark_ms):
        """The lives that are over now: (msg_id, sent_ms, consumed_ms)."""
        ### BEGIN SOLUTION
        for ts_ms, what, msg_id in marks:
            life = self.kept.setdefault(msg_id, {})
            life[what] = min(ts_ms, life.get(what, ts_ms))
        over = [name for name, life in self.kept.items() if life.get("consumed", watermark_ms + 1) <= watermark_ms]
        ended = [(name, self.kept.pop(name)) for name in over]
        return [(name, life["sent"], life["consumed"]) for name, life in ended if "sent" in life]
        ### END SOLUTION

# %% tags=["check"]
check("24/lives", Lives)

# %% [markdown] tags=["teacher"]
# The mistake to wait for is the orphan: who forgets a life when it was put out begins a new one when the order is consumed
# again. Most then keep a set of what was put out beside `kept`, which the next micro-batch does not find, or in it, where it
# grows for ever. That nothing at all has to be kept, since the beginning would be late, is the one idea of this exercise. `mqlab_spark/streaming/state.py` has one case more:
# a producer that got no answer sends again, so a life is remembered until its producer has one.

# %% [markdown]
# ## Today's RocketMQ, and where to read on (5 minutes)
#
# Brokers count on their own (`BrokerStatsManager`, and OpenTelemetry metrics since 5.0), and what they count is their own
# minute, by the clock on the wall. That shows that something is wrong, not which order it happened to. RocketMQ's message
# trace (`AsyncTraceDispatcher`, topic `RMQ_SYS_TRACE_TOPIC`) ships each client's events as messages, in batches: they come
# late and in any order, and whoever joins them has the question of this lab. RocketMQ Streams and Flink's RocketMQ connector
# have watermarks with the same meaning.
#
# **Where to read on**: `spark/mqlab_spark/streaming/` (the state is `state.py`), [docs/spark.md](../docs/spark.md); in
# RocketMQ `client/src/main/java/org/apache/rocketmq/client/trace/AsyncTraceDispatcher.java`.
#
# **Three questions to take home**
#
# 1. One machine's clock is an hour ahead. What does its first event do to the watermark, and to everybody else's events?
# 2. The shop is closed at night, and no event comes. When are the last lives of the evening put out? What would you send
#    through the stream so that they come at once?
# 3. Half of the orders are consumed within a second, one in a thousand after two hours of retries. Which patience do you
#    choose? Does a life that takes two hours need a patience of two hours?
#
# ## What you expected, and what was seen

# %%
reveal()

# %% tags=["nbval-ignore-output"]
stream.stop()
