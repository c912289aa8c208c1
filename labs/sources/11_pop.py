# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   mqlab:
#     title: "Pop: take, don't own"
#     question: What changes when a consumer no longer owns queues, but takes single messages, each for a while?
#     objectives:
#       - say why a consumer that hangs starves its queues with push, and hurts nobody with Pop
#       - tell when a message comes again that was taken and not acknowledged, and why not sooner
#       - choose an invisible time for a given listener, and say what has to be known for it
#     minutes: 86
#     prerequisites: [00 Tour, 07 Rebalance]
#     wrong_predictions:
#       - "push-waits: 0, since the others take over; nobody takes over before the broker misses two minutes of heartbeats"
#       - "pop-held: as many as with push, or 0; what it had in hand, and what its waiting request is woken with"
#       - "idle-push: 0; a queue has one owner"
#       - "share-pop: what a member of the other group gets"
#       - "pause-push: 0, or the 20 s of the rebalance"
#       - "comes-back: the invisible time; the reviver waits for two seconds more"
#       - "comes-back-busy: the same, or sooner since there is more to do"
#       - "again-after: at once; nobody is woken by such a copy"
#       - "late-ack: no, whatever is late is late"
#       - "third-call: two times the first wait"
# ---

# %% tags=["parameters"]
student_id = ""

# %% [markdown]
# ## The scene (4 minutes)
#
# A shop gets orders, and packers pack them. The orders lie in **queues**: rows in which they wait, the oldest one in front.
# The rows are kept by a **broker**, a server that stores messages; all rows of one kind of message have one name, their
# **topic** (here `Orders`). The packers are **consumers**: programs that fetch orders and give each to a function of ours, the
# **listener**, which does the packing. Consumers that share the work are a **group**.
#
# How do several packers share several rows without packing an order twice? The old answer is to give each row an **owner**:
# this row is yours, that one is mine, and nobody else touches it. That is RocketMQ's *push* (lab 07). It needs no more
# memory than one number for each row, "packed up to here". The price is that the owner must be alive, quick, and there.
#
# The other answer came with RocketMQ 5 and is called **Pop**: nobody owns a row. Whoever has a hand free takes an order,
# from whichever row, and the broker **hides** it from the others for a while. If it is packed in time, the taker says so
# (it **acknowledges** it), and the order is done. If nobody says anything, the time runs out, and the order is there again.
#
# In this world both are at work side by side. The groups `owners` and `takers` each get *every* order. They have equally many members on equal machines, `push-1`, `push-2` ... and `pop-1`, `pop-2` ...

# %%
from mqlab import Lab, scenarios
from mqlab.check import NotSolvedYet, check, draws_for, predict, reveal, say, seed_for
from mqlab.scenarios.take_or_own import owner, taker, three_acts
from mqlab.views import Delays, Table
from mqlab_widgets import SideBySide, Stepper
from mqlab_widgets.boards.popped_messages import PoppedMessagesBoard
from mqlab_widgets.boards.revive_ruler import ReviveRulerBoard

seed = seed_for(student_id, "11")
draw = draws_for(seed)

# %%
members = draw.between("members", 3, 4)
queues = members * draw.between("queues of each", 2, 3)
every_ms, packing_ms = draw.between("every", 80, 140, step=5), draw.between("packing", 150, 400, step=10)
invisible_s = draw.between("invisible", 8, 14)
lab = scenarios.get("take-or-own").build(seed, parameters={
    "members": members, "queues": queues, "every_ms": every_ms, "packing_ms": packing_ms,
    "invisible_s": invisible_s, "faults": ""})
lab.run_for(seconds=5)
say(f"**{members} members** in each group, **{queues} queues**. An order comes every **{every_ms} ms**, and packing it takes "
    f"**{packing_ms} ms**. What was taken is hidden for **{invisible_s} s**.")

# %% [markdown]
# Each consumer has asked the broker what it shall have. The owners were left to share the queues out by themselves; to the
# takers the broker has said this:

