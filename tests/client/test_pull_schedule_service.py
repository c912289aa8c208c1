"""The schedule service: one pull task for each queue, again and again, as long as the queue is the consumer's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from mqlab import MessageQueue
from mqlab.client import MessageModel, PullTaskCallback, PullTaskContext
from mqlab.client.consumer.listener import ListenerRaised
from mqlab.errors import LearnerError, MQClientException
from tests import worlds
from tests.worlds import send

T = [MessageQueue("T", "broker-a", queue_id) for queue_id in range(4)]


class Shop:
    """A lab with one name server, one broker and the topic T of four queues; `ran` notes what the tasks did."""

    def __init__(self, queues: int = 4) -> None:
        self.lab = worlds.shop(queues=queues)
        self.ran: list[tuple[float, str, int]] = []

    def run(self, call: Any) -> Any:
        return self.lab.run(call)

    def service(self, node: str = "S", task: Any = None, topic: str = "T", **settings: Any) -> Any:
        """A service that is not started; without a task its tasks only note that they ran."""
        service = self.lab.pull_schedule_service("G", node=node, **settings)

        def noting(queue: MessageQueue, context: PullTaskContext) -> Any:
            self.ran.append((self.lab.now_ms, node, queue.queue_id))
            return None if task is None else task(queue, context)

        service.register_pull_task_callback(topic, noting)
        return service

    def started(self, node: str = "S", task: Any = None, **settings: Any) -> Any:
        service = self.service(node, task, **settings)
        self.run(service.start())
        return service

    def times(self, node: str = "S", queue_id: int = 0) -> list[float]:
        """When the tasks of a queue ran, ms."""
        return [at_ms for at_ms, where, queue in self.ran if (where, queue) == (node, queue_id)]

    def gaps(self, node: str = "S", queue_id: int = 0) -> list[float]:
        return [round(b - a, 3) for a, b in pairwise(self.times(node, queue_id))]

    def ended(self) -> list[tuple[str, int, str]]:
        return [(r.node, r.queue_id, r.reason) for r in self.lab.history.find("PullTaskEnded")]


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def service(shop: Shop) -> Any:
    """A started service whose tasks only note that they ran."""
    return shop.started()


# -- the rhythm -----------------------------------------------------------------------------------------------------


def test_each_queue_has_its_task_from_the_first_rebalance_on(shop: Shop) -> None:
    service = shop.service()
    begin_ms = shop.lab.now_ms
    shop.run(service.start())
    assert service.task_table == {}
    shop.lab.run_for(seconds=2)
    assert sorted(service.task_table) == T
    first = shop.ran[:4]
    assert {queue_id for _, _, queue_id in first} == {0, 1, 2, 3}
    assert all(1_000 <= at_ms - begin_ms <= 1_060 for at_ms, _, _ in first)


def test_a_task_comes_again_after_200_ms(shop: Shop) -> None:
    shop.started()
    shop.lab.run_for(seconds=5)
    assert len(shop.gaps()) > 15
    assert set(shop.gaps()) == {200.0}


def test_the_200_ms_begin_at_the_end_of_the_task(shop: Shop) -> None:
    async def slow(queue: MessageQueue, context: PullTaskContext) -> None:
        await context.sleep(50)

    shop.started(task=slow)
    shop.lab.run_for(seconds=5)
    assert set(shop.gaps()) == {250.0}


@pytest.mark.parametrize(("asked_ms", "gap_ms"), [(100, 100.0), (1_000, 1_000.0), (0, 7.0), (-5, 7.0)])
def test_a_task_says_itself_when_it_comes_again(shop: Shop, asked_ms: int, gap_ms: float) -> None:
    async def asking(queue: MessageQueue, context: PullTaskContext) -> None:
        assert context.pull_next_delay_time_millis == 200, "what one turn asked for does not hold for the next"
        context.set_pull_next_delay_time_millis(asked_ms)
        if asked_ms <= 0:
            await context.sleep(7)

    shop.started(task=asking)
    shop.lab.run_for(seconds=4)
    assert set(shop.gaps()) == {gap_ms}


@pytest.mark.parametrize("wait", [False, True])
def test_a_task_that_raises_comes_again_after_a_second_and_is_told_of(shop: Shop, wait: bool) -> None:
    async def slowly(queue: MessageQueue, context: PullTaskContext) -> None:
        context.set_pull_next_delay_time_millis(10)
        await context.sleep(100)
        raise ValueError("no idea")

    def at_once(queue: MessageQueue, context: PullTaskContext) -> None:
        raise ValueError("no idea")

    shop.started(task=slowly if wait else at_once)
    with pytest.warns(ListenerRaised, match="the pull task of group 'G' raised ValueError: no idea.*in 1 s") as told:
        shop.lab.run_for(seconds=6)
    assert len(told) == 1, "once for each place, not once for each turn"
    assert set(shop.gaps()) == {1_100.0 if wait else 1_000.0}
    failed = list(shop.lab.history.find("PullTaskFailed", queue_id=0))
    assert {(r.reason, r.cost_us) for r in failed} == {("ValueError: no idea", 100_000 if wait else 0)}


def test_the_next_turn_is_a_normal_one_after_an_error(shop: Shop) -> None:
    turns: list[int] = []

    def once(queue: MessageQueue, context: PullTaskContext) -> None:
        turns.append(queue.queue_id)
        if turns.count(queue.queue_id) == 2:
            raise ValueError("no idea")

    shop.started(task=once)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ListenerRaised)
        shop.lab.run_for(seconds=4)
    assert shop.gaps()[:4] == [200.0, 1_000.0, 200.0, 200.0]


def test_twenty_threads_run_the_tasks_and_the_others_wait(shop: Shop) -> None:
    shop.lab.create_topic("Wide", 25)
    running: list[int] = []
    most: list[int] = []

    async def slow(queue: MessageQueue, context: PullTaskContext) -> None:
        running.append(queue.queue_id)
        most.append(len(running))
        await context.sleep(500)
        running.remove(queue.queue_id)

    shop.started(task=slow, topic="Wide")
    shop.lab.run_for(seconds=1.2)
    assert (max(most), len(shop.ran)) == (20, 20)
    shop.lab.run_for(ms=500)
    assert len({queue_id for _, _, queue_id in shop.ran}) == 25
    assert max(most) == 20


def test_the_number_of_threads_can_be_set(shop: Shop) -> None:
    async def slow(queue: MessageQueue, context: PullTaskContext) -> None:
        await context.sleep(1_000)

    shop.started(task=slow, pull_thread_nums=1)
    shop.lab.run_for(seconds=3.9)
    assert len(shop.ran) == 3
    with pytest.raises(LearnerError, match="not a number of threads"):
        shop.lab.pull_schedule_service("G", pull_thread_nums=0)


# -- what a task does -----------------------------------------------------------------------------------------------


async def article(queue: MessageQueue, context: PullTaskContext, found: list[str]) -> None:
    """The task of RocketMQ's example."""
    consumer = context.pull_consumer
    offset = await consumer.fetch_consume_offset(queue, False)
    result = await consumer.pull(queue, "*", max(0, offset), 32)
    found += [message.body.decode() for message in result.msg_found_list]
    await consumer.update_consume_offset(queue, result.next_begin_offset)
    context.set_pull_next_delay_time_millis(100)


