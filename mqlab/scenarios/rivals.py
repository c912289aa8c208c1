"""The rivals of long polling: one load, and four ways in which a consumer can come by its messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from mqlab.client import MessageModel
from mqlab.errors import LearnerError
from mqlab.protocol import Message, MessageQueue
from mqlab.scenarios.numbered import FAILURES, TOPIC, number_of, reader, spawn_sending
from mqlab.scenarios.pulling import READERS, new_service
from mqlab.scenarios.registry import WITHOUT_POWER_CUTS, get, scenario, story
from mqlab.views.rivals import Rival, RivalMeter

if TYPE_CHECKING:
    from mqlab.client import DefaultMQPullConsumer, PullResult
    from mqlab.lab import Lab

Way = Literal["interval", "busy", "short", "long"]
WAYS = {
    "interval": "fixed-interval pull",
    "busy": "busy pull",
    "short": "short polling",
    "long": "long polling",
}
"""The rivals by the value of `way`, with the names under which they are drawn."""

SETTLE_SECONDS = 3
"""After this the first pulls are under way, whatever the way."""
MINUTE_MS = 60_000
AFTER_AN_ERROR_MS = 1_000
ARRIVAL_MS = 100
"""Until then every pull that an arrival concerns is answered."""


RIVALS = story("""
    PullHeld 1 broker-a: The consumer has asked for messages. There are none, so the broker keeps the question.
    MessageStored 1 broker-a: An order comes, and the broker stores it.
    PullWoken 2 broker-a: The question that waited is answered at once, with the order in it.
    ConsumeStarted 3 consumer-1: So the listener has it a moment after it was stored, and not with the next look.
    PullHeld 6 consumer-1: The consumer asks again, and waits again. Between two orders nothing travels.
    MessageStored 8 broker-a: One question for each order: that is all that this costs.
""")


@scenario("rivals", seconds=20, faults=WITHOUT_POWER_CUTS, captions=RIVALS)
async def rivals(
    lab: Lab, *, way: Way = "long", interval_ms: int = 1_000, rate_per_minute: int = 60, queues: int = 1
) -> None:
    """Orders come at a steady rate; the consumer pulls at an interval, pulls without rest, polls short or polls long.

    `way` is interval, busy, short or long; `interval_ms` counts for the first one alone. A load lasts two minutes.
    """
    for name, value in (("interval_ms", interval_ms), ("rate_per_minute", rate_per_minute), ("queues", queues)):
        if value < 1:
            raise LearnerError(f"{name}={value} is too small", "give 1 or more")
    lab.name_server()
    lab.broker("broker-a", long_polling_enable=way != "short")
    lab.create_topic(TOPIC, queues)
    if way in ("short", "long"):
        consumer = lab.consumer(READERS)
        consumer.subscribe(TOPIC, "*")
        consumer.register_message_listener(reader(consumer))
        await consumer.start()
    elif way == "interval":
        await new_service(lab, next_delay_ms=interval_ms, message_model=MessageModel.CLUSTERING).start()
    else:
        await start_without_rest(lab)
    producer = lab.producer("shop")
    await producer.start()
    lab.run_for(seconds=SETTLE_SECONDS)
    spawn_sending(producer, messages=2 * rate_per_minute, every_ms=max(1, MINUTE_MS // rate_per_minute))


async def start_without_rest(lab: Lab) -> None:
    """A pull consumer with a task for each queue that asks again as soon as it has an answer."""
    consumer = lab.pull_consumer(READERS)
    await consumer.start()
    for queue in await consumer.fetch_subscribe_message_queues(TOPIC):
        consumer.node.spawn(_pull_without_rest(consumer, queue), f"busy pull of queue {queue.queue_id}")


async def _pull_without_rest(consumer: DefaultMQPullConsumer, queue: MessageQueue) -> None:
    pull = type(consumer).pull.inside  # type: ignore[attr-defined]  # see public_call
    offset = 0
    while True:
        try:
            result = await pull(consumer, queue, "*", offset, 32)
        except FAILURES:
            await consumer.node.sleep(AFTER_AN_ERROR_MS)
            continue
        for message in result.msg_found_list:
            number_of(message)
        offset = result.next_begin_offset


class Arrival(NamedTuple):
    """What one order set in motion in a broker that held pulls: slices of the world up to the last answer to them.

    `answers_ms` are counted from the call of send, in order; `still_held` pulls were left alone.
    """

    slices: int
    answers_ms: tuple[float, ...]
    still_held: int


def arrival(*, pulls: int, queues: int, seed: int | str = 0) -> Arrival:
    """Let a broker hold so many pulls, spread over so many queues, and send one order to queue 0."""
    from mqlab.lab import Lab

    if not 1 <= queues <= pulls:
        raise LearnerError(
            f"{pulls} pulls cannot wait for {queues} queues", "give 1 queue or more, and a pull for each"
        )
    lab = Lab(seed, history=False)
    lab.name_server()
    broker = lab.broker("broker-a")
    lab.create_topic(TOPIC, queues)
    first = MessageQueue(TOPIC, "broker-a", 0)
    producer = lab.producer("shop")
    lab.run(producer.start())
    lab.run(producer.send(Message(TOPIC, b"the first order, to learn the route"), queue=first))
    lab.run_for(ms=5)
    answered = _ask_often(lab, pulls, queues)
    before, begin_ms = lab.world.slice_no, lab.now_ms
    lab.run(producer.send(Message(TOPIC, b"an order"), queue=first))
    last = lab.world.slice_no
    lab.run_for(ms=ARRIVAL_MS)
    last = max([last, *(slice_no for _, slice_no in answered)])
    times_ms = tuple(round(at_ms - begin_ms, 3) for at_ms, _ in answered)
    return Arrival(last - before, times_ms, len(broker.running().pull_request_hold_service.held()))


def _ask_often(lab: Lab, pulls: int, queues: int) -> list[tuple[float, int]]:
    """Pulls that the broker holds; the list fills with the time (ms) and the slice of each answer."""
    consumer = lab.pull_consumer(READERS)
    lab.run(consumer.start())
    answered: list[tuple[float, int]] = []

    def callback(result: PullResult | None, error: Exception | None) -> None:
        answered.append((lab.now_ms, lab.world.slice_no))

    for number in range(pulls):
        queue_id = number % queues
        queue, offset = MessageQueue(TOPIC, "broker-a", queue_id), 1 if queue_id == 0 else 0
        lab.run(consumer.pull_block_if_not_found_async(queue, "*", offset, 32, callback))
    lab.run_for(ms=20)
    return answered


def measure(
    way: str,
    seed: int | str = 0,
    *,
    seconds: float = 30,
    interval_ms: int = 1_000,
    rate_per_minute: int = 60,
    queues: int = 1,
) -> Rival:
    """Play one rival for `seconds` of its load and measure it; it is named by its way and, if it has one, interval.

    Nothing of the world is kept, so that a busy pull with its thousands of requests costs little.
    """
    parameters = {"way": way, "interval_ms": interval_ms, "rate_per_minute": rate_per_minute, "queues": queues}
    lab = get("rivals").build(seed, parameters=parameters, history=False)
    meter = RivalMeter(TOPIC)
    begin_ms = lab.now_ms
    lab.world.hooks.attach(meter)
    lab.run_for(seconds=seconds)
    name = f"pull every {_interval(interval_ms)}" if way == "interval" else WAYS[way]
    return meter.rival(name, lab.now_ms - begin_ms, family=WAYS[way])


def _interval(ms: int) -> str:
    return f"{ms / 1_000:g} s" if ms >= 1_000 else f"{ms} ms"
