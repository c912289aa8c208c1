# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   mqlab:
#     title: The store from the inside
#     question: What does a broker have on its disk, and what is left of it after a power cut?
#     objectives:
#       - read a message in the commit log, and a queue's pointer to it, byte by byte
#       - say what a power cut, a kill, a deleted folder and a rotten byte each take away
#       - write the rule that finds the end of a torn log
#     minutes: 89
#     prerequisites: [00 Tour]
#     wrong_predictions:
#       - "record-bytes: those of the body, or a few more; the head alone has 91 bytes, and the properties are text"
#       - "who-filters: the broker, since the tag is in the subscription; it has only the hash of the tag in its queue"
#       - "unsafe-for: 0.5 s, the interval of the flush thread; or 10 s, counted from the send"
#       - "left-after-cut: all ten, since send returned SEND_OK; or none, since nothing was flushed"
#       - "queues-deleted: none, since the queues are gone"
#       - "queues-deleted-later: the same number again; two quiet minutes have moved the checkpoint"
#       - "bad-byte-killed: all but the one with the bad byte"
#       - "bad-byte-stopped: the same number again; after a clean stop nobody reads the middle of the log"
# ---

# %% tags=["parameters"]
student_id = ""

# %% [markdown]
# A **broker** is the server that takes messages from producers, keeps them, and hands them to consumers. In lab 00
# we saw a message arrive there. Now we open the machine's disk and look at what the broker wrote on it: which bytes,
# in which files, and when they are really there. Then we cut the power.
#
# The first cell builds a small world: a name server, one broker, one producer. A real broker's files are large (1
# GiB for a file of messages, 420 MB for a file of the index), so that one would wait for hours until the first is
# full. Ours are small. Nothing else is changed.

# %%
from collections import Counter
from zlib import crc32

from mqlab import ConsumeConcurrentlyStatus, Lab, Message, scenarios
from mqlab.check import NotSolvedYet, check, draws_for, predict, reveal, say, seed_for
from mqlab.errors import LearnerError
from mqlab.protocol.hashing import java_string_hash
from mqlab.scenarios.store import SMALL_FILES
from mqlab.views import StoreMap, Table, TornLog, disk_table, index_steps
from mqlab_widgets import Stepper

seed = seed_for(student_id, "02")
draw = draws_for(seed)
SMALL_FILES

# %%
lab = Lab(seed=seed)
lab.name_server()
broker = lab.broker("broker-a", **SMALL_FILES)
lab.create_topic("Orders", 2)
producer = lab.producer("shop")
await producer.start()

# %% [markdown]
# Six orders, each with a short body, a **tag** (a word that consumers can choose by) and a **key** (a word
# by which a message can be found again). Then 5 ms pass, and we list the disk.

# %%
body = b"hello again and again"[: draw.between("bytes of the body", 2, 21)]
tag = draw.one_of("tag", ["paid", "new", "gift", "express", "refunded"])
for number in range(6):
    await producer.send(Message("Orders", body, tags=tag, keys=f"order-{number}"))
lab.run_for(ms=5)
disk = broker.node.disk
disk_table(disk, "store/")

# %% [markdown]
# Two folders matter today:
#
# - `commitlog`: the messages themselves. **All topics and all queues of a broker share this one log**, and each
#   message is written behind the one before. A file has its full size from the start; its name is the offset of its
#   first byte in the whole log. The next file is made ahead of time, so two are there.
# - `consumequeue/<topic>/<queue>`: for each queue, where in the log its messages are.
#
# The last column counts **pages**: the operating system keeps written bytes in its memory, in pages of 4 KiB, and
# takes its time to bring them to the disk. Bringing them there is called a **flush**. Remember that column. It will
# cost us orders.

# %% [markdown]
# ## Round one: bytes (20 minutes)
#
# The topic was created with two queues, and the producer takes them in turn.

