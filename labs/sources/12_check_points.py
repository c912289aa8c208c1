# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   mqlab:
#     title: Check points
#     question: A worker took messages and says nothing. How does a broker find out which ones were never done?
#     objectives:
#       - read a check point and its acknowledgements, and say when each of them is due and why
#       - set the bits of a check point by hand, and say which messages come back
#       - build the reader that decides when it has waited long enough
#     minutes: 90
#     prerequisites: [00 Tour, 02 Store, 11 Pop]
#     wrong_predictions:
#       - "written: none, the broker keeps a list in memory; or one for each order that was handed out"
#       - "ck-due: when the invisible time is over; it has to be there before its acknowledgements"
#       - "bitmap: bits are taken for offsets, or counted from 1"
#       - "rounds: 1, all together; or one for each; the reader stops at the first one that is too young"
#       - "came-back: all orders, as if the acknowledgements had died with the broker"
# ---

# %% tags=["parameters"]
student_id = ""

# %% [markdown]
# ## The scene (8 minutes)
#
# Orders come in at a counter and lie in the topic `Orders` of a **broker**, the server that keeps messages. Workers take
# them. All workers who share the work are a **group**. There are two ways to share. In lab 00 each worker *owned* some
# queues, and one number said how far he had come. In the other way, **Pop**, nobody owns anything: whoever asks gets some
# orders, and for a while, the **invisible time**, nobody else of the group gets these. If the worker says "done" (an
# **acknowledgement**, ack for short) the order is finished. If he says nothing, because he crashed or forgot, the time
# passes and somebody else gets the order.
#
# So a broker has to know at any moment which orders are handed out and not done yet. You would keep a list. But a list in
# memory dies with the broker, and a list on disk changes in a hundred places each second, while a commit log can only
# be *appended to* (lab 02). RocketMQ does what a message queue can do best: **it writes messages**. This lab is about these
# messages, and about the one who reads them and finds out what is missing.
#
# The scene: a broker, some orders, and a worker who does just what we tell him. He takes six orders, one after the other, and has 8 s for
# each. Of three of them he says that they are done. Of the other three he says nothing.

# %%
from mqlab import Lab
from mqlab.check import NotSolvedYet, check, draws_for, predict, reveal, say, seed_for
from mqlab.scenarios.pop_check_points import RETRY_TOPIC, handle_of, notes_in, open_counter
from mqlab.views import Table
from mqlab_widgets import Stepper
from mqlab_widgets.boards.check_points import CheckPointsBoard
from mqlab_widgets.boards.revive_ruler import ReviveRulerBoard

seed = seed_for(student_id, "12")
draw = draws_for(seed)

# %%
lab = Lab(seed=seed)
worker = await open_counter(lab, orders=6, revive_queue_num=1)
taken = []
for _ in range(6):
    taken += await worker.pop(1, invisible_ms=8_000)
    lab.run_for(ms=draw.between("pace", 700, 1_000, step=50))
await worker.ack(*draw.shuffled("done", taken)[:3])
Stepper(lab, [ReviveRulerBoard])

# %% [markdown]
# Press **Play**, and look at the picture below the stage. It has a row for each order.
#
# - The blue bar is the time for which nobody else sees the order.
# - Behind the bar lies a **ruler of two seconds**.
# - The upright blue line moves. It says how far somebody has *read*, and it does not move as the clock does: it stands, jumps, and falls behind.
# - When the line has passed the ruler of an order, it is decided what becomes of that order. Not before: watch the words on the right.
#
# Who reads there, and what? What are the small squares and circles? And why two seconds? At the end of this lab you will have built the one who
# moves the line. With **Previous** and **Next** you can look at each of its steps again.
#
# Now from the beginning, with orders of your own.

# %%
count, seconds = draw.between("orders", 5, 9), draw.between("seconds", 14, 40)
acked = draw.between("acked", 2, count - 2)
lab = Lab(seed=seed)
worker = await open_counter(lab, orders=count)
say(f"There are **{count}** orders. Whoever takes some has **{seconds} s** for them.")

# %% [markdown]
# ## Round one: what is written down (15 minutes)
#
# The worker pops all the orders in one request. Then he acknowledges some of them, each in a request of its own. Every
# message that a broker stores is in one of its topics, also those that it writes for itself, so we can count them.

