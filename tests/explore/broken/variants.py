"""Broken variants: mqlab with one of its safeguards taken out. `mqlab explore` must find each of them.

A variant is a function that breaks something with a MonkeyPatch; `VARIANTS` says in which scenario it shows, which rule
finds it, and within how many seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

import pytest

from mqlab.broker.consumer_offset_manager import ConsumerOffsetManager
from mqlab.broker.consumer_send_msg_back import ConsumerSendMsgBack
from mqlab.broker.deliver_delayed_message import DeliverDelayedMessage
from mqlab.broker.filter.property_message_filter import PropertyMessageFilter
from mqlab.client.consumer.process_queue import ProcessQueue
from mqlab.client.consumer.push.default_mq_push_consumer_impl import DefaultMQPushConsumerImpl
from mqlab.client.consumer.push.pull_loop import PullLoop
from mqlab.client.consumer.rebalance.queue_locks import QueueLocks
from mqlab.client.producer import requests
from mqlab.client.producer.default_mq_producer import DefaultMQProducer
from mqlab.client.producer.request_future_holder import RequestFutureHolder
from mqlab.explore import Rule
from mqlab.explore.rules_of_calls import ProcessorsAnswer
from mqlab.explore.rules_of_delivery import CommittedIsConsumed, GivenBackComesAgain, StoredIsDelivered
from mqlab.explore.rules_of_flow_control import ThresholdsHold
from mqlab.explore.rules_of_order import InOrder, OneOwner
from mqlab.explore.rules_of_ordered_pops import OrderedPopsWait
from mqlab.explore.rules_of_pop import AckedStaysAway, NothingUnackedIsLost
from mqlab.explore.rules_of_queues import DroppedIsLeftAlone
from mqlab.explore.rules_of_replication import CopiesAreTheSame
from mqlab.explore.rules_of_replies import RequestsEnd
from mqlab.explore.rules_of_reviving import RevivedInTime, RevivedIsNamed, ReviversKeepUp
from mqlab.explore.rules_of_settling import EverythingSettles
from mqlab.explore.rules_of_storing import AcknowledgedSurvives
from mqlab.explore.rules_of_timers import TimersComeInTime
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.errors import RecordError
from mqlab.store import DefaultMessageStore, flush_services, readable_store
from mqlab.store.flush_services import GroupCommitService

from . import pop_variants as pop

WORLD_GOES_ON = "the world goes on"
"""What is broken when an error stops a world: a listener that gets a wrong body does so."""


def answer_before_the_flush(patch: pytest.MonkeyPatch) -> None:
    """A broker with SYNC_FLUSH answers at once and flushes once a second."""
    patch.setattr(flush_services, "GROUP_COMMIT_PERIOD_MS", 1_000)
    patch.setattr(GroupCommitService, "put_request", lambda self, result: result)


def processors_fail_over_a_filter(patch: pytest.MonkeyPatch) -> None:
    """A broker that pulls for a condition raises what is no answer."""

    def fail(judging: PropertyMessageFilter, record: bytes) -> bool:
        raise RecordError(0, "it is not read")

    patch.setattr(PropertyMessageFilter, "is_matched_by_commit_log", fail)


def recovery_stops_too_early(patch: pytest.MonkeyPatch) -> None:
    """After a crash the last record of the commit log is taken for broken."""
    whole = readable_store.recover_commit_log

    def short(*arguments: Any, clean: bool, **more: Any) -> Any:
        recovery = whole(*arguments, clean=clean, **more)
        if not clean and recovery.records:
            recovery.end -= 1
        return recovery

    patch.setattr(readable_store, "recover_commit_log", short)


def bodies_are_mixed_up(patch: pytest.MonkeyPatch) -> None:
    """Now and then a broker stores a message with the body of the one before."""
    put = DefaultMessageStore.put_message
    bodies = [b""]
    number = count(1)

    def put_other_body(self: DefaultMessageStore, message: Any) -> Any:
        bodies.append(message.body)
        if next(number) % 10 == 0:
            message.body = bodies[-2]
        return put(self, message)

    patch.setattr(DefaultMessageStore, "put_message", put_other_body)


def offset_beyond_the_unfinished(patch: pytest.MonkeyPatch) -> None:
    """A consumer commits the end of what it has pulled, also while the first listener is still at work."""
    remove = ProcessQueue.remove_message

    def remove_all(self: ProcessQueue, messages: Any) -> int:
        return -1 if remove(self, messages) < 0 else self.queue_offset_max + 1

    patch.setattr(ProcessQueue, "remove_message", remove_all)


def broker_commits_one_more(patch: pytest.MonkeyPatch) -> None:
    """A broker notes the offset of the next message but one."""
    commit = ConsumerOffsetManager.commit_offset

    def commit_more(
        self: ConsumerOffsetManager, group: str, topic: str, queue_id: int, offset: int, origin: str = ""
    ) -> None:
        commit(self, group, topic, queue_id, offset + 1 if offset else 0, origin)

    patch.setattr(ConsumerOffsetManager, "commit_offset", commit_more)


def drop_is_ignored(patch: pytest.MonkeyPatch) -> None:
    """A consumer that has given a queue up goes on pulling and consuming it."""

    def ignore(self: ProcessQueue, dropped: bool) -> None:
        """Nobody shall know."""

    patch.setattr(ProcessQueue, "dropped", property(lambda self: False, ignore))


def no_flow_control(patch: pytest.MonkeyPatch) -> None:
    """A consumer pulls however much it holds."""
    patch.setattr(PullLoop, "_is_flow_controlled", lambda self, request, process_queue: False)


def failed_send_back_drops(patch: pytest.MonkeyPatch) -> None:
    """A message that could not be given back counts as given back."""
    send_back = DefaultMQPushConsumerImpl.send_message_back

    async def send_back_or_not(self: DefaultMQPushConsumerImpl, *arguments: Any) -> bool:
        await send_back(self, *arguments)
        return True

    patch.setattr(DefaultMQPushConsumerImpl, "send_message_back", send_back_or_not)


def broker_forgets_what_is_given_back(patch: pytest.MonkeyPatch) -> None:
    """A broker takes a message back and stores no copy of it."""
    patch.setattr(
        ConsumerSendMsgBack, "_send_back", lambda self, request, header: RemotingCommand.response(ResponseCode.SUCCESS)
    )


def retry_topic_not_subscribed(patch: pytest.MonkeyPatch) -> None:
    """A consumer does not subscribe to the retry topic of its group."""
    copy = DefaultMQPushConsumerImpl._copy_subscription

    def copy_less(self: DefaultMQPushConsumerImpl) -> None:
        copy(self)
        self.rebalance_impl.subscription_inner.pop(self.retry_topic, None)

    patch.setattr(DefaultMQPushConsumerImpl, "_copy_subscription", copy_less)


def orderly_without_lock(patch: pytest.MonkeyPatch) -> None:
    """An orderly consumer takes every queue for locked without asking its broker."""

    async def ask_nobody(self: QueueLocks, broker_name: str, queues: list[Any]) -> list[Any]:
        return queues

    patch.setattr(QueueLocks, "_ask", ask_nobody)


def newest_first(patch: pytest.MonkeyPatch) -> None:
    """An orderly listener gets the newest message that is there."""

    def take_newest(self: ProcessQueue, batch_size: int) -> list[Any]:
        if not self.msg_tree_map:
            self.consuming = False
            return []
        offset = self.msg_tree_map.last_key()
        message = self.msg_tree_map.pop(offset)
        self.consuming_msg_orderly_tree_map[offset] = message
        return [message]

    patch.setattr(ProcessQueue, "take_messages", take_newest)


def delayed_message_passed_over(patch: pytest.MonkeyPatch) -> None:
    """One in ten delayed messages is passed over instead of being delivered."""
    deliver = DeliverDelayedMessage._deliver
    number = count(1)

    def deliver_most(self: DeliverDelayedMessage, unit: Any) -> bool:
        return True if next(number) % 10 == 0 else deliver(self, unit)

    patch.setattr(DeliverDelayedMessage, "_deliver", deliver_most)


def slave_drops_the_last_byte(patch: pytest.MonkeyPatch) -> None:
    """A slave writes a zero in the place of the last byte of each piece."""
    append = DefaultMessageStore.append_to_commit_log

    def append_most(self: DefaultMessageStore, start_offset: int, data: bytes) -> bool:
        return append(self, start_offset, data[:-1] + b"\0")

    patch.setattr(DefaultMessageStore, "append_to_commit_log", append_most)


def scan_passes_requests_over(patch: pytest.MonkeyPatch) -> None:
    """The scan for expired requests never comes."""
    patch.setattr(RequestFutureHolder, "has_work", lambda self: False)


def correlation_ids_repeat(patch: pytest.MonkeyPatch) -> None:
    """A process has four ids for its requests, which take turns."""
    number = count(1)
    patch.setattr(requests, "create_correlation_id", lambda node: f"{node.name}-{next(number) % 4}")


def replies_are_left_unmatched(patch: pytest.MonkeyPatch) -> None:
    """One reply in ten is taken and given to nobody."""
    remove, number = RequestFutureHolder.remove, count(1)
    patch.setattr(
        RequestFutureHolder, "remove", lambda self, id_: None if next(number) % 10 == 0 else remove(self, id_)
    )


def a_request_ends_when_it_is_sent(patch: pytest.MonkeyPatch) -> None:
    """Releases 5.3.1 to 5.3.3."""
    default = DefaultMQProducer.__init__

    def as_in_5_3_3(self: DefaultMQProducer, node: Any, group: str, **settings: Any) -> None:
        default(self, node, group, **settings)
        self.request_ends_when_sent = True

    patch.setattr(DefaultMQProducer, "__init__", as_in_5_3_3)


class Variant(NamedTuple):
    """A broken variant, where it shows, what finds it, and within how many seeds from which one on."""

    break_it: Callable[[pytest.MonkeyPatch], None]
    scenario: str
    found_by: type[Rule] | str
    seeds: int
    first_seed: int = 0
    """With seed 0 of pop-plain two requests take turns at a locked queue 166,000 times, as in RocketMQ."""


VARIANTS = (
    Variant(answer_before_the_flush, "sync-send-two-brokers", AcknowledgedSurvives, 40),
    Variant(recovery_stops_too_early, "sync-send-two-brokers", AcknowledgedSurvives, 40),
    Variant(bodies_are_mixed_up, "push-clustering", WORLD_GOES_ON, 3),
    Variant(offset_beyond_the_unfinished, "push-clustering", CommittedIsConsumed, 20),
    Variant(broker_commits_one_more, "push-clustering", CommittedIsConsumed, 3),
    Variant(drop_is_ignored, "push-clustering", DroppedIsLeftAlone, 10),
    Variant(no_flow_control, "slow-listener", ThresholdsHold, 3),
    Variant(failed_send_back_drops, "retry-and-dead-letters", CommittedIsConsumed, 60),
    Variant(broker_forgets_what_is_given_back, "retry-and-dead-letters", GivenBackComesAgain, 3),
    Variant(retry_topic_not_subscribed, "retry-and-dead-letters", EverythingSettles, 3),
    Variant(orderly_without_lock, "push-orderly", OneOwner, 40),
    Variant(newest_first, "push-orderly", InOrder, 10),
    Variant(delayed_message_passed_over, "delayed-messages", StoredIsDelivered, 5),
    Variant(slave_drops_the_last_byte, "sync-replication", CopiesAreTheSame, 3),
    Variant(scan_passes_requests_over, "request-reply", RequestsEnd, 3),
    Variant(correlation_ids_repeat, "request-reply", WORLD_GOES_ON, 10),
    Variant(replies_are_left_unmatched, "request-reply", RequestsEnd, 3),
    Variant(a_request_ends_when_it_is_sent, "request-reply", RequestsEnd, 3),
    Variant(pop.reviver_overlooks_acks, "pop-plain", AckedStaysAway, 3, 1),
    Variant(pop.reviver_does_not_wait_for_acks, "pop-plain", AckedStaysAway, 3, 1),
    Variant(pop.buffer_overlooks_acks, "pop-buffer-merge", AckedStaysAway, 10),
    Variant(pop.reviver_loses_messages, "pop-plain", NothingUnackedIsLost, 3, 1),
    Variant(pop.records_are_lost, "pop-key-value", NothingUnackedIsLost, 3),
    Variant(pop.times_are_five_seconds_short, "pop-plain", RevivedInTime, 3),
    Variant(pop.anybody_gets_the_lock, "pop-plain", RevivedInTime, 20, 1),
    Variant(pop.another_message_comes_back, "pop-plain", RevivedIsNamed, 3, 1),
    Variant(pop.revive_offset_stands_still, "pop-plain", ReviversKeepUp, 3, 1),
    Variant(pop.reviver_sleeps_over_acks, "pop-plain", ReviversKeepUp, 10, 1),
    Variant(pop.noted_acks_are_stored_too, "pop-buffer-merge", ReviversKeepUp, 3),
    Variant(pop.nothing_blocks, "pop-ordered", OrderedPopsWait, 3),
    Variant(processors_fail_over_a_filter, "sql-filters", ProcessorsAnswer, 1),
    Variant(pop.timer_is_two_seconds_early, "timer-messages", TimersComeInTime, 3),
    Variant(pop.slots_lose_their_oldest, "timer-messages", TimersComeInTime, 3),
    Variant(pop.slots_are_read_twice, "timer-messages", TimersComeInTime, 3),
)
