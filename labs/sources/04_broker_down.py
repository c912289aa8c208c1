# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   mqlab:
#     title: The broker dies; the broker hangs
#     question: Half of the brokers stop working. What does a program that sends notice, and for how long?
#     objectives:
#       - say why a killed broker costs a millisecond, and a hanging one three seconds and the message
#       - read a producer's fault table, and say when a broker is tried again
#       - build a rule that avoids a hanging broker at little cost and takes it back soon
#     minutes: 88
#     prerequisites: ["01 Routes", "03 Sending"]
#     wrong_predictions:
#       - "second-attempts: one in two, all the time that it is down; the route is refreshed in between"
#       - "killed-back: 0 s, since the broker reports itself at once; the producer is not told"
#       - "hung-fail: about half of all; after an error the producer goes past the other queues of that broker"
#       - "rest: as many as in 3 s or 6 s, read from the table at 3000 ms; a failed attempt is entered as if it had taken 10 s"
#       - "latency-fail: 1; the producer forgets every 10 s what it has learned"
#       - "limit-slow: 0, since the broker is known to hang by then; this cure learns nothing"
#       - "late: none, since send raised an error"
#       - "all-rest: an error, since the table says that nobody is available"
# ---

# %% tags=["parameters"]
student_id = ""

# %% [markdown]
# Lab 01 ended with a promise: a message to a **dead** broker costs almost nothing, one to a **hanging** broker is
# expensive. Today we look at it call by call, from the side of the program that sends.
#
# Two brokers share the topic `Orders`, four queues each. One producer sends an order about once a second (how often
# exactly depends on your id), and waits for each answer before it goes on. That is all; the last twelve seconds of it:

# %%
from collections import Counter

from mqlab import Lab, scenarios
from mqlab.check import NotSolvedYet, check, draws_for, predict, reveal, say, seed_for
from mqlab.scenarios.broker_down import send_steadily, start_two_brokers
from mqlab.views import SendStrip, Table
from mqlab_widgets import Stepper
from mqlab_widgets.boards.responses import ResponsesBoard
from mqlab_widgets.boards.routes import RoutesBoard

seed = seed_for(student_id, "04")
draw = draws_for(seed)
every_ms = draw.between("every", 600, 1_500, step=100)

# %%
lab = Lab(seed=seed)
await start_two_brokers(lab)
shop = lab.producer("shop", node="shop")
await shop.start()
started = lab.now_ms
send_steadily(shop, "Orders", every_ms=every_ms)


# %%
def strip(zero_ms, before_s, *names):
    return SendStrip.of(lab.history, "Orders", "broker-b", producers=names, zero_ms=zero_ms,
                        start_ms=zero_ms - 1_000 * before_s, end_ms=lab.now_ms)


lab.run_for(seconds=draw.one_of("calm", [*range(12, 23), *range(32, 42)]) + 0.05)
strip(lab.now_ms, 12, "shop")

# %%
say(f"An order goes out every **{every_ms} ms**.")

# %% [markdown]
# Each blue stroke is one call of `send`, in the lane of the broker that stored the message. The bars above are the
# truth about `broker-b`, and what the name server says of it. Look at the rhythm: four to one broker, four to the
# other. The producer takes the queues in turn, and the list of queues is sorted by broker. Keep it in mind, it will
# explain a number later.

# %% [markdown]
# ## Round one: the broker is killed (20 minutes)
#
# Now `kill -9` on `broker-b`: its process is gone at once, without a last word. The name server sees the closed connection and drops the broker at once (lab 01). The
# producer is told nothing: its own route names the dead broker for up to 30 s more. All this time it goes on to send to
# a machine where nobody listens.

# %%
down_s = draw.between("down", 34, 48)
say(f"`broker-b` is down for **{down_s} s**. The producer was started **{(lab.now_ms - started) / 1_000:.0f} s** before the "
    "kill, and every 30 s it asks for its route.")

# %% tags=["prediction"]
predict("second-attempts", f"{down_s} s without broker-b, one call every {every_ms} ms. How many calls make a second attempt?",
        unit="calls", prediction=...)

