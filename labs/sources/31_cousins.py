# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   mqlab:
#     title: Pop and its cousins
#     question: Kafka's share groups and Amazon SQS hand messages out for a while, as Pop does. What differs when something goes wrong?
#     objectives:
#       - say when a message comes again that a dead or a slow worker held, and with which count, for each of the three
#       - say which of the three refuses a word that comes too late, and what each of them forgets when a broker dies
#       - build the state machine of a share partition, and keep its window in order
#     minutes: 78
#     prerequisites: [00 Tour, 11 Pop, 12 Check points]
#     wrong_predictions:
#       - "first-again: all at the same time, since all have the same 20 s or so; that a closed connection says something is not thought of"
#       - "pop-again: exactly the invisible time"
#       - "late: the share group and SQS; a handle is taken for a lock"
#       - "count-after: one more than before, since a delivery counts when it is made"
#       - "done-again: what was not acknowledged"
#       - "archived: never, or a lock too late: the last delivery has to end, too, and then nobody asks"
# ---

# %% tags=["parameters"]
student_id = ""

# %% [markdown]
# ## The scene (7 minutes)
#
# A **message queue** keeps messages, here the orders of a shop, until a worker has dealt with them. Lab 11 has shown one way to hand them out, RocketMQ's **Pop**: whoever asks gets some orders, and for a while, the
# **invisible time**, nobody else of the group does. If the worker says "done" (an **acknowledgement**), that is the end of the order. If it says nothing, the order comes again.
#
# The idea is older than Pop, and has become common since. **Amazon SQS** has worked so since 2006; there the while is the *visibility timeout*, and to acknowledge is to *delete*. Kafka got it with version 4.0 of 2025 as **share groups** (KIP-932): there it is an
# *acquisition lock* on a record.
#
# | | RocketMQ's Pop | Kafka's share group | Amazon SQS |
# |---|---|---|---|
# | an order is taken with | `POP_MESSAGE` | `ShareFetch` | `ReceiveMessage` |
# | for | the invisible time, 60 s unless told otherwise | the lock, 30 s; the group says how long | the visibility timeout, 30 s |
# | and acknowledged with | a receipt handle | its offset, by the member that holds it | a receipt handle |
# | "I need more time" | `CHANGE_MESSAGE_INVISIBLETIME` | `RENEW` (KIP-1222) | `ChangeMessageVisibility` |
#
# Three words for one thing, so it seems. In this lab the same accidents happen to all three, one beside the other. RocketMQ is the whole one that you know. The two others are **small models** of a few hundred lines, written from what Kafka and Amazon say of them; `mqlab/cousins/`
# names everything that they leave out. What matters here they keep, and where they cannot know, they say so.
#
# In each world there are some orders, a worker-1 that takes them, and a worker-2 that has nothing to do and asks twice a second.

# %%
from mqlab import Lab
from mqlab.check import NotSolvedYet, check, draws_for, predict, reveal, say, seed_for
from mqlab.scenarios import get
from mqlab.scenarios.cousins import open_counter
from mqlab.views import InHand, ShareWindow, Table
from mqlab_widgets import Stepper

seed = seed_for(student_id, "31")
draw = draws_for(seed)
NAMES = {"pop": "RocketMQ's Pop", "share-group": "Kafka's share group", "sqs": "Amazon SQS"}


def three(trouble, until_s=45, **parameters):
    """A world of each kind in which the same happens, played until then."""
    worlds = {}
    for system, name in NAMES.items():
        lab = get("cousins").build(seed, parameters={"system": system, "trouble": trouble, **parameters})
        worlds[name] = lab.run_for(ms=until_s * 1_000 - lab.now_ms)
    return worlds


def again(lab, order="order 0"):
    """When worker-2 got an order, in seconds behind worker-1, and the count that it was told."""
    taken = [event for event in lab.history.find("WorkTaken") if event.order_name == order]
    return [((event.ts_ms - taken[0].ts_ms) / 1_000, event.told_count) for event in taken if event.worker == "worker-2"]


# %%
InHand(three("none", until_s=10), lock_s=20, title="A day without trouble")

