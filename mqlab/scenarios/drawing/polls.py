"""What readers of a drawn world do that ask for messages themselves: they poll, pull, and pull in turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from mqlab.client.consumer.pull.pull_callback import PullCallback
from mqlab.client.service_state import ServiceState
from mqlab.protocol.topics import retry_topic
from mqlab.scenarios.drawing.loads import look_at, refuses, wanted
from mqlab.scenarios.numbered import FAILURES

if TYPE_CHECKING:
    from mqlab.client import DefaultMQPullConsumer, MQPullConsumerScheduleService, PullTaskContext
    from mqlab.client.consumer.lite.default_lite_pull_consumer import DefaultLitePullConsumer
    from mqlab.client.consumer.pull_api_wrapper import PullResult
    from mqlab.protocol import MessageQueue

MOST_WORK_MS = 100
PULLED_AT_ONCE = 32
LOOKS_ONE_IN = 8
"""Once in so many pulls an application asks what else can be asked of a queue."""
SEND_BACK_LEVEL = 1
"""A second later what a pull consumer gives back comes again."""
HOUR_MS = 3_600_000


# -- lite pull --------------------------------------------------------------------------------------------------------


async def poll_all(consumer: DefaultLitePullConsumer, says: dict[str, Any]) -> None:
    """Work on what each poll brings, until the consumer is shut down; commit it unless that happens by itself."""
    while consumer.is_running():
        try:
            for message in await consumer.poll(1_000):
                look_at(message)
                await consumer.node.sleep(1 + consumer.node.choose("work", MOST_WORK_MS))
            if says["commits"] != "auto" or not consumer.is_auto_commit:
                await _commit(consumer, says["commits"])
        except FAILURES:
            # Shut down by another task while this one waited for its turn.
            return


async def _commit(consumer: DefaultLitePullConsumer, how: str) -> None:
    """Commit what was polled, of all queues or of those that are given, with offsets or without; or write it, too."""
    queues = consumer.assignment()
    assigned = consumer.impl.assigned_message_queue
    if how == "queues":
        await consumer.commit(queues)
    elif how == "offsets":
        reached = {queue: assigned.consume_offset(queue) for queue in queues}
        await consumer.commit_sync({queue: offset for queue, offset in reached.items() if offset >= 0})
    elif how == "written" and queues:
        await consumer.commit(queues, persist=True)
    else:
        await consumer.commit()


async def take_a_share(consumer: DefaultLitePullConsumer, says: dict[str, Any], place: int) -> None:
    """Assign every `members`-th queue of a topic to a member, from its place on, and anew when the topic has others."""

    def assign(topic: str, queues: Sequence[MessageQueue]) -> None:
        if share := sorted(queues)[place :: says["members"]]:
            consumer.assign(share)

    with suppress(*FAILURES):
        assign(says["topic"], await consumer.fetch_message_queues(says["topic"]))
        await consumer.register_topic_message_queue_change_listener(says["topic"], assign)


# -- plain pull -------------------------------------------------------------------------------------------------------


async def pull_all(consumer: DefaultMQPullConsumer, says: dict[str, Any]) -> None:
    """Pull from the queues that are this member's now, and note how far each came; for ever.

    With `way=held` the broker holds a pull that finds nothing. A queue whose pull is over is asked in the next round.
    """
    under_way: dict[MessageQueue, None] = {}
    while consumer.impl.service_state is not ServiceState.SHUTDOWN_ALREADY:
        await consumer.node.sleep(says["pause_ms"])
        queues: list[MessageQueue] = []
        with suppress(*FAILURES):
            for topic in topics_of(consumer, says):
                queues += await consumer.fetch_message_queues_in_balance(topic)
        for queue in sorted(queues):
            if queue not in under_way:
                under_way[queue] = None
                consumer.node.spawn(_pull_once(consumer, queue, says, under_way), "pull once")


def topics_of(consumer: DefaultMQPullConsumer, says: dict[str, Any]) -> list[str]:
    """The topics that a member pulls: its group's retry topic, too, if it gives messages back."""
    return [says["topic"], *([retry_topic(consumer.consumer_group)] if says["refuse_one_in"] else [])]


