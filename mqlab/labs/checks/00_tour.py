"""The checks of lab 00_tour."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from random import Random
from typing import Any, NamedTuple

from mqlab import ConsumeConcurrentlyStatus, Lab, Message
from mqlab.check import Cases, Wrong, is_number, lab_check
from mqlab.trace.record import Record

BreakpointFactory = Callable[[str], Callable[[Record], bool]]
MESSAGES = 6
LOOK_FOR_MS = 200


class Place(NamedTuple):
    """An event that says where a message lies, as far as this check needs one."""

    kind: str
    node: str
    topic: str
    queue_id: int
    queue_offset: int
    commit_log_offset: int


@lab_check("00/same-message", points=1)
def same_message(answer: Callable[[Place, Place], bool], *, seed: int) -> Wrong | None:
    """Every message of one or two brokers is found again, and none is taken for another."""
    stored, cases = _stored_messages(Random(seed)), Cases()
    for first, second in product(stored, stored):
        told = answer(first, second._replace(kind="MessageDispatched"))
        if not isinstance(told, bool):
            return Wrong(f"True or False is wanted, and yours gives {told!r}")
        was = "one message" if first is second else "two messages"
        story = f"{first}\n{second._replace(kind='MessageDispatched')}"
        right = told == (first is second)
        cases.note(was, right or Wrong(f"these events are about {was}, and yours says {told}", story))
    return cases.result


def _stored_messages(random: Random) -> list[Place]:
    """Some messages of equal size, in two topics with two queues, on one broker or two."""
    places = []
    for node in ("broker-a", "broker-b")[: random.randint(1, 2)]:
        counts: dict[tuple[str, int], int] = {}
        for number in range(random.randint(3, 6)):
            queue = (random.choice(["TopicTest", "Audit"]), random.randint(0, 1))
            places.append(Place("MessageStored", node, *queue, counts.get(queue, 0), number * 200))
            counts[queue] = counts.get(queue, 0) + 1
    return places


@lab_check("00/most-early", points=1)
def most_early(answer: Callable[[dict[str, float], dict[str, float]], float], *, seed: int) -> Wrong | None:
    """Listeners that were early with many messages, with one or with none."""
    random, cases = Random(f"00/most-early/{seed}"), Cases()
    for often in random.sample([0, 0.3, 1], 3):
        ids = [f"message-{number}" for number in range(random.randint(1, 12))]
        returned = {one: random.randint(1, 900) + random.randint(0, 999) / 1_000 for one in ids}
        early = {one for one in ids if random.random() < often}
        called = {one: at - random.randint(1, 300) if one in early else at + 5 for one, at in returned.items()}
        want = max([0.0, *(at - called[one] for one, at in returned.items())])
        returned["not handed over"] = random.randint(1, 900)
        called["of another producer"] = random.randint(1, 900)
        got = answer(dict(returned), dict(called))
        right = is_number(got) and abs(got - want) < 0.001
        lines = (f"{one}: called at {called[one]:.3f} ms, send returned at {returned[one]:.3f} ms" for one in ids)
        cases.note(want, right or Wrong(f"at most {want:.3f} ms early, yours says {got!r}", "\n".join(lines)))
    return cases.result


@lab_check("00/lag", points=1)
def lag(answer: Callable[[dict[int, int], dict[int, int]], int], *, seed: int) -> Wrong | None:
    """Groups that have read everything, something or nothing of a queue."""
    random = Random(seed)
    ends = {queue_id: random.randint(0, 300) for queue_id in range(random.randint(1, 8))}
    read = {queue_id: random.choice([end, random.randint(0, end)]) for queue_id, end in ends.items()}
    for queue_id in random.sample(sorted(read), random.randint(0, len(read) - 1)):
        del read[queue_id]
    want = sum(ends.values()) - sum(read.values())
    got = answer(dict(ends), dict(read))
    if got == want:
        return None
    lines = (f"queue {n}: ends at {end}, read to {read.get(n, '(not read at all)')}" for n, end in ends.items())
    return Wrong(f"{want} messages wait, yours says {got!r}", "\n".join(lines))


@lab_check("00/visible", points=2)
def visible(answer: BreakpointFactory, *, seed: int) -> Wrong | None:
    """The world stops once, exactly when the queue of one broker reaches the message, whether or not anyone waits."""
    lab, message_id = _world_with_messages_under_way(seed)
    stored = lab.run_until_event("MessageStored", unique_key=message_id)
    while not _reaches(lab, stored):
        lab.step()
    right_slice = lab.world.slice_no
    place = {"queue_id": stored.queue_id, "queue_offset": stored.queue_offset}
    right = lab.history.last("MessageDispatched", node=stored.node, topic=stored.topic, **place)

    lab, message_id = _world_with_messages_under_way(seed)
    with lab.break_on(answer(message_id)) as breakpoint_:
        lab.run_for(ms=LOOK_FOR_MS)
        stopped, slice_no, seen = lab.stopped_at, lab.world.slice_no, _reaches(lab, stored)
        lab.run_for(ms=LOOK_FOR_MS)
    about = f"the message {message_id[-4:]} (queue {stored.queue_id} on {stored.node}, offset {stored.queue_offset})"
    if stopped is None:
        return Wrong(f"{about} became visible, and your breakpoint never said yes", _trace(stored, right))
    if slice_no < right_slice:
        return Wrong(f"you stopped too early: the queue does not reach {about} yet", _trace(stored, stopped, right))
    if slice_no > right_slice or not seen:
        return Wrong(f"you stopped too late: {about} was visible before", _trace(stored, right, stopped))
    if breakpoint_.hits > 1:
        return Wrong(f"{about} became visible once; you said yes {breakpoint_.hits} times", _trace(stored, right))
    return None


def _world_with_messages_under_way(seed: int) -> tuple[Lab, str]:
    """One or two brokers, perhaps a consumer, six sends begun at once; and the id of one of the messages."""
    lab = Lab(seed=seed)
    lab.name_server()
    for letter in "ab"[: 1 + seed % 2]:
        lab.broker(f"broker-{letter}")
    lab.create_topic("TopicTest", 1 + seed % 3)
    lab.create_topic("Audit", 1)
    if seed % 5:
        consumer = lab.consumer("readers")
        consumer.subscribe("TopicTest", "*")
        consumer.register_message_listener(_content)
        lab.run(consumer.start())
    producers = [lab.producer("orders") for _ in range(2)]
    for producer in producers:
        lab.run(producer.start())
    lab.run_for(seconds=3)
    topics = ("TopicTest", "Audit", "TopicTest")
    for n in range(MESSAGES):
        producers[n % 2].send(Message(topics[n % 3], b"%d" % n)).start()
    chosen = lab.run_until_event("SendAttempted")
    for _ in range(seed % MESSAGES):
        chosen = lab.run_until_event("SendAttempted")
    return lab, str(chosen.msg_id)


def _content(messages: Sequence[Any], context: Any) -> ConsumeConcurrentlyStatus:
    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS


def _reaches(lab: Lab, stored: Record) -> bool:
    """Would a pull that asks for this message get it?"""
    broker = next(broker for broker in lab.brokers if broker.name == stored.node)
    return broker.store.get_max_offset_in_queue(stored.topic, stored.queue_id) > int(stored.queue_offset)


def _trace(*records: Record | None) -> str:
    lines = [f"{record.ts_ms:.3f} ms  {record.node}  {record.kind}  {_where(record)}" for record in records if record]
    return "\n".join(lines)


def _where(record: Record) -> str:
    wanted = ("topic", "queue_id", "queue_offset", "commit_log_offset")
    return " ".join(f"{name}={record.get(name)}" for name in wanted if record.get(name) is not None)
