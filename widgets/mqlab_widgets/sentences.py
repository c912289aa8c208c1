"""What is said of each event kind: the table of sentences that `words.say` fills with names.

`SENTENCES` has for each kind either a pattern with names in braces or a function that chooses one: `{node}`, `{remote}`
or `{client}` are names of machines, `{message}` and `{queue}` are said as on the stage, `{why}` is a reason in plain
words, and every other name is a field of the event (`words.py` has them all). `SILENT` has the kinds of which nothing
is said, each with its reason; a function may be silent, too: of a topic of RocketMQ's own, say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mqlab.protocol.topics import (
    CID_SYS_RMQ_TRANS,
    RMQ_SYS_SCHEDULE_TOPIC,
    dlq_topic,
    is_retry_topic,
    is_system_topic,
)
from mqlab.views.journey import CONSUMED

if TYPE_CHECKING:
    from mqlab.trace.record import Record

_DLQ = dlq_topic("")
_SAID_BESIDE = {
    *("SEND_MESSAGE", "SEND_MESSAGE_V2", "SEND_BATCH_MESSAGE", "SEND_REPLY_MESSAGE", "SEND_REPLY_MESSAGE_V2"),
    *("PULL_MESSAGE", "LITE_PULL_MESSAGE", "POP_MESSAGE", "CONSUMER_SEND_MSG_BACK"),
    *("ACK_MESSAGE", "BATCH_ACK_MESSAGE", "CHANGE_MESSAGE_INVISIBLETIME"),
}
_HOLDS = {
    "count": "{cached:,} messages of {queue}, more than {limit:,}",
    "size": "{cached:,} MiB of {queue}, more than {limit:,}",
    "span": "messages of {queue} that lie {cached:,} apart, more than {limit:,}",
    "unacked": "{cached:,} messages that it has not acknowledged, more than {limit:,}",
    "all": "{cached:,} messages of all its queues, more than {limit:,}",
}


def _started(record: Record) -> str:
    return "{target} was started" if record.life == 1 else "{target} was started again"


def _power_lost(record: Record) -> str:
    lost = record.pages_lost
    gone = "nothing that it had stored is gone" if not lost else "what was not yet on its disk is gone"
    return f"{{target}} lost power: {gone}"


def _link_delayed(record: Record) -> str:
    longer = "{extra} longer" if record.extra_us else "as long as before"
    return f"what {{source}} sends to {{target}} takes {longer}"


def _action(record: Record) -> str:
    return "from outside: {action}"


def _of_applications(pattern: str) -> Callable[[Record], str]:
    """Said of the topics of applications only: of RocketMQ's own there are many, and nobody asked for them."""
    return lambda record: "" if is_system_topic(record.topic) or is_retry_topic(record.topic) else pattern


def _reply_arrived(record: Record) -> str:
    return "{node} has its reply" if record.matched else "{node} gets a reply for which nobody waits any more"


def _registered(record: Record) -> str:
    return "{node} knows {broker_name} from now on" if record.first else ""


def _assignment_answered(record: Record) -> str:
    told = "it cannot say which" if record.queues < 0 else "{queues} of them"
    said = f"{{client}} asks {{node}} for its queues of {{topic}}, and is told to {{mode}} {told}"
    return _of_applications(said)(record)


def _queried(record: Record) -> str:
    known = "" if record.code == 0 else ", which it does not know"
    return _of_applications(f"{{remote}} asks {{node}} where the topic {{topic}} is{known}")(record)


def _replicated(record: Record) -> str:
    if record.status == "PUT_OK":
        return "{node}: {ack_nums:,} brokers have the message, and its producer is answered"
    return "{node}: a producer waits no longer for copies; its message is stored here all the same"


def _stored(record: Record) -> str:
    if record.topic == RMQ_SYS_SCHEDULE_TOPIC or (is_system_topic(record.topic) and not record.unique_key):
        return ""
    if is_retry_topic(record.topic) or record.topic.startswith(_DLQ):
        return "{node} stored {message} once more, for {queue}"
    return "{node} stored {message} at the end of its commit log, for {queue}"


def _dispatched(record: Record) -> str:
    if is_system_topic(record.topic):
        return ""
    return "{node}: {entry} is in {queue} now, where it can be pulled"


def _recovered(record: Record) -> str:
    cut = f"; {record.cut_bytes:,} bytes at its end were torn and are dropped" if record.cut_bytes else ""
    return "{node} has read its commit log again" + cut if record.records or record.cut_bytes else ""


