# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   mqlab:
#     title: Transactions
#     question: Money leaves one bank, and a message tells the other. A machine dies in between. Who finds out what has happened, and when?
#     objectives:
#       - follow a half message from its hiding place to its end, record by record
#       - say when a broker asks about it, how often, and who pays when nobody answers
#       - write a transaction listener that loses no money, whatever dies
#     minutes: 75
#     prerequisites: [00 Tour, 02 Store]
#     wrong_predictions:
#       - "records: one for each transfer; or two, as if a rollback removed something and each end were a record"
#       - "first-asked: after 6 s, as if the time-out were an alarm clock; or after 30 s, as if each message had its own rounds"
#       - "apart: the interval itself; a round that finds ends has to make sure that there are no more, and waits a second"
#       - "aside: the number of questions times the interval; one more round is needed to find that it was asked often enough"
#       - "copies: 1, or 2; each question stores the message once more, since a log cannot be changed"
#       - "credits: one for each transfer; the broker does not notice that a transaction ends twice"
#       - "again: none, since all had ended; ends may be in memory alone for some seconds"
# ---

# %% tags=["parameters"]
student_id = ""

# %% [markdown]
# ## The scene (5 minutes)
#
# A customer of one bank sends 100 to somebody at another bank. Two things have to happen: the first bank takes 100 from an account in its data
# base, and a **message** tells the other bank, which gives 100 to its customer. The message goes through a **broker**, a server that keeps
# messages until they are fetched. Messages of one kind are in a **topic**; ours is called `Transfers`.
#
# Take the money first, and send then: the machine dies in between, and 100 are gone. Send first, and take the money then: it dies in between,
# and 100 came from nowhere. No order of the two steps helps, since a machine can die between any two. What is needed is a third party that knows
# that a transfer has begun, and asks how it went if it hears no more. In RocketMQ the broker does that:
#
# 1. The bank sends the message, and the broker hides it. It is a **half message**: stored, but nobody can get it.
# 2. The bank does its own part, the **local part**: it takes the money.
# 3. The bank tells the broker the end: **commit** (let the message go) or **rollback** (forget it).
# 4. When the broker hears of no end, it asks: what became of it? Whoever belongs to the same **group** of machines may answer.
#
# Here they are: two machines of the bank on the left, the other bank on the right. The first half message has just been hidden.

# %%
from mqlab import Lab, LocalTransactionState, Message, TransactionListener, scenarios
from mqlab.check import NotSolvedYet, check, draws_for, predict, reveal, say, seed_for
from mqlab.scenarios.transfers import open_banks
from mqlab.views import HalfLives, Table
from mqlab_widgets import Stepper, TransactionsBoard

seed = seed_for(student_id, "16")
draw = draws_for(seed)
COMMIT, ROLLBACK, UNKNOW = LocalTransactionState

# %%
lab = scenarios.get("half-message").build(seed)
lab.run_until_event("HalfMessageHidden")
Stepper(lab, [TransactionsBoard])

# %% [markdown]
# Press **Play**. There are three transfers: one is let go, one is forgotten, and during the third the bank's machine is killed. Look at what is
# in `Transfers`, at what is in the queue of half messages, and at what nobody takes out of it. The table below the stage has a row for each
# transfer. (`UNKNOW` is how RocketMQ spells it.)
#
# ## Round one: hidden (13 minutes)
#
# Now slowly, with transfers of our own. What the bank does and says stands in a **transaction listener**, an object with two methods. Ours does
# what it is told, and knows nothing when it is asked:

# %%
class Teller(TransactionListener):
    def __init__(self, node):
        self.node = node

    async def execute_local_transaction(self, message, argument):
        says, after_ms = argument
        await self.node.sleep(after_ms)
        return says

    def check_local_transaction(self, message):
        return UNKNOW


def transfer(number):
    return Message("Transfers", b"100 from A to B", keys=f"transfer-{number}")


