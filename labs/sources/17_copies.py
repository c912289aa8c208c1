# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   mqlab:
#     title: Copies
#     question: A broker said "stored", and then it died. Is the message still there, and on which machine?
#     objectives:
#       - say which of four settings keeps a message through which of four accidents
#       - tell from the offsets of a master and its slave what an accident would cost now
#       - say who serves readers and writers while a master is dead, and what happens when it returns
#     minutes: 75
#     prerequisites: [00 Tour, 02 Store]
#     wrong_predictions:
#       - "not-on-disk: 0, since the broker said that they are stored"
#       - "not-copied: more than on the disk, since the slave is another machine, and far"
#       - "sync-alone: it waits 3 s, or is refused; SYNC_MASTER alone waits for nobody in this version"
#       - "first-reader: with the answer, or when the copy is there; readers are not told to wait"
#       - "while-hung: all that fit into the time at the usual pace"
#       - "nobody-has: as many as the master lacks; the slave has most of these"
#       - "master-lacks: 0, since the shop was answered only when two machines had them"
#       - "safe-settings: only both together; a copy alone is enough for these four accidents"
#       - "read-gap: some ms, as when a broker with other queues dies"
#       - "new-copied: all of them"
# ---

# %% tags=["parameters"]
student_id = ""

# %% [markdown]
# ## The scene (6 minutes)
#
# A shop sends orders to a **broker**, the server that keeps them. The broker appends each one to its **commit log**, one long file, and answers
# `SEND_OK`: stored. In lab 02 you saw that "stored" means "in the memory of that machine", and that the file is **flushed** (really written to
# the disk) a little later.
#
# In this lab there are two brokers. The **master** takes orders, as before. The **slave** takes none. It does one thing only: it connects to its master
# and is sent the master's commit log, byte for byte. So an order may be in three places: the master's memory, the master's disk, the slave.
#
# Four things may happen to a master, and each takes something else away:
#
# | accident | what is gone |
# |---|---|
# | process killed | nothing that was stored: the operating system has it in memory, and will write it to the disk |
# | power off | all of the machine's memory, so what was not flushed (single pages of it may have been written by luck) |
# | disk lost | everything on that machine, for ever |
# | network cut | nothing; but master and slave cannot reach each other for a while |
#
# Here is such a pair, with a shop that sends orders. It is the moment at which the power of the master goes off.

# %%
from mqlab import Lab, Message, scenarios
from mqlab.check import NotSolvedYet, check, draws_for, predict, reveal, say, seed_for
from mqlab.scenarios.numbered import reader
from mqlab.scenarios.pushing import new_reader
from mqlab.scenarios.replication import TABLES_MS, messages_on, open_pair, sixteen_worlds, standing
from mqlab.views import Series, Table, TimeChart, Whereabouts
from mqlab.views.time_chart import BLUE, ORANGE
from mqlab_widgets import Stepper
from mqlab_widgets.boards.replication import ReplicationBoard

seed = seed_for(student_id, "17")
draw = draws_for(seed)

# %%
scene = scenarios.get("accident").play(seed)
scene.history.back("PowerLost")
Stepper(scene, [ReplicationBoard])

# %% [markdown]
# Go back a little with **Previous**, and look at the row "commit log" of both brokers. Each small tile is one order.
#
# - A **striped** tile is not on the disk yet.
# - An **underlined** tile is in the log of the slave, too.
# - Between the two brokers pieces of the log travel downwards. The green tick that travels upwards is the slave's **report**: "I have all before
#   byte so-and-so".
#
# Then press **Play**, and watch what the power takes, and what the master has when it is back. The board below counts the same in bytes.
#
# ## Round one: two distances (10 minutes)
#
# How far is the disk behind, and how far the slave? We take a new pair with RocketMQ's defaults, and a shop that sends one order after the other.

