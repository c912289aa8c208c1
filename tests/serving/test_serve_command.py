"""`mqlab serve` as other programs start it: its line of JSON, its files, its end by a signal or without one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from mqlab.commands import serve
from mqlab.errors import LearnerError
from mqlab.lab import Lab
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.headers import UpdateConsumerOffsetRequestHeader
from mqlab.protocol.topic_config import ConsumerOffsetSerializeWrapper
from mqlab.replay import read_report, replay
from tests.serving.conftest import ANY_PORT, Connects, Server, start
from tests.serving.test_tls import Pair, shakes_hands


def test_it_says_where_it_is_in_a_line_and_a_file(servers: list[Server], connect: Connects, tmp_path: Path) -> None:
    server = start(servers, "--brokers", "2", "--ready-file", str(tmp_path / "ready"))
    assert json.loads((tmp_path / "ready").read_text()) == server.told
    assert server.told.keys() == {"name_server", "endpoints", "processes", "pid", "ready_ms"}
    assert connect(server.told["name_server"]).route("TBW102").count(b"brokerName") == 4
    assert connect(server.told["processes"]["broker-b"]).send(b"1").code == 0
    assert server.end() == 0


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_recorded_session_can_be_played_again(
    servers: list[Server], connect: Connects, tmp_path: Path, how: signal.Signals
) -> None:
    report = tmp_path / "session.mqlab"
    server = start(servers, "--slaves", "1", "--record", str(report))
    program = connect(server.told["processes"]["broker-a"])
    for number in range(20):
        assert program.send(b"%d" % number).code == 0
    assert server.end(how) == 0
    result = replay(read_report(str(report)))
    assert result.agrees, result
    stored = [r for r in result.lab.history.records() if r.kind == "MessageStored" and r.node == "broker-a"]
    assert len([r for r in stored if r.topic == "T"]) == 20


def test_what_a_sender_heard_of_survives_a_kill(servers: list[Server], connect: Connects, tmp_path: Path) -> None:
    for life in range(3):
        server = start(servers, "--store", str(tmp_path), "--sync-flush")
        program = connect(server.told["processes"]["broker-a"])
        if life:
            found = b"".join(program.pull(offset, most=1).body or b"" for offset in range(life * 10))
            assert [b"<%d>" % n in found for n in range(life * 10)] == [True] * (life * 10)
        for number in range(10):
            assert program.send(b"<%d>" % (life * 10 + number)).code == 0
        assert server.end(signal.SIGKILL) == -signal.SIGKILL


def test_each_of_several_brokers_has_a_directory_of_its_own(
    servers: list[Server], connect: Connects, tmp_path: Path
) -> None:
    arguments = ("--store", str(tmp_path), "--brokers", "2", "--slaves", "1", "--sync-flush")
    server = start(servers, *arguments)
    assert connect(server.told["processes"]["broker-b"]).send(b"<kept>").code == 0
    server.end(signal.SIGKILL)
    names = {"broker-a", "broker-a-slave-1", "broker-b", "broker-b-slave-1"}
    assert {place.name for place in tmp_path.iterdir()} == names
    again = start(servers, *arguments)
    assert b"<kept>" in (connect(again.told["processes"]["broker-b"]).pull(0).body or b"")


def test_without_grpcio_there_is_no_proxy_and_it_says_so(connect: Connects) -> None:
    code = "import sys; sys.modules['grpc'] = None; from mqlab.commands.serve import main; main(sys.argv[1:])"
    served = [sys.executable, "-c", code, *ANY_PORT]
    with subprocess.Popen(served, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        told = json.loads(process.stdout.readline())
        assert told["endpoints"] == ""
        assert connect(told["processes"]["broker-a"]).send(b"1").code == 0
        process.terminate()
        said = process.stderr.read()
    assert "no proxy for clients of 5.x" in said
    assert "grpcio" in said
    refused = subprocess.run([*served, "--proxies", "1"], stderr=subprocess.PIPE, text=True, timeout=30, check=False)
    assert "MissingExtraError" in refused.stderr


def test_a_directory_has_one_writer(servers: list[Server], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start(servers, "--store", str(tmp_path))
    with pytest.raises(LearnerError, match=f"another program works on {tmp_path}"):
        serve.main([*ANY_PORT, "--store", str(tmp_path)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--store", "d", "--record", "f"], "no part of a world that can be played again"),
        (["-p", "brokers=2"], "say which one"),
        (["--scenario", "nothing"], "nothing"),
        (["--advertise", "broker-z=a:1"], "broker-z"),
        (["--set", "noSuchThing=1"], "noSuchThing"),
        (["--set", "defaultTopicQueueNums=many"], "defaultTopicQueueNums"),
        (["--tls-certificate", "server.pem"], "a certificate and no key"),
    ],
)
def test_bad_options_are_refused(arguments: Sequence[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(LearnerError, match=message):
        serve.main([*ANY_PORT, *(str(tmp_path / a) if a in ("d", "f") else a for a in arguments)])


def test_brokers_take_settings_as_rocketmq_writes_them(servers: list[Server], connect: Connects) -> None:
    server = start(servers, "--set", "brokerName=shop", "--set", "defaultTopicQueueNums=3")
    assert b'"brokerName":"shop"' in connect(server.told["name_server"]).route("TBW102")
    assert b'"readQueueNums":3' in connect(server.told["name_server"]).route("TBW102")


def test_a_certificate_is_taken_from_files(servers: list[Server], connect: Connects, tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    files = ("--tls-certificate", str(pair.certificate), "--tls-key", str(pair.key))
    server = start(servers, "--tls", "enforcing", *files)
    assert connect(server.told["name_server"]).ask_or_none() is None
    program = shakes_hands(connect(server.told["name_server"]), "localhost", pair.trusted)
    assert b"brokerName" in program.route("TBW102")


def test_at_an_end_in_good_order_all_is_in_the_files(
    servers: list[Server], connect: Connects, tmp_path: Path
) -> None:
    server = start(servers, "--store", str(tmp_path))
    program = connect(server.told["processes"]["broker-a"])
    program.send(b"1")
    program.pull(0)
    program.ask(RequestCode.UPDATE_CONSUMER_OFFSET, UpdateConsumerOffsetRequestHeader("C", "T", 0, 1))
    assert (tmp_path / "store" / "abort").exists()
    assert server.end() == 0
    assert not (tmp_path / "store" / "abort").exists()
    written = (tmp_path / "store" / "config" / "consumerOffset.json").read_bytes()
    offsets = ConsumerOffsetSerializeWrapper.decode(written)
    assert offsets.offset_table == {"T@C": {0: 1}}


def test_there_is_room_for_as_many_connections_as_may_be(connect: Connects) -> None:
    code = """
