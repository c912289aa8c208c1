# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   mqlab:
#     title: Who owns which queue?
#     question: The members of a group share the queues of a topic. Who deals them out, and why do messages come twice?
#     objectives:
#       - say how the members of a group agree on their queues without talking to each other
#       - tell from the offsets which messages come twice when a member joins, dies, or hangs
#       - compute the share of a member yourself, as RocketMQ's default strategy does
#     minutes: 70
#     prerequisites: [00 Tour]
#     wrong_predictions:
#       - "who-deals: the broker; it only tells that something has changed, and who is there"
#       - "gives-up: 20,000, the period of the rebalance; the notice wakes it"
#       - "first-pull: a few ms after A has given up; two waits of 1000 and 500 ms stand in between"
#       - "nothing-to-do: I, since it came last; the client ids are sorted as texts"
#       - "killed: about 30 or 120 s, as if only heartbeats could tell"
#       - "twice-calm: 0, since everything was done; or all of the last 5 s"
#       - "twice-burst: 4, one for each queue, as before"
#       - "hung: as fast as when it was killed; or exactly 120 s"
#       - "twice-hung: 0 or 4, as when it was killed"
# ---

# %% tags=["parameters"]
student_id = ""

# %% [markdown]
# Eight packing tables, three packers. Each table has its own line of orders, and two packers at one table would pack
# the same order twice. So every table needs one packer, and one only. A packer who comes wants tables; one who goes
# home leaves some behind. Who deals the tables out?
#
# In RocketMQ a table is a **queue**: a topic is cut into queues, here eight. A packer is a **consumer**, and packers
# who share the work are a **group**. Dealing the queues out again when somebody comes or goes is called
# **rebalance**. In our first world a producer sends ten orders a second, to one queue after the other, and a packer
# takes 100 ms for each.

# %%
from mqlab import Lab, scenarios
from mqlab.check import NotSolvedYet, check, predict, reveal, seed_for
from mqlab.scenarios.membership import open_shop, packer, spawn_orders
from mqlab.views import Ownership, Table, duplicates_table, offsets_table
from mqlab_widgets import Stepper
from mqlab_widgets.boards.owners import OwnersBoard

seed = seed_for(student_id, "07")

# %%
lab = Lab(seed=seed)
producer = await open_shop(lab, queues=8)
a = packer(lab, "A")
await a.start()
spawn_orders(producer, every_ms=100)
lab.run_for(seconds=12)
lab.process_queues(a)

# %% [markdown]
# A is alone and owns all eight. In none of them does anything pile up: one packer is enough.
#
# ## Round one: B joins
#
# B starts, and greets the broker with a **heartbeat**: "I am a member of the group". Half of the queues shall be B's.

# %% tags=["prediction"]
predict("who-deals", "Who decides which four queues B gets?",
        choices=["the broker", "the name server", "A, the oldest member", "A and B, each for itself"],
        prediction=...)

# %% tags=["prediction"]
predict("gives-up",
        "The broker sends A a notice: the members have changed. How long until A owns only four?",
        unit="ms", prediction=...)

# %% tags=["prediction"]
predict("first-pull", "And B? How long after its start does it fetch (pull) the first order?",
        unit="ms", prediction=...)

# %%
b = packer(lab, "B")
joining = b.start().start()
notice = lab.run_until_event("RequestReceived", node="A", request_name="NOTIFY_CONSUMER_IDS_CHANGED")

# %% [markdown]
# A has just read the notice. What is in it?

# %%
await joining
b_started = lab.now_ms
lab.run_for(ms=3)
lab.space_time(notice.ts_ms - 1, notice.ts_ms + 0.7, nodes=["A", "broker-a", "B"],
               requests=["HEART_BEAT", "NOTIFY_CONSUMER_IDS_CHANGED", "GET_CONSUMER_LIST_BY_GROUP"],
               kinds=[], title="B greets the broker, and A gives queues up")

