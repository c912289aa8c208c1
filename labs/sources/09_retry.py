# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   mqlab:
#     title: Once more, with delay
#     question: A listener cannot consume a message. Where does the message go, and when does it come back?
#     objectives:
#       - say when each attempt comes, where the message is in between, and where it ends
#       - choose between a concurrent and an orderly listener when one message may be bad
#       - write a listener that does its work once, although messages come twice
#     minutes: 100
#     prerequisites: [00 Tour, 02 Store]
#     wrong_predictions:
#       - "where: it stays in Orders, marked as failed; a commit log cannot be changed, so nothing can be marked"
#       - "calls: the number of the setting; the first call is no retry"
#       - "wait-minutes: 10 s for each retry, or 1 s and 5 s counted as well; the waits begin at level 3 and grow"
#       - "records: one for each attempt; each retry is stored twice, parked and due"
#       - "no-broker: it is lost; or after 10 s, the first delay"
#       - "local-calls: the outage divided by 5 s; the wait begins when a call has failed"
#       - "local-times: all calls so far; those during the outage were counted in the consumer alone"
#       - "late: 0, or up to a second"
#       - "killed-twice: none, since all were delivered before the kill; or all, as if nothing had been noted"
#       - "behind: after 10 s, behind the poison"
#       - "orderly-default: 16 or 17; an orderly listener without a limit never gives up"
#       - "hang-minutes: 15, as if each call had an alarm clock of its own"
#       - "both-run: no; nobody stops the first call"
# ---

# %% tags=["parameters"]
student_id = ""

# %% [markdown]
# An order comes in, and the listener that should send a bill finds that the bank does not answer. What now? Throwing
# the order away is wrong. Standing still until the bank is back is wrong as well, since a thousand other orders wait.
# So the listener says "not now, later", and goes on. This lab is about that *later*.
#
# The topic `Orders` has one queue, and the group `billing` one consumer. Its **listener** (the function that gets each
# message) says `RECONSUME_LATER` to every message. It has been running for half a minute when the first order is sent.

# %%
from itertools import pairwise

from mqlab import ConsumeConcurrentlyStatus, Lab, Message, scenarios
from mqlab.check import NotSolvedYet, check, draws_for, predict, reveal, say, seed_for
from mqlab.scenarios.delivered_again import SHORT_LEVELS, add_group, never, no_poison, open_shop
from mqlab.views import Journey, Series, Table, TimeChart
from mqlab.views.time_chart import BLUE, ORANGE, VERMILION
from mqlab_widgets import Stepper

seed = seed_for(student_id, "09")
draw = draws_for(seed)
SUCCESS, LATER = ConsumeConcurrentlyStatus.CONSUME_SUCCESS, ConsumeConcurrentlyStatus.RECONSUME_LATER

# %%
most = draw.between("most", 8, 16)
lab = scenarios.get("always-fails").build(seed, parameters={"max_reconsume_times": most})
order = lab.history.last("SendSucceeded").msg_id
lab.run_until_event("ConsumeFinished").fields

# %% [markdown]
# ## Round one: where is it? (11 minutes)
#
# The listener has failed. The message will come again in some seconds. In which place does it wait?

# %% tags=["prediction"]
predict("where", "Where is the message until it comes again?",
        choices=["in the memory of the consumer", "in Orders, marked as failed",
                 "in another topic, as a copy"], prediction=...)

# %%
back = lab.run_until_event("SendBackStored")
lab.run_for(ms=1)
Table("topics with messages", ("topic", "messages"),
      [(row[0], row[-1]) for row in lab.topics(system=True).rows if row[-1]])

# %%
waiting = Journey.of(lab.history, order, "billing", end_ms=lab.now_ms)
reveal("where", "c" if waiting.copies[-1].topic != "Orders" else "b",
       why="a copy waits in SCHEDULE_TOPIC_XXXX; the original stays where it is, unchanged")

# %% [markdown]
# The consumer has **given it back**: a request `CONSUMER_SEND_MSG_BACK` to the broker that stores the message. It
# carries no message, only its place in the commit log. The broker reads it there and stores a copy:

# %%
back.fields

# %% [markdown]
# `SCHEDULE_TOPIC_XXXX` (the name is a constant of `TopicValidator`) is a topic of the broker's own. It has
# one queue for each **delay level**. There are 18 levels (`messageDelayLevel`): 1 s, 5 s, 10 s, 30 s, 1 to 10 min in
# steps of one, 20 min, 30 min, 1 h, 2 h. Level 3 is 10 s, and lies in queue 2. This is the copy:

# %%
lab.queue("SCHEDULE_TOPIC_XXXX", 2).record(0, each_property=True)

# %% [markdown]
# Look at `reconsumeTimes`, which is 1 now, and at the properties. `REAL_TOPIC` says where the copy will go when its time
# has come: to `%RETRY%billing`, a topic that only the group `billing` reads (each consumer subscribes to the one of its
# group without being told). `RETRY_TOPIC` says where the message came from at first. And how does the broker know when
# it is due, without reading each waiting message again and again? From the queue's entry:

# %%
lab.queue("SCHEDULE_TOPIC_XXXX", 2).entry(0)

# %% [markdown]
# In every other topic the last eight bytes hold the hash of a tag (lab 02). Here they hold a time: when the message is
# due. Everybody in this queue waits equally long, so the first one is always due first, and
# `ScheduleMessageService` looks at the head of each queue only, every 100 ms (`DELAY_FOR_A_WHILE`). This is
# the reason why there are levels, and not any delay you like: a queue with different delays would have to be sorted.
#
# On to the moment when the message comes again:

# %%
again = lab.run_until_event("ConsumeStarted")
lab.queue("%RETRY%billing").record(0, each_property=True)

# %%
names = ["Orders", "SCHEDULE_TOPIC_XXXX", "%RETRY%billing"]
of_order = Journey.of(lab.history, order, "billing", end_ms=lab.now_ms)
Table("three records of one message", ("", *names), [
    ("in queue", *(copy.queue_id for copy in of_order.copies)),
    ("at in the commit log", *(copy.commit_log_offset for copy in of_order.copies)),
    ("bytes", *(copy.size for copy in of_order.copies)),
    ("reconsumeTimes", *(copy.reconsume_times for copy in of_order.copies)),
    ("stored at ms", *(round(copy.at_us / 1_000) for copy in of_order.copies)),
])

# %% [markdown]
# The listener is shown the topic `Orders`, as if nothing had happened: `resetRetryAndNamespace` puts the name from
# `RETRY_TOPIC` back. Only `reconsumeTimes` tells that this is not the first time.
#
# And the queue of `Orders`? It has moved on at once. For the broker the order is *consumed*:

# %%
lab.history.last("OffsetUpdated", topic="Orders").fields

# %% [markdown]
# ### A small exercise: where, and until when?
#
# A copy is stored at `stored_ms`, to wait on a `level`. `delays_ms` are the lengths of all levels, level 1 first; a level above
# the last one counts as the last one. In which queue of `SCHEDULE_TOPIC_XXXX` does it lie, and when is it due? Return both.

# %%
say(f"In your world a copy on level 3, stored at {round(of_order.copies[1].at_us / 1_000)} ms, is due 10,000 ms later.")

# %% [markdown] tags=["hints"]
# - First the level: it may be too large. `min(...)` helps.
# - Levels are counted from 1, queues and the places of a list from 0.
# - The queue number is also the place of its delay in the list, once the level is cut and counted from 0. From when on does the delay count?

# %% tags=["exercise"]
def parked(stored_ms, level, delays_ms):
    """The queue in which a copy waits, and when it is due."""
    ### BEGIN SOLUTION
    queue = min(level, len(delays_ms)) - 1
    return queue, stored_ms + delays_ms[queue]
    ### END SOLUTION

# %% tags=["check"]
check("09/parked", parked)

# %% [markdown]
# ## Round two: how often, and how long? (20 minutes)
#
# The listener fails again. This time it takes level 4, then level 5: `3 + reconsumeTimes` (`consumerSendMsgBack` in the
# broker), where `reconsumeTimes` is the number that the listener has just been shown. When there are no higher levels,
# level 18 is taken again.

# %%
say(f"How often this may happen says `maxReconsumeTimes` of the consumer. Ours has **{most}**. (The default is 16.)")

# %% tags=["prediction"]
predict("calls", "The listener always fails. How many times is it called with this message?",
        unit="calls", prediction=...)

# %% tags=["prediction"]
predict("wait-minutes", "How many minutes lie between the first call and the last?", unit="min", prediction=...)

# %% tags=["prediction"]
predict("records", "How many records of this one message are in the commit log in the end?",
        unit="records", prediction=...)

# %%
lab.run_until_event("MessageStored", topic="%DLQ%billing", limit_ms=20_000_000)
lab.run_for(seconds=60)
life = Journey.of(lab.history, order, "billing", scale="log")
life

# %%
first, last = life.attempts[0], life.attempts[-1]
reveal("calls", len(life.attempts), why=f"one first time and {most} retries")

# %%
reveal("wait-minutes", round((last.begin_us - first.begin_us) / 60e6, 1),
       why=f"10 s + 30 s + 1 min + ...: levels 3 to {2 + most}")

# %%
reveal("records", len(life.copies), why=f"1, and {most} times 2 (parked, and due), and the dead letter")

# %% [markdown]
# After the last failure there is no wait. The copy goes straight to `%DLQ%billing`, the **dead-letter queue**. Nobody
# reads it unless somebody subscribes to it. It is kept as long as everything in the commit log (72 hours by default),
# and then it is gone. A dead-letter queue that no person looks at is a slow way of throwing messages away.