# %%
pace_ms = draw.between("pace", 7, 12)
lab = Lab(seed=seed)
shop = await open_pair(lab)
until_ms = lab.now_ms + draw.between("until", 1_190, 1_370, step=10)
count = 0
while lab.now_ms < until_ms:
    result = await shop.send(Message("Orders", b"%1000d" % count))
    count += 1
    lab.run_for(ms=pace_ms)
say(f"The shop has sent **{count}** orders of 1,000 bytes, and rested **{pace_ms} ms** after each answer. The last "
    f"answer was {result.send_status.name}, as all the others.")

# %% tags=["prediction"]
predict("not-on-disk", f"All {count} orders were answered SEND_OK. How many of them are not on the master's disk?",
        unit="orders", prediction=...)

# %% tags=["prediction"]
predict("not-copied", f"How many of the {count} does the slave not have, as far as the master knows?",
        unit="orders", prediction=...)

# %%
now = standing(lab)
Table("how far the pair is, in bytes of the commit log", ("the log ends at", "flushed up to", "the slave has"), [now[:3]])

# %%
reveal("not-on-disk", now.messages_not_flushed,
       why="FlushRealTimeService sleeps 500 ms (flushIntervalCommitLog), and then writes if four pages are full")

# %%
reveal("not-copied", now.messages_not_copied,
       why="the master looks every 100 ms whether there is something to send; the network takes 0.2 ms")

# %% [markdown]
# The other machine is nearer than the own disk. The distance to the slave is not made by the network. It is made by a nap: the thread that sends
# (`DefaultHAConnection.WriteSocketService`) waits up to 100 ms when it has found nothing. Measured on a real RocketMQ 5.3.3: a slave is 37 ms behind in the median,
# and 104 ms at most.
#
# This is the piece of the log that was sent last, and what the slave said to it:

# %%
sent = lab.history.last("ReplicaDataSent")
Table("one piece of the log", ("ms", "machine", "event", "commit log offset", "bytes"),
      [(round(r.ts_ms, 1), r.node, r.kind, r.get("ack_offset") or r.get("commit_log_offset"), r.get("body_bytes"))
       for r in lab.history.find(("ReplicaDataSent", "ReplicaDataAppended", "ReplicaAcked"))
       if r.ts_ms >= sent.ts_ms])

# %% [markdown]
# The connection is not one of RocketMQ's usual ones (lab 00). A piece is 12 bytes (where it lies, how long it is) and the raw log behind them, 32 KiB
# at most. A report is 8 bytes: one number. This number is all that the master knows of its slave. And it is a careful number: the slave
# reports what lies in *its* memory. Its disk is its own affair.
#
# ### A small exercise: what is behind (1 point)
#
# `records` are the places of orders in the commit log, each `(offset, size)`. Up to the byte `end` (which does not belong to it) all is copied, or flushed. An order of
# which the last byte is missing is no order. How many are not wholly there?

# %% [markdown] tags=["hints"]
# - Where does a record end? That is the first byte behind it.
# - A record is there when its end is not behind `end`. One that ends exactly at `end` is there.
# - Go through all records; each gives you an offset and a size. Count those whose own end is larger.

# %% tags=["exercise"]
def not_yet(records, end):
    """How many records are not wholly before `end`."""
    ### BEGIN SOLUTION
    return sum(offset + size > end for offset, size in records)
    ### END SOLUTION

# %% tags=["check"]
check("17/not-yet", not_yet)

# %% [markdown]
# ## Round two: who waits for whom (14 minutes)
#
# Both distances can be made zero, if the answer waits. `flushDiskType=SYNC_FLUSH`: the answer waits for the disk. `brokerRole=SYNC_MASTER`: the answer
# waits for the slave. So say the names. We make a master a `SYNC_MASTER`, set nothing else, and cut the network between it and its slave.

# %% tags=["prediction"]
predict("sync-alone", "brokerRole=SYNC_MASTER, and the slave cannot be reached. What does the shop's send return?",
        choices=["SEND_OK, at once", "FLUSH_SLAVE_TIMEOUT, after 3 s", "SLAVE_NOT_AVAILABLE, at once",
                 "SEND_OK, when the network is mended"], prediction=...)