# %% [markdown]
# A blue bar says how long worker-1 has an order, a green dot that it has said "done" and was told OK. It was done in a moment, so there is little to be seen. Each bar tells a **count**: what the worker is told of how often
# the order was delivered. Kafka and SQS count from 1. RocketMQ counts how often it was *brought back*, from 0.

# %% [markdown]
# ## Round one: a worker dies (14 minutes)
#
# Worker-1 takes three orders. A second later its process is killed (`kill -9`). The machine lives on, and its operating system closes the connections of the dead process, as it does with every process.

# %%
lock_s = draw.between("lock", 15, 24)
say(f"The invisible time, the lock and the visibility timeout are **{lock_s} s** each.")

# %% tags=["prediction"]
predict("first-again", "Worker-1 is dead. Whose orders does worker-2 get first?",
        choices=["all at the same time, when their time is over", "those of Pop", "those of the share group", "those of SQS"],
        prediction=...)

# %% tags=["prediction"]
predict("pop-again", f"And after how many s does worker-2 have those of Pop? (Their invisible time is {lock_s} s.)", unit="s",
        prediction=...)

# %%
killed = three("killed", lock_s=lock_s)
InHand(killed, lock_s, title="Worker-1 is killed")

# %% [markdown]
# Now with all three in one world, on one stage. Go back to the beginning (the first button), press **play**, and watch what each queue knows of the dead worker. The line below a message is the time for which nobody else gets it;
# what a worker has in hand is drawn in its card.

# %%
stage = get("three-cousins").build(seed, parameters={"lock_s": lock_s})
Stepper(stage)

# %%
waited = {name: again(lab)[0][0] for name, lab in killed.items()}
first = min(waited, key=waited.get)
reveal("first-again", "abcd"[1 + list(waited).index(first)], why="its broker sees the connection close, and ends the session of the member")

# %%
reveal("pop-again", round(waited[NAMES["pop"]], 1),
       why="the invisible time, and then the reviver waits for acknowledgements that are still on their way (lab 12)")

# %% [markdown]
# Three designs, three answers.
#
# - **The share group** knows *who* holds a record. Each consumer has a session with the broker that leads the partition, and since Kafka 4.1 a session ends with its connection (KAFKA-19015). What the member held is let go at once. That is fast where a process dies.
# - **SQS** does not know who holds a message; it has a time for each. When the time is over, the message is visible, and the next one who asks gets it.
# - **Pop** has no time for each message at hand, but a check point in the revive topic. It is read when it is due, and then the reviver waits two seconds and more, so that late acknowledgements are not overlooked.
#
# Now the worker does not die: it **hangs**. The process is stuck, and its connection stays open. Nobody sees anything.

# %%
hung = three("hung", lock_s=lock_s)
InHand(hung, lock_s, title="Worker-1 hangs")

# %% [markdown]
# Now the share group has nothing but its lock, too.
#
# And look at the counts. The dead worker has processed nothing, yet to Kafka and SQS its delivery counts like any other: they count **when they hand out**. RocketMQ counts **when it brings back**. As long as nothing else goes wrong, the one is the other plus one.
#
# ### What nobody can do
#
# An order is written in a way that makes every worker fail: a **poison message**. It comes again and again, and each time it costs somebody's time. So there is a limit. Kafka allows 5 deliveries (`group.share.delivery.count.limit`), SQS as many as the queue's owner
# says (`maxReceiveCount`).

# %%
limit = draw.between("limit", 2, 5)
say(f"In this world the limit is **{limit}** deliveries, and a lock takes **{lock_s} s**. The workers say nothing about the poisoned order.")

# %% tags=["prediction"]
predict("archived", "After how many s will the share group have given up the order?", unit="s", prediction=...)

# %%
poison = three("poison", until_s=170, lock_s=lock_s, limit=limit)
rows = [(name, len(again(lab)) + 1, again(lab)[-1][1]) for name, lab in poison.items()]
Table("the poisoned order, when 170 s are over", ("", "deliveries", "the last count told"), rows)

