"""The rooms of the museum: worlds in which a bug of RocketMQ's Pop shows, with the broken and with the mended code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Literal

from mqlab.client import ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere
from mqlab.scenarios.numbered import LATER, SUCCESS, TOPIC, SendOne, number_of, send_sync, spawn_sending
from mqlab.scenarios.registry import scenario
from mqlab.sim import MemoryDisk
from mqlab.store.message_store_config import CQ_STORE_UNIT_SIZE

if TYPE_CHECKING:
    from mqlab.client import DefaultMQProducer, DefaultMQPushConsumer
    from mqlab.lab import Lab
    from mqlab.protocol.message import Message, MessageExt
    from mqlab.scenarios.museum_parts import Prepare, PrepareConsumer

VISITORS = "visitors"
Code = Literal["broken", "fixed"]
BROKEN: Final = "broken"
FIXED: Final = "fixed"
ACK_WAIT_MS = 20_000
"""For so long an ack waits for a check point in the room of 5408; RocketMQ gives it three minutes."""
LOOKS_AT = 8
"""Behind so many entries a broker ends its search for one request in the room of 8472; RocketMQ looks at 800."""

Listener = Callable[[Sequence["MessageExt"], ConsumeConcurrentlyContext], Any]


async def _open(
    lab: Lab,
    *,
    messages: int,
    every_ms: int,
    queues: int,
    prepare: Prepare | None = None,
    send_one: SendOne = send_sync,
    **broker: Any,
) -> None:
    """A name server, a broker with the room's part in it, and a shop that sends to the topic Orders."""
    lab.name_server()
    lab.broker(prepare=prepare, **broker)
    lab.create_topic(TOPIC, queues)
    producer = lab.producer("shop")
    await producer.start()
    spawn_sending(producer, messages=messages, every_ms=every_ms, send_one=send_one)


async def _visitor(
    lab: Lab, listens: Callable[[DefaultMQPushConsumer], Listener], *, wants: str = "*",
    prepare: PrepareConsumer | None = None, **settings: Any,
) -> None:  # fmt: skip
    """A push consumer that pops, with the room's part in it if that is one of a consumer."""
    lab.set_message_request_mode(TOPIC, VISITORS, "POP")
    consumer = lab.consumer(
        VISITORS,
        client_rebalance=False,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        **settings,
    )
    consumer.subscribe(TOPIC, wants)
    consumer.register_message_listener(listens(consumer))
    await consumer.start()
    if prepare is not None:
        prepare(consumer.impl.popping())


def _works_for(least_ms: int, more_ms: int) -> Callable[[DefaultMQPushConsumer], Listener]:
    """A listener that takes `least_ms` and up to `more_ms` longer for each message, and is content."""

    def listens(consumer: DefaultMQPushConsumer) -> Listener:
        async def listener(
            messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext
        ) -> ConsumeConcurrentlyStatus:
            await context.sleep(least_ms + consumer.node.choose("work", more_ms + 1))
            return SUCCESS

        return listener

    return listens


def _sometimes_too_slow(
    too_slow_ms: int, one_in: int, work_ms: int = 20
) -> Callable[[DefaultMQPushConsumer], Listener]:
    """A listener that for one message in so many, the first time, takes longer than it may; nobody acknowledges it."""

    def listens(consumer: DefaultMQPushConsumer) -> Listener:
        async def listener(
            messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext
        ) -> ConsumeConcurrentlyStatus:
            slow = not messages[0].reconsume_times and consumer.node.choose("too slow", one_in) == 0
            await context.sleep(too_slow_ms if slow else consumer.node.choose("work", work_ms))
            return SUCCESS

        return listener

    return listens


def _never_done(too_slow_ms: int, one_in: int) -> Callable[[DefaultMQPushConsumer], Listener]:
    """A listener that takes longer than it may for one message in so many, however often that comes."""

    def listens(consumer: DefaultMQPushConsumer) -> Listener:
        async def listener(
            messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext
        ) -> ConsumeConcurrentlyStatus:
            slow = number_of(messages[0]) % one_in == 0
            await context.sleep(too_slow_ms if slow else consumer.node.choose("work", 20))
            return SUCCESS

        return listener

    return listens


