"""A session of mqadmin with a real RocketMQ prints what is kept of it; MQLAB_GOLDEN=write keeps the new one."""

from __future__ import annotations

import os
from pathlib import Path

from tests.clients.mqadmin import GOLDEN, play, sections
from tests.real.rocketmq import RealRocketMQ


def test_a_real_rocketmq_answers_as_it_did(tmp_path: Path) -> None:
    with RealRocketMQ() as real:
        broker = real.broker()
        text = play(real.name_server, broker.address, tmp_path)
    if os.environ.get("MQLAB_GOLDEN") == "write":
        GOLDEN.write_text(text, encoding="utf-8")
    assert sections(text) == sections(GOLDEN.read_text(encoding="utf-8"))
