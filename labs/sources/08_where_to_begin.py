# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   mqlab:
#     title: Where does a group begin?
#     question: A new group has no offset yet. Where does it begin, who keeps its progress, and how many queues move when a member leaves?
#     objectives:
#       - say where a new group begins, on a young topic and on an old one
#       - tell sharing (clustering) from broadcasting by what each keeps, and where
#       - write an allocation strategy that moves few queues
#     minutes: 65
#     prerequisites: ["07 Rebalance"]
#     wrong_predictions:
#       - "young-topic: 0, as CONSUME_FROM_LAST_OFFSET promises"
#       - "comes-back: 0, as CONSUME_FROM_LAST_OFFSET promises; or all orders that there are"
#       - "retry: 10 s, the delay of the first retry"
#       - "broadcast-calls: one for each message"
#       - "moves: only the queues of the one that left"
# ---

# %% tags=["parameters"]
student_id = ""

# %% [markdown]
# ## The scene (2 minutes)
#
# The same shop as in lab 07: a topic `Orders`, cut into queues, and packers who share them as a **group**. There we
# saw who owns which queue when members come and go. The group itself was always there. Now it is new: where in a queue
# does it begin? What if its members do not share, but each wants everything? And can the queues be dealt out so that
# fewer of them move?

# %%
from mqlab import Lab, Message
from mqlab.check import NotSolvedYet, check, draws_for, predict, reveal, say, seed_for
from mqlab.rebalance import AllocateMessageQueueAveragely, allocate_to_all
from mqlab.scenarios.membership import open_shop, packer, spawn_orders
from mqlab.views import Table

seed = seed_for(student_id, "08")
draw = draws_for(seed)

# %%
tables = draw.between("tables", 5, 11)
orders = draw.between("orders", 40, 80)
say(f"Your topic has **{tables} queues**, and **{orders} orders** are in it before any group comes.")

# %% [markdown]
# ## Round one: where a new group begins (18 minutes)
#
# A new group has no offset anywhere. `ConsumeFromWhere` says where it begins: at the first message, at the last (the
# default), or at a time. The orders are there when three new groups come: one for each. The third wants only what
# is younger than the year 2030.

# %% tags=["prediction"]
predict("young-topic", f"How many of the {orders} old orders does the group with CONSUME_FROM_LAST_OFFSET get?",
        unit="orders", prediction=...)

# %%
async def three_new_groups(seconds=1, **settings):
    lab = Lab(seed=seed)
    producer = await open_shop(lab, queues=tables, **settings)
    spawn_orders(producer, orders=orders, queues=tables, every_ms=0)
    lab.run_for(seconds=seconds)
    for where in ("FIRST_OFFSET", "LAST_OFFSET", "TIMESTAMP"):
        await packer(lab, where, group=where, consume_from_where=f"CONSUME_FROM_{where}",
                     consume_timestamp="20300101000000").start()
    lab.run_for(seconds=6)
    return [sum(1 for _ in lab.history.find("ConsumeStarted", group=where))
            for where in ("FIRST_OFFSET", "LAST_OFFSET", "TIMESTAMP")]

# %%
young = await three_new_groups()
young

# %%
reveal("young-topic", young[1],
       why="QUERY_CONSUMER_OFFSET was answered with 0, so nobody asked where to begin")

# %% [markdown]
# All three get everything. Before a consumer uses its setting it asks the broker for the group's offset. "I have
# none" would be the honest answer. But if the queue's first message is number 0 and still there, the broker says
# **0** (`ConsumerManageProcessor.queryConsumerOffset`). That is meant well: a topic was created, and its consumers
# come a moment late; they shall not miss anything. In production it is a surprise in the other direction: the same
# program begins at the end of an old topic and at the beginning of a young one. A topic is old when its first messages
# have expired. Usually that takes three days; with files of 4 KB that are kept for no hour, the broker's first look at
# them, after a minute, is enough:

# %%
old = await three_new_groups(seconds=70, mapped_file_size_commit_log=4_096, file_reserved_time=0, delete_when="00")
Table(f"how many of {orders} old orders a new group gets", ("ConsumeFromWhere", "young topic", "old topic"),
      zip(("FIRST_OFFSET", "LAST_OFFSET", "TIMESTAMP"), young, old, strict=True))