# %%
def stored():
    return sum(row[-1] for row in lab.topics(system=True).rows)


before = stored()
say(f"The worker will pop **{count}** orders and acknowledge **{acked}** of them.")

# %% tags=["prediction"]
predict("written", f"One pop of {count} orders, then {acked} acknowledgements. How many messages does the broker "
        "write because of that?", unit="messages", prediction=...)

# %%
popped = await worker.pop(invisible_ms=seconds * 1_000)
await worker.ack(*popped[:acked])
lab.run_for(ms=500)
Table("topics with messages", ("topic", "messages"),
      [(row[0], row[-1]) for row in lab.topics(system=True).rows if row[-1]])

# %%
reveal("written", stored() - before, why=f"one check point for the whole pop, and {acked} acknowledgements")

# %% [markdown]
# The pop cost **one** message, however many orders it took: a **check point**. It says what was handed out to whom, and
# until when. Each acknowledgement is a message, too. That is the price of this way: for each order that is done one more
# message goes through the store. (Lab 13 is about a broker that saves most of it.)
#
# The table says where they are now: in the topic `rmq_sys_wheel_timer`. Messages there wait for their time and go to where they belong
# when it has come. (The broker's timer is built like a wheel with a slot for each second, so people say that a message is "on the wheel".)
# So the check point has a time of its own, at which it leaves the wheel. One could set it to anything. Remember for your bet what it is
# for: somebody will read it, and the acknowledgements, and then know what is missing. (The scene at the beginning shows it to whoever knows by
# now what its squares are.)

# %%
say(f"The orders are invisible for **{seconds * 1_000:,} ms** from the pop on.")

# %% tags=["prediction"]
predict("ck-due", "How many ms behind the pop is the check point due?", unit="ms", prediction=...)

# %% [markdown]
# Look at the check point. Its body is a text in JSON, and the properties say where it will go (`REAL_TOPIC`), and when
# (`TIMER_DELIVER_MS`):

# %%
lab.queue("rmq_sys_wheel_timer").record(0, each_property=True)

# %% [markdown]
# The names in the body are short, since a busy broker writes thousands of these each second. Here they are in words:

# %%
point = notes_in(lab)[0].content
Table("a check point", ("in the body", "means", "says"), [
    ("c", "the group that popped", point.group),
    ("t, q", "topic and queue that the orders came from", f"{point.topic}, {point.queue_id}"),
    ("so", "start offset: the first order", point.start_offset),
    ("n, d", "how many, and how far each is from the first", f"{point.num}: {point.queue_offset_diff}"),
    ("pt", "pop time (here in ms since the world began)", point.pop_time - lab.world.epoch_ms),
    ("it", "invisible time in ms", point.invisible_time),
    ("bm", "bitmap: which orders are done; stays 0 here", point.bit_map),
    ("bn", "the broker that handed them out", point.broker_name),
])

# %%
times = [(note.kind, note.due_ms + lab.world.epoch_ms - point.pop_time) for note in notes_in(lab)]
Table("when they are due", ("kind", "ms behind the pop"), times)

# %%
reveal("ck-due", times[0][1], why="one second before the end of the invisible time, where its acknowledgements are due")

# %% [markdown]
# An acknowledgement is due at the **end** of the invisible time, no matter when the worker sent it. The check point is due
# **one second earlier** (`PopAckConstants.ackTimeInterval`, 1000). So whoever reads the queue in which both arrive finds the
# check point first, and its acknowledgements behind it. He never has to ask: "an acknowledgement, but of what?"
#
# Both go to the topic `rmq_sys_REVIVE_LOG_DefaultCluster`, the **revive topic**. It has 8 queues, and all notes about one pop
# go to the same one. But how does the worker's acknowledgement find it? The worker brings it along. With each order he got a
# **receipt handle**, a text of eight numbers and names, and gives it back with his acknowledgement:

# %%
names = ("start offset of the batch", "pop time", "invisible time, ms", "revive queue", "kind of topic",
         "broker", "queue", "offset of this order")
Table(popped[0].properties["POP_CK"], ("field", "says"),
      list(zip(names, popped[0].properties["POP_CK"].split(), strict=True)))