# %% tags=["prediction"]
predict("record-bytes", f"The body of an order has {len(body)} bytes, its tag is {tag}. "
        "How many bytes does the order take in the commit log?", unit="bytes", prediction=...)

# %%
record = lab.queue("Orders", 0).record(1)
record

# %%
reveal("record-bytes", len(record.data),
       why=f"91 bytes of fixed fields, 6 of topic, {len(body)} of body; all the rest is properties.")

# %% [markdown]
# This is what `MessageExtEncoder` wrote, and the same bytes travel to a consumer later. The fixed fields take 91
# bytes. The properties are **text**, with a byte 1 between name and value and a byte 2 behind each pair; tag and key
# are among them, and so are five that producer and broker added. In a small message the properties are the message.
#
# Two fields tell a record where it is: `physicalOffset`, its place in the log, and `queueOffset`, its place in its
# queue. Here is the whole store as a picture. Colours are queues.

# %%
StoreMap.of(disk)

# %% [markdown]
# Why one log for all? A disk is fast when it writes at one place, one byte behind the other. With a file of messages
# for each queue, a broker with ten thousand queues would write at ten thousand places. So RocketMQ writes every
# message once, at the end of one file (`CommitLog`), and keeps for each queue only a list of pointers
# (`ConsumeQueue`). An entry of that list always has 20 bytes (`CQ_STORE_UNIT_SIZE`), so that the n-th message of a
# queue is found with one multiplication:

# %%
lab.queue("Orders", 0).entry(1)

# %% [markdown]
# Three numbers: where, how long, and the **hash of the tag**. A hash is a number computed from a text; Java's takes
# `h = 31 * h + c` for each character `c`, in 32 bits with a sign. There is no room for the tag itself in a fixed
# number of bytes, but always for its hash.

# %%
java_string_hash(tag)

# %% [markdown]
# Forty messages more, to look around yourself: click the broker, open the tab **Machine**, and there
# **bytes of message**. The buttons above it lead from message to message and from queue to queue. (Shown are the newest bytes; press **Now** if the view has
# gone back. This world is to play with; the cells below go on with our own.)

# %%
Stepper(scenarios.get("small-files").build(seed, parameters={"messages": 40}))

# %% [markdown]
# What if we ask for an entry that is not there? The machine says what there is (you will meet such messages again):

# %%
try:
    lab.queue("Orders", 0).entry(99)
except LearnerError as problem:
    print(problem)

# %% [markdown]
# The third thing on the disk is the **index**, which finds messages by key. We ask for one key and follow the
# machine through the file: the hash of `topic#key` chooses one of 100 slots, the slot names the newest item, each
# item names the one before it in the same slot. (mqlab writes the index when somebody asks; RocketMQ writes the same
# bytes along with the queues.)

# %%
found = broker.store.query_message("Orders", "order-3", 32, 0, 2**62)
index_steps(disk, "Orders", "order-3", slots=SMALL_FILES["max_hash_slot_num"])

# %% [markdown]
# The index does not have the key either, only its hash and a place in the log (`IndexFile`). Each message has at
# least one key even if its sender gave none: the `UNIQ_KEY` that the producer makes up. That is why six orders made
# twelve items.

# %% [markdown]
# ### Your turn: one entry, by its number
#
# A queue that has grown is cut into several files, all of one size. As in the log, a file's name is the offset of its
# first **byte** in the whole queue, in 20 digits. Write the look-up of the n-th entry, in three lines. `files` maps the
# names to the bytes. An entry is a place in the log (8 bytes), a size (4) and a hash (8), all with a sign, and big-endian: the
# most significant byte first. `struct.unpack_from(">qiq", data, at)` reads these three numbers from byte `at` on.

# %% [markdown] tags=["hints"]
# - At which byte of the whole queue does entry number n begin? In which file is this byte, and at which place of the file?
# - All files have one size, `len(next(iter(files.values())))`. The file begins at the last multiple of it that is not behind the
#   byte at which the entry begins. Whole-number division finds it.
# - The name of a file is the number of its first byte, with zeros in front up to 20 digits. The place in the file is counted from that byte.

