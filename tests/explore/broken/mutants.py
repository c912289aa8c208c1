"""Mutants: mqlab with one safeguard broken, written as the words of its code that are changed.

Each is what an author of the code might have written by mistake. `python -m tests.explore.mutants` plays the scenarios
until a rule of exploration finds each of them, and writes the table of docs/checks.md. When code changes, so must the
words here: a quick test says which.
"""

from __future__ import annotations

import inspect
import textwrap
from importlib import import_module
from typing import Any, NamedTuple

import pytest


class Change(NamedTuple):
    """In the function at `where` ("module:Class.method"), the words `old` become `new`."""

    where: str
    old: str
    new: str

    def apply(self, patch: pytest.MonkeyPatch) -> None:
        """Put the changed function in the place of the right one; AssertionError when the words are not there."""
        module_name, _, path = self.where.partition(":")
        owner: Any = import_module(module_name)
        *names, name = path.split(".")
        for each in names:
            owner = getattr(owner, each)
        function = inspect.getattr_static(owner, name)
        source = textwrap.dedent(inspect.getsource(_plain(function)))
        assert source.count(self.old) == 1, f"{self.where} does not say {self.old!r} once"
        namespace: dict[str, Any] = {}
        code = compile(f"from __future__ import annotations\n{source.replace(self.old, self.new)}", self.where, "exec")
        exec(code, _plain(function).__globals__, namespace)
        patch.setattr(owner, name, namespace[name])


def _plain(function: Any) -> Any:
    """The function behind a property, a static method or a public call."""
    for inner in ("fget", "__func__", "__wrapped__"):
        function = getattr(function, inner, None) or function
    return function


class Mutant(NamedTuple):
    """One safeguard that is broken, and the scenarios in which it is looked for: none where nothing can be seen."""

    number: int
    what: str
    changes: tuple[Change, ...]
    scenarios: tuple[str, ...]

    def apply(self, patch: pytest.MonkeyPatch) -> None:
        """Break it."""
        for change in self.changes:
            change.apply(patch)


BROKER, STORE, REMOTING = "mqlab.broker", "mqlab.store", "mqlab.remoting"
CONSUMER, PRODUCER = "mqlab.client.consumer", "mqlab.client.producer"
CONCURRENT = f"{CONSUMER}.push.consume_message_concurrently_service"
ORDERLY = f"{CONSUMER}.push.consume_message_orderly_service"
SERVICE = "ConsumeMessageOrderlyService"
LOCKED = "self._clustering and (not process_queue.locked or process_queue.is_lock_expired)"
QUEUE = f"{CONSUMER}.process_queue:ProcessQueue"
LOCKS = f"{CONSUMER}.rebalance.queue_locks:QueueLocks"
REBALANCE = f"{CONSUMER}.rebalance.rebalance_impl:RebalanceImpl"
BACK = f"{CONSUMER}.push.send_back"
CALLS = f"{REMOTING}.calls:RemotingCalls"
DELIVER = f"{BROKER}.deliver_delayed_message:DeliverDelayedMessage"
HOLD = f"{BROKER}.pull_request_hold_service:PullRequestHoldService"
OFFSETS = f"{BROKER}.consumer_offset_manager:ConsumerOffsetManager"
PROXY = "mqlab.proxy"
ROUTES = "mqlab.namesrv.route_info_manager:RouteInfoManager"
TRANSACTIONS = "mqlab.broker.transaction.transaction_services:TransactionServices"
CHECK = "mqlab.broker.transaction.transactional_message_check_service:CheckRound"
END = "mqlab.broker.transaction.end_transaction_processor:EndTransactionProcessor"
OPS = "mqlab.broker.transaction.transaction_ops:TransactionalOpBatchService"
BANK = ("bank-transfers",)
HA = f"{BROKER}.ha"
PAIR = ("sync-replication", "slave-reads")
SLAVE = ("slave-reads",)
FILTER = "mqlab.filter"
SQL = ("sql-filters",)
REPLY = ("request-reply",)
HOLDER = f"{PRODUCER}.request_future_holder:RequestFutureHolder"
SEND_BACK = f"{BROKER}.consumer_send_msg_back:ConsumerSendMsgBack"
CQ = f"{STORE}.consume_queue:ConsumeQueue"