# %%
lab = Lab(seed=seed)
shop = await open_pair(lab, replication="SYNC_MASTER", in_sync_replicas=1)
await shop.send(Message("Orders", b"the first one opens the connection"))
lab.partition("broker-a", "slave-a")
start = lab.now_ms
result = await shop.send(Message("Orders", b"is anybody there?"))
result.send_status, round(lab.now_ms - start, 1)

# %%
reveal("sync-alone", "a" if result.send_status.name == "SEND_OK" and lab.now_ms - start < 1_000 else "b",
       why="inSyncReplicas is 1 by default, it counts the master, and one copy is there already")

# %% [markdown]
# That is the most dangerous line of this lab. In RocketMQ 4 a `SYNC_MASTER` waited for its slave. In 5 the number of brokers that must have a
# message is a setting of its own, `inSyncReplicas`, and **its default is 1, the master included**. Measured on a real 5.3.3 with a dead slave: `SEND_OK` at
# once. Who takes over the old configuration file gets no copy before the answer, and no word of warning. From here on we set it to 2.
#
# Now the slave hangs. Its connections are open, it just does nothing. A consumer waits for orders, and the shop sends one.

# %%
timeout_ms = draw.between("timeout", 1_500, 4_000, step=100)
lab = Lab(seed=seed)
shop = await open_pair(lab, replication="SYNC_MASTER", wait_ms=20_000, slave_timeout=timeout_ms)
consumer = new_reader(lab)
consumer.register_message_listener(reader(consumer, looks=False))
await consumer.start()
await shop.send(Message("Orders", b"the first one opens the connection"))
lab.run_for(seconds=2)
lab.freeze("slave-a")
say(f"The master waits **{timeout_ms:,} ms** for its slave (`slaveTimeout`, 3000 by default).")

# %% tags=["prediction"]
predict("first-reader", "When does the consumer get this order?",
        choices=["at once, while the shop still waits", "together with the shop's answer",
                 "when the slave has it, too", "never"], prediction=...)

# %%
start = lab.now_ms
result = await shop.send(Message("Orders", b"a copy, please"))
answered_ms = lab.now_ms - start
consumed = lab.history.last("ConsumeStarted")
Table("one order, and a slave that hangs", ("what", "ms after the call"), [
    ("stored by the master", round(lab.history.last("MessageStored").ts_ms - start, 1)),
    ("in the consumer's listener", round(consumed.ts_ms - start, 1)),
    (f"the shop is answered {result.send_status.name}", round(answered_ms, 1)),
])

# %%
reveal("first-reader", "a" if consumed.ts_ms - start < answered_ms / 2 else "c",
       why="queues are built from the master's log as it is; who reads does not ask for copies")

# %% [markdown]
# Two things to remember. First: `FLUSH_SLAVE_TIMEOUT` is no error. `send` returns, and the order is stored; only the promise is smaller. Who
# throws the result away has thrown away the warning. (With `sendMsgTimeout` and `slaveTimeout` both at 3 s, the defaults, the producer gives
# up first, and is told `sendDefaultImpl call timeout`: nobody knows, see lab 19.)
#
# Second: somebody has worked with an order of which there is a single copy. If the master's disk dies now, the parcel is on its way and the order is
# not there.
#
# ### And how many orders come through?
#
# The shop goes on. It sends one order after the other, and waits for each answer, while the slave hangs.

# %%
hang_ms = draw.between("hang", 9_000, 18_000, step=500)
say(f"The slave hangs for another **{hang_ms / 1_000:g} s**. Usually the shop sends an order each **{pace_ms} ms**.")

# %% tags=["prediction"]
predict("while-hung", f"How many orders are answered in these {hang_ms / 1_000:g} s?", unit="orders", prediction=...)