# %%
letter = lab.queue("%DLQ%billing").record(0, each_property=True)
Table("the dead letter", ("field", "says"), [(name, letter[name].value) for name in (
    "topic", "reconsumeTimes", "body", "KEYS", "UNIQ_KEY", "RETRY_TOPIC", "ORIGIN_MESSAGE_ID", "storeTimestamp")])

# %% [markdown]
# Everything that one needs to find the cause is there: `ORIGIN_MESSAGE_ID` leads to the original, `RETRY_TOPIC` to its topic,
# `KEYS` to the business.
#
# ### A small exercise: the next wait
#
# Write it down: how long is the wait after a failure? `reconsume_times` is what the listener was shown, `delays_ms` are the
# lengths of the levels, level 1 first, and `most` is `maxReconsumeTimes`. For a dead letter there is no wait: `None`.

# %% [markdown] tags=["hints"]
# - First the dead letter: at which value of `reconsume_times` has the message been taken back as often as is allowed?
# - The level is `3 + reconsume_times`, but never more than there are levels.
# - So there are two answers, and a dead letter has no delay at all. Levels are counted from 1, and the places of a list from 0.

# %% tags=["exercise"]
def next_wait_ms(reconsume_times, delays_ms, most):
    """How long the message waits after this failure, in ms; None when it becomes a dead letter."""
    ### BEGIN SOLUTION
    if reconsume_times >= most:
        return None
    return delays_ms[min(3 + reconsume_times, len(delays_ms)) - 1]
    ### END SOLUTION

# %% tags=["check"]
check("09/next-wait", next_wait_ms)

# %% [markdown]
# Measured on a real RocketMQ 5.3.3, with levels shortened to 1 s, 2 s, 3 s, ... and `maxReconsumeTimes` 4, so that it did
# not take hours. We set up the same:

# %%
settings = {"levels": SHORT_LEVELS, "max_reconsume_times": 4}
short = scenarios.get("always-fails").build(seed, parameters=settings)
short.run_for(seconds=20)
ours = Journey.of(short.history, short.history.last("SendSucceeded").msg_id, "billing")
ours

# %%
waits = [round((b.begin_us - a.begin_us) / 1_000) for a, b in pairwise(ours.attempts)]
dead_after = round((ours.copies[-1].at_us - ours.attempts[-1].begin_us) / 1_000, 1)
real = ["3077 to 3591", "4137 to 4332", "5070 to 5138", "6121 to 6152"]
Table("ms from giving back to the next call", ("attempt", "level", "real, three runs", "here"),
      [(n + 2, n + 3, told, waited) for n, (told, waited) in enumerate(zip(real, waits, strict=True))]
      + [("dead letter", "", "9 to 20", dead_after)])

# %% [markdown]
# ### What counts as a failure
#
# Six groups read the same order, each with a listener that fails in its own way.

# %%
def raises(messages, context):
    raise ConnectionError("the bank does not answer")

def forgets(messages, context):
    pass

def in_five_seconds(messages, context):
    context.delay_level_when_next_consume = 2
    return LATER

def hopeless(messages, context):
    context.delay_level_when_next_consume = -1
    return LATER

lab = Lab(seed=seed)
shop = await open_shop(lab)
listeners = {"later": never, "raises": raises, "forgets": forgets,
             "in-five": in_five_seconds, "hopeless": hopeless}
for name, listener in listeners.items():
    await add_group(lab, name, listener)
await add_group(lab, "broadcast", never, message_model="BROADCASTING")
lab.run_for(seconds=30)
sent = await shop.send(Message("Orders", b"order 2"))

# %%
lab.run_for(seconds=12)
journeys = {name: Journey.of(lab.history, sent.msg_id, name, end_ms=lab.now_ms)
            for name in (*listeners, "broadcast")}
header = ("group", "first call ended with", "calls", "again after s", "copies went to")
Table("twelve seconds later", header, [
    (name, journey.attempts[0].status, len(journey.attempts),
     journey.table().rows[1][2] if len(journey.attempts) > 1 else "never",
     ", ".join(dict.fromkeys(copy.topic for copy in journey.copies[1:])) or "nowhere")
    for name, journey in journeys.items()])

# %% [markdown]
# - An error is a failure, and so is **nothing**: a listener that forgets its `return` gets every message 17 times (by
#   default). (The warning above comes from mqlab. In RocketMQ you find the error in the client's own log file only, if
#   you know where that is.)
# - `delayLevelWhenNextConsume` overrules the level; -1 means: straight to the dead letters. Use it for what will never
#   get better: a message that nobody can read is as unreadable in two hours.
# - In broadcasting nothing is given back. What fails is dropped, with a line in the log.
#
# ### A small exercise: two kinds of failure
#
# `bill(message)` is given to you. It raises `ValueError` when nobody can read the order, now or later, and `ConnectionError`
# when the bank does not answer. Write the listener: the first kind becomes a dead letter at once, the second
# comes again after 5 s, and all else is a success.

