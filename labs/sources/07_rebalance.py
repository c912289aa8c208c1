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
#       - write a member of a group that takes queues, gives them up, and loses nothing
#     minutes: 82
#     prerequisites: [00 Tour]
#     wrong_predictions:
#       - "who-deals: the broker; it only tells that something has changed, and who is there"
#       - "gives-up: 20,000, the period of the rebalance; or 0, as if the notice said what to do"
#       - "waiting: one or two; or half of those of one second, without the 500 ms before the first pull"
#       - "nothing-to-do: the last one, since it came last; the client ids are sorted as texts"
#       - "killed: about 30 or 120 s, as if only heartbeats could tell"
#       - "twice-calm: 0, since everything was done; or all of the last 5 s"
#       - "twice-burst: one for each queue, as before"
#       - "hung: as fast as when it was killed; or exactly 120 s"
#       - "twice-hung: 0, since A has done them; or one for each queue"
# ---

# %% tags=["parameters"]
student_id = ""

# %% [markdown]
# ## The scene (4 minutes)
#
# A row of packing tables, and three packers. Each table has its own line of orders, and two packers at one table would
# pack the same order twice. So every table needs one packer, and one only. A packer who comes wants tables; one who
# goes home leaves some behind. Who deals the tables out?
#
# In RocketMQ a table is a **queue**: a topic is cut into queues. A packer is a **consumer**, and packers who share the
# work are a **group**. Dealing the queues out again when somebody comes or goes is called **rebalance**.

# %%
from mqlab import Lab, scenarios
from mqlab.check import NotSolvedYet, check, draws_for, predict, reveal, say, seed_for
from mqlab.scenarios.membership import open_shop, packer, spawn_orders
from mqlab.views import Ownership, Table, duplicates_table, offsets_table
from mqlab_widgets import Stepper
from mqlab_widgets.boards.owners import OwnersBoard

seed = seed_for(student_id, "07")
draw = draws_for(seed)

# %%
tables = draw.between("tables", 7, 12)
every_ms = draw.between("every", 50, 100, step=5)
away_ms = draw.between("away", 8, 45)
say(f"Your world: the topic `Orders` has **{tables} queues**. A producer sends an order every **{every_ms} ms**, to one "
    "queue after the other. A packer takes 100 ms for each order, and has four hands (threads). Packer A works in "
    f"another building: whatever goes from the broker to A, or from A to the broker, is **{away_ms} ms** on its way. "
    "All others are near, less than a millisecond.")

# %%
lab = Lab(seed=seed)
producer = await open_shop(lab, queues=tables)
a = packer(lab, "A")
lab.act("delay", source="A", target="broker-a", ms=away_ms)
lab.act("delay", source="broker-a", target="A", ms=away_ms)
await a.start()

# %%
spawn_orders(producer, queues=tables, every_ms=every_ms)
lab.run_for(seconds=12)
lab.process_queues(a)

# %% [markdown]
# A is alone and owns all queues of `Orders`. In none of them does anything pile up: one packer is enough.
#
# ## Round one: B joins (18 minutes)
#
# B starts, and greets the broker with a **heartbeat**: "I am a member of the group". Half of the queues shall be B's.

# %% tags=["prediction"]
predict("who-deals", "Who decides which queues B gets?",
        choices=["the broker", "the name server", "A, the oldest member", "A and B, each for itself"],
        prediction=...)

# %% tags=["prediction"]
predict("gives-up",
        f"The broker tells A that the members have changed, and A reads it. How long until A owns {tables // 2} queues less?",
        unit="ms", prediction=...)

# %% [markdown]
# First stop: A has read the notice. What is in it?

# %%
b = packer(lab, "B")
joining = b.start().start()
notice = lab.run_until_event("RequestReceived", node="A", request_name="NOTIFY_CONSUMER_IDS_CHANGED")

# %% [markdown]
# Second stop: A gives a queue up.

# %%
gave_up = lab.run_until_event("QueueDropped", node="A")
b_started = lab.history.last("ClientStarted", node="B").ts_ms
lab.space_time(notice.ts_ms - away_ms - 1, gave_up.ts_ms + 1, nodes=["A", "broker-a", "B"],
               requests=["HEART_BEAT", "NOTIFY_CONSUMER_IDS_CHANGED", "GET_CONSUMER_LIST_BY_GROUP"],
               kinds=["QueueDropped"], title="B greets the broker")

