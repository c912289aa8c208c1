"""Words: one plain sentence for what happened, for who has never seen a message queue and for who cannot see the page.

`sentences.py` says what; here are the names that it uses: of machines instead of addresses, of messages by their number
on the stage, of queues by their topic or purpose, and errors in plain words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mqlab.protocol.topics import dlq_topic, is_retry_topic, retry_topic
from mqlab.sim import FAULTS
from mqlab.trace.record import KIND, Record
from mqlab_widgets.labels import label_of
from mqlab_widgets.sentences import SENTENCES

if TYPE_CHECKING:
    from mqlab import Lab
    from mqlab_widgets.boards.stage_state import Flight

MOST_SILENT = 2_000
"""Behind so many events of which nothing is said, nothing is said any more of what was before."""
MOST_BETWEEN = 256
"""So many events before a dispatch its message is looked for."""
NODE = 3
_DLQ, _RETRY = dlq_topic(""), retry_topic("")
_ADDRESS = re.compile(r"<?\b(\d+\.\d+\.\d+\.\d+)(:\d+)?\b>?")
_CODE = re.compile(r"^CODE: \d+\s+DESC: ")
_REASONS = (
    (r"timeout, \d+\(ms\)", "no answer came in time"),
    (r"(?:connect|send request) to (\S+) failed", "{0} could not be reached"),
    (r"broker busy", "the broker is too busy"),
    (r"No topic route info in name server", "the name server does not know the topic"),
    (r"No route info of this topic", "no broker takes messages of the topic"),
    (r"group info not exist", "it does not know the group"),
    (r"request timeout, no reply message|wait reply message timeout", "no reply came in time"),
    (r"channel of <\S+> not found|REPLY_TO_CLIENT\] is null|push reply message to \S+fail", "it cannot be reached"),
    (r"channel was closed", "the connection ended before the answer came"),
    (r"cannot found transaction data", "it does not know where the half message lies, or not any more"),
)
"""Pattern in an error's text -> the same in plain words."""
A_PROGRAM_OUTSIDE = "a program outside"
_REQUESTS = {
    **dict.fromkeys(("SEND_MESSAGE", "SEND_MESSAGE_V2"), "a message"),
    "SEND_BATCH_MESSAGE": "several messages",
    "CONSUMER_SEND_MSG_BACK": "a message back",
    **dict.fromkeys(("PULL_MESSAGE", "LITE_PULL_MESSAGE", "POP_MESSAGE"), "a question for messages"),
    **dict.fromkeys(("ACK_MESSAGE", "BATCH_ACK_MESSAGE"), "an acknowledgement"),
    "HEART_BEAT": "a sign of life",
    "GET_ROUTEINFO_BY_TOPIC": "a question where a topic is",
    "GET_CONSUMER_LIST_BY_GROUP": "a question who is in a group",
    "NOTIFY_CONSUMER_IDS_CHANGED": "the news that a group has changed",
    "QUERY_CONSUMER_OFFSET": "a question how far a group is",
    "UPDATE_CONSUMER_OFFSET": "a note how far a group is",
    "QUERY_ASSIGNMENT": "a question which queues are its own",
    "SEARCH_OFFSET_BY_TIMESTAMP": "a question for the offset at a time",
    "GET_MAX_OFFSET": "a question where a queue ends",
    "GET_MIN_OFFSET": "a question where a queue begins",
    "UPDATE_AND_CREATE_TOPIC": "a new topic, or its settings",
    "END_TRANSACTION": "the end of a transaction",
    "CHECK_TRANSACTION_STATE": "a question what became of a transaction",
    "RECALL_MESSAGE": "the wish to take a message back",
    "PUSH_REPLY_MESSAGE_TO_CLIENT": "a reply, on its way to who asked",
    "RESET_CONSUMER_CLIENT_OFFSET": "the news that a group goes on elsewhere",
    "GET_CONSUMER_RUNNING_INFO": "a question what a consumer is at",
    "CONSUME_MESSAGE_DIRECTLY": "a message that is to be consumed at once",
    "GET_CONSUMER_STATUS_FROM_CLIENT": "a question how far a consumer is",
    "SET_MESSAGE_REQUEST_MODE": "a choice between pull and Pop",
    "GET_BROKER_MEMBER_GROUP": "a question who else is in its broker group",
    "PEEK_MESSAGE": "a wish to see messages without taking them",
    "REGISTER_BROKER": "a broker's report of itself",
    "UNREGISTER_BROKER": "a broker's farewell",
    "UNREGISTER_CLIENT": "a client's farewell",
    "SendMessage": "a message",
    "ReceiveMessage": "a question for messages",
    "AckMessage": "an acknowledgement",
    "ChangeInvisibleDuration": "a wish for another invisible time",
    "ForwardMessageToDeadLetterQueue": "a message for the dead letters",
    "EndTransaction": "the end of a transaction",
    "RecallMessage": "the wish to take a message back",
    "QueryRoute": "a question where a topic is",
    "QueryAssignment": "a question which queues are its own",
    "Heartbeat": "a sign of life",
    "Telemetry": "its settings",
    "NotifyClientTermination": "a client's farewell",
    "LOCK_BATCH_MQ": "a request for locks of queues",
    "UNLOCK_BATCH_MQ": "the return of locks of queues",
}
"""What requests are for."""


