"""Headers of sending: single messages, batches, replies, and recalling a timer message.

Java: org.apache.rocketmq.remoting.protocol.header.SendMessageRequestHeader, SendMessageRequestHeaderV2,
SendMessageResponseHeader, ReplyMessageRequestHeader, RecallMessageRequestHeader.
"""

from typing import NamedTuple

from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.header_codec import Long, fast_codes, put_first, wire


@put_first("properties")
class SendMessageRequestHeader(NamedTuple):
    """Where a message goes and how it is marked (SEND_MESSAGE, the long field names).

    `default_topic` is the template for a topic that does not exist yet; a negative `queue_id` lets the broker choose;
    `born_timestamp` is in ms since 1970; `properties` is the encoded properties string; `batch` marks a batch body.
    """

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: int
    queue_id: int
    sys_flag: int
    born_timestamp: Long
    flag: int
    properties: str | None = None
    reconsume_times: int | None = None
    unit_mode: bool | None = None
    max_reconsume_times: int | None = None
    batch: bool | None = None
    bname: str | None = None


@fast_codes
@wire(
    producer_group="a",
    topic="b",
    default_topic="c",
    default_topic_queue_nums="d",
    queue_id="e",
    sys_flag="f",
    born_timestamp="g",
    flag="h",
    properties="i",
    reconsume_times="j",
    unit_mode="k",
    max_reconsume_times="l",
    batch="m",
    bname="n",
)
class SendMessageRequestHeaderV2(NamedTuple):
    """The same with one-letter names on the wire (SEND_MESSAGE_V2, SEND_BATCH_MESSAGE): what clients really send.

    The fields here are named by their meaning; the letters a to n are on the wire only.
    """

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: int
    queue_id: int
    sys_flag: int
    born_timestamp: Long
    flag: int
    properties: str | None = None
    reconsume_times: int | None = None
    unit_mode: bool | None = None
    max_reconsume_times: int | None = None
    batch: bool | None = None
    bname: str | None = None

    def to_v1(self) -> SendMessageRequestHeader:
        """The same header under the class with the long names."""
        return SendMessageRequestHeader(*self)


@fast_codes
class SendMessageResponseHeader(NamedTuple):
    """Where the broker put the message.

    `msg_id` is the offset message id, for a batch one per message joined by commas; `queue_offset` is that of the
    first; `transaction_id` is the unique key of the client.
    """

    msg_id: str
    queue_id: int
    queue_offset: Long
    transaction_id: str | None = None
    batch_uniq_id: str | None = None
    recall_handle: str | None = None


class ReplyMessageRequestHeader(NamedTuple):
    """A reply that the broker pushes to the client that asked (PUSH_REPLY_MESSAGE_TO_CLIENT)."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: int
    queue_id: int
    sys_flag: int
    born_timestamp: Long
    flag: int
    properties: str | None
    reconsume_times: int | None
    unit_mode: bool | None
    born_host: str
    store_host: str
    store_timestamp: Long


class RecallMessageRequestHeader(NamedTuple):
    """Takes a timer message back before it is due (RECALL_MESSAGE)."""

    producer_group: str | None
    topic: str
    recall_handle: str
    bname: str | None = None


class RecallMessageResponseHeader(NamedTuple):
    """The unique key of the message that was taken back."""

    msg_id: str


def parse_send_header(command: RemotingCommand) -> SendMessageRequestHeader | SendMessageRequestHeaderV2:
    """The header of any request that sends, in the class that its code uses; both classes have the same fields."""
    header = command.header
    if type(header) is SendMessageRequestHeaderV2:
        return header
    if command.code in (RequestCode.SEND_MESSAGE, RequestCode.SEND_REPLY_MESSAGE):
        return command.header_as(SendMessageRequestHeader)
    return command.header_as(SendMessageRequestHeaderV2)
