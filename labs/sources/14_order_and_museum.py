# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   mqlab:
#     title: Order, and the museum
#     question: Who may say that an order is done, which one comes next, and how do those who build queues get that wrong?
#     objectives:
#       - say what a second pop in order brings, and why messages that are done are among them
#       - tell what an acknowledgement with an old handle does, and make the new handle
#       - read a real bug in a trace, and repair it with one function
#     minutes: 95
#     prerequisites: [00 Tour, 02 Store, 11 Pop]
#     wrong_predictions:
#       - "other-attempt: the orders behind; then two consumers would cook one guest's courses at once"
#       - "again: none, since they are done; but progress is one number, and it stands before the first order that is not"
#       - "old-handle: refused; nobody asks whether a handle is still the newest one"
#       - "log-records: one for each order and one for each ack; both notes wait first, and are stored twice"
#       - "after-crash: none, or all; the progress is where the last pop began"
#       - "first-lost: none, as nothing fails; or the last one of the batch"
# ---

# %% tags=["parameters"]
student_id = ""

# %% [markdown]
# ## The scene (5 minutes)
#
# A kitchen takes orders from a broker. It does not own a queue, as the consumers of the labs before do. It **pops**: the broker hands out some
# messages, hides them from everybody else for a while (the **invisible time**, here a minute), and waits for the word that they are done (the
# **ack**). What is not acknowledged in that time can be seen again, and another cook gets it.
#
# With each message comes a **handle**, a line of text that says which delivery of which message this is. Whoever acknowledges gives the handle
# back.

# %%
from mqlab import Lab
from mqlab.check import NotSolvedYet, check, draws_for, predict, reveal, say, seed_for
from mqlab.museum import EXHIBITS, exhibit, fix_of, visit
from mqlab.scenarios.ordered_kitchen import open_ordered_kitchen
from mqlab.views import Table
from mqlab_widgets import OrderedPopsBoard, PopRecordsBoard, Stepper

seed = seed_for(student_id, "14")
draw = draws_for(seed)

# %%
lab = Lab(seed=seed)
kitchen = await open_ordered_kitchen(lab, orders=20)
taken = draw.between("taken", 6, 9)
orders = await kitchen.take("monday-1", taken)
orders[0].properties["POP_CK"]

# %% [markdown]
# The fields of the handle: the first offset of the batch, when it was popped (ms since 1970), for how long it is hidden (ms), a number that says
# in which of its **revive queues** the broker notes what becomes of the batch (999 means: popped in order, nothing is noted there), whether it came
# by the retry topic, the broker, the queue, and the place of the message in the queue.

# %%
Stepper(lab)

# %% [markdown]
# ## Round one: in order (15 minutes)
#
# These orders were popped **in order**. A guest who had soup before the roast wants it that way. The kitchen gave its request a name,
# `monday-1`: an **attempt**. Now it acknowledges some of the orders, and not one after the other.

# %%
first_open = draw.between("open", 1, 3)
done = [n for n in range(taken) if n != first_open and n != taken - 1]
say(f"The kitchen has the orders 0 to {taken - 1}. It acknowledges all of them but the orders **{first_open}** and **{taken - 1}**.")

# %%
await kitchen.ack(*[orders[n] for n in done])
lab.history.last("OrderAcked").fields

# %% [markdown]
# Another cook comes, with an attempt of his own, and asks for orders in order, too. Behind the batch there are more.

# %% tags=["prediction"]
predict("other-attempt", "What does the other cook get?",
        choices=["the orders behind the batch", "the two orders that are not done", "nothing"], prediction=...)

# %% [markdown]
# And the first cook? Perhaps the answer to his request was lost on its way, so he asks once more, with the same attempt, for as many orders as
# before.

# %% tags=["prediction"]
predict("again", "The first cook asks again as monday-1, for as many. How many of the orders that he gets are acknowledged already?",
        unit="orders", prediction=...)

