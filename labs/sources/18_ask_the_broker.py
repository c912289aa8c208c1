# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   mqlab:
#     title: Ask the broker
#     question: You want one message of a million. Who reads the others to find it?
#     objectives:
#       - find a message by its key, by its id and by time, and say why a search may miss one that is there
#       - say of a tag and of a condition who judges which messages, and who has to read them for it
#       - build notes of two bytes by which a broker reads a tenth of what it would have read
#     minutes: 75
#     prerequisites: ["00 Tour", "02 Store"]
#     wrong_predictions:
#       - "same-hash: all of them, since the index is asked for this key; it is asked for a hash, and the limit counts the strangers"
#       - "from-when: the very ms at which it was stored; the index knows the time in whole seconds"
#       - "delayed: 0, as if the queue were in the order of sending"
#       - "records-read: as many as are wanted; the queue knows a hash of the tag, and nothing of a city"
#       - "odd-orders: those without a city count as not from that city; and an amount with a decimal point as a number"
#       - "bits-read: as many as are wanted; a bit can be set for somebody else"
#       - "bits-bytes: one for each order, since there are eight bits; or none, as if the entry had room for them"
#       - "newcomer: as few as with the group that was there before"
#       - "two-wishes: all of them, each with the member that wants it; or half of them"
# ---

# %% tags=["parameters"]
student_id = ""

# %% [markdown]
# ## The scene (4 minutes)
#
# A **broker** keeps messages: it writes each of them to the end of one long file, the **commit log**, and remembers for each queue where
# its messages lie in there (lab 02 has opened the files). That is all that it needs for readers who want everything, one message after
# the other. But people ask other questions:
#
# - A customer calls. *Where is order 77?* One message of millions, and nobody knows its queue.
# - A warehouse wants to see *what came in since noon*.
# - A department wants *orders over 100 from Berlin*, and nothing else, from now on.
#
# Somebody has to look at what was not asked for, in order to find what was. This lab is about who that is: the broker, the
# network, or you. And each answer has a gap through which a message can fall.
#
# Three groups read the orders of a shop. One wants all of them, one those that are paid, one the large ones from Berlin. Press **Play**, and look at
# what travels to whom.

# %%
from mqlab import Lab, Message, scenarios
from mqlab.check import NotSolvedYet, check, draws_for, predict, reveal, say, seed_for
from mqlab.client import MessageSelector
from mqlab.filter import BloomFilter, FilterEvaluationError, compile_filter
from mqlab.protocol import decode_message_id, decode_record
from mqlab.scenarios.filtering import open_shop
from mqlab.scenarios.store import SMALL_FILES
from mqlab.views import Table, index_steps
from mqlab_widgets import FiltersBoard, Stepper
from mqlab_widgets.charts import show_bars

seed = seed_for(student_id, "18")
draw = draws_for(seed)
by_sql = MessageSelector.by_sql

# %%
Stepper(scenarios.get("sql-filters").build(seed))

# %% [markdown]
# ## Round one: by key, by id, by time (17 minutes)
#
# Shopping carts. Each time that something is put into a cart, the shop sends a message, and gives it the name of the cart as its **key**. To find
# messages by key a broker has an **index**: a hash table in a file. The hash of `topic#key` chooses a *slot*, the slot knows its newest *item*, and each
# item knows the one before it in the same slot. Two carts have been in use today, and their changes lie mixed in the queue.

# %%
names = draw.one_of("carts", [("Aa", "BB"), ("Bx", "CY"), ("Dk", "EL"), ("Hm", "IN"), ("Ts", "UT")])
ours, theirs = [f"cart-{name}" for name in names]
count, strangers = draw.between("ours", 4, 7), draw.between("theirs", 3, 5)
changes = [ours, *draw.shuffled("changes", [ours] * (count - 1) + [theirs] * strangers)]
pace_ms = draw.between("pace", 310, 790, step=10)

# %%
lab = Lab(seed=seed)
shop = await open_shop(lab, **SMALL_FILES)
for cart in changes:
    await shop.producer.send(Message("Orders", b"one thing more", keys=cart))
    lab.run_for(ms=pace_ms)
in_order = ", ".join(name[5:] for name in changes)
say(f"`{ours}` was changed **{count}** times, `{theirs}` **{strangers}** times, in this order: {in_order}")