# %% [markdown]
# Of the old topic only the newest orders are left; `FIRST_OFFSET` begins with them, `LAST_OFFSET` behind them.
#
# ### The group comes back
#
# A group with `CONSUME_FROM_LAST_OFFSET` has had everything, and its only packer goes home. More orders come while nobody
# is there. Next morning the same program starts again, with the same setting.

# %%
more = draw.between("more", 15, 60)
lab = Lab(seed=seed)
producer = await open_shop(lab, queues=tables)
spawn_orders(producer, orders=orders, queues=tables, every_ms=0)
lab.run_for(seconds=1)
evening = packer(lab, "evening", consume_from_where="CONSUME_FROM_LAST_OFFSET")
await evening.start()
lab.run_for(seconds=6)
await evening.shutdown()
spawn_orders(producer, orders=more, queues=tables, every_ms=0)
lab.run_for(seconds=1)
say(f"**{orders}** orders are done, **{more}** more have come while nobody was there.")

# %% tags=["prediction"]
predict("comes-back", f"{orders} + {more} orders are in the topic. How many does the group get in the morning?",
        unit="orders", prediction=...)

# %%
morning = packer(lab, "morning", consume_from_where="CONSUME_FROM_LAST_OFFSET")
await morning.start()
lab.run_for(seconds=6)
reveal("comes-back", sum(1 for _ in lab.history.find("ConsumeStarted", node="morning")),
       why="the broker knows an offset of the group, and that is where it goes on")

# %% [markdown]
# The setting counts **once**. As soon as the broker has an offset of the group, that is where it goes on, whatever the
# program says.
#
# ### Your turn: where does it begin?
#
# Write it as a rule for one queue. `begin_at` gets the group's offset at the broker (`None` if it has none), the setting
# (`"FIRST"` or `"LAST"`), the offset of the oldest message that is still there, and the end of the queue (the offset that
# the next message will get). It returns the offset at which the group begins.

# %% [markdown] tags=["hints"]
# - Three questions, one after the other: is the group known? Is the topic young? What does the setting say?
# - A queue is young when its oldest message is number 0. Then the setting does not count. Mind that a known offset may be 0, too: `is not None`.
# - Each question that can be answered ends the search. Write two `if` with a `return`, in that order; only behind them the setting decides between the two ends of the queue.

# %% tags=["exercise"]
def begin_at(known, where, oldest, end):
    """The offset at which a group begins with a queue."""
    ### BEGIN SOLUTION
    if known is not None:
        return known
    if oldest == 0:
        return 0
    return oldest if where == "FIRST" else end
    ### END SOLUTION


# %% tags=["check"]
check("08/begin-at", begin_at)

# %% [markdown]
# ### The other surprise of a new group
#
# When a listener fails, the message is put aside and comes again after 10 s, by way of a topic of the group's own,
# `%RETRY%` and its name (lab 09). A new group's listener fails once, soon after the start.

# %%
fails_ms = draw.between("fails", 3_000, 10_000, step=100)

# %% tags=["prediction"]
predict("retry",
        f"The listener fails {fails_ms / 1_000} s after the start. How long after that does the message come again?",
        unit="s", prediction=...)

# %%
from mqlab import ConsumeConcurrentlyStatus as Status


async def fails_once(messages, context):
    return Status.CONSUME_SUCCESS if messages[0].reconsume_times else Status.RECONSUME_LATER

# %%
lab = Lab(seed=seed)
producer = await open_shop(lab)
newcomer = lab.consumer("newcomers", node="N")
newcomer.subscribe("Orders", "*")
newcomer.register_message_listener(fails_once)
await newcomer.start()
start_ms = lab.now_ms

# %%
lab.run_for(ms=fails_ms)
await producer.send(Message("Orders", b"a difficult one"))
again = lab.run_until_event("ConsumeStarted", reconsume_times=1)
kinds = ("RouteMissing", "RouteUpdated", "QueueAllocated", "PullRequested", "ConsumeStarted")
story = [event for event in lab.history.find(kinds, node="N")
         if "RETRY" in event.topic or event.kind == "ConsumeStarted"]
Table("the retry topic of a new group", ("s after the start", "what", "topic"),
      [(f"{(event.ts_ms - start_ms) / 1_000:.3f}", event.kind, event.topic) for event in story])

