"""Files and texts from outside are read within bounds, and removed however deep they are."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mqlab.grading.outside import Unreadable, read_file, read_json, remove_tree

NO_FILES: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a link": lambda path: path.symlink_to("/etc/passwd"),
    "a directory": lambda path: path.mkdir(),
    "nothing": lambda path: None,
    "too large": lambda path: path.write_bytes(bytes(11)),
}


@pytest.mark.parametrize("what", NO_FILES)
def test_only_regular_files_of_a_size_are_read(what: str, tmp_path: Path) -> None:
    NO_FILES[what](tmp_path / "file")
    with pytest.raises(Unreadable):
        read_file(tmp_path / "file", 10)


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"ten bytes.")
    assert read_file(tmp_path / "file", 10) == b"ten bytes."


@pytest.mark.parametrize("text", ["[" * 100_000, "{", b"\xff", "9" * 10_000, '"' + "\\" * 7])
def test_what_is_no_json_is_told(text: str | bytes) -> None:
    with pytest.raises(Unreadable, match="no JSON"):
        read_json(text.encode() if isinstance(text, str) else text)


def test_values_are_counted_and_texts_are_not() -> None:
    assert read_json(b'["a,b,c,[{", 1]', 3) == ["a,b,c,[{", 1]
    assert read_json(b'["\\",[", ",,"]', 3) == ['",[', ",,"]
    with pytest.raises(Unreadable, match="more than 3 values"):
        read_json(b"[[],[],[]]", 3)


@pytest.mark.parametrize("text", [b'"' + b'\\"' * 2_000_000 + b",,", b"[" + b'"' * 2_000_001 + b","])
def test_counting_takes_no_longer_where_quotation_marks_have_no_end(text: bytes) -> None:
    began = time.process_time()
    with pytest.raises(Unreadable):
        read_json(text * 2, 1)
    assert time.process_time() - began < 5


def test_a_directory_three_thousand_deep_is_removed(tmp_path: Path) -> None:
    before = os.getcwd()
    root = tmp_path / "root"
    root.mkdir()
    os.chdir(root)
    try:
        for _ in range(3000):
            os.mkdir("d")
            os.chdir("d")
        Path("file").write_text("deep down")
        os.symlink(tmp_path, "link")
    finally:
        os.chdir(before)
    (tmp_path / "beside").write_text("stays")
    (root / "locked").mkdir(mode=0o000)
    remove_tree(root)
    assert sorted(os.listdir(tmp_path)) == ["beside"]
