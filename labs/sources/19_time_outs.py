# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   mqlab:
#     title: What a time-out means
#     question: A send was not answered in time. Is the message stored, who finds out, when, and may it be sent again?
#     objectives:
#       - say when a time-out is told, and what removes a request from the response table
#       - tell errors that are facts from those after which nobody knows
#       - write a retry rule that spends a time budget well
#     minutes: 60
#     prerequisites: ["03 Sending"]
#     wrong_predictions:
#       - "late: an error, since the answer comes after the time-out"
#       - "hung: the time-out itself; but it is only looked for every 1.1 s, and a second later"
#       - "copies: 0, since all calls failed; or 1, as if a broker knew that it is the same message"
#       - "attempts: 3, since retryTimesWhenSendFailed is 2"
#       - "pieces: the limit, as for the others; but the last attempt gets all that is left"
# ---

# %% tags=["parameters"]
student_id = ""

# %% [markdown]
# A **producer** sends a message and waits for the **broker** to say that it is stored. Nothing comes. Every program has a line of code for this
# moment, and it decides whether a message is lost, stored once, or stored three times: it decides whether a customer pays twice.
#
# Lab 03 has shown who waits, and where: in the **response table**, which keeps each request until its answer comes. This lab is about the
# answers that come late, or never. We need a world, and we shall need it often:

# %%
from mqlab import Lab, Message, errors
from mqlab.check import NotSolvedYet, check, draws_for, predict, reveal, say, seed_for
from mqlab.views import BudgetBars, Table, Waits
from mqlab_widgets import Stepper
from mqlab_widgets.boards.responses import ResponsesBoard

seed = seed_for(student_id, "19")
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


def note(result, error):
    told = result.send_status.name if result else f"{type(error).__name__}: {error}"
    heard.append((f"{lab.now_ms - start:.1f} ms", told))


# %% [markdown]
# `note` is a callback: it writes down when it was called, and with what. And this is what silence looks like. A broker **hangs** (its process is
# stuck, its connections are open), and a message has been sent to it. One row, which grows older; nothing else happens.

# %%
lab, producer = await shop()
lab.freeze("broker-a")
start, heard = lab.now_ms, []
await producer.send_async(Message("Orders", b"is anybody there?"), note)
lab.run_for(seconds=1)
lab.response_table(producer)

# %% [markdown]
# ## Round one: too late, or never (25 minutes)
#
# A call may take 3000 ms (`sendMsgTimeout`), if nothing else is set. We set something else. Now something in between is slow,
# and every answer of the broker arrives later than that. We send asynchronously.

# %%
timeout_ms = draw.between("time-out", 2_000, 4_500, step=100)
late_ms = timeout_ms + draw.between("late", 300, 800, step=50)
say(f"The time-out is **{timeout_ms} ms**, and an answer takes **{late_ms} ms**.")

# %% tags=["prediction"]
predict("late", f"The time-out is {timeout_ms} ms, the answer arrives after {late_ms} ms. What does the callback get?",
        choices=[f"a time-out error after {timeout_ms} ms", f"a time-out error after {late_ms} ms",
                 f"SEND_OK after {late_ms} ms", "nothing"], prediction=...)

# %%
lab, producer = await shop(send_msg_timeout=timeout_ms)
lab.act("delay", source="broker-a", target="producer-1", ms=late_ms)
start, heard = lab.now_ms, []
await producer.send_async(Message("Orders", b"async"), note)
lab.run_for(ms=timeout_ms + 100)
lab.response_table(producer)

# %% [markdown]
# The time-out is past (look at the age), and the request is still in the table: nobody has looked.

# %%
lab.run_for(ms=900)
heard

# %%
reveal("late", "c" if heard[0][1] == "SEND_OK" else "a",
       why="it was still in the table when its answer came, and the answer is not asked how old it is")

