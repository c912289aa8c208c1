"""How errors become the status of an answer."""

from __future__ import annotations

from mqlab.errors import MQBrokerException, MQClientException, RemotingTimeoutException
from mqlab.protocol.codes import ClientErrorCode, ResponseCode
from mqlab.protocol.v2.definition import Code, Status
from mqlab.protocol.v2.protobuf import name_of
from mqlab.proxy.errors import GrpcProxyException

OK = Status(Code.OK, "OK")

_CODES = {
    int(ResponseCode.SUCCESS): Code.OK,
    int(ResponseCode.SYSTEM_BUSY): Code.TOO_MANY_REQUESTS,
    int(ResponseCode.REQUEST_CODE_NOT_SUPPORTED): Code.NOT_IMPLEMENTED,
    int(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST): Code.CONSUMER_GROUP_NOT_FOUND,
    int(ClientErrorCode.ACCESS_BROKER_TIMEOUT): Code.PROXY_TIMEOUT,
}
"""The codes of brokers and clients that have one of their own; all others are INTERNAL_SERVER_ERROR."""

_NO_TOPIC = (int(ResponseCode.TOPIC_NOT_EXIST), int(ClientErrorCode.NOT_FOUND_TOPIC_EXCEPTION))


def is_topic_not_exist(error: Exception) -> bool:
    """Whether an error says that there is no such topic.

    Java: org.apache.rocketmq.proxy.service.route.TopicRouteHelper.isTopicNotExistError.
    """
    return isinstance(error, MQBrokerException | MQClientException) and error.response_code in _NO_TOPIC


def status_of_code(code: int, remark: str | None) -> Status:
    """The status for an answer of a broker."""
    return Status(_CODES.get(code, Code.INTERNAL_SERVER_ERROR), remark if remark is not None else str(code))


def status_of(error: Exception) -> Status:
    """The status for an error.

    Java: org.apache.rocketmq.proxy.grpc.v2.common.ResponseBuilder.buildStatus.
    """
    if isinstance(error, GrpcProxyException):
        return Status(error.code, error.error_message)
    if is_topic_not_exist(error):
        return Status(Code.TOPIC_NOT_FOUND, str(error))
    if isinstance(error, MQBrokerException | MQClientException):
        return status_of_code(error.response_code, error.error_message)
    if isinstance(error, RemotingTimeoutException):
        return Status(Code.PROXY_TIMEOUT, str(error))
    return Status(Code.INTERNAL_SERVER_ERROR, str(error))


def status_of_all(statuses: list[Status], if_empty: str) -> Status:
    """The status of an answer with several entries: theirs if they agree, else MULTIPLE_RESULTS."""
    codes = {status.code for status in statuses}
    if len(codes) > 1:
        return Status(Code.MULTIPLE_RESULTS, Code.MULTIPLE_RESULTS.name)
    if not codes:
        return Status(Code.INTERNAL_SERVER_ERROR, if_empty)
    return Status(statuses[0].code, name_of(statuses[0].code))
