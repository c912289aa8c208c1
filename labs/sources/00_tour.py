# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   mqlab:
#     title: "Tour: where is my message?"
#     question: One message goes from a producer to a consumer. Where is it at each moment, and who knows of it?
#     objectives:
#       - name the stations of a message from `send` to the listener, in order
#       - say what `SEND_OK` promises, and what it does not
#       - catch the moment at which a message becomes visible to consumers
#     minutes: 50
#     prerequisites: []
#     wrong_predictions:
#       - "before-return: all, since the queue has done its work when `send` returns; or 0, as if that were ordered"
#       - "requests-before: 2 or 3, with a login, a heartbeat or a request to create the topic; or 0"
#       - "held: 1, since there is one consumer; or 0, since a push needs no request"
#       - "pull-sent: 0, after the message was stored, since a push needs a message first"
#       - "nobody-listens: 0, with exceptions, or a `send` that waits until the consumer is back"
#       - "caught-up: 0, since nobody was there to listen; or all messages of the topic once more"
# ---

# %% tags=["parameters"]
student_id = ""

# %% [markdown]
# A **message queue** stands between programs. One program, the **producer**, hands over a message and goes on with
# its work. Another, the **consumer**, gets the message when it is ready for it. Between them stands the **broker**,
# a server that keeps messages until they are fetched.
#
# This notebook holds a whole RocketMQ: not a drawing of one, but its servers and clients, byte for byte, in one
# Python process with a clock of its own. That clock moves only when we let it. So we can do what nobody can do with
# a real one: stop *between* two microseconds, look around, and go on.

# %%
from mqlab import ConsumeConcurrentlyStatus, Lab, Message
from mqlab.check import NotSolvedYet, check, draws_for, predict, reveal, say, seed_for
from mqlab.scenarios import get
from mqlab.views import Table
from mqlab_widgets import Stepper

# %% [markdown]
# This is a message queue at work. Press **play**, watch some messages go their way, and **pause**; the arrows beside it
# go on by one event, and back. Then click a machine and **crash** it: what do the others do? **Restart** it, and see. The
# live views of all labs have these controls; **?** lists the keys.

# %%
seed = seed_for(student_id, "00")
Stepper(get("demo").build(seed).run_for(seconds=1))

# %% [markdown]
# ## One message, and a thousand (12 minutes)
#
# Now we build such a world ourselves, and follow one message through it.
#
# Four machines: a **name server** (it knows which broker has what), a broker, a consumer and a producer. Messages
# are sorted by **topic**. Ours is called `TopicTest`, and the broker keeps it in some **queues**. (How many, and other
# numbers of the labs, depends on your student id: what you see may differ from what your neighbour sees.)

# %%
draw = draws_for(seed)
queues = draw.between("queues", 3, 8)
many = draw.between("many", 900, 1_400, step=10)
lab = Lab(seed=seed)
lab.name_server()
lab.broker("broker-a")
lab.create_topic("TopicTest", queues=queues)

# %% [markdown]
# The consumer has a **listener**: a function of ours that RocketMQ calls with each message. This one puts what it
# gets into a list, with the time.

# %%
inbox = []


def listener(messages, context):
    inbox.extend((f"{lab.now_ms:.3f} ms", message.body) for message in messages)
    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS


consumer = lab.consumer("readers")
consumer.subscribe("TopicTest", "*")
consumer.register_message_listener(listener)
await consumer.start()

producer = lab.producer("orders")
await producer.start()
lab.run_for(seconds=3)

# %% [markdown]
# Three seconds have passed in there, and nothing in here. `send` hands a message over and returns with an answer. The
# listener is called with the message. Which of the two comes first? We shall look at one message, and then count many.
# Place a bet before you let it happen: put a number where the three dots are.

# %% tags=["prediction"]
predict(
    "before-return",
    f"{many:,} messages are sent, one after the other. With how many is the listener called before send has returned?",
    unit="messages",
    prediction=...,
)

# %%
start = lab.now_ms
result = await producer.send(Message("TopicTest", b"hello"))
result.send_status, inbox

# %% [markdown]
# The first is what `send` returned, the second is what the listener had at that moment. Now five milliseconds more.

# %%
lab.run_for(ms=5)
inbox

# %% [markdown]
# The message is there, and this is how it got there. Time runs downwards; the numbers on the left are milliseconds of that
# world. Each machine is a line, each arrow something that travels from one machine to another.

# %%
lab.space_time(start, requests=["SEND_MESSAGE_V2", "PULL_MESSAGE"], title="One message, from send to the listener")