import resource, os, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
    command = [sys.executable, "-c", code, "-m", "mqlab", "serve", *ANY_PORT, "--proxies", "0", "--most-connections"]
    with subprocess.Popen([*command, "300"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = json.loads(process.stdout.readline())["name_server"]
            assert all(connect(address).route("TBW102") for _ in range(300))
        finally:
            process.kill()


def test_a_scenario_can_be_served(servers: list[Server], connect: Connects) -> None:
    server = start(servers, "--scenario", "two-brokers")
    assert connect(server.told["name_server"]).ask(106).code == 0


@pytest.mark.parametrize(
    "given",
    [
        ["--acl", "acl.json"], ["--set", "authenticationEnabled=true"], ["--brokers", "2"], ["--slaves", "1"],
        ["--proxies", "0"], ["--topic", "T"], ["--sync-flush"],
    ],
)  # fmt: skip
def test_what_makes_the_world_that_serve_builds_is_refused_beside_a_scenario(given: list[str]) -> None:
    with pytest.raises(LearnerError) as refused:
        serve.opened([*ANY_PORT, "--scenario", "two-brokers", *given])
    assert f"{given[0]} is for the world that serve builds" in str(refused.value)
    assert "What to do" in str(refused.value)


def test_a_directory_is_free_again_when_its_broker_is_refused(tmp_path: Path) -> None:
    lab = Lab(7)
    lab.name_server()
    refused = []
    for settings in ({"flush": "SYNC_FLUSH"}, {"authentication_enabled": True}):
        with pytest.raises(LearnerError) as error:
            lab.broker(directory=tmp_path, **settings)
        refused.append(error)
    assert "has no setting 'flush'" in str(refused[0].value)
    assert "asks for signatures and has no users" in str(refused[1].value)
    assert lab.broker(directory=tmp_path).is_up()


def test_no_fault_is_done_to_a_real_directory(tmp_path: Path) -> None:
    lab = Lab(7)
    lab.name_server()
    lab.broker(directory=tmp_path)
    for verb in ("power_off", "fill_disk", "hang_disk", "unhang_disk"):
        with pytest.raises(LearnerError, match="is a real directory"):
            lab.act(verb, node="broker-a")
    lab.crash("broker-a")
    lab.restart("broker-a")
    lab.run_for(seconds=5)
    assert lab.brokers[0].controller is not None
    assert (tmp_path / "store" / "lock").is_file()
