# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   mqlab:
#     title: Who knows where? Name servers and routes
#     question: A program wants to send a message. Who tells it where to, and how long is that true?
#     objectives:
#       - say what happens on the first send to a topic that nobody created, request by request
#       - say who notices a dead broker and a hanging one, and when
#       - build a cache of routes that stays fresh for few questions
#     minutes: 89
#     prerequisites: [00 Tour]
#     wrong_predictions:
#       - "questions: two for each topic, one question and the message; or the template asked for only once"
#       - "borrowed: 0, since the broker that creates the topic could tell it in its answer; or 30, counted from the send"
#       - "new-queues: as many on every broker, since the borrowed route named all of them"
#       - "killed-server: after 120 s, the only number that most texts name; a closed connection needs no waiting"
#       - "killed-producer: 0, by a message from the name server or with the first failure; nobody tells it, and a failure is no question"
#       - "hung-server: 120 s; they count from the hang, and the name server counts from the last report"
#       - "other-truth: 0, an error, since namesrv-2 does not know the topic; or all, since the broker knows them"
#       - "who-works: none; a name server is taken for a station that messages pass through"
#       - "back: 0 s, as if routes were on a disk"
# ---

# %% tags=["parameters"]
student_id = ""

# %% [markdown]
# In lab 00 a message went from a **producer** (a program that sends) to a **broker** (a server that keeps messages).
# Today we look at the moment before: how does the producer know where to send?
#
# Messages are sorted by **topic**, and a topic is cut into **queues**, which may lie on many brokers. Where they lie
# is the **route** of the topic: these brokers, at these addresses, with so many queues each. Brokers are added, die
# and come back, so nobody can write the route into a program. It has to be asked for, and whoever is asked is called
# a **name server**.

# %%
from mqlab import ConsumeConcurrentlyStatus, Lab, Message, errors, scenarios
from mqlab.check import NotSolvedYet, check, draws_for, predict, reveal, say, seed_for
from mqlab.views import Beliefs, Table
from mqlab_widgets import Stepper
from mqlab_widgets.boards.routes import RoutesBoard

seed = seed_for(student_id, "01")
draw = draws_for(seed)

# %% [markdown]
# This is such a world at work: press **play** and **pause**. The table below the machines says what each of them believes
# of the routes. (This world is to play with; the cells below have their own. What happens when a broker crashes is
# asked in round two: place your bet there, and then come back and try it here.)

# %%
world = scenarios.get("two-brokers").build(seed, parameters={"faults": ""})
Stepper(world.run_for(seconds=2), [RoutesBoard])

# %% [markdown]
# Now from the beginning: a name server starts, and then the brokers. How many there are, and other numbers of this
# lab, depend on your student id.

# %%
lab = Lab(seed=seed)
lab.name_server()
brokers = [lab.broker(f"broker-{letter}") for letter in "abc"[: draw.one_of("brokers", [2, 3])]]
lab.space_time(0, kinds=["BrokerRegistered"], requests=["REGISTER_BROKER"], title="The brokers start")

# %% [markdown]
# The name server did not look for anybody. **Brokers report themselves**: at their start, whenever a topic of theirs
# changes, and every 30 s (`registerNameServerPeriod` in `BrokerConfig`). A report says "this is my address, these are
# all my topics", and it goes to every name server that the broker was told of.

# %%
lab.create_topic("Orders", 4)
lab.routes("Orders")

# %% [markdown]
# Four queues on each broker. What the name server knows is a few hash tables in its memory
# (class `RouteInfoManager`). Nothing of it is on a disk. And it knows little of the brokers themselves: only when it
# last heard of each.

# %%
def known_brokers(server):
    rows = [list(row.values())[1:] for row in server.running().route_info_manager.show()]
    return Table(f"brokers in the tables of {server.name}",
                 ("broker", "id", "address", "topics", "silent for ms", "dropped in ms"), rows)


known_brokers(lab.name_servers[0])

# %% [markdown]
# The last column is a countdown. Keep it in mind for round two.

# %% [markdown]
# ## Round one: a topic that nobody created (23 minutes)
#
# A producer starts, and for some seconds its application has nothing to send. Many texts say that it fetches the
# routes meanwhile. Does it?

# %%
wanted = draw.one_of("queues of a new topic", [2, 3, 5, 6, 7])
idle_s = draw.between("seconds before the first send", 4, 24)
producer = lab.producer("shop", default_topic_queue_nums=wanted)
started = lab.now_ms
await producer.start()
lab.run_for(seconds=idle_s)
list(lab.history.find("RequestSent", node="producer-1"))

