"""The scenarios of pull: applications that ask for messages themselves, in the rhythm of the schedule service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.client import MessageModel
from mqlab.scenarios.numbered import FAILURES, TOPIC, come_and_go, number_of, spawn_sending
from mqlab.scenarios.registry import WITHOUT_POWER_CUTS, scenario, story
from mqlab.scenarios.words import Flush

if TYPE_CHECKING:
    from mqlab.client import MQPullConsumerScheduleService, PullTaskContext
    from mqlab.lab import Lab
    from mqlab.protocol import MessageQueue

READERS = "readers"


def new_service(lab: Lab, *, next_delay_ms: int, message_model: MessageModel) -> MQPullConsumerScheduleService:
    """A schedule service whose task pulls 32 messages from where its group stands; not started."""
    service = lab.pull_schedule_service(READERS, message_model=message_model)

    async def task(queue: MessageQueue, context: PullTaskContext) -> None:
        consumer = context.pull_consumer
        context.set_pull_next_delay_time_millis(next_delay_ms)
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
    return service


PULLED_IN_TURNS = story("""
    SendAttempted 1 producer-1: A shop sends orders. Nobody pushes them on: a program asks for them when it likes.
    ConsumerGroupChanged 1 broker-a: The program tells the broker to which group it belongs. It is alone in it.
    QueueAllocated 4 consumer-1: So it has all four queues, and runs a task for each of them.
    PullFinished 1 consumer-1: A task asks once, and gets what is there. A pull takes nothing out of the queue.
    PullTaskFinished 4 consumer-1: It notes in its own memory how far it has come, and runs again in 200 ms.
    PullTaskStarted 24 broker-a: Five questions a second for each queue, and most of them are for nothing.
    ConsumerGroupChanged 2 broker-a: A second program joins the group, and the broker tells the first one.
    OffsetCommitted 2 consumer-1: The first one gives two queues up, and tells the broker how far it was there.
    QueueDropped 4 consumer-2: The second one goes home in good order, and the first one takes its queues back.
""")


@scenario("pull-schedule", seconds=30, faults=WITHOUT_POWER_CUTS, captions=PULLED_IN_TURNS)
async def pull_schedule(
    lab: Lab,
    *,
    members: int = 2,
    queues: int = 4,
    messages: int = 60,
    every_ms: int = 300,
    next_delay_ms: int = 200,
    broadcasting: bool = False,
    flush: Flush = "ASYNC_FLUSH",
) -> None:
    """Schedule services pull in turns; the first stays, the others come and go, and tasks follow the queues."""
    lab.name_server()
    lab.broker(flush_disk_type=flush)
    lab.create_topic(TOPIC, queues)
    model = MessageModel.BROADCASTING if broadcasting else MessageModel.CLUSTERING
    services = [new_service(lab, next_delay_ms=next_delay_ms, message_model=model) for _ in range(members)]
    await services[0].start()
    for service in services[1:]:
        draw = service.node.choose
        service.node.spawn(
            come_and_go(service, 3_000 + draw("join", 5_000), 8_000 + draw("stay", 8_000)), "come and go"
        )
    producer = lab.producer("shop")
    await producer.start()
    spawn_sending(producer, messages=messages, every_ms=every_ms)
