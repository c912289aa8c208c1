# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   mqlab:
#     title: Flow control
#     question: A listener is slower than the messages come. Where do they pile up, who notices, and what does it cost?
#     objectives:
#       - name the three limits of a push consumer, and say how far beyond each one it can get
#       - tell what a broker sees of a consumer that is full, and what a producer sees of a broker that is
#       - set the limits of a consumer for a given memory and a given listener
#     minutes: 98
#     prerequisites: [00 Tour]
#     wrong_predictions:
#       - "most-held: the limit; or 32, one pull"
#       - "log-lines: one for each refused pull; or one in all"
#       - "broker-sees: a pull every 50 ms, or a notice; the refused pulls are never sent"
#       - "which-bytes: those that travel, a few KiB in all, since the limit is about a network client"
#       - "most-mib: 1; or one pull on top of the limit (whole MiB are compared)"
#       - "widest: the limit; or one pull on top of it"
#       - "twice: 1, the message that was stuck"
#       - "gives-up-after: 200; the retries come on top, to the same broker"
#       - "for-nobody: 0, as with the protection"
# ---

# %% tags=["parameters"]
student_id = ""

# %% [markdown]
# ## The scene (3 minutes)
#
# A shop gets orders faster than it can pack them. If nobody says stop, orders pile up on the packing table until it
# breaks. **Flow control** is the art of saying stop: who says it, to whom, and at which height of the pile.
#
# In RocketMQ there are two places where a pile can grow. A **consumer** fetches messages from the broker and hands
# them to a function of ours, the **listener**. A slow listener makes a pile in the consumer's memory. A **broker**
# stores messages that producers send. A slow disk makes a pile of requests in the broker's memory. Each place has
# its own way of saying stop, and they could not be more different: one is silent, the other one is loud.
#
# In the first world small orders wait in the only queue of the topic `Orders`.

# %%
from mqlab import Lab, Message, scenarios
from mqlab.check import NotSolvedYet, check, draws_for, predict, reveal, say, seed_for
from mqlab.scenarios.flow_control import put_backlog, slow_consumer, taking
from mqlab.views import FlowGauges, FlowMeter, SendWaits, Table
from mqlab_widgets import Stepper
from mqlab_widgets.boards.flow_control import FlowControlBoard
from mqlab_widgets.boards.offsets import OffsetsBoard

seed = seed_for(student_id, "06")
draw = draws_for(seed)

# %%
lab = Lab(seed=seed)
await put_backlog(lab, messages=150, size=10)
lab.queue("Orders").max_offset

# %% [markdown]
# ## Round one: how many? (19 minutes)
#
# Our consumer has one thread, and its listener takes 100 ms for an order. The consumer asks the broker for messages
# (a **pull**), up to 32 at a time, and keeps them in memory until the listener has had them, in a `ProcessQueue`. We
# set its limit, `pullThresholdForQueue`, to a small number (the default is 1000). The meter reads what is in there, and
# changes nothing.

# %%
limit = draw.between("limit", 12, 28)
consumer = slow_consumer(lab, taking(ms=100), pull_threshold_for_queue=limit)
meter = FlowMeter(lab, consumer, "Orders")
await consumer.start()
say(f"The limit is **{limit} messages**.")

# %% tags=["prediction"]
predict("most-held", f"The limit is {limit} messages. What is the most that the consumer ever holds?",
        unit="messages", prediction=...)

# %% [markdown]
# We let the world run until the first messages have come. The first of the three gauges is the count. (The size is for
# round two, the span for round three.)

# %%
lab.run_until_event("MessagesCached")
FlowGauges.of(consumer)

# %% [markdown]
# The next two things that happen to the consumer's pulls:

# %%
lab.run_until_event("FlowControlled")

# %%
lab.run_until_event("FlowControlled")

# %% [markdown]
# On to the moment at which a pull goes out again:

# %%
lab.run_until_event("PullRequested", topic="Orders")
FlowGauges.of(consumer)

# %% [markdown]
# A moment later:

# %%
lab.run_until_event("MessagesCached")
FlowGauges.of(consumer)

# %%
lab.run_for(seconds=6)
reveal("most-held", int(meter.highest("count")),
       why=f"with {limit} messages in memory a pull still goes out, and 32 come with it")