# %%
lab = Lab(seed=seed)
[bank] = await open_banks(lab, Teller)
sending = bank.send_message_in_transaction(transfer(0), (COMMIT, 2_000)).start()
lab.run_for(ms=1_000)
Table("the local part is under way: topics with messages", ("topic", "messages"),
      [(row[0], row[-1]) for row in lab.topics(system=True).rows if row[-1]])

# %% [markdown]
# `RMQ_SYS_TRANS_HALF_TOPIC` is a topic of the broker's own, with one queue. Nobody subscribes to it. Apart from that, this is an ordinary message
# in an ordinary queue. Where it is meant to go stands in its properties (`REAL_TOPIC`), and `PGROUP` is the group that may be asked:

# %%
lab.queue("RMQ_SYS_TRANS_HALF_TOPIC").record(0, each_property=True)

# %% [markdown]
# A second later the bank says commit. The broker makes an ordinary message of it, for `Transfers`. But the half message lies in a commit log, to
# which one can only *append* (lab 02). It cannot be removed, and it cannot be marked as done either. How does the broker remember what has ended?
# Like everything else: it writes a message about it. The topic of these is `RMQ_SYS_TRANS_OP_HALF_TOPIC`, and one such **op message** can speak of
# several half messages: those that ended within the same three seconds or so.

# %%
count, refused = draw.between("transfers", 7, 12), draw.between("refused", 1, 4)
gap_ms = draw.between("gap", 900, 1_400, step=50)
say(f"The bank begins **{count}** transfers, one every **{gap_ms} ms**. For **{refused}** of them "
    "the account is empty: rollback. All the others are committed. Each local part takes 50 ms.")

# %% tags=["prediction"]
predict("records", f"{count} transfers, {refused} of them rolled back. "
        "How many records are in the commit log when all is over?", unit="records", prediction=...)

# %%
lab = Lab(seed=seed)
[bank] = await open_banks(lab, Teller)
for number in range(count):
    end = ROLLBACK if number < refused else COMMIT
    await bank.send_message_in_transaction(transfer(number), (end, 50))
    lab.run_for(ms=gap_ms)
lab.run_for(seconds=10)
rows = [(row[0], row[-1]) for row in lab.topics(system=True).rows if row[-1]]
Table("topics with messages", ("topic", "messages"), rows)

# %%
ops = [record.messages for record in lab.history.find("TransactionOpWritten")]
reveal("records", sum(row[-1] for row in rows),
       why=f"{count} half messages, {count - refused} that were let go, "
           f"and {len(ops)} op messages, about {ops} half messages")

# %% [markdown]
# So a transfer that is committed is stored **twice**, body and all, and a rollback removes nothing: its half message lies in the log until the
# whole file is deleted, after 72 hours by default. (`EndTransactionProcessor`, `TransactionalOpBatchService`.) This is an op message; its body says
# which places of the half queue are done with:

# %%
lab.queue("RMQ_SYS_TRANS_OP_HALF_TOPIC").record(0)["body"].value

# %% [markdown]
# ### A small exercise: what is left?
#
# The broker compares the two queues. You are given a stretch of the half queue, from the place `first` to the one before `end`, and the bodies of
# all op messages that may concern it, as texts. (Op messages may also speak of places before `first`.) Return a list of the places about
# which no op message speaks, in order.

# %% [markdown] tags=["hints"]
# - A body like `"4,7,"` names two places. `split(",")` gives an empty text at the end; what must not be done with that?
# - First collect all places that are done, from all bodies, in a set of numbers.
# - Then go through `range(first, end)` and keep some of it.

# %% tags=["exercise"]
def left(first, end, ops):
    """The places of the half queue from first to end of which no op message speaks."""
    ### BEGIN SOLUTION
    done = {int(text) for body in ops for text in body.split(",") if text}
    return [place for place in range(first, end) if place not in done]
    ### END SOLUTION


# %% [markdown]
# The check takes both queues out of fifty brokers, and looks about which half messages each broker asks next.

# %% tags=["check"]
check("16/left", left)

