"""Damaged, doubled, renamed and stray files: a store does what RocketMQ does with them, or says what to do."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlab.commands.store import main
from mqlab.sim.disk import MemoryDisk
from mqlab.store import StoreError
from tests.store.damage import outcome

FIRST = "commitlog/00000000000000000000"
SECOND = "commitlog/00000000000000065536"


@pytest.mark.parametrize(("name", "seeds"), [("unclean", 60), ("retry", 40), ("compressed", 5)])
def test_whatever_was_damaged_a_broker_serves_or_says_what_to_do(golden: Any, name: str, seeds: int) -> None:
    """So do `ls` and `recover`; nothing ends in a raw error or without an end."""
    seen = [outcome(golden(name), seed, times=1 + seed % 3) for seed in range(seeds)]
    assert {"served", "refused"} == set(seen)


def _copied(old: str, new: str) -> Callable[[MemoryDisk], None]:
    return lambda disk: disk.write_bytes(new, disk.read_bytes(old))


# -- the index ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [".DS_Store", "x.bak", "99999999999999999999"])
def test_a_stray_file_in_the_index_is_passed_over(golden: Any, name: str) -> None:
    recorded = golden("plain")
    disk = recorded.disk()
    disk.write_bytes(f"index/{name}", b"\0\0\0\1Bud1" + bytes(6_140))
    store = recorded.open(disk)
    assert [file.file.path for file in store.index_service.files] == [
        file.file.path for file in recorded.open().index_service.files
    ]
    assert disk.exists(f"index/{name}")


@pytest.mark.parametrize("size", [0, 39, 440, 8_439, 8_441, 100_000])
def test_an_index_file_of_another_size_is_read_as_one_of_the_right_size(golden: Any, size: int) -> None:
    """RocketMQ maps as many bytes as an index file has: a short one gets longer, of a long one the head is used."""
    recorded = golden("plain")
    disk = recorded.disk()
    path = f"index/{disk.list('index')[0]}"
    disk.open(path).truncate(size)
    store = recorded.open(disk)
    assert disk.open(path).size == max(size, 8_440)
    for i in range(300):
        store.query_message("GoldenPlainA", f"k{i}", 32, 0, 1 << 62)


def test_the_head_of_an_index_file_may_hold_anything(golden: Any) -> None:
    recorded = golden("plain")
    disk = recorded.disk()
    path = f"index/{disk.list('index')[0]}"
    for head in (b"\xff" * 40, b"\x7f" + b"\xff" * 39, b"\0" * 32 + b"\x7f\xff\xff\xff\0\0\0\1"):
        disk.open(path).write(0, head)
        store = recorded.open(disk)
        store.query_message("GoldenPlainA", "k1", 32, 0, 1 << 62)
        store.index_service.flush()


def test_a_folder_in_place_of_an_index_file_is_refused(golden: Any) -> None:
    disk = golden("plain").disk()
    disk.write_bytes("index/20261120194649544/inside", b"")
    with pytest.raises(StoreError, match="a folder where a file belongs"):
        golden("plain").open(disk)


# -- the commit log -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("99999999999999999999", "is not an offset of 20 digits"),
        ("65537", "is not an offset of 20 digits"),
        ("copy of 00000000000000000000", "is not an offset of 20 digits"),
        ("00000000000000070000", "begins at no multiple of 65536"),
        ("09223372036854775807", "begins at no multiple of 65536"),
    ],
)
def test_a_file_of_the_log_with_an_impossible_name_is_refused(golden: Any, name: str, reason: str) -> None:
    disk = golden("unclean").disk()
    _copied(FIRST, f"commitlog/{name}")(disk)
    with pytest.raises(StoreError, match=rf"{reason}(.|\n)*What to do"):
        golden("unclean").open(disk)


@pytest.mark.parametrize("name", ["00000000000000589824", "00000000899999989760"])
def test_a_doubled_file_behind_a_log_that_was_closed_is_dropped(golden: Any, name: str) -> None:
    recorded = golden("plain")
    disk = recorded.disk()
    _copied(FIRST, f"commitlog/{name}")(disk)
    store, same = recorded.open(disk), recorded.open()
    assert store.max_phy_offset == same.max_phy_offset
    assert store.consume_queue_store.topic_queue_table == same.consume_queue_store.topic_queue_table
    assert store.build_index() == 0


@pytest.mark.parametrize("name", ["00000000000000458752", "00000000899999989760"])
def test_after_a_crash_a_doubled_file_is_where_recovery_begins_and_the_log_ends(golden: Any, name: str) -> None:
    """As in RocketMQ: it is the newest file that begins with an old message. What queues lacked they go on lacking."""
    recorded = golden("unclean")
    disk = recorded.disk()
    _copied(FIRST, f"commitlog/{name}")(disk)
    store, same = recorded.open(disk), recorded.open()
    assert store.max_phy_offset // 65536 == int(name) // 65536
    longest = same.consume_queue_store.topic_queue_table
    assert all(end <= longest[key] for key, end in store.consume_queue_store.topic_queue_table.items())
    store.build_index()
    assert not store.index_service.is_behind


def test_a_file_missing_from_the_middle_is_stepped_over(golden: Any) -> None:
    """As in RocketMQ: the file before it ends in a blank, so recovery goes on with the next one there is."""
    recorded = golden("unclean")
    disk = recorded.disk()
    disk.remove(SECOND)
    store = recorded.open(disk)
    assert store.max_phy_offset == recorded.open().max_phy_offset
    store.index_service.begin_at(0, store.max_phy_offset)
    assert store.build_index() > 0
    assert not store.index_service.is_behind


# -- queues ---------------------------------------------------------------------------------------------------------


def test_a_queue_file_cut_within_an_entry_is_refused_with_the_size_it_should_have(golden: Any) -> None:
    disk = golden("unclean").disk()
    disk.open("consumequeue/GoldenU1/0/00000000000000001600").truncate(395)
    with pytest.raises(StoreError, match=r"has 395 bytes, all files here must have 400(.|\n)*What to do: restore"):
        golden("unclean").open(disk)


def test_what_is_no_queue_among_the_queues_is_passed_over(golden: Any) -> None:
    recorded = golden("unclean")
    disk = recorded.disk()
    disk.write_bytes("consumequeue/.DS_Store", b"Bud1")
    disk.write_bytes("consumequeue/GoldenU1/.DS_Store", b"Bud1")
    disk.write_bytes("consumequeue/GoldenU1/00/00000000000000000000", bytes(400))
    disk.write_bytes("consumequeue/GoldenU1/9999999999/00000000000000000000", bytes(400))
    assert recorded.open(disk).consume_queue_store.topics() == recorded.open().consume_queue_store.topics()


@pytest.mark.parametrize(
    "path", ["commitlog", "index", "consumequeue", "consumequeue/GoldenU1", "consumequeue/GoldenU1/0"]
)
def test_a_file_where_a_folder_belongs_is_refused(golden: Any, path: str) -> None:
    """RocketMQ would take the folder as empty, and with the commit log delete all queues."""
    disk = golden("unclean").disk()
    disk.rmtree(path)
    disk.write_bytes(path, b"something")
    with pytest.raises(StoreError, match=f"{path}: there is a file where a folder belongs"):
        golden("unclean").open(disk)


@pytest.mark.parametrize("path", ["checkpoint", "abort", "lock", FIRST, "consumequeue/GoldenU1/0/00000000000000000400"])
def test_a_folder_where_a_file_belongs_is_refused(golden: Any, path: str) -> None:
    disk = golden("unclean").disk()
    disk.remove(path)
    disk.write_bytes(f"{path}/inside", b"something")
    with pytest.raises(StoreError, match=f"{path}: there is a folder where a file belongs"):
        golden("unclean").open(disk)


# -- links ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def linked(golden: Any, tmp_path: Path) -> Path:
    """A store whose commit log lies elsewhere, one of its files elsewhere again, with a link in a circle beside it."""
    shutil.copytree(golden("unclean").directory, tmp_path / "store")
    shutil.move(tmp_path / "store" / "commitlog", tmp_path / "big disk")
    (tmp_path / "store" / "commitlog").symlink_to(tmp_path / "big disk")
    shutil.move(tmp_path / "store" / FIRST, tmp_path / "moved")
    (tmp_path / "store" / FIRST).symlink_to(tmp_path / "moved")
    (tmp_path / "store" / "index" / "circle").symlink_to(tmp_path / "store")
    return tmp_path / "store"


def test_links_are_followed(golden: Any, linked: Path, capsys: Any) -> None:
    for command in ("ls", "recover"):
        assert main([command, str(golden("unclean").directory)]) == 0
        wanted = capsys.readouterr()
        assert main([command, str(linked)]) == 0
        assert capsys.readouterr() == wanted


def test_a_link_to_nothing_is_an_empty_file(linked: Path, capsys: Any) -> None:
    """Behind the log RocketMQ deletes it; in the middle it refuses to start."""
    (linked / "commitlog" / "00000000000000458752").symlink_to(linked / "nowhere")
    assert main(["recover", str(linked)]) == 0
    capsys.readouterr()
    (linked / SECOND).unlink()
    (linked / SECOND).symlink_to(linked / "nowhere")
    assert main(["ls", str(linked)]) == 0
    capsys.readouterr()
    assert main(["recover", str(linked)]) == 2
    assert f"{SECOND}: the file has 0 bytes, all files here must have 65536" in capsys.readouterr().err