# %% [markdown]
# This is how a client asks: it names a topic, a key, how many messages it wants at the most, and a stretch of time (here: all of it). The broker answers
# with messages, the oldest of them first.

# %%
store = lab.brokers[0].store
FOR_EVER = 2**62


def ask(key, most, begin_ms=0, end_ms=FOR_EVER):
    """What a broker gives for a key (QueryMessageProcessor)."""
    found = store.query_message("Orders", key, most, begin_ms, end_ms)
    return [decode_record(record) for record in found.messages]


# %%
say(f"You know that `{ours}` was changed {count} times. So you ask for its **{count}** newest messages.")

# %% tags=["prediction"]
predict("same-hash", f"You ask for {count} messages with the key {ours}. There are {count}. How many of them do you get?",
        unit="messages", prediction=...)

# %%
answer = ask(ours, count)
Table(f"asked for: {ours}, at most {count}", ("place in the queue", "key"),
      [(message.queue_offset, message.keys) for message in answer])

# %%
reveal("same-hash", sum(message.keys == ours for message in answer),
       why="the index has no keys, only hashes; both carts have the same one, and the limit counts them all")

# %% [markdown]
# The names were chosen for that: in Java's hash, `h = 31 * h + c`, one more in a letter and 31 less in the next one come out the same. Follow the broker
# through its file. Whatever has *our* hash is a hit, whoever it belongs to:

# %%
index_steps(lab.brokers[0].node.disk, "Orders", ours, slots=SMALL_FILES["max_hash_slot_num"])

# %% [markdown]
# Look at both kinds of company in a slot. Other *hashes* that only share the slot are passed over (`IndexFile.selectPhyOffset` compares them), and cost a
# step each. The same *hash* is taken for the same key, is read from the log, and travels to the client. The client looks at the key itself, and throws strangers
# away (`MQAdminImpl.queryMessage`; a line in its log is all that is said). What it cannot do is get back the places that they took. A broker gives out 64 messages at the
# most for one question (`maxMsgsNumBatch`), whatever you ask for.
#
# Here it was two names made to fit. With millions of keys it happens by itself: there are only about two thousand million hashes. And a key
# that many messages share (the name of a large customer) makes a long chain for everybody who lands in that slot.
#
# ### Since when?
#
# One order more, with a key that nobody else has. You remember *exactly* when it was stored, and ask for nothing older.

# %%
sent = await shop.producer.send(Message("Orders", b"the order that you look for", keys="order-77"))
lab.run_for(ms=10)
first, order = ask(ours, 64)[0], ask("order-77", 1)[0]
after_ms = order.store_timestamp - first.store_timestamp
say(f"`order-77` was stored **{after_ms:,} ms** after the first message of this index file.")

# %% tags=["prediction"]
predict("from-when", f"You ask for order-77, from B ms after the first message on. It was stored after {after_ms} ms. "
        "What is the largest B with which you find it?", unit="ms", prediction=...)

# %%
latest = next(after for after in range(after_ms, -1, -1) if ask("order-77", 1, begin_ms=first.store_timestamp + after))
Table("asking for order-77", ("from, ms after the first message", "found"),
      [(after, len(ask("order-77", 1, first.store_timestamp + after)))
       for after in (0, latest - 1, latest, latest + 1, after_ms)])

# %%
reveal("from-when", latest, why="an item keeps its time in whole seconds since the file's first message, rounded down")

# %% [markdown]
# An item has 20 bytes: the hash (4), the place in the log (8), the time (4), the item before it (4). Four bytes of milliseconds would last for 24 days; four bytes of
# **seconds** last for 68 years. So in the index each message seems to be up to 999 ms older than it is. Ask from a second earlier on, and
# look at the times of what you get.
#
# ### Two ids
#
# A send gives you two ids, and both find a message without any key.

# %%
place = decode_message_id(sent.offset_msg_id)
Table("the ids of order-77", ("id", "made by", "says", "found by"), [
    (sent.offset_msg_id, "the broker", f"{place.address}, commit log byte {place.offset}", "reading there"),
    (sent.msg_id, "the producer", "machine, process, time, a counter", f"the index: {len(ask(sent.msg_id, 32))} message"),
])