# %% tags=["exercise"]
import struct


def read_entry(files: dict[str, bytes], number: int) -> tuple[int, int, int]:
    """Place in the log, size and hash of the tag of the n-th entry of a queue, counted from 0."""
    ### BEGIN SOLUTION
    file_bytes = len(next(iter(files.values())))
    first = number * 20 // file_bytes * file_bytes
    return struct.unpack_from(">qiq", files[f"{first:020d}"], number * 20 - first)
    ### END SOLUTION


# %% tags=["check"]
check("02/read-entry", read_entry)

# %% [markdown]
# ## Round two: two tags, one hash (12 minutes)
#
# A hash of 32 bits cannot tell all texts apart. Two short ones that share a hash:

# %%
java_string_hash("Aa"), java_string_hash("BB")

# %% [markdown]
# A consumer subscribes to the tag `Aa` only. It asks the broker for new messages; the broker has none, so it holds
# the request until one comes (lab 05 is about that). What the consumer's code, the **listener**, gets to see, we
# collect in a list.

# %%
handled = []

def listener(messages, context):
    handled.extend(messages)
    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

consumer = lab.consumer("warehouse")
consumer.subscribe("Orders", "Aa")
consumer.register_message_listener(listener)
await consumer.start()
lab.run_for(seconds=2)
len(handled)

# %% tags=["prediction"]
predict("who-filters", "Now a message with the tag BB is sent. Who keeps it from the listener?",
        choices=["the broker: it compares the tags",
                 "the consumer: the broker sends it over, since the hashes are equal",
                 "nobody: the listener gets it"], prediction=...)

# %%
before_bb = len(lab.history)
await producer.send(Message("Orders", b"not for you", tags="BB", keys="bb-1"))
lab.run_for(ms=50)
answered = next(iter(lab.history.find("PullAnswered", start=before_bb)), None)
reveal("who-filters", "a" if answered is None or answered.messages == 0 else "b" if not handled else "c",
       why="The broker compares hashes, the consumer compares the tags themselves.")

# %%
stored, dropped = lab.history.last("MessageStored"), lab.history.last("MessagesFiltered")
lab.space_time(stored.ts_ms - 1, dropped.ts_ms, nodes=["broker-a", "consumer-1"], requests=["PULL_MESSAGE"],
               kinds=["MessageStored", "MessageDispatched", "PullWoken", "MessagesFiltered"])

# %% [markdown]
# The broker wants to decide without reading the log: the queue's entry has been read already, the record may lie anywhere on
# the disk. So it compares 8 bytes (`ExpressionMessageFilter.isMatchedByConsumeQueue`). That can let too much
# through, never too little. The exact comparison is the consumer's (`PullAPIWrapper.processPullResult`), which has
# the record anyway. The price of a shared hash is one message that crosses the network for nothing. A tag with
# another hash does not even get that far:

# %%
before_cc = len(lab.history)
await producer.send(Message("Orders", b"not for you either", tags="CC", keys="cc-1"))
lab.run_for(ms=50)
[record.kind for record in lab.history.find(("MessageDispatched", "PullAnswered", "MessagesFiltered"), start=before_cc)]

# %% [markdown]
# ### Your turn: another tag with the same hash
#
# How rare are such pairs? Write a function that finds a partner for any tag of two or more small letters: another text of the
# same length with the same hash. One line is enough. Look at `Aa` and `BB` once more, and at `h = 31 * h + c`: what does
# it do to the hash if the first character becomes the next one in the alphabet, and which change of the second character makes
# up for it? `ord(c)` is a character's number, `chr(n)` the character of a number.

# %% [markdown] tags=["hints"]
# - For two characters the hash is `31 * first + second`. From `Aa` to `BB`: by how much does the first number change, and by how much
#   the second?
# - The first character one further, the second one 31 back. What stands behind them may stay as it is.
# - `ord` makes a number of a character, and `chr` a character of a number. Three pieces are put together: two new characters and the rest.