# %%
others = await kitchen.take("tuesday-1", taken)
reveal("other-attempt", "c" if not others else "a" if others[0].queue_offset >= taken else "b",
       why="while an order of the batch is neither done nor visible again, the queue is blocked for every other attempt")

# %%
again = await kitchen.take("monday-1", taken)
repeated = [order.queue_offset for order in again if order.queue_offset in done]
reveal("again", len(repeated), why=f"he goes on at order {first_open}, the first one that is not done, and all behind it come again")

# %%
Table("the second pop of monday-1", ("offset", "acknowledged before"),
      [(order.queue_offset, "yes" if order.queue_offset in done else "") for order in again])

# %% [markdown]
# For each queue the broker keeps one batch that is out (`ConsumerOrderInfoManager`): its offsets, which of them are done (a bit for each), and
# the attempt. **The same attempt** is taken for the same request, sent once more, so it is not blocked, and gets what is there from the
# group's progress on. And the progress is **one number**: it moves to the first order that is not done. What is done behind it is
# forgotten by the new batch.
#
# So order costs this: done is done only in a row. A cook who is given the roast twice must know by himself that he has served it.
#
# The board *Ordered pops* shows what the broker keeps: the batch with its attempt, a tick for each order that is done, a triangle where the
# group goes on, and who was turned away. Step back with **p** to the moment at which `tuesday-1` asked, and on with **n**: what becomes of the ticks
# when `monday-1` asks again?

# %%
Stepper(lab, [OrderedPopsBoard])

# %% [markdown]
# ### A small exercise: what comes again?
#
# A batch has these `offsets`, some of them `acked`. Return the list of the offsets that the next pop of the same attempt begins with, as far as
# they are of this batch: done or not. When all are done it is empty.

# %% [markdown] tags=["hints"]
# - Which offset is the first one that is not acknowledged?
# - Everything from there on comes again, whatever was acknowledged behind it.
# - Look for the place of the first one that is open. A slice from that place on is the answer; and what if there is no such place?

# %% tags=["exercise"]
def comes_again(offsets, acked):
    """The offsets of a batch that the next pop brings once more."""
    ### BEGIN SOLUTION
    for n, offset in enumerate(offsets):
        if offset not in acked:
            return offsets[n:]
    return []
    ### END SOLUTION

# %% tags=["check"]
check("14/comes-again", comes_again)

# %% [markdown]
# ## Round two: a longer time, and an old handle (15 minutes)
#
# Now without order. The kitchen pops one order, sees that it is a large one, and asks for more time
# (`CHANGE_MESSAGE_INVISIBLETIME`). The broker answers with a new pop time and the new invisible time.

# %%
lab = Lab(seed=seed)
kitchen = await open_ordered_kitchen(lab, orders=5)
order = (await kitchen.pop(1, invisible_ms=10_000))[0]
old_handle = order.properties["POP_CK"]
longer_ms = 1_000 * draw.between("longer", 20, 40)
lab.run_for(ms=draw.between("later", 1_000, 6_000))
new_pop_time, new_invisible_ms = await kitchen.change(order, longer_ms)
old_handle, new_pop_time, new_invisible_ms

# %% [markdown]
# Then the cook is ready sooner than he thought. He acknowledges the order, but his program still uses the handle that came with the order at first.

# %% tags=["prediction"]
predict("old-handle", "He acknowledges with the old handle. What happens?",
        choices=["the broker refuses it", "the broker says OK, and the order is done",
                 "the broker says OK, and the order comes again"], prediction=...)

# %%
code = await kitchen.ack_by(old_handle)
lab.run_for(ms=longer_ms + 15_000)
came_again = lab.history.last("MessageRevived")
reveal("old-handle", "a" if code else "c" if came_again is not None else "b",
       why="the ack counts for the old delivery, which the change had ended already; the new one is never acknowledged")

# %% [markdown]
# Nobody remembers which handle is the newest. A handle names one delivery by its times, and the broker notes (as a message!) that this delivery
# is done. The change has made a new delivery with a note of its own, a **check point**, and acknowledged the old one itself. So the second ack
# of the old one changes nothing, and is answered with OK all the same. The order comes again:

# %%
came_again.fields if came_again is not None else "it does not come again"

# %% [markdown]
# ### A small exercise: the new handle
#
# A handle has eight fields with a space between them: first offset of its batch, pop time, invisible time, revive queue, retry flag, broker,
# queue, offset of the message. After a change the message is **a batch of its own**, and the two times are those of the answer. Make the new
# handle from the old one.

# %% [markdown] tags=["hints"]
# - `handle.split(" ")` gives a list of eight texts, and `" ".join(...)` makes a text of a list.
# - Three fields change: the first three. The first offset of a batch of one message is the message's own.
# - The first field comes from another field of the same handle, the other two are your arguments. In a handle everything is text.

# %% tags=["exercise"]
def new_handle(handle, pop_time, invisible_ms):
    """The handle after a change of the invisible time."""
    ### BEGIN SOLUTION
    fields = handle.split(" ")
    fields[0:3] = [fields[7], str(pop_time), str(invisible_ms)]
    return " ".join(fields)
    ### END SOLUTION

# %% tags=["check"]
check("14/new-handle", new_handle)

# %% [markdown]
# ## Round three: the same with records (15 minutes)
#
# Why are these notes messages? A commit log can be appended to and nothing else, and it was what RocketMQ had. So each batch
# that is handed out writes a check point, each ack writes an ack, both as messages that wait on a timer and become due when the invisible time
# is over; then a thread reads both and finds out which bits are missing. In 2025 a second engine came beside it (`PopConsumerService`): a small
# **key-value store** with one record for each message that is out. An ack deletes the record. Every half second one looks which records are due.
#
# In the first engine, how much is written? The kitchen pops the orders one by one and acknowledges each of them.

# %%
count = draw.between("count", 5, 12)


async def cook_one_by_one(lab, orders, **broker):
    kitchen = await open_ordered_kitchen(lab, orders, **broker)
    for _ in range(orders):
        await kitchen.ack(*await kitchen.pop(1, invisible_ms=10_000))
    lab.run_for(seconds=40)
    return len(list(lab.history.find("MessageStored")))


say(f"The kitchen pops **{count}** orders, each by itself, and acknowledges each at once. Then 40 s pass.")

# %% tags=["prediction"]
predict("log-records", f"How many records are in the commit log then, the {count} orders included?", unit="records", prediction=...)

# %%
with_messages = await cook_one_by_one(Lab(seed=seed), count)
reveal("log-records", with_messages, why="an order, and a check point and an ack, which are stored while they wait and once more when they are due")

# %%
with_records = await cook_one_by_one(Lab(seed=seed), count, pop_consumer_kv_service_enable=True)
Table("records in the commit log", ("engine", "records", "for each order"),
      [("check points and acks", with_messages, round(with_messages / count, 1)),
       ("key-value store", with_records, round(with_records / count, 1))])

# %% [markdown]
# ### Break it
#
# Nothing is free. With records, how far a group was handed out messages is kept in the broker's memory, and a number
# for each queue is written down now and then. The kitchen pops twice, and nothing is acknowledged. After 20 s, so that all tables are on the disk,
# the broker is killed, and started again.

# %%
sizes = draw.between("first pop", 3, 6), draw.between("second pop", 2, 5)
lab = Lab(seed=seed)
kitchen = await open_ordered_kitchen(lab, orders=20, pop_consumer_kv_service_enable=True)
for size in sizes:
    await kitchen.pop(size, invisible_ms=120_000)
lab.run_for(seconds=20)
lab.crash("broker-a")
lab.restart("broker-a")
lab.run_for(seconds=3)
say(f"The first pop took **{sizes[0]}** orders, the second one **{sizes[1]}**. All of them are hidden for two minutes.")

# %% tags=["prediction"]
predict("after-crash", "The kitchen pops 20 orders now. How many of those come that were handed out before the kill?",
        unit="orders", prediction=...)