# %% tags=["prediction"]
predict("killed-cost", "How long does the first call take that meets the dead broker?",
        choices=["about 1 ms", "about 1 s", "3 s"], prediction=...)

# %%
killed = lab.now_ms
lab.crash("broker-b")
refused = lab.run_until_event("SendAttemptFailed")
refused.fields

# %% [markdown]
# That is the first attempt. The machine of `broker-b` is up, only the process is gone; so its operating system answers
# "nobody here" at once. We go on to the end of the call:

# %%
stored = lab.run_until_event("SendSucceeded", msg_id=refused.msg_id)
begun = lab.history.last("QueueSelected", attempt=1)
lab.space_time(begun.ts_ms, stored.ts_ms, requests=["SEND_MESSAGE_V2"],
               title="One call of send meets a dead broker",
               kinds=["QueueSelected", "SendAttemptFailed", "MessageStored", "SendSucceeded"])

# %%
cost_ms = stored.ts_ms - begun.ts_ms
reveal("killed-cost", "abc"[(cost_ms > 100) + (cost_ms > 2_000)],
       why=f"{cost_ms:.2f} ms: nobody waits for a refusal")

# %% [markdown]
# Now the rest of this time.

# %%
lab.run_for(ms=killed + 1_000 * down_s - lab.now_ms)
dead = strip(killed, 10, "shop")
dead

# %%
retried = [event for event in lab.history.find("SendAttemptFailed", node="shop") if event.ts_ms > killed]
errors = sum(call.failed for call in dead.calls["shop"])
reveal("second-attempts", len(retried),
       why=f"one in four (why not one in two, round two will tell), until the route is refreshed; {errors} errors")

# %% [markdown]
# `DefaultMQProducerImpl.sendDefaultImpl` is a loop of `1 + retryTimesWhenSendFailed` = 3 attempts. The second one
# avoids the broker of the first (`lastBrokerName`). All of it takes place inside one call of `send`; the application
# sees a result. The short yellow strokes are the refused attempts, each with a blue one above it. They end where the producer's route is
# refreshed (the lane turns grey).
#
# Measured on a real RocketMQ 5.3.3, which was killed in the same way, three times: 0 errors in the application, 0 and
# 0. In the 31 s after the kill a call took 10, 14 and 18 ms in the median, on a machine that was busy with other
# things. Our machines have nothing else to do:

# %%
dead.summary()

# %% [markdown]
# The process is started again. It reports itself to the name server at once.

# %% tags=["prediction"]
predict("killed-back", "How many seconds after its start does the producer send to broker-b again?", unit="s",
        prediction=...)

# %%
started = lab.now_ms
lab.restart("broker-b")
back = lab.run_until_event("SendSucceeded", broker_name="broker-b")
reveal("killed-back", round((back.ts_ms - started) / 1_000, 1),
       why="0 to 30 s until the refresh (pollNameServerInterval), and then its turn must come")

# %% [markdown]
# Measured on the real one, for three producers that wait for answers or callbacks: 1.5 to 34.6 s. So a *killed* broker
# is a small thing: nobody loses a message, nobody waits. The loop of three attempts was made for this day.
#
# This is the moment of the kill once more. Press the arrow **one event on** and see who believes in `broker-b`, and for how
# long. Or go to the present, click `broker-a`, choose **Crash**, and go on: this world is yours, the next round begins a new one.

# %%
lab.history.back("NodeCrashed")
Stepper(lab, [RoutesBoard])

# %% [markdown]
# ### Build: the next queue (1 point)
#
# Write how the next attempt finds its queue. `brokers` says for each queue of the list at which broker it is. Begin with the queue number
# `turn` (after the last queue comes the first one again), and return the number of the first queue that is **not** at the
# broker `avoid`. If all are there, return the number of the queue whose turn it is. (`turn` may be greater than the list is long.)

# %% [markdown] tags=["hints"]
# - Which numbers do you look at, one after the other, if `turn` is 6 and there are 8 queues?
# - `(turn + step) % len(brokers)`, for `step` from 0 on, gives these numbers.
# - The first of these numbers whose broker is not the one to avoid. If the loop ends without one, all are to be avoided: then it is simply whose turn it is.