# %% [markdown] tags=["hints"]
# - Two `except` branches. In both the listener returns `RECONSUME_LATER`; they differ in one number.
# - The number is `context.delay_level_when_next_consume`, a *level*, not seconds. Look at the six groups above.
# - -1 is the dead letter, and 5 s is level 2. And do not forget the `return` after a good call.

# %% tags=["exercise"]
from mqlab import ConsumeConcurrentlyStatus


def make_listener(bill):
    """A listener that bills one order, and tells the two kinds of failure apart."""
    def listener(messages, context):
        ### BEGIN SOLUTION
        try:
            bill(messages[0])
        except (ValueError, ConnectionError) as error:
            context.delay_level_when_next_consume = -1 if isinstance(error, ValueError) else 2
            return ConsumeConcurrentlyStatus.RECONSUME_LATER
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS
        ### END SOLUTION

    return listener

# %% tags=["check"]
check("09/two-failures", make_listener)

# %% [markdown]
# ## Round three: no broker to give it back to (9 minutes)
#
# Once more a listener that always fails, and each call takes some time. The broker takes the message back a few times; then
# it is killed, while a call is at work.

# %%
work_s, outage_s = draw.between("work", 1, 4), draw.between("outage", 20, 50)
earlier = draw.between("earlier", 1, 3)

async def slowly_fails(messages, context):
    await context.sleep(work_s * 1_000)
    return LATER

lab = Lab(seed=seed)
shop = await open_shop(lab)
await add_group(lab, "billing", slowly_fails)
lab.run_for(seconds=30)
sent = await shop.send(Message("Orders", b"order 3"))
lab.run_until_event("ConsumeStarted", reconsume_times=earlier)
lab.crash("broker-a")
killed = lab.now_ms
say(f"The broker has taken the message back **{earlier}** times.")

# %% tags=["prediction"]
predict("no-broker",
        "The listener says RECONSUME_LATER, and there is no broker. What happens to the message?",
        choices=["it is lost", "the same consumer gets it again 5 s later",
                 "it comes again from the broker when that is back"], prediction=...)

# %%
failed = lab.run_until_event("SendBackFailed")
failed.fields

# %% [markdown]
# The consumer tried two ways: `CONSUMER_SEND_MSG_BACK`, and when that failed an ordinary send of a copy to
# `%RETRY%billing` (with a producer that each consumer has inside). Both need a broker.

# %%
here = lab.run_until_event("ConsumeStarted")
reveal("no-broker", "b" if here.ts_ms < failed.ts_ms + 6_000 else "c",
       why="submitConsumeRequestLater: again here, 5 s after the failure")

# %% [markdown]
# So the message stays in the consumer's memory and is tried **here**, 5 s after each failure, until the broker is back.

# %%
say(f"A call of our listener takes **{work_s} s**, and the broker is down for **{outage_s} s** from its kill on.")

# %% tags=["prediction"]
predict("local-calls", "How many more calls begin while the broker is down? (The one at work when it was killed "
        "is not counted.)", unit="calls", prediction=...)

# %%
lab.run_for(ms=killed + outage_s * 1_000 - lab.now_ms)
calls = len([r for r in lab.history.find("ConsumeStarted") if r.ts_ms > killed])
reveal("local-calls", calls, why=f"one every {work_s + 5} s: the work, and 5 s of waiting")

# %%
say("Now the broker is started again. When it is back, the next give-back is stored. So far there were "
    f"{earlier + 1 + calls} calls.")

# %% tags=["prediction"]
predict("local-times", "The broker has taken the message back. What does reconsumeTimes say at the "
        "call after that?", unit="times", prediction=...)

# %%
lab.restart("broker-a")
lab.run_until_event("SendBackStored")
back_again = lab.run_until_event("ConsumeStarted")
lab.run_until_event("ConsumeFinished")
Journey.of(lab.history, sent.msg_id, "billing")

# %%
reveal("local-times", back_again.reconsume_times,
       why=f"the broker counts from the record in its own commit log, where it says {earlier}")

# %% [markdown]
# The consumer had counted each of its calls in its own copy. The broker does not ask; it reads its record and adds one.
# **`reconsumeTimes` is not the number of calls.** It is the number of times that a broker has taken the message back.
#
# ### A small exercise: what will it say?
#
# A listener fails again and again. `stored` says for each failure, in order, whether a broker has taken the message back (`True`),
# or it stayed in the consumer (`False`). What does `reconsumeTimes` say at the next call? The consumer adds one to what it
# has shown last; a broker adds one to what *it* knew last, and a copy that it stores is what the consumer sees next.

# %%
say(f"Your message began with `[{', '.join(['True'] * earlier)}, False, ...]`.")

# %% [markdown] tags=["hints"]
# - Two numbers: what the broker knows, and what was shown last. Both begin at 0.
# - `True`: the broker's number grows by one, and this is shown. `False`: only what is shown grows by one.
# - So a failure to send back never reaches the broker's number, and the next success shows that number again: what was shown in between is forgotten.