# %% [markdown]
# A time-out is not an alarm clock. It is a rule for a cleaner: `scanResponseTable` walks through the table about once a
# second, and removes what is **1 s older than its time-out**. Until it comes by, an answer is welcome. So think again
# about a broker that hangs, and never answers.

# %% tags=["prediction"]
predict("hung", f"The broker hangs, the time-out is {timeout_ms} ms. After how many s does the callback get its error?",
        unit="s", prediction=...)

# %%
lab, producer = await shop(send_msg_timeout=timeout_ms)
lab.run_for(ms=draw.between("phase", 0, 1_090, step=10))
lab.freeze("broker-a")
start, heard = lab.now_ms, []
await producer.send_async(Message("Orders", b"async"), note)
lab.run_until(lambda: heard)
heard

# %%
reveal("hung", round((lab.now_ms - start) / 1_000, 1),
       why="the time-out, 1.0 more, and up to 1.1 more until the next scan")

# %% [markdown]
# With the usual time-out it is between 4.0 and 5.1 s, depending on when the scan comes by. Measured on a real RocketMQ
# 5.3.3: 4.4, 4.7 and 4.8 s (medians of three runs), and errors that come 1.1 s apart, in the beat of the scan: it is
# ordered for every 1000 ms, but its clock ticks in steps of 100 ms and takes one more.
#
# See it happen: this is the world just after the message was sent. Press play. The row grows older than its time-out, and stays; nothing
# that the broker does takes it away, but a scan of the producer's own.

# %%
lab.history.back("RequestSent", request_name="SEND_MESSAGE_V2")
Stepper(lab, [ResponsesBoard])

# %% [markdown]
# ### Build: when does the error come? (1 point)
#
# The table is scanned first at `first_ms`, and then every 1100 ms. A request is sent at `sent_ms` and never answered. At which
# scan is it removed? Return the time of that scan.

# %% [markdown] tags=["hints"]
# - From which moment on is it old enough? Then look for the first scan that is not before this moment.
# - It is removed when it is 1000 ms older than its time-out.
# - The scans are at `first_ms`, 1100 ms later, and so on. A loop may go from one to the next; when does it stop?

# %% tags=["exercise"]
def removed_at(sent_ms, timeout_ms, first_ms):
    """The time of the scan that removes a request which is never answered."""
    ### BEGIN SOLUTION
    scan_ms = first_ms
    while scan_ms < sent_ms + timeout_ms + 1_000:
        scan_ms += 1_100
    return scan_ms
    ### END SOLUTION


# %% [markdown]
# The check asks a hanging broker in fifty worlds, and compares your answer with the moment at which the callback is
# called.

# %% tags=["check"]
check("19/scan", removed_at)

# %% [markdown]
# The synchronous caller is better served. It has its own clock (and the usual 3000 ms from here on):

# %%
lab, producer = await shop()
lab.freeze("broker-a")
start, heard = lab.now_ms, []
waiting = producer.send(Message("Orders", b"sync")).start()
lab.run_for(ms=2_000)
await producer.send_async(Message("Orders", b"async"), note)
lab.run_for(seconds=7)
Waits.of(lab.history, start, lab.now_ms, names=["sync", "async, 2 s later"],
         title="A broker hangs, and two callers")

# %% [markdown]
# 3.000 s, to the millisecond. But look at the second row. The asynchronous request had been out for only **one** second,
# and was thrown out of the table (the first cross). Why? After a time-out a synchronous call closes its connection
# (`clientCloseSocketIfTimeout`), so that the next one gets a fresh one. All share one connection; all that wait on it fail
# with "send request failed" (the third clean-up of the table, `failFast`), however much time they had left.
# It was tried again on a fresh connection, to the same hung broker, and met the same fate. (The picture names the causes. What
# the synchronous caller is told, you know: `sendDefaultImpl call timeout`.)
#
# So three things remove a request from the table: its answer; the end of its connection (or a failed write); the scan.
#
# Now the most expensive question of this lab. The synchronous call above ended with an error. A careful program sends the
# message again, and gets the same error, and again. Then the broker wakes up.