# %%
reveal("gives-up", round(gave_up.ts_ms - notice.ts_ms, 1),
       why="a question to the broker, and its answer; the notice has ended the sleep of 20 s")

# %%
from mqlab.rebalance import AllocateMessageQueueAveragely, allocate_to_all

await joining
queues = await b.fetch_subscribe_message_queues("Orders")
members = [member.impl.instance.client_id for member in (a, b)]
shares = allocate_to_all(AllocateMessageQueueAveragely(), "packers", queues, members)
Table("computed from two lists", ("member", "queues"),
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
# In the notice was nothing but the name of the group. It does not say what to do. It only wakes A's `RebalanceService`,
# which else sleeps for 20 s (`waitInterval`). A asks back: who are the members? That takes one way to the broker and one
# way back. The broker answers with a list of **client ids**, and A gives its queues up in the same millisecond. Measured
# on a real RocketMQ 5.3.3, where everybody was near: 10, 23 and 25 ms (its tables were looked at every 50 ms).
#
# How did A know *which* queues to keep? It knows two lists: the queues, from the name server, and the members, from the
# broker. It sorts both and calls a function, the **allocation strategy**. B does the same with the same lists. Nobody
# deals. **Everybody computes everybody's share and takes their own.** It works as long as all have the same lists and
# the same function (`AllocateMessageQueueStrategy`). While the lists differ, so do the results.
#
# ### Your turn: your own share
#
# What A and B have computed is the default strategy, `AllocateMessageQueueAveragely`. Write it as a function: `own_share`
# gets a member's own client id, the sorted queues and the sorted client ids of all members, and returns the member's
# queues, a block of neighbours. If the queues do not divide evenly, the first members in the list get one more. The check
# compares it with RocketMQ's own rule, with 1 to 9 members and 1 to 24 queues.

# %% [markdown] tags=["hints"]
# - How large is a share, and how many queues are left over? Python's `divmod` says both. Where in the list does a member stand?
# - Who stands at place `p` (counted from 0) has `p` shares in front of it, and one queue more for each member in front that got one more.
# - "One more" have the first members, as many as there is a rest. So how many of those in front of place `p` got one more: all of them, or only the rest? And does `p` itself?

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
# ### And B?
#
# A has let go. Until B fetches (pulls) for the first time, orders go on coming into the queues that A gave up.

# %% tags=["prediction"]
predict("waiting", f"An order comes every {every_ms} ms. How many orders come into B's queues before B's first pull?",
        unit="orders", prediction=...)

# %%
pulled = next(event for event in lab.history.find("PullRequested", node="B", topic="Orders"))
came = [event for event in lab.history.find("MessageStored", topic="Orders")
        if gave_up.ts_ms < event.ts_ms < pulled.ts_ms and event.queue_id in held[1]]
reveal("waiting", len(came),
       why=f"{(pulled.ts_ms - gave_up.ts_ms) / 1_000:.2f} s without a pull, and B owns {len(held[1])} of {tables} queues")

# %%
Ownership.of(lab.history, "Orders", start_ms=b_started - 500, end_ms=b_started + 2_000,
             zero_ms=b_started, pulls=True, title="B joins: A lets go at once, B takes a second later")

# %% [markdown]
# For a second nobody owns these queues, and for half a second more B owns them and fetches nothing. Both waits are
# B's own. Its `RebalanceService` leaves at least 1000 ms between two runs (`minInterval`), and counts its own
# creation as the first one. And a queue that was taken is first pulled after 500 ms
# (`RebalancePushImpl.dispatchPullRequest`): a moment for the old owner to write down how far it is. Measured: owned
# 64 to 1176 ms after the start (the Java client needs part of its second for starting), first pull 394 to 473 ms
# after that.
#
# ### One packer too many
#
# A group may have more members than there are queues. In a new shop there is one packer more than there are tables. They
# start one after the other. Here they are with the addresses of their machines, in the order in which they come:

# %%
crowd_lab = Lab(seed=seed)
await open_shop(crowd_lab, queues=tables)
for number in range(draw.between("other machines", 0, 4)):
    crowd_lab.producer("office", node=f"office-{number}")
crowd = [packer(crowd_lab, name) for name in "ABCDEFGHIJKLM"[: tables + 1]]
Table(f"{tables + 1} packers for {tables} tables", ("who", "address"),
      [(member.node.name, member.node.spec.ip) for member in crowd])

# %% tags=["prediction"]
predict("nothing-to-do", "Who gets no queue of Orders? (Two never share one.)",
        choices=[member.node.name for member in crowd], prediction=...)

# %%
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
reveal("nothing-to-do", *idle, why="the ids are sorted as texts: 10.0.0.10 comes before 10.0.0.9")

# %% [markdown]
# The order is that of the client ids as *texts* (address, `@`, process, start time), not of coming. So a new packer
# may well push another one out. It is of no use anyhow: **more members than queues do nothing.** If you want to scale,
# make the queues first.
#
# ## Round two: what is written down where (16 minutes)
#
# Back to the first shop. C joins, too, and all is well for some seconds. A message is never deleted when it is
# consumed. Instead each queue has a number for each group: all messages before this **offset** are done. There are
# two copies of this number. The owner has one in its memory. The broker has another, and the next owner will ask the
# broker.

# %%
c = packer(lab, "C")
await c.start()
lab.run_for(seconds=13)
of_c = sum(queue.topic == "Orders" for queue in c.process_queues)
say(f"C owns **{of_c}** of the {tables} queues, and an order comes every {every_ms} ms, to one queue after the other.")

# %% [markdown]
# The owner sends its number in two ways: every 5 s for all its queues (`persistConsumerOffsetInterval`), and with **each
# pull**. The next pull goes out as soon as the messages of the last one are there. Now C is killed. A and B compute
# their shares anew, and queues move.

# %% tags=["prediction"]
predict("killed", f"C is killed. How long until every queue has an owner again? (A is still {away_ms} ms away.)",
        unit="ms", prediction=...)

# %% tags=["prediction"]
predict("twice-calm", "How many orders come twice?", unit="orders", prediction=...)

# %% [markdown]
# Your bets are placed? Then here are the two copies of each number, a moment before the kill.

# %%
offsets_table(lab.history, "Orders", group="packers")

# %%
killed_ms = lab.now_ms
lab.crash("C")
lab.run_for(seconds=10)
Ownership.of(lab.history, "Orders", start_ms=killed_ms - 500, end_ms=killed_ms + 1_500,
             zero_ms=killed_ms, pulls=True, title="C is killed")

# %%
taken = [event for event in lab.history.find("QueueAllocated", topic="Orders") if event.ts_ms > killed_ms]
reveal("killed", round(taken[-1].ts_ms - killed_ms, 1),
       why="the connection closes, the broker tells the others at once; A asks who is left, and where to begin")

# %%
twice = duplicates_table(lab.history, "Orders", start_ms=killed_ms, end_ms=lab.now_ms,
                         zero_ms=killed_ms)
twice

# %%
reveal("twice-calm", len(twice),
       why="about one in each queue that moved: the next pull would have told of it")

# %% [markdown]
# When a process dies, its operating system closes its connections, the broker sees that and sends notices
# (`ConsumerManager.doChannelCloseEvent`). No heartbeat had to be missed. B, which is near, takes C's queues after one or
# two milliseconds. A, which is far away, needs the notice, then a question with its answer (who is left?), and for each
# queue that it takes another one (how far is the group?). Measured, with everybody near: 77, 97 and 161 ms (here only
# the network takes time, there a process has to die first). The first pull comes 500 ms later, as before.
#
# About one order came twice for each queue that moved (measured, with four queues: 4, 5 and 4): the one that had come
# last. You saw it in the table: in most queues the broker was a message behind. A pull goes out when the listener has not
# even begun with what the last one has brought, so the broker hears of a message when the *next* one has come.
#
# **A message may come twice when nobody dies, too.** A queue that moves between two living members is given up while
# the listener is in the middle of a message. Nobody stops the listener. It ends well, but by then the queue belongs
# to somebody else, and the result counts for nothing (`ProcessQueue.dropped`). Or the new owner asks the broker for
# the offset a moment before the old owner's last word has arrived. Here is what the joining of B and C has cost
# (none, if you are lucky; measured: 0 to 4 each time):

# %%
duplicates_table(lab.history, "Orders", start_ms=0, end_ms=killed_ms, zero_ms=killed_ms)

# %% [markdown]
# Is it always one for each queue? A new world, two packers who are both near, no orders at first. Then many at once, the
# same number for each queue. Three seconds later all of them are done, and B is killed.

# %%
burst = tables * draw.between("burst", 9, 16)
by_b = burst // tables * (tables // 2)
say(f"**{burst}** orders come at once, {burst // tables} for each queue; **{by_b}** of them are B's.")

# %% tags=["prediction"]
predict("twice-burst", f"All {burst} orders are done, {by_b} of them by B. Then B is killed. How many come twice?",
        unit="orders", prediction=...)

# %%
lab = Lab(seed=seed)
producer = await open_shop(lab, queues=tables)
for name in "AB":
    await packer(lab, name).start()

lab.run_for(seconds=11)
spawn_orders(producer, orders=burst, queues=tables, every_ms=0)
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
       why="the last pull went out before the work was done, and the next timer had not come yet")