# %% tags=["exercise"]
def same_hash(tag: str) -> str:
    """Another text, as long as the tag, with the same hash."""
    ### BEGIN SOLUTION
    return chr(ord(tag[0]) + 1) + chr(ord(tag[1]) - 31) + tag[2:]
    ### END SOLUTION


# %% tags=["check"]
check("02/same-hash", same_hash)

# %% [markdown]
# ## Round three: the power is cut (14 minutes)
#
# `send` returns `SEND_OK`. Is the message on the disk? By default (`flushDiskType = ASYNC_FLUSH`) the broker answers
# as soon as the bytes are in the log's pages in memory. A thread named `FlushRealTimeService` flushes them later: it
# looks every 500 ms. We let the world run until it has just flushed, wait some seconds, and send one small message.

# %%
lab.run_until_event("CommitLogFlushed")
waited_s = draw.between("seconds after the flush", 1, 8)
lab.run_for(seconds=waited_s)
sent = await producer.send(Message("Orders", b"hello", tags="paid"))
sent_at = lab.now_ms
sent.send_status

# %% tags=["prediction"]
predict("unsafe-for", f"Sent {waited_s} s after a flush: for how long could a power cut still take it away?",
        unit="s", prediction=...)

# %%
flushed = lab.run_until_event("CommitLogFlushed")
reveal("unsafe-for", round((flushed.ts_ms - sent_at) / 1_000, 1),
       why=f"Below four dirty pages it flushes only every 10 s, and {waited_s} s of these were over.")

# %% [markdown]
# Three constants of `MessageStoreConfig` work together: `flushIntervalCommitLog` (500 ms),
# `flushCommitLogLeastPages` (4: with less than four pages to write, it is not worth it), and
# `flushCommitLogThoroughInterval` (10 s: then everything is written). The quieter the broker, the longer a message
# is unsafe.
#
# ### Your turn: is it worth a flush?
#
# Write the question that the thread asks at each look. `written` and `flushed` are the ends of what is written and of what is
# on the disk (bytes from the beginning of the file), `since_ms` is the time since everything was last written. Pages have
# 4096 bytes. The thread counts from the page in which `flushed` lies to the page in which `written` lies: from 4 pages on it
# flushes. When 10 s are over it flushes whatever there is, if there is anything.

# %%
say(f"When your message was sent, {waited_s} s after a flush, the answer was no: too few pages, and too early.")

# %% [markdown] tags=["hints"]
# - Two reasons for a flush; first the one with the time. What if nothing new was written?
# - The page in which a byte lies is `byte // 4096`. Subtract the two page numbers.
# - So one of two questions is asked, and the clock says which: is there anything new at all, or are there four pages between the two?

# %% tags=["exercise"]
def flushes(written: int, flushed: int, since_ms: int) -> bool:
    """Does the thread flush at this look?"""
    ### BEGIN SOLUTION
    if since_ms >= 10_000:
        return written > flushed
    return written // 4096 - flushed // 4096 >= 4
    ### END SOLUTION


# %% tags=["check"]
check("02/flushes", flushes)

# %% [markdown]
# ### Pages without power
#
# Now ten orders of 1,500 bytes each, all acknowledged. The consumer wants them (tag `Aa`). 300 ms after the last one
# the machine loses its power.

# %%
statuses = []
for number in range(10):
    body = f"order {number} ".encode().ljust(1_500, b".")
    result = await producer.send(Message("Orders", body, tags="Aa", keys=f"big-{number}"))
    statuses.append(str(result.send_status))
lab.run_for(ms=300)
Counter(statuses)

# %% tags=["prediction"]
predict("left-after-cut", "The power is cut. Which of the ten orders does the broker have when it is up again?",
        choices=["all ten: each send returned SEND_OK",
                 "none: nothing was flushed",
                 "the first n, and n is luck: it may be 0, and it may be 10",
                 "some of them, with gaps: order 3 can be lost and order 4 be there"], prediction=...)