# %% [markdown]
# ## Round two: asked (17 minutes)
#
# Now the bank's machine dies in the midst of a transfer. It has a second machine, which belongs to the same group and is well. A thread of the
# broker makes its round every 30 s (`transactionCheckInterval`), beginning with the start of the broker. It asks about no half message that
# is younger than 6 s (`transactionTimeOut`), since that one may just be under way.

# %%
sent_s = draw.between("sent", 205, 288) / 10
lab = Lab(seed=seed)
[first, second] = await open_banks(lab, Teller, machines=2)
lab.run_for(ms=sent_s * 1_000 - lab.now_ms)
first.send_message_in_transaction(transfer(1), (COMMIT, 3_000)).start()
lab.run_for(ms=500)
lab.crash("bank-1")
say(f"The broker has been running for **{sent_s} s** when the half message is stored. "
    "Half a second later `bank-1` is killed.")

# %% tags=["prediction"]
predict("first-asked", f"The message was stored {sent_s} s after the broker's start. "
        "How many seconds later does the broker ask about it?", unit="s", prediction=...)

# %%
asked = lab.run_until_event("TransactionChecked", limit_ms=120_000)
lab.run_for(seconds=4)
HalfLives.of(lab.history, 0, lab.now_ms, names=["ours"],
             title="A half message, and the first question about it")

# %%
young = asked.ts_ms > 40_000
reveal("first-asked", round(asked.ts_ms / 1_000 - sent_s, 1),
       why="at the round after 30 s it was younger than 6 s, so it had to wait for the next one" if young
       else "at the round after 30 s it was at least 6 s old")

# %% [markdown]
# Neither number alone says it: **the first round that finds it at least 6 s old.** (`TransactionalMessageServiceImpl.check`; a round stops at
# the first half message that is too young, since those behind it are younger still.) So it takes 6 s to 36 s. Measured on a real
# RocketMQ 5.3.3, with messages sent at three moments: 12.2 s, 23.2 s and 32.1 s.
#
# ### A small exercise: when is it asked about?
#
# A half message is stored at `sent_ms`. Rounds come at `round_ms`, and then every `interval_ms`. It has to be at least `immune_ms` old. In
# which round does the broker ask about it for the first time? Return the time of that round. (About one that is just `immune_ms` old it asks in this
# round, too, a second after its beginning.)

# %% [markdown] tags=["hints"]
# - How old is the message at a round? That may also be a negative number: the round came before the message.
# - Go from round to round with a loop, until the message is old enough. Exactly `immune_ms` is enough.
# - One `while` with one line in it. The condition says "it is not old enough yet", which also covers rounds that came before the message.

# %% tags=["exercise"]
def first_asked(sent_ms, round_ms, interval_ms, immune_ms):
    """The time of the first round in which a half message is asked about."""
    ### BEGIN SOLUTION
    while round_ms - sent_ms < immune_ms:
        round_ms += interval_ms
    return round_ms
    ### END SOLUTION


# %% tags=["check"]
check("16/first-asked", first_asked)

# %% [markdown]
# ### When nobody knows
#
# The second machine was asked, and said `UNKNOW`. That is an answer, too: the broker will ask again. An error in the listener means the same,
# and so does a machine that does not answer at all. How long does that go on?
#
# The broker below has an interval and a limit of its own (`transactionCheckMax`; the default is 15). Its bank never knows
# anything about the first transfer. Meanwhile other transfers begin and end, as on any day.

# %%
interval_s, most = draw.between("interval", 12, 25), draw.between("most", 4, 9)
lab = Lab(seed=seed)
[bank] = await open_banks(lab, Teller, transaction_check_interval=interval_s * 1_000, transaction_check_max=most)
say(f"`transactionCheckInterval` is **{interval_s * 1_000} ms**, and `transactionCheckMax` is **{most}**.")

# %% tags=["prediction"]
predict("apart", f"Rounds are {interval_s} s apart. How many seconds lie between two questions about our transfer?",
        unit="s", prediction=...)