def say(record: Record, lab: Lab) -> str:
    """What happened, in one sentence without a full stop; "" for what nobody needs to hear."""
    told = SENTENCES.get(record.kind, "")
    pattern = told if isinstance(told, str) else told(record)
    return pattern.format_map(_Names(record, lab)) if pattern else ""


def line_at(lab: Lab, place: int) -> str:
    """What is said of a world behind so many events, whether it was just played or is looked at again: the newest of
    them in one sentence, or the newest before it of which there is something to say.
    """
    rows = lab.history.rows(max(0, place - MOST_SILENT), place)
    return next((words for row in reversed(list(rows)) if (words := say(Record(row), lab))), "")


def message_words(keys: str, lab: Lab) -> str:
    """ "message 60", or for a batch "6 messages, 31 to 36"; "a message" for one without an id."""
    labels = [label_of(key, lab) for key in keys.split(",")]
    if not all(labels):
        return "a message"
    return f"message {labels[0]}" if len(labels) == 1 else f"{len(labels)} messages, {labels[0]} to {labels[-1]}"


def queue_words(topic: str, queue_id: int, *, named: bool = False) -> str:
    """ "queue 1", or `named` "queue 1 of TopicTest"; what belongs to a group is called by its purpose."""
    if is_retry_topic(topic):
        return f"the retry queue of {topic.removeprefix(_RETRY)}"
    if topic.startswith(_DLQ):
        return f"the dead letters of {topic.removeprefix(_DLQ)}"
    if queue_id < 0:
        return f"any queue of {topic}"
    return f"queue {queue_id} of {topic}" if named else f"queue {queue_id}"


def flight_words(flight: Flight, lab: Lab) -> str:
    """A frame on its way: "message 60", "2 messages of queue 1", "a question for messages of queue 1"."""
    queue = queue_words(*flight.queue[1:]) if flight.queue is not None else "a queue"
    if flight.kind == "send":
        return message_words(flight.keys[0] if flight.keys else "", lab)
    if flight.kind == "back":
        return f"{message_words(flight.keys[0] if flight.keys else '', lab)}, given back"
    if flight.kind == "pull" and not flight.response:
        return f"a question for messages of {queue}"
    if flight.kind == "pull" and flight.messages == 1:
        return f"{message_words(flight.keys[0] if flight.keys else '', lab)} of {queue}"
    if flight.kind == "pull":
        return f"{flight.messages:,} messages of {queue}" if flight.messages else f"the answer that {queue} has nothing"
    if flight.kind == "copy":
        return f"{flight.messages:,} record{'' if flight.messages == 1 else 's'} of the commit log"
    if flight.kind == "report":
        return "a slave's report of what it has"
    if flight.response:
        return "a refusal" if flight.kind == "refusal" else "an answer"
    return request_words(flight.name)


def request_words(name: str) -> str:
    """What a request is for, by RocketMQ's name of it."""
    return _REQUESTS.get(name, f"a request to {name.replace('_', ' ').lower()}")


def span_words(us: float) -> str:
    """A length of time: "0.23 ms", "15 s", "2 min 5 s"."""
    if us < 999_500:
        return f"{us / 1_000:.3g} ms"
    if us < 99_950_000:
        return f"{us / 1_000_000:.3g} s"
    minutes, seconds = divmod(round(us / 1_000_000), 60)
    return f"{minutes:,} min" + (f" {seconds} s" if seconds else "")


def clock(us: int) -> str:
    """A time of the world: "6.098 s"."""
    return f"{us / 1_000_000:,.3f} s"


def action_words(record: Record) -> str:
    """What somebody outside did: "crash broker-a"."""
    arguments = json.loads(record.arguments)
    names = {name: _joined(value) for name, value in arguments.items()}
    return FAULTS[record.verb].said.format_map(names)


