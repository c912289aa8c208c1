# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   mqlab:
#     title: Real clients
#     question: RocketMQ's own clients speak to the broker of this notebook. What do they ask, how often, and what do they do when it dies?
#     objectives:
#       - say what a client of 5.x asks before its first message, and what it asks again and again
#       - tell what an application hears when its broker dies, and when it works again after that
#       - write an application that loses nothing, although any of its calls may fail
#     minutes: 82
#     prerequisites: [00 Tour, 11 Pop]
#     wrong_predictions:
#       - "first-calls: the one with the heartbeat first, since somebody who comes in says hello; or the message at once, as if the client knew where to send it"
#       - "heartbeats: one a second, or one every 30 s, as clients of 4.x have it"
#       - "java-heartbeats: as many as the Python client sends; each generation has its own clock"
#       - "attempts: one for each order; the client tries each send three times before it tells"
#       - "back: with the next order, since the broker is there and each send asks the proxy; what the proxy has learned meanwhile is not thought of"
#       - "comes-again: 12 s, the invisible time; or 0 in both cases, or 12 in both, since the consumer was told the same error"
# ---

# %% tags=["parameters"]
student_id = ""

# %% [markdown]
# ## The scene (6 minutes)
#
# A **message queue** lets programs talk without waiting for each other. One program sends a **message**, a server keeps it, and another program receives it when it has time.
# In RocketMQ the servers are the **brokers**; a **name server** knows which broker has which **topic** (a kind of message); and programs of
# generation 5 speak to a **proxy**, which passes on what they say. The part that speaks for a program is a library, the **client**.
#
# In all labs so far the clients were mqlab's own. In this one they are not: the servers still live in this notebook, and the client is RocketMQ's official one
# for Python (`rocketmq-python-client` 5.1), unmodified, in a process of its own, over a real socket. It does not see that it speaks to a laboratory.
#
# A real client keeps real time, so it does nothing in the same way twice. Therefore each session that we bet on was **recorded** once: each byte that came from the client is an
# event of the world, with its time, and can be played again without the client. Where you can use the client itself, this cell starts it, and counts what it asks:

# %%
from mqlab.check import NotSolvedYet, check, draws_for, predict, reveal, say, seed_for
from mqlab.exercises.client_sessions import call_table, calls, recorded
from mqlab.exercises.for_real import RealClient, missing, play_for_real, shop
from mqlab.views import Table
from mqlab.views.time_chart import BLUE, GREEN, ORANGE, VERMILION, Series, TimeChart
from mqlab_widgets import Stepper

seed = seed_for(student_id, "30")
draw = draws_for(seed)

# %% tags=["nbval-ignore-output"]
if missing():
    print(missing())
else:
    mine = shop(seed)
    serving = mine.serve()                                  # real ports: any free ones
    with RealClient("send", serving) as client:             # starts, sends one order, and then does nothing more
        client.until("sent order 0").for_seconds(3)
    serving.close()                                         # the world stays as it is, and nobody can reach it any more
    print(client.lines, len(calls(mine)), "calls")

# %% [markdown]
# Below the cell stands what your own client has said and how many calls it has made, or a sentence that says what is missing (`pip install 'mqlab[clients]'` brings it, in a clone `make clients`; a browser has
# neither sockets nor processes). From here on all is recorded, and comes out the same everywhere.

# %% [markdown]
# ## Round one: what does it ask? (21 minutes)
#
# The program of this session is three lines long: it makes a `Producer`, which sends messages; it calls `startup()`; it calls `send(...)` once. Then it sleeps for 72 s, and is killed. What a client asks of a
# proxy is a **call**, and four kinds of call can be seen in this session:
#
# | call | what it says |
# |---|---|
# | `QueryRoute` | Which queues has this topic, and where? |
# | `Telemetry` | These are my settings. (It opens a stream that stays open, over which the proxy can say something, too.) |
# | `Heartbeat` | I am still alive. |
# | `SendMessage` | Here is a message. |

# %% tags=["prediction"]
predict("first-calls", "In which order do the first calls of each kind arrive?",
        choices=["Heartbeat, Telemetry, QueryRoute, SendMessage", "SendMessage, QueryRoute, Telemetry, Heartbeat",
                 "QueryRoute, Telemetry, SendMessage, Heartbeat", "Telemetry, QueryRoute, Heartbeat, SendMessage"],
        prediction=...)