# %% [markdown]
# The broker looks nothing up. Everything that it needs for the acknowledgement's message stands in the handle. (It
# believes every handle, also one that you make up. The message is written, answered with success, and later fits no check point.)
#
# ### A small exercise: from a handle to the times
#
# You are given a receipt handle. Return three numbers: the revive queue, when the check point of the batch is due, and when
# an acknowledgement is. Both times are in the same unit as the pop time in the handle.

# %% [markdown] tags=["hints"]
# - `handle.split(" ")` gives eight texts. Which of them are times, and which is the queue?
# - The second is the pop time, the third the invisible time, the fourth the revive queue. All are texts: use `int`.
# - When does the invisible time end? Work that out first: one of the two times *is* the end, the other one follows from round one's bet.

# %% tags=["exercise"]
def dues(handle):
    """The revive queue of a handle, when its check point is due, and when an acknowledgement is."""
    ### BEGIN SOLUTION
    fields = handle.split(" ")
    end = int(fields[1]) + int(fields[2])
    return int(fields[3]), end - 1_000, end
    ### END SOLUTION

# %% tags=["check"]
check("12/dues", dues)

# %% [markdown]
# ## Round two: bit by bit (12 minutes)
#
# A check point has room for 32 bits, and one pop gives 32 orders at most: bit 0 for the first order, bit 1 for the second,
# and so on. When a bit is set the order is done. In a number, bit 0 counts 1, bit 1 counts 2, bit 2 counts 4, and so on.
#
# Now a worker who takes hot orders only. Some orders are cold, and stay where they are; so there are gaps.

# %%
lab = Lab(seed=seed)
worker = await open_counter(lab, orders=12, tags=("hot", "cold", "hot"))
hot = await worker.pop(invisible_ms=15_000, tags="hot")
places = sorted(draw.shuffled("places", [1, 2, 3, 4, 5, 6])[:3])
Table("what the worker got", ("order", "offset"),
      [(n, handle_of(order).queue_offset) for n, order in enumerate(hot)])

# %%
done = [hot[place] for place in places]
await worker.ack(*done)
offsets = [handle_of(order).queue_offset for order in done]
say(f"He acknowledges the orders with the offsets **{', '.join(map(str, offsets))}**.")

# %% tags=["prediction"]
predict("bitmap", f"Orders with the offsets {offsets} are done. Which number is the bitmap then?",
        unit="as a number", prediction=...)

# %% [markdown]
# Play until the check point comes into its revive queue and is read. The **reviver**, one for each of the 8 queues (the class
# `PopReviveService`), takes each acknowledgement and looks for the place of its offset.

# %%
lab.run_until_event("CheckPointSettled")
value, rows = 0, []
for record in lab.history.find(("ReviveCheckPointRead", "ReviveAckRead")):
    if record.kind == "ReviveAckRead":
        value |= 1 << int(record.bits)
    told = f"offsets {record.offsets}" if record.kind == "ReviveCheckPointRead" else f"bit {record.bits}"
    rows.append((record.revive_offset, record.kind, told, f"{value:08b}", value))
Table("what the reviver reads", ("place", "event", "says", "bits, 7 to 0", "as a number"), rows)

# %%
reveal("bitmap", value, why="a bit is a place in the batch, not an offset: the gaps do not count")

# %% [markdown]
# Places are counted from 0, and there are as many bits as there are orders in the batch, however far apart they lie. That
# is what `d` in the check point is for. What has no bit now comes back: a copy goes to the **retry topic** of the
# group, and whoever pops next finds it there.

# %%
Table("what comes back", ("offset in Orders", "goes to", "for the n-th time"),
      [(r.queue_offset, r.retry_topic, r.reconsume_times)
       for r in lab.history.find("MessageRevived")])

# %% [markdown]
# In which check point does an acknowledgement set its bit? In the one with the same group, topic, queue, start offset,
# pop time and broker; all of these stand in both. If nothing fits, the acknowledgement has no effect. So an
# acknowledgement that a worker sends twice changes nothing, and neither does one of another group.
#
# ### A small exercise: set the bits
#
# `start` is the start offset of a check point, `distances` its list `d`: order number i has the offset `start + distances[i]`. `done` are
# the offsets in the acknowledgements, in any order. One may come twice, and one may be of an order that the batch does
# not have; that one sets nothing. Return the bitmap.

