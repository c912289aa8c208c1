# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   mqlab:
#     title: Three ways to send
#     question: A program hands a message over. Who waits then, where, for how long, and who hears how it went?
#     objectives:
#       - say for each of the three ways who waits, who holds a permit, and who hears of a failure
#       - read the response table, and say what ties an answer to its request
#       - build a sender that never has too many messages on their way, and loses none
#     minutes: 58
#     prerequisites: [00 Tour, 01 Routes]
#     wrong_predictions:
#       - "in-table: all of them; or the asynchronous ones alone, as if only they needed a table"
#       - "permits: those of the asynchronous calls alone, as older versions had it and as most texts say"
#       - "empty: raised by send_async; but the caller's thread looks at nothing"
#       - "flood: 0, nothing stops it; or all above the 65,535 permits; the queue of 50,000 stands in front of them"
#       - "sync-in-flood: no more than before, since a synchronous call limits itself and goes out at once"
#       - "lost: 0, since other brokers are alive; or all of them"
# ---

# %% tags=["parameters"]
student_id = ""

# %% [markdown]
# A **producer** (a program that sends) hands messages to a **broker** (a server that keeps them). It can do so in three
# ways, and they differ in one thing only: who waits for the broker's answer.
#
# - **sync**: `send` waits for the answer and returns it.
# - **async**: `send_async` returns at once. A function of yours, the **callback**, is called later with the answer.
# - **one-way**: `send_oneway` returns at once, and nobody ever gets an answer.
#
# That sounds like a matter of taste. It decides what is lost when a broker dies, and what your program does in a flood. We need a world with one broker, and we shall need it often:

# %%
from mqlab import Lab, Message, errors
from mqlab.check import NotSolvedYet, check, draws_for, predict, reveal, say, seed_for
from mqlab.views import Table, Waits
from mqlab_widgets import Stepper
from mqlab_widgets.boards.responses import ResponsesBoard
from mqlab_widgets.boards.routes import RoutesBoard

seed = seed_for(student_id, "03")
draw = draws_for(seed)

# %%
async def shop(brokers=1, queues=4, **settings):
    lab = Lab(seed=seed)
    lab.name_server()
    for _ in range(brokers):
        lab.broker()
    lab.create_topic("Orders", queues)
    producer = lab.producer("shop", **settings)
    await producer.start()
    await producer.send(Message("Orders", b"the first one opens the connection"))
    lab.run_for(seconds=2)
    return lab, producer

# %%
lab, producer = await shop()

# %% [markdown]
# The callback gets two arguments, of which one is always `None`: the result, or the error. Ours writes down when it was
# called, and with what.

# %%
heard = []


def note(result, error):
    told = result.send_status.name if result else f"{type(error).__name__}: {error}"
    heard.append((f"{lab.now_ms - start:.1f} ms", told))

# %% [markdown]
# ## Round one: what waits where (22 minutes)
#
# Broker and producer stand in one room: an answer takes half a millisecond. To see something we move the broker away,
# so that each direction takes longer. The numbers of messages in this round are yours alone: they come from your id.

# %%
way_ms = draw.between("way", 15, 35)
syncs, asyncs, oneways = (draw.between(way, 1, 3) for way in ("sync", "async", "one-way"))
lab.act("delay", source="producer-1", target="broker-a", ms=way_ms)
lab.act("delay", source="broker-a", target="producer-1", ms=way_ms)
say(f"Each direction takes {way_ms} ms longer. We send, all in the same instant, **{syncs} sync**, **{asyncs} async** and "
    f"**{oneways} one-way**.")

# %% [markdown]
# `.start()` lets a synchronous call begin without waiting for it here. Five milliseconds later all requests are on their
# way. A request that expects an answer is kept in a table, so that the answer finds whom it belongs to: the **response
# table** (`responseTable` in `NettyRemotingAbstract`).

# %% tags=["prediction"]
predict("in-table", f"{syncs} sync, {asyncs} async, {oneways} one-way. How many requests are in the response table?",
        unit="requests", prediction=...)

# %% [markdown]
# And there are two **semaphores**, which are bowls with permits in them. Whoever wants to do something takes a permit
# out, and puts it back when it is done; whoever finds the bowl empty has to wait. One bowl is for asynchronous calls,
# one for one-way calls, with 65,535 permits each.

# %% tags=["prediction"]
predict("permits", "How many permits are out, of both bowls together?", unit="permits", prediction=...)

# %%
start = lab.now_ms
waiting = [producer.send(Message("Orders", b"sync")).start() for _ in range(syncs)]
for _ in range(asyncs):
    await producer.send_async(Message("Orders", b"async"), note)
