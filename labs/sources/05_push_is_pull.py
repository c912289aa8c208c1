# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   mqlab:
#     title: Push is pull
#     question: A consumer can only ask. How does a message reach it within milliseconds, without asking all the time?
#     objectives:
#       - say for how long a broker holds an empty pull, and why that is not what the client asked for
#       - place four ways of consuming in one picture of delay and of requests, and choose one for a given load
#       - build a hold service that wakes on arrival, at little work
#     minutes: 96
#     prerequisites: [00 Tour]
#     wrong_predictions:
#       - "held-for: 15, what the client asked for; or 0, an empty answer at once"
#       - "on-the-wire: a sign of life every 5 s, when the hold service looks"
#       - "second-hold: 15 s after the first answer, or as long after it as the first hold took"
#       - "delivered-after: up to 5000, since the hold service looks every 5 s"
#       - "wrong-tag: when its 15 s are over, since the message is not for it; or 0"
#       - "short-longest: 2000, since pulls are held for 2 s; or 15000, since the client asks for that"
#       - "busy-asks: some hundreds or thousands; nobody believes in the sixth digit"
#       - "long-asks: 4, one for each 15 s; the answers with messages are forgotten"
#       - "much-load: as few as before, since a held pull costs nothing"
#       - "one-queue-each: as many times more as there are pulls; or 14 times, a search"
#       - "dead-holder: lost, since the broker took it for delivered"
#       - "broker-gone: 1, since its call waits for 30 s; or none, since the consumer waits until the broker is back"
# ---

# %% tags=["parameters"]
student_id = ""

# %% [markdown]
# How does a letter get to you? Either the postman brings it (**push**), or you go to the post office and ask
# (**pull**). A message queue has the same choice. With push the broker must know where each consumer is and how much it
# can take right now. With pull it need not know anything: who asks has time. But how often should one ask? Every ten
# seconds is late. A thousand times a second is prompt, and nearly always finds nothing.
#
# RocketMQ's `DefaultMQPushConsumer` has "push" in its name, and only ever pulls. The trick is on the other side of the
# counter: *the clerk does not say "nothing there". He says nothing at all, and lets you stand there until a letter
# comes.* It is called **long polling**, and this lab is about what it does, what it costs, and what it is worth.

# %%
from mqlab import ConsumeConcurrentlyStatus, Lab, Message, scenarios
from mqlab.check import NotSolvedYet, check, draws_for, predict, reveal, say, seed_for
from mqlab.scenarios.rivals import arrival, measure
from mqlab.views import Holds, Rival, RivalsChart, Table
from mqlab_widgets import Stepper
from mqlab_widgets.boards.held_pulls import HeldPullsBoard

seed = seed_for(student_id, "05")
draw = draws_for(seed)

# %% [markdown]
# Here the clerk is at work: about one order a second comes in. Press **play**, and watch the table
# below the machines: who stands at the counter, and since when. (This world is to play with. Whatever you do to it, the
# cells below have worlds of their own.)

# %%
Stepper(scenarios.get("rivals").build(seed).run_for(seconds=1), [HeldPullsBoard])

# %% [markdown]
# Now step by step. The topic `Orders` has one queue, and it is empty. A consumer waits for orders, and puts them into
# `inbox`.

# %%
lab = Lab(seed=seed)
lab.name_server()
lab.run_for(ms=draw.between("opening", 0, 4_900, step=100))
lab.broker("broker-a")
lab.create_topic("Orders", queues=1)
lab.run_for(ms=draw.one_of("phase", [*range(0, 3_300, 100), *range(3_700, 4_900, 100)]))
inbox = []

# %%
def take(messages, context):
    inbox.extend((f"{lab.now_ms:.3f} ms", message.body) for message in messages)
    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS


consumer = lab.consumer("readers")
consumer.subscribe("Orders", "*")
consumer.register_message_listener(take)
await consumer.start()

# %% [markdown]
# ## Round one: the clerk says nothing (24 minutes)
#
# The consumer sends its first pull: "messages of queue 0 from offset 0 on, please". We stop where the broker has looked
# and found nothing.

# %%
lab.run_until_event("PullHeld", topic="Orders").fields

# %% [markdown]
# `hold_ms=15000`: with its pull the consumer says for how long the broker may keep it (`suspendTimeoutMillis`, from
# `BROKER_SUSPEND_MAX_TIME_MILLIS` in `DefaultMQPushConsumerImpl`). This is the **hold table** of the broker:

# %%
lab.held_pulls()

# %% tags=["prediction"]
predict("held-for", "No order comes. After how many seconds does the broker answer this pull?",
        unit="s", prediction=...)

# %% tags=["prediction"]
predict("on-the-wire", "What does the broker send to the consumer about this pull until then?",
        choices=["an empty answer, at once", "a sign of life every few seconds", "nothing"], prediction=...)

# %% [markdown]
# A thread of the broker, `PullRequestHoldService`, passes over the table now and then. We go from pass to pass.

# %%
lab.run_until_event("HeldPullsChecked")
lab.held_pulls()

# %%
lab.run_until_event("HeldPullsChecked")
lab.held_pulls()

# %% [markdown]
# Look at the age of the pull after each pass. Once more:

# %%
lab.run_until_event("HeldPullsChecked")
lab.held_pulls()

# %%
woken = lab.run_until_event("PullWoken", topic="Orders")
reveal("held-for", round(woken.held_us / 1_000_000, 1),
       why=f"its time is compared by a pass only: {woken.reason!r} is noticed up to 5 s late")

# %% [markdown]
# Five seconds pass from one look to the next: `waitForRunning(5 * 1000)` in the loop of the service. At each pass it compares the
# age of the pull with its 15,000 ms. At the third pass this pull was too young, and between two passes nobody looks. Who
# asks for 15 s gets 15 to 20. **Measured on a real RocketMQ 5.3.3, ten holds of an empty queue: 15.1 to 20.1 s.**

# %%
held = lab.history.last("PullHeld", topic="Orders")
answers = lab.history.find("ResponseSent", node="broker-a", opaque=held.opaque)
while_held = [event for event in answers if held.ts_ms < event.ts_ms < woken.ts_ms]
reveal("on-the-wire", "b" if while_held else "c",
       why="processRequest returns null: the answer comes later, and the call stays open")

# %% [markdown]
# Not one byte. The consumer's side of it: the pull stands in its response table (lab 03), and has 30 s
# (`CONSUMER_TIMEOUT_MILLIS_WHEN_SUSPEND`). Now you know why 30 and not 16: 15 + 5 must fit, with room.

# %%
lab.run_for(ms=250)
lab.response_table(consumer)

# %% [markdown]
# `async`: nobody on the consumer's side waits for this answer, either. One thread, `PullMessageService`, sends the pulls
# of all queues, one after the other, and goes on; the answers are met by a callback.

# %%
asked = lab.history.last("PullRequested", topic="Orders")
asked.task, f"{asked.sys_flag:05b}"

# %% [markdown]
# The `sysFlag` of a pull is a row of *bits* (`PullSysFlag`). From the right: *commit the offset
# that comes along*; *may be held*, which is set here, and which a plain `pull` does not set; *an expression comes
# along*. This third one is 0: the broker uses the subscription that the consumer's last heartbeat brought
# (`postSubscriptionWhenPull` is off). Keep it in mind, it can cost a second at the end of this lab.

# %% [markdown]
# ### Build: for how long? (1 point)
#
# A pull is put aside, and wants to be held for `hold_ms`. The next pass comes in `next_pass_ms`, and then there is one every 5 s. For how
# long is the pull held, if nothing comes?

# %% [markdown] tags=["hints"]
# - At the next pass the pull is `next_pass_ms` old. Is that enough?
# - If not, it is 5000 ms older at the pass after that.
# - Go from pass to pass until the pull is old enough. Its age at that pass is the answer.

# %% tags=["exercise"]
def held_for(next_pass_ms, hold_ms):
    """For how many ms an empty pull is held."""
    ### BEGIN SOLUTION
    while next_pass_ms < hold_ms:
        next_pass_ms += 5_000
    return next_pass_ms
    ### END SOLUTION


# %% [markdown]
# The check asks real brokers, with pulls that want other times than 15 s.

# %% tags=["check"]
check("05/held-for", held_for)

# %% [markdown]
# ### The second hold
#
# Back to our consumer. The empty answer has come, and it has asked again at once.

# %%
first_s = woken.ts_ms / 1_000
say(f"The first empty answer came at **{first_s:.1f} s**, on the clock of our world.")