# %% [markdown] tags=["hints"]
# - For each offset: at which place of `distances` stands `offset - start`? `list.index` finds a place, `in` tells whether there is one.
# - `1 << place` is the number with just this bit. To set it in `bits` use `bits |= 1 << place`; adding would go wrong the second time.
# - Go through the places of the batch, not through `done`: for each place, work out the offset of its order, and ask whether that was acknowledged.

# %% tags=["exercise"]
def bitmap(start, distances, done):
    """The bitmap of a check point when these offsets are done."""
    ### BEGIN SOLUTION
    bits = 0
    for place, distance in enumerate(distances):
        if start + distance in done:
            bits |= 1 << place
    return bits
    ### END SOLUTION

# %% tags=["check"]
check("12/bitmap", bitmap)

# %% [markdown]
# ## Round three: long enough? (17 minutes)
#
# Now the hard part. The reviver has read a check point and two acknowledgements, and the queue ends there. Is a third one on
# its way? If it brings the other orders back now, and the third arrives a moment later, an order that was *done* is done again.
# If it waits, a customer waits. Nobody tells the reviver "that was all".
#
# What the reviver has in its hands is this: notes that came out of the wheel in the order in which they were **due**. So if it has read
# a note that was due at noon, it has read everything that was due before noon. All the time it keeps one number, the newest due time of
# all that it has read: the **end time**. That is the upright line in the scene.
#
# The acknowledgements of an order are due when its invisible time ends. So they have been read when the line has passed that end? Nearly:
# the wheel turns in steps of a second, and something may be under way. So the line has to be **more than 2 s** behind the end: one
# second for the wheel, one for what is under way. That is the ruler.
#
# And if nothing more comes? Then the line would stand still for ever, and a forgotten order with it. So the reviver goes by the clock, too:
# when the line is more than 3 s behind the clock, it moves the line to the clock.
#
# In lab 11 you have seen what comes of it: a forgotten order is back 2 s to 5 s behind its time, and an acknowledgement that is a little late
# still counts. The worker is told "success" whether it counts or not: the broker writes his acknowledgement, and does not know what it
# will find.
#
# ### A small exercise: how far has it read?
#
# `due_ms` is the list of the due times of all that was read in this round, in the order of the queue; mostly they grow, but a note that
# was written late is due at once. `now_ms` is the clock. When somebody has stopped the timer, the wheel is behind the clock
# (`timer_behind` is `True`): then something may be due and not be there yet, and the clock proves nothing. Where is the line? When nothing was read
# it is 0.

# %% [markdown] tags=["hints"]
# - Where would the line be if there were no clock? The last of the list is not always the newest.
# - Then ask three things before the clock may move the line: was anything read at all? How far behind is the line? May the clock be trusted?
# - A line that is exactly 3000 ms behind stays where it is. Write one `if` with the three conditions, joined by `and`, that returns the clock; what is left returns the newest.

# %% tags=["exercise"]
def end_time(due_ms, now_ms, timer_behind):
    """Up to which due time everything has been read, as the reviver sees it."""
    ### BEGIN SOLUTION
    newest_ms = max(due_ms, default=0)
    if due_ms and now_ms - newest_ms > 3_000 and not timer_behind:
        return now_ms
    return newest_ms
    ### END SOLUTION

# %% tags=["check"]
check("12/end-time", end_time)

# %% [markdown]
# ### Several in one queue
#
# The worker takes some orders, one by one, and never says anything. To see
# them in one place our broker has a single revive queue.

# %%
gap_ms, pops = draw.between("gap", 900, 1_700, step=100), draw.between("pops", 5, 9)
lab = Lab(seed=seed)
worker = await open_counter(lab, orders=pops, revive_queue_num=1)
for _ in range(pops):
    await worker.pop(1, invisible_ms=16_000)
    lab.run_for(ms=gap_ms)
say(f"**{pops}** pops, **{gap_ms:,} ms** apart, so the invisible times end {gap_ms:,} ms apart as well.")

# %% tags=["prediction"]
predict("rounds", f"{pops} check points, one behind the other, {gap_ms:,} ms apart. In how many rounds does the reviver "
        "settle them all? (Rounds in which it settles none do not count.)", unit="rounds", prediction=...)