# %% [markdown]
# It has not written a single request: a producer does not know yet which topics it will send to. (A real one, too:
# `start()` of a RocketMQ 5.3.3 sent nothing.) Now the first messages, to topics that exist nowhere. Place your bet:
# write a number in place of the three dots.

# %%
topics = [f"New-{number}" for number in range(1, draw.between("new topics", 3, 9) + 1)]
say(f"The application sends one message to each of **{len(topics)} topics** that nobody has created: "
    f"`{topics[0]}` to `{topics[-1]}`.")

# %% tags=["prediction"]
predict("questions", f"How many requests do these {len(topics)} calls of send write, all together?",
        unit="requests", prediction=...)

# %% [markdown]
# We start the first call without waiting for it, and stop the world at the moments that matter. First stop: the
# producer learns something about the route.

# %%
before = lab.now_ms
sending = producer.send(Message(topics[0], b"hello")).start()
lab.run_until_event(("RouteMissing", "RouteUpdated")).fields

# %% [markdown]
# Code 17, `TOPIC_NOT_EXIST`. On to the next stop:

# %%
lab.run_until_event(("RouteMissing", "RouteUpdated")).fields

# %% [markdown]
# Let it go on to the end, and see all of it:

# %%
result = await sending
lab.run_for(ms=2)
lab.space_time(before, kinds=["RouteQueried", "TopicCreated", "MessageStored", "BrokerRegistered"],
               requests=["GET_ROUTEINFO_BY_TOPIC", "SEND_MESSAGE_V2"],
               title="The first send to a new topic")

# %%
first_call = [r.request_name for r in lab.history.find("RequestSent", node="producer-1", task=sending.text)]
for topic in topics[1:]:
    await producer.send(Message(topic, b"hello"))
written = list(lab.history.find("RequestSent", node="producer-1", task=sending.text))
reveal("questions", len(written), why=f"{', '.join(first_call)}; and for each other topic the same again")

# %% [markdown]
# (When a connection to a broker opened, another task of the producer sent a heartbeat, too; the calls have nothing
# to do with it.) After the 17 the message should fail. It does not: suddenly there is a route, with queues on every
# broker, for a topic that still exists nowhere. The second question was for another topic. Every broker that may create topics on its own (`autoCreateTopicEnable`,
# on unless you say otherwise) has a template topic with the odd name **`TBW102`**, and reports it like any other. The
# producer takes the template's route and puts its own topic's name on it
# (`DefaultMQProducerImpl.tryToFindTopicPublishInfo`). It *borrows* a route. It does not keep the template for the next
# topic: each new topic costs both questions. Then it sends to a queue of the borrowed route, and the broker, which
# finds no such topic, makes one after its template (`TopicConfigManager.createTopicInSendMessageMethod`).
#
# With how many queues? The template has 8; the producer says with its message how many it wants
# (`defaultTopicQueueNums`, normally 4). The smaller number wins.
#
# Measured on a real RocketMQ 5.3.3, in the same order: question for the new topic, answer 17, question for `TBW102`,
# message. Our first message was stored by **one** of the brokers. The producer, however, believes in queues on
# all of them. When does it ask for the topic's own route? A client does that on a timer: every 30 s, counted from
# its start, it refreshes the routes of all its topics (`pollNameServerInterval` in `ClientConfig`). It may also ask
# because something has happened. Two more bets.

# %%
say(f"There are **{len(brokers)} brokers**; this producer wants **{wanted} queues** for a new topic. It was started "
    f"**{(before - started) / 1_000:.0f} s** before the first send, and it sends nothing more for a minute.")

# %% tags=["prediction"]
predict("borrowed", f"How many seconds after the first send does it ask for the own route of {topics[0]}?",
        unit="s", prediction=...)

# %% tags=["prediction"]
predict("new-queues", f"A minute later: how many queues have all {len(topics)} new topics together, on all brokers?",
        unit="queues", prediction=...)

# %%
own = lab.run_until_event("RouteUpdated", topic=topics[0])
round((own.ts_ms - before) / 1_000, 2), own.fields

# %%
reveal("borrowed", round((own.ts_ms - before) / 1_000),
       why="at the next turn of its refresh, not because of the answer")

# %% [markdown]
# A topic that has a route is not asked for in between: not after an answer, not after an error. Measured on real
# producers that had just been started, from the first send to the topic's own route: 29.8 s, 29.9 s, 30.0 s. So for half a minute they worked
# with a route that was a guess.

