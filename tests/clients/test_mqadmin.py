"""Administration with mqadmin 5.3.3, unmodified: it prints of a served world what it prints of a real RocketMQ."""

from __future__ import annotations

from pathlib import Path

from mqlab.scenarios import get
from tests.clients.mqadmin import (
    A_PART,
    GOLDEN,
    OTHERWISE,
    SESSION,
    TITLES,
    WITHOUT_FIGURES,
    is_one_of,
    play,
    sections,
)


def test_mqadmin_prints_what_it_prints_of_a_real_rocketmq(tmp_path: Path) -> None:
    with get("served").build(7).serve() as serving:
        text = play(serving.name_server, serving.addresses["broker-a"], tmp_path)
    printed, golden = sections(text), sections(GOLDEN.read_text(encoding="utf-8"))
    assert list(printed) == list(golden)
    different = {
        command: (printed[command], golden[command])
        for command in golden
        if not agrees(command, printed[command], golden[command])
    }
    assert different == {}


def agrees(command: str, printed: str, golden: str) -> bool:
    for words, text in OTHERWISE.items():
        if is_one_of(command, [words]):
            return text in printed and text not in golden
    if is_one_of(command, A_PART):
        return set() < set(printed.splitlines()) <= set(golden.splitlines())
    return printed == golden


def test_what_is_meant_to_differ_is_in_the_session() -> None:
    lines = SESSION.splitlines()
    for command in (*TITLES, *WITHOUT_FIGURES, *A_PART, *OTHERWISE):
        assert any(is_one_of(line, [command]) for line in lines), command


def test_of_each_answer_something_is_compared() -> None:
    printed = sections(GOLDEN.read_text(encoding="utf-8"))
    silent = [command for command in printed if not printed[command] and not command.startswith("!")]
    assert silent == ["getConsumerConfig -g nobody", "queryMsgByOffset -t Orders -b broker-a -i 1 -o 99"], "as they are"
