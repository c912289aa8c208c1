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
#     minutes: 30
#     prerequisites: [00 Tour]
#     wrong_predictions:
#       - "record-bytes: 5, or 5 and a few more; the head alone has 91 bytes, and the properties are text"
#       - "who-filters: the broker, since the tag is in the subscription; it has only the hash of the tag in its queue"
#       - "unsafe-for: 0.5 s, the interval of the flush thread; it passes over less than four dirty pages"
#       - "left-after-cut: all ten, since send returned SEND_OK; or none, since nothing was flushed"
#       - "queues-deleted: none, since the queues are gone"
#       - "queues-deleted-later: the same number again; two quiet minutes have moved the checkpoint"
#       - "bad-byte-killed: 386, all but the one with the bad byte"
#       - "bad-byte-stopped: 127 again; after a clean stop nobody reads the middle of the log"
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
from mqlab.check import NotSolvedYet, check, predict, reveal, seed_for
from mqlab.errors import LearnerError
from mqlab.protocol.hashing import java_string_hash
from mqlab.scenarios.store import SMALL_FILES
from mqlab.views import StoreMap, Table, TornLog, disk_table, index_steps
from mqlab_widgets import Stepper

seed = seed_for(student_id, "02")
SMALL_FILES

# %%
lab = Lab(seed=seed)
lab.name_server()
broker = lab.broker("broker-a", **SMALL_FILES)
lab.create_topic("Orders", 2)
producer = lab.producer("shop")
await producer.start()

# %% [markdown]
# Six orders, each with a body of five bytes, a **tag** (a word that consumers can choose by) and a **key** (a word
# by which a message can be found again). Then 5 ms pass, and we list the disk.

# %%
for number in range(6):
    await producer.send(Message("Orders", b"hello", tags="paid", keys=f"order-{number}"))
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
# ## Round one: bytes
#
# The topic was created with two queues, and the producer takes them in turn.

# %% tags=["prediction"]
predict("record-bytes", "The body of an order has 5 bytes. How many bytes does the order take in the commit log?",
        unit="bytes", prediction=...)

# %%
record = lab.queue("Orders", 0).record(1)
record

# %%
reveal("record-bytes", len(record.data),
       why="91 bytes of fixed fields, 6 of topic, 5 of body; all the rest is properties.")

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
java_string_hash("paid")

# %% [markdown]
# Forty messages more, to turn the pages yourself: click the broker, and open **bytes of message**. The buttons above
# it lead from message to message and from queue to queue. (Shown are the newest bytes; press **end** if the view has
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
# ### Build it, part one: read a queue
#
# Write the reader of one file of a consume queue. It gets the file's name and its bytes, and gives the entries as a
# list of `(queue offset, physical offset, size, tags code)`. What you need to know:
#
# - an entry is a physical offset (8 bytes), a size (4) and a tags code (8), all with a sign, and big-endian: the
#   most significant byte first;
# - the file's name is the **byte** offset of its first entry in the whole queue;
# - a file has its full size from the start: where nothing was written yet, there are zeros, and a record of size 0
#   does not exist;
# - when the oldest messages were deleted before a queue was built, its first file begins with fillers: entries `(0,
#   2147483647, 0)` that stand for no message.


# %% tags=["exercise"]
import struct


def read_entries(name: str, data: bytes) -> list[tuple[int, int, int, int]]:
    """Queue offset, physical offset, size and tags code of each message in one file of a consume queue."""
    ### BEGIN SOLUTION
    entries = []
    first = int(name) // 20
    for number, (offset, size, tags_code) in enumerate(struct.iter_unpack(">qiq", data)):
        if size == 0:
            break
        if size != 2147483647:
            entries.append((first + number, offset, size, tags_code))
    return entries
    ### END SOLUTION


# %% tags=["check"]
check("02/read-entries", read_entries)

# %% [markdown]
# ## Round two: two tags, one hash
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

# %% [markdown]
# We start the send without waiting for it, and let the world run from breakpoint to breakpoint: to the moment when
# the queue has its entry, when the broker answers the held request, and when the consumer has unpacked the answer.

# %%
sending = producer.send(Message("Orders", b"not for you", tags="BB", keys="bb-1")).start()
lab.run_until_event("MessageDispatched")

# %%
answered = lab.run_until_event("PullAnswered")
answered

# %%
dropped = lab.run_until_event("MessagesFiltered")
dropped

# %%
who = "a" if answered.messages == 0 else "b" if not handled else "c"
await sending
reveal("who-filters", who, why="The broker compares hashes, the consumer compares the tags themselves.")