# %% tags=["prediction"]
predict("second-hold", f"The first empty answer came at {first_s:.1f} s. At which second does the next one come?",
        unit="s", prediction=...)

# %% [markdown]
# On through three more holds, and then the picture of all of them.

# %%
lab.run_for(seconds=62)
title = "Nothing comes: the holds of an empty queue"
holds = Holds.of(lab.history, "Orders", 0, lab.now_ms, title)
holds

# %%
second = list(lab.history.find("PullWoken", topic="Orders"))[1]
reveal("second-hold", round(second.ts_ms / 1_000, 1),
       why="20 s later: it came half a millisecond after a pass, so at the third pass it is 14.9995 s old")

# %% [markdown]
# Twenty seconds, nearly to the millisecond, and always: each pull that follows a time-out begins *just after a pass*. At the
# third pass it misses its 15 s by the time of one round trip. Measured on the real one: 20.05, 20.09 and 20.09 s for
# the second hold of three runs. (The third was 15.2 or 15.3 s. There a pass takes some milliseconds itself, so the passes
# slip, and now and then the third comes late enough. Our machine has no such slack.)
#
# And what if nothing comes for an hour? Three requests per minute for each queue, and an idle consumer costs nearly
# nothing.

# %% [markdown]
# ## Round two: an order comes (20 minutes)
#
# The hold service looks every 5 s. An order is sent.

# %% tags=["prediction"]
predict("delivered-after", "From the moment at which the order is stored to the listener: how long?",
        unit="ms", prediction=...)

# %%
producer = lab.producer("shop")
await producer.start()
await producer.send(Message("Orders", b"warm up"))
lab.run_for(seconds=2)

# %%
begin = lab.now_ms
sending = producer.send(Message("Orders", b"one coffee")).start()
stored = lab.run_until_event("MessageStored", topic="Orders")
lab.held_pulls()

# %% [markdown]
# Stored, and the pull still sleeps. Lab 00 has shown what is missing: the message must get into its queue
# (`ReputMessageService`, which looks every millisecond). On to the moment at which somebody wakes the pull:

# %%
woken = lab.run_until_event("PullWoken", topic="Orders")
woken.task, woken.reason

# %% [markdown]
# Look who did it: not the hold service's own thread, but `ReputMessageService`. When it has written the entry of the
# queue, it calls `NotifyMessageArrivingListener.arriving(topic, queue, offset + 1, ...)`, and this calls the hold
# service, **on the same thread, in the same moment**. The passes have nothing to do with it.

# %%
begun = lab.run_until_event("ConsumeStarted", topic="Orders")
reveal("delivered-after", round(begun.ts_ms - stored.ts_ms, 1),
       why="up to 1 ms until the dispatch, 40 microseconds for the pull, and the way to the consumer")

# %%
await sending
lab.run_for(ms=1)
lab.space_time(begin, requests=["SEND_MESSAGE_V2", "PULL_MESSAGE"], title="An order wakes a held pull",
               kinds=["MessageStored", "MessageDispatched", "PullWoken", "ConsumeStarted", "PullHeld"])

# %% [markdown]
# The answer travels on the request that had come long before, and then the next pull takes its place in the table.
# Measured on a real RocketMQ 5.3.3, on a machine busy with other things: 7 to 282 ms, median 40. All of it is work and
# waiting for a processor: there is no timer in this chain but the dispatcher's millisecond.
#
# ### Then what are the passes for?
#
# For time-outs, and for what the notice missed. A pull looks into the queue, finds nothing, and is put aside. If a
# message is dispatched just *between* these two, its notice finds nobody in the table. Then the next pass looks how far
# the queue reaches, and wakes the pull: late, but not lost. The notice makes it fast, the pass makes it safe.
#
# They do not know the same, though. A second group joins, which wants only orders with the tag `paid`. Then comes
# an order with the tag `open`.

# %%
picky = lab.consumer("cashier")
picky.subscribe("Orders", "paid")
picky.register_message_listener(take)
await picky.start()
lab.run_for(seconds=2)
passed = lab.run_until_event("HeldPullsChecked")
lab.run_for(ms=draw.between("since the pass", 400, 4_600, step=100))
held = next(row for row in lab.history.find("PullHeld", group="cashier", topic="Orders"))
say(f"The cashier's pull has been held for **{(lab.now_ms - held.ts_ms) / 1_000:.1f} s**, and the last pass was "
    f"**{(lab.now_ms - passed.ts_ms) / 1_000:.1f} s** ago.")