# %%
lab.run_for(ms=before + 60_000 - lab.now_ms)
rows = [(topic, row[1], row[3]) for topic in topics for row in lab.routes(topic).rows]
Table("the new topics, a minute later", ("topic", "broker", "queues"), rows)

# %%
reveal("new-queues", sum(row[-1] for row in rows),
       why="a broker creates a topic when a message for it arrives, and one message arrives at one broker")

# %% [markdown]
# This is a trap. Had the producer sent ten messages to each topic in its first half minute, all brokers would have
# met the topic and made it. It sent one, one broker has the topic, the refreshed route names this broker alone, and
# now *no* message of this topic will ever go to another one. All of its load on one machine, and no error anywhere. It is why
# administrators switch `autoCreateTopicEnable` off and create topics on all brokers themselves.

# %% [markdown]
# ### Your turn: where may it send to?
#
# What a producer does with each route that it gets (`topicRouteData2TopicPublishInfo`), in three lines. A route has
# two lists. `route.broker_datas` says who is there: `broker.broker_name`, and `broker.broker_addrs`, a dictionary of
# the addresses of all copies of this broker. Only the **master**, which has the id 0, takes messages. `route.queue_datas`
# says what is there: `data.broker_name`, `data.write_queue_nums`, `data.read_queue_nums`, and `data.perm`, in which the
# bit 2 says "may be written" (4: "may be read"; 6: both). Return all pairs (broker name, queue number) that a message
# may be sent to. Queues of a broker are numbered from 0.

# %% [markdown] tags=["hints"]
# - Two questions for each entry of `queue_datas`: is the master of this broker there, and may the queues be written?
# - The first question is answered in another list of the route, `broker_datas`: a broker whose addresses have no number 0 has no master. Make a set of
#   those that have one. The bit of the second question is asked for with `&`.
# - Of each entry that passes both questions every *write* queue gets a pair of its own: two loops, one in the other, or both in one comprehension.

# %% tags=["exercise"]
def queues_to_send_to(route) -> list[tuple[str, int]]:
    """Broker name and number of each queue that takes messages now."""
    ### BEGIN SOLUTION
    masters = {broker.broker_name for broker in route.broker_datas if 0 in broker.broker_addrs}
    usable = [data for data in route.queue_datas if data.broker_name in masters and data.perm & 2]
    return [(data.broker_name, number) for data in usable for number in range(data.write_queue_nums)]
    ### END SOLUTION


# %% tags=["check"]
check("01/queues-to-send-to", queues_to_send_to)

# %% [markdown]
# ## Round two: dead or only silent? (17 minutes)
#
# We go back to `Orders`, which all brokers have. The producer sends one message, so that it knows the route. Then we
# kill the process of `broker-b`.

# %%
await producer.send(Message("Orders", b"before"))
lab.run_for(seconds=5)
known_brokers(lab.name_servers[0])

# %% tags=["prediction"]
predict("killed-server", "The process of broker-b is killed. When does the name server drop it?",
        choices=["at once", "within 5 s, when it looks for dead brokers", "within 30 s, when a report is missing",
                 "after 120 s of silence"], prediction=...)

# %%
killed = lab.now_ms
lab.crash("broker-b")
dropped = lab.run_until_event("BrokerUnregistered")
round(dropped.ts_ms - killed, 3), dropped.reason

# %%
reveal("killed-server", "a", why=f"{dropped.ts_ms - killed:.1f} ms after the kill: its connection was closed")

# %% [markdown]
# When a process dies, its operating system closes its connections, and the other side sees that at once
# (`BrokerHousekeepingService.onChannelClose`). No timer takes part. A real name server, asked for the route every
# 100 ms, had dropped a killed broker after 0.1 to 0.4 s.
#
# Now the producer. Its route names broker-b as well. Three things could change that: a word from the name server, the
# first message that fails, or the next turn of its timer.

# %%
say(f"The producer was started **{(killed - started) / 1_000:.1f} s** before the kill.")

# %% tags=["prediction"]
predict("killed-producer", "How many seconds after the kill does the producer's route lose broker-b?",
        unit="s", prediction=...)

# %% [markdown]
# It sends as many messages as there are queues.

# %%
sent = lab.now_ms
results = [await producer.send(Message("Orders", b"meanwhile")) for _ in range(4 * len(brokers))]
Table("sent after the kill", ("stored by", "queue"),
      [(r.message_queue.broker_name, r.message_queue.queue_id) for r in results])

# %%
lab.history.last("SendAttemptFailed").fields, round(lab.now_ms - sent, 1)