# %% [markdown]
# `offsetMsgId` *is* a place: the broker needs no search (`VIEW_MESSAGE_BY_ID`). But when the log's old files are deleted the place is gone, and a copy of the message (a
# retry, say) has another one. `msgId` is made by the producer before it sends, travels in the property `UNIQ_KEY`, and goes into the index like a key. It
# stays the same in all copies. Today's client looks back only three days for it unless you say otherwise (`MQAdminImpl.queryMessageByUniqKey`).
#
# ### Since noon
#
# The third question has no index at all. A queue's messages were stored one after the other, so their times only grow, and the broker searches as one
# searches in a dictionary: look at the middle, then at the middle of the half that is left (`ConsumeQueue.getOffsetInQueueByTime`). A queue entry has no
# time, so each look reads a message's head from the log. The answer is the place of the first message stored *at that time or later*.
#
# A shop sends an order now and then. One of them is sent **with a delay** of ten seconds (delay level 3): it is to come to the queue only then.

# %%
total, late_one = draw.between("orders by time", 50, 60), draw.between("the late one", 4, 12)
every_ms = draw.between("every", 310, 690, step=10)
lab = Lab(seed=seed)
shop = await open_shop(lab)
for number in range(total):
    level = 3 if number == late_one else 0
    await shop.producer.send(Message("Orders", b"an order", keys=f"order-{number}", delay_level=level))
    lab.run_for(ms=every_ms)
say(f"An order every **{every_ms} ms**; order number **{late_one}** was sent with a delay of 10 s.")

# %%
store = lab.brokers[0].store
late = ask(f"order-{late_one}", 1)[0]
finder = lab.pull_consumer("finder")
await finder.start()
queue = (await finder.fetch_subscribe_message_queues("Orders"))[0]
found = await finder.search_offset(queue, late.born_timestamp)
say(f"You search for the moment at which order number {late_one} was sent, and land at place **{found}** of the queue.")

# %% tags=["prediction"]
predict("delayed", f"You land at place {found}. How many places behind that does order number {late_one} lie?",
        unit="places", prediction=...)

# %%
Table(f"order number {late_one}", ("place in the queue", "sent, ms", "stored, ms"),
      [(late.queue_offset, late.born_timestamp - lab.world.epoch_ms, late.store_timestamp - lab.world.epoch_ms)])

# %%
reveal("delayed", late.queue_offset - found,
       why="a queue is sorted by the time of storing, and it was stored when its delay was over")

# %% [markdown]
# A message carries two times: `bornTimestamp`, when its producer made it, and `storeTimestamp`, when it came into *this* queue. Searching, and every "begin
# at noon", goes by the second one, and by the broker's clock. For delayed messages, retries and transactions the two are far apart: whoever
# begins at noon gets orders of the morning, and that is right so.
#
# ### Your turn: walk through a slot
#
# Write the walk of the broker through one slot. `items` is the file: item number n is `items[n]`, and says `(hash, place, before)`; number 0 is not
# used, and as `before` it means that there is none. `newest` is what the slot says. Return the places of the items that have `key_hash`, newest first, and at most `most` of them.

# %% [markdown] tags=["hints"]
# - You start at item number `newest` and go on until there is no item before, or you have enough.
# - An item with another hash is no reason to stop: it only shares the slot.
# - A loop with two conditions, and in it three names for the three parts of an item. The last thing in the loop is the step to the item before.

# %% tags=["exercise"]
def walk(items: list[tuple[int, int, int]], newest: int, key_hash: int, most: int) -> list[int]:
    """The places of the messages that may have a key with this hash, newest first."""
    ### BEGIN SOLUTION
    places, number = [], newest
    while number and len(places) < most:
        item_hash, place, number = items[number]
        if item_hash == key_hash:
            places.append(place)
    return places
    ### END SOLUTION


# %% tags=["check"]
check("18/walk", walk)

# %% [markdown]
# ## Round two: a tag or a condition (13 minutes)
#
# Now somebody who does not ask once, but wants to have certain orders *from now on*. RocketMQ has two ways to say which:
#
# - a **tag**: one word of the message, `"paid"` or `"open"`;
# - a **condition** in a language that looks like SQL (`SQL92`), over the *properties* of a message, which are texts with a name. The broker has to be
#   built for it: `enablePropertyFilter=true`, off by default.