def _disk_full(record: Record) -> str:
    if record.full:
        return "{node}: the disk is full, so messages are refused"
    return "{node}: there is room on the disk again, so messages are taken"


def _send_answered(record: Record) -> str:
    if record.status == "PUT_OK":
        return "{node} answers {remote}: {message_is} stored"
    if record.code == 0 or record.status in ("FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE"):
        return "{node} answers {remote}: {message_is} stored, but not as safely as asked for"
    return "{node} answers {remote}: {message} was refused"


def _sent_back(record: Record) -> str:
    if record.topic.startswith(_DLQ):
        return "{node} gives up on {message}: it goes to {queue}"
    return "{node} takes {message} back, to give it to {group} again later"


def _transaction_ended(record: Record) -> str:
    if record.code:
        return "{node} refuses the end of {message}"
    if record.local_state == "COMMIT_MESSAGE":
        return "{node} lets {message} go: it was committed"
    if record.local_state == "ROLLBACK_MESSAGE":
        return "{node} forgets {message}: it was rolled back"
    return "{node} hears that nobody knows yet what becomes of {message}"


def _transaction_checked(record: Record) -> str:
    if not record.remote:
        return "{node} wants to ask what became of {message}, and nobody of {group} is there"
    return "{node} asks {remote} what became of {message}"


def _local_transaction_executed(record: Record) -> str:
    if record.reason:
        return "{node}: the local part of {message} failed: {why}"
    if record.local_state == "COMMIT_MESSAGE":
        return "{node} has done the local part of {message}"
    if record.local_state == "ROLLBACK_MESSAGE":
        return "{node} could not do the local part of {message}, and takes it back"
    return "{node} does not know yet what became of the local part of {message}"


def _local_transaction_remembered(record: Record) -> str:
    if record.local_state == "COMMIT_MESSAGE":
        return "{node} is asked about {message}, and says commit"
    if record.local_state == "ROLLBACK_MESSAGE":
        return "{node} is asked about {message}, and says rollback"
    return "{node} is asked about {message}, and does not know"


def _transaction_resolved(record: Record) -> str:
    if record.local_state == "COMMIT_MESSAGE":
        return "{node} commits {message}"
    return "{node} takes {message} back"


def _orphaned_transaction_relayed(record: Record) -> str:
    if not record.client_id:
        return "{node} shall ask what became of {message}, and no producer of {topic} is there"
    return "{node} hands the question about {message} on to {client}"


def _on_the_wheel(record: Record) -> str:
    if record.recalls:
        return "{node} has put the wish to take {message} back on the wheel"
    return "{message} waits in a slot of {node}'s timer wheel"


def _topic_created(record: Record) -> str:
    if record.origin in ("system", "retry", "dead letter"):
        return ""
    return "there is a new topic, {topic}" if record.origin == "admin" else "{node} has a new topic, {topic}"


def _of_own_groups(pattern: str) -> Callable[[Record], str]:
    """Said of the groups that applications have named only: each client has a producer of its own, for give-backs."""
    return lambda record: "" if record.group.startswith("CLIENT_INNER") else pattern


def _client_started(record: Record) -> str:
    """A producer that speaks to proxies has no group."""
    if not record.group:
        return "{node} is ready as a {role}"
    return _of_own_groups("{node} is ready as a {role} of the group {group}")(record)


def _of_consumers(pattern: str) -> Callable[[Record], str]:
    """Said of consumers only: which producers a broker knows changes nothing that is seen."""
    return lambda record: pattern if record.role == "consumer" else ""


def _offset_committed(record: Record) -> str:
    """Where a broker's own check goes on is nobody's progress."""
    if record.group == CID_SYS_RMQ_TRANS:
        return ""
    return "{node} notes that {group} goes on at offset {queue_offset} of {queue}"


def _pull_received(record: Record) -> str:
    return "{remote}'s question for messages of {queue} has reached {node}" if record.first_pass else ""


def _pull_answered(record: Record) -> str:
    if record.messages:
        return "{node} gives {remote} {messages} of {queue}"
    return "{node} tells {remote} that {queue} has nothing for it"


def _woken(record: Record) -> str:
    if record.reason == "arrived":
        return "{node}: a message came to {queue}, so {remote}'s waiting request is looked at again"
    return "{node}: nothing came to {queue} for {held}, so {remote}'s request waits no longer"


def _pull_finished(record: Record) -> str:
    return "" if record.messages else "{node} got no message of {queue}, and will ask again"


