"""The tables of users and rules, whatever is written into them by hand or from outside."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mqlab.auth.acl import is_ip_in_range
from mqlab.errors import LearnerError
from mqlab.lab import Lab
from mqlab.protocol.codes import RequestCode
from tests.auth.conftest import ALICE, SUPER, Program, guarded

ENTRY = {"resource": "Topic:T", "actions": ["Pub"], "decision": "Allow"}


def rules(**change: Any) -> dict[str, Any]:
    """The file of rules with one, which is changed."""
    policy = {"policyType": "Custom", "entries": [{**ENTRY, **change}]}
    return {"acls": {"User:alice": {"subject": "User:alice", "policies": [policy]}}}


def user(**change: Any) -> dict[str, Any]:
    """The file of users with one, who is changed."""
    members = {"username": "bob", "password": "x", "userType": "Normal", "userStatus": "enable", **change}
    return {"users": {"bob": members}}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("acls", rules(resource="Tpic:T")),
        ("acls", rules(sourceIps=["10.0.0.0/99"])),
        ("acls", rules(sourceIps=["localhost"])),
        ("acls", rules(decision="Yes")),
        ("acls", rules(actions=["Publish"])),
        ("acls", {"acls": {"User:alice": 7}}),
        ("acls", {"acls": {"User:alice": {"subject": "User:alice", "policies": []}}}),
        ("acls", {"acls": {"User:alice": {**rules()["acls"]["User:alice"], "subject": "King:alice"}}}),
        ("users", {"users": 7}),
        ("users", {"users": {"bob": 7}}),
        ("users", user(userStatus="disabled")),
        ("users", user(userType="Admin")),
        ("users", user(username=" ")),
        ("users", user(password="")),
    ],
)
def test_a_table_that_says_what_cannot_be_stops_the_start(name: str, content: dict[str, Any]) -> None:
    lab = guarded()
    lab.crash("broker-a")
    for file in (f"{name}.json", f"{name}.json.bak"):
        lab.brokers[0].node.disk.write_bytes(f"store/config/{file}", json.dumps(content).encode(), flush=True)
    lab.restart("broker-a")
    with pytest.raises(LearnerError, match=rf"cannot read store/config/{name}\.json"):
        lab.run_for(seconds=1)


def test_a_rule_that_cannot_be_is_taken_from_the_copy_beside_its_table() -> None:
    lab = guarded()
    lab.crash("broker-a")
    disk = lab.brokers[0].node.disk
    disk.write_bytes("store/config/acls.json", json.dumps(rules(decision="Yes")).encode(), flush=True)
    disk.write_bytes("store/config/acls.json.bak", json.dumps(rules()).encode(), flush=True)
    lab.restart("broker-a")
    lab.run_for(seconds=1)
    acl = lab.brokers[0].running().auth.acl("User:alice")
    assert acl is not None
    assert acl.policies[0].entries[0].to_json() == ENTRY


@pytest.mark.parametrize("cidr", ["10.0.0.0/99", "here/8", "10.0.0.0/8/8"])
@pytest.mark.parametrize("ip", ["10.0.0.7", "localhost"])
def test_what_is_no_address_is_in_no_range(ip: str, cidr: str) -> None:
    assert not is_ip_in_range(ip, cidr)
    assert not is_ip_in_range("localhost", "10.0.0.0/8")


HALF = "\ud800"
"""Half of a surrogate pair, which JSON can say and UTF-8 cannot."""


def test_half_a_letter_as_a_name_spoils_no_table() -> None:
    lab = Lab(7)
    lab.name_server()
    lab.broker()
    program = Program(lab)
    for name in (HALF, "bob", f"{HALF}\udfff\ud801"):
        body = json.dumps({"username": name, "password": HALF}).encode()
        assert program.ask(RequestCode.AUTH_CREATE_USER, {"username": name}, body).code == 0
        acl = json.dumps({"policies": [{"entries": [ENTRY]}]}).encode()
        assert program.ask(RequestCode.AUTH_CREATE_ACL, {"subject": f"User:{name}"}, acl).code == 0
    for code in (RequestCode.AUTH_LIST_USER, RequestCode.AUTH_LIST_ACL):
        body_of_answer = program.ask(code, {}).body
        assert body_of_answer is not None
        assert len(json.loads(body_of_answer)) == 3
    lab.crash("broker-a")
    lab.restart("broker-a")
    lab.run_for(seconds=5)
    assert [user.username for user in lab.brokers[0].running().auth.users("bob")] == ["bob"]


def test_half_a_letter_signs_nothing() -> None:
    lab = guarded()
    program = Program(lab)
    fields = {"topic": "T", "queueId": "0"}
    for change, remark in (
        ({"Signature": HALF}, "check signature failed."),
        ({"AccessKey": HALF}, f"User:{HALF} is not found."),
    ):
        answer = program.ask(RequestCode.GET_MAX_OFFSET, fields, credentials=ALICE, change=change)
        assert (answer.code, answer.remark) == (16, remark)
    assert program.ask(RequestCode.GET_MAX_OFFSET, fields, credentials=SUPER).code == 0