# %%
cities = ["Berlin", "Oslo", "Paris"]
count, limit = draw.between("orders", 60, 90), draw.between("limit", 80, 140)
city = draw.one_of("city", cities)
orders = [{"tag": draw.one_of(f"tag {n}", ["paid", "open"]), "city": draw.one_of(f"city {n}", cities),
           "amount": str(draw.between(f"amount {n}", 0, 200))} for n in range(count)]
condition = f"amount > {limit} AND city = '{city}'"
say(f"**{count}** orders. One group wants all that are `paid`, one wants `{condition}`.")

# %%
fulfilled = sum(int(order["amount"]) > limit and order["city"] == city for order in orders)
say(f"**{fulfilled}** orders fulfil the condition, and **{sum(order['tag'] == 'paid' for order in orders)}** are paid.")

# %% tags=["prediction"]
predict("records-read", f"{count} orders are sent, {fulfilled} fulfil the condition. How many orders does the broker read "
        "from its log for the group with the condition?", unit="orders", prediction=...)

# %%
lab = Lab(seed=seed)
shop = await open_shop(lab, {"everything": "*", "paid": "paid", "large": by_sql(condition)})
await shop.send(orders)
lab.run_for(seconds=25)
show_bars("what each group costs", "group", "orders", list(shop.handled), {
    "read from the log": [shop.read_for(group) for group in shop.handled],
    "came to the listener": [len(shop.handled[group]) for group in shop.handled],
})

# %%
reveal("records-read", shop.read_for("large"), why="a queue entry has a hash of the tag; city and amount stand only in the log")

# %% [markdown]
# A filter is asked **twice** (the interface `MessageFilter`):
#
# | | asked with | a tag | a condition |
# |---|---|---|---|
# | `isMatchedByConsumeQueue` | the 20 bytes of the queue entry | compares the hash | cannot know: yes |
# | `isMatchedByCommitLog` | the whole message, read from the log | has nothing to add: yes | judges it |
# | the consumer | the message that came | compares the tag itself (lab 02) | nothing: it trusts the broker |
#
# So a tag costs the broker nothing that it did not have to read anyway, and a condition costs it a read for each message that lies there, wanted or not.
# Both save the network what is not wanted. In messages that have just been written the difference is
# small: they are still in memory. A group that is days behind makes the broker read from the disk what it then throws away.
#
# The board shows it while it happens: the world of the scene, with who reads what. A group with a condition is woken
# by an order that it wants (and every 5 s, to see what there is), and then all that lay there in between is read. *Held back* was read and not wanted; *skipped* would be
# what was not even read.

# %%
Stepper(scenarios.get("sql-filters").play(seed, seconds=12), [FiltersBoard])

# %% [markdown]
# ### What a condition does not know
#
# Real orders are untidy. Some have no city, some have no amount, and one program writes amounts with a decimal point.

# %%
odd_limit = draw.between("odd limit", 50, 150)
odd_condition = f"amount > {odd_limit} OR city <> '{city}'"
small, large = str(odd_limit - 20), str(odd_limit + 20)
other = draw.one_of("other city", [name for name in cities if name != city])
kinds = [{"amount": large, "city": city}, {"amount": small, "city": city}, {"amount": small, "city": other},
         {"amount": f"{large}.50", "city": other}, {"city": other}, {"city": city}, {"amount": large}, {"amount": small}, {}]
odd = draw.shuffled("odd", [kind for n, kind in enumerate(kinds) for _ in range(draw.between(f"kind {n}", 1, 2))])
Table("orders", ("order", "amount", "city"),
      [(n, order.get("amount", "-"), order.get("city", "-")) for n, order in enumerate(odd)])

# %%
say(f"A group wants `{odd_condition}`. (`<>` means: is not.) A dash stands for a property that the order does not have.")

# %% tags=["prediction"]
predict("odd-orders", f"How many of these {len(odd)} orders come to the group that wants {odd_condition}?",
        unit="orders", prediction=...)

# %%
lab = Lab(seed=seed)
shop = await open_shop(lab, {"odd": by_sql(odd_condition)})
await shop.send(odd)
lab.run_for(seconds=25)
reveal("odd-orders", len(shop.handled["odd"]),
       why="only what is TRUE comes: unknown is not true, and what cannot be judged is dropped")

# %%
def value_of(order):
    try:
        value = compile_filter("SQL92", odd_condition).evaluate(order)
    except FilterEvaluationError:
        return "error"
    return "unknown" if value is None else str(value)