# %%
Table("what the broker told the takers", ("client asks", "mode", "answers"),
      sorted({(event.topic, event.mode, event.queues) for event in lab.history.find("AssignmentAnswered", topic="Orders")}))

# %% [markdown]
# It is one queue only, for everybody the same one. It has the number -1, and that means: *any* queue
# (`QueryAssignmentProcessor.allocate4Pop`). Here are both groups, with what they think is theirs:

# %%
push_1, pop_1 = lab.processes["push-1"].clients[0][0], lab.processes["pop-1"].clients[0][0]
Table("of Orders", ("machine", "queues"), [
    ("push-1", ", ".join(str(queue.queue_id) for queue in sorted(push_1.process_queues) if queue.topic == "Orders")),
    ("pop-1", ", ".join(str(queue.queue_id) for queue in pop_1.pop_process_queues))])

# %% [markdown]
# ## Round one: somebody hangs (17 minutes)
#
# Now `push-1` and `pop-1` hang, both in the same moment. Their connections stay open, and they do nothing, as when a program
# stands still in a debugger or waits for a disk that does not answer. We look again after 20 s.

# %%
hung_ms = lab.now_ms
lab.freeze("push-1")
lab.freeze("pop-1")
say(f"In these 20 s **{20_000 // every_ms} orders** come.")

# %% tags=["prediction"]
predict("push-waits", "After 20 s: how many of these orders has no owner got?", unit="orders", prediction=...)

# %% tags=["prediction"]
predict("pop-held", "How many orders does the broker take back from pop-1 in these 20 s, and let others have them?",
        unit="orders", prediction=...)

# %%
lab.run_for(seconds=20)
delays = Delays.of(lab.history, "Orders", "owners", "takers", since_ms=hung_ms)
delays.chart("How long each order waited until a listener had it")

# %%
reveal("push-waits", delays.still_waiting("owners"),
       why="the queues of push-1 stay its own, and nobody else may pull them")

# %%
revived = list(lab.history.find("MessageRevived"))
in_hand = sum(event.pop_time - lab.world.epoch_ms <= hung_ms for event in revived)
reveal("pop-held", len(revived), why=f"{in_hand} that it had in hand when it hung, and {len(revived) - in_hand} with which its waiting "
       "request was woken afterwards")

# %% [markdown]
# Look at the picture. The crosses of the owners lie on a line that goes down: an order that came early has waited longer,
# and none of them was packed. They are all of the queues of `push-1`. The broker sees a connection that is open, and waits
# for two minutes without a sign of life (`channelExpiredTimeout`, 120 s) before it takes a member for gone. In the lab on
# rebalance you saw it: measured on a real RocketMQ 5.3.3, 120.5 to 127.8 s, and up to 20 s more until the others look.
#
# Of the takers hardly anything is to be seen, as all dots but one lie at the bottom. `pop-1` had left a request with the broker
# ("give me something when it comes"), so the next order went to it, and no listener got it at first: that is the dot at the
# top. After that it asked for nothing, and who does not ask gets nothing. **Nobody had to find out that it hangs.**
#
# What it had in its hands is not lost either. Here is an order that was taken, as the broker notes it:

# %%
lab.history.last("MessagePopped", group="takers").fields

# %% [markdown]
# `pop_time` and `invisible_ms` say from when and for how long the order is hidden. When the time is over the broker makes a
# copy of it, which anybody may take:

# %%
Table("brought back", ("hidden for, ms", "then, ms", "into"),
      [(event.invisible_ms, event.late_ms, event.retry_topic) for event in revived])

# %% [markdown]
# Play with it: press **play**, and watch the machines beside each other. The board *Popped messages* has a bar for each
# order that was taken: full up to now, empty for the time for which it is still hidden. Behind the three dots, choose
# `MessagePopped`, `AckReceived` or `MessageRevived`, and press **Previous** and **Next**.