def _request_sent(record: Record) -> str:
    """Of a frame with a message in it, or a wish for one, the event beside it says more."""
    return "" if record.request_name in _SAID_BESIDE else "{node} sends {remote} {request}"


def _attempted(record: Record) -> str:
    # Through a proxy, which chooses broker and queue.
    return "{node} sends {message} to {broker_name}, {queue}" if record.broker_name else "{node} sends {message}"


def _attempt_failed(record: Record) -> str:
    where = " to {broker_name}" if record.broker_name else ""
    return f"{{node}} could not send {{message}}{where}: {{why}}"


_FILTER_CHANGES = {
    "registered": "{node} gives {group} of {topic} from now on what fulfils {expression}",
    "replaced": "{node} gives {group} of {topic} from now on what fulfils {expression}",
    "refused": "{node} cannot read what {group} wants of {topic}: {expression}",
    "alive again": "{node}: somebody of {group} is there again for what fulfils {expression}",
}


def _filter_changed(record: Record) -> str:
    return _FILTER_CHANGES.get(record.change, "")


def _held_back(record: Record) -> str:
    left = record.by_bit_map + record.by_expression
    words = "1 message" if left == 1 else f"{left:,} messages"
    return f"{{node}} holds {words} of {{queue}} back, which {{group}} does not want"


def _pop_filtered(record: Record) -> str:
    if record.filter_result == "TO_DLQ":
        return "{node} gives {message} up, which was delivered too often"
    return "{node} drops {message}, whose tag was not asked for"


def _given_up(record: Record) -> str:
    if record.reason == "client left":
        return "{node} lets others have {message}, whose consumer has gone"
    return "{node} hides {message} no longer than now: {why}"


def _assignments_scanned(record: Record) -> str:
    return "{node} shall receive {topic} from {assignments:,} places" if record.changed else ""


def _receive_finished(record: Record) -> str:
    if record.messages or record.status in ("OK", "MESSAGE_NOT_FOUND"):
        return "{node} has received {messages} of {queue}"
    return "{node} could not receive messages of {queue}"


def _settled(record: Record) -> str:
    return {
        "ack": "{node} is done with {message}",
        "nack": "{node} wants {message} again in {invisible}",
        "longer": "{node} wants {message} to itself for {invisible} from now on",
        "dead letter": "{node} gives {message} up after {delivery_attempt:,} tries",
    }.get(record.settled_as, "{node} has settled {message}")


def _settling_failed(record: Record) -> str:
    after = ", and leaves it" if record.is_final else ", and will try again in 1 s"
    return f"{{node}} could not say what became of {{message}}: {{why}}{after}"


def _fault_item(record: Record) -> str:
    return "{node} avoids {broker_name} for {avoided}" if record.not_available_ms else ""


def _rebalanced(record: Record) -> str:
    if not record.changed or is_retry_topic(record.topic):
        return ""
    if record.members == 1:
        return "{node} takes all {queues} queues of {topic}, as the only member of {group}"
    return f"{{node}} takes {{share}} of the {{queues}} queues of {{topic}}, as one of {_members(record)} of {{group}}"


def _assignment_taken(record: Record) -> str:
    if not record.changed or is_retry_topic(record.topic):
        return ""
    if record.popped:
        return "{node} pops {topic} from now on, as its broker says, and owns no queue of it"
    return "{node} pulls {pulled} queues of {topic} from now on, as its broker says"


def _pop_finished(record: Record) -> str:
    return "" if record.messages else "{node} got no message of {topic}, and will ask again"


def _ack_requested(record: Record) -> str:
    why = "" if record.reason == "consumed" else f", which its listener never saw: {record.reason}"
    return f"{{node}} tells {{broker_name}} that {{message_is}} done{why}"


def _members(record: Record) -> str:
    return "1 member" if record.members == 1 else f"{record.members} members"


def _flow_controlled(record: Record) -> str:
    return f"{{node}} holds {_HOLDS[record.reason]}, so it does not ask for more now"


def _cached(record: Record) -> str:
    if record.cached > record.messages:
        return "{node} got {messages} of {queue}, and keeps {cached:,} of them now until its listener takes them"
    them = "it" if record.messages == 1 else "them"
    return f"{{node}} got {{messages}} of {{queue}}, and keeps {them} for its listener"


def _consume_started(record: Record) -> str:
    again = f", after it failed {_times(record.reconsume_times)}" if record.reconsume_times > 0 else ""
    if record.messages > 1:
        return "{node}: the listener got {messages}, the first is {message}" + again
    return "{node}: the listener got {message}" + again