# %% tags=["prediction"]
predict("wrong-tag",
        "An order with the wrong tag arrives now. After how many seconds does the broker answer the cashier's pull?",
        unit="s", prediction=...)

# %%
sent_ms = lab.now_ms
await producer.send(Message("Orders", b"one tea", tags="open"))
lab.run_for(ms=5)
lab.held_pulls()

# %% [markdown]
# Look at both rows of `Orders`, and on:

# %%
answered = lab.run_until_event("PullAnswered", topic="Orders", group="cashier")
answered.fields

# %%
reveal("wrong-tag", round((answered.ts_ms - sent_ms) / 1_000, 1),
       why="at the next pass, without messages: a pass knows how far the queue reaches, and no tags: it wakes, and the filter drops")

# %% [markdown]
# The notice knew the tag (its hash), so the cashier's pull slept on, while the one of `readers` was answered and came back.
# A pass does not know it. `NO_MATCHED_MESSAGE`, no messages, and a `next_offset` one further on. A useless answer? It tells the cashier that it
# need not look at this message again.
#
# Note also that the pull, woken for nothing, was not held again: it got its answer. `executeRequestWhenWakeup` runs the whole
# processing again, with one thing changed: `brokerAllowSuspend` is false. **A pull is held once.**

# %% [markdown]
# ### Build: a notice and a pass (1 point)
#
# Write the question that both ask. A pull wants the message with offset `pull_offset` or a later one, and only the tags whose
# hashes are in `wanted` (an empty set: all tags). The queue ends at `max_offset`, which is one more than its last message. A
# notice brings the `tags_code` of the new message. A pass has none, and gives `None`. Is the pull to be woken?

# %% [markdown] tags=["hints"]
# - Two things must be right: the offset and the tag. When does the tag not matter?
# - There is something new for this pull if `max_offset > pull_offset`.
# - The tag is right in three cases: the broker does not know it, the pull takes every tag, or it is one of those that the pull wants.

# %% tags=["exercise"]
def wakes(pull_offset, wanted, max_offset, tags_code):
    """Does a notice (or a pass, without a tags code) wake this pull?"""
    ### BEGIN SOLUTION
    if max_offset <= pull_offset:
        return False
    return tags_code is None or not wanted or tags_code in wanted
    ### END SOLUTION


# %% tags=["check"]
check("05/wakes", wakes)

# %% [markdown]
# ### Switched off
#
# A broker can be set to `longPollingEnable = false`. Then nobody is told of an arrival. The pull is still put aside,
# but for 1 s only (`shortPollingTimeMills`, whatever the client asks for), and the passes come every second. Now a
# world in which about one order comes in a second, for twenty seconds:

# %% tags=["prediction"]
predict("short-longest", "Long polling is off. What is the longest that an order waits?",
        unit="ms", prediction=...)

# %%
short = scenarios.get("rivals").build(seed, parameters={"way": "short"})
begin = short.now_ms
short.run_for(seconds=20)
Holds.of(short.history, "Orders", begin, begin + 9_000, "Long polling is off: holds of one queue")

# %%
off = Rival.of("short polling", short.history, "Orders", begin, short.now_ms)
reveal("short-longest", round(max(off.delays_ms)),
       why="the next pass finds it, and a pass comes every 1000 ms")

# %%
f"{len(off.delays_ms)} orders, half of them within {off.median_ms:.0f} ms"

# %% [markdown]
# A pull for which no order comes is held for two passes, 2 s: at the first it is again a little too young. Measured on
# the real one: holds of 1969 to 2027 ms (the first of a run may be shorter, 1475), and delays of 75 to 924 ms, but for
# two orders that came while the broker did not know the subscription yet, and answered code 25 for twenty seconds.

# %% [markdown]
# ## Round three: four rivals, one load (16 minutes)
#
# Now side by side. One queue, about 60 orders a minute, one consumer. In four ways:
#
# - **pull every ...**: `MQPullConsumerScheduleService` asks, waits, and asks again. Every 10 s, 1 s, 100 ms, 10 ms.
# - **busy pull**: `DefaultMQPullConsumer.pull` in a loop. An empty answer is asked again at once.
# - **short polling**: a push consumer, with long polling switched off at the broker.
# - **long polling**: a push consumer as it is.
#
# We count the requests, and how late each order comes to the consumer. A round trip between the machines takes half a
# millisecond.

