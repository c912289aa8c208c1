"""The scenario of lite pull: members poll and commit by themselves, an auditor goes back and reads again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqlab.client import ConsumeFromWhere
from mqlab.errors import MQClientException
from mqlab.scenarios.numbered import FAILURES, TOPIC, number_of, spawn_sending
from mqlab.scenarios.registry import WITHOUT_POWER_CUTS, scenario
from mqlab.scenarios.words import Flush

if TYPE_CHECKING:
    from mqlab.client.consumer.lite.default_lite_pull_consumer import DefaultLitePullConsumer
    from mqlab.lab import Lab

READERS, AUDITORS = "readers", "auditors"
MOST_WORK_MS = 200


async def poll_and_commit(consumer: DefaultLitePullConsumer) -> None:
    """Work on what each poll brings, and commit it when the work is done, until the consumer is shut down."""
    while consumer.is_running():
        try:
            messages = await consumer.poll(1_000)
            for message in messages:
                number_of(message)
                await consumer.node.sleep(consumer.node.choose("work", MOST_WORK_MS))
            await consumer.commit()
        except MQClientException:
            # Shut down by another task while this one waited for its turn.
            return


async def come_and_go(consumer: DefaultLitePullConsumer, after_ms: int, stay_ms: int) -> None:
    """Join the group after a while, poll, and leave it in good order when the last batch is committed."""
    node = consumer.node
    await node.sleep(after_ms)
    try:
        await consumer.start()
        working = node.spawn(poll_and_commit(consumer), "poll and commit")
        await node.sleep(stay_ms)
        await consumer.shutdown()
        await working.join()
    except FAILURES:
        return


async def audit(auditor: DefaultLitePullConsumer, *, again_after_ms: int, pause_ms: int) -> None:
    """Read the assigned queues, rest one of them for a while, then read all of them once more from the beginning."""
    node = auditor.node
    first = auditor.assignment()[0]
    node.call_later(1_000, auditor.pause, [first], name="pause")
    node.call_later(1_000 + pause_ms, auditor.resume, [first], name="resume")
    begin_again_ms = node.now_ms() + again_after_ms
    while auditor.is_running():
        for message in await auditor.poll(1_000):
            number_of(message)
        if begin_again_ms and node.now_ms() >= begin_again_ms:
            begin_again_ms = 0
            await seek_all_to_begin(auditor)


async def seek_all_to_begin(auditor: DefaultLitePullConsumer) -> None:
    """Go back to the first message of every assigned queue; one whose broker cannot be asked stays where it is."""
    for queue in auditor.assignment():
        try:
            await auditor.seek_to_begin(queue)
        except MQClientException:
            continue


@scenario("lite-pull", seconds=30, faults=WITHOUT_POWER_CUTS, goals=("queue-belongs-to-another-member",))
async def lite_pull(
    lab: Lab,
    *,
    members: int = 2,
    queues: int = 4,
    messages: int = 60,
    every_ms: int = 300,
    threads: int = 20,
    batch: int = 10,
    again_after_ms: int = 15_000,
    pause_ms: int = 3_000,
    flush: Flush = "ASYNC_FLUSH",
) -> None:
    """Members poll and commit by hand and come and go; an auditor with assigned queues reads everything twice."""
    lab.name_server()
    lab.broker(flush_disk_type=flush)
    lab.create_topic(TOPIC, queues)
    settings: dict[str, Any] = {"pull_thread_nums": threads, "pull_batch_size": batch}
    first = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    readers = [
        lab.lite_pull_consumer(READERS, consume_from_where=first, auto_commit=False, **settings) for _ in range(members)
    ]
    for reader in readers:
        reader.subscribe(TOPIC)
    await readers[0].start()
    readers[0].node.spawn(poll_and_commit(readers[0]), "poll and commit")
    for reader in readers[1:]:
        draw = reader.node.choose
        reader.node.spawn(come_and_go(reader, 3_000 + draw("join", 5_000), 8_000 + draw("stay", 8_000)), "come and go")
    auditor = lab.lite_pull_consumer(AUDITORS, consume_from_where=first, **settings)
    await auditor.start()
    auditor.assign(await auditor.fetch_message_queues(TOPIC))
    auditor.node.spawn(audit(auditor, again_after_ms=again_after_ms, pause_ms=pause_ms), "audit")
    producer = lab.producer("shop")
    await producer.start()
    spawn_sending(producer, messages=messages, every_ms=every_ms)
