"""The scenario in which all ways of consuming stand side by side on one topic: push, pull, lite pull and Pop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.client import ConsumeFromWhere
from mqlab.scenarios.ground import start_consumer
from mqlab.scenarios.numbered import FAILURES, TOPIC, number_of, spawn_sending
from mqlab.scenarios.registry import scenario, story

if TYPE_CHECKING:
    from mqlab.client import PullTaskContext
    from mqlab.client.consumer.lite.default_lite_pull_consumer import DefaultLitePullConsumer
    from mqlab.lab import Lab
    from mqlab.protocol import MessageQueue

PUSHED, PULLED, POLLED, POPPED = "pushed", "pulled", "polled", "popped"
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


async def pull_in_turns(lab: Lab) -> None:
    """A schedule service that pulls each queue every 500 ms from where its group stands."""
    service = lab.pull_schedule_service(PULLED, node=PULLED)

    async def task(queue: MessageQueue, context: PullTaskContext) -> None:
        consumer = context.pull_consumer
        context.set_pull_next_delay_time_millis(500)
        try:
            offset = max(0, await consumer.fetch_consume_offset(queue, False))
            result = await consumer.pull(queue, "*", offset, 32)
            for message in result.msg_found_list:
                number_of(message)
            await consumer.update_consume_offset(queue, result.next_begin_offset)
        except FAILURES:
            # The next turn begins from the same offset.
            return

    service.register_pull_task_callback(TOPIC, task)
    await service.start()


async def poll(consumer: DefaultLitePullConsumer) -> None:
    """Take what the client has read ahead, for as long as it runs; the client commits by itself."""
    while consumer.is_running():
        for message in await consumer.poll(1_000):
            number_of(message)


FOUR_WAYS = story("""
    PullHeld 1 pushed: Push is pull: the client asks each queue, and its question waits in the broker.
    PopHeld 1 popped: Pop asks any queue at all. One question waits, and nobody owns a queue.
    MessageStored 1 broker-a: An order comes, and is stored once. Four groups want it.
    PullWoken 1 pushed: It wakes the pull that waits at its queue.
    PopWoken 1 popped: And the pop that waits for any.
    CheckPointMade 1 broker-a: What is popped gets a check point: for a minute nobody else of the group has it.
    AckReceived 1 popped: Each popped message is acknowledged by itself. The others note how far they have come.
    MessageStored 30 broker-a: Each group has an offset in each queue, however it comes by its messages.
""")


@scenario("four-ways", seconds=20, captions=FOUR_WAYS)
async def four_ways(
    lab: Lab, *, queues: int = 2, messages: int = 20, every_ms: int = 500, buffer: bool = False
) -> None:
    """Four groups consume one topic: one is pushed to, one pulls in turns, one polls, one pops."""
    lab.name_server()
    lab.broker("broker-a", enable_pop_buffer_merge=buffer)
    lab.create_topic(TOPIC, queues)
    lab.set_message_request_mode(TOPIC, POPPED, "POP")
    await start_consumer(lab, PUSHED, TOPIC, node=PUSHED, consume_from_where=FIRST)
    await start_consumer(lab, POPPED, TOPIC, node=POPPED, consume_from_where=FIRST, client_rebalance=False)
    await pull_in_turns(lab)
    polling = lab.lite_pull_consumer(POLLED, node=POLLED, consume_from_where=FIRST)
    polling.subscribe(TOPIC)
    await polling.start()
    polling.node.spawn(poll(polling), "poll")
    lab.run_for(seconds=3)
    producer = lab.producer("shop", node="shop")
    await producer.start()
    spawn_sending(producer, messages=messages, every_ms=every_ms)