def _consume_finished(record: Record) -> str:
    if record.status in CONSUMED:
        return "{node}: the listener is done with {message}"
    if record.status == "None":
        return "{node}: the listener returned None for {message}, which counts as a failure"
    return "{node}: the listener could not handle {message}"


def _pop_received(record: Record) -> str:
    return "{remote}'s wish for messages of {topic} has reached {node}" if record.first_pass else ""


def _woken_pop(record: Record) -> str:
    if record.reason == "timed out":
        return "{node}: {remote}'s request for messages of {topic} has waited long enough"
    return "{node}: {remote}'s waiting request for messages of {topic} is looked at again: {why}"


def _check_point_made(record: Record) -> str:
    if record.held_in == "offset only":
        return ""
    where = "in memory" if record.held_in == "buffer" else "in its store"
    return f"{{node}} notes {where} that {{messages}} of {{queue}} must be acknowledged within {{invisible}}"


def _ack_read(record: Record) -> str:
    if record.bits:
        return "{node}: the reviver finds an acknowledgement of {queue}"
    return "{node}: the reviver finds an acknowledgement of {queue} that comes too late"


def _check_point_settled(record: Record) -> str:
    if record.acked == record.messages:
        return "{node}: the reviver ticks off a check point: all its messages were acknowledged"
    return ""


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _record_let_go(record: Record) -> str:
    why = "its lock has ended" if record.reason == "time-out" else "its consumer has gone"
    return f"{{node}} takes record {{queue_offset}} back, since {why}: it is {{state}} now"


def _share_state_written(record: Record) -> str:
    return "{node} writes down what has changed: {states}" if record.states else ""


def _share_state_read(record: Record) -> str:
    return "{node} knows of its share partition: " + ("{states}" if record.states else "nothing")


def _sqs_deleted(record: Record) -> str:
    if record.deleted:
        return "{node} deletes {message_id}"
    return "{node} deletes nothing, and says nothing of it: {receipt_handle} is an old handle"


Sentence = str | Callable[["Record"], str]