# %% [markdown]
# Now we wait until the producer's route changes.

# %%
refreshed = lab.run_until_event("RouteUpdated", node="producer-1", topic="Orders")
reveal("killed-producer", round((refreshed.ts_ms - killed) / 1_000, 1),
       why="at the next turn of its timer, every 30 s from its start")

# %% [markdown]
# Not one message was lost: an attempt at the dead broker is refused within a millisecond, and the producer takes a queue of
# another broker (two more attempts, `retryTimesWhenSendFailed`). Above you see the first refusal, and how many
# ms all of these calls took together. A wrong route costs a little time here, nothing else; on a real one the calls took 14 ms in the median.
#
# And the route did not change with the first failure, and not because somebody told the producer: a name server tells
# nobody, it only ever answers. Up to 30 s pass until the timer's next turn. Now we start the broker again, and watch a
# little longer.

# %%
lab.run_for(seconds=5)
lab.restart("broker-b")
lab.run_for(seconds=30)
Beliefs.of(lab.history, "Orders", "broker-b", zero_ms=killed, start_ms=killed - 5_000, end_ms=lab.now_ms)

# %% [markdown]
# The picture has the truth in its first row, and what others think of it below. Where the producer is wrong about a
# dead broker, its bar is vermilion. But look at the right side, too: it is also late to learn that the broker is
# *back*. For up to 30 s nobody sends there, and nothing is broken.
#
# Now something worse. A process can **hang**: stuck in a pause of its memory management, or on a machine so loaded
# that it gets no time. Its connections stay open. Nothing closes, nothing answers. (A machine whose power fails looks
# just like that from outside: nobody is left to close anything.)

# %%
lab.run_for(seconds=draw.between("seconds until the hang", 1, 30))
known_brokers(lab.name_servers[0])

# %% tags=["prediction"]
predict("hung-server", "broker-b hangs from now on. After how many seconds does the name server drop it?",
        unit="s", prediction=...)

# %%
hung = lab.now_ms
lab.freeze("broker-b")
dropped = lab.run_until_event("BrokerUnregistered")
reveal("hung-server", round((dropped.ts_ms - hung) / 1_000, 1), why="120 s after its last report, not after the hang")

# %% [markdown]
# The countdown of the last column was the answer. A name server believes a report for 120 s
# (`DEFAULT_BROKER_CHANNEL_EXPIRED_TIME` in `RouteInfoManager`). The hang began somewhere between two reports, so the
# silence so far, 0 to 30 s, counts already. Two clocks then race to notice: a connection on which nothing moves for
# 120 s is closed (the idle handler of `NettyRemotingServer`), and every 5 s a scan looks for reports that are too
# old (`scanNotActiveBroker`). So: **90 to 125 s after the hang**. Three runs of a real RocketMQ took 104.2, 107.1
# and 108.1 s.

# %%
lab.run_until_event("RouteUpdated", node="producer-1", topic="Orders")
lab.run_for(seconds=10)
Beliefs.of(lab.history, "Orders", "broker-b", zero_ms=hung, start_ms=hung - 5_000, end_ms=lab.now_ms)

# %% [markdown]
# The long bar in vermilion is the time in which the producer was wrong. And this time a wrong route is expensive: a message to a hung broker is not refused, it
# waits until its 3 s are over. Lab 04 is about that. Why not drop a silent broker after 3 s? Think of it until the
# end of the lab; it is one of the questions there.
#
# The broker wakes up. Its timer for the report is long overdue:

# %%
woken = lab.now_ms
lab.thaw("broker-b")
back = lab.run_until_event("BrokerRegistered", broker_name="broker-b")
round(back.ts_ms - woken, 3)

# %% [markdown]
# Milliseconds later the name server has it back (a real one: 0.9 to 3 s). The producer? You know by now.

# %% [markdown]
# ### Your turn: the scan
#
# Write the scan for silent brokers. `reports` is the name server's table: broker name -> (when its last report came,
# for how long a report of this broker counts), both in ms. Normally a report counts for 120,000 ms; a broker may ask for another
# time. Take every broker out of the table whose report counted for less time than has passed since, and return their names.
# At exactly its time a broker is still in.

# %% [markdown] tags=["hints"]
# - Two steps: find the names, and then take them out. A dictionary must not change while a loop goes through it.
# - A broker is silent for too long when `last_ms + counts_ms < now_ms`.
# - The values of the dictionary are pairs, and a comprehension can take them apart. What you return is the list that you have made in the first step.