# %% tags=["exercise"]
def says_next(stored):
    """What reconsumeTimes says at the call after these failures."""
    ### BEGIN SOLUTION
    at_broker = shown = 0
    for one in stored:
        at_broker += one
        shown = at_broker if one else shown + 1
    return shown
    ### END SOLUTION

# %% tags=["check"]
check("09/says-next", says_next)

# %% [markdown]
# ## Round four: delay as a service (10 minutes)
#
# The same machinery is open to producers: `Message(..., delay_level=3)`.

# %%
reminders, gap_ms = draw.between("reminders", 16, 26), draw.between("gap", 53, 97)
say(f"The shop sends **{reminders}** reminders, one every {gap_ms} ms.")

# %% tags=["prediction"]
predict("late", "Level 3 is 10 s. By how many ms at most will one of them be late?", unit="ms", prediction=...)

# %%
lab = Lab(seed=seed)
shop = await open_shop(lab, flush_disk_type="SYNC_FLUSH")
await add_group(lab, "readers", no_poison)
started = lab.history.last("NodeStarted", node="broker-a").ts_ms
lab.run_for(ms=started + 30_000 - draw.between("before", 400, 1_000) - lab.now_ms)
asked = {}
for _ in range(reminders):
    began = lab.now_ms
    asked[(await shop.send(Message("Orders", b"reminder", delay_level=3))).msg_id] = began
    lab.run_for(ms=gap_ms)
lab.run_for(seconds=10.5)
late = [round(r.ts_ms - asked[r.msg_id] - 10_000)
        for r in lab.history.find("ConsumeStarted", topic="Orders")]
sorted(late)

# %%
reveal("late", max(late), why="0 to 100 ms until the queue is looked at, and a few for the way")

# %% [markdown]
# Measured on the real one, for levels 1 to 4: 29 to 105 ms late (236 ms once), never early. A level above 18
# counts as 18: who asks for level 25 waits two hours. A message that wants to come in 7 seconds cannot be
# had with levels (see the end of the lab).
#
# ### Break it: the broker is killed
#
# How far each level has been delivered the broker notes in a file, `delayOffset.json`: 10, 20, 30, 40 s after its start,
# and so on (`flushDelayOffsetInterval`). All reminders have just been delivered and consumed. We kill the broker and
# start it again. Not a byte is lost: this one has a synchronous flush.

# %%
came = [(r.ts_ms - started) / 1_000 for r in lab.history.find("ConsumeStarted", topic="Orders")]
say(f"The reminders came one by one from {came[0]:.2f} s to {came[-1]:.2f} s after the start of the broker, "
    f"and now it is {(lab.now_ms - started) / 1_000:.2f} s.")

# %% tags=["prediction"]
predict("killed-twice", f"How many of the {reminders} reminders come a second time?", unit="messages", prediction=...)

# %%
killed = lab.now_ms
lab.crash("broker-a")
lab.run_for(seconds=2)
lab.restart("broker-a")
lab.run_for(seconds=30)
reminder = list(asked)[-1]
Table("the last reminder", ("consumed, s from the kill", "queue offset", "reconsumeTimes"), [
    (round((r.ts_ms - killed) / 1_000, 1), r.queue_offset, r.reconsume_times)
    for r in lab.history.find("ConsumeStarted", topic="Orders", msg_id=reminder)])

# %%
twice = [r for r in lab.history.find("ConsumeStarted", topic="Orders") if r.ts_ms > killed]
reveal("killed-twice", len(twice), why="they were delivered after the last note, at 40 s; the others before it")

# %% [markdown]
# They come from other places of the queue, as new messages, with `reconsumeTimes` 0. Nothing in them says
# "this one was here before", except the message id and the keys. Keep this in mind for the last exercise.
#
# ### A small exercise: delivered, and not noted
#
# `delivered_s` are the times at which delayed messages were delivered, `killed_s` is the kill, all in seconds from the start of
# the broker. The notes come at 10 s, 20 s, 30 s, ... How many of the messages come a second time? (No kill and no delivery
# comes at the moment of a note.)

# %%
say(f"Your reminders: {reminders} deliveries around 40 s, and a kill at {(killed - started) / 1_000:.2f} s.")

# %% [markdown] tags=["hints"]
# - When was the last note before the kill? What was delivered before it is safe.
# - Notes are made every ten seconds, so it is the last multiple of ten that is not behind the kill. Whole-number division finds it.
# - Now count what was delivered behind that moment. At the very moment is not behind it.

# %% tags=["exercise"]
def come_again(delivered_s, killed_s):
    """How many of the delayed messages are delivered a second time."""
    ### BEGIN SOLUTION
    noted_s = killed_s // 10 * 10
    return sum(at_s > noted_s for at_s in delivered_s)
    ### END SOLUTION

# %% tags=["check"]
check("09/come-again", come_again)

