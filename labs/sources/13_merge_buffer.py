# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   mqlab:
#     title: A memory that saves, and what it costs
#     question: A broker must remember what it has handed out. What if it does so in its memory alone?
#     objectives:
#       - count what a popped message costs in records, with the merge buffer and without
#       - say when the buffer writes a check point, and which acknowledgements it still takes
#       - say what comes again when a broker is killed, acknowledged messages included
#     minutes: 75
#     prerequisites: [00 Tour, 02 Store]
#     wrong_predictions:
#       - "records-off: one for each order and one for each batch; each of them is stored twice, waiting and due"
#       - "records-on: none; the slow batches outlive the memory and are written like all others"
#       - "age: ten seconds; with a short invisible time the memory lets go earlier"
#       - "place: all batches but the slow one; the place goes in the order of the batches"
#       - "killed-soon: what was not acknowledged; the ticks were in the memory that is gone"
#       - "killed-late: all, as before; by then the check point is written"
#       - "twice: none, since they were acknowledged; or those of the slow batch alone"
# ---

# %% tags=["parameters"]
student_id = ""

# %% [markdown]
# A kitchen takes orders from a message queue. It does not own a queue, as the consumers of the earlier labs did. It
# **pops**: it asks the broker for some orders, whatever the queue, and the broker hides them from everybody else for a
# while, the **invisible time**. When an order is done, the kitchen **acknowledges** it (an *ack*). What is not acknowledged
# when the invisible time is over comes again, to whoever pops next: a copy of it lies in another queue then, the **retry topic**
# of those who share the work (their **group**). So no order is lost when a cook faints.
#
# For that the broker must remember what it has handed out, and what was done of it. This lab is about *where* it remembers:
# on its disk, which is safe and slow, or in its memory.

# %%
from mqlab import Lab, scenarios
from mqlab.check import NotSolvedYet, check, draws_for, predict, reveal, say, seed_for
from mqlab.scenarios.merge_buffer import evening, note, open_kitchen, records_of_pops
from mqlab.views import Table
from mqlab_widgets import MergeBufferBoard, Stepper
from mqlab_widgets.charts import show_bars

seed = seed_for(student_id, "13")
draw = draws_for(seed)
size, batches = draw.between("size", 2, 6), draw.between("batches", 5, 9)
late = draw.between("late", 1, 3)

# %%
lab = Lab(seed=seed)
kitchen = open_kitchen(lab, 40, buffer=False)
orders = await kitchen.pop(size)
Table("a kitchen pops", ("order", "place in the queue"), [(order.keys, order.queue_offset) for order in orders])

# %% [markdown]
# ## Round one: what is written (20 minutes)
#
# One pop, one batch. The broker has noted it at once, in a message of its own: a **check point**. It lies in a topic that
# nobody subscribes to, and waits there for its time (lab 12 follows it from there).

# %%
lab.run_for(ms=2)
note(lab, 0)

# %% [markdown]
# Read it: the group (`c`), the topic and the queue (`t`, `q`), where the batch starts (`so`), how many orders it has (`n`), when
# it was popped and for how long (`pt`, `it`). `d` is the distance of each order from the start. And who has done what? `bm`
# is a row of bits, one for each order; in the store they stay 0, since a commit log can only be appended to. (`bn` is the broker,
# `reviveTime` is `pt` and `it` added, and `ro` is filled in by whoever reads it.) So an ack is a message, too:

# %%
await kitchen.ack(orders[0])
lab.run_for(ms=2)
note(lab, 1)

# %% [markdown]
# `ao` is the order that is done; the rest says which check point it belongs to. When the invisible time is over, a thread of
# the broker, the *reviver*, reads check points and acks side by side, and whatever has no ack goes to a retry topic.
#
# One thing to know before you bet: both wait in the topic `rmq_sys_wheel_timer`, and a record of a commit log cannot be
# moved. When its time has come, a *copy* is stored in the topic that the reviver reads.

# %%
say(f"The kitchen pops **{batches}** batches of **{size}** orders each, and acknowledges every one of them.")

# %% tags=["prediction"]
predict("records-off", "How many records do these pops and acks leave in the commit log, all in all?",
        unit="records", prediction=...)

# %%
evening_off = {"buffer": False, "batches": batches, "size": size, "late": late}
off = scenarios.get("merge-buffer").build(seed, parameters=evening_off).run_for(seconds=70)
records_of_pops(off)

# %%
written_off = sum(records_of_pops(off).values())
reveal("records-off", written_off, why="a check point for each batch, an ack for each order, and each is stored twice")