# %% [markdown]
# Read it like a story. The producer's request carries our 5 bytes to the broker. The broker stores them and sends an
# answer to the producer, with which `send` returns. The message also reaches its queue, and goes to the consumer; we
# will see soon by which way.
#
# This was one message, and the bet is about many. Let us send them and compare two times of each: when
# `send` returned, and when the listener was called. Each event of this world is kept, in order, in `lab.history`.

# %%
for number in range(many):
    await producer.send(Message("TopicTest", b"message %d" % number))
    lab.run_for(ms=2 + number % 100 / 100)

returned = {event.msg_id: event.ts_ms for event in lab.history.find("SendSucceeded")}
called = {event.msg_id: event.ts_ms for event in lab.history.find("ConsumeStarted")}
del returned[result.msg_id]
early = [message_id for message_id in returned if called[message_id] < returned[message_id]]
f"{len(early)} of {len(returned)} messages came to the listener before send returned"

# %%
reveal(
    "before-return",
    len(early),
    why="SEND_OK says: stored. Nobody waits for the consumer, and nobody holds it back.",
)

# %% [markdown]
# It is a race. The broker's answer to the producer and the message to the consumer are on their way at the same
# time, and the network is not always equally fast. Here is one that the consumer won:

# %%
seen = next(event for event in lab.history.find("ConsumeStarted", msg_id=early[0]))
lab.space_time(seen.ts_ms - 1.2, seen.ts_ms + 0.3, title="The listener was faster")

# %% [markdown]
# So `SEND_OK` means **stored**: not consumed, and not even "not consumed yet". A program that saves an order in its
# database *after* `send` has returned, for a listener that reads it there, works in every test and fails now and
# then. Measured on a real RocketMQ 5.3.3, on a busy machine: from 1 to 257 ms between the two, with no promise of an
# order.
#
# ### Your turn: how early?
#
# Such a program wants to know how bad it can be. `returned` says for each message when its `send` returned, `called` when
# the listener was called with it (both in ms). By how many ms was the listener earlier, at most? If it never was, it is 0.
# A message may be in one of the two alone: then it does not count.

# %%
most_ms = max(returned[message_id] - called[message_id] for message_id in early)
say(f"In your world it was {most_ms:.3f} ms.")

# %% [markdown] tags=["hints"]
# - For one message it is a difference of two numbers. Which messages are in both dictionaries?
# - Go through `called`, and leave out what is not in `returned`.
# - `[returned[one] - called[one] for one in called if one in returned]` is a list of differences. What is the answer when it is
#   empty, or when all in it are below 0?

# %% tags=["exercise"]
def most_early(returned: dict[str, float], called: dict[str, float]) -> float:
    """By how many ms the listener was earlier than the return of send, at most."""
    ### BEGIN SOLUTION
    early = [returned[one] - called[one] for one in called if one in returned]
    return max([0, *early])
    ### END SOLUTION


# %% tags=["check"]
check("00/most-early", most_early)

# %% [markdown]
# ## The same way, slowly (18 minutes)
#
# Now one message, stopped at each station. It comes from a second producer that has just been started.

# %% tags=["prediction"]
predict(
    "requests-before",
    "From its start on, how many requests does a producer send before its first message goes out?",
    choices=["none", "one", "two", "three or more"],
    prediction=...,
)

# %%
second = lab.producer("orders")
await second.start()
idle_s = draw.between("seconds without a message", 1, 7)
lab.run_for(seconds=idle_s)
list(lab.history.find("RequestSent", node="producer-2"))

# %% [markdown]
# Since its start: none. It has a connection to the name server, and has asked nothing on it. Now we begin a
# `send`, but do not wait for it: `.start()` lets a call begin, and the world stands still until we move it.
#
# This is our world on the stage. **The cells below move it**, station by station: run one, and look what has changed. Keep the stage in
# sight: a right click on it and **Create New View for Output** give it a place beside the notebook. (Play and the arrows come later:
# if you have moved the world by hand, run the notebook again from the top.)

# %%
start = lab.now_ms
sending = second.send(Message("TopicTest", b"where am I?", tags="TagA")).start()
Stepper(lab)

# %% [markdown]
# **Stations 1 and 2: a route, and a queue.** The producer does not know where `TopicTest` is, and asks. With the route in hand it
# takes one of the queues in the same instant. It begins anywhere and then takes the next one each time
# (`TopicPublishInfo.selectOneMessageQueue`), so that the load is spread.

# %%
lab.run_until_event("RouteUpdated", node="producer-2")
lab.routes("TopicTest")

# %% [markdown]
# **Station 3: bytes.** On to the moment at which the message leaves the producer. Stop right there: it is neither
# here nor there, but in the cable.

