"""The disk: sparse files, the page cache and what a power loss takes of it, limits on space, real directories."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqlab.errors import LearnerError
from mqlab.sim import DiskFull, MemoryDisk, World
from mqlab.sim.disk import PAGE_BYTES, Disk
from mqlab.sim.real_disk import ReadOnlyDisk, RealDisk


class Clock:
    """A clock that stands where a test sets it."""

    ms = 1_000

    def __call__(self) -> int:
        return self.ms


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk("alpha", Clock())


@pytest.fixture(params=["memory", "real"])
def any_disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    """Both kinds of disk: what holds for files in general."""
    return MemoryDisk("alpha", Clock()) if request.param == "memory" else RealDisk(tmp_path / "root")


def lose_all(point: str, n: int) -> int:
    return 0


def keep_all(point: str, n: int) -> int:
    return 1


# -- files ----------------------------------------------------------------------------------------------------------


def test_what_was_never_written_reads_as_zeros(any_disk: Disk) -> None:
    file = any_disk.open("a/b", 6_000_000)
    file.write(1_000_000, b"here")
    assert file.size == 6_000_000
    assert file.read(999_998, 8) == b"\0\0here\0\0"
    assert file.read(5_999_998, 10) == b"\0\0"


def test_a_write_behind_the_end_makes_the_file_longer(any_disk: Disk) -> None:
    file = any_disk.open("a", 10)
    file.write(8, b"abcd")
    assert file.size == 12
    assert any_disk.read_bytes("a") == b"\0" * 8 + b"abcd"


def test_a_write_over_chunk_borders_reads_back(any_disk: Disk) -> None:
    data = bytes(range(256)) * 1_024
    file = any_disk.open("a", 1 << 20)
    file.write(65_000, data)
    assert file.read(65_000, len(data)) == data
    assert file.data_end() == 65_000 + len(data)


def test_truncating_drops_what_lies_behind(any_disk: Disk) -> None:
    file = any_disk.open("a")
    file.write(0, b"x" * 200_000)
    file.truncate(70_000)
    file.truncate(200_000)
    assert file.read(69_999, 3) == b"x\0\0"
    assert file.read(150_000, 1) == b"\0"
    assert file.data_end() == 70_000


def test_folders_list_their_names_sorted(any_disk: Disk) -> None:
    for path in ("q/t2/1", "q/t1/0", "q/t1/10", "q/t1/2", "z"):
        any_disk.open(path, 20)
    assert any_disk.list("q") == ["t1", "t2"]
    assert any_disk.list("q/t1") == ["0", "10", "2"]
    assert any_disk.list("nothing") == []
    assert any_disk.is_dir("q/t1")
    assert not any_disk.is_dir("z")
    any_disk.rmtree("q/t1")
    assert any_disk.list("q") == ["t2"]
    assert not any_disk.exists("q/t1/0")


def test_renaming_replaces_the_file_of_that_name(any_disk: Disk) -> None:
    any_disk.write_bytes("config/new", b"new")
    any_disk.write_bytes("config/old", b"the old one")
    any_disk.rename("config/new", "config/old")
    assert any_disk.list("config") == ["old"]
    assert any_disk.read_bytes("config/old") == b"new"


def test_a_shorter_content_replaces_a_longer_one(any_disk: Disk) -> None:
    any_disk.write_bytes("a", b"a long text")
    any_disk.write_bytes("a", b"short", flush=True)
    assert any_disk.read_bytes("a") == b"short"


def test_a_missing_file_is_an_error(any_disk: Disk) -> None:
    with pytest.raises(FileNotFoundError):
        any_disk.read_bytes("nothing")
    with pytest.raises(FileNotFoundError):
        any_disk.remove("nothing")


def test_a_file_knows_when_it_last_changed() -> None:
    clock = Clock()
    disk = MemoryDisk("alpha", clock)
    file = disk.open("a", 100)
    clock.ms = 5_000
    file.write(0, b"x")
    assert disk.mtime_ms("a") == 5_000
    clock.ms = 9_000
    file.flush()
    assert disk.mtime_ms("a") == 9_000


def test_ten_thousand_queue_files_of_6_mb_cost_little(disk: MemoryDisk) -> None:
    tracemalloc.start()
    for i in range(10_000):
        disk.open(f"consumequeue/TopicTest/{i}/00000000000000000000", 6_000_000).write(0, bytes(19) + b"\1")
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 20_000_000
    assert disk.used_bytes == 10_000 * PAGE_BYTES


# -- space ----------------------------------------------------------------------------------------------------------


def test_a_full_disk_refuses_the_whole_write(disk: MemoryDisk) -> None:
    file = disk.open("a", 1 << 20)
    file.write(0, b"x" * 10_000)
    disk.capacity_bytes = disk.used_bytes + 2 * PAGE_BYTES
    with pytest.raises(DiskFull, match="no space left on the disk") as caught:
        file.write(262_144, b"y" * 3 * PAGE_BYTES)
    assert caught.value.path == "a"
    assert file.read(262_144, 3) == b"\0\0\0"
    file.write(262_144, b"y")
    assert file.read(262_144, 1) == b"y"


def test_a_full_disk_is_used_to_its_last_page(disk: MemoryDisk) -> None:
    disk.capacity_bytes = 10 * PAGE_BYTES
    file = disk.open("a", 1 << 20)
    for page in range(10):
        file.write(page * PAGE_BYTES, b"x" * PAGE_BYTES)
    assert disk.used_bytes == disk.capacity_bytes
    with pytest.raises(DiskFull):
        file.write(10 * PAGE_BYTES, b"x")


def test_deleting_gives_the_space_back(disk: MemoryDisk) -> None:
    disk.open("a").write(0, b"x" * 100_000)
    disk.open("b").write(0, b"x" * 100_000)
    disk.remove("a")
    disk.open("b").truncate(1)
    disk.rmtree("")
    assert disk.used_bytes == 0


# -- page cache and power loss --------------------------------------------------------------------------------------


def test_what_was_flushed_survives_a_power_loss(disk: MemoryDisk) -> None:
    file = disk.open("a", 1 << 20)
    file.write(0, b"safe")
    file.flush()
    file.write(4, b" and not")
    assert disk.power_loss(lose_all) == (0, 1)
    assert file.read(0, 12) == b"safe" + bytes(8)


def test_a_page_that_survives_keeps_all_of_it(disk: MemoryDisk) -> None:
    file = disk.open("a", 1 << 20)
    file.write(0, b"x" * 3 * PAGE_BYTES)
    kept = iter([1, 0, 1])
    assert disk.power_loss(lambda point, n: next(kept)) == (2, 1)
    assert file.read(0, 3 * PAGE_BYTES) == b"x" * PAGE_BYTES + bytes(PAGE_BYTES) + b"x" * PAGE_BYTES


def test_a_page_written_over_falls_back_to_what_the_last_flush_saw(disk: MemoryDisk) -> None:
    file = disk.open("a", 1 << 20)
    file.write(0, b"one" + bytes(5_000) + b"two")
    file.flush()
    file.write(0, b"ONE")
    file.write(5_003, b"TWO, and more")
    disk.power_loss(lose_all)
    assert file.read(0, 3) == b"one"
    assert file.read(5_003, 13) == b"two" + bytes(10)


def test_a_write_far_behind_the_end_dirties_only_its_own_pages(disk: MemoryDisk) -> None:
    file = disk.open("index", 420_000_040)
    file.write(0, b"header")
    file.write(20_000_040, b"item")
    file.write(4_000_000, b"slot")
    assert file.dirty_pages == [0, 976, 4_882]
    disk.power_loss(lambda point, n: 1)
    assert file.read(4_000_000, 4) == b"slot"


def test_after_a_power_loss_nothing_is_dirty(disk: MemoryDisk) -> None:
    file = disk.open("a", 1 << 20)
    file.write(0, b"x" * 10_000)
    disk.power_loss(keep_all)
    assert disk.power_loss(lose_all) == (0, 0)
    assert file.read(9_999, 1) == b"x"


def test_each_page_is_a_choice_named_after_its_file(disk: MemoryDisk) -> None:
    for path in ("store/b", "store/a"):
        disk.open(path, 1 << 20).write(0, b"x" * 2 * PAGE_BYTES)
    asked = []
    disk.power_loss(lambda point, n: asked.append((point, n)) or 1)
    assert asked == [("disk/store/a", 2), ("disk/store/a", 2), ("disk/store/b", 2), ("disk/store/b", 2)]


@st.composite
def operations(draw: st.DrawFn) -> list[tuple[str, int, bytes]]:
    step = st.tuples(
        st.sampled_from(["write", "append", "flush", "truncate"]),
        st.integers(0, 20_000),
        st.binary(min_size=1, max_size=9_000),
    )
    return draw(st.lists(step, max_size=12))


@given(operations(), st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_a_file_is_like_an_array_of_bytes_and_loses_only_dirty_pages(
    steps: list[tuple[str, int, bytes]], random: Random
) -> None:
    disk = MemoryDisk("alpha", Clock())
    file = disk.open("a", 100_000)
    now, safe, dirty = bytearray(100_000), bytearray(100_000), set()
    end = 0
    for kind, where, data in steps:
        if kind == "flush":
            file.flush()
            safe[:] = now
            dirty.clear()
        elif kind == "truncate":
            file.truncate(where)
            file.truncate(100_000)
            for array in (now, safe):
                array[where:] = bytes(100_000 - where)
            dirty = {page for page in dirty if page * PAGE_BYTES < where}
            end = min(end, where)
        else:
            at = end if kind == "append" and end + len(data) <= 100_000 else where
            file.write(at, data)
            now[at : at + len(data)] = data
            dirty |= set(range(at // PAGE_BYTES, (at + len(data) - 1) // PAGE_BYTES + 1))
            end = max(end, at + len(data))
        assert file.read(0, 100_000) == bytes(now)
    lost: list[int] = []

    def choose(point: str, n: int) -> int:
        lost.append(random.randrange(n))
        return lost[-1]

    pages = file.dirty_pages
    for page in dirty - set(pages):
        start = page * PAGE_BYTES
        assert now[start : start + PAGE_BYTES] == safe[start : start + PAGE_BYTES]
    disk.power_loss(choose)
    for page, survived in zip(pages, lost, strict=True):
        if not survived:
            start = page * PAGE_BYTES
            now[start : start + PAGE_BYTES] = safe[start : start + PAGE_BYTES]
    assert file.read(0, 100_000) == bytes(now)


# -- a disk that hangs ----------------------------------------------------------------------------------------------


def test_a_flush_waits_while_the_disk_hangs_and_takes_its_time() -> None:
    world = World(7)
    node = world.node("alpha")
    node.disk.flush_us = 300
    node.disk.hang()
    done: list[int] = []

    async def flush() -> None:
        await node.disk.settle()
        done.append(world.now_us)

    node.spawn(flush(), "flusher")
    world.run_for(1_000)
    assert done == []
    node.disk.unhang()
    world.run_for(1_000)
    assert done == [1_300]
    assert node.disk.is_slow


# -- directories of this machine ------------------------------------------------------------------------------------


def test_an_export_is_sparse_and_reads_back(disk: MemoryDisk, tmp_path: Path) -> None:
    disk.open("store/commitlog/0", 100_000_000).write(70_000_000, b"far out")
    disk.open("store/empty", 4_096)
    disk.export_to(tmp_path)
    exported = tmp_path / "store" / "commitlog" / "0"
    assert exported.stat().st_size == 100_000_000
    assert exported.stat().st_blocks * 512 < 5_000_000
    again = MemoryDisk.from_directory(tmp_path)
    assert again.files() == disk.files()
    assert again.open("store/commitlog/0").read(70_000_000, 7) == b"far out"
    assert again.open("store/empty").size == 4_096


def test_a_disk_over_a_directory_keeps_its_changes_to_itself(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 200_000)
    (tmp_path / "b").write_bytes(b"y")
    disk = MemoryDisk.over_directory(tmp_path)
    file = disk.open("a")
    file.write(100_000, b"CHANGED")
    file.truncate(150_000)
    disk.remove("b")
    assert file.read(99_999, 9) == b"xCHANGEDx"
    assert file.data_end() == 150_000
    assert (tmp_path / "a").read_bytes() == b"x" * 200_000
    assert (tmp_path / "b").exists()


def test_a_copy_of_a_directory_no_longer_needs_it(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 100_000 + bytes(100_000))
    disk = MemoryDisk.from_directory(tmp_path)
    os.remove(tmp_path / "a")
    assert disk.read_bytes("a") == b"x" * 100_000 + bytes(100_000)
    disk.open("a").write(150_000, b"more")
    assert disk.power_loss(lose_all) == (0, 1)
    assert disk.read_bytes("a") == b"x" * 100_000 + bytes(100_000)


def test_a_read_only_directory_refuses_every_change(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    disk = RealDisk(tmp_path, read_only=True)
    changes = [
        lambda: disk.open("a").write(0, b"y"),
        lambda: disk.open("a").truncate(0),
        lambda: disk.open("new", 10),
        lambda: disk.remove("a"),
        lambda: disk.rename("a", "b"),
        lambda: disk.rmtree(""),
        lambda: disk.write_bytes("a", b"y"),
    ]
    for change in changes:
        with pytest.raises(ReadOnlyDisk, match="What to do"):
            change()
    disk.open("a").flush()
    assert (tmp_path / "a").read_bytes() == b"x"


def test_a_directory_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(LearnerError, match="there is no directory"):
        RealDisk(tmp_path / "nothing", read_only=True)


def test_a_real_directory_holds_few_files_open(tmp_path: Path) -> None:
    with RealDisk(tmp_path) as disk:
        for i in range(300):
            disk.open(str(i), 10).write(0, b"x")
        assert all(disk.read_bytes(str(i)) == b"x" + bytes(9) for i in range(300))
        assert len(disk._descriptors) <= 128
        assert disk.used_bytes <= disk.capacity_bytes
        assert disk.mtime_ms("0") > 0