# %% tags=["exercise"]
def next_queue(brokers, turn, avoid):
    """The number of the next queue in turn that is at another broker."""
    ### BEGIN SOLUTION
    for step in range(len(brokers)):
        number = (turn + step) % len(brokers)
        if brokers[number] != avoid:
            return number
    return turn % len(brokers)
    ### END SOLUTION


# %% tags=["check"]
check("04/next-queue", next_queue)

# %% [markdown]
# ## Round two: the broker hangs (16 minutes)
#
# Now a broker that hangs: a pause of its memory management that does not end, a disk that does not answer. The process
# is there, its connections stay open, what is sent to it is taken in by the operating system, and nobody
# reads it. A new world, with two brokers and some producers on machines of their own. At first we look only
# at one of them, `plain`, which has default settings. `broker-b` hangs from now on, for 143 s.

# %%
lab = scenarios.get("broker-hangs").build(seed, parameters={"every_ms": every_ms})
hung = lab.now_ms

# %% [markdown]
# `plain` sends an order, and the first attempt goes to the hanging broker. Lab 19 looks at such a call alone; here it
# is once more, to its end:

# %%
given_up = lab.run_until_event("SendFailed", node="plain")
of_plain = list(lab.history.find(("QueueSelected", "SendAttemptFailed", "SendFailed"), node="plain"))
of_plain[-3].fields

# %% [markdown]
# `wait response ... timeout`, after 3000 ms. That is one attempt of three. As before, the producer now chooses a queue
# at the other broker:

# %%
of_plain[-2].fields

# %% [markdown]
# And the next event of this call, in the same moment:

# %%
given_up.kind, given_up.fields

# %% [markdown]
# **It has chosen a queue on a healthy broker, and then it looks at its watch.** `sendMsgTimeout`, 3000 ms, is not the
# time of an attempt. It is the budget of the whole call, and the first attempt was given all of it. When it is over
# nothing is left for a second one, and the application gets an error whose text does not even name the broker:
# `sendDefaultImpl call timeout`. Three attempts on paper, one in fact.
#
# So many a text is wrong that says "RocketMQ's producer tries three times, so one bad broker does no harm". It
# holds for attempts that fail *quickly*. On to the end of the 143 seconds (10 ms before it, to be exact).

# %% tags=["prediction"]
predict("hung-fail", f"143 s with a hanging broker, one call every {every_ms} ms at most. How many calls of plain fail?",
        unit="calls", prediction=...)

# %%
lab.run_for(ms=hung + 142_990 - lab.now_ms)
four = strip(hung, 10, "plain", "latency", "limit", "both")
during = strip(hung, 0, "plain", "latency", "limit", "both")
strip(hung, 10, "plain")

# %%
failed = {name: sum(call.failed for call in calls) for name, calls in during.calls.items()}
slow = {name: sum(call.slow for call in calls) for name, calls in during.calls.items()}
reveal("hung-fail", failed["plain"],
       why=f"of {len(during.calls['plain'])} calls, each after 3.0 s; a call that waits delays the next ones")

# %% [markdown]
# Measured on a real RocketMQ 5.3.3 that was stopped for 143 s with `kill -STOP`, with one call a second: 18, 15 and 18 calls
# failed, of 105 to 107, each after 3.0 s. Two things in this picture want an explanation.
#
# **Why one call in four, not every second one?** In quiet times every second call goes to `broker-b`. But here is
# the queue that was chosen and not used. To find it, the producer went on in its list past *all* queues of the bad
# broker. So the next calls go to queues 1, 2 and 3 of the good broker, and then comes queue 0 of the bad one. One in
# four. The period is 3 s and three times the pause between two calls. With one call a second that makes 6.0 s, as on the real one
# (6.0 s in all three runs).
#
# **When does it end?** The name server drops the broker 120 s after its last report (lab 01), and the producer hears
# of it at its next refresh. On the real one the last request to the hanging broker went out after 102.8 to 103.7 s.
# (A wide yellow box, if you see one, is a call that was saved: another time-out, that of the heartbeat, closed the
# connection some ms *before* the 3 s were over, and what was left was enough for an attempt at `broker-a`.
# The real one had three of these in one of its runs.)
#
# ### Build: how many attempts? (1 point)
#
# A producer comes to these brokers, one after the other, with the attempts of one call. `brokers` says how each of them is:
# `"well"`, `"killed"` or `"hangs"`. A call makes `most` attempts at most, and `most` is not greater than the length of the
# list. How many does it make?