for _ in range(oneways):
    await producer.send_oneway(Message("Orders", b"one-way"))
lab.run_for(ms=5)
f"after {lab.now_ms - start:.1f} ms: {sum(call.done for call in waiting)} of {syncs} send have returned; heard: {heard}"

# %%
table = lab.response_table(producer)
table

# %%
reveal("in-table", len(table), why="nobody will answer a one-way request: there is nothing to wait for")

# %% [markdown]
# Each request has a number, its **opaque**. The broker writes the same number on its answer; that is all that ties the
# two together, for one connection carries the requests of everybody, and the answers come in any order. (The one-way
# requests have numbers, too, which the column does not show.) This lab argues with an article on sending in RocketMQ 4;
# [docs/seeds.md](../docs/seeds.md) goes through it, claim by claim, and below it is called **the article**. It calls
# this table a list. It is a map from the opaque to the one who waits (`ResponseFuture`), and that is the point of it.

# %%
permits = lab.permits(producer)
Table(permits.title, permits.header, permits.rows[:2])

# %%
taken = permits.rows
reveal("permits", taken[0][2] + taken[1][2],
       why="all calls with an answer go through NettyRemotingAbstract.invokeImpl, which takes one")

# %% [markdown]
# One of the asynchronous permits is out for **each call that will be answered**. The article asks why a synchronous call needs no permit, and answers: it waits, so it limits
# itself. The reasoning is good (a thread that waits cannot send a second message), and in 4.x it was so. In 5.x `invokeSync` is written as an
# asynchronous call that somebody waits for, and takes the same permit. A one-way call took one of the other bowl and gave
# it back as soon as its bytes were written.

# %%
for call in waiting:
    await call
lab.run_for(ms=8)
Waits.of(lab.history, start, lab.now_ms, title="Some messages, in three ways")

# %% [markdown]
# This is the whole difference. The same request, stored at the same moment (the diamonds); but only the synchronous
# caller stands still (blue), and for a one-way message nothing waits anywhere. The table holds a request until its answer
# comes, and *the arrival of the answer* calls the callback. The article has it otherwise, that a thread scans the
# table and calls the callbacks; that thread has another job, of which lab 19 tells.
#
# Watch the table itself. This is the world when the last message has just been sent: all requests are in the cable (the
# picture calls them frames), and those that will be answered are in the table. Press the arrow **one event on** (the key n), again
# and again.

# %%
lab.history.back("RequestSent")
Stepper(lab, [ResponsesBoard])

# %% [markdown]
# How little the asynchronous caller does shows when something is wrong with the message:

# %% tags=["prediction"]
predict("empty", "send_async gets a message with an empty body. Where does the error appear?",
        choices=["send_async raises it", "the callback gets it",
                 "nowhere: it is sent, and the broker stores it"], prediction=...)

# %%
start = lab.now_ms
await producer.send_async(Message("Orders", b""), note)
lab.run_for(ms=1)
heard[-1]

# %%
reveal("empty", "the callback gets it",
       why="the caller's thread only hands the message to a pool (AsyncSenderExecutor)")

# %% [markdown]
# `send_async` gives your message to two or more threads of its own and returns. Route, queue, bytes: all that happens
# over there. An `except` around `send_async` would never have seen this error. Around `send` it does, and this is how
# it looks:

# %% tags=["raises-exception"]
await producer.send(Message("Orders", b""))

# %% [markdown]
# ### Build: an answer comes (1 point)
#
# Write what the arrival of an answer does. `table` is a dictionary, from the opaque to the function that waits for the
# answer. The function that belongs to `opaque` is called with the `answer`, once, and its row leaves the table. An answer for
# which nobody waits (its request was removed before it came) is dropped.

# %% [markdown] tags=["hints"]
# - Two things happen: the row goes, and the function is called. What if there is no row?
# - One method of `dict` both finds a row and takes it out.
# - That method is `pop`. It takes a second argument: what it gives where there is no such row. What must not be done then?

# %% tags=["exercise"]
def answer_arrived(table, opaque, answer):
    """Give an answer to whoever waits for it; the row leaves the table."""
    ### BEGIN SOLUTION
    waiter = table.pop(opaque, None)
    if waiter is not None:
        waiter(answer)
    ### END SOLUTION


# %% tags=["check"]
check("03/answer", answer_arrived)

# %% [markdown]
# ## Round two: the flood (15 minutes)
#
# A synchronous sender cannot flood anybody. An asynchronous one can: it never waits. Suppose that a program calls
# `send_async` in a loop, faster than anything can be sent. Does anything stop it?