# %% tags=["prediction"]
predict("aside", f"The broker asks {most} times at most. "
        "How many seconds after it was stored is our half message given up?", unit="s", prediction=...)

# %% tags=["prediction"]
predict("copies", f"It was asked about {most} times. How many records of our one message are in the commit log then?",
        unit="records", prediction=...)

# %%
start, ours = lab.now_ms, transfer(0)
await bank.send_message_in_transaction(ours, (UNKNOW, 0))
others = 0
while lab.history.last("HalfMessageGivenUp") is None:
    lab.run_for(seconds=4)
    others += 1
    await bank.send_message_in_transaction(transfer(others), (COMMIT, 0))
key = ours.properties["UNIQ_KEY"]
lives = HalfLives.of(lab.history, start, lab.now_ms, keys=[key], names=["ours"],
                     title="Asked about until the broker gives it up")
lives

# %%
life = lives.lives[0]
reveal("apart", round((life.asked_us[1] - life.asked_us[0]) / 1_000_000, 1),
       why="the interval begins at the end of a round, and each round waits a second to see whether more ends come")

# %%
reveal("aside", round((life.end_us - life.begin_us) / 1_000_000),
       why=f"one round for each of the {most} questions, and one more that finds that it was asked about {most} times")

# %%
stored = list(lab.history.find("MessageStored", unique_key=key))
Table("records of our message", ("s after it was sent", "topic", "offset in its queue"),
      [(round((record.ts_ms - start) / 1_000, 1), record.topic, record.queue_offset) for record in stored])

# %%
reveal("copies", len(stored), why=f"the half message, {most} copies of it, and the one that was put aside")

# %% [markdown]
# Each question stores the whole message again (`putBackHalfMsgQueue`): the next round begins behind what this round has looked at, and nothing may
# be left behind. How often it was asked about stands in a property of the copy, `TRANSACTION_CHECK_TIMES`. A message of 4 MB about which nobody
# knows anything costs 68 MB with the default settings.
#
# Measured on a real RocketMQ 5.3.3 with the default settings: 31.0 s between two questions, while other transfers ended. A round first reads what has ended. It
# may be that more is on its way, so it waits for a second (`SLEEP_WHILE_NO_OP`) and looks again. A round that finds no ends at all does not wait.
#
# **And who pays?** The last copy is in `TRANS_CHECK_MAX_TIME_TOPIC`. Nobody reads that topic, and nobody is told. If the bank has taken the money
# in its local part, then A has paid, B got nothing, and both banks believe that all is well. After 72 hours not even the message is there.
# With the defaults all this is decided within about eight minutes: a data base that is down for a quarter of an hour is enough. (An administrator
# can have it asked about anew, with the request `RESUME_CHECK_HALF_MESSAGE`, if somebody notices.)
#
# ## Round three: two ends (12 minutes)
#
# Not only machines that die are slow. Some transfers below need long for their local part: the money is taken at once, but then an
# auditor has to be informed, and the bank's machine says commit only when that is done. Nothing fails. And *this* bank looks into its
# data base when it is asked, sees that the money was taken, and says commit:

# %%
class Knows(Teller):
    def check_local_transaction(self, message):
        return COMMIT


count, slow = draw.between("all", 5, 9), draw.between("slow", 1, 4)
say(f"There are **{count}** transfers. **{slow}** of them have a local part of 45 s, the others one of 50 ms.")

# %% tags=["prediction"]
predict("credits", f"{count} transfers, {slow} of them slow. How many messages does the other bank get?",
        unit="messages", prediction=...)

# %%
lab = Lab(seed=seed)
[bank] = await open_banks(lab, Knows)
start = lab.now_ms
for number in range(count):
    bank.send_message_in_transaction(transfer(number), (COMMIT, 45_000 if number < slow else 50)).start()
    lab.run_for(seconds=1)
lab.run_for(seconds=60)
names = [f"transfer-{n}" for n in range(count)]
HalfLives.of(lab.history, start, lab.now_ms, names=names, title="Some transfers are slow")