# %%
say(f"In your round one, while `broker-b` was down for {down_s} s, it was `attempts(['killed', 'well', 'killed'], 3)` now and "
    "then, which is 2. Here, every time that a call fails, it is `attempts(['hangs', 'well', 'hangs'], 3)`, which is 1.")

# %% [markdown] tags=["hints"]
# - After which of the three answers does a call go on to the next broker? What does the time say?
# - Only a killed broker lets the call go on: it is refused in a millisecond. One that hangs takes all the time that there is.
# - So count along the brokers up to the first at which the call does not go on. How many attempts were made when none is left, or none is allowed?

# %% tags=["exercise"]
def attempts(brokers, most):
    """How many attempts one call of send makes."""
    ### BEGIN SOLUTION
    for number, state in enumerate(brokers[:most], 1):
        if state != "killed":
            return number
    return most
    ### END SOLUTION


# %% tags=["check"]
check("04/attempts", attempts)

# %% [markdown]
# ## Round three: three cures (21 minutes)
#
# The other producers were there all the time. They differ from `plain` in these settings:

# %%
Table("settings", ("producer", "what is set"),
      [(name, ", ".join(f"{key}={value}" for key, value in settings.items()) or "nothing")
       for name, settings in scenarios.broker_down.SETTINGS.items()])

# %% [markdown]
# **`latency`** has what RocketMQ calls *latency fault tolerance* (`sendLatencyFaultEnable`): a table of brokers, with
# how long the last attempt took. Who was slow or failed has to **rest**, and a resting broker is passed over. How
# long a rest is stands in a table in `MQFaultStrategy`:

# %%
from mqlab.client.producer.latency_fault_tolerance import LATENCY_MAX_MS, NOT_AVAILABLE_MS

Table("MQFaultStrategy", ("took at least ms", "rests ms"), zip(LATENCY_MAX_MS, NOT_AVAILABLE_MS, strict=True))

# %% tags=["prediction"]
predict("rest", f"An attempt of latency at broker-b has timed out after 3000 ms. One order every {every_ms} ms: how many "
        "go elsewhere until it tries broker-b again?", unit="orders", prediction=...)

# %% [markdown]
# The same world once more, from its beginning; that is what a seed is for. We stop at the moment at which `latency`
# gives up its first call.

# %%
again = scenarios.get("broker-hangs").build(seed, parameters={"every_ms": every_ms})
again.run_until_event("SendFailed", node="latency")
again.fault_table("latency")

# %%
item = again.history.last("FaultItemUpdated", node="latency")
failed_at = again.now_ms
later = (event.broker_name for event in lab.history.find("SendAttempted", node="latency") if event.ts_ms > failed_at)
reveal("rest", list(later).index("broker-b"),
       why=f"it rests for {item.not_available_ms} ms, since a failed attempt is looked up as if it had taken 10000 ms "
           "(updateFaultItem, isolation); and then its turn must come")

# %% [markdown]
# An attempt that *failed* is not looked up with the time that it took; a refused one would look like a quick
# one. It counts as 10,000 ms. (In RocketMQ 4 it counted as 30,000 ms, with another table: 600 s. Texts that say "a
# failed broker is avoided for ten minutes" are about that.)
#
# ### Build: how long is the rest? (1 point)
#
# `table` is a list of pairs like the table above, (took at least ms, rests ms), in rising order. Return how long a broker rests
# after an attempt that took `took_ms`; one that `failed` counts as 10,000 ms. Who is quicker than the first row does not rest: 0.

