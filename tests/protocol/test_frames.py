"""Every frame that was recorded between real clients, brokers and name servers."""

from __future__ import annotations

from mqlab.protocol import (
    RemotingCommand,
    RequestCode,
    ResponseCode,
    assignment,
    bodies,
    group_bodies,
    heartbeat,
    route,
    scan_records,
    topic_config,
)
from mqlab.protocol.command_header import ROCKETMQ
from mqlab.protocol.header_codec import codec_of
from mqlab.protocol.headers.table import REQUEST_HEADERS, RESPONSE_HEADERS
from mqlab.protocol.message import MessageQueue

REQUEST_BODIES = {
    RequestCode.HEART_BEAT: heartbeat.HeartbeatData,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: topic_config.SubscriptionGroupConfig,
    RequestCode.CHECK_CLIENT_CONFIG: group_bodies.CheckClientRequestBody,
    RequestCode.LOCK_BATCH_MQ: group_bodies.LockBatchRequestBody,
    RequestCode.UNLOCK_BATCH_MQ: group_bodies.UnlockBatchRequestBody,
    RequestCode.SET_MESSAGE_REQUEST_MODE: assignment.SetMessageRequestModeRequestBody,
    RequestCode.QUERY_ASSIGNMENT: assignment.QueryAssignmentRequestBody,
    RequestCode.REGISTER_BROKER: topic_config.RegisterBrokerBody,
}
RESPONSE_BODIES = {
    RequestCode.GET_BROKER_CLUSTER_INFO: route.ClusterInfo,
    RequestCode.GET_ROUTEINFO_BY_TOPIC: route.TopicRouteData,
    RequestCode.GET_KVLIST_BY_NAMESPACE: topic_config.KVTable,
    RequestCode.GET_BROKER_RUNTIME_INFO: topic_config.KVTable,
    RequestCode.GET_TOPIC_STATS_INFO: bodies.TopicStatsTable,
    RequestCode.GET_ALL_TOPIC_CONFIG: topic_config.TopicConfigAndMappingSerializeWrapper,
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: topic_config.SubscriptionGroupWrapper,
    RequestCode.GET_ALL_CONSUMER_OFFSET: topic_config.ConsumerOffsetSerializeWrapper,
    RequestCode.GET_ALL_DELAY_OFFSET: topic_config.DelayOffsetSerializeWrapper,
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: topic_config.TopicList,
    RequestCode.GET_ALL_MESSAGE_REQUEST_MODE: assignment.MessageRequestModeSerializeWrapper,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: group_bodies.GetConsumerListByGroupResponseBody,
    RequestCode.GET_CONSUMER_CONNECTION_LIST: bodies.ConsumerConnection,
    RequestCode.GET_PRODUCER_CONNECTION_LIST: bodies.ProducerConnection,
    RequestCode.GET_CONSUME_STATS: bodies.ConsumeStats,
    RequestCode.GET_TOPIC_CONFIG: topic_config.TopicConfig,
    RequestCode.CONSUME_MESSAGE_DIRECTLY: bodies.ConsumeMessageDirectlyResult,
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: bodies.ResetOffsetBody,
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: bodies.GetConsumerStatusBody,
    RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: bodies.GetConsumerStatusBody,
    RequestCode.LOCK_BATCH_MQ: group_bodies.LockBatchResponseBody,
    RequestCode.QUERY_ASSIGNMENT: assignment.QueryAssignmentResponseBody,
    RequestCode.REGISTER_BROKER: topic_config.KVTable,
}
RECORD_BODIES = (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE, RequestCode.POP_MESSAGE,
                 RequestCode.QUERY_MESSAGE, RequestCode.VIEW_MESSAGE_BY_ID)  # fmt: skip


def test_every_frame_decodes_and_encodes_back_to_the_same_bytes(frames):
    assert len(frames) == 926
    for frame in frames:
        command = RemotingCommand.decode(frame.data)
        assert command.encode() == frame.data, frame.label
        assert command.is_response == (frame.kind == "response"), frame.label
        assert command.is_oneway == (frame.kind == "oneway"), frame.label


def test_a_snapshot_encodes_to_the_same_bytes(frames):
    for frame in frames:
        assert RemotingCommand.decode(frame.data).snapshot().encode() == frame.data, frame.label