# %%
got = list(lab.history.find("ConsumeStarted", topic="Transfers"))
reveal("credits", len(got),
       why=f"{count} transfers, and {slow} of them once more: first as an answer to the broker, then by themselves")

# %% [markdown]
# A tick at the end of the bar, and one more behind it. The broker let the message go when it was told so in answer to its question. Then the local
# part ended, and the machine told it as well. `EndTransactionProcessor` looks the half message up in the commit log, finds it (nothing is ever removed),
# and lets it go **again**. It does not look whether that was done before. Nothing failed here, and B was paid twice.
#
# Two things help. A consumer that works once although messages come twice is always needed (lab 09). And a half message can say for how long its
# local part may take, with the property `CHECK_IMMUNITY_TIME_IN_SECONDS`. Until then it is not asked about (each round stores it again, further
# behind), and *after* that time only answers count: an end that comes by itself is refused. The same with 15 s, which is too short:

# %%
lab = Lab(seed=seed)
[bank] = await open_banks(lab, Knows)
start = lab.now_ms
for number in range(count):
    message = transfer(number)
    message.properties["CHECK_IMMUNITY_TIME_IN_SECONDS"] = "15"
    bank.send_message_in_transaction(message, (COMMIT, 45_000 if number < slow else 50)).start()
    lab.run_for(seconds=1)
lab.run_for(seconds=60)
HalfLives.of(lab.history, start, lab.now_ms, names=names, title="The same, immune for 15 s")

# %%
got = list(lab.history.find("ConsumeStarted", topic="Transfers"))
f"the other bank gets {len(got)} messages for {count} transfers"

# %% [markdown]
# ### A small exercise: how many does the other bank get?
#
# `ends` is what a broker was told about one half message, in order: tuples `(says, from_check, age_ms)`. `says` is `"COMMIT_MESSAGE"`,
# `"ROLLBACK_MESSAGE"` or `"UNKNOW"`; `from_check` says whether it answers a question of the broker; `age_ms` is how old the message was.
# `immune_ms` is its own immunity, or `None` if it has none. How many times is it let go?

# %% [markdown] tags=["hints"]
# - A rollback removes nothing, so a commit that comes later still lets the message go: each end can be looked at by itself.
# - Of the commits some are refused. For that three things must come together: the message has an immunity of its own, the end is no answer, and what?
# - `sum(... for says, from_check, age_ms in ends)` counts how often a condition is true. Exactly at the age of `immune_ms` it is not too late.

# %% tags=["exercise"]
def let_go(ends, immune_ms):
    """How often a half message is let go after these ends."""
    ### BEGIN SOLUTION
    return sum(
        says == "COMMIT_MESSAGE" and (from_check or immune_ms is None or age_ms <= immune_ms)
        for says, from_check, age_ms in ends
    )
    ### END SOLUTION


# %% tags=["check"]
check("16/let-go", let_go)

# %% [markdown]
# ## Break it: the broker is killed (8 minutes)
#
# Now the bank is quick, and nothing is left open: every transfer is committed, the other bank has got every message. Then the broker's
# process is killed. It starts again after three seconds, and not a byte of its log is lost.

# %%
count, gap_ms = draw.between("killed all", 9, 16), draw.between("killed gap", 350, 800, step=50)
lab = Lab(seed=seed)
[bank] = await open_banks(lab, Knows)
start = lab.now_ms
for number in range(count):
    await bank.send_message_in_transaction(transfer(number), (COMMIT, 50))
    lab.run_for(ms=gap_ms)
before = len(list(lab.history.find("ConsumeStarted", topic="Transfers")))
say(f"There were **{count}** transfers, one every **{gap_ms} ms**, "
    f"and the other bank has got **{before}** messages.")

# %% tags=["prediction"]
predict("again", "The broker is killed, and starts again. "
        f"How many of the {count} messages does the other bank get a second time?", unit="messages", prediction=...)