Table(odd_condition, ("amount", "city", "value"),
      [(kind.get("amount", "-"), kind.get("city", "-"), value_of(kind)) for kind in kinds])

# %% [markdown]
# - A comparison with a property that is missing is neither true nor false: it is **unknown** (`NULL`). An order without a city is not "not from Berlin". `NOT` of unknown
#   is unknown, too. Whoever means it writes `city <> 'Berlin' OR city IS NULL`.
# - Properties are texts. Beside a whole number the text has to be a whole number (`ComparisonExpression` converts it): one with a decimal point is an error (a `NumberFormatException`), and an
#   error drops the message from the whole condition, also from the half of an `OR` that would have let it through. Nobody is told; it stands in the broker's log. A limit that is
#   written with a point, `amount > 100.0`, would have taken both kinds.
#
# What cannot be read at all is refused when the consumer starts. The classic, since `NOT` binds tighter than `>`:

# %% tags=["raises-exception"]
await shop.join("typo", by_sql("NOT amount > 100"))

# %% [markdown]
# ### Your turn: AND and OR of what may be unknown
#
# `values` are `True`, `False` or `None` (unknown). For `"AND"` one `False` decides, whatever the others are; for `"OR"` one `True` does. If nothing decides and one
# is unknown, all is unknown.

# %% [markdown] tags=["hints"]
# - What is the value that decides for `"OR"`, and what for `"AND"`? Give it a name first.
# - Three ends: the deciding value is among them; else `None` is among them; else they are all the same.
# - `in` looks for a value in a list. In the last case no value decided and none is unknown, so all are the opposite of the deciding one.

# %% tags=["exercise"]
def decide(word: str, values: list[bool | None]) -> bool | None:
    """What comparisons are together that are joined by AND or by OR."""
    ### BEGIN SOLUTION
    decides = word == "OR"
    if decides in values:
        return decides
    return None if None in values else not decides
    ### END SOLUTION


# %% tags=["check"]
check("18/decide", decide)

# %% [markdown]
# ## Round three: bits that save reading (14 minutes)
#
# A condition makes the broker read what nobody wants. Could the queue entry know the answer? It has no room for a city, but the broker knows the
# *conditions* of all groups: they stand in the heartbeats of consumers. So it can judge each message **once, when it is stored**, and keep the result: a bit for each group that wants it.
# This is off by default as well (`enableCalcFilterBitMap`, `enableConsumeQueueExt`).
#
# A bit for each group would need a table of groups that never changes. RocketMQ takes a **Bloom filter** instead: a short row of bits, in which each group has a few
# that follow from a hash of its name. For every group that wants a message its bits are set. The row's length follows from two settings: how many groups are
# expected, and how many percent of false "yes" one can live with. (The default is 32 groups and 20 %. Ours is shorter, to see more of it.)

# %%
expected, error = draw.between("expected", 2, 3), draw.one_of("error", [30, 40, 50])
bloom = BloomFilter(error, expected)
BITS = {"enable_consume_queue_ext": True, "enable_calc_filter_bit_map": True,
        "expect_consumer_num_use_filter": expected, "max_error_rate_of_bloom_filter": error}
wishes = {"large": condition, "small": "amount < 50",
          **{f"{name.lower()}-{draw.between(name, 1, 40)}": f"city = '{name}'" for name in cities}}
Table(f"rows of {bloom.m} bits, {bloom.k} for each group", ("group", "wants", "its bits"),
      [(group, wish, ", ".join(map(str, sorted(set(bloom.calc_bit_positions(f"{group}#Orders"))))))
       for group, wish in wishes.items()])

# %% [markdown]
# (With two bits for each group, both may fall on the same place.) The same orders once more, with all these groups, and with bits.

# %%
say(f"**{count}** orders, of which **{fulfilled}** fulfil the condition of the group `large`.")

# %% tags=["prediction"]
predict("bits-read", "How many orders does the broker read from its log now for the group with the condition (large)?",
        unit="orders", prediction=...)

# %% tags=["prediction"]
predict("bits-bytes", f"The queue entries of {count} orders take {20 * count} bytes. How many bytes more does the broker "
        f"write to keep {bloom.m} bits of each order?", unit="bytes", prediction=...)