# %%
start, answers = lab.now_ms, []
lab.faults(f"at {start + hang_ms:g}ms: thaw slave-a")
while lab.now_ms < start + hang_ms:
    result = await shop.send(Message("Orders", b"and another one"))
    answers.append((round(lab.now_ms - start), result.send_status.name))
    lab.run_for(ms=pace_ms)
Table("what the shop was answered", ("ms", "status"), answers)

# %%
in_time = [at_ms for at_ms, _ in answers if at_ms < hang_ms]
reveal("while-hung", len(in_time), why=f"each answer takes {timeout_ms} ms, and nobody remembers that the last one did")

# %% [markdown]
# So a synchronous pair is as available as *both* of its machines. The waiting is done by `GroupTransferService`: each put that wants copies is a
# request with the end of its message, and it is answered when enough connections have reported that offset, or when its time is over. Nothing is
# sent again, and nothing is taken back.
#
# ### A small exercise: what is answered (1 point)
#
# A message ends at `end`. `reports` are the newest reports of all slaves, `brokers` is `inSyncReplicas`, and the put has waited for `waited_ms`. Return
# `"PUT_OK"`, `"FLUSH_SLAVE_TIMEOUT"` (it has waited for more than `timeout_ms`), or `None`: go on waiting. A copy that has come counts, however late it is.

# %% [markdown] tags=["hints"]
# - Who has the message? One broker has it for certain, and no report is needed for that one.
# - A slave whose report is exactly `end` has the message: a report says "all before".
# - First count the brokers that have it. Are they enough, that is the answer, whatever the time; only then look at the clock.

# %% tags=["exercise"]
def answer(end, reports, brokers, waited_ms, timeout_ms):
    """What a put that waits for copies is answered now; None if it has to wait."""
    ### BEGIN SOLUTION
    have = 1 + sum(report >= end for report in reports)
    if have >= brokers:
        return "PUT_OK"
    return "FLUSH_SLAVE_TIMEOUT" if waited_ms > timeout_ms else None
    ### END SOLUTION

# %% tags=["check"]
check("17/answer", answer)

# %% [markdown]
# ## Round three: sixteen worlds (13 minutes)
#
# Two settings for the disk, two for the slave, four accidents: sixteen worlds. In each of them the same shop sends orders, and the accident comes
# at the same moment. (Where a disk is lost the master does not come back. From the other accidents it does.) We ask for the orders that
# were answered `SEND_OK`, and for no others.

# %%
after_ms = draw.between("hundreds", 12, 13) * 100 + draw.between("after", 30, 65, step=5)
every_ms = draw.between("every", 6, 11)
say(f"The shop pauses **{every_ms} ms** on average, the accident comes **{after_ms:,} ms** after its first order.")

# %% [markdown]
# Begin with the weakest setting, `ASYNC_FLUSH` and `ASYNC_MASTER`, the default. The power goes off. Use what you know of the two distances.

# %% tags=["prediction"]
predict("nobody-has", "ASYNC_FLUSH, ASYNC_MASTER, power off: how many orders that were answered SEND_OK has nobody?",
        unit="orders", prediction=...)

# %% [markdown]
# Then the same accident with `SYNC_MASTER` (and `inSyncReplicas=2`): the shop is answered when two machines have its order. The
# power of the master goes off, and comes back.

# %% tags=["prediction"]
predict("master-lacks", "ASYNC_FLUSH, SYNC_MASTER, power off: how many orders that were answered SEND_OK does the "
        "master lack when it is back?", unit="orders", prediction=...)

# %% [markdown]
# And the whole table. In your mind, put a mark into each of its sixteen fields: is there an acknowledged order that nobody has?

# %% tags=["prediction"]
predict("safe-settings", "Which settings lose no acknowledged order in any of the four accidents?",
        choices=["none of them", "only SYNC_FLUSH together with SYNC_MASTER", "both with SYNC_MASTER",
                 "both with SYNC_FLUSH"], prediction=...)

# %%
worlds = sixteen_worlds(seed, after_ms=after_ms, every_ms=every_ms, messages=300)
Whereabouts((f"{world.flush}, {world.replication}", world.what, world.places) for world in worlds)