# %%
share = poison[NAMES["share-group"]]
end = next(event for event in share.history.find("RecordLetGo") if event.state == "ARCHIVED")
begin = next(event for event in share.history.find("RecordAcquired"))
reveal("archived", round((end.ts_ms - begin.ts_ms) / 1_000), why=f"{limit} deliveries, each of which ends with its lock")

# %% [markdown]
# When the last delivery ends without a word, the share group makes the record **archived**: it lies in the log like any other, and this group never gets it again. (A dead-letter topic for such records came later, with KIP-1191.) SQS moves the message to a **dead-letter queue**, but only when somebody asks the next time and would have received it
# once too often. A RocketMQ *broker* sets no limit to pops: the counting is left to push consumers and to the proxy of 5.x, which put an order among the dead letters after 16 attempts unless told otherwise. A worker that pops by hand, as ours does, has to look at the count itself.
#
# ### A worker that is late
#
# Often a worker neither dies nor hangs, but needs a little too long. In the next world it says "done" three seconds behind the end of its time. By then worker-2 has the orders in its hands, and needs 4 s for each.

# %% tags=["prediction"]
predict("late", "Which of the three tell worker-1 that it is too late?",
        choices=["all three", "only the share group", "only SQS", "the share group and SQS", "none"], prediction=...)

# %%
late = three("late", lock_s=lock_s)
InHand(late, lock_s, title="Worker-1 is late")

# %%
def refused(lab):
    """Whether worker-1 was told an error."""
    return any(event.answer != "OK" for event in lab.history.find("WorkAnswered", worker="worker-1"))


told = [system for system, name in NAMES.items() if refused(late[name])]
choice = {("pop", "share-group", "sqs"): "a", ("share-group",): "b", ("sqs",): "c", ("share-group", "sqs"): "d"}.get(tuple(told), "e")
reveal("late", choice, why="it knows who holds a record; the others write down, or look up, what the handle says, and answer OK")

# %% [markdown]
# - **The share group** answers `INVALID_RECORD_STATE`: the record is not acquired, or another member holds it. So the worker *knows* that its work may be done twice.
# - **SQS** answers with success to any handle. If it is the newest one of its message, the message is deleted, *also when its time is over*: a late worker wins as long as nobody else has received the message. With an old handle the request succeeds, too, and Amazon leaves open
#   whether anything is deleted; in our model nothing is.
# - **Pop** writes the acknowledgement down and answers with success before anybody has looked (lab 12). If the reviver has not yet settled the check point, it counts. With a second and a half you are safe; much later it changes nothing, and nobody hears of it.
#
# ### A small exercise: is it done? (1 point)
#
# A worker takes an order for 20 s and says "done" `late_s` seconds behind the end of that (below 0: before it). Is that the end of the order, in the sense that it is given to nobody *afterwards*? `others` says whether there are other workers that ask all the time. You will be asked for
# times before the end, for 1.0 to 1.4 s behind it, and for 7 s and more. If another worker has the order in its hands at that moment, and says nothing, it comes again.

# %% [markdown] tags=["hints"]
# - There are three zones of `late_s`. One of them has the same answer for all three systems.
# - For the share group a lock that has ended is ended. For SQS it matters whether somebody else has received the message, which happens as soon as there is somebody.
# - For Pop only the reviver's patience matters, not the others. What does that mean for 1.4 s, and what for 7 s? Then it is one `if` for each system.

# %% tags=["exercise"]
def is_done(system, late_s, others):
    """Whether an order is given to nobody any more; system is "pop", "share-group" or "sqs"."""
    ### BEGIN SOLUTION
    if late_s < 0:
        return True
    if system == "sqs":
        return not others
    return system == "pop" and late_s < 2
    ### END SOLUTION


# %% tags=["check"]
check("31/is-done", is_done)

# %% [markdown]
# ## Round two: the broker dies (17 minutes)
#
# Who remembers what was handed out? An acknowledgement has to survive, or everything would be done twice. But a *delivery*? To write each of them down costs a write for each order that is taken.
#
# - Pop writes a check point for each pop, into the log; and the group's offset, up to which orders were handed out, every 5 s.
# - The leader of a share partition writes what has *changed*, when an acknowledgement comes or a lock ends, into the topic `__share_group_state`: a `ShareUpdate`, and now and then all of it, a `ShareSnapshot`. That a record is acquired is **not** written.
# - Of SQS nobody outside knows. It is a service of many servers, and survives the death of any of them. Our model writes everything down before it answers.
#
# In the next world an order has been delivered a few times, each time to a worker that said nothing. During the last of these deliveries the broker is killed, and started again. How long it takes does not matter. Then somebody asks.