# %% [markdown]
# Every single one. The pulls that would have told of them were sent before the work was done, and then the broker
# *held* them, since there was nothing new (lab 05). All that was left was the 5 s timer. The offset in memory was
# right, and it died with B. Busy queues are reported with each pull; **a queue that has just fallen silent may be 5 s
# behind.**
#
# ### Your turn: what comes twice
#
# `come_twice` gets two dictionaries, queue -> offset: what a member had in memory when it was killed (of the queues that
# it owned), and what the broker knows. The broker has no entry for a queue that nobody ever reported; such a queue begins
# at 0. How many messages come twice?

# %% [markdown] tags=["hints"]
# - For one queue it is a difference of two numbers. Which queues count: the member's, or all that the broker knows?
# - `at_broker.get(queue, 0)` is the broker's number, or 0 if it has none.
# - Two numbers for each queue of the member: how far it is in memory, and how far it is at the broker. Add up the differences.

# %% tags=["exercise"]
def come_twice(in_memory, at_broker):
    """How many messages a group gets a second time when the member that has `in_memory` is killed."""
    ### BEGIN SOLUTION
    return sum(done - at_broker.get(queue, 0) for queue, done in in_memory.items())
    ### END SOLUTION


# %% tags=["check"]
check("07/come-twice", come_twice)