# %% tags=["exercise"]
def drop_silent(reports: dict[str, tuple[int, int]], now_ms: int) -> list[str]:
    """Take the silent brokers out of the table, and say which they were."""
    ### BEGIN SOLUTION
    silent = [name for name, (last_ms, counts_ms) in reports.items() if last_ms + counts_ms < now_ms]
    for name in silent:
        del reports[name]
    return silent
    ### END SOLUTION


# %% tags=["check"]
check("01/drop-silent", drop_silent)

# %% [markdown]
# ## Round three: two name servers, two truths (11 minutes)
#
# One name server is one machine that can fail, so there are usually two or more. A new world: two name servers, one
# broker. After a second, the cable between `broker-a` and `namesrv-2` is cut, and only that. Then an administrator
# creates a topic.

# %%
lab = Lab(seed=seed)
first = lab.name_server()
second = lab.name_server()
lab.broker("broker-a")
lab.run_for(seconds=1)

# %%
lab.partition("broker-a", "namesrv-2")
queues = draw.between("queues of Payments", 8, 16)
lab.create_topic("Payments", queues)
lab.routes("Payments")

# %% [markdown]
# Name servers never talk to each other. There is no code for it: each believes what brokers tell it. So they
# disagree now, and nobody compares. Not even a client that knows both addresses?

# %%
both = lab.producer("both")
await both.start()
lab.run_for(ms=150)
await both.send(Message("Payments", b"hello"))
list(lab.history.find("RequestSent", node="producer-1", request_name="GET_ROUTEINFO_BY_TOPIC"))

# %%
lab.history.last("NameServerChosen").fields

# %% [markdown]
# It has asked one of the two, and will not ask the other while it can reach this one
# (`NettyRemotingClient.getAndCreateNameserverChannel`): the first choice is random, the next one comes when the
# connection is gone. Further addresses are spares, not witnesses. Which of the two it asked is chance. Now a producer
# that was given `namesrv-2` alone, which has never heard of `Payments`:

# %%
say(f"The new producer wants **{wanted} queues** for a new topic, as that of round one. `Payments` has **{queues}**.")

# %% tags=["prediction"]
predict("other-truth", "A producer asks namesrv-2 alone and sends to Payments. "
        f"How many of the {queues} queues does it use? (0: the send fails)", unit="queues", prediction=...)

# %%
other = lab.producer("other", namesrv_addr=second.address, default_topic_queue_nums=wanted)
await other.start()
lab.run_for(ms=150)
start = lab.now_ms
result = await other.send(Message("Payments", b"hello"))
lab.space_time(start, kinds=["RouteQueried", "MessageStored"], title="Payments, as namesrv-2 sees it",
               requests=["GET_ROUTEINFO_BY_TOPIC", "SEND_MESSAGE_V2"])

# %%
believed = lab.history.last("RouteUpdated", node="producer-2")
reveal("other-truth", believed.write_queues,
       why=f"17 for Payments, then the route of TBW102, which is {believed.write_queues} queues to it")

# %% [markdown]
# You know this from round one. `namesrv-2` knows `TBW102` on `broker-a` from before the cut, and the producer borrows
# its route. The topic is there, so the broker does not complain. The other queues get nothing from this producer, and
# again there is no error. We let three minutes pass:

# %%
lab.run_for(seconds=180)
lab.routes("TBW102")

# %%
(await other.send(Message("Payments", b"still here"))).send_status

# %% [markdown]
# After 120 s of silence `namesrv-2` has dropped the broker; now it answers 17 to everything. The producer asks it
# every 30 s, and what does it do with a 17? **Nothing. It keeps the route that it has**
# (`MQClientInstance.updateTopicRouteInfoFromNameServer` writes a line into its log). An answer "I don't know" is no
# reason to forget what once worked. Remember this for the part that you will build.
#
# The cable is mended. The broker's next report puts `namesrv-2` right, the client's next refresh the producer:

# %%
mended = lab.now_ms
lab.heal("broker-a", "namesrv-2")
reported = lab.run_until_event("BrokerRegistered", node="namesrv-2")
learned = lab.run_until_event("RouteUpdated", node="producer-2")
rows = [(r.node, round((r.ts_ms - mended) / 1_000, 1)) for r in (reported, learned)]
Table("after the cable was mended", ("who is right again", "after s"), rows)

