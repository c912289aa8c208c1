"""Administration with mqadmin 5.3.3, unmodified: it prints of a served world what it prints of a real RocketMQ."""

from __future__ import annotations

from pathlib import Path

from mqlab.scenarios import get
from tests.clients.mqadmin import DIFFERS, GOLDEN, SESSION, compiled, play, sections
from tests.real.rocketmq import JARS


def test_mqadmin_prints_what_it_prints_of_a_real_rocketmq(tmp_path: Path) -> None:
    with get("served").build(7).serve() as serving:
        classpath = compiled(JARS, tmp_path)
        text = play(classpath, serving.name_server, serving.addresses["broker-a"], tmp_path)
    printed, golden = sections(text), sections(GOLDEN.read_text(encoding="utf-8"))
    assert list(printed) == list(golden)
    different = {
        command: (printed[command], golden[command]) for command in golden if printed[command] != golden[command]
    }
    assert different == {}


def test_what_is_meant_to_differ_is_in_the_session() -> None:
    lines = SESSION.splitlines()
    assert all(any(f"{line} ".startswith(f"{command} ") for line in lines) for command in DIFFERS)