# %% [markdown]
# ## Break it: D hangs (18 minutes)
#
# Now the worst case. A and D share the queues, and both are near. D's process is stopped (a debugger, a full disk, a
# long garbage collection): its connections stay open, it says nothing. Much later it goes on as if nothing had happened.

# %%
hangs_s = draw.between("hangs", 165, 190)
lab = Lab(seed=seed)
producer = await open_shop(lab, queues=tables)
a, d = packer(lab, "A"), packer(lab, "D")
await a.start()
lab.run_for(ms=draw.between("alone", 0, 9_000))
await d.start()
spawn_orders(producer, queues=tables, every_ms=2 * every_ms)
lab.run_for(ms=draw.between("calm", 13_000, 29_500))
hung_ms = lab.now_ms
lab.faults(f"at {hung_ms:g}ms: freeze D for {hangs_s}s")

# %%
beats = [event for event in lab.history.find("RequestReceived", node="broker-a", request_name="HEART_BEAT")
         if event.remote.startswith(d.node.spec.ip)]
say(f"D hangs for **{hangs_s} s**. Its last heartbeat reached the broker **{(hung_ms - beats[-1].ts_ms) / 1_000:.1f} s** "
    "before it hangs.")

# %% tags=["prediction"]
predict("hung", "D hangs. How long until A owns D's queues?", unit="s", prediction=...)

# %%
lab.run_until_event("ClientExpired", role="consumer")

# %%
expired_ms = lab.now_ms
took = lab.run_until_event("QueueAllocated", node="A", topic="Orders")
notices = [event for event in lab.history.between(expired_ms, lab.now_ms)
           if event.kind == "RequestReceived" and event.request_name == "NOTIFY_CONSUMER_IDS_CHANGED"]
f"{(took.ts_ms - expired_ms) / 1_000:.1f} s later, after {len(notices)} notices"

# %%
reveal("hung", round((took.ts_ms - hung_ms) / 1_000, 1),
       why="120 to 130 s after the last heartbeat, and up to 20 s of A's own rhythm")