SENTENCES: dict[str, Sentence] = {
    # the world
    "NodeStarted": _started,
    "NodeCrashed": "{target} was killed: what it had in memory is gone",
    "PowerLost": _power_lost,
    "NodeFrozen": "{target} hangs: it keeps its connections and answers nothing",
    "NodeThawed": "{target} goes on where it stood",
    "LinkCut": "nothing gets through from {source} to {target} any more",
    "LinkHealed": "what {source} sends to {target} gets through again",
    "LinkDelayed": _link_delayed,
    "DiskHung": "{target}: the disk does not answer any more",
    "DiskUnhung": "{target}: the disk answers again",
    "DiskSlowed": "{target}: the disk is slow: each write takes {slow}",
    "DiskQuick": "{target}: the disk is as quick as before",
    "ClockDrifted": "{target}: the clock on its wall does not go as the others do",
    "ActionTaken": _action,
    # the network and remoting
    "RequestSent": _request_sent,
    "RequestReceived": "{from_outside}",
    "ConnectionOpened": "{opener} has opened a connection to {remote}",
    "ConnectionClosed": "{node}: the connection with {remote} has ended",
    "ConnectionBroken": "{node} has lost its connection with {remote}, and what was on its way there",
    "ConnectionRefusedByHost": "{node} could not connect: {why}",
    "ResponseDropped": "{node} throws an answer of {remote} away, since nobody waits for it any more",
    "RequestTimedOut": "{node} waits no longer for the answer of {remote}, after {patience}",
    "RequestFailed": "a request of {node} to {remote} has failed: {why}",
    "RequestRefused": "{node} refuses a request of {remote}: {why}",
    "ProcessorFailed": "{node} failed at a request of {remote}: {why}",
    "NameServerChosen": "{node} will ask {chosen} where topics are",
    "ChannelIdle": "{node} closes its connection with {remote}, which was silent for {idle}",
    "FrameRefused": "{node} could not read what came from {remote}, and closes the connection",
    # the name server
    "BrokerRegistered": _registered,
    "BrokerRegistrationRefused": "{node} does not take the report of {broker_name}: {why}",
    "BrokerUnregistered": "{node} no longer knows {broker_name}",
    "RouteQueried": _queried,
    "WritePermChanged": "{node} tells from now on whether {broker_name} may be written to",
    # the store
    "MessageStored": _stored,
    "PutRefused": "{node} refuses a message for {named_queue}: {why}",
    "PutHeldLock": "{node}: a write into the commit log has taken {held}; nobody else could write meanwhile",
    "MessageDispatched": _dispatched,
    "DispatchStalled": "{node}: messages are stored, but can no longer be pulled: {why}",
    "CommitLogFlushed": "{node} has brought its commit log to the disk: what is stored survives a power cut",
    "FlushTimedOut": "{node}: a producer waits no longer for the disk; its message is stored all the same",
    "StoreRecovered": _recovered,
    "FileDeleted": "{node} deletes a file of its store: {why}",
    "DiskFullChanged": _disk_full,
    # filters by SQL92
    "ConsumerFilterChanged": _filter_changed,
    "MessagesFilteredByBroker": _held_back,
    # the timer
    "TimerMessageAccepted": "{node} holds {message} back for {delay}",
    "TimerMessageEnqueued": _on_the_wheel,
    "TimerMessageDelivered": "{node}: the time of {message} has come, and it goes to {queue}",
    "TimerMessageRolled": "{node} puts {message} on the wheel again: it is due later than the wheel reaches",
    "TimerMessageRecalled": "{node} does not deliver {message}: it was taken back",
    "TimerPutRefused": "{node} could not store {message}, whose time has come, and will try again",
    "TimerMessageDropped": "{node} gives a message up that waited for its time: {why}",
    "TimerStalled": "{node}: the timer gets no further: {why}",
    # master and slave
    "ReplicaConnected": "{remote} follows {node}",
    "ReplicaDisconnected": "{node} has lost {remote}, which followed it: {why}",
    "ReplicationBegun": "{node} sends {remote} its commit log from {commit_log_offset:,} on",
    "ReplicaDataSent": "{node} sends {remote} {body_bytes:,} bytes of its commit log",
    "ReplicaDataAppended": "{node} appends {body_bytes:,} bytes of its master's commit log to its own",
    "ReplicaAcked": "{node} hears that {remote} has all before {ack_offset:,}",
    "ReplicaPutWaiting": "{node} holds an answer back until {ack_nums:,} brokers have the message",
    "ReplicaPutAnswered": _replicated,
    "MasterConnectFailed": "{node} could not reach its master {remote}: {why}",
    "MasterDisconnected": "{node} follows {remote} no longer: {why}",
    "SlaveSynchronizeFailed": "{node} could not ask its master for a table: {why}",
    # the broker
    "BrokerStarted": "{node} is ready to take messages",
    "BrokerShutDown": "{node} was shut down",
    "MinBrokerChanged": "{node} hears from a name server who of its group has the smallest number now",
    "RegistrationFailed": "{node} could not report itself to {namesrv}: {why}",
    "RequestRejected": "{node} refuses a request of {remote}: {why}",
    "MessageSendReceived": "{message} has reached {node}",
    "MessageSendAnswered": _send_answered,
    "SendBackStored": _sent_back,
    "MessageParked": "{node} keeps {message} back for {delay}",
    "ParkedMessageDelivered": "{node}: the wait of {message} is over, and it goes to {queue}",
    "ParkedMessageDropped": "{node} passes over a message that waited: {why}",
    "TopicCreated": _topic_created,
    "TopicUpdated": "{node} has new settings for the topic {topic}",
    "TopicDeleted": "{node} has deleted the topic {topic}",
    "ClientRegistered": _of_consumers("{node} knows {client} as a member of {group} from now on"),
    "ClientUnregistered": _of_consumers("{node}: {client} is no longer a member of {group}"),
    "ClientExpired": _of_consumers("{node} has heard nothing of {client} for {silent}: {group} is without it now"),
    "ConsumerGroupChanged": lambda record: f"{{node}}: the group {{group}} has {_members(record)} now",
    "PullReceived": _pull_received,
    "PullAnswered": _pull_answered,
    "ColdDataPullHeld": "{node} lets {remote} wait, whose group has read too much from the disk",
    "PullHeld": "{node} has nothing new in {queue} and keeps {remote}'s request, for {hold} at most",
    "PullWoken": _woken,
    "OffsetCommitted": _offset_committed,
    "OffsetReset": "{node} moves {group} to offset {queue_offset} of {queue}",
    "ConfigNotPersisted": "{node} could not write one of its tables: {why}",
    "QueueLocked": "{node} locks {named_queue} for {client}",
    "QueueUnlocked": "{node} unlocks {named_queue}, which {client} had locked",
    "RequestTimedOutInQueue": "{node} is busy: {remote}'s request waited {waited} for a thread and is turned away",
    # Pop
    "PopReceived": _pop_received,
    "MessagePopped": "{node} hands {message} to {remote}, and hides it for {invisible}",
    "PopHeld": "{node} has nothing in {topic} for {remote}, and keeps its request for {hold} at most",
    "PopWoken": _woken_pop,
    "CheckPointMade": _check_point_made,
    "CheckPointNotMade": "{node} keeps {messages} of {queue} back, since it could not note them: {why}",
    "CheckPointStored": "{node} writes a check point of {queue} to its store",
    "CheckPointMerged": "{node} forgets a check point of {queue}, which is settled",
    "MergeBufferClosed": "{node} keeps no more check points in memory until all {check_points} are stored",
    "MergeBufferOpened": "{node} keeps check points in memory again",
    "OffsetQueueDropped": "{node} forgets how far {group} was handed out {queue}: {why}",
    "AckReceived": "{remote} tells {node} that {popped} of {queue} is done",
    "AckBuffered": "{node} ticks off {popped} of {queue} in memory",
    "AckStored": "{node} writes an acknowledgement of {queue} to its store",
    "AckLost": "{node}: an acknowledgement of {queue} changes nothing: {why}",
    "InvisibleTimeChanged": "{node} hides {popped} of {queue} for {invisible} from now on",
    "ReviveAckRead": _ack_read,
    "CheckPointWaits": "{node}: the reviver waits with a check point of {queue}, whose acknowledgements may still come",
    "CheckPointSettled": _check_point_settled,
    "MessageRevived": "{node}: nobody acknowledged {message} in time, so it comes again",
    "MessageNotRevived": "{node} could not bring {popped} of {queue} back: {why}",
    "CheckPointPutAgain": "{node} will try again to bring {popped} of {queue} back: {why}",
    "OrderTaken": "{node} hands out messages of {queue} in order, and nothing more until they are settled",
    "OrderBlocked": "{node} hands out nothing of {queue} in order while earlier messages are not settled",
    "OrderFreed": "{node} can hand out messages of {queue} in order again",
    "OrderAcked": "{node} ticks off {popped} of {queue}; the group goes on at {next_offset}",
    "PopRecordWritten": "{node} writes a record: {group} has {popped} of {queue} for {invisible}",
    "PopRecordDeleted": "{node} deletes its record of {popped} of {queue}",
    "PopRecordsNotWritten": "{node} could not write its records of messages that it hands out: {why}",
    "PopRecordsRecovered": "{node} has read on its disk what is handed out: {records} messages",
    "MessageRequestModeSet": "{node}: the group {group} shall {mode} the topic {topic} from now on",
    "AssignmentAnswered": _assignment_answered,
    # request and reply
    "ReplyAwaited": "{node} asks on {topic}, and waits for a reply",
    "ReplyPushed": "{node} has brought {client} the reply that it waits for",
    "ReplyNotPushed": "{node} has a reply that it cannot bring to who asked: {why}",
    "ReplyArrived": _reply_arrived,
    "ReplyGivenUp": "{node} waits for the reply no longer: {why}",
    "RequestCallbackFailed": "{node}: the application's callback for a reply failed",
    # the message trace
    "TraceSent": "{node} sends what it has noted of messages to the topic {topic}",
    "TraceLost": "{node} loses what it has noted of messages: {why}",
    # the clients
    "ClientStarted": _client_started,
    "ClientStopped": _of_own_groups("{node} was shut down"),
    "RouteUpdated": _of_applications("{node} has learnt where the topic {topic} is: on {brokers}"),
    "RouteMissing": _of_applications("{node} has found no broker for the topic {topic}"),
    "BrokerForgotten": "{node} sends {broker_name} no more signs of life, since no route has it any more",
    "HeartbeatFailed": "{node}'s sign of life did not reach {broker_name}: {why}",
    "SendAttempted": _attempted,
    "SendSucceeded": "{node} knows now that {message_is} stored",
    "SendAttemptFailed": _attempt_failed,
    "SendFailed": "{node} gives up on {message}: {why}",
    "SendCallbackFailed": "{node}: the application's callback for {message} failed",
    "SendHookFailed": "{node}: a hook of the application failed at {message}",
    "MessageConsumedDirectly": "{node} was asked to consume {message} at once, beside its queue",
    "ConsumerOffsetsReset": "{node} goes on elsewhere in {topic}, as its broker has told it",
    "FaultItemUpdated": _fault_item,
    "RebalanceDone": _rebalanced,
    "RebalanceSkipped": _of_applications("{node} could not find out which queues of {topic} are its own: {why}"),
    "AssignmentTaken": _assignment_taken,
    "PopUnassigned": "{node} pops {topic} no more: {why}",
    "PopRequested": "{node} asks {broker_name} for messages of {queue}",
    "PopFinished": _pop_finished,
    "MessagesTaken": "{node} has got {messages}, and owes {unacked} acknowledgements now",
    "PopGivenUp": "{node} keeps silent about {message}: {why}",
    "PopThreadFailed": "{node} could not tell what became of {message}: {why}",
    "AckRequested": _ack_requested,
    "AckFailed": "{node} could not acknowledge {message}: {why}",
    "InvisibleTimeRequested": "{node}'s listener failed: it wants {message} again in {invisible}",
    "InvisibleTimeNotChanged": "{node} could not say when it wants {message} again: {why}",
    "QueueAllocated": "{node} took {named_queue}, and goes on at offset {queue_offset}",
    "QueueDropped": "{node} gave up {named_queue}: {why}",
    "QueueLockTaken": "{node} holds the lock of {named_queue}",
    "QueueLockLost": "{node} no longer holds the lock of {named_queue}",
    "PullRequested": "{node} asks {broker_name} for messages of {queue}, from offset {queue_offset} on",
    "PullFinished": _pull_finished,
    "PullPutOff": "{node} will ask for messages of {queue} in {delay}: {why}",
    "PullCallbackFailed": "{node}: the application failed at the answer for {queue}: {why}",
    "QueueListenerFailed": "{node}: the application failed when its queues changed: {why}",
    "PullTaskStarted": "{node} begins with the pull task of {queue}",
    "PullTaskFailed": "{node}: the pull task of {queue} failed: {why}",
    "PullTaskEnded": "{node}: the pull task of {queue} has ended: {why}",
    "FlowControlled": _flow_controlled,
    "MessagesFiltered": "{node} drops {messages} of {queue} whose tag was not asked for",
    "MessagesCached": _cached,
    "MessagesPolled": "{node} hands {messages} of {queue} to its application",
    "QueueSought": "{node} will go on at offset {queue_offset} of {queue}",
    "TopicQueuesChanged": "{node} sees that {topic} has other queues now: {queues}",
    "ConsumeStarted": _consume_started,
    "ConsumeFinished": _consume_finished,
    "ConsumeResultIgnored": "{node} ended a message of {queue}, which is no longer its own: it will come again",
    "MessageGivenBack": "{node} gave {message} back, to get it again later",
    "SendBackFailed": "{node} could not give {message} back: its listener will get it again here",
    # transactions
    "HalfMessageHidden": "{node} hides {message}: nobody gets it before its producer has said commit",
    "TransactionEnded": _transaction_ended,
    "HalfMessageStoredAgain": "{node} stores the half message {message} again, behind those that come next",
    "TransactionChecked": _transaction_checked,
    "HalfMessageGivenUp": "{node} puts {message} aside: it was asked about {check_times} times, and nobody knew",
    "LocalTransactionExecuted": _local_transaction_executed,
    "LocalTransactionRemembered": _local_transaction_remembered,
    "TransactionResolved": _transaction_resolved,
    "EndTransactionRelayed": "{node} knows where the half of {message} lies, and tells {broker_name} how it ended",
    "OrphanedTransactionRelayed": _orphaned_transaction_relayed,
    # proxies and the clients that speak to them
    "ProxyStarted": "{node} is ready for clients",
    "ProxyClientLeft": "{node} forgets {client}: {why}",
    "RpcRefused": "{node} refuses what {client} asks: {why}",
    "PopResultFiltered": _pop_filtered,
    "DeadLetterForwarded": "{node} has had {message} put to the dead letters of {group}",
    "HandleRenewed": "{node} hides {message} for {invisible} more, since its consumer still has it",
    "HandleRenewFailed": "{node} could not hide {message} for longer: {why}",
    "HandleGivenUp": _given_up,
    "AssignmentsScanned": _assignments_scanned,
    "ProcessQueueDropped": "{node} receives no more from {named_queue}: {why}",
    "ReceiveRequested": "{node} asks for messages of {queue}",
    "ReceiveFinished": _receive_finished,
    "ReceivePutOff": "{node} will ask for messages of {queue} in {delay}: {why}",
    "FifoAttemptPutOff": "{node} will try {message} again in {delay}, before anything behind it",
    "MessageSettled": _settled,
    "SettlingFailed": _settling_failed,
    # Pop's cousins
    "RecordAcknowledged": "{member} says {acknowledge_type} of record {queue_offset}, which is {state} now",
    "AcknowledgementRefused": "{node} takes no acknowledgement from {member}: {why}",
    "RecordLetGo": _record_let_go,
    "StartOffsetMoved": "{node}: the window of {group} begins at {to_offset} now",
    "ShareStateWritten": _share_state_written,
    "ShareStateRead": _share_state_read,
    "SqsMessageDeleted": _sqs_deleted,
    "SqsVisibilityChanged": "{node} hides {message_id} for {invisible} from now on",
    "SqsMessageRedriven": "{node} puts {message_id} into the dead-letter queue: it was received {receive_count} times",
    "WorkTaken": "{worker} has {order_name}; the count that it is told is {told_count}",
    "WorkAnswered": "{worker} says that {order_name} is done, and hears: {answer}",
}  # fmt: skip