# %% [markdown]
# This design has a name: **eventual consistency**. Left alone, all of them agree within a minute: 30 s for the report,
# 30 s for the refresh. Until then, each may answer something else.
#
# ### Your turn: right again
#
# A cable between a broker and its name server was cut for minutes, and is mended. The next report of the broker comes
# `report_s` seconds after that. The next question of the producer comes `refresh_s` seconds after the mending, and then
# one every 30 s. How many seconds after the mending does the producer have the right route?

# %%
say(f"In your world the report came **{rows[0][1]} s** after the mending, and the producer was right after **{rows[1][1]} s**.")

# %% [markdown] tags=["hints"]
# - A question that comes before the report gets the old answer. Which question is the first that gets the new one?
# - If `refresh_s` is not later than `report_s`, look at the question after it.
# - That may be one later question or many of them: go on from question to question as long as it comes too early.

# %% tags=["exercise"]
def right_after(report_s, refresh_s):
    """How many seconds after the mending a producer has the right route."""
    ### BEGIN SOLUTION
    while refresh_s <= report_s:
        refresh_s += 30
    return refresh_s
    ### END SOLUTION


# %% tags=["check"]
check("01/right-after", right_after)

# %% [markdown]
# ## Break it: all name servers are gone (8 minutes)
#
# One name server, one broker, a producer and a consumer that have worked together for ten seconds. Then the name
# server is killed, and so much time passes that every refresh has failed at least once.

# %%
lab = Lab(seed=seed)
lab.name_server()
lab.broker("broker-a")
lab.create_topic("Orders", 4)

# %%
inbox = []


def listener(messages, context):
    inbox.extend(message.body for message in messages)
    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS


consumer = lab.consumer("readers")
consumer.subscribe("Orders", "*")
consumer.register_message_listener(listener)
await consumer.start()

# %%
producer = lab.producer("shop")
await producer.start()
await producer.send(Message("Orders", b"with a name server"))
lab.run_for(seconds=10)

# %%
lab.crash("namesrv-1")
away_s = draw.between("seconds without a name server", 35, 64)
lab.run_for(seconds=away_s)
inbox

# %% [markdown]
# Four things are tried now, in this order:
#
# 1. the producer sends another order
# 2. the consumer, which was there before, gets that order
# 3. a producer that is started now sends an order
# 4. the old producer sends to a topic that it has not used before

# %% tags=["prediction"]
predict("who-works", "No name server is left. Which of the four work?",
        choices=["none", "1", "1, 2", "1, 2, 3", "1, 2, 4", "1, 2, 3, 4"], prediction=...)

# %%
async def outcome(call):
    """What becomes of a call: "works" or "fails"."""
    try:
        await call
    except errors.MQClientException:
        return "fails"
    return "works"


# %%
outcomes = [await outcome(producer.send(Message("Orders", b"without a name server")))]
lab.run_for(ms=50)
outcomes.append("works" if b"without a name server" in inbox else "fails")
late = lab.producer("late")
await late.start()
outcomes.append(await outcome(late.send(Message("Orders", b"late"))))
outcomes.append(await outcome(producer.send(Message("Refunds", b"new"))))
what = ["the old producer sends", "the old consumer gets it", "a new producer sends", "the old producer, a new topic"]
Table("without a name server", ("", "what", "comes to"), [(n + 1, what[n], outcomes[n]) for n in range(4)])

# %%
reveal("who-works", ", ".join(str(n + 1) for n, came in enumerate(outcomes) if came == "works") or "none",
       why="who has a route speaks to the broker directly; who has none has nobody to ask, not even for TBW102")

# %% [markdown]
# This is the text that a program without a route shows, and you will see it again one day. It says "no route", which
# may mean that the topic was not created, or that no name server can be reached:

# %% tags=["raises-exception"]
await late.send(Message("Orders", b"late"))

# %% [markdown]
# **No message ever passes through a name server.** It is a telephone book, not a telephone line. Who has looked a
# number up can go on calling, for days. What stops is change: nobody new can begin, no new broker is found, and no
# dead one is dropped from any route. The system is frozen in what it knew last.
#
# The name server starts again. Its memory is empty. The broker had been running for about 10 s when the name server was
# killed. It reports at its start, 10 s later, and then every 30 s, whether anybody listens or not.

# %% tags=["prediction"]
predict("back", f"The name server was away for {away_s} s. How many seconds after its start does it know Orders?",
        unit="s", prediction=...)

# %%
started = lab.now_ms
lab.restart("namesrv-1")
lab.routes("Orders")

# %%
reported = lab.run_until_event("BrokerRegistered")
reveal("back", round((reported.ts_ms - started) / 1_000, 1),
       why="the broker's next report: 0 to 30 s, whenever it is due")