# %% [markdown]
# More than two records for each order that was delivered, beside the order itself. And for what? An order is done in half a
# second. A note that is thrown away half a second later need not be chiselled into a disk.
#
# This is what `PopBufferMergeService` is for, the **merge buffer**, switched on with `enablePopBufferMerge`. A check point
# goes into a table in memory. An ack finds it there and sets its bit. When all bits are set, the check point is
# forgotten, and nothing was ever written.

# %%
say(f"The same evening with the buffer: {batches} batches of {size}. In **{late}** of them one order takes twelve "
    "seconds; all others are done within half a second.")

# %% tags=["prediction"]
predict("records-on", "How many records do pops and acks leave in the commit log this time?",
        unit="records", prediction=...)

# %%
evening_on = {**evening_off, "buffer": True}
on = scenarios.get("merge-buffer").build(seed, parameters=evening_on).run_for(seconds=70)
records_of_pops(on)

# %%
written_on = sum(records_of_pops(on).values())
reveal("records-on", written_on, why="the slow batches outlived the memory: their check points and acks are written")

# %%
delivered = size * batches
show_bars("Records for each order that was delivered", "merge buffer", "records, beside the order",
          ["off", "on"], {"records": [round(n / delivered, 2) for n in (written_off, written_on)]})

# %% [markdown]
# A memory takes what is short, and hands on what is not. How long is short? That is round two. First the bill:
#
# ### A small exercise: what does a batch cost?
#
# A batch of `size` orders is invisible for a minute, and all of its orders are done at the same time, `done_s` seconds after the
# pop. How many messages does the broker write for it? (Count each once: while it waits.) An ack may come up to 8.5 s after
# the pop; a later one is not taken by the memory, and written.

# %% [markdown] tags=["hints"]
# - Without the buffer it is always the same: the check point, and an ack for each order.
# - With the buffer it is all or nothing here, since all orders are done at the same time.
# - So there are two answers. One of them is nothing; for it two things must hold at the same time, and one is the time of round one at which a batch is written at the latest.

# %% tags=["exercise"]
def written(size, done_s, buffer):
    """How many messages a broker writes for one batch."""
    ### BEGIN SOLUTION
    if buffer and done_s <= 8.5:
        return 0
    return size + 1
    ### END SOLUTION

# %% tags=["check"]
check("13/written", written)

# %% [markdown]
# ## Round two: how long is short? (20 minutes)
#
# Every 5 ms the buffer's thread looks through its table. Two clocks decide about a check point that is not done: how long it
# has been in memory (`popCkStayBufferTime`, 10 s), and how long its orders will still be invisible: when less
# than 3 s are left (`popCkStayBufferTimeOut`) it has to be in the store, where the reviver can find it. Whatever comes first.

# %%
invisible_s = draw.between("invisible", 6, 12)
lab = Lab(seed=seed)
kitchen = open_kitchen(lab, 40, buffer=True)
orders = await kitchen.pop(4, invisible_ms=invisible_s * 1_000)
popped_ms = lab.now_ms
say(f"Four orders are popped for **{invisible_s} s**, and the cook does none of them.")

# %% tags=["prediction"]
predict("age", "How many seconds after the pop is the check point written?", unit="s", prediction=...)

# %%
stored = lab.run_until_event("CheckPointStored")
stored.fields

# %%
reveal("age", round((stored.ts_ms - popped_ms) / 1_000),
       why=f"less than 3 s of {invisible_s} are left then, which is before 10 s have passed")

# %% [markdown]
# The three seconds are for the reviver: it must have read the check point *before* the acks. An ack for which it has read no
# check point is passed over, and an order that was done comes again. For the same reason the memory stops taking acks a second and a
# half before it lets go, and they are written instead: 8.5 s after the pop, or when less than 4.5 s are left.
#
# ### A small exercise: does memory take this ack?
#
# All times are ms. A batch was popped at `popped_ms`, its orders will be visible again at `visible_ms`, and it is `now_ms`. Both
# limits themselves are still taken.

# %% [markdown] tags=["hints"]
# - Two conditions, joined with `and`.
# - The age is `now_ms - popped_ms`, and what is left is `visible_ms - now_ms`.
# - Compare each of the two with the number that the text names for it. Both limits still count as allowed.

# %% tags=["exercise"]
def takes_ack(popped_ms, visible_ms, now_ms):
    """Does the memory take an ack now?"""
    ### BEGIN SOLUTION
    return now_ms - popped_ms <= 8_500 and visible_ms - now_ms >= 4_500
    ### END SOLUTION

# %% tags=["check"]
check("13/takes-ack", takes_ack)

# %% [markdown]
# ### The group's place
#
# There is one more number to keep: how far the group has come in the queue, its **offset**. A pop begins there, and so does a
# broker that is started again. When may it move? If it went past a batch that is only in memory, a crash would lose
# that batch for good. So the buffer commits the offset of a batch when the batch is done or written. And a queue has one number
# for all that lies before it, so it commits in the order of the pops.