# %%
again = [order.queue_offset for order in await kitchen.pop(20)]
reveal("after-crash", len([offset for offset in again if offset < sum(sizes)]),
       why="the group goes on where its last pop began; the records survive, too, so these orders will come once more by the retry topic")

# %% [markdown]
# What is written down is where the group's **last pop of each queue began**, not where it ended.
#
# The board *Records* shows where each record is: in memory alone, on the disk, or deleted, and why. Step back to the kill, and look at what it left.

# %%
Stepper(lab, [PopRecordsBoard])

# %% [markdown]
# ### A small exercise: how much is written?
#
# With the first engine: `orders` were popped by `pops` pops from one queue, and each order was acknowledged by itself, in time. How many records
# does the commit log have in the end?

# %% [markdown] tags=["hints"]
# - What is written once for each pop, what once for each order?
# - A note that waits is a record, and when it is due it is stored again.
# - So three things are counted: orders, check points, acks. Which of them is there once for each pop? And which of them are stored twice?

# %% tags=["exercise"]
def records_written(orders, pops):
    """How many records the commit log has when all is done."""
    ### BEGIN SOLUTION
    return orders + 2 * pops + 2 * orders
    ### END SOLUTION

# %% tags=["check"]
check("14/records", records_written)

# %% [markdown]
# ## The museum (25 minutes)
#
# The people who built this are good, and these are bugs that they had; each has a room with a world in which it shows.

# %%
Table("what there is to be seen", ("room", "title", "what must hold"), [(one.number, one.title, one.invariant) for one in EXHIBITS])

# %% [markdown]
# The code of a room is broken or fixed. A visit plays its world until the rule is broken, or to the end. Issue 3787: a slow consumer with one
# thread; nothing fails, and yet messages come twice. The broker keeps check points in memory for up to 10 s, and ticks off there what is
# acknowledged, but only until 8.5 s behind the pop. (Then the check point may be on its way to the disk; an ack goes to the disk by itself.)

# %%
work_ms = draw.between("work", 330, 520, step=10)
say(f"For each message the listener takes **{work_ms} ms**, and up to 200 ms more.")

# %% tags=["prediction"]
predict("first-lost", "The first message of the batch has the number 0. Which one is the first to come again although it was acknowledged?",
        unit="as its number", prediction=...)

# %%
seen = visit(exhibit("3787"), seed, work_ms=work_ms)
reveal("first-lost", int(seen.reason.split()[1]), why="it is the first one that was acknowledged later than 8.5 s behind the pop")

# %% [markdown]
# Its story. `bits` are the places that an ack marks in its check point. Each `ReviveAckRead` is the reader meeting an ack of this pop. One
# without bits was read while nobody knew a check point that it could belong to, and so it marks nothing; the reader goes on from the same place
# in its next round, which is why such lines come twice.

# %%
story = [line.split() for line in seen.story if line.split()[2] == "broker-a"]
Table("one message", ("ms", "what", "bits"), [
    (words[0], words[4], next((word[5:].strip("'") or "none" for word in words if word.startswith("bits=")), ""))
    for words in story])

# %% [markdown]
# The ack was written *before* its check point, which was waiting in memory for all its acks, and both waited for the next full minute. [The
# page of the museum](../docs/museum.md) tells all stories.
#
# Now three bugs at once. The invisible time of a message is over, nobody has acknowledged it, and the **reviver** shall bring it back: it asks
# the store for the message at the offset that the check point names. What can happen then was decided wrongly three times:
#
# - **7724**: the store gives the first message that it still has *from that offset on*. That may be another one. (A change that compares the
#   offsets was never merged: RocketMQ 5.3.3 does it still.)
# - **7914**: whoever compares the time at which a message was stored with the pop time throws away messages that arrived while the pop was on its
#   way from queue to queue.
# - **8479**: the topic was deleted and made again. The offset is far behind the end of the new queue, and the reviver tried again, and again.

