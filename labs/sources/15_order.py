# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   mqlab:
#     title: Order
#     question: What keeps messages in order, what breaks it, and what does it cost when their keeper dies or hangs?
#     objectives:
#       - say which parts of a queue keep order, and for which messages they do not
#       - work out how long the queues of a member stand still that was killed, or that hangs
#       - write a listener and a sharding rule that keep each order's steps in turn whatever happens to the members
#     minutes: 75
#     prerequisites: [00 Tour, 07 Rebalance]
#     wrong_predictions:
#       - "out-of-step: none, since the listener is an orderly one; it keeps the order of a queue, and the steps lie in several"
#       - "lock-requests: one for each queue and 20 s, or 3 a minute; all queues go in one request, and two services send it"
#       - "all-done: all steps divided by the threads; a queue has one thread at a time, however many there are"
#       - "killed-wait: at once, as in lab 07, or 60 s; the lock counts from its last renewal, which was before the kill"
#       - "asks: one for each queue; the other clerk asks again each second"
#       - "hang-wait: 60 s, as after a kill; the connection stands, so nobody misses the member for two minutes"
#       - "again: at most the one that was under way; what hangs keeps its messages and its offset in memory"
#       - "moved: the share of the new queues; the hash is divided by another number, so most orders move"
#       - "grown-out-of-step: none, or all that moved"
# ---

# %% tags=["parameters"]
student_id = ""

# %% [markdown]
# ## The scene (4 minutes)
#
# A shop sells things. An order has four steps: it is *placed*, *paid*, *packed* and *shipped*. Each step is a **message** that the shop sends to
# the topic `Orders`, and a clerk does what it says. What is shipped before it is paid is a gift; so the steps of one order must be done **in
# turn**. The steps of different orders have nothing to do with each other.
#
# A topic is made of **queues**. Whoever sends puts a message at the end of one of them, and there it has a number, its **offset**. The clerk is
# a consumer; the function that gets each message is its **listener**. RocketMQ has two kinds of listeners, and this clerk's is an **orderly** one
# (`MessageListenerOrderly`): it gets each message of a queue only when the one in front of it is done.

# %%
from mqlab import Lab
from mqlab.check import NotSolvedYet, check, draws_for, predict, reveal, say, seed_for
from mqlab.scenarios.order_steps import STEPS, UNTIL_THE_END, open_shop, two_clerks
from mqlab.views import Ownership, Series, Table, TimeChart
from mqlab.views.time_chart import BLUE, VERMILION
from mqlab_widgets import OwnersBoard, Stepper

seed = seed_for(student_id, "15")
draw = draws_for(seed)

# %%
lab = Lab(seed=seed)
queues = draw.between("queues", 3, 6)
shop = await open_shop(lab, queues=queues)
await shop.clerk("A", more_ms=60)
lab.run_for(seconds=3)

# %% [markdown]
# ## Round one: which queue? (11 minutes)
#
# The clerk is ready and takes about a tenth of a second for a step. Now customers come. The shop sends each step when it has happened, and waits for
# the broker's answer before it sends the next one of that order.

# %%
customers = draw.between("customers", 24, 40)
say(f"There are **{customers}** orders, with four steps each. The topic has **{queues}** queues. Nothing fails, "
    "and nobody is killed.")

# %% tags=["prediction"]
predict("out-of-step", f"Of how many of the {customers} orders is a step begun before the one in front of it is done?",
        unit="orders", prediction=...)

# %%
shop.take_orders(customers, every_ms=60, pause_ms=200, selector=None)
lab.run_for(seconds=25)
broken = shop.book.out_of_step()
shop.book.bars(broken[:5], "Some of the orders whose steps were not done in turn")

# %%
reveal("out-of-step", len(broken),
       why="the listener keeps the order of each queue, and the steps of one order lay in several queues")

# %% [markdown]
# Each order has four lanes, one below the other. Steps that are done in turn make stairs that lead down and to the right. A black frame is around
# each step that was begun too early.
#
# Nothing here is broken. A producer that is not told otherwise takes one queue after the other (`TopicPublishInfo.selectOneMessageQueue`), so that
# all have the same load. And the orderly listener has kept its word: **within a queue** no message overtook another one. Here are the first
# messages of each queue, and their order numbers rise:

# %%
Table("what the clerk did, queue by queue", ("queue", "the first steps, in the order in which they were done"), [
    (n, ", ".join(f"{line.order[6:]} {STEPS[line.step - 1]}" for line in shop.book.entries if line.queue_id == n
                  and line.queue_offset < 5)) for n in range(queues)])

# %% [markdown]
# A queue is the only thing that has an order. A topic has none. So what must stay in turn has to lie in **one** queue, and that is decided by
# whoever sends. The producer is given a **selector**: a function that is called with the queues, the message and whatever you like, and
# returns a queue. RocketMQ brings one along, `SelectMessageQueueByHash`: the hash of the order's number, divided by the number of queues; the
# rest is the queue.

# %%
lab = Lab(seed=seed)
shop = await open_shop(lab, queues=queues)
await shop.clerk("A", more_ms=60)
lab.run_for(seconds=3)
shop.take_orders(customers, every_ms=60, pause_ms=200)
lab.run_for(seconds=25)
print(len(shop.book.out_of_step()), "orders out of step")
shop.book.bars(["order-0", "order-1", "order-2"], "The same customers, with a selector")

# %% [markdown]
# Two things that one pays for it:
#
# - A send with a selector makes **one attempt** (`sendSelectImpl`). A send without one tries another broker when the first does not answer (lab
#   04); here another broker would mean another queue. So the shop has to send again by itself, and must not send the next step before.
# - Some queues get more to do than others: a key that is busy cannot be divided.
#
# ### A small exercise: the same queue on every machine (1 point)
#
# Write the selector. The shop has several machines; each has a Python process of its own, and makes one object of your class. `queue_of` gets the
# list of the topic's queues and the name of an order, and returns one of the queues: for one order always the same on all machines, and for
# many orders each queue about equally often.

# %% [markdown] tags=["hints"]
# - Python's `hash("order-7")` has another value in each process. Look for a function that makes a number of some bytes, and always the same one.
# - `zlib.crc32` takes bytes and returns a whole number. A text becomes bytes with `.encode()`.
# - The number is far too large for a place in the list. What is left over when it is divided by the number of queues is not.

# %% tags=["exercise"]
import zlib


class ByOrder:
    """Chooses the queue of an order."""

    def queue_of(self, queues, order):
        """The queue, of this list, for all steps of this order."""
        ### BEGIN SOLUTION
        return queues[zlib.crc32(order.encode()) % len(queues)]
        ### END SOLUTION

# %% tags=["check"]
check("15/queue-of", ByOrder)

# %% [markdown]
# ## Round two: three locks (12 minutes)
#
# The steps of an order lie in one queue now. But who reads it? In lab 07 each member of a group works out its share of the queues by itself, and
# when one joins there are moments in which two believe that a queue is theirs. For order this is not good enough. So the consumer with an
# orderly listener asks somebody who knows: the **broker** keeps a table of locks, one for each group and queue (`RebalanceLockManager`). A
# member may take a queue only when the broker has given it the lock (`LOCK_BATCH_MQ`), and it gives the lock back
# (`UNLOCK_BATCH_MQ`) when the queue belongs to another member.
#
# A lock that is given once would be kept for ever by a member that is dead. So a lock has a time. The owner renews it, and it does so with one
# request for all its queues, every 20 s (`REBALANCE_LOCK_INTERVAL`).

# %%
lab = Lab(seed=seed)
shop = await open_shop(lab, queues=queues)
await shop.clerk("A")
lab.run_for(seconds=30)
minutes = draw.between("minutes", 4, 12)
say(f"Clerk A is alone, and has the locks of all **{queues}** queues. "
    f"For **{minutes}** minutes nobody orders anything.")

# %% tags=["prediction"]
predict("lock-requests", f"How many requests LOCK_BATCH_MQ does the broker get in these {minutes} minutes?",
        unit="requests", prediction=...)

# %%
begin_ms = lab.now_ms
lab.run_for(seconds=60 * minutes)
asked = [event for event in lab.history.find("RequestReceived", request_name="LOCK_BATCH_MQ") if event.ts_ms > begin_ms]
Table("requests for locks", ("at s", "from", "request"),
      [(round((event.ts_ms - begin_ms) / 1_000, 3), event.remote, event.request_name) for event in asked[:6]])