def _fails_at_first(one_in: int) -> Callable[[DefaultMQPushConsumer], Listener]:
    """A listener that says of one message in so many that it failed, when it comes for the first time."""

    def listens(consumer: DefaultMQPushConsumer) -> Listener:
        async def listener(
            messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext
        ) -> ConsumeConcurrentlyStatus:
            await context.sleep(consumer.node.choose("work", 20))
            fails = not messages[0].reconsume_times and number_of(messages[0]) % one_in == 0
            return LATER if fails else SUCCESS

        return listener

    return listens


@scenario("museum-3787", seconds=150)
async def museum_3787(lab: Lab, *, code: Code = BROKEN, messages: int = 24, work_ms: int = 350) -> None:
    """Issue 3787: acks that come while their check point is still in memory overtake it, and have no effect."""
    from mqlab.scenarios import museum_parts as parts

    prepare = parts.delay_levels if code == BROKEN else None
    await acks_while_the_check_point_waits(lab, prepare, messages=messages, work_ms=work_ms)


async def acks_while_the_check_point_waits(
    lab: Lab, prepare: Prepare | None, *, messages: int = 24, work_ms: int = 350
) -> None:
    """A slow consumer whose check points wait in memory, while its acks are written."""
    await _open(lab, messages=messages, every_ms=1, queues=1, prepare=prepare, enable_pop_buffer_merge=True)
    await _visitor(lab, _works_for(work_ms, 200), consume_thread_min=1, consume_thread_max=1)


@scenario("museum-4153", seconds=150)
async def museum_4153(lab: Lab, *, code: Code = BROKEN, messages: int = 12, work_ms: int = 100) -> None:
    """Issue 4153: acks wait longer than their check point, which is settled without them."""
    from mqlab.scenarios import museum_parts as parts

    prepare = parts.delay_levels if code == BROKEN else None
    await acks_one_after_the_other(lab, prepare, messages=messages, work_ms=work_ms)


async def acks_one_after_the_other(
    lab: Lab, prepare: Prepare | None, *, messages: int = 12, work_ms: int = 100
) -> None:
    """A consumer with one thread, which acknowledges the messages of a batch at different times."""
    await _open(lab, messages=messages, every_ms=200, queues=1, prepare=prepare)
    await _visitor(lab, _works_for(work_ms, 900), consume_thread_min=1, consume_thread_max=1)


@scenario("museum-3507", seconds=60)
async def museum_3507(lab: Lab, *, code: Code = BROKEN, messages: int = 12, work_ms: int = 50) -> None:
    """Issue 3507: the end of what a reviver has read is worked out too late, so it settles check points too early."""
    from mqlab.scenarios import museum_parts as parts

    prepare = parts.counts_the_wait_twice if code == BROKEN else None
    await quick_consumer(lab, prepare, messages=messages, work_ms=work_ms)


async def quick_consumer(
    lab: Lab, prepare: Prepare | None, *, messages: int = 12, every_ms: int = 800, work_ms: int = 50, **broker: Any
) -> None:
    """A consumer that acknowledges everything at once, with an invisible time of 10 s."""
    await _open(lab, messages=messages, every_ms=every_ms, queues=1, prepare=prepare, **broker)
    await _visitor(lab, _works_for(work_ms, 200), pop_invisible_time=10_000)


@scenario("museum-5408", seconds=120)
async def museum_5408(lab: Lab, *, code: Code = BROKEN, messages: int = 8, work_ms: int = 20) -> None:
    """Issues 3443 and 5408: acks behind the last check point are read again for ever; 5.3.3 does so unless told."""
    skips: dict[str, Any] = {"enable_skip_long_awaiting_ack": code == FIXED, "revive_ack_wait_ms": ACK_WAIT_MS}
    await quick_consumer(lab, None, messages=messages, every_ms=500, work_ms=work_ms, **skips)