# %% [markdown]
# The only thing that a broker can know of a process that hangs is that its heartbeat (every 30 s) does not come. It
# looks every 10 s and drops whoever was silent for more than 120 s (`channelExpiredTimeout`). Measured, from the last
# heartbeat: 120.6, 120.7 and 127.8 s. In the event `ClientExpired` above it is `silent_ms`. And then everybody is told?
#
# No. There was no notice. The broker closes the connection and takes D out of its table in the same step, and when the
# "connection closed" event comes by, it finds nobody to report (`ConsumerManager.scanNotActiveChannel`). So A finds out at
# its own next rebalance, which comes every 20 s (`waitInterval`). Measured: 13 ms, 19.2 s and 19.6 s after the drop; the
# first run was lucky in the race of the two. (There is a second clock: a connection on which nothing has passed for 120 s
# is closed, too, and then the others are told at once. When D hangs right after a heartbeat, this one comes first.) For
# all this time D's orders were not packed at all.
#
# ### Your turn: when is a member dropped?
#
# All times are milliseconds of one clock. `dropped_ms` gets the time of a member's last heartbeat and the time of *some*
# look of the broker; other looks come every 10 s before and after it. When is the member dropped? (More than 120 s, not
# 120 s exactly.)

# %% [markdown] tags=["hints"]
# - It is the first look that comes more than 120,000 ms after the heartbeat.
# - How many whole periods of 10,000 ms lie between the given look and the moment at which the patience ends? `//` rounds down, also below 0.
# - At exactly 120,000 ms the patience is not over, so it is always one look more than these whole periods. From `look_ms` on, how late is that one?

# %% tags=["exercise"]
def dropped_ms(heartbeat_ms, look_ms):
    """The time of the look at which a member is dropped whose last heartbeat came at `heartbeat_ms`."""
    ### BEGIN SOLUTION
    late_ms = heartbeat_ms + 120_000
    looks = (late_ms - look_ms) // 10_000 + 1
    return look_ms + looks * 10_000
    ### END SOLUTION


# %% tags=["check"]
check("07/dropped", dropped_ms)

# %% [markdown]
# ### D goes on
#
# A has D's queues now, and works. We let the world run to the moment at which D goes on, and count.

# %%
woke = lab.run_until_event("NodeThawed")
of_d = {event.queue_id for event in lab.history.find("QueueAllocated", node="D", topic="Orders")}
packed = [event for event in lab.history.find("ConsumeFinished", node="A", topic="Orders")
          if event.queue_id in of_d and event.ts_ms > took.ts_ms]
say(f"While D hung, A has packed **{len(packed)}** orders of D's queues. That is all that had come.")

# %% tags=["prediction"]
predict("twice-hung", f"D goes on. How many orders come twice (of A's {len(packed)}, or of others)?",
        unit="orders", prediction=...)

# %%
lab.run_for(seconds=30)
twice = duplicates_table(lab.history, "Orders", start_ms=woke.ts_ms, end_ms=lab.now_ms,
                         zero_ms=woke.ts_ms, most=5)
twice

# %%
reveal("twice-hung", len(twice),
       why="D still had its queues and offsets in memory, and went on from there")

# %%
Ownership.of(lab.history, "Orders", start_ms=hung_ms - 10_000, end_ms=lab.now_ms, zero_ms=hung_ms,
             title="D hangs; in the end both believe that they own its queues")

# %% [markdown]
# All that A had packed, but for one or two that D had in its hands when it stopped. D never learned that it was dropped.
# Its table said "mine", its offsets were minutes old, and it pulled from there. Measured: 725, 686 and 718 orders in the
# whole phase (160 s, ten orders a second). Worse, each pull carries D's *old* offset to the broker, and the broker
# believes the last one who speaks (`ConsumerOffsetManager.commitOffset` overwrites):

# %%
from itertools import groupby

near = [event for event in lab.history.find("OffsetCommitted", topic="Orders", queue_id=max(of_d))
        if -3_000 < event.ts_ms - woke.ts_ms < 4_000]