# %%
idle = recorded("python-begins")
begins = calls(idle)
call_table("the first two seconds of a producer", [call for call in begins if call.at_s < 2])

# %%
first = list(dict.fromkeys(call.name for call in begins))
reveal("first-calls", ", ".join(first), why="it needs the way and the settings; the first heartbeat is due a second after the start")

# %% [markdown]
# `startup()` asks for the route of each topic that the producer was told of, and tells each proxy of that route its settings: that is all. Nobody logs in and nobody says hello. The
# heartbeat belongs to a thread that begins after 1 s, so a program that sends one message and ends has never sent one. (`Client.startup` in `rocketmq/v5/client/client.py`; what this
# client does, the one for Java does, too.)
#
# This is the moment at which the first message reaches the proxy. Take steps with **Next**. (If your own client was there: `call_table("mine", calls(mine))` shows what it has asked.)

# %%
idle.history.back("RequestReceived", request_name="SendMessage")
Stepper(idle)

# %% [markdown]
# Then nothing happens in the program. The client has threads of its own, and these go on.

# %%
window_s = draw.one_of("window", [26, 28, 35, 37, 45, 48, 56, 58, 66, 68])
say(f"We look at the first **{window_s} s** of the session.")

# %% tags=["prediction"]
predict("heartbeats", f"How many heartbeats does the Python client send in its first {window_s} s?", unit="heartbeats",
        prediction=...)

# %%
def so_far(session, name):
    """How many calls of this name have come, as a line over time."""
    times = [call.at_s for call in session if call.name == name]
    return [(0.0, 0), *((at_s, number) for number, at_s in enumerate(times, 1))]


TimeChart("A producer of 5.x that has nothing to do", "calls so far", [
    Series("Heartbeat", so_far(begins, "Heartbeat"), BLUE),
    Series("QueryRoute", so_far(begins, "QueryRoute"), ORANGE, "dashed"),
    Series("Telemetry", so_far(begins, "Telemetry"), GREEN, "broad"),
])

# %%
reveal("heartbeats", sum(call.name == "Heartbeat" and call.at_s < window_s for call in begins),
       why="the first after 1 s, and then one every 10 s")

# %% [markdown]
# Three threads, three clocks: a heartbeat after 1 s and then every **10 s**, the route after 10 s and then every **30 s**, the settings once more after 1 s and then every 300 s. None of these
# asks whether there is anything to do. A thousand idle clients cost their proxy nearly 140 calls a second: 100 heartbeats, 33 questions for a route, and three times the settings.
#
# The generation before speaks another language (a binary protocol of RocketMQ's own, "remoting"), to other servers: first to the name server, then to the brokers themselves. This was recorded with the Java client of
# version 4.9.8. Its program has a producer *and* a consumer, and sends an order every three seconds.

# %%
java = calls(recorded("java-4"))
java_window_s = draw.one_of("java window", [26, 28, 34, 45, 56, 58, 64, 67])
kinds = sorted({(call.to, call.name) for call in java})
Table("a program with the Java client of 4.9.8: what it asks", ("of whom", "request", "first asked, s"),
      [(to, name, round(next(c.at_s for c in java if (c.to, c.name) == (to, name)), 1)) for to, name in kinds])

# %% tags=["prediction"]
predict("java-heartbeats", f"How many heartbeats does this program send between its 2nd and its {java_window_s}th second?",
        unit="heartbeats", prediction=...)

# %%
TimeChart("A program of 4.x", "requests so far", [
    Series("HEART_BEAT", so_far(java, "HEART_BEAT"), BLUE),
    Series("GET_ROUTEINFO_BY_TOPIC", so_far(java, "GET_ROUTEINFO_BY_TOPIC"), ORANGE, "dashed"),
    Series("SEND_MESSAGE_V2", so_far(java, "SEND_MESSAGE_V2"), GREEN, "broad"),
])

# %%
reveal("java-heartbeats", sum(call.name == "HEART_BEAT" and 2 < call.at_s < java_window_s for call in java),
       why="producer and consumer share one client, which sends a heartbeat every 30 s")