# %%
before = draw.between("before", 2, 5)
say(f"The order has been delivered **{before} times**. The last of these deliveries is the one during which the broker dies.")

# %%
async def with_a_dead_broker(system):
    """The count that is told with the delivery behind all of these."""
    lab = Lab(seed=seed)
    counter = open_counter(lab, system, orders=1, limit=9)
    worker = counter.worker("worker-1")
    for delivery in range(1, before + 2):
        while not (taken := await worker.take(1, 20)):
            lab.run_for(seconds=1)
        lab.run_for(seconds=16)                             # a broker of Pop has written the group's offset by then
        if delivery == before:
            lab.crash(counter.server.name)
            lab.restart(counter.server.name)
            lab.run_for(seconds=1)
    return taken[0].told_count


# %% tags=["prediction"]
predict("count-after", f"An order was delivered {before} times, and the broker died during the last delivery. Which count does the share "
        "group tell with the next one?", unit="as a number", prediction=...)

# %%
counts_told = {name: await with_a_dead_broker(system) for system, name in NAMES.items()}
Table(f"the count with delivery {before + 1}", ("", "told"), list(counts_told.items()))

# %%
reveal("count-after", counts_told[NAMES["share-group"]],
       why="the delivery that was under way was written nowhere, so the next one gets its number")

# %% [markdown]
# The delivery is gone as if it had never been. KIP-932 says so: the acquired state is transient, and a crash of the leader loses the memory of deliveries in flight. A limit of 5 deliveries is one of 5 deliveries *that ended while the leader lived*. If it is the poisoned order itself that kills the
# broker, no limit helps.
#
# Pop loses nothing here: the check point was a message in the log, and the reviver found it.
#
# But Pop has a weak moment of its own. In the next world the broker is killed **a second** behind the pop. Worker-1 took some orders, and has acknowledged all but one of them before.

# %%
took = draw.between("took", 4, 9)
say(f"Worker-1 took **{took}** orders, and has acknowledged **{took - 1}** of them when the broker is killed.")


# %%
async def killed_early(system):
    """The orders that are handed out again after a kill, at once or later."""
    lab = Lab(seed=seed)
    counter = open_counter(lab, system, orders=took)
    first, second = counter.worker("worker-1"), counter.worker("worker-2")
    held = await first.take(took, 20)
    for one in held[1:]:
        await first.done(one)
    lab.run_for(seconds=1)
    lab.crash(counter.server.name)
    lab.restart(counter.server.name)
    came = []
    for _ in range(50):
        lab.run_for(seconds=1)
        taken = await second.take(10, 20)
        came += [one.order for one in taken]
        for one in taken:
            await second.done(one)
    return came


# %% tags=["prediction"]
predict("done-again", f"{took - 1} of {took} orders were acknowledged. How many different orders does Pop hand out again?", unit="orders", prediction=...)

# %%
came = {name: await killed_early(system) for system, name in NAMES.items()}
Table("handed out again behind the kill", ("", "different orders", "deliveries"),
      [(name, len(set(orders)), len(orders)) for name, orders in came.items()])

# %%
reveal("done-again", len(set(came[NAMES["pop"]])), why="the group's offset was not written yet, so the broker begins where the group began")

# %% [markdown]
# All of them, and with a count of 0: to the broker they are new. And the order that was not acknowledged came twice, once because of the offset and once because of its check point. All three promise *at least once*, and no more; they only differ in *when* they use that up.
#
# ### A small exercise: three counts (1 point)
#
# An order is delivered again and again. `ends` says how each delivery ended: `"silence"` (its time went by without a word) or `"broker dies"` (the broker was killed during it, 16 s behind the pop, and started again). Which count is told with the *next* delivery? Return three numbers:
# of Pop, of the share group, of SQS.

