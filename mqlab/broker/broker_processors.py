"""Which processor of a broker answers which requests, and with the threads of which pool: a row for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from mqlab.broker.client_manage_processor import ClientManageProcessor
from mqlab.broker.consumer_manage_processor import ConsumerManageProcessor
from mqlab.broker.query_message_processor import QueryMessageProcessor
from mqlab.broker.send_message_processor import SendMessageProcessor
from mqlab.protocol.codes import RequestCode
from mqlab.remoting import RequestProcessor

if TYPE_CHECKING:
    from mqlab.broker.whole_broker import WholeBroker
    from mqlab.protocol.command import RemotingCommand
    from mqlab.remoting import Channel
    from mqlab.remoting.processor import Processed

Get = Callable[["WholeBroker"], RequestProcessor]
"""Makes the processor of a broker, or says which of its parts it is."""


class Answers(NamedTuple):
    """Who answers `codes`: with a thread of `pool` (of BrokerExecutors) for the time `service_us` (of ServiceTimes).

    A `late` processor is asked for with each request, and so is made, and its module imported, with the first: many a
    world sends none.
    """

    get: Get
    pool: str
    service_us: str
    codes: tuple[RequestCode, ...]
    late: bool = False


def _pull(broker: WholeBroker) -> RequestProcessor:
    return broker.pull_message_processor


def _recall(broker: WholeBroker) -> RequestProcessor:
    from mqlab.broker.recall_message_processor import RecallMessageProcessor

    return RecallMessageProcessor(broker)


def _reply(broker: WholeBroker) -> RequestProcessor:
    from mqlab.broker.reply_message_processor import ReplyMessageProcessor

    return ReplyMessageProcessor(broker)


def _assignment(broker: WholeBroker) -> RequestProcessor:
    return broker.query_assignment_processor()


def _end_transaction(broker: WholeBroker) -> RequestProcessor:
    return broker.transactions.end_transaction_processor


def _resume_check(broker: WholeBroker) -> RequestProcessor:
    return broker.transactions.resume_check_processor


def _auth(broker: WholeBroker) -> RequestProcessor:
    from mqlab.broker.auth.auth_processor import AuthProcessor

    return AuthProcessor(broker.auth, broker.node.hooks)


def _part_of_pop(broker: WholeBroker, name: str) -> RequestProcessor:
    part: RequestProcessor = getattr(broker.pop, name)
    return part


def _pop(name: str, pool: str, service_us: str, *codes: RequestCode) -> Answers:
    return Answers(partial(_part_of_pop, name=name), pool, service_us, codes, late=True)


C = RequestCode

BROKERS = (
    Answers(
        SendMessageProcessor, "send", "send",
        (C.SEND_MESSAGE, C.SEND_MESSAGE_V2, C.SEND_BATCH_MESSAGE, C.CONSUMER_SEND_MSG_BACK),
    ),
    Answers(_recall, "send", "send", (C.RECALL_MESSAGE,), late=True),
    Answers(_reply, "reply", "send", (C.SEND_REPLY_MESSAGE, C.SEND_REPLY_MESSAGE_V2), late=True),
    Answers(_pull, "pull", "pull", (C.PULL_MESSAGE,)),
    Answers(_pull, "lite_pull", "pull", (C.LITE_PULL_MESSAGE,)),
    Answers(QueryMessageProcessor, "query", "query", (C.QUERY_MESSAGE, C.VIEW_MESSAGE_BY_ID)),
    Answers(ClientManageProcessor, "heartbeat", "heartbeat", (C.HEART_BEAT,)),
    Answers(ClientManageProcessor, "client_manage", "client_manage", (C.UNREGISTER_CLIENT, C.CHECK_CLIENT_CONFIG)),
    Answers(
        ConsumerManageProcessor, "consumer_manage", "consumer_manage",
        (C.GET_CONSUMER_LIST_BY_GROUP, C.UPDATE_CONSUMER_OFFSET, C.QUERY_CONSUMER_OFFSET),
    ),
    Answers(_end_transaction, "end_transaction", "end_transaction", (C.END_TRANSACTION,), late=True),
    Answers(_resume_check, "admin", "admin", (C.RESUME_CHECK_HALF_MESSAGE,), late=True),
    Answers(_assignment, "load_balance", "assignment", (C.QUERY_ASSIGNMENT, C.SET_MESSAGE_REQUEST_MODE), late=True),
    Answers(
        _auth, "admin", "admin",
        (
            C.AUTH_CREATE_USER, C.AUTH_UPDATE_USER, C.AUTH_DELETE_USER, C.AUTH_GET_USER, C.AUTH_LIST_USER,
            C.AUTH_CREATE_ACL, C.AUTH_UPDATE_ACL, C.AUTH_DELETE_ACL, C.AUTH_GET_ACL, C.AUTH_LIST_ACL,
        ),
        late=True,
    ),
)  # fmt: skip
"""What every broker answers; the rest of the codes belong to AdminBrokerProcessor."""

POPS = (
    _pop("pop_message_processor", "pull", "pop", C.POP_MESSAGE),
    _pop("peek_message_processor", "pull", "pop", C.PEEK_MESSAGE),
    _pop("notification_processor", "pull", "pop", C.NOTIFICATION),
    _pop("polling_info_processor", "pull", "pop", C.POLLING_INFO),
    _pop("ack_message_processor", "ack", "ack", C.ACK_MESSAGE, C.BATCH_ACK_MESSAGE),
    _pop("change_invisible_time_processor", "ack", "ack", C.CHANGE_MESSAGE_INVISIBLETIME),
    _pop("pop_rollback_processor", "admin", "admin", C.POP_ROLLBACK),
)
"""What the parts of Pop answer, which the first such request makes."""


def register_processors(broker: WholeBroker, rows: Iterable[Answers] = (*BROKERS, *POPS), *, now: bool = False) -> None:
    """Let these requests be answered; with `now` also by processors that are late, which are there by now."""
    pools, times = broker.executors, broker.broker_config.service_us
    made: dict[Get, RequestProcessor] = {}
    for row in rows:
        late = row.late and not now
        processor = LazyProcessor(partial(row.get, broker)) if late else made.get(row.get) or row.get(broker)
        made[row.get] = processor
        for code in row.codes:
            pool, service_us = getattr(pools, row.pool), getattr(times, row.service_us)
            broker.remoting_server.register_processor(code, processor, pool, service_us)


class LazyProcessor(RequestProcessor):
    """Hands each request on to the processor that `get` says, or makes."""

    def __init__(self, get: Callable[[], RequestProcessor]) -> None:
        self._get = get

    def process_request(self, channel: Channel, request: RemotingCommand) -> Processed:
        """The answer of the processor, which is made now at the latest."""
        return self._get().process_request(channel, request)