# %% [markdown]
# Write the decision. `asked` is the offset that the check point names; `found` is the offset of the message that the store gave, or `None` if it
# gave none; `pop_time` and `stored` are ms (`stored` is `None` without a message); `queue_end` is the offset that the queue's next message will
# get; `reads` says whether the store reads at all just now: if it does not, `found` and `stored` are `None` and say nothing of the message. Return `"back"` (the message goes to the retry topic), `"gone"` (nothing is
# left to do) or `"later"` (a new check point, to try again).

# %% [markdown] tags=["hints"]
# - Only one of the three answers ends a message's life without a copy. When may you be sure of it?
# - "Not there" and "not now" are two things; `reads` tells them apart. And what is at another offset is another message.
# - Ask for "not now" before anything else. What is left is one comparison of two of the six arguments; which two tell whether this is *the* message?

# %% tags=["exercise"]
def decide(asked, found, pop_time, stored, queue_end, reads):
    """What becomes of a message that nobody acknowledged: "back", "gone" or "later"."""
    ### BEGIN SOLUTION
    if not reads:
        return "later"
    return "back" if found == asked else "gone"
    ### END SOLUTION

# %% tags=["check"]
check("14/decide", decide)

# %% [markdown]
# ## Four more rooms, if you like (20 minutes)
#
# In each room of the museum you can write the fix: the decision that went wrong is a function of its own, which plugs into the room.
# Yours decides more than this, and is asked about many cases; then it is played in the room, from seeds that nobody was shown. Outside this notebook `mqlab museum 3507 --fix my_fix.py` does the same
# (it makes the file, with the decision as it was), and `mqlab museum 3507 --hint 1` gives the first of three hints.
#
# ### 3787 and 4153: when is a note delivered?
#
# You have seen 3787. In 4153 the same decision does harm without the memory: an ack waits for longer than its check point, which is judged without
# it. This is the decision as it was, in a broker that knew 18 lengths of waiting and nothing between them:

# %%
print(fix_of("3787").start)

# %% [markdown]
# A broker of today has a **timer wheel** (`wheel` is `True`) that keeps a message until any second. A check point has to be read before its acks, so it
# comes a second before the end of the invisible time, and an ack at that end.
#
# A broker without a wheel (`wheel` is `False`) still has the lengths of waiting alone: a note comes after the first of `levels_ms` that brings it
# *behind* the time at which it is due, or after the longest. There an ack may overtake its check point. So yours gets
# one thing more: of an ack `ck_ms`, the time at which its check point comes (of a check point it is `None`). An ack must not come
# before that, nor in the same ms.
#
# The decision as it was has three parts. Which one stays, what must be asked before it, and where does the new rule belong?

# %% [markdown] tags=["hints"]
# - With a wheel the time at which a note is due is the answer, and neither the levels nor `now_ms` matter.
# - Without one keep the loop over the levels. It asks for the first level behind some time. For an ack, that is not always the end of the invisible time.
# - Two questions, and the order counts: first when the note is due, by its kind; then whether there is a wheel; and only then what an ack has to wait for besides.

# %% tags=["exercise"]
def deliver_at(kind, until_ms, now_ms, levels_ms, wheel, ck_ms):
    """When a note of this kind, "ck" or "ack", is put into the revive queue, ms since 1970."""
    ### BEGIN SOLUTION
    due_ms = until_ms - 1_000 if kind == "ck" else until_ms
    if wheel:
        return due_ms
    if kind == "ack":
        due_ms = max(due_ms, ck_ms)
    for level_ms in levels_ms:
        if now_ms + level_ms > due_ms:
            return now_ms + level_ms
    return now_ms + levels_ms[-1]
    ### END SOLUTION

# %% tags=["check"]
check("14/deliver-at", deliver_at)

# %% [markdown]
# ### 3507: how far has the reviver read?
#
# The reviver judges a check point when it has read up to more than two seconds behind that one's time (lab 11). "Up to when have I read" is the newest
# time of delivery that it has seen. The decision as it was, asked for each note:

# %%
print(fix_of("3507").start)

