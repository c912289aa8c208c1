"""Quiet variants: mqlab with a safeguard broken, and events that say that all is well, or nothing.

A rule finds each by what is there: what stores and tables hold, and when things happen. Each is looked for in one
world: that of a named scenario's seed, or a drawn one whose lines are given.
"""

from __future__ import annotations

from typing import NamedTuple

from mqlab.explore import Rule
from mqlab.explore.rules_of_begins import BeginsWhereItStood, CorrectedOffsetsFit, ResetsAreFollowed
from mqlab.explore.rules_of_calls import CallsGoThrough, SendsEnd, ServersAreReached
from mqlab.explore.rules_of_delivery import CommittedIsConsumed
from mqlab.explore.rules_of_entries import EachHasAnEntry, QueuesBeginRight, TimesAreFound
from mqlab.explore.rules_of_flushing import EveryKeyIsFound, SafeIsFlushed, TablesAreWritten
from mqlab.explore.rules_of_handles import DeadLettersAreTried, DoneIsSettled, HandlesAreTheNewest, RenewalsGoOn
from mqlab.explore.rules_of_leftovers import NothingIsLeftOver
from mqlab.explore.rules_of_offsets import CommitsAreAsked, LocalOffsetsAreKept, OffsetsKeepUp, ProgressIsKept
from mqlab.explore.rules_of_order import LockedIsConsumed
from mqlab.explore.rules_of_ordered_pops import (
    AttemptsGoOn,
    ChangedTimesAgree,
    DeliveriesAreCounted,
    FailedWaitsInFront,
    OrderedPopsAreWoken,
    OrderedPopsWait,
)
from mqlab.explore.rules_of_pop import (
    AckedStaysAway,
    NothingUnackedIsLost,
)
from mqlab.explore.rules_of_questions import QuestionsComeAtTheirTime, QuestionsStop, RelayedNamesTheHalf
from mqlab.explore.rules_of_queues import (
    DroppedIsLeftAlone,
    EachQueueHasAnOwner,
    QueuesArePulled,
    ReceivesTakeTurns,
    ToldIsShared,
)
from mqlab.explore.rules_of_replication import SlavesFollow
from mqlab.explore.rules_of_reviving import RevivedOnce, ReviversKeepUp
from mqlab.explore.rules_of_routes import RoutesAreFollowed, RoutesAreKept, RoutesAreTrue
from mqlab.explore.rules_of_storing import NothingUnsentIsDelivered
from mqlab.explore.rules_of_time import RetriesComeInTime, RoutesForgetTheDead
from mqlab.explore.rules_of_timers import TimersComeInTime
from mqlab.explore.rules_of_transactions import CommittedGoesWhereItWasSent

from .mutants import (
    BROKER,
    CHECK,
    CONCURRENT,
    CONSUMER,
    CQ,
    DELIVER,
    LOCKS,
    OFFSETS,
    PRODUCER,
    QUEUE,
    ROUTES,
    STORE,
    Change,
)  # fmt: skip

RENEWS = "mqlab.proxy.receipt_handle_manager:ReceiptHandleManager"
LITE = "mqlab.client.consumer.lite.default_lite_pull_consumer_impl:DefaultLitePullConsumerImpl"
BASE = "name-server n; broker b; topic Orders; producer p messages=40; "
BUSY = "name-server n; broker b; topic Orders; producer p messages=400 every_ms=20; "


class Quiet(NamedTuple):
    """A variant, the rule that finds it, and the world in which it shows."""

    what: str
    found_by: type[Rule]
    changes: tuple[Change, ...]
    scenario: str = "drawn"
    seed: int = 0
    world: str = ""
    """The lines of a drawn world."""
    faults: str | None = None
    """A schedule; None are the faults that the seed draws, if no world is given."""


def _quiet(what: str, found_by: type[Rule], where: str, old: str, new: str, **shown: str | int) -> Quiet:
    return Quiet(what, found_by, (Change(where, old, new),), **shown)  # type: ignore[arg-type]