commits = [next(same) for _, same in groupby(near, key=lambda event: event.queue_offset)]
Table("the last queue: the group's offset at the broker, each change", ("s after D goes on", "committed"),
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
# ## Build it: a member (23 minutes)
#
# Write what a member does when queues come and go. In RocketMQ it is `updateProcessQueueTableInRebalance`, together with
# the offset store. You have
#
# | | what it is |
# |---|---|
# | `self.offsets` | queue -> the offset of the next message to pack, for the queues that this member owns, and for no others |
# | `self.broker.offset(queue)` | what the broker knows of the group's progress in a queue; 0 if nobody has ever reported |
# | `self.broker.commit(queue, offset)` | tells the broker: all messages before `offset` are done |
# | `AllocateMessageQueueAveragely().divide(self.client_id, queues, members)` | the list of this member's queues |
#
# and the world around calls you:
#
# - `rebalance(queues, members)` after each change of members, with the two sorted lists. Give up the queues that are not
#   yours, and take those that are new.
# - `packed(queue)` when a message is done. It is written already.
# - `every_5_s()`, the timer, and `leave()`, when the process ends in order.
#
# The check plays 50 groups. Members join, leave, are killed, hang and come back. It wants that after each change every
# queue is owned by the member it belongs to; that each message is packed at least once; and that no more messages are
# packed twice than by RocketMQ's own member in the same group. It also counts your reports. Can you do better than
# RocketMQ, in one number, or in both?

# %% [markdown] tags=["hints"]
# - When a queue leaves you, who needs to know how far you are? And when you get a queue that you had an hour ago, is your old number of any use?
# - `rebalance`: first walk through `list(self.offsets)`, and for each queue that is not in your share pop its offset and commit it. Then, for each queue of your share that is *not* in `self.offsets` yet, ask the broker. Leave the others alone.
# - `every_5_s` and `leave` both commit all of `self.offsets`. To do better than RocketMQ: a member that has hung may ask the broker whether somebody else has come further, and a queue in which nothing has happened since the last report needs no report.

# %% tags=["exercise"]
from mqlab.rebalance import AllocateMessageQueueAveragely


class Member:
    """One member of a group, from its start to its end."""

    def __init__(self, client_id, broker):
        self.client_id = client_id
        self.broker = broker
        self.offsets = {}

    def packed(self, queue):
        """The message at `self.offsets[queue]` is done."""
        self.offsets[queue] += 1

    def rebalance(self, queues, members):
        """The members have changed: give up what is not yours, and take what is."""
        ### BEGIN SOLUTION
        mine = AllocateMessageQueueAveragely().divide(self.client_id, queues, members)
        for queue in list(self.offsets):
            if queue not in mine:
                self.broker.commit(queue, self.offsets.pop(queue))
        for queue in mine:
            if queue not in self.offsets:
                self.offsets[queue] = self.broker.offset(queue)
        ### END SOLUTION

    def every_5_s(self):
        """The timer: say how far you are."""
        ### BEGIN SOLUTION
        for queue, offset in self.offsets.items():
            self.broker.commit(queue, offset)
        ### END SOLUTION

    def leave(self):
        """The process ends in order; nobody calls you after this."""
        ### BEGIN SOLUTION
        self.every_5_s()
        ### END SOLUTION


# %% tags=["check"]
check("07/member", Member)

# %% [markdown] tags=["teacher"]
# What goes wrong, roughly in this order: a queue is given up without a last report; the offsets of all queues are asked
# for at each rebalance, so that work done since the last report is done again; an old offset of a queue that was away and
# came back is used (RocketMQ has `removeDirtyOffset` for that); `leave` reports nothing.
#
# Better than RocketMQ: a report after each message (few come twice, many reports; discuss the price); `rebalance` that
# goes on from the larger of the two numbers, its own and the broker's, which heals most of what a hang does, since in
# this check a member that wakes up is rebalanced before it packs. In RocketMQ it pulls first.

# %% [markdown]
# ## What is different in today's RocketMQ (3 minutes)
#
# The articles are those with which mqlab began; [docs/seeds.md](../docs/seeds.md) goes through them, claim by claim.
#
# - They say: a process queue is dropped when its topic is no longer subscribed. Also when the queue goes to another
#   member (this whole lab), when its offset was illegal, and after 120 s without a pull (`isPullExpired`).
# - They say: an illegal offset is repaired after 10 s. Today at once, and the offset is frozen meanwhile
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
# 2. D hung for minutes and did a lot of harm. For which lengths of a hang is there no harm at all, and for which is
#    there only delay?
# 3. Which of these could make sure that no queue ever has two owners: shorter heartbeats, a lock at the broker, a
#    number that grows with each change of owners and goes along with each commit? What does each cost?
#
# ## Your bets

# %%
reveal()