# %%
lab, producer = await shop()
lab.freeze("broker-a")
payment = Message("Orders", b"pay 100 euro", keys="payment-17")

# %% tags=["raises-exception"]
await producer.send(payment)

# %%
calls = draw.between("calls", 2, 6)
told = []
for _ in range(calls - 1):
    try:
        await producer.send(payment)
    except errors.RemotingException as error:
        told.append(str(error).splitlines()[0])
told

# %% tags=["prediction"]
predict("copies", f"All {calls} calls failed. The broker wakes up. How many copies of the payment does it store?",
        unit="copies", prediction=...)

# %%
lab.thaw("broker-a")
lab.run_for(seconds=1)
copies = list(lab.history.find("MessageStored", unique_key=payment.properties["UNIQ_KEY"]))
Table("stored", ("ms", "queue", "offset", "unique key"),
      [(event.ts_ms, event.queue_id, event.queue_offset, event.unique_key) for event in copies])

# %%
reveal("copies", len(copies),
       why="the bytes had arrived; a caller who stops waiting does not stop the broker")

# %% [markdown]
# As many copies as calls, one key, no error anywhere on the broker's side. **A time-out does not say "not stored". It says
# "nobody knows".** A refused connection, in contrast, is a fact: not one byte was delivered. And an answer with an error
# code is a fact, too: the broker has refused. Facts may be retried as often as you like; after "nobody knows" every retry may be
# a copy. Keep these three apart; you will need them below.
#
# ## Round two: the budget (17 minutes)
#
# The synchronous `send` makes up to three attempts (`retryTimesWhenSendFailed = 2`, and the first one), each at another
# broker if there is one. There are two now, and we let the next message go to `broker-b`. First that one is killed, then
# it hangs.

# %%
async def next_goes_to_b(**settings):
    lab, producer = await shop(brokers=2, queues=1, **settings)
    while (await producer.send(Message("Orders", b"x"))).message_queue.broker_name != "broker-a":
        pass
    return lab, producer

# %% tags=["prediction"]
predict("attempts", "broker-b hangs, broker-a is well. How many attempts does one synchronous send make?",
        unit="attempts", prediction=...)

# %%
killed_lab, producer = await next_goes_to_b()
killed_lab.crash("broker-b")
start = killed_lab.now_ms
await producer.send(Message("Orders", b"x"))
BudgetBars.of(killed_lab.history, {"broker-b is killed": (start, killed_lab.now_ms)})

# %% [markdown]
# A killed broker costs nothing: the connection has ended, the attempt fails within a millisecond, the second one has all of the
# budget. Measured on a real RocketMQ 5.3.3 with one of two brokers killed: no error in three runs, 14 ms a call in the median.
# Now it hangs:

# %% tags=["raises-exception"]
hung_lab, producer = await next_goes_to_b()
hung_lab.freeze("broker-b")
start = hung_lab.now_ms
await producer.send(Message("Orders", b"x"))

# %%
bars = BudgetBars.of(hung_lab.history, {"broker-b hangs": (start, hung_lab.now_ms)})
bars

# %%
reveal("attempts", len(bars.groups[0][1].attempts),
       why="3000 ms are for all attempts together, and the first one took them")

# %% [markdown]
# An article on sending in RocketMQ 4 (**the article**; [docs/seeds.md](../docs/seeds.md) goes through it, claim by claim) says that the loop
# catches the exception and goes on to the next attempt. It does, and finds that no time is
# left. `broker-a`, perfectly well, is never asked. (Measured with a broker that hung for 143 s, and one call a second at
# most: 18, 15 and 18 calls of about 106 failed like that, each after 3.0 s.) The budget is one for all attempts, and
# nobody has said how to share it. So it was with the asynchronous call of round one: of the two retries that
# `retryTimesWhenSendAsyncFailed` promises, a hung broker leaves none. One setting shares the budget:

# %%
fair_lab, producer = await next_goes_to_b(send_msg_max_timeout_per_request=1_000)
fair_lab.freeze("broker-b")
start = fair_lab.now_ms
await producer.send(Message("Orders", b"x"))
BudgetBars.of(fair_lab.history, {"1 s for each": (start, fair_lab.now_ms)})

# %% [markdown]
# Delivered, after one second and a bit. Measured: with `sendMsgMaxTimeoutPerRequest=1000` no call fails, and about 30 take
# 1.0 s. The price you know: when `broker-b` wakes up it stores its copy.
#
# What if *both* brokers hang, and both numbers are other ones?

# %%
budget_ms = draw.between("budget", 3_600, 5_500, step=100)
piece_ms = draw.between("piece", 600, 1_100, step=50)
say(f"`sendMsgTimeout` is now **{budget_ms}**, and `sendMsgMaxTimeoutPerRequest` is **{piece_ms}**.")

# %% tags=["prediction"]
predict("pieces", f"Both hang. {budget_ms} ms for all attempts, {piece_ms} ms for one. How long does the third one last?",
        unit="ms", prediction=...)

# %%
both_lab, producer = await next_goes_to_b(send_msg_timeout=budget_ms, send_msg_max_timeout_per_request=piece_ms)
both_lab.freeze("broker-a")
both_lab.freeze("broker-b")
start = both_lab.now_ms
try:
    await producer.send(Message("Orders", b"x"))
except (errors.MQClientException, errors.RemotingException) as error:
    raised = str(error).splitlines()[0]
pieces = BudgetBars.of(both_lab.history, {"both hang": (start, both_lab.now_ms)}, budget_ms=budget_ms)
pieces

# %%
third = pieces.groups[0][1].attempts[2]
reveal("pieces", third.budget_ms, why="the limit holds for all attempts but the last one, which gets what is left")

# %% [markdown]
# A limit for the last attempt would only throw time away: nothing comes after it. This is the error of such a call:

# %%
raised

# %% [markdown]
# The errors of this lab, once more. The last column is the one that counts. It speaks of the attempt that failed: a `send`
# tells the error of its *last* attempt alone, and an earlier one may have stored the message all the same.
#
# | what you read | what has happened | has this attempt stored the message? |
# |---|---|---|
# | `executor rejected` | the sender's own queue is full | no |
# | `send message tryAcquire semaphoreAsyncNum timeout` | back-pressure: too many on their way | no |
# | `connect to <address> failed` | nobody listens there | no |
# | `CODE: ...  DESC: ...` | somebody has refused it, and says why | no |
# | `send request failed` | the connection ended before the answer came | nobody knows |
# | `wait response on the channel <address> timeout`, `wait response timeout, cost=...` | no answer in time | nobody knows |
# | `sendDefaultImpl call timeout` | the budget is used up, for whatever reason | nobody knows |
# | `Send [3] times, still failed ... Last error: ...` | all attempts failed | look at the last error, and think of the others |
#
# ### Build: may it be stored? (1 point)
#
# Write the last column as a function of the error of *one* attempt. The classes are in `mqlab.errors`: `RemotingConnectException`
# (nobody listens there), `MQBrokerException` (a broker has answered with a code), `MQClientException` (the client itself
# has not sent it), `RemotingSendRequestException` (the connection ended), `RemotingTimeoutException` (no answer), and
# `RemotingTooMuchRequestException` (the budget is used up).

# %% [markdown] tags=["hints"]
# - Go through the six classes one by one: had the bytes left, and could a broker have stored them?
# - Three classes say for sure that nothing was stored.
# - `isinstance(error, (A, B))` asks for several classes at once. Which is the question here: is it one of those, or none of those?

# %% tags=["exercise"]
from mqlab.errors import MQBrokerException, MQClientException, RemotingConnectException