# %% [markdown]
# It waits for what brokers will tell it; at most 30 s later it knows all that it knew before. That is the whole recovery: no files, no
# copying from another name server. But look at what the clients were told meanwhile:

# %%
lab.run_for(seconds=30)
heard = [r for r in lab.history.between(started, lab.now_ms) if r.kind in ("RouteMissing", "RouteUpdated")]
rows = [(f"{(r.ts_ms - started) / 1_000:.1f}", r.node, r.get("reason", "a route").partition("  ")[0])
        for r in heard if r.topic == "Orders"]
Table("told about Orders after the start", ("s", "who", "answer"), rows)

# %% [markdown]
# Until the report has come, a name server that has just started says "no such topic" to everybody, as if it knew.
# Clients with a route keep theirs; that 17 means nothing saves them. (There is a switch, `needWaitForService`: with it
# a name server refuses to answer for its first 45 s. It is off.)

# %% [markdown]
# ## Build it: a cache of routes (25 minutes)
#
# RocketMQ's own client asks every 30 s for every topic it has ever used: two questions a minute each, and a route may
# be 30 s old. We want fresher routes, and to pay only for what is used. Before you build it, one look at what makes
# it difficult. A producer starts, and three tasks of its program send to one topic at the same instant:

# %%
lab = Lab(seed=seed)
lab.name_server()
lab.broker("broker-a")
lab.create_topic("Orders", 4)
producer = lab.producer("shop")
await producer.start()
lab.run_for(ms=150)
calls = [producer.send(Message("Orders", b"at once")).start() for _ in range(3)]
for call in calls:
    await call
asked = lab.history.find(("RequestSent", "RouteUpdated"), node="producer-1")
Table("three sends at once", ("ms", "event", "what"),
      [(f"{r.ts_ms:.3f}", r.kind, r.get("request_name") or r.get("broker_names")) for r in asked
       if r.get("request_name") != "HEART_BEAT"])

# %% [markdown]
# Three questions where one would do. While a task waits, *other tasks run*: all three looked for a route before the first
# answer was there, and found none. RocketMQ's client lets them ask one after the other (it has a lock, `lockNamesrv`), but
# whoever gets its turn does not look again whether the route has come meanwhile.
#
# Now write a cache that does better:
#
# 1. `await cache.route(topic)` returns what the name server said, **at most 5 s old** at that moment.
# 2. Many tasks call it, often at the same instant. Still the name server answers **at most 15 questions a minute** for
#    a topic (one every 5 s makes 12).
# 3. When a question fails, the cache hands out what it knew last, or `None` if it never knew anything. It asks again
#    after about a second: at most 12 questions without an answer within 10 s. It raises nothing.
# 4. A topic that nobody wants costs nothing.
#
# What you have: `await self.ask(topic)` asks the name server. It takes between half a millisecond and 3 s, and raises
# `MQClientException` ("no such topic") or `RemotingException` (no answer). `self.node.now_ms()` is the time. And
# `async with self.turn(topic):` makes tasks take turns: one is inside, others that come with the same topic wait in
# front until it has left, with or without an error. You need no timer, and no task of your own: eight lines will do.
#
# The check plays your cache in 50 worlds with a real name server and real brokers: brokers are killed and come back, a
# topic is created late, another one grows, the network is slow, and the name server is killed or hangs.

# %% [markdown] tags=["hints"]
# - First write it for one task alone: if the topic is due, ask, and note when it is due again; then return what is
#   known. What is noted after an answer, and what after an error? Only then think of the other tasks.
# - Everything except the `return` belongs inside `async with self.turn(topic):`, also the look at the time. Who has
#   waited for its turn finds the topic no longer due. `due_ms` says from which time on to ask again: `now + MAX_AGE_MS`
#   after an answer, `now + RETRY_MS` after an error.
# - So inside the turn there is one `if`, in it one `try` with an `except` for both kinds of errors (`MQClientException`, `RemotingException`), and
#   each of the two ways says how long the pause is. Take the time for the note *behind* the question: it may have taken long.
#   A topic that was never asked for is due at once, and what is returned may be an old route, or none.

# %% tags=["exercise"]
from mqlab.errors import MQClientException, RemotingException
from mqlab.sim import Lock

MAX_AGE_MS = 5_000
RETRY_MS = 1_000


