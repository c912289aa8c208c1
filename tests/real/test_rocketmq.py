"""The real RocketMQ that others are compared with: it starts, replicates, is known to its clients, and goes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil

from tests.real.rocketmq import RealRocketMQ


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
