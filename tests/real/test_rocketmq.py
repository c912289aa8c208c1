"""The real RocketMQ that others are compared with: it starts, replicates, is known to its clients, and goes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from mqlab.lab import Lab
from mqlab.protocol.codes import RequestCode
from tests.real.rocketmq import RealRocketMQ
from tests.serving.conftest import Program


def test_a_master_a_slave_and_a_proxy_on_ports_of_their_own(tmp_path: Path) -> None:
    with RealRocketMQ(tmp_path) as real:
        master = real.broker("broker-a", brokerRole="SYNC_MASTER", storePathRootDir=str(tmp_path / "master"))
        slave = real.broker("broker-a", brokerRole="SLAVE", brokerId=1, haMasterAddress=master.ha_address)
        real.proxy()
        assert [process.name for process in real.processes] == ["namesrv", "broker-a", "broker-a-1", "proxy-1"]
        assert len({process.port for process in real.processes}) == 4
        listening = {c.laddr.port for c in psutil.net_connections("tcp") if c.status == "LISTEN"}
        assert {process.port for process in real.processes} <= listening
        assert (tmp_path / "master" / "config").is_dir()
        slave.kill()
        assert slave.process.returncode == -signal.SIGKILL
    assert all(process.process.returncode is not None for process in real.processes)
    assert master.process.returncode == 128 + signal.SIGTERM, "ended in order"


def test_the_command_says_where_it_is_and_leaves_no_process() -> None:
    command = [sys.executable, "-m", "tests.real"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        started = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
    assert set(said["processes"]) == {"namesrv", "broker-a", "proxy-1"}
    assert len(started) == 3
    assert not any(p.is_running() for p in started)


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "tests.real", *options], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("option", ["--port", "--broker-port", "--proxy-port"])
def test_a_port_that_somebody_has_is_a_wrong_argument(option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = run(option, str(taken.getsockname()[1]))
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1].endswith("is not to be had: Address already in use")


def test_a_setting_without_a_value_is_a_wrong_argument() -> None:
    ended = run("--set", "brokerRole")
    assert ended.returncode == 2
    assert "--set: 'brokerRole' is not NAME=VALUE" in ended.stderr


def test_what_does_not_start_says_why(tmp_path: Path) -> None:
    ended = run("--directory", str(tmp_path), "--set", "brokerRole=SLAVE")
    assert ended.returncode == 1
    assert ended.stderr.startswith("broker-a did not start:")
    assert "Traceback" not in ended.stderr


def test_settings_have_the_names_that_they_have_in_a_real_broker() -> None:
    """But for one that is a property of the JVM there, and one that is not told there as long as nobody has set it."""
    lab = Lab(7)
    lab.name_server()
    lab.broker()

    def names(address: str) -> set[str]:
        program = Program(address)
        text = (program.ask(RequestCode.GET_BROKER_CONFIG).body or b"").decode()
        program.close()
        return {line.partition("=")[0] for line in text.splitlines()}

    with lab.serve() as serving, RealRocketMQ() as real:
        unknown = names(serving.addresses["broker-a"]) - names(real.broker().address)
    assert unknown == {"rebalanceLockMaxLiveTime", "haMasterAddress"}