class RouteCache:
    """Routes by topic, at most MAX_AGE_MS old while the name server answers."""

    def __init__(self, node, ask):
        self.node = node
        self.ask = ask
        self.routes = {}  # topic -> what the name server said last
        self.due_ms = {}  # topic -> from when on to ask again
        self.locks = {}  # topic -> whose turn it is

    def turn(self, topic):
        """For `async with`: one task at a time for each topic."""
        return self.locks.setdefault(topic, Lock(f"the question for {topic}"))

    async def route(self, topic):
        """The route of the topic, or None while none was ever known."""
        ### BEGIN SOLUTION
        async with self.turn(topic):
            if self.node.now_ms() >= self.due_ms.get(topic, 0):
                try:
                    self.routes[topic] = await self.ask(topic)
                    pause_ms = MAX_AGE_MS
                except (MQClientException, RemotingException):
                    pause_ms = RETRY_MS
                self.due_ms[topic] = self.node.now_ms() + pause_ms
        return self.routes.get(topic)
        ### END SOLUTION


# %% tags=["check"]
check("01/route-cache", RouteCache)

# %% [markdown] tags=["teacher"]
# What students get wrong, roughly in this order: no lock (all who find the route too old ask at once); a lock, but the
# age is looked at in front of it (those who waited ask one after the other); the error leaves the lock locked; the
# error leaves the topic due, so that every call asks again; the entry is made young by each use. A single lock for all
# topics passes or fails by luck of the seed: one slow question then holds up all topics. Solutions without a lock, with
# a future that the others await, are as good.
#
# Worth discussing: nobody is told when a route turned out to be wrong. A method `cache.wrong(topic)` would let the
# sender say so after a refused connection. What would a broker's restart do to the name server then, with ten thousand
# clients?

# %% [markdown]
# ## What is different in today's RocketMQ, and why there is no ZooKeeper (5 minutes)
#
# - Many articles write that a producer gets the brokers from the name server **when it starts**. It does not:
#   you saw an empty list of requests. The first message of each topic pays for the question.
# - Some wonder whether consumers register with the name server, so that brokers could find them. They
#   do not. A client tells **brokers** that it is alive (heartbeats, every 30 s); the name server has no table of clients.
# - Texts about version 4 say that the name server scans for dead brokers every 10 s. In 5.x it is every 5 s
#   (`scanNotActiveBrokerInterval`).
# - Versions 1 and 2 used **ZooKeeper** and version 3 replaced it by the name server,
#   which does less. What does it leave out? ZooKeeper is a group of servers that agree on every change: one leads, a majority has to write
#   the change down before it counts, and without a majority nothing can be changed at all. For that you get *one* truth,
#   and a notice when it changes. You have seen what RocketMQ does with less than one truth: a wrong route costs a second
#   attempt, and a client needs the second attempt anyway, since a broker may die between the answer and the message. So
#   agreement would buy little here. Without it any single name server will do, each restarts from nothing in 30 s,
#   and there is nothing to operate but a process. The price is on this page: routes that are 30 s old, 120 s of belief
#   in a broker that hangs, two name servers that disagree.
# - Agreement came back where it *is* needed. Which copy of a broker is the master now may not have two answers, or
#   messages are lost. Since version 5 a **controller**, a group of servers with a majority vote, decides that. It may
#   live in the process of the name server, but it is another part.
#
# ## Where to read on
#
# - `namesrv/src/main/java/org/apache/rocketmq/namesrv/routeinfo/RouteInfoManager.java`: the tables, `registerBroker`,
#   `scanNotActiveBroker`, `pickupTopicRouteData`; here `mqlab/namesrv/route_info_manager.py`
# - `client/src/main/java/org/apache/rocketmq/client/impl/factory/MQClientInstance.java`:
#   `updateTopicRouteInfoFromNameServer`; here `mqlab/client/route_table.py`
# - `broker/src/main/java/org/apache/rocketmq/broker/topic/TopicConfigManager.java`: `createTopicInSendMessageMethod`
#
# ## Three questions to take home
#
# 1. **What does it cost?** A report with the 13 topics that a broker has from the start takes 2,683 bytes (look at the
#    first picture). Fifty brokers have 10,000 topics each and report to a name server every 30 s. How many bytes a second
#    is that? And 5,000 clients that use 20 topics each: how many questions a second? Which of the two would you mend first?
# 2. Why does the name server wait 120 s before it drops a silent broker? Say what would happen with 3 s, when the network
#    between name server and brokers is slow for ten seconds, and every broker with it.
# 3. In round three, a *consumer* of `Payments` asks `namesrv-2`. Which messages does it never see, and who would notice?
#
# ## Your bets

# %%
reveal()