def _header_class(frame):
    if frame.kind != "response":
        return REQUEST_HEADERS.get(frame.code)
    return RESPONSE_HEADERS.get(frame.request_code) if frame.code == ResponseCode.SUCCESS else None


def _made_here(command, header):
    """The same command as somebody would make it here: with a typed header, and the fields beside it."""
    made = RemotingCommand(command.code, header, command.body, command.flag, command.remark, command.opaque)
    made.serialize_type = command.serialize_type
    own = codec_of(type(header)).wire_names()
    for name, value in (command.ext_fields or {}).items():
        if name not in own:
            made.add_ext_field(name, value)
    return made


def test_the_typed_header_of_every_frame_says_what_its_fields_say_and_encodes_to_the_same_frame(frames):
    typed = 0
    for frame in frames:
        command = RemotingCommand.decode(frame.data)
        cls = _header_class(frame)
        if cls is None or command.ext_fields is None:
            continue
        made = _made_here(command, command.header_as(cls))
        assert made.ext_fields == command.ext_fields, frame.label
        assert made.encode() == frame.data, frame.label
        typed += 1
    assert typed > 600


def test_every_code_with_fields_in_a_recorded_request_has_a_typed_header(frames):
    for frame in frames:
        command = RemotingCommand.decode(frame.data)
        if frame.kind != "response" and command.ext_fields:
            assert frame.code in REQUEST_HEADERS, frame.label


def test_every_recorded_json_body_decodes_and_encodes_back_to_the_same_bytes(frames):
    compared = 0
    for frame in frames:
        body = RemotingCommand.decode(frame.data).body
        table = RESPONSE_BODIES if frame.kind == "response" else REQUEST_BODIES
        cls = table.get(frame.request_code)
        if cls is None or body is None:
            continue
        decoded = cls.decode(body)
        again = decoded.encode_standard() if isinstance(decoded, route.TopicRouteData) else decoded.encode()
        assert again == body, frame.label
        compared += 1
    assert compared > 180


def test_every_recorded_body_of_messages_is_a_row_of_records(frames):
    messages = 0
    for frame in frames:
        command = RemotingCommand.decode(frame.data)
        if frame.kind == "response" and frame.request_code in RECORD_BODIES and command.body:
            found = list(scan_records(command.body))
            assert sum(message.store_size for message in found) == len(command.body), frame.label
            messages += len(found)
    assert messages > 50


def test_the_recordings_hold_both_forms_of_the_header(frames):
    forms = {RemotingCommand.decode(frame.data).serialize_type for frame in frames}
    assert forms == {0, ROCKETMQ}


def test_what_was_recorded_of_pops_is_what_the_article_says_of_them(frames):
    assigned, invisible_ms = [], set()
    for frame in frames:
        command = RemotingCommand.decode(frame.data)
        if frame.request_code == RequestCode.QUERY_ASSIGNMENT and frame.kind == "response":
            answer = assignment.QueryAssignmentResponseBody.decode(command.body)
            assigned += [(a.message_queue, a.mode) for a in answer.message_queue_assignments]
        elif frame.request_code == RequestCode.POP_MESSAGE and frame.kind != "response":
            header = command.header_as(REQUEST_HEADERS[RequestCode.POP_MESSAGE])
            if header.consumer_group == "CG_POPPUSH":
                invisible_ms.add(header.invisible_time)
    assert (MessageQueue("FrPop", "broker-a", -1), "POP") in assigned, "one queue with id -1 for the broker"
    assert invisible_ms == {60_000}


def test_a_recorded_negative_answer_to_a_pop_sets_the_time_by_the_number_of_tries(frames):
    requests = [RemotingCommand.decode(frame.data) for frame in frames
                if frame.code == RequestCode.CHANGE_MESSAGE_INVISIBLETIME and frame.kind != "response"]  # fmt: skip
    headers = [request.header_as(REQUEST_HEADERS[RequestCode.CHANGE_MESSAGE_INVISIBLETIME]) for request in requests]
    assert [h.invisible_time for h in headers if h.consumer_group == "CG_POPPUSH"] == [10_000], "the first try: 10 s"