# %% tags=["prediction"]
predict("busy-asks", "Busy pull, one queue: how many requests per minute?", unit="requests", prediction=...)

# %% tags=["prediction"]
predict("long-asks", "Long polling, about 60 orders a minute: how many requests per minute?",
        unit="requests", prediction=...)

# %%
rivals = [measure("interval", seed, seconds=20, interval_ms=ms) for ms in (10_000, 1_000, 100, 10)]
rivals += [measure(way, seed, seconds=20) for way in ("short", "long", "busy")]
chart = RivalsChart(rivals, "About 60 orders a minute: how late, and at which price")
chart

# %%
chart.table()

# %%
long, busy = rivals[-2:]
reveal("busy-asks", round(busy.requests_per_minute), why="one after the other, and each is a round trip")

# %%
reveal("long-asks", round(long.requests_per_minute),
       why=f"{len(long.delays_ms)} orders came in 20 s; {long.empty_answers} pulls ended without one")

# %% [markdown]
# Everybody who pulls at an interval stands on one line: **half the delay costs twice the requests**. On average an order
# waits for half of the interval. Busy pull is where this line ends: it cannot ask faster than a round trip. Short polling
# stands near the line, too. It does save requests, but it waits for a clock like the others.
#
# Long polling is not on the line at all. It stands directly below a pull every second, with about as many requests, and
# is hundreds of times as fast. It is even a little faster than busy pull, which spends the time of half a round trip
# on the way to the broker when an order comes: a held pull is already there.
#
# How can that be? A poller asks at *its* rhythm, and pays also for each question that finds nothing. A held pull costs nothing
# while it waits, and ends in the rhythm of the *messages*.

# %% [markdown]
# ### Its price
#
# That was a quiet shop. Now many more orders come.

# %%
rate = draw.one_of("rate", [750, 1_000, 1_200, 1_500])
say(f"Now **{rate}** orders come in a minute.")

# %% tags=["prediction"]
predict("much-load", f"{rate} orders a minute. How many requests per minute does long polling make now?",
        unit="requests", prediction=...)

# %%
load = {"seconds": 20, "rate_per_minute": rate}
crowd = [measure("interval", seed, interval_ms=ms, **load) for ms in (1_000, 100)]
crowd += [measure(way, seed, **load) for way in ("short", "long")]
RivalsChart(crowd, f"About {rate} orders a minute: how late, and at which price")

# %%
reveal("much-load", round(crowd[-1].requests_per_minute), why="nearly each order ends a pull of its own")

# %% [markdown]
# Long polling now asks about as often as orders come, and no question is wasted: each answer brings an order. A pull every
# second brings many with one question. If a second of delay does not matter, that is the cheaper way: fewer requests,
# larger batches. Whoever writes to a database in bulk wants it. (But mind the 32: a broker gives no more messages for
# one pull, so a pull every second falls behind more and more when 33 come in a second.) A push consumer has a setting for
# it, too: `pullInterval`, 0 ms unless you set it. Long polling is the right default, not a law.
#
# ### Build: what does a poller ask? (1 point)
#
# `MQPullConsumerScheduleService` has a task for each queue. A task pulls, gets its answer after `round_trip_ms`, waits for
# `interval_ms`, and pulls again, whether something came or not. How many requests per minute does it send for all its
# `queues` together?

# %%
say(f"Here the round trip took half a millisecond: `asks_per_minute(1, 100, 0.5)` is about {60_000 / 100.5:.0f}, and a pull "
    f"every 100 ms has asked {crowd[1].requests_per_minute:.0f} times in your world. Busy pull has an interval of 0.")

# %% [markdown] tags=["hints"]
# - How much time passes from one pull of a task to its next one?
# - The interval begins when the answer is there, so the two times add up. A minute has 60,000 ms.
# - How often does that fit into a minute? So often each task asks, and there is a task for each queue.

# %% tags=["exercise"]
def asks_per_minute(queues, interval_ms, round_trip_ms):
    """How many requests per minute a poller sends."""
    ### BEGIN SOLUTION
    period_ms = interval_ms + round_trip_ms
    return queues * 60_000 / period_ms
    ### END SOLUTION


# %% [markdown]
# The check measures pollers whose broker is far away.

