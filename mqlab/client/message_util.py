"""Making the reply to a request."""

from __future__ import annotations

from mqlab.errors import MQClientException
from mqlab.protocol.codes import ClientErrorCode
from mqlab.protocol.message import Message, MessageConst
from mqlab.protocol.topics import REPLY_MESSAGE_FLAG, reply_topic


def create_reply_message(request: Message | None, body: bytes | str) -> Message:
    """A message that answers a request, to be sent by any producer; MQClientException when there is nothing to answer.

    It goes to the reply topic of the cluster that the request was stored in, and names the request and its client. A
    message that is no request gets a reply for nobody, which the broker refuses.

    Java: org.apache.rocketmq.client.utils.MessageUtil.createReplyMessage.
    """
    code = int(ClientErrorCode.CREATE_REPLY_MESSAGE_EXCEPTION)
    if request is None:
        raise MQClientException("create reply message fail, requestMessage cannot be null.", code)
    cluster = request.properties.get(MessageConst.CLUSTER)
    if cluster is None:
        text = f"create reply message fail, requestMessage error, property[{MessageConst.CLUSTER}] is null."
        raise MQClientException(text, code)
    reply = Message(reply_topic(cluster), body)
    reply.properties = {MessageConst.MESSAGE_TYPE: REPLY_MESSAGE_FLAG}
    for name in (MessageConst.CORRELATION_ID, MessageConst.MESSAGE_REPLY_TO_CLIENT, MessageConst.MESSAGE_TTL):
        value = request.properties.get(name)
        if value is not None:
            reply.properties[name] = value
    return reply


def get_reply_to_client(message: Message) -> str | None:
    """The id of the client that a request came from, or that a reply goes to."""
    return message.properties.get(MessageConst.MESSAGE_REPLY_TO_CLIENT)