# %%
cut = {(world.flush, world.replication): world for world in worlds if world.what == "power off"}
reveal("nobody-has", cut["ASYNC_FLUSH", "ASYNC_MASTER"].lost,
       why="the orders since the master's last look at its log; the others had reached the slave")

# %%
reveal("master-lacks", cut["ASYNC_FLUSH", "SYNC_MASTER"].on_slave_only,
       why="all that came since the last flush: the slave has them, and nobody brings them back")

# %%
losing = {(world.flush, world.replication) for world in worlds if world.lost}
reveal("safe-settings", "c" if not any(role == "SYNC_MASTER" for _, role in losing) else "b",
       why="a copy on another machine survives what happens to one machine, be it the power or the disk")

# %% [markdown]
# Read the picture row by row.
#
# - A **killed process** and a **cut network** cost nothing, whatever is set. A kill frightens most, and takes least.
# - **SYNC_FLUSH** alone is no help against a lost disk: the orders were on it. It costs the same as the default does there.
# - **SYNC_MASTER** loses nothing here, not even with a lazy disk. Two memories are worth more than one disk, as long as the two machines do not lose their power together.
# - But look at *power off* once more. The orange orders are "there". They are on the slave, and the master is back without them. Consumers ask the
#   master. So for them these orders do not exist, and the shop was told `SEND_OK`. The rest of that row is stranger still; the "Break it" below is about it.
#
# What does it cost? Each `SYNC_FLUSH` answer waits for a disk, each `SYNC_MASTER` answer for a network and for the slower of two machines. That is
# why the defaults are what they are, and why a bank sets others.
#
# ### A small exercise: what would be gone (1 point)
#
# `ends` are the ends of all acknowledged orders, rising. All before `flushed` is on the master's disk, and the slave has reported `reported`. Now `accident` happens to the master,
# one of the four texts in the table at the top. How many orders can then be lost to everybody? Count those of which you cannot be sure, too: what only luck keeps, is lost. The slave is well.

# %% [markdown] tags=["hints"]
# - For each accident: up to which byte is everything certainly somewhere?
# - Two of the four cost nothing at all. For a lost disk one offset is left that counts.
# - After a power cut an order is there if it is before *either* of the two offsets: compare its end with the larger one of them.

# %% tags=["exercise"]
def gone(ends, flushed, reported, accident):
    """How many orders nobody certainly has after the accident."""
    ### BEGIN SOLUTION
    if accident in ("process killed", "network cut"):
        return 0
    kept = reported if accident == "disk lost" else max(flushed, reported)
    return sum(end > kept for end in ends)
    ### END SOLUTION

# %% tags=["check"]
check("17/gone", gone)

# %% [markdown]
# ## Round four: the master is dead (9 minutes)
#
# There is a copy. Who uses it? We let a consumer read slowly, two orders a second, from a long queue. After a while the master is killed, and
# stays dead. Both brokers have `slaveReadEnable=true`; it is false by default. (The world has been running for a minute
# before: only then has a slave fetched the list of topics from its master, and without it the slave knows of no queue.)

# %%
async def read_slowly(slave_read):
    lab = Lab(seed=seed)
    shop = await open_pair(lab, slave_read_enable=slave_read)
    lab.run_for(ms=TABLES_MS)
    for number in range(150):
        await shop.send(Message("Orders", b"%d" % number))
    consumer = new_reader(lab, pull_batch_size=1, pull_interval=500)
    consumer.register_message_listener(reader(consumer, looks=False))
    await consumer.start()
    lab.run_for(ms=kill_ms)
    lab.crash("broker-a")
    return lab, shop


kill_ms = draw.between("kill", 6_000, 25_000, step=100)
lab, shop = await read_slowly(slave_read=True)
say(f"The consumer has been reading for **{kill_ms / 1_000:g} s**. Now the master is killed.")

# %% tags=["prediction"]
predict("read-gap", f"The consumer began {kill_ms / 1_000:g} s before the kill. After how many s does it get the next "
        "order, from the slave?", unit="s", prediction=...)