# %%
lab.run_until_event("RequestSent", request_name="SEND_MESSAGE_V2")
lab.under_way()

# %%
earlier = [event.request_name for event in lab.history.find("RequestSent", node="producer-2")][:-1]
reveal(
    "requests-before",
    ["none", "one", "two", "three or more"][min(len(earlier), 3)],
    why="start() asks nobody; the first send asks the name server for the route (tryToFindTopicPublishInfo)",
)

# %% [markdown]
# One: `GET_ROUTEINFO_BY_TOPIC`. Measured on a real RocketMQ 5.3.3: the same, in three runs of three. These are the
# bytes in the cable, each with its meaning:

# %%
lab.under_way().frame(0)

# %% [markdown]
# A length, a header in JSON, and the body as it is. The topic's name has one letter in there, `b`, and so have the
# others: `SEND_MESSAGE_V2` is the second version of this request, made short because it is sent so often.
#
# **Station 4: the commit log.** The broker writes the message at the end of one long file, the **commit log**, which
# all topics share. Writing at the end is the fastest thing that a disk can do.

# %%
stored = lab.run_until_event("MessageStored", topic="TopicTest")
stored

# %% [markdown]
# It is stored. The answer to the producer goes out in this very moment. So let us look at the message in its queue:

# %% tags=["raises-exception"]
queue = lab.queue("TopicTest", stored.queue_id)
queue.record(stored.queue_offset)

# %% [markdown]
# An error, and a true one: **the message is stored, and no consumer can see it.** A consumer does not read the commit
# log, where the messages of all topics lie mixed. It reads a *queue*, and the queue does not reach that far yet. On the stage the
# message lies in the log, and the queues below it are as they were.
#
# What is the consumer doing meanwhile? It must have sent requests for messages to the broker, or will do so: in RocketMQ
# a message reaches a consumer only as the answer to such a request (a **pull**). Two bets.

# %% tags=["prediction"]
predict(
    "held",
    f"One consumer, {queues} queues, no new message for {idle_s} s. How many of its pulls are not answered yet?",
    unit="pulls",
    prediction=...,
)

# %% tags=["prediction"]
predict(
    "pull-sent",
    "Our message will travel in the answer to a pull. How many seconds ago was that sent? (0: now, or not yet)",
    unit="s",
    prediction=...,
)

# %%
held = lab.held_pulls()
held

# %%
reveal("held", len(held.rows), why="one for each queue: the broker has read them all, and lets them wait")

# %%
waits_ms = next(row[5] for row in held.rows if row[3] == stored.queue_id)
reveal("pull-sent", round(waits_ms / 1_000), why=f"it had waited for {waits_ms:.0f} ms when the message came")

# %% [markdown]
# This is how RocketMQ "pushes": it does not. The consumer *asks* for messages behind some offset. If there are none,
# the broker does not answer, but lays the request aside, for 15 to 20 seconds (`PullRequestHoldService`). That is the
# broad bar in the first picture, and the rings on the stage.
#
# **Station 5: the queue.** A thread of the broker, `ReputMessageService`, looks every millisecond what is new in the
# commit log, and writes for each message a small entry of 20 bytes into its queue, the **consume queue**. This is
# the moment at which the message becomes visible.

# %%
lab.run_until_event("MessageDispatched", topic="TopicTest")
queue.entry(stored.queue_offset)

# %% [markdown]
# The entry says where the message begins in the commit log, how long it is, and a number for its tag. The same line
# of code as before has no error now, and shows what the disk has:

# %%
queue.record(stored.queue_offset)

# %% [markdown]
# ### Your turn: is it the same message?
#
# These are the two events of stations 4 and 5. Only the first one names the message; both say where it lies. Write a function that
# gets one event of each kind and says whether they are about the same message, in one to three lines. There may be several brokers, and
# each counts the bytes of its commit log from 0.

# %%
fields = ["kind", "node", "topic", "queue_id", "queue_offset", "commit_log_offset", "unique_key"]
dispatched = lab.history.last("MessageDispatched")
Table("two events", fields, [[getattr(event, name, "") for name in fields] for event in (stored, dispatched)])

# %% [markdown] tags=["hints"]
# - Which of the fields have both events? And which of these can two messages share?
# - Two messages never begin at the same byte of the same log. `commit_log_offset` is the byte; which field names the log?
# - Two things have to agree at once: the byte, and the machine on whose disk the log lies.

# %% tags=["exercise"]
def same_message(stored, dispatched) -> bool:
    """Are these two events about one message?"""
    ### BEGIN SOLUTION
    return (stored.node, stored.commit_log_offset) == (dispatched.node, dispatched.commit_log_offset)
    ### END SOLUTION