# %%
LOG = "store/commitlog/00000000000000000000"
before = disk.read_bytes(LOG)
broker.power_off()
after = disk.read_bytes(LOG)
broker.restart()
lab.run_for(seconds=1)
torn = TornLog(before, after, broker.store.recovery.end)
torn

# %%
states = [record.state for record in torn.records[-10:]]
gaps = "kept" in states[states.count("kept"):]
reveal("left-after-cut", "d" if gaps else "c",
       why="Pages are lost in any order, but recovery stops at the first damage.")

# %% [markdown]
# The upper row is what the power cut did. Of the pages that were not flushed each one may have reached the disk or
# not; here chance decides for each page. (A real operating system also writes pages on its own, within
# about 30 seconds, and in any order it likes.) A page that was lost holds what it held at the last flush: old
# records, then zeros.
#
# The lower row is what the broker made of it. It reads the log from record to record and stops at the first one that
# is not whole. **Everything behind is dropped, whole records too.** This is one world; here are forty more of each
# kind.

# %%
def left(world_seed, **parameters):
    world = scenarios.get("orders-cut-off").play(world_seed, parameters=parameters)
    return sum(row[-1] for row in world.topics().rows)

fates = {"power cut": {}, "power cut, SYNC_FLUSH": {"flush": "SYNC_FLUSH"}, "kill -9": {"how": "crash"}}
counts = {name: Counter(left(world, **parameters) for world in range(40)) for name, parameters in fates.items()}
Table("in how many of 40 worlds are n of ten acknowledged orders left?", ["n =", *(str(n) for n in range(11))],
      [[name, *(count[n] or None for n in range(11))] for name, count in counts.items()])

# %% [markdown]
# - With `SYNC_FLUSH` the broker answers when the record is on the disk (`GroupCommitService`): what was acknowledged
#   stays.
# - When only the **process** dies (`kill -9`), nothing is lost in either mode: the pages belong to the operating
#   system, which is alive. Measured on a real RocketMQ 5.3.3, killed while a producer was sending: 386 sends
#   acknowledged, 387 messages found after the restart. One more than acknowledged: its answer was still on the way.
#
# And our consumer? The queue entries, and the answers to held requests, do not wait for a flush. (With `SYNC_FLUSH`
# they do: dispatching stops at the flushed end of the log, `getConfirmOffset`.)

# %%
Table("ten orders", ("who", "orders"),
      [("acknowledged to the producer", len(statuses)), ("handled by the consumer", len(handled)),
       ("known to the broker after the cut", states.count("kept"))])

# %% [markdown]
# If the last number is smaller than the second, the warehouse has packed orders that the broker has never heard of. What `SYNC_FLUSH`
# costs we measure with a disk on which a flush takes 4 ms: the mean time of a send.

# %%
async def send_ms(flush):
    shop = Lab(seed=seed)
    shop.name_server()
    machine = shop.broker("broker-a", flush_disk_type=flush, **SMALL_FILES)
    shop.create_topic("Orders", 1)
    sender = shop.producer("shop")
    await sender.start()
    await sender.send(Message("Orders", b"the first one asks for the route"))
    machine.node.disk.flush_us = 4_000
    began = shop.now_ms
    for _ in range(50):
        await sender.send(Message("Orders", b"hello"))
    return round((shop.now_ms - began) / 50, 2)

Table("one producer, one message after the other", ("flushDiskType", "ms per send"),
      [(flush, await send_ms(flush)) for flush in ("ASYNC_FLUSH", "SYNC_FLUSH")])