# %% tags=["check"]
check("05/asks", asks_per_minute)

# %% [markdown]
# ## Round four: thousands (10 minutes)
#
# The broker of a large company holds thousands of pulls. An order comes. What does it cost to find those that wait for
# it? Not in milliseconds of this computer, which say nothing, but in **slices**: each time that something runs on one
# of the machines of our world, from the call of `send` to the last answer to a pull.

# %%
alone = arrival(pulls=1, queues=1, seed=seed)
alone

# %%
readers, queues = draw.between("readers", 2, 6), draw.between("queues", 1_000, 1_600, step=100)
pulls = readers * queues
say(f"So an order for which *one* pull waits costs {alone.slices} slices. Now {queues} queues, and **{readers} pulls** wait at "
    f"each of them: {pulls} pulls in all.")

# %% tags=["prediction"]
predict("one-queue-each", f"{pulls} pulls are held, {readers} for each queue. How many slices does an order cost?",
        unit="slices", prediction=...)

# %%
spread = arrival(pulls=pulls, queues=queues, seed=seed)
reveal("one-queue-each", spread.slices,
       why="pullRequestTable maps topic@queueId to a list: the pulls for other queues are not looked at")

# %% [markdown]
# Only those that wait for *this* queue cost anything. That is why a broker can hold as many pulls as it has memory for. (The pass
# every 5 s does look at all of them, and no thread waits for any of them.)
#
# Now all of them wait for the *same* queue: a price list that each branch of the company reads for itself.

# %%
crowded = arrival(pulls=pulls, queues=1, seed=seed)
rows = [(what, a.slices, len(a.answers_ms), a.answers_ms[0], a.answers_ms[-1], a.still_held)
        for what, a in (("1 pull", alone), (f"{pulls} pulls, {readers} for a queue", spread),
                        (f"{pulls} pulls, one queue", crowded))]
header = ("held", "slices", "answers", "first after ms", "last after ms", "still held")
Table("What one order costs", header, rows)

# %% [markdown]
# Everybody wakes at once, everybody is processed anew by the few pull threads (16 + 2 for each core), and the last
# branch hears it much later than the first. And then as many new pulls arrive. A queue with very
# many readers is the one load that long polling does not like. The answer to "who waits for this queue?" is cheap; the
# thousands of answers to them are not.
#
# ### Build: the hold table (1 point)
#
# Make such a table. `pulls` is a list of (topic, queue number, offset), in the order in which the pulls came. The table maps the
# text `topic@queue` (for example `"Orders@3"`, as in RocketMQ's `pullRequestTable`) to the list of the offsets that are wanted
# there, in the same order.

# %%
say(f"With it {readers} look-ups in a list are enough in your world, where {pulls} pulls wait for {queues} queues.")

# %% [markdown] tags=["hints"]
# - One loop over the pulls. What is to be done when a queue comes for the first time?
# - The key is `f"{topic}@{queue}"`. `dict.setdefault` gives the list that is there, or puts a new one in its place.
# - What `setdefault` gives is the list itself, so you can append to it at once. What belongs into the list?

# %% tags=["exercise"]
def hold_table(pulls):
    """Which offsets are wanted, by topic and queue."""
    ### BEGIN SOLUTION
    table = {}
    for topic, queue, offset in pulls:
        table.setdefault(f"{topic}@{queue}", []).append(offset)
    return table
    ### END SOLUTION


# %% [markdown]
# The check lets a real broker hold some pulls, and compares with its own table.

# %% tags=["check"]
check("05/table", hold_table)

# %% [markdown]
# ## Break it (8 minutes)
#
# Back to our first world, where `readers` wait for orders. The consumer is killed **while its pull is held**. A second
# later:

# %%
lab.run_for(seconds=3)
lab.crash("consumer-1")
lab.run_for(seconds=1)
lab.held_pulls()

# %% [markdown]
# The pulls of `readers` are still there. The broker has seen the connection close, and has taken the consumer out of its
# group. But a held pull is only a row in a table, and nobody looks through the table for this. (`%RETRY%readers` is a
# second topic, which each push consumer pulls for itself. Lab 09 is about it.) Now an order comes.

# %% tags=["prediction"]
predict("dead-holder", "The order wakes a pull of the dead. What becomes of the order?",
        choices=["it is lost: the broker takes it for delivered",
                 "it stays in its queue, and comes to whoever owns the queue next",
                 "send fails, since nobody can take it"], prediction=...)

