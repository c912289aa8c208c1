"""What must hold in every store: tests that tests/spark takes for this machine, and tests/storage for real servers.

A class that takes it has a fixture `address`: where in its store a new, empty folder can be.
"""

from __future__ import annotations

import io
import json
import pickle
import random
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from mqlab.errors import LearnerError
from mqlab_spark import lease
from mqlab_spark.lease import take
from mqlab_spark.place import Place
from mqlab_spark.storage import ChangedError, Folder, files_at, folder

ODD = "odd # name? 100% a+b ü.parquet"

HOLD = """
import sys
from mqlab_spark.lease import take
from mqlab_spark.storage import folder
held = take(folder(sys.argv[1]), "writes")
print("held", flush=True)
sys.stdin.read()
held.end()
"""

BUILD = """
import sys
from mqlab_spark.place import Place
place = Place(sys.argv[1])
with place.alone():
    print("builds", flush=True)
    catalogue = place.read()
    for number in range(catalogue.get("number", 0) + 1, 1_000_000):
        place.write({**catalogue, "number": number, "tables": {}, "filling": str(number) * 5_000})
        print(number, flush=True)
"""


def process(program: str, address: str) -> subprocess.Popen[str]:
    """A program of Python that is told an address, when it has said its first line."""
    started = subprocess.Popen(
        [sys.executable, "-c", program, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    assert started.stdout.readline().strip()
    return started


def kill(started: subprocess.Popen[str]) -> None:
    """End it as a power cut would."""
    started.send_signal(signal.SIGKILL)
    started.communicate()


class StoreTests:
    """The tests."""

    @pytest.fixture
    def there(self, address: str) -> Folder:
        return folder(address)

    def test_files_are_listed_below_their_folder_with_size_and_state(self, there: Folder) -> None:
        assert there.files() == []
        there.swap("deep/er/a.parquet", b"12345")
        there.swap(ODD, b"1")
        there.swap("b.jsonl", b"")
        before = {file.path: file for file in there.files()}
        assert {path: file.size for path, file in before.items()} == {"deep/er/a.parquet": 5, ODD: 1, "b.jsonl": 0}
        assert [file.path for file in there.files(".parquet")] == ["deep/er/a.parquet", ODD]
        there.swap("deep/er/a.parquet", b"54321")
        after = {file.path: file for file in there.files()}
        assert [path for path, file in after.items() if file != before[path]] == ["deep/er/a.parquet"]
        assert after["b.jsonl"] == there.stat("b.jsonl")
        assert there.stat("deep") is None
        assert there.stat("nothing") is None

    def test_a_folder_is_the_same_after_its_way_to_a_task(self, there: Folder) -> None:
        there.swap("a", b"there")
        again = pickle.loads(pickle.dumps(there))
        assert again.address == there.address
        assert again.open("a").read() == b"there"
        assert there.below("b").address == f"{there.address}/b"
        assert there.below("b").parent()[0].address == there.address

    def test_arrow_reads_parquet_and_lines(self, there: Folder) -> None:
        written = pa.table({"a": list(range(100_000))})
        stream = io.BytesIO()
        pq.write_table(written, stream)
        there.swap(ODD, stream.getvalue())
        with there.open(ODD) as stream:
            file = pq.ParquetFile(stream)
            assert file.metadata.num_rows == 100_000
            assert file.read() == written
        there.swap("lines", b"one\ntwo\nthree")
        with there.open("lines") as stream:
            assert list(io.TextIOWrapper(stream, "ascii")) == ["one\n", "two\n", "three"]
        with there.open("lines") as stream:
            stream.seek(4)
            assert stream.read(3) == b"two"
        with pytest.raises(FileNotFoundError):
            there.open("nothing").read()

    def test_arrow_lists_and_removes_directories(self, there: Folder) -> None:
        for name in ("silver/t/1/part", "silver/t/2/part"):
            there.swap(name, b"1")
        selector = fs.FileSelector(there.at("silver/t"), recursive=False)
        assert {info.base_name for info in there.arrow.get_file_info(selector)} == {"1", "2"}
        there.arrow.delete_dir(there.at("silver/t/1"))
        assert [file.path for file in there.files()] == ["silver/t/2/part"]

    def test_one_of_many_makes_a_file(self, there: Folder) -> None:
        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(lambda n: there.create("who", f"{n}".encode()), range(24)))
        assert made.count(True) == 1
        seen = there.look("who")
        assert seen is not None
        assert seen.data == f"{made.index(True)}".encode()

    def test_a_file_is_replaced_only_in_the_state_that_was_seen(self, there: Folder) -> None:
        assert there.look("c") is None
        first = there.swap("c", b"1", None)
        with pytest.raises(ChangedError):
            there.swap("c", b"x", None)
        second = there.swap("c", b"two", first)
        with pytest.raises(ChangedError):
            there.swap("c", b"x", first)
        seen = there.look("c")
        assert seen == (b"two", second)
        there.remove("c")
        there.remove("c")
        with pytest.raises(ChangedError):
            there.swap("c", b"x", second)

    def test_who_reads_has_the_old_or_the_new_whole(self, there: Folder) -> None:
        there.swap("c", b"0" * 20_000)
        over = threading.Event()
        read = set()

        def read_on() -> None:
            while not over.is_set():
                seen = there.look("c")
                read.add((len(set(seen.data)), len(seen.data)) if seen else None)

        reader = threading.Thread(target=read_on)
        reader.start()
        for number in range(60):
            there.swap("c", str(number % 10).encode() * 20_000)
        over.set()
        reader.join()
        assert read == {(1, 20_000)}

    def test_files_are_named_by_folder_file_or_pattern(self, there: Folder) -> None:
        for name in ("a/1.parquet", "a/2.parquet", "b/1.parquet", "b/1.jsonl", "b/readme"):
            there.swap(name, b"1")
        found, files = files_at(there.spark(), ".parquet", ".jsonl")
        assert found.address == there.address
        assert [file.path for file in files] == ["a/1.parquet", "a/2.parquet", "b/1.jsonl", "b/1.parquet"]
        found, files = files_at(there.spark("b/readme"))
        assert (found.address, [file.path for file in files]) == (there.below("b").address, ["readme"])
        found, files = files_at(there.spark("?/1.*"))
        assert [file.path for file in files] == ["a/1.parquet", "b/1.jsonl", "b/1.parquet"]
        assert files_at(there.spark("nothing"))[1] == []

    def test_a_lease_is_held_by_one_and_given_back(self, there: Folder) -> None:
        held = take(there, "writes into it")
        with pytest.raises(LearnerError, match=r"somebody writes into it: process \d+ on"):
            take(there, "writes into it")
        held.check()
        held.end()
        again = take(there, "writes into it")
        again.check()
        again.end()
        assert [file.path for file in there.files()] == ["00000002"]

    def test_the_lease_of_a_killed_process_of_this_machine_ends_at_once(
        self, there: Folder, address: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(lease, "LEASE_S", 3600)
        holder = process(HOLD, address)
        with pytest.raises(LearnerError, match=f"somebody writes: process {holder.pid} on"):
            take(there, "writes")
        kill(holder)
        take(there, "writes").end()

    def test_the_lease_of_a_silent_machine_ends_and_it_notices(
        self, there: Folder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(lease, "BEAT_S", 3600)
        monkeypatch.setattr(lease, "LEASE_S", 1)
        silent = take(there, "writes")
        text = json.dumps({"host": "elsewhere", "pid": 1}).encode()
        there.swap("00000001", text)
        monkeypatch.setattr(lease, "BEAT_S", 0.2)
        taken = take(there, "writes")
        taken.check()
        with pytest.raises(LearnerError, match="somebody else has begun to write"):
            silent.check()
        # It beats, so whoever watches it sees that it lives.
        with pytest.raises(LearnerError, match="somebody writes"):
            take(there, "writes")
        taken.end()

    def test_a_lease_that_cannot_be_read_is_a_dead_ones(self, there: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lease, "UNREADABLE_S", 0.3)
        there.create("00000007", b"")
        take(there, "writes").end()
        assert [file.path for file in there.files()] == ["00000008"]

    def test_a_builder_that_slept_does_not_write_over_another(
        self, address: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(lease, "BEAT_S", 3600)
        monkeypatch.setattr(lease, "LEASE_S", 0.5)
        sleeper, other = Place(address), Place(address)
        with sleeper.alone():
            catalogue = sleeper.read()
            with other.alone():
                other.write({**other.read(), "who": "other"})
                with pytest.raises(LearnerError, match="somebody else has begun"):
                    sleeper.write({**catalogue, "who": "sleeper"})
        with pytest.raises(LearnerError, match="was written by somebody else"):
            sleeper.write({**catalogue, "who": "sleeper"})
        assert Place(address).read()["who"] == "other"

    def test_a_catalogue_survives_five_kills_at_any_moment(self, address: str) -> None:
        moments = random.Random(address)
        said = 0
        for _ in range(5):
            builder = process(BUILD, address)
            assert builder.stdout is not None
            for _ in range(moments.randint(1, 6)):
                said = int(builder.stdout.readline())
            threading.Event().wait(moments.uniform(0, 0.05))
            kill(builder)
            read = Place(address).read()
            assert read["number"] >= said, "what was written stays"
            assert read["filling"] == str(read["number"]) * 5_000, "and is whole"
        with Place(address).alone():
            pass