# %%
lab = Lab(seed=seed)
shop = await open_shop(lab, {group: by_sql(wish) for group, wish in wishes.items()}, **BITS)
await shop.send(orders)
lab.run_for(seconds=25)
show_bars(f"{count} orders, with bits", "group", "orders", list(wishes), {
    "read from the log": [shop.read_for(group) for group in wishes],
    "came to the listener": [len(shop.handled[group]) for group in wishes],
})

# %%
read = shop.read_for("large")
reveal("bits-read", read, why="its bits were set for every order that it wants, and for some by groups that share them"
       if read > fulfilled else "its bits were set for the orders that it wants, and by chance for no other")

# %%
units = lab.brokers[0].store.find_consume_queue("Orders", 0).ext
reveal("bits-bytes", units.mapped_file_queue.max_offset,
       why=f"the unit of an order has a head of 20 bytes (size, hash, time, length), and {bloom.m // 8} of bits")

# %% [markdown]
# - A bit that is **not** set is a proof: the group does not want this message, and nobody reads it. A bit that is set proves nothing, since it may have been set for another group; so what passes is read and judged once
#   more (`ExpressionMessageFilter`). Nothing is lost, sometimes too much is read.
# - An entry of a queue has exactly 20 bytes, so the bits cannot go in there. They get a file of their own, `consumequeue_ext`, in which each message has a **unit**, and the
#   entry's hash is replaced by the unit's address. With the default settings a unit has 34 bytes: the queue takes 54 bytes a message in place of 20, and each entry costs a second look.
# - Judging has moved to the moment of storing (`CommitLogDispatcherCalcBitMap`), and there it is done for *every* group of the topic, for those that are switched
#   off, too (until they have been gone for a day), in the one thread that also writes the queues:

# %%
judged = sum(1 for record in lab.history.find("FilterBitMapCalculated")) * len(wishes)
Table("how often a condition was judged", ("when", "times"), [
    ("when orders were stored", judged),
    ("when they were read", sum(shop.read_for(group) for group in wishes)),
    ("it would have been, when read without bits", count * len(wishes)),
])

# %% [markdown]
# So bits do not make judging cheaper. They save *reading*, and pay for it with bytes and with work while storing. And now somebody comes later.

# %%
say(f"A new group wants the same, `{condition}`, beginning with the first order. All {count} orders have their bits.")

# %% tags=["prediction"]
predict("newcomer", "How many orders does the broker read for the newcomer?", unit="orders", prediction=...)

# %%
await shop.join("newcomer", by_sql(condition))
lab.run_for(seconds=25)
reveal("newcomer", shop.read_for("newcomer"),
       why="its condition was not there when these orders were judged, so their bits say nothing about it")

# %% [markdown]
# The broker notes when a condition was **born** (`ConsumerFilterData.bornTime`), and asks the bits only of messages stored after that. A group that
# changes its condition is born again. So the bits help those who were there all the time and fell behind, not those who come new, change their mind, or look back. In the end you will build bits
# that help these, too.
#
# ### Your turn: what the bits allow
#
# Write the question that is asked before a message is read. `row` are the message's bits as bytes, or `None` if it has none; bit 0 is the *lowest* of the first byte, bit 8 the lowest of the second. `positions` are the bits of the
# group. `stored_ms` is when the message was stored, `born_ms` when the condition was born. Return `False` only if the bits prove that the message is not wanted. A message of the same ms is not after.

# %% [markdown] tags=["hints"]
# - Two cases in which the bits prove nothing come first.
# - Bit number p stands in byte `p // 8`. Which power of two is it there? Or: how far does it have to be moved to the right to be the lowest?
# - `& 1` leaves the lowest bit of a number. All bits of the group have to be set, else the answer is no: Python has a word for "all of these".