# %%
many = draw.between("flood", 66_000, 74_000, step=100)
say(f"The program calls it **{many:,} times**.")

# %% tags=["prediction"]
predict("flood", f"{many:,} calls of send_async, with nothing between them. How many of them raise an error?",
        unit="calls", prediction=...)

# %%
lab, producer = await shop()
refused = []


async def flood():
    for _ in range(many):
        try:
            await producer.send_async(Message("Orders", b"one of many"), note)
        except errors.MQClientException as error:
            refused.append(error)


flooding = producer.node.spawn(flood(), "flood")
lab.run_until(lambda: flooding.done)
f"accepted: {many - len(refused)}; then: {refused[0]}"

# %%
lab.permits(producer)

# %%
reveal("flood", len(refused),
       why="the sender's threads have a queue of 50,000 in front of them (asyncSenderThreadPoolQueue)")

# %% [markdown]
# Neither does it wait, nor does the limit of 65,535 permits count: not one permit is taken, since the flood never got
# that far. (The few above 50,000 are in the hands of the threads.) `executor
# rejected` is an error that `send_async` does raise, and the only sign of a flood that you get. What lies in the queue
# is lost when the process dies, and nobody has promised anything about it.
#
# The permits count later, when requests are out and answers do not come. Make the bowl small to see it: a few permits, and
# a broker that **hangs** (its process is stuck, its connections are open, it answers nothing).

# %%
permits, too_many = draw.between("permits", 10, 18), draw.between("too many", 3, 8)
lab, producer = await shop(client_async_semaphore_value=permits)
lab.freeze("broker-a")
start, heard = lab.now_ms, []
for _ in range(permits + too_many):
    await producer.send_async(Message("Orders", b"async"), note)
lab.run_for(ms=10)
lab.permits(producer)

# %%
say(f"{permits} requests are out, {too_many} stand in line. Into this comes somebody else in the same process, and wants to "
    "send *one* message, synchronously.")

# %% tags=["prediction"]
predict("sync-in-flood", f"All {permits} permits are taken, {too_many} calls stand in line, and one synchronous send begins. "
        "How many stand in line then?", unit="calls", prediction=...)

# %%
waiting = producer.send(Message("Orders", b"sync")).start()
lab.run_for(ms=10)
ways = [row[3] for row in lab.response_table(producer).rows]
Table("in the table", ("way", "requests"), [(way, ways.count(way)) for way in ("async", "sync")])

# %%
reveal("sync-in-flood", lab.permits(producer).rows[0][3],
       why="there is one bowl for both, and the others were there first (a fair semaphore)")

# %% [markdown]
# Some requests of strangers to a broker that hangs, and your own message does not even leave the house. It would be no
# better if it were meant for another broker, one that is well: there is one bowl for all brokers. Heartbeats, questions for
# routes and a consumer's pulls stand in the same line. How does it end?

# %% tags=["raises-exception"]
await waiting

# %% [markdown]
# `RemotingTooMuchRequestException` **sounds** as if somebody had sent too much. It says something else: the
# time of this call was over before its work was done (`sendDefaultImpl call timeout`). You will meet this text again.
# What the callbacks heard:

# %%
lab.run_for(seconds=6)
counted = sorted({(told, sum(text == told for _, text in heard)) for _, told in heard})
Table("the callbacks", ("what they were told", "how often"), counted)

# %% [markdown]
# Those that stood in line never got a permit in their 3000 ms. Why the others did not hear of a time-out is a story of its own:
# lab 19 is about what a time-out means.
#
# Seldom does anybody want 50,000 messages in a queue, or all calls stuck in one line. With `enableBackpressureForAsyncMode`
# (off unless you say so) the *caller* waits before it gets in: at most 10,000 messages (from the
# release after 5.3.3 on: 1,024) and 100 MiB on their way. We set a small number, as above, and send one more:

# %%
lab, producer = await shop(enable_backpressure_for_async_mode=True, back_pressure_for_async_send_num=permits)
lab.freeze("broker-a")
start, heard = lab.now_ms, []
for _ in range(permits + 1):
    await producer.send_async(Message("Orders", b"async"), note)
f"call {permits + 1} of send_async returned after {lab.now_ms - start:.0f} ms", heard

# %% [markdown]
# Now `send_async` waits: as long as its time-out of 3000 ms allows. When nothing comes free it says so, to the callback,
# and this time "too much request" means what it says.
#
# ### Build: in the table, and in line (1 point)
#
# A broker hangs, and a program sends: so many calls in each of the three ways, all at once. The bowl has `permits` permits,
# all of them free before. Return two numbers: how many requests are in the response table, and how many calls stand in
# line for a permit. (There is no back-pressure, and fewer than 50,000 calls.)