# %% [markdown]
# Nothing but the name of the group. It does not say what to do. A asks back: who are the members? The broker answers
# with a list of **client ids**, and A gives four queues up, in the same millisecond.

# %%
gave_up = lab.history.last("QueueDropped", node="A")
reveal("gives-up", round(gave_up.ts_ms - notice.ts_ms, 1),
       why="the notice wakes the RebalanceService, which else sleeps for 20 s")

# %% [markdown]
# Measured on a real RocketMQ 5.3.3: 10, 23 and 25 ms (its tables were looked at every 50 ms). How did A know *which* four
# to keep? It knows two lists: the queues, from the name server, and the members, from the broker. It sorts both and
# calls a function, the **allocation strategy**. B does the same with the same lists. Let us do it for them:

# %%
from mqlab.rebalance import AllocateMessageQueueAveragely, allocate_to_all

queues = await b.fetch_subscribe_message_queues("Orders")
members = [member.impl.instance.client_id for member in (a, b)]
shares = allocate_to_all(AllocateMessageQueueAveragely(), "packers", queues, members)
Table("what each computes", ("member", "queues"),
      [(who, [queue.queue_id for queue in mine]) for who, mine in shares.items()])

# %%
lab.run_for(seconds=3)
held = [[queue.queue_id for queue in sorted(member.process_queues) if queue.topic == "Orders"]
        for member in (a, b)]
held

# %%
computed = [[queue.queue_id for queue in mine] for mine in shares.values()]
reveal("who-deals", "d" if held == computed else "a",
       why="nobody deals; the same function of the same sorted lists gives the same answer everywhere")

# %% [markdown]
# Nobody deals. **Everybody computes everybody's share and takes their own.** It works as long as all have the same
# lists and the same function (`AllocateMessageQueueStrategy`). While the lists differ, so do the results. Here is the
# whole change:

# %%
Ownership.of(lab.history, "Orders", start_ms=b_started - 500, end_ms=b_started + 2_000,
             zero_ms=b_started, pulls=True, title="B joins: A lets go at once, B takes a second later")

# %%
pulled = next(event for event in lab.history.find("PullRequested", node="B", topic="Orders"))
reveal("first-pull", round(pulled.ts_ms - b_started),
       why="1000 ms of RebalanceService, 500 ms of dispatchPullRequest")

# %% [markdown]
# For a second nobody owns the four queues, and for half a second more B owns them and fetches nothing. Both waits are
# B's own. Its `RebalanceService` leaves at least 1000 ms between two runs (`minInterval`), and counts its own
# creation as the first one. And a queue that was taken is first pulled after 500 ms
# (`RebalancePushImpl.dispatchPullRequest`): a moment for the old owner to write down how far it is. Measured: owned
# 64 to 1176 ms after the start (the Java client needs part of its second for starting), first pull 394 to 473 ms
# after that.
#
# ### Nine packers, eight queues
#
# A group may have more members than there are queues. A to I start one after the other; I is the last.

# %% tags=["prediction"]
predict("nothing-to-do", "Nine members, eight queues. Who gets no queue of Orders?",
        choices=["I: it came last", "A: it came first", "nobody: two share one", "one in the middle, F"],
        prediction=...)

# %%
crowd_lab = Lab(seed=seed)
await open_shop(crowd_lab)
crowd = [packer(crowd_lab, name) for name in "ABCDEFGHI"]
for member in crowd:
    await member.start()

crowd_lab.run_for(seconds=25)
rows = []
for member in crowd:
    mine = [queue.queue_id for queue in member.process_queues if queue.topic == "Orders"]
    rows.append((member.impl.instance.client_id, member.node.name, mine))

Table("sorted, as the strategy sees them", ("client id", "who", "queues of Orders"), sorted(rows))