# %% [markdown] tags=["hints"]
# - Which row counts, if several rows have a time that is not longer than `took_ms`?
# - First set `took_ms = 10_000` if the attempt has failed, whatever it took.
# - The table grows from row to row. Go through it, and let each row that applies overwrite what the row before has said; what was said before any row?

# %% tags=["exercise"]
def rest_after(table, took_ms, failed):
    """How many ms a broker rests after an attempt."""
    ### BEGIN SOLUTION
    if failed:
        took_ms = 10_000
    return max((rest for at_least, rest in table if took_ms >= at_least), default=0)
    ### END SOLUTION


# %% tags=["check"]
check("04/rest", rest_after)

# %% [markdown]
# Back to the world in which `latency` has given up a call. Now let 10 s pass:

# %%
again.run_for(seconds=10.1)
again.fault_table("latency")

# %% [markdown]
# The rest is over. The broker hangs as before, but this table knows nothing of that. How does the producer find out?
# It sends the next order there.

# %% tags=["prediction"]
predict("latency-fail", "How many calls of latency fail in the 143 s?", unit="calls", prediction=...)

# %% [markdown]
# **`limit`** has no table. It has a limit for a single attempt, `sendMsgMaxTimeoutPerRequest`, 1000 ms, which is
# not set by default. The budget of the call stays 3 s.

# %% tags=["prediction"]
predict("limit-slow", "How many calls of limit take about 1 s and end well?", unit="calls", prediction=...)

# %%
four

# %%
during.summary()

# %%
reveal("latency-fail", failed["latency"], why="3 s for a try, 10 s of rest, and some time until its turn comes")

# %%
reveal("limit-slow", slow["limit"],
       why=f"it learns nothing: one call in four begins with a try at broker-b; after 1 s there is time for another "
           f"attempt, so {failed['limit']} calls fail")

# %% [markdown]
# Measured on the real one with one call a second, three runs each:
#
# | | failed | slow | distance of two tries |
# |---|---|---|---|
# | `plain` | 18, 15, 18 | 0, 3, 0 | 6.0 s |
# | `latency` | 8, 8, 8 | 0 | 14.0 s |
# | `limit` | 0 | 33, 32, 27 | 4.0 s |
# | `both` | 0, 0, 1 | 8, 8, 8 | 12.1 s |
#
# The two cures are for two different ills. The *limit* turns an error into a second of waiting. The *table* makes the
# waiting rare. Together, hardly a call fails (one in the three runs), and one call every 12 s is slow. **By default
# RocketMQ has neither.**
#
# `both` has one thing more, `startDetectorEnable`: every few seconds it asks each broker of the table for a sign of
# life (`LatencyFaultToleranceImpl.detectByOneRound`). This is its table just after a rest has ended:

# %%
again.run_until_event("SendAttemptFailed", node="both", broker_name="broker-b")
again.run_for(seconds=10.01)
again.fault_table("both")

# %%
again.run_until_event("SendAttempted", node="both", broker_name="broker-b").fields

# %% [markdown]
# It knows that `broker-b` cannot be reached. RocketMQ even writes into its log that such a broker "will not be used until
# it's reachable". And the next order in turn goes there. `selectOneMessageQueue` first looks for a queue whose broker
# does not rest, and only if there is none, for one that is reachable. When the rest is over nobody looks at the last
# column. (Its probes help a little, by accident: one that times out closes the connection, and an attempt that waits on
# it fails sooner. So not every yellow stroke of `both` counts as slow.) You will do better in a moment.

# %% [markdown]
# ## It wakes up (5 minutes)
#
# `broker-b` goes on after 143 s. All this time the operating system of its machine has taken in what was sent to it. In
# it are the orders of all attempts that timed out. Take those of `plain`: `send` has raised an error for
# them, and the program has perhaps told its user that the order failed.

# %%
given_up = {r.msg_id for r in lab.history.find("SendFailed", node="plain")}
len(given_up)