# %%
slow = draw.between("slow", 2, 5)
lab = Lab(seed=seed)
kitchen = open_kitchen(lab, 40, buffer=True)
popped = [await kitchen.pop(size) for _ in range(6)]
lab.run_for(ms=200)
for number, batch in enumerate(popped, 1):
    await kitchen.ack(*(batch[1:] if number == slow else batch))
lab.run_for(seconds=3)
say(f"Six batches of **{size}** orders were popped. All orders are done, but one: the first of batch **{slow}**.")

# %% tags=["prediction"]
predict("place", "Three seconds later: at which offset does the group stand? (The first order has the offset 0.)",
        unit="", prediction=...)

# %%
lab.history.last("OffsetCommitted", topic="Orders").fields

# %%
place = lab.history.last("OffsetCommitted", topic="Orders").queue_offset
reveal("place", place, why=f"{slow - 1} batches of {size} lie before the one that is not done")

# %% [markdown]
# The next pop does not ask for this number alone. It begins where the newest batch in memory ends, if that is further on: so
# nobody gets an order twice, as long as the broker lives.
#
# ## Round three: kill it (20 minutes)
#
# Now the price. In this world, as it stands, the broker's process is killed (`kill -9`) and started again at once. What was
# written is still there.

# %% tags=["prediction"]
predict("twice", "How many orders come again although they were done?", unit="orders", prediction=...)

# %% [markdown]
# Your bet is made? Then look at the board before you kill it: it foretells what a crash would do. Each box is a batch that the disk does not know all of, and each square an order; the
# triangles are the two places, as the memory has it and as the disk has it.

# %%
Stepper(lab, [MergeBufferBoard])

# %%
finished = {order.keys for number, batch in enumerate(popped, 1)
            for order in (batch[1:] if number == slow else batch)}
lab.crash("broker-a")
lab.restart("broker-a")
lab.run_for(seconds=1)
came = [order.keys for order in await kitchen.pop()]
twice = [key for key in came if key in finished]
twice

# %%
reveal("twice", len(twice), why="from the first batch that is not done on, everything: done or not")

# %% [markdown]
# One slow order holds the group's place, and all that is done behind it is at stake. How bad can it get? A kitchen pops all
# orders at once, for 40 s, and does the first few within a second.

# %%
taken, done = draw.between("taken", 9, 16), draw.between("done", 2, 6)
say(f"**{taken}** orders are popped, and **{done}** of them are done and acknowledged.")

# %% tags=["prediction"]
predict("killed-soon", "Killed 3 s after the pop, with the buffer on: how many of the orders come again?",
        unit="orders", prediction=...)

# %% tags=["prediction"]
predict("killed-late", "Killed 15 s after the pop, with the buffer on: how many come again?",
        unit="orders", prediction=...)

# %%
soon = evening(seed, taken, done, "killed", 3, buffer=True)
Table("killed after 3 s", ("order", "reconsumeTimes", "s after the pop"), soon.again)

# %%
reveal("killed-soon", len(soon.keys()), why="check point, ticks and offset were in memory: nothing of it was written")

# %% [markdown]
# Every one of them, those that were done as well, and at once: the group's offset on the disk was where it had been before the
# pop. To the broker these orders were never handed out. `reconsumeTimes`, which comes with each order and says how often it was handed
# out before, is 0, so the cook cannot see that they come for the second time. That is what "at least once" means: a kitchen that must not cook twice has to look into its own books
# (lab 09).

# %%
later = evening(seed, taken, done, "killed", 15, buffer=True)
Table("killed after 15 s", ("order", "reconsumeTimes", "s after the pop"), later.again)

# %%
reveal("killed-late", len(later.keys()), why="after 10 s the check point and the acks were written")

# %% [markdown]
# Now exactly what is not done comes again, some seconds after the end of the invisible time, through the retry topic. The
# same happens without the buffer, and when a broker is stopped in good order: it takes nothing in any more, waits two
# seconds, and writes everything.

# %%
ways = [("killed", 3, True), ("killed", 15, True), ("stopped", 3, True), ("killed", 3, False)]
rows = []
for how, after_s, buffer in ways:
    again = evening(seed, taken, done, how, after_s, buffer=buffer).keys()
    twice = sum(int(key.partition("-")[2]) < done for key in again)
    rows.append((f"{how} after {after_s} s", "on" if buffer else "off", len(again), twice))
Table("what comes again", ("the broker is", "buffer", "orders", "of them done before"), rows)