# %% [markdown] tags=["hints"]
# - What does each of them say of the very first delivery, when `ends` is empty?
# - Two of them forget nothing in these worlds. For the third look at what was written, and when.
# - Two of the three numbers differ by one only, in every world. For the third, count one of the two words.

# %% tags=["exercise"]
def counts(ends):
    """The counts that Pop, a share group and SQS tell with the delivery behind these."""
    ### BEGIN SOLUTION
    return len(ends), 1 + ends.count("silence"), 1 + len(ends)
    ### END SOLUTION


# %% tags=["check"]
check("31/counts", counts)

# %% [markdown]
# ## Round three: the window (14 minutes)
#
# How does Kafka keep all this without a list of everything that was ever done? A partition is a log, and a share group goes through it from its beginning. What it has left behind is finished, what it has not reached is untouched, and only the records in between need a state of their own:
#
# - the **SPSO**, the share-partition start offset: the first record that has not come to an end;
# - the **SPEO**, the share-partition end offset: behind the last record that was ever acquired.
#
# In between a record is *available*, *acquired*, *acknowledged* or *archived*. Here is one. Worker-1 has five records, and accepts some of them.

# %%
lab = Lab(seed=seed)
counter = open_counter(lab, "share-group", orders=8)
first, second = counter.worker("worker-1"), counter.worker("worker-2")
held = await first.take(5, 20)
for place in (1, 3):
    await first.done(held[place])
ShareWindow.of(lab.history, "Two of five are done")

# %% [markdown]
# Nothing moves: record 0 holds the start of the window. It is the head of a line, and as long as it has not come to an end, everything behind it must be remembered. So that this memory has an end, too, a window grows to 2,000 records at most (`group.share.partition.max.record.locks`; in Kafka 4.0 it was 200), and then nothing
# new is handed out. (SQS has a limit of the same kind: 120,000 messages in flight.)
#
# Now the locks end.

# %%
lab.run_for(seconds=21)
ShareWindow.of(lab.history, "The locks have ended")

# %%
more = await second.take(2, 20)
await second.done(more[0])
ShareWindow.of(lab.history, "Worker-2 takes two, and has done the first")

# %% [markdown]
# Record 0 is done, and the start moves over record 1 as well, which was done long before. `x2` is the delivery count.
#
# What lies in `__share_group_state` is the same with one exception, and it is one write behind. These are the writes so far:

# %%
Table("written", ("kind", "SPSO at that time", "what has changed"),
      [("ShareSnapshot" if event.snapshot else "ShareUpdate", event.start_offset, event.states) for event in lab.history.find("ShareStateWritten")])

# %% [markdown]
# A new leader reads them. It also gets a new **leader epoch**, one more than the last, and who comes with an older one is refused (`FENCED_LEADER_EPOCH`): a leader that was only asleep must not write what it believed before.
#
# ### A small exercise: what is given out behind a kill (1 point)
#
# `records` has a pair for each record of a partition, from offset 0 on: its state in the leader's memory (`"AVAILABLE"`, `"ACQUIRED"`, `"ACKNOWLEDGED"`, `"ARCHIVED"`) and its delivery count; one that was never touched is `("AVAILABLE", 0)`. Then the broker is killed and started again, and somebody asks for all that there is. What does it get? Return a list of pairs: offset,
# and the delivery count that is told with it.

# %% [markdown] tags=["hints"]
# - Which two of the four states are given out at all?
# - What was written of a record that is available now? And what of one that is acquired now?
# - `enumerate(records)` gives offset and pair. In one of the two states the new delivery counts one more than you see, in the other one as much as you see.

# %% tags=["exercise"]
def given_out(records):
    """What a new leader gives to the first who asks: (offset, delivery count) of each record, in their order."""
    ### BEGIN SOLUTION
    out = []
    for offset, (state, count) in enumerate(records):
        if state == "AVAILABLE":
            out.append((offset, count + 1))
        elif state == "ACQUIRED":
            out.append((offset, count))
    return out
    ### END SOLUTION


# %% tags=["check"]
check("31/given-out", given_out)