# %% [markdown]
# ## Break it: a folder is gone, a byte is rotten (14 minutes)
#
# How does a broker know whether it was stopped in good order? While it runs there is a small file, `abort`; a clean
# stop removes it. If it is there at the start, the last stop was a crash.
#
# The scenario `small-files` sends some hundred messages, one every 20 ms. Then we stop the broker, by a kill (`kill -9`: the
# operating system ends the process at once) or in good order; do some damage to its disk; start it again, and count
# what can be consumed.

# %%
messages = draw.between("messages", 360, 440)


async def shop_after(damage, *, clean=False, quiet_s=0):
    """A shop with its messages, its broker stopped (after a quiet time), its disk damaged, its broker started again."""
    shop = scenarios.get("small-files").play(seed, seconds=quiet_s, parameters={"messages": messages})
    machine = shop.processes["broker-a"]
    if clean:
        await machine.running().shutdown()
    machine.crash()
    damage(machine.node.disk)
    machine.restart()
    return shop.run_for(seconds=1)


def consumable(shop):
    return sum(row[-1] for row in shop.topics().rows)


say(f"Your shop has **{messages} messages**.")

# %% [markdown]
# First damage: the folder `consumequeue` is deleted, with all queues and all pointers. The log stays.

# %%
def delete_queues(disk):
    disk.rmtree("store/consumequeue")

# %% tags=["prediction"]
predict("queues-deleted", f"Killed, all queues deleted, started again. How many of the {messages} can be consumed?",
        unit="messages", prediction=...)

# %%
shop = await shop_after(delete_queues)
shop.topics()

# %%
reveal("queues-deleted", consumable(shop),
       why="Every record says its topic, queue and queue offset: the log is enough.")

# %% [markdown]
# The queues are only a view of the log: `CommitLog.recoverAbnormally` reads the records and **dispatches** each one
# again, that is, writes its queue entry. Measured on a real 5.3.3 with 387 messages, killed about 18 s after
# the first one, folder deleted: 387 of 387.
#
# So nothing can happen to queues? The same again, but between the last message and the kill the broker has two quiet
# minutes.

# %% tags=["prediction"]
predict("queues-deleted-later", f"The same after two quiet minutes. How many of the {messages} can be consumed?",
        unit="messages", prediction=...)

# %%
shop = await shop_after(delete_queues, quiet_s=120)
shop.topics()

# %%
reveal("queues-deleted-later", consumable(shop),
       why="Recovery does not begin at the first file, but where the checkpoint says.")

# %%
recovery = shop.processes["broker-a"].store.recovery
recovery.started_at, recovery.end, recovery.records

# %% [markdown]
# Recovery began at this offset, ended at that one, and read so many records. A log of terabytes cannot be read from
# its beginning after each crash. So the broker notes in the file `checkpoint` up to which time log and queues are
# flushed (`StoreCheckpoint`), and after a crash it begins with the newest file whose first message is at least 3 s
# older than that. Whatever lies before is believed to have its queue entries. Two quiet minutes are enough for the
# checkpoint to catch up (once a minute the queues are flushed to their last page), and the queues that are built now
# begin in their middle:

# %%
shop.queue("Orders", 0).min_offset, shop.queue("Orders", 0).max_offset

# %% [markdown]
# The older messages are still in the log. No queue points at them, no consumer will ever see them. This one was not
# measured on a real broker; it follows from the rule in `ConsumeQueueStore.isMappedFileMatchedRecover`. (In the
# measurement above the checkpoint was young: less 3 s, it lay before the second file of the log, so that recovery
# began at the first.) It is the *clean* stop that forgives here: without `abort`, recovery compares the log with the
# queues themselves, finds none, and reads all. (Measured on the real one, `abort` and the folder removed by hand:
# 387 of 387.)

# %%
consumable(await shop_after(delete_queues, clean=True, quiet_s=120))

# %% [markdown]
# ### A rotten byte
#
# Disks forget. One byte in the body of one message changes while the broker is down. Each record has a checksum of its body, `bodyCRC`: a number that comes out differently if a byte
# has changed.