# %%
reveal("retry", round((again.ts_ms - start_ms - fails_ms) / 1_000, 1),
       why="the retry queue is only taken by the second rebalance, 20 s after the first")

# %% [markdown]
# Read it from the top. The consumer asks for the route of its retry topic, and there is none: the topic is created by
# the group's *first heartbeat*, which comes after that. At the first rebalance (1 s) there is still no route, so no
# queue to take. The next one comes 20 s later, and then the 500 ms. Measured, from the start: 20.8, 21.0 and 21.0 s; in another
# recording one run took 2.4 s, since a late notice woke the rebalance. It happens once in a group's life, and looks
# like a bug in your retries when you test them.
#
# ## Round two: everybody gets everything (9 minutes)
#
# Not all groups share. The windows of a shop shall *all* show each new price. With `MessageModel.BROADCASTING` every
# member gets every message. (The default, sharing, is called `CLUSTERING`.)

# %%
windows = "XYZVW"[: draw.between("windows", 3, 5)]
prices = draw.between("prices", 25, 60)
say(f"Your shop has **{len(windows)} windows**, and **{prices} prices** are sent.")

# %% tags=["prediction"]
predict("broadcast-calls", f"{prices} messages, {len(windows)} members that broadcast. How often is a listener called, in all?", unit="calls", prediction=...)

# %%
from mqlab.client import MessageModel


async def shop_windows(model):
    lab = Lab(seed=seed)
    producer = await open_shop(lab, queues=tables)
    members = [packer(lab, name, message_model=model, packing_ms=5) for name in windows]
    for member in members:
        await member.start()
    lab.run_for(seconds=2)
    spawn_orders(producer, orders=prices, queues=tables, every_ms=0)
    lab.run_for(seconds=40)
    return lab, members

# %%
rows = []
for model in (MessageModel.CLUSTERING, MessageModel.BROADCASTING):
    lab, members = await shop_windows(model)
    calls = [sum(1 for _ in lab.history.find("ConsumeStarted", node=name)) for name in windows]
    asked = sum(1 for _ in lab.history.find("RequestSent", request_name="GET_CONSUMER_LIST_BY_GROUP"))
    x = members[0].impl
    rows.append((model.name, calls, asked, x.instance.client_id, type(x.offset_store).__name__))

Table("two models",
      ("model", f"calls on {', '.join(windows)}", "asked for members", "client id of X", "offsets are kept by"), rows)

# %%
reveal("broadcast-calls", sum(rows[1][1]),
       why="each member owns all queues: rebalanceByTopic takes them all")

# %% [markdown]
# The third column says it: who takes all queues need not ask who else is there. And since each member has its own
# progress, there is no number for the group that a broker could keep. Each writes a file on its own disk:

# %%
path = x.offset_store.path
print(path)
print(members[0].node.disk.read_bytes(path).decode()[:96], "...")

# %% [markdown]
# The path explains the fourth column. A clustering client calls itself by process and start time, so that two on one
# machine are never the same. A broadcasting one is just `DEFAULT`, every time, because it must find *its file* again.
# The price of this model: no file, no memory (a container with a fresh disk begins anew), and a message that fails is
# dropped, with a line in the log.
#
# ### Your turn: how many calls?
#
# A group has some members, all of them there all the time. With some of the messages (`failing` of them) a listener fails at
# its first call, and would be well at a second one. How often is a listener called, in all? `model` is `"CLUSTERING"` or
# `"BROADCASTING"`.

# %%
say(f"If {prices // 5} of your {prices} prices failed, how many calls would it be with {len(windows)} windows, in each of the two "
    "models?")

# %% [markdown] tags=["hints"]
# - First without failures: who is called with a message in each of the two models?
# - A failure brings a second call only where a message can come again. In which model is it dropped?
# - So in one model the failures come on top, and in the other one every message is there once for each member, whether it fails or not.

# %% tags=["exercise"]
def calls(model, messages, members, failing):
    """How often a listener is called, in all."""
    ### BEGIN SOLUTION
    if model == "BROADCASTING":
        return messages * members
    return messages + failing
    ### END SOLUTION


# %% [markdown]
# The check lets such groups live, and counts.

# %% tags=["check"]
check("08/calls", calls)

# %% [markdown]
# ## Round three: strategies (10 minutes)
#
# Every queue that moves costs half a second or more, and maybe duplicates. So when a member leaves, only its own queues
# should move. Do they? We let each member of a group leave once (and come back), and count on paper; no world is needed,
# since a strategy is a function.