# %% tags=["exercise"]
def may_want(row: bytes | None, positions: tuple[int, ...], stored_ms: int, born_ms: int) -> bool:
    """May the group want the message, as far as its bits say?"""
    ### BEGIN SOLUTION
    if row is None or stored_ms <= born_ms:
        return True
    return all(row[position // 8] >> position % 8 & 1 for position in positions)
    ### END SOLUTION


# %% tags=["check"]
check("18/may-want", may_want)

# %% [markdown]
# ## Break it: two members, two wishes (6 minutes)
#
# Nothing crashes here. Somebody deploys. The group `packers` has two members, and shares two queues between them: one each. The first member was started
# with the tag `paid`. Now the second one starts, from a newer version of the program, and wants `open`. Then the orders come.

# %%
lab = Lab(seed=seed)
shop = await open_shop(lab, queues=2)
await shop.join("packers", "paid", machine="member-1")
lab.run_for(seconds=2)
await shop.join("packers", "open", machine="member-2")
lab.run_for(seconds=40)
paid = sum(order["tag"] == "paid" for order in orders)
say(f"**{count}** orders are sent: **{paid}** paid, **{count - paid}** open.")

# %% tags=["prediction"]
predict("two-wishes", f"{count} orders are sent, each with one of the two tags. How many of them come to a listener?",
        unit="orders", prediction=...)

# %%
await shop.send(orders)
lab.run_for(seconds=30)
Table("what came to the listeners", ("member", "subscribed to", "paid orders", "open orders"), [
    (member, wish, *(sum(message.tags == tag for message in shop.handled[member]) for tag in ("paid", "open")))
    for member, wish in (("member-1", "paid"), ("member-2", "open"))
])

# %%
reveal("two-wishes", sum(map(len, shop.handled.values())),
       why="the broker keeps one wish for the group, the newest; member-1 gets what member-2 wants, and drops it")

# %%
broker, store = lab.brokers[0].running(), lab.brokers[0].store
progress = broker.consumer_offset_manager.query_offsets("packers", "Orders")
Table("the group packers, as the broker knows it", ("queue", "messages", "consumed up to"),
      [(queue, store.get_max_offset_in_queue("Orders", queue), progress[queue]) for queue in (0, 1)])

# %% [markdown]
# Both queues are read to their end, nothing is waiting, nothing failed, nobody is told. A broker keeps **one** subscription for each group and topic, that with the newest version
# (`ConsumerGroupInfo.updateSubscription`), and filters for *all* members by it. Of the queue of `member-1` it passes over what is paid. What is open it sends, and `member-1`
# compares the tag itself and throws it away (`PullAPIWrapper.processPullResult`). The group's offset moves on over both.
#
# A rolling deployment with a changed filter does just this for as long as it takes. So a new filter gets a new group. On the board you see the one wish that
# counts; go back with **Previous** to the moment when it changed.

# %%
Stepper(lab, [FiltersBoard])

# %% [markdown]
# ## Build it: a filter that reads ten times less (18 minutes)
#
# RocketMQ's bits are about *groups*, so they are worth nothing to a group that comes later. Notes about the **message** would be: whoever comes can be judged by them.
# You have **two bytes** for each order, a number of 16 bits. An order may have a `city` (a text; there are two dozen cities in each world, and others in the next), and an `amount`, the text of a whole number
# from 0 to 9,999. Each of them may be missing.
#
# - `note(properties)` is called when an order is stored, and returns its 16 bits, a number from 0 to 65,535. `properties` are texts, `{"city": "Oslo", "amount": "120"}`.
# - `may(bits, name, sign, value)` is called when somebody reads. *May* an order with these bits fulfil `name sign value`? The name is `"city"` with `"="` or `"<>"` and
#   a text as value, or `"amount"` with `"="`, `"<"` or `">"` and a number. Conditions are made of these with `AND`: as soon as you say `False` to one part, the order is passed over without being read.
#
# In each of 50 worlds a hundred orders are stored with your notes, in a real broker, in the units of round three. Then **the broker is started anew**: what reads the notes is another process
# than what wrote them. Eight readers come whom nobody has known, with eight conditions. Judged is this:
#
# 1. Nobody misses an order: `False` is a proof, as with RocketMQ's bits. An order whose property is missing fulfils nothing.
# 2. All together read at most a tenth of what they would have read without notes.

# %% [markdown] tags=["hints"]
# - Some bits for the city, some for the amount: `high * 256 + low` packs two numbers below 256 into one, and `divmod` takes them apart. First do it for one of them, and run the check: it tells what is read too much.
# - A text becomes a small number by a hash and `%`. It has to be a hash that is the same in every process; Python's own `hash` of a text is not (look at `zlib.crc32`). Two cities may get the same number: what does that allow you to say for `=`, and what for `<>`?
# - Amounts in one drawer of, say, 40 look alike. So the drawer of the limit itself may hold orders on both sides of it. Keep one number, for example 0, for "is missing", and say `False` to it whatever the sign.

# %% tags=["exercise"]
from zlib import crc32


class Notes:
    """Two bytes about each order, for readers who come later."""

    def note(self, properties: dict[str, str]) -> int:
        """What is kept of an order with these properties: a number from 0 to 65,535."""
        ### BEGIN SOLUTION
        place, drawer = 0, 0
        if "city" in properties:
            place = self.place_of(properties["city"])
        if "amount" in properties:
            drawer = self.drawer_of(int(properties["amount"]))
        return place * 256 + drawer
        ### END SOLUTION

    def may(self, bits: int, name: str, sign: str, value: str | int) -> bool:
        """May an order with these bits fulfil `name sign value`?"""
        ### BEGIN SOLUTION
        place, drawer = divmod(bits, 256)
        if name == "city":
            return place == self.place_of(value) if sign == "=" else place > 0
        limit = self.drawer_of(value)
        if sign == "=":
            return drawer == limit
        return drawer >= limit if sign == ">" else 0 < drawer <= limit

    def place_of(self, city):
        """A number from 1 to 255 for a city, the same in every process."""
        return 1 + crc32(city.encode()) % 255

    def drawer_of(self, amount):
        """The drawer from 1 to 250 in which an amount lies."""
        return 1 + amount // 40
        ### END SOLUTION


# %% tags=["check"]
check("18/notes", Notes)

# %% [markdown]
# To look into a world in which yours fails, keep the verdict (`verdict = check(...)`) and call `verdict.open()`; then put the lab into `Stepper(lab, [FiltersBoard])`, and
# press **Now**: each reader is a row.
#
# What you built is known under other names: data bases keep the smallest and largest value of a block of rows (*zone maps*, *min-max indexes*) and Bloom filters of
# values, so that a query can leave blocks unread. Why does RocketMQ keep bits about groups instead? They fit **every** condition, also `CONTAINS` or
# one with three properties in parentheses, since it is the condition itself that was judged. Yours fit only what you have foreseen.

# %% [markdown] tags=["teacher"]
# Most come quickly to a hash for the city and stumble over three things: `hash()` (the broker's new start finds it), strict comparison of drawers (orders
# in the drawer of the limit are missed), and `<>` by the number of the city (two cities with one number). Let those who are done early try it with one byte: four bits and four bits just pass in most worlds.

# %% [markdown]
# ## What articles say, and today's RocketMQ (3 minutes)
#
# Of the articles that mqlab began with ([docs/seeds.md](../docs/seeds.md)) one shows the bits in passing: a held pull is asked with `new ConsumeQueueExt.CqExtUnit(tagsCode, msgStoreTime, filterBitMap)`. That is the unit of round three:
# an order that a group's bits say no to does not even wake its pull.
#
# - Older books filter by a **class** of your own, which is sent to the broker's machine and runs in a *filter server*. It was given up; conditions took its place.
# - "The consumer filters by tag": it does, but as the second one; the broker does the work by the hash.
# - In 5.x a client of the new kind sends its filter with each request to the proxy, tags or SQL92, and the broker judges as here. A pop brings its condition along, and no bits help it.
# - While a message waits for something (a delay, the decision of a transaction) it lies in another topic, and the index knows its key under the name of *that* topic.
#   Asked for in yours, it is not there.
#
# Where to read on: `store/.../index/IndexFile.java`, `client/.../impl/MQAdminImpl.java`, `broker/.../filter/ExpressionMessageFilter.java`, `CommitLogDispatcherCalcBitMap.java` and
# `ConsumerFilterManager.java`, `filter/.../util/BloomFilter.java`, `filter/.../expression/ComparisonExpression.java`.
#
# Three questions to take home:
#
# 1. An index file has 5 million slots and room for 20 million items. How many items does a look-up pass on average when it is full? And if one customer's name is the key of one million of them?
# 2. A topic gets 10,000 messages a second, and 40 groups filter it by conditions. How often is a condition judged each second, with bits and without? When do the bits pay nevertheless?
# 3. A colleague wants to move from tags to conditions, "since a condition can do all that a tag can". What do you ask him about his slowest group?
#
# ## What you expected, and what was seen

# %%
reveal()