# %% tags=["prediction"]
predict("late", "How many of these orders are in a queue, one second after the broker wakes up?",
        unit="orders", prediction=...)

# %%
woken = lab.run_until_event("NodeThawed")
lab.run_for(seconds=1)
copies = Counter(r.unique_key for r in lab.history.find("MessageStored", topic="Orders"))
reveal("late", sum(copies[order] > 0 for order in given_up),
       why="the broker reads what lies there and stores it; nobody told it that nobody waits")

# %% [markdown]
# (If one is missing in your world: on waking, a timer of the broker closes connections on which it has heard nothing
# for 120 s, and here it was quicker than the reader of one connection.)
#
# **An error of `send` does not mean "not stored". It means "I do not know".** A program that sends the order again
# after an error may have it twice. And what of the orders that were *saved*, by the second attempt of `limit` and `both`?

# %%
names = ("plain", "latency", "limit", "both")
rows = []
for name in names:
    orders = {r.msg_id for r in lab.history.find("SendAttempted", node=name)}
    rows.append((name, *(sum(copies[order] == n for order in orders) for n in (0, 1, 2))))
Table("how often an order is stored", ("producer", "not there", "once", "twice"), rows)

# %% [markdown]
# Twice, with the same message id, one on each broker, two minutes apart. No error was shown to anybody. Each retry that
# you switch on, and the one inside `send` is on, is paid for with duplicates. This is why consumers must be able to
# get a message twice; lab 09 is about that.
#
# Who uses the broker again, and when? The name server knows it at once (0.9 to 3.0 s on the real one). The producers
# learn it with their next refresh, each at its own time, within 30 s:

# %%
lab.run_for(seconds=45)
first = {
    name: next(r.ts_ms for r in lab.history.find("SendSucceeded", node=name, broker_name="broker-b")
               if r.ts_ms > woken.ts_ms)
    for name in names
}
Table("after the broker woke up", ("who", "sends to it after s"),
      [(name, round((at - woken.ts_ms) / 1_000, 1)) for name, at in first.items()])

# %% [markdown]
# ## Break it: everybody rests (5 minutes)
#
# Now the worst case: *both* brokers hang, for 20 seconds. In the fault table of `latency` all brokers rest.

# %%
worst = scenarios.get("broker-hangs").build(seed, parameters={"hangs_s": 20, "every_ms": every_ms})
worst.run_for(ms=10)
worst.freeze("broker-a")
worst.run_for(seconds=12)
worst.fault_table("latency")

# %% tags=["prediction"]
predict("all-rest", "All brokers rest. What does the next call of send do?",
        choices=["it raises an error at once: nobody is available", "it waits until a rest is over",
                 "it is sent to a resting broker"],
        prediction=...)

# %%
chosen = worst.run_until_event("SendAttempted", node="latency")
worst.fault_table("latency")

# %%
reveal("all-rest", "c" if chosen.kind == "SendAttempted" else "a",
       why=f"an attempt at {chosen.broker_name}, which rests")

# %% [markdown]
# A fault table is a preference, not a ban. If nobody is available `selectOneMessageQueue` takes somebody who is
# reachable, and if nobody is, simply the next queue. That is wise: the table is only what *this* producer believes, and
# it may be wrong. When both wake up orders are stored again, whatever the table says of rests:

# %%
worst.run_until_event("NodeThawed", target="broker-b")
worst.thaw("broker-a")
worst.run_until_event("SendSucceeded", node="latency")
worst.fault_table("latency")

# %% [markdown]
# The moment at which the first of the two wakes up. The table below the picture has all that waits for an answer; press
# the arrow **one event on** and see what becomes of it.

# %%
worst.history.back("NodeThawed", target="broker-b")
Stepper(worst, [ResponsesBoard])