# %%
meter.chart("count", f"How many messages are held, with a limit of {limit}")

# %% [markdown]
# The limit does not cut a pull of 32 into pieces: nobody can know how many messages an answer will bring. So the limit is
# a question that is asked **before** a pull: do I hold *more than* so many messages already? Then I do not pull now. The
# three gauges are the three questions, in this order. The first one that says yes holds the pull back; here it is the
# count. 50 ms later the consumer asks itself again (`PULL_TIME_DELAY_MILLS_WHEN_CACHE_FLOW_CONTROL` in
# `DefaultMQPushConsumerImpl`), and again, until the answer is no. That is when exactly the limit is held, for the limit is
# not more than the limit. So the pull goes out, for 32 messages.
#
# **The limit is where pulling begins, not where it ends.** What a queue may hold is the limit plus one batch
# (`pullBatchSize`, 32). Measured on a real RocketMQ 5.3.3 with a limit of 20: 32, down to 20, up to 52, down to 20, up to 52. With the
# default of 1000 nobody notices the 32. With 16 queues, each of which has a limit of its own, and large messages, you
# do. You will do this sum yourself below.
#
# Why not stop where the work is done? The pool of listener threads (20 by default) has a queue without an end, and takes
# every message. (If it ever refused one, `ConsumeMessageConcurrentlyService` would offer it again after 5 s.) So the
# only door that can be shut is the one through which messages come in: the pull.
#
# Each tick at the bottom of the chart is a pull that was refused. Surely the consumer's log is full of them? Here is a
# consumer whose listener hangs for an hour, with more queues than one. All of them are full, and each asks itself every
# 50 ms.

# %%
stuck_queues = draw.between("stuck queues", 2, 4)
stuck_s = draw.between("stuck for", 100, 240)
stuck_lab = Lab(seed=seed)
await put_backlog(stuck_lab, messages=60 * stuck_queues, queues=stuck_queues)
stuck = slow_consumer(stuck_lab, taking(ms=3_600_000), pull_threshold_for_queue=limit)
await stuck.start()
stuck_lab.run_for(seconds=stuck_s)
refusals = stuck.impl.flow_control_times.total()
say(f"**{stuck_queues} queues** were full for nearly **{stuck_s} s**: **{refusals:,} pulls** were refused.")

# %% tags=["prediction"]
predict("log-lines", f"How many lines did {refusals:,} refusals write into the consumer's log?",
        unit="lines", prediction=...)

