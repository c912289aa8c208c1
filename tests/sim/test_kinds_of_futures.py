"""A task may wait for a future of a class of its own, as the store gives one to who waits for a slow disk's log."""

from __future__ import annotations

from mqlab.lab import Lab
from mqlab.protocol.message import Message
from mqlab.sim import Future


class Kind(Future[int]):
    """A future of another class."""


def test_a_task_waits_for_it_and_is_resumed() -> None:
    lab = Lab(seed=1)
    node, heard = lab.node("a"), []
    future: Kind = Kind("a number")

    async def wait() -> None:
        heard.append(await future)

    node.spawn(wait(), "first")
    node.spawn(wait(), "second")
    lab.run_for(1)
    future.set_result(7)
    lab.run_for(1)
    assert heard == [7, 7]


def test_a_cancelled_task_waits_for_it_no_longer() -> None:
    lab = Lab(seed=1)
    node, heard = lab.node("a"), []
    future: Kind = Kind("a number")

    async def wait() -> None:
        heard.append(await future)

    task = node.spawn(wait(), "first")
    lab.run_for(1)
    task.cancel()
    lab.run_for(1)
    future.set_result(7)
    lab.run_for(1)
    assert task.done
    assert heard == []


def test_a_timer_message_that_is_due_on_a_slow_disk_is_delivered() -> None:
    lab = Lab(seed=1)
    lab.name_server()
    broker = lab.broker("broker-a")
    lab.create_topic("TopicTest", queues=1)
    producer = lab.producer("pg")

    async def send() -> None:
        await producer.start()
        message = Message("TopicTest", b"later")
        message.properties["TIMER_DELAY_SEC"] = "5"
        await producer.send(message)

    producer.node.spawn(send(), "send")
    lab.run_for(3_000)
    lab.act("slow_disk", node="broker-a", ms=1_500)
    lab.run_for(20_000)
    assert broker.store.get_max_offset_in_queue("TopicTest", 0) == 1