async def _pull_once(
    consumer: DefaultMQPullConsumer, queue: MessageQueue, says: dict[str, Any], under_way: dict[MessageQueue, None]
) -> None:
    def is_over() -> None:
        under_way.pop(queue, None)

    try:
        await _pull_from(consumer, queue, says, is_over)
    except FAILURES:
        is_over()


async def _pull_from(
    consumer: DefaultMQPullConsumer, queue: MessageQueue, says: dict[str, Any], is_over: Callable[[], None]
) -> None:
    """Pull once; `is_over` is called when the answer was looked at, or when there is none."""
    offset = max(0, await consumer.fetch_consume_offset(queue, False))
    expression = wanted(says) if queue.topic == says["topic"] else "*"
    if consumer.node.choose("looks", LOOKS_ONE_IN) == 0:
        await _look(consumer, queue)
    is_held, hears = says["way"].startswith("held"), partial(_heard, consumer, queue, says, is_over)
    if says["way"].endswith("async"):

        # Not in the callback itself: a client has few threads for them, and the answers to calls need one, too.
        def hear(result: PullResult | None, error: Exception | None) -> None:
            consumer.node.spawn(hears(result, error), "what a pull has brought")

        callback = _Hears(hear) if queue.queue_id % 2 else hear
        pull_async = consumer.pull_block_if_not_found_async if is_held else consumer.pull_async
        await pull_async(queue, expression, offset, says["batch"], callback)
    else:
        pull = consumer.pull_block_if_not_found if is_held else consumer.pull
        await hears(await pull(queue, expression, offset, says["batch"]), None)


async def _heard(
    consumer: DefaultMQPullConsumer,
    queue: MessageQueue,
    says: dict[str, Any],
    is_over: Callable[[], None],
    result: PullResult | None,
    error: Exception | None,
) -> None:
    """Look at what a pull has brought, give one message in so many back, and note how far the queue came."""
    # What cannot be given back, as when the consumer was shut down meanwhile, is pulled again.
    with suppress(*FAILURES):
        for message in result.msg_found_list if result is not None else ():
            look_at(message)
            if refuses(consumer.node, says):
                await consumer.send_message_back(message, SEND_BACK_LEVEL)
        if result is not None:
            await consumer.update_consume_offset(queue, result.next_begin_offset)
    is_over()


class _Hears(PullCallback):
    """The same as a class."""

    def __init__(self, hears: Any) -> None:
        self._hears = hears

    def on_success(self, result: PullResult) -> object:
        """The pull was answered."""
        return self._hears(result, None)

    def on_exception(self, error: Exception) -> object:
        """No answer came, or an error."""
        return self._hears(None, error)


async def _look(consumer: DefaultMQPullConsumer, queue: MessageQueue) -> None:
    """Ask for both ends of a queue, for what was stored first and an hour ago, and write down how far it is read."""
    await consumer.min_offset(queue)
    await consumer.max_offset(queue)
    await consumer.search_offset(queue, consumer.node.now_ms() - HOUR_MS)
    await consumer.earliest_msg_store_time(queue)
    await consumer.fetch_subscribe_message_queues(queue.topic)
    await consumer.persist(queue)


def pull_in_turns(service: MQPullConsumerScheduleService, says: dict[str, Any]) -> None:
    """Give a schedule service a task that pulls from where its group stands, and notes how far it came.

    What fails it leaves to the service for every other queue.
    """

    async def task(queue: MessageQueue, context: PullTaskContext) -> None:
        consumer = context.pull_consumer
        context.set_pull_next_delay_time_millis(says["next_delay_ms"])
        try:
            offset = max(0, await consumer.fetch_consume_offset(queue, False))
            result = await consumer.pull(queue, "*", offset, PULLED_AT_ONCE)
            for message in result.msg_found_list:
                look_at(message)
            await consumer.update_consume_offset(queue, result.next_begin_offset)
        except FAILURES:
            # The next turn begins from the same offset.
            if queue.queue_id % 2:
                raise

    service.register_pull_task_callback(says["topic"], task)
