"""A broker with a hold service of somebody's own: readers wait, orders come, and delay, answers and work are counted.

`WaitingRoom(service, seed).play()` is one world; lab 05 judges hold services with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import TYPE_CHECKING, Any

from mqlab.broker.pull_request_hold_service import CHECK_PERIOD_MS, PullRequestHoldService
from mqlab.exercises.exercise_world import ExerciseWorld
from mqlab.exercises.handed_over import handed_over, handed_over_to_compare
from mqlab.protocol import Message, MessageQueue
from mqlab.trace.record import Record

if TYPE_CHECKING:
    from mqlab.broker.broker_controller import BrokerController
    from mqlab.broker.pull_request import PullRequest
    from mqlab.client import DefaultMQPullConsumer

TOPIC = "Orders"
TIMEOUT_MS = 15_000
PLAY_MS = 27_000
PROMPT_MS = 5
"""How late a message may be when the hold service was told of it."""
COMPARISONS = 4
"""For each pull that waits for the queue of an arrival, and this many more whatever happens."""
SPARE = 12


class Work:
    """Counts the comparisons of what belongs to a pull."""

    def __init__(self) -> None:
        self.done = 0


class Comparisons:
    """What all arrivals cost together, and what they may cost."""

    def __init__(self) -> None:
        self.done = 0
        self.allowed = 0


@handed_over_to_compare
class Number(int):
    """A whole number that counts how often it is compared."""

    work: Work

    @classmethod
    def counted(cls, value: int, work: Work) -> Number:
        """That value, counted in `work`."""
        number = cls(value)
        number.work = work
        return number

    def __lt__(self, other: int) -> bool:
        self.work.done += 1
        return int.__lt__(self, other)

    def __le__(self, other: int) -> bool:
        self.work.done += 1
        return int.__le__(self, other)

    def __gt__(self, other: int) -> bool:
        self.work.done += 1
        return int.__gt__(self, other)

    def __ge__(self, other: int) -> bool:
        self.work.done += 1
        return int.__ge__(self, other)

    def __eq__(self, other: object) -> bool:
        self.work.done += 1
        return int.__eq__(self, other)

    def __hash__(self) -> int:
        return int.__hash__(self)


@handed_over_to_compare
class Queue:
    """One queue as the service sees it: fit to be a key. Comparing it counts, and so do looking it up and its text."""

    __slots__ = ("_number", "_work")

    def __init__(self, number: int, work: Work) -> None:
        self._number = number
        self._work = work

    def __eq__(self, other: object) -> bool:
        self._work.done += 1
        return isinstance(other, Queue) and self._number == other._number

    def __hash__(self) -> int:
        self._work.done += 1
        return self._number

    def __repr__(self) -> str:
        self._work.done += 1
        return f"queue {self._number}"


@handed_over
class Pull:
    """A pull that found nothing: it waits for what comes to `queue` at `offset` or later, until `due_ms`."""

    def __init__(self, request: PullRequest, number: int, work: Work) -> None:
        header = request.header
        self._request = request
        self._place = (header.queue_id, header.queue_offset)
        self.number = number
        self._work = work
        self.queue = Queue(header.queue_id, work)
        self.offset = Number.counted(header.queue_offset, work)
        self.due_ms = Number.counted(request.suspended_us // 1_000 + request.timeout_ms, work)

    def __repr__(self) -> str:
        self._work.done += 1
        return f"pull {self.number} (queue {self._place[0]}, from offset {self._place[1]})"


class OwnHoldService(PullRequestHoldService):
    """The broker's hold service, whose decisions are those of another object.

    One notice of an arrival in eight is lost. In a broker of many threads this happens when a message is dispatched
    after a pull has looked into its queue, and before it is put aside. Another one in eight comes a second time, with
    the next pass. Of many threads one may have read the message, and wait for the next, before the notice is there.
    """

    def __init__(
        self, controller: BrokerController, answer: Any, seed: int, tell: Callable[[str, int | None], None]
    ) -> None:
        super().__init__(
            controller.node,
            controller.broker_config,
            controller.message_store.get_max_offset_in_queue,
            controller.pull_message_processor.execute_request_when_wakeup,
        )
        self.work = Work()
        self.comparisons = Comparisons()
        self.lost: set[tuple[int, int]] = set()
        self.late: list[tuple[int, int]] = []
        """Notices that are yet to come a second time: queue id and the offset that the next message will get."""
        self.wrong = ""
        self.about: int | None = None
        """The queue that it went wrong with, if it is one."""
        self.raised: Exception | None = None
        self._answer = answer
        self._pulls: dict[int, Pull] = {}
        self._numbers = 0
        self._told_of: int | None = None
        self._random = Random(seed)
        self._tell = tell
        self._newest = controller.message_store.get_max_offset_in_queue

    def suspend_pull_request(self, topic: str, queue_id: int, request: PullRequest) -> None:
        """Put a request aside: the service keeps it, too."""
        if topic != TOPIC or self.wrong:
            return
        super().suspend_pull_request(topic, queue_id, request)
        self._numbers += 1
        pull = Pull(request, self._numbers, self.work)
        self._pulls[self._numbers] = pull
        self._tell(f"hold({pull})", queue_id)
        self._ask(self._answer.hold, pull)

    def tick(self) -> None:
        """One pass over what waits, as PullRequestHoldService makes it."""
        if self.wrong:
            return

        def max_offset_of(queue: Queue) -> int:
            return self._newest(TOPIC, queue._number)

        late, self.late = self.late, []
        for queue_id, max_offset in late:
            self._arrived(queue_id, max_offset, "again, late: ")
        if self.wrong:
            return
        self._told_of = None
        now_ms = self.node.now_us() // 1_000
        self._tell(f"look({now_ms}): {len(self._pulls)} are held", None)
        self._answer_all(self._ask(self._answer.look, now_ms, max_offset_of))

    def notify_message_arriving(self, topic: str, queue_id: int, max_offset: int, *_: Any) -> None:
        """A message can be read; the notice may get lost."""
        if topic != TOPIC or self.wrong:
            return
        drawn = self._random.randrange(8)
        if drawn == 0:
            self.lost.add((queue_id, max_offset - 1))
            self._tell(f"(offset {max_offset - 1} comes to queue {queue_id}, but the notice is lost)", queue_id)
            return
        if drawn == 1:
            self.late.append((queue_id, max_offset))
        self._arrived(queue_id, max_offset, "")

    def _arrived(self, queue_id: int, max_offset: int, how: str) -> None:
        waiting = sum(pull._place[0] == queue_id for pull in self._pulls.values())
        held = f"{_counted(waiting)} for it, {len(self._pulls)} are held"
        self._tell(f"{how}arrived(queue {queue_id}, {max_offset}): {held}", queue_id)
        self._told_of = queue_id
        self.work.done = 0
        woken = self._ask(self._answer.arrived, Queue(queue_id, self.work), max_offset)
        allowed = SPARE + COMPARISONS * waiting
        self.comparisons.done += self.work.done
        self.comparisons.allowed += allowed
        if self.work.done > allowed:
            told = f"one arrival cost {self.work.done} comparisons; of {len(self._pulls)} pulls that are held"
            self._object(f"{told}, {_counted(waiting)} for this queue, so {allowed} are allowed")
        self._answer_all(woken)

    def _ask(self, method: Callable[..., Any], *arguments: Any) -> Any:
        """Call one of its methods; what it raises is kept, since a broker would answer it with an error."""
        try:
            return method(*arguments)
        except Exception as error:  # noqa: BLE001  # somebody's own code may raise anything
            self.raised = error
            self._object(f"your code raised {type(error).__name__}: {error}")
            return []

    def _answer_all(self, pulls: Any) -> None:
        if not isinstance(pulls, Iterable):
            self._object(f"a list of pulls is wanted, and yours gives {type(pulls).__name__}")
            return
        for pull in list(pulls):
            if not isinstance(pull, Pull):
                self._object(f"a list of pulls is wanted, and yours has {pull!r} in it")
                return
            if self._pulls.pop(pull.number, None) is None:
                self._object(f"{pull} is answered a second time: it was taken out before", pull._place[0])
                return
            self._let_go(pull)
            if self.wrong:
                return

    def _let_go(self, pull: Pull) -> None:
        queue_id, offset = pull._place
        now_us = self.node.now_us()
        early = now_us < pull._request.suspended_us + TIMEOUT_MS * 1_000 - 1_000
        if early and self._newest(TOPIC, queue_id) <= offset:
            about = queue_id if self._told_of in (None, queue_id) else None
            self._tell(f"  answers {pull}, which wants the next message of the queue", queue_id)
            self._object(f"{pull} is answered, with nothing to give, before its time is up", about)
            return
        self._tell(f"  answers {pull}", queue_id)
        self.pull_request_table[TOPIC, queue_id].remove(pull._request)
        if not self.pull_request_table[TOPIC, queue_id]:
            del self.pull_request_table[TOPIC, queue_id]
        self._execute_request_when_wakeup(pull._request)

    def overdue(self) -> None:
        """Is a pull held for longer than its time and one pass?"""
        for pull in self._pulls.values():
            held_ms = (self.node.now_us() - pull._request.suspended_us) / 1_000
            if held_ms > TIMEOUT_MS + CHECK_PERIOD_MS + PROMPT_MS:
                told = f"{pull} is held for {held_ms / 1_000:.1f} s by now, and its time was 15 s"
                self._object(told, pull._place[0])
                return

    def _object(self, told: str, queue_id: int | None = None) -> None:
        if not self.wrong:
            self.wrong, self.about = told, queue_id


class WaitingRoom(ExerciseWorld):
    """One seed's world: a broker with this service, readers that ask again and again, orders now and then."""

    def __init__(self, answer: Any, seed: int) -> None:
        super().__init__(seed)
        self.lab.name_server()
        broker = self.lab.broker("broker-a")
        self.queues = self.random.choice((12, 16, 20))
        self.lab.create_topic(TOPIC, self.queues)
        controller = broker.running()
        self.service = OwnHoldService(controller, answer, seed, self.tell)
        self._install(controller)
        self.stored_us: dict[tuple[int, int], int] = {}
        self.late = ""
        self._late_queue: int | None = None

    def _install(self, controller: BrokerController) -> None:
        controller.pull_request_hold_service.shutdown()
        controller.pull_request_hold_service = self.service
        controller.notify_message_arriving_listener.listeners[:] = [self.service]
        self.service.start()

    def play(self) -> None:
        """Let the readers ask, and the orders come, until the time is over or something is wrong."""
        lab = self.lab
        self.watch({"MessageStored": self._stored})
        settings: dict[str, Any] = {"broker_suspend_max_time_millis": TIMEOUT_MS}
        consumer = lab.pull_consumer("readers", **settings)
        lab.run(consumer.start())
        producer = lab.producer("shop")
        lab.run(producer.start())
        for number in range(self.queues):
            for _ in range(self.random.choice((1, 1, 2, 3))):
                consumer.node.spawn(self._read(consumer, number), f"a reader of queue {number}")
        lab.run_for(ms=50)
        end_ms = lab.now_ms + PLAY_MS
        busy = range(max(1, self.queues - 2))
        while lab.now_ms < end_ms and not self.wrong:
            queue = MessageQueue(TOPIC, "broker-a", self.random.choice(busy))
            for _ in range(self.random.choice((1, 1, 1, 3))):
                lab.run(producer.send(Message(TOPIC, b"order"), queue=queue))
            lab.run_for(ms=self.random.randrange(20, 2_400))
            self.service.overdue()
        if self.service.raised is not None:
            raise self.service.raised

    @property
    def wrong(self) -> str:
        """What went wrong first, or nothing."""
        return self.service.wrong or self.late

    async def _read(self, consumer: DefaultMQPullConsumer, number: int) -> None:
        queue = MessageQueue(TOPIC, "broker-a", number)
        offset = 0
        while not self.wrong:
            result = await consumer.pull_block_if_not_found(queue, "*", offset, 32)
            for message in result.msg_found_list:
                self._delivered(number, message.queue_offset)
            offset = result.next_begin_offset

    def _delivered(self, queue_id: int, offset: int) -> None:
        late_ms = (self.lab.world.now_us - self.stored_us[queue_id, offset]) / 1_000
        lost = (queue_id, offset) in self.service.lost
        allowed_ms = PROMPT_MS + (CHECK_PERIOD_MS if lost else 0)
        if late_ms > allowed_ms and not self.late:
            why = "its notice was lost, but the next pass could have seen it" if lost else "its arrival was told"
            self.late = f"offset {offset} of queue {queue_id} comes {late_ms:,.0f} ms after it was stored; {why}"
            self._late_queue = queue_id
            self.tell(f"offset {offset} of queue {queue_id} is delivered, {late_ms:,.0f} ms late", queue_id)

    def _stored(self, record: Record) -> None:
        self.stored_us[record.queue_id, record.queue_offset] = record.ts_us

    def story(self) -> str:
        """The last calls of the service; if it went wrong with one queue, the passes and what concerns this queue."""
        about = self.service.about if self.service.wrong else self._late_queue
        told = self.lines if about is None else self.lines_about(about)
        return self.written(*told[-self.LINES :])


def _counted(pulls: int) -> str:
    return "1 pull waits" if pulls == 1 else f"{pulls} pulls wait"