# %%
killed_ms = lab.now_ms
lab.run_for(seconds=40)
other, _ = await read_slowly(slave_read=False)
other.run_for(seconds=40)


def progress(lab):
    began = [(r.ts_ms - killed_ms) / 1_000 for r in lab.history.find("ConsumeStarted")]
    return [*((at_s, number) for number, at_s in enumerate(began, 1)), (40, len(began))]


TimeChart("A master is killed at 0 s", "consumed, orders", [
    Series("slaveReadEnable=true", progress(lab), BLUE),
    Series("slaveReadEnable=false", progress(other), ORANGE, "dashed"),
])

# %%
reveal("read-gap", round(next(at_s for at_s, _ in progress(lab) if at_s > 0), 1),
       why="a client asks the name server for routes every 30 s, and not because somebody died")

# %% [markdown]
# Nobody tells the consumer that its master is dead. It goes on asking a closed door, once a second. The name server has taken the master out
# of the route at once; but the consumer asks for the route every 30 s only (`pollNameServerInterval`), counted from its own start. Then it finds an address with the id 1 in place of
# the id 0, and reads on. Measured on a real 5.3.3 with a running consumer: 16 s after the kill. With `slaveReadEnable=false` the slave refuses each pull (`[REJECTREQUEST]`).
#
# That was reading. And writing?

# %% tags=["raises-exception"]
await shop.send(Message("Orders", b"for the slave?"))

# %% [markdown]
# A slave takes no messages. In this form of replication, master and slave are roles that an administrator has written into two files, and **nobody is
# promoted**. The group of queues `broker-a` is closed to writers until its master is back (or somebody edits a file). That is why one has
# several masters, each with its slave: the shop then writes to another one (lab 04).
#
# ### A small exercise: whom to ask (1 point)
#
# `addresses` is what a route says of one broker name: id -> address, in rising order; 0 is the master. Who *writes* needs the master, and nobody else will do. Who
# *reads* asks the id that it `wanted` (the last answer has suggested it). If that one is not there: a consumer that wanted a slave looks for the
# next id; and else, or if that is not there either, it takes the first in the list. Return an address, or `None`.

# %% [markdown] tags=["hints"]
# - Begin with writing: `addresses.get(0)` is an address or `None`.
# - Reading tries up to three things, one after the other. The middle one is for slaves only: `wanted` is not 0.
# - The first in the list is `next(iter(addresses.values()))`. Write three `if`s for the other cases, and return this one at the end.

# %% tags=["exercise"]
def whom(addresses, wanted, write):
    """The address to write to, or to read from; None if there is none."""
    ### BEGIN SOLUTION
    if write:
        return addresses.get(0)
    if wanted in addresses:
        return addresses[wanted]
    if wanted != 0 and wanted + 1 in addresses:
        return addresses[wanted + 1]
    return next(iter(addresses.values()))
    ### END SOLUTION

# %% tags=["check"]
check("17/whom", whom)

# %% [markdown]
# ## Break it: two truths (6 minutes)
#
# Once more the default, `ASYNC_FLUSH` and `ASYNC_MASTER`, and a power cut. This time we look at what comes after. The shop sends orders, all of one
# size, and the power of the master goes off some time after a flush. It is back three seconds later, and the slave finds it again.

# %%
lab = Lab(seed=seed)
shop = await open_pair(lab)
for number in range(draw.between("before", 40, 60)):
    await shop.send(Message("Orders", b"old order %03d, %980d" % (number, 0)))
    lab.run_for(ms=pace_ms)
lab.run_until_event("CommitLogFlushed", node="broker-a")
flushed = number + 1
for number in range(flushed, flushed + draw.between("unflushed", 24, 32)):
    await shop.send(Message("Orders", b"old order %03d, %980d" % (number, 0)))
    lab.run_for(ms=pace_ms)