# %%
lab.history.back("NodeFrozen")
Stepper(lab, [PoppedMessagesBoard])

# %% [markdown]
# ### Your turn: what may be taken?
#
# Be the broker, for one queue. Its orders have the numbers 0 to `end - 1`. `taken` says of those that were handed out when it
# was (ms), `acked` is the set of those that were acknowledged. Which orders may be handed out at `now_ms`, when each is
# hidden for `invisible_ms`? An order is there again as soon as so many ms have passed. Return a list, in their order.

# %%
say(f"With your {invisible_s} s: `may_take({{0: 1_000}}, set(), 2, {1_000 + invisible_s * 1_000 - 1}, {invisible_s * 1_000})` is "
    "`[1]`, and one millisecond later it is `[0, 1]`.")

# %% [markdown] tags=["hints"]
# - Go through all numbers, and ask of each: is it done? Was it never taken? Was it taken long enough ago?
# - What is acknowledged never comes again, however long ago it was taken.
# - An order is hidden when two things hold: it stands in `taken`, and since then fewer than `invisible_ms` have passed. Write that as a function of its own, and keep what is neither hidden nor done.

# %% tags=["exercise"]
def may_take(taken, acked, end, now_ms, invisible_ms):
    """The orders of a queue that may be handed out now."""
    ### BEGIN SOLUTION
    def hidden(order):
        return order in taken and now_ms - taken[order] < invisible_ms

    return [order for order in range(end) if order not in acked and not hidden(order)]
    ### END SOLUTION


# %% tags=["check"]
check("11/may-take", may_take)

# %% [markdown]
# ## Round two: more hands (17 minutes)
#
# A new world. Each group has more members than there are queues.

# %%
few = draw.between("few queues", 3, 6)
many = few + draw.between("too many", 1, 3)
lab = scenarios.get("take-or-own").build(seed, parameters={
    "members": many, "queues": few, "every_ms": 20, "packing_ms": 50, "faults": ""})
orders = draw.between("orders", 150, 280)
say(f"**{many} members** in each group, **{few} queues**. Now **{orders} orders** come.")

# %% tags=["prediction"]
predict("idle-push", "How many of the owners have nothing to do?", unit="members", prediction=...)

# %% tags=["prediction"]
predict("share-pop", f"How many of {orders} orders does the taker get that gets the most?", unit="orders", prediction=...)

# %%
for _ in range(orders):
    lab.run_until_event("MessageStored", topic="Orders")
lab.run_for(ms=15)
delays = Delays.of(lab.history, "Orders", "owners", "takers")
pushed, popped = delays.by_member("owners"), delays.by_member("takers")
Table("orders of each member", ("", *(str(number) for number in range(1, many + 1))), [
    ("push-", *(pushed.get(f"push-{number}", 0) for number in range(1, many + 1))),
    ("pop-", *(popped.get(f"pop-{number}", 0) for number in range(1, many + 1)))])

# %%
reveal("idle-push", many - len(pushed), why="each queue has one owner, and there are no more queues")

# %%
reveal("share-pop", max(popped.values()), why="each order wakes one who waits: the one that has waited for the longest time")

# %% [markdown]
# With push the number of queues is the most that can work, so it has to be chosen large enough before anybody knows how many
# will be needed. With Pop it does not matter. (There is a middle way: with `popShareQueueNum` a member pops its own share of
# the queues and that of some neighbours.)
#
# ### Somebody joins
#
# Two members in each group, and many queues. A third one joins each of them. An owner that joins must be given some of the
# queues, and the others must give them up: a **rebalance**.

# %%
lab = scenarios.get("take-or-own").build(seed, parameters={
    "members": 2, "queues": draw.between("many queues", 6, 12), "every_ms": draw.between("joins every", 10, 25),
    "packing_ms": 20, "faults": ""})
lab.run_for(seconds=draw.between("joins after", 3_000, 3_900) / 1_000)
joins_ms = lab.now_ms

