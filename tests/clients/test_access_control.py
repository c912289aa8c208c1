"""Unmodified clients that sign, Java's of 5.3 and Python's of 5.x, with a served world that asks for signatures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlab.lab import Lab
from mqlab.scenarios import get
from mqlab.serving import Serving

from .conftest import Starts, Use, compiled, java

ENTRIES = [
    {"resource": "Topic:T", "actions": ["Pub", "Sub", "Get"], "decision": "Allow"},
    {"resource": "Group:*", "actions": ["Sub", "Get"], "decision": "Allow"},
]
ACL = json.dumps({
    "users": [
        {"username": "admin", "password": "12345678", "userType": "Super"},
        {"username": "orders", "password": "secret"},
    ],
    "acls": [{"subject": "User:orders", "policies": [{"entries": ENTRIES}]}],
})  # fmt: skip


@pytest.fixture
def lab() -> Lab:
    return get("served").build(7, parameters={"proxies": 1, "topics": "T;U", "acl": ACL})


@pytest.fixture
def serving(lab: Lab) -> Iterator[Serving]:
    with lab.serve() as serving:
        yield serving


@pytest.fixture
def signs(tmp_path: Path, serving: Serving, uses: Starts) -> Use:
    """The Java program, compiled with the client of 5.3.3, whose jar has the classes that sign."""
    return uses(*java(tmp_path, compiled("5.3.3", "Signs.java", tmp_path), "Signs", serving.name_server))


def stored(lab: Lab) -> list[str]:
    """The topics of the messages that were stored."""
    return [r.topic for r in lab.history.records() if r.kind == "MessageStored" and r.topic in ("T", "U")]


def test_the_java_client_signs_what_its_rules_allow(signs: Use, lab: Lab) -> None:
    signs.until("signed SEND_OK", "elsewhere 16", "wrong 16", "unsigned 16", "got signed", "done")
    assert stored(lab) == ["T"]
    assert {r.reason for r in lab.history.records() if r.kind == "RequestRefused"} == {
        "User:orders has no permission to access Topic:U from 127.0.0.1, no matched policies.",
        "check signature failed.",
        "username cannot be null.",
    }


@pytest.mark.parametrize("language", ["python"])
def test_the_python_client_signs_what_its_rules_allow(start_v5: Starts, serving: Serving, lab: Lab) -> None:
    use = start_v5("sign", serving.endpoints)
    no_route = ("elsewhere failed to fetch topic:U route.", "wrong failed to fetch topic:T route.")
    use.until("signed True", "received signed", *no_route, "done")
    assert stored(lab) == ["T"]
    refused = [(r.status, r.reason) for r in lab.history.records() if r.kind == "RpcRefused"]
    assert ("UNAUTHORIZED", "check signature failed.") in refused