# %% [markdown]
# Measured on a real RocketMQ 5.3.3, with ten orders of which three were done: killed about 18 s after the pop, and stopped
# in good order 2 s and 18 s after it, the seven others came again, with the buffer and without; killed within ten
# seconds with the buffer on, all ten.
#
# (Without the buffer a kill can bring back everything, too: the check point is safe, but the offset is written every five
# seconds only. Our brokers write it twice a second, so that this does not get in the way.)
#
# ### A small exercise: what would a kill bring back?
#
# `batches` is what was popped, in order: for each batch the list of its offsets, and the set of those that are done. All are in
# memory. Return the offsets that come again after a kill.

# %% [markdown] tags=["hints"]
# - The group's place goes past batches that are done, up to the first that is not.
# - From there on *everything* comes again, done or not, and also the batches behind.
# - A batch is done when none of its offsets is missing in `done`; sets can tell that with one subtraction. From the first batch on that is not, collect the offsets of all batches.

# %% tags=["exercise"]
def comes_again(batches):
    """The offsets that come again when the broker is killed now."""
    ### BEGIN SOLUTION
    for number, (offsets, done) in enumerate(batches):
        if set(offsets) - done:
            return [offset for later, _ in batches[number:] for offset in later]
    return []
    ### END SOLUTION

# %% tags=["check"]
check("13/comes-again", comes_again)

# %% [markdown]
# ## Build it: stay, or store? (15 minutes)
#
# Write the scan. It looks at each batch in memory, ten times a second here, and says what is to be done with it. What it knows:
#
# | | |
# |---|---|
# | `batch.popped_ms`, `batch.visible_ms` | when it was popped, and when its orders are visible again |
# | `batch.orders` | how many orders it has; their places are 0, 1, 2, ... |
# | `batch.done` | the places that are acknowledged in memory |
# | `batch.stored` | is the check point written? |
# | `batch.done_stored` | the places whose ack is written |
#
# It returns a list of steps, which are taken in this order: `"store"` writes the check point, a place (a number) writes the ack
# of that order, and `"let go"` forgets the batch. An empty list lets it stay. If the store refuses a step, the rest is left
# out, and the next scan asks again.
#
# The worlds have orders that are done soon, late or never, short and long invisible times, and in every second one the
# broker is killed. You pass when
#
# - what nobody has done comes again;
# - what was done does not, unless it was popped in the last ten seconds before a kill;
# - no check point is written whose orders were done in time;
# - nothing that is done stays in memory, and in the end memory is empty.
#
# Write too early, and it costs records. Write too late, and a kill costs more than it may, or the reviver misses an ack.

# %% [markdown] tags=["hints"]
# - Three cases: all orders are done; the batch may stay; it has to be written. The limits are those of round two: 10 s in memory, 3 s before it is visible.
# - A batch that is done needs only `["let go"]`. One that has to be written needs the check point, then the acks that only the memory has, then `"let go"`.
# - What is in the store already is not written again: neither a check point (`batch.stored`) nor an ack (`batch.done_stored`). "let go" is always the last, and never said of a batch that may stay.

# %% tags=["exercise"]
def scan(batch, now_ms):
    """What is to be done with a batch now: a list of steps."""
    ### BEGIN SOLUTION
    if len(batch.done) == batch.orders:
        return ["let go"]
    if batch.visible_ms - now_ms >= 3_000 and now_ms - batch.popped_ms <= 10_000:
        return []
    steps = [] if batch.stored else ["store"]
    steps += [place for place in batch.done if place not in batch.done_stored]
    return [*steps, "let go"]
    ### END SOLUTION

# %% tags=["check"]
check("13/stay-or-store", scan)

# %% [markdown]
# ## What is different today, and where to read on
#
# - The buffer is off by default (`enablePopBufferMerge=false`): whoever switches it on pays with orders that come twice
#   after a crash.
# - A scan that takes more than two seconds (a disk that hangs) closes the buffer: nothing is taken in until all is written. Acks
#   and check points go to the store meanwhile.
# - 5.3 has another engine, which keeps both in a small database with a cache in front (`popConsumerKVServiceEnable`). The
#   question of this lab is asked there again: what may stay in the cache, and for how long?
# - Read `broker/src/main/java/org/apache/rocketmq/broker/processor/PopBufferMergeService.java`: `addCk`, `addAk` and `scan`.
#   `isCkDone` and `isCkDoneForFinish` are the two ways of being done that you have written.
#
# Three questions to take home:
#
# 1. Your shop sells tickets, and an order that is cooked twice costs money. Which setting do you choose, and what do you
#    tell the cooks?
# 2. A broker hands out 10,000 messages a second in batches of 32, and each is done within a second. What does the buffer save in
#    a day, in records? What does a kill cost?
# 3. `popCkStayBufferTime` could be a minute. What would be better, and what worse?

# %%
reveal()