PUSH = ("push-clustering", "retry-and-dead-letters")
IN_ORDER = ("orderly-backlog", "orderly-rebalance", "push-orderly")
CUTS = ("power-cuts", "many-files")
CRASHES = ("many-files", "power-cuts", "sync-send-two-brokers")
RETRY = ("retry-and-dead-letters", "short-consume-timeout")
SENDS = ("hurried-senders", "async-send", "sync-send-two-brokers")


def _mutant(number: int, what: str, where: str, old: str, new: str, *scenarios: str) -> Mutant:
    return Mutant(number, what, (Change(where, old, new),), scenarios)


MUTANTS = (
    _mutant(1, "a put is answered before its flush", f"{STORE}.flush_services:GroupCommitService.put_request",
            "self.wakeup()\n", "self.wakeup()\n    future.set_result(result)\n", "power-cuts", "sync-send-two-brokers"),
    _mutant(2, "the status of a put is ignored", f"{BROKER}.send_message_processor:SendMessageProcessor._answer",
            "SUCCESS if result.status is PUT_OK else STORED_CODES.get(result.status)", "SUCCESS",
            "power-cuts", "batches", "sync-send-two-brokers"),
    _mutant(3, "an orderly listener is called without asking for the lock", f"{LOCKS}._ask",
            "address = self._master(broker_name)\n", "return queues\n    address = None\n", *IN_ORDER),
    _mutant(4, "a lock that is lost between two messages is not noticed", f"{ORDERLY}:{SERVICE}._consume_some",
            LOCKED, "False", *IN_ORDER),
    Mutant(5, "two threads consume one queue in order", (
            Change(f"{ORDERLY}:{SERVICE}.submit_consume_request", "if dispatch_to_consume:", "if True:"),
            Change(f"{ORDERLY}:{SERVICE}._consume", "async with lock:", "if True:"),
            Change(f"{ORDERLY}:{SERVICE}._consume_some", "async with process_queue.consume_lock:", "if True:"),
        ), IN_ORDER),
    _mutant(6, "the offset that may be committed is one too low", f"{QUEUE}.remove_message",
            "self.queue_offset_max + 1", "self.queue_offset_max", *PUSH),
    _mutant(7, "the offset that may be committed is one too high", f"{QUEUE}.remove_message",
            "return tree.first_key()", "return 1 + tree.first_key()", *PUSH),
    _mutant(8, "a listener is called although the queue was given up", f"{CONCURRENT}:ConsumeRequest.run",
            "if self.process_queue.dropped:", "if False:", "push-clustering", "slow-listener", "orderly-rebalance"),
    _mutant(9, "the result of a listener whose queue was given up counts", f"{CONCURRENT}:ConsumeRequest.finish",
            "if self.process_queue.dropped:", "if False:", *RETRY, "push-clustering"),
    _mutant(10, "what could not be given back is not tried again",
            f"{CONCURRENT}:ConsumeMessageConcurrentlyService._give_back", "self.submit_later(again)", "pass", *RETRY),
    _mutant(11, "what could not be given back counts as given back",
            f"{CONCURRENT}:ConsumeMessageConcurrentlyService._give_back",
            "kept.append(message)", "pass", *RETRY),
    _mutant(12, "recovery does not compare checksums", f"{STORE}.recovery:_read_file",
            "check_crc=log.config.check_crc_on_recover", "check_crc=False", *CUTS),
    _mutant(13, "recovery begins one file late", f"{STORE}.recovery:_start_index",
            "return index", "return min(index + 1, len(files) - 1)", *CRASHES),
    _mutant(14, "a record may leave no byte for the blank that ends a file", f"{STORE}.commit_log:CommitLog.append",
            "size + BLANK_MIN_BYTES > file.file_size", "size + BLANK_MIN_BYTES - 1 > file.file_size"),
    _mutant(15, "queues are not truncated to the end of the log", f"{STORE}.readable_store:ReadableStore._recover",
            "if known >= recovery.end:", "if False:", *CUTS),
    _mutant(16, "a queue is truncated by one entry too few", f"{CQ}._units_before",
            "offset >= phy_offset", "offset > phy_offset", *CUTS),
    _mutant(17, "the log is not cut behind its last good record", f"{STORE}.readable_store:ReadableStore._recover",
            "log.mapped_file_queue.set_position(recovery.end)", "pass", *CUTS),
    _mutant(18, "the checkpoint has no three seconds to spare",
            f"{STORE}.store_checkpoint:StoreCheckpoint.min_timestamp", " - _SAFETY_MS", "", *CRASHES),
    _mutant(19, "one message in seven is not dispatched", f"{STORE}.readable_store:ReadableStore.build_consume_queue",
            "if request.has_queue_entry:", "if request.has_queue_entry and request.consume_queue_offset % 7 != 6:",
            "push-clustering", "many-files"),
    _mutant(20, "messages can be pulled before they are flushed", f"{STORE}.commit_log:CommitLog.confirm_offset",
            "self.mapped_file_queue.flushed_where if sync else self.mapped_file_queue.max_offset",
            "self.mapped_file_queue.max_offset", *CUTS, "sync-send-two-brokers"),
    _mutant(21, "a new key forgets the older ones of its slot", f"{STORE}.index_file:IndexFile.put_key",
            "_INT_MAX), slot_value)", "_INT_MAX), 0)", *CRASHES),
    _mutant(22, "keys of messages stored before a crash are not indexed again",
            f"{STORE}.readable_store:ReadableStore._index_begin", "if clean:\n        return dispatched_from",
            "return self.commit_log.max_offset", *CRASHES),
    _mutant(23, "who pulls behind the end is told the beginning", f"{STORE}.get_message:_out_of_range",
            "GetMessageStatus.OFFSET_OVERFLOW_BADLY, max_offset", "GetMessageStatus.OFFSET_OVERFLOW_BADLY, offset",
            "many-files", "power-cuts"),
    _mutant(24, "an illegal offset is not set right", f"{CONSUMER}.push.pull_loop:PullLoop._take_anew",
            "owner.offset_store.update_and_freeze_offset(request.message_queue, request.next_offset)", "pass",
            "many-files", "power-cuts"),
    _mutant(25, "a message wakes no held pull", f"{HOLD}._reason_to_wake", "return ARRIVED", "pass", *PUSH),
    _mutant(26, "a held pull never times out", f"{HOLD}._reason_to_wake",
            "return TIMED_OUT if now_us >= request.suspended_us + request.timeout_ms * 1_000 else \"\"", "return \"\"",
            *PUSH),
    _mutant(27, "the time-out of a synchronous call is forgotten", f"{CALLS}._sync_timed_out",
            "if answer.done:", "if True:", *SENDS, "silence"),
    _mutant(28, "an answered call stays in the response table", f"{CALLS}.process_response",
            "self.response_table.pop(response.opaque, None)", "self.response_table.get(response.opaque)", *SENDS),
    _mutant(29, "the scan of the response table calls nobody back", f"{CALLS}._scan_response_table",
            "self.complete(future, None, RemotingTimeoutException(address, future.timeout_ms))", "pass", *SENDS),
    _mutant(30, "an asynchronous call keeps its permit",
            f"{REMOTING}.response_future:ResponseFuture.execute_callback",
            "if result is None or not isinstance(result, Coroutine):\n            self._release()", "pass", *SENDS),
    _mutant(31, "a synchronous call keeps its permit", f"{REMOTING}.response_future:ResponseFuture.execute_callback",
            "semaphore.release()", "pass", *SENDS),
    _mutant(32, "calls do not hear that their channel is closed", f"{CALLS}.fail_fast",
            "self.fail(future, \"the channel was closed before the answer came\")", "pass", *SENDS, "silence"),
    _mutant(33, "a retry comes one delay level early", f"{SEND_BACK}._delay_level",
            "FIRST_RETRY_LEVEL + original.reconsume_times", "FIRST_RETRY_LEVEL - 1 + original.reconsume_times", *RETRY),
    _mutant(34, "dead letters come one try late", f"{SEND_BACK}._delay_level",
            "original.reconsume_times >= most", "original.reconsume_times > most", *RETRY),
    _mutant(35, "a delayed message that the store refuses is passed over", f"{DELIVER}._delivered",
            "if not result.is_ok:\n        return False", "if not result.is_ok:\n        return True",
            "delayed-messages", "many-files"),
    _mutant(36, "the progress of a delay level is one too high", f"{DELIVER}._deliver_what_is_due",
            "self.offset = unit.queue_offset + 1", "self.offset = unit.queue_offset + 2", "delayed-messages"),
    _mutant(37, "delayed messages come up to a second early", f"{DELIVER}._deliver_ms",
            "return now_ms if unit.tags_code > now_ms + self.delay_ms else unit.tags_code",
            "return unit.tags_code // 1_000 * 1_000", "delayed-messages"),
    _mutant(38, "what is pulled counts as consumed", f"{CONSUMER}.push.pull_loop:PullLoop._header",
            "owner.offset_store.read_from_memory(queue)", "request.next_offset", *PUSH),
    _mutant(39, "offsets in a consumer's memory may go back",
            f"{CONSUMER}.offset_store:ControllableOffset.update",
            " and (target > self.value or not increase_only)", "", *PUSH, "short-consume-timeout"),
    _mutant(40, "a queue is given up without writing its offset", f"{REBALANCE}._persist_and_forget",
            "self._owner.offset_store.persist(queue)", "pass", "push-clustering", "silence"),
    _mutant(41, "a queue that moves to another member is not dropped", f"{REBALANCE}._give_up",
            "self.process_queue_table[queue].dropped = True", "pass", "push-clustering", *IN_ORDER),
    _mutant(42, "a request that the threads cannot take gets no answer",
            f"{REMOTING}.dispatch:RemotingDispatch.on_command",
            "self.refuse(channel, request, ResponseCode.SYSTEM_BUSY, f\"[OVERLOAD]{BUSY}\")", "pass",
            "hurried-senders"),
    _mutant(43, "the lock of a queue is given to anybody",
            f"{BROKER}.rebalance_lock_manager:RebalanceLockManager.try_lock_batch",
            "(entry.client_id != client_id and self._expired(entry))", "entry.client_id != client_id", *IN_ORDER),
    _mutant(44, "the lock of a queue never expires",
            f"{BROKER}.rebalance_lock_manager:RebalanceLockManager._expired",
            "return self._node.now_us() - entry.updated_us > self._max_live_us", "return False", *IN_ORDER),
    _mutant(45, "the file of consumer offsets is not written", f"{OFFSETS}.persist",
            "self._unsaved and super().persist()", "False", *PUSH, "maintenance"),
    _mutant(46, "a broker whose connection ended stays in the routes", f"{ROUTES}.on_channel_destroy",
            "if live.channel is channel:", "if False:", "silence", "sync-send-two-brokers", "rivals"),
    _mutant(47, "a silent broker stays in the routes", f"{ROUTES}.scan_not_active_broker",
            "if live.last_update_ms + live.heartbeat_timeout_ms < now_ms:", "if False:"),
    _mutant(48, "a retry of a send goes to any broker",
            f"{PRODUCER}.mq_fault_strategy:MQFaultStrategy.select_one_message_queue",
            "info.select_avoiding(last_broker, thread)", "info.select_avoiding(None, thread)", "sync-send-two-brokers",
            "hurried-senders"),
    _mutant(49, "twice as many messages may be held", f"{CONSUMER}.push.pull_loop:PullLoop._is_flow_controlled",
            "process_queue.msg_count > consumer.pull_threshold_for_queue:",
            "process_queue.msg_count > 2 * consumer.pull_threshold_for_queue:", "slow-listener"),
    _mutant(50, "tags are not compared, only their hash codes",
            f"{CONSUMER}.pull_api_wrapper:PullAPIWrapper._wanted_messages", "tags = subscription.tags_set",
            "tags = frozenset()", "tag-twins"),
    _mutant(51, "heartbeats stop after the first", "mqlab.client.heartbeats:Heartbeats.send_to_all_brokers",
            "if not table:", "if not table or any(self.broker_version_table.values()):", "silence", "push-clustering"),
    _mutant(52, "locks are not renewed", f"{LOCKS}.lock_all", "self._by_broker().items()", "()", *IN_ORDER),
    _mutant(53, "the lock of a queue is not given back", f"{LOCKS}.give_up",
            "await self._unlock(queue.broker_name, [queue], oneway=True)", "pass", *IN_ORDER),
    _mutant(54, "a client whose connection ended stays in its groups",
            f"{BROKER}.client_housekeeping_service:ClientHousekeepingService.on_close",
            "self._consumers.do_channel_close_event(channel)", "pass", "push-clustering", "silence"),
    _mutant(55, "a link that is healed forgets what it held back", "mqlab.sim.link:Pipe.heal",
            "self._arm()", "self.frames.clear()", "push-clustering", "silence"),
    _mutant(56, "a loss of power loses nothing", "mqlab.sim.memory_file:MemoryFile.lose_power",
            "if not choose(f\"disk/{self.path}\", 2)", "if False", *CUTS),
    _mutant(57, "a lite pull consumer commits one too many",
            f"{CONSUMER}.lite.lite_pull_offsets:LitePullOffsets._commit",
            "update_offset(queue, offset,", "update_offset(queue, offset + 1,", "lite-pull"),
    _mutant(58, "the offsets of broadcasting are not written",
            f"{CONSUMER}.offset_store:LocalFileOffsetStore.persist_all",
            "if not written:", "if True:", "broadcasting"),
    _mutant(59, "an orderly consumer notes the offset of a queue that it has given up",
            f"{ORDERLY}:{SERVICE}._process_result",
            "if offset >= 0 and not process_queue.dropped:", "if offset >= 0:", "orderly-rebalance", "push-orderly"),
    Mutant(111, "a proxy knows half messages by their topic alone", (
            Change(f"{PROXY}.transaction_data_manager:TransactionDataManager.add",
                   "self._data.setdefault((group, transaction_id), [])", "self._data.setdefault((group, ''), [])"),
            Change(f"{PROXY}.transaction_data_manager:TransactionDataManager.poll",
                   "known = self._data.get(", "transaction_id = ''\n    known = self._data.get("),
        ), ("proxy-transactions",)),
    _mutant(112, "a proxy passes a rollback on as a commit",
            f"{PROXY}.end_transaction_activity:EndTransactionActivity.end_transaction",
            "_STATES.get(request.resolution, _UNKNOW)", "_STATES[TransactionResolution.COMMIT]", "proxy-transactions"),
    _mutant(60, "a half message lies where everybody reads", f"{TRANSACTIONS}.prepare_message",
            "hide(message)", "pass", *BANK),
    _mutant(61, "a half message that is asked about is not stored again", f"{CHECK}._look_through",
            "if await self._store_again(half, offset):", "if True:", *BANK),
    _mutant(62, "a rollback lets the message go", f"{END}.process_request",
            "if header.commit_or_rollback == MessageSysFlag.TRANSACTION_ROLLBACK:", "if False:", *BANK),
    _mutant(63, "a commit is noted and its message is not stored", f"{END}.process_request",
            "inner = committed(half, header.commit_log_offset)", "return self._done(header, half)", *BANK),
    _mutant(64, "UNKNOW lets the message go", f"{END}.process_request",
            "not in (MessageSysFlag.TRANSACTION_COMMIT, MessageSysFlag.TRANSACTION_ROLLBACK)", "not in (0, 8, 12)",
            *BANK),
    _mutant(65, "questions are not counted", f"{CHECK}._is_given_up", "str(times + 1)", "str(times)", *BANK),
    _mutant(66, "the check passes one half message too many", f"{CHECK}.play",
            "self._half_messages.commit(RMQ_SYS_TRANS_HALF_TOPIC, offset)",
            "self._half_messages.commit(RMQ_SYS_TRANS_HALF_TOPIC, offset + 1)", *BANK),
    _mutant(67, "of the ends that are written in one go only the last is", f"{OPS}._write",
            "offsets += text", "offsets = text", *BANK),
    _mutant(68, "the first half message of a round is not known to be ended", f"{CHECK}._note",
            "offset >= self._first", "offset > self._first", *BANK),
    _mutant(71, "a broker that is started again looks at no half message", f"{TRANSACTIONS}.start",
            "threads.append(self.check_service)", "threads += [self.check_service][self.half_messages.are_left():]",
            *BANK),
    _mutant(72, "a half message is stored again for a question that nobody is asked", f"{CHECK}._look_through",
            "self._listener.resolve_half_msg(half)", "pass", *BANK),
    _mutant(73, "a question is about the copy before the new one", f"{CHECK}._store_again",
            "half.queue_offset, half.commit_log_offset = result.logics_offset, result.wrote_offset", "pass", *BANK),
    _mutant(74, "the immunity of a half message is taken for milliseconds", f"{CHECK}._look_through",
            "seconds * 1_000", "seconds", *BANK),
    _mutant(75, "half messages are immune for a second", f"{CHECK}._look_through",
            "immune_ms = self._config.transaction_time_out", "immune_ms = 1_000", *BANK),
    _mutant(76, "an op message names the half message behind", f"{OPS}.delete_prepare_message",
            "f\"{half_offset}{OFFSET_SEPARATOR}\"", "f\"{half_offset + 1}{OFFSET_SEPARATOR}\"", *BANK),
    _mutant(77, "op messages that are not done with are passed", f"{CHECK}.play",
            "sorted(self._done_ops)", "range(self._first_op, self._next_op)", *BANK),
    _mutant(78, "who is asked answers rollback, whatever is in the data base",
            f"{PRODUCER}.transactions:Transactions._check", "STATE_BITS[state]",
            "STATE_BITS[LocalTransactionState.ROLLBACK_MESSAGE]", *BANK),
    _mutant(79, "a master answers when its slave has all in front of the message",
            f"{HA}.default_ha_service:DefaultHAService.handle_ha",
            "result.wrote_offset + result.wrote_bytes", "result.wrote_offset", *PAIR),
    _mutant(80, "a slave reports whole pages", f"{HA}.default_ha_client:DefaultHAClient._report",
            "encode_report(max_offset)", "encode_report(max_offset + -max_offset % 4_096)", *PAIR),
    _mutant(81, "a slave that comes back is sent the log from its end on",
            f"{HA}.default_ha_connection:WriteSocketService._begin", "if asked == 0 else asked",
            "if asked == 0 else end", *PAIR),
    _mutant(82, "a slave does not fetch its master's offsets", f"{HA}.slave_synchronize:SlaveSynchronize.sync_all",
            "await self._sync(RequestCode.GET_ALL_CONSUMER_OFFSET, self._take_consumer_offsets)", "pass", *SLAVE),
    _mutant(83, "a slave takes over only the offsets of groups that are new", f"{OFFSETS}.put_all",
            "self.offset_table.update(wrapper.offset_table)",
            "self.offset_table = {**wrapper.offset_table, **self.offset_table}", *SLAVE),
    _mutant(84, "an offset that a client writes by itself is not kept", f"{OFFSETS}.commit_offset",
            "self._unsaved = True", "self._unsaved = origin != \"asked\"", *SLAVE),
    _mutant(85, "who was once sent to a slave stays there",
            f"{CONSUMER}.pull_api_wrapper:PullAPIWrapper.process_pull_result",
            "self.pull_from_which_node_table[queue] = result.suggest_which_broker_id",
            "self.pull_from_which_node_table.setdefault(queue, result.suggest_which_broker_id)", *SLAVE),
    _mutant(86, "locks are asked of a slave", f"{LOCKS}._master", "MASTER_ID, True", "MASTER_ID, False", *SLAVE),
    _mutant(87, "a slave corrects who asks for what it has not got yet",
            f"{BROKER}.default_pull_message_result_handler:DefaultPullMessageResultHandler.handle",
            "code == ResponseCode.PULL_OFFSET_MOVED and self._may_be_behind", "False", *PAIR),
    _mutant(88, "a message gets the bits of the first group, whoever wants it",
            f"{BROKER}.filter.commit_log_dispatcher_calc_bit_map:CommitLogDispatcherCalcBitMap.dispatch",
            "bloom.hash_to(data.bloom_filter_data, bits)",
            "bloom.hash_to(next(iter(filters.values())).bloom_filter_data, bits)", *SQL),
    _mutant(89, "messages from before a filter are looked up in bit maps",
            f"{BROKER}.filter.property_message_filter:PropertyMessageFilter.is_matched_by_consume_queue",
            "not data.is_msg_in_live(msg_store_time)", "False", *SQL),
    _mutant(90, "NOT makes what is not known true", f"{FILTER}.expression:Not.evaluate",
            "None if value is None else not value", "not value", *SQL),
    _mutant(91, "AND takes what is not known for true", f"{FILTER}.expression:LogicExpression.evaluate",
            "None if unknown else not self.decides", "not self.decides", *SQL),
    _mutant(92, "numbers are compared as texts", f"{FILTER}.comparison:Ordered.evaluate",
            "order = compare(left, right)", "order = 1 if str(left) > str(right) else -1", *SQL),
    _mutant(93, "a held pull is woken without a look at the properties", f"{HOLD}._reason_to_wake",
            "properties is None or message_filter.is_matched_by_properties(properties)",
            "properties is None or message_filter.is_matched_by_properties({})", *SQL),
    _mutant(94, "what is held back counts as consumed while messages are cached",
            f"{CONSUMER}.push.pull_loop:PullLoop._correct_tags_offset",
            "if request.process_queue.msg_count == 0:", "if True:", "tag-twins", *SQL),
    _mutant(95, "a reply goes to who has waited longest", f"{HOLDER}.remove",
            "pop(correlation_id, None)", "pop(next(iter(self.request_future_table), \"\"), None)", *REPLY),
    _mutant(96, "a reply that comes too late goes to the next one who waits", f"{HOLDER}.remove",
            "pop(correlation_id, None)",
            "pop(correlation_id, self.request_future_table.get(next(iter(self.request_future_table), \"\")))", *REPLY),
    _mutant(97, "a callback does not hear that its time is over", f"{HOLDER}._scan_expired_request",
            "if future.callback is not None:", "if False:", *REPLY),
    _mutant(98, "a reply that nobody has taken counts as pushed",
            f"{BROKER}.reply_message_processor:ReplyMessageProcessor._push",
            "except RemotingException:\n        return f\"push reply message to {client_id}fail.\"",
            "except RemotingException:\n        answer = RemotingCommand.response(0)", *REPLY),
)  # fmt: skip

UNSEEN = {
    14: "a record that ends so near the end of its file is as good in this file as in the next",
    47: "its connection is idle for as long, is closed for that, and then the broker goes all the same",
}
"""Mutants that no scenario shows, and why."""
