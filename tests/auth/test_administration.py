"""What administrators ask about users and rules, over the wire and from a cell."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mqlab.auth import Acl, AuthorizationException, SessionCredentials
from mqlab.auth.acl import Policy, PolicyEntry
from mqlab.protocol.codes import RequestCode
from tests.auth.conftest import AUTH, SUPER, Program, guarded

SERVING = Path(__file__).parents[2] / "docs" / "serving.md"
MAX_OFFSET = {"topic": "T", "queueId": "0"}


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
