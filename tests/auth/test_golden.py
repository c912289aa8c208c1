"""What RocketMQ 5.3.3's own classes, broker and proxy say, and what is said here."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.auth import Acl, SessionCredentials
from mqlab.auth.acl import Policy, PolicyEntry, Resource, is_valid_ip_or_cidr, matched_entry
from mqlab.auth.remoting_needs import ROWS
from mqlab.auth.session_credentials import AclClientRPCHook, sign, signed_metadata
from mqlab.lab import Lab
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.v2.protobuf import decode
from mqlab.protocol.v2.service import RPCS
from mqlab.rpc import RpcClient
from tests.auth.conftest import AUTH, Program, played, vectors

SWITCHED = {10, 11, 12, 14, 15, 34, 35, 36, 37, 38, 41, 42, 105, 310, 370}
"""The requests that RocketMQ looks at itself, whatever their headers say."""


@pytest.mark.parametrize("row", [row for row in vectors("auth-signatures") if row["kind"] == "remoting"])
def test_a_request_is_signed_as_by_the_java_client(row: dict[str, Any]) -> None:
    request = RemotingCommand.request(10, None, row["body"].encode())
    request.add_ext_fields(row["extFields"])
    credentials = SessionCredentials(row["accessKey"], row["secretKey"], row["securityToken"])
    AclClientRPCHook(credentials).do_before_request("10.0.0.2:10911", request)
    assert request.ext_field("Signature") == row["signature"]
    AclClientRPCHook(credentials).do_before_request("10.0.0.2:10911", request)
    assert request.ext_field("Signature") == row["signature"], "a request that is sent once more"


@pytest.mark.parametrize("row", [row for row in vectors("auth-signatures") if row["kind"] == "grpc"])
def test_a_time_is_signed_as_by_the_java_client(row: dict[str, Any]) -> None:
    assert sign(row["dateTime"].encode(), row["secretKey"]).hex().upper() == row["signature"]


def test_a_call_says_who_and_when_in_its_headers() -> None:
    metadata = signed_metadata(SessionCredentials("alice", "secret", "token"), 1_735_689_600_999)
    assert metadata["x-mq-date-time"] == "20250101T000000Z"
    signature = sign(b"20250101T000000Z", "secret").hex().upper()
    assert metadata["authorization"] == (
        f"MQv2-HMAC-SHA1 Credential=alice, SignedHeaders=x-mq-date-time, Signature={signature}"
    )
    assert metadata["x-mq-session-token"] == "token"


def test_each_request_needs_what_its_header_says_in_java() -> None:
    wanted = {}
    for row in vectors("auth-needs"):
        fields = [(field["name"], field["type"], field["splitter"]) for field in row["fields"]]
        if row["code"] not in SWITCHED and (fields or row["resource"] == "Cluster"):
            wanted[row["code"]] = (row["actions"], fields, row["resource"] == "Cluster")
    ours = {code: (list(row.actions), [tuple(f) for f in row.fields], row.cluster) for code, row in ROWS.items()}
    del ours[36]
    assert ours == wanted


@pytest.mark.parametrize("row", vectors("auth-decisions"))
def test_of_several_rules_the_one_decides_that_decides_in_java(row: dict[str, Any]) -> None:
    acl = Acl("User:u")
    for policy_type, resource, actions, source_ip, decision in row["entries"]:
        entry = PolicyEntry(resource, actions.split(","), [source_ip] if source_ip else None, decision)
        if acl.policy(policy_type) is None:
            acl.policies.append(Policy(policy_type))
        policy = acl.policy(policy_type)
        assert policy is not None
        policy.entries.append(entry)
    found = matched_entry(acl, Resource.topic("Orders"), row["actions"], "10.0.0.7")
    said = None if found is None else f"{found.resource} {found.decision} {','.join(found.actions)}"
    assert said == row["matched"]


@pytest.mark.parametrize("row", vectors("auth-source-ips"))
def test_a_source_ip_is_an_address_or_a_range(row: dict[str, Any]) -> None:
    short_form = row["text"] == "1.2.3/8"
    assert is_valid_ip_or_cidr(row["text"]) == (row["valid"] and not short_form)


def test_a_broker_answers_each_request_as_a_real_one() -> None:
    lab = Lab(7)
    lab.name_server()
    lab.broker(**AUTH)
    program = Program(lab)
    for row in vectors("auth-answers"):
        credentials = SessionCredentials(row["user"], row["secret"]) if "user" in row else None
        change = {"topic": "Other"} if "tampered" in row else None
        body = row["body"].encode() if "body" in row else None
        answer = program.ask(row["code"], row.get("fields"), body, credentials, change)
        said = (answer.code, answer.remark, None if answer.body is None else answer.body.decode())
        assert said == (row["answer"], row.get("remark"), row.get("answerBody")), row["name"]


def test_a_proxy_answers_each_call_as_a_real_one() -> None:
    lab = Lab(7)
    lab.name_server()
    broker = lab.broker(**AUTH)
    proxy = lab.proxy(**AUTH)
    for topic in ("Orders", "Other"):
        lab.create_topic(topic, 4, attributes={"+message.type": "NORMAL"})
    lab.create_user("alice", "secret")
    lab.create_user("off", "x")
    off = broker.running().auth.user("off")
    assert off is not None
    off.user_status = "disable"
    lab.create_acl("User:alice", ["Topic:Orders"], ["Pub", "Sub"])
    lab.create_acl("User:alice", ["Group:g*"], ["Sub"])
    node = lab.node("program")
    rpcs = {rpc.name: rpc for rpc in RPCS.values()}
    for row in vectors("auth-calls"):
        metadata = {"x-mq-client-id": row["clientId"], "x-mq-client-version": "5.0.0"}
        if "user" in row:
            metadata |= signed_metadata(SessionCredentials(row["user"], row["secret"]), 1_735_689_600_000)
        metadata |= row.get("metadata", {})
        client = RpcClient(node, {name: text for name, text in metadata.items() if text is not None})
        rpc = rpcs[row["call"]]
        request = decode(rpc.request, bytes.fromhex(row["request"]))
        status = played(lab, node, client.unary(proxy.address, rpc, request, 5_000)).status
        wanted = row["answer"][1].replace("127.0.0.1", node.spec.ip)
        assert (int(status.code), status.message) == (row["answer"][0], wanted), row["name"]