# %% [markdown]
# At the start there are several at once: whatever is new (a producer, a consumer, a route) is told in a heartbeat, since with 4.x the settings travel in it. Later there is one every
# 30 s, for all producers and consumers of the program together (`MQClientInstance.sendHeartbeatToAllBrokerWithLock`). Broker and proxy forget a client of which they have heard nothing for 120 s: a client of 4.x may miss three
# heartbeats, one of 5.x eleven.
#
# ### A small exercise: calls on a schedule (1 point)
#
# A thread makes its first call after `first_s` seconds, and then one every `every_s` seconds. How many calls has it made when `until_s` seconds are over?

# %% [markdown] tags=["hints"]
# - There may be none yet.
# - From the first call on, `until_s - first_s` seconds are left. How many whole steps of `every_s` are in them?
# - `//` divides and rounds down. The first call counts as well.

# %% tags=["exercise"]
def calls_until(first_s, every_s, until_s):
    """How many calls have been made after until_s seconds."""
    ### BEGIN SOLUTION
    if until_s < first_s:
        return 0
    return int((until_s - first_s) // every_s) + 1
    ### END SOLUTION


# %% [markdown]
# The check starts a client in fifty worlds and counts what reaches the proxy.

# %% tags=["check"]
check("30/calls", calls_until)

# %% [markdown]
# ## Round two: the broker dies (19 minutes)
#
# The next program sends an order every two seconds. If `send` raises an error, it says so and goes on with the next order. There is one broker. In the fourth second it is killed (`lab.crash("broker-a")`); eight seconds
# later it is started again. The proxy stays alive all the time. This is what the application said, second by second:
#
#     order 1: sent
#     order 2: InternalErrorException after 0.0 s
#     order 3: InternalErrorException after 0.0 s
#     ...
#     order 6: sent
#
# A refused connection takes no time, so each of these sends is over at once. What the application does not see is what its client did before it gave up.

# %%
failed = draw.between("failed", 2, 4)
say(f"We look at the first **{failed}** orders that fail.")

# %% tags=["prediction"]
predict("attempts", f"How many SendMessage calls reach the proxy for these {failed} orders?", unit="calls", prediction=...)

# %%
outages = recorded("python-outages")
sends = [call for call in calls(outages) if call.name == "SendMessage"]
begin_ms = calls(outages)[0].ms


def seconds(kind, **fields):
    """When events of a kind happened, in seconds from the first call."""
    return [(event.ts_ms - begin_ms) / 1_000 for event in outages.history.find(kind, **fields) if event.ts_ms > begin_ms]


killed_s, back_s, stored_s = seconds("NodeCrashed"), seconds("BrokerStarted"), seconds("MessageStored", topic="Orders")
in_vain = [call for call in sends if killed_s[0] < call.at_s < back_s[0]]
call_table("SendMessage, while the broker is away", in_vain)

# %%
tries = []
for call in in_vain:
    if not tries or call.at_s - tries[-1][-1] > 1:
        tries.append([])
    tries[-1].append(call.at_s)
reveal("attempts", sum(map(len, tries[:failed])), why="each send is tried three times, one right after the other")

# %% [markdown]
# `send` makes up to three attempts (the proxy says how many, in the settings), and there is no pause between them: an outage of more than some milliseconds is an error
# for the application. The retry of a client is there for a proxy or a broker *among several*. It is no way to wait for the only one that there is.
#
# The first outage ended well: the broker was back, and the next order was stored. Later in the session, after 17 s, the broker is killed again, this time for
# seven seconds. Nothing else is different.

# %% tags=["prediction"]
predict("back", "The broker has been started again. When is the next order stored?",
        choices=["with the next order, 2 s later at most", "after the client's next heartbeat, 10 s later at most",
                 "after the client's next question for a route, 30 s later at most", "later than all of these"],
        prediction=...)

# %%
TimeChart("The only broker is killed and started again, twice", "SendMessage calls so far", [
    Series("calls", so_far(sends, "SendMessage"), BLUE),
    Series("order stored", [(at_s, sum(c.at_s <= at_s for c in sends)) for at_s in stored_s], GREEN, "dot"),
    Series("broker killed", [(at_s, 0) for at_s in killed_s], VERMILION, "cross"),
    Series("broker back", [(at_s, 0) for at_s in back_s], ORANGE, "dot"),
])

# %%
waited_s = min(at_s for at_s in stored_s if at_s > back_s[1]) - back_s[1]
reveal("back", "abcd"[sum(waited_s > limit_s for limit_s in (2, 10, 30))],
       why=f"it takes {waited_s:.0f} s, since the proxy remembers that there was no broker")

# %% [markdown]
# This is how the proxy has refused the orders from the second kill on:

# %%
refused = [(event.status, (event.ts_ms - begin_ms) / 1_000) for event in outages.history.find("RpcRefused")]
refused = [(status, at_s) for status, at_s in refused if at_s > killed_s[1]]
statuses = list(dict.fromkeys(status for status, _ in refused))
Table("the proxy's answers after the second kill", ("status", "from, s", "to, s"),
      [(name, *(f"{pick(at_s for status, at_s in refused if status == name):.1f}" for pick in (min, max)))
       for name in statuses])

# %% [markdown]
# At first it cannot reach the broker. Then its copy of the **route** is 20 s old, so it asks the name server anew; that one knows no broker with this topic, and the
# proxy keeps *that there is none* for the next 20 s. By now the broker has long been back. Then it knows the route again, but it has a second memory, for what kind of messages a **topic** is made for, which is renewed
# after 20 s, too. It was renewed by asking a broker *of the route as it was remembered at that moment*: there was none. So it stays empty, and a topic of an unknown kind takes no message, for 20 s more. In the first
# outage neither of the two had to be renewed. (`TopicRouteService`, `ClusterMetadataService`, `DefaultTopicMessageTypeValidator` in `proxy/`; with a second broker the route
# is never empty, and nothing of this happens.)
#
# The client of 4.x has no proxy in between. In its session the broker is away for 7 s as well:

# %%
old = recorded("java-4")
old_ms = calls(old)[0].ms
events = [(event.ts_ms - old_ms, what) for kind, what in (("NodeCrashed", "broker killed"), ("BrokerStarted", "broker back"))
          for event in old.history.find(kind)]
events += [(event.ts_ms - old_ms, "order stored") for event in old.history.find("MessageStored", topic="Uses")]
Table("a program of 4.x, from the 35th second on", ("s", "what"),
      [(f"{at_ms / 1_000:.1f}", what) for at_ms, what in sorted(events) if 35_000 < at_ms < 56_000])

# %% [markdown]
# It keeps its old route as long as the name server has no better one, so the first order after the broker's return is stored. That is simpler; but each client has to know the way to each broker, and to be let through to it.
#
# ### A small exercise: copies (1 point)
#
# A send of 5.x makes up to `most` attempts and ends with the first one that is answered (`grpcClientProducerMaxAttempts` of the proxy, 3 if nobody sets it). Each attempt goes one of three ways: `"request lost"` (the broker has never got it), `"answer lost"` (the broker has stored the message, and the
# client does not hear of it), `"answered"` (stored, and told). You are given the ways of the first seven attempts that there would be. Return two things: how many copies of the message are stored, and whether `send`
# tells the application that all is well (`True`) or raises an error (`False`).

# %% [markdown] tags=["hints"]
# - Which attempts are made at all? Not all seven, and not always `most`.
# - Go through them one after the other, and count those that the broker has got.
# - A loop over the first `most` of them. When one is answered, return at once; behind the loop you know that none was.

# %% tags=["exercise"]
def copies(attempts, most):
    """How many copies are stored, and whether send ends well."""
    ### BEGIN SOLUTION
    stored = 0
    for way in attempts[:most]:
        if way != "request lost":
            stored += 1
        if way == "answered":
            return stored, True
    return stored, False
    ### END SOLUTION


# %% tags=["check"]
check("30/copies", copies)

# %% [markdown]
# ## Round three: an acknowledgement is lost (14 minutes)
#
# A consumer of 5.x **receives** a message; from then on nobody else of its group can see it for a while, the *invisible time*. When the work is done it **acknowledges** the message (`ack`), and it never comes
# again. If it does not, the message comes again when the invisible time is over (lab 11).
#
# In two more sessions an order is received with an invisible time of 12 s. A second later the consumer calls `ack`. Just then the connection between proxy and broker fails. In one session the
# **request** is lost: the broker never hears of the acknowledgement. In the other one its **answer** is: the broker has written down that the order is done, and the proxy does not hear so. This is what both applications said:
#
#     received order 0, attempt 1
#     ack of order 0, attempt 1: ProxyTimeoutException
#
# The same words. After that the connection is well again, and both applications go on asking for orders.

# %%
case = draw.one_of("case", ["request", "answer"])
say(f"We look at the session in which the **{case}** is lost.")

# %% tags=["prediction"]
predict("comes-again", f"The {case} of an ack is lost. How many seconds after it was received does the order come again? "
        "(0: it does not)", unit="s", prediction=...)

# %%
def deliveries(name):
    """When the order was handed out, in seconds from the first time, and when the broker heard of an ack."""
    lab = recorded(name)
    first_ms = next(lab.history.find("MessagePopped")).ts_ms
    return [[round((event.ts_ms - first_ms) / 1_000, 1) for event in lab.history.find(kind)]
            for kind in ("MessagePopped", "AckReceived")]


lost = {"request": deliveries("python-ack-lost"), "answer": deliveries("python-answer-lost")}
Table("one error, two worlds", ("lost is the ...", "handed out, s", "ack at the broker, s"),
      [(which, *(", ".join(map(str, times)) for times in both)) for which, both in lost.items()])

# %%
handed_out = lost[case][0]
reveal("comes-again", round(handed_out[1]) if len(handed_out) > 1 else 0,
       why="the broker has never heard of it: the order comes again, some seconds after its invisible time" if case == "request"
       else "the broker has heard of it, whatever the consumer was told")

# %% [markdown]
# `ProxyTimeoutException` does not say "not acknowledged". It says **nobody knows** (lab 19 has the same for `send`). The consumer may try the `ack` again, or leave it: then the order comes again, or not. Either way nothing is lost, if the
# application can bear to see an order twice. (Why some seconds *after* the 12 s: a thread of the broker revives what was not acknowledged, in its own beat; lab 12.)
#
# ### A small exercise: does it come again? (1 point)
#
# An order is received with an invisible time of `invisible_s` seconds. `tries` are the consumer's acknowledgements: pairs of how many seconds after receiving it each was made, and its way: `"request lost"`,
# `"answer lost"` or `"answered"`. (After the invisible time is over, an acknowledgement is refused: that counts as an answer, too.) Does the order come again? Return `True` or `False`. No acknowledgement is made just at the end of the invisible time.

# %% [markdown] tags=["hints"]
# - It does not come again if the broker has heard of one acknowledgement in time. One is enough.
# - Which of the three ways means that the broker has never heard of it?
# - `any(...)` over the pairs, with both conditions joined by `and`; what you are asked is the opposite of it.

# %% tags=["exercise"]
def comes_again(invisible_s, tries):
    """Whether an order comes again."""
    ### BEGIN SOLUTION
    return not any(after_s < invisible_s and way != "request lost" for after_s, way in tries)
    ### END SOLUTION


# %% tags=["check"]
check("30/again", comes_again)

# %% [markdown]
# ## Break it: with your own hands (5 minutes)
#
# If the real client is installed, this cell lets it send, and kills the broker under it. Change what you like: how long it is away, when it dies, `lab.freeze` in place of `lab.crash`. What the client says
# is printed below. If it is not installed, look at the recorded session in the cell behind it, and step through the moment of the kill.

# %% tags=["nbval-ignore-output"]
if missing():
    print(missing())
else:
    lab = shop(seed)
    with lab.serve() as serving, RealClient("send_on", serving) as client:
        client.until("order 1: sent")
        lab.crash("broker-a")
        client.for_seconds(4)
        lab.restart("broker-a")
        client.for_seconds(4)
    print("\n".join(client.lines))

# %%
outages.history.back("NodeCrashed", target="broker-a")
Stepper(outages)

# %% [markdown]
# ## Build it: nothing is lost (14 minutes)
#
# An application of twenty lines. It receives orders, and sends an **invoice** for each, as a message of another topic. Any of its calls may raise an error (an `Exception` of some class), after which nobody knows whether it was done. The broker may be away for
# some time. And the application itself may be killed at any place; then it is started anew, from the beginning, and knows nothing any more. Nothing that a broker has stored may be lost: **each order gets its invoice, and is acknowledged.**
#
# You are given the calls of the official client, each with `await` in front, so that a world can stand still in it:
#
# | call | what it does |
# |---|---|
# | `await consumer.receive(16, 15)` | up to 16 orders (a list, which may be empty after 5 s without any), invisible for 15 s. The proxy refuses less than 10 s |
# | `await consumer.ack(order)` | the order is done |
# | `await producer.send(invoice_for(order))` | sends the invoice for an order |
# | `book.note(name)`, `book.has(name)` | a data base of the application's own, which outlives it: writes a name down; was it written down? |
# | `await pause(1)` | does nothing for a second |
#
# `order.body.decode()` is the order's name, such as `"order 7"`. An invoice may be stored twice where it cannot be helped: `send` raised an error, or the application was killed just behind it. But an invoice of which the application **had been told that it
# is stored**, and could have noted so, must not be sent again.
#
# The function never returns. It is tried in fifty worlds (mqlab's own client of 5.x is behind the calls there, so that the same happens each time). In each the application is killed, and what the proxy passes on to the broker is lost for some time;
# then something more goes wrong: the application is killed once more, or the broker, or both; or other requests or answers are lost.

# %% [markdown] tags=["hints"]
# - In which order: acknowledge, send, note? Think of a kill behind each of the three. What is done too early may be the last thing that was done.
# - `receive`, `send` and `ack` can fail, each for itself, and each failure asks for something else: try again after a pause, try again, or leave it. Put `await pause(1)` into the `except`: then the story also tells a slip of your own, which `except Exception` hides.
# - An endless loop: receive, with an error being a reason to pause and go on. For each order: as long as its name is not in the book, try to send and then note it. Then the `ack`, whose error you can ignore: what was lost comes again, and the book knows it.

# %% tags=["exercise"]
async def work(consumer, producer, book, invoice_for, pause):
    """Receive orders and send an invoice for each; nothing is lost."""
    ### BEGIN SOLUTION
    while True:
        try:
            orders = await consumer.receive(16, 15)
        except Exception:
            await pause(1)
            continue
        for order in orders:
            name = order.body.decode()
            while not book.has(name):
                try:
                    await producer.send(invoice_for(order))
                    book.note(name)
                except Exception:
                    await pause(1)
            try:
                await consumer.ack(order)
            except Exception:
                continue
    ### END SOLUTION


# %% tags=["check"]
check("30/application", work)

# %% [markdown]
# When it fails, keep the verdict (`verdict = check(...)`) and look into the world: `Stepper(verdict.open())`. If nothing seems to happen at all: a slip of your own, such as a misspelt name, is an `Exception`, too, and your `except` catches it.
# If a `pause(1)` follows in the same `except`, the story says so: "an error of its own code".
#
# And for real? The same function, unchanged, with the official client behind it, in a process of its own: ten orders come, the broker is killed for five seconds, and later the application with `kill -9`.
# It takes half a minute to two minutes, since real time cannot be hurried, and up to five minutes if the application stops sending invoices. Nothing is marked here; look at the column of invoices. (The function's own text alone is taken there:
# what it uses, it must define or import itself.)

# %% tags=["nbval-ignore-output"]
play_for_real(work, seed)

# %% [markdown]
# ## What is different in today's RocketMQ, and where to read on (3 minutes)
#
# - Articles on 4.x say that a client talks to name servers and brokers. A client of 5.x talks to a proxy, which may be one process with the broker (its mode `local`), and needs no open way to each broker.
# - The clients of 5.x are new in each language, and differ: that of Java waits a moment before it tries again when a proxy says "too many requests"; that of Python gives up at once.
# - `mqlab serve` opens a world to any client, in any language ([docs/serving.md](../docs/serving.md)).
#
# Read on: `rocketmq/v5/client/client.py` and `rocketmq/v5/producer/producer.py` in the Python client (`apache/rocketmq-clients`); `proxy/src/main/java/org/apache/rocketmq/proxy/service/route/TopicRouteService.java`
# and `.../service/metadata/ClusterMetadataService.java`; here `mqlab/proxy/` and `mqlab/serving/`.
#
# Three questions to take home:
#
# 1. You run 5,000 clients of 5.x behind two proxies. How many calls a second come to each proxy on a night without a single message? What would you change first?
# 2. The book of your application is a file on its own machine. What is lost when that machine is? And what if two applications share the work?
# 3. The proxy could ask the name server anew after each error. What would that cost on a day on which a broker is away for an hour, and thousands of clients try again and again?
#
# ## Your bets

# %%
reveal()