_BESIDE = "what the frame is for was said when its request was sent, or is said beside it"
_ROUTINE = "it comes again and again, and changes nothing that is seen"
SILENT: dict[str, str] = {
    "SqsMessageReceived": "that a worker has it is said",
    "RecordAcquired": "that a worker has it is said",
    "RecordProduced": "the orders are there before anything happens to them",
    "SqsMessageSent": "the orders are there before anything happens to them",
    "TransactionOpWritten": "the ends that are written down were said",
    "TransactionRoundEnded": _ROUTINE,
    "TraceNoted": "the sending or consuming that is noted is said",
    "ResponseSent": _BESIDE,
    "ResponseReceived": _BESIDE,
    "TopicRouteChanged": "the broker's registration is said; a broker has a route for each of its topics",
    "TopicRouteRemoved": "the broker's leaving is said, or the deletion of its topic",
    "KVConfigChanged": "no client of today reads that table",
    "CommitLogFileCreated": "where a file of the log ends changes nothing for a message",
    "ConsumeQueuesFlushed": _ROUTINE,
    "CheckpointWritten": _ROUTINE,
    "IndexBuilt": _ROUTINE,
    "StoreLoaded": "the recovery after it is said",
    "StoreStopped": "the broker's shutdown is said",
    "TimerSlotDequeued": "each message of the slot is said",
    "TimerFlushed": _ROUTINE,
    "TimerLoaded": "the timer begins with the first message for it, or with the broker",
    "FilterBitMapCalculated": "what is held back for it is said when somebody reads",
    "ReplicaHeartbeatSent": _ROUTINE,
    "MasterConnected": "the master tells that it is followed",
    "SlaveSynchronized": _ROUTINE,
    "RegistrationSent": _ROUTINE,
    "DelayOffsetCorrected": "a detail of the store's recovery",
    "SubscriptionGroupCreated": "its first member is said",
    "SubscriptionGroupUpdated": "a setting that nobody sees on the stage",
    "SubscriptionGroupDeleted": "a setting that nobody sees on the stage",
    "HeartbeatReceived": _ROUTINE,
    "SubscriptionChanged": "the member that wants it is said",
    "HeldPullsChecked": _ROUTINE,
    "ConfigPersisted": _ROUTINE,
    "PopQueueBusy": "the pop that holds the queue is said",
    "PopAnswered": "each message that it hands out is said",
    "PopNotHeld": "its answer is said beside it",
    "ReviveScanBegun": _ROUTINE,
    "ReviveCheckPointRead": "what becomes of the check point is said",
    "ReviveScanWaits": _ROUTINE,
    "ReviveScanEnded": _ROUTINE,
    "ReviveOffsetCommitted": _ROUTINE,
    "HeartbeatAnswered": _ROUTINE,
    "SubscriptionsLeftOut": _ROUTINE,
    "QueueSelected": "the send after it is said",
    "PullTaskScheduled": "its beginning is said",
    "PullTaskFinished": "its beginning is said",
    "PopAssigned": "the assignment as a whole is said",
    "OffsetUpdated": "the listener's end is said, and the commit at the broker",
    "OffsetPersisted": "the commit at the broker is said",
    "ClientSettingsTaken": "the client's start is said",
    "RpcCancelled": "that its caller gave up is said",
    "ProxyRouteLoaded": _ROUTINE,
    "ProcessQueueCreated": "the assignment before it is said",
}
"""Event kind -> why nothing is ever said of it."""
