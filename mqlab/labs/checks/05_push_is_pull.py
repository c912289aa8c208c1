"""The checks of lab 05: how long a pull is held, what wakes it, what pollers ask, and a student's hold service."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from mqlab.check import Cases, Right, Wrong, is_number, lab_check
from mqlab.exercises.waiting_room import WaitingRoom
from mqlab.lab import Lab
from mqlab.protocol.message import Message, MessageQueue
from mqlab.scenarios import get
from mqlab.views.rivals import RivalMeter

PASS_MS = 5_000
SLACK_MS = 5


@lab_check("05/held-for", points=1)
def held_for(answer: Callable[[int, int], float], *, seed: int) -> Wrong | None:
    """A broker holds an empty pull for as long as was foretold, to 5 ms."""
    random = Random(seed)
    hold_ms, wait_ms = random.randrange(2_000, 19_000, 100), random.randrange(100, PASS_MS)
    lab = Lab(seed)
    lab.name_server()
    lab.broker()
    lab.create_topic("Orders", 1)
    consumer = lab.pull_consumer("readers", broker_suspend_max_time_millis=hold_ms)
    lab.run(consumer.start())
    lab.run_for(ms=wait_ms)
    queue = MessageQueue("Orders", "broker-a", 0)
    lab.run(consumer.pull_block_if_not_found_async(queue, "*", 0, 32, lambda *_: None))
    held = lab.run_until_event("PullHeld")
    was_ms = lab.run_until_event("PullWoken").ts_ms - held.ts_ms
    ages_ms = [event.ts_ms - held.ts_ms for event in lab.history.find("HeldPullsChecked")]
    if any(abs(age_ms - hold_ms) < 2 * SLACK_MS for age_ms in ages_ms):
        return None  # a pass comes just when the time is up, and microseconds decide
    next_pass_ms = round(ages_ms[0])
    foretold = answer(next_pass_ms, hold_ms)
    if not is_number(foretold) or abs(foretold - was_ms) > SLACK_MS:
        asked = f"held_for(next_pass_ms={next_pass_ms}, hold_ms={hold_ms})"
        told = f"{asked} is {foretold!r}, and the pull was held for {was_ms:.0f} ms"
        return Wrong(told, "\n".join(f"a pass, when the pull is {age_ms:.0f} ms old" for age_ms in ages_ms))
    return None


@lab_check("05/wakes", points=1)
def wakes(answer: Callable[[int, set[int], int, int | None], bool], *, seed: int) -> Wrong | None:
    """Notices and passes, old offsets and new ones, right tags and wrong ones: who is woken?"""
    random, questions = Random(seed), Cases()
    codes = random.sample(range(1_000, 9_999), 3)
    pull_offset = random.randrange(50)
    cases = [
        (wanted, pull_offset + further, tags_code)
        for wanted in (set(), {codes[0]}, {codes[0], codes[1]})
        for further in (random.randrange(-1, 1), 0, 1, random.randrange(2, 9))
        for tags_code in (None, codes[0], codes[2])
    ]
    random.shuffle(cases)
    for wanted, max_offset, tags_code in cases:
        right = max_offset > pull_offset and (tags_code is None or not wanted or tags_code in wanted)
        said = answer(pull_offset, set(wanted), max_offset, tags_code)
        asked = f"wakes({pull_offset}, {wanted or 'set()'}, {max_offset}, {tags_code})"
        questions.note(right, bool(said) is right or Wrong(f"{asked} is {said!r}, and should be {right}"))
    return questions.result


@lab_check("05/asks", points=1)
def asks_per_minute(answer: Callable[[int, float, float], float], *, seed: int) -> Wrong | None:
    """Pollers of one to three queues, with a broker far away, send as many requests as was foretold."""
    random = Random(f"05/asks/{seed}")
    queues, interval_ms, way_ms = random.randint(1, 3), random.randrange(300, 1_500, 50), random.randint(20, 400)
    lab = get("rivals").build(
        seed, parameters={"way": "interval", "interval_ms": interval_ms, "queues": queues}, history=False
    )
    for there, back in (("consumer-1", "broker-a"), ("broker-a", "consumer-1")):
        lab.act("delay", source=there, target=back, ms=way_ms)
    lab.run_for(seconds=3)
    meter = RivalMeter("Orders")
    lab.world.hooks.attach(meter)
    lab.run_for(seconds=30)
    foretold = answer(queues, interval_ms, 2 * way_ms)
    # In half a minute each task may have sent one more, or one less.
    if is_number(foretold) and abs(foretold / 2 - meter.requests) <= queues + 0.02 * meter.requests:
        return None
    asked = f"asks_per_minute(queues={queues}, interval_ms={interval_ms}, round_trip_ms={2 * way_ms})"
    return Wrong(f"{asked} is {foretold!r}, and in half a minute {meter.requests} requests were sent")


@lab_check("05/table", points=1)
def hold_table(answer: Callable[[list[tuple[str, int, int]]], dict[str, list[int]]], *, seed: int) -> Wrong | None:
    """A broker holds pulls for the queues of two topics: the table is its own."""
    random = Random(f"05/table/{seed}")
    lab = Lab(seed, history=False)
    lab.name_server()
    broker = lab.broker()
    producer, consumer = lab.producer("shop"), lab.pull_consumer("readers")
    lab.run(producer.start())
    lab.run(consumer.start())
    queues = [MessageQueue(topic, "broker-a", number) for topic in ("Orders", "Refunds") for number in range(3)]
    for topic in ("Orders", "Refunds"):
        lab.create_topic(topic, 3)
    ends = {queue: random.randrange(4) for queue in queues}
    for queue, end in ends.items():
        for _ in range(end):
            lab.run(producer.send(Message(queue.topic, b"an order"), queue=queue))
    lab.run_for(ms=5)
    pulls = []
    for queue in random.choices(queues, k=random.randint(4, 12)):
        pulls.append((queue.topic, queue.queue_id, ends[queue]))
        lab.run(consumer.pull_block_if_not_found_async(queue, "*", ends[queue], 32, lambda *_: None))
    lab.run_for(ms=20)
    got = answer(list(pulls))
    held = broker.running().pull_request_hold_service.pull_request_table
    want = {f"{topic}@{queue}": [held.offset for held in requests] for (topic, queue), requests in held.items()}
    if got == want:
        return None
    return Wrong(f"the broker's table is {want}, and yours is {got!r}", "\n".join(map(str, pulls)))


@lab_check("05/hold", points=3)
def hold(answer: Callable[[], Any], *, seed: int) -> Right | Wrong:
    """Readers of 12 to 20 queues wait in a real broker: prompt, with no empty answer too soon, and with little work."""
    room = WaitingRoom(answer(), seed)
    room.play()
    if room.wrong:
        return Wrong(room.wrong, room.story())
    work = room.service.comparisons
    return Right({"comparisons for all arrivals": {"yours": work.done, "allowed": work.allowed}})
