"""What readers of a drawn world do: listeners, polls and pulls that look at what they get."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mqlab.client import (
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    DefaultMQPushConsumer,
    MessageListenerOrderly,
)
from mqlab.client.consumer.message_selector import MessageSelector
from mqlab.client.service_state import ServiceState
from mqlab.scenarios.drawing.kinds import ALL, CONDITIONS
from mqlab.scenarios.numbered import (
    FAILURES,
    KEY,
    LATER,
    SUCCESS,
    WrongBody,
    number_of,
    numbered_message,
    reading_time_ms,
)

if TYPE_CHECKING:
    from mqlab.client import DefaultMQPullConsumer, MQPullConsumerScheduleService, PullTaskContext
    from mqlab.client.consumer.lite.default_lite_pull_consumer import DefaultLitePullConsumer
    from mqlab.protocol import MessageQueue
    from mqlab.protocol.message import MessageExt
    from mqlab.sim import Node

MOST_WORK_MS = 100
PULLED_AT_ONCE = 32


def wanted(says: Mapping[str, Any]) -> str | MessageSelector:
    """What a group subscribes to, as its line says it: by tags, or by a condition."""
    condition = CONDITIONS.get(says.get("wants", ALL))
    return says.get("tags", "*") if condition is None else MessageSelector.by_sql(condition)


def look_at(message: MessageExt) -> None:
    """Raise WrongBody for a message that is not the one which was sent.

    Those that a producer has batched by itself have the keys of all of them (ProduceAccumulator), so it is the body
    that says which one this is.
    """
    keys = (message.keys or "").split()
    if len(keys) < 2:
        number_of(message)
        return
    written = message.body.split(b" ", 3)[2:3]
    key = b"".join(written).decode("ascii", "replace")
    if key not in keys or message.body != numbered_message("", int(key.removeprefix(KEY)), len(message.body)).body:
        raise WrongBody(message)


def listener(consumer: DefaultMQPushConsumer, says: dict[str, Any]) -> Callable[..., Any]:
    """A listener that looks at the bodies, takes its time, and wants one message in `refuse_one_in` once more."""

    async def listen(
        messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext
    ) -> ConsumeConcurrentlyStatus:
        for message in messages:
            look_at(message)
        await context.sleep(reading_time_ms(consumer, says["slow_ms"]))
        return LATER if refuses(consumer.node, says) else SUCCESS

    return listen


class InOrder(MessageListenerOrderly):
    """The same in order: what it refuses comes again after a moment, before all behind it."""

    def __init__(self, consumer: DefaultMQPushConsumer, says: dict[str, Any]) -> None:
        self._consumer = consumer
        self._says = says

    async def consume_message(
        self, messages: Sequence[MessageExt], context: ConsumeOrderlyContext
    ) -> ConsumeOrderlyStatus:
        """Read the messages, and say whether that went well."""
        for message in messages:
            look_at(message)
        await context.sleep(reading_time_ms(self._consumer, self._says["slow_ms"]))
        if refuses(self._consumer.node, self._says):
            return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
        return ConsumeOrderlyStatus.SUCCESS


def refuses(node: Node, says: dict[str, Any]) -> bool:
    """Is this the one in `refuse_one_in` that is wanted once more?"""
    one_in: int = says["refuse_one_in"]
    return one_in > 0 and node.choose("refuse", one_in) == 0


async def poll_all(consumer: DefaultLitePullConsumer) -> None:
    """Work on what each poll brings, until the consumer is shut down; commit it unless that happens by itself."""
    while consumer.is_running():
        try:
            for message in await consumer.poll(1_000):
                look_at(message)
                await consumer.node.sleep(consumer.node.choose("work", MOST_WORK_MS))
            if not consumer.is_auto_commit:
                await consumer.commit()
        except FAILURES:
            # Shut down by another task while this one waited for its turn.
            return


async def pull_all(consumer: DefaultMQPullConsumer, says: dict[str, Any]) -> None:
    """Pull from the queues that are this member's now, and note how far each came; for ever.

    With `way=held` the broker holds a pull that finds nothing. A queue whose pull is over is asked in the next round.
    """
    under_way: dict[MessageQueue, None] = {}
    while consumer.impl.service_state is not ServiceState.SHUTDOWN_ALREADY:
        await consumer.node.sleep(says["pause_ms"])
        queues: Sequence[MessageQueue] = ()
        with suppress(*FAILURES):
            queues = sorted(await consumer.fetch_message_queues_in_balance(says["topic"]))
        for queue in queues:
            if queue not in under_way:
                under_way[queue] = None
                consumer.node.spawn(_pull_once(consumer, queue, says, under_way), "pull once")


async def _pull_once(
    consumer: DefaultMQPullConsumer, queue: MessageQueue, says: dict[str, Any], under_way: dict[MessageQueue, None]
) -> None:
    with suppress(*FAILURES):
        await _pull_from(consumer, queue, says)
    del under_way[queue]


async def _pull_from(consumer: DefaultMQPullConsumer, queue: MessageQueue, says: dict[str, Any]) -> None:
    offset = max(0, await consumer.fetch_consume_offset(queue, False))
    pull = consumer.pull_block_if_not_found if says["way"] == "held" else consumer.pull
    result = await pull(queue, "*", offset, says["batch"])
    for message in result.msg_found_list:
        look_at(message)
    await consumer.update_consume_offset(queue, result.next_begin_offset)


def pull_in_turns(service: MQPullConsumerScheduleService, says: dict[str, Any]) -> None:
    """Give a schedule service a task that pulls from where its group stands, and notes how far it came."""

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
            return

    service.register_pull_task_callback(says["topic"], task)