# %%
say(f"With your {permits} permits: `where_they_are({permits - 4}, 2, 3, {permits})` is `({permits - 2}, 0)`.")

# %% [markdown] tags=["hints"]
# - Which of the three ways need a permit of this bowl, and which of them wait for an answer? You saw both in round one.
# - One-way calls count for nothing here. Of the others as many are in the table as there are permits; the rest stands in line.
# - Add up the calls that want a permit. Two cases: there are fewer of them than permits, or more.

# %% tags=["exercise"]
def where_they_are(asyncs, syncs, oneways, permits):
    """How many requests are in the response table, and how many calls stand in line for a permit."""
    ### BEGIN SOLUTION
    calls = asyncs + syncs
    in_table = min(calls, permits)
    return in_table, calls - in_table
    ### END SOLUTION


# %% tags=["check"]
check("03/in-line", where_they_are)

# %% [markdown]
# ## Break it (5 minutes)
#
# Some brokers, and three producers, one for each way, which send at the same pace. Then `broker-b` is killed. The
# producers ask for their routes every 30 s. Until the next time all three believe in a dead broker, and send to it when its turn
# comes.

# %%
brokers = [f"broker-{letter}" for letter in "abcd"][: draw.between("brokers", 2, 4)]
pause_ms = draw.one_of("pause", [200, 250, 400, 500])
kill_s = draw.between("kill", 8, 16)
expected = (30 - kill_s) * 1_000 // pause_ms
say(f"There are **{len(brokers)} brokers**, and a message every **{pause_ms} ms** from each producer. The kill comes after "
    f"{kill_s} s, so the routes are wrong for {30 - kill_s} s: that makes {expected} messages of each producer.")

# %% tags=["prediction"]
predict("lost", f"Of the {expected} one-way messages in this time, how many vanish?",
        unit="messages", prediction=...)

# %%
lab = Lab(seed=seed)
lab.name_server()
for name in brokers:
    lab.broker(name)
lab.create_topic("Orders", 4)
producers = {way: lab.producer("shop") for way in ("sync", "async", "one-way")}
failures = []

# %%
async def load(way, producer):
    def told(result, error):
        if error:
            failures.append(way)

    send = {"sync": producer.send, "one-way": producer.send_oneway,
            "async": lambda message: producer.send_async(message, told)}
    while True:
        try:
            await send[way](Message("Orders", b"x"))
        except (errors.MQClientException, errors.RemotingException):
            failures.append(way)
        await producer.node.sleep(pause_ms)


for way, producer in producers.items():
    await producer.start()
    producer.node.spawn(load(way, producer), "load")

# %%
lab.run_for(seconds=kill_s)
lab.crash("broker-b")
killed = lab.now_ms
until = lab.run_until_event("RouteUpdated", node="producer-3").ts_ms
lab.run_for(seconds=5)
f"their routes were wrong for {(until - killed) / 1_000:.1f} s"

# %%
stored = {event.unique_key for event in lab.history.find("MessageStored")}
rows = []
for way, mode in {"sync": "SYNC", "async": "ASYNC", "one-way": "ONEWAY"}.items():
    attempts = lab.history.find("SendAttempted", mode=mode)
    sent = {event.msg_id for event in attempts if killed <= event.ts_ms <= until}
    rows.append((way, len(sent), len(sent & stored), len(sent - stored), failures.count(way)))
Table(f"the {(until - killed) / 1_000:.1f} s after the kill",
      ("way", "sent", "stored", "vanished", "errors told"), rows)

# %%
reveal("lost", rows[2][3], why="invokeOneway to a refused connection: no retry, and nothing is raised")

# %% [markdown]
# The synchronous and the asynchronous messages took the second attempt at another broker and lost nothing. The one-way messages
# whose turn it was to go to `broker-b` are gone, and no line of any log says so: the connection is refused in a listener
# that nobody reads. Measured on a real RocketMQ 5.3.3 with two brokers and four messages a second: 38, 41 and 43 lost in about 20 s, not one error told. (Sync: no error in three runs; async: 0, 2 and 0
# errors.) One-way is for what you can afford to lose: a log line, a count of clicks.
#
# This is the moment of the kill. See what the three producers believe of `broker-b`, and press the arrow **one event on** to follow
# one of its messages. Or go to the present and break something else: nothing below depends on this world.