# %%
victim = draw.between("the rotten message", 90, 180)
place = list(shop.history.find("MessageStored"))[victim].commit_log_offset


def rotten_byte(disk):
    """Turn the first byte of the victim's body into another one; a body begins 88 bytes behind its record."""
    file = disk.open(f"store/commitlog/{place // 65_536 * 65_536:020d}")
    at = place % 65_536 + 88
    file.write(at, bytes([file.read(at, 1)[0] ^ 0xFF]))


say(f"It is message number **{victim}** of {messages}, counted from 0.")

# %% tags=["prediction"]
predict("bad-byte-killed", f"Killed, the byte changes, started again. How many of the {messages} are left?",
        unit="messages", prediction=...)

# %% tags=["prediction"]
predict("bad-byte-stopped", "Stopped in good order, the byte changes, started again. How many are left?",
        unit="messages", prediction=...)

# %%
shop = await shop_after(rotten_byte)
shop.history.last("StoreRecovered").reason

# %%
reveal("bad-byte-killed", consumable(shop), why="Recovery ends the log at the first record that is not good.")

# %% [markdown]
# Every message behind it is dropped, although all of them are good. Measured on a real 5.3.3 with 387 messages of
# these sizes, message 127 damaged: 127 were left. Now the clean stop:

# %%
shop = await shop_after(rotten_byte, clean=True)
reveal("bad-byte-stopped", consumable(shop), why="After a clean stop only the end of the log is read.")

# %% [markdown]
# Nobody notices: `recoverNormally` begins with the file in which the queues end. Does the consumer notice? We let
# one read everything, and compute the checksum ourselves.

# %%
handled = []
auditor = shop.consumer("auditors")
auditor.subscribe("Orders", "*")
auditor.subscribe("Payments", "*")
auditor.register_message_listener(listener)
await auditor.start()
shop.run_for(seconds=60)
rotten = [message for message in handled if crc32(message.body) & 0x7FFFFFFF != message.body_crc]
len(handled), [(message.keys, message.body[:12]) for message in rotten]

# %% [markdown]
# The rotten message was consumed, and its listener said `CONSUME_SUCCESS`. The client's decoder can compare the
# checksum, but pulled messages are decoded without it (`MessageDecoder.decode`, `checkCRC = false`). And the
# checksum covers the body only: tag and key are not protected unless `enabledAppendPropCRC` is on, which is not the
# default.

# %% [markdown]
# ## Build it: find the end of a torn log (25 minutes)
#
# Write the heart of `recoverAbnormally`. Your function gets the files of a log, all of one size and in order, and
# returns the offset at which the log ends: where the first thing begins that is neither a good record nor a blank.
#
# | bytes of a record | what | |
# |---|---|---|
# | 0 to 3 | size of the whole record | at least 91 |
# | 4 to 7 | magic code | `0xDAA320A7` for a message, `0xCBD43194` for a blank |
# | 8 to 11 | CRC of the body | the lower 31 bits of `crc32` |
# | 84 to 87 | length of the body | |
# | 88 ... | body | |
# | then 1 | length of the topic | then the topic |
# | then 2 | length of the properties | then the properties, and the record is over |
#
# A **blank** stands at the end of a file that has no room for the next record: the log goes on at the start of the
# next file. A record is good if its size fits into the file, its magic code is that of a message, its CRC is right,
# and its parts add up to its size. All numbers are big-endian and without a sign; `number(data, at, size)`, which is
# given, reads one. Behind the end of the data it reads 0.
#
# The check damages logs of a running store: power cuts, rotten bytes, rotten lengths, and some are left whole. The
# judge is the store's own recovery.