# %%
from mqlab.protocol.message import MessageQueue
from mqlab.rebalance import AllocateMessageQueueAveragelyByCircle, AllocateMessageQueueConsistentHash

queues = [MessageQueue("Orders", broker, number)
          for broker in ("broker-a", "broker-b") for number in range(draw.between("on each broker", 9, 14))]
group = sorted(f"10.0.0.{20 + host}@4711" for host in range(draw.between("members", 5, 7)))
must_move = round(len(queues) / len(group), 1)
say(f"Your group has **{len(group)} members**, the topic **{len(queues)} queues** on two brokers. When one leaves, "
    f"**{must_move}** queues have to move on average: its own.")

# %% tags=["prediction"]
predict("moves", f"{len(queues)} queues, {len(group)} members, one leaves. How many queues does the default strategy "
        "move, on average?", unit="queues", prediction=...)

# %%
def owners(strategy, members):
    shares = allocate_to_all(strategy, "packers", queues, members)
    return {queue: who for who, mine in shares.items() for queue in mine}

# %%
def compared(strategy):
    before = owners(strategy, group)
    moved = [sum(after[q] != before[q] for q in queues)
             for after in (owners(strategy, [m for m in group if m != gone]) for gone in group)]
    sizes = [list(before.values()).count(member) for member in group]
    return strategy.name, round(sum(moved) / len(group), 1), max(moved), min(sizes), max(sizes)

# %%
rows = [compared(strategy) for strategy in (AllocateMessageQueueAveragely(), AllocateMessageQueueAveragelyByCircle(),
                                            AllocateMessageQueueConsistentHash())]
Table(f"{len(queues)} queues, {len(group)} members, one leaves",
      ("strategy", "moved on average", "at worst", "smallest share", "largest share"), rows)

# %%
reveal("moves", rows[0][1], why="blocks of neighbours: all become longer, so they begin elsewhere")

# %%
from mqlab_widgets.charts import show_bars

show_bars("A member leaves: how many queues move?", "strategy", "queues moved, on average",
          [row[0] for row in rows], {"must move": [must_move] * 3, "move": [row[1] for row in rows]})

# %% [markdown]
# - **AVG**, the default: blocks of neighbours. When one leaves, the blocks of the others become longer, and begin
#   elsewhere.
# - **AVG_BY_CIRCLE**: dealt like cards. With another number of players nearly every card goes to somebody else.
# - **CONSISTENT_HASH**: members and queues stand on a ring, each queue belongs to the next member. Only what must
#   moves. But look at the shares: the largest and the smallest are far apart.
#
# Even or quiet: RocketMQ's own strategies give you one of the two.
#
# ### Your turn: what has moved?
#
# `moved` gets the shares before and after a change, two dictionaries member -> list of queues. How many queues have
# another owner now than before? (In the second some members may be missing, and new ones may be there. All queues are
# owned in both.) The check below counts in this way.

# %% [markdown] tags=["hints"]
# - Turn it round: for each queue its owner. Then it is a comparison of two dictionaries.
# - To turn `shares` round go through its members, and for each through its queues: now the queue is the key.
# - One of the two is enough. For each queue of each member in the other, ask whether it had the same owner before, and count those that had not.

# %% tags=["exercise"]
def moved(before, after):
    """How many queues have another owner after a change than before it."""
    ### BEGIN SOLUTION
    was = {queue: who for who, mine in before.items() for queue in mine}
    return sum(was[queue] != who for who, mine in after.items() for queue in mine)
    ### END SOLUTION


# %% tags=["check"]
check("08/moved", moved)

# %% [markdown]
# ## Build it: even *and* quiet (23 minutes)
#
# Write a strategy with even shares (they differ by one at most) that moves few queues. `divide` is called on each
# member, with its own client id and the two sorted lists, and returns a list: *its* queues. (A queue has a `topic`, a
# `broker_name` and a `queue_id`; a member is nothing but its client id, a text.)
#
# The check takes 50 pairs of groups. Each member leaves once and comes back as a new process, and at each step it wants
#
# - every queue with one owner, also when there are fewer queues than members;
# - shares that differ by one at most;
# - over all departures at most 85% of what `AllocateMessageQueueAveragely` moves (ours comes to 58%; can you beat it?).