# %%
reveal("lock-requests", len(asked),
       why="three times a minute, and twice each time: two services of the consumer renew the same locks")

# %% [markdown]
# Twice? Since 5.0 a consumer has two services for its listener: `ConsumeMessageOrderlyService`, and a twin for Pop,
# `ConsumeMessagePopOrderlyService`. Both are started, both have the same timer, and nobody looks whether the other one has asked already. (Measured on
# a real RocketMQ 5.3.3: two requests per period in each of three runs.) It does no harm. It is the sort of thing that you find only when you look.
#
# These are all the locks that keep order:
#
# | lock | where | what it says | for how long |
# |---|---|---|---|
# | the broker's | `RebalanceLockManager` | this client has this queue | 60 s after the last renewal |
# | the client's belief in it | `ProcessQueue.isLockExpired` | I still have it | 30 s after the last renewal |
# | the queue's thread | `MessageQueueLock` | one thread at a time calls the listener for this queue | while it works |
# | the consume lock | `ProcessQueue.getConsumeLock` | a queue is not given away while the listener is called | while it works, at most 20 s after the last renewal |
#
# Why 30 s here and 60 s there? An owner that cannot reach the broker stops believing in its lock long before the broker gives it to
# somebody else. Between the two lies half a minute in which nobody works. That is the safe side: rather nobody than two.
#
# The third lock is the one with the price. A queue may hold thousands of messages, and the consumer may have many threads.

# %%
counts = [draw.between(f"in queue {n}", 8, 30) for n in range(3)]
threads = draw.between("threads", 10, 30)
lab = Lab(seed=seed)
shop = await open_shop(lab, queues=3)
await shop.fill(counts)
say(f"Three queues hold **{counts[0]}**, **{counts[1]}** and **{counts[2]}** steps, all of different orders. "
    f"A clerk comes who has **{threads}** threads, and each step takes 200 ms.")

# %% tags=["prediction"]
predict("all-done", "How many seconds pass from the begin of the first step to the end of the last one?",
        unit="s", prediction=...)

# %%
await shop.clerk("A", work_ms=200, threads=threads)
lab.run_for(seconds=20)
done = [(n, [line for line in shop.book.entries if line.queue_id == n]) for n in range(3)]
Table("when each queue was done", ("queue", "steps", "s after the first begin"),
      [(n, len(lines), round((lines[-1].end_ms - shop.book.entries[0].begin_ms) / 1_000, 1)) for n, lines in done])

# %%
reveal("all-done", round(shop.book.took_ms() / 1_000, 1),
       why=f"a queue has one thread at a time: the longest one takes {max(counts)} times 200 ms, "
           "and most threads have nothing to do")

# %% [markdown]
# The orders were all different, so nothing had to wait for anything. RocketMQ does not know that: what it keeps in order is the queue. **With order, the
# number of queues is the most that can be done at once.** More threads are no help, and more members than queues neither.
#
# ### A small exercise: what order costs (1 point)
#
# `counts` are the numbers of messages in the queues, `threads` those of one consumer (never fewer than there are queues), and each message takes
# `work_ms`. Return two times in ms: how long it takes with an orderly listener, and how long with a concurrent one, which gives
# each message to any thread that is free.

# %% [markdown] tags=["hints"]
# - With order each queue goes at its own pace, and all queues at once. When is the last one done?
# - Without order the threads work in turns: in each turn as many messages as there are threads. How many turns are needed for all messages?
# - The last turn may not be full, and takes as long as the others: divide and round up. `-(-a // b)` does that for whole numbers.