# %%
idle = [who for _, who, mine in rows if not mine]
reveal("nothing-to-do", {"I": "a", "A": "b"}.get(*idle, "d"),
       why="the ids are sorted as texts: 10.0.0.10 comes before 10.0.0.4")

# %% [markdown]
# The order is that of the client ids as *texts* (address, `@`, process, start time), not of coming. So a ninth packer
# may well push another one out. It is no use anyhow: **more members than queues do nothing.** If you want to scale,
# make the queues first.
#
# ## Round two: what is written down where
#
# Back to the first shop. C joins, too, and all is well for some seconds. A message is never deleted when it is
# consumed. Instead each queue has a number for each group: all messages before this **offset** are done. There are
# two copies of this number. The owner has one in its memory. The broker has another, and the next owner will ask the
# broker.

# %%
c = packer(lab, "C")
await c.start()
lab.run_for(seconds=13)
offsets_table(lab.history, "Orders", group="packers")

# %% [markdown]
# The broker is one message behind. The owner sends its number in two ways: every 5 s for all its queues
# (`persistConsumerOffsetInterval`), and with **each pull** on the way. The next pull goes out as soon as the messages
# of the last one are there, when the listener has not even begun. So the broker hears of a message when the *next*
# one has come. Now C is killed.

# %% tags=["prediction"]
predict("killed", "C is killed. How long until A and B own its queues?", unit="ms", prediction=...)

# %% tags=["prediction"]
predict("twice-calm", "How many orders come twice?", unit="orders", prediction=...)

# %%
killed_ms = lab.now_ms
lab.crash("C")
lab.run_for(seconds=10)
Ownership.of(lab.history, "Orders", start_ms=killed_ms - 500, end_ms=killed_ms + 1_500,
             zero_ms=killed_ms, pulls=True, title="C is killed: its queues have owners again at once")

# %%
taken = [event for event in lab.history.find("QueueAllocated", topic="Orders") if event.ts_ms > killed_ms]
reveal("killed", round(taken[-1].ts_ms - killed_ms, 1),
       why="the connection closes, and the broker tells the others at once")

# %% [markdown]
# When a process dies, its operating system closes its connections, the broker sees that and sends notices
# (`ConsumerManager.doChannelCloseEvent`). No heartbeat had to be missed. Measured: 77, 97 and 161 ms (here only the
# network takes time, there a process has to die first). The first pull comes 500 ms later, as before. And the orders
# that came twice, with the reason:

# %%
twice = duplicates_table(lab.history, "Orders", start_ms=killed_ms, end_ms=lab.now_ms,
                         zero_ms=killed_ms)
twice

# %%
reveal("twice-calm", len(twice),
       why="about one in each queue that moved: the next pull would have told of it")

# %% [markdown]
# About one for each queue that moved (measured, with four queues: 4, 5 and 4): the one that had come last.
#
# **A message may come twice when nobody dies, too.** A queue that moves between two living members is given up while
# the listener is in the middle of a message. Nobody stops the listener. It ends well, but by then the queue belongs
# to somebody else, and the result counts for nothing (`ProcessQueue.dropped`). Or the new owner asks the broker for
# the offset a moment before the old owner's last word has arrived. Here is what the joining of B and C has cost
# (none, if you are lucky; measured: 0 to 4 each time):

# %%
duplicates_table(lab.history, "Orders", start_ms=0, end_ms=killed_ms, zero_ms=killed_ms)

# %% [markdown]
# Is it always one for each queue? A new world, two packers, no orders at first. Then 160 at once: 20 for each queue.
# The packers need two seconds. One second after they have finished everything, B is killed.

# %% tags=["prediction"]
predict("twice-burst", "All 160 orders are done, 80 by B. B is killed a second later. How many come twice?",
        unit="orders", prediction=...)

# %%
lab = Lab(seed=seed)
producer = await open_shop(lab)
for name in "AB":
    await packer(lab, name).start()

lab.run_for(seconds=11)
spawn_orders(producer, orders=160, every_ms=0)
lab.run_for(seconds=3)
offsets_table(lab.history, "Orders", group="packers")