# %%
killed = lab.now_ms
lab.crash("broker-a")
lab.run_for(seconds=3)
lab.restart("broker-a")
lab.run_for(seconds=75)
names = [f"transfer-{n}" for n in range(count)]
HalfLives.of(lab.history, start, lab.now_ms, names=names, title="A broker that forgets some ends")

# %%
got = len(list(lab.history.find("ConsumeStarted", topic="Transfers")))
written = sum(op.messages for op in lab.history.find("TransactionOpWritten") if op.ts_ms < killed)
reveal("again", got - before, why=f"{written} of the {count} ends had been written down; the others were in memory alone")

# %% [markdown]
# The op message is written once for all ends of some three seconds (`transactionOpBatchInterval`), as you saw in round one. What waits for it is in
# memory. After the kill the broker finds half messages of which no op message speaks, and does the only right thing: it asks. The bank says commit,
# truthfully, and B gets the message again. So the question after a crash is no sign that anything went wrong, and a listener must be able to
# answer it for every transfer of the last minutes, also for those that ended long ago.
#
# The same world just after the kill, to play with. What happens if you kill the bank's machine, too, before the broker asks it?

# %%
lab.history.back("NodeCrashed")
Stepper(lab, [TransactionsBoard])

# %% [markdown]
# ## Build it: a bank that loses no money (17 minutes)
#
# Write the listener of a bank. The bank has two machines, and each has an object of your class. When a machine is killed its memory is gone, and your object with it; it gets
# a new one when it starts again. What stays is `accounts`, the bank's **data base**. It takes time to answer, and a machine may be killed at any `await`:
#
# - `await accounts.write(note, says, take=(account, cents))` writes a note (a name, and a text that it says) and takes cents from an account, **in
#   one step**: both or neither. Without `take` it writes the note alone.
#   - If there is a note of that name already, nothing is done: `AlreadyNotedError`.
#   - If the account has less than that, nothing is done: `NotEnoughMoneyError`.
# - `await accounts.read(note)` gives what the note says, or `None` if there is none.
# - Both may raise `LedgerTimeoutError`: no answer came. A write is done then, or not; nobody knows.
#
# An error that your method raises counts as `UNKNOW`: the broker asks later. The key of a transfer is `message.keys`, and
# `execute_local_transaction` gets `(account, cents)` as its argument. In `check_local_transaction` there is no argument, and often another machine is asked.
#
# In 50 worlds machines are killed before, during and after the debit; they hang for a minute; the broker is killed; answers get lost; and the data
# base is overloaded now and then, so that a debit takes 40 s *and is done at the end of these*. The other bank books each transfer once, so you need not care about
# messages that come twice. Judged is this:
#
# 1. In the evening the **sum of all accounts** of both banks is what it was in the morning, and each transfer is paid in full or not at all.
# 2. Who has the money can pay: a transfer is refused only if its account is empty, or if something came in its way.
# 3. In the end nothing is open: every transfer was committed or rolled back.

# %% [markdown] tags=["hints"]
# - Keep nothing in the object. How many writes may a debit have, if the machine can be killed between any two? What has to be in the same step as the money?
# - The hard case: you are asked about a transfer and find no note. It may never have been begun, or its debit may be under way and done in 30 s. If you just say
#   rollback, the money leaves all the same. How can you make sure, in one step, that this debit *cannot be done any more*? Only one of two writes of the same note goes well.
# - So both methods write under the key, first come, first served: the one with the money says one thing, the other one, without money, says the opposite. Whoever finds the
#   note there already has to go by what it says. A `LedgerTimeoutError` needs no `except`.

# %% tags=["exercise"]
from mqlab import LocalTransactionState, TransactionListener
from mqlab.exercises.bank_day import AlreadyNotedError, LedgerTimeoutError, NotEnoughMoneyError

COMMIT, ROLLBACK, UNKNOW = LocalTransactionState