lab.power_off("broker-a")
lab.run_for(seconds=3)
lab.restart("broker-a")
lab.run_for(seconds=8)
size = len(lab.queue("Orders").record_bytes(0))
Table("after the power cut", ("broker", "its log ends at", "orders"),
      [(broker.name, broker.store.max_phy_offset, len(messages_on(broker))) for broker in lab.brokers])

# %% [markdown]
# The slave has more than its master. Now the shop sends new orders, of the same size, slowly, and all is well: no more accidents.

# %%
new = draw.between("new", 34, 45)
say(f"The shop sends **{new}** new orders. Each order takes **{size:,}** bytes of the log.")

# %% tags=["prediction"]
predict("new-copied", f"How many of the {new} new orders does the slave have when all is quiet?", unit="orders",
        prediction=...)

# %%
for number in range(new):
    await shop.send(Message("Orders", b"new order %03d, %980d" % (number, 0)))
    lab.run_for(ms=100)
lab.run_for(seconds=5)
names = {broker.name: [message.body[:13].decode() for message in messages_on(broker)] for broker in lab.brokers}
copied = [name for name in names["slave-a"] if name.startswith("new")]
pairs = list(enumerate(zip(names["broker-a"], names["slave-a"], strict=True)))
other = [offset for offset, (mine, theirs) in pairs if mine != theirs]
Table("one queue, as two brokers have it", ("queue offset", "the master says", "the slave says"),
      [(offset, *both) for offset, both in pairs[max(0, other[0] - 2) : other[-1] + 3]] if other else [], most=60)

# %%
reveal("new-copied", len(copied),
       why="the slave is sent what lies behind its own end; the master's new orders before that are never sent")

# %% [markdown]
# One offset, two orders. The rule of the protocol is simple: *the slave says how far it is, and is sent what comes behind.* Nobody compares what lies
# before. So while the master's log was shorter, it sent nothing but heartbeats. When it had grown past the slave's end, it went on from there. Both logs have the same length
# now, both brokers say that all is well, and in between they tell different stories for ever. (Here all orders have one size. When they have not,
# the master goes on in the middle of a record; the slave's queue stops there until it is started anew.) That is no mistake of our laboratory: the
# logs of a real pair, treated like this, differ in the same way.
#
# To play with it: the world at the moment when the master is back. Take steps with **Next**, or cut and kill what you like.

# %%
lab.history.back("StoreRecovered", node="broker-a")
Stepper(lab, [ReplicationBoard])

# %% [markdown]
# ## Build it: is this message safe? (15 minutes)
#
# One more thing that you need. A slave that comes late is not sent everything. If its own log is empty, the master begins with
# the **last file** of its log (`DefaultHAConnection`): what was before stays with the master alone, however long you wait.

# %%
lab = Lab(seed=seed)
lab.name_server()
lab.broker("broker-a", mapped_file_size_commit_log=65_536)
lab.create_topic("Orders", 1)
shop = lab.producer("shop")
await shop.start()
for number in range(150):
    await shop.send(Message("Orders", b"%1000d" % number))
lab.broker(slave_of="broker-a")
lab.run_for(seconds=10)
Table("a slave that came late", ("broker", "its log begins at", "and ends at", "orders"),
      [(broker.name, broker.store.commit_log.min_offset, broker.store.max_phy_offset, len(messages_on(broker)))
       for broker in lab.brokers])

# %% [markdown]
# Now write the rule that an operator would like to have. `message` is the place of an order in the commit log, `(begin, end)`. `copies` says for each broker what
# it has at this moment: `copies["broker-a"]` is the master, all others are slaves, and each has
#
# - `begin` and `end`: it has all bytes from `begin` to before `end`, in memory at least;
# - `flushed`: what lies before is on its disk, too.
#
# `accidents` says what happens to each of the brokers, all at the same moment: `"nothing"`, `"process killed"`, `"power off"` or `"disk lost"`. Who certainly has
# the order afterwards? Return
#
# - `"the master"`, if the master certainly has it (then consumers get it, as ever);
# - else `"a slave"`, if some slave certainly has it;
# - else `"luck"`, if nobody certainly has it, but some broker may: its memory is gone, and single pages may have been written;
# - else `"nobody"`.
#
# In 50 worlds a master has one slave or two, of which one may have come late. The judge asks your rule about each order, lets the accidents happen,
# and looks at what is left on each disk.