# %%
lab.run_for(seconds=26)
rounds = []
for record in lab.history.find(("ReviveScanBegun", "ReviveCheckPointRead", "ReviveScanEnded", "CheckPointSettled")):
    if record.kind == "ReviveScanBegun":
        rounds.append([round(record.ts_ms), 0, "", 0])
    elif record.kind == "ReviveScanEnded":
        rounds[-1][1:3] = record.check_points, record.reason
    elif record.kind == "CheckPointSettled":
        rounds[-1][3] += 1
Table("the rounds of the reviver", ("begins at ms", "check points read", "stops reading because", "settled"),
      [tuple(row) for row in rounds])

# %%
reveal("rounds", sum(row[3] > 0 for row in rounds),
       why="each round stops at the first check point that is not 2 s behind the end time")

# %% [markdown]
# Twice in a round the same rule is used. The reviver stops *reading* when the end time is more than 2 s behind the **first** check
# point. Then it goes through the check points from the front, and stops *settling* at the first one to which that does not
# apply (`mergeAndRevive`). The others are read again in the next round, from their place in the queue on. Only one number has to be kept
# for all of this, the offset up to which everything is settled. It is committed like that of any other consumer, by the group
# `CID_RMQ_SYS_REVIVE_GROUP`:

# %%
lab.revive_queues()

# %%
late = [(r.queue_offset, r.late_ms) for r in lab.history.find("MessageRevived")]
Table("how late each order came back", ("order", "ms behind its time"), late)

# %% [markdown]
# The same world with the rulers, in the round that settles the first check point. Take steps with **Next**: in each round the line begins anew at the first check
# point that is left, since everything behind the offset that is kept is read again. It stops as soon as it has passed the first ruler.

# %%
lab.history.back("ReviveCheckPointRead", revive_offset=0)
Stepper(lab, [ReviveRulerBoard])

# %% [markdown]
# ## Break it: the broker is killed (8 minutes)
#
# The worker pops and acknowledges as in round one. Six seconds later the broker is killed: no farewell, all its memory is gone.
# It comes back, and nobody tells it anything.

# %%
lab = Lab(seed=seed)
worker = await open_counter(lab, orders=count)
lab.run_for(seconds=4)
popped = await worker.pop(invisible_ms=40_000)
await worker.ack(*popped[:acked])
lab.run_for(seconds=6)
lab.crash("broker-a")
lab.run_for(seconds=5)
lab.restart("broker-a")
say(f"**{count}** orders were handed out, **{acked}** acknowledged.")

# %% tags=["prediction"]
predict("came-back", "How many orders come back when their invisible time is over?", unit="orders", prediction=...)

# %%
lab.run_for(seconds=45)
reveal("came-back", lab.queue(RETRY_TOPIC).max_offset,
       why="check points and acknowledgements are messages, and survived in the commit log")

# %% [markdown]
# That is the reward for all the writing. Nothing had to be saved when the broker died, nothing had to be restored when it came back: it is all in the
# log, the wheel goes on from its own files, and the reviver goes on from its offset. (In the five seconds after a pop there is a gap: the
# *group's* offset is written every 5 s only. Lab 13 kills the broker earlier.)
#
# The world of round one, to play with, 2 s before the check point comes. On the boards you see the bits of each check point, and the
# reviver with its rulers. Take steps with **Next**, and crash the broker at the worst moment that you can think of.

# %%
lab = Lab(seed=seed)
worker = await open_counter(lab, orders=count)
popped = await worker.pop(invisible_ms=12_000)
await worker.ack(*popped[:acked])
lab.run_for(ms=9_000)
Stepper(lab, [CheckPointsBoard, ReviveRulerBoard])

# %% [markdown]
# ## Build it: the reviver (25 minutes)
#
# You have all parts now. Write the one who decides. The judge puts your function into a real broker: each time that the reviver of a revive
# queue finds nothing more to read (and then every 100 ms) it is asked what to do.
#
# `read` is the list of all records that were read and not dealt with yet, in the order of the queue. A record has:
#
# - `kind`: `"ck"` for a check point, `"ack"` for acknowledgements;
# - `key`: a text that names the batch; it is the same in a check point and its acknowledgements, and in nothing else;
# - `due_ms`: when it was due;
# - of a check point: `revive_ms`, the end of its invisible time; `start` and `distances`, as in round two;
# - of acknowledgements: `offsets`, those of the orders that are done. (It can be several, when a worker acknowledges them together.)
#
# `now_ms` is the clock. `timer_behind` says whether the timer wheel is behind the clock: then something may be due and not be there yet, and the
# clock proves nothing. Return two things: the list of the orders that come back, each as `(key, offset)`, and how many records, counted
# from the front of `read`, are dealt with and need not be shown again.
#
# In 50 worlds two groups pop, with filters and without. Workers acknowledge early, together, up to 1.3 s late, or never. In some worlds somebody stops
# the timer for four seconds. Judged is this:
#
# 1. no order comes back that was acknowledged by 1.5 s behind its time;
# 2. every order that nobody acknowledged is back 6 s behind its time (12 s where the timer was stopped), and only once.