# %%
begin = lab.now_ms
result = await producer.send(Message("Orders", b"last order"))
lab.run_for(ms=5)
lab.space_time(begin, requests=["SEND_MESSAGE_V2", "PULL_MESSAGE"], title="An order for a dead consumer",
               kinds=["MessageStored", "PullWoken", "RequestRejected"])

# %%
refused = lab.history.last("RequestRejected", node="broker-a")
refused.code, refused.remark.splitlines()[0]

# %% [markdown]
# The pull is woken, processed anew, and refused: a group without members has no subscription. Even this answer goes
# to a channel that is closed. (If the group had another member, the order would be read for the dead one, and the
# answer would be lost in the same way.) The row is gone from the table, and the broker has forgotten the matter. The process
# is started again.

# %%
lab.restart("consumer-1")
restarted = lab.now_ms
lab.run_until(lambda: any(body == b"last order" for _, body in inbox))
f"{inbox[-1]}, {lab.now_ms - restarted:.0f} ms after the restart"

# %%
reveal("dead-holder", "b" if inbox[-1][1] == b"last order" else "a",
       why="an answer to a pull promises nothing: only an offset that is committed moves the group on")

# %% [markdown]
# The broker had not forgotten two things: the order, and how far the group has come. That is the beauty of pull: **the broker has no record of "delivered" that could be wrong.** The consumer says from
# where it wants to read, each time. An answer that is lost is asked for again.
#
# ### And if the broker dies?
#
# Then the consumer has a call open, to a machine that is gone. The broker stays down for some seconds.

# %%
down_s = draw.between("down", 2, 12) + 0.5
say(f"The broker is killed while it holds the pull, and is down for **{down_s} s**.")

# %% tags=["prediction"]
predict("broker-gone", f"The broker is down for {down_s} s. How often does the consumer put off its pull in this time?",
        unit="times", prediction=...)

# %%
lab.run_for(seconds=2)
killed = lab.now_ms
lab.crash("broker-a")
put_off = lab.run_until_event("PullPutOff", topic="Orders")
put_off.reason, put_off.delay_ms

# %%
lab.run_for(ms=killed + 1_000 * down_s - lab.now_ms)
in_this_time = [event for event in lab.history.find("PullPutOff", node="consumer-1", topic="Orders") if event.ts_ms >= killed]
reveal("broker-gone", len(in_this_time),
       why="the channel closes, which fails all calls on it at once; then once a second (pullTimeDelayMillsWhenException)")

# %% [markdown]
# It does not sit out its 30 s: a channel that closes fails every call that waits on it, in the same moment
# (`failFast`). The callback's `onException` puts the pull off by 1000 ms, and so on, every second, until the broker is
# back. (The same second passes when the consumer is suspended, or no longer subscribes to the topic.)

# %%
lab.restart("broker-a")
lab.run_for(seconds=4)
rows = [(f"{event.ts_ms / 1_000:.3f}", event.reason.splitlines()[0])
        for event in lab.history.find("PullPutOff", node="consumer-1", topic="Orders")]
Table("Pulls of Orders that were put off", ("at s", "why"), rows)

# %% [markdown]
# (Sometimes the last line is `CODE: 24`, from a broker that is up again. It has been started anew and knows nobody: the
# subscription of a group lives in its memory only, and comes with a heartbeat. A pull that is faster than the heartbeat
# is refused, and comes again.) No order is lost here either: the broker has its files, and the consumer knows from where
# it wants to read.

# %% [markdown]
# ## Build it: the hold service (18 minutes)
#
# Now you are the clerk. Write a hold service for a real broker. A `pull` has three things:
#
# | | |
# |---|---|
# | `pull.queue` | the queue that it waits for; fit to be the key of a dictionary |
# | `pull.offset` | it wants the message with this offset, or a later one |
# | `pull.due_ms` | when its time is up, in ms, on the clock of `now_ms` below |
#
# The broker calls three methods:
#
# - `hold(pull)`: this pull has found nothing. Keep it.
# - `arrived(queue, max_offset)`: a notice that the queue has a new message. `max_offset` is the offset that the message
#   *after* it will get. Return a list of the pulls to answer now.
# - `look(now_ms, max_offset_of)`: a pass, every 5 s. `max_offset_of(queue)` tells how far a queue reaches. Return a list of
#   the pulls to answer now.
#
# It is judged on what you have seen:
#
# - **delay**: whoever waits for an order gets it within 5 ms. And now and then a notice gets lost, so that `arrived` is
#   not called: then it may take until the next pass.
# - **answers**: every pull is answered once, and at the first pass after its time is up at the latest. None is answered
#   without messages before that. (A notice may also come late, when a reader has its order and waits for the next one.)
# - **work**: all comparisons with a queue or an offset are counted, look-ups in dictionaries, too. An arrival may cost 4
#   for each pull *that waits for this queue*, and 12 besides, however many others are held.