# %% [markdown]
# ## Round five: a bad message in front of good ones (11 minutes)
#
# Orders come at a steady pace. One of them is **poison**: nobody will ever be able to consume it. Three groups read them
# all: one with a concurrent listener, two with an **orderly** one, which gets the messages of a queue strictly one
# after another (the queue is locked for one consumer, and one thread works on it). One of these allows some retries, the
# other one has RocketMQ's default.

# %%
pace_ms, poison_at = draw.between("pace", 300, 900, step=100), draw.between("poison at", 2, 6)
retries, window_s = draw.between("retries", 2, 6), draw.between("window", 18, 38)
limited = f"orderly-{retries}"
say(f"An order comes every **{pace_ms} ms**, and the one with offset **{poison_at}** is the poison. "
    f"The group `{limited}` allows **{retries}** retries.")

# %% tags=["prediction"]
predict("behind", "How many seconds after the poison does the concurrent group get "
        "the message behind it?", unit="s", prediction=...)

# %% tags=["prediction"]
predict("orderly-default", "And how many times does the orderly group with default settings "
        f"try the poison within {window_s}.5 s of the first call?", unit="calls", prediction=...)

# %%
day = {"messages": 40, "poison_at": poison_at, "orderly_times": retries, "pace_ms": pace_ms}
lab = scenarios.get("poison").build(seed, parameters=day)
zero = lab.now_ms
lab.run_for(seconds=window_s + 8)

def progress(group):
    done = [round((r.ts_ms - zero) / 1_000, 3) for r in lab.history.find("ConsumeFinished", group=group)
            if r.status in ("SUCCESS", "CONSUME_SUCCESS") and r.ts_ms < zero + 16_000]
    return [(0.0, 0), *((second, n) for n, second in enumerate(done, 1)), (16.0, len(done))]

TimeChart("One bad message in a stream: the first sixteen seconds", "consumed, messages", [
    Series(f"orderly, {retries} retries", progress(limited), ORANGE, "broad"),
    Series("orderly, default", progress("orderly"), VERMILION, "dashed"),
    Series("concurrent", progress("concurrent"), BLUE),
])

# %%
bad = {group: [r for r in lab.history.find("ConsumeStarted", group=group)
               if r.queue_offset == poison_at or r.reconsume_times]
       for group in ("concurrent", "orderly", limited)}
behind = lab.history.find("ConsumeStarted", group="concurrent", queue_offset=poison_at + 1, topic="Orders")
reveal("behind", round((next(iter(behind)).ts_ms - bad["concurrent"][0].ts_ms) / 1_000, 1),
       why="it is just the pace of the sender: the poison is given back and nobody waits for it")

# %%
in_time = [r for r in bad["orderly"] if r.ts_ms <= bad["orderly"][0].ts_ms + window_s * 1_000 + 500]
reveal("orderly-default", len(in_time), why="once a second (suspendCurrentQueueTimeMillis), and there is no end")

# %% [markdown]
# In the picture the thin blue line runs straight on. The broad orange one stands still for some seconds and then catches
# up at once (from there on it lies below the blue one). The dashed red one never moves again.
#
# An orderly listener cannot give a message back, since the ones behind would overtake it. It **suspends** the queue
# for a second, and tries again. With a limit of n retries the queue stands for n seconds, and then the poison becomes a
# dead letter: sent to the `%RETRY%` topic of the group, which the broker turns into `%DLQ%` at once. By default there is no limit:
# `maxReconsumeTimes` is -1, which means 16 for a concurrent listener, and **2,147,483,647** for an orderly one. At one try
# a second that is 68 years.

# %%
tries = [round(b.ts_ms - a.ts_ms) for a, b in pairwise(bad[limited])]
letter = lab.history.last("MessageStored", topic=f"%DLQ%{limited}")
Table("the poison in the orderly group with a limit (the real one: 4 retries)", ("step", "real, three runs, ms", "here, ms"), [
    ("from try to try", "1001 to 1008", ", ".join(str(ms) for ms in tries)),
    ("from the last try to the dead letter", "8 to 22", round(letter.ts_ms - bad[limited][-1].ts_ms, 1)),
])

# %% [markdown]
# The same world to play with, shortly before the poison is sent. Watch what the three groups hold in their
# memory, and try to free the queue that stands still: does it help to crash the consumer and restart it? Or the broker?

# %%
Stepper(scenarios.get("poison").build(seed, parameters=day).run_for(ms=(poison_at - 1) * pace_ms))

# %% [markdown]
# **So an orderly group needs a limit, and the limit means that order is broken on purpose.** Whoever reads the dead letters
# later gets that message after all the others. If that is not allowed the queue must stand still; decide it
# before the night when it happens.
#
# ### A small exercise: who waits, and for how long?
#
# An order comes every `pace_ms`. One is poison, and the orderly group allows `retries` retries. How many ms after the first call
# with the poison is the listener called with the n-th order behind it? Calls themselves take no time here.

# %%
say(f"With your pace of {pace_ms} ms and {retries} retries: the first order behind the poison, and the twentieth?")

