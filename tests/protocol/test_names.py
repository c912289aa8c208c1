"""Names of topics and groups, subscriptions and heartbeats."""

from __future__ import annotations

import pytest

from mqlab.errors import LearnerError, MQClientException
from mqlab.protocol import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    LanguageCode,
    Message,
    MessageModel,
    ProducerData,
    RequestCode,
    ResponseCode,
    SubscriptionData,
    build_subscription_data,
    check_group,
    check_message,
    check_topic,
    code_name,
    dlq_topic,
    is_system_topic,
    java_string_hash,
    retry_topic,
    topics,
    validate_topic,
)
from mqlab.protocol import namespace as ns


def outcome(function, *args):
    try:
        function(*args)
    except MQClientException as problem:
        return f"MQClientException: {problem}"
    return "ok"


def test_every_validator_vector(vectors):
    for row in vectors("validators"):
        if "systemTopics" in row:
            assert sorted(topics.SYSTEM_TOPICS) == row["systemTopics"]
            assert sorted(topics.NOT_ALLOWED_SEND_TOPICS) == row["notAllowedSendTopics"]
            continue
        checks = {}
        if "name" in row:
            name = row["name"]
            checks = {
                "checkTopic": (check_topic, name),
                "checkGroup": (check_group, name),
                "isSystemTopicCheck": (topics.check_system_topic, name),
                "isNotAllowedSendTopicCheck": (topics.check_not_allowed_send_topic, name),
            }
        elif "topic" in row:
            length = row["bodyLength"]
            checks = {"checkMessage": (check_message, Message(row["topic"], None if length is None else bytes(length)))}
        else:
            checks = {"checkMessage": (check_message, None)}
        for key, call in checks.items():
            if key in row or f"{key}Error" in row:
                assert outcome(*call) == row.get(f"{key}Error", "ok"), (key, row)
        if "brokerValidateTopic" in row:
            assert validate_topic(name)._asdict() == row["brokerValidateTopic"], row
            assert is_system_topic(name) == row["isSystemTopic"], row


def test_a_retry_topic_may_be_longer():
    assert validate_topic("%RETRY%" + "g" * 248).valid
    assert validate_topic("%RETRY%" + "g" * 249) == (False, "The specified topic is longer than topic max length.")


def result(function, *args):
    try:
        return function(*args)
    except ValueError:
        return "error"


def test_every_name_vector(vectors):
    for row in vectors("names"):
        name = row["resource"]
        made = {
            "getRetryTopic": retry_topic(name),
            "getDLQTopic": dlq_topic(name),
            "isSysConsumerGroup": topics.is_sys_consumer_group(name),
            "isLmq": topics.is_lmq(name),
            "withoutNamespace": ns.without_namespace(name),
            "withoutNamespace_NS": ns.without_namespace(name, "NS"),
            "wrapNamespace_NS": ns.wrap_namespace("NS", name),
            "wrapNamespaceAndRetry_NS": ns.wrap_namespace_and_retry("NS", name),
            "isAlreadyWithNamespace_NS": ns.is_already_with_namespace(name, "NS"),
            "getNamespaceFromResource": ns.namespace_of(name),
            "withOutRetryAndDLQ": ns.without_retry_and_dlq(name),
            "isRetryTopic": topics.is_retry_topic(name),
            "isDLQTopic": topics.is_dlq_topic(name),
            "popRetryV1_cid_G": topics.pop_retry_topic(name, "G"),
            "popRetryV2_cid_G": topics.pop_retry_topic(name, "G", version_2=True),
            "parseNormalTopic": topics.parse_normal_topic(name),
            "parseNormalTopic_cid_g": result(topics.parse_normal_topic, name, "g"),
            "parseGroup": result(topics.parse_group, name),
            "isPopRetryTopicV2": topics.is_pop_retry_topic_v2(name),
        }
        for key, value in made.items():
            assert value == row.get(key, "error"), (key, row)


def test_the_reply_topic_belongs_to_a_cluster():
    assert topics.reply_topic("DefaultCluster") == "DefaultCluster_REPLY_TOPIC"
    assert topics.is_not_allowed_send_topic("SCHEDULE_TOPIC_XXXX")


def test_every_subscription_vector(vectors):
    for row in vectors("subscription-data"):
        kind = row.get("type", "TAG")
        if "dataError" in row:
            with pytest.raises(LearnerError) as problem:
                build_subscription_data("T", row["subString"], kind)
            assert problem.value.message == row["dataError"].partition(": ")[2], row
            continue
        data = build_subscription_data("T", row["subString"], kind, sub_version=7)
        written = data.to_json()
        for key, value in row["data"].items():
            seen = sorted(written[key]) if key in ("tagsSet", "codeSet") else written[key]
            assert seen == (sorted(value) if isinstance(value, list) else value), (key, row)
        assert (data.topic, data.sub_version) == ("T", 7)


def heartbeat(client_id="c", sub_version=1):
    subscription = build_subscription_data("T", "TagA||TagB", sub_version=sub_version)
    consumer = ConsumerData("G", ConsumeType.CONSUME_PASSIVELY, MessageModel.CLUSTERING,
                            ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, [subscription])  # fmt: skip
    return HeartbeatData(client_id, [ProducerData("PG")], [consumer])


def test_a_heartbeat_comes_back_the_same():
    sent = heartbeat()
    arrived = HeartbeatData.decode(sent.encode())
    assert arrived == sent
    assert arrived.consumer_data_set[0].message_model is MessageModel.CLUSTERING
    assert b'"codeSet":[2598919,2598920]' in sent.encode()


def test_the_fingerprint_is_that_of_the_subscriptions():
    assert heartbeat("a", 1).compute_heartbeat_fingerprint() == heartbeat("b", 2).compute_heartbeat_fingerprint()
    changed = heartbeat()
    changed.consumer_data_set[0].subscription_data_set.append(SubscriptionData("U", "*"))
    assert changed.compute_heartbeat_fingerprint() != heartbeat().compute_heartbeat_fingerprint()


def test_sets_are_written_in_an_order_of_their_own():
    tags = [f"Tag{i}" for i in range(20)]
    one = build_subscription_data("T", "||".join(tags)).encode()
    two = build_subscription_data("T", "||".join(reversed(tags))).encode().replace(
        "||".join(reversed(tags)).encode(), "||".join(tags).encode()
    )
    assert one == two


def test_codes_have_names():
    assert code_name(310) == "SEND_MESSAGE_V2"
    assert code_name(17) == "UPDATE_AND_CREATE_TOPIC"
    assert code_name(17, response=True) == "TOPIC_NOT_EXIST"
    assert code_name(9999) == "9999"
    assert (RequestCode.POP_MESSAGE, ResponseCode.GO_AWAY, LanguageCode.PYTHON) == (200050, 1500, 3)


def test_java_hash_of_tag_a():
    assert java_string_hash("TagA") == 2598919