# %% tags=["exercise"]
def how_long(counts, threads, work_ms):
    """How many ms all of it takes: with an orderly listener, and with a concurrent one."""
    ### BEGIN SOLUTION
    turns = -(-sum(counts) // threads)
    return max(counts) * work_ms, turns * work_ms
    ### END SOLUTION

# %% tags=["check"]
check("15/how-long", how_long)

# %% [markdown]
# ## Round three: the owner is killed (11 minutes)
#
# Two clerks share four queues. A was there first, then B joined and got the queues 2 and 3, with their locks. Steps come all the time. Then
# somebody pulls the plug of B.

# %%
joins_s, killed_s = draw.between("joins", 6, 14), draw.between("killed", 12, 48)
lab = Lab(seed=seed)
shop = await two_clerks(lab, joins_s=joins_s)
shop.take_orders(UNTIL_THE_END, every_ms=1_000)
lab.run_for(seconds=killed_s)
say(f"B is killed **{killed_s} s** after it has started. In lab 07 the queues of a killed member were read again "
    "half a second later.")

# %% tags=["prediction"]
predict("killed-wait", "B is killed. After how many seconds does A begin with a step from the queues of B?",
        unit="s", prediction=...)

# %% tags=["prediction"]
predict("asks", "How many times does the broker refuse to give A the lock of a queue in this time?",
        unit="times", prediction=...)

# %%
lab.crash("B")
killed_ms = lab.now_ms
lab.run_for(seconds=80)
Ownership.of(lab.history, "Orders", start_ms=killed_ms - 10_000, end_ms=lab.now_ms, zero_ms=killed_ms,
             title="B is killed: who owns which queue")

# %%
renewed_ms = max(event.ts_ms for event in lab.history.find("RequestSent", node="B", request_name="LOCK_BATCH_MQ"))
killed_wait_s = (shop.book.first("A", (2, 3), since_ms=killed_ms).begin_ms - killed_ms) / 1_000
reveal("killed-wait", round(killed_wait_s, 1),
       why=f"the lock lives for 60 s after its last renewal, "
           f"which was {(killed_ms - renewed_ms) / 1_000:.1f} s before the kill")

# %%
refused = [event for event in lab.history.find("RebalanceSkipped", node="A", topic="Orders") if event.ts_ms > killed_ms]
reveal("asks", len(refused), why="for each of the two queues once a second, until the lock is old enough")

# %% [markdown]
# The broker has seen at once that the connection of B ended. It has told A, and A wants the queues within a millisecond. But **a connection that
# ends takes no lock back**: `doChannelCloseEvent` looks after the members of the group, and the table of locks is somebody else's. Why not?
# Because a closed connection does not say that the process is dead. It may be at work on a message in this moment, and connect again. Only
# time says that it cannot believe in its lock any more.
#
# A tries again each second (`rebalanceLater(500)`, and a rebalance comes never twice within a second). The first try that comes more than
# 60 s after the last renewal gets the lock (`REBALANCE_LOCK_MAX_LIVE_TIME`), and half a second later the first message is there. In the picture
# the queues of B have stripes: nobody has them. All orders in them stand still.
#
# Measured on a real RocketMQ 5.3.3, three runs: the lock of a killed owner lived for 60.4, 60.4 and 60.7 s after its last renewal, and the broker
# refused 92, 96 and 98 times.
#
# What if B had gone home properly, and what if the listener had been a concurrent one? The same world, four endings (without the half second from the
# lock to the first message):

# %%
async def stands_still(in_order, how):
    world = Lab(seed=seed)
    desk = await two_clerks(world, joins_s=joins_s, in_order=in_order)
    desk.take_orders(UNTIL_THE_END, every_ms=1_000)
    world.run_for(seconds=killed_s)
    begin_ms = world.now_ms
    if how == "is killed":
        world.crash("B")
    else:
        await desk.clerks["B"].shutdown()
    world.run_for(seconds=80)
    taken = world.history.last("QueueAllocated", node="A", topic="Orders")
    return round((taken.ts_ms - begin_ms) / 1_000, 2)


Table("s until A has the queues of B", ("listener", "B is killed", "B leaves (shutdown)"), [
    (name, await stands_still(in_order, "is killed"), await stands_still(in_order, "leaves"))
    for name, in_order in (("orderly", True), ("concurrent", False))])

# %% [markdown]
# A consumer that is shut down gives its locks back (`unlockAll`). So for an orderly group a rolling restart with `kill -9` costs a minute for each
# member, and one with `shutdown()` hardly a second.
#
# On the stage below is the same world. The board *Who owns which queue* shows a ring for each lock that the broker keeps. Step to the kill,
# and look at the rings of B: they stay.

# %%
Stepper(lab, [OwnersBoard])

# %% [markdown]
# ### A small exercise: who gets it? (1 point)
#
# The broker has given a lock to an owner that renewed it at `renewed_ms` (a list, oldest first) and never gave it back. Another member asks at
# `asks_ms` (a list, oldest first, all behind the last renewal). At which of these times does it get the lock? `None` if at none of them.

# %% [markdown] tags=["hints"]
# - Which of the renewals counts?
# - The lock has expired when *more* than 60,000 ms have passed, not when it is just that much.
# - Go through the asks in their order: the first one that is late enough gets it. What is returned when the loop has ended without one?

# %% tags=["exercise"]
def gets_it(renewed_ms, asks_ms):
    """When the other member gets the lock, in ms; None if it is always refused."""
    ### BEGIN SOLUTION
    for ask_ms in asks_ms:
        if ask_ms - renewed_ms[-1] > 60_000:
            return ask_ms
    return None
    ### END SOLUTION

# %% tags=["check"]
check("15/gets-it", gets_it)

# %% [markdown]
# ## Round four: the owner hangs, and wakes (12 minutes)
#
# A killed owner is the simple case. Now B **hangs**: its machine is suspended, or its memory is being cleaned up for minutes. The
# connection stands, and nothing moves. B is in the middle of a step when it happens. A long time later B goes on, and does not know that it
# was away.

# %%
hangs_s, away_s = draw.between("hangs", 20, 45), draw.between("away", 160, 200)
lab = Lab(seed=seed)
shop = await two_clerks(lab, joins_s=joins_s)
shop.take_orders(UNTIL_THE_END, every_ms=1_000)
lab.run_for(seconds=hangs_s)
under_way = lab.run_until_event("ConsumeStarted", node="B", topic="Orders")
lab.run_for(ms=50)
say(f"B hangs from now on, for **{away_s} s**.")

# %% tags=["prediction"]
predict("hang-wait", "B hangs. After how many seconds does A begin with a step from the queues of B?",
        unit="s", prediction=...)

# %% tags=["prediction"]
predict("again", f"After {away_s} s B goes on. How many steps that A has done by then does B do once more?",
        unit="steps", prediction=...)

# %%
lab.freeze("B")
frozen_ms = lab.now_ms
lab.run_for(seconds=away_s)
lab.thaw("B")
awake_ms = lab.now_ms
lab.run_for(seconds=50)
Ownership.of(lab.history, "Orders", start_ms=frozen_ms - 10_000, end_ms=lab.now_ms, zero_ms=frozen_ms,
             title="B hangs and wakes: who owns which queue")

# %%
reveal("hang-wait", round((shop.book.first("A", (2, 3), since_ms=frozen_ms).begin_ms - frozen_ms) / 1_000, 1),
       why="nobody misses B until it was silent for 120 s; "
           "then A must look at the group by itself, which it does every 20 s")

# %% [markdown]
# The lock ran out after 60 s, and nobody wanted it: A asks only for queues that are its share, and its share changes when the group
# changes. The broker drops a member that sent no heartbeat for 120 s (`channelExpiredTimeout`; it looks every 10 s), and usually tells nobody
# (lab 07). So what hangs costs twice as much as what is dead. (Measured on a real 5.3.3: 137, 117 and 138 s until the other member had all
# locks.)
#
# In the picture both seem to own the queues of B for a while. Both *believe* it, B in its sleep. That is what the broker's lock is
# for.

# %%
reveal("again", len(shop.book.again("B", since_ms=awake_ms)),
       why="what B had pulled, and where it stood, is still in its memory; "
           "it gets its locks again, and goes on from there")

# %%
place = {who: [((line.begin_ms - frozen_ms) / 1_000, line.queue_offset) for line in shop.book.entries
               if line.who == who and line.queue_id == 2 and line.begin_ms > frozen_ms - 10_000] for who in "AB"}
TimeChart("Queue 2: who did which message when", "offset",
          [Series("A", place["A"], BLUE, "dot"), Series("B", place["B"], VERMILION, "cross")], x_label="time, s")

# %% [markdown]
# Here is what happens in the first second after it wakes. All timers that have become due ring at once. The renewals go out, and are refused: A
# has the locks. So B stops. But with its first heartbeat it is a member again; the broker tells A; and A works out its share, gives two queues up and
# their locks back. The next renewal of B gets them. B has never heard that it had lost anything: its queues are still in its table
# (`ProcessQueue`), with the old messages in them. So it begins where it stood, and does it all again, in good order. And it
# tells the broker *its* offset, so that the group's progress goes **back**.
#
# Measured on a real RocketMQ 5.3.3, where one of two members hung for 150 s and four messages a second came, three runs: 294, 296 and 296 messages were
# delivered again when it went on.
#
# So the promise of an orderly listener is: **within a queue, a message is not given to a listener before the one in front of it is done.** It is not: each
# message once. And there is a hole even in that. What about the step that B was at when it fell asleep?

# %%
fell_asleep = under_way.queue_id, under_way.queue_offset
at_it = [line for line in shop.book.entries if (line.queue_id, line.queue_offset) == fell_asleep]
Table("the step that B was at", ("clerk", "step", "begun at s", "done at s"), [
    (line.who, f"{line.order} {STEPS[line.step - 1]}", round((line.begin_ms - frozen_ms) / 1_000, 1),
     round((line.end_ms - frozen_ms) / 1_000, 1)) for line in at_it])

# %% [markdown]
# B begins, A does the same step, and goes on with the next ones; minutes later B *finishes*. Nobody asks for a lock in the middle of a listener. No lock
# with a time can close this hole: whoever holds one may sleep until it has run out, and then go on. Only the place where the work is written down
# can: it must refuse what comes too late. For that it needs a number that rises. Each step has one.
#
# Before you build on the number above: does B *always* do everything again? The same world once more, and only the name of the group is another one.

# %%
async def done_again(group):
    world = Lab(seed=seed)
    desk = await two_clerks(world, joins_s=joins_s, group=group)
    desk.take_orders(UNTIL_THE_END, every_ms=1_000)
    world.run_for(seconds=hangs_s)
    world.run_until_event("ConsumeStarted", node="B", topic="Orders")
    world.run_for(ms=50)
    world.freeze("B")
    world.run_for(seconds=away_s)
    world.thaw("B")
    wakes_ms = world.now_ms
    world.run_for(seconds=50)
    return len(desk.book.again("B", since_ms=wakes_ms))


Table("done again", ("group", "steps that B does again"),
      [(group, await done_again(group)) for group in ("desk", "clerks", "office", "shippers")])

# %% [markdown]
# A name decides. When B wakes, its rebalance asks who is in the group, once for each topic, and a consumer has two: `Orders` and the retry topic of its group
# (lab 09). The first question goes into a connection that the broker has closed long ago, and is lost. The second one is answered over a new connection, before
# B's heartbeat has come: *you are no member*. If the second one is about `Orders`, B gives its queues up and begins anew where A stands. Which one is second?
# The topics are in a Java map, and their order is that of the hashes of their names. (This we have seen here and not measured on the real one, where two threads
# race in this moment.) So "it did not come twice when we tried it" says very little.
#
# ### A small exercise: whose turn is it? (1 point)
#
# The book says how many steps of an order are `done`: 0 at first. A message says: do `step` (counted from 1). Return `"do"` when it is this step's turn,
# `"skip"` when it was done already, and `"wait"` when one in front of it is missing.

# %% [markdown] tags=["hints"]
# - When 2 steps are done, which number is the next one?
# - Three cases: the number is just that one, it is smaller, it is larger.
# - Compare `step` with `done + 1`. Two comparisons are enough, and the third case is what is left.

# %% tags=["exercise"]
def turn(done, step):
    """What to do with a step of an order of which so many steps are done: "do", "skip" or "wait"."""
    ### BEGIN SOLUTION
    if step <= done:
        return "skip"
    return "do" if step == done + 1 else "wait"
    ### END SOLUTION

# %% tags=["check"]
check("15/turn", turn)

# %% [markdown]
# ## Break it: more queues (7 minutes)
#
# The shop grows, and its queues are not enough. An administrator adds some, in the night, when no clerk is at work. In the evening customers have placed and
# paid their orders; in the morning these are packed and shipped. The selector is `SelectMessageQueueByHash`. When all is sent, a clerk comes.

# %%
before, more = draw.between("before", 3, 5), draw.between("more", 1, 2)
evening = draw.between("evening", 24, 48)
lab = Lab(seed=seed)
shop = await open_shop(lab, queues=before)
await shop.send_steps(evening, (1, 2))
lab.create_topic("Orders", before + more)
lab.run_for(seconds=35)
await shop.send_steps(evening, (3, 4))
say(f"**{evening}** orders, with two steps in the evening and two in the morning. "
    f"`Orders` had **{before}** queues, and has **{before + more}** now.")

# %% tags=["prediction"]
predict("moved", f"Of how many of the {evening} orders are the last two steps in another queue than the first two?",
        unit="orders", prediction=...)

# %% tags=["prediction"]
predict("grown-out-of-step", "Of how many orders is a step begun before the one in front of it is done?",
        unit="orders", prediction=...)

# %%
await shop.clerk("A")
lab.run_for(seconds=30)
queue_of = {(line.order, line.step): line.queue_id for line in shop.book.entries}
orders = [f"order-{n}" for n in range(evening)]
moved = [order for order in orders if queue_of[order, 2] != queue_of[order, 3]]
Table("the first orders", ("order", "queue in the evening", "queue in the morning"),
      [(order, queue_of[order, 2], queue_of[order, 3]) for order in orders[:6]])

# %%
reveal("moved", len(moved),
       why=f"the hash is divided by {before + more} where it was divided by {before}: most rests are others")

# %%
grown = shop.book.out_of_step()
reveal("grown-out-of-step", len(grown),
       why="the queues are read side by side; an order is safe if it stayed, or if its old queue happened to be faster")

# %%
shop.book.bars(grown[:5], "Some orders that were under way when queues were added")

# %% [markdown]
# No process was killed, and no lock was lost. **Order holds as long as the number of queues does.** Two ways are in use: begin with many more queues than you
# need; or let all old messages be consumed before the first new one is sent. A third way needs neither, and you build it now.
#
# ## Build it: in turn, whatever happens (18 minutes)
#
# Two classes. The first is the **sharding rule**, which each machine of the shop has (two here, and each makes an object of its own):
#
# - `queue_of(queues, order)` returns one of the queues: for one order and one list always the same, on all machines, and for many orders each queue about
#   equally often. When queues are *added* (at the end of the list), an order may stay or move to a **new** queue, and never from one old queue to
#   another one.
#
# The second is the **listener** of a clerk. Each process makes one, and after a kill a new one: `Clerk(book)`. The book is a table on a machine of its own. It
# holds for each order how many of its steps are done, and it outlives all clerks.
#
# - `await book.done(order)`: how many steps of this order are done.
# - `await book.work(order, step)`: do the work. It takes a while, and leaves no trace in the book.
# - `await book.write(order, step)`: so many steps are done now. The book does what it is told.
# - `await book.write_if(order, done, step)`: the same, but only if the book still says `done`. True if it was written.
#
# `consume_message(messages, context)` gets a list of messages (here always one). The order is `message.keys`, the step `message.properties["step"]`, a
# text. Return `ConsumeOrderlyStatus.SUCCESS` when it is done, or `SUSPEND_CURRENT_QUEUE_A_MOMENT`: then the queue stands still for a
# second, and the same message comes again.
#
# The check plays a day with your classes: orders come, and queues are added in the middle. A clerk joins and leaves, or one is killed, or one
# hangs in the middle of `work` and wakes minutes later. In the end **the book must say of every order that all four steps are done; it must
# never go back or leave a step out; and no work may be begun before its turn, or after it was done.**
#
# Think first: which of these accidents brings a message twice? Which brings one too early? And which one comes between `work` and `write`?

# %% [markdown] tags=["hints"]
# - The rule: give each queue a number for this order (a hash of both names), and let the largest number win. What changes when a queue is added? Use
#   `hashlib.md5(...).digest()` as the number: bytes can be compared, and `zlib.crc32` is not mixed well enough for this.
# - The listener: it is the exercise of round four with the book around it. What comes twice is skipped, and skipped means that it is done; what comes too
#   early must come again.
# - Between the first look into the book and the last line minutes may pass, while somebody else does your step and the next ones. So how must the result be
#   written, and what is to be returned when the book refuses it?

# %% tags=["exercise"]
import hashlib

from mqlab.client import ConsumeOrderlyStatus


class Shards:
    """Chooses the queue of an order, and keeps most orders where they are when queues are added."""

    def queue_of(self, queues, order):
        """The queue, of this list, for the steps of this order."""
        ### BEGIN SOLUTION
        def weight(queue):
            return hashlib.md5(f"{order} {queue.broker_name} {queue.queue_id}".encode()).digest()

        return max(queues, key=weight)
        ### END SOLUTION


class Clerk:
    """Does the steps of each order in turn, each once."""

    def __init__(self, book):
        self.book = book

    async def consume_message(self, messages, context):
        """Do these steps, skip them, or let them wait."""
        ### BEGIN SOLUTION
        for message in messages:
            order, step = message.keys, int(message.properties["step"])
            done = await self.book.done(order)
            if step <= done:
                continue
            if step > done + 1:
                return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
            await self.book.work(order, step)
            if not await self.book.write_if(order, done, step):
                return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
        return ConsumeOrderlyStatus.SUCCESS
        ### END SOLUTION

# %% tags=["check"]
check("15/in-turn", Shards, Clerk)

# %% [markdown] tags=["teacher"]
# The rule is *rendezvous hashing* (highest random weight); a ring with many points, or jump hashing, does it as well. The step is a *fencing token*: a
# number that rises, which the place of the work compares. What goes wrong, roughly in this order: `write` in place of `write_if` (a clerk that hung sets the
# book back); steps that come too early are skipped, or done; what was done is remembered in the object, which a kill empties; `hash()` of a text, which
# each process has its own of.
#
# Worth a discussion: can two queues wait for each other for ever? No. A step waits only for one that was sent before it, and a message only for those in
# front of it, which were sent before it as well. So whatever waits, waits for something older, and the oldest never waits.

# %% [markdown]
# ## What is different in today's RocketMQ
#
# - The article on the push consumer ([docs/seeds.md](../docs/seeds.md) goes through it) says that RocketMQ "keeps strict order". Within one queue, with an
#   orderly listener, as you have seen; the order of a topic was never promised.
# - An orderly queue without its lock is pulled again after 1 s. It was 3 s in the version of the article.
# - In 5.x a message can carry a **message group**, and a proxy's client with a FIFO group pops in order: the broker blocks a queue for a batch, and nobody owns
#   it (lab 14). There a killed consumer costs the invisible time of its batch, and no lock.
# - `SelectMessageQueueByHash` still divides by the number of queues. Topics whose number of queues is fixed for all brokers (`orderMessageEnable`, the
#   KV configuration `ORDER_TOPIC_CONFIG`) keep it when a broker is gone for a while: then sends fail, and are not sent elsewhere.
#
# ## Where to read on
#
# - `client/src/main/java/org/apache/rocketmq/client/impl/consumer/ConsumeMessageOrderlyService.java`: `ConsumeRequest.run`, `lockMQPeriodically`; here
#   `mqlab/client/consumer/push/consume_message_orderly_service.py`
# - `client/src/main/java/org/apache/rocketmq/client/impl/consumer/RebalanceImpl.java`: `lock`, `lockAll`, `updateProcessQueueTableInRebalance`; here
#   `mqlab/client/consumer/rebalance/queue_locks.py` and `rebalance_impl.py`
# - `broker/src/main/java/org/apache/rocketmq/broker/client/rebalance/RebalanceLockManager.java`; here `mqlab/broker/rebalance_lock_manager.py`
# - `client/src/main/java/org/apache/rocketmq/client/producer/selector/SelectMessageQueueByHash.java`; here
#   `mqlab/client/producer/message_queue_selector.py`
#
# ## Three questions to take home
#
# 1. One customer in a thousand orders as much as all others together. What does that do to a topic with 16 queues, and what can you do about it without
#    giving up the order of that customer?
# 2. The locks are in the memory of the broker, and are gone when it is started again. Who can get a queue then, and when is that dangerous? (An owner believes in its
#    lock for 30 s.)
# 3. Would you make the 60 s shorter? What must you know of your machines before you do, and which number has to become smaller with it?
#
# ## Your bets

# %%
reveal()