# %% [markdown] tags=["hints"]
# - For how long does the queue stand still? Before that nobody behind the poison has a turn.
# - And an order cannot be consumed before it was sent: the n-th one comes `n * pace_ms` after the poison.
# - Both must be over, so one of the two times decides. Each retry takes a second.

# %% tags=["exercise"]
def called_after_ms(pace_ms, retries, n):
    """How many ms after the poison's first call the n-th order behind it is consumed."""
    ### BEGIN SOLUTION
    stands_ms = retries * 1_000
    return max(n * pace_ms, stands_ms)
    ### END SOLUTION

# %% tags=["check"]
check("09/behind-poison", called_after_ms)

# %% [markdown]
# ## Round six: it neither succeeds nor fails (9 minutes)
#
# The bank takes the call and says nothing for 50 minutes. The listener waits. A service in each consumer looks for such
# cases: `consumeTimeout` is 15 minutes, and every 15 minutes it looks (`cleanExpireMsg`), for the first time
# 15 minutes after the consumer's start.

# %%
async def hangs_at_first(messages, context):
    if messages[0].reconsume_times == 0:
        await context.sleep(50 * 60_000)
    return SUCCESS

lab = Lab(seed=seed)
shop = await open_shop(lab)
await add_group(lab, "billing", hangs_at_first)
running_min = draw.between("running", 1, 14)
lab.run_for(seconds=60 * running_min)
sent = await shop.send(Message("Orders", b"order 4"))
say(f"The consumer has been running for **{running_min} min** when the order comes.")

# %% tags=["prediction"]
predict("hang-minutes", "After how many minutes is the order given back?", unit="min", prediction=...)

# %% tags=["prediction"]
predict("both-run", "The listener is called with it again. Has the first call ended by then?",
        choices=["yes, it was interrupted", "no, both run at once"], prediction=...)

# %%
given = lab.run_until_event("MessageGivenBack", limit_ms=3_600_000)
second = lab.run_until_event("ConsumeStarted", reconsume_times=1)
ended = list(lab.history.find("ConsumeFinished", msg_id=sent.msg_id))
started = lab.history.last("ConsumeStarted", msg_id=sent.msg_id, reconsume_times=0).ts_ms
reveal("hang-minutes", round((given.ts_ms - started) / 60_000, 1),
       why=f"at the look after 15 min it was {15 - running_min} min old; the next look comes after 30 min")

# %%
reveal("both-run", "a" if ended else "b", why="nobody can stop a thread; the first call does not know")

# %%
lab.run_for(seconds=36 * 60)
Journey.of(lab.history, sent.msg_id, "billing")

# %% [markdown]
# Until it was given back the group's offset stood at this message: after a crash *everything* behind it would have come again.
# And the hanging call keeps its thread. Twenty such calls, and the pool of 20 threads is empty. `consumeTimeout` is no
# cure, it is a way to keep the queue going. The cure is a time-out in the call of the bank.
#
# When it finally ends, after 50 min, the first call does whatever it does. So does the second one. **The same
# order, billed twice, in one healthy consumer, without any crash.**
#
# ### A small exercise: given back, but when?
#
# A consumer has been running for `running_min` minutes when a call begins that hangs. `timeout_min` is its `consumeTimeout`; so
# many minutes after its start it looks for the first time, and then every so many minutes again. How many minutes after its begin
# is the call's message given back? (A message that is exactly as old as the time-out is old enough.)

# %%
say(f"Your consumer had been running for {running_min} min, and its time-out was the usual one, 15 min.")

# %% [markdown] tags=["hints"]
# - On the consumer's own clock: from which minute on is the message old enough? And which look comes then?
# - It is the first multiple of `timeout_min` that is not before `running_min + timeout_min`. A `while` loop may go from look to look.
# - The answer is not the look itself but how long the work has run by then: it began at `running_min`.

# %% tags=["exercise"]
def given_back_after_min(running_min, timeout_min):
    """How many minutes after its begin a hanging call's message is given back."""
    ### BEGIN SOLUTION
    look = timeout_min
    while look < running_min + timeout_min:
        look += timeout_min
    return look - running_min
    ### END SOLUTION

# %% tags=["check"]
check("09/given-back", given_back_after_min)

# %% [markdown]
# ## Build it: book each payment once (25 minutes)
#
# We count the ways in which a message came twice today: a retry after a failure that came *after* the work was done;
# the broker's kill; the hanging call. Lab 19 has a producer that sends again when it is not sure, lab 04 a `send`
# that did so by itself. RocketMQ promises **at least once**, never "exactly once". The rest is yours: the *effect* must
# be there once. Such a listener is called **idempotent**.
#
# Two processes keep the books of a shop. A message says `b"ann 4990"`: add 4990 cents to Ann's account.
# The books are in a **ledger**, a database that outlives the processes. Its methods take time, and a process can be
# killed at any `await`:
#
# - `await ledger.has(note)`: is this note there? Any text can be a note.
# - `await ledger.write(add=(account, cents))` adds; `await ledger.write(note=...)` writes a note; with both, both are done or
#   none. If the note is there already it raises `AlreadyNotedError` and does nothing.
# - It may raise `LedgerTimeoutError`: no answer came. The write is done, or not; nobody knows.
#
# The keeper object is made anew when its process starts. In 50 worlds keepers are killed and hang in the middle of
# their work, the broker is killed, and the till sends some payments again: with the same key (`message.keys`), as a
# *new* message. Judged is this:
#
# 1. each payment is in the books exactly once (two payments may be alike: who drinks two coffees pays twice);
# 2. a message that nobody can read (`b"ann ??"`) is a dead letter before the day is over, without waiting for 17 calls;
# 3. nothing else is a dead letter.