# %%
killed_ms = lab.now_ms
lab.crash("B")
lab.run_for(seconds=6)
twice = duplicates_table(lab.history, "Orders", start_ms=killed_ms, end_ms=lab.now_ms,
                         zero_ms=killed_ms, most=4)
twice

# %%
reveal("twice-burst", len(twice),
       why="the last pull went out before the work was done, and the next timer was 2 s away")

# %% [markdown]
# Every single one. The pulls that would have told of them were sent before the work was done, and then the broker
# *held* them, since there was nothing new (lab 05). All that was left was the 5 s timer. The offset in memory was
# right, and it died with B. Busy queues are reported with each pull; **a queue that has just fallen silent may be 5 s
# behind.**
#
# ## Break it: D hangs
#
# Now the worst case. A and D share the queues. D's process is stopped (a debugger, a full disk, a long garbage
# collection): its connections stay open, it says nothing. 160 s later it goes on as if nothing had happened.

# %% tags=["prediction"]
predict("hung", "D hangs. How long until A owns D's queues?", unit="s", prediction=...)

# %% tags=["prediction"]
predict("twice-hung", "D goes on after 160 s. Five orders a second came for its queues. How many come twice in the next 20 s?",
        unit="orders", prediction=...)

# %%
lab = scenarios.get("member-hangs").build(seed)
hung_ms = lab.now_ms
lab.run_until_event("ClientExpired", role="consumer")

# %% [markdown]
# The only thing that a broker can know of a process that hangs is that its heartbeat (every 30 s) does not come. It
# looks every 10 s and drops whoever was silent for 120 s (`channelExpiredTimeout`). Measured, from the last
# heartbeat: 120.6, 120.7 and 127.8 s. In the event above it is `silent_ms`. And now everybody is told?

# %%
dropped_ms = lab.now_ms
took = lab.run_until_event("QueueAllocated", node="A", topic="Orders")
notices = [event for event in lab.history.between(dropped_ms, lab.now_ms)
           if event.kind == "RequestReceived" and event.request_name == "NOTIFY_CONSUMER_IDS_CHANGED"]
f"{(took.ts_ms - dropped_ms) / 1_000:.1f} s later, after {len(notices)} notices"

# %%
reveal("hung", round((took.ts_ms - hung_ms) / 1_000, 1),
       why="120 to 130 s after the last heartbeat, and up to 20 s of A's own rhythm")

# %% [markdown]
# No notice. The broker closes the connection and takes D out of its table in the same step, and when the "connection closed"
# event comes by, it finds nobody to report (`ConsumerManager.scanNotActiveChannel`). So A finds out at its own next
# rebalance, which comes every 20 s (`waitInterval`). Measured: 13 ms, 19.2 s and 19.6 s after the drop; the first run
# was lucky in the race of the two. For more than two minutes half of the orders were not packed at all.
#
# Now D goes on.

# %%
woke = lab.run_until_event("NodeThawed")
lab.run_for(seconds=20)
Ownership.of(lab.history, "Orders", start_ms=hung_ms - 10_000, end_ms=lab.now_ms, zero_ms=hung_ms,
             title="D hangs for 160 s: for half a minute both believe that they own its queues")

# %%
twice = duplicates_table(lab.history, "Orders", start_ms=woke.ts_ms, end_ms=lab.now_ms,
                         zero_ms=woke.ts_ms, most=5)
twice

# %%
reveal("twice-hung", len(twice),
       why="D still had its queues and offsets in memory, and went on from there")

# %% [markdown]
# D never learned that it was dropped. Its table said "mine", its offsets were 160 s old, and it pulled from there:
# all that A had packed meanwhile. Measured: 725, 686 and 718 in the whole phase. Worse, each pull carries D's *old*
# offset to the broker, and the broker believes the last one who speaks (`ConsumerOffsetManager.commitOffset`
# overwrites):