# %% tags=["prediction"]
predict("pause-push", "A member joins. What is the longest time that an order waits for an owner meanwhile?",
        unit="ms", prediction=...)

# %%
await owner(lab, "push-3", packing_ms=20).start()
await taker(lab, "pop-3", packing_ms=20).start()
lab.run_for(seconds=6)
delays = Delays.of(lab.history, "Orders", "owners", "takers", since_ms=joins_ms)
delays.chart("A third member joins each of the groups")

# %%
reveal("pause-push", round(delays.longest_ms("owners")),
       why="the old owners give up at once, the new one looks after 1 s and begins to pull 500 ms later")

# %%
f"takers: {delays.longest_ms('takers'):.1f} ms at the most; pop-3 got {delays.by_member('takers')['pop-3']} orders"

# %% [markdown]
# The crosses form a triangle: orders of those queues that moved. The old owners let go as soon as the broker tells them that
# somebody is new. The newcomer may not rebalance before it is one second old (`MIN_INTERVAL`), and its first pull comes
# half a second after that (`dispatchPullRequest(..., 500)`). Until then the queues that move belong to nobody. And what the
# old owners had packed but not yet noted comes twice.
#
# With Pop nothing moved, so nothing stood still. The newcomer asked, and got what came next. **There is no rebalance because
# there is nothing to share out.** (Who looks closely finds that the consumer still asks every 20 s which brokers there are.)
#
# ### Your turn: how many work?
#
# `members` members of a group, `queues` queues. How many members get messages under a steady load, with Pop
# (`pops` is `True`) and without?

# %% [markdown] tags=["hints"]
# - With push a member without a queue gets nothing.
# - With Pop all ask, and all are woken in turn.
# - Two answers, and `pops` chooses. In one of them the queues do not occur; in the other one whichever there are fewer of sets the limit.

# %% tags=["exercise"]
def at_work(members, queues, pops):
    """How many members of a group get messages."""
    ### BEGIN SOLUTION
    return members if pops else min(members, queues)
    ### END SOLUTION


# %% tags=["check"]
check("11/at-work", at_work)

# %% [markdown]
# ### All three beside each other
#
# What you have bet on is one picture here: on the left the owners, on the right the takers, of **one world, at the same moment**.
# On top of each half are the rows with the orders that wait, below them the members with what they have in hand, and a bar for what was
# packed in each half second. Choose one of the three acts; its button plays it. Before you do, say what each half will look like, and
# afterwards break something yourself (**Break**): what happens left, and what right?

# %%
SideBySide(three_acts(seed))

# %% [markdown]
# ## Round three: the time is over (18 minutes)
#
# An owner's progress is one number for each queue. With Pop the broker has to remember more: which order was taken, when, and for how long.
# Where does it keep that? Let us look.
#
# One order, one taker, and the taker's listener stands still. Nothing else happens in this world.

# %%
alone_s = draw.between("alone for", 12, 40)
lab = scenarios.get("one-taken").build(seed, parameters={"invisible_s": alone_s})
taken = lab.run_until_event("MessagePopped")
say(f"The order was taken at {taken.ts_ms / 1_000:.2f} s, and is hidden for **{alone_s} s**.")

