"""A producer takes a message back that waits for the time of its delivery."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.protocol.headers import RecallMessageRequestHeader
from mqlab.protocol.recall_message_handle import InvalidRecallHandle, RecallMessageHandle
from mqlab.protocol.v2.definition import Code
from mqlab.protocol.v2.service import RecallMessageRequest, RecallMessageResponse
from mqlab.proxy.cluster_metadata_service import DELAY, validate_topic_message_type
from mqlab.proxy.errors import ProxyException
from mqlab.proxy.grpc_validator import validate_topic
from mqlab.proxy.response_builder import OK

if TYPE_CHECKING:
    from mqlab.proxy.cluster_message_service import ClusterMessageService
    from mqlab.proxy.cluster_metadata_service import ClusterMetadataService
    from mqlab.proxy.proxy_config import ProxyConfig
    from mqlab.proxy.proxy_context import ProxyContext


class RecallMessageActivity:
    """Answers RecallMessage: any proxy can, since the handle names the broker.

    Java: org.apache.rocketmq.proxy.grpc.v2.producer.RecallMessageActivity and
    org.apache.rocketmq.proxy.processor.ProducerProcessor.recallMessage.
    """

    def __init__(
        self, config: ProxyConfig, metadata: ClusterMetadataService, messages: ClusterMessageService
    ) -> None:
        self._config = config
        self._metadata = metadata
        self._messages = messages

    async def recall_message(self, ctx: ProxyContext, request: RecallMessageRequest) -> RecallMessageResponse:
        """Ask the broker that a handle names to take the message back; its refusal is the client's."""
        validate_topic(request.topic)
        topic = request.topic.name
        if self._config.enable_topic_message_type_check:
            validate_topic_message_type(await self._metadata.topic_message_type(topic), DELAY)
        try:
            broker_name = RecallMessageHandle.decode(request.recall_handle).broker_name
        except InvalidRecallHandle as error:
            raise ProxyException(Code.INTERNAL_SERVER_ERROR, str(error)) from None
        header = RecallMessageRequestHeader(None, topic, request.recall_handle, broker_name)
        return RecallMessageResponse(OK, await self._messages.recall_message(broker_name, header))