# %% tags=["check"]
check("00/same-message", same_message)

# %% [markdown]
# **Station 6: the wake.** The same thread tells the hold service that something has come. It looks for a request
# that waits for this queue, and takes it up again: `held_us` says for how long the broker had held it, in microseconds. This is called
# **long polling**. Then the pull that waited is no longer in the list, but on its way, with our message in it:

# %%
woken = lab.history.last("PullWoken")
lab.run_until_event("ResponseSent", node="broker-a", task="PullMessageThread")
woken, lab.under_way()

# %% [markdown]
# **Station 7: the process queue.** The message is in the consumer's memory now, in a waiting room of its own for
# each queue (`ProcessQueue`). The broker has its copy still: reading takes nothing away.

# %%
lab.run_until_event("MessagesCached")
lab.process_queues(consumer)

# %% [markdown]
# **Stations 8 and 9: the listener, and the offset.** A thread of the pool takes the message out of the waiting room and calls our
# function. One thing is left: somebody must remember how far this group has read, or it would get the same message again. The
# consumer notes it, and tells the broker when it asks for the next message.

# %%
lab.run_until_event("ConsumeFinished")
print(inbox[-1])
lab.run_until_event("OffsetCommitted", queue_id=stored.queue_id)

# %% [markdown]
# And `send`? It has been done for a while. Now go the way once more, with your own hands: the stage below stands at the moment at which
# the message left its producer. The arrow **one event on** (the key n) goes on from there, the other one back, and the sentence
# below the stage says what happens. The world itself is at its present all the while: this is its record.

# %%
result = await sending
lab.history.back("RequestSent", request_name="SEND_MESSAGE_V2")
Stepper(lab)

# %%
lab.space_time(start, title="The first message of a new producer")

# %% [markdown]
# Each event knows what led to it. So we can ask *why* the listener was called, and read the answer from the end to
# the beginning: nothing in it is a guess.

# %%
consumed = lab.history.last("ConsumeStarted")
chain = lab.history.chain(consumed)
chain = chain[[event.kind for event in chain].index("QueueSelected") :]
rows = [[f"{e.ts_ms:.3f}", e.node, e.task, e.kind] for e in chain]
Table("why the listener was called", ["ms", "on", "thread", "event"], rows)

# %% [markdown]
# ## Break it (7 minutes)
#
# Six seconds later we kill the consumer. One second after that, what does the broker hold?

# %%
more = draw.between("messages for nobody", 3, 12)
lab.run_for(seconds=6)
lab.crash("consumer-1")
lab.run_for(seconds=1)
lab.held_pulls()

# %% [markdown]
# Still the pulls of the dead. The broker has seen the connection close, but nobody looks through the held requests
# for that. It will notice when it wants to answer. Now we send some messages to nobody.

# %% tags=["prediction"]
predict(
    "nobody-listens",
    f"The consumer is dead. How many of the {more} calls of send return SEND_OK?",
    unit="calls",
    prediction=...,
)

# %%
results = [await producer.send(Message("TopicTest", b"anybody there?")) for _ in range(more)]
lab.run_for(ms=5)
bodies = [body for _, body in inbox]
f"the listener was called {bodies.count(b'anybody there?')} times"

# %%
reveal(
    "nobody-listens",
    sum(result.send_status.name == "SEND_OK" for result in results),
    why="a producer deals with the broker alone; it does not know whether there is a consumer at all",
)

# %%
got_before = len(inbox)
had = sum(lab.queue("TopicTest", number).max_offset for number in range(queues))
say("They are in the commit log and in their queues, and can wait there for days. "
    f"The topic has had {had:,} messages by now. Then we start the consumer again.")

# %% tags=["prediction"]
predict(
    "caught-up",
    f"{more} messages came while the consumer was dead. How many does it get after the restart?",
    unit="messages",
    prediction=...,
)

# %%
lab.restart("consumer-1")
restarted = lab.now_ms
lab.run_until(lambda: len(inbox) > got_before)
f"{inbox[-1]}, {lab.now_ms - restarted:.0f} ms after the restart"

# %%
lab.run_for(seconds=5)
reveal("caught-up", len(inbox) - got_before, why="it goes on where its group had stopped (the offsets)")

# %% [markdown]
# It took about a second and a half: the consumer asks for the route, says hello, finds out which queues are its own
# (`RebalanceService`, after 1000 ms) and sends its first pull 500 ms later. Measured on a real RocketMQ 5.3.3: 503 to
# 516 ms from owning a queue to its first pull.
#
# ### Your turn: how many wait?
#
# The number of messages that wait for a group is the first thing that one looks at in a real cluster; it is called the
# **lag**. `ends` says for each queue the offset behind its last message, `read` the offset at which the group goes on. A queue that
# the group has not read at all is not in `read`: the group begins there at 0. One line is enough.

