"""Text from outside does nothing to a terminal, to a page or to a file."""

from __future__ import annotations

import json

import pytest

from mqlab.grading.printable import all_printable, printable

SHOWN = {
    "müller[1]": "müller[1]",
    "李雷 Пётр 🙂": "李雷 Пётр 🙂",
    "می\u200cخواهم": "می\u200cخواهم",
    "\x1b[2Jada": "\\x1b[2Jada",
    "a\rb\x07\x9b": "a\\rb\\x07\\x9b",
    "ada\u202egnp.exe": "ada\\u202egnp.exe",
    "a\u2066b\u200bc\ufeff": "a\\u2066b\\u200bc\\ufeff",
    "\ud800\udcff": "\\ud800\\udcff",
    "one\ntwo\u2028three": "one\\ntwo\\u2028three",
    "\U000e0041": "\\U000e0041",
}


@pytest.mark.parametrize("text", SHOWN)
def test_what_cannot_be_seen_is_written_out(text: str) -> None:
    assert printable(text) == SHOWN[text]
    assert printable(text).encode()
    assert printable(printable(text)) == printable(text)


def test_lines_stay_where_they_are_wanted() -> None:
    assert printable("one\n\ttwo\r\x0b", lines=True) == "one\n\ttwo\\r\\x0b"


def test_a_long_text_is_cut_off() -> None:
    assert printable("abc" * 1000, most=5) == "abcab ..."


def test_every_text_of_a_result_can_be_written() -> None:
    result = {"bet\ud800": ["\udcff", 7, None, ("\x1b", 1.5)], "story": "a\nb"}
    made = all_printable(result)
    assert made == {"bet\\ud800": ["\\udcff", 7, None, ("\\x1b", 1.5)], "story": "a\nb"}
    assert all_printable([7, 16**4000]) == [7, hex(16**4000)]
    assert json.dumps(made, ensure_ascii=False).encode()