# %%
from itertools import groupby

near = [event for event in lab.history.find("OffsetCommitted", topic="Orders", queue_id=6)
        if -3_000 < event.ts_ms - woke.ts_ms < 4_000]
commits = [next(same) for _, same in groupby(near, key=lambda event: event.queue_offset)]
Table("queue 6: the group's offset at the broker, each change", ("s after D goes on", "committed"),
      [(f"{(event.ts_ms - woke.ts_ms) / 1_000:+.1f}", event.queue_offset) for event in commits], most=12)

# %% [markdown]
# The group's progress runs backwards. No setting prevents that: as long as members decide for themselves what is
# theirs, one who slept cannot know better. (Locks for orderly consumption and Pop, in which the broker hands out
# single messages, are RocketMQ's two answers.) What helps is a listener that does not mind seeing a message twice
# (lab 09).
#
# Now you break it. Here are three packers; C will be killed half a second from now. Press **play**, click a machine, and
# **crash**, **freeze** or **restart** it. The squares below the machines say who owns which queue. Can you get a queue
# with two owners, or one with nobody, and how long does it stay so?

# %%
Stepper(scenarios.get("member-killed").build(seed).run_for(ms=500), [OwnersBoard])

# %% [markdown]
# ## Build it: your own share
#
# What A and B computed in round one is the default strategy, `AllocateMessageQueueAveragely`. Write it as a function:
# `own_share` gets a member's own client id, the sorted queues and the sorted client ids of all members, and returns the
# member's queues, a block of neighbours. If the queues do not divide evenly, the first members in the list get one
# more. The check compares it with RocketMQ's own rule, with 1 to 9 members and 1 to 24 queues.

# %% tags=["exercise"]
def own_share(client_id, queues, members):
    """The queues of one member, as AllocateMessageQueueAveragely gives them out."""
    ### BEGIN SOLUTION
    share, rest = divmod(len(queues), len(members))
    place = members.index(client_id)
    start = place * share + min(place, rest)
    return queues[start : start + share + (place < rest)]
    ### END SOLUTION


# %% tags=["check"]
check("07/own-share", own_share)

# %% [markdown]
# ## What is different in today's RocketMQ
#
# - The article: a process queue is dropped when its topic is no longer subscribed. Also when the queue goes to another
#   member (this whole lab), when its offset was illegal, and after 120 s without a pull (`isPullExpired`).
# - The article: an illegal offset is repaired after 10 s. Today at once, and the offset is frozen meanwhile
#   (`ControllableOffset`).
# - New in 5.x: after a rebalance that left something open (a lock not obtained) the next one comes after 1 s, not 20.
# - New in 5.x: with `clientRebalance = false` the broker computes the shares (mqlab does not have this), and Pop does
#   without owners altogether.
#
# ## Where to read on
#
# - `client/src/main/java/org/apache/rocketmq/client/impl/consumer/RebalanceImpl.java`: `rebalanceByTopic`,
#   `updateProcessQueueTableInRebalance`; here `mqlab/client/consumer/rebalance/rebalance_impl.py`
# - `broker/src/main/java/org/apache/rocketmq/broker/client/ConsumerManager.java`: who is a member, and who hears of
#   it; here `mqlab/broker/consumer_manager.py`
#
# ## Three questions to take home
#
# 1. **What does it cost?** A group of 100 members is updated one by one: each leaves and comes back. How many notices
#    does the broker send, how many lists of members do the clients ask for, and how many seconds is an average queue
#    without a pull?
# 2. D hung for 160 s and did a lot of harm. For which lengths of a hang is there no harm at all, and for which is
#    there only delay?
# 3. Which of these could make sure that no queue ever has two owners: shorter heartbeats, a lock at the broker, a
#    number that grows with each change of owners and goes along with each commit? What does each cost?
#
# ## Your bets

# %%
reveal()
