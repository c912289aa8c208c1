"""What administrators ask about users and rules, over the wire and from a cell."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mqlab.auth import Acl, AuthorizationException, SessionCredentials
from mqlab.auth.acl import Policy, PolicyEntry
from mqlab.lab import Lab
from mqlab.protocol.codes import RequestCode
from mqlab.scenarios import get
from tests.auth.conftest import AUTH, SUPER, Program, guarded

RULE = {"resource": "Topic:T", "actions": ["Get"], "decision": "Allow"}
SERVING = Path(__file__).parents[2] / "docs" / "serving.md"
MAX_OFFSET = {"topic": "T", "queueId": "0"}


class Administrator:
    """Asks as mqadmin does: the same headers, and bodies with what was typed."""

    def __init__(self, lab: Lab) -> None:
        self._program = Program(lab)

    def ask(self, command: RequestCode, header: Mapping[str, str], body: Any = None, *, broker: int = 0) -> Any:
        """What the answer says, whose code is 0: its body, None without one."""
        data = None if body is None else json.dumps(body).encode()
        answer = self._program.ask(command, header, data, SUPER, broker=broker)
        assert answer.code == 0, answer.remark
        return None if answer.body is None else json.loads(answer.body)

    def asks_of_rules(self, command: RequestCode, resources: list[str], actions: list[str], decision: str) -> None:
        """createAcl or updateAcl for bob (-s User:bob -r ... -a ... -d ...)."""
        entries = [{"resource": one, "actions": actions, "decision": decision} for one in resources]
        body = {"subject": "User:bob", "policies": [{"entries": entries}]}
        self.ask(command, {"subject": "User:bob"}, body)


def test_the_commands_of_mqadmin_for_users() -> None:
    lab = guarded()
    lab.broker(**AUTH)
    admin = Administrator(lab)
    typed = {"username": "bob", "password": "x", "userType": "Normal"}
    admin.ask(RequestCode.AUTH_CREATE_USER, {"username": "bob"}, typed)
    bob = admin.ask(RequestCode.AUTH_GET_USER, {"username": "bob"})
    assert bob == {**typed, "userStatus": "enable"}
    admin.ask(RequestCode.AUTH_UPDATE_USER, {"username": "bob"}, {"username": "bob", "userStatus": "disable"})
    assert admin.ask(RequestCode.AUTH_LIST_USER, {"filter": "bo"}) == [{**bob, "userStatus": "disable"}]
    # copyUser
    assert admin.ask(RequestCode.AUTH_GET_USER, {"username": "bob"}, broker=1) is None
    for command in (RequestCode.AUTH_CREATE_USER, RequestCode.AUTH_UPDATE_USER):
        admin.ask(command, {"username": "bob"}, bob, broker=1)
    assert admin.ask(RequestCode.AUTH_GET_USER, {"username": "bob"}, broker=1) == bob
    admin.ask(RequestCode.AUTH_DELETE_USER, {"username": "bob"})
    assert admin.ask(RequestCode.AUTH_LIST_USER, {"filter": "bob"}) is None


def test_the_commands_of_mqadmin_for_rules() -> None:
    lab = guarded()
    lab.broker(**AUTH)
    lab.create_user("bob", "x")
    admin = Administrator(lab)
    admin.asks_of_rules(RequestCode.AUTH_CREATE_ACL, ["Topic:T", "Group:*"], ["Get"], "Allow")
    admin.asks_of_rules(RequestCode.AUTH_UPDATE_ACL, ["Group:*"], ["Sub", "Get"], "Deny")
    denied = {"resource": "Group:*", "actions": ["Sub", "Get"], "decision": "Deny"}
    acl = {"subject": "User:bob", "policies": [{"policyType": "Custom", "entries": [RULE, denied]}]}
    assert admin.ask(RequestCode.AUTH_GET_ACL, {"subject": "User:bob"}) == acl
    of_topics = {"subject": "User:bob", "policies": [{"policyType": "Custom", "entries": [RULE]}]}
    listed = admin.ask(RequestCode.AUTH_LIST_ACL, {"subjectFilter": "bob", "resourceFilter": "Topic"})
    assert listed == [of_topics]
    # copyAcl
    assert admin.ask(RequestCode.AUTH_GET_ACL, {"subject": "User:bob"}, broker=1) is None
    for command in (RequestCode.AUTH_CREATE_ACL, RequestCode.AUTH_UPDATE_ACL):
        admin.ask(command, {"subject": "User:bob"}, acl, broker=1)
    assert admin.ask(RequestCode.AUTH_GET_ACL, {"subject": "User:bob"}, broker=1) == acl
    admin.ask(RequestCode.AUTH_DELETE_ACL, {"subject": "User:bob", "resource": "Group:*"})
    assert admin.ask(RequestCode.AUTH_GET_ACL, {"subject": "User:bob"}) == of_topics
    admin.ask(RequestCode.AUTH_DELETE_ACL, {"subject": "User:bob"})
    assert admin.ask(RequestCode.AUTH_GET_ACL, {"subject": "User:bob"}) is None


def test_to_delete_a_rule_with_a_misspelt_resource_deletes_all_of_the_subject() -> None:
    """As in RocketMQ 5.3.3, which takes what it does not understand for nothing said."""
    lab = guarded()
    admin = Administrator(lab)
    admin.ask(RequestCode.AUTH_DELETE_ACL, {"subject": "User:alice", "resource": "Topic:Another"})
    assert admin.ask(RequestCode.AUTH_GET_ACL, {"subject": "User:alice"}) is not None
    admin.ask(RequestCode.AUTH_DELETE_ACL, {"subject": "User:alice", "resource": "Tpic:T"})
    assert admin.ask(RequestCode.AUTH_GET_ACL, {"subject": "User:alice"}) is None


def test_a_file_says_who_is_let_in_and_from_where() -> None:
    users = [
        {"username": "rocketmq", "password": "12345678", "userType": "Super"},
        {"username": "bob", "password": "x"},
        {"username": "off", "password": "x", "userStatus": "disable"},
    ]
    entries = [
        {"resource": "Topic:T", "actions": ["Get"], "sourceIps": ["127.0.0.0/8"], "decision": "Allow"},
        {"resource": "Topic:U", "actions": ["Get"], "sourceIps": ["10.0.0.0/8"], "decision": "Allow"},
        {"resource": "Topic:V", "actions": ["Get"], "decision": "Deny"},
        {"resource": "Topic:*", "actions": ["List"], "decision": "Allow"},
    ]
    text = json.dumps({"users": users, "acls": [{"subject": "User:bob", "policies": [{"entries": entries}]}]})
    lab = get("served").build(7, parameters={"topics": "T;U;V", "acl": text})
    program = Program(lab)
    no_right = "User:bob has no permission to access Topic:{} from 127.0.0.1, {}."
    for user, topic, code, remark in (
        ("bob", "T", 0, None),
        ("bob", "U", 16, no_right.format("U", "no matched policies")),
        ("bob", "V", 16, no_right.format("V", "the decision is deny")),
        ("off", "T", 16, "User:off is disabled."),
    ):
        asked = {"topic": topic, "queueId": "0"}
        answer = program.ask(RequestCode.GET_MAX_OFFSET, asked, credentials=SessionCredentials(user, "x"))
        assert (answer.code, answer.remark) == (code, remark)


@pytest.mark.parametrize("subject", ["User:bob", "user:bob", "USER:bob"])
def test_a_subject_is_found_however_it_is_written(subject: str) -> None:
    lab = guarded()
    program = Program(lab)
    bob = SessionCredentials("bob", "x")
    lab.create_user("bob", "x")
    lab.create_acl(subject, ["Topic:T"], ["Get"])
    assert program.ask(RequestCode.GET_MAX_OFFSET, MAX_OFFSET, credentials=bob).code == 0
    body = json.dumps({"subject": subject, "policies": [{"entries": [
        {"resource": "Topic:T", "actions": ["Get"], "decision": "Deny"}
    ]}]}).encode()  # fmt: skip
    assert program.ask(RequestCode.AUTH_UPDATE_ACL, {"subject": subject}, body, SUPER).code == 0
    refused = program.ask(RequestCode.GET_MAX_OFFSET, MAX_OFFSET, credentials=bob)
    assert refused.remark == "User:bob has no permission to access Topic:T from 127.0.0.1, the decision is deny."
    assert program.ask(RequestCode.AUTH_GET_ACL, {"subject": subject}, credentials=SUPER).body == (
        b'{"policies":[{"entries":[{"actions":["Get"],"decision":"Deny","resource":"Topic:T"}],"policyType":"Custom"}],'
        b'"subject":"User:bob"}'
    )
    assert program.ask(RequestCode.AUTH_DELETE_ACL, {"subject": subject}, credentials=SUPER).code == 0
    assert lab.brokers[0].running().auth.acl("User:bob") is None


def test_the_cell_of_the_documentation_runs() -> None:
    text = SERVING.read_text(encoding="utf-8")
    (cell,) = re.findall(r"^In a cell:\n\n```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    exec(cell, names)
    stored = [r for r in names["lab"].history.records() if r.kind == "MessageStored" and r.topic == "Orders"]
    assert len(stored) == 1


def test_policies_without_rules_are_none() -> None:
    lab = guarded()
    auth = lab.brokers[0].running().auth
    before = auth.acls("alice", None)
    auth.update_acl(Acl("User:alice", [Policy("Default"), *before[0].policies]))
    assert auth.acls("alice", None) == before
    assert auth.acl("User:alice") == before[0]
    with pytest.raises(AuthorizationException, match="The policies is empty"):
        auth.update_acl(Acl("User:alice", [Policy("Default")]))


def test_what_a_caller_does_with_rules_later_changes_no_broker() -> None:
    lab = guarded()
    second = lab.broker(**AUTH)
    lab.create_user("bob", "x")
    entry = PolicyEntry("Topic:T", ["Get"], None, "Allow")
    acl = Acl("User:bob", [Policy(entries=[entry])])
    for broker in lab.brokers:
        broker.running().auth.update_acl(acl)
    lab.brokers[0].create_acl("User:bob", ["Topic:T"], ["Get"], "Deny", None)
    entry.actions.append("Pub")
    (kept,) = second.running().auth.acls("bob", None)
    (rule,) = kept.policies[0].entries
    assert (rule.actions, rule.decision) == (["Get"], "Allow")