# %% [markdown] tags=["hints"]
# - Which text is the same in all messages about one payment, and differs between two payments that are alike? Neither the
#   message id nor the offset: the till's second message and each copy have other ones. Look at what the till sets.
# - A process can be killed between any two `await`s. So how many writes may a payment have? Look at what `ledger.write` can
#   do in one call, and what it does when the note is there already. Then `has` is not needed at all.
# - One call, `await self.ledger.write(note=message.keys, add=(account, int(cents)))`. `AlreadyNotedError` means that it is
#   done: success. `LedgerTimeoutError` means that nobody knows: later. And a body that cannot be split and read as a
#   number gets the delay level -1, as in round two.


# %% tags=["exercise"]
from mqlab import ConsumeConcurrentlyStatus
from mqlab.scenarios.payment_day import AlreadyNotedError, LedgerTimeoutError


class Keeper:
    """Books payments into a ledger, each once."""

    def __init__(self, ledger):
        self.ledger = ledger

    async def consume_message(self, messages, context):
        """Book the payment (there is one message in each call), and return a ConsumeConcurrentlyStatus."""
        ### BEGIN SOLUTION
        message = messages[0]
        try:
            account, cents = message.body.decode().split()
            entry = (account, int(cents))
        except ValueError:
            context.delay_level_when_next_consume = -1
            return ConsumeConcurrentlyStatus.RECONSUME_LATER
        try:
            await self.ledger.write(note=message.keys, add=entry)
        except AlreadyNotedError:
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS
        except LedgerTimeoutError:
            return ConsumeConcurrentlyStatus.RECONSUME_LATER
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS
        ### END SOLUTION


# %% tags=["check"]
check("09/idempotent-listener", Keeper)

# %% [markdown]
# Three things make it work. The *key of the business* is noted, neither the message id (the till's second message has
# another one) nor the offset (each copy has another one). The note and the entry are *one write*: between two writes there
# is always a place to die. And the answer to "I do not know whether it was done" is *do it again*, which is allowed
# only because it is idempotent.
#
# To look at a world in which your keeper fails, open the failed check's world: keep the verdict (`verdict = check(...)`), then
# `verdict.open()`. The story of one payment alone: `day = PaymentDay(Keeper, 13).play()`, then
# `print(day.story("payment-4"))` (`mqlab.scenarios.payment_day`).
#
# ## What the articles say, and today's RocketMQ (5 minutes)
#
# Many articles about RocketMQ explain the push consumer; [docs/seeds.md](../docs/seeds.md) goes through one of them,
# sentence by sentence.
#
# - It says that after `RECONSUME_LATER` the *broker* tries again, 16 times. The broker never calls
#   a listener. The *consumer* gives the message back, and later pulls it from the topic of its group like any other. And
#   the listener is called 17 times.
# - It says that this follows `messageDelayLevel`. It begins at level 3: 1 s and 5 s are for producers.
# - A group that the broker has never seen begins to read its retry topic only after its second look at the queues, about
#   20 s after the start, so its first retry can be late. That is why our groups ran for 30 s first.
# - RocketMQ 5 has *timer messages* with any delay up to three days (`TIMER_DELAY_MS`, a wheel of seconds). Retries still use
#   levels. In Pop mode, new in 5, nothing is given back: the broker itself makes the copy when the time for an answer is over
#   (lab 11).
#
# Where to read on: `client/.../ConsumeMessageConcurrentlyService.java` (`processConsumeResult`), `ConsumeMessageOrderlyService.java`
# (`checkReconsumeTimes`), `ProcessQueue.java` (`cleanExpiredMsg`), `broker/.../AbstractSendMessageProcessor.java`
# (`consumerSendMsgBack`), `broker/.../schedule/ScheduleMessageService.java`.
#
# Three questions to take home:
#
# 1. The bank is down for an hour, and 1000 orders a second come in. How many records does the group write
#    into the commit log in the first minute, and who else on this broker notices?
# 2. A bill is sent by e-mail; a mail server has no "note". What is the best that your listener can do, and which failure
#    stays?
# 3. Your notes table grows by a row for each message, for ever. When may a row be deleted? (Think of the longest
#    time after which a message can still come again.)
#
# ## What you expected, and what was seen

# %%
reveal()