# %% [markdown] tags=["hints"]
# - Look at one broker first: does it certainly have the order, perhaps, or not at all? Three answers, which depend on its offsets and on its own accident alone.
# - It needs the whole order: neither its first byte nor its last one may be outside. A lost disk is the end of it; a power cut makes a difference only for what is not flushed.
# - Collect the names of the brokers that certainly have it, and of those that perhaps do, in two lists. The four answers follow from these, in the order in which
#   they stand above.

# %% tags=["exercise"]
def who_has(message, copies, accidents):
    """Who has a message when all is over: "the master", "a slave", "luck" or "nobody"."""
    ### BEGIN SOLUTION
    begin, end = message
    certain, perhaps = [], []
    for name, copy in copies.items():
        if begin < copy.begin or end > copy.end or accidents[name] == "disk lost":
            continue
        if accidents[name] == "power off" and end > copy.flushed:
            perhaps.append(name)
        else:
            certain.append(name)
    if "broker-a" in certain:
        return "the master"
    if certain:
        return "a slave"
    return "luck" if perhaps else "nobody"
    ### END SOLUTION

# %% tags=["check"]
check("17/who-has", who_has)

# %% [markdown]
# When it fails, keep the verdict (`verdict = check(...)`) and look into the world: `Stepper(verdict.open(), [ReplicationBoard])`.
#
# Your rule is a rule for *one* moment. RocketMQ asks the same question with fewer numbers: its master knows `end`, its own `flushed` and the reports, and nothing of
# the slave's disk. So `SEND_OK` of a `SYNC_MASTER` with `ASYNC_FLUSH` says "two memories have it", no more. If the power of the whole room
# goes off, both are gone.
#
# ## In today's RocketMQ (2 minutes)
#
# - `SLAVE_NOT_AVAILABLE` still has a number and a place in every client. In 5.3.3 no path of the store answers it to a plain send; 4.x did when no healthy slave was connected.
# - With `inSyncReplicas=2` and both time-outs at their default the producer's own 3 s are over first. Give `sendMsgTimeout` more than `slaveTimeout`.
# - A producer does not send again after `FLUSH_SLAVE_TIMEOUT`, unless `retryAnotherBrokerWhenNotStoreOK` is set; then there will be two of that message.
# - There is another mode, with **controllers**: a group that agrees by Raft on who is master. It promotes a slave, and gives each master an *epoch*, so that a log
#   that has gone astray is cut back to where both agree; consumers then read only what enough brokers have (`confirmOffset`). The two surprises of this lab, the early reader and the
#   two truths, are what it was built against. mqlab does not have it.
# - With `enableSlaveActingMaster` the slave with the lowest id takes over some duties of a dead master (locks, delayed messages), and still no writes.
#
# Where to read on: `store/.../store/ha/DefaultHAConnection.java` (`WriteSocketService`), `DefaultHAClient.java`, `GroupTransferService.java`; `store/.../store/CommitLog.java` (`handleDiskFlushAndHA`);
# `client/.../impl/consumer/PullAPIWrapper.java` (`recalculatePullFromWhichNode`).
#
# Three questions to take home:
#
# 1. A master takes 20,000 orders a second. How many of them can a power cut cost with each of the four settings, if the slave is well? And what would a nap of 10 ms in place of 100 ms change?
# 2. Two machines stand in one room, and a third one in another town, 30 ms away. With `inSyncReplicas=2`, which copy does an answer wait for? With 3?
# 3. The master is back, shorter than its slave. Which of the two would you keep, and whom do you have to ask before you throw the other one away?
#
# ## What you expected, and what was seen

# %%
reveal()
