"""Unmodified clients that sign, Java's of 5.3 and Python's of 5.x, with a served world that asks for signatures."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlab.lab import Lab
from mqlab.scenarios import get
from mqlab.serving import Serving

from .conftest import JARS, Starts, Use

SOURCE = Path(__file__).with_name("Signs.java")
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
def java(tmp_path: Path, serving: Serving) -> Iterator[Use]:
    """The Java program, compiled with the client of 5.3.3, whose jar has the classes that sign."""
    jars = f"{JARS.absolute() / '5.3.3'}/*"
    subprocess.run(["javac", "-nowarn", "-d", str(tmp_path), "-cp", jars, str(SOURCE)], check=True)
    use = Use("java", "-Xmx200m", "-cp", f"{tmp_path}:{jars}", "Signs", serving.name_server)
    yield use
    use.end()


def stored(lab: Lab) -> list[str]:
    """The topics of the messages that were stored."""
    return [r.topic for r in lab.history.records() if r.kind == "MessageStored" and r.topic in ("T", "U")]


def test_the_java_client_signs_what_its_rules_allow(java: Use, lab: Lab) -> None:
    java.until("signed SEND_OK", "elsewhere 16", "wrong 16", "unsigned 16", "got signed", "done")
    assert stored(lab) == ["T"]
    assert {r.reason for r in lab.history.records() if r.kind == "RequestRefused"} == {
        "User:orders has no permission to access Topic:U from 127.0.0.1, no matched policies.",
        "check signature failed.",
        "username cannot be null.",
    }


def test_the_python_client_signs_what_its_rules_allow(start_python: Starts, serving: Serving, lab: Lab) -> None:
    use = start_python("sign", serving.endpoints)
    no_route = ("elsewhere failed to fetch topic:U route.", "wrong failed to fetch topic:T route.")
    use.until("signed True", "received signed", *no_route, "done")
    assert stored(lab) == ["T"]
    refused = [(r.status, r.reason) for r in lab.history.records() if r.kind == "RpcRefused"]
    assert ("UNAUTHORIZED", "check signature failed.") in refused
