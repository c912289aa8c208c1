"""A group that wants one message of ten: by a tag, by SQL92, by SQL92 with bit maps, and by reading all itself.

The same messages each time, with a tag and a property that say the same; what is measured is the work of everybody,
from the consumer's start until it has seen the last message that it wants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from benchmarks.harness import Figure, beside, operations_per_second
from benchmarks.messages import SENDERS, TOPIC, Flow
from benchmarks.peers import BODY, MESSAGES
from mqlab import Message
from mqlab.client import ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, DefaultMQProducer, MessageExt
from mqlab.client.consumer.message_selector import MessageSelector

ONE_OF = 10
WANTED_TAG, OTHER_TAG = "paid", "open"
CONDITION = "amount BETWEEN 0 AND 9 AND city IN ('Berlin', 'Oslo')"
BITS: dict[str, Any] = {"enable_consume_queue_ext": True, "enable_calc_filter_bit_map": True}

_inside_send = DefaultMQProducer.send.inside  # type: ignore[attr-defined]  # see public_call


class FilteredFlow(Flow):
    """The lab of the message figures, with a consumer that wants a part."""

    def __init__(self, wanted: str | MessageSelector, **settings: Any) -> None:
        super().__init__(enable_property_filter=True, **settings)
        self.consumer.subscribe(TOPIC, wanted)

    def _listen(self, messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
        return super()._listen([message for message in messages if message.tags == WANTED_TAG], context)

    async def _load(self, count: int) -> None:
        for number in range(count):
            message = Message(TOPIC, BODY, tags=OTHER_TAG if number % ONE_OF else WANTED_TAG)
            message.put_user_property("amount", str(number % ONE_OF * 10))
            message.put_user_property("city", "Oslo")
            await _inside_send(self.producer, message)


def reading(wanted: str | MessageSelector, **settings: Any) -> Callable[[], int]:
    """A backlog, ready to be read by a group that is known to the broker, so that bits were set for it."""
    flow = FilteredFlow(wanted, **settings)
    flow.start_consumer()
    flow.consumer.suspend()
    count = MESSAGES // SENDERS
    flow.expect(SENDERS * -(-count // ONE_OF))
    flow.send_all(MESSAGES)

    def run() -> int:
        flow.consumer.resume()
        flow.wait_for_all()
        return MESSAGES

    return run


@cache
def _rates() -> dict[str, float]:
    by_sql = MessageSelector.by_sql(CONDITION)
    return operations_per_second(
        {
            "tag": partial(reading, WANTED_TAG),
            "sql": partial(reading, by_sql),
            "sql with bits": partial(reading, by_sql, **BITS),
            "all": partial(reading, "*"),
        }
    )


def one_of_ten() -> list[Figure]:
    """A tenth of a backlog by SQL92, beside a tag, beside bit maps, and beside reading all of it."""
    rates = _rates()
    return [
        beside("a tenth of a backlog by SQL92 / by a tag", rates["sql"], "messages/s", rates["tag"]),
        beside("a tenth by SQL92 with bit maps / by a tag", rates["sql with bits"], "messages/s", rates["tag"]),
        beside("a tenth by SQL92 / all read", rates["sql"], "messages/s", rates["all"]),
    ]