def test_the_task_of_the_example_gets_every_message_once(shop: Shop) -> None:
    found: list[str] = []
    shop.started(task=lambda queue, context: article(queue, context, found))
    producer = shop.lab.producer("PG")
    shop.run(producer.start())
    sent = [f"m{k}" for k in range(100)]
    send(producer, *sent)
    shop.lab.run_for(seconds=3)
    assert sorted(found) == sorted(sent)


def test_a_successor_goes_on_where_the_service_ended(shop: Shop) -> None:
    producer = shop.lab.producer("PG")
    shop.run(producer.start())
    first: list[str] = []
    service = shop.started("S1", lambda queue, context: article(queue, context, first))
    send(producer, *(f"m{k}" for k in range(10)))
    shop.lab.run_for(seconds=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shop.run(service.shutdown())
        shop.lab.run_for(seconds=1)
    send(producer, *(f"m{k}" for k in range(10, 20)))
    second: list[str] = []
    shop.started("S2", lambda queue, context: article(queue, context, second))
    shop.lab.run_for(seconds=3)
    assert sorted(first) == [f"m{k}" for k in range(10)]
    assert sorted(second) == [f"m{k}" for k in range(10, 20)]


def test_a_callback_may_be_an_object(shop: Shop) -> None:
    seen: list[MessageQueue] = []

    class Task(PullTaskCallback):
        async def do_pull_task(self, queue: MessageQueue, context: PullTaskContext) -> None:
            seen.append(queue)

    service = shop.lab.pull_schedule_service("G")
    service.register_pull_task_callback("T", Task())
    shop.run(service.start())
    shop.lab.run_for(seconds=1.1)
    assert seen == T


def test_a_plain_function_may_hand_back_the_call_that_it_made(shop: Shop) -> None:
    shop.started(task=lambda queue, context: context.pull_consumer.pull(queue, "*", 0, 32))
    shop.lab.run_for(seconds=2)
    assert {r.pull_status for r in shop.lab.history.find("PullFinished")} == {"NO_NEW_MSG"}


def test_each_topic_has_its_own_task(shop: Shop) -> None:
    shop.lab.create_topic("Other", 1)
    seen: list[str] = []
    service = shop.service(task=lambda queue, context: seen.append(queue.topic))
    service.register_pull_task_callback("Other", lambda queue, context: seen.append(f"other {queue.topic}"))
    shop.run(service.start())
    shop.lab.run_for(seconds=2)
    assert set(seen) == {"T", "other Other"}
    assert service.default_mq_pull_consumer.register_topics == ["T", "Other"]


def test_a_task_whose_topic_has_no_callback_ends(shop: Shop, service: Any) -> None:
    shop.lab.run_for(seconds=2)
    service.callback_table.clear()
    shop.lab.run_for(seconds=1)
    assert [reason for _, _, reason in shop.ended()] == ["no callback is registered for the topic"] * 4
    before = len(shop.ran)
    shop.lab.run_for(seconds=5)
    assert len(shop.ran) == before


def test_another_task_for_the_same_topic_takes_over_with_the_next_turn(shop: Shop, service: Any) -> None:
    shop.lab.run_for(seconds=2)
    seen: list[int] = []
    service.register_pull_task_callback("T", lambda queue, context: seen.append(queue.queue_id))
    before = len(shop.ran)
    shop.lab.run_for(ms=250)
    assert (len(shop.ran), sorted(set(seen))) == (before, [0, 1, 2, 3])


# -- the rebalance --------------------------------------------------------------------------------------------------


def test_a_newcomer_takes_tasks_over_and_the_old_ones_are_cancelled(shop: Shop) -> None:
    first = shop.started("S1")
    shop.lab.run_for(seconds=2)
    old = dict(first.task_table)
    second = shop.started("S2")
    shop.lab.run_for(seconds=2)
    assert sorted(first.task_table) == T[:2]
    assert sorted(second.task_table) == T[2:]
    assert [old[queue].cancelled for queue in T] == [False, False, True, True]
    assert shop.ended() == [("S1", 2, "it was cancelled"), ("S1", 3, "it was cancelled")]
    joined_ms = min(shop.times("S2", 2))
    assert max(shop.times("S1", 2)) < joined_ms + 200
    assert max(shop.times("S1", 0)) > joined_ms + 500, "the tasks that stay go on in their rhythm"
    assert set(shop.gaps("S1", 0)) == {200.0}


def test_the_tasks_of_a_member_that_left_are_taken_at_once(shop: Shop) -> None:
    first, second = shop.started("S1"), shop.started("S2")
    shop.lab.run_for(seconds=4)
    begin_ms = shop.lab.now_ms
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shop.run(first.shutdown())
        shop.lab.run_until(lambda: sorted(second.task_table) == T)
    assert shop.lab.now_ms - begin_ms < 1_100


def test_a_task_that_runs_while_it_is_cancelled_ends_after_that(shop: Shop) -> None:
    async def slow(queue: MessageQueue, context: PullTaskContext) -> None:
        await context.sleep(1_500)

    shop.started("S1", slow)
    shop.lab.run_for(seconds=2)
    shop.started("S2", slow)
    shop.lab.run_for(seconds=5)
    ended = {entry for entry in shop.ended() if entry[0] == "S1"}
    assert ended == {("S1", 2, "it was cancelled while it ran"), ("S1", 3, "it was cancelled while it ran")}
    finished = [r.ts_us / 1_000 for r in shop.lab.history.find("PullTaskFinished", node="S1", queue_id=2)]
    assert max(finished) > min(shop.times("S2", 2)), "for a while two consumers work on one queue"


def test_a_queue_that_comes_back_gets_a_new_task(shop: Shop, service: Any) -> None:
    shop.lab.run_for(seconds=2)
    old = service.task_table[T[3]]
    service.put_task("T", T[:3])
    service.put_task("T", T)
    assert old.cancelled
    assert service.task_table[T[3]] is not old
    shop.lab.run_for(seconds=2)
    assert shop.ended() == [("S", 3, "it was cancelled")]
    assert set(shop.gaps(queue_id=3)[-3:]) == {200.0}


def test_tasks_of_other_topics_are_left_alone(shop: Shop, service: Any) -> None:
    shop.lab.run_for(seconds=2)
    service.put_task("Other", [])
    assert sorted(service.task_table) == T
    service.put_task("T", [])
    assert service.task_table == {}


def test_a_broadcasting_service_runs_a_task_for_every_queue_on_every_machine(shop: Shop) -> None:
    services = [shop.service(node) for node in ("S1", "S2")]
    for service in services:
        service.message_model = MessageModel.BROADCASTING
        shop.run(service.start())
    begin_ms = shop.lab.now_ms
    shop.lab.run_for(seconds=22)
    assert all(sorted(service.task_table) == T for service in services)
    for node in ("S1", "S2"):
        assert shop.times(node, 3)[0] - begin_ms == pytest.approx(20_000, abs=50)


def test_a_service_takes_the_model_of_its_consumer_as_a_setting(shop: Shop) -> None:
    service = shop.lab.pull_schedule_service("G", message_model="BROADCASTING")
    assert service.message_model is MessageModel.BROADCASTING
    assert shop.lab.pull_schedule_service("G").message_model is MessageModel.CLUSTERING


# -- start and end --------------------------------------------------------------------------------------------------


def test_after_the_shutdown_a_waiting_task_runs_once_more_and_its_consumer_refuses_it(shop: Shop) -> None:
    found: list[str] = []
    service = shop.started(task=lambda queue, context: article(queue, context, found))
    shop.lab.run_for(seconds=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shop.run(service.shutdown())
        before = len(shop.ran)
        shop.lab.run_for(seconds=5)
    assert len(shop.ran) - before == 4
    failed = [r.reason for r in shop.lab.history.find("PullTaskFailed")]
    assert len(failed) == 4
    assert all("The consumer is not in running status, SHUTDOWN_ALREADY" in reason for reason in failed)
    assert {reason for _, _, reason in shop.ended()} == {"the service does not run"}


def test_a_service_is_started_once_and_may_be_shut_down_at_any_time(shop: Shop) -> None:
    service = shop.service()
    shop.run(service.shutdown())
    shop.run(service.start())
    shop.lab.run_for(seconds=2)
    with pytest.raises(MQClientException, match="PullConsumer service state not OK, maybe started once, RUNNING"):
        shop.run(service.start())
    before = len(shop.ran)
    shop.lab.run_for(seconds=1)
    assert len(shop.ran) - before == 20, "the tasks go on"
    shop.run(service.shutdown())
    shop.run(service.shutdown())
    with pytest.raises(MQClientException, match="SHUTDOWN_ALREADY"):
        shop.run(service.start())


def test_a_wrong_setting_is_found_at_the_start(shop: Shop) -> None:
    service = shop.service()
    service.default_mq_pull_consumer.consumer_group = "DEFAULT_CONSUMER"
    with pytest.raises(MQClientException, match="consumerGroup can not equal DEFAULT_CONSUMER"):
        shop.run(service.start())


def test_a_hung_broker_makes_tasks_fail_and_they_recover(shop: Shop) -> None:
    found: list[str] = []
    shop.started(task=lambda queue, context: article(queue, context, found))
    shop.lab.run_for(seconds=2)
    shop.lab.freeze("broker-a")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ListenerRaised)
        shop.lab.run_for(seconds=15)
        shop.lab.thaw("broker-a")
        shop.lab.run_for(seconds=10)
    failed = list(shop.lab.history.find("PullTaskFailed"))
    assert failed
    assert max(r.cost_us for r in failed) == 10_000_000, "a pull waits 10 s for its answer"
    assert all(100 < gap_ms < 102 for gap_ms in shop.gaps(queue_id=0)[-50:]), "the rhythm of the example is back"


WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a task that is none": (lambda s: s.register_pull_task_callback("T", 7), "is not a pull task"),
    "no task": (lambda s: s.register_pull_task_callback("T", None), "is not a pull task"),
    "a topic that is none": (lambda s: s.register_pull_task_callback(7, print), "name of a topic is a text"),
    "half a millisecond": (
        lambda s: PullTaskContext(s.default_mq_pull_consumer).set_pull_next_delay_time_millis(0.5),
        "a delay is a whole number of ms",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_says_what_to_write(shop: Shop, name: str) -> None:
    call, text = WRONG[name]
    with pytest.raises(LearnerError, match=text):
        call(shop.lab.pull_schedule_service("G"))


def test_a_task_for_a_new_topic_is_refused_after_the_start(service: Any) -> None:
    with pytest.raises(LearnerError, match="before the start"):
        service.register_pull_task_callback("Other", print)
    assert service.default_mq_pull_consumer.register_topics == ["T"]


def test_a_wrong_delay_in_a_task_is_an_error_of_the_task(shop: Shop) -> None:
    shop.started(task=lambda queue, context: context.set_pull_next_delay_time_millis("soon"))
    with pytest.warns(ListenerRaised, match="a delay is a whole number of ms, not 'soon'"):
        shop.lab.run_for(seconds=2)


def test_a_restarted_machine_has_its_service_again(shop: Shop) -> None:
    service = shop.started(pull_thread_nums=3, consumer_pull_timeout_millis=1_234)
    shop.lab.run_for(seconds=2)
    shop.lab.crash("S")
    shop.lab.run_for(seconds=2)
    crashed = len(shop.ran)
    shop.lab.restart("S")
    shop.lab.run_for(seconds=3)
    assert len(shop.ran) > crashed
    assert sorted(service.task_table) == T
    assert service.pull_thread_nums == 3
    assert service.default_mq_pull_consumer.consumer_pull_timeout_millis == 1_234
    assert set(shop.gaps()[-3:]) == {200.0}


def test_what_it_looks_like(shop: Shop, service: Any) -> None:
    shop.lab.run_for(seconds=2)
    assert repr(service) == "<MQPullConsumerScheduleService G on S: RUNNING, 4 tasks>"
    task = service.task_table[T[0]]
    assert repr(task) == f"<PullTaskImpl {T[0]}>"
    task.cancelled = True
    assert repr(task) == f"<PullTaskImpl {T[0]}, cancelled>"