# %%
lab.space_time(answered.ts_ms - 1, dropped.ts_ms, nodes=["broker-a", "consumer-1"], requests=["PULL_MESSAGE"],
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
# ## Round three: the power is cut
#
# `send` returns `SEND_OK`. Is the message on the disk? By default (`flushDiskType = ASYNC_FLUSH`) the broker answers
# as soon as the bytes are in the log's pages in memory. A thread named `FlushRealTimeService` flushes them later: it
# looks every 500 ms. We let the world run until it has just done so, and send one small message.

# %%
lab.run_until_event("CommitLogFlushed")
sent = await producer.send(Message("Orders", b"hello", tags="paid"))
sent_at = lab.now_ms
sent.send_status

# %% tags=["prediction"]
predict("unsafe-for", "For how long could a power cut still take this message away?", unit="s", prediction=...)

# %%
flushed = lab.run_until_event("CommitLogFlushed")
reveal("unsafe-for", round((flushed.ts_ms - sent_at) / 1_000, 1),
       why="The thread looks every 500 ms, but below four dirty pages it flushes only every 10 s.")

# %% [markdown]
# Three constants of `MessageStoreConfig` work together: `flushIntervalCommitLog` (500 ms),
# `flushCommitLogLeastPages` (4: with less than four pages to write, it is not worth it), and
# `flushCommitLogThoroughInterval` (10 s: then everything is written). The quieter the broker, the longer a message
# is unsafe.
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

# %% [markdown]
# The upper row is what the power cut did. Of the pages that were not flushed each one may have reached the disk or
# not; here it is the toss of a coin for each page. (A real operating system also writes pages on its own, within
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

# %%
states = [record.state for record in torn.records[-10:]]
gaps = "kept" in states[states.count("kept"):]
reveal("left-after-cut", "d" if gaps else "c",
       why="Pages are lost in any order, but recovery stops at the first damage.")

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
# Unless you were very lucky, the warehouse has packed orders that the broker has never heard of. What `SYNC_FLUSH`
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
# ## Break it: a folder is gone, a byte is rotten
#
# How does a broker know whether it was stopped in good order? While it runs there is a small file, `abort`; a clean
# stop removes it. If it is there at the start, the last stop was a crash.
#
# The scenario `small-files` sends 387 messages, one every 20 ms. Then we stop the broker, by a kill (`kill -9`: the
# operating system ends the process at once) or in good order; do some damage to its disk; start it again, and count
# what can be consumed.

# %%
async def shop_after(damage, *, clean=False, quiet_s=0):
    """A shop with 387 messages, its broker stopped (after a quiet time), its disk damaged, its broker started again."""
    shop = scenarios.get("small-files").play(seed, seconds=quiet_s)
    machine = shop.processes["broker-a"]
    if clean:
        await machine.running().shutdown()
    machine.crash()
    damage(machine.node.disk)
    machine.restart()
    return shop.run_for(seconds=1)

def consumable(shop):
    return sum(row[-1] for row in shop.topics().rows)

# %% [markdown]
# First damage: the folder `consumequeue` is deleted, with all queues and all pointers. The log stays.

# %%
def delete_queues(disk):
    disk.rmtree("store/consumequeue")

# %% tags=["prediction"]
predict("queues-deleted", "Killed, all queues deleted, started again. How many of the 387 messages can be consumed?",
        unit="messages", prediction=...)

# %%
shop = await shop_after(delete_queues)
shop.topics()

# %%
reveal("queues-deleted", consumable(shop),
       why="Every record says its topic, queue and queue offset: the log is enough.")

# %% [markdown]
# The queues are only a view of the log: `CommitLog.recoverAbnormally` reads the records and **dispatches** each one
# again, that is, writes its queue entry. Measured on a real 5.3.3, killed about 18 s after its first message, folder
# deleted: 387 of 387.
#
# That makes one careless. The same again, but between the last message and the kill the broker has two quiet
# minutes.

# %% tags=["prediction"]
predict("queues-deleted-later", "The same after two quiet minutes. How many of the 387 can be consumed?",
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
# Disks forget. In a log of 387 messages, one byte in the body of message 127 (counted from 0) changes while the
# broker is down. Each record has a checksum of its body, `bodyCRC`: a number that comes out differently if a byte
# has changed.

# %%
place = list(shop.history.find("MessageStored"))[127].commit_log_offset

def rotten_byte(disk):
    """Turn the first byte of the body of message 127 into another one; a body begins 88 bytes behind its record."""
    file = disk.open(f"store/commitlog/{place // 65_536 * 65_536:020d}")
    at = place % 65_536 + 88
    file.write(at, bytes([file.read(at, 1)[0] ^ 0xFF]))

# %% tags=["prediction"]
predict("bad-byte-killed", "Killed, the byte changes, started again. How many of the 387 messages are left?",
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
# Measured on a real 5.3.3, with bodies of the same sizes and the same message damaged: 387 became 127. 259 good
# messages are dropped for one bad byte. Now the clean stop:

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
# ## Build it, part two: find the end of a torn log
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
# and its parts add up to its size. All numbers are big-endian; `int.from_bytes(data[a:b], "big")` reads one.
#
# The check damages logs of a running store: power cuts, rotten bytes, rotten lengths, and some are left whole. The
# judge is the store's own recovery.


# %% tags=["exercise"]
from zlib import crc32


def find_end(files: list[bytes]) -> int:
    """The offset at which a torn commit log ends."""
    ### BEGIN SOLUTION
    for number, data in enumerate(files):
        at = 0
        while True:
            size = int.from_bytes(data[at : at + 4], "big")
            magic = int.from_bytes(data[at + 4 : at + 8], "big")
            if magic == 0xCBD43194:
                break
            end = number * len(data) + at
            record = data[at : at + size]
            if magic != 0xDAA320A7 or size < 91 or len(record) < size:
                return end
            body_end = 88 + int.from_bytes(record[84:88], "big")
            if body_end >= size:
                return end
            properties = body_end + 1 + record[body_end] + 2
            properties_length = int.from_bytes(record[properties - 2 : properties], "big")
            crc = crc32(record[88:body_end]) & 0x7FFFFFFF
            if properties + properties_length != size or crc != int.from_bytes(record[8:12], "big"):
                return end
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
# ## Today's RocketMQ and the article
#
# - The article lets the broker flush first and then build queue and index. It is the other way round: with
#   `ASYNC_FLUSH` an entry is built within a millisecond or so (`ReputMessageService`), the flush comes up to 10 s
#   later. We saw a consumer handle what the broker then forgot.
# - The article's consumer takes offset and size from the consume queue and hands them to the broker. A consumer
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