QUIET = (
    Quiet(
        "a retry of a send goes to any broker, and does not say which one failed", SendsEnd,
        (
            Change(f"{PRODUCER}.send_attempts:SendAttempts.run",
                   'hooks.emit(QueueSelected(*queue, times + 1, last_broker or ""))', "pass"),
            Change(f"{PRODUCER}.mq_fault_strategy:MQFaultStrategy.select_one_message_queue",
                   "info.select_avoiding(last_broker, thread)", "info.select_avoiding(None, thread)"),
        ),
        "sync-send-two-brokers",
    ),
    _quiet("one message in seven gets no entry", EachHasAnEntry,
           f"{STORE}.readable_store:ReadableStore.build_consume_queue",
           "if request.has_queue_entry:", "if request.has_queue_entry and request.consume_queue_offset % 7 != 6:",
           world=f"{BASE}push w"),
    _quiet("a queue begins one message late when files were deleted", QueuesBeginRight, f"{CQ}.correct_min_offset",
           "first.file_from_offset + low * self.unit_size", "first.file_from_offset + (low + 1) * self.unit_size",
           scenario="many-files", seed=3),
    _quiet("a search by time finds the message behind", TimesAreFound,
           f"{STORE}.readable_store:offset_in_queue_by_time",
           "stored > timestamp or (stored == timestamp and boundary is BoundaryType.LOWER)", "stored > timestamp",
           world=f"{BASE}push w"),
    _quiet("keys of the first second are not found", EveryKeyIsFound, f"{STORE}.index_file:IndexFile.select_phy_offset",
           "begin <= stored <= end", "begin < stored <= end - 1", world=f"{BASE}push w"),
    _quiet("keys are found whenever it was", EveryKeyIsFound, f"{STORE}.index_file:IndexFile.select_phy_offset",
           "begin <= stored <= end", "stored <= end", world=f"{BASE}push w"),
    _quiet("a flush does nothing", SafeIsFlushed, f"{STORE}.mapped_file:MappedFile.flush", "self.file.flush()", "pass",
           scenario="power-cuts", seed=2),
    _quiet("a client minds a route only when its queues change", RoutesAreFollowed, "mqlab.client.route_table:_differs",
           "sorted(old.broker_datas, key=lambda data: data.broker_name)\n"
           "        != sorted(new.broker_datas, key=lambda data: data.broker_name)", "False",
           scenario="slave-reads",
           faults="at 1ms: crash broker-a for 10ms; at 2s: crash slave-a for 70s; at 3s: crash consumer-1 for 20s"),
    _quiet("a name server minds the topics of a broker once", RoutesAreTrue, f"{ROUTES}._take_topics",
           "first or changed or", "first or", world=f"{BASE}push w; at 5000ms: scale Orders queues=8"),
    _quiet("the last member leaves a queue to nobody", EachQueueHasAnOwner,
           f"{CONSUMER}.rebalance.rebalance_impl:RebalanceImpl.rebalance_by_topic",
           "changed = await self.update_process_queue_table(topic, mine)",
           "mine = mine[:-1] if len(all_members) > 1 else mine\n"
           "    changed = await self.update_process_queue_table(topic, mine)", world=f"{BASE}push w members=2"),
    _quiet("a turn that comes while its consumer is suspended is the last", QueuesArePulled,
           f"{CONSUMER}.push.pull_loop:PullLoop.pull_message",
           'self._put_off(request, PULL_DELAY_PAUSED_MS, "the consumer is suspended")', "pass",
           world=f"{BASE}push w; at 2000ms: suspend w for_ms=9000"),
    _quiet("a member begins one message in front of what its group has", BeginsWhereItStood,
           f"{CONSUMER}.offset_store:RemoteBrokerOffsetStore.read_from_store",
           "return offset", "return max(offset - 1, 0)",
           world=f"{BASE}push w members=2; at 15000ms: scale Orders queues=8"),
    _quiet("who asks from behind a queue is sent to its begin", CorrectedOffsetsFit,
           f"{STORE}.get_message:_out_of_range",
           "GetMessageStatus.OFFSET_OVERFLOW_BADLY, max_offset", "GetMessageStatus.OFFSET_OVERFLOW_BADLY, min_offset",
           scenario="power-cuts", seed=1),
    _quiet("a queue is given up under a listener at work", LockedIsConsumed, f"{LOCKS}.give_up",
           "UNLOCK_DELAY_MS * 1_000", "UNLOCK_DELAY_MS",
           world=f"{BUSY}orderly w members=2 moves=true slow_ms=3000", seed=2),
    _quiet("who polls gets what was cached of a queue that was given up", DroppedIsLeftAlone,
           f"{CONSUMER}.lite.default_lite_pull_consumer_impl:DefaultLitePullConsumerImpl._next_request",
           "request.process_queue.dropped", "not request.messages",
           world=f"{BUSY}lite w members=2 moves=true pull_batch_size=4"),
    _quiet("a held pull commits once more when it is woken", CommitsAreAsked,
           f"{BROKER}.pull_message_processor:PullMessageProcessor._note_offsets",
           "broker_allow_suspend and header.sys_flag", "header.sys_flag", world=f"{BASE}push w"),
    _quiet("a consumer follows a reset only forward", ResetsAreFollowed,
           f"{CONSUMER}.push.pull_loop:PullLoop._take_anew",
           "(request.message_queue, request.next_offset)",
           "(request.message_queue, max(request.next_offset, "
           "owner.offset_store.read_from_memory(request.message_queue)))",
           world=f"{BASE}push w; at 9000ms: reset w"),
    _quiet("what could not be given back is passed", CommittedIsConsumed,
           f"{CONCURRENT}:ConsumeMessageConcurrentlyService._give_back",
           "request.process_queue.remove_message(request.messages)",
           "request.process_queue.remove_message([*request.messages, *kept])", scenario="retry-and-dead-letters"),
    _quiet("a listener sees the retry topic at the second retry", NothingUnsentIsDelivered,
           f"{CONSUMER}.push.default_mq_push_consumer_impl:DefaultMQPushConsumerImpl.reset_retry_topic",
           "message.properties.get(MessageConst.RETRY_TOPIC)",
           "(message.properties.get(MessageConst.RETRY_TOPIC) if message.reconsume_times < 2 else None)",
           scenario="retry-and-dead-letters"),
    Quiet(
        "locks are not renewed, and trusted", LockedIsConsumed,
        (
            Change(f"{LOCKS}.lock_all", "self._by_broker().items()", "()"),
            Change(f"{QUEUE}.is_lock_expired", "return ", "return False and "),
        ),
        world="name-server n; broker b; topic Orders; producer p messages=40 every_ms=2000; orderly w", faults="",
    ),
    _quiet("who cannot renew a lock trusts it as long as it pulls", LockedIsConsumed, f"{QUEUE}.is_lock_expired",
           "self.last_lock_us", "self.last_pull_us", world=f"{BUSY}orderly w refuse_one_in=2",
           faults="at 5s: partition w-1 | b for 60s"),
    _quiet("an asynchronous try does not count for the time-out", SendsEnd, f"{PRODUCER}.async_send:AsyncSend._failed",
           "self._timeout_ms -= cost_ms", "pass", world=f"{BASE}push w".replace("producer p", "producer p way=async"),
           faults="at 300ms: partition p | b for 15s"),
    _quiet("a message has another key at every try", SendsEnd, f"{PRODUCER}.send_kernel:SendKernel.prepare",
           "if not is_batch and UNIQ_KEY not in properties:", "if not is_batch:",
           world=f"{BASE.replace('broker b', 'broker b; broker c')}push w", faults="at 1s: crash b for 15s"),
    _quiet("a lock is not renewed by who has it", LockedIsConsumed,
           f"{BROKER}.rebalance_lock_manager:RebalanceLockManager.try_lock_batch", "entry.updated_us = now_us", "pass",
           world="name-server n; broker b; topic Orders queues=4; producer p messages=400 every_ms=200; "
           "orderly w members=3 slow_ms=30000", faults="at 2s: crash w-1 for 66s", seed=3),
    _quiet("a delay level notes the message that it has delivered", TablesAreWritten, f"{DELIVER}._delivered",
           "unit.queue_offset + 1", "unit.queue_offset",
           world="name-server n; broker b; topic Orders; producer p delay_level=2; push w"),
    _quiet("the progress of groups is written once", TablesAreWritten, f"{BROKER}.config_manager:ConfigManager.persist",
           "data == self._written", "self._written is not None",
           world=f"{BASE}push w"),
    _quiet("a slave takes over more than its master has", SlavesFollow, f"{OFFSETS}.put_all",
           "self.offset_table.update(wrapper.offset_table)",
           "self.offset_table.update({key: {queue: at + 1 for queue, at in offsets.items()} "
           "for key, offsets in wrapper.offset_table.items()})", scenario="slave-reads", seed=1),
    _quiet("a scan of the key-value engine looks only ahead", ReviversKeepUp,
           f"{BROKER}.pop.kv.pop_consumer_scan:PopConsumerScan.revive_expired",
           "self._scanned_ms - LOOK_BACK_MS", "self._scanned_ms + 500", scenario="pop-key-value", seed=1),
    _quiet("a batch in the merge buffer is done when its last message is", NothingUnackedIsLost,
           f"{BROKER}.pop.pop_check_point_wrapper:PopCheckPointWrapper.is_done",
           "return self.bits & every == every", "return self.bits > every // 2", seed=1,
           world="name-server n; broker b enable_pop_buffer_merge=true; topic Orders queues=1; producer p messages=40 "
           "every_ms=20; pop w pop_invisible_time=5000 pop_batch_nums=8 slow_ms=60000"),
    _quiet("a proxy renews the handle that it was given first", HandlesAreTheNewest,
           "mqlab.proxy.receipt_handle_manager:ReceiptHandleManager._start_renew_message",
           "handle.handle = renewed", "pass", seed=3, world=f"{BASE}proxy x; push5 w slow_ms=60000"),
    _quiet("the end of a check point is due with the one that takes its place", AckedStaysAway,
           f"{BROKER}.pop.change_invisible_time_processor:ChangeInvisibleTimeProcessor._change",
           "handle.revive_qid, handle.expires_ms)", "handle.revive_qid, now_ms + header.invisible_time)",
           seed=1,
           world="name-server n; broker b; topic Orders; producer p messages=60; proxy x; push5 w slow_ms=60000"),
    _quiet("a reviver minds the flush", RevivedOnce, f"{BROKER}.pop.revive_message:ReviveMessage.revive",
           "if not result.is_stored:", "if not result.is_ok:",
           world="name-server n; broker b flush_disk_type=SYNC_FLUSH sync_flush_timeout=200; topic Orders; "
           "producer p messages=40; pop w pop_invisible_time=5000 slow_ms=60000",
           faults="at 6s: slow_disk b by 900ms for 60s"),
    _quiet("timer messages wait in a slot two seconds early", TimersComeInTime,
           "mqlab.broker.timer_messages:transform_timer_message",
           "(deliver_ms - 1) // precision_ms * precision_ms", "(deliver_ms - 1) // precision_ms * precision_ms - 2_000",
           world="name-server n; broker b; topic Orders; producer p timer_ms=6000; push w"),
    _quiet("a broker that is shut down does not write its tables", ProgressIsKept,
           f"{BROKER}.broker_controller:BrokerController.shutdown", "table.persist()", "pass",
           world=f"{BUSY}push w; at 8000ms: restart-broker b"),
    _quiet("a client forgets a route that nobody tells it", RoutesAreKept,
           "mqlab.client.route_table:RouteTable._refresh",
           "except (MQClientException, RemotingException) as error:\n",
           "except (MQClientException, RemotingException) as error:\n        self.topic_route_table.pop(topic, None)\n",
           world=f"{BASE}push w", faults="at 2s: crash n for 70s"),
    _quiet("a broker is known by the name of its master", RoutesForgetTheDead, f"{ROUTES}.unregister_brokers",
           "if broker.broker_addrs:", "if 0 in broker.broker_addrs:",
           world="name-server n; broker b; slave s of=b; topic Orders; producer p messages=40; push w; "
           "at 3000ms: restart-broker b down_ms=3000"),
    _quiet("a message in order does not wait for the next attempt of the one in front", FailedWaitsInFront,
           "mqlab.client.v5.consume_service:FifoConsumeService._consume_iteratively",
           "await queue.erase_fifo_message(message, await called)",
           'self.node.spawn(queue.erase_fifo_message(message, await called), "settle in order")',
           world="name-server n; broker b; topic Jobs type=FIFO; group w consume_message_orderly=true; proxy x; "
           "producer5 p topic=Jobs way=in-order messages=40; push5 w topic=Jobs refuse_one_in=3"),
    _quiet("a message that cannot be settled at once never is", DoneIsSettled,
           "mqlab.client.v5.process_queue:ProcessQueue._settle",
           'error.code == Code.INVALID_RECEIPT_HANDLE and settled_as != "dead letter"', 'settled_as != "dead letter"',
           world=f"{BUSY}proxy x; push5 w slow_ms=10000", faults="at 3s: crash x for 3s"),
    _quiet("a broker takes seconds of immunity for milliseconds", QuestionsComeAtTheirTime,
           f"{BROKER}.transaction.end_transaction_processor:EndTransactionProcessor._comes_too_late",
           "number(own_immunity) * 1_000", "number(own_immunity)",
           world="name-server n; broker b transaction_time_out=1000; topic Orders; "
           "transactions p messages=8 debit_ms=3000 immune_s=18"),
    _quiet("who names no attempt is taken for who asked before", OrderedPopsWait,
           f"{BROKER}.pop.order_info:OrderInfo.need_block",
           "(self.attempt_id is not None and self.attempt_id == attempt_id)", "self.attempt_id == attempt_id",
           world="name-server n; broker b; topic Steps type=FIFO queues=1; group w consume_message_orderly=true; "
           "proxy x; producer5 p topic=Steps way=in-order messages=40; simple5 w topic=Steps members=2"),
    _quiet("what is forgotten of a queue is still counted", NothingIsLeftOver, f"{QUEUE}.clear",
           "self.msg_count = 0", "pass", world=f"{BUSY}lite w; at 4000ms: seek w to=begin"),
    _quiet("who once could not connect never does", ServersAreReached, "mqlab.rpc.client:RpcClient._connect",
           "del self._connecting[address]\n        made.set_exception", "made.set_exception",
           world=f"{BASE}proxy x; push5 w", faults="at 3s: crash x for 5s"),
    _quiet("a timer goes on with the message that it has", TimersComeInTime,
           "mqlab.store.timer.timer_recovery:_revise_queue_offset", "return queue_offset", "return queue_offset - 1",
           world=f"{BASE}push w; at 5000ms: restart-broker b".replace("producer p", "producer p timer_ms=6000")),
    _quiet("delayed messages come five seconds late", RetriesComeInTime, f"{DELIVER}._deliver_ms",
           "else unit.tags_code", "else unit.tags_code + 5_000",
           world="name-server n; broker b; topic Orders; producer p delay_level=2; push w"),
    _quiet("what is committed goes to the queue of the half message", CommittedGoesWhereItWasSent,
           f"{BROKER}.transaction.end_transaction_processor:committed",
           'int(half.properties.get(MessageConst.REAL_QUEUE_ID, ""))', "half.queue_id",
           world="name-server n; broker b; topic Orders; transactions p messages=8"),
    _quiet("a proxy takes the place in the log for the place in the queue", RelayedNamesTheHalf,
           "mqlab.proxy.cluster_transaction_service:ClusterTransactionService.process_request",
           "header.tran_state_table_offset, header.commit_log_offset",
           "header.commit_log_offset, header.tran_state_table_offset",
           world="name-server n; broker b transaction_time_out=1000 transaction_check_interval=5000; topic Orders "
           "type=TRANSACTION; proxy x; transactions5 p topic=Orders messages=20"),
    _quiet("a simple consumer asks one queue again and again", ReceivesTakeTurns,
           "mqlab.client.v5.simple_consumer:SimpleConsumerImpl._take_message_queue",
           "self._queue_index[topic] = index + 1", "self._queue_index[topic] = index",
           world="name-server n; broker b; topic Orders; producer p messages=40; proxy x; simple5 w"),
    _quiet("the handle of a changed time counts from the pop", ChangedTimesAgree,
           f"{BROKER}.pop.change_invisible_time_processor:ChangeInvisibleTimeProcessor._change_in_order",
           "visible_ms - handle.pop_time", "header.invisible_time",
           world="name-server n; broker b; topic Steps type=FIFO queues=1; group w consume_message_orderly=true; "
           "proxy x; producer5 p topic=Steps way=in-order messages=8; simple5 w topic=Steps change_one_in=3"),
    _quiet("a half message is asked about once too often", QuestionsStop, f"{CHECK}._is_given_up",
           ">= self._config.transaction_check_max", "> self._config.transaction_check_max",
           world="name-server n; broker b transaction_check_max=1 transaction_check_interval=5000 "
           "transaction_time_out=1000; topic Orders; transactions p messages=20"),
    _quiet("a clone of offsets is the table itself", TablesAreWritten,
           f"{BROKER}.consumer_offset_manager:ConsumerOffsetManager.clone_offset", "= dict(offsets)", "= offsets",
           world=f"{BASE}push w; at 4000ms: ask b about=offsets"),
    _quiet("a file of offsets has what is at hand alone", LocalOffsetsAreKept,
           "mqlab.client.consumer.offset_store:LocalFileOffsetStore.persist_all", "table = self._read()", "table = {}",
           world="name-server n; broker b; broker c; topic Orders; producer p messages=40; broadcasting w "
           "poll_name_server_interval=2000", faults="at 37s: crash c for 40s"),
    _quiet("how often a message was popped in order is forgotten", DeliveriesAreCounted,
           f"{BROKER}.pop.consumer_order_info_manager:ConsumerOrderInfoManager.update",
           "previous = queues.get(queue_id)", "previous = None",
           world="name-server n; broker b; topic Steps type=FIFO queues=1; group w consume_message_orderly=true; "
           "proxy x; producer5 p topic=Steps way=in-order; simple5 w topic=Steps refuse_one_in=2"),
    _quiet("a proxy by which a send has failed is left out for ever", ServersAreReached,
           "mqlab.client.v5.client_impl:ClientImpl._do_heartbeat", "self.isolated.pop(endpoints, None)", "pass",
           world="name-server n; broker b; topic Orders; proxy x; producer5 p messages=40",
           faults="at 3s: crash x for 3s"),
    _quiet("what has expired is settled again and again", DoneIsSettled,
           "mqlab.client.v5.process_queue:ProcessQueue._settle",
           "error.code == Code.INVALID_RECEIPT_HANDLE and", "error.code == Code.OK and",
           world=f"{BUSY}proxy x; push5 w slow_ms=100000", faults="at 20s: crash x for 3s"),
    _quiet("a held pull that nothing comes for is held for ever", CallsGoThrough,
           f"{BROKER}.pull_request_hold_service:PullRequestHoldService._reason_to_wake",
           'TIMED_OUT if now_us >= request.suspended_us + request.timeout_ms * 1_000 else ""', '""',
           world=f"{BASE}push w"),
    _quiet("a receive that failed begins anew", AttemptsGoOn, "mqlab.client.v5.process_queue:ProcessQueue._receive",
           "self._receive_message_later(str(error), delay_ms, attempt_id)",
           "self._receive_message_later(str(error), delay_ms, consumer.generate_attempt_id())",
           world="name-server n; broker b; topic Steps type=FIFO; group w consume_message_orderly=true; proxy x; "
           "producer5 p topic=Steps way=in-order; push5 w topic=Steps", faults="at 3s: crash x for 3s"),
    _quiet("what a seek passes over stays in the queue", OffsetsKeepUp,
           "mqlab.client.consumer.lite.lite_pull_offsets:LitePullOffsets._go_to",
           "state.process_queue.clear()", "pass", world=f"{BUSY}lite w pull_batch_size=4; at 3000ms: seek w to=end"),
    _quiet("a handle that was renewed is not kept", RenewalsGoOn, f"{RENEWS}._start_renew_message",
           "handle.renew_times += 1", "handle.renew_times += 1\n    return False",
           world=f"{BUSY}proxy x; push5 w slow_ms=300000"),
    _quiet("a proxy counts three hours from the last renewal", RenewalsGoOn, f"{RENEWS}._start_renew_message",
           "handle.consumed_from_ms >=", "handle.handle.pop_time >=",
           world=f"{BUSY}proxy x renew_max_time_millis=60000; push5 w slow_ms=300000"),
    _quiet("a proxy gives a handle up at the second failure", RenewalsGoOn, f"{RENEWS}._start_renew_message",
           ">= self._config.max_renew_retry_times", ">= 1",
           world=f"{BASE}proxy x; push5 w slow_ms=600000", faults="at 45s: cut x > b for 20s"),
    _quiet("the first delivery is not counted", DeadLettersAreTried,
           "mqlab.proxy.grpc_client_settings_manager:GrpcClientSettingsManager._merged_subscription",
           "group.retry_max_times + 1", "group.retry_max_times",
           world=f"{BASE}group w retry_max_times=1; proxy x; push5 w refuse_one_in=2"),
    _quiet("who lets go of a lock need not have it", LockedIsConsumed,
           f"{BROKER}.rebalance_lock_manager:RebalanceLockManager.unlock_batch",
           "entry is not None and entry.client_id == client_id", "entry is not None",
           world="name-server n; broker b rebalance_lock_max_live_time=40000; topic Orders; "
           "producer p messages=200 every_ms=300; orderly w members=3",
           faults="at 1200ms: crash w-1 for 20s; at 9s: partition b | w-3 for 70s"),
    _quiet("members stand on the ring by their number", EachQueueHasAnOwner,
           "mqlab.rebalance.consistent_hash:AllocateMessageQueueConsistentHash.divide",
           'self.hash_function(f"{cid}-{replica}")', 'self.hash_function(f"{cid_all.index(cid)}-{replica}")',
           world=f"{BASE}push w members=3 shares=CONSISTENT_HASH"),
    _quiet("what is given back in order rings no alarm", OrderedPopsAreWoken,
           f"{BROKER}.pop.consumer_order_info_manager:ConsumerOrderInfoManager.update_next_visible_time",
           "self.lock_manager.update_lock_free_timestamp(topic, group, queue_id, info)", "pass",
           world="name-server n; broker b; topic Steps type=FIFO queues=1; group w consume_message_orderly=true; "
           "proxy x; producer5 p topic=Steps way=in-order messages=40; "
           "simple5 w topic=Steps members=2 change_one_in=1 refuse_one_in=2"),
    _quiet("who is told of another member waits for the next round", ToldIsShared,
           "mqlab.client.consumer.rebalance.rebalance_service:RebalanceService.wakeup",
           "self._wait_point.release()", "pass", world=f"{BUSY}push w members=3 moves=true"),
    Quiet(
        "a poll commits what it hands out", OffsetsKeepUp,
        (
            Change(f"{LITE}.poll", "self.offsets.maybe_auto_commit()", "pass"),
            Change(f"{LITE}._hand_out", "show_what_was_handed_out(",
                   "self.offsets.maybe_auto_commit()\n    show_what_was_handed_out("),
        ),
        world=f"{BUSY}lite w",
    ),
)  # fmt: skip