# %%
reveal("log-lines", -(-refusals // 1_000),
       why="the first refusal and then every 1000th: queueFlowControlTimes++ % 1000 == 0")

# %% [markdown]
# One in a thousand, and all queues of a consumer are counted together. With one full queue the next line comes after 50 s. Remember that when you look for the reason of a
# growing lag: "the cached message count exceeds the threshold ... so do flow control" is a line that you may see once a
# minute at most, and that means *all the time*.
#
# ### What the broker sees

# %% tags=["prediction"]
predict("broker-sees",
        "What did the broker get from this consumer between the second and the third pull that went out?",
        choices=["a pull every 50 ms, which it answered without messages",
                 "a notice that the consumer is full",
                 "nothing"], prediction=...)

# %% [markdown]
# Back to the first consumer. Between the two pulls lie more than three seconds. Here is everything that the broker read in them, from anybody:

# %%
second, third = meter.pulls[1], meter.pulls[2]
between = list(lab.history.between(second.ts_ms + 1, third.ts_ms - 1))
heard = [event for event in between if event.kind == "RequestReceived" and event.node == "broker-a"]
refused = [event for event in between if event.kind == "FlowControlled"]
f"{len(refused)} pulls refused; {len(heard)} requests came to the broker"

# %%
pulls_heard = [event for event in heard if event.request_name == "PULL_MESSAGE"]
reveal("broker-sees", "a" if pulls_heard else "b" if heard else "c", why="a refused pull is never sent")

# %%
lab.space_time(third.ts_ms - 220, third.ts_ms + 2, nodes=["broker-a", "consumer-1"],
               requests=["PULL_MESSAGE"], kinds=["FlowControlled", "MessagesCached"],
               title="Refused, refused, refused, pulled")

# %% [markdown]
# There is no "stop" on the wire. The consumer just does not ask. That is the beauty of a *pull*: who asks for work
# can never get more than was asked for, and the broker need not know how fast anybody is. A broker that *pushes*
# would have to find that out for each consumer, and would be wrong at the worst moment.
#
# It has a price: nobody is told. The broker does not hold a pull of this queue (it was not asked), the producer goes
# on, and each `send` returns `SEND_OK`. All that can be seen from outside is the distance between the end of the queue
# and what the group has consumed. That distance is called the **lag**, and it is what you should watch.
#
# Here is this world to play with; the next round has one of its own. Behind the three dots, choose
# `FlowControlled` or `PullRequested`, and press **Previous** and **Next**.

# %%
Stepper(lab, [FlowControlBoard])

# %% [markdown]
# ### Your turn: when does it pull again?
#
# A consumer with one thread has just been refused for the first time: it holds `held` messages, and its listener has just
# begun with the first of them, and takes `ms_each` for each. The limit is `limit`, and the consumer asks itself every 50 ms,
# for the next time in 50 ms. After how many ms does the next pull go out?

# %%
say(f"Your consumer had a limit of {limit} and 100 ms for each: when it held {limit + 3}, it was `next_pull_ms({limit + 3}, {limit}, "
    "100)`, which is 300.")

# %% [markdown] tags=["hints"]
# - How many messages must be done before the answer to "more than the limit?" is no?
# - So many times `ms_each` it takes, and then the next look must come: round up to whole 50 ms.
# - `-(-a // b)` is a division rounded up, in whole numbers. It says how many looks it takes; the question was how many ms.

# %% tags=["exercise"]
def next_pull_ms(held, limit, ms_each):
    """After how many ms the next pull goes out."""
    ### BEGIN SOLUTION
    too_many_ms = (held - limit) * ms_each
    return -(-too_many_ms // 50) * 50
    ### END SOLUTION


# %% tags=["check"]
check("06/next-pull", next_pull_ms)

# %% [markdown]
# ## Round two: how large? (13 minutes)
#
# Messages are not all alike. Now the orders are large, and the second limit is set to its smallest value:
# `pullThresholdSizeForQueue` is 1 MiB (1,048,576 bytes; the default is 100 MiB). The count may go up to 1000.
#
# A producer **compresses** bodies of 4 KiB and more before they travel, and the consumer unpacks them. Our orders
# are dull, so they become very small.

# %%
body_kib = draw.between("body", 72, 140)
lab = Lab(seed=seed)
await put_backlog(lab, messages=150, size=body_kib * 1024)
consumer = slow_consumer(lab, taking(ms=50), pull_threshold_size_for_queue=1)
meter = FlowMeter(lab, consumer, "Orders")
say(f"Each order has **{body_kib} KiB**.")

# %% tags=["prediction"]
predict("which-bytes", f"The first pull brings 32 orders of {body_kib} KiB, compressed. How many KiB does the limit count for them?",
        unit="KiB", prediction=...)

# %%
await consumer.start()
came = lab.run_until_event("MessagesCached")
answer = lab.history.last("PullAnswered")
f"{answer.messages} messages: {answer.size:,} bytes in the answer, {came.cached_bytes:,} in memory"

# %%
reveal("which-bytes", came.cached_bytes // 1024,
       why="ProcessQueue.putMessage adds up the bodies, and they are unpacked by then (MessageDecoder)")

# %%
FlowGauges.of(consumer)

# %% [markdown]
# Hundreds of times more than has travelled. A limit in bytes does not save you from one large pull either: a pull asks
# for *messages*. (The broker ends an answer at 256 KiB by itself, but it counts what travels.) Large bodies want a small
# `pullBatchSize`.

# %% tags=["prediction"]
predict("most-mib",
        f"32 orders of {body_kib} KiB come with a pull: {32 * body_kib / 1024:.3f} MiB. "
        "What is the most that the consumer ever holds?", unit="MiB", prediction=...)

# %%
lab.run_for(seconds=6)
meter.chart("size", "How many bytes are held, with a limit of 1 MiB")

# %%
reveal("most-mib", round(meter.highest("size"), 3),
       why=f"whole MiB are compared: anything below 2 counts as 1; then {32 * body_kib / 1024:.3f} come on top")

# %% [markdown]
# Look where the pulls went out: just below 2 MiB, nearly twice the limit. `cachedMessageSizeInMiB` is a whole number,
# the bytes divided by 1,048,576 with the rest thrown away, and the question is again "more than?". So a limit of
# n MiB lets pulls out until n + 1 MiB are reached. With n = 100 nobody cares.
#
# Which of the two limits comes first, with the defaults of 1000 messages and 100 MiB? 101 MiB spread over 1000
# messages are 103 KiB each. Below that, the count stops you, and that is nearly always so.
#
# ### Your turn: how much memory?
#
# A consumer owns some queues, and each has the same limit of messages (`pullThresholdForQueue`) and the same batch
# (`pullBatchSize`). All bodies have the same size. The backlog is long and the listeners are slow. How many bytes of
# bodies may be in memory at once, at the worst?

# %% [markdown] tags=["hints"]
# - What is the most that *one* queue holds? You saw it in round one.
# - The limit counts for each queue by itself, so all queues may be full at the same time.
# - How many messages is that for one queue at the worst, a pull and all? Then for all queues, and then in bytes.

# %% tags=["exercise"]
def most_bytes(queues, limit, batch, body):
    """The most bytes of bodies that a consumer can hold."""
    ### BEGIN SOLUTION
    most_of_one = limit + batch
    return queues * most_of_one * body
    ### END SOLUTION


# %% tags=["check"]
check("06/most-bytes", most_bytes)

# %% [markdown]
# ## Round three: how far apart? (13 minutes)
#
# The third limit is the strangest. Two threads now, small orders again, and the listener is **stuck with the very first
# one**: it takes 6 s for it, and 20 ms for each other. `consumeConcurrentlyMaxSpan` (default 2000) is set very low.
# The **span** is the distance from the first offset that is held to the last one.

# %%
waiting = draw.between("waiting", 110, 190)
span = draw.between("span", 5, 20)
lab = Lab(seed=seed)
await put_backlog(lab, messages=waiting)
done = []
listener = taking(ms=20, first_ms=6_000, seen=done)
consumer = slow_consumer(lab, listener, threads=2, consume_concurrently_max_span=span)
meter = FlowMeter(lab, consumer, "Orders")
say(f"**{waiting} orders** wait in the queue, and the limit of the span is **{span}**.")

# %% tags=["prediction"]
predict("widest", f"{waiting} messages. The first is stuck, and the limit is {span}. How wide does the span become?",
        unit="offsets", prediction=...)

# %%
await consumer.start()
lab.run_until_event("MessagesCached")
FlowGauges.of(consumer)

# %% [markdown]
# The next pull is refused, while the second thread works on. What will open the way again? Message 0 will not move for
# seconds. We wait for the next pull.

# %%
lab.run_until_event("PullRequested", topic="Orders")
FlowGauges.of(consumer)

# %%
lab.run_until_event("MessagesCached")
FlowGauges.of(consumer)

# %%
lab.run_until(lambda: len(done) == waiting - 1)
meter.chart("span", f"The span, with message 0 stuck and a limit of {span}")

# %%
reveal("widest", int(meter.highest("span")),
       why="the limit bounds what is in the tree; alone in it, message 0 is no span")

# %% [markdown]
# Everything that the queue had. The first pull brought 0 to 31, a span of 31, which is more than the limit. Then the span
# *fell to 0*, and jumped to 63. Consumed messages leave the tree (`ProcessQueue.msgTreeMap`, sorted by offset). When the
# other 31 were gone, only message 0 was left in it: first and last are the same, the distance is 0, and 0 is not more than
# the limit. Measured on a real RocketMQ 5.3.3, with 150 messages and a limit of 10: 31, 63, 95, 127, then 149, with the
# tree down to one message before each new pull. So the limit does *not* mean "never be further ahead of the one that is
# stuck". It slows the consumer down, that is all: it empties the tree before it fetches more.
#
# Why have it at all? Here is what was refused, and what the pulls told the broker on the way:

# %%
rows = [(f"{pull.ts_ms / 1000:.3f}", pull.queue_offset, pull.commit_offset) for pull in meter.pulls]
Table("the pulls that went out", ("at s", "asks from offset", "tells: consumed up to"), rows)

# %%
f"{meter.refused['span']} pulls refused; {len(done)} of {waiting} messages are done"

# %% [markdown]
# The right column is the point. A group's progress is *one* number for each queue: all before it is done. While
# message 0 is not, that number stays 0, although all messages behind it are done (`ProcessQueue.removeMessage`
# returns the smallest offset that is left). The span is the amount of work that exists nowhere but in this process.
#
# ### Your turn: three questions
#
# Write down what the consumer asks itself before a pull. `held_back_by` gets what the gauges show (`count`, `size` in
# bytes, `span`) and the limits (`most`, `most_mib`, `widest`). It returns the name of the first gauge that holds the pull
# back, `"count"`, `"size"` or `"span"`, or `None` if the pull may go out.

# %% [markdown] tags=["hints"]
# - Three questions, in the order of the gauges. Is it "more than", or "at least"?
# - The size is compared in whole MiB: `size // 1_048_576`.
# - The first gauge that says no is the answer, and the others are not asked any more. And if none says no?

# %% tags=["exercise"]
def held_back_by(count, size, span, most, most_mib, widest):
    """Which gauge holds the next pull back, or None."""
    ### BEGIN SOLUTION
    if count > most:
        return "count"
    if size // 1_048_576 > most_mib:
        return "size"
    return "span" if span > widest else None
    ### END SOLUTION


# %% tags=["check"]
check("06/held-back-by", held_back_by)

# %% [markdown]
# ## Break it: the consumer is killed (9 minutes)
#
# So let us take the process away, now, before message 0 is done. It starts again at once.

# %% tags=["prediction"]
predict("twice",
        f"{waiting - 1} messages are done when the consumer is killed. How many of them come a second time?",
        unit="messages", prediction=...)

# %%
before = set(done)
lab.crash("consumer-1")
lab.restart("consumer-1")
lab.run_for(seconds=15)
again = sorted(set(done[waiting - 1 :]) & before)

# %%
reveal("twice", len(again),
       why="the broker knows one offset, and it is 0: everything begins there again")

# %% [markdown]
# All of them. One message that is stuck makes the work of a whole process worthless when it dies, and you have seen
# that no limit bounds how much that is. A listener must be able to see a message twice (lab 09 builds one), and must come
# to an end: with a time-out of its own on whatever it calls. (RocketMQ has one, too: after `consumeTimeout`, 15 minutes,
# the stuck message is given back to the broker, so that the others can be committed.)
#
# The last moment before the kill. The table has what the consumer knows (*in memory*) beside what the broker knows
# (*committed*): all but one are done, and the one number that says so is 0. Press **play** and see it all come again.

# %%
lab.history.back("NodeCrashed")
lab.history.move_to(lab.history.cursor - 1)
Stepper(lab, [OffsetsBoard])

# %% [markdown]
# ### Your turn: the one number
#
# `progress` gets the offsets of all messages that were pulled so far (they begin at 0 and have no holes) and the set of
# those that are done. Which offset may be told to the broker? All messages *before* it are done, and the message that has
# it is not (or was not pulled yet).

# %% [markdown] tags=["hints"]
# - Look for those that were pulled and are not done. Which of them counts?
# - If all of them are done, it is the offset of the message that comes next.
# - So there are two cases. Collect what is left; if there is something, the smallest of it counts; else think of which offset the next message has.

# %% tags=["exercise"]
def progress(pulled, done):
    """The offset that a consumer tells the broker."""
    ### BEGIN SOLUTION
    left = [offset for offset in pulled if offset not in done]
    return min(left) if left else len(pulled)
    ### END SOLUTION


# %% tags=["check"]
check("06/progress", progress)

# %% [markdown]
# ## Round four: the broker is too slow (15 minutes)
#
# Now the other side. The broker's disk is slow: each of its four send threads needs 20 ms to store a message, so 200
# go through in a second. (`sendMessageThreadPoolNums` is the number of cores, but at most 4.) But many more customers come
# with orders, for six seconds. Each calls `send` and waits.
#
# What cannot be served waits in a queue before the threads. A consumer may simply not ask. A broker cannot keep
# customers from coming. What is it to do with those that are too many?

# %%
every_us = draw.between("customers", 2_000, 2_800, step=50)
retries = draw.between("retries", 1, 4)
say(f"A customer comes every **{every_us / 1_000} ms**: {1_000_000 / every_us:.0f} in a second. "
    f"When `send` does not succeed, it tries again, up to **{retries + 1} times** in all, with another broker if there is "
    "one. Here there is none.")

# %% tags=["prediction"]
predict("gives-up-after", f"After how long does send tell the unluckiest customer that {retries + 1} attempts have failed?",
        unit="ms", prediction=...)

# %%
lab = scenarios.get("busy-broker").play(seed, parameters={"every_us": every_us, "retries": retries})
waits = SendWaits.of(lab.history, "broker-a")
waits.chart()

# %%
failed = list(lab.history.find("SendFailed"))
reveal("gives-up-after", round(max(event.cost_us for event in failed) / 1_000),
       why=f"{retries + 1} attempts of 200 to 210 ms each: SYSTEM_BUSY is one of the retryResponseCodes")

# %% [markdown]
# The first customer comes at 2 s. Less than half a second later the queue is 200 ms long, and that is where it stays. A
# thread of the broker, `BrokerFastFailure`, looks every 10 ms at the head of the queue. What has waited for **200 ms**
# (`waitTimeMillsInSendQueue`) is taken out and answered at once, without being stored. (The blue ones waited for up to
# 209 ms, too, and were then being stored for 20.) This is the loud way of saying stop:

# %%
lab.history.last("SendAttemptFailed").reason

# %% [markdown]
# `CODE: 2` is `SYSTEM_BUSY`. The customer does not hear of it at first, since `send` is meant to be reliable, and tries
# again (`retryTimesWhenSendFailed`, by default twice). In the end it says:

# %%
failed[0].reason

# %% [markdown]
# Is that good? The broker has been asked for more than it can do, and the answer to "no" was to ask again. Count the
# requests:

# %%
orders = 1 + 6_000_000 // every_us
attempts = sum(1 for event in lab.history.find("SendAttempted"))
f"{orders} orders, {attempts} requests: {attempts / orders:.1f} for each order"

# %% [markdown]
# **A retry is right when one broker of many is in trouble, and wrong when all of them are.** That is why the broker
# must be able to say no cheaply: taking a request from the head of a queue costs nothing, storing it costs 20 ms.
#
# But is it not rude to refuse people after 200 ms, if they are ready to wait for 3 s? We switch the protection off
# (`brokerFastFailureEnable = false`), and let the customers come for ten seconds, with the usual three
# attempts.

# %% tags=["prediction"]
predict("for-nobody",
        f"Without protection: {10_000_000 // every_us} orders come. How many does the broker store whose customer was "
        "told that they failed?", unit="orders", prediction=...)

# %%
def ten_seconds(fast_failure):
    parameters = {"seconds": 10, "fast_failure": fast_failure, "every_us": every_us}
    return scenarios.get("busy-broker").play(seed, seconds=60, parameters=parameters)

protected, unprotected = ten_seconds(True), ten_seconds(False)
SendWaits.of(unprotected.history, "broker-a", limit_ms=None).chart("Without protection: how long messages wait")

# %%
def told_and_stored(world):
    ok = {event.msg_id for event in world.history.find("SendSucceeded")}
    told = {event.msg_id for event in world.history.find("SendFailed")}
    stored = [event.unique_key for event in world.history.find("MessageStored", topic="Orders")]
    last = world.history.last("MessageStored", topic="Orders").ts_ms
    busy_ms = last - list(world.history.find("SendAttempted"))[1].ts_ms
    return len(ok), len(told), len(told & set(stored)), len(stored) - len(set(stored)), round(busy_ms / 1000)

names = ("", "told: stored", "told: failed", "failed, but stored", "extra copies", "broker busy, s")
with_it, without = told_and_stored(protected), told_and_stored(unprotected)
Table(f"{1 + 10_000_000 // every_us} orders in ten seconds", names, [("with fast failure", *with_it), ("without", *without)])

# %%
reveal("for-nobody", without[2],
       why="after 3 s the customer has gone, but the request waits on and is stored")

# %% [markdown]
# All of them, and most of them more than once. Read it along the time:
#
# - Without protection the queue grows with each second. For some seconds that looks better: everybody is served, a little
#   late.
# - Then the customer at the head of the queue has waited for longer than the 3 s that `send` allows, and goes home with
#   an error, **while the request stays in the queue**. From here on the broker works for people who have left: not one
#   order more is told "stored".
# - It gets worse. A client that gets no answer takes the broker for hung and closes the connection
#   (`clientCloseSocketIfTimeout`). With it *all* requests that wait on it fail, many hundreds, in the same millisecond.
#   Each is sent again, up to twice. The old ones are still in the broker's queue, which does not ask whether anybody
#   listens. The queue has tripled.
# - Ten seconds of customers keep the broker busy for most of a minute, and those that were told "failed" find their order stored
#   two or three times. If they try again by hand, there is one more.
#
# With protection as many orders fail as are too many, after 0.6 s (three attempts), and none of them is stored: "failed" means failed.
# Less than a second after the last customer the broker is idle. Work that would come too late should not be begun: that
# is all that fast failure is.
#
# ### Your turn: the head of the queue
#
# Write what `BrokerFastFailure` does at each look. `queue` is a list of the times (ms) at which the requests came that wait,
# the oldest one first. Take out those that have waited for 200 ms or more, and return how many they were. The others stay,
# in their order.

# %%
say(f"Your unluckiest customer was taken out of this queue {retries + 1} times.")

# %% [markdown] tags=["hints"]
# - The oldest request stands in front. What do you know of all others if this one has not waited for long enough?
# - A loop: as long as there is a first one, and it is old enough, take it out (`queue.pop(0)`) and count.
# - The loop has two conditions, and the order counts: whether there is a first one has to be asked before it is looked at. Exactly 200 ms are old enough.

# %% tags=["exercise"]
def refuse_old(queue, now_ms):
    """Take out of the queue what has waited for too long, and say how many requests it was."""
    ### BEGIN SOLUTION
    refused = 0
    while queue and now_ms - queue[0] >= 200:
        queue.pop(0)
        refused += 1
    return refused
    ### END SOLUTION


# %% tags=["check"]
check("06/refuse-old", refuse_old)

# %% [markdown]
# There are more walls behind this one: `[OVERLOAD]` when 10,000 requests wait (`sendThreadPoolQueueCapacity`),
# `[PCBUSY_CLEAN_QUEUE]` when a single write hangs for more than a second (`osPageCacheBusyTimeOutMills`). All of them
# answer code 2. A *pull* that gets it comes again after 1 s; only code 215, `FLOW_CONTROL`, is met with 20 ms.
#
# ## Build it: limits for a given memory (23 minutes)
#
# A consumer runs in a container with little memory, beside the application. You know:
#
# | of `case` | what it is |
# |---|---|
# | `memory` | bytes that all bodies of all its queues together may take, at any time |
# | `queues` | how many queues it owns |
# | `body`, `wire` | bytes of a body, unpacked and as it travels |
# | `threads` | how many listeners run at the same time |
# | `listener_ms` | how long a listener takes for one message |
# | `round_trip_ms` | how long a pull takes |
#
# Write the rule that sets `pull_threshold_for_queue` and `pull_batch_size` (1 to 32), as a dictionary:
# `{"pull_threshold_for_queue": 100, "pull_batch_size": 8}`. The memory must never be exceeded. And the threads shall not
# wait: at most 5 % of their time may pass without a message while there is a backlog. The two want opposite things, so
# think about three questions first:
#
# 1. What is the most that one queue can hold?
# 2. A refused consumer looks again after up to 50 ms, and then the answer takes a round trip. How many messages do all
#    threads use up meanwhile?
# 3. A message counts until its listener has ended. How many does the gauge show when the threads are busy, and nobody
#    waits?
#
# The memory is enough in each case, but often not for more than a handful of messages beyond what is needed. The check
# plays fifty consumers, each in a world of its own with a backlog, and reads the memory whenever messages come.

# %% [markdown] tags=["hints"]
# - One queue holds at most its threshold and one batch. So `memory // (body * queues)` messages are the room that threshold and batch have to share.
# - The threads use up `threads / listener_ms` messages in a millisecond. The threshold must last for `50 + round_trip_ms`, and the messages in the hands of the threads (`threads`) count, too. This is for all queues together; divide, and round up.
# - First the smallest threshold that is enough. What is left of the room may be the batch, but no batch is larger than 32; and what the batch leaves over the threshold may have.

# %% tags=["exercise"]
from math import ceil


def limits(case):
    """The settings of a consumer, as a dictionary."""
    ### BEGIN SOLUTION
    room = case.memory // (case.body * case.queues)
    until_the_next = case.threads * (50 + case.round_trip_ms) / case.listener_ms
    threshold = ceil((case.threads + until_the_next) / case.queues)
    batch = min(32, room - threshold)
    return {"pull_threshold_for_queue": room - batch, "pull_batch_size": batch}
    ### END SOLUTION


# %% tags=["check"]
check("06/limits", limits)

# %% [markdown] tags=["teacher"]
# What students get wrong, roughly in this order: the threshold is taken for the maximum (32 come on top); the limit is
# set for one queue and there are four; the batch stays at 32, so that no room is left for a threshold; the messages in
# the hands of the threads are forgotten (question 3), so that the threshold is too low by `threads`; bytes on the wire
# are counted. `pullThresholdSizeForQueue` cannot solve it at all: it knows whole MiB only, and there are cases with less.
#
# The rule gives to the batch only what is left. One may discuss why that works although batches become as small as two:
# below the threshold pulls follow each other without a pause, so a small batch costs round trips only. It must bring
# more in a round trip than the threads use up in one; the cases see to it that there is room.
#
# Question for a good group: why is there no setting for the whole consumer? (There is one for a topic,
# `pullThresholdForTopic`: it is divided by the number of queues at each rebalance, so its value follows the members.)

# %% [markdown]
# ## What the articles say, and what is so (3 minutes)
#
# The articles are those with which mqlab began; [docs/seeds.md](../docs/seeds.md) goes through them.
#
# - The article on the push consumer lists the checks before a pull, with the limits 1000 and 2000 and the 50 ms. They
#   are the same today. The check of the size (100 MiB) stands in its listing but not in its text.
# - Where it says that a pull of a consumer that is suspended or not running comes again after 3000 ms: it is 1000 ms.
# - It explains the span as the distance from the first offset held to the last, which is true, and easily read as "how
#   far ahead of a stuck message". You saw how far that is: as far as the queue goes.
# - The article on long polling asks how a broker should judge what its consumers can take, if it pushed. This lab is
#   the answer: it need not. A full consumer is silent.
# - Neither has a word on the other side, the 200 ms before the send threads.
#
# A consumer in Pop mode (a later lab) has another count: messages that are not acknowledged yet, at most 96 for
# a queue (`popThresholdForQueue`). An orderly consumer is not asked for its span.
#
# **Read on** in RocketMQ's source: `client/impl/consumer/DefaultMQPushConsumerImpl.java` (`pullMessage`, from
# `cachedMessageCount` on), `client/impl/consumer/ProcessQueue.java` (`putMessage`, `removeMessage`, `getMaxSpan`),
# `broker/latency/BrokerFastFailure.java`, `client/producer/DefaultMQProducer.java` (`retryResponseCodes`). In mqlab:
# `mqlab/client/consumer/push/pull_loop.py`, `process_queue.py` and `mqlab/broker/broker_fast_failure.py`.
#
# **To take home**
#
# 1. **What does it cost?** A consumer owns 64 queues and has the default limits. Its messages have 50 KiB, then 500 KiB.
#    How much memory may their bodies take in each case, and which limit is it that stops them?
# 2. A listener writes to a database that is down, and waits. The consumer's limits are reached within a second. What
#    does the producer's team see on its dashboards during the next ten minutes? Which number should wake somebody up?
# 3. You may choose: the broker refuses orders after 200 ms, or after 2 s. Nothing else changes, `send` gives up after
#    3 s with three attempts. Which of the two stores more orders in an overload, and in which do customers wait longer?
#
# ## Your bets

# %%
reveal()