# %%
lab.history.back("NodeCrashed")
Stepper(lab, [RoutesBoard])

# %% [markdown]
# ## Build it: not too many at once (16 minutes)
#
# The flood of round two had nothing to hold it back but a full queue and an error. Build what holds it back by itself: a sender that has
# never more than `limit` messages **on their way** (sent, and not answered). Who comes when that many are out does not wait: the message
# stands in a **line**, and is sent when one of the others comes back.
#
# - `Bounded(send, limit)`: `send(message, callback)` is given to you. It sends a message and calls the callback later, once, with the result or
#   the error, as `send_async` does.
# - `submit(message, callback)` sends the message now if fewer than `limit` are on their way, and else puts it in line.
# - When an answer or an error comes, the message's own callback is called with both arguments, and the first one in line is sent.
#
# Your class must hold four promises, and each has a trap: **never more than the limit**; **in order**, also when a callback submits a new message
# while others stand in line; **a message that fails frees its place**, too; and **a callback that raises** hinders nobody behind it.

# %% [markdown] tags=["hints"]
# - What must be known at each moment? How many are out, and who stands in line with which callback. `collections.deque` is a line.
# - `send` wants a callback. Give it one of your own, which knows the message's callback and does three things. In which order, so that the
#   promises hold? Think of a callback that raises in the middle, and of one that submits.
# - A place is free as soon as an answer is there: count down first, and send the first in line into the free place *before* the
#   message's callback is called. Then nothing that the callback does comes too early, or too late.

# %% tags=["exercise"]
from collections import deque


class Bounded:
    """Sends so that at most `limit` messages are on their way; the others stand in line."""

    def __init__(self, send, limit):
        self.send = send
        self.limit = limit
        self.out = 0
        self.line = deque()

    def submit(self, message, callback):
        """Send the message now, or when its turn comes."""
        ### BEGIN SOLUTION
        self.line.append((message, callback))
        self._send_what_fits()

    def _send_what_fits(self):
        while self.line and self.out < self.limit:
            message, callback = self.line.popleft()
            self.out += 1
            self.send(message, self._when_answered(callback))

    def _when_answered(self, callback):
        def answered(result, error):
            self.out -= 1
            self._send_what_fits()
            callback(result, error)

        return answered
        ### END SOLUTION


# %% [markdown]
# The check floods fifty worlds with it. A broker is slow, hangs for a while, or is killed in between; some callbacks raise, and some submit
# one more message.

# %% tags=["check"]
check("03/bounded", Bounded)

# %% [markdown]
# RocketMQ's own back-pressure (`enableBackpressureForAsyncMode`) counts the same way, with a semaphore. But it lets the *caller* wait, and
# after its time-out it drops the message with an error. Yours never waits and never drops: its line grows without end in a flood that does not stop.
# Which of the two is right depends on who can wait.

# %% [markdown]
# ## What is different in today's RocketMQ
#
# - The article: a synchronous call takes no permit. Today it takes one of the asynchronous bowl, one for each answered call.
# - The article: the listener of the *write* sets the result, and the scan finds it and calls the callbacks. The write's
#   listener only says whether the request left. The result is set when the answer arrives, which calls the callback at once.
# - The article: the response table is a list. It is a map, from the opaque.
# - The article: asynchronous sending works in batches. Each message is a request of its own. A batch is another call: `send` with a list.
# - New in 5.x: back-pressure.
#
# ## Where to read on
#
# - `remoting/src/main/java/org/apache/rocketmq/remoting/netty/NettyRemotingAbstract.java`: `invokeImpl`, `invokeOnewayImpl`,
#   `processResponseCommand`; here `mqlab/remoting/calls.py`
# - `client/src/main/java/org/apache/rocketmq/client/impl/producer/DefaultMQProducerImpl.java`: `executeAsyncMessageSend`; here
#   `mqlab/client/producer/async_send.py`
#
# ## Three questions to take home
#
# 1. **What does it cost?** A synchronous sender whose answers take 0.5 ms sends at most 2,000 messages a second per thread. A
#    broker that waits for its disk answers after 5 ms. How many threads do you need for 20,000 messages a second? How many
#    permits are out at any moment? And with an asynchronous sender?
# 2. Three programs share a laptop: one takes card payments, one counts clicks, one sends a newsletter to a million people. Which way does each
#    take, and what does it have to do when the broker says nothing?
# 3. Your sender keeps its line in memory. The process is killed with 10,000 messages in it. Who knows that they existed? Where would you keep
#    them, and what would that cost for each message?
#
# ## Your bets

# %%
reveal()