def machine_of(address: str, lab: Lab) -> str:
    """The name of the machine with an address, a client id or a connection's end; itself if there is none."""
    host = re.split("[:@]", address, maxsplit=1)[0]
    if host in lab.world.nodes:
        # The id of a 5.x client begins with the name of its machine.
        return host
    return next((name for name, node in lab.world.nodes.items() if node.spec.ip == host), address)


def with_names(text: str, lab: Lab) -> str:
    """A text with the names of machines in the place of their addresses."""
    return _ADDRESS.sub(lambda found: machine_of(found[1], lab), text)


def reason_words(reason: str, lab: Lab) -> str:
    """An error's text in plain words, with the names of machines instead of their addresses."""
    words = with_names(reason.partition("\n")[0], lab)
    for pattern, plain in _REASONS:
        found = re.search(pattern, words)
        if found:
            return plain.format(*found.groups())
    return _CODE.sub("", words)


def _joined(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


class _Names(dict[str, Any]):
    """The names that a pattern may use, looked up when they are wanted."""

    def __init__(self, record: Record, lab: Lab) -> None:
        super().__init__()
        self._record = record
        self._lab = lab

    def __missing__(self, name: str) -> Any:
        found: Callable[[], Any] | None = getattr(self, f"_{name}", None)
        return getattr(self._record, name) if found is None else found()

    def _message(self) -> str:
        return message_words(self._record.get("unique_key") or self._record.get("msg_id") or "", self._lab)

    def _message_is(self) -> str:
        words = self._message()
        return f"{words}, are" if "," in words else f"{words} is"

    def _queue(self) -> str:
        return queue_words(self._record.topic, self._record.queue_id)

    def _named_queue(self) -> str:
        return queue_words(self._record.topic, self._record.queue_id, named=True)

    def _entry(self) -> str:
        """The message that a dispatch is about, whose id only the store's event a little before it has."""
        record, history = self._record, self._lab.history
        try:
            place = history.index_of(record.at)
        except KeyError:
            place = 0
        for row in reversed(list(history.rows(place - MOST_BETWEEN, place))):
            if row[KIND] == "MessageStored" and row[NODE] == record.node:
                stored = Record(row)
                if stored.commit_log_offset == record.commit_log_offset:
                    return message_words(stored.unique_key, self._lab)
        return f"the message at offset {record.queue_offset}"

    def _popped(self) -> str:
        """A message that was handed out by Pop, of which its broker knows the place alone."""
        return f"the message at offset {self._record.queue_offset}"

    def _messages(self) -> str:
        return "1 message" if self._record.messages == 1 else f"{self._record.messages:,} messages"

    def _remote(self) -> str:
        return self._known(self._record.remote)

    def _opener(self) -> str:
        """Who has opened a connection; the broker tells of those that come from no machine of the world."""
        return self._known(self._record.local)

    def _from_outside(self) -> str:
        """What a program outside has sent; of all others that was said when it left."""
        record = self._record
        if self._known(record.remote) != A_PROGRAM_OUTSIDE:
            return ""
        return f"{A_PROGRAM_OUTSIDE} sends {record.node} {self._request()}"

    def _known(self, address: str) -> str:
        machine = machine_of(address, self._lab)
        return A_PROGRAM_OUTSIDE if machine == address else machine

    def _request(self) -> str:
        return request_words(self._record.request_name)

    def _chosen(self) -> str:
        return machine_of(self._record.chosen, self._lab)

    def _namesrv(self) -> str:
        return machine_of(self._record.namesrv_addr, self._lab)

    def _client(self) -> str:
        return machine_of(self._record.client_id, self._lab)

    def _brokers(self) -> str:
        return str(self._record.broker_names).replace(",", " and ")

    def _why(self) -> str:
        return reason_words(self._record.get("reason") or self._record.get("remark") or "", self._lab)

    def _action(self) -> str:
        return action_words(self._record)

    def _hold(self) -> str:
        return span_words(1_000 * self._record.hold_ms)

    def _invisible(self) -> str:
        return span_words(1_000 * self._record.invisible_ms)

    def _held(self) -> str:
        return span_words(self._record.held_us)

    def _slow(self) -> str:
        return span_words(self._record.slow_us)

    def _delay(self) -> str:
        return span_words(1_000 * self._record.delay_ms)

    def _extra(self) -> str:
        return span_words(self._record.extra_us)

    def _silent(self) -> str:
        return span_words(1_000 * self._record.silent_ms)

    def _idle(self) -> str:
        return span_words(1_000 * self._record.idle_ms)

    def _patience(self) -> str:
        return span_words(1_000 * self._record.timeout_ms)

    def _avoided(self) -> str:
        return span_words(1_000 * self._record.not_available_ms)

    def _waited(self) -> str:
        return span_words(1_000 * self._record.waited_ms)