# %% [markdown] tags=["hints"]
# - A memory does not help: the strategy object of a member that has just come remembers nothing, and the others would not know what yours remembers. Python's `hash` of a text is another one in every process; `hashlib` is not.
# - Let each pair of a member and a queue have a *score* which depends on nothing but the two. If every queue goes to the member with the highest score, then what moves when one leaves? And what is wrong with it?
# - Walk through all pairs, sorted by score. Give the queue to the member if the queue is free and the member's share is not full. A share is `divmod(len(mq_all), len(cid_all))`: as many members as there is a rest may take one more. At the end, return the queues of `current_cid`.

# %% tags=["exercise"]
import hashlib

from mqlab.rebalance import AllocateMessageQueueStrategy


class FewestMoves(AllocateMessageQueueStrategy):
    """Even shares, and few queues that move."""

    name = "FEWEST_MOVES"

    def divide(self, current_cid, mq_all, cid_all):
        """The queues of the member `current_cid`."""
        ### BEGIN SOLUTION
        def score(cid, queue):
            return hashlib.md5(f"{cid} {queue}".encode()).digest()

        share, rest = divmod(len(mq_all), len(cid_all))
        load = dict.fromkeys(cid_all, 0)
        owner = {}
        # The strongest wishes first; who has a full share takes one more only while there is a rest.
        for _, cid, queue in sorted((score(cid, queue), cid, queue) for cid in cid_all for queue in mq_all):
            if queue in owner or load[cid] > share or (load[cid] == share and rest == 0):
                continue
            if load[cid] == share:
                rest -= 1
            load[cid] += 1
            owner[queue] = cid
        return [queue for queue in mq_all if owner[queue] == current_cid]
        ### END SOLUTION


# %% tags=["check"]
check("08/fewest-moves", FewestMoves)

# %% [markdown]
# A consumer takes it as it is: `lab.consumer("packers", allocate_message_queue_strategy=FewestMoves())`. **All**
# members of a group must have the same one. Two strategies in one group, during a careless update, mean queues with
# two owners and queues with none, for as long as both run, and no error anywhere.

# %% [markdown] tags=["teacher"]
# The reference is rendezvous hashing with full shares (greedy over all pairs). It moves 58% of what AVG moves
# on these groups. Going queue by queue (each takes its best member that has room) is nearly as good. Evening out
# afterwards (highest score first, then surplus to the poorest) comes to about 70%, and is near the limit on some
# seeds. What goes wrong, in this order: the highest score without a limit (uneven); the limit rounded up for
# everybody (the last member gets too little) or down (queues without an owner); `hash` of a text; a memory.
#
# The true minimum (only the queues of the one that left) can be reached by those who know what was before. Kafka's
# sticky assignor does: members report what they have, and one of them computes for all. A good discussion: what would
# RocketMQ need for that?

# %% [markdown]
# ## What is different in today's RocketMQ (3 minutes)
#
# The articles are those with which mqlab began; [docs/seeds.md](../docs/seeds.md) goes through them, claim by claim.
#
# - They say: `CONSUME_FROM_LAST_OFFSET` begins at the end. Not on a young topic, as you have seen. Three more
#   modes of that time are deprecated and act like it.
# - They say: a clustering client's instance name becomes the process id. Today it is the process id *and* the
#   start in nanoseconds.
#
# ## Where to read on
#
# - `client/src/main/java/org/apache/rocketmq/client/consumer/rebalance/`: the strategies; here `mqlab/rebalance/`
# - `client/src/main/java/org/apache/rocketmq/client/consumer/store/`: both offset stores; here
#   `mqlab/client/consumer/offset_store.py`
# - `broker/src/main/java/org/apache/rocketmq/broker/processor/ConsumerManageProcessor.java`: `queryConsumerOffset`; here
#   `mqlab/broker/consumer_manage_processor.py`
#
# ## Three questions to take home
#
# 1. **What does it cost?** A topic has 48 queues and its group 12 members, which are updated one after the other. How
#    many queues move in all with each of the strategies of round three?
# 2. You want a new group to see only what comes from now on, on any topic, young or old. What do you do?
# 3. A broadcasting member runs in a container with a fresh disk each time. What does it miss, and what comes twice?
#
# ## Your bets

# %%
reveal()