# %% [markdown]
# ## Break it (4 minutes)
#
# The world of the last round, with both workers. Kill what you like: `lab.crash("worker-2")`, `lab.crash("kafka-1")` and `lab.restart("kafka-1")`, `lab.freeze("worker-2")`. Let time pass, look at the window, and ask with `await first.take(5, 20)`. What do you expect for the record that worker-2 holds now?

# %%
lab.crash("worker-2")
lab.run_for(seconds=1)
ShareWindow.of(lab.history, "Worker-2 is killed")

# %% [markdown]
# ## Build it: the share partition (18 minutes)
#
# Write what the leader of a partition keeps in memory, as a class. In 50 worlds three members take records and finish them, give them back, reject them, dawdle, ask for more time, and speak of records that they do not hold.
#
# - `SharePartition(limit, lock_ms, most_locks)`: a record is delivered at most `limit` times; a lock takes `lock_ms`; no record is handed out that lies `most_locks` or more behind the SPSO. The log begins with offset 0.
# - `acquire(member, most, log_end, now_ms)` gives up to `most` records of the log, whose last offset is `log_end - 1`: from the lowest on that are available. It returns a list of pairs (offset, delivery count), the count with this delivery in it.
# - `acknowledge(member, offset, kind, now_ms)` returns `True` if this member holds the record now, and else `False`, and then nothing changes. `kind` is `"ACCEPT"`: acknowledged; `"REJECT"`: archived; `"RELEASE"`: let go; `"RENEW"`: the lock takes `lock_ms` from now on.
# - `time_out(now_ms)` is called whenever a lock may have ended. What is still acquired, and whose lock ends now or has ended, is let go.
# - `window()` returns the pair SPSO, SPEO.
#
# To **let go** of a record is to make it available; or archived, if it was delivered as often as it may.
#
# Judged are the same things for which Pop is judged in this laboratory:
#
# 1. nobody gets a record that another one holds, and what has come to an end never comes again;
# 2. nothing is lost: whoever asks gets all that is available, up to `most`;
# 3. the count is right, and no record is delivered more often than `limit` times;
# 4. who does not hold a record (any more) is told so, and who holds it, too;
# 5. the SPSO never passes a record that has not come to an end, and does not stay behind; the window grows no longer than it may.

# %% [markdown] tags=["hints"]
# - A list of records from offset 0 on is enough: for each its state, its count, who holds it and until when. `len` of that list is the SPEO, and the SPSO is a number of its own.
# - Two small methods spare you much: one that lets a record go, and one that moves the SPSO. Who has to call them?
# - In `acquire` go from the SPSO to the smaller one of two ends, and begin a new record when you come to the end of your list, but only if you still have to give one. `time_out` has to look at each lock's own end, since a lock may have been renewed meanwhile.


# %% tags=["exercise"]
class SharePartition:
    """Who holds which record of a partition, and how far a share group has come."""

    def __init__(self, limit, lock_ms, most_locks):
        ### BEGIN SOLUTION
        self.limit, self.lock_ms, self.most_locks = limit, lock_ms, most_locks
        self.start = 0
        self.records = []
        ### END SOLUTION

    def acquire(self, member, most, log_end, now_ms):
        """Give a member up to `most` records: a list of (offset, delivery count)."""
        ### BEGIN SOLUTION
        given = []
        for offset in range(self.start, min(log_end, self.start + self.most_locks)):
            if len(given) == most:
                break
            if offset == len(self.records):
                self.records.append({"state": "available", "count": 0})
            record = self.records[offset]
            if record["state"] == "available":
                count = record["count"] + 1
                record.update(state="acquired", count=count, member=member, end_ms=now_ms + self.lock_ms)
                given.append((offset, count))
        return given
        ### END SOLUTION

    def acknowledge(self, member, offset, kind, now_ms):
        """Whether this member holds the record; if it does, what it says happens."""
        ### BEGIN SOLUTION
        record = self.records[offset] if 0 <= offset < len(self.records) else {"state": "available"}
        if record["state"] != "acquired" or record["member"] != member:
            return False
        if kind == "RENEW":
            record["end_ms"] = now_ms + self.lock_ms
        elif kind == "RELEASE":
            self.let_go(record)
        else:
            record["state"] = "acknowledged" if kind == "ACCEPT" else "archived"
        self.move()
        return True
        ### END SOLUTION

    def time_out(self, now_ms):
        """Let go of all records whose lock has ended."""
        ### BEGIN SOLUTION
        for record in self.records:
            if record["state"] == "acquired" and record["end_ms"] <= now_ms:
                self.let_go(record)
        self.move()
        ### END SOLUTION

    def window(self):
        """The SPSO and the SPEO."""
        ### BEGIN SOLUTION
        return self.start, len(self.records)

    def let_go(self, record):
        """Make a record available, or archived when this was its last delivery."""
        record["state"] = "archived" if record["count"] >= self.limit else "available"

    def move(self):
        """Move the SPSO past what has come to an end."""
        while self.start < len(self.records) and self.records[self.start]["state"] in ("acknowledged", "archived"):
            self.start += 1
        ### END SOLUTION