def may_be_stored(error):
    """True if nobody knows whether the attempt that failed like this has stored its message."""
    ### BEGIN SOLUTION
    facts = (RemotingConnectException, MQBrokerException, MQClientException)
    return not isinstance(error, facts)
    ### END SOLUTION


# %% tags=["check"]
check("19/may-be-stored", may_be_stored)

# %% [markdown]
# ## Build it: a retry rule (18 minutes)
#
# You have seen two bad rules. RocketMQ's own gives everything to the first attempt. The other, `sendMsgMaxTimeoutPerRequest =
# 1000`, cuts the budget into three equal pieces:
#
#     def naive_rule(failed, left_ms, brokers):
#         if len(failed) == 3 or left_ms <= 0:
#             return None                                              # give up
#         return Try(brokers[len(failed) % 2], min(1_000, left_ms))    # the next broker
#
# Here is what it makes of a bad day. In 22 s, 110 messages are sent; one broker is killed, then both are for a second or so; one
# hangs; one refuses; and for some seconds all answers are late. Each happens once, in an order that the seed decides. Two
# messages of the day are illegal, and no broker takes them; so 108 can be delivered.

# %%
from mqlab.scenarios.bad_day import BadDay, naive_rule

day = BadDay(naive_rule, seed).play()
f"{day.delivered} of 108 delivered, {day.duplicates} copies too many"

# %%
first, last = day.not_delivered[0].number, day.not_delivered[-1].number
print(day.story(first), day.story(last), sep="\n\n")

# %% [markdown]
# `story(number)` tells what became of a message, and `budget(number)` draws it. Any day of the check can be played like
# this, with your rule: `BadDay(your_rule, seed).play()`. And when the check fails, `_.open()` in the next cell is the world of the
# failed day, with its history. The last of these failures as a picture:

# %%
day.budget(last)

# %% [markdown]
# (Where an attempt takes longer than it may, its connection had to be made first: that has a limit of its own,
# `connectTimeoutMillis`, also 3000 ms.)
#
# Write a better rule. It is called before each attempt of a message, and says what to do next:
#
# - `failed`: the attempts of *this* message so far, oldest first. Each has a `broker`, an `error` and `took_ms`.
# - `left_ms`: what is left of its 3000 ms.
# - `brokers`: the names of both brokers, first the one whose turn it is.
# - Return `Try(broker, timeout_ms, pause_ms)`: wait `pause_ms`, then send to `broker` and wait for the answer at most `timeout_ms`. Both
#   together may not be more than `left_ms`. Or return `None` to give up. You are asked also when nothing is left; then only `None` is possible.
#
# The check plays 50 bad days. On each, **every message must be delivered** (the naive rule loses about ten), with **no more
# copies than the naive rule makes**. Two messages of a day are illegal, with properties of 33,000 bytes: a broker answers
# `MQBrokerException` with `response_code` 13, and so would every other.
#
# Think about the errors one by one: `RemotingConnectException` (refused), `RemotingTimeoutException` and
# `RemotingSendRequestException` (nobody knows), `MQBrokerException` (the broker answered). Which costs time? Which costs
# a copy? What helps against each: another broker, a pause, or patience?

# %% [markdown] tags=["hints"]
# - Go through the kinds of trouble one by one: both are killed (what costs no time, and what must pass?), one hangs (how long
#   may an attempt take, so that another one still fits behind it?), all answers are late (what does a short time-out do there?).
# - Three rules are enough, one for each kind of error. After one of them no further attempt can help. After refusals from everybody
#   only time helps. And an attempt that hangs costs all the time that you gave it.
# - What you must work out at each call: which broker is next, whether to pause, what is then left of the time, and how much of it is kept
#   back. The last one depends on one thing only: has an attempt of this message timed out before?

# %% tags=["exercise"]
from mqlab.errors import RemotingTimeoutException
from mqlab.scenarios.bad_day import Try