# %% [markdown] tags=["hints"]
# - Which question must be cheap? "Who waits for this queue?" What is the key of your dictionary, and what is its value?
# - Two things let a pull go: the queue reaches further than its `offset`, or (at a pass only) its `due_ms` has come. All
#   others stay: an answer without messages is an error.
# - Keep a list of pulls for each queue. Take the list out with `self.held.pop(queue, [])`, divide it into those to answer and
#   those to keep, and put the second part back. A pass does the same with each queue of `list(self.held)`.

# %% tags=["exercise"]
class HoldService:
    """Keeps the pulls that found nothing, and says which of them to answer, and when."""

    def __init__(self):
        self.held = {}

    def hold(self, pull):
        ### BEGIN SOLUTION
        self.held.setdefault(pull.queue, []).append(pull)
        ### END SOLUTION

    def arrived(self, queue, max_offset):
        ### BEGIN SOLUTION
        return self.take_out(queue, lambda pull: pull.offset < max_offset)
        ### END SOLUTION

    def look(self, now_ms, max_offset_of):
        ### BEGIN SOLUTION
        woken = []
        for queue in list(self.held):
            end = max_offset_of(queue)
            woken += self.take_out(queue, lambda pull, end=end: pull.offset < end or pull.due_ms <= now_ms)
        return woken

    def take_out(self, queue, ready):
        woken, kept = [], []
        for pull in self.held.pop(queue, []):
            (woken if ready(pull) else kept).append(pull)
        if kept:
            self.held[queue] = kept
        return woken
        ### END SOLUTION


# %% [markdown]
# The check puts your class into a broker, in place of its own. In each of fifty worlds, readers pull from 12 to 20
# queues, up to three from each, and orders come now and then for 27 seconds. One notice in eight gets lost, and another
# one comes a second time with the next pass.

# %% tags=["check"]
check("05/hold", HoldService)

# %% [markdown]
# ## What has been written, and what is so
#
# An article on long polling, which this lab was written to check ([docs/seeds.md](../docs/seeds.md) goes through it, claim by
# claim), reads the hold service of 4.x. Most of it is still so; four things are not:
#
# - *The consumer may get an empty answer and do something with it.* You have counted: not one byte. A `null` inside the
#   broker is not an answer.
# - *The passes are how the broker notices new messages.* They are the net under it. The notice comes from the dispatcher,
#   in the moment in which the message becomes readable.
# - *A woken pull that finds nothing is put aside again.* It is held once, and then answered in any case; the consumer
#   asks again.
# - *The third look ends a hold of 15 s* (from another article, on the push consumer). The fourth does, unless the pull came
#   exactly with a pass: 15 to 20 s.
#
# In RocketMQ 5 there are more of this kind: Pop has a hold service of its own (`PopLongPollingService`), and both hear
# of arrivals through the same listener.
#
# **Read on**: `broker/longpolling/PullRequestHoldService.java` (a short file; you know all of it),
# `NotifyMessageArrivingListener.java`, `broker/processor/DefaultPullMessageResultHandler.java` (where a pull is put
# aside), `PullMessageProcessor.executeRequestWhenWakeup`, and on the other side
# `client/impl/consumer/DefaultMQPushConsumerImpl.java` (`pullMessage`).
#
# **To take home**
#
# 1. Between client and broker somebody puts a proxy that closes connections after 10 s of silence. What will an idle
#    consumer do, and what does it cost?
# 2. A company has 2000 consumers with 8 queues each, and almost no messages. How many requests a minute does long
#    polling cost, and how many would a pull every second?
# 3. The browser's chat window has the same problem as our consumer. Which of the four rivals have you seen there, under
#    which names?

# %%
reveal()