# %% [markdown]
# ## Build it: a rule that asks before it sends (21 minutes)
#
# RocketMQ finds out whether a broker is back by sending it one of *your* orders. We want a rule that sends a **probe**
# instead, a small question of its own, while the orders go elsewhere. Write the class that the producer asks:
#
# - `update_fault_item(broker, latency_ms, failed)` is called after each attempt.
# - `is_available(broker)` is called before each: may it go to this broker? (If you say no to all, one is taken all the
#   same. The producer has a limit of 500 ms for an attempt.)
# - `await self.probe(broker)` asks a broker: `True` if it answers within 200 ms, else `False`.
# - `self.node.spawn(coroutine, name)` starts a task of its own, and `await self.node.sleep(ms)` lets time pass in it.
#
# Three brokers hang, are killed and come back, in 50 worlds. An order goes out every 200 ms. It is judged by what it
# costs:
#
# 1. no call fails;
# 2. at most **2 failed attempts** for each time that a broker is down (each one in a hang is a slow call);
# 3. a healthy broker gets something **at least every 6 s**, also soon after it has come back, and also if it was slow
#    once;
# 4. at most about **one probe a second** to a broker, and none to those that are well.

# %% [markdown] tags=["hints"]
# - What must your class remember of each broker? One bit is enough: is it down?
# - A broker goes down with its first failed attempt. This is the moment to spawn *one* task for it; a second failure must
#   not spawn another one. It is up again when a probe is answered, and only then.
# - In the task: sleep 1000 ms, and as long as `await self.probe(broker)` is `False`, sleep 1000 ms more. Then take the broker out
#   of `self.down`. A slow attempt that went well is no failure.

# %% tags=["exercise"]
class MyFaultTolerance:
    """Which brokers to avoid: those that failed, until they answer a probe."""

    def __init__(self, node, probe):
        self.node = node
        self.probe = probe
        self.down = set()

    def update_fault_item(self, broker, latency_ms, failed):
        """Note how an attempt at a broker went."""
        ### BEGIN SOLUTION
        if failed and broker not in self.down:
            self.down.add(broker)
            self.node.spawn(self.watch(broker), f"watch {broker}")
        ### END SOLUTION

    def is_available(self, broker):
        """May the next attempt go to this broker?"""
        ### BEGIN SOLUTION
        return broker not in self.down
        ### END SOLUTION

    async def watch(self, broker):
        """Probe a broker until it answers (add what you need)."""
        ### BEGIN SOLUTION
        await self.node.sleep(1_000)
        while not await self.probe(broker):
            await self.node.sleep(1_000)
        self.down.discard(broker)
        ### END SOLUTION


# %% tags=["check"]
check("04/fault-tolerance", MyFaultTolerance)

# %% [markdown]
# What you have built has a name: a **circuit breaker** with health checks. The first order that meets a hanging broker
# still pays: nobody can know of a hang before somebody has waited. And a probe is another
# kind of request than an order. A broker whose disk is stuck may answer the one and not the other; then the rule
# changes its mind every second. RocketMQ's own probe asks for the largest offset of a queue, and has this weakness too.
#
# ## Today's RocketMQ, and where to read on
#
# - The table of rests was made much milder in RocketMQ 5, and the probes were added. Both are still off by default, and
#   so is the limit for a single attempt.
# - What we called "the producer" is a producer that waits (`send`). An asynchronous one that meets a hang fails after
#   3 to 5 s, and one-way messages vanish without a word. Labs 15 and 03 show them.
# - `client/.../impl/producer/DefaultMQProducerImpl.java`: `sendDefaultImpl`, the loop with the watch.
# - `client/.../latency/MQFaultStrategy.java` and `LatencyFaultToleranceImpl.java`: the two tables.
# - `client/.../impl/producer/TopicPublishInfo.java`: the turn of the queues.
#
# Three questions to take home:
#
# 1. A program has 20 threads that send, and `latency` settings. The rest of a hanging broker ends. How many
#    calls fail in the next 3 s? Would your rule be better, and why?
# 2. You set `sendMsgTimeout` to 10 s "to be safe". What does a hanging broker cost now, and what did you gain?
# 3. Your service sends 2,000 orders a second, from 20 threads that wait for each answer, to 10 brokers. One hangs. With
#    default settings, how long until all 20 threads stand still, and how many orders a second get through then?
#
# ## What you expected, and what was seen

# %%
reveal()