RESERVE_MS = 500  # what one attempt at a healthy broker needs, generously
PAUSE_MS = 100


def next_attempt(failed, left_ms, brokers):
    """The next attempt of a message, or None to give up."""
    ### BEGIN SOLUTION
    last = failed[-1].error if failed else None
    if isinstance(last, MQBrokerException) and last.response_code == 13:
        return None  # illegal here is illegal everywhere
    pause_ms = PAUSE_MS if len(failed) >= len(brokers) else 0  # all were asked: give them time
    left_ms -= pause_ms
    if left_ms <= 0:
        return None
    tried = [past.broker for past in failed]
    broker = min(brokers, key=tried.count)  # the one that was asked least, and whose turn it is
    # Impatience makes copies, so wait as long as another attempt still fits behind it; but only once.
    waited = any(isinstance(past.error, RemotingTimeoutException) for past in failed)
    keep_ms = 0 if waited or left_ms <= 2 * RESERVE_MS else RESERVE_MS
    return Try(broker, left_ms - keep_ms, pause_ms)
    ### END SOLUTION


# %% tags=["check"]
check("19/retry-rule", next_attempt)

# %% [markdown] tags=["teacher"]
# The reference delivers 108 of 108 on every seed and makes 6 or 7 copies, the naive rule 91 to 101 and 13 to 28. The insight
# that separates them: a short time-out is no protection, it produces copies whenever answers are only late; patience costs
# nothing while another attempt still fits behind it. What goes wrong, roughly in this order: no pause, so that all attempts are
# burnt within a millisecond while both brokers are down; the time-out as a constant, so that the last attempts spend more than is left;
# giving up on every `MQBrokerException`; sending the illegal message again. Giving up after a time-out ("it might be
# stored") is defensible, and worth a discussion: it moves the question to the application, which knows less.
#
# The 6 or 7 copies that remain are those of the broker that hangs: it stores what it had been given when it wakes. No rule of
# the sender's can avoid them and deliver. Hence idempotent consumers (lab 09).

# %% [markdown]
# ## What is different in today's RocketMQ
#
# - The article: the scan calls the callbacks. It deals only with those that got no answer; the arrival of an answer calls the others, at once.
# - The article: an asynchronous message that fails is sent again by the callback, by recursion (`onExceptionImpl`). Still so, with a
#   twist: only failed connections and lost ones are retried. An *answer* that carries an error code goes straight to your callback,
#   whereas the synchronous loop retries eight of these codes at another broker.
# - New in 5.x: `sendMsgMaxTimeoutPerRequest`, and a clean-up when a connection ends (`failFast`), which used to
#   wait for the scan.
#
# ## Where to read on
#
# - `remoting/src/main/java/org/apache/rocketmq/remoting/netty/NettyRemotingAbstract.java`: `invokeImpl`, `invokeOnewayImpl`,
#   `scanResponseTable`, `failFast`; here `mqlab/remoting/calls.py`
# - `client/src/main/java/org/apache/rocketmq/client/impl/producer/DefaultMQProducerImpl.java`: `sendDefaultImpl`, the loop
#   with the budget; here `mqlab/client/producer/send_attempts.py`
# - `client/src/main/java/org/apache/rocketmq/client/impl/MQClientAPIImpl.java`: `sendMessageAsync`, `onExceptionImpl`; here
#   `mqlab/client/producer/async_send.py`
#
# ## Three questions to take home
#
# 1. A shop's page waits for `send` before it says "thank you". The broker hangs. What should the page say after 3 s, and what after 10?
# 2. The broker is 200 ms away, in another country. Which of the numbers 3000, 1000 and 1100 would you change, and
#    what breaks if you do not?
# 3. Your rule made copies of the messages that the hung broker had got. Could a *broker* notice that it stores the same unique
#    key twice? What would it have to remember, for how long, and what would two brokers have to tell each other?
#
# ## Your bets

# %%
reveal()
