"""Worlds that ask for signatures: who may, does; who may not, changes nothing and disturbs nobody."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from mqlab import Lab, Message
from mqlab.auth import AuthConfig, SessionCredentials
from mqlab.auth.session_credentials import signed_metadata
from mqlab.client import CONSUME_SUCCESS, RECONSUME_LATER
from mqlab.client.v5 import ConsumeResult, FilterExpression, MessageView
from mqlab.client.v5 import Message as Message5
from mqlab.client.v5.errors import ClientException
from mqlab.errors import LearnerError, MQBrokerException, MQClientException
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.v2 import definition as d
from mqlab.protocol.v2 import service as v2
from mqlab.rpc import RpcClient
from tests.auth.conftest import ALICE, AUTH, SUPER, Program, guarded, played
from tests.worlds import noting, send, started_consumer, started_producer

MAX_OFFSET = {"topic": "T", "queueId": "0"}


def stored(lab: Lab, topic: str) -> list[str]:
    """The broker that stored each message of a topic."""
    return [r.node for r in lab.history.records() if r.kind == "MessageStored" and r.topic == topic]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("wire", ["objects", "bytes"])
def test_who_has_no_rights_loses_nothing_and_disturbs_nobody(seed: int, wire: str) -> None:
    lab = guarded(seed=seed, wire=wire)
    lab.create_user("mallory", "x")
    mallory = SessionCredentials("mallory", "x")
    got: list[bytes] = []
    stolen: list[bytes] = []
    started_consumer(lab, noting(got), group="g", credentials=ALICE)
    started_consumer(lab, noting(stolen), group="g", credentials=mallory)
    good, bad = started_producer(lab, "p1", credentials=ALICE), started_producer(lab, "p2", credentials=mallory)
    for number in range(5):
        send(good, f"good-{number}")
        with pytest.raises(MQClientException, match="User:mallory has no permission to access Topic:T from 10"):
            send(bad, f"bad-{number}")
        lab.run_for(seconds=20)
    assert got == [b"good-%d" % number for number in range(5)]
    assert stolen == []
    assert len(stored(lab, "T")) == 5
    members = lab.brokers[0].running().consumer_manager.get_consumer_group_info("g")
    assert members is not None
    assert len(members.channel_info_table) == 1


def test_the_same_world_has_the_same_trace_on_both_wires() -> None:
    hashes = set()
    for wire in ("objects", "bytes"):
        lab = guarded(wire=wire)
        send(started_producer(lab, credentials=ALICE), "a", "b")
        hashes.add(lab.trace_hash())
    assert len(hashes) == 1


def test_every_kind_of_classic_client_signs() -> None:
    """So does the producer that sends what is noted of its messages."""
    lab = guarded()
    lab.create_topic("Trace", 1)
    lab.create_acl("User:alice", ["Topic:Trace"], ["Pub"])
    traced: dict[str, Any] = {"credentials": ALICE, "enable_trace": True, "trace_topic": "Trace"}
    send(started_producer(lab, **traced), "a")
    got: list[Any] = []
    transactions = lab.transaction_producer("tp", **traced)
    lab.run(transactions.start())
    assert lab.run(transactions.send(Message("T", "b"))).send_status.name == "SEND_OK"
    started_consumer(lab, noting(got), group="g1", **traced)
    pull = lab.pull_consumer("g2", credentials=ALICE)
    lab.run(pull.start())
    lite = lab.lite_pull_consumer("g3", credentials=ALICE)
    lite.subscribe("T", "*")
    lab.run(lite.start())
    lab.run_for(seconds=30)
    assert sorted(got) == [b"a", b"b"]
    assert not [r for r in lab.history.records() if r.kind in ("ProcessorFailed", "RequestRefused", "TraceLost")]
    assert len(stored(lab, "Trace")) == len([r for r in lab.history.records() if r.kind == "TraceSent"]) > 2


def test_a_message_that_failed_comes_again_with_the_right_to_the_group_alone() -> None:
    lab = guarded()
    tries: list[int] = []

    def listener(messages: Any, context: Any) -> Any:
        tries.append(messages[0].reconsume_times)
        return RECONSUME_LATER if len(tries) < 2 else CONSUME_SUCCESS

    started_consumer(lab, listener, group="g", credentials=ALICE)
    send(started_producer(lab, credentials=ALICE), "a")
    lab.run_for(seconds=40)
    assert tries == [0, 1]


def test_a_consumer_needs_get_beside_sub_to_learn_where_a_queue_ends() -> None:
    """As in RocketMQ 5.3.3: GET_MAX_OFFSET needs Get."""
    lab = guarded(rights=("Pub", "Sub"))
    got: list[bytes] = []
    started_consumer(lab, noting(got), group="g", credentials=ALICE)
    lab.run_for(seconds=30)
    refused = [r for r in lab.history.records() if r.kind == "RequestRefused"]
    assert {r.request_code for r in refused} == {RequestCode.GET_MAX_OFFSET}
    lab.create_acl("User:alice", ["Topic:T"], ["Pub", "Sub", "Get"])
    lab.run_for(seconds=30)
    send(started_producer(lab, credentials=ALICE), "a")
    lab.run_for(seconds=5)
    assert got == [b"a"]


def noted_of_5_x(got: list[bytes | None]) -> Any:
    """A listener that notes the body of each message."""

    def listener(message: MessageView) -> ConsumeResult:
        got.append(message.body)
        return ConsumeResult.SUCCESS

    return listener


def test_clients_of_5_x_sign_each_call() -> None:
    lab = guarded()
    lab.proxy(**AUTH)
    producer = lab.producer_v5(credentials=ALICE)
    lab.run(producer.start())
    lab.run(producer.send(Message5("T", b"a")))
    consumer = lab.simple_consumer("g", credentials=ALICE)
    consumer.subscribe("T", FilterExpression("*"))
    lab.run(consumer.start())
    (message,) = lab.run(consumer.receive(1, 30_000))
    lab.run(consumer.ack(message))
    assert message.body == b"a"
    got: list[bytes | None] = []
    push = lab.push_consumer_v5("g2", credentials=ALICE)
    push.subscribe("T", FilterExpression("*"))
    push.set_message_listener(noted_of_5_x(got))
    lab.run(push.start())
    lab.run_for(seconds=30)
    assert got == [b"a"]
    assert not [r for r in lab.history.records() if r.kind in ("RpcRefused", "RequestRefused")]
    with pytest.raises(ClientException, match=r"\[UNAUTHORIZED\] User:alice has no permission to access Topic:U"):
        lab.run(producer.send(Message5("U", b"a")))
    wrong = lab.producer_v5(credentials=SessionCredentials("alice", "wrong"))
    lab.run(wrong.start())
    with pytest.raises(ClientException, match=r"\[UNAUTHORIZED\] check signature failed"):
        lab.run(wrong.send(Message5("T", b"b")))
    unsigned = lab.producer_v5()
    lab.run(unsigned.start())
    with pytest.raises(ClientException, match=r"\[UNAUTHORIZED\] username cannot be null"):
        lab.run(unsigned.send(Message5("T", b"b")))
    assert len(stored(lab, "T")) == 1


def test_nobody_becomes_somebody_else_by_a_header() -> None:
    lab = guarded()
    proxy = lab.proxy(**AUTH)
    node = lab.node("program")
    metadata = {**signed_metadata(ALICE, 1_735_689_600_000), "x-mq-client-id": "c", "x-mq-authorization-ak": "rocketmq"}
    asked = v2.QueryRouteRequest(d.Resource(name="U"), d.Endpoints(d.AddressScheme.IPV4, (d.Address("h", 1),)))
    call = RpcClient(node, metadata).unary(proxy.address, v2.QUERY_ROUTE, asked, 5_000)
    status = played(lab, node, call).status
    assert status.code == d.Code.UNAUTHORIZED
    assert status.message.startswith("User:alice has no permission to access Topic:U from ")


def test_a_proxy_hears_of_a_new_rule_from_the_second_call_after_20_s() -> None:
    lab = guarded()
    lab.proxy(**AUTH)
    producer = lab.producer_v5(credentials=ALICE)
    lab.run(producer.start())
    lab.run(producer.send(Message5("T", b"a")))
    lab.create_acl("User:alice", ["Topic:T"], ["Pub"], decision="Deny")
    lab.run(producer.send(Message5("T", b"b")))
    lab.run_for(seconds=21)
    lab.run(producer.send(Message5("T", b"c")))
    lab.run_for(ms=100)
    with pytest.raises(ClientException, match="the decision is deny"):
        lab.run(producer.send(Message5("T", b"d")))


def test_a_proxy_without_an_answer_of_its_broker_lets_nobody_in() -> None:
    lab = guarded()
    lab.proxy(**AUTH)
    lab.freeze("broker-a")
    producer = lab.producer_v5(credentials=ALICE, request_timeout=10_000)
    lab.run(producer.start())
    with pytest.raises(ClientException, match=r"Authentication failed\. Please verify the credentials and try again"):
        lab.run(producer.send(Message5("T", b"a")))


def test_a_slave_signs_what_it_asks_of_its_master_and_has_users_of_its_own() -> None:
    lab = guarded()
    slave = lab.broker(slave_of="broker-a")
    lab.run_for(seconds=70)
    kinds = {r.kind for r in lab.history.records() if r.node == slave.name}
    assert "SlaveSynchronized" in kinds
    assert "SlaveSynchronizeFailed" not in kinds
    assert slave.running().auth.user("alice") is None
    assert {user.username for user in slave.running().auth.users(None)} == {"inner", "rocketmq"}


def test_users_and_rules_are_there_again_after_a_crash() -> None:
    lab = guarded()
    lab.create_user("bob", "pw", "Super")
    lab.crash("broker-a")
    lab.restart("broker-a")
    lab.run_for(seconds=5)
    program = Program(lab)
    assert program.ask(RequestCode.GET_MAX_OFFSET, MAX_OFFSET, credentials=ALICE).code == 0
    assert program.ask(RequestCode.GET_MAX_OFFSET, {"topic": "U", "queueId": "0"}, credentials=ALICE).code == 16
    assert program.ask(RequestCode.AUTH_LIST_USER, {"filter": "bob"}, credentials=SUPER).body == (
        b'[{"password":"pw","userStatus":"enable","userType":"Super","username":"bob"}]'
    )


def test_a_deleted_user_loses_the_rules() -> None:
    lab = guarded()
    program = Program(lab)
    assert program.ask(RequestCode.AUTH_DELETE_USER, {"username": "alice"}, credentials=SUPER).code == 0
    assert program.ask(RequestCode.AUTH_LIST_ACL, {}, credentials=SUPER).body is None
    refused = program.ask(RequestCode.GET_MAX_OFFSET, MAX_OFFSET, credentials=ALICE)
    assert (refused.code, refused.remark) == (16, "User:alice is not found.")


def test_a_white_list_lets_requests_in() -> None:
    lab = Lab(7)
    lab.name_server()
    lab.broker(**AUTH, authentication_whitelist="30, 31", authorization_whitelist="30")
    lab.create_topic("T", 1)
    program = Program(lab)
    assert program.ask(RequestCode.GET_MAX_OFFSET, MAX_OFFSET).code == 0
    refused = program.ask(RequestCode.GET_MIN_OFFSET, MAX_OFFSET)
    assert (refused.code, refused.remark) == (
        16, "Authorization failed. Please verify your access rights and try again."
    )  # fmt: skip
    assert program.ask(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, MAX_OFFSET).remark == "username cannot be null."


def test_a_rule_counts_from_its_addresses_alone() -> None:
    lab = guarded()
    lab.create_acl("User:alice", ["Topic:T"], ["Get"], source_ips=["10.0.0.0/8", "127.0.0.2"])
    refused = Program(lab).ask(RequestCode.GET_MAX_OFFSET, MAX_OFFSET, credentials=ALICE)
    assert refused.remark == "User:alice has no permission to access Topic:T from 127.0.0.1, no matched policies."


def test_users_can_be_made_before_signatures_are_asked_for() -> None:
    lab = Lab(7)
    lab.name_server()
    broker = lab.broker()
    lab.create_topic("T", 1)
    lab.create_user("root", "x", "Super")
    assert Program(lab).ask(RequestCode.GET_MAX_OFFSET, MAX_OFFSET).code == 0
    broker.change_settings(authentication_enabled=True)
    lab.crash("broker-a")
    lab.restart("broker-a")
    lab.run_for(seconds=5)
    producer = started_producer(lab)
    with pytest.raises(MQClientException, match="username cannot be null"):
        send(producer, "a")
    send(started_producer(lab, "p2", credentials=SessionCredentials("root", "x")), "b")


def test_an_unsigned_one_way_request_is_dropped_without_an_answer() -> None:
    lab = guarded()
    producer = started_producer(lab)
    lab.run(producer.send_oneway(Message("T", "a")))
    lab.run_for(seconds=1)
    assert stored(lab, "T") == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"authorization_enabled": True}, "authorization without authentication lets nobody in"),
        ({"authentication_enabled": True}, "has no users, so nobody could ever come in"),
        ({**AUTH, "init_authentication_user": "rocketmq"}, "init_authentication_user names nobody"),
        ({**AUTH, "init_authentication_user": '{"username":"a","password":""}'}, 'write it as JSON: {"username":"...'),
        ({**AUTH, "inner_client_authentication_credentials": "[]"}, "inner_client_authentication_credentials names"),
        ({**AUTH, "authentication_strategy": "x.StatefulAuthenticationStrategy"}, "is not here"),
        ({"authentication_enable": True}, "did you mean authentication_enabled"),
    ],
)
def test_half_of_a_configuration_is_refused_with_what_to_do(settings: dict[str, Any], words: str) -> None:
    lab = Lab(7)
    lab.name_server()
    with pytest.raises(LearnerError) as refused:
        lab.broker(**settings)
    assert words in str(refused.value)
    assert "What to do" in str(refused.value)
    assert lab.brokers == []
    assert lab.broker(**AUTH).name == "broker-a"


def test_slaves_and_proxies_without_credentials_are_refused() -> None:
    lab = Lab(7)
    lab.name_server()
    lab.broker(**{**AUTH, "inner_client_authentication_credentials": ""})
    with pytest.raises(LearnerError, match="the slave slave-a has nothing to sign with"):
        lab.broker(slave_of="broker-a")
    with pytest.raises(LearnerError, match="the proxy proxy-1 has nothing to sign with"):
        lab.proxy(authentication_enabled=True)
    with pytest.raises(LearnerError, match="proxy-1 has nothing to sign with"):
        lab.proxy()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda lab: lab.create_acl("User:bob", ["Topic:T"], ["Pub"]), "The subject of User:bob is not exist."),
        (lambda lab: lab.create_acl("alice", ["Topic:T"], ["Pub"]), "The subject is null."),
        (lambda lab: lab.create_acl("User:alice", ["Tpic:T"], ["Pub"]), "The resource is null."),
        (lambda lab: lab.create_acl("User:alice", ["Topic:T"], ["Publish"]), "'Publish' is no action"),
        (lambda lab: lab.create_acl("User:alice", ["Topic:T"], ["Pub"], decision="Yes"), "The decision is null"),
        (lambda lab: lab.create_acl("User:alice", ["Topic:T"], ["Pub"], source_ips=["here"]), "source ip is invalid"),
        (lambda lab: lab.create_acl("User:alice", ["Topic:T"], []), "The actions is empty."),
        (lambda lab: lab.create_user("bob", ""), "password can not be blank"),
        (lambda lab: lab.create_user("bob", "x", "King"), "'King' is no type of users"),
        (lambda lab: lab.create_user("bob", "x", 7), "7 is no type of users"),
        (lambda lab: lab.create_user(5, "x"), "a user's name is text, not 5"),
        (lambda lab: lab.create_user("b\ud800", "x"), "a user's name is text, not 'b\\ud800'"),
        (lambda lab: lab.create_user("bob", None), "the password of 'bob' is no text"),
        (lambda lab: lab.producer("p", credentials=("alice", "secret")), "a tuple is no credentials"),
        (lambda lab: SessionCredentials("alice", ""), "secret_key='' signs nothing"),
    ],
)
def test_a_user_or_a_rule_that_cannot_be_is_refused_with_what_to_do(call: Any, words: str) -> None:
    lab = guarded()
    with pytest.raises(LearnerError) as refused:
        call(lab)
    assert words in str(refused.value)
    assert "What to do" in str(refused.value)


def test_a_damaged_table_of_users_stops_the_start() -> None:
    lab = guarded()
    lab.crash("broker-a")
    for name in ("users.json", "users.json.bak"):
        lab.brokers[0].node.disk.write_bytes(f"store/config/{name}", b'{"users": 7}', flush=True)
    lab.restart("broker-a")
    with pytest.raises(LearnerError, match=r"cannot read store/config/users\.json"):
        lab.run_for(seconds=1)


def test_the_password_stands_in_no_text_of_the_objects() -> None:
    lab = guarded()
    assert "secret" not in repr(ALICE)
    assert "secret" not in repr(lab.brokers[0].running().auth.user("alice"))
    config = repr(lab.brokers[0].running().auth.config)
    assert "authentication_enabled=True" in config
    assert "12345678" not in config
    assert "xyz" not in config
    with pytest.raises(LearnerError, match="inner_client_authentication_credentials names nobody") as refused:
        AuthConfig(True, inner_client_authentication_credentials='{"secretKey":"xyz"}')
    assert "xyz" not in str(refused.value)


def test_a_world_that_asks_for_nothing_imports_none_of_it() -> None:
    code = (
        "import sys; from mqlab import Lab, Message\n"
        "lab = Lab(1); lab.name_server(); lab.broker(); lab.proxy(); lab.create_topic('T')\n"
        "p = lab.producer('p'); lab.run(p.start()); lab.run(p.send(Message('T', 'a')))\n"
        "print([n for n in sys.modules if n.startswith(('mqlab.auth', 'mqlab.broker.auth', 'mqlab.proxy.auth'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_refusal_is_an_error_with_code_16() -> None:
    lab = guarded()
    consumer = lab.pull_consumer("g", credentials=ALICE)
    lab.run(consumer.start())
    queue = lab.run(consumer.fetch_subscribe_message_queues("U"))[0]
    with pytest.raises(MQBrokerException) as refused:
        lab.run(consumer.pull(queue, "*", 0, 1))
    assert refused.value.response_code == 16