# %%
made = lab.history.last("CheckPointMade")
Table("what the broker wrote down", ("of the order", "is"), [
    ("group that took it", made.group), ("queue", f"{made.queue_id} of {made.topic}"), ("offset", made.offsets),
    ("taken, s", f"{(made.pop_time - lab.world.epoch_ms) / 1_000:.2f}"), ("hidden for, s", made.invisible_ms // 1_000)])

# %% [markdown]
# This note is called a **check point**: "so far this order is with somebody". The broker writes it as a *message*, into a topic of its own (with the
# long name `rmq_sys_REVIVE_LOG_DefaultCluster`), and this message waits as well. It becomes readable shortly before the order's time is over.
#
# Somebody reads that topic: the **reviver** (`PopReviveService`). Finding a check point, it has to decide: is the order done, or shall
# it be there again?

# %% tags=["prediction"]
predict("comes-back", f"Hidden for {alone_s} s. After how many seconds from being taken does the broker bring it back?",
        unit="s", prediction=...)

# %%
back = lab.run_until_event("MessageRevived", limit_ms=120_000)
reveal("comes-back", round((back.ts_ms - taken.ts_ms) / 1_000, 2),
       why=f"{(back.ts_ms - taken.ts_ms) / 1_000 - alone_s:.2f} s behind its time; the board below shows what was waited for")

# %% [markdown]
# More than two seconds too late, although the order's time was over and the check point had been read. What was the reviver waiting for? Look at
# the board: the bar is the order's invisible time, and behind it lies a **ruler of two seconds**. The upright blue line says
# how far the reviver has read. Take steps with **Next**, and watch when the line passes the ruler.

# %%
lab.history.back("ReviveCheckPointRead")
Stepper(lab, [ReviveRulerBoard])

# %% [markdown]
# It waits for a word of the taker. When a taker says "done", the broker writes a second note, an **ack**. It becomes readable when the invisible
# time ends, so it stands *behind* the check point. The reviver reads in the order in which notes become readable. Of a check point whose time has
# just come it cannot know whether an ack stands right behind it.
#
# So it reads on for **2 s** beyond the end (`PopReviveService.mergeAndRevive`: `endTime - reviveTime <= 2000` means: not yet). What
# acknowledges the order must have been among what was read by then.
#
# In this world nothing more came to be read. Then the reviver goes by the clock, which is the line's last jump. Measured on a real RocketMQ 5.3.3,
# alone: 2.03 to 2.25 s. (If your order took longer, up to 3.4 s, the reviver was resting when the check point became readable: it rests
# for up to 4 s after it found none.)
#
# ### With others around
#
# Now the same with other orders, which are taken and acknowledged all the time.

# %%
busy_lab = scenarios.get("one-taken").build(seed, parameters={
    "invisible_s": alone_s, "others_every_ms": draw.between("others every", 50, 700)})
first = busy_lab.run_until_event("MessagePopped")

# %% tags=["prediction"]
predict("comes-back-busy", "The broker is busy now. After how many seconds from being taken does it bring the order back?",
        unit="s", prediction=...)

# %%
busy_back = busy_lab.run_until_event("MessageRevived", limit_ms=120_000)
reveal("comes-back-busy", round((busy_back.ts_ms - first.ts_ms) / 1_000, 2),
       why=f"{(busy_back.ts_ms - first.ts_ms) / 1_000 - alone_s:.2f} s behind its time: other notes tell the time now, and these are "
           "read in steps of a second")

# %% [markdown]
# There is always something to read now, and so it is not the clock that says how far the reviver has come, but the newest
# message that it has read. Messages of that topic become readable in whole seconds (the timer, in which they wait, has a slot for each), and
# the reviver rests for a second between two rounds. Measured on a real one: 2 to 4.9 s. Here is what it said of our check point
# before it judged it:

# %%
due = first.pop_time + first.invisible_ms
kinds = ("ReviveCheckPointRead", "ReviveScanWaits", "ReviveScanEnded", "CheckPointWaits", "CheckPointSettled")
seen = [event for event in busy_lab.history.between(first.ts_ms, busy_back.ts_ms + 1)
        if event.kind in kinds and event.revive_qid == first.revive_qid]
Table("what the reviver did", ("at s", "event", "newest that it has read: s after the time"), [
    (f"{event.ts_ms / 1_000:.2f}", event.kind, f"{(event.end_time - due) / 1_000:.3f}" if event.get("end_time") else "")
    for event in seen if event.get("pop_time", first.pop_time) == first.pop_time][-9:])

# %% [markdown]
# ### A copy that wakes nobody
#
# Back to the first of the two worlds, where the broker has just made a copy of the order. The taker has a request lying at the
# broker all this time, "give me something when it comes", for up to 15 s.

# %% tags=["prediction"]
predict("again-after", "How long after the copy was made is a listener called with it?", unit="s", prediction=...)

# %%
again = lab.run_until_event("ConsumeStarted", reconsume_times=1, limit_ms=60_000)
reveal("again-after", round((again.ts_ms - back.ts_ms) / 1_000, 2),
       why="the copy lies in a retry topic, of which nobody told the request that waits for Orders")

# %% [markdown]
# An order that comes wakes a request that waits. A copy lies in another topic, `%RETRY%takers_Orders`, and from that name
# nobody can tell for certain which topic it belongs to (is it `takers` and `Orders`, or a group `takers_Orders`?). So nobody
# is woken. The copy is found by the next request that looks: when this one comes home after its 15 s, or when some other
# order wakes it. (RocketMQ 5.3 can write the name as `%RETRY%takers+Orders`, `enableRetryTopicV2`; then it wakes one. It is off.)
#
# ### Too late?
#
# A last question about those two seconds, or what becomes of the ruler. The taker packs the order in time, and says so, but its word is held
# up on the wire, and reaches the broker after the invisible time. The broker writes the ack all the same.

# %%
late_ms = draw.one_of("held up", [600, 4_200, 900, 4_600, 1_500, 5_000])
lab = scenarios.get("one-taken").build(seed, parameters={"invisible_s": 10, "packing_ms": 9_000})
lab.run_until_event("ConsumeStarted")
lab.run_for(seconds=8)
lab.act("delay", source="pop-1", target="broker-a", ms=1_000 + late_ms)
say(f"The acknowledgement comes **{late_ms / 1_000} s** behind the end of the invisible time.")

# %% tags=["prediction"]
predict("late-ack", f"It comes {late_ms / 1_000} s too late. Does it still count?", choices=["yes", "no"], prediction=...)

# %%
lab.run_for(seconds=12)
came_twice = lab.history.last("MessageRevived")
reveal("late-ack", "b" if came_twice else "a", why=(
    f"the reviver had decided before it came, {came_twice.late_ms / 1_000:.1f} s behind the end" if came_twice else
    "the reviver had not decided yet: it reads for two seconds beyond the time, and ticks off what it finds"))

# %% [markdown]
# An ack that comes up to about 1.5 s late still counts: measured on a real one at +0.5 s and +1.5 s, twelve of twelve. Nobody
# promises it. (The listener itself cannot be so late: when it ends behind the invisible time, by the clock of its own machine,
# the consumer keeps silent, and lets the order come again. Look for `PopGivenUp`.)
#
# ### Your turn: may it be judged?
#
# A check point says that an order was taken at `pop_ms`, for `invisible_ms`. The newest message that the reviver has read was
# due at `newest_ms`. May it judge the check point? `True` or `False`.

# %%
say(f"Your first order was hidden for {alone_s} s: `may_judge(0, {alone_s * 1_000}, {alone_s * 1_000 + 2_000})` is `False`, and one "
    "millisecond more makes it `True`.")

# %% [markdown] tags=["hints"]
# - When is the time of the order over?
# - The newest must be due later than that, by more than two seconds.
# - So there are three times on one line: the end of the order's time, two seconds behind that, and the newest. Exactly two seconds are not enough.

# %% tags=["exercise"]
def may_judge(pop_ms, invisible_ms, newest_ms):
    """Whether the reviver may judge a check point."""
    ### BEGIN SOLUTION
    revive_ms = pop_ms + invisible_ms
    return newest_ms - revive_ms > 2_000
    ### END SOLUTION


# %% tags=["check"]
check("11/may-judge", may_judge)

# %% [markdown]
# ## Round four: not now (8 minutes)
#
# A listener that cannot pack an order says `RECONSUME_LATER`. An owner has to send it back (lab 09). A taker only has to ask for
# **another invisible time**: `changeInvisibleTime`, from now on, 10 s after the first try, 30 s after the second one, then a
# minute, and so on up to two hours (`popDelayLevel` in `DefaultMQPushConsumerImpl`). So a "no" (a *nack*) is nothing but a
# taken order with a new time.

# %%
lab = scenarios.get("one-taken").build(seed, parameters={
    "refusals": 2, "invisible_s": draw.between("refused", 20, 60), "others_every_ms": draw.between("beside", 100, 600)})
tried = lab.run_until_event("ConsumeStarted")

# %% tags=["prediction"]
predict("third-call", "The listener says no, and no again. How many seconds after the first call does the third one come?",
        unit="s", prediction=...)

# %%
third = lab.run_until_event("ConsumeStarted", reconsume_times=2, limit_ms=120_000)
reveal("third-call", round((third.ts_ms - tried.ts_ms) / 1_000, 1),
       why="10 s and 30 s, and both times the two to five seconds of the reviver on top")

# %%
way = [event for event in lab.history.between(tried.ts_ms - 5, lab.now_ms)
       if event.kind in ("InvisibleTimeRequested", "InvisibleTimeChanged", "MessageRevived")
       or (event.kind == "MessagePopped" and event.unique_key == tried.msg_id)]
Table("its way", ("at s", "event", "hidden for, s"),
      [(f"{event.ts_ms / 1_000:.2f}", event.kind, event.invisible_ms // 1_000) for event in way])

# %% [markdown]
# Its life as a picture, to play with:

# %%
Stepper(lab, [PoppedMessagesBoard])

# %% [markdown]
# The invisible time with which the order was taken does not matter: the "no" has replaced it. For the broker it was a new
# check point for this one order, and an ack for the old one, in this order: had the second been written first and the broker
# died in between, the order would be gone.
#
# ### Your turn: when again?
#
# `tries` is how often an order was tried before (0 at the first time), `delays_s` the table of delays in seconds. After how many
# seconds is it asked for again? Behind the end of the table its last number counts.

# %% [markdown] tags=["hints"]
# - The number of tries is a place in the table, which is counted from 0 as well.
# - What if there is no such place?
# - Then it is the last place. Which of the two numbers, the tries and the last place, do you take? The same one every time.

# %% tags=["exercise"]
def again_in(tries, delays_s):
    """After how many seconds an order is asked for again."""
    ### BEGIN SOLUTION
    last = len(delays_s) - 1
    return delays_s[min(tries, last)]
    ### END SOLUTION


# %% tags=["check"]
check("11/again-in", again_in)

# %% [markdown]
# ## Build it: for how long? (19 minutes)
#
# The invisible time is the one number on which everything hangs. If it is too short, orders come again while somebody still
# packs them: they are packed **twice**. If it is too long, those of a packer that died are gone for all that time: they come
# **late**. No number is right for everybody. You know:
#
# | of `case` | what it is |
# |---|---|
# | `threads` | how many orders a packer packs at the same time |
# | `usual_ms` | what an order usually takes |
# | `slowest_ms` | what an order takes at the most |
# | `again_ms` | when a packer has died, all orders have to be packed after at most so many ms |
#
# Return the settings as a dictionary, for example `{"pop_invisible_time": 30_000}`. You may set three:
#
# - `pop_invisible_time`: for how long what was taken is hidden, in ms (5,000 to 300,000; it is 60,000 if you set nothing)
# - `pop_batch_nums`: how many orders are taken at once at the most (1 to 32; 32)
# - `pop_threshold_for_queue`: as long as *more* than so many are taken and not yet acknowledged, no more are taken (96)
#
# Think about these questions first. From when on does the invisible time run: from when the listener begins, or from when
# the order was taken? A packer with four threads has taken 32 orders: how long does the last of them wait until a thread is
# free? And with 96 as the threshold, how many can it have at the most?
#
# The check plays fifty shops: two packers, many orders at once, and when most are packed one of the packers dies. No order may
# be packed twice while both live, the threads may be without an order for 30 % of their time at the most, and in the end
# all has to be packed in time.

# %% [markdown] tags=["hints"]
# - The time runs from the moment at which an order is taken. So an order's time must be enough for *waiting for a thread* and for being packed. The fewer orders a packer holds, the less they wait.
# - How many orders does a packer hold at the most, with your threshold and one batch on top? Divide by its threads: so many rounds the last one needs. Choose both numbers so that nobody waits for more than one round, and no thread is without work.
# - Add up the worst case of one order from pop to ack, in ms, with those rounds, and put half a second on top for the way; keep to the limits that the list above names (no time below 5,000, no batch above 32).

# %% tags=["exercise"]
def settings(case):
    """The settings of a consumer that pops, as a dictionary."""
    ### BEGIN SOLUTION
    most_waits_for = case.slowest_ms
    invisible_ms = most_waits_for + case.slowest_ms + 500
    return {
        "pop_invisible_time": max(5_000, invisible_ms),
        "pop_batch_nums": min(32, case.threads),
        "pop_threshold_for_queue": case.threads,
    }
    ### END SOLUTION


# %% tags=["check"]
check("11/settings", settings)

# %% [markdown] tags=["teacher"]
# What students get wrong, roughly in this order: they set the time alone and forget what waits in the consumer (the time runs
# from the pop); they set the batch and leave the threshold at 96, or the other way round; they forget the 5 s below which no
# consumer starts; they reckon honestly with 96 + 32 orders and get a time that is far too long. The good answer is to make
# the question small: hold little, and a short time is enough.
#
# A trap of RocketMQ's own: old and new check point of a "no" are told apart by the time of the pop alone, in ms. A listener
# that says no within the millisecond of the pop, to an order that was popped alone and with the same invisible time, loses
# the order: the ack of the old one settles the new one as well.
#
# Question for a good group: a listener that now and then takes ten times as long as usual. Is there a third way? (Ask for more
# time from within the listener: `changeInvisibleTime`. The consumer of this lab does not offer it to its listener; the
# simple consumer of RocketMQ 5 does.)

# %% [markdown]
# ## What the article says, and what is so (3 minutes)
#
# The article on Pop is one of those with which mqlab began; [docs/seeds.md](../docs/seeds.md) goes through it.
#
# - It gives four reasons for Pop: thick clients, rebalance, queues bound to one consumer, and members that hang. You have seen
#   three of them measured. The first one is seen in the code: what a taker needs is much less than what an owner needs.
# - 60 s of invisible time, the check point a little before the ack, eight queues and eight revivers: the same today.
# - It has no word on the two seconds, nor on a copy that wakes nobody.
# - "First the ack of the old, then the new check point" is the wrong order; in another place it has the right one.
#
# **Read on** in RocketMQ's source: `client/impl/consumer/DefaultMQPushConsumerImpl.java` (`popMessage`),
# `client/impl/consumer/ConsumeMessagePopConcurrentlyService.java`, `broker/processor/PopMessageProcessor.java`,
# `broker/processor/PopReviveService.java` (`mergeAndRevive`), `broker/processor/QueryAssignmentProcessor.java`
# (`allocate4Pop`). In mqlab: `mqlab/client/consumer/pop/` and `mqlab/broker/pop/`.
#
# **To take home**
#
# 1. **What does it cost?** A million orders a day are popped, each by itself, and acknowledged. How many messages does the broker
#    write for them beside the orders, and how many would an owner's offsets have needed?
# 2. With push, orders of one queue are packed in their order by one owner. What of this is left with Pop, and for whom does it matter?
# 3. A packer's clock runs a second slow. What can go wrong with "keep silent when the time is over", and in which direction?
#
# ## Your bets

# %%
reveal()