# %% [markdown] tags=["hints"]
# - Three steps, one after the other: how far has it been read (`end_time`, from round three); what is done; what is decided.
# - For "what is done" keep a set of offsets for each batch. Which field tells you to which batch an acknowledgement belongs? One whose check point is not in `read` belongs to none.
# - "What is decided" goes from the front and ends at the first check point whose ruler the line has not passed. What lies before it is dealt with,
#   acknowledgements too. The offsets of a check point follow from `start` and `distances`; those that are not in its set come back.


# %% tags=["exercise"]
def settle(read, now_ms, timer_behind):
    """Which orders come back, as (key, offset), and how many records from the front are dealt with."""
    ### BEGIN SOLUTION
    newest_ms = max((record.due_ms for record in read), default=0)
    if now_ms - newest_ms > 3_000 and not timer_behind:
        newest_ms = now_ms
    done = {record.key: set() for record in read if record.kind == "ck"}
    for record in read:
        if record.kind == "ack" and record.key in done:
            done[record.key].update(record.offsets)
    back, dealt_with = [], 0
    for place, record in enumerate(read, 1):
        if record.kind == "ck":
            if newest_ms - record.revive_ms <= 2_000:
                break
            offsets = [record.start + distance for distance in record.distances]
            back += [(record.key, offset) for offset in offsets if offset not in done[record.key]]
        dealt_with = place
    return back, dealt_with
    ### END SOLUTION


# %% tags=["check"]
check("12/settle", settle)

# %% [markdown]
# To look into a world in which yours fails, keep the verdict (`verdict = check(...)`) and call `verdict.open()`; then put the lab into
# `Stepper(lab, [CheckPointsBoard, ReviveRulerBoard])`.
#
# Your reviver knows nothing but messages and times, and so does the real one. If the timer is behind and does not say so, or a clock is wrong,
# it brings back what was done. That is why Pop promises *at least once*, like everything in RocketMQ (lab 09).
#
# ## What the article says, and today's RocketMQ (5 minutes)
#
# One of the articles that mqlab began with is about Pop; [docs/seeds.md](../docs/seeds.md) goes through it sentence by sentence.
#
# - It says that the reviver runs every second. It waits a second between rounds, and 1, 2, then 3 s more when a round found no check point.
# - It says that a new invisible time is an ack for the old check point and then a new check point, and in another place the other way round. The new check
#   point is written first; only if that went well the old one gets its acknowledgement. So no order is ever without a check point.
# - It compares the pop time with the time at which a message was stored, and passes over what is younger. That test is gone.
# - The key of a check point has the name of the broker in it today.
# - What could not be brought back (a full disk, say) gets a new check point, due 10 s later, then 20 s, up to 2 h. If not even that one can be written
#   the order is lost for the group: nobody looks at the answer (`rePutCK`).
#
# Where to read on: `broker/.../processor/PopReviveService.java` (`consumeReviveMessage`, `mergeAndRevive`), `AckMessageProcessor.java`,
# `ChangeInvisibleTimeProcessor.java`, `store/.../pop/PopCheckPoint.java`.
#
# Three questions to take home:
#
# 1. A group consumes 10,000 messages a second, pops 32 at a time and acknowledges each by itself. How many messages a second does the broker write for
#    it? And with `BATCH_ACK_MESSAGE`?
# 2. Why is it one second between check point and acknowledgement, and not one millisecond? What would you have to change elsewhere to make it shorter?
# 3. A worker acknowledges after 3 s and is told "success". How could the broker tell him the truth, and what would it cost?
#
# ## What you expected, and what was seen

# %%
reveal()