# %% [markdown] tags=["hints"]
# - For one queue it is a difference of two numbers. Over which of the two dictionaries must you go?
# - `read.get(queue_id, 0)` is the offset at which the group goes on, or 0 if it has not read the queue at all.
# - `ends.items()` gives each queue with its end. One difference for each of them, and `sum(...)` around it.

# %% tags=["exercise"]
def lag(ends: dict[int, int], read: dict[int, int]) -> int:
    """How many messages wait for the group, in all queues together?"""
    ### BEGIN SOLUTION
    return sum(end - read.get(queue_id, 0) for queue_id, end in ends.items())
    ### END SOLUTION


# %% tags=["check"]
check("00/lag", lag)

# %% [markdown]
# ## Build it (10 minutes)
#
# Write a breakpoint that stops the world at the moment at which *one* message becomes visible to consumers. It is a
# function that is called with every event of the world, in order, and says yes once:
#
# - `message_id` is the id that the producer gave to the message. `MessageStored` has it, as `unique_key`.
# - `MessageDispatched` does not have it. You have just written what connects the two.
# - `record.kind` is the event's name, `record.node` the machine, and the fields are attributes, as in
#   `record.queue_id`. You have seen both events above.

# %% [markdown] tags=["hints"]
# - Two kinds of events matter, and the first comes before the second. What must be remembered from the first until
#   the second comes? `self.place` is there for it.
# - When `MessageStored` comes with the wanted `unique_key`, put the place into `self.place`, and say no: the message is
#   not visible yet. Every other event that is no `MessageDispatched` is a no as well.
# - The place is `(record.node, record.commit_log_offset)`; both kinds have it. What is left is the last line: which event, at
#   which place, is a yes?

# %% tags=["exercise"]
class VisibleBreakpoint:
    """Says yes at the one event with which a message becomes visible to consumers."""

    def __init__(self, message_id: str) -> None:
        self.message_id = message_id
        self.place = None

    def __call__(self, record) -> bool:
        ### BEGIN SOLUTION
        if record.kind == "MessageStored" and record.unique_key == self.message_id:
            self.place = (record.node, record.commit_log_offset)
        return record.kind == "MessageDispatched" and (record.node, record.commit_log_offset) == self.place
        ### END SOLUTION


# %% [markdown]
# The check builds fifty worlds with one broker or two, sends six messages at once in each, and asks the store itself
# when the queue reaches the message.

# %% tags=["check"]
check("00/visible", VisibleBreakpoint)

# %% [markdown]
# ## What articles say, and what is so (3 minutes)
#
# There are many articles about RocketMQ. Three sentences that one finds in them:
#
# - *The producer gets the broker's address from the name server when it starts.* You have seen: a start asks nobody.
#   Of a wrong name server address you hear at the first `send`, not before.
# - *The broker brings the message to the disk and builds the consume queue, and then it is there.* The answer comes
#   first. By default (`ASYNC_FLUSH`) the bytes reach the disk later than the answer reaches the producer, and the
#   queue entry is another thread's work. Lab 02 cuts the power in between.
# - *The hold service looks every five seconds.* It does, but only for what was missed. The wake that you saw comes
#   from `NotifyMessageArrivingListener`, within a millisecond or two. Lab 05 is about nothing else.
#
# **Read on** in RocketMQ's source, in the order of the stations:
# `client/impl/producer/DefaultMQProducerImpl.java` (`sendDefaultImpl`), `remoting/protocol/RemotingCommand.java`,
# `broker/processor/SendMessageProcessor.java`, `store/CommitLog.java`, `store/DefaultMessageStore.java`
# (`ReputMessageService`), `broker/longpolling/PullRequestHoldService.java`, `client/impl/consumer/ProcessQueue.java`
# and `ConsumeMessageConcurrentlyService.java`. Each class of `mqlab` names the Java class that it answers to.
#
# **To take home**
#
# 1. Your listener charges a credit card, and the consumer is killed between station 8 and station 9. What happens?
# 2. A queue entry has 20 bytes, a message perhaps 1000. Why does a broker with ten thousand queues keep *one* commit
#    log, and what would it cost to have one for each queue?
# 3. A thousand consumers hold a pull each, and no message comes for an hour. How many requests per second does the
#    broker see, and how many would it see if each consumer asked once a second?

# %%
reveal()