# %% [markdown] tags=["hints"]
# - Two loops: over the files, and within a file from record to record. A blank leaves the inner loop; anything that is
#   not good returns; a good record moves `at` on by its size. First do this with magic code and size alone, and run the check.
# - The end is counted over the whole log: `number of the file * size of a file + at`. After the magic code and the size test
#   the body: `crc32(body) & 0x7FFFFFFF` against bytes 8 to 11, where the body is `data[at + 88 : at + 88 + length]`.
# - Then add up. With `topic_at = at + 88 + body length` the length of the topic is `number(data, topic_at, 1)`; that of
#   the properties is `number(data, properties_at, 2)` with `properties_at = topic_at + 1 + topic length`. The record is good only
#   if `properties_at + 2 + properties length == at + size`.

# %% tags=["exercise"]
from zlib import crc32


def number(data: bytes, at: int, size: int) -> int:
    """The number in `size` bytes from `at` on."""
    return int.from_bytes(data[at : at + size], "big")


def find_end(files: list[bytes]) -> int:
    """The offset at which a torn commit log ends."""
    ### BEGIN SOLUTION
    for count, data in enumerate(files):
        at = 0
        while number(data, at + 4, 4) != 0xCBD43194:
            size = number(data, at, 4)
            topic_at = at + 88 + number(data, at + 84, 4)
            properties_at = topic_at + 1 + number(data, topic_at, 1)
            if (
                number(data, at + 4, 4) != 0xDAA320A7
                or not 91 <= size <= len(data) - at
                or crc32(data[at + 88 : topic_at]) & 0x7FFFFFFF != number(data, at + 8, 4)
                or properties_at + 2 + number(data, properties_at, 2) != at + size
            ):
                return count * len(data) + at
            at += size
    return len(files) * len(files[0])
    ### END SOLUTION


# %% tags=["check"]
check("02/find-end", find_end)

# %% [markdown]
# It is tempting to save the whole records behind a hole. Think of what a consumer would see: queue offsets with a
# gap, orders that overtake older ones, and a transaction's end without its beginning. A log that ends early is a log
# one can reason about.

# %% [markdown] tags=["teacher"]
# Students who keep what lies behind the hole have not done something stupid: Kafka's and PostgreSQL's logs end at
# the first bad record as well, and for the same reason. The CRC mask (31 of 32 bits) costs the most time; the
# failure at offset 0 gives it away.

# %% [markdown]
# ## What articles say, and today's RocketMQ (4 minutes)
#
# - Some articles let the broker flush first and then build queue and index. It is the other way round: with
#   `ASYNC_FLUSH` an entry is built within a millisecond or so (`ReputMessageService`), the flush comes up to 10 s
#   later. We saw a consumer handle what the broker then forgot.
# - In one of them the consumer takes offset and size from the consume queue and hands them to the broker. A consumer
#   knows only a *queue offset*; the 20 bytes never leave the broker.
# - After a clean stop older releases read the last three files of the log. Today recovery begins where the queues
#   end.
# - In 5.x the queues can also live in RocksDB, a key-value store (`storeType = defaultRocksDB`); the commit log
#   stays what it is.
#
# **Where to read on**, all in `store/src/main/java/org/apache/rocketmq/store/`: `CommitLog.java`
# (`checkMessageAndReturnSize`, `recoverAbnormally`, `FlushRealTimeService`), `ConsumeQueue.java`,
# `index/IndexFile.java`, `StoreCheckpoint.java`, `queue/ConsumeQueueStore.java`. In mqlab:
# `mqlab/store/recovery.py`, and `mqlab store recover DIR`, which says what a broker would make of a directory.
#
# **Three questions to take home**
#
# 1. With `SYNC_FLUSH` and 4 ms for a flush, how many messages a second does one producer send that waits for each
#    answer? And a hundred such producers together? (`GroupCommitService` flushes once for all that wait.)
# 2. After the power cut the next new order gets a queue offset that our consumer has passed already. What will the
#    consumer do with its next request, and which orders may it never see?
# 3. A broker has 10,000 queues, and each gets one message of 1 KiB every second. How many bytes a second does it
#    write to the commit log, how many to the queues, and in how many files does it write?
#
# ## What you expected, and what was seen

# %%
reveal()
