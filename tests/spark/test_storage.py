"""Files of this machine, through the same way as those of HDFS and S3 (tests/storage)."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mqlab.errors import LearnerError
from mqlab_spark.lease import take
from mqlab_spark.place import BUILDERS, Place
from mqlab_spark.storage import folder
from tests.stores import StoreTests


class TestThisMachine(StoreTests):
    @pytest.fixture
    def address(self, tmp_path: Path) -> str:
        return str(tmp_path / "new")


def test_a_path_is_made_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for address in ("a/../b/", f"{tmp_path}/b", f"file://{tmp_path}/b", f"file:{tmp_path}/b/"):
        there = folder(address)
        assert (there.address, there.spark("c")) == (f"{tmp_path}/b", f"file://{tmp_path}/b/c")


@pytest.mark.parametrize("address", ["ftp://host/a", "gs://bucket/a"])
def test_an_unknown_store_is_said(address: str) -> None:
    with pytest.raises(LearnerError, match=f"mqlab cannot reach {address}"):
        folder(address)


@contextmanager
def full_disk() -> Iterator[None]:
    """This process can write no byte into any file, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_is_full_from_the_start_is_said_and_blocks_no_later_build(tmp_path: Path) -> None:
    place = Place(tmp_path / "out")
    with full_disk(), pytest.raises(LearnerError, match=r"nothing can be built into .*: file too large"), place.alone():
        pass
    assert [path.name for path in (tmp_path / "out").rglob("*") if path.is_file()] == []
    with place.alone():
        place.write({"version": 1, "tables": {}})


def test_a_disk_that_fills_while_a_build_runs_keeps_no_lease(tmp_path: Path) -> None:
    place = Place(tmp_path / "out")
    held = take(place.folder.below(BUILDERS), "builds")
    with full_disk():
        held.end()
    assert [file.path for file in place.folder.files()] == []
    with place.alone():
        pass
