"""An hour's traffic of three clients is a recording that plays to the same hash with nobody outside."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mqlab.replay import read_report, replay
from mqlab.scenarios import get

from .conftest import HERE, Starts, java

HOUR_US = 3_600_000_000


@pytest.mark.parametrize("classpath", ["5.3.3"], indirect=True)
def test_an_hour_of_three_clients_is_played_again(
    classpath: str, classpath_v5: str, uses: Starts, tmp_path: Path
) -> None:
    lab = get("served").build(9, parameters={"proxies": 1, "topics": "T;F=FIFO;D=DELAY;X=TRANSACTION;Uses"})
    began_us = lab.world.now_us
    with lab.serve() as serving:
        sender = uses(*java(tmp_path, classpath, "Uses", "steady", serving.name_server))
        pushed = uses(*java(tmp_path, classpath_v5, "UsesV5", "push", serving.endpoints))
        delayed = uses(sys.executable, str(HERE / "uses.py"), "delay", serving.endpoints)
        pushed.until("consumed pushed at attempt 1")
        for minute in range(60):
            serving.fast_forward("1m")
            sender.until(f"sending {(minute + 1) * 100}")
        pushed.until("consumed pushed at attempt 2")
        delayed.until("received in an hour")
        assert serving.connections >= 3
        sender.say("enough")
        sender.until("done")
    assert lab.world.now_us - began_us > HOUR_US
    serving.report(tmp_path / "session.mqlab")
    result = replay(read_report(str(tmp_path / "session.mqlab")))
    assert result.agrees, result
    assert result.lab.trace_hash() == lab.trace_hash()