@scenario("museum-7724", seconds=150)
async def museum_7724(lab: Lab, *, code: Code = BROKEN, messages: int = 100, too_slow_ms: int = 25_000) -> None:
    """Issue 7724: where the log has lost a message, a later one is brought back in its place; 5.3.3 still does so."""
    from mqlab.scenarios import museum_parts as parts

    prepare = None if code == BROKEN else parts.looks_at_the_offset
    await log_that_is_cleaned(lab, prepare, messages=messages, too_slow_ms=too_slow_ms)


async def log_that_is_cleaned(lab: Lab, prepare: Prepare | None, *, messages: int, too_slow_ms: int) -> None:
    """Messages that are popped long after they were sent, while the log loses its oldest files."""
    hours = ";".join(f"{hour:02}" for hour in range(24))
    store: dict[str, Any] = {"mapped_file_size_commit_log": 4_096, "file_reserved_time": 0, "delete_when": hours}
    pause: dict[str, Any] = {"delete_commit_log_files_interval": 2_000}
    # The log is cleaned from the first minute on: what was sent before is popped by then, and partly not done.
    await _open(lab, messages=messages, every_ms=10, queues=1, prepare=prepare, **store, **pause)
    later = lab.producer("late-shop")
    await later.start()
    spawn_sending(later, messages=messages // 2, every_ms=2_000)
    await _visitor(
        lab,
        _sometimes_too_slow(too_slow_ms, 3, work_ms=1_500),
        pop_invisible_time=20_000,
        pop_batch_nums=1,
        pop_threshold_for_queue=8,
    )


@scenario("museum-7914", seconds=60)
async def museum_7914(lab: Lab, *, code: Code = BROKEN, messages: int = 150, flush_us: int = 6_000) -> None:
    """Issue 7914: a message that was stored while a pop was on its way, and not acknowledged, is never seen again."""
    from mqlab.scenarios import museum_parts as parts

    prepare = parts.skips_what_was_stored_later if code == BROKEN else None
    await pops_that_wait_for_flushes(lab, prepare, messages=messages, flush_us=flush_us)


async def pops_that_wait_for_flushes(
    lab: Lab, prepare: Prepare | None, *, messages: int, flush_us: int
) -> None:
    """Pops of four queues that wait for the flush of each check point, while messages arrive."""
    await _open(lab, messages=messages, every_ms=60, queues=4, prepare=prepare, flush_disk_type="SYNC_FLUSH")
    disk = lab.brokers[0].node.disk
    assert isinstance(disk, MemoryDisk)
    disk.flush_us = flush_us
    await _visitor(lab, _sometimes_too_slow(12_000, 4), pop_invisible_time=10_000)


@scenario("museum-8479", seconds=120)
async def museum_8479(lab: Lab, *, code: Code = BROKEN, messages: int = 20, deleted_after_ms: int = 4_000) -> None:
    """Issue 8479: a topic is deleted and made again, and messages that it had once are looked for without end."""
    from mqlab.scenarios import museum_parts as parts

    prepare = parts.asks_again_for_what_is_gone if code == BROKEN else None
    await topic_made_again(lab, prepare, messages=messages, deleted_after_ms=deleted_after_ms)


async def topic_made_again(
    lab: Lab, prepare: Prepare | None, *, messages: int, deleted_after_ms: int
) -> None:
    """A topic that is deleted and made again while messages of it are in somebody's hands."""
    await _open(lab, messages=messages, every_ms=250, queues=1, prepare=prepare)
    await _visitor(lab, _sometimes_too_slow(15_000, 3), pop_invisible_time=10_000)
    broker = lab.brokers[0]
    node = broker.node

    async def delete_and_make_again() -> None:
        await node.sleep(deleted_after_ms + node.choose("deletion", 2_000))
        running = broker.running()
        running.topic_config_manager.delete_topic_config(TOPIC)
        running.consumer_offset_manager.clean_offset_by_topic(TOPIC)
        running.message_store.delete_topics([TOPIC])
        await node.sleep(500)
        running.create_topic(TOPIC, 1)

    node.spawn(delete_and_make_again(), "an administrator")


@scenario("museum-8472", seconds=60)
async def museum_8472(lab: Lab, *, code: Code = BROKEN, messages: int = 60, one_in: int = 20) -> None:
    """Issue 8472: a pop that wants few messages waits although some of them lie there unread."""
    from mqlab.scenarios import museum_parts as parts

    prepare = parts.wakes_behind_what_was_found if code == BROKEN else None
    await few_are_wanted(lab, prepare, messages=messages, one_in=one_in)


async def few_are_wanted(lab: Lab, prepare: Prepare | None, *, messages: int, one_in: int) -> None:
    """A consumer that wants one message in so many, and a broker that looks at few entries for one request."""

    numbers = count(1)

    async def send_one(producer: DefaultMQProducer, message: Message) -> None:
        message.tags = "other" if next(numbers) % one_in else "wanted"
        await send_sync(producer, message)

    looks_at = LOOKS_AT * CQ_STORE_UNIT_SIZE
    await _open(
        lab, messages=messages, every_ms=100, queues=1, prepare=prepare, send_one=send_one,
        max_filter_message_size=looks_at,
    )  # fmt: skip
    await _visitor(lab, _works_for(5, 20), wants="wanted", pop_batch_nums=LOOKS_AT)


@scenario("museum-8332", seconds=90)
async def museum_8332(lab: Lab, *, code: Code = BROKEN, messages: int = 9, most: int = 1) -> None:
    """Issue 8332: what takes a listener too long comes to it again and again, however few tries are allowed."""
    from mqlab.scenarios import museum_parts as parts

    prepare = parts.gives_whatever_comes if code == BROKEN else None
    await messages_that_take_too_long(lab, prepare, messages=messages, most=most)


async def messages_that_take_too_long(
    lab: Lab, prepare: PrepareConsumer | None, *, messages: int, most: int
) -> None:
    """A consumer that needs 12 s for one message in three, with an invisible time of 10 s and few tries."""
    await _open(lab, messages=messages, every_ms=300, queues=1)
    await _visitor(
        lab, _never_done(12_000, 3), prepare=prepare, pop_invisible_time=10_000, max_reconsume_times=most
    )


@scenario("museum-4815", seconds=150)
async def museum_4815(lab: Lab, *, code: Code = BROKEN, messages: int = 9, one_in: int = 3) -> None:
    """Issue 4815: a message that a listener of Pop gives back comes again after two minutes at the earliest."""
    from mqlab.scenarios import museum_parts as parts

    prepare = parts.begins_in_the_fourth_row if code == BROKEN else None
    await messages_that_fail_once(lab, prepare, messages=messages, one_in=one_in)


async def messages_that_fail_once(
    lab: Lab, prepare: PrepareConsumer | None, *, messages: int, one_in: int
) -> None:
    """A consumer whose listener gives some messages back when they come for the first time."""
    await _open(lab, messages=messages, every_ms=300, queues=1)
    await _visitor(lab, _fails_at_first(one_in), prepare=prepare)


@scenario("museum-11062", seconds=60)
async def museum_11062(lab: Lab, *, code: Code = BROKEN, messages: int = 12, too_slow_ms: int = 12_500) -> None:
    """Change 11062: a call that took longer than the invisible time counts as done in time; 5.3.3 still says so."""
    from mqlab.scenarios import museum_parts as parts

    prepare = None if code == BROKEN else parts.compares_ms_with_ms
    await calls_that_are_traced(lab, prepare, messages=messages, too_slow_ms=too_slow_ms)


async def calls_that_are_traced(
    lab: Lab, prepare: PrepareConsumer | None, *, messages: int, too_slow_ms: int
) -> None:
    """A consumer with a message trace, whose listener sometimes takes longer than the invisible time of 10 s."""
    await _open(lab, messages=messages, every_ms=500, queues=1, trace_topic_enable=True)
    await _visitor(
        lab, _sometimes_too_slow(too_slow_ms, 3), prepare=prepare, pop_invisible_time=10_000, enable_trace=True
    )
