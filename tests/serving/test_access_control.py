"""Access control over real sockets: `mqlab serve --acl FILE`, its settings by --set, programs that sign or do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import grpc
import pytest

from mqlab.auth import SessionCredentials
from mqlab.auth.session_credentials import AclClientRPCHook, signed_metadata
from mqlab.commands import serve
from mqlab.errors import LearnerError
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import SendMessageRequestHeader
from mqlab.protocol.headers.auth import CreateUserRequestHeader, ListUsersRequestHeader
from mqlab.protocol.v2 import definition as d
from mqlab.protocol.v2 import service as v2
from mqlab.protocol.v2.protobuf import decode, encode
from mqlab.replay import read_report, replay
from mqlab.scenarios import get
from mqlab.scenarios.access_control import EXAMPLE
from tests.serving.conftest import Connects, Program, Server, start

ADMIN, ORDERS = SessionCredentials("admin", "12345678"), SessionCredentials("orders", "secret")
ENTRY = {"resource": "Topic:T", "actions": ["Pub", "Sub", "Get"], "decision": "Allow"}
SAID: dict[str, Any] = {
    "users": [
        {"username": "admin", "password": "12345678", "userType": "Super"},
        {"username": "orders", "password": "secret"},
    ],
    "acls": [{"subject": "User:orders", "policies": [{"entries": [ENTRY]}]}],
}


def said(*acls: dict[str, Any], **more: Any) -> str:
    """The users, other rules, and what else is said."""
    return json.dumps({**SAID, "acls": acls, **more})


def with_rule(**change: Any) -> str:
    """One rule, which is changed."""
    return said({"subject": "User:orders", "policies": [{"entries": [{**ENTRY, **change}]}]})


def with_user(**change: Any) -> str:
    """A further user, who is changed."""
    return said(users=[*SAID["users"], {"username": "bob", "password": "x", **change}])


MISSPELT = {
    "rules": said(rules=[]),
    "userTyp": with_user(userTyp="Normal"),
    "userstatus": with_user(userstatus="disable"),
    "disabled": with_user(userStatus="disabled"),
    "Admin": with_user(userType="Admin"),
    "pasword": with_user(pasword="y"),
    "sourceIp": with_rule(sourceIp=["10.0.0.7"]),
    "Publish": with_rule(actions=["Pub", "Publish", "Sub"]),
    "Denied": with_rule(decision="Denied"),
    "Tpic:T": with_rule(resource="Tpic:T"),
    "Topic:a*b*": with_rule(resource="Topic:a*b*"),
    "Any:T": with_rule(resource="Any:T"),
    "orders": said({"subject": "orders", "policies": [{"entries": [ENTRY]}]}),
    "policyTyp": said({"subject": "User:orders", "policies": [{"policyTyp": "Default", "entries": [ENTRY]}]}),
    "Defualt": said({"subject": "User:orders", "policies": [{"policyType": "Defualt", "entries": [ENTRY]}]}),
}
"""Texts with a word that nobody would understand, by that word."""


@pytest.fixture
def acl(tmp_path: Path) -> str:
    (tmp_path / "acl.json").write_text(json.dumps(SAID), encoding="utf-8")
    return str(tmp_path / "acl.json")


def ask(program: Program, request: RemotingCommand, credentials: SessionCredentials | None) -> RemotingCommand:
    """The answer to a request that is signed with these, if they are given."""
    if credentials is not None:
        AclClientRPCHook(credentials).do_before_request("", request)
    opaque = program.write(request)
    while True:
        answer = program.read()
        assert answer is not None, "the connection ended before the answer"
        if answer.opaque == opaque and answer.is_response:
            return answer


def message(topic: str) -> RemotingCommand:
    header = SendMessageRequestHeader("P", topic, "TBW102", 4, 0, 0, 0, 0, "")
    return RemotingCommand.request(RequestCode.SEND_MESSAGE, header, b"a")


def route(endpoints: str, credentials: SessionCredentials | None, topic: str) -> d.Status:
    """The status of a proxy's answer to a question for a route, asked over gRPC's own HTTP/2."""
    host, _, port = endpoints.rpartition(":")
    asked = v2.QueryRouteRequest(
        d.Resource(name=topic), d.Endpoints(d.AddressScheme.IPV4, (d.Address(host, int(port)),))
    )
    metadata = {"x-mq-client-id": "client-1"}
    if credentials is not None:
        metadata |= signed_metadata(credentials, 1_735_689_600_000)
    with grpc.insecure_channel(endpoints, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        call = channel.unary_unary(
            v2.QUERY_ROUTE.path,
            request_serializer=encode,
            response_deserializer=lambda data: decode(v2.QueryRouteResponse, data),
        )
        answer: v2.QueryRouteResponse = call(asked, timeout=20, metadata=list(metadata.items()))
    return answer.status


def test_users_of_a_file_do_what_its_rules_allow(
    servers: list[Server], connect: Connects, acl: str, tmp_path: Path
) -> None:
    report = tmp_path / "session.mqlab"
    server = start(servers, "--acl", acl, "--topic", "T", "--slaves", "1", "--record", str(report))
    program = connect(server.told["processes"]["broker-a"])
    assert ask(program, message("T"), ORDERS).code == 0
    assert ask(program, message("T"), None).remark == "username cannot be null."
    refused = ask(program, message("U"), ORDERS)
    assert (refused.code, refused.remark) == (
        16, "User:orders has no permission to access Topic:U from 127.0.0.1, no matched policies."
    )  # fmt: skip
    slave = connect(server.told["processes"]["slave-a"])
    assert ask(slave, RemotingCommand.request(RequestCode.GET_BROKER_CONFIG), ORDERS).code == 0
    assert route(server.told["endpoints"], ORDERS, "T") == d.Status(d.Code.OK, "OK")
    assert route(server.told["endpoints"], None, "T") == d.Status(d.Code.UNAUTHORIZED, "username cannot be null.")
    assert route(server.told["endpoints"], ORDERS, "U").code == d.Code.UNAUTHORIZED
    assert server.end() == 0
    result = replay(read_report(str(report)))
    assert result.agrees, result


def test_settings_are_those_of_rocketmq_and_users_stay_in_a_directory(
    servers: list[Server], connect: Connects, tmp_path: Path
) -> None:
    settings = (
        "--store", str(tmp_path / "store"), "--topic", "T", "--proxies", "0",
        "--set", "authenticationEnabled=true",
        "--set", "authorizationEnabled=true",
        "--set", 'initAuthenticationUser={"username":"admin","password":"12345678"}',
    )  # fmt: skip
    server = start(servers, *settings)
    program = connect(server.told["processes"]["broker-a"])
    made = RemotingCommand.request(
        RequestCode.AUTH_CREATE_USER, CreateUserRequestHeader("bob"), b'{"username":"bob","password":"x"}'
    )
    assert ask(program, made, ADMIN).code == 0
    assert ask(program, message("T"), ADMIN).code == 0
    assert ask(program, message("T"), ORDERS).remark == "User:orders is not found."
    server.end()
    assert (tmp_path / "store" / "store" / "config" / "users.json").exists()
    again = connect(start(servers, *settings).told["processes"]["broker-a"])
    listed = RemotingCommand.request(RequestCode.AUTH_LIST_USER, ListUsersRequestHeader())
    body = ask(again, listed, ADMIN).body
    assert body is not None
    assert [user["username"] for user in json.loads(body)] == ["admin", "bob"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "the users and rules cannot be read"),
        (said(users=[{**SAID["users"][0], "userStatus": "disable"}]), "there is no super user who is let in"),
        (said({"subject": "User:orders", "policies": [{"entries": []}]}), "The policies is empty."),
        (said({"policies": [{"entries": [ENTRY]}]}), "The subject is null."),
        *((text, f"say {word!r}, which means nothing there") for word, text in MISSPELT.items()),
        ('{"users": []}', "there is no super user"),
        ('{"users": [{"username": "a", "password": "", "userType": "Super"}]}', "names nobody"),
        ('{"users": [{"username": "a", "password": "b", "userType": "Super"}, {"username": "c"}]}', "password can not"),
        ('{"users": [{"username": "\\ud800", "password": "b", "userType": "Super"}]}', "a user's name is text, not"),
        (said({"subject": "User:x", "policies": [{"entries": [ENTRY]}]}), "is not exist"),
    ],
)
def test_a_file_that_says_nothing_useful_is_refused_with_what_to_do(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "acl.json").write_text(text, encoding="utf-8")
    with pytest.raises(LearnerError) as refused:
        serve.opened(["--port", "0", "--acl", str(tmp_path / "acl.json")])
    assert words in str(refused.value)
    assert "What to do" in str(refused.value)


def test_no_word_is_lost_where_all_is_right_however_it_is_written() -> None:
    entry = {"resource": "topic:T", "actions": ["PUB", "get"], "sourceIps": ["10.0.0.0/8"], "decision": "DENY"}
    policies = [{"policyType": "default", "entries": [entry, {**ENTRY, "sourceIps": None}]}]
    users = [*SAID["users"], {"username": "bob", "password": "x", "userType": "normal", "userStatus": "ENABLE"}]
    lab = get("served").build(
        7, parameters={"acl": said({"subject": "user:bob", "policies": policies}, users=users)}
    )
    acl = lab.brokers[0].running().auth.acl("User:bob")
    assert acl is not None
    assert acl.to_json() == {
        "subject": "User:bob",
        "policies": [{"policyType": "Default", "entries": [
            {"resource": "Topic:T", "actions": ["Pub", "Get"], "sourceIps": ["10.0.0.0/8"], "decision": "Deny"}, ENTRY,
        ]}],
    }  # fmt: skip


def test_the_example_of_the_hint_can_be_taken() -> None:
    lab = get("served").build(7, parameters={"brokers": 2, "acl": EXAMPLE})
    for broker in lab.brokers:
        auth = broker.running().auth
        assert [(user.username, user.is_super) for user in auth.users(None)] == [("admin", True), ("orders", False)]
        assert [acl.subject for acl in auth.acls(None, None)] == ["User:orders"]


def test_a_file_says_what_its_users_are_whatever_they_were(tmp_path: Path) -> None:
    """With --store the other users and rules of the directory stay as they are."""
    store = ["--store", str(tmp_path), "--proxies", "0", "--port", "0", "--acl", str(tmp_path / "acl.json")]
    for users in (
        [SAID["users"][0], {"username": "orders", "password": "old", "userType": "Super", "userStatus": "disable"},
         {"username": "bob", "password": "x", "userType": "Super"}],
        SAID["users"],
    ):  # fmt: skip
        (tmp_path / "acl.json").write_text(said(users=users), encoding="utf-8")
        lab, serving = serve.opened(store)
        serving.close()
        lab.brokers[0].node.disk.unlock()
    assert [user.to_json() for user in lab.brokers[0].running().auth.users(None)] == [
        {"username": name, "password": password, "userType": kind, "userStatus": "enable"}
        for name, password, kind in (
            ("admin", "12345678", "Super"), ("bob", "x", "Super"), ("orders", "secret", "Normal")
        )
    ]  # fmt: skip


def test_who_slaves_sign_as_is_a_super_user_who_is_let_in() -> None:
    users = [
        {"username": "off", "password": "x", "userType": "Super", "userStatus": "disable"},
        {"username": "on", "password": "y", "userType": "Super"},
    ]
    lab = get("served").build(7, parameters={"slaves": 1, "acl": said(users=users)})
    lab.run_for(seconds=70)
    kinds = {r.kind for r in lab.history.records() if r.node == "slave-a"}
    assert "SlaveSynchronized" in kinds
    assert "SlaveSynchronizeFailed" not in kinds


def test_a_file_that_is_not_there_is_said() -> None:
    with pytest.raises(LearnerError, match="cannot be read"):
        serve.main(["--port", "0", "--acl", "nowhere.json"])


def test_authorization_without_authentication_is_refused() -> None:
    with pytest.raises(LearnerError, match="authorization without authentication"):
        serve.main(["--port", "0", "--set", "authorizationEnabled=true"])
