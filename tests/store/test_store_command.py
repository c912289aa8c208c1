"""`mqlab store ls` and `mqlab store recover`, which never change what they look at."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from mqlab.commands.store import main


def _fingerprint(directory: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(directory.rglob("*"))}


def _run(capsys: Any, *arguments: str) -> tuple[int, list[dict[str, Any]], str]:
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, [json.loads(line) for line in captured.out.splitlines()], captured.err


@pytest.fixture
def copy(golden: Any, tmp_path: Path) -> Path:
    """The killed broker's directory, to be damaged."""
    target = tmp_path / "copy" / "store"
    shutil.copytree(golden("unclean").directory, target)
    return target


@pytest.mark.parametrize("name", ["plain", "compressed", "ipv6", "unclean"])
def test_ls_prints_one_line_for_each_message_of_the_manifest(golden: Any, name: str, capsys: Any) -> None:
    recorded = golden(name)
    before = _fingerprint(recorded.directory)
    code, lines, errors = _run(capsys, "ls", str(recorded.directory))
    assert (code, errors) == (0, "")
    wanted = {message["commitLogOffset"]: message for message in recorded.manifest["messages"]}
    assert [line["commitLogOffset"] for line in lines] == sorted(wanted)
    for line in lines:
        message = wanted[line["commitLogOffset"]]
        assert all(line[field] == message.get(field) for field in line if field != "bodySha256")
    assert _fingerprint(recorded.directory) == before


def test_ls_with_body_adds_the_unpacked_body(golden: Any, capsys: Any) -> None:
    _, lines, _ = _run(capsys, "ls", "--body", str(golden("compressed").directory))
    for line in lines:
        body = base64.b64decode(line["bodyBase64"])
        assert (len(body), hashlib.sha256(body).hexdigest()) == (line["bodyLength"], line["bodySha256"])


def test_recover_prints_what_a_broker_would_have(golden: Any, capsys: Any) -> None:
    recorded = golden("unclean")
    before = _fingerprint(recorded.directory)
    code, (found,), _ = _run(capsys, "recover", str(recorded.directory))
    real = recorded.manifest["variants"][0]["realBroker"]
    assert code == 0
    assert found["queueOffsets"] == real["queueOffsets"]
    assert found["commitLogMinOffset"] == int(real["commitLogMinOffset"])
    assert found["commitLogMaxOffset"] == int(real["commitLogMaxOffset"])
    assert (found["cut"], found["lastExit"]) == ([], "unclean")
    assert _fingerprint(recorded.directory) == before


def test_a_directory_that_contains_store_stands_for_it(copy: Path, capsys: Any) -> None:
    assert _run(capsys, "recover", str(copy.parent)) == _run(capsys, "recover", str(copy))


def test_recover_says_what_was_cut_and_why(copy: Path, capsys: Any) -> None:
    with (copy / "commitlog" / "00000000000000065536").open("r+b") as log:
        log.seek(35_059)
        byte = log.read(1)
        log.seek(35_059)
        log.write(bytes([byte[0] ^ 255]))
    code, (found,), _ = _run(capsys, "recover", str(copy))
    assert code == 0
    assert found["commitLogMaxOffset"] == 100_504
    log_cut = found["cut"][0]
    assert (log_cut["what"], log_cut["offset"]) == ("commit log", 100_504)
    assert "CRC" in log_cut["reason"]
    assert sum(cut["entries"] for cut in found["cut"][1:]) == 386 - 127


def test_ls_reports_damage_and_goes_on_behind_it(copy: Path, capsys: Any) -> None:
    with (copy / "commitlog" / "00000000000000065536").open("r+b") as log:
        log.seek(35_059)
        log.write(b"\0\0")
    code, lines, errors = _run(capsys, "ls", str(copy))
    assert code == 1
    assert len(lines) == 386
    assert errors.startswith("damage in the commit log at offset 100504: the CRC of the body")
    assert "mqlab store recover" in errors


def test_a_truncated_log_is_reported(copy: Path, capsys: Any) -> None:
    last = copy / "commitlog" / "00000000000000262144"
    with last.open("r+b") as log:
        log.truncate(30_000)
    code, lines, errors = _run(capsys, "ls", str(copy))
    assert code == 1
    assert 300 < len(lines) < 387
    assert "30000 bytes" in errors
    code, lines, errors = _run(capsys, "recover", str(copy))
    assert (code, lines) == (2, [])
    assert "all files here must have 65536" in errors
    assert "What to do" in errors


@pytest.mark.parametrize("noise", [b"", b"\xff" * 5_000, b"\0" * 5_000, b"\xda\xa3 \xa7" * 1_000])
def test_garbage_is_reported_without_a_traceback(tmp_path: Path, noise: bytes, capsys: Any) -> None:
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / "00000000000000000000").write_bytes(noise)
    for command in ("ls", "recover"):
        code, _, errors = _run(capsys, command, str(tmp_path))
        assert code in (0, 1)
        assert "Traceback" not in errors
    assert (tmp_path / "commitlog" / "00000000000000000000").read_bytes() == noise


@pytest.mark.parametrize("command", ["ls", "recover"])
def test_a_directory_that_is_no_store_says_what_to_give(tmp_path: Path, command: str, capsys: Any) -> None:
    code, _, errors = _run(capsys, command, str(tmp_path / "nothing"))
    assert code == 2
    assert "there is no such directory" in errors
    code, _, errors = _run(capsys, command, str(tmp_path))
    assert code == 2
    assert "give the broker's storePathRootDir" in errors


def test_a_stray_file_in_the_log_is_named(copy: Path, capsys: Any) -> None:
    (copy / "commitlog" / "notes.txt").write_text("x")
    code, _, errors = _run(capsys, "recover", str(copy))
    assert code == 2
    assert "notes.txt" in errors