class Bank(TransactionListener):
    """Takes the money of a transfer, and knows what became of it, whatever dies."""

    def __init__(self, accounts):
        self.accounts = accounts

    async def execute_local_transaction(self, message, argument):
        """Take the money; argument is (account, cents)."""
        ### BEGIN SOLUTION
        try:
            await self.accounts.write(message.keys, "paid", take=argument)
        except NotEnoughMoneyError:
            return ROLLBACK
        except AlreadyNotedError:
            return ROLLBACK  # somebody was asked meanwhile, and has closed it
        return COMMIT
        ### END SOLUTION

    async def check_local_transaction(self, message):
        """Say what became of a transfer that perhaps another machine has begun."""
        ### BEGIN SOLUTION
        try:
            await self.accounts.write(message.keys, "refused")  # from now on it cannot be paid any more
        except AlreadyNotedError:
            said = await self.accounts.read(message.keys)
            return COMMIT if said == "paid" else ROLLBACK
        return ROLLBACK
        ### END SOLUTION


# %% tags=["check"]
check("16/bank", Bank)

# %% [markdown]
# To look into a day on which yours fails, keep the verdict (`verdict = check("16/bank", Bank)`); `verdict.open()` is its world, for a `Stepper` or for
# `HalfLives.of(world.history, 0, world.now_ms)`.

# %% [markdown] tags=["teacher"]
# What goes wrong, roughly in this order: states in a dictionary of the object; two writes in place of one; a time-out taken for "no" or for "yes"; "nothing
# found" answered with commit, or with `UNKNOW` for ever; and, as the last one, a `check` that only reads. That one fails on few seeds, those on which a debit
# is under way while the broker asks and its machine is killed just when it is done: late commits are let go although the broker was told rollback before (round
# three), which heals the others. Ask who would find such a bug in a test of their own.

# %% [markdown]
# Your `check` does not only answer. It *decides*, for a transfer that nobody has decided yet. That is what makes the answer true: what may still change cannot be
# told to anybody. The same thought is behind every protocol of this kind.
#
# ## What is different in today's RocketMQ (3 minutes)
#
# Much that is written about transactions in RocketMQ is about version 4, and its numbers are not today's:
#
# | | 4.3 | 4.9 to 5.1.0 | since 5.1.1 |
# |---|---|---|---|
# | rounds (`transactionCheckInterval`) | 60 s | 60 s | 30 s |
# | not asked about before (`transactionTimeOut`) | 3 s | 6 s | 6 s |
# | questions at most (`transactionCheckMax`) | 5 | 15 | 15 |
# | op messages | one for each end | one for each end; in 5.1.0 one for many | one for many |
# | a late end of a message with an immunity of its own | counts | counts | is refused |
#
# - Many texts say that `transactionTimeOut` is the time after which the broker asks. It is the least age; the round decides.
# - Clients of 5.x (gRPC) have no listener with two methods. They begin a transaction, send, and call `commit()` or `rollback()`; a *checker* is asked by the broker, through the proxy.
# - `transactionTimeOut` must stay above the time for which ends are in memory alone, up to 6 s. Measured on a real broker with 2 s: it asked about messages that had ended
#   properly, again and again, and put them aside in the end.
#
# Where to read on: `broker/.../transaction/queue/TransactionalMessageServiceImpl.java` (`check`, `fillOpRemoveMap`), `TransactionalOpBatchService.java`,
# `broker/.../processor/EndTransactionProcessor.java` (`rejectCommitOrRollback`), `client/.../impl/producer/DefaultMQProducerImpl.java` (`sendMessageInTransaction`,
# `checkTransactionState`). Here: `mqlab/broker/transaction/`, `mqlab/client/producer/transactions.py`.
#
# Three questions to take home:
#
# 1. A bank makes 1,000 transfers a second, all of which go well. How many records a second does the broker store, and how many would it store without transactions?
# 2. Your `check` writes a note for every transfer that it refuses. When may these notes be deleted? What has to be certain before?
# 3. Another way is to write the message into the bank's own data base, in one step with the debit, and let a second process send it. What does that save, and what does it cost?
#
# ## What you expected, and what was seen

# %%
reveal()