# %% tags=["check"]
check("31/share-partition", SharePartition)

# %% [markdown]
# To look into a world in which yours fails, keep the verdict (`verdict = check(...)`): `ShareWindow.of(verdict.open().history)` is the window at that moment, as it should be.
#
# ## What differs, and where it is written (4 minutes)
#
# | | Pop | share group | SQS |
# |---|---|---|---|
# | who is asked for a message again | the one with the check point: a reviver reads it when it is due | the leader's memory: a timer for each lock | a time in each message |
# | a dead worker's messages come | 2 s and more behind their time | at once; if it hangs, when the lock ends | when their time is over |
# | a delivery counts | when the message is brought back | when it is acquired, and for good when it ends | when it is received |
# | a word that comes too late | OK; counts if the reviver has not settled yet | `INVALID_RECORD_STATE` | OK; deletes if nobody else has received it |
# | the broker dies | all that was popped in the last 5 s comes again, done or not | deliveries under way are forgotten, acknowledgements are not | nothing that a customer could see |
#
# %% [markdown]
# And what a word, a limit and an order are worth:
#
# | | Pop | share group | SQS |
# |---|---|---|---|
# | the last delivery has failed | the client or the proxy decides (16) | archived (5) | dead-letter queue, if there is one |
# | more time | a new check point, and an ack for the old one | a new lock for the same holder, as long as the group's lock; off unless `share.renew.acknowledge.enable` | up to 12 hours from the receive |
# | order | as it lies in the queue, while nothing fails; `order=True` blocks the queue | from the lowest offset on, without a promise | none, in a standard queue |
#
# Sources: KIP-932, KIP-1222 (RENEW) and KIP-1191 (dead letters) on Kafka's wiki; `core/src/main/java/kafka/server/share/SharePartition.java` (`acquire`, `acknowledge`, `releaseAcquisitionLockOnTimeout`, `maybeInitialize`) and `share-coordinator/.../ShareCoordinatorShard.java` in Kafka; KAFKA-19015 for
# sessions that end with their connection. For SQS its Developer Guide ("Amazon SQS visibility timeout", "dead-letter queues") and the API Reference (`ReceiveMessage`, `DeleteMessage`, `ChangeMessageVisibility`). For Pop labs 11 to 13. The models: `mqlab/cousins/`.
#
# One thing the share group does in silence, too: an acknowledgement of a record *before* the SPSO is not an error, since Kafka no longer knows what became of it. So the late worker of round one hears `INVALID_RECORD_STATE` only while the window has not moved past its orders.
#
# Three questions to take home:
#
# 1. A share group takes 10,000 records a second and acknowledges each. How many records a second must `__share_group_state` take, if a fetch brings 100 and they are acknowledged together? And Pop, with 32 a pop and an acknowledgement for each?
# 2. Why does Kafka not write acquisitions down? What would a share group gain, and what would each fetch cost?
# 3. Your worker charges a credit card, and takes 25 s in one of a thousand cases. Which of the three do you want, with which times, and what does it do when it is told that it was too late?
#
# ## What you expected, and what was seen

# %%
reveal()