# %% [markdown]
# Write it with what hangs on it. A round begins with having read up to `was_ms` and brings `notes`, in the order of the queue: a pair for each note, when it was delivered
# and for how long it had waited for that (`deliver_ms, waited_ms`). Mostly the later note was delivered later, not always. `ends_ms` are the
# ends of the invisible times of the check points that wait, from the front. Return two things: up to when has been read now, and how many check points, from
# the front, may be judged. (Behind one that may not, none may: only one place is kept.)

# %% [markdown] tags=["hints"]
# - Draw a line: the note is written, it waits, it is delivered. Where on the line is `deliver_ms`, and where `deliver_ms + waited_ms`?
# - What was read a moment ago cannot have been delivered in the future. And having read something old does not make one forget something new.
# - The first of the two answers is a maximum, over what was known and what came. The second one counts from the front and leaves off at the first end that is not more than 2,000 ms before the first answer.

# %% tags=["exercise"]
def read_up_to(notes, was_ms, ends_ms):
    """Up to which time a reviver has read after these notes (ms since 1970), and how many check points it may judge."""
    ### BEGIN SOLUTION
    newest_ms = max([was_ms, *(deliver_ms for deliver_ms, _ in notes)])
    for place, end_ms in enumerate(ends_ms):
        if newest_ms - end_ms <= 2_000:
            return newest_ms, place
    return newest_ms, len(ends_ms)
    ### END SOLUTION

# %% tags=["check"]
check("14/read-up-to", read_up_to)

# %% [markdown]
# ### 5408: for how long does an ack wait for its check point?
#
# How far a reviver has come is where the last check point stands that it has settled. If nobody pops any more, acks are the end of its queue, and
# are read in every round. The decision as it was, and is, unless `enableSkipLongAwaitingAck` is set:

# %%
print(fix_of("5408").start)

# %% [markdown]
# Write the whole of it: where does the next round begin? `records` is what was read in a round, in the order of the queue, a pair for each: what it
# is, and when it was due (ms since 1970). It can be a check point that is `"settled"`, one that still is `"waiting"`, an ack whose check point was
# read before it (`"matched"`), or an ack of which no check point was read (`"alone"`). Return how many records, from the front, need not be
# read again. An ack alone is passed when it was due more than `patience_ms` ago. A matched ack is passed with its check point, which lies before it.

# %% [markdown] tags=["hints"]
# - Which of the four kinds never hold the reviver up? Which one always does? And which one only for a while?
# - An ack may come before its check point, so it must not be passed at once. For `patience_ms` the check point may still come; after that it won't. With exactly `patience_ms` it may.
# - Go through the records from the front. At the first one that holds the reviver up its place is the answer, however old the others are behind it. There are two conditions for that, and the second one needs a time.

# %% tags=["exercise"]
def passes(records, now_ms, patience_ms):
    """How many records of a revive queue, from the front, need not be read again."""
    ### BEGIN SOLUTION
    for place, (kind, due_ms) in enumerate(records):
        if kind == "waiting":
            return place
        if kind == "alone" and now_ms - due_ms <= patience_ms:
            return place
    return len(records)
    ### END SOLUTION

# %% tags=["check"]
check("14/passes", passes)

# %% [markdown]
# ## In today's RocketMQ
#
# - Order: `org.apache.rocketmq.broker.offset.ConsumerOrderInfoManager`. Change: `...broker.processor.ChangeInvisibleTimeProcessor`. The engine
#   with records: `...broker.pop.PopConsumerService`, off by default (`popConsumerKVServiceEnable`). Its store is a RocksDB there; ours is a
#   sorted map with a log, which promises the same after a crash.
# - `mqlab museum` lists the rooms, `mqlab museum 3507` plays one and tells its story, and with `--shortest` the shortest one.
#
# Three questions to take home. Why may the broker not simply refuse an ack with an old handle? What would an order of `comes_again` cost that
# never repeats? And which test would have found 7914 before its users did?

# %%
reveal()
